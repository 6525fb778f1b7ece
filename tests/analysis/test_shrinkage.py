"""Distances of smooth from unbiased counts, by group, against sums over rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.analysis.results import shrinkage
from rpexplore.analysis.results.released_cells import ReleasedCells
from rpexplore.figures.shrinkage import MOST_ROWS, shrinkage_chart


def made(value, unbiased, error, *names) -> ReleasedCells:
    value, unbiased, error = (np.array(each, dtype=float) for each in (value, unbiased, error))
    axes = tuple(
        Axis(name, tuple(f"{name}{i}" for i in range(size)))
        for name, size in zip(names, value.shape, strict=True)
    )
    ends = unbiased - 1.96 * error, unbiased + 1.96 * error
    return ReleasedCells(axes, value, unbiased, error, *ends, "smooth", error / 2)


@pytest.fixture
def tables() -> list[ReleasedCells]:
    rng = np.random.default_rng(0)
    return [
        made(*rng.gamma(1, 30, (3, *shape)) + 1, *names)
        for shape, names in (((3,), "a"), ((2, 3), "ba"), ((3, 2, 4), "abc"))
    ]


def rows_of(tables) -> pd.DataFrame:
    frame = pd.concat([cells.frame for cells in tables])
    distance = (frame["value"] - frame["unbiased_value"]) / frame["standard_error"]
    outside = ~frame["value"].between(frame["lower_95"], frame["upper_95"])
    return frame.assign(squared=distance**2, outside=outside)


def check(frame, groups) -> None:
    assert frame["group"].tolist() == list(groups.groups)
    assert frame["cells"].tolist() == groups.size().tolist()
    assert frame["distance"].tolist() == pytest.approx(np.sqrt(groups["squared"].mean()))
    assert frame["outside_95"].tolist() == pytest.approx(groups["outside"].mean())


def test_a_value_has_all_cells_that_count_it_and_its_own_count(tables):
    frame = shrinkage.by_value(tables)["a"]
    check(frame, rows_of(tables).groupby("a"))
    own = tables[0].frame[["value", "unbiased_value", "standard_error"]]
    assert np.array_equal(frame[own.columns], own)
    frames = shrinkage.by_value(tables[1:])
    assert frames["a"]["value"].isna().all()
    check(frames["c"], rows_of(tables[2:]).groupby("c"))


def test_the_farthest_attribute_is_not_so_by_chance():
    frames = {
        # 3 / √(2 · 2) = 1.5 beyond 1 is chance; of 50 cells 0.3 is.
        name: pd.DataFrame({"cells": [cells, 50], "distance": [distance, 1.0]})
        for name, cells, distance in (("few", 2, 2.4), ("many", 50, 1.4), ("near", 50, 1.1))
    }
    assert shrinkage.farthest_attribute(frames) == "many"


def test_levels_are_those_of_the_smooth_counts(tables):
    edge = made([0, 0.99, 1, 4.9, 5, 10_000], np.ones(6), np.ones(6), "x")
    frame = shrinkage.by_level([*tables, edge])
    rows = rows_of([*tables, edge])
    levels = pd.cut(rows["value"], [*shrinkage.LEVELS, np.inf], right=False)
    check(frame.assign(group=levels.unique().sort_values()), rows.groupby(levels, observed=True))
    assert frame["group"].iloc[[0, 1, -1]].tolist() == [
        "below 1",
        "1 to below 5",
        "10,000 and more",
    ]


def test_a_distance_is_clearly_above_1_beyond_three_standard_deviations():
    # By chance: of 50 cells 3 / √(2 × 50) = 0.3, of 30 cells 0.39.
    for size, above in ((50, True), (30, False)):
        cells = made(np.full(size, 7 + 1.34 * 3), np.full(size, 7), np.full(size, 3), "x")
        assert shrinkage.by_level([cells])["clearly_above"].tolist() == [above]


def test_counts_without_any_error_are_at_1_and_as_inaccurate_ones_at_the_root_of_2():
    noise, errors = 7 * np.random.default_rng(1).standard_normal((2, 60, 80))
    for value, distance in ((50 + 0 * errors, 1.0), (50 + errors, 2**0.5)):
        (row,) = (
            shrinkage.by_level([made(value, 50 + noise, 7 + 0 * noise, *"ab")])
            .loc[lambda frame: frame["group"] == "20 to below 100", ["distance", "outside_95"]]
            .to_numpy()
        )
        # Of normal differences with that standard deviation.
        assert row == pytest.approx([distance, 2 * norm.sf(1.96 / distance)], abs=0.02)


def test_sentences_name_the_farthest_group_and_what_was_kept():
    frame = pd.DataFrame(
        {"group": ["x", "y"], "cells": [8, 50], "distance": [0.4, 1.037], "outside_95": [0.0, 1.0]}
    ).assign(clearly_above=[False, True])
    words = shrinkage.describe_groups(frame, "age")
    assert ": age y, 1.04 standard errors in 50 cells (root mean square), 100 % of them" in words
    assert "Nearest: x, 0.400. 1 of 2 groups is clearly above 1" in words
    none = frame.assign(clearly_above=False)
    assert "None is clearly above 1" in shrinkage.describe_groups(none, "age")
    kept = pd.DataFrame({"order": [1, 2, 2, 2], "share_kept": [1.0, 0.1, 0.5, 0.2]})
    assert "keeps 100 % if it is 1-way and 20 % if it is 2-way." in shrinkage.describe_kept(kept)


def test_the_chart_has_the_groups_that_are_farthest_and_a_line_at_1():
    frame = pd.DataFrame(
        {"group": [f"<{i}>" for i in range(60)], "cells": 4, "distance": np.arange(60) / 20}
    ).assign(outside_95=0.0, clearly_above=np.arange(60) > 50)
    chart = shrinkage_chart(frame, "age", "x.csv")
    bars = chart.figure.data[0]
    assert list(bars.x) == sorted(frame["distance"], reverse=True)[:MOST_ROWS]
    assert list(bars.marker.pattern.shape) == ["/"] * 9 + [""] * 16
    assert chart.figure.layout.shapes[0].x0 == 1
    assert chart.figure.layout.yaxis.ticktext[0] == "&lt;59&gt;"
    assert len(chart.frame) == 60
    assert "The 25 groups that are farthest are drawn" in chart.caption
