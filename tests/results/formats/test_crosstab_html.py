"""Crosstabs as HTML: brackets, flags, margins, and names that are code."""

from xml.etree import ElementTree

import numpy as np

from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.results.formats.crosstab import Crosstab, Side
from rpexplore.results.formats.crosstab_html import decimals_of, html_of, legend, texts_of
from rpexplore.results.publication import Publication

CODE = '<img src=x onerror="alert(1)">'
# Two rows, two columns and their totals; CVs of 1 and 25 %, below and 12 %.
VALUES = np.array([[1234.4, 40.0, 1274.4], [-3.0, 82.0, 79.0], [1231.4, 122.0, 1353.4]])
ERRORS = np.where(np.eye(3)[2] + np.eye(3)[2][:, None] > 0, 8.0, 10.0)


def made(errors: np.ndarray = ERRORS, **facts) -> Crosstab:
    rows = Side.of([Axis(CODE, ("north", CODE), ("N", CODE))])
    columns = Side.of([Axis("sex", ("female", "male"))])
    return Crosstab(rows, columns, VALUES, errors, VALUES, errors, True, True, **facts)


def texts(html: str) -> list[list[str]]:
    rows = ElementTree.fromstring(html).iter("tr")
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def test_figures_have_separators_flags_and_brackets_and_all_texts_are_escaped():
    html = html_of(made(), Publication(0.2), f"People by {CODE}")
    assert "<img" not in html
    assert texts(html)[1:] == [
        [CODE, "female", "male", "Total"],
        ["north N", "1,234A", "(40)D", "1,274A"],  # 10 / 40 is 25 %
        [CODE, "(−3)E", "82C", "79C"],  # 10 / 82 is 12.2 %, 8 / 79 is 10.1 %
        ["Total", "1,231A", "122B", "1,353A"],  # 8 / 122 is 6.6 %
    ]
    assert texts(html_of(made(), Publication(0.2, leave_empty=True), ""))[3][1] == ""


def test_margins_stand_in_one_line_where_they_are_the_same_else_beside_the_figures():
    said = legend(made(), Publication(0.2))
    # 1.96 × 10 and 1.96 × 8
    assert said[0] == (
        "Margin of error (95 %): ±19.6 in every cell, ±15.7 in the totals of rows, ±15.7 in the "
        "totals of columns, ±15.7 in the grand total."
    )
    assert (
        said[1] == "Quality: A CV ≤ 5 % · B ≤ 10 % · C ≤ 20 % · D ≤ 33 % · E above, or not above 0."
    )
    assert said[2] == "In brackets: not publishable (CV above 20 %, or not above 0)."
    unequal = ERRORS.copy()
    unequal[0, 0] = 1.0
    cells = texts(html_of(made(unequal), Publication(0.2), ""))
    assert cells[2][1:] == ["1,234A±2.0", "(40)D±20", "1,274A"]
    assert "beside the figures in every cell" in legend(made(unequal), Publication(0.2))[0]
    biased = made(unequal, kind="processed")
    assert "±" not in html_of(biased, Publication(0.2), "")
    assert (
        "within 1.96 (the most accurate figure) to 19.6 of the true"
        in legend(biased, Publication(0.2))[0]
    )
    known = made(np.zeros_like(ERRORS), kind="processed")
    assert legend(known, Publication(0.2))[0] == "These figures are exact: they have no noise."


def test_small_figures_have_the_decimals_that_their_errors_allow():
    assert decimals_of(made()) == 0
    means = made(np.full((3, 3), 0.04))  # 0.040 has two digits
    assert decimals_of(means) == 3
    assert texts_of(means)[1, 0] == "−3.000"
