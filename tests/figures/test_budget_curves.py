"""Curves against the budget, through their data."""

import math

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.analysis import budget_curves as curves
from rpexplore.analysis import targets_met
from rpexplore.figures import budget_curves as figures
from rpexplore.planning.planner import optimum
from rpexplore.privacy import conversions as privacy

BUDGET = rp.Budget(rho="0.1")
HOSTILE = curves.Curve("<b>a&b</b>", 30.0, "<b>a&b</b>")


@pytest.fixture
def errors():
    result = [
        curves.Curve("least accurate table", 45.0, "age × sex"),
        curves.Curve("median table", 20.0),
    ]
    return curves.errors_by_budget([*result, HOSTILE], BUDGET)


def lines_of(figure):
    return [
        trace
        for trace in figure.data
        if (trace.mode or "").startswith("lines") and trace.line.width
    ]


def texts_of(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def test_curves_hold_the_frame_and_their_names(errors):
    figure = figures.errors_by_budget(errors, 0.1, "1e-6", "people")
    lines = lines_of(figure)
    assert len(lines) == 3
    for series, line in enumerate(lines):
        rows = errors[errors["series"] == series]
        assert list(line.x) == rows["rho"].tolist()
        assert list(line.y) == rows["standard_error"].tolist()
    assert len({line.line.dash for line in lines}) == 3
    assert len({line.line.color for line in lines}) == 3
    assert {"least accurate table", "median table"} <= set(texts_of(figure))
    assert "least accurate table: age × sex" in lines[0].hovertemplate


def test_names_of_curves_that_lie_close_together_stay_beside_the_axis():
    close = [curves.Curve(f"level {place}", 30.0 + place / 10) for place in range(6)]
    frame = curves.errors_by_budget(close, BUDGET)
    layout = figures.errors_by_budget(frame, 0.1, "1e-6", "people").layout
    low, high = layout.yaxis.range
    heights = [note.y for note in layout.annotations if note.text.startswith("level")]
    assert len(heights) == 6
    assert low <= min(heights) <= max(heights) <= high


def test_axes_are_logarithmic_with_epsilon_above(errors):
    layout = figures.errors_by_budget(errors, 0.1, "1e-6", "people").layout
    assert layout.xaxis.type == layout.xaxis2.type == layout.yaxis.type == "log"
    assert layout.xaxis.range == layout.xaxis2.range == (-2, 0)
    assert "people" in layout.yaxis.title.text
    assert "δ = 1e-6" in layout.xaxis2.title.text
    assert len(layout.xaxis2.tickvals) >= 3
    for rho, epsilon in zip(layout.xaxis2.tickvals, layout.xaxis2.ticktext, strict=True):
        exact = privacy.epsilon_from_rho(float(rho), "1e-6")
        assert float(epsilon) == pytest.approx(exact, rel=2e-3)


def test_pointing_at_a_budget_tells_rho_and_epsilon(errors):
    figure = figures.errors_by_budget(errors, 0.1, "1e-6", "people")
    assert figure.layout.hovermode == "x unified"
    assert "ρ = " in figure.layout.xaxis.unifiedhovertitle.text
    invisible = figure.data[0]
    assert invisible.line.width == 0
    assert list(invisible.x) == list(lines_of(figure)[0].x)
    now = list(invisible.x).index(0.1)
    # epsilon(rho = 0.1, delta = 1e-6) = 2.14194, rounded up
    assert invisible.text[now] == "2.15"


def test_the_present_budget_and_the_wish_are_marked(errors):
    mark = figures.Mark(0.4, 5.0, "half", 1)
    figure = figures.errors_by_budget(errors, 0.1, "1e-6", "people", [mark])
    assert "current: ρ = 0.1" in texts_of(figure)
    (present,) = [shape for shape in figure.layout.shapes if shape.yref == "y domain"]
    assert (present.x0, present.line.dash) == (0.1, "dash")
    label = next(label for label in figure.layout.annotations if label.text == "half")
    assert label.x == pytest.approx(math.log10(0.4))
    points = [(t.x[0], t.y[0]) for t in figure.data if t.mode == "markers"]
    assert (0.4, 5.0) in points
    assert (0.1, pytest.approx(15.0)) in points  # √(45 / 0.2)


def test_labels_of_close_curves_do_not_lie_on_each_other():
    result = [curves.Curve(f"table {i}", 45.0 + i / 100) for i in range(6)]
    frame = curves.errors_by_budget(result, BUDGET)
    figure = figures.errors_by_budget(frame, 0.1, "1e-6", "people")
    heights = [each.y for each in figure.layout.annotations if each.text.startswith("table")]
    low, high = figure.layout.yaxis.range
    assert len(heights) == 6
    assert np.min(np.abs(np.diff(sorted(heights)))) > 0.05 * (high - low)


def test_user_text_is_not_read_as_markup(errors):
    figure = figures.errors_by_budget(errors, 0.1, "1e-6", "<i>x</i>")
    texts = [*texts_of(figure), *(str(trace.hovertemplate) for trace in figure.data)]
    assert not any("<b>" in text for text in texts)
    assert sum("&lt;b&gt;a&amp;b" in text for text in texts) == 2
    assert "<i>" not in figure.layout.yaxis.title.text


@pytest.fixture
def targets():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    tables = rp.Workload.all_up_to(domain, 2)
    workload = rp.Workload(domain, tables.members, tables.weights, np.linspace(5, 30, 7))
    optima = {
        "current objective": optimum(workload, loss=rp.SumOfVariances()),
        "largest shortfall": optimum(workload, loss=targets_met.TARGET_LOSS),
    }
    return targets_met.met_by_budget(optima, BUDGET)


def test_step_curves_hold_the_frame(targets):
    figure = figures.targets_by_budget(targets, 0.1, "1e-6")
    lines = lines_of(figure)
    assert [line.name for line in lines] == ["current objective", "largest shortfall"]
    low, high = (10**each for each in figure.layout.xaxis.range)
    for line in lines:
        rows = targets[targets["objective"] == line.name]
        assert list(line.x) == [pytest.approx(low), *rows["rho"], pytest.approx(high)]
        assert list(line.y) == [0, *rows["share"], 1]
        assert line.line.shape == "hv"
        assert "7 targets met from ρ = " in line.hovertext[-1]
        assert "ε = " in line.hovertext[-1]
    assert low < 0.1 < high


def test_words_at_the_top_stand_one_above_the_other(targets):
    needs = targets.groupby("objective", sort=False)["rho"].max().tolist()
    marks = [figures.Mark(rho, 1.0, f"at {rho}", i) for i, rho in enumerate(needs)]
    figure = figures.targets_by_budget(targets, 0.1, "1e-6", marks)
    placed = [each for each in figure.layout.annotations if each.text.startswith("at ")]
    assert placed[1].y - placed[0].y > 0.05


@pytest.mark.parametrize(("rho", "side"), [(0.02, "right"), (0.09, "right"), (0.2, "left")])
@pytest.mark.parametrize("present", [0.01, 0.1, 0.9])
def test_text_beside_a_mark_has_room_and_does_not_cross_the_present(rho, present, side):
    frame = pd.DataFrame(
        {
            "objective": "current objective",
            "rho": [0.01, 1.0],
            "epsilon": [1.0, 2.0],
            "met": [1, 2],
            "share": [0.5, 1.0],
        }
    )
    mark = figures.Mark(rho, 1.0, "x" * 25)
    figure = figures.targets_by_budget(frame, present, "1e-6", [mark])
    (label,) = [label for label in figure.layout.annotations if label.text == mark.text]
    assert label.xanchor == {"right": "left", "left": "right"}[side]
    (line,) = [shape for shape in figure.layout.shapes if shape.yref == "y domain"]
    low, high = figure.layout.yaxis.range
    assert low + line.y1 * (high - low) <= label.y


@pytest.mark.by_day(2)
@pytest.mark.parametrize("rho", [0.02, 0.15, 0.4, 0.9])
def test_no_upright_line_crosses_a_text(errors, rho):
    mark = figures.Mark(rho, 10.0, "half the error: 4 × ρ")
    figure = figures.errors_by_budget(errors, 0.1, "1e-6", "people", [mark])
    low, high = figure.layout.yaxis.range
    upright = [shape for shape in figure.layout.shapes if shape.x0 == shape.x1]
    assert len(upright) == 2
    for label in figure.layout.annotations:
        if label.text not in (mark.text, "current: ρ = 0.1"):
            continue
        top = label.y if label.yanchor == "top" else label.y + 0.06
        for shape in upright:
            ends = (shape.y0, shape.y1)
            if shape.yref != "y domain":
                ends = [(math.log10(end) - low) / (high - low) for end in ends]
            own = label.text == mark.text and shape.x0 == rho  # at its side
            is_clear = min(ends) >= top - 1e-9 or max(ends) <= top - 0.06 + 1e-9
            assert own or is_clear


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("rho", "corner"), [(0.02, "bottom"), (0.4, "top"), (0.9, "top")])
def test_no_curve_crosses_the_text_of_a_mark(errors, rho, corner):
    mark = figures.Mark(rho, 10.0, "half the error: 4 × ρ")
    figure = figures.errors_by_budget(errors, 0.1, "1e-6", "people", [mark])
    (label,) = [label for label in figure.layout.annotations if label.text == mark.text]
    assert label.yanchor == corner
    low, high = figure.layout.yaxis.range
    left, right = figure.layout.xaxis.range
    # Up to half of the width of the chart; a line of text is less than 0.1 high.
    reach = (right - left) / 2 * (-1 if corner == "top" else 1)
    for line in lines_of(figure):
        for x, y in zip(np.log10(line.x), np.log10(line.y), strict=True):
            if min(label.x, label.x + reach) <= x <= max(label.x, label.x + reach):
                height = (y - low) / (high - low)
                assert height < label.y - 0.1 if corner == "top" else height > label.y + 0.1


def test_one_target_has_a_curve_too():
    workload = rp.Workload.of(rp.Domain.from_sizes({"a": 3}), ["a"], targets=[2.0])
    frame = targets_met.met_by_budget(
        {"current objective": optimum(workload, loss=rp.SumOfVariances())}, BUDGET
    )
    figure = figures.targets_by_budget(frame, 0.1, "1e-6")
    (line,) = lines_of(figure)
    assert list(line.y) == [0, 0, 1, 1]


def test_curves_do_not_grow_with_the_tables():
    domain = rp.Domain.from_sizes({f"a{i}": 3 for i in range(60)})
    tables = rp.Workload.all_up_to(domain, 2)
    workload = rp.Workload(domain, tables.members, tables.weights, np.linspace(5, 30, len(tables)))
    solved = optimum(workload, loss=rp.SumOfVariances())
    frame = targets_met.met_by_budget({"current objective": solved}, BUDGET)
    assert len(figures.targets_by_budget(frame, 0.1, "1e-6").to_json()) < 60_000
