"""Optima that measure attributes as another one does, so that nothing has to be searched for."""

from collections.abc import Callable

from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import measured_places
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.planner import optimum
from rpexplore.workload.workload import Workload

# What a page that shows such optima has to say.
IN_WORDS = (
    "What is measured of attributes that are asked in ranges, groups and the like is taken over "
    "from your plan. Planned on its own, each of these plans can come out otherwise."
)


def optimum_with_strategies_of(
    like: Optimum,
    workload: Workload,
    loss: Loss,
    *,
    note: Callable[[float], None] = lambda gap: None,
) -> Optimum:
    """The optimum of other tables, or for another loss, with the strategies of an optimum.

    Where all attributes are asked by single values, that is the optimum. Attributes that are asked
    otherwise here and not there are searched for. note: as of `planner.optimum`

    Raises what `planner.optimum` does.
    """
    same = like.workload.has_tables_of(workload)
    closure = like.closure if same else Closure.of(workload)
    strategies = dict(like.closure.strategies)
    if not set(measured_places(workload)) <= strategies.keys():
        found = optimum(workload, loss=loss, budget=like.budget, closure=closure, note=note)
        strategies = {**found.closure.strategies, **strategies}
    return optimum(
        workload,
        loss=loss,
        budget=like.budget,
        closure=closure,
        strategies=None if workload.is_marginals else strategies,
        note=note,
    )
