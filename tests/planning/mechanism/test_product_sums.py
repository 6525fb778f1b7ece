"""Sums of products, beside all of their values."""

import numpy as np
import pytest

from rpexplore.planning.mechanism import product_sums
from rpexplore.planning.mechanism.product_sums import ProductSum, undominated


def random_sum(seed: int, shape: tuple[int, ...]) -> tuple[ProductSum, np.ndarray]:
    """Factors that differ in half of their terms and have rows in common, and all values."""
    rng = np.random.default_rng(seed)
    n_terms, values, factors = 6, 0.0, []
    scales = rng.uniform(0, 2, n_terms)
    for n in shape:
        factor = rng.uniform(0, 1, (n_terms, n))
        factor[:3] = factor[0]
        factor[:, n // 2 :] = factor[:, : n - n // 2]
        factors.append(factor)
    for term, scale in enumerate(scales):
        product = np.array(scale)
        for factor in factors:
            product = np.multiply.outer(product, factor[term])
        values = values + product
    return ProductSum(scales, factors), np.asarray(values)


@pytest.fixture(params=[(1 << 17, 1 << 17, 10**6), (50, 0, 10**6), (50, 0, 20)])
def limits(request, monkeypatch):
    """All values in one block; and few at once, of rows that are compared with all or some."""
    monkeypatch.setattr(product_sums, "_AT_ONCE", request.param[0])
    monkeypatch.setattr(product_sums, "_FEW", request.param[1])
    monkeypatch.setattr(product_sums, "_MOST_COMPARED", request.param[2])


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("shape", [(), (9,), (30, 7), (1, 20, 5), (6, 11, 4, 8)])
def test_extremes_and_means_are_those_of_all_values(shape):
    products, values = random_sum(len(shape), shape)
    assert products.shape == shape
    assert products.everywhere() == pytest.approx(values, rel=1e-12)
    for largest, extreme in ((True, values.max()), (False, values.min())):
        found, cell = products.extreme(largest=largest)
        assert found == pytest.approx(extreme, rel=1e-12)
        assert values[tuple(cell)] == pytest.approx(extreme, rel=1e-12)
    for axis in range(len(shape)):
        others = tuple(other for other in range(len(shape)) if other != axis)
        assert products.mean_along(axis) == pytest.approx(values.mean(axis=others), rel=1e-12)
        assert products.largest_along([axis], {}) == pytest.approx(values.max(others), rel=1e-12)


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("kept", [(0, 2), (3, 1)])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_largest_across_two_attributes_is_that_of_all_values(kept, fixed):
    products, values = random_sum(7, (6, 11, 4, 8))
    rows, values = {}, np.transpose(values, [*kept, *(a for a in range(4) if a not in kept)])
    if fixed:
        rows = {next(a for a in range(4) if a not in kept): 3}
        values = values[:, :, 3:4]
    found = products.largest_along(kept, rows)
    assert found == pytest.approx(values.max(axis=(2, 3)), rel=1e-12)


def test_rows_below_another_in_all_factors_are_left_out():
    factors = np.array([[3.0, 1, 2, 3, 0, 2], [1.0, 3, 2, 1, 0, 1], [1.0, 3, 2, 1, 0, 1]])
    assert undominated(factors, largest=True).tolist() == [0, 1, 2]  # the fourth is the first
    assert undominated(factors, largest=False).tolist() == [4]


def test_cells_beyond_memory_have_the_extremes_of_their_rows():
    """10¹² cells, of which all terms are largest in one row of each attribute."""
    rng = np.random.default_rng(5)
    rows = rng.permutation(10_000)
    factors = [np.outer(rng.uniform(1, 2, 8), 1.0 + rows) for _ in range(3)]
    value, cell = ProductSum(np.ones(8), factors).extreme(largest=True)
    assert rows[cell].tolist() == [9999] * 3
    assert value == pytest.approx(sum(np.prod([f[t, cell[0]] for f in factors]) for t in range(8)))
