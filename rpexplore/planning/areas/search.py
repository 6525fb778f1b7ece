"""The search for the best precisions: rounds, until one is proven to be near enough."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.errors import PlanError
from rpexplore.planning.areas.capped_solver import AreaCapped
from rpexplore.planning.areas.solvers import AreaMaximum, AreaProblem, AreaRound, AreaState
from rpexplore.planning.solvers.solution import report_gap

_MOST_ROUNDS = 20_000
_PATIENCE, _LESS = 150, 0.9  # rounds within which the gap has to shrink to this share
# Much smaller steps leave prices where they are, also wrong ones: where levels were asked for
# different tables, searches took twice the rounds with 1/10, and ended nowhere without a limit.
_LEAST_STEP = 0.5
_ROOM = 0.9  # largest variance over its cap that leaves room enough to mix with


def best_precisions(
    problem: AreaProblem,
    tolerance: float,
    on_progress: Progress = no_progress,
    *,
    is_enough: Callable[[AreaRound], bool] = lambda found: False,
) -> AreaState:
    """The state of a round whose value is within the tolerance of its bound, or that is enough.

    Raises:
        PlanError: If none is found.
    """
    factors = problem.factors if isinstance(problem, AreaMaximum) else None
    # Where it falls apart, the product of two small solutions is within their gaps of the best
    # already.
    state = problem.start() if factors is None else _product(*factors, tolerance, on_progress)
    best, improved = np.inf, 0
    for number in range(_MOST_ROUNDS):
        found = problem.visit(state)
        report_gap(on_progress, found.gap)
        if is_enough(found):
            return state
        if found.gap <= tolerance:
            if found.mended is None:
                return state
            # Mixed with the room all caps hold, at some cost: the mix must prove its gap by itself.
            mended = found.mended()
            if problem.visit(mended).value <= problem.proven(mended) * (1 + tolerance):
                return mended
        state = found.follow()
        if found.gap < best * _LESS:
            best, improved = found.gap, number
        elif number - improved >= _PATIENCE:  # prices swing around where they belong
            state, improved = replace(state, step=max(state.step / 2, _LEAST_STEP)), number
    raise PlanError(
        f"The search came within {best:.2g} of the best possible, and not within "
        f"{tolerance:g}; ask for a larger tolerance."
    )


def problem_with_room(
    problem: AreaCapped, tolerance: float, on_progress: Progress = no_progress
) -> tuple[AreaCapped, AreaState, float]:
    """The problem with precisions inside its caps, as far as that is possible.

    Returns:
        The problem, with room if there is any; the state that comes as far inside as the tolerance
        asks for; and its largest variance over its cap, below 1 where there is room.
    """
    inside = best_precisions(
        problem.relative, tolerance, on_progress, is_enough=lambda found: found.value <= _ROOM
    )
    largest = problem.relative.visit(inside).value
    return (problem.with_room(inside) if largest < 1 else problem), inside, largest


def _product(
    of_tables: AreaMaximum, of_areas: AreaMaximum, tolerance: float, on_progress: Progress
) -> AreaState:
    """The product of the states that are best for two factors: its gaps multiply."""
    tables = best_precisions(of_tables, tolerance / 10)
    # (1 + a)(1 + b) = 1 + tolerance: the small problem gets a tenth, as it is cheap.
    areas = best_precisions(of_areas, (1 + tolerance) / (1 + tolerance / 10) - 1, on_progress)
    assert tables.table_prices is not None
    assert areas.table_prices is not None
    return AreaState(
        tables.precisions * areas.precisions,
        areas.prices,
        tables.table_prices * areas.table_prices,
    )
