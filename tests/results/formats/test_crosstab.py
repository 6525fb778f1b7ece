"""Crosstabs against dense covariance matrices of all cells, and what is known of other tables."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.domain.levels import Level
from rpexplore.domain.survey import Sampling, SurveyDesign
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.area_results import AreaResults
from rpexplore.results.formats.crosstab import (
    SINGLE_VALUES,
    Crosstab,
    Side,
    crosstab,
    crosstab_of_rows,
    levels_of,
)
from rpexplore.results.formats.crosstab_html import legend
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.publication import Publication
from rpexplore.workload.bases import Prefix
from tests.releases.area_plans import PLANS, RECORDS

AGE, SEX, REGION = 6, 2, 4
DOMAIN = rp.Domain(
    (
        rp.Attribute(
            "age", rp.Integers(0, 5), levels=(Level("adult", ("child",) * 2 + ("adult",) * 4),)
        ),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("region", rp.Categories(("a", "b", "c", "d"))),
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("crosstab")
    rows = [
        {"age": i * i % 6, "sex": "fm"[i % 3 == 0], "region": "abcd"[i % 7 % 4]} for i in range(900)
    ]
    pd.DataFrame(rows).to_csv(folder / "records.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def releases(folder) -> dict[str, TableRelease]:
    """One three-way table, by single values, and with cumulative ages (and so a strategy)."""
    workload = rp.Workload.of(DOMAIN, [["age", "sex", "region"], ["age", "sex"]])
    workloads = {"single": workload, "prefix": workload.with_bases({"age": Prefix()})}
    made = {}
    for name, asked in workloads.items():
        planned = plan_tables(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
        made[name] = release(planned, folder / "records.csv", folder / name).part("tables")
    return made


@pytest.fixture(params=["single", "prefix"])
def released(request, releases) -> TableRelease:
    return releases[request.param]


def dense(released: TableRelease) -> tuple[np.ndarray, np.ndarray]:
    """The counts of all cells, and their covariance matrix, pair by pair."""
    counts = released.counts("age", "sex", "region")["value"].to_numpy()
    noise = released.plan.marginal_noise((0, 1, 2))
    sizes = [AGE, SEX, REGION]
    cells = [
        {
            axis: np.eye(size)[place]
            for axis, (size, place) in enumerate(zip(sizes, cell, strict=True))
        }
        for cell in product(*map(range, sizes))
    ]
    return counts, np.array([[noise.covariance(one, other) for other in cells] for one in cells])


def with_total(rows: np.ndarray) -> np.ndarray:
    return np.vstack([rows, np.ones(rows.shape[1])])


def test_totals_groups_and_shares_have_the_errors_of_the_dense_matrix(released):
    counts, covariance = dense(released)
    table = crosstab(released, ["age"], "region", levels={"age": "adult"}, fixed={"sex": 1})
    # Rows: child (ages 0 and 1), adult, and all; men only; columns: regions, and all.
    groups = with_total(np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]], dtype=float))
    all_rows = np.kron(groups, np.array([[0.0, 1.0]]))
    columns = with_total(np.eye(REGION))
    whole = np.kron(all_rows, columns)
    assert table.rows.labels == (("child",), ("adult",))
    assert table.remarks == "sex: male."
    np.testing.assert_allclose(table.values, (whole @ counts).reshape(3, 5), rtol=1e-9)
    variances = np.einsum("qi,ij,qj->q", whole, covariance, whole).reshape(3, 5)
    np.testing.assert_allclose(table.errors**2, variances, rtol=1e-9)
    # Of a share a / t, Var = (Var a − 2 p Cov(a, t) + p² Var t) / t².
    for of, total in (
        ("row", np.kron(all_rows, np.ones((5, 1)) @ columns[-1:])),
        ("column", np.kron(np.ones((3, 1)) @ all_rows[-1:], columns)),
    ):
        shares = table.shares(of, 1000.0)
        base = total @ counts
        p = (whole @ counts) / base
        pairs = whole - p[:, None] * total
        expected = np.sqrt(np.einsum("qi,ij,qj->q", pairs, covariance, pairs)) / np.abs(base)
        np.testing.assert_allclose(shares.values.ravel(), 100 * p, rtol=1e-9)
        np.testing.assert_allclose(shares.errors.ravel(), 100 * expected, rtol=1e-6, atol=1e-6)


def test_several_attributes_down_have_the_total_of_all_of_them(released):
    counts, covariance = dense(released)
    cells = counts.reshape(AGE, SEX, REGION)
    table = crosstab(released, ["region", "sex"], "age", levels={"age": SINGLE_VALUES})
    by_rows = cells.transpose(2, 1, 0).reshape(8, AGE)
    assert table.rows.labels[:3] == (("a", "female"), ("a", "male"), ("b", "female"))
    assert table.rows.codes[1] == ("", "m")
    np.testing.assert_allclose(table.values[:-1, :-1], by_rows, rtol=1e-9)
    np.testing.assert_allclose(table.values[-1, -1], counts.sum(), rtol=1e-9)
    everybody = np.ones(len(counts))
    assert table.errors[-1, -1] ** 2 == pytest.approx(everybody @ covariance @ everybody)
    alone = crosstab(released, ["sex"])
    np.testing.assert_allclose(alone.values.ravel()[:2], cells.sum(axis=(0, 2)), rtol=1e-9)
    assert alone.values.shape == (3, 1)
    assert crosstab(released, []).values == pytest.approx(counts.sum())


def test_a_basis_of_the_plan_is_the_usual_level(releases):
    prefix = releases["prefix"]
    assert levels_of(prefix, "age") == ("as planned (cumulative)", SINGLE_VALUES, "adult")
    assert levels_of(prefix, "sex") == (SINGLE_VALUES,)
    table = crosstab(prefix, ["age"], "sex", levels={"age": "as planned (cumulative)"})
    stored = prefix.table("age", "sex")
    assert table.rows.labels[2] == ("≤ 2",)
    np.testing.assert_allclose(table.values[:-1, :-1].ravel(), stored["value"], rtol=1e-9)
    np.testing.assert_allclose(table.errors[:-1, :-1].ravel(), stored["standard_error"], rtol=1e-9)


def test_attributes_at_several_levels_have_totals_with_exact_errors(folder):
    tables = [["age@adult", "region"], ["age", "sex"]]
    planned = plan_tables(
        rp.Workload.of(DOMAIN.with_levels, tables),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
    )
    made = release(planned, folder / "records.csv", folder / "levels").part("tables")
    table = crosstab(made, ["age"], "sex", levels={"age": "adult"})
    for row, ages in enumerate(([1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1] * 6)):
        for column, sexes in enumerate(([1, 0], [0, 1], [1, 1])):
            answer = made.answer(
                "age", "sex", where={"age": list(map(float, ages)), "sex": list(map(float, sexes))}
            )
            assert table.values[row, column] == pytest.approx(answer.value)
            assert table.errors[row, column] == pytest.approx(answer.standard_error)
    # The share of adults, and what its error must be: from the variance of a − p t as one query.
    share = table.shares("column", 1000.0)
    p = table.values[1, 0] / table.values[2, 0]
    weights = [-p, -p, 1 - p, 1 - p, 1 - p, 1 - p]
    difference = made.answer("age", "sex", where={"age": weights, "sex": [1.0, 0.0]})
    expected = 100 * difference.standard_error / table.values[2, 0]
    assert share.errors[1, 0] == pytest.approx(expected)


def test_areas_side_by_side_have_totals_of_each_and_none_of_all(tmp_path):
    pd.DataFrame(RECORDS).to_csv(tmp_path / "records.csv", index=False)
    made = release(PLANS["less further down"], tmp_path / "records.csv", tmp_path / "areas")
    results = AreaResults(made.part("areas"))
    regions = results.within(0, 1)
    beside = results.side_by_side(1, regions)
    table = crosstab(beside, [beside.axis], "sex")
    assert (table.has_total_row, table.has_total_column) == (False, True)
    assert table.rows.labels == (("N",), ("S",), ("W",))
    for row, area in enumerate(range(regions.start, regions.stop)):
        one = crosstab(results.of_area(area), ["sex"])
        np.testing.assert_allclose(table.values[row], one.values.ravel())
        np.testing.assert_allclose(table.errors[row], one.errors.ravel())
        total = results.of_area(area).answer("sex", where={})
        assert one.errors[-1, 0] == pytest.approx(total.standard_error)
    turned = crosstab(beside, ["sex"], beside.axis)
    np.testing.assert_allclose(turned.values, table.values.T)


def test_totals_of_processed_tables_are_those_of_smaller_tables(folder, tmp_path):
    workload = rp.Workload.of(DOMAIN, [["age", "sex"], ["age"], ["age", "sex", "region"]])
    planned = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    made = release(planned, folder / "records.csv", tmp_path / "release").part("tables")
    postprocess(made, tmp_path / "whole", method="nonnegative", rounded=True)
    whole = ProcessedTables.load(tmp_path / "whole")
    table = crosstab(whole, ["age"], "sex")
    stored = whole.table("age")
    assert (table.has_total_row, table.has_total_column, table.kind) == (False, True, "processed")
    assert table.values[:, -1].tolist() == stored["value"].tolist()
    assert table.errors[:, -1].tolist() == stored["standard_error"].tolist()
    cvs = stored["standard_error"] / stored["unbiased_value"]  # by the unbiased counts
    np.testing.assert_allclose(table.cvs[:, -1], np.where(cvs > 0, cvs, np.inf))
    assert np.isnan(table.shares("row", 1000.0).errors).all()
    part = crosstab(whole, ["age"], "region", fixed={"sex": 0})
    assert part.values[:, -1].tolist() == table.values[:, 0].tolist()  # of age × sex
    own = whole.table("age", "sex", "region").query("sex == 'f'")["value"]
    assert part.values[:, :-1].ravel().tolist() == own.tolist()
    assert part.remarks == "sex: female."


def test_flags_brackets_and_order_follow_from_counts_and_errors():
    # CVs 4, 5, 9, 20, 33 and 34 %; then a count that is not above 0, and an empty area.
    counts = np.array([100.0, 100, 100, 100, 100, 100, -1, 0])[:, None]
    errors = np.array([4.0, 5, 9, 20, 33, 34, 1, 0])[:, None]
    side = Side.of([Axis("row", tuple(map(str, range(8))))])
    table = Crosstab(side, Side.of([]), counts, errors, counts, errors)
    assert table.flags.ravel().tolist() == ["A", "A", "B", "C", "D", "E", "E", "A"]
    assert table.publishable(0.2).ravel().tolist() == [True] * 4 + [False] * 3 + [True]
    # Of sums of smooth counts no error is known: nothing is marked, but all is left empty if asked.
    unknown = replace(table, count_errors=np.full((8, 1), np.nan))
    assert not unknown.doubtful(Publication()).any()
    assert unknown.doubtful(Publication(leave_empty=True)).all()
    in_order = table.sorted_by(0, ascending=True)
    assert in_order.values[:2].ravel().tolist() == [-1, 0]
    assert in_order.rows.labels[0] == ("6",)
    assert table.first(2).remarks == "The first 2 of 8 rows are shown."


def test_rows_of_any_table_are_read_by_their_roles(tmp_path):
    pd.DataFrame(RECORDS).to_csv(tmp_path / "records.csv", index=False)
    made = release(PLANS["the same"], tmp_path / "records.csv", tmp_path / "areas").part("areas")
    item = next(item for item in made.items if item.level == "town" and "age" in item.attributes)
    frame = item.frame
    table = crosstab_of_rows(frame)
    assert table.columns.names == ("age",)
    assert table.rows.names == ("region", "town", "sex")
    np.testing.assert_array_equal(table.values.ravel(), frame["value"])
    np.testing.assert_array_equal(table.errors.ravel(), frame["standard_error"])
    assert "Town N1" in table.rows.labels[0]
    assert not table.has_total_row


def test_sums_of_amounts_are_rows_without_a_total(tmp_path):
    incomes = rp.Attribute("income", rp.Amounts(0, 1000, unit="EUR"))
    domain = rp.Domain((incomes, DOMAIN["sex"]))
    rows = pd.DataFrame({"income": [100.0, 300.0] * 500, "sex": ["f", "m"] * 500})
    rows.to_csv(tmp_path / "records.csv", index=False)
    workload = rp.Workload.of(domain, [("income", "sex"), ("sex",)])
    planned = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    made = release(planned, tmp_path / "records.csv", tmp_path / "out").part("tables")
    table = crosstab(made, ["income"], "sex")
    stored = made.counts("income", "sex")
    assert (table.has_total_row, table.has_total_column) == (False, True)
    assert table.rows.labels[0] == ("sum (EUR)",)
    np.testing.assert_allclose(table.values[:, :-1].ravel(), stored["value"], rtol=1e-9)
    np.testing.assert_allclose(table.errors[:, :-1].ravel(), stored["standard_error"], rtol=1e-9)
    # The sum of everybody, and of one sex by a fixed value.
    total = made.counts("income")
    np.testing.assert_allclose(table.errors[:, -1], total["standard_error"], rtol=1e-9)
    fixed = crosstab(made, ["sex"], fixed={"income": 0})
    np.testing.assert_allclose(fixed.values[:2, 0], table.values[0, :2], rtol=1e-9)
    assert fixed.remarks == "income: sum (EUR)."


def test_a_survey_s_own_error_counts_in_flags_and_is_said():
    """σ = 10 of 1,000 is a CV of 1 %; with sampling of d = 4 it is √(100 + 4,000)/1,000 = 6.4 %."""
    side, other = Side(("age",), (("young",),), (("",),), 1), Side((), ((),), ((),), 1)
    value, error = np.array([[1000.0]]), np.array([[10.0]])
    table = Crosstab(side, other, value, error, value, error)
    total = table.with_sampling(Sampling(SurveyDesign(4.0)))
    assert (table.flags.item(), total.flags.item()) == ("A", "B")
    assert total.cvs.item() == pytest.approx(4100**0.5 / 1000)
    assert total.errors is table.errors  # margins are those of the noise
    assert "noise and sampling (design effect 4)" in " ".join(legend(total, Publication()))
    assert not total.publishable(0.05).any()
    assert table.with_sampling(None) is table
