"""The publishable share of a plan against all its cells, each with its own standard error."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import expected_cells
from rpexplore.analysis.budget_curves import publishable_at, publishable_by_budget
from rpexplore.analysis.cell_accuracy import table_to_see
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.measures import Accuracy
from rpexplore.analysis.sufficient_budgets import budgets_for_shares
from rpexplore.analysis.usefulness import (
    Usefulness,
    describe_change,
    points_since,
)
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.part_plan import Z_95
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.workload.bases import Hierarchy
from rpexplore.workload.table_text import titles
from tests.analysis import bases
from tests.analysis.dense_counts import answers_by_brute_force, cells_by_brute_force, margin
from tests.support.strategies import workloads

RECORD = rp.Budget(rho="0.3")


def half_of(counts: np.ndarray) -> float:
    """The least of them that half of them do not exceed."""
    return np.sort(counts)[(len(counts) + 1) // 2 - 1]


@pytest.fixture(scope="module")
def based():
    """Tables in many bases: (optimum, plan, expected counts, counts and errors of every cell)."""
    scenario = bases.scenario()
    solution = optimum(scenario.workload, loss=scenario.loss)
    plan, workload = solution.at(scenario.budget), scenario.workload
    counts = np.random.default_rng(5).uniform(0, 30, 28)
    expected = margin(bases.DOMAIN, ("age", "region"), [0, *counts[1:]])
    dense = [
        (
            answers_by_brute_force(expected, workload, table),
            np.sqrt(bases.dense_cell_variances(plan, table)),
        )
        for table in range(len(workload))
    ]
    return solution, plan, expected, dense


def both_ways(based, cv_limit):
    """What a plan publishes, from the plan and from its optimum."""
    solution, plan, expected, _ = based
    cells = ExpectedCells.of(expected, plan.workload)
    return (
        Usefulness.of_plan(plan, cells, cv_limit),
        Usefulness.of_optimum(solution, plan.budget, cells, cv_limit),
    )


def publishable(counts, errors, cv_limit):
    return errors <= cv_limit * counts


def test_with_a_survey_cells_are_judged_by_their_total_error_one_by_one(based):
    """σ² + D c (1 − c/n) ≤ κ² c² of every cell, at three budgets, from plan, optimum and curve."""
    solution, plan, expected, dense = based
    workload, n, limit = plan.workload, expected.total, 0.6
    own, persons = workload.tables[-1], plan.budget.max_records_per_person

    def at(rho: Fraction) -> rp.Budget:
        return rp.Budget(rho=rho, max_records_per_person=persons)

    survey = rp.SurveyDesign(1.7, ((own, 3.0),), 0.2)
    cells = ExpectedCells.of(expected, workload, survey, limit)
    for scale in (0.3, 1.0, 2.5):
        budget = at(plan.budget.rho / Fraction(str(scale)) ** 2)
        tables = []
        for table, (counts, errors) in zip(workload.tables, dense, strict=True):
            factor = 0.8 * (3.0 if table == own else 1.7)
            total = (scale * errors) ** 2 + factor * counts * np.maximum(1 - counts / n, 0)
            tables.append(np.sqrt(total) <= limit * counts)
        of_budget = Usefulness.of_optimum(solution, budget, cells, limit)
        np.testing.assert_allclose(of_budget.shares, [table.mean() for table in tables])
        curve = cells.share_curve(Accuracy.of_plan("", plan))
        assert curve(limit / scale) == pytest.approx(np.concatenate(tables).mean())
        low, high = curve.range
        assert low < limit / scale < high
        assert curve.between(low, high)(limit / scale) == pytest.approx(curve(limit / scale))
        levels = of_budget.by_level()
        assert levels["publishable"].sum() > 0
    alone = Usefulness.of_plan(plan, ExpectedCells.of(expected, workload), limit)
    assert alone.share > rp.publishable(plan, expected, cv_limit=limit, survey=survey).share
    most = cells.share_curve(Accuracy.of_plan("", plan))
    assert most(most.range[1] * 1e6) == pytest.approx(most(most.range[1]))
    budgets = budgets_for_shares(solution, plan.budget, cells, limit, (0.2, 0.4))
    for share, found in budgets.items():
        assert found is not None
        for factor, is_reached in ((1, True), (Fraction(99, 100), False)):
            useful = Usefulness.of_optimum(solution, at(found.budget.rho * factor), cells, limit)
            assert (useful.share >= share - 1e-12) == is_reached


@pytest.mark.parametrize("cv_limit", [0.1, 0.5, 2.0])
def test_all_cells_one_by_one(based, cv_limit):
    *_, dense = based
    tables = [publishable(counts, errors, cv_limit) for counts, errors in dense]
    every = np.concatenate(tables)
    for result in both_ways(based, cv_limit):
        assert result.n_cells == len(every)
        assert result.share == pytest.approx(every.mean(), rel=1e-12)
        assert result.whole == sum(table.all() for table in tables)
        assert result.none == sum(not table.any() for table in tables)
        assert result.whole + result.partly + result.none == result.tables == len(tables)
        np.testing.assert_allclose(result.shares, [table.mean() for table in tables], rtol=1e-12)


def test_rows_by_order(based):
    *_, dense = based
    for result in both_ways(based, 0.5):
        orders = result.cells.workload.orders
        for order, row in enumerate(result.by_order().to_dict("records")):
            chosen = [dense[table] for table in np.flatnonzero(orders == order)]
            counts, errors = (np.concatenate(each) for each in zip(*chosen, strict=True))
            roots = [np.sqrt(np.mean(errors**2)) for _, errors in chosen]
            assert row["attributes"] == ("total", "1 attribute", "2 attributes")[order]
            assert row["tables"] == len(chosen)
            whole = [publishable(*table, 0.5).all() for table in chosen]
            assert row["whole"] == np.count_nonzero(whole)
            assert row["cells"] == len(counts)
            assert row["median_count"] == pytest.approx(half_of(counts), rel=1e-9)
            assert row["margin_95"] == pytest.approx(Z_95 * np.median(roots), rel=1e-6)
            assert row["publishable"] == pytest.approx(publishable(counts, errors, 0.5).sum())
            assert row["share"] == pytest.approx(publishable(counts, errors, 0.5).mean())


def test_rows_by_level_of_a_hierarchy(based):
    _, plan, _, dense = based
    workload = plan.workload
    # region: all of a, b, c, d; North of a and b; South; the four themselves
    rows_of = {"total": [0], "groups": [1, 2], "single values": [3, 4, 5, 6]}
    for result in both_ways(based, 0.5):
        frame = result.by_level().set_index("level")
        assert frame.index.tolist() == list(rows_of)
        assert set(frame["attribute"]) == {"region (hierarchy)"}
        for level, rows in rows_of.items():
            cells = []
            for table, names in enumerate(workload.tables):
                if "region" not in names:
                    continue
                indices = workload.attribute_indices(table)
                attributes = [workload.domain.attributes[index] for index in indices]
                shape = [
                    workload.basis_of(table, index).n_rows(attribute)
                    for index, attribute in zip(indices, attributes, strict=True)
                ]
                cells += [
                    np.take(values.reshape(shape), rows, axis=names.index("region")).ravel()
                    for values in dense[table]
                ]
            counts, errors = np.concatenate(cells[::2]), np.concatenate(cells[1::2])
            row = frame.loc[level]
            assert row["tables"] == 4
            assert row["cells"] == len(counts)
            assert row["publishable"] == publishable(counts, errors, 0.5).sum()
            assert row["share"] == pytest.approx(publishable(counts, errors, 0.5).mean())
            assert row["median_count"] == pytest.approx(np.median(counts))
            assert row["margin_95"] == pytest.approx(Z_95 * np.median(errors), rel=1e-6)
        assert 0 < frame.loc["single values", "share"] < frame.loc["total", "share"]


def test_rows_by_table(based):
    _, plan, _, dense = based
    names = titles(plan.workload, np.arange(len(dense)))
    for result in both_ways(based, 0.5):
        frame = result.of_tables().set_index("table")
        for name, (counts, errors) in zip(names, dense, strict=True):
            row, error = frame.loc[name], np.sqrt(np.mean(errors**2))
            assert row["share"] == pytest.approx(publishable(counts, errors, 0.5).mean())
            assert row["margin_95"] == pytest.approx(Z_95 * error, rel=1e-6)
            assert row["standard_error"] == pytest.approx(error, rel=1e-6)
            if np.all(counts > 0) and len(counts) % 2:
                assert row["median_relative_error"] == pytest.approx(
                    np.median(errors / counts), rel=1e-6
                )


def test_hierarchies_by_width_and_marginals():
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 10)),))
    workload = rp.Workload.all_up_to(domain, 1)
    cells = ExpectedCells.of(ExpectedCounts.of_total(110), workload)
    solution = optimum(workload, loss=rp.SumOfVariances())
    assert Usefulness.of_optimum(solution, RECORD, cells, 0.2).by_level().empty
    workload = workload.with_bases({"age": Hierarchy((2, 4))})
    cells = ExpectedCells.of(ExpectedCounts.of_total(110), workload)
    solution = optimum(workload, loss=rp.SumOfVariances())
    frame = Usefulness.of_optimum(solution, RECORD, cells, 0.2).by_level()
    # 0–3, 4–7, 8–10; in twos, the last alone and thus a single value; ten records a value
    assert frame["level"].tolist() == ["total", "groups of 4", "groups of 2", "single values"]
    assert frame["cells"].tolist() == [1, 3, 5, 11]
    assert frame["median_count"].tolist() == pytest.approx([110, 40, 20, 10])
    assert set(frame["attribute"]) == {"age (hierarchy of 2 and 4)"}


def test_two_hierarchies_in_one_table():
    domain = rp.Domain.from_sizes({"age": 11, "region": 4})
    workload = rp.Workload.all_up_to(domain, 2).with_bases(
        {"age": Hierarchy((2, 4)), "region": Hierarchy((2,))}
    )
    cells = ExpectedCells.of(ExpectedCounts.of_total(440), workload)
    solution = optimum(workload, loss=rp.SumOfVariances())
    frame = Usefulness.of_optimum(solution, RECORD, cells, 0.2).by_level()
    frame = frame.set_index(["attribute", "level"])
    # Alone, and with each of the 7 rows of region (1 + 2 + 4), or the 20 of age (1 + 3 + 5 + 11).
    assert frame.loc["age (hierarchy of 2 and 4)", "cells"].tolist() == [8, 24, 40, 88]
    assert frame.loc["region (hierarchy of 2)", "cells"].tolist() == [21, 42, 84]
    assert set(frame["tables"]) == {2}


@settings(deadline=None, max_examples=60)
@given(workloads(max_tables=8), st.data())
def test_the_median_count_of_a_cell(workload, data):
    names = [name for name in workload.domain.names if data.draw(st.booleans())]
    size = int(np.prod([workload.domain[name].size for name in names]))
    pick = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    counts = pick.uniform(0, 100, size) * (pick.uniform(size=size) < 0.7)
    counts[0] = pick.uniform(1, 100)
    expected = margin(workload.domain, names, counts.tolist())
    cells = ExpectedCells.of(expected, workload)
    chosen = pick.uniform(size=len(workload)) < 0.6
    parts = [cells_by_brute_force(expected, workload, t) for t in np.flatnonzero(chosen)]
    result = cells.median_count(chosen)
    if parts:
        wanted = half_of(np.concatenate(parts))
        assert result == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    else:
        assert np.isnan(result)


def test_tables_that_are_left_out_count_nowhere(based, monkeypatch):
    monkeypatch.setattr(expected_cells, "MOST_GONE_THROUGH", 60)
    *_, dense = based
    result, _ = both_ways(based, 0.5)
    held = np.flatnonzero(result.cells.held)
    assert 0 < len(held) < len(dense)
    every = np.concatenate([publishable(*dense[table], 0.5) for table in held])
    assert (result.tables, result.n_cells) == (len(held), len(every))
    assert result.share == pytest.approx(every.mean())
    assert result.by_order()["tables"].sum() == len(held)


def test_sentences():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    workload = rp.Workload.all_up_to(domain, 2)
    solution = optimum(workload, loss=rp.SumOfVariances())

    def at(epsilon, total=2000.0, cv_limit=0.2):
        budget = rp.Budget(epsilon=epsilon, delta="1e-6")
        cells = ExpectedCells.of(ExpectedCounts.of_total(total), workload)
        return Usefulness.of_optimum(solution, budget, cells, cv_limit)

    # 1 cell of 2000, 10 of 200, 2 of 1000, 20 of 100: standard errors up to 100, 10, 50 and 5
    limits = 0.05 * np.array([2000, 200, 1000, 100])
    before, now = at("0.5", cv_limit=0.05), at("1", cv_limit=0.05)
    errors = [solution.standard_errors(result.budget) for result in (before, now)]
    assert (errors[0] <= limits).tolist() == [True, False, True, False]
    assert (errors[1] <= limits).tolist() == [True, True, True, False]
    assert before.describe() == (
        "9.1 % of the 33 cells are publishable, with a coefficient of variation of at most 5 %: "
        "2 of 4 tables in full, 0 in part, 2 not at all."
    )
    one = plan_tables(rp.Workload.of(domain, [("age",)]), loss=rp.MaxVariance(), budget=now.budget)
    assert rp.publishable(one, ExpectedCounts.of_total(2000)).tables_text == "the table in full"
    assert points_since(now, before) == pytest.approx(100 * 10 / 33)
    assert describe_change(now, before) == "30 points more than at ε = 0.5."
    assert describe_change(before, now) == "30 points fewer than at ε = 1."
    assert describe_change(now, now) == "As many as before."
    assert describe_change(at("1", 1e6), at("0.5", 1e6)) == "As many as at ε = 0.5."
    assert at("1", 1e6).share_text == "100 %"
    one = ExpectedCells.of(ExpectedCounts.of_total(1), rp.Workload.all_up_to(domain, 0))
    plan = plan_tables(one.workload, loss=rp.SumOfVariances(), budget=RECORD)
    assert Usefulness.of_plan(plan, one, 0.2).describe() == (
        "The one cell is not publishable, with a coefficient of variation of at most 20 %."
    )


def test_the_curve_goes_through_what_each_budget_would_publish(based):
    solution, plan, expected, _ = based
    cells = ExpectedCells.of(expected, plan.workload)
    now = Usefulness.of_optimum(solution, rp.Budget(epsilon="1.5", delta="1e-6"), cells, 0.2)
    frame = publishable_by_budget(solution, now)
    assert 1.5 in frame["budget"].tolist()
    for budget, share in frame.itertuples(index=False):
        at = rp.Budget(epsilon=budget, delta="1e-6")
        assert share == pytest.approx(Usefulness.of_optimum(solution, at, cells, 0.2).share)
    assert publishable_at(now, now.budget) == (1.5, now.share)
    in_rho = Usefulness.of_optimum(solution, rp.Budget(rho="0.1"), cells, 0.2)
    assert publishable_at(in_rho, now.budget)[0] == pytest.approx(1.994, abs=0.001)


def test_the_table_to_see_first_fits_a_screen():
    domain = rp.Domain.from_sizes({"a": 3, "b": 20, "c": 70, "d": 4})
    workload = rp.Workload.all_up_to(domain, 2)
    assert workload.tables[table_to_see(workload)] == ("a", "b")
    assert table_to_see(rp.Workload.of(domain, ["c", ("b", "c")])) == 0
