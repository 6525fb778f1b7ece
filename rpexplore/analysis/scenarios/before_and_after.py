"""What a change of a scenario does to the unbiased tables there were, in words."""

import numpy as np

from rpexplore.analysis.scenarios.shared_tables import Contender, outcomes
from rpexplore.common.formatting import describe_share, plural, rounded


def describe_before_and_after(before: Contender, after: Contender) -> str:
    """Median margin, least accurate table and publishable share of the tables that both have.

    "Unbiased, the 575 tables: a cell of the median table from ±38 to ±52 people (95 %), …".
    """
    first, second = outcomes([before, after]).to_dict("records")
    noun, count = before.scenario.record_noun, int(first["shared"])
    tables = "the table" if count == 1 else f"the {plural(count, 'table')}"
    parts = [
        f"a cell of {which} from ±{rounded(first[margin], 3)} to ±{rounded(second[margin], 3)} "
        f"{noun} (95 %)"
        for which, margin in (
            ("the median table", "median_margin"),
            ("the least accurate table", "largest_margin"),
        )[: 1 if count == 1 else 2]
    ]
    if not np.isnan(first["share"]):
        share, later = (describe_share(row["share"]) for row in (first, second))
        change = f"stay at {share}" if share == later else f"from {share} to {later}"
        parts.append(f"publishable cells {change}")
    return f"Unbiased errors of {tables}: {'; '.join(parts)}."
