"""What the noise of a plan could hide of a table, before the run."""

import numpy as np
import pandas as pd
from scipy.special import chdtri, chndtrinc

from rpexplore.common.text import rounded
from rpexplore.planning.table_plan import TablePlan

_FALSE_ALARMS = 0.05  # probability that the χ² test of a residual without deviation finds one
_MISSED = 0.2  # probability that it misses a deviation of the size that is stated


def could_hide(plan: TablePlan) -> pd.DataFrame:
    """One row a table of counts of two attributes or more: attributes, order, cells, could_hide.

    could_hide is in records: √(λ σ²/cells) with σ² of the table's own residual and λ the
    noncentrality that a χ² test at 5 % misses with probability 0.2. Of single values; for each set
    of attributes once. Attributes of one value are left out.
    """
    closure, workload = plan.closure, plan.workload
    sizes = workload.domain.sizes
    wanted = {
        tuple(index for index in workload.attribute_indices(table) if sizes[index] > 1)
        for table in np.flatnonzero(~workload.has_amounts).tolist()
    }
    variances = plan.sigma_squared.floats
    rows = []
    for residual in range(len(closure)):
        subset = closure.attributes(residual)
        if len(subset) < 2 or subset not in wanted:
            continue
        variance, cells = float(variances[residual]), int(np.prod(sizes[list(subset)]))
        degrees_of_freedom = float(np.prod(sizes[list(subset)] - 1.0))
        for index in subset:
            if (strategy := closure.strategies.get(index)) is not None:
                covariance = strategy.within(subset).decoded_covariance
                variance *= np.trace(covariance) / (strategy.size - 1)
        limit = chdtri(degrees_of_freedom, _FALSE_ALARMS)
        noncentrality = float(chndtrinc(limit, degrees_of_freedom, _MISSED))
        rows.append(
            {
                "attributes": tuple(workload.domain.names[index] for index in subset),
                "order": len(subset),
                "cells": cells,
                "could_hide": float(np.sqrt(noncentrality * variance / cells)),
            }
        )
    return pd.DataFrame(rows, columns=["attributes", "order", "cells", "could_hide"])


def describe_could_hide(frame: pd.DataFrame) -> str:
    """The medians by number of attributes and the table that could hide most, in sentences."""
    if frame.empty:
        return ""
    medians = frame.groupby("order")["could_hide"].median().to_dict()
    parts = [
        f"±{rounded(float(value), 3)} in tables of {order} attributes"
        for order, value in medians.items()
    ]
    hidden = frame["could_hide"].to_numpy(dtype=float)
    worst = int(hidden.argmax())
    table = " × ".join(frame["attributes"].tolist()[worst])
    return (
        f"What the noise could hide of a cell beyond what smaller tables suggest: "
        f"{', '.join(parts)} (medians); most, ±{rounded(float(hidden[worst]), 3)}, in "
        f"{table}. Smaller deviations show in fewer than four of five releases, and estimates may "
        "be wrong by them."
    )
