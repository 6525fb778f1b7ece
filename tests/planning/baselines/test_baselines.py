"""Errors of baselines against dense algebra on all cells of a small domain."""

from functools import reduce

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.baselines.baselines import UnsuitableError
from rpexplore.planning.baselines.products import SingularValues, _error, p_identity
from rpexplore.planning.baselines.registry import BASELINES, LAPLACE_BASELINES, DataCube
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import query_matrix

DOMAIN = rp.Domain.from_sizes({"age": 5, "sex": 2, "region": 3})
TABLES = [(), ("age",), ("sex", "region"), ("age", "region")]
WEIGHTS = [1.0, 2.0, 0.5, 1.0]
MARGINALS = rp.Workload.of(DOMAIN, TABLES, weights=WEIGHTS)
CUMULATIVE = MARGINALS.with_bases({"age": rp.Prefix()})
MIXED = CUMULATIVE | rp.Workload.of(DOMAIN, [("age", "sex")]).with_bases({"age": rp.Ranges()})
SUM, LARGEST = rp.SumOfVariances(), rp.MaxVariance()
# Baseline, whether for marginals, whether for a sum.
UNSUITABLE = {
    *((name, True, is_sum) for name in ("h2", "hb", "wavelets") for is_sum in (True, False)),
    *((name, False, is_sum) for name in ("fourier", "marginals") for is_sum in (True, False)),
    *(("data-cube", *of) for of in ((True, False), (False, True), (False, False))),
}
NAMED = {baseline.name: baseline for baseline in BASELINES}
LAPLACE = {baseline.name: baseline for baseline in LAPLACE_BASELINES}


def planned(tables: rp.Workload, loss: Loss) -> TablePlan:
    return plan_tables(tables, loss=loss, budget=rp.Budget(rho="0.5"))


def queries(tables: rp.Workload, row: int) -> np.ndarray:
    """A table's queries on all cells."""
    factors = []
    for index, attribute in enumerate(tables.domain.attributes):
        if index in tables.attribute_indices(row):
            basis = query_matrix(tables.basis_of(row, index), attribute)
            factors.append(basis.of(np.eye(attribute.size), 0))
        else:
            factors.append(np.ones((1, attribute.size)))
    return reduce(np.kron, factors)


def dense(tables: rp.Workload, measured: np.ndarray, norm: int = 2) -> tuple[list, list]:
    """Mean and largest variance of each table by least squares, at a sensitivity of 1."""
    sensitivity = np.max(np.linalg.norm(measured, ord=norm, axis=0))
    covariance = np.linalg.pinv(measured) @ np.linalg.pinv(measured).T * sensitivity**2
    diagonals = [
        np.diag(queries(tables, row) @ covariance @ queries(tables, row).T)
        for row in range(len(tables))
    ]
    return [np.mean(of) for of in diagonals], [np.max(of) for of in diagonals]


def halves() -> np.ndarray:
    """The intervals of five values by halves, named one by one."""
    parts = [(0, 5), (0, 2), (2, 5), (0, 1), (1, 2), (2, 3), (3, 5), (3, 4), (4, 5)]
    return np.array([[start <= x < stop for x in range(5)] for start, stop in parts], dtype=float)


MATRICES = {"cells": np.eye(5), "h2": halves(), "hb": np.eye(5)}


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("name", ["cells", "h2", "hb"])
def test_products_are_those_of_dense_least_squares(name, norm):
    given = NAMED[name] if norm == 2 else LAPLACE[name]
    plan = planned(MIXED, SUM)
    found = given.variances(MIXED, plan.closure, SUM)
    measured = np.kron(MATRICES[name], np.eye(6))
    mean, largest = dense(MIXED, measured, norm)
    np.testing.assert_allclose(np.exp(found.mean), mean, rtol=1e-9)
    np.testing.assert_allclose(np.exp(found.largest), largest, rtol=1e-9)


def test_wavelets_of_a_power_of_two():
    domain = rp.Domain.from_sizes({"age": 4})
    ranges = rp.Workload.of(domain, [("age",)]).with_bases({"age": rp.Ranges()})
    haar = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]], dtype=float)
    found = NAMED["wavelets"].variances(ranges, planned(ranges, SUM).closure, SUM)
    np.testing.assert_allclose(np.exp(found.mean), dense(ranges, haar)[0], rtol=1e-9)


