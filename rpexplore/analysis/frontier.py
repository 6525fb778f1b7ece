"""Average against worst case: the plans of which none is better at both.

Where attributes are measured through strategies, all plans here share those of the two optima that
the frontier is drawn between, and are compared with no others.

With S the sum of variances and M the largest variance (each weighted as its loss says), S* and M*
the smallest possible ones, a point of the frontier minimises (1 − θ) S/S* + θ M/M*. At θ = 0 and 1
these are the plans for the two aims. Both fall as 1/budget, so one frontier serves every budget.
"""

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd

from rpexplore.analysis.frontier_points import Point, next_point
from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.common.formatting import rounded
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.table_variances import TableVariances, is_negligible_difference
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.solvers.max_cell_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.solution import Solution
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_changes import refuse_long
from rpexplore.workload.workload import Workload

MOST_POINTS = 11
TOLERANCE = 1e-6

# What a page has to say that shows optima with the strategies of another.
STRATEGIES_OF_PLAN = (
    "What is measured of attributes with ranges, groups and the like is taken over from your plan. "
    "Planned on its own, each of these plans can come out otherwise."
)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Points by rising θ from 0 to 1: `total` rises and `largest` falls.

    best_average  the optimum at θ = 0
    """

    best_average: Optimum
    worst: MaxVariance
    points: tuple[Point, ...]

    @property
    def average(self) -> SumOfVariances:
        """What `total` is."""
        loss = self.best_average.loss
        assert isinstance(loss, SumOfVariances)
        return loss

    @cached_property
    def weight(self) -> float:
        """The sum of the tables' weights in `total`, which makes it an average."""
        return float(np.sum(self.average.table_weights(self.best_average.workload)))

    @property
    def unit(self) -> tuple[float, float]:
        """(S*, M*), the smallest possible ones."""
        return self.points[0].total, self.points[-1].largest

    @property
    def has_fixed_strategies(self) -> bool:
        """Whether some attributes have strategies, which all plans of the frontier share."""
        return bool(self.best_average.closure.strategies)

    @property
    def is_a_point(self) -> bool:
        """Whether one plan is the best at both, as far as anybody would notice."""
        return is_negligible_difference(
            math.sqrt(self.points[-1].largest), math.sqrt(self.points[0].largest)
        )


