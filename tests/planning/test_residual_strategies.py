"""Strategies by residual, beside dense matrices of everything that is measured."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import sparse

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning import solving
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.strategy import REFERENCE_BITS
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.planning.residual_strategies import _Lattice, _rounded
from rpexplore.planning.solvers.strategy_matrix import best_matrix
from rpexplore.planning.solvers.strategy_rounding import bits_for
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import query_matrix
from tests.support.explicit_optimum import dense_queries, lower_bound
from tests.support.oracles import kron
from tests.support.plan_schemas import PLAN_VALIDATOR
from tests.support.plan_texts import compact, content_of, laid_out

SUM, SIZES = rp.SumOfVariances(), (6, 5, 3)


@cache
def mixed(*unused: rp.Attribute) -> rp.Workload:
    """Tables that have two of three attributes in several bases; beside attributes of none."""
    domain = rp.Domain.from_sizes(dict(zip("abc", SIZES, strict=True)))
    domain = rp.Domain((*domain.attributes, *unused))
    tables = rp.Workload.of(domain, [*map(tuple, ("a", "ab", "bc", "abc"))])
    tables = tables.with_bases({"a": rp.Prefix()}, tables=[("a", "b")])
    tables = tables.with_bases({"a": rp.Ranges(), "b": rp.Prefix()}, tables=[("a", "b", "c")])
    return tables.with_bases({"b": rp.Hierarchy((2,))}, tables=[("b", "c")])


@cache
def planned() -> TablePlan:
    return plan_tables(mixed(), loss=SUM, budget=rp.Budget(rho="0.5"))


def measured(plan: TablePlan, residual: int) -> np.ndarray:
    """What is measured of all cells in a residual, a row for each independent number."""
    closure, factors = plan.closure, []
    inside = closure.attributes(residual)
    for attribute, n in enumerate(SIZES):
        if attribute not in inside:
            factors.append(np.ones((1, n)))
        elif (strategy := closure.strategies.get(attribute)) is None:
            factors.append(np.eye(n) - 1 / n)
        else:
            own = strategy.of_residuals.get(inside, strategy)
            factors.append(own.integers / 2.0**own.bits)
    return kron(factors)


@cache
def covariance() -> np.ndarray:
    """That of the least squares estimates of all cells."""
    plan, precision = planned(), np.zeros([int(np.prod(SIZES))] * 2)
    for residual, scale in enumerate(plan.sigma_squared.floats.tolist()):
        matrix = measured(plan, residual)
        precision += matrix.T @ matrix / scale
    assert np.max(np.diag(precision)) <= float(plan.exact_privacy_cost) * (1 + 1e-12)
    return np.linalg.pinv(precision, hermitian=True)


def test_nearly_half_of_what_one_strategy_an_attribute_loses_is_won_back(monkeypatch):
    tables = mixed()
    queries, of_tables = dense_queries(tables)
    gram = (queries / tables.cells[of_tables, None]).T @ queries
    best = lower_bound(gram, 1e-4)
    plan = planned()
    assert plan.loss_value < 1.034 * best
    monkeypatch.setattr(solving, "with_residual_strategies", lambda tables, closure, _: closure)
    alike = optimum(tables, loss=SUM)
    assert float(np.sum(alike.closure.variances(alike.solution.sigma_squared))) > 1.06 * best


def test_tables_of_millions_of_cells_have_them_as_well():
    """Of which the least accurate cell is found without looking at all of them."""
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 15, "b": 18, "c": 17}), 3)
    tables = tables.with_bases(dict.fromkeys("abc", rp.Ranges()), tables=[("a", "b", "c")])
    plan = plan_tables(tables, loss=SUM, budget=rp.Budget(rho="0.5"))
    assert tables.cells[-1] == 120 * 171 * 153
    assert len(plan.closure.residuals_with_own_matrices) == 7
    every = CellVariances(tables, plan.closure).variances_of(6, plan.sigma_squared.floats)
    assert plan.table_variances.largest[6] == pytest.approx(every.max(), rel=1e-12)
    assert plan.table_variances.smallest[6] == pytest.approx(every.min(), rel=1e-12)


@pytest.mark.parametrize("z", [[3, 5, 7, 5], [4, 6, 0, -10, 6], [23, 24, 24, 47, 23, 39, 1]])
def test_all_whole_numbers_at_right_angles_to_a_vector_are_sums_of_the_short_basis(z):
    lattice = _Lattice.of(np.array(z))
    assert np.all(lattice.basis @ z == 0)
    # The volume of one cell is that of all such whole numbers: the length of z over its divisor.
    volume = np.abs(np.prod(np.diag(lattice.triangle)))
    assert volume == pytest.approx(np.linalg.norm(z) / np.gcd.reduce(z), rel=1e-12)
    there = np.random.default_rng(1).integers(-9, 9, (5, len(z) - 1)) @ lattice.basis
    assert np.array_equal(lattice.near(there + 0.01), there)


def test_rounding_to_ten_bits_costs_less_than_a_two_thousandth():
    """A thousandth where all numbers are rounded alone: columns come out as long as they were."""
    n = 32
    z = 24 + 8 * (np.arange(n) % 7 == 3) - (np.arange(n) % 5 == 1)
    gram = query_matrix(rp.Prefix(), rp.Domain.from_sizes({"a": n}).attributes[0]).mean_gram
    exact = best_matrix(gram, z / np.sum(z))
    (integers,) = _rounded(exact.matrix[None], z, 10, gram[None])
    decoding = np.linalg.inv(np.vstack([np.ones(n), integers]))[:, 1:]
    cost = np.max(np.sum(integers**2, axis=0)) * np.sum(gram * (decoding @ decoding.T))
    assert np.all(integers @ z == 0)
    assert exact.root**2 < cost < exact.root**2 * 1.0005


def test_amounts_that_no_table_has_do_not_keep_them_away():
    tables = mixed(rp.Attribute("income", rp.Amounts(0, 1000)))
    plan = plan_tables(tables, loss=SUM, budget=rp.Budget(rho="0.5"))
    assert plan.closure.residuals_with_own_matrices == planned().closure.residuals_with_own_matrices
    assert plan.loss_value == pytest.approx(planned().loss_value, rel=1e-12)
    assert rp.verify(plan).holds


def test_references_are_alike_exactly():
    for strategy in planned().closure.strategies.values():
        steps = np.rint(strategy.reference * 2**REFERENCE_BITS).astype(np.int64)
        assert len(strategy.of_residuals) == 4
        for own in (strategy, *strategy.of_residuals.values()):
            assert own.bits == bits_for(2)
            assert np.all(own.integers @ steps == 0)


def test_variances_are_those_of_least_squares():
    plan, tables = planned(), mixed()
    queries, of_tables = dense_queries(tables)
    exact = np.einsum("ij,jk,ik->i", queries, covariance(), queries)
    cells = CellVariances(tables, plan.closure)
    scales, stated = plan.sigma_squared.floats, plan.table_variances
    least, most = cells.least_accurate(scales), cells.most_accurate(scales)
    for table in range(len(tables)):
        own = exact[of_tables == table]
        variances = cells.variances_of(table, scales)
        assert variances.ravel() == pytest.approx(own, rel=1e-9)
        assert stated.mean[table] == pytest.approx(own.mean(), rel=1e-9)
        assert stated.largest[table] == pytest.approx(own.max(), rel=1e-9)
        assert stated.smallest[table] == pytest.approx(own.min(), rel=1e-9)
        for extreme, value in ((least, own.max()), (most, own.min())):
            at = cells.map(np.array([table]), extreme.rows[[table]])
            assert at.variances(scales)[0] == pytest.approx(value, rel=1e-9)


def test_noise_of_single_values_is_that_of_least_squares():
    plan, rng = planned(), np.random.default_rng(1)
    noise = plan.marginal_noise((0, 1, 2))
    exact = covariance()
    assert noise.variances.ravel() == pytest.approx(np.diag(exact), rel=1e-9)
    one, other = ({i: rng.normal(size=n) for i, n in enumerate(SIZES)} for _ in range(2))
    product = float(kron([*one.values()]).ravel() @ exact @ kron([*other.values()]).ravel())
    assert noise.covariance(one, other) == pytest.approx(product, rel=1e-9)
    rows = [{i: sparse.csr_array(v[None]) for i, v in vectors.items()} for vectors in (one, other)]
    assert noise.covariances(*rows).ravel() == pytest.approx([product], rel=1e-9)


def test_the_cost_is_the_exact_sum_over_residuals():
    plan = planned()
    total = Fraction(0)
    for residual in range(len(plan.closure)):
        cost = Fraction(1)
        inside = plan.closure.attributes(residual)
        for attribute in inside:
            strategy = plan.closure.strategies.get(attribute)
            if strategy is None:
                cost *= Fraction(SIZES[attribute] - 1, SIZES[attribute])
            else:
                own = strategy.of_residuals.get(inside, strategy)
                columns = np.sum(own.integers.astype(object) ** 2, axis=0)
                cost *= Fraction(int(columns.max()), 4**own.bits)
        total += cost / plan.sigma_squared.fraction(residual)
    stated = privacy_cost_upper_bound(plan.closure, plan.sigma_squared)
    assert total <= stated <= total * (1 + Fraction(1, 10**20))
    assert stated == plan.exact_privacy_cost <= 1


def test_plan_files_keep_them_and_verify_holds():
    plan = planned()
    content = content_of(plan.text)
    assert plan.text == laid_out(content)
    PLAN_VALIDATOR.validate(compact(content))
    again = TablePlan.parse(plan.text)
    assert again.text == plan.text
    for residual in plan.closure.residuals_with_own_matrices:
        for index, own in plan.closure.own_matrices(residual).items():
            there = again.closure.own_matrices(residual)[index]
            assert np.array_equal(own.integers, there.integers)
    assert rp.verify(again).holds


def changed(change) -> str:
    content = content_of(planned().text)
    change(content["residual_strategies"])
    return laid_out(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda own: own[0]["matrix"][0].__setitem__(0, 9), "reference distribution"),
        (lambda own: own.reverse(), "in the order of the residuals"),
        (lambda own: own[0].update(residual=99), "residual of a strategy must be one of 0 to"),
        (lambda own: own[0].update(attribute="c"), "has no strategy of 'c'"),
        (lambda own: own[0]["matrix"].pop(), "rows of 6 whole numbers"),
        (lambda own: own.clear(), "in the order of the residuals"),
    ],
)
def test_other_matrices_are_refused(change, message):
    with pytest.raises(PlanError, match=message):
        TablePlan.parse(changed(change), canonical=False)


def test_where_records_are_replaced_attributes_are_measured_alike():
    """What a replaced record costs is not known of matrices by residual."""
    closure = planned().closure
    with pytest.raises(PlanError, match="alike in all residuals"):
        closure.replacing_by_residual(replaces=True)
    budget = rp.Budget(rho="0.5", neighbours="replace")
    for plan in (
        plan_tables(mixed(), loss=SUM, budget=budget),
        optimum(mixed(), loss=SUM).at(budget),
    ):
        assert not plan.closure.residual_moments
        assert rp.verify(plan).holds


def test_one_basis_an_attribute_is_measured_alike():
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 6, "b": 5}), 2)
    tables = tables.with_bases({"a": rp.Prefix(), "b": rp.Ranges()})
    plan = plan_tables(tables, loss=SUM, budget=rp.Budget(rho="0.5"))
    assert plan.closure.strategies
    assert not plan.closure.residual_moments
    assert "residual_strategies" not in plan.text
