"""Noisy counts as bars and as a heat map, tested through their data."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from rpexplore.figures.cells import (
    MOST_BARS,
    MOST_CELLS,
    MOST_GROUPS,
    bars_with_intervals,
    heat_map,
    is_crossed,
)
from tests.figures.released import made


def test_each_bar_has_its_interval():
    (bars,) = bars_with_intervals(made([5, -2, 9], [1, 3, 2], "age"), "people").data
    assert bars.orientation == "h"
    assert list(bars.x) == [5, -2, 9]
    assert list(bars.error_x.array) == [1, 3, 2]
    assert bars.hovertext[1] == "age 1<br>−2.0 ±3"


def test_groups_differ_by_pattern_as_well_as_by_colour():
    cells = made(np.arange(12).reshape(2, 6), np.ones((2, 6)), "sex", "region")
    figure = bars_with_intervals(cells, "people")
    assert len(figure.data) == 6 == MOST_GROUPS
    assert len({bars.marker.pattern.shape for bars in figure.data}) == 6
    assert len({bars.marker.color for bars in figure.data}) == 6
    assert [list(bars.x) for bars in figure.data] == cells.value.T.tolist()
    assert figure.layout.showlegend
    assert figure.layout.legend.title.text == "region"


def test_processed_counts_have_the_unbiased_ones_beside_and_no_interval_of_their_own():
    cells = made([[0, 4], [1, 5]], np.ones((2, 2)), "age", "sex", unbiased=[[-3, 6], [2, 5]])
    figure = bars_with_intervals(cells, "people")
    bars, marks = figure.data[::2], figure.data[1::2]
    assert [list(each.x) for each in bars] == [[0, 1], [4, 5]]
    assert [list(each.x) for each in marks] == [[-3, 2], [6, 5]]
    assert all(each.error_x.array is None for each in bars)
    assert [list(each.error_x.array) for each in marks] == [[1, 1], [1, 1]]
    assert [each.offsetgroup for each in bars] == [each.offsetgroup for each in marks]
    assert figure.layout.scattermode == "group"
    assert [each.showlegend for each in marks] == [True, False]
    assert "processed: 0.0<br>unbiased: −3.0 ±1" in bars[0].hovertext[0]


@pytest.mark.parametrize("shape", [(3,), (15,), (1000,), (100, 6)])
def test_every_bar_has_its_label_and_room_for_it(shape):
    cells = made(np.ones(shape), np.ones(shape), *"ab"[: len(shape)])
    figure = bars_with_intervals(cells, "people")
    labels = [f"a {value}" for value in range(shape[0])]
    assert list(figure.layout.yaxis.ticktext) == labels
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first on top
    assert figure.layout.height >= 12 * np.prod(shape) + 12 * shape[0]


def test_names_beside_bars_are_no_markup():
    cells = made([1, 2], [1, 1], "<b>age</b>")
    text = json.dumps(json.loads(bars_with_intervals(cells, "<i>people</i>").to_json()))
    assert "<b>" not in text
    assert "<i>" not in text


def test_the_most_bars_are_small_enough_for_a_browser():
    cells = made(np.linspace(-3, 1e6, MOST_BARS), np.linspace(1, 7, MOST_BARS) / 3, "age")
    figure = bars_with_intervals(cells, "people")
    assert len(figure.to_json()) < 500_000
    assert figure.data[0].error_x.width == 0


# ---- heat maps


def picture(value, margin, *, by_margin=False, **more):
    value = np.array(value, dtype=float)
    cells = made(value, np.broadcast_to(margin, value.shape), "sex", "age", **more)
    return heat_map(cells, "people", by_margin=by_margin)


def lightness(colour) -> float:
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_counts_are_drawn_the_first_axis_down():
    heat = picture([[50, 40, 30], [20, 60, 70]], 5).data[0]
    assert heat.z == ([50, 40, 30], [20, 60, 70])
    assert heat.hovertext[1][2] == "sex 1, age 2<br>70.0 ±5"
    assert (heat.zmin, heat.zmax) == (0, 70)
    figure = picture([[50, 40, 30], [20, 60, 70]], 5)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert figure.layout.xaxis.title.text == "age"


def test_what_may_be_zero_is_crossed():
    heat, crosses = picture([[50, 4, 30], [-5, 60, -70]], 5).data
    assert sorted(zip(crosses.y, crosses.x, strict=True)) == [(0, 1), (1, 0)]
    assert crosses.name == "the interval includes 0"
    assert len(picture([[50, 40]], 5).data) == 1
    assert heat.z[1][0] == -5


def test_among_many_cells_what_may_be_zero_is_left_blank():
    value = np.full((40, 50), 100.0)
    value[3, 7] = 2.0
    figure = picture(value, 5)
    assert not is_crossed(made(value, np.ones_like(value), "sex", "age"))
    (heat,) = figure.data
    assert heat.z[3][7] is None
    assert sum(each is None for row in heat.z for each in row) == 1
    assert heat.hoverongaps
    assert heat.hovertext[3][7].endswith("2.0 ±5")
    # But for smooth counts, which show what the unbiased ones cannot.
    cells = made(value, np.full_like(value, 5.0), "sex", "age", unbiased=value)
    smooth = replace(cells, model_error=np.ones_like(value))
    for by_margin, is_blank in ((False, False), (True, True)):
        (heat,) = heat_map(smooth, "people", by_margin=by_margin).data
        assert (heat.z[3][7] is None) is is_blank


def test_colours_part_at_zero_and_darken_on_either_side():
    heat = picture([[-50, 100], [20, 60]], 5).data[0]
    places = [place for place, _ in heat.colorscale]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, 1)
    zero = places.index(pytest.approx(1 / 3))
    light = [lightness(colour) for _, colour in heat.colorscale]
    assert light[: zero + 1] == sorted(light[: zero + 1])
    assert light[zero:] == sorted(light[zero:], reverse=True)
    assert light[0] > light[-1]  # half as far from 0, half as dark
    assert 0.0 in [float(text.replace("−", "-")) for text in heat.colorbar.ticktext]


@pytest.mark.parametrize("value", [[[0, 0]], [[-3, -1]], [[4, 4]]])
def test_any_counts_have_a_scale(value):
    heat = picture(value, 0.5).data[0]
    assert heat.zmin < heat.zmax
    assert heat.zmin <= 0 <= heat.zmax
    assert [place for place, _ in heat.colorscale][-1] == 1


def test_colours_go_by_the_logarithm_where_counts_are_far_apart():
    value = np.array([[-8.0, 12], [1000, 200_000]])
    heat = picture(value, 10).data[0]
    np.testing.assert_allclose(heat.z, np.arcsinh(value / 10), rtol=1e-3)
    ticks = [float(text.replace(",", "").replace("−", "-")) for text in heat.colorbar.ticktext]
    assert ticks == [0, 10, 100, 1000, 10_000, 100_000]
    np.testing.assert_allclose(heat.colorbar.tickvals, np.arcsinh(np.array(ticks) / 10))


def test_margins_are_shares_of_the_unbiased_count_up_to_all_of_it():
    heat = picture([[50, 4], [-20, 0]], 5, by_margin=True).data[0]
    np.testing.assert_allclose(heat.z, [[0.1, 1], [0.25, 1]])
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert heat.colorbar.ticktext[-1] == "100 % or more"
    processed = picture([[50, 4]], 5, by_margin=True, unbiased=[[100, 50]]).data[0]
    np.testing.assert_allclose(processed.z, [[0.05, 0.1]])
    assert "processed: 50.0<br>unbiased: 100.0 ±5" in processed.hovertext[0][0]


def test_names_beside_the_heat_map_are_no_markup():
    cells = made([[1, 2]], [[1, 1]], "<b>age</b>", "<i>x</i>")
    text = json.dumps(json.loads(heat_map(cells, "<u>p</u>", by_margin=False).to_json()))
    assert not re.search(r"<[biu]>", text)


@pytest.mark.nightly
def test_the_largest_heat_map_is_small_enough_for_a_browser():
    side = np.linspace(-1, 1000, MOST_CELLS)
    text = picture(np.outer(side, side), 30).to_json()
    assert len(text) < 6_000_000
    assert "NaN" not in text


def test_cells_without_a_value_are_blank_and_say_so():
    cells = made([[50, 4, 300], [-5, 60, 70]], np.full((2, 3), 9.8), "sex", "age")
    shown = cells.suppressed(0.2)  # standard errors of 5: −5 and 4 are not publishable
    for by_margin in (False, True):
        (heat,) = heat_map(shown, "people", by_margin=by_margin).data
        assert [[each is None for each in row] for row in heat.z] == [
            [False, True, False],
            [True, False, False],
        ]
        assert heat.hovertext[1][0].endswith("not publishable")
    nothing = cells.suppressed(0.001)
    assert "NaN" not in heat_map(nothing, "people", by_margin=False).to_json()
    assert bars_with_intervals(shown, "people").data[1].hovertext[0].endswith("not publishable")
