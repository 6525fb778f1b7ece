"""Reconstruction against dense matrices: Sub and its pseudo-inverse as in RP."""

from functools import reduce
from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore.planning.mechanism import reconstruction as reconstruct
from rpexplore.planning.mechanism.reconstruction import answers, query_matrices
from tests.support.generalised import any_strategies, basis_matrix, shape_of, workloads_with_bases

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def contribution(measured) -> np.ndarray:
    """Of attributes without strategies."""
    return reconstruct.contribution(measured, range(np.ndim(measured)), {})


def marginal(indices, sizes, contributions) -> np.ndarray:
    return reconstruct.marginal(indices, sizes, contributions, {})


def sub(n: int) -> np.ndarray:
    """First column 1, entries (r, r+1) = −1: [n−1, n]."""
    return np.hstack([np.ones((n - 1, 1)), -np.eye(n - 1)])


def sub_inverse(n: int) -> np.ndarray:
    """(1/n) [1ᵀ; 11ᵀ − nI]: [n, n−1]."""
    ones = np.ones((n - 1, n - 1))
    return np.vstack([np.ones((1, n - 1)), ones - n * np.eye(n - 1)]) / n


def kron(matrices) -> np.ndarray:
    return reduce(np.kron, matrices, np.ones((1, 1)))


def subsets(indices):
    return chain.from_iterable(combinations(indices, k) for k in range(len(indices) + 1))


def integers(shape, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(10**6), 10**6, shape)


def test_the_dense_matrices_are_what_they_should_be():
    for n in range(2, 6):
        assert np.allclose(np.linalg.pinv(sub(n)), sub_inverse(n))
        assert np.allclose(sub(n) @ np.ones(n), 0)


@given(st.lists(st.integers(2, 4), max_size=3), st.integers(0, 2**32))
def test_a_contribution_is_the_paper_s_reconstruction_of_one_residual(sizes, seed):
    """Postprocessing by ⊗ Sub/n (§3), then reconstruction by ⊗ Sub⁺ (§2)."""
    measured = integers(sizes, seed)
    postprocess = kron([sub(n) / n for n in sizes])
    reconstruct = kron([sub_inverse(n) for n in sizes])
    expected = reconstruct @ postprocess @ measured.ravel()
    assert np.allclose(contribution(measured).ravel(), expected, rtol=0, atol=1e-6)


@given(SIZES, st.integers(0, 2**32))
def test_a_marginal_is_the_paper_s_sum_over_residuals(sizes, seed):
    """For *any* measurements, noisy ones too."""
    indices = list(range(len(sizes)))
    kept = [index for index in indices if sizes[index] > 1]
    expected, contributions = np.zeros(int(np.prod(sizes))), {}
    for number, subset in enumerate(subsets(kept)):
        measured = integers([sizes[index] for index in subset], seed + number)
        contributions[subset] = contribution(measured)
        omega = kron([sub(sizes[index]) / sizes[index] for index in subset]) @ measured.ravel()
        spread = [
            sub_inverse(sizes[index])
            if index in subset
            else np.ones((sizes[index], 1)) / sizes[index]
            for index in indices
        ]
        expected += kron(spread) @ omega
    result = marginal(indices, np.array(sizes), contributions)
    assert result.dtype == np.float64
    assert result.shape == tuple(sizes)
    assert np.allclose(result.ravel(), expected, rtol=0, atol=1e-6)


@given(SIZES, st.integers(0, 2**32))
def test_exact_measurements_give_back_the_exact_counts(sizes, seed):
    counts = np.abs(integers(sizes, seed))
    indices = list(range(len(sizes)))
    kept = [index for index in indices if sizes[index] > 1]
    contributions = {}
    for subset in subsets(kept):
        answers = counts.sum(axis=tuple(index for index in indices if index not in subset))
        for axis, index in enumerate(subset):
            answers = answers * sizes[index] - answers.sum(axis=axis, keepdims=True)
        contributions[subset] = contribution(answers)
    result = marginal(indices, np.array(sizes), contributions)
    assert np.max(np.abs(result - counts)) < 1e-9 * max(1, counts.sum())


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.integers(0, 2**32))
def test_a_contribution_adds_nothing_to_smaller_tables(sizes, seed):
    added = contribution(integers(sizes, seed))
    for axis in range(len(sizes)):
        assert np.max(np.abs(added.sum(axis=axis))) < 1e-8


