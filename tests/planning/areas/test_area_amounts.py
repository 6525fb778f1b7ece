"""Sums of amounts and weighted counts in areas, against dense algebra and single records."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.plan import load_plan
from rpexplore.releases.area_files import CellErrors
from rpexplore.releases.area_parts import AreaParts
from rpexplore.workload.table_text import query_matrix
from tests.support.area_trees import incidence
from tests.support.explicit_optimum import dense_queries, lower_bound

TREE = rp.AreaTree.from_columns({"region": [*"NNNSW"], "town": ["1", "2", "3", "1", None]})
TABLES = [("sex", "income"), ("sex",), ("income",), ()]


def domain_of(income: rp.Amounts) -> rp.Domain:
    weight = rp.Attribute("w", rp.Amounts(0, 40, 1, are_weights=True))
    sex = rp.Attribute("sex", rp.Categories(("F", "M")))
    return rp.Domain((sex, rp.Attribute("income", income), weight))


def planned(income: rp.Amounts, kind: str) -> AreaPlan:
    """Sums and counts on all levels; weighted all, or beside unweighted counts."""
    tables = rp.Workload.of(domain_of(income), TABLES, weights=[2, 1, 1, 3])
    towns = rp.Workload.of(domain_of(income), [("sex", "income"), ("sex",)])
    asked = rp.AreaWorkload.of_levels(TREE, {"all": tables, "region": tables, "town": towns})
    if kind != "plain":
        asked = asked.weighted_by("w", unweighted=[("sex",)] if kind == "mixed" else [])
    return plan_areas(asked, loss=rp.SumOfVariances("cells"), budget=rp.Budget(privacy_cost=1))


INCOMES = {
    "from 0": rp.Amounts(0, 200_000, unit="EUR"),
    "both signs": rp.Amounts("-0.5", "99.5", decimals=1, missing=(("", "not stated"),)),
}
CASES = [("from 0", "plain"), ("both signs", "plain"), ("from 0", "mixed"), ("both signs", "all")]


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def plan(request) -> AreaPlan:
    income, kind = request.param
    return planned(INCOMES[income], kind)


def factors(plan: AreaPlan, residual: int) -> list[np.ndarray]:
    """What a residual measures of each attribute, as a Gram matrix."""
    found = []
    for index, n in enumerate(plan.domain.sizes.tolist()):
        matrix = np.ones((1, n))
        if index in plan.closure.attributes(residual):
            strategy = plan.closure.strategies.get(index)
            matrix = np.eye(n) - 1 / n if strategy is None else strategy.matrix
        found.append(matrix.T @ matrix)
    return found


def gram_of(plan: AreaPlan) -> np.ndarray:
    """Of all that is measured, over areas without parts × cells of the other attributes."""
    gram = 0.0
    for residual in range(len(plan.closure)):
        part = np.ones((1, 1))
        for factor in factors(plan, residual):
            part = np.kron(part, factor)
        for within, group in zip(incidence(TREE), plan.groups.of_area, strict=True):
            variance = plan.exact_variance(residual, int(group))
            if variance is not None:
                gram = gram + float(1 / variance) * np.kron(np.outer(within, within), part)
    return gram


def queries_of(plan: AreaPlan, table: int, within: np.ndarray) -> np.ndarray:
    """A table's cells in an area, in the units of cells, over areas × cells."""
    workload, rows = plan.workload.tables, np.atleast_2d(within)
    for index, attribute in enumerate(plan.domain.attributes):
        matrix = np.ones((1, attribute.size))
        if index in workload.attribute_indices(table):
            basis = workload.basis_of(table, index)
            matrix = np.eye(attribute.size)
            if not basis.is_identity:
                units = np.reshape(basis.row_units(attribute), (-1, 1))
                matrix = query_matrix(basis, attribute).of(matrix, 0) * units
        rows = np.kron(rows, matrix)
    return rows


@pytest.mark.by_day(2)
def test_standard_errors_and_covariances_are_those_of_everything_that_is_measured(plan):
    covariance = np.linalg.pinv(gram_of(plan), rcond=1e-11, hermitian=True)
    parts, tables = AreaParts(plan), plan.workload.tables
    n_sums = 0
    for area, (within, kind) in enumerate(
        zip(incidence(TREE), plan.workload.kinds.tolist(), strict=True)
    ):
        for table in plan.workload.rows[kind].tolist():
            queries = queries_of(plan, table, within)
            exact = queries @ covariance @ queries.T
            errors = CellErrors.of(parts, table)
            stated = np.broadcast_to(errors.areas(np.array([area])), (1, len(queries)))[0]
            np.testing.assert_allclose(stated**2, np.diag(exact), rtol=1e-9)
            if tables.has_means[table]:
                shape = [len(axis) for axis in _rows_of(plan, table)]
                cells = np.arange(len(queries)).reshape(shape)
                axis = tables.attribute_indices(table).index(1)
                sums, counts = (cells.take(row, axis).ravel() for row in (0, 1))
                of_residuals = errors.residual_variances(np.array([area]))
                own = of_residuals.T @ parts.sum_covariance_factors(table)
                np.testing.assert_allclose(own[0], exact[sums, counts], rtol=1e-9, atol=1e-9)
                n_sums += len(sums)
    assert n_sums >= 20


