"""Records: exact counts of coded records, against pandas; nothing shows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.data.records import Records


@st.composite
def coded(draw):
    """Sizes, and the code of every record for each attribute."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    n_records = draw(st.integers(0, 30))
    codes = [
        draw(st.lists(st.integers(0, n - 1), min_size=n_records, max_size=n_records)) for n in sizes
    ]
    return sizes, n_records, codes


def records_of(sizes, n_records, codes) -> Records:
    arrays = {place: np.array(column, dtype=np.uint8) for place, column in enumerate(codes)}
    return Records(arrays, n_records, np.array(sizes))


@given(coded(), st.data())
def test_counts_are_those_of_a_loop(drawn, data):
    sizes, n_records, codes = drawn
    places = sorted(data.draw(st.sets(st.sampled_from(range(len(sizes))))))
    expected = np.zeros([sizes[place] for place in places], dtype=np.int64)
    for record in range(n_records):
        expected[tuple(codes[place][record] for place in places)] += 1
    counts = records_of(*drawn).counts(places)
    assert counts.dtype == np.int64
    assert counts.shape == expected.shape
    assert np.array_equal(counts, expected)


def test_counts_are_a_crosstab():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({0: rng.integers(0, 300, 5000), 1: rng.integers(0, 290, 5000)})
    records = Records(
        {place: frame[place].to_numpy().astype(np.uint16) for place in (0, 1)},
        len(frame),
        np.array([300, 290]),
    )
    expected = (
        pd.crosstab(frame[0], frame[1])
        .reindex(index=range(300), columns=range(290), fill_value=0)
        .to_numpy()
    )
    assert np.array_equal(records.counts([0, 1]), expected)


def test_codes_of_one_byte_do_not_overflow():
    """255 · 256 + 255 needs more than the 8 bits that each code has."""
    codes = {place: np.array([255, 0], dtype=np.uint8) for place in (0, 1)}
    counts = Records(codes, 2, np.array([256, 256])).counts([0, 1])
    assert counts[255, 255] == 1
    assert counts[0, 0] == 1
    assert counts.sum() == 2


def test_counting_leaves_the_codes_as_they_were():
    codes = {0: np.array([1, 0], dtype=np.int64), 1: np.array([2, 2], dtype=np.int64)}
    records = Records(codes, 2, np.array([2, 3]))
    first = records.counts([0, 1])
    assert np.array_equal(records.counts([0, 1]), first)
    assert codes[0].tolist() == [1, 0]


@pytest.mark.parametrize("n_records", [0, 7])
def test_the_total_needs_no_attribute(n_records):
    total = Records({}, n_records, np.array([3])).counts([])
    assert total.shape == ()
    assert total == n_records


def test_nothing_shows():
    records = Records({0: np.array([41, 42], dtype=np.uint8)}, 98765, np.array([77]))
    for shown in (repr(records), str(records), f"{records}"):
        assert not any(private in shown for private in ("[41, 42]", "98765", "codes="))
