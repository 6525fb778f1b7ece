"""Numerics on arrays."""

import numpy as np

from rpexplore.common.numbers import distinct_rows, scattered_bits


def test_distinct_rows_tell_floats_apart_by_their_bits_except_nan():
    other_nan = np.array([0x7FF8000000000001], dtype=np.int64).view(float)[0]
    floats = np.array([0.0, np.nan, -0.0, other_nan, 0.0, 0.0])
    first, of_rows = distinct_rows((np.array([1, 1, 1, 1, 1, 2], dtype=np.int32), floats))
    assert first.tolist() == [0, 1, 2, 5]
    assert of_rows.tolist() == [0, 1, 2, 1, 0, 3]


def test_rows_that_share_a_key_are_told_apart():
    # Keys are scattered(scattered(a) + b), so that b = scattered(1) − scattered(2) makes two alike.
    keys = scattered_bits(np.array([1, 2, 1]))
    pairs = np.array([1, 2, 1]), keys[0] - keys
    first, of_rows = distinct_rows(pairs)
    assert first.tolist() == [0, 1]
    assert of_rows.tolist() == [0, 1, 0]
