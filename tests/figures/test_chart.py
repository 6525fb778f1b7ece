"""Charts with what stands beside them."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from rpexplore.figures.chart import COLUMNS, Chart, columns_of

FRAME = pd.DataFrame({"group": [0], "table": ["age"], "cells": [10]})


def chart(**more: str) -> Chart:
    return Chart(
        go.Figure(),
        "Accuracy by size",
        "Large is worse.",
        FRAME,
        columns_of(FRAME),
        "a.csv",
        **more,
    )


def test_a_chart_is_told_in_words():
    assert chart().alternative_text == "Accuracy by size. Large is worse."
    assert chart().caption == "Large is worse."
    assert chart(remark="Dots are tables.").caption == "Large is worse. Dots are tables."


def test_columns_have_headings_and_groups_are_not_shown():
    assert columns_of(FRAME) == {"table": COLUMNS["table"], "cells": COLUMNS["cells"]}
    with pytest.raises(KeyError):
        columns_of(FRAME.assign(unheard_of=1))