def test_same_noise_in_every_table():
    for tables, norm in ((MARGINALS, 2), (CUMULATIVE, 2), (CUMULATIVE, 1)):
        given = NAMED["tables"] if norm == 2 else LAPLACE["tables"]
        stacked = np.vstack([queries(tables, row) for row in range(len(tables))])
        sensitivity = np.max(np.linalg.norm(stacked, ord=norm, axis=0))
        found = given.variances(tables, planned(tables, SUM).closure, SUM)
        np.testing.assert_allclose(np.exp(found.mean), sensitivity**2, rtol=1e-9)


@pytest.mark.parametrize("tables", [MARGINALS, MIXED], ids=["marginals", "mixed"])
def test_one_by_one_is_every_table_planned_alone(tables):
    plan = planned(tables, SUM)
    found = NAMED["one-by-one"].variances(tables, plan.closure, SUM)
    alone = []
    for row in range(len(tables)):
        names = [tables.domain.names[index] for index in tables.attribute_indices(row)]
        bases = {name: tables.basis_of(row, tables.domain.names.index(name)) for name in names}
        table = rp.Workload.of(tables.domain, [tuple(names)]).with_bases(bases)
        own = planned(table, SUM).mean_variances[0]
        alone.append(own)
    shares = np.array(alone) / np.exp(found.mean)
    assert np.sum(shares) == pytest.approx(1.0, rel=0.02)  # the strategies are those of the plan
    roots = np.sqrt(tables.weights * np.array(alone))
    np.testing.assert_allclose(shares, roots / np.sum(roots), rtol=0.05)


def test_one_by_one_has_no_better_shares():
    plan = planned(MARGINALS, SUM)
    found = NAMED["one-by-one"].variances(MARGINALS, plan.closure, SUM)
    # A marginal alone has variance 1: Σ w / c is smallest at c ∝ √w.
    roots = np.sqrt(MARGINALS.weights)
    np.testing.assert_allclose(np.exp(found.mean), np.sum(roots) / roots, rtol=1e-9)


def test_fourier_coefficients():
    found = NAMED["fourier"].variances(MARGINALS, planned(MARGINALS, SUM).closure, SUM)
    modes = [np.exp(2j * np.pi * np.outer(range(n), range(n)) / n) for n in (5, 2, 3)]
    needed = {
        index
        for table in TABLES
        for index in np.ndindex(5, 2, 3)
        if all(i == 0 or name in table for i, name in zip(index, DOMAIN.names, strict=True))
    }
    measured = np.array(
        [reduce(np.kron, [mode[i] for mode, i in zip(modes, index, strict=True)])
         for index in sorted(needed)]
    )  # fmt: skip
    sensitivity = np.max(np.linalg.norm(measured, axis=0))
    inverse = np.linalg.pinv(measured)
    covariance = (inverse @ inverse.conj().T).real * sensitivity**2
    mean = [
        np.mean(np.diag(queries(MARGINALS, row) @ covariance @ queries(MARGINALS, row).T))
        for row in range(len(MARGINALS))
    ]
    np.testing.assert_allclose(np.exp(found.mean), mean, rtol=1e-9)