def frontier(
    best_average: Optimum,
    best_worst: Optimum,
    *,
    most_points: int = MOST_POINTS,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> Frontier:
    """The frontier between two optima of one workload: of a SumOfVariances and a MaxVariance.

    Between two neighbours it lies below their chord (mixing their noise scales gives it or
    better) and above both their lines of equal value. The next point goes where these leave most
    room, at the θ whose lines are parallel to the chord; so there are more where it bends more.
    """
    worst = best_worst.loss
    assert isinstance(worst, MaxVariance)
    ends = [_end(0.0, best_average, best_average.loss, worst)]
    ends.append(_end(1.0, best_worst, best_average.loss, worst))
    found = Frontier(best_average, worst, tuple(ends))
    while len(found.points) < most_points and not found.is_a_point:
        place, share = next_point(found.points, found.unit)
        if share is None:
            break
        count = len(found.points)
        doing = partial(
            on_progress, f"Plan {count + 1} of up to {most_points}", count / most_points
        )
        doing()
        point = _between(found, share, tolerance, lambda _, __, doing=doing: doing())
        points = (*found.points[:place], point, *found.points[place:])
        found = Frontier(best_average, worst, points)
    return found


def point_of(optimum: Optimum, average: SumOfVariances, worst: MaxVariance) -> tuple[float, float]:
    """(S, M) of any plan at privacy cost 1 of one record."""
    return _values(optimum.workload, optimum.table_variances, average, worst)


def errors_of(found: Frontier, point: tuple[float, float], budget: Budget) -> tuple[float, float]:
    """(average, largest) standard error at a budget for (S, M): roots of mean and largest."""
    cost = float(budget.record_privacy_cost)
    return math.sqrt(point[0] / found.weight / cost), math.sqrt(point[1] / cost)


def points_at(found: Frontier, budget: Budget) -> pd.DataFrame:
    """One row a point: share, average, largest (standard errors at the budget), given_up and
    gained (per cent of the best average's errors; 0 for itself), gap."""
    rows = []
    best, most = errors_of(found, _sums(found.points[0]), budget)
    for point in found.points:
        average, largest = errors_of(found, _sums(point), budget)
        rows.append(
            {
                "share": point.share,
                "average": average,
                "largest": largest,
                "given_up": 100 * (average / best - 1),
                "gained": 100 * (1 - largest / most),
                "gap": point.gap,
            }
        )
    return pd.DataFrame(rows)


def bend(frame: pd.DataFrame) -> int:
    """The row of `points_at` where most is gained for what is given up, each of what there is."""
    given_up = frame["given_up"] / max(frame["given_up"].max(), 1e-300)
    gained = frame["gained"] / max(frame["gained"].max(), 1e-300)
    return int((gained - given_up).argmax())


def describe_frontier(found: Frontier, frame: pd.DataFrame, measure: str, record_noun: str) -> str:
    """What a larger average error buys in the worst case.

    frame: of `points_at`; measure: of `worst_measure`
    """
    rows = frame.to_dict("records")
    first, middle, last = rows[0], rows[bend(frame)], rows[-1]
    alike = found.has_fixed_strategies
    among = " of the plans that measure attributes as yours does" if alike else ""
    start = (
        f"The best average{among}, {rounded(first['average'], 3)} {record_noun}, comes with a "
        f"{measure} of {rounded(first['largest'], 3)}."
    )
    if found.is_a_point:
        none = "None of these" if alike else "No plan"
        return (
            f"There is next to nothing to trade: one plan is as good as the best at both. {start} "
            f"{none} brings that below {rounded(last['largest'], 3)}."
        )
    if 0 < rows.index(middle) < len(rows) - 1:
        return f"{start} From there, {_bought(middle)}; all the way, {_bought(last)}."
    return f"{start} From there, {_bought(last)}."


def describe_point(row: dict) -> str:
    """A row of `points_at` for a list: "average 11 (+1.9 %), worst case 17 (−49 %)"."""
    return (
        f"average {rounded(row['average'], 3)} (+{rounded(row['given_up'], 2)} %), "
        f"worst case {rounded(row['largest'], 3)} (−{rounded(row['gained'], 2)} %)"
    )


def describe_marks(found: Frontier) -> str:
    """What the marks of the curve are, and what none of them is."""
    alike = (
        "among plans that measure attributes as yours does, " if found.has_fixed_strategies else ""
    )
    return f"Each mark is a plan at the current budget; {alike}none is better at both."


def describe_note(found: Frontier, row: dict) -> str:
    """The note of a scenario that is made from a row of `points_at`.

    Its plan is the point where all attributes are asked by single values. Elsewhere it is planned
    with strategies of its own.
    """
    words = describe_point(row)
    if not found.has_fixed_strategies:
        return f"Between average and worst case: {words}"
    return (
        f"On the curve: {words}, with attributes measured as in the plan it was drawn from; "
        "planned on its own this scenario can differ."
    )


def worst_measure(worst: MaxVariance, weights: np.ndarray) -> str:
    """What the worst case is, in words."""
    if worst.relative_to == "target":
        return "largest ratio of standard error to target"
    if np.all(weights == 1):
        return "largest standard error"
    return "largest weighted error"


def scenario_between(scenario: Scenario, found: Frontier, share: float) -> Scenario:
    """A scenario whose plan is the point of the frontier at θ = share, if measured alike.

    Between the ends it is the plan for a weighted sum of variances, whose weights become the
    tables' weights. Raises `WorkloadError` where there are too many tables to list.
    """
    if share in (0, 1):
        return scenario.replaced(loss=found.worst if share else found.average)
    workload = found.best_average.workload
    refuse_long(len(workload))
    fixed, in_largest, solution = _solved(found, share, TOLERANCE)
    weights = fixed + solution.shadow_prices * in_largest
    weights /= np.mean(weights)
    own = {setting.attributes: setting.target for setting in scenario.request.settings}
    settings = [
        TableSetting(table, float(f"{weight:.6g}"), own.get(table))
        for table, weight in zip(workload.tables, weights.tolist(), strict=True)
    ]
    return scenario.with_settings(settings).replaced(loss=SumOfVariances())


def _bought(row: dict) -> str:
    return (
        f"an average error {rounded(row['given_up'], 2)} % larger makes the worst case "
        f"{rounded(row['gained'], 2)} % smaller ({rounded(row['largest'], 3)})"
    )


def _values(
    workload: Workload, variances: TableVariances, average: Loss, worst: MaxVariance
) -> tuple[float, float]:
    """(S, M): S of the tables' mean variances, M of their worst cells."""
    total = average.value(variances.of_loss(average), workload)
    return total, worst.value(variances.of_loss(worst), workload)


def _sums(point: Point) -> tuple[float, float]:
    return point.total, point.largest


def _end(share: float, optimum: Optimum, average: Loss, worst: MaxVariance) -> Point:
    total, largest = _values(optimum.workload, optimum.table_variances, average, worst)
    value = largest if share else total
    return Point(share, total, largest, max(value / optimum.solution.lower_bound - 1, 0.0))


def _between(found: Frontier, share: float, tolerance: float, on_progress: Progress) -> Point:
    """The point at θ = share."""
    _, _, solution = _solved(found, share, tolerance, on_progress)
    workload, unit = found.best_average.workload, found.unit
    closure = found.best_average.closure
    variances = TableVariances.of(workload, closure, solution.sigma_squared)
    total, largest = _values(workload, variances, found.average, found.worst)
    value = (1 - share) * total / unit[0] + share * largest / unit[1]
    return Point(share, total, largest, max(value / solution.lower_bound - 1, 0.0))


def _solved(
    found: Frontier,
    share: float,
    tolerance: float,
    on_progress: Progress = no_progress,
) -> tuple[np.ndarray, np.ndarray, Solution]:
    """(weights in the sum, weights in the largest, their solution) at θ = share."""
    workload, closure = found.best_average.workload, found.best_average.closure
    fixed = (1 - share) / found.unit[0] * found.average.table_weights(workload)
    in_largest = share / found.unit[1] * found.worst.table_weights(workload)
    solution = minimise_max_cell_variance(
        CellVariances(workload, closure),
        in_largest,
        1.0,
        tolerance,
        fixed_weights=closure.residual_weights(fixed),
        on_progress=on_progress,
    )
    return fixed, in_largest, solution
