"""The picture of a table's cells: within bounds, marked, and with the names as they are."""

import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.cell_accuracy import Axis, CellAccuracy, accuracy_of_cells
from rpexplore.analysis.measures import Accuracy
from rpexplore.figures.cells import cells_of_table
from rpexplore.planning.planner import plan_tables
from rpexplore.workload.bases import Prefix, Ranges


def picture(basis, size=12):
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, size - 1)),))
    workload = rp.Workload.all_of_order(domain, 1).with_bases({"age": basis})
    plan = plan_tables(
        workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"), uniform_reference=True
    )
    return accuracy_of_cells(Accuracy.of_plan("this", plan), 0, (0,))


def made(errors, *, down=True, is_even=True, names=("<b>age</b>", "sex & x")):
    errors = np.array(errors, dtype=float)
    axes = tuple(
        Axis(name, tuple(f"{name} {index}" for index in range(size)))
        for name, size in zip(names if down else names[1:], errors.shape, strict=True)
    )
    return CellAccuracy("t", axes, errors, is_even, ", ", "")


def test_a_line_marks_its_least_and_most_accurate_cell():
    accuracy = picture(Prefix())
    figure = cells_of_table(accuracy, "people")
    line, least, most = figure.data
    np.testing.assert_allclose(line.y, accuracy.errors, rtol=1e-4)
    assert (least.x[0], most.x[0]) == (accuracy.least_accurate[0], accuracy.most_accurate[0])
    assert least.marker.symbol != most.marker.symbol
    label = accuracy.label(accuracy.least_accurate)
    assert least.name.startswith(f"least accurate: {label}, σ = ")
    assert figure.layout.yaxis.title.text == "standard error of a cell (people)"


def test_a_triangle_leaves_out_what_is_no_range():
    accuracy = picture(Ranges())
    heat, least, _ = cells_of_table(accuracy, "people").data
    values = np.array(heat.z, dtype=float)
    np.testing.assert_allclose(values, accuracy.errors, rtol=1e-4)
    assert (least.y[0], least.x[0]) == accuracy.least_accurate
    assert heat.colorbar.title.text == "standard error of a cell (people)"
    assert "NaN" not in cells_of_table(accuracy, "people").to_json()


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
