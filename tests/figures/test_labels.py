"""Labels beside what they name."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.figures.labels import apart, shortened


@given(st.lists(st.floats(-5, 5), max_size=8), st.floats(0.01, 2))
def test_labels_stand_apart_and_in_order(places, gap):
    found = apart(places, gap)
    assert len(found) == len(places)
    ranked = sorted(range(len(places)), key=lambda i: -places[i])
    for upper, lower in itertools.pairwise(ranked):
        assert found[upper] - found[lower] >= gap * (1 - 1e-9)
    # As near as can be: on the whole they are not moved up or down.
    assert sum(found) == pytest.approx(sum(places), abs=1e-6)


def test_labels_with_room_stay_where_they_belong():
    assert apart([1, 5, 3], 1) == [1, 5, 3]
    assert apart([2, 2], 1) == pytest.approx([2.5, 1.5])
    assert apart([0, 10, 0.5], 1) == pytest.approx([-0.25, 10, 0.75])


def test_long_names_are_cut():
    assert shortened("age × sex") == "age × sex"
    assert shortened("a" * 31) == "a" * 29 + "…"
    assert len(shortened("a" * 1000, 12)) == 12
