"""What is made of an array along an axis, slab by slab, against the same at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.common import numbers
from rpexplore.common.numbers import in_slabs, matrix_along


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 5), st.data())
def test_a_matrix_along_an_axis_in_slabs_of_any_size(shape, n_rows, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = rng.integers(-9, 9, shape)
    matrix = rng.integers(-9, 9, (n_rows, shape[axis]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "_AT_ONCE", data.draw(st.integers(1, 300)))
        product = matrix_along(matrix, values, axis)
        sums = in_slabs(lambda part: np.cumsum(part, axis=axis), values, axis)
    expected = np.apply_along_axis(lambda line: matrix @ line, axis, values)
    assert product.dtype == np.int64
    assert np.array_equal(product, expected)
    assert np.array_equal(sums, np.cumsum(values, axis=axis))


def test_slabs_are_as_small_as_asked_for(monkeypatch):
    monkeypatch.setattr(numbers, "_AT_ONCE", 100)
    seen = []

    def apply(part):
        seen.append(part.shape)
        return part

    in_slabs(apply, np.zeros((10, 20, 5)), 1)
    in_slabs(apply, np.zeros((10, 20, 5)), 0)
    assert seen == [(1, 20, 5)] * 10 + [(10, 20, 1)] * 5
