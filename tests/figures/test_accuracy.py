"""Figures, tested through their data."""

import itertools
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis.accuracy import by_order
from rpexplore.figures import accuracy as figures
from rpexplore.figures import axes
from rpexplore.planning.planner import plan_tables

NAMES = ["smallest", "lower_quartile", "median", "upper_quartile", "largest"]


def frame_of(*rows, name="age"):
    return pd.DataFrame(
        [
            {"order": order, "tables": tables}
            | dict.fromkeys(["most_accurate_table", "least_accurate_table"], name)
            | dict(zip(NAMES, errors, strict=True))
            for order, tables, errors in rows
        ]
    )


def boxes_and_labels(figure):
    return (
        [trace for trace in figure.data if trace.type == "box"],
        [trace for trace in figure.data if trace.type == "scatter"],
    )


def test_boxes_hold_the_frame():
    frame = frame_of((0, 1, [5] * 5), (1, 4, [2, 3, 5, 10, 40]))
    boxes, labels = boxes_and_labels(figures.standard_errors_by_order(frame, "people"))
    for box, row in zip(boxes, frame.to_dict("records"), strict=True):
        result = [box.lowerfence, box.q1, box.median, box.q3, box.upperfence]
        assert [value[0] for value in result] == [row[name] for name in NAMES]
    assert list(labels[0].text) == ["5.00"]
    assert list(labels[1].text) == ["median 5.00", "largest 40.0", "smallest 2.00"]
    assert list(labels[1].y) == [5, 40, 2]


def test_axis_is_logarithmic_and_holds_everything():
    frame = frame_of((1, 4, [0.02, 3, 5, 10, 4000]))
    axis = figures.standard_errors_by_order(frame, "people").layout.yaxis
    assert axis.type == "log"
    assert 10 ** axis.range[0] < 0.02
    assert 10 ** axis.range[1] > 4000
    assert "people" in axis.title.text


def test_equal_errors_have_one_label_and_a_readable_axis():
    frame = frame_of((1, 4, [21.92] * 5))
    figure = figures.standard_errors_by_order(frame, "people")
    assert list(boxes_and_labels(figure)[1][0].text) == ["median 21.9"]
    low, high = figure.layout.yaxis.range
    assert 10 ** (high - low) >= 1.9


def test_user_text_is_not_read_as_markup():
    frame = frame_of((1, 4, [2, 3, 5, 10, 40]), name="<b>a&b</b>")
    figure = figures.standard_errors_by_order(frame, "<i>x</i>")
    text = figure.to_json()
    assert "<b>a" not in json.loads(text)["data"][1]["hovertext"]
    assert "&lt;b&gt;a&amp;b" in json.loads(text)["data"][1]["hovertext"]
    assert "<i>" not in figure.layout.yaxis.title.text


def test_size_does_not_grow_with_the_tables():
    def size(attributes):
        domain = rp.Domain.from_sizes({f"a{i}": 3 for i in range(attributes)})
        workload = rp.Workload.all_up_to(domain, 2)
        plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
        return len(figures.standard_errors_by_order(by_order(plan), "people").to_json())

    assert size(60) < size(5) * 1.1


@given(st.floats(1e-6, 1e9), st.floats(1.1, 1e9))
def test_ticks_are_few_within_the_range_and_ascending(low, factor):
    high = low * factor
    ticks = axes.log_ticks(low, high)
    assert 2 <= len(ticks) <= 14
    assert all(low * (1 - 1e-9) <= tick <= high * (1 + 1e-9) for tick in ticks)
    assert all(first < second for first, second in itertools.pairwise(ticks))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(9.3, 18, [10, 12, 14, 16, 18]), (1, 200, [1, 2, 5, 10, 20, 50, 100, 200])],
)
def test_ticks_are_round(low, high, ticks):
    assert axes.log_ticks(low, high) == pytest.approx(ticks)
