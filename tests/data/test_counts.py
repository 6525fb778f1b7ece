"""Counts: marginals by summing, from the smallest table that holds them; nothing shows."""

import numpy as np
import pytest

from rpexplore.data.source import Counts

CUBE = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)
COUNTS = Counts({(0, 1, 2): CUBE, (3,): np.array([200, 76], dtype=np.uint8)}, 276)


@pytest.mark.parametrize("indices", [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,)])
def test_marginals_are_sums_over_the_other_axes(indices):
    left = tuple(axis for axis in range(3) if axis not in indices)
    marginal = COUNTS.counts(indices)
    assert marginal.dtype == np.int64
    assert np.array_equal(marginal, CUBE.astype(object).sum(axis=left))


def test_the_total_is_the_number_of_records():
    assert COUNTS.counts([]).tolist() == 276


def test_sums_of_narrow_integers_do_not_overflow():
    narrow = Counts({(0, 1): np.full((300, 2), 250, dtype=np.uint8)}, 150_000)
    assert narrow.counts([1]).tolist() == [75_000, 75_000]


def test_the_smallest_table_is_taken():
    """Told apart by tables that disagree, which those of a source never do."""
    large, small = np.ones((5, 5, 5), dtype=np.int64), np.full((5, 2), 7)
    counts = Counts({(0, 1, 2): large, (0, 3): small}, 125)
    assert counts.counts([0]).tolist() == [14] * 5


@pytest.mark.parametrize("indices", [(0, 3), (4,)])
def test_what_no_table_holds_is_not_made_up(indices):
    with pytest.raises(KeyError):
        COUNTS.counts(indices)


def test_what_is_given_out_is_not_what_is_held():
    COUNTS.counts((3,))[0] = 5
    assert COUNTS.counts((3,)).tolist() == [200, 76]


def test_nothing_shows():
    for text in (repr(COUNTS), str(COUNTS)):
        said = text.partition(" at 0x")[0]  # the address may have any digits
        assert "276" not in said
        assert "200" not in said
