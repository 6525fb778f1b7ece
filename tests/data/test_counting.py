"""Counting: against a counter of tuples, whatever the batches, tables and limits are."""

import threading
import time
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.data import counting
from rpexplore.data.counting import counts_of


def nothing(doing: str, share: float) -> None:
    pass


def batches_of(columns: list[np.ndarray], cuts: list[int]):
    """The records in batches that end at these cuts."""
    n_records = len(columns[0])
    ends = [0, *sorted(cut % (n_records + 1) for cut in cuts), n_records]
    for start, end in pairwise(ends):
        codes = {index: column[start:end] for index, column in enumerate(columns)}
        yield codes, end - start, end / max(n_records, 1)


def columns_of(sizes, n_records, seed=0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, n, n_records).astype(np.min_scalar_type(n - 1)) for n in sizes]


def crossed(columns, indices, sizes) -> np.ndarray:
    """The marginal, by a counter."""
    counts = np.zeros([sizes[index] for index in indices], dtype=np.int64)
    times = Counter(zip(*(columns[index].tolist() for index in indices), strict=True))
    for cell, count in times.items():
        counts[cell] = count
    return counts


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(0, 60),
    st.lists(st.integers(0, 100), max_size=4),
    st.data(),
)
def test_counts_are_those_of_a_counter(sizes, n_records, cuts, data):
    """With pieces and blocks so small that records fall into several, and tables are too large."""
    columns = columns_of(sizes, n_records)
    sets = st.sets(st.sampled_from(range(len(sizes))))
    tables = [tuple(sorted(each)) for each in data.draw(st.lists(sets, max_size=6))]
    with pytest.MonkeyPatch.context() as patch:
        for name, values in {
            "_BLOCK_CELLS": [1, 30, 1 << 17],
            "_FEW_RECORDS": [1, 1 << 14],
            "_RECORDS_PER_CELL": [1, 8],
            "_PIECE": [3, 1 << 17],
            "_SORTED_PIECE": [7, 1 << 19],
            "_MOST_GATHERED": [1, 10, 1 << 21],
        }.items():
            patch.setattr(counting, name, data.draw(st.sampled_from(values)))
        result = counts_of(batches_of(columns, cuts), tables, sizes, on_progress=nothing)
    assert result.n_records == n_records
    for table in tables:
        for n_indices in range(len(table) + 1):
            for indices in combinations(table, n_indices):
                expected = crossed(columns, indices, sizes) if indices else n_records
                assert np.array_equal(result.counts(indices), expected)


@pytest.mark.parametrize(
    "sizes", [(256,), (1, 256), (65536,), (256, 256), (257, 1, 256), (300, 290, 4)]
)
def test_places_of_cells_do_not_overflow(sizes):
    """The last cell of all, where indices and codes fill the types they have."""
    columns = [np.array([n - 1, 0, n - 1]).astype(np.min_scalar_type(n - 1)) for n in sizes]
    table = tuple(range(len(sizes)))
    counts = counts_of(batches_of(columns, [2]), [table], sizes, on_progress=nothing).counts(table)
    assert counts.flat[-1] == 2
    assert counts.flat[0] == 1
    assert counts.sum() == 3


def test_large_tables_beside_small_ones():
    """Some as blocks, some by themselves and sorted, in the true limits."""
    sizes = (80, 90, 70, 3, 2)
    columns = columns_of(sizes, 20_000)
    tables = [(0, 1, 2), (0, 3, 4), (1, 3), (2, 4)]
    result = counts_of(batches_of(columns, [1, 9000]), tables, sizes, on_progress=nothing)
    assert set(result.tables) == set(tables)
    for table in [*tables, (1, 2), (3,), ()]:
        expected = crossed(columns, table, sizes) if table else 20_000
        assert np.array_equal(result.counts(table), expected)


def test_only_maximal_tables_are_kept_in_four_bytes_a_cell():
    tables = [each for k in range(4) for each in combinations(range(6), k)]
    result = counts_of(
        batches_of(columns_of([3] * 6, 50), []), tables, [3] * 6, on_progress=nothing
    )
    assert set(result.tables) == set(combinations(range(6), 3))
    assert sum(counts.nbytes for counts in result.tables.values()) == 20 * 27 * 4


def test_counts_are_widened_before_they_overflow(monkeypatch):
    """Types of a byte stand for those of four, 256 records for 2^32."""
    monkeypatch.setattr(counting, "_NARROW", np.uint8)
    monkeypatch.setattr(counting, "_MOST_GATHERED", 100)
    columns = [np.zeros(1000, dtype=np.uint8)]
    for n_records, width in ((200, 1), (300, 8), (1000, 8)):
        batches = batches_of([columns[0][:n_records]], list(range(0, n_records, 50)))
        result = counts_of(batches, [(0,)], [2], on_progress=nothing)
        assert result.counts((0,)).tolist() == [n_records, 0]
        assert result.tables[(0,)].itemsize == width


def test_records_are_gathered_but_not_all_of_them(monkeypatch):
    """Small batches, as of many files, are counted together; no more wait than are allowed."""
    monkeypatch.setattr(counting, "_MOST_GATHERED", 100)
    columns = columns_of([4, 4], 1000)
    gathered = counting.gather(batches_of(columns, list(range(0, 1000, 30))))
    sizes = [n_records for _, n_records, _ in gathered]
    assert sum(sizes) == 1000
    assert all(100 <= size < 130 for size in sizes[:-1])
    monkeypatch.setattr(counting, "_GATHERED_BYTES", 80)
    monkeypatch.setattr(counting, "_LEAST_GATHERED", 50)
    gathered = counting.gather(batches_of(columns, list(range(0, 1000, 30))))
    assert {n_records for _, n_records, _ in gathered} <= {60, 40}


def test_progress_grows_to_one(monkeypatch):
    monkeypatch.setattr(counting, "_MOST_GATHERED", 1000)
    columns = columns_of([4] * 8, 3000)
    shares: list[float] = []
    tables = list(combinations(range(8), 3))
    counts_of(
        batches_of(columns, [1000]),
        tables,
        [4] * 8,
        on_progress=lambda _, share: shares.append(share),
    )
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1
    assert shares[-1] == 1


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_what_progress_raises_ends_the_counting(stop, monkeypatch):
    """No block is begun afterwards, and the threads are gone."""
    monkeypatch.setattr(counting, "_BLOCK_CELLS", 1)
    monkeypatch.setattr(counting, "_MOST_GATHERED", 1)  # so that a thread takes one at a time
    counted = []
    cell_indices = counting._cell_indices

    def spy(*args):
        counted.append(threading.current_thread())
        time.sleep(0.02)  # all of them would take seconds, and whoever stops them far less
        return cell_indices(*args)

    monkeypatch.setattr(counting, "_cell_indices", spy)
    tables = list(combinations(range(12), 3))

    def refuse(doing: str, share: float) -> None:
        raise stop

    before = threading.active_count()
    with pytest.raises(stop) as _:
        counts_of(batches_of(columns_of([4] * 12, 100), []), tables, [4] * 12, on_progress=refuse)
    assert threading.active_count() == before
    assert 1 <= len(counted) < len(tables) // 2
    assert threading.main_thread() not in counted


def test_an_error_in_a_block_is_told(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(counting, "_cell_indices", fail)
    before = threading.active_count()
    with pytest.raises(MemoryError):
        counts_of(batches_of(columns_of([4, 4], 100), []), [(0, 1)], [4, 4], on_progress=nothing)
    assert threading.active_count() == before
