"""Nonnegative tables against CVXPY on dense matrices, and against what makes an optimum one."""

from itertools import chain, combinations
from unittest.mock import patch

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rpexplore.domain.domain import subsets
from rpexplore.domain.structural_zeros import StructuralZeros
from rpexplore.errors import ReleaseError
from rpexplore.estimation import active_cells, cell_coupling
from rpexplore.estimation import nonnegative as nonnegative_module
from rpexplore.estimation.cell_coupling import CellCoupling
from rpexplore.estimation.nonnegative import GAP, nonnegative
from rpexplore.estimation.table_map import TableMap
from rpexplore.planning.mechanism.reconstruction import marginal
from tests.support.generalised import any_strategy
from tests.support.oracles import kron


def family_of(tables):
    return sorted(set(chain.from_iterable(subsets(table) for table in tables)), key=len)


def axis_matrices(attribute_index, sizes, strategies):
    """(z, D, R) of an attribute: how its total spreads, and its residual's coordinates."""
    n = int(sizes[attribute_index])
    if attribute_index in strategies:
        matrix = strategies[attribute_index].matrix
        inverse = np.linalg.inv(np.vstack([np.ones(n), matrix]))
        return inverse[:, :1], inverse[:, 1:], matrix
    # An orthonormal basis of what sums to 0: covariance I − 11ᵀ/n is noise of variance 1 on it.
    basis = np.linalg.svd(np.eye(n) - 1 / n)[0][:, : n - 1]
    return np.full((n, 1), 1 / n), basis, basis.T


def dense_map(table, subset, sizes, strategies):
    """M_T on the coordinates of one residual, [cells(T), coordinates]."""
    factors = []
    for attribute_index in table:
        spread, decoding, _ = axis_matrices(attribute_index, sizes, strategies)
        factors.append(decoding if attribute_index in subset else spread)
    return kron(factors)


def coordinates(subset, values, sizes, strategies):
    return kron([axis_matrices(i, sizes, strategies)[2] for i in subset]) @ values.ravel()


