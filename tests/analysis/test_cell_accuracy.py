"""Accuracy over the cells of a table: the picture against every cell by dense matrices."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import cell_accuracy as cells
from rpexplore.analysis.measures import Accuracy
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.planner import plan_tables
from rpexplore.workload.bases import CustomBasis, Hierarchy, Identity, Ranges, Windows
from rpexplore.workload.table_text import query_matrix
from tests.analysis.bases import BUDGET, dense_cell_variances, scenario
from tests.planning.test_residual_strategies import planned

SCENARIO = scenario(3)


@pytest.fixture(scope="module")
def plan():
    return SCENARIO.table_plan()


@pytest.fixture(scope="module")
def accuracy(plan):
    return Accuracy.of_plan("this", plan)


def dense(plan, table):
    """Standard errors of a table's cells, one axis an attribute."""
    workload = plan.workload
    rows = [workload.n_queries[each] for each in workload.attribute_basis_index[table] if each >= 0]
    return np.sqrt(dense_cell_variances(plan, table)).reshape(rows)


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("names", "axes"),
    [
        (("age",), (0,)),
        (("region",), (0,)),
        (("age", "sex"), (0, 1)),
        (("age", "region"), (1, 0)),
        (("age", "income"), (0, 1)),
        (("age", "region"), (0,)),
        (("age", "sex", "region"), (0, 2)),
        (("age", "region", "income"), (0, 1)),
        (("sex", "region", "income"), (1,)),
    ],
)
def test_attributes_that_are_not_shown_are_least_accurate(plan, accuracy, names, axes):
    table = plan.workload.position(names)
    every = dense(plan, table)
    others = tuple(axis for axis in range(len(names)) if axis not in axes)
    expected = every.max(axis=others)
    result = cells.accuracy_of_cells(accuracy, table, axes)
    if axes == (1, 0):
        expected = expected.T
    np.testing.assert_allclose(result.errors, expected, rtol=1e-6)
    assert result.errors[result.least_accurate] == pytest.approx(every.max(), rel=1e-6)
    labels = [axis.labels for axis in result.axes]
    asked = [cells.query_matrices(accuracy, table)[axis] for axis in axes]
    assert [list(each) for each in labels] == [each.labels() for each in asked]
    assert len(result.frame) == expected.size
    assert ("Whatever " in result.describe("people")) == bool(others)


def test_attributes_that_are_not_shown_can_be_fixed(plan, accuracy):
    table = plan.workload.position(("age", "region", "income"))
    every = dense(plan, table)
    result = cells.accuracy_of_cells(accuracy, table, (0, 1), {2: 7})
    np.testing.assert_allclose(result.errors, every[:, :, 7], rtol=1e-6)
    label = cells.query_matrices(accuracy, table)[2].label(7)
    assert f"income (ranges): {label}." in result.describe("people")
    line = cells.accuracy_of_cells(accuracy, table, (1,), {0: 2})
    np.testing.assert_allclose(line.errors, every[2].max(axis=1), rtol=1e-6)


def test_all_ranges_make_a_triangle(plan, accuracy):
    table = plan.workload.position(("income",))
    errors = dense(plan, table)
    result = cells.accuracy_of_cells(accuracy, table, (0,))
    assert result.errors.shape == (5, 5)
    rows = [(first, last) for first in range(5) for last in range(first, 5)]
    for (first, last), error in zip(rows, errors, strict=True):
        assert result.errors[first, last] == pytest.approx(error, rel=1e-6)
    assert np.isnan(result.errors[np.tril_indices(5, -1)]).all()
    assert list(result.frame.columns) == [
        "income from",
        "income to",
        "standard_error",
        "margin_95",
    ]
    assert len(result.frame) == len(errors)
    assert result.label((1, 3)) == "1 to 3"
    assert result.label((2, 2)) == "2"


def test_many_cells_are_blocks_that_show_the_least_accurate_of_each(monkeypatch, plan, accuracy):
    monkeypatch.setattr(cells, "MOST", 3)
    monkeypatch.setattr(cells, "MOST_ALONG_A_LINE", 3)
    table = plan.workload.position(("age", "region", "income"))
    every = dense(plan, table).max(axis=1)  # age × income
    result = cells.accuracy_of_cells(accuracy, table, (0, 2))
    assert result.errors.shape == (3, 3)
    edges = [np.append(np.arange(3) * size // 3, size) for size in every.shape]
    for i in range(3):
        for j in range(3):
            part = every[edges[0][i] : edges[0][i + 1], edges[1][j] : edges[1][j + 1]]
            assert result.errors[i, j] == pytest.approx(part.max(), rel=1e-6)
    assert "Of neighbouring cells together" in result.describe("people")
    assert result.axes[0].labels[0] == "≤ 0 … ≤ 1"
    line = cells.accuracy_of_cells(accuracy, table, (0,))
    for i in range(3):
        part = every[edges[0][i] : edges[0][i + 1]]
        assert line.errors[i] == pytest.approx(part.max(), rel=1e-6)
    triangle = cells.accuracy_of_cells(accuracy, plan.workload.position(("income",)), (0,))
    assert triangle.errors.shape == (3, 3)  # of values 0, 1 to 2, 3 to 4
    assert triangle.axes[1].labels == ("0", "1 … 2", "3 … 4")
    ranges = dense(plan, plan.workload.position(("income",)))
    rows = [(first, last) for first in range(5) for last in range(first, 5)]
    block = [0, 1, 1, 2, 2]
    for i in range(3):
        for j in range(i, 3):
            inside = [(block[first], block[last]) == (i, j) for first, last in rows]
            assert triangle.errors[i, j] == pytest.approx(ranges[inside].max(), rel=1e-6)


def test_the_attributes_that_differ_most_are_shown_first(plan, accuracy):
    position = plan.workload.position
    assert cells.usual_axes(accuracy, position(("age",))) == (0,)
    assert 1 not in cells.usual_axes(accuracy, position(("age", "sex", "region")))
    table = cells.least_even_table(accuracy)
    errors = dense(plan, table)
    spans = [dense(plan, other) for other in range(len(plan.workload))]
    assert errors.max() / errors.min() == pytest.approx(
        max(each.max() / each.min() for each in spans), rel=1e-6
    )
    titled = cells.tables_with_cells(plan.workload)
    assert 0 not in titled
    assert titled[position(("age", "sex"))] == "age (cumulative) × sex"


def single(basis, size=30):
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, size - 1)),))
    workload = rp.Workload.all_of_order(domain, 1).with_bases({"age": basis})
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=BUDGET, uniform_reference=True)
    return cells.accuracy_of_cells(Accuracy.of_plan("this", plan), 0, (0,))


