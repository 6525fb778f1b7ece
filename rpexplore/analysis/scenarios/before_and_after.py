"""What a change of a scenario does to the unbiased tables there were, in words."""

import numpy as np

from rpexplore.analysis.scenarios.shared_tables import Contender, outcomes
from rpexplore.common.formatting import describe_share, plural, rounded


def describe_before_and_after(before: Contender, after: Contender) -> str:
    """Median margin, least accurate table and publishable share of the tables that both have.

    "Unbiased errors of the 575 tables: a cell of the median table from ±38 to ±52 people (95 %);
    of the least accurate table from ±62 for age × sex to ±79 for sex; …".
    """
    first, second = outcomes([before, after]).to_dict("records")
    noun, count = before.scenario.record_noun, int(first["shared"])
    tables = "the table" if count == 1 else f"the {plural(count, 'table')}"
    median, later = (rounded(row["median_margin"], 3) for row in (first, second))
    parts = [f"a cell of the median table from ±{median} to ±{later} {noun} (95 %)"]
    if count > 1:
        worst, later = (
            f"±{rounded(row['largest_margin'], 3)} for {row['least_accurate']}"
            for row in (first, second)
        )
        parts.append(f"of the least accurate table from {worst} to {later}")
    if not np.isnan(first["share"]):
        share, later = (describe_share(row["share"]) for row in (first, second))
        change = f"stay at {share}" if share == later else f"from {share} to {later}"
        parts.append(f"publishable cells {change}")
    return f"Unbiased errors of {tables}: {'; '.join(parts)}."
