"""Integer strategies: as accurate as the unrounded ones, decodable, the same every time."""

import numpy as np
import pytest

from rpexplore.planning.solvers.strategy_matrix import best_matrix, best_reference
from rpexplore.planning.solvers.strategy_rounding import bits_for, integer_matrix


def prefix_gram(n):
    indices = np.arange(n)
    return n - np.maximum.outer(indices, indices).astype(float)


def ranges_gram(n):
    indices = np.arange(n)
    return (np.minimum.outer(indices, indices) + 1.0) * (n - np.maximum.outer(indices, indices))


GRAMS = {"prefix": prefix_gram, "ranges": ranges_gram, "single": np.eye}


def worth_for(gram):
    def worth(root, reference):
        total = np.sqrt(reference @ gram @ reference)
        return root + total, 1.0, gram @ reference / total

    return worth


def best(gram, uniform_reference=False):
    def total(eta):
        return float(np.sqrt(eta[0])), np.array([0.5 / np.sqrt(eta[0])])

    return best_matrix(gram) if uniform_reference else best_reference(gram, [gram], total)


def loss(integers, measuring, gram):
    """How much worse than unrounded, relative, from the inverse of what is measured."""
    inverse = np.linalg.inv(np.vstack([np.ones(len(gram)), integers]))
    decoding = inverse[:, 1:]
    columns = (integers**2).sum(axis=0).max()
    root = np.sqrt(columns * np.trace(decoding.T @ gram @ decoding))
    worth = worth_for(gram)
    return worth(root, inverse[:, 0])[0] / worth(measuring.root, measuring.reference)[0] - 1


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("name", "n", "bits", "most"),
    [
        *[(name, 2, bits, 1e-9) for name in GRAMS for bits in (1, 12)],
        *[(name, n, 12, 1e-4) for name in GRAMS for n in (5, 10, 50, 100)],
        *[(name, n, 7, 2e-4) for name in GRAMS for n in (5, 10)],
        *[("prefix", n, 9, 1e-4) for n in (5, 10)],
        ("ranges", 60, 9, 2e-4),
    ],
)
def test_rounding_costs_almost_nothing(name, n, bits, most):
    gram = GRAMS[name](n)
    measuring = best(gram)
    integers = integer_matrix(measuring, bits, gram, worth_for(gram))
    assert integers.dtype == np.int64
    assert integers.shape == (n - 1, n)
    assert np.abs(integers).max() <= 2**bits
    assert loss(integers, measuring, gram) <= most


@pytest.mark.parametrize(
    ("name", "n", "bits", "most"),
    [
        ("prefix", 2, 3, 1e-9),
        ("ranges", 5, 7, 2.5e-4),
        ("prefix", 10, 9, 1e-4),
        *[(name, n, 12, 1e-4) for name in GRAMS for n in (10, 60)],
    ],
)
def test_even_rows_sum_to_nought_exactly(name, n, bits, most):
    gram = GRAMS[name](n)
    measuring = best(gram, uniform_reference=True)
    integers = integer_matrix(measuring, bits, gram, worth_for(gram), uniform_reference=True)
    assert not integers.sum(axis=1).any()
    assert np.abs(integers).max() <= 2**bits
    assert loss(integers, measuring, gram) <= most


def test_the_same_every_time():
    gram = prefix_gram(5)
    measuring = best(gram)
    first, again = (integer_matrix(measuring, 6, gram, worth_for(gram)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_what_it_is_worth_decides():
    """If only the total counts, it is kept better, at the expense of the rest."""
    gram = prefix_gram(4)
    measuring = best(gram)

    def total_only(root, reference):
        return reference @ gram @ reference, 0.0, 2 * gram @ reference

    def root_only(root, reference):
        return root, 1.0, np.zeros(4)

    def of(worth):
        integers = integer_matrix(measuring, 3, gram, worth)
        return np.linalg.inv(np.vstack([np.ones(4), integers]))[:, 0]

    assert total_only(0, of(total_only))[0] < total_only(0, of(root_only))[0]


@pytest.mark.parametrize("bits", [7, 12])
@pytest.mark.parametrize("uniform_reference", [False, True])
def test_what_no_question_asks_about_stays_decodable(bits, uniform_reference):
    """Rows too small for integers are raised until the inverse exists, at a bearable price."""
    rng = np.random.default_rng(1)
    queries = np.vstack([np.ones(8), rng.integers(0, 2, (3, 8))])
    gram = queries.T @ queries
    measuring = best(gram, uniform_reference)
    integers = integer_matrix(
        measuring, bits, gram, worth_for(gram), uniform_reference=uniform_reference
    )
    assert np.linalg.matrix_rank(np.vstack([np.ones(8), integers])) == 8
    assert loss(integers, measuring, gram) < 16 * 2.0**-bits


def test_too_few_bits_are_refused():
    gram = prefix_gram(30)
    with pytest.raises(ValueError, match="cannot be rounded to 0 bits"):
        integer_matrix(best(gram), 0, gram, worth_for(gram))


@pytest.mark.parametrize(("together", "bits"), [(1, 12), (3, 10), (4, 9), (5, 7.6), (38, 1)])
def test_products_stay_within_38_bits(together, bits):
    assert bits_for(together) == bits
    assert bits * together <= 38