def _rows_of(plan: AreaPlan, table: int) -> list[range]:
    tables = plan.workload.tables
    return [
        range(tables.basis_of(table, index).n_rows(plan.domain.attributes[index]))
        for index in tables.attribute_indices(table)
    ]


def test_no_amount_costs_more_than_its_limits(plan):
    gram, cost, rng = gram_of(plan), float(plan.exact_privacy_cost), np.random.default_rng(2)
    leaves = np.eye(incidence(TREE).shape[1])

    def record(leaf: int, *shares: float) -> float:
        """What a record costs that lies `shares` of the way from the lower to the upper limits."""
        row = np.kron(leaves[leaf], np.eye(2)[leaf % 2])
        for share, size in zip(shares, plan.domain.sizes.tolist()[1:], strict=True):
            row = np.kron(row, np.append([1 - share, share], np.zeros(size - 2)))
        return float(row @ gram @ row)

    ends = max(record(leaf, *at) for leaf in range(len(leaves)) for at in np.ndindex(2, 2))
    inner = max(record(leaf, *rng.random(2)) for leaf in range(len(leaves)) for _ in range(40))
    assert inner < ends <= cost * (1 + 1e-9)
    # With missing values, those may cost more than an amount.
    assert cost * 0.9 < ends
    assert 1 - 1e-9 < cost <= 1


def test_accuracy_is_told_in_the_unit_of_the_amounts():
    plan = planned(INCOMES["from 0"], "plain")
    covariance = np.linalg.pinv(gram_of(plan), rcond=1e-11, hermitian=True)
    rows = plan.accuracy().set_index(["level", "item"])
    of_country = np.ones(incidence(TREE).shape[1])
    table = plan.workload.tables.position(["sex", "income"])
    squares = np.diag(
        queries_of(plan, table, of_country) @ covariance @ queries_of(plan, table, of_country).T
    )
    # A count is taken as that of so many largest amounts, 200,000 EUR.
    in_euros = squares * np.array([1, 200_000**2] * 2)
    told = rows.loc[("all", "sum of income in EUR by sex")]
    assert told["standard_error"] == pytest.approx(np.sqrt(in_euros.mean()), rel=1e-9)
    assert told["largest_standard_error"] == pytest.approx(np.sqrt(in_euros.max()), rel=1e-9)
    sums, counts = np.sqrt(squares.reshape(2, 2).mean(axis=0))
    line = f"    all: sum of income in EUR by sex: {sums:,.4g}, and {counts:,.4g}"
    assert line in str(plan).splitlines()
    of_lists = plan.accuracy_of_sums({"all": [()]}, [("sex", "income")])
    assert of_lists["standard_error"].tolist() == pytest.approx([told["standard_error"]])


@pytest.mark.parametrize("kind", ["plain", "all"])
def test_targets_of_sums_are_met_in_their_unit_in_every_area(kind):
    income = INCOMES["from 0"]
    tables = rp.Workload.of(domain_of(income), [("sex", "income"), ("sex",)])
    unit = 200_000 * (40 if kind == "all" else 1)
    targets = {("sex", "income"): 4 * unit, ("sex",): 5.0 * (40 if kind == "all" else 1)}
    tables = tables.with_targets(
        {table: rp.Target(e, required=True) for table, e in targets.items()}
    )
    asked = rp.AreaWorkload.of_levels(TREE, {"region": tables, "town": tables})
    asked = asked.weighted_by("w") if kind == "all" else asked
    loss = rp.MaxVariance(relative_to="target")
    plan = plan_areas(asked, loss=loss, budget=rp.Budget(rho="0.5"))
    rows = plan.accuracy()
    ratios = (rows["largest_standard_error"] / rows["target"]) ** 2
    assert ratios.max() == pytest.approx(plan.loss_value)


def test_plans_survive_their_files_and_are_near_the_best_of_all_gaussian_mechanisms(plan, tmp_path):
    rp.plan(plan.workload, loss=plan.loss, budget=plan.budget).save(tmp_path / "plan.json")
    opened = load_plan(tmp_path / "plan.json")
    assert rp.verify(opened).holds
    gram = 0.0
    for within, kind in zip(incidence(TREE), plan.workload.kinds.tolist(), strict=True):
        if kind >= 0:
            tables = plan.workload.workloads[kind]
            queries, of_tables = dense_queries(tables)
            queries = queries * np.sqrt(tables.weights[of_tables])[:, None]
            wanted = np.kron(np.outer(within, within), queries.T @ queries)
            gram = gram + wanted / plan.workload.areas_asked[kind]
    # Counts beside weighted counts are further off, as without areas.
    is_mixed = plan.workload.tables.is_weighted.any() and not plan.workload.tables.is_weighted.all()
    ratio = plan.loss_value / lower_bound(gram, 1e-4)
    assert 1 - 1e-4 < ratio < (1.05 if is_mixed else 1.0015)