@pytest.mark.parametrize("loss", [SUM, rp.PNorm(p=4), LARGEST], ids=["sum", "norm", "largest"])
def test_best_marginals_are_a_convex_optimum(loss):
    import cvxpy as cp

    plan = planned(MARGINALS, loss)
    found = NAMED["marginals"].variances(MARGINALS, plan.closure, loss)
    sizes = np.array([5, 2, 3])
    sets = [np.array(bits, dtype=bool) for bits in np.ndindex(2, 2, 2)]
    shares = cp.Variable(8, nonneg=True)
    variances = []
    for row in range(len(MARGINALS)):
        table = np.isin(range(3), MARGINALS.attribute_indices(row))
        terms = []
        for inner in sets:
            if np.any(inner & ~table):
                continue
            coefficients = [
                0.0 if np.any(inner & ~outer) else 1 / np.prod(sizes[outer & ~inner])
                for outer in sets
            ]
            pairs = np.prod(sizes[inner] - 1.0) / np.prod(sizes[table]) ** 2 * np.prod(sizes[inner])
            terms.append(pairs * cp.inv_pos(np.array(coefficients) @ shares))
        variances.append(cp.sum(terms))
    weighted = [weight * each for weight, each in zip(MARGINALS.weights, variances, strict=True)]
    norms = {SUM: cp.sum, LARGEST: cp.max}
    objective = norms.get(loss, lambda values: cp.pnorm(values, 4))(cp.hstack(weighted))
    best = cp.Problem(cp.Minimize(objective), [cp.sum(shares) <= 1]).solve(solver="CLARABEL")
    assert loss.value(np.exp(found.mean), MARGINALS) == pytest.approx(best, rel=2e-3)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("tables", "loss"),
    [
        (CUMULATIVE, SUM),
        (MARGINALS, LARGEST),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [
                (CUMULATIVE, LARGEST),
                (CUMULATIVE, rp.PNorm(p=4)),
                (MARGINALS, SUM),
                (MARGINALS, rp.PNorm(p=4)),
            ]
        ),
    ],
)
def test_best_product_is_a_minimum_over_all_scales(tables, loss):
    from scipy.optimize import minimize

    plan = planned(tables, loss)
    found = NAMED["product"].variances(tables, plan.closure, loss)
    strategy = plan.closure.strategies.get(0)
    residuals = [np.eye(n) - 1 / n for n in (5, 2, 3)]
    if strategy is not None:
        residuals[0] = strategy.matrix / np.sqrt(float(strategy.cost_factor))

    def loss_at(logs: np.ndarray) -> float:
        factors = [
            np.vstack([np.ones((1, n)), np.exp(log) * residual])
            for n, log, residual in zip((5, 2, 3), logs, residuals, strict=True)
        ]
        mean, largest = dense(tables, reduce(np.kron, factors))
        values = largest if loss.looks_at_least_accurate_cells else mean
        return np.log(loss.value(np.array(values), tables))

    best = minimize(loss_at, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-6})
    value = loss.value(np.exp(found.of_loss(loss)), tables)
    assert np.log(value) == pytest.approx(best.fun, abs=5e-3)
    assert value >= plan.loss_value * (1 - 1e-6)


def test_data_cube_merges_small_tables():
    domain = rp.Domain.from_sizes({"a": 2, "b": 2, "c": 2, "d": 2, "e": 40})
    tables = rp.Workload.all_of_order(domain, 2)
    by_cells = rp.SumOfVariances(weighting="cells")
    found = NAMED["data-cube"].variances(tables, planned(tables, by_cells).closure, by_cells)
    # The four tables with e, and one of the four others, of which the six without e are sums.
    measured = rp.Workload.of(domain, [*map(tuple, ("ae", "be", "ce", "de", "abcd"))])
    every = np.vstack([queries(measured, row) for row in range(len(measured))])
    wanted, _ = dense(tables, every)
    np.testing.assert_allclose(np.exp(found.mean), wanted, rtol=1e-9)


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda baseline: baseline.name)
@pytest.mark.parametrize("tables", [MARGINALS, MIXED], ids=["marginals", "mixed"])
@pytest.mark.parametrize("loss", [SUM, LARGEST], ids=["sum", "largest"])
def test_none_is_better_than_the_plan_nor_below_the_bound(baseline, tables, loss):
    plan = planned(tables, loss)
    bound = SingularValues("bound", "", "").variances(tables, plan.closure, loss)
    try:
        found = baseline.variances(tables, plan.closure, loss)
    except UnsuitableError:
        assert (baseline.name, tables is MARGINALS, loss is SUM) in UNSUITABLE
        return
    assert found.ratio(loss, tables, plan.loss_value) > -1e-5
    assert np.all(found.mean >= bound.mean - 1e-9)
    assert np.all(found.largest >= found.mean - 1e-9)
    assert np.all(np.log(plan.mean_variances) >= bound.mean)


def test_error_of_p_identity_strategies_and_its_gradient():
    gram = np.tril(np.ones((6, 6))).T @ np.tril(np.ones((6, 6)))
    theta = np.linspace(0.1, 1.9, 12) ** 2 % 1
    rows = np.vstack([np.eye(6), theta.reshape(2, 6)])
    measured = rows / np.sum(rows, axis=0)
    value, gradient = _error(theta, gram)
    assert value == pytest.approx(np.trace(gram @ np.linalg.inv(measured.T @ measured)))
    steps = 1e-6 * np.eye(12)
    slopes = [(_error(theta + h, gram)[0] - _error(theta - h, gram)[0]) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5)


@pytest.mark.parametrize("basis", [rp.Windows(32), rp.Windows(5), rp.Ranges()])
def test_p_identity_strategies_are_not_below_their_bound(basis):
    """Digits cancel in large sums: errors came out negative, and the smallest was taken."""
    gram = query_matrix(basis, rp.Attribute("a", rp.Integers(1, 64))).operator.gram
    least = np.sum(np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0))) ** 2 / 64
    assert least * (1 - 1e-6) <= np.sum(gram * p_identity(64, gram).covariance(1)) < 4 * least


