"""Numbers as a report shows them."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from rpexplore.figures.chart import Chart, Column
from rpexplore.reports.section import Numbers, cell_text, numbers_file, numbers_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.012345, "0.0123"),
        (168.4, "168"),
        (5.0, "5.00"),
        (float("nan"), ""),
        (None, ""),
        ("age × sex", "age × sex"),
        (10**30, f"{10**30:,}"),
        (True, "yes"),
    ],
)
def test_cells_are_written_as_people_read_them(value, text):
    assert cell_text(value, Column("a heading")) == text


FRAME = pd.DataFrame(
    {"table": ["age", "sex"], "cells": [10, 2], "error": [1.5, None], "hidden": [1, 2]}
)
COLUMNS = {
    "table": Column("table", "text"),
    "cells": Column("cells", "count"),
    "error": Column("standard error σ"),
}
NUMBERS = Numbers(FRAME, COLUMNS)


def test_only_named_columns_are_shown_and_numbers_are_set_right():
    assert NUMBERS.rows == [["age", "10", "1.50"], ["sex", "2", ""]]
    assert NUMBERS.header == [("table", False), ("cells", True), ("standard error σ", True)]


def test_numbers_in_front_are_set_left():
    numbers = Numbers(FRAME, {"cells": COLUMNS["cells"], "table": COLUMNS["table"]})
    assert numbers.header == [("cells", False), ("table", False)]


def test_no_rows_are_no_reason_to_fail():
    numbers = Numbers(FRAME[:0], {"table": COLUMNS["table"]})
    assert numbers.rows == []
    assert numbers.header == [("table", False)]


def test_long_numbers_become_a_file_with_all_rows():
    columns = {"table": Column("table", "text"), "cells": Column("cells", "count")}
    chart = Chart(go.Figure(), "subject", "sentence", FRAME, columns, "numbers.csv")
    assert numbers_file(chart, 2) is None
    file = numbers_file(chart, 1)
    assert file is not None
    assert file.name == "numbers.csv"
    assert file.text == "table,cells\r\nage,10\r\nsex,2\r\n"


def test_numbers_of_a_chart_are_written_by_what_they_are():
    frame = pd.DataFrame({"name": ["a"], "cells": [1.5e6], "share": [0.12345], "error": [2.0]})
    columns = {
        "name": Column("who", "text"),
        "cells": Column("cells", "count"),
        "share": Column("share", "share"),
        "error": Column("standard error σ"),
    }
    numbers = numbers_of(Chart(go.Figure(), "subject", "sentence", frame, columns, "a.csv"))
    assert numbers.title == "subject"
    headings = [heading for heading, _ in numbers.header]
    assert headings == ["who", "cells", "share", "standard error σ"]
    assert numbers.rows == [["a", "1,500,000", "12.3 %", "2.00"]]
