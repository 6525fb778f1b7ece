"""SQUAREM: exact where steps shrink by one factor, and never below the plain steps."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from rpexplore.planning.solvers.acceleration import squarem_step


@dataclass(frozen=True)
class Point:
    state: np.ndarray
    bound: float
    step: np.ndarray = field(default_factory=lambda: np.empty(0))


def visits_to(bound_of):
    """(visit, all points visited so far)."""
    visited = []

    def visit(state):
        visited.append(Point(state, bound_of(state)))
        return visited[-1]

    return visit, visited


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.99])
def test_steps_that_shrink_by_one_factor_are_followed_to_their_end(factor):
    target, start = np.array([3.0, -1.0, 7.0]), np.array([0.0, 2.0, 4.0])
    first = (1 - factor) * (target - start)
    visit, visited = visits_to(lambda state: -float(np.sum((state - target) ** 2)))
    point = squarem_step(visit, start, first, Point(first, -np.inf, factor * first), np.ones(3))
    np.testing.assert_allclose(point.state, target, rtol=1e-10)
    assert len(visited) == 1


def test_what_has_no_influence_does_not_count_in_the_length():
    first, second = np.array([1.0, 100.0]), np.array([0.5, -100.0])
    visit, _ = visits_to(lambda state: 0.0)
    point = squarem_step(visit, np.zeros(2), first, Point(first, 0.0, second), np.array([1.0, 0.0]))
    assert point.state[0] == pytest.approx(2)  # 1 + 1/2 + 1/4 + …


def test_it_is_taken_back_while_the_bound_is_below_that_of_a_plain_step():
    first = np.array([1.0])
    visit, visited = visits_to(lambda state: -float(abs(state[0] - 2)))
    point = squarem_step(visit, np.zeros(1), first, Point(first, -0.1, 0.99 * first), np.ones(1))
    lengths = [point.state[0] for point in visited]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == pytest.approx(100)
    assert point is visited[-1]
    assert [point.bound >= -0.1 for point in visited] == [False] * (len(visited) - 1) + [True]


def test_two_plain_steps_are_taken_even_where_they_lower_the_bound():
    first = np.array([1.0])
    visit, _ = visits_to(lambda state: -1.0)
    point = squarem_step(visit, np.zeros(1), first, Point(first, 0.0, 0.9 * first), np.ones(1))
    assert point.state[0] == pytest.approx(1.9)
