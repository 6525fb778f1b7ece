"""The search for strategies: better with every step, serving all ways of asking, and bounded."""

from functools import partial

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning import optimal_strategies, strategies
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.optimal_strategies import strategy_bound, with_best_strategies
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.planning.solvers.strategy_matrix import best_matrix
from rpexplore.planning.strategies import StrategyCache, StrategySearch
from rpexplore.workload.table_text import query_matrix as rp_questions
from tests.support.explicit_optimum import dense_queries, lower_bound
from tests.support.generalised import measured_matrix, table_matrix

SUM, LARGEST = rp.SumOfVariances("cells"), rp.MaxVariance()


def workload(sizes, bases, order):
    names = [f"a{i}" for i in range(len(sizes))]
    domain = rp.Domain.from_sizes(dict(zip(names, sizes, strict=True)))
    return rp.Workload.all_up_to(domain, order).with_bases(dict(zip(names, bases, strict=True)))


MIXED = workload([6, 5, 4, 3], [rp.Prefix(), rp.Ranges(), rp.Identity(), rp.Hierarchy((2,))], 2)


def exact_weighted_optimum(tables_of_bases, table_weights):
    """The smallest Σ weight · mean cell variance of any Gaussian mechanism at privacy cost 1."""
    queries, tables = dense_queries(tables_of_bases)
    weights = table_weights[tables] / tables_of_bases.cells[tables]
    return lower_bound(queries.T @ (queries * weights[:, None]))


def test_the_value_of_a_search_is_that_of_the_plan():
    weights = SUM.table_weights(MIXED)
    closure = Closure.of(MIXED)
    search = StrategySearch(MIXED, closure, weights, keep_references=False)
    search.start({})
    before = search.value()
    for _ in range(3):
        search.sweep()
        assert search.value() <= before * (1 + 1e-12)
        before = search.value()
    solved = optimum(MIXED, loss=SUM)
    assert solved.solution.lower_bound == pytest.approx(before**2, rel=2e-3)
    assert solved.solution.lower_bound >= before**2 * (1 - 1e-4)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("weighting", ["equal", "cells", "sqrt"])
def test_mixed_bases_come_close_to_the_exact_optimum(weighting):
    loss = rp.SumOfVariances(weighting)
    plan = plan_tables(MIXED, loss=loss, budget=rp.Budget(privacy_cost=1))
    exact = exact_weighted_optimum(MIXED, loss.table_weights(MIXED))
    assert exact * (1 - 1e-6) <= plan.loss_value <= exact * 1.02


def test_an_optimised_reference_is_better_and_an_even_one_is_even():
    best = plan_tables(MIXED, loss=SUM, budget=rp.Budget(privacy_cost=1))
    uniform = plan_tables(MIXED, loss=SUM, budget=rp.Budget(privacy_cost=1), uniform_reference=True)
    assert best.loss_value < uniform.loss_value * 0.995
    for index, strategy in uniform.closure.strategies.items():
        assert not np.any(strategy.integers.sum(axis=1))
        size = MIXED.domain.sizes[index]
        np.testing.assert_allclose(strategy.reference, 1 / size, rtol=1e-9)
    assert any(np.any(each.integers.sum(axis=1)) for each in best.closure.strategies.values())


def test_one_strategy_serves_all_ways_of_asking():
    """Better for a workload that asks in two ways than a strategy made for one of them."""
    domain = rp.Domain.from_sizes({"age": 8, "sex": 2, "region": 4})
    both = rp.Workload.all_of_order(domain, 2).with_bases({"age": rp.Prefix()})
    both = both.with_bases({"age": rp.Ranges()}, tables=[("age", "sex")])
    assert [len(listed) for listed in both.bases] == [2, 1, 1]
    solved = optimum(both, loss=SUM)
    exact = exact_weighted_optimum(both, SUM.table_weights(both))
    assert exact * (1 - 1e-6) <= solved.solution.lower_bound <= exact * 1.03
    for basis in (rp.Prefix(), rp.Ranges()):
        one = rp.Workload.all_of_order(domain, 2).with_bases({"age": basis})
        strategies = optimum(one, loss=SUM).closure.strategies
        other = optimum(both, loss=SUM, strategies=strategies)
        assert solved.solution.lower_bound < other.solution.lower_bound * (1 + 1e-4)


