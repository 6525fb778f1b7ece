"""How evenly accuracy is spread over the tables of a workload, and over its attributes."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from rpexplore.analysis.measures import STANDARD_ERROR, Accuracy, Measure
from rpexplore.common.text import describe_share, rounded
from rpexplore.planning.mechanism.variances import is_negligible_difference
from rpexplore.planning.part_plan import Z_95
from rpexplore.workload.table_text import titles
from rpexplore.workload.workload import Workload

# All are of one measure of accuracy (`Accuracy.measure`). None depends on the budget, but for the
# values themselves, which a larger budget divides by one number. What the charts of the Fairness
# page show is here, in `distributions` and in `binding_targets`.


# What to call each measure of evenness, and what it means; σ stands for any measure of accuracy.
MEASURES = {
    "smallest": ("Smallest σ", "That of a cell of the most accurate table."),
    "lower_tenth": ("10th percentile", "One tenth of the tables have at most this σ."),
    "median": ("Median σ", "Half of the tables have at most this σ."),
    "upper_tenth": ("90th percentile", "Nine tenths of the tables have at most this σ."),
    "largest": ("Largest σ", "That of a cell of the least accurate table."),
    "ratio": ("Largest ÷ smallest σ", "1 if all tables are equally accurate."),
    "tenths_ratio": ("90th ÷ 10th percentile", "The same without the tables at either end."),
    "gini": (
        "Gini index of σ",
        "0 if all tables are equally accurate, towards 1 if few tables bear nearly all error.",
    ),
    "within_twice": ("Within twice the smallest", "Share of tables with σ at most twice that."),
}
_OF_ACCURACY = ("smallest", "lower_tenth", "median", "upper_tenth", "largest")


def measures_of(accuracy: Accuracy) -> dict[str, float]:
    """The `MEASURES` of a plan."""
    values = accuracy.values[accuracy.having]
    low, lower, median, upper, high = np.quantile(values, [0, 0.1, 0.5, 0.9, 1]).tolist()
    return {
        "smallest": low,
        "lower_tenth": lower,
        "median": median,
        "upper_tenth": upper,
        "largest": high,
        "ratio": high / low,
        "tenths_ratio": upper / lower,
        "gini": gini(values),
        "within_twice": float(np.mean(values <= 2 * low)),
    }


def measures(accuracies: Sequence[Accuracy]) -> pd.DataFrame:
    """One row a plan: plan, and the `MEASURES`."""
    return pd.DataFrame(
        [{"plan": accuracy.name, **measures_of(accuracy)} for accuracy in accuracies]
    )


def side_by_side(frame: pd.DataFrame, measure: Measure = STANDARD_ERROR) -> pd.DataFrame:
    """`measures` to read: a row a measure with its name and meaning, a column a plan, as texts.

    measure: of accuracy, that of the plans
    """
    rows = []
    for field, (name, meaning) in MEASURES.items():
        values = zip(frame["plan"], frame[field].tolist(), strict=True)
        texts = {plan: _measure_text(field, value, measure) for plan, value in values}
        name, meaning = (text.replace("σ", measure.symbol) for text in (name, meaning))
        rows.append({"measure": name, **texts, "meaning": meaning})
    return pd.DataFrame(rows)


def gini(values: np.ndarray) -> float:
    """Gini index of positive values: mean absolute difference of two of them over twice the mean.

    Computed as Σ_i (2i − n − 1) x_(i) / (n Σ x), with x sorted ascending and i from 1.
    """
    count = len(values)
    ranks = 2.0 * np.arange(1, count + 1) - count - 1
    return float(np.dot(ranks, np.sort(values)) / (count * np.sum(values)))


def is_even(accuracy: Accuracy) -> bool:
    """Whether all tables are equally accurate, as far as anybody would notice."""
    values = accuracy.values[accuracy.having]
    return is_negligible_difference(float(values.min()), float(values.max()))


def least_and_most_accurate(
    accuracy: Accuracy, most: int = 10
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The least accurate tables, the least accurate first, and the most accurate ones.

    Columns as those of `ranking`. Where there are few, none is in both.
    """
    ascending = accuracy.having[np.argsort(accuracy.values[accuracy.having], kind="stable")]
    count = len(ascending)
    few = min(most, count - count // 2)
    least_accurate, most_accurate = ascending[::-1][:few], ascending[: min(most, count - few)]
    return (
        _ranked_rows(accuracy, least_accurate, titles(accuracy.workload, least_accurate)),
        _ranked_rows(accuracy, most_accurate, titles(accuracy.workload, most_accurate)),
    )


@lru_cache(maxsize=2)  # most of the work for a long list
def all_titles(workload: Workload) -> np.ndarray:
    """The title of each table, object[n_tables]."""
    return np.array(titles(workload, np.arange(len(workload))), dtype=object)


def ranking(accuracy: Accuracy) -> pd.DataFrame:
    """All tables, the least accurate first: table, order, cells, the measure (in a column of its
    name), standard_error, margin_95 and times_median, how many times the median of the measure that
    is; where cells differ also smallest_standard_error and largest_standard_error, of the table's
    most and least accurate cell. Tables that have no value in the measure stand last.
    """
    rows = np.argsort(-accuracy.values, kind="stable")
    return _ranked_rows(accuracy, rows, all_titles(accuracy.workload)[rows])


def _ranked_rows(
    accuracy: Accuracy, rows: np.ndarray, names: Sequence[str] | np.ndarray
) -> pd.DataFrame:
    workload, values = accuracy.workload, accuracy.values
    return pd.DataFrame(
        {
            "table": names,
            "order": workload.orders[rows],
            "cells": workload.cells[rows],
            **accuracy.columns(rows),
            "margin_95": accuracy.standard_errors[rows] * Z_95,
            "times_median": values[rows] / np.median(values[accuracy.having]),
        }
        | accuracy.variances.extreme_columns(rows)
    )


def describe_unevenness(accuracy: Accuracy, record_noun: str) -> str:
    """The least accurate table, and by how much, in a sentence or two."""
    values, measure = accuracy.values, accuracy.measure
    extremes = np.array([np.nanargmin(values), np.nanargmax(values)])
    most, least = titles(accuracy.workload, extremes)
    found = measures_of(accuracy)
    median = measure.stated(found["median"], record_noun)
    if len(accuracy.having) == 1:
        return f"There is one table, {least}: the {measure.noun} of a cell is {median}."
    if is_even(accuracy):
        return (
            f"All {len(accuracy.having):,} tables are equally accurate: the {measure.noun} of a "
            f"cell is {median}; small counts still have the larger relative errors."
        )
    return (
        f"The least accurate table is {least}: its {measure.noun} of "
        f"{measure.stated(found['largest'], record_noun)} is {rounded(found['ratio'], 2)} times "
        f"that of the most accurate, {most}, at {measure.text(found['smallest'])}. "
        f"{describe_share(found['within_twice'])} of the tables are within twice the smallest."
    )


def headline(accuracy: Accuracy, record_noun: str) -> list[tuple[str, str, str]]:
    """Label, value and caption of what matters most; of a plan that `is_even` they say little."""
    found, measure = measures_of(accuracy), accuracy.measure
    least, most = least_and_most_accurate(accuracy, 1)
    figures = [
        (
            f"{which} accurate table",
            f"{measure.symbol} = {measure.text(found[end])}",
            f"±{rounded(frame['margin_95'].tolist()[0], 3)} {record_noun} (95 %), in "
            f"{frame['table'][0]}",
        )
        for which, end, frame in (("Least", "largest", least), ("Most", "smallest", most))
    ]
    return [
        *figures,
        (
            "Least vs most accurate",
            f"{rounded(found['ratio'], 3, zeros=True)} times",
            f"{describe_share(found['within_twice'])} of tables: at most twice",
        ),
        (
            f"Gini index of {measure.symbol}",
            rounded(found["gini"], 2, zeros=True),
            "0: all tables equally accurate",
        ),
    ]


def describe_measures(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> str:
    """Which plan is the most even, which the least, and which has the smallest median.

    measure: of accuracy, that of the plans
    """
    even, uneven = (frame.loc[row] for row in (frame["ratio"].idxmin(), frame["ratio"].idxmax()))
    accurate = frame.loc[frame["median"].idxmin()]
    if is_negligible_difference(1, uneven["ratio"]):
        return "All plans make all tables equally accurate."
    return (
        f"The most even plan is “{even['plan']}” (largest {_times(even['ratio'])} the smallest), "
        f"the least even “{uneven['plan']}” ({_times(uneven['ratio'])}). The smallest median "
        f"{measure.noun}, {measure.stated(accurate['median'], record_noun)}, comes with "
        f"“{accurate['plan']}”."
    )


def _times(ratio: float) -> str:
    return f"{rounded(ratio, 3, zeros=True)} times"


def _measure_text(field: str, value: float, measure: Measure) -> str:
    if field in _OF_ACCURACY:
        return measure.text(value, zeros=True)
    if field == "within_twice":
        return describe_share(value)
    return f"{value:.3f}" if field == "gini" else rounded(value, 3, zeros=True)


# ---- How accurate the tables are that contain each attribute.


_MOST_LISTED = 5  # attributes without a table


def by_attribute(accuracy: Accuracy) -> pd.DataFrame:
    """One row an attribute that some table has, the largest median of the measure first.

    Columns: attribute, values (how many it has), tables (that contain it), smallest,
    lower_quartile, median, upper_quartile, largest, most_accurate_table, least_accurate_table.
    Quantiles are values of tables, without interpolation, but for the median of an even number.
    """
    workload, values = accuracy.workload, accuracy.values
    ranks = accuracy.having[np.argsort(values[accuracy.having], kind="stable")]
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


def describe(frame: pd.DataFrame, accuracy: Accuracy, record_noun: str) -> str:
    """Which attribute's tables are least accurate, which most, and which are in no table."""
    if frame.empty:
        return "No table has an attribute: there is only the total."
    least, most, measure = frame.iloc[0], frame.iloc[-1], accuracy.measure
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
    missing = [name for name in accuracy.workload.domain.of_records.names if name not in covered]
    if not missing:
        return text
    more = len(missing) - _MOST_LISTED
    listed = ", ".join(missing[:_MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{text} In no table: {listed}."