@pytest.mark.parametrize("loss", [SUM, LARGEST], ids=["sum", "largest"])
def test_no_other_shares_of_epsilon_are_better_for_tables_with_laplace_noise(loss):
    found = LAPLACE["one-by-one"].variances(MARGINALS, Closure.of(MARGINALS), loss)
    shares, rng = np.exp(-found.mean / 2), np.random.default_rng(0)
    assert np.sum(shares) == pytest.approx(1)
    for _ in range(20):
        other = shares * rng.uniform(0.9, 1.1, len(shares))
        other = (other / other.sum()) ** -2.0
        assert loss.value(other, MARGINALS) >= loss.value(np.exp(found.mean), MARGINALS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "loss", [SUM, pytest.param(rp.PNorm(4), marks=pytest.mark.nightly)], ids=["sum", "norm"]
)
def test_the_product_of_totals_and_cells_is_the_best_of_a_grid(loss):
    best = np.inf
    for theta in np.stack(np.meshgrid(*[np.linspace(0, 3, 13)] * 3), -1).reshape(-1, 3):
        factors = [
            np.vstack([np.eye(n), np.full((1, n), one)]) / (1 + one)
            for n, one in zip(DOMAIN.sizes.tolist(), theta, strict=True)
        ]
        measured = reduce(np.kron, factors)
        covariance = np.linalg.inv(measured.T @ measured)
        each = [queries(MARGINALS, row) for row in range(len(MARGINALS))]
        variances = np.array([np.mean(np.sum((one @ covariance) * one, axis=1)) for one in each])
        best = min(best, loss.value(variances, MARGINALS))
    found = LAPLACE["totals"].variances(MARGINALS, Closure.of(MARGINALS), loss)
    assert 0.97 * best < loss.value(np.exp(found.mean), MARGINALS) <= best * (1 + 1e-9)


def test_marginals_with_laplace_noise_are_those_stated():
    """A choice of marginals: as many as were chosen, each at a share of ε; all cells by hand."""
    domain = rp.Domain.from_sizes({"a": 10, "b": 10, "c": 10})
    tables = rp.Workload.all_of_order(domain, 1)
    # Three tables of 10 cells at a third of ε each: variance 9. By least squares what is beside the
    # total keeps 8.1, and the total comes from all three: 90 / 3 / 10².
    for name, wanted in (("data-cube", 8.1 + 0.3), ("marginals", 8.1 + 0.3)):
        found = np.exp(LAPLACE[name].variances(tables, Closure.of(tables), SUM).mean)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("order", [2, 3])
def test_best_marginals_with_laplace_noise_are_no_worse_than_a_data_cube(order):
    """Its marginals are a start: from all marginals alone, steps came to 1.05 and 1.4 of it."""
    domain = rp.Domain.from_sizes({"a": 50, "b": 100, "c": 7, "d": 4, "e": 2})
    tables, cells = rp.Workload.all_up_to(domain, order), rp.SumOfVariances(weighting="cells")
    losses = []
    for name in ("marginals", "data-cube"):
        found = LAPLACE[name].variances(tables, Closure.of(tables), cells)
        losses.append(np.sqrt(np.sum(tables.cells * np.exp(found.mean))))
    assert losses[0] < 0.98 * losses[1]


def test_ratio_of_losses_is_found_where_floats_end():
    tables = rp.Workload.all_of_order(rp.Domain.from_sizes({f"a{i}": 10 for i in range(400)}), 1)
    plan = planned(tables, SUM)
    found = NAMED["cells"].variances(tables, plan.closure, SUM)
    ratio = found.ratio(SUM, tables, plan.loss_value)
    expected = 399 * np.log(10) - np.log(plan.mean_variances[0])
    assert ratio == pytest.approx(expected, abs=1e-5)


def test_a_data_cube_is_not_looked_for_where_that_takes_minutes():
    """All pairs of 5,000 tables by 5,000 attributes are 1.25e11."""
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({f"a{i}": 2 for i in range(5000)}), 1)
    with pytest.raises(UnsuitableError, match="only where they are found in a moment"):
        DataCube("cube", "", "").variances(workload, Closure.of(workload), rp.SumOfVariances())