def test_attributes_of_equal_size_and_different_bases_do_not_interact():
    """Alone in its table, each gets what it gets with the other one asked in any way."""
    domain = rp.Domain.from_sizes({"a": 6, "b": 6})
    one = rp.Workload.of(domain, ["a"]).with_bases({"a": rp.Prefix()})
    two = rp.Workload.of(domain, ["a", "b"]).with_bases({"a": rp.Prefix(), "b": rp.Ranges()})
    swapped = rp.Workload.of(domain, ["a", "b"]).with_bases({"b": rp.Prefix(), "a": rp.Ranges()})
    strategies = optimum(two, loss=SUM).closure.strategies
    others = optimum(swapped, loss=SUM).closure.strategies
    assert not np.array_equal(strategies[0].integers, strategies[1].integers)
    # The same matrix up to rounding, whichever of the two places it stands at.
    for index in (0, 1):
        solved, other = (
            each.matrix.T @ each.matrix for each in (strategies[index], others[1 - index])
        )
        np.testing.assert_allclose(solved, other, atol=2e-2)
    assert one.bases == ((rp.Prefix(),), ())


def test_attributes_that_are_alike_share_a_strategy():
    alike = workload([6, 6, 6], [rp.Prefix()] * 3, 2)
    strategies = with_best_strategies(alike, Closure.of(alike), np.ones(len(alike))).strategies
    assert strategies[0] is strategies[1] is strategies[2]
    weighted = alike.with_weights({("a0",): 50.0})
    closure = with_best_strategies(weighted, Closure.of(weighted), weighted.weights)
    strategies = closure.strategies
    assert strategies[1] is strategies[2] is not strategies[0]


@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=pytest.mark.nightly) for n in (4, 5))])
@pytest.mark.parametrize(
    "loss", [SUM, pytest.param(LARGEST, marks=pytest.mark.nightly)], ids=["sum", "largest"]
)
def test_the_bound_on_other_strategies_is_close_and_holds(loss, seed):
    weights = loss.table_weights(MIXED)
    plan = plan_tables(MIXED, loss=loss, budget=rp.Budget(privacy_cost=1))
    bound = strategy_bound(MIXED, plan.closure, weights, largest=loss.looks_at_least_accurate_cells)
    assert bound <= plan.loss_value <= bound * (1.02 if loss is LARGEST else 1.001)
    rng, others = np.random.default_rng(seed), {}
    for index, strategy in plan.closure.strategies.items():
        # Rows mixed by integers: the same reference distribution, another matrix.
        n = strategy.size
        mixed = np.eye(n - 1, dtype=int) + rng.integers(0, 2, (n - 1, n - 1)) * np.tri(
            n - 1, k=-1, dtype=int
        )
        others[index] = Strategy(mixed @ strategy.integers, strategy.bits)
        np.testing.assert_allclose(others[index].reference, strategy.reference, atol=1e-9)
    other = optimum(MIXED, loss=loss, strategies=others)
    assert other.loss.value(other.table_variances.of_loss(loss), MIXED) >= bound


def test_strategies_for_the_largest_variance_are_better_at_it():
    largest = plan_tables(MIXED, loss=LARGEST, budget=rp.Budget(privacy_cost=1))
    of_sum = optimum(MIXED, loss=SUM).closure.strategies
    other = optimum(MIXED, loss=LARGEST, strategies=of_sum)
    assert largest.loss_value < np.max(other.table_variances.largest) * 0.99


def test_progress_is_reported_from_the_start_and_may_end_the_search(monkeypatch):
    weights, shares = np.full(len(MIXED), 2.0), []
    with_best_strategies(
        MIXED, Closure.of(MIXED), weights, on_progress=lambda _, share: shares.append(share)
    )
    assert 0 <= shares[0] < 0.5 < shares[-1] <= 1
    assert shares == sorted(shares)

    class Stop(Exception):
        pass

    def stop(doing, share):
        raise Stop

    begun = []
    monkeypatch.setattr(StrategySearch, "sweep", lambda search, on_share: begun.append(search))
    with pytest.raises(Stop):
        with_best_strategies(MIXED, Closure.of(MIXED), np.full(len(MIXED), 3.0), on_progress=stop)
    assert begun == []  # it ended while the start was looked for


