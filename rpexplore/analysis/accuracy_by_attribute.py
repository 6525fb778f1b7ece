"""How accurate the tables are that contain each attribute."""

import numpy as np
import pandas as pd

from rpexplore.analysis.forecast import Forecast
from rpexplore.planning.mechanism.table_variances import is_negligible_difference
from rpexplore.workload.table_text import titles

_MOST_LISTED = 5  # attributes without a table


def by_attribute(forecast: Forecast) -> pd.DataFrame:
    """One row an attribute that some table has, the largest median of the measure first.

    Columns: attribute, values (how many it has), tables (that contain it), smallest,
    lower_quartile, median, upper_quartile, largest, most_accurate_table, least_accurate_table.
    Quantiles are values of tables, without interpolation, but for the median of an even number.
    """
    workload, values = forecast.workload, forecast.values
    ranks = forecast.having[np.argsort(values[forecast.having], kind="stable")]
    # Tables by attribute, and for each attribute the most accurate first.
    members = workload.members[ranks]
    rows, columns = np.nonzero(members >= 0)
    attributes = members[rows, columns]
    tables = ranks[rows[np.argsort(attributes, kind="stable")]]
    counts = np.bincount(attributes, minlength=len(workload.domain))
    ends = np.cumsum(counts)
    used = np.flatnonzero(counts)
    first, last = (ends - counts)[used], ends[used] - 1
    span = last - first

    def at(rank: np.ndarray) -> np.ndarray:
        return values[tables[first + rank]]

    frame = pd.DataFrame(
        {
            "attribute": [workload.domain.names[attribute] for attribute in used.tolist()],
            "values": workload.domain.sizes[used],
            "tables": counts[used],
            "smallest": at(0 * span),
            "lower_quartile": at(span // 4),
            "median": (at(span // 2) + at((span + 1) // 2)) / 2,
            "upper_quartile": at(span - span // 4),
            "largest": at(span),
            "most_accurate_table": titles(workload, tables[first]),
            "least_accurate_table": titles(workload, tables[last]),
        }
    )
    return frame.sort_values("median", ascending=False, kind="stable", ignore_index=True)


def first_and_last(frame: pd.DataFrame, most: int) -> tuple[pd.DataFrame, int]:
    """The first and last rows of `by_attribute`, `most` together, and how many are between."""
    if len(frame) <= most:
        return frame, 0
    return pd.concat([frame.head(most - most // 2), frame.tail(most // 2)]), len(frame) - most


def describe(frame: pd.DataFrame, forecast: Forecast, record_noun: str) -> str:
    """Which attribute's tables are least accurate, which most, and which are in no table."""
    if frame.empty:
        return "No table has an attribute: there is only the total."
    least, most, measure = frame.iloc[0], frame.iloc[-1], forecast.measure
    high = measure.stated(least["median"], record_noun, zeros=True)
    low = measure.text(most["median"], zeros=True)
    if len(frame) == 1:
        text = f"Tables that contain {least['attribute']} have a median {measure.noun} of {high}."
    elif is_negligible_difference(most["median"], least["median"]):
        text = (
            f"Tables have the same median {measure.noun} of {high}, whichever attribute they "
            "contain."
        )
    else:
        text = (
            f"Tables that contain {least['attribute']} are the least accurate (median "
            f"{measure.noun} {high}), those that contain {most['attribute']} the most ({low})."
        )
    covered = set(frame["attribute"])
    missing = [name for name in forecast.workload.domain.names if name not in covered]
    if not missing:
        return text
    more = len(missing) - _MOST_LISTED
    listed = ", ".join(missing[:_MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{text} In no table: {listed}."
