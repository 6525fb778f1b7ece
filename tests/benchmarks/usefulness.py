"""Speed of publishable shares and of explanations: cases of `run`.

Expected counts are a margin of two attributes. A step is another budget for a plan's objective.
"""

from collections.abc import Callable
from itertools import count

import numpy as np

import rpexplore as rp
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.explanation import explanation
from rpexplore.analysis.usefulness import Usefulness
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.planner import Optimum, optimum
from rpexplore.workload.bases import Hierarchy
from tests.benchmarks import app
from tests.benchmarks.measure import Row, best_of_three

_BUDGET, _LIMIT = rp.Budget(rho="0.1"), 0.2


def _optimum(workload: rp.Workload) -> Optimum:
    return optimum(workload, loss=rp.SumOfVariances())


def _expected(workload: rp.Workload, names: tuple[str, str]) -> ExpectedCells:
    values = tuple(tuple(workload.domain[name].stored_values()) for name in names)
    sizes = [len(listed) for listed in values]
    counts = np.random.default_rng(0).exponential(1e6 / np.prod(sizes), np.prod(sizes))
    return ExpectedCells.of(ExpectedCounts(names, values, tuple(counts.tolist())), workload)


def _step(solution: Optimum, cells: ExpectedCells) -> float:
    """Seconds of a step after the first one."""
    numbers = count(10)

    def of(budget: rp.Budget) -> Usefulness:
        result = Usefulness.of_optimum(solution, budget, cells, _LIMIT)
        result.by_order(), result.by_level(), result.describe()
        return result

    of(_BUDGET)
    return best_of_three(of, lambda: rp.Budget(rho=f"0.{next(numbers)}"))[0]


def usefulness_of_adult() -> list[Row]:
    workload, names = app.adult().workload, ("a04", "a09")
    return [
        (
            "publishable shares of Adult up to 3-way, a step, s",
            _step(_optimum(workload), _expected(workload, names)),
            "<=",
            0.02,
        ),
    ]


def usefulness_of_many() -> list[Row]:
    workload, names = app.hundred().workload, ("a17", "a18")
    solution = _optimum(workload)
    plan = solution.at(_BUDGET)
    explained = best_of_three(
        lambda table: explanation(plan, table).describe("people"), lambda: len(workload) - 1
    )[0]
    return [
        (
            "publishable shares of 166,751 tables, a step, s",
            _step(solution, _expected(workload, names)),
            "<=",
            0.15,
        ),
        ("  one table explained, s", explained, "<=", 0.15),
    ]


def usefulness_by_level() -> list[Row]:
    sizes = {"region": 40, "age": 90, "occupation": 50, "sex": 2, "status": 5, "education": 8}
    domain = rp.Domain.from_sizes(sizes)
    bases = {"region": Hierarchy((5,)), "age": Hierarchy((5, 15)), "occupation": Hierarchy((10,))}
    workload = rp.Workload.all_up_to(domain, 3).with_bases(bases)
    cells = _expected(workload, ("age", "sex"))
    seconds = _step(_optimum(workload), cells)
    return [
        ("publishable shares by level of 3 hierarchies, a step, s", seconds, "<=", 0.15),
        ("  tables left out", len(cells.left_out), "<=", 1),
    ]


CASES: list[Callable[[], list[Row]]] = [
    usefulness_of_adult,
    usefulness_of_many,
    usefulness_by_level,
]
