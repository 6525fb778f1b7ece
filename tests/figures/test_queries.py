"""Bars of the budget that each way needs, tested through their data."""

import pandas as pd
import pytest

from rpexplore.analysis.queries import OPTIMUM
from rpexplore.figures.queries import budgets_of_baselines, shares_of_cells


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "baseline": [OPTIMUM, "hierarchy", "input perturbation"],
            "title": ["this plan", "a <b>tree</b>", "noise"],
            "rho": [0.01234, 0.1, 1.5],
            "largest_ratio": [1.0, 8.104, 121.6],
        }
    )


def test_bars_have_their_numbers_beyond_their_ends(frame):
    bars, numbers = budgets_of_baselines(frame, "one record").data
    assert list(bars.x) == frame["rho"].tolist()
    assert list(numbers.text) == ["ρ = 0.0123", "ρ = 0.1 (8.1 ×)", "ρ = 1.5 (122 ×)"]
    assert list(bars.y) == list(numbers.y)
    assert all(x > rho for x, rho in zip(numbers.x, bars.x, strict=True))


def test_the_plan_stands_out_by_more_than_colour(frame):
    bars = budgets_of_baselines(frame, "one record").data[0]
    assert list(bars.marker.pattern.shape) == ["", "/", "/"]
    assert len(set(bars.marker.color)) == 2


def test_the_first_way_is_at_the_top_and_bars_start_at_zero(frame):
    layout = budgets_of_baselines(frame, "one <i>record</i>").layout
    assert layout.yaxis.ticktext[0] == "this plan"
    assert layout.yaxis.range[0] > layout.yaxis.range[1]
    assert layout.xaxis.range[0] == 0
    assert "<i>" not in layout.xaxis.title.text


def test_titles_are_no_markup(frame):
    figure = budgets_of_baselines(frame, "one record")
    assert figure.layout.yaxis.ticktext[1] == "a &lt;b&gt;tree&lt;/b&gt;"
    assert figure.data[0].hovertext[1] == "a &lt;b&gt;tree&lt;/b&gt;"


def frame_of(shares):
    cells = [f"<b>{place}</b>, women" for place in range(len(shares))]
    return pd.DataFrame({"cell": cells, "share": shares, "spare": [s < 1 for s in shares]})


def test_cells_with_unused_budget_differ_in_mark_and_colour():
    used, unused = shares_of_cells(frame_of([1.0, 0.25, 1.0, 0.5])).data
    assert (list(used.x), list(used.y)) == ([0, 2], [1.0, 1.0])
    assert (list(unused.x), list(unused.y)) == ([1, 3], [0.25, 0.5])
    assert used.marker.symbol != unused.marker.symbol
    assert used.marker.color != unused.marker.color
    assert (used.name, unused.name) == ("all of it used", "some unused")


def test_only_what_there_is_is_drawn():
    (trace,) = shares_of_cells(frame_of([1.0, 1.0])).data
    assert trace.name == "all of it used"


def test_shares_are_shown_from_zero():
    axis = shares_of_cells(frame_of([1.0, 0.9])).layout.yaxis
    assert axis.range[0] == 0
    assert axis.range[1] > 1


def test_long_names_leave_room_for_the_marks():
    frame = frame_of([1.0] * 8)
    frame["cell"] = [
        f"{race} or any other race alone, {sex} of whatever age, {place}"
        for race in ("White", "Black")
        for sex in ("women", "men")
        for place in ("in a household", "in group quarters")
    ]
    texts = shares_of_cells(frame).layout.xaxis.ticktext
    assert max(map(len, texts)) <= 18


def test_names_are_no_markup_and_few_are_written():
    figure = shares_of_cells(frame_of([0.5] * 1000 + [1.0] * 24))
    assert len(figure.layout.xaxis.ticktext) <= 6
    assert len(figure.layout.xaxis.ticktext) == len(figure.layout.xaxis.tickvals)
    assert not any("<b>" in text for text in figure.layout.xaxis.ticktext)
    assert not any("<b>" in text for trace in figure.data for text in trace.hovertext)
