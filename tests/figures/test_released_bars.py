"""Bars with intervals, tested through their data."""

import json

import numpy as np
import pytest

from rpexplore.figures.released_bars import MOST_GROUPS, bars_with_intervals
from tests.figures.released import made


def test_each_bar_has_its_interval():
    (bars,) = bars_with_intervals(made([5, -2, 9], [1, 3, 2], "age"), "people").data
    assert list(bars.y) == [5, -2, 9]
    assert list(bars.error_y.array) == [1, 3, 2]
    assert bars.hovertext[1] == "age 1<br>−2.0 ±3"


def test_groups_differ_by_pattern_as_well_as_by_colour():
    cells = made(np.arange(12).reshape(2, 6), np.ones((2, 6)), "sex", "region")
    figure = bars_with_intervals(cells, "people")
    assert len(figure.data) == 6 == MOST_GROUPS
    assert len({bars.marker.pattern.shape for bars in figure.data}) == 6
    assert len({bars.marker.color for bars in figure.data}) == 6
    assert [list(bars.y) for bars in figure.data] == cells.value.T.tolist()
    assert figure.layout.showlegend
    assert figure.layout.legend.title.text == "region"


def test_processed_counts_have_the_unbiased_ones_beside_and_no_interval_of_their_own():
    cells = made([[0, 4], [1, 5]], np.ones((2, 2)), "age", "sex", unbiased=[[-3, 6], [2, 5]])
    figure = bars_with_intervals(cells, "people")
    bars, marks = figure.data[::2], figure.data[1::2]
    assert [list(each.y) for each in bars] == [[0, 1], [4, 5]]
    assert [list(each.y) for each in marks] == [[-3, 2], [6, 5]]
    assert all(each.error_y.array is None for each in bars)
    assert [list(each.error_y.array) for each in marks] == [[1, 1], [1, 1]]
    assert [each.offsetgroup for each in bars] == [each.offsetgroup for each in marks]
    assert figure.layout.scattermode == "group"
    assert [each.showlegend for each in marks] == [True, False]
    assert "processed: 0.0<br>unbiased: −3.0 ±1" in bars[0].hovertext[0]


@pytest.mark.parametrize(("size", "step"), [(3, 1), (12, 1), (13, 2), (100, 10), (2000, 200)])
def test_few_labels_are_written_at_round_places(size, step):
    figure = bars_with_intervals(made(np.ones(size), np.ones(size), "a"), "people")
    assert list(figure.layout.xaxis.tickvals) == list(range(0, size, step))


def test_names_are_no_markup():
    cells = made([1, 2], [1, 1], "<b>age</b>")
    text = json.dumps(json.loads(bars_with_intervals(cells, "<i>people</i>").to_json()))
    assert "<b>" not in text
    assert "<i>" not in text


def test_the_largest_picture_is_small_enough_for_a_browser():
    cells = made(np.linspace(-3, 1e6, 2000), np.linspace(1, 7, 2000) / 3, "age")
    figure = bars_with_intervals(cells, "people")
    assert len(figure.to_json()) < 500_000
    assert figure.data[0].error_y.width == 0
