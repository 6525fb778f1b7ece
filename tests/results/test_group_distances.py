"""Distances of smooth from unbiased counts, by group, against sums over rows."""

from itertools import chain, combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import rpexplore as rp
from rpexplore.results.estimates.shrinkage import BY_SIZE, SIZES, GroupDistances
from rpexplore.workload.bases import Prefix
from rpexplore.workload.table_text import query_matrix

DOMAIN = rp.Domain(
    (
        rp.Attribute("a", rp.Categories(("x", "y", "z"), ("ex", "why", "zed"))),
        rp.Attribute("b", rp.Integers(0, 1)),
        rp.Attribute("c", rp.Integers(0, 3)),
    )
)
RESIDUALS = [subset for order in range(4) for subset in combinations(range(3), order)]
UP_TO = query_matrix(Prefix(), DOMAIN["c"])  # labels other than those of the single values
TABLES = [((), ()), ((0,), (None,)), ((0, 1), (None, None)), ((0, 1, 2), (None, None, UP_TO))]


def numbers_of(value, unbiased, error) -> list[np.ndarray]:
    columns = (np.asarray(column, dtype=float) for column in (value, unbiased, error))
    value, unbiased, error = np.broadcast_arrays(*columns)
    return [value, unbiased, error, unbiased - 1.96 * error, unbiased + 1.96 * error]


def of_one(value, unbiased, error) -> pd.DataFrame:
    """The groups by size of a single table."""
    numbers = numbers_of(value, unbiased, error)
    domain = rp.Domain.from_sizes({"a": len(numbers[0])})
    groups = GroupDistances(domain)
    groups.add(0, (0,), (None,), numbers)
    return groups.frame([(), (0,)]).query("attribute == @BY_SIZE")


def check(frame, rows, by) -> None:
    groups = rows.groupby(by, sort=False, observed=True)
    assert frame["cells"].tolist() == groups.size().tolist()
    assert frame["distance"].tolist() == pytest.approx(np.sqrt(groups["squared"].mean()))
    assert frame["outside_95"].tolist() == pytest.approx(groups["outside"].mean())


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 2, 0)])
def test_a_group_has_all_cells_that_count_it_and_its_own_count(order):
    rng, frames, made = np.random.default_rng(0), [], []
    for attributes, queries in TABLES:
        axes = [
            (DOMAIN.names[i], DOMAIN.attributes[i].labels() if query is None else query.labels())
            for i, query in zip(attributes, queries, strict=True)
        ]
        cells = list(product(*(labels for _, labels in axes)))
        numbers = numbers_of(*rng.gamma(1, 30, (3, len(cells))) + 1)
        frame = pd.DataFrame(cells, columns=[name for name, _ in axes], index=range(len(cells)))
        value, unbiased, error, lower, upper = numbers
        frame["value"], frame["squared"] = value, ((value - unbiased) / error) ** 2
        frame["outside"] = (value < lower) | (value > upper)
        frames.append(frame)
        made.append(numbers)
    groups = GroupDistances(DOMAIN)
    for position in order:
        groups.add(position, *TABLES[position], made[position])
    found, rows = groups.frame(RESIDUALS), pd.concat(frames)
    for name in DOMAIN.names:
        labels = rows[name].dropna().unique()
        of_attribute = found[found["attribute"] == name]
        assert of_attribute["group"].tolist() == labels.tolist()
        check(of_attribute, rows, name)
    by_size = found[found["attribute"] == BY_SIZE]
    sizes = pd.cut(rows["value"], [*SIZES, np.inf], right=False)
    rows["size"] = sizes
    check(by_size, rows.sort_values("size"), "size")
    own = found[["value", "unbiased_value", "standard_error"]].to_numpy()
    assert np.array_equal(own[:3].T, made[1][:3])
    assert np.isnan(own[3:]).all()
    again = GroupDistances(DOMAIN)
    for position in range(len(TABLES)):
        again.add(position, *TABLES[position], made[position])
    pd.testing.assert_frame_equal(again.frame(RESIDUALS), found, check_exact=True)


def test_groups_by_size_begin_where_they_say():
    frame = of_one([0, 0.99, 1, 4.9, 5, 10_000], 1, 1)
    assert frame["cells"].tolist() == [2, 2, 1, 1]
    assert frame["group"].tolist() == [
        "below 1",
        "1 to below 5",
        "5 to below 20",
        "10,000 and more",
    ]


def test_a_distance_is_clearly_above_1_beyond_three_standard_deviations():
    # By chance: of 50 cells 3 / √(2 × 50) = 0.3, of 30 cells 0.39.
    for size, above in ((50, "yes"), (30, "no")):
        frame = of_one(np.full(size, 7 + 1.34 * 3), 7, 3)
        assert frame["clearly_above_1"].tolist() == [above]


def test_numbers_of_a_group_are_as_many_as_are_independent():
    """Against the rank of what the cells of a group add up."""
    groups = GroupDistances(DOMAIN)
    records = list(product(*(range(attribute.size) for attribute in DOMAIN.attributes)))
    residuals = [subset for subset in RESIDUALS if len(subset) < 3]
    sums: dict[tuple[int, int], list[list[bool]]] = {}
    for position, table in enumerate(residuals):
        cells = list(product(*(range(DOMAIN.attributes[i].size) for i in table)))
        groups.add(position, table, (None,) * len(table), numbers_of([1] * len(cells), 1, 1))
        for cell in cells:
            counted = [tuple(record[i] for i in table) == cell for record in records]
            for group in zip(table, cell, strict=True):
                sums.setdefault(group, []).append(counted)
    frame = groups.frame(residuals)
    of_values = frame[frame["attribute"] != BY_SIZE]
    ranks = [np.linalg.matrix_rank(np.array(sums[group], float)) for group in sorted(sums)]
    assert of_values["limit"].tolist() == pytest.approx(1 + 3 / np.sqrt(2 * np.array(ranks)))
    assert np.all(np.array(ranks) < of_values["cells"])
    every = np.linalg.matrix_rank(np.array([*chain(*sums.values())], float))
    of_sizes = frame[frame["attribute"] == BY_SIZE]
    assert of_sizes["limit"].tolist() == pytest.approx([1 + 3 / np.sqrt(2 * every)])


def test_counts_without_any_error_are_at_1_and_as_inaccurate_ones_at_the_root_of_2():
    noise, errors = 7 * np.random.default_rng(1).standard_normal((2, 4800))
    for value, distance in ((50 + 0 * errors, 1.0), (50 + errors, 2**0.5)):
        frame = of_one(value, 50 + noise, 7)
        row = frame.loc[frame["group"] == "20 to below 100", ["distance", "outside_95"]]
        # Of normal differences with that standard deviation.
        expected = [distance, 2 * norm.sf(1.96 / distance)]
        assert row.to_numpy()[0] == pytest.approx(expected, abs=0.02)
