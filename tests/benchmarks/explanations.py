"""Speed of explanations of one table: a case of `run`."""

from collections.abc import Callable

import rpexplore as rp
from rpexplore.analysis.explanation import explanation
from rpexplore.planning.planner import optimum
from tests.benchmarks import app
from tests.benchmarks.measure import Row, best_of_three


def explanation_of_many() -> list[Row]:
    workload = app.hundred().workload
    plan = optimum(workload, loss=rp.SumOfVariances()).at(rp.Budget(rho="0.1"))
    explained = best_of_three(
        lambda table: explanation(plan, table).describe("people"), lambda: len(workload) - 1
    )[0]
    return [("one table of 166,751 explained, s", explained, "<=", 0.15)]


CASES: list[Callable[[], list[Row]]] = [explanation_of_many]
