"""The columns of a table of the results, and the name of its file."""

import re
from collections.abc import Sequence

import pandas as pd

from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.postprocessing.publication import (
    CV_COLUMN,
    PUBLISHABLE_COLUMN,
    Publication,
    are_adaptive,
    are_smooth,
)


def columns_of(frame: pd.DataFrame) -> dict[str, Column]:
    """The columns of a table: labels, counts, intervals."""
    is_processed, smooth = "value_is" in frame.columns[-1:], are_smooth(frame)
    adaptive = are_adaptive(frame)
    count = "smooth count (biased)" if smooth else "processed count (biased)"
    of_counts = {
        "value": Column(count if is_processed else "noisy count", "estimate"),
        "standard_error": COLUMNS["standard_error"],
        "lower_95": Column("95 % interval from", "estimate"),
        "upper_95": Column("95 % interval to", "estimate"),
        CV_COLUMN: Column("CV", "share"),
        PUBLISHABLE_COLUMN: Column("publishable", "text"),
    }
    if is_processed and not adaptive:
        of_counts["unbiased_value"] = Column("noisy count (unbiased)", "estimate")
        of_counts["lower_95"] = Column("unbiased 95 % interval from", "estimate")
        of_counts["upper_95"] = Column("unbiased 95 % interval to", "estimate")
        of_counts["value_is"] = Column("what the processed count is", "text")
    if smooth:
        of_counts["model_error"] = Column("model-based error", term="Model-based error")
        of_counts[CV_COLUMN] = Column("model-based CV", "share")
    if adaptive:
        of_counts["value"] = Column("estimated count (biased)", "estimate")
        of_counts["lower_95"] = Column("95 % interval from (if the model holds)", "estimate")
        of_counts["upper_95"] = Column("95 % interval to (if the model holds)", "estimate")
        of_counts["value_is"] = Column("what the estimated count is", "text")
    return {name: of_counts.get(name, Column(name, "name")) for name in frame.columns}


def file_of(names: Sequence[str], publication: Publication) -> str:
    """What to call a downloaded table: "age_sex.csv", as in the folder of a release.

    "age_sex-publishable.csv" where other cells are left empty.
    """
    parts = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names or ("total",))
    kind = "-publishable" if publication.leave_empty else ""
    return f"{'_'.join(filter(None, parts))[:80] or 'table'}{kind}.csv"