def test_the_least_and_the_most_accurate_cell_are_named():
    errors = np.array([2.2, 3.0, 4.1, 3.5, 2.5])
    labels = tuple(f"≤ {age}" for age in (18, 30, 44, 60, 90))
    across = cells.Axis("age (cumulative)", labels)
    result = cells.CellAccuracy("age (cumulative)", (across,), errors, True, ", ", "")
    assert result.describe("people") == (
        "The cells of age (cumulative) are not equally accurate: σ = 4.1 people for ≤ 44 against "
        "2.2 for ≤ 18."
    )


def test_other_questions_are_told_by_their_ends():
    groups = single(Hierarchy((5,)))
    assert not groups.is_even
    assert "age (hierarchy of 5) are not equally accurate" in groups.describe("people")
    assert single(Windows(4)).is_even
    assert len(single(CustomBasis(tuple(map(tuple, np.eye(30).tolist())))).axes) == 1


def test_marginals_are_level():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "many": 500_000})
    plan = plan_tables(rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=BUDGET)
    accuracy = Accuracy.of_plan("this", plan)
    table = plan.workload.position(("age", "many"))
    result = cells.accuracy_of_cells(accuracy, table, (0, 1))
    assert result.errors.shape == (10, 100)
    np.testing.assert_allclose(result.errors, plan.standard_errors[table], rtol=1e-9)
    assert result.describe("people").startswith("All cells of age × many are equally accurate: σ")


def test_axes_must_be_of_the_table(plan, accuracy):
    table = plan.workload.position(("age", "sex"))
    for axes in ((), (2,), (0, 0), (0, 1, 2)):
        with pytest.raises(WorkloadError, match="One or two of the 2 attributes"):
            cells.accuracy_of_cells(accuracy, table, axes)


def test_a_name_like_a_column_keeps_its_own():
    domain = rp.Domain.from_sizes({"margin_95": 4})
    workload = rp.Workload.all_of_order(domain, 1)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=BUDGET)
    frame = cells.accuracy_of_cells(Accuracy.of_plan("this", plan), 0, (0,)).frame
    assert list(frame.columns) == ["margin_95 (attribute)", "standard_error", "margin_95"]


def test_a_value_alone_and_a_table_asked_in_two_ways():
    domain = rp.Domain(
        (rp.Attribute("age", rp.Integers(0, 5)), rp.Attribute("one", rp.Categories(("x",))))
    )
    workload = rp.Workload.all_up_to(domain, 2).with_bases({"age": Ranges()})
    workload = workload.with_bases({"age": Identity()}, tables=[("age",)])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=BUDGET)
    accuracy = Accuracy.of_plan("this", plan)
    table = workload.position(("age",))
    result = cells.accuracy_of_cells(accuracy, table, (0,))
    np.testing.assert_allclose(result.errors, dense(plan, table), rtol=1e-6)
    both = cells.accuracy_of_cells(accuracy, workload.position(("age", "one")), (0, 1))
    every = dense(plan, workload.position(("age", "one")))
    np.testing.assert_allclose(both.errors, every, rtol=1e-6)
    assert query_matrix(Ranges(), domain["age"]).n_rows == len(both.errors)


@pytest.mark.parametrize(("axes", "fixed"), [((0, 1), {}), ((1, 0), {2: 1}), ((1,), {0: 3})])
def test_cells_of_plans_with_strategies_by_residual(axes, fixed):
    plan, table = planned(), 3
    scales = plan.sigma_squared.floats
    every = np.sqrt(CellVariances(plan.workload, plan.closure).variances_of(table, scales))
    result = cells.accuracy_of_cells(Accuracy.of_plan("this", plan), table, axes, fixed)
    index = tuple(fixed.get(axis, slice(None)) for axis in range(3))
    kept = [axis for axis in range(3) if axis not in fixed]
    others = tuple(place for place, axis in enumerate(kept) if axis not in axes)
    expected = every[index].max(axis=others)
    expected = expected.T if axes == (1, 0) else expected
    np.testing.assert_allclose(result.errors, expected, rtol=1e-9)
    assert plan.closure.residual_moments
