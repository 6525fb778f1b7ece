"""What is said of how far groups were smoothed, and where smoothing gains nothing."""

import numpy as np
import pandas as pd

from rpexplore.analysis import released_cells
from rpexplore.figures.fairness import MOST_ROWS, shrinkage_chart


def groups_of(names, cells, distances, outside=0.0) -> pd.DataFrame:
    frame = pd.DataFrame({"group": names, "cells": cells, "distance": distances})
    frame["limit"] = 1 + 3 / np.sqrt(2 * frame["cells"])
    above = np.where(frame["distance"] > frame["limit"], "yes", "no")
    counts = dict.fromkeys(("value", "unbiased_value", "standard_error"), np.nan)
    return frame.assign(attribute="age", outside_95=outside, clearly_above_1=above, **counts)


def test_the_farthest_group_is_not_so_by_chance():
    # 3 / √(2 · 2) = 1.5 beyond 1 is chance; of 50 cells 0.3 is.
    groups = groups_of(["few", "many", "near"], [2, 50, 50], [2.4, 1.4, 1.1])
    assert released_cells.farthest_group(groups)["group"] == "many"
    assert ": age many, 1.40 standard errors in 50 cells" in released_cells.describe_farthest(
        groups
    )


def test_sentences_name_the_farthest_group_and_what_was_kept():
    words = released_cells.describe_groups(
        groups_of(["x", "y"], [8, 50], [0.4, 1.337], [0.0, 1.0]), "age"
    )
    assert ": age y, 1.34 standard errors in 50 cells (root mean square), with 100 % of" in words
    assert "Nearest: x, 0.400. 1 of 2 groups is clearly above 1" in words
    words = released_cells.describe_groups(groups_of(["x", "y"], [8, 50], [0.4, 1.037]), "age")
    assert "None of 2 groups is clearly above 1" in words
    kept = pd.DataFrame({"order": [1, 2, 2, 2], "share_kept": [1.0, 0.1, 0.5, 0.2]})
    words = released_cells.describe_kept(kept)
    assert "100 % in tables of 1 attribute and 20 % in tables of 2 attributes (medians)" in words
    for gains, sentence in (
        (["no", "yes", None], "In 1 of 2 tables smoothing gains next to nothing"),
        (["yes", "yes", None], "gains accuracy in all of 2 tables"),
        ([None], "not known"),
    ):
        frame = pd.DataFrame({"smoothing_gains": gains})
        assert sentence in released_cells.describe_gains(frame)


def test_the_chart_has_the_groups_that_are_farthest_and_a_line_at_1():
    frame = groups_of([f"<{i}>" for i in range(60)], 10_000, np.arange(60) / 20)
    chart = shrinkage_chart(frame, "age", "x.csv")
    bars = chart.figure.data[0]
    assert list(bars.x) == sorted(frame["distance"], reverse=True)[:MOST_ROWS]
    # 3 / √20,000 = 0.021: of 0, 0.05, …, 2.95 the last 39 are clearly above 1.
    assert list(bars.marker.pattern.shape) == ["/"] * MOST_ROWS
    assert chart.figure.layout.shapes[0].x0 == 1
    assert chart.figure.layout.yaxis.ticktext[0] == "&lt;59&gt;"
    assert len(chart.frame) == 60
    assert "The 25 groups that are farthest are drawn" in chart.caption
