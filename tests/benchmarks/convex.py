"""Speed of planning for convex losses other than sums and largest variances.

Cases of `tests.benchmarks.run`. Custom losses are solved, and bounded, by the conic solver; p-norms
take their own algorithm.
"""

from collections.abc import Callable

import cvxpy as cp
import numpy as np

import rpexplore as rp
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.losses.losses import PNorm
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.conic_program import symmetric_classes
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.solving import Problem, solve
from tests.benchmarks.measure import Row, best_of_three
from tests.published import figures

_NORMS = (PNorm(2), PNorm(20))
_OWN = (
    CustomLoss(lambda V: cp.norm(V, 2), "norm"),
    CustomLoss(lambda V: cp.sum_squares(cp.pos(V - 100)) + 1e-3 * cp.sum(V), "excess"),
)


def with_targets(workload: rp.Workload, weights: np.ndarray | None = None) -> rp.Workload:
    """Targets of about what a privacy cost of 1 gives, so that some are met and some are not."""
    targets = np.full(len(workload), 0.7 * np.sqrt(len(workload)))
    weights = workload.weights if weights is None else weights
    return rp.Workload(workload.domain, workload.members, weights, targets)


def thirty_one(*, unlike: bool) -> rp.Workload:
    domain = rp.Domain.from_sizes({f"a{i}": i + 2 if unlike else 10 for i in range(31)})
    return with_targets(rp.Workload.all_of_order(domain, 3))


def a_hundred() -> rp.Workload:
    domain = rp.Domain.from_sizes({f"a{i}": 2 + 3 * (i % 10) for i in range(100)})
    return with_targets(rp.Workload.all_up_to(domain, 3))


def solved(
    name: str, workload: rp.Workload, losses: tuple[PNorm | CustomLoss, ...], limit: float
) -> list[Row]:
    rows: list[Row] = []
    for loss in losses:

        def gap_of(closure: Closure, loss: PNorm | CustomLoss = loss) -> float:
            solution = solve(Problem(workload, closure, loss, 1.0, TOLERANCE))
            value = loss.value(closure.variances(solution.sigma_squared), workload)
            return value / solution.lower_bound - 1

        seconds, gap = best_of_three(gap_of, lambda: Closure.of(workload))
        rows += [
            (f"{name}, {loss.description}, s", seconds, "<=", limit),
            ("  gap", gap, "<=", 1e-6),
        ]
    return rows


def adult() -> list[Row]:
    workload = with_targets(figures.workload("Adult", "<=3"))
    return solved("Adult, at most 3-way", workload, (*_NORMS, *_OWN), 1)


def thirty_one_alike() -> list[Row]:
    workload = thirty_one(unlike=False)
    return solved("31 attributes of one size, 3-way", workload, (*_NORMS, *_OWN), 2)


def thirty_one_unlike() -> list[Row]:
    workload = thirty_one(unlike=True)
    return solved("31 attributes of 31 sizes, 3-way", workload, (*_NORMS, *_OWN), 10)


def a_hundred_of_ten_sizes() -> list[Row]:
    name = "100 attributes of ten sizes, at most 3-way"
    return solved(name, a_hundred(), _NORMS, 10)


def a_hundred_of_random_weight() -> list[Row]:
    plain = a_hundred()
    weights = np.random.default_rng(0).uniform(1, 100, len(plain))
    workload = with_targets(plain, weights)
    name = "166,751 tables, weight 1 to 100"
    return solved(name, workload, _NORMS, 10)


def merging() -> list[Row]:
    cases: list[tuple[str, Callable[[], rp.Workload]]] = [
        ("166,751 tables of ten sizes", a_hundred),
        ("Adult", lambda: figures.workload("Adult", "<=3")),
    ]
    rows: list[Row] = []
    for name, workload_of in cases:
        workload = workload_of()
        seconds, classes = best_of_three(
            lambda closure, w=workload: symmetric_classes(closure, w.weights),
            lambda w=workload: Closure.of(w),
        )
        count = len(classes.table_counts)
        rows.append((f"{name} merged to {count} classes, s", seconds, "<=", 1))
    return rows


CASES = (
    merging,
    adult,
    thirty_one_alike,
    thirty_one_unlike,
    a_hundred_of_ten_sizes,
    a_hundred_of_random_weight,
)
