"""Charts with what stands beside them."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from rpexplore.figures.chart import (
    COLUMNS,
    Chart,
    Column,
    column_format,
    columns_of,
    estimate_format,
    in_per_cent,
    number_format,
)

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


@pytest.mark.parametrize(
    ("column", "form"),
    [([15, 11.55, np.nan], "%,.1f"), ([0.0123, 0], "%,.4f"), ([1234.5], "%,.0f")],
)
def test_columns_show_three_digits_of_their_smallest_number(column, form):
    assert column_format(column) == form


def test_a_column_without_a_positive_number_has_no_format():
    assert column_format([np.nan, 0.0]) is None


def test_estimates_have_a_decimal_unless_all_are_large():
    assert estimate_format([50_023.4, -1000, np.nan]) == "%,.0f"
    assert estimate_format([50_023.4, 999.9]) == estimate_format([np.nan]) == "%,.1f"


def test_a_page_shows_shares_in_per_cent_and_what_is_rounded_with_its_own_digits():
    frame = pd.DataFrame({"share": [0.3254], "count": [40_000.0], "σ": [1234.5]})
    columns = {"share": Column("s", "share"), "count": Column("n", "rounded"), "σ": Column("σ")}
    shown = in_per_cent(frame, columns)
    forms = {name: number_format(shown[name], column) for name, column in columns.items()}
    assert forms == {"share": "%,.3g %%", "count": "%,.3g", "σ": "%,.0f"}
    assert shown["share"].tolist() == [pytest.approx(32.54)]
    assert frame["share"].tolist() == [0.3254]  # downloads have the share itself