def test_the_total_is_measured_as_it_is():
    assert contribution(np.array(17)) == 17.0
    assert marginal([], np.array([3]), {(): contribution(np.array(17))}) == 17.0


def test_the_measurements_are_left_as_they_were():
    measured = integers([3, 4], 1)
    before = measured.copy()
    contribution(measured)
    assert np.array_equal(measured, before)


# ---- attributes with strategies


def decoding(strategy) -> tuple[np.ndarray, np.ndarray]:
    """(z, D / 2^b) by a dense inverse of [1ᵀ; integers]."""
    n = strategy.size
    inverse = np.linalg.inv(np.vstack([np.ones(n), strategy.integers]))
    return inverse[:, :1], inverse[:, 1:]


@given(workloads_with_bases(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_answers_are_the_dense_sum_over_residuals(workload, seed):
    """For any measured integers: Σ ⊗ (V_i or Sub⁺Sub/n in the residual, ν_i or W1/n outside)."""
    strategies, sizes = any_strategies(workload, seed), workload.domain.sizes
    matrices = query_matrices(workload)
    for position in range(len(workload)):
        indices = workload.attribute_indices(position)
        kept = [index for index in indices if sizes[index] > 1]
        expected, contributions = 0, {}
        for number, subset in enumerate(subsets(kept)):
            shape = [int(sizes[index]) - (index in strategies) for index in subset]
            measured = integers(shape, seed + number)
            contributions[subset] = reconstruct.contribution(measured, subset, strategies)
            assert contributions[subset].shape == tuple(sizes[index] for index in subset)
            factors = []
            for index in indices:
                n, attribute = int(sizes[index]), workload.domain.attributes[index]
                w = basis_matrix(workload.basis_of(position, index), attribute)
                if index in strategies:
                    inside, outside = decoding(strategies[index])[::-1]
                else:
                    inside = sub_inverse(n) @ sub(n) / n if n > 1 else np.ones((1, 1))
                    outside = np.full((n, 1), 1 / n)
                factors.append(w @ (inside if index in subset else outside))
            expected = expected + kron(factors) @ measured.ravel()
        before = {subset: part.copy() for subset, part in contributions.items()}
        values = reconstruct.marginal(indices, sizes, contributions, strategies)
        result = answers(
            values, [matrices[q] for q in workload.attribute_basis_index[position, : len(indices)]]
        )
        assert result.shape == shape_of(workload, position)
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(result.ravel(), expected, rtol=1e-9, atol=1e-9 * scale)
        for subset, part in before.items():
            np.testing.assert_array_equal(contributions[subset], part)


@given(workloads_with_bases(), st.integers(0, 2**32), st.integers(0, 6))
@settings(deadline=None, max_examples=40)
def test_exact_measurements_give_exact_answers(workload, seed, digits):
    strategies, sizes = any_strategies(workload, seed), workload.domain.sizes.tolist()
    matrices = query_matrices(workload)
    counts = np.random.default_rng(seed).integers(0, 10**digits + 1, sizes)
    for position in range(len(workload)):
        indices = workload.attribute_indices(position)
        contributions = {}
        for subset in subsets([index for index in indices if sizes[index] > 1]):
            exact = counts.sum(axis=tuple(i for i in range(len(sizes)) if i not in subset))
            for axis, index in enumerate(subset):
                matrix = sizes[index] * np.eye(sizes[index], dtype=int) - 1
                if index in strategies:
                    matrix = strategies[index].integers
                exact = np.moveaxis(np.tensordot(matrix, exact, (1, axis)), 0, axis)
            contributions[subset] = reconstruct.contribution(exact, subset, strategies)
        values = reconstruct.marginal(indices, np.array(sizes), contributions, strategies)
        result = answers(
            values, [matrices[q] for q in workload.attribute_basis_index[position, : len(indices)]]
        )
        table = counts.sum(axis=tuple(i for i in range(len(sizes)) if i not in indices))
        w = kron(
            basis_matrix(workload.basis_of(position, i), workload.domain.attributes[i])
            for i in indices
        )
        expected = w @ table.ravel()
        assert np.max(np.abs(result.ravel() - expected)) <= 1e-9 * max(np.abs(expected).max(), 1)
