"""Strategies: optimal by an independent solver, by brute force, and by their own certificate."""

from typing import cast

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.coarser_values import extrapolated, halved
from rpexplore.planning.solvers.strategy_matrix import (
    JointSearch,
    MatrixRoot,
    best_matrix,
    best_reference,
    centred_at,
    mirrored_eigh,
)
from rpexplore.planning.strategies import StrategySearch

CERTIFIED = 1e-6


def prefix(n):
    return np.tril(np.ones((n, n)))


def ranges(n):
    return np.array([[a <= i <= b for i in range(n)] for a in range(n) for b in range(a, n)], float)


def own(n, seed=0):
    """QueryMatrix of very different sizes, the total among them."""
    rng = np.random.default_rng(seed)
    return np.vstack([np.ones(n), 10 ** rng.uniform(-3, 3, (2 * n, n))])


def gram_of(queries):
    return queries.T @ queries


def root_total(eta):
    """√η: with it, the best is the best product strategy (HDMM's)."""
    return float(np.sqrt(eta[0])), np.array([0.5 / np.sqrt(eta[0])])


def mixed_total(eta):
    """A sum of √(a + b·η), as several residuals give it."""
    roots = np.array([np.sqrt(1 + 0.3 * eta[0]), np.sqrt(0.1 + 0.05 * eta.sum())])
    first = np.array([0.15 / roots[0]] + [0.0] * (len(eta) - 1))
    return float(roots.sum()), first + 0.025 / roots[1]


def objective(solution, grams, total):
    z = solution.reference
    return solution.root + total(np.array([z @ gram @ z for gram in grams]))[0]


def exact_root(measuring, gram):
    """√(β τ) of a matrix, from its inverse alone."""
    n = len(gram)
    inverse = np.linalg.inv(np.vstack([np.ones(n), measuring.matrix]))
    decoding = inverse[:, 1:]
    np.testing.assert_allclose(inverse[:, 0], measuring.reference, atol=1e-7)
    columns = (measuring.matrix**2).sum(axis=0).max()
    return np.sqrt(columns * np.trace(decoding.T @ gram @ decoding))


def check(measuring, gram, certified=CERTIFIED):
    """What is promised of every measuring."""
    n = len(gram)
    assert measuring.matrix.shape == (n - 1, n)
    np.testing.assert_allclose(measuring.matrix @ measuring.reference, 0, atol=1e-9)
    assert (measuring.matrix**2).sum(axis=0).max() == pytest.approx(1, abs=1e-12)
    assert measuring.reference.sum() == pytest.approx(1, abs=1e-9)
    assert measuring.value_weights.sum() == pytest.approx(1)
    assert measuring.value_weights.min() > 0
    assert exact_root(measuring, gram) == pytest.approx(measuring.root, rel=1e-9)
    assert measuring.lower_bound <= measuring.root
    assert measuring.root / measuring.lower_bound - 1 < certified


def solved_by_cvxpy(queries, reference):
    """The smallest √τ at a reference distribution, as a semidefinite program."""
    n = len(reference)
    basis = np.linalg.svd(reference[None])[2][1:].T  # n × (n − 1), orthogonal to z
    seen = queries @ (np.eye(n) - np.outer(reference, np.ones(n))) @ basis
    inner = cp.Variable((n - 1, n - 1), PSD=True)
    problem = cp.Problem(
        cp.Minimize(cp.matrix_frac(seen.T, inner)), [cp.diag(basis @ inner @ basis.T) <= 1]
    )
    problem.solve(solver=cp.CLARABEL)
    return float(np.sqrt(cast(float, problem.value)))


@pytest.mark.parametrize("queries", [prefix(4), ranges(5), prefix(6), own(4), np.eye(5)])
@pytest.mark.parametrize("even", [True, False])
def test_the_matrix_is_as_good_as_an_independent_solver_finds(queries, even):
    n = queries.shape[1]
    reference = np.full(n, 1 / n) if even else np.arange(n) / (np.arange(n).sum())
    solution = best_matrix(gram_of(queries), reference)
    check(solution, gram_of(queries))
    assert solution.root == pytest.approx(solved_by_cvxpy(queries, reference), rel=2e-5)


