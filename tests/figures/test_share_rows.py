"""Rows of HTML with bars."""

import re

import pandas as pd

from rpexplore.figures.share_rows import share_rows

FRAME = pd.DataFrame(
    {
        "name": ["total", "<b>age</b> & sex"],
        "tables": [1, 1200],
        "margin_95": [12.0, 3456.0],
        "median_count": [5000.0, 2.5],
        "share": [1.0, 0.415],
    }
)


def test_bars_and_ticks_stand_at_the_shares_and_names_are_text():
    html = share_rows(FRAME, "people", [0.9, 0.25])
    assert re.findall(r"width: ([\d.]+)%", html) == ["100", "41.5"]
    assert re.findall(r"left: calc\(([\d.]+)%", html) == ["90", "25"]
    assert "&lt;b&gt;age&lt;/b&gt; &amp; sex" in html
    assert "1,200" in html
    assert "±3,460" in html
    assert "left: calc" not in share_rows(FRAME, "people")


def test_without_expected_counts_there_are_margins_alone():
    html = share_rows(FRAME[["name", "tables", "margin_95"]], "<people>")
    assert "publishable" not in html
    assert 'class="bar"' not in html
    assert "&lt;people&gt;" in html
