"""Blocks: every table is in one of them, within the cells allowed, and follows from its counts."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.data.blocks import Block, blocks, maximal, summed_tables

SETS = st.lists(st.sets(st.integers(0, 6)), max_size=12)
SIZES = st.lists(st.integers(1, 5), min_size=7, max_size=7)


@given(SETS)
def test_maximal_sets_are_those_in_no_other(sets):
    expected = {frozenset(one) for one in sets if one and not any(one < more for more in sets)}
    largest = maximal([tuple(one) for one in sets])
    assert len(largest) == len(expected)
    assert {frozenset(table) for table in largest} == expected
    assert all(list(table) == sorted(table) for table in largest)


@given(SETS, SIZES, st.integers(0, 2000))
def test_every_table_is_in_one_block_and_follows_from_its_counts(sets, sizes, most_cells):
    tables = maximal([tuple(one) for one in sets])
    chosen = blocks(tables, sizes, most_cells)
    assert sorted(table for block in chosen for table in block.tables) == tables
    rng = np.random.default_rng(0)
    for block in chosen:
        shape = [sizes[index] for index in block.attribute_indices]
        assert len(block.tables) == 1 or prod(shape) <= most_cells
        counts = rng.integers(0, 100, shape)
        summed = dict(summed_tables(block, counts))
        assert sorted(summed) == sorted(block.tables)
        for table, values in summed.items():
            letters = "".join(chr(97 + index) for index in block.attribute_indices)
            kept = "".join(chr(97 + index) for index in table)
            assert np.array_equal(values, np.einsum(f"{letters}->{kept}", counts))


@pytest.mark.parametrize(
    ("n_attributes", "size", "ways", "most"),
    [(15, 10, 3, 80), (20, 2, 2, 6), (20, 10, 1, 4)],
)
def test_there_are_far_fewer_blocks_than_tables(n_attributes, size, ways, most):
    """455, 190 and 20 tables."""
    tables = list(combinations(range(n_attributes), ways))
    assert len(blocks(tables, [size] * n_attributes, 1 << 17)) <= most


def test_a_table_without_room_for_more_is_a_block_of_its_own():
    tables = [(0, 1), (0, 2), (1, 2)]
    chosen = blocks(tables, [10, 10, 10], 999)
    assert chosen == [Block(table, (table,)) for table in tables]
    assert blocks(tables, [10, 10, 10], 1000) == [Block((0, 1, 2), tuple(tables))]