def test_what_was_found_is_not_searched_for_again(monkeypatch):
    weights = np.full(len(MIXED), 5.0)
    first = with_best_strategies(MIXED, Closure.of(MIXED), weights).strategies
    monkeypatch.setattr(optimal_strategies, "StrategySearch", None)  # a search would fail
    again = with_best_strategies(MIXED, Closure.of(MIXED), weights).strategies
    assert again.keys() == first.keys()
    for index, strategy in first.items():
        np.testing.assert_array_equal(again[index].integers, strategy.integers)
        assert again[index].bits == strategy.bits
    search = partial(with_best_strategies, MIXED, Closure.of(MIXED))
    for other in (
        partial(search, weights * 1.5),
        partial(search, weights, uniform_reference=True),
        partial(search, weights, largest=True),
    ):
        with pytest.raises(TypeError):
            other()


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"source 0": np.array([0, 12])},
        {"source 0": np.array([0, 12]), "matrix 0": np.zeros((5, 6), dtype=int)},
        {"source 0": np.array([0, 12]), "matrix 0": np.eye(3, dtype=int)[1:]},
        {"source 0": np.array([0, 12, 1]), "matrix 0": np.eye(6, dtype=int)[1:]},
    ],
    ids=["empty", "no matrix", "singular", "another size", "another shape"],
)
def test_a_cache_that_holds_something_else_is_ignored(monkeypatch, broken):
    cache = StrategyCache(None)
    monkeypatch.setattr(optimal_strategies, "user_cache", lambda: cache)
    monkeypatch.setattr(cache, "get", lambda key: broken)
    closure = with_best_strategies(MIXED, Closure.of(MIXED), np.ones(len(MIXED)))
    assert sorted(closure.strategies) == [0, 1, 3]


def test_the_best_matrix_of_a_basis_is_kept_as_a_start(monkeypatch):
    """What is kept only saves time: with a wrong start, the same comes out, certified."""
    cache = StrategyCache(None)
    for module in (strategies, optimal_strategies):
        monkeypatch.setattr(module, "user_cache", lambda: cache)
    tables_of_bases = workload([40, 3], [rp.Prefix(), rp.Identity()], 2)
    gram = rp_questions(rp.Prefix(), tables_of_bases.domain["a0"]).operator.gram / 40
    solved = strategies.best_uniform_matrix(gram)
    starts = []

    def recording(gram, *, value_weights, **others):
        starts.append(value_weights)
        return best_matrix(gram, value_weights=value_weights, **others)

    monkeypatch.setattr(strategies, "best_matrix", recording)
    again = strategies.best_uniform_matrix(gram)
    assert starts[0] is not None
    np.testing.assert_allclose(starts[0], solved.value_weights)
    assert again.root == pytest.approx(solved.root, rel=1e-6)
    key = next(iter(cache._arrays))
    cache.put(key, {"value_weights": np.linspace(1, 9, 40)})
    off = strategies.best_uniform_matrix(gram)
    assert off.root == pytest.approx(solved.root, rel=1e-6)
    assert off.root <= off.lower_bound * (1 + 1e-6)


def test_questions_beyond_the_digits_of_a_computer_are_refused_by_name(monkeypatch):
    """Where the digits end differs from processor to processor, so the end is feigned here."""

    def give_up(search, references, on_share):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(strategies.StrategySearch, "start", give_up)
    rows = ((1, -1, 0, 0), (0, 1, -1, 0), (0, 0, 1, -1), (3,) * 4)
    domain = rp.Domain.from_sizes({"wide": 4, "sex": 2})
    tables_of_bases = rp.Workload.all_up_to(domain, 2).with_bases({"wide": rp.CustomBasis(rows)})
    with pytest.raises(rp.errors.RpexploreError, match=r"for 'wide': .* Scale them alike"):
        plan_tables(tables_of_bases, loss=SUM, budget=rp.Budget(privacy_cost=1))


def test_questions_of_very_different_size_are_planned_right_or_refused():
    rows = ((1, -1, 0, 0), (0, 1, -1, 0), (0, 0, 1, -1), (1e9,) * 4)
    domain = rp.Domain.from_sizes({"wide": 4, "sex": 2})
    tables_of_bases = rp.Workload.all_up_to(domain, 2).with_bases({"wide": rp.CustomBasis(rows)})
    try:
        plan = plan_tables(tables_of_bases, loss=SUM, budget=rp.Budget(privacy_cost=1))
    except rp.errors.RpexploreError as error:
        outcome = str(error)
    else:
        outcome = str(rp.verify(plan))
    assert "Scale them alike" in outcome or "FAIL" not in outcome


def test_a_table_of_differences_is_planned_beside_another_basis_of_its_attribute():
    """Of (1, −1) noise on the total does not count, while another table needs the total."""
    domain = rp.Domain.from_sizes({"a": 2, "b": 2, "c": 3})
    counts, difference = rp.CustomBasis([[1, 0], [1, 0], [0, 1]]), rp.CustomBasis([[2, -2]])
    for others in (("a", "c"), ("a", "b", "c")):
        asked = rp.Workload.of(domain, [("a",), others])
        asked = asked.with_bases({"a": counts}).with_bases({"a": difference}, tables=[others])
        plan = plan_tables(asked, loss=SUM, budget=rp.Budget(privacy_cost=1))
        exact = exact_weighted_optimum(asked, SUM.table_weights(asked))
        assert plan.loss_value == pytest.approx(exact, rel=1e-5)
        assert rp.verify(plan).holds