@pytest.mark.parametrize("queries", [prefix(4), ranges(5), prefix(6)])
def test_with_the_root_of_the_total_it_is_the_best_product_strategy(queries):
    """Then the best of all is the K with the smallest tr(G K⁻¹) at diag K ≤ 1."""
    n = queries.shape[1]
    strategy = cp.Variable((n, n), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.matrix_frac(queries.T, strategy)), [cp.diag(strategy) <= 1])
    problem.solve(solver=cp.CLARABEL)
    gram = gram_of(queries)
    solution = best_reference(gram, [gram], root_total)
    check(solution, gram)
    best = np.sqrt(cast(float, problem.value))
    assert objective(solution, [gram], root_total) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(
    ("n", "squared_root", "with_reference"), [(8, None, 4.22684), (10, 9.96594, 4.92095)]
)
def test_known_figures_for_prefix_sums(n, squared_root, with_reference):
    gram = gram_of(prefix(n))
    if squared_root:
        assert best_matrix(gram).root ** 2 == pytest.approx(squared_root, abs=1e-5)
    solution = best_reference(gram, [gram], root_total)
    assert objective(solution, [gram], root_total) == pytest.approx(with_reference, abs=1e-5)


def test_prefix_sums_of_a_hundred_values():
    gram = gram_of(prefix(100))
    check(best_matrix(gram), gram)
    solution = best_reference(gram, [gram], root_total)
    check(solution, gram)
    assert objective(solution, [gram], root_total) < 22.3550


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_single_values_are_best_measured_as_they_are(n):
    gram = np.eye(n)
    even = best_matrix(gram)
    assert even.root**2 == pytest.approx((n - 1) ** 2 / n)  # β·τ of the identity
    solution = best_reference(gram, [gram], root_total)
    np.testing.assert_allclose(solution.reference, 1 / n, atol=1e-5)
    assert objective(solution, [gram], root_total) == pytest.approx(np.sqrt(n), rel=1e-7)


@pytest.mark.parametrize("queries", [prefix(2), np.array([[1, 1], [3, 0.2]]), own(2)])
@pytest.mark.parametrize("weight", [0.05, 1.0, 6.0])
def test_two_values_against_brute_force(queries, weight):
    """R is (1 − a, −a)/s for z = (a, 1 − a): all that is left is to look for a."""
    gram = gram_of(queries)

    def total(eta):
        value, slope = root_total(eta)
        return weight * value, weight * slope

    def by_hand(a):
        z = np.array([a, 1 - a])
        change = np.array([1.0, -1.0])  # the decoding of R = (1 − a, −a)
        return np.sqrt(max(a**2, (1 - a) ** 2) * (change @ gram @ change)) + weight * np.sqrt(
            z @ gram @ z
        )

    assert by_hand(0.5) == pytest.approx(objective(best_matrix(gram), [gram], total), rel=1e-9)
    solution = best_reference(gram, [gram], total)
    check(solution, gram)
    best = minimize_scalar(by_hand, bounds=(-2, 3), method="bounded", options={"xatol": 1e-10})
    assert objective(solution, [gram], total) == pytest.approx(best.fun, rel=2e-6)


@pytest.mark.parametrize("first", [prefix(3), own(3, 4)])
def test_several_ways_of_asking_against_a_search_without_slopes(first):
    grams = [gram_of(first), np.diag([1.0, 2.0, 0.5]) * np.trace(gram_of(first))]
    gram = grams[0] + 0.5 * grams[1]
    unit = np.sqrt(np.trace(gram))

    def total(eta):
        value, slopes = mixed_total(eta / unit**2)
        return value * unit, slopes / unit

    solution = best_reference(gram, grams, total)
    check(solution, gram)

    def value(free):
        z = np.array([*free, 1 - free.sum()])
        return best_matrix(gram, z).root + total(np.array([z @ g @ z for g in grams]))[0]

    searched = minimize(
        value, np.full(2, 1 / 3), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}
    )
    assert objective(solution, grams, total) == pytest.approx(searched.fun, rel=1e-6)


