"""What a change of a scenario does to the unbiased tables there were, in words."""

import numpy as np

from rpexplore.analysis.scenarios.shared_tables import Contender, outcomes
from rpexplore.common.formatting import describe_share, plural, rounded


def describe_before_and_after(before: Contender, after: Contender) -> str:
    """Median margin, least accurate table and publishable share of the tables that both have.

    "In the 575 tables, the margin of error of an unbiased cell (95 %) goes from ±38 to ±52 people
    in the median table, and from ±62 for age × sex to ±79 for sex in the least accurate one; …".
    """
    first, second = outcomes([before, after]).to_dict("records")
    noun, count = before.scenario.record_noun, int(first["shared"])
    median, later = (rounded(row["median_margin"], 3) for row in (first, second))
    text = f"the margin of error of an unbiased cell (95 %) goes from ±{median} to ±{later} {noun}"
    if count == 1:
        text = f"In the table, {text}"
    else:
        worst, later = (
            f"±{rounded(row['largest_margin'], 3)} for {row['least_accurate']}"
            for row in (first, second)
        )
        text = (
            f"In the {plural(count, 'table')}, {text} in the median table, and from {worst} to "
            f"{later} in the least accurate one"
        )
    if not np.isnan(first["share"]):
        share, later = (describe_share(row["share"]) for row in (first, second))
        change = f"stays at {share}" if share == later else f"goes from {share} to {later}"
        text += f"; the share of publishable cells {change}"
    return f"{text}."
