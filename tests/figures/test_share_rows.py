"""Rows of HTML with bars."""

import re

import pandas as pd

from rpexplore.figures.queries import scenario_rows


def test_scenarios_stand_below_each_other_and_missed_targets_are_marked():
    frame = pd.DataFrame(
        {
            "scenario": ["<b>a</b>", "b", "c"],
            "budget": ["ρ = 0.1"] * 3,
            "people_low": [0.4, float("nan"), 1.0],
            "people_median": [0.415, float("nan"), 1.0],
            "people_high": [0.5, float("nan"), 1.0],
            "median_margin": [12.0, 3456.0, 7.0],
            "largest_margin": [20.0, 5000.0, 8.0],
            "least_accurate": ["age & sex", "age", "sex"],
            "targets": [4, 0, 2],
            "missed": [3, 0, 0],
            "own": [0, 0, 0],
        }
    )
    html = scenario_rows(frame, ["people", "people", "<i>"])
    assert re.findall(r"width: ([\d.]+)%", html) == ["41.5", "100"]
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "age &amp; sex" in html
    assert "±8 &lt;i&gt;" in html
    targets = re.findall("<td>(?:<b>)?(✗[^<]*|✓[^<]*|–)", html)
    assert targets == ["✗ 3 of 4 missed", "–", "✓ all 2 met"]
    assert "not known" in html
    plain = scenario_rows(frame.assign(people_median=float("nan"), targets=0), ["people"] * 3)
    assert "bar" not in plain
    assert "✗" not in plain