def test_the_slope_in_the_reference_is_that_of_finite_differences():
    gram = gram_of(prefix(6))
    gram /= np.trace(gram) / 6
    reference = np.array([0.3, 0.1, 0.15, 0.05, 0.1, 0.3])
    solution = best_matrix(gram, reference, tolerance=1e-10)
    slope = MatrixRoot(centred_at(reference, gram), solution.value_weights, reference).slope
    for value in range(5):
        change = np.zeros(6)
        change[[value, 5]] = 1, -1
        step = 1e-4
        above, below = (
            best_matrix(gram, reference + sign * step * change, tolerance=1e-10).root
            for sign in (1, -1)
        )
        assert slope @ change == pytest.approx((above - below) / (2 * step), abs=1e-5)


@settings(max_examples=15, deadline=None)
@given(power=st.integers(-20, 20), name=st.sampled_from([prefix, ranges, own]), n=st.integers(2, 9))
def test_scale_makes_no_difference(power, name, n):
    gram = gram_of(name(n))
    unit = 10.0**power
    plain, scaled = best_matrix(gram), best_matrix(gram * unit)
    assert scaled.root == pytest.approx(plain.root * np.sqrt(unit), rel=1e-6)
    assert scaled.root / scaled.lower_bound - 1 < CERTIFIED
    plain, scaled = (best_reference(each, [each], root_total) for each in (gram, gram * unit))
    expected = objective(plain, [gram], root_total) * np.sqrt(unit)
    assert objective(scaled, [gram * unit], root_total) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_what_no_question_asks_about_costs_next_to_nothing(rows):
    """Of 8 values, only few sums are asked: [1ᵀ; R] is invertible, at the price of those sums."""
    rng = np.random.default_rng(rows)
    queries = np.vstack([np.ones(8), rng.integers(0, 2, (rows, 8))])
    gram = gram_of(queries)
    solution = best_matrix(gram)
    check(solution, gram)
    lengths = np.linalg.svd(solution.matrix)[1]
    assert 1e-5 < lengths.min() < 1e-2
    # The same without the unasked: the smallest root over all R, invertible or not.
    scs = solved_by_cvxpy(np.vstack([queries, 1e-5 * np.eye(8)]), np.full(8, 1 / 8))
    assert solution.root == pytest.approx(scs, rel=1e-4)
    check(best_reference(gram, [gram], root_total), gram, 1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [3, 12])
def test_questions_of_very_different_sizes(n, seed):
    gram = gram_of(own(n, seed))
    even = best_matrix(gram)
    check(even, gram)
    solution = best_reference(gram, [gram], root_total)
    check(solution, gram, 1e-5)
    assert objective(solution, [gram], root_total) < objective(even, [gram], root_total)


def test_a_value_that_never_counts():
    """The root is unchanged if the values' weights may go to 0: R's last columns are inside."""
    queries = np.diag([1.0, 1.0, 1e-6, 1e-6])
    gram = gram_of(queries)
    check(best_matrix(gram, np.array([0.5, 0.5, 0.0, 0.0])), gram, 1e-4)


def test_the_bound_holds_for_other_matrices():
    rng = np.random.default_rng(3)
    gram = gram_of(prefix(7))
    solution = best_matrix(gram)
    for _ in range(50):
        matrix = solution.matrix + 0.1 * rng.standard_normal(solution.matrix.shape)
        matrix -= matrix.mean(axis=1, keepdims=True)
        decoding = np.linalg.inv(np.vstack([np.ones(7), matrix]))[:, 1:]
        columns = (matrix**2).sum(axis=0).max()
        assert np.sqrt(columns * np.trace(decoding.T @ gram @ decoding)) > solution.lower_bound


def test_the_start_is_returned_where_nothing_is_better():
    gram = gram_of(prefix(10))
    first = best_reference(gram, [gram], root_total, tolerance=1e-10)
    again = best_reference(gram, [gram], root_total, start=first, tolerance=1e-4)
    assert again is first
    even = best_matrix(gram)
    improved = best_reference(gram, [gram], root_total, start=even)
    assert objective(improved, [gram], root_total) < objective(even, [gram], root_total)