def matrix_of_low_rank(rng, n):
    """Groups, overlapping groups, products of low rank, the total beside a weight for each value:
    whatever does not determine the count of every value."""
    while True:
        rank, kind = int(rng.integers(1, n)), int(rng.integers(5))
        if kind == 0:
            rows = np.equal.outer(np.arange(rank), rng.integers(0, rank, n))
        elif kind == 1:
            rows = rng.integers(0, 2, (rank, n))
        elif kind == 2:
            rows = rng.integers(-1, 2, (rank + 1, rank)) @ rng.integers(-1, 3, (rank, n))
        elif kind == 3:
            rows = rng.normal(size=(rank + 2, rank)) @ rng.normal(size=(rank, n))
        else:
            rows = np.vstack([np.ones(n), rng.integers(0, 3, n)])[: int(rng.integers(1, 3))]
        rows = np.array(rows, dtype=float)
        rows = rows[rows.any(axis=1)]
        if len(rows) and np.linalg.matrix_rank(rows) < n:
            return rp.CustomBasis(rows.tolist())


def tables_of_low_rank(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    sizes = {f"a{i}": int(rng.integers(3, {1: 10, 2: 6, 3: 5}[d])) for i in range(d)}
    make = rp.Workload.all_up_to if rng.integers(2) else rp.Workload.all_of_order
    asked = make(rp.Domain.from_sizes(sizes), int(rng.integers(1, d + 1)))
    own = [name for i, name in enumerate(sizes) if i == 0 or rng.integers(3)]
    return asked.with_bases({name: matrix_of_low_rank(rng, sizes[name]) for name in own})


def test_own_matrices_of_any_rank_are_planned_close_to_the_exact_optimum():
    ratios = []
    for seed in range(20):
        asked = tables_of_low_rank(seed)
        plan = plan_tables(asked, loss=SUM, budget=rp.Budget(privacy_cost=1))
        queries, tables = dense_queries(asked)
        weights = SUM.table_weights(asked)[tables] / asked.cells[tables]
        # From the distinct columns alone: cells that no query tells apart cost what one costs.
        distinct = np.unique(queries, axis=1)
        exact = lower_bound((distinct * weights[:, None]).T @ distinct, 1e-4)
        ratios.append(plan.loss_value / exact)
        assert plan.certificate.gap < 1e-6
    assert min(ratios) >= 1 - 1e-6
    assert np.median(ratios) <= 1.001
    assert sorted(ratios)[-2] <= 1.002
    # One of them has three tables that each ask a single sum of two attributes.
    assert max(ratios) <= 1.08


@pytest.mark.parametrize("loss", [SUM, LARGEST, rp.PNorm(3)], ids=["sum", "largest", "norm"])
@pytest.mark.parametrize("seed", [3, 8, 10, 15, 19])
def test_variances_of_own_matrices_of_any_rank_are_those_of_dense_matrices(seed, loss):
    """Where a table asks nothing of the total, or nothing but it, noise has no limit by the loss:
    a largest variance would let it fill whatever room a table has."""
    asked = tables_of_low_rank(seed)
    plan = plan_tables(asked, loss=loss, budget=rp.Budget(privacy_cost=1))
    scales, rows, noise = plan.sigma_squared.floats, [], []
    for residual, scale in enumerate(scales.tolist()):
        matrix, covariance = measured_matrix(plan.closure, plan.closure.attributes(residual))
        rows.append(np.linalg.solve(np.linalg.cholesky(covariance), matrix))
        noise += [scale] * len(matrix)
    measured = np.vstack(rows)
    cells = CellVariances(asked, plan.closure)
    for position in range(len(asked)):
        queries = table_matrix(asked, position)
        decoding = np.linalg.lstsq(measured.T, queries.T)[0].T
        np.testing.assert_allclose(decoding @ measured, queries, atol=1e-8)  # unbiased
        decoding[np.abs(decoding) < 1e-11] = 0  # rounding, times noise without limit
        stated = cells.variances_of(position, scales)
        np.testing.assert_allclose(stated.ravel(), decoding**2 @ np.array(noise), rtol=1e-7)
