"""The picture of a table's cells: within bounds, marked, and with the names as they are."""

import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.cell_accuracy import Axis, CellAccuracy, accuracy_of_cells
from rpexplore.analysis.forecast import Forecast
from rpexplore.figures.cell_accuracy import cells_of_table
from rpexplore.workload.bases import Prefix, Ranges


def picture(basis, size=12):
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, size - 1)),))
    workload = rp.Workload.all_of_order(domain, 1).with_bases({"age": basis})
    plan = rp.plan(
        workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"), uniform_reference=True
    )
    return accuracy_of_cells(Forecast.of_plan("this", plan), 0, (0,))


def made(errors, *, down=True, is_even=True, names=("<b>age</b>", "sex & x")):
    errors = np.array(errors, dtype=float)
    axes = [
        Axis(name, tuple(f"{name} {place}" for place in range(size)))
        for name, size in zip(names, errors.shape if down else (0, len(errors)), strict=True)
    ]
    return CellAccuracy("t", axes[0] if down else None, axes[1], errors, is_even, ", ", "")


def test_a_line_marks_its_worst_and_best_cell():
    found = picture(Prefix())
    figure = cells_of_table(found, "people")
    line, worst, best = figure.data
    np.testing.assert_allclose(line.y, found.errors, rtol=1e-4)
    assert (worst.x[0], best.x[0]) == (found.worst[0], found.best[0])
    assert worst.marker.symbol != best.marker.symbol
    assert worst.name.startswith(f"worst: {found.label(found.worst)}, σ = ")
    assert figure.layout.yaxis.title.text == "standard error of a cell (people)"


def test_a_triangle_leaves_out_what_is_no_range():
    found = picture(Ranges())
    heat, worst, _ = cells_of_table(found, "people").data
    values = np.array(heat.z, dtype=float)
    np.testing.assert_allclose(values, found.errors, rtol=1e-4)
    assert (worst.y[0], worst.x[0]) == found.worst
    assert heat.colorbar.title.text == "standard error of a cell (people)"
    assert "NaN" not in cells_of_table(found, "people").to_json()


def test_colours_go_by_the_logarithm_where_errors_are_far_apart():
    heat = cells_of_table(made([[1, 2], [4, 300]]), "people").data[0]
    np.testing.assert_allclose(heat.z, np.log10([[1, 2], [4, 300]]), atol=1e-4)
    assert "100" in heat.colorbar.ticktext
    assert heat.customdata[1][1] == "300"
    assert cells_of_table(made([[1, 2], [4, 5]]), "people").data[0].colorbar.ticktext is None


def test_groups_are_bars_from_zero():
    figure = cells_of_table(made([3, 4, 5], down=False, is_even=False), "people")
    assert figure.data[0].type == "bar"
    assert figure.layout.yaxis.rangemode == "tozero"


@pytest.mark.parametrize("down", [True, False])
def test_names_are_no_markup(down):
    errors = [[1, 2], [3, 4]] if down else [1, 2]
    text = cells_of_table(made(errors, down=down), "<i>people</i>").to_json()
    assert "<b>" not in text.replace("\\u003c", "<")
    assert "<i>" not in text.replace("\\u003c", "<")


def test_a_level_table_has_no_marks():
    assert len(cells_of_table(made([[2, 2], [2, 2]]), "people").data) == 1


def test_the_largest_picture_is_small_enough_for_a_browser():
    errors = np.linspace(1, 3, 10_000).reshape(100, 100)
    text = cells_of_table(made(errors), "people").to_json()
    assert len(text) < 1_000_000
    ticks = json.loads(text)["layout"]["xaxis"]["tickvals"]
    assert len(ticks) <= 13