def test_a_start_that_is_near_saves_steps():
    gram = gram_of(prefix(30))
    near = best_reference(gram * 1.0, [gram], root_total)
    etas = []

    def total(eta):
        etas.append(eta)
        value, slope = root_total(eta)
        return 1.01 * value, 1.01 * slope

    best_reference(gram, [gram], total)
    steps = len(etas)
    best_reference(gram, [gram], total, start=near)
    assert len(etas) - steps < steps


@pytest.mark.parametrize("n", [2, 3, 8, 9])
def test_matrices_that_are_the_same_read_backwards(n):
    matrix = np.random.default_rng(n).normal(size=(n, n))
    matrix = matrix + matrix.T
    matrix = matrix + matrix[::-1, ::-1]
    values, vectors = mirrored_eigh(matrix)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-12)
    np.testing.assert_allclose(vectors * values @ vectors.T, matrix, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-12)


def test_a_matrix_is_the_best_in_a_few_steps():
    """n = 400: 21 decompositions of 400 values until columns agreed to 1e-7 by themselves."""
    steps = []
    gram = gram_of(prefix(400))
    measuring = best_matrix(gram, on_share=steps.append)
    assert measuring.root / measuring.lower_bound - 1 < 1e-7
    assert len(steps) <= 16


def test_the_matrix_of_a_joint_search_is_the_root_it_found():
    gram = np.tri(40).T @ np.tri(40)
    gram /= np.trace(gram) / 40
    search = JointSearch(gram, [gram], lambda etas: (float(np.sqrt(etas[0])), 0.5 / np.sqrt(etas)))
    weights = np.linspace(1, 2, 40) / 60
    joint = search.step(search.state(weights, np.full(40, 1 / 40)))
    matrix, z = joint.matrix, joint.reference
    np.testing.assert_allclose(matrix @ z, 0, atol=1e-10)
    root = matrix.T @ matrix * joint.root  # X with X Λ X = V(z)
    beyond = np.eye(40) - np.outer(np.ones(40), z)
    centred = beyond @ gram @ beyond.T
    np.testing.assert_allclose(root * joint.value_weights @ root, centred, atol=1e-9)
    assert joint.root == pytest.approx(np.trace(root * joint.value_weights), rel=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "basis", [rp.Prefix(), rp.Ranges(), rp.Windows(12), rp.Hierarchy((10, 100))], ids=str
)
def test_problems_with_fewer_values_point_to_the_best(basis):
    """Within 1e-5 of the search without them, of a thousand values."""
    domain = rp.Domain.from_sizes({"a": 1001, "b": 2})
    workload = rp.Workload.all_up_to(domain, 2).with_bases({"a": basis})
    search = StrategySearch(workload, Closure.of(workload), np.ones(4), keep_references=False)
    search.start({})
    problem = search.problem(0)
    best, found = (
        best_reference(
            problem.gram,
            problem.grams,
            problem.total,
            tolerance=tolerance,
            from_coarser=from_coarser,
        )
        for tolerance, from_coarser in ((1e-6, False), (1e-4, True))
    )
    values = [problem.worth(one.root, one.reference)[0] for one in (best, found)]
    assert values[1] <= values[0] * (1 + 1e-5)


def test_two_sizes_of_a_problem_foretell_the_next():
    """Of λ and z that go evenly with the label, and with the halving of the number of values."""

    def law(n):
        ends = np.log((np.arange(n) + 0.5) / (n - np.arange(n) - 0.5)) / np.log(2 * n)
        weights, reference = np.exp(np.log2(n) * ends**2), 1 + np.log2(n) * ends
        return weights / np.mean(weights) / n, reference / n

    weights, reference = extrapolated(law(250), law(500), 1000)
    np.testing.assert_allclose(weights, law(1000)[0], rtol=0.05)
    np.testing.assert_allclose(reference, law(1000)[1], atol=2e-5)
    prefixes = np.tri(9).T @ np.tri(9)
    np.testing.assert_allclose(halved(prefixes), 2 * np.tri(4).T @ np.tri(4))
    np.testing.assert_allclose(halved(prefixes[1:, 1:]), 2 * np.tri(4).T @ np.tri(4) - 0.5)