def drawn(tables, sizes, strategies, seed, noise=3.0):
    """Contributions of small counts with noise."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 3.0, sizes)).astype(float)
    values = {}
    for subset in family_of(tables):
        spread = [axis_matrices(i, sizes, strategies) for i in subset]
        table = counts.sum(axis=tuple(i for i in range(len(sizes)) if i not in subset))
        exact = kron([decoding @ matrix for _, decoding, matrix in spread]) @ table.ravel()
        noisy = kron([decoding for _, decoding, _ in spread])
        shape = [int(sizes[i]) for i in subset]
        values[subset] = (exact + noise * noisy @ rng.normal(size=noisy.shape[1])).reshape(shape)
    return values


def dense_optimum(contributions, tables, sizes, strategies, zeros=None, kept=()):
    """The smallest distance, by an interior-point method on explicit matrices."""
    unknown = {
        subset: cp.Variable(int(np.prod([sizes[i] - 1 for i in subset], dtype=int)))
        for subset in contributions
    }
    wanted = {
        subset: coordinates(subset, values, sizes, strategies)
        for subset, values in contributions.items()
    }
    constraints = []
    for table in tables:
        values = sum(
            dense_map(table, subset, sizes, strategies) @ unknown[subset]
            for subset in subsets(table)
        )
        constraints.append(values >= 0)
        possible = None if zeros is None else zeros.possible(table)
        if possible is not None:
            constraints.append(values[np.flatnonzero(~possible)] == 0)
    constraints.append(unknown[()] == max(float(contributions[()]), 0.0))
    constraints += [unknown[subset] == wanted[subset] for subset in kept if subset]
    distance = sum(
        cp.sum_squares(unknown[subset] - wanted[subset]) for subset in contributions if subset
    )
    problem = cp.Problem(cp.Minimize(distance), constraints)
    problem.solve(solver="CLARABEL")
    optimum = {subset: np.asarray(each.value) for subset, each in unknown.items()}
    return float(np.asarray(problem.value, dtype=float)), optimum


@st.composite
def problems(draw, *, with_strategies: bool):
    sizes = np.array(draw(st.lists(st.integers(2, 4), min_size=1, max_size=4)))
    subset = range(len(sizes))
    sets = [s for k in range(len(sizes) + 1) for s in combinations(subset, k) if len(s) <= 3]
    tables = draw(st.lists(st.sampled_from(sets), min_size=1, max_size=4, unique=True))
    seed = draw(st.integers(0, 2**32))
    chosen = draw(st.sets(st.sampled_from(list(subset)))) if with_strategies else set()
    strategies = {
        attribute_index: any_strategy(int(sizes[attribute_index]), seed)
        for attribute_index in chosen
    }
    return sizes, tables, strategies, seed


@given(problems(with_strategies=False))
@settings(deadline=None, max_examples=20)
def test_it_is_the_optimum_up_to_the_gap(problem):
    check_optimum(*problem)


@given(problems(with_strategies=True))
@settings(deadline=None, max_examples=20)
def test_it_is_the_optimum_with_strategies_too(problem):
    check_optimum(*problem)


@given(problems(with_strategies=False))
@settings(deadline=None, max_examples=15)
def test_it_is_the_optimum_where_cells_are_impossible(problem):
    check_optimum(*problem, impossible(*problem))


@given(problems(with_strategies=True))
@settings(deadline=None, max_examples=15)
def test_it_is_the_optimum_where_cells_are_impossible_with_strategies_too(problem):
    check_optimum(*problem, impossible(*problem))


def impossible(sizes, tables, strategies, seed):
    """One value of each attribute of two of the tables; the last record of all stays possible."""
    rng = np.random.default_rng(seed)
    conditions = []
    for table in tables[:2]:
        if table:
            values = {i: np.arange(sizes[i]) == rng.integers(sizes[i] - 1) for i in table}
            conditions.append(values)
    return StructuralZeros(tuple(sizes.tolist()), tuple(conditions))


def check_optimum(sizes, tables, strategies, seed, zeros=None):
    contributions = drawn(tables, sizes, strategies, seed)
    solution, dense, allowed = nearest(contributions, tables, sizes, strategies, zeros)
    assert solution.contributions[()] == max(float(contributions[()]), 0.0)
    # Strong convexity: the distance to the optimum is within the gap.
    off = sum(
        np.sum((coordinates(subset, values, sizes, strategies) - dense[subset]) ** 2)
        for subset, values in solution.contributions.items()
    )
    assert off <= solution.distance * solution.gap + 2 * allowed
    for table in TableMap(contributions, sizes, strategies).tables if zeros is None else ():
        cells = marginal(table, sizes, within(table, solution.contributions), strategies)
        assert cells.min() >= 0


def nearest(contributions, tables, sizes, strategies, zeros=None, kept=()):
    """The solution, checked; the dense optimum; and what the interior-point method is off by."""
    solution = nonnegative(contributions, sizes, strategies, zeros=zeros, kept=kept, gap=1e-6)
    value, dense = dense_optimum(contributions, tables, sizes, strategies, zeros, kept)
    scale = sum(float(np.sum(values**2)) for values in contributions.values())
    allowed = 1e-6 * scale + 1e-9
    assert value - allowed <= solution.distance <= value / (1 - solution.gap) + allowed
    for subset in kept:
        np.testing.assert_array_equal(solution.contributions[subset], contributions[subset])
    for table in tables:
        cells = marginal(table, sizes, within(table, solution.contributions), strategies)
        possible = None if zeros is None else zeros.possible(table)
        assert cells.min() >= -1e-12 * np.sqrt(scale)
        if possible is not None:
            assert np.abs(cells[~possible]).max() <= 1e-12 * np.sqrt(scale)
    return solution, dense, allowed


@given(problems(with_strategies=False))
@settings(deadline=None, max_examples=20)
def test_exact_totals_stay_and_the_rest_is_nearest(problem):
    sizes, tables, _, seed = problem
    rng = np.random.default_rng(seed)
    exact = tables[rng.integers(len(tables))][: rng.integers(1, 3)]
    kept = list(subsets(exact))
    true, contributions = (drawn(tables, sizes, {}, seed, noise=noise) for noise in (0.0, 3.0))
    contributions |= {subset: true[subset] for subset in kept}
    assume(true[()] > 0)
    nearest(contributions, tables, sizes, {}, kept=kept)


@given(problems(with_strategies=False))
@settings(deadline=None, max_examples=20)
def test_exact_totals_stay_where_cells_are_impossible_too(problem):
    """Several totals, of counts that have no record in impossible cells."""
    sizes, tables, _, seed = problem
    zeros, rng = impossible(*problem), np.random.default_rng(seed)
    true = rng.poisson(rng.gamma(0.5, 4.0, sizes)).astype(float)
    for condition in zeros.conditions:
        true[
            np.ix_(*(np.flatnonzero(condition.get(i, np.ones(n))) for i, n in enumerate(sizes)))
        ] = 0
    assume(true.sum() > 0)
    totals = [table[: rng.integers(1, 3)] for table in tables]
    kept = sorted({subset for total in totals for subset in subsets(total)})
    family = TableMap(family_of(tables), sizes, {})
    exact = {
        subset: family.decomposed(
            subset, true.sum(axis=tuple(i for i in range(len(sizes)) if i not in subset))
        )
        for subset in family.family
    }
    contributions = drawn(tables, sizes, {}, seed) | {subset: exact[subset] for subset in kept}
    nearest(contributions, tables, sizes, {}, zeros, kept)


def test_what_is_measured_without_error_stays_where_cells_are_impossible():
    """Counts that have no record there are their own nearest tables: nothing moves."""
    zeros = StructuralZeros(
        tuple(SIZES.tolist()),
        ({0: np.arange(3) == 1, 1: np.arange(4) > 1}, {1: np.arange(4) == 3, 3: np.arange(5) < 2}),
    )
    counts = np.random.default_rng(1).poisson(5.0, SIZES).astype(float)
    counts[1, 2:], counts[:, 3, :, :2] = 0, 0
    tables = TableMap(family_of(PAIRS), SIZES, {})
    exact = {
        subset: tables.decomposed(
            subset, counts.sum(axis=tuple(axis for axis in range(4) if axis not in subset))
        )
        for subset in tables.family
    }
    solution = nonnegative(exact, SIZES, {}, zeros=zeros).contributions
    for subset, values in exact.items():
        np.testing.assert_allclose(solution[subset], values, atol=1e-9)


def within(table, contributions):
    return {subset: contributions[subset] for subset in subsets(table)}


SIZES = np.array([3, 4, 2, 5])
PAIRS = list(combinations(range(4), 2))


def pairs(seed=0, noise=3.0):
    return drawn(PAIRS, SIZES, {}, seed, noise)


def test_tables_agree_on_what_they_share():
    solution = nonnegative(pairs(), SIZES, {}).contributions
    for table, other in combinations(PAIRS, 2):
        for attribute_index in set(table) & set(other):
            sums = [
                marginal(each, SIZES, within(each, solution), {}).sum(
                    axis=1 - each.index(attribute_index)
                )
                for each in (table, other)
            ]
            np.testing.assert_allclose(*sums, rtol=0, atol=1e-10)


def test_the_conditions_of_an_optimum_hold():
    """Where a table is above 0, nothing has pushed: c − z is ½ K Mᵀ λ with λ on the zeros."""
    contributions = pairs()
    solution = nonnegative(contributions, SIZES, {}, gap=1e-12).contributions
    tables = {table: marginal(table, SIZES, within(table, solution), {}) for table in PAIRS}
    free = [cells.ravel() < 1e-5 for cells in tables.values()]
    pushes, moved = [], []
    for subset, values in solution.items():
        if subset:  # the total is kept
            columns = [
                dense_map(table, subset, SIZES, {}).T
                if set(subset) <= set(table)
                else np.zeros((np.prod(SIZES[list(subset)] - 1), tables[table].size))
                for table in PAIRS
            ]
            pushes.append(np.hstack(columns)[:, np.concatenate(free)])
            moved.append(coordinates(subset, values - contributions[subset], SIZES, {}))
    from scipy.optimize import nnls

    assert 3 < sum(map(np.sum, free)) < sum(cells.size for cells in tables.values()) / 2
    _, rest = nnls(np.vstack(pushes), np.concatenate(moved))
    assert rest <= 1e-4 * np.linalg.norm(np.concatenate(moved))


@pytest.mark.parametrize("tables", [PAIRS, [(0, 1, 2), (1, 2, 3), (0, 3)], [(0,), (1, 3)]])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_all_contributions_together_are_those_of_one_after_the_other(tables, seed):
    sizes = np.array([3, 4, 2, 5])
    contributions = {**drawn(tables, sizes, {}, seed, noise=30.0), (): np.array(50.0)}
    search = nonnegative_module._Search(TableMap(contributions, sizes, {}), contributions, None, ())
    assert search.trivial_solution() is None
    search.begin()
    for _ in range(3):
        search.step()
    upper, lower = search._bounds_by_coupling(), search._lower
    search._all_cells, search._lower = None, 0.0  # one after the other, from here on
    search._evenly = nonnegative_module._FIRST_EVENLY
    assert search._distance(search._feasible()) == pytest.approx(upper, rel=1e-9)
    search.solution(1e-9)
    assert search._lower == pytest.approx(lower, rel=1e-9)


def test_extrapolation_changes_the_rounds_and_not_the_result(monkeypatch):
    """Of mostly empty cells, for which rounds alone take long."""
    rng = np.random.default_rng(0)
    sizes = np.array([4, 20, 50])
    contributions = {(): np.array(100.0)}
    for subset in list(subsets((0, 1, 2)))[1:]:
        values = rng.normal(0, 6, sizes[list(subset)])
        for axis in range(len(subset)):
            values = values - values.mean(axis=axis, keepdims=True)
        contributions[subset] = values
    monkeypatch.setattr(active_cells, "MOST_SHARE", 0)  # which would end both early
    with_it = nonnegative(contributions, sizes, {}, gap=1e-9)
    monkeypatch.setattr(nonnegative_module, "_ROUNDS_EXTRAPOLATED", 0)
    without = nonnegative(contributions, sizes, {}, gap=1e-9)
    assert with_it.rounds <= 0.75 * without.rounds
    # Each is within √gap of the optimum, relative to how far it was moved.
    apart = sum(
        float(np.sum((with_it.contributions[subset] - without.contributions[subset]) ** 2))
        for subset in contributions
    )
    assert apart <= 4 * 1e-9 * without.distance


def test_nothing_is_done_where_nothing_is_negative():
    contributions = pairs(noise=0.0)
    # One more record of every kind: no cell is 0 and, by rounding, below.
    contributions[()] = contributions[()] + np.prod(SIZES)
    solution = nonnegative(contributions, SIZES, {})
    assert (solution.distance, solution.gap, solution.rounds) == (0.0, 0.0, 0)
    for subset, values in contributions.items():
        np.testing.assert_array_equal(solution.contributions[subset], values)


def test_what_was_made_nonnegative_stays_as_it_is():
    first = nonnegative(pairs(), SIZES, {}).contributions
    again = nonnegative(first, SIZES, {})
    assert again.rounds == 0
    for subset, values in first.items():
        np.testing.assert_array_equal(again.contributions[subset], values)


def test_a_smaller_gap_is_reached_and_not_further_away():
    solution = [nonnegative(pairs(1), SIZES, {}, gap=gap) for gap in (1e-1, GAP, 1e-6, 1e-10)]
    for each, gap in zip(solution, (1e-1, GAP, 1e-6, 1e-10), strict=True):
        assert each.gap <= gap
        assert each.distance * (1 - each.gap) <= solution[-1].distance * (1 + 1e-12)
        assert each.distance >= solution[-1].distance * (1 - 1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_the_unit_of_counts_does_not_matter(scale):
    contributions = pairs(2)
    solution = nonnegative(contributions, SIZES, {}, gap=1e-8)
    scaled = {subset: scale * values for subset, values in contributions.items()}
    scaled_solution = nonnegative(scaled, SIZES, {}, gap=1e-8)
    assert scaled_solution.rounds == solution.rounds
    for subset, values in solution.contributions.items():
        np.testing.assert_allclose(
            scaled_solution.contributions[subset], scale * values, atol=1e-6 * scale
        )


def test_a_negative_total_leaves_nothing():
    contributions = {**pairs(), (): np.array(-4.0)}
    solution = nonnegative(contributions, SIZES, {})
    assert all(np.all(values == 0) for values in solution.contributions.values())
    moved = sum(float(np.sum(values**2)) for subset, values in contributions.items() if subset)
    assert solution.distance == pytest.approx(moved)


def test_the_total_alone():
    assert nonnegative({(): np.array(-3.0)}, SIZES, {}).contributions[()] == 0
    assert nonnegative({(): np.array(3.0)}, SIZES, {}).contributions[()] == 3


def test_tables_of_many_cells_are_shared_out_alike(monkeypatch):
    """Several batches, in threads: twice the same, and as by sparse matrices."""
    sizes = np.array([60, 50, 40, 30])
    family = family_of([*PAIRS, (0, 1, 2), (1, 2, 3)])
    rng = np.random.default_rng(0)
    noise = {subset: rng.normal(0.1, 1.0, sizes[list(subset)]) for subset in family}
    tables = TableMap(family, sizes, {})
    contributions = {subset: tables.shaped(subset, values) for subset, values in noise.items()}
    contributions[()] = np.array(5000.0)
    monkeypatch.setattr(nonnegative_module, "_ROUNDS_EXTRAPOLATED", 0)
    by_matrices = nonnegative(contributions, sizes, {}, gap=0.05)
    monkeypatch.setattr(nonnegative_module, "_MOST_ENTRIES", 0)
    solution = nonnegative(contributions, sizes, {}, gap=0.05)
    assert solution.rounds == by_matrices.rounds > 0
    assert solution.gap == pytest.approx(by_matrices.gap, rel=1e-9)
    for table in ((0, 1, 2), (1, 2, 3), (0, 3)):
        assert marginal(table, sizes, within(table, solution.contributions), {}).min() >= 0
    again = nonnegative(contributions, sizes, {}, gap=0.05)
    for subset, values in solution.contributions.items():
        np.testing.assert_array_equal(again.contributions[subset], values)
        np.testing.assert_allclose(by_matrices.contributions[subset], values, atol=1e-9)


def test_progress_and_stopping():
    reports = []
    solution = nonnegative(pairs(), SIZES, {}, on_progress=lambda *report: reports.append(report))
    texts, shares = zip(*reports, strict=True)
    assert shares[0] == 0
    assert list(shares) == sorted(shares)
    assert reports[-1] == (f"Making the tables nonnegative (gap {solution.gap:.1g})", 1.0)
    gaps = [float(text.partition("gap ")[2].rstrip(")")) for text in texts]
    assert gaps == sorted(gaps, reverse=True)

    class Stop(Exception):
        pass

    def stop(doing, share):
        reports.append((doing, share))
        if len(reports) == 5:
            raise Stop

    reports.clear()
    given_before = pairs()
    with pytest.raises(Stop):
        nonnegative(given_before, SIZES, {}, gap=1e-12, on_progress=stop)
    assert len(reports) == 5
    for subset, values in pairs().items():
        np.testing.assert_array_equal(given_before[subset], values)


@pytest.mark.parametrize("gap", [0.0, -1.0, 1.0, float("nan"), float("inf")])
def test_a_gap_must_be_a_share(gap):
    with pytest.raises(ReleaseError, match="gap must be above 0 and below 1"):
        nonnegative(pairs(), SIZES, {}, gap=gap)


def test_what_is_returned_cannot_be_changed():
    solution = nonnegative(pairs(), SIZES, {})
    with pytest.raises(ValueError, match="read-only"):
        solution.contributions[(0, 1)][0, 0] = 1.0


# ---- the map


@given(problems(with_strategies=True))
@settings(deadline=None, max_examples=40)
def test_the_map_its_adjoint_and_its_bound(problem):
    sizes, tables, strategies, seed = problem
    left, right = (drawn(tables, sizes, strategies, start) for start in (seed, seed + 1))
    tested = TableMap(left, sizes, strategies)
    scale = sum(float(np.sum(values**2)) for values in [*left.values(), *right.values()])
    for table in tested.tables:
        values = tested.table(table, right)
        back = tested.pulled_back(table, values)
        shaped = {
            subset: tested.shaped(subset, back[subset])
            if subset in back
            else np.zeros_like(left[subset])
            for subset in tested.family
        }
        # ⟨M l, M r⟩ = ⟨l, K Mᵀ M r⟩ in the noise's own product.
        expected = float(np.vdot(tested.table(table, left), values))
        assert tested.product(left, shaped) == pytest.approx(expected, abs=1e-8 * scale)
        expected = sum(float(np.vdot(back[subset], left[subset])) for subset in back)
        assert float(np.vdot(tested.table(table, left), values)) == pytest.approx(
            expected, abs=1e-8 * scale
        )
        bound = 0.0
        for subset in subsets(table):
            alone = {each: part if each == subset else 0 * part for each, part in right.items()}
            bound += tested.bound(table, subset) * tested.product(alone, alone)
        assert float(np.sum(values**2)) <= bound * (1 + 1e-9)
        if not strategies:
            assert float(np.sum(values**2)) == pytest.approx(bound)


@given(problems(with_strategies=True))
@settings(deadline=None, max_examples=40)
def test_masses_spread_evenly_are_marginals_of_one_full_table(problem):
    sizes, tables, strategies, seed = problem
    tested = TableMap(family_of(tables), sizes, strategies)
    rng = np.random.default_rng(seed)
    masses = {table: rng.gamma(0.5, 1.0, [int(sizes[i]) for i in table]) for table in tested.tables}
    full = np.zeros(sizes)
    for table, mass in masses.items():
        missing = [i for i in range(len(sizes)) if i not in table]
        full += np.expand_dims(mass, missing) / np.prod(sizes[missing])
    spread = tested.spread_evenly(masses)
    for table in tested.tables:
        expected = full.sum(axis=tuple(i for i in range(len(sizes)) if i not in table))
        np.testing.assert_allclose(tested.table(table, spread), expected, atol=1e-7)
    for subset, values in spread.items():
        for axis in range(len(subset)):
            assert np.max(np.abs(values.sum(axis=axis))) < 1e-9


@given(problems(with_strategies=False))
@settings(deadline=None, max_examples=40)
def test_the_coupling_of_cells_is_that_of_dense_matrices(problem):
    sizes, tables, _, seed = problem
    assume(any(tables))
    tested = TableMap(family_of(tables), sizes, {})
    rng = np.random.default_rng(seed)
    factors = {subset: float(rng.uniform(0.5, 2)) for subset in tested.family}
    values = {table: rng.normal(size=tested.cells(table)) for table in tested.tables}
    expected = dict.fromkeys(tested.tables, 0.0)
    for subset in tested.family:
        above = [table for table in tested.tables if set(subset) <= set(table)]
        maps = {table: dense_map(table, subset, sizes, {}) for table in above}
        # In coordinates in which K is the identity.
        pulled = sum(maps[table].T @ values[table] for table in above)
        for table in above:
            expected[table] = expected[table] + factors[subset] * (maps[table] @ pulled)
    for large in (1, cell_coupling._LARGE):
        with patch.object(cell_coupling, "_LARGE", large):
            coupling = CellCoupling(tested, dict.fromkeys(factors, 1.0))
        coupling.weigh(factors)
        result = coupling.of(np.concatenate(list(values.values())))
        np.testing.assert_allclose(result, np.concatenate(list(expected.values())), atol=1e-12)


def test_the_cells_of_one_table_are_its_upper_bound():
    """20 rounds; 40 if the certificate were that of several tables."""
    table, sizes, rng = (0, 1, 2), np.array([10, 100, 100]), np.random.default_rng(0)
    counts = rng.multinomial(1_000, np.full(100_000, 1e-5)).reshape(sizes)
    tables = TableMap(family_of([table]), sizes, {})
    contributions = {
        subset: tables.decomposed(
            subset, counts.sum(axis=tuple(i for i in table if i not in subset)).astype(float)
        )
        + tables.shaped(subset, rng.normal(0, 10, sizes[list(subset)]))
        for subset in tables.family
    }
    contributions[()] = np.array(1000.0)
    solution = nonnegative(contributions, sizes, {})
    assert solution.rounds == 20
    assert solution.gap <= 1e-3
    assert marginal(table, sizes, solution.contributions, {}).min() >= 0
    assert solution.contributions[()] == 1000
