"""Bars of shares, tested through their data."""

import json

import pandas as pd
import pytest

from rpexplore.analysis import binding_targets
from rpexplore.figures import trade_offs as shares
from tests.analysis.schemes import accuracy_of
from tests.published import figures as published


@pytest.fixture(scope="module")
def accuracy():
    return accuracy_of(published.workload("CPS", "<=3"))


def test_bars_have_their_numbers(accuracy):
    frame = binding_targets.by_table(accuracy)
    bar, numbers = shares.bars(frame, "the largest variance").data
    assert list(bar.x) == frame["share"].tolist()
    assert list(bar.y) == list(numbers.y) == list(range(10))
    assert [float(text.removesuffix(" %")) / 100 for text in numbers.text] == pytest.approx(
        frame["share"].tolist(), rel=0.06
    )
    assert all(x > share for x, share in zip(numbers.x, bar.x, strict=True))


def test_the_first_row_is_at_the_top(accuracy):
    frame = binding_targets.by_table(accuracy)
    axis = shares.bars(frame, "the largest variance").layout.yaxis
    assert list(axis.ticktext) == frame["table"].tolist()
    assert axis.range[0] > axis.range[1]


def test_marks_show_the_share_of_the_tables_and_numbers_stand_clear_of_them(accuracy):
    frame = binding_targets.by_attribute(accuracy)
    bar, numbers, marks = shares.bars(frame, "the largest variance").data
    assert list(marks.x) == frame["share_of_tables"].tolist()
    for number, share, mark in zip(numbers.x, bar.x, marks.x, strict=True):
        assert number > max(share, mark)
    assert marks.marker.symbol == "line-ns"


def test_nearly_all_is_not_all():
    frame = pd.DataFrame({"table": ["a", "b"], "share": [0.996, 0.004]})
    texts = shares.bars(frame, "it").data[-1].text
    assert list(texts) == ["99.6 %", "0.4 %"]


def test_names_are_cut_and_not_read_as_markup():
    frame = pd.DataFrame({"table": ["<b>x</b>" + " long" * 20], "share": [1.0]})
    figure = shares.bars(frame, "<i>it</i>")
    assert "<b>" not in json.loads(figure.to_json())["data"][0]["hovertext"][0]
    assert figure.layout.yaxis.ticktext[0].startswith("&lt;b&gt;")
    assert "<i>" not in figure.layout.xaxis.title.text
