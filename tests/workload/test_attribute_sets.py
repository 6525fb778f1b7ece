"""Attribute sets against a plain search through all subsets."""

from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.attribute_sets import MAX_TABLES, attribute_sets, padded
from tests.support.strategies import domains

HUNDRED = rp.Domain.from_sizes({f"a{i:02}": 10 for i in range(100)})


def by_search(domain, orders, only, containing, cells):
    """All sets, one by one: the tuples of indices that meet every wish."""
    sizes = domain.sizes.tolist()
    return {
        indices
        for order in orders
        for indices in combinations(range(len(domain)), order)
        if (only is None or all(domain.names[index] in only for index in indices))
        and all(domain.indices[name] in indices for name in containing)
        and (cells is None or prod(sizes[index] for index in indices) <= cells)
    }


@st.composite
def wishes(draw):
    domain = draw(domains(max_attributes=6))
    names = st.sets(st.sampled_from(domain.names))
    only = draw(st.none() | names)
    containing = draw(names if only is None else st.sets(st.sampled_from(sorted(only) or [""])))
    lowest = draw(st.integers(0, len(domain)))
    highest = draw(st.integers(lowest, len(domain)))
    cells = draw(st.none() | st.integers(1, 300))
    return domain, range(lowest, highest + 1), only, containing - {""}, cells


@given(wishes())
def test_sets_are_those_that_meet_every_wish(wish):
    domain, orders, only, containing, cells = wish
    expected = by_search(domain, orders, only, containing, cells)
    try:
        rows = attribute_sets(domain, orders, only=only, containing=containing, cells=cells)
    except WorkloadError:
        assert not expected
        return
    listed = [tuple(index for index in row if index >= 0) for row in rows.tolist()]
    assert len(listed) == len(set(listed))
    assert set(listed) == expected
    assert all(list(row) == sorted(row) for row in listed)


def test_narrowing_comes_before_listing():
    """Five of a hundred attributes are 75 million sets, which are never listed."""
    rows = attribute_sets(HUNDRED, range(5, 6), containing=["a03", "a50", "a99"])
    assert rows.shape == (97 * 96 // 2, 5)
    of_ten = attribute_sets(HUNDRED, range(6), only=HUNDRED.names[:10])
    assert len(of_ten) == 1 + 10 + 45 + 120 + 210 + 252
    assert len(attribute_sets(HUNDRED, range(101), cells=10)) == 101
    # All but two attributes: growing from small sets would never get there.
    two = rp.Domain.from_sizes({f"a{i:02}": 1 for i in range(100)})
    assert attribute_sets(two, range(98, 99), cells=1).shape == (4950, 98)


@pytest.mark.parametrize(
    ("orders", "wish", "message"),
    [
        (range(6), {}, "79,375,496 tables; at most 5,000,000"),
        (range(101), {"cells": 10**6}, "more than .* tables; at most"),
        (range(3), {"cells": 0}, "cells must be a whole number of at least 1, got 0"),
        (range(3), {"cells": 1.5}, "cells must be a whole number"),
        (range(3), {"only": ["a01"], "containing": ["a02"]}, "'a02', which is not one of"),
        (range(3), {"containing": ["a01", "a02", "a03"]}, r"3 attributes \(a01 × a02 × a03\), and"),
        (range(3, 4), {"only": ["a01", "a02"]}, "3 attributes can have only 2 attributes here"),
        (range(3), {"containing": ["a01", "a02"], "cells": 99}, "make 100 cells by themselves"),
        (range(3, 4), {"cells": 999}, "No table of 3 .* attributes has at most 999 cells"),
    ],
)
def test_sets_that_cannot_be_are_refused(orders, wish, message):
    with pytest.raises(WorkloadError, match=message):
        attribute_sets(HUNDRED, orders, **wish)


def test_unknown_attributes_are_named():
    with pytest.raises(DomainError, match="no attribute 'height'"):
        attribute_sets(HUNDRED, range(2), only=["height"])


def test_the_empty_domain_has_the_empty_set():
    empty = rp.Domain(())
    assert attribute_sets(empty, range(1)).shape == (1, 0)
    assert attribute_sets(empty, range(1), cells=5).shape == (1, 0)


def test_rows_are_padded():
    assert padded([(), (2,), (0, 1)]).tolist() == [[-1, -1], [2, -1], [0, 1]]
    assert MAX_TABLES == 5_000_000
