"""Speed of planning for targets, against what must be reached: cases of `tests.benchmarks.run`.

Tables of up to three of many attributes with 2 to 29 values, and targets about what a plan for the
average gives, spread by a factor of e^±1/2. Some of them must be met, and the budget leaves these a
slack: by so much is it above the smallest one that meets them. Closures are made before.
"""

from dataclasses import replace
from functools import cache

import numpy as np

import rpexplore as rp
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.planner import optimum
from tests.benchmarks.measure import Row, best_of_three, once

SHARES, SLACKS = (0.01, 0.1, 0.5, 0.9), (1.01, 1.1, 2.0)


def problem(count: int, share: float, slack: float) -> tuple[rp.Workload, Closure, rp.Budget]:
    """All tables of up to three of so many attributes, with this share of required targets."""
    workload, closure = _tables(count)
    rng = np.random.default_rng(0)
    average = optimum(workload, loss=rp.SumOfVariances(), closure=closure)
    targets = np.sqrt(average.mean_variances) * rng.lognormal(0, 0.5, len(workload))
    required = rng.uniform(size=len(workload)) < share
    required[0] = True
    workload = replace(workload, targets=targets, required=required)
    needed = minimum_budget(workload, required_only=True, closure=closure).record_privacy_cost
    return workload, closure, rp.Budget(privacy_cost=repr(needed * slack))


@cache
def _tables(count: int) -> tuple[rp.Workload, Closure]:
    sizes = np.random.default_rng(0).integers(2, 30, count)
    domain = rp.Domain.from_sizes({f"a{i}": int(size) for i, size in enumerate(sizes)})
    workload = rp.Workload.all_up_to(domain, 3)
    return workload, Closure.of(workload)


def with_required(count: int, tolerance: float, gap: float, limit: float) -> list[Row]:
    """Both losses with required targets at every share and slack: the slowest of each, and the
    largest gap."""
    rows: list[Row] = []
    for loss in (rp.MaxWithinTargets(), rp.SumWithinTargets()):
        seconds, gaps, slowest = 0.0, [], ""
        for share in SHARES:
            for slack in SLACKS:
                workload, closure, budget = problem(count, share, slack)
                took, solution = once(
                    lambda loss=loss, workload=workload, closure=closure, budget=budget: _found(
                        workload, loss, closure, budget, tolerance
                    )
                )
                gaps.append(solution.at(budget).certificate.gap)
                if took > seconds:
                    seconds, slowest = took, f"{share:.0%} required, slack {slack:g}"
        name = "best common factor" if isinstance(loss, rp.MaxWithinTargets) else "average"
        what = f"{len(_tables(count)[0]):,} tables, required then {name}: {slowest}, s"
        rows += [(what, seconds, "<=", limit), ("  largest gap of 12", max(gaps), "<=", gap)]
    return rows


def without_required(count: int, tolerance: float, gap: float, limit: float) -> list[Row]:
    """The smallest budget for all targets, and bounded averages."""
    workload, closure, budget = problem(count, 1.0, 1.0)
    rows: list[Row] = []
    for name, loss in {
        "smallest budget for all targets": rp.MaxVariance("target"),
        "average, largest within 0.1 %": rp.SumWithBoundedMax("equal", 0.001),
        "average, largest within 10 %": rp.SumWithBoundedMax("cells", 0.1),
    }.items():
        seconds, solution = best_of_three(
            lambda _, loss=loss: _found(workload, loss, closure, budget, tolerance)
        )
        rows += [
            (f"{len(workload):,} tables, {name}, s", seconds, "<=", limit),
            ("  gap", solution.at(budget).certificate.gap, "<=", gap),
        ]
    return rows


def _found(workload: rp.Workload, loss: Loss, closure: Closure, budget: rp.Budget, gap: float):
    return optimum(workload, loss=loss, budget=budget, closure=closure, tolerance=gap)


def targets_of_five_thousand() -> list[Row]:
    return with_required(31, 5e-7, 1e-6, 1) + without_required(31, 5e-7, 1e-6, 1)


def targets_of_a_hundred_attributes() -> list[Row]:
    return with_required(100, 1e-4, 1e-4, 10) + without_required(100, 1e-4, 1e-4, 10)


def targets_of_least_accurate_cells() -> list[Row]:
    sizes = dict(zip("abcdef", (8, 6, 5, 4, 3, 2), strict=True))
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), 3)
    workload = workload.with_bases({"a": rp.Prefix(), "b": rp.Ranges()})
    rng = np.random.default_rng(0)
    targets = 10 ** rng.uniform(-0.5, 0.5, len(workload))
    workload = replace(workload, targets=targets, required=rng.uniform(size=len(workload)) < 0.4)
    closure = minimum_budget(workload, required_only=True).closure
    rows: list[Row] = []
    for slack in SLACKS:
        needed = minimum_budget(workload, required_only=True, closure=closure).record_privacy_cost
        budget = rp.Budget(privacy_cost=repr(needed * slack))
        for loss in (rp.MaxWithinTargets(), rp.SumWithinTargets()):
            seconds, solution = best_of_three(
                lambda _, loss=loss, budget=budget: optimum(
                    workload, loss=loss, budget=budget, strategies=closure.strategies
                )
            )
            what = f"{len(workload)} tables of ranges, {type(loss).__name__}, slack {slack:g}, s"
            rows += [
                (what, seconds, "<=", 1),
                ("  gap", solution.at(budget).certificate.gap, "<=", 1e-6),
            ]
    return rows


CASES = (
    targets_of_five_thousand,
    targets_of_a_hundred_attributes,
    targets_of_least_accurate_cells,
)
