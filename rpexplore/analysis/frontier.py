"""Average against worst case: the plans of which none is better at both.

Where attributes are measured through strategies, all plans here share those of the two optima that
the frontier is drawn between, and are compared with no others.

With S the sum of variances and M the largest variance (each weighted as its loss says), S* and M*
the smallest possible ones, a point of the frontier minimises (1 − θ) S/S* + θ M/M*. At θ = 0 and 1
these are the plans for the two objectives. Both fall as 1/budget, so one frontier serves every
budget.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import rounded
from rpexplore.planning.losses.losses import MaxVariance, SumOfVariances
from rpexplore.planning.mechanism.variances import (
    CellVariances,
    TableVariances,
    is_negligible_difference,
)
from rpexplore.planning.planner import Optimum, optimum_with_strategies_of
from rpexplore.planning.solvers.largest_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.solution import Solution
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_changes import refuse_long

MOST_POINTS = 11
_TOLERANCE = 1e-6
_STRAIGHT = 0.002  # where there is less room than this, of the whole extent, no point is added

# What a page has to say that shows optima with the strategies of another.
STRATEGIES_OF_PLAN = (
    "What is measured of attributes with ranges, groups and the like is that of your plan. "
    "Planned on its own, each of these plans can differ."
)


@dataclass(frozen=True)
class Point:
    """One plan, by what it gives at privacy cost 1 of one record.

    worst_weight  θ: how much the worst case counts
    total         S: weighted sum of variances
    largest       M: largest weighted variance
    gap           how far (1 − θ) S/S* + θ M/M* can be above the smallest possible value, relative
    """

    worst_weight: float
    total: float
    largest: float
    gap: float


@dataclass(frozen=True, eq=False)
class Frontier:
    """Points by rising θ from 0 to 1: `total` rises and `largest` falls.

    best_average  the optimum at θ = 0
    """

    best_average: Optimum
    worst_loss: MaxVariance
    points: tuple[Point, ...]

    @property
    def average_loss(self) -> SumOfVariances:
        """What `total` is."""
        loss = self.best_average.loss
        assert isinstance(loss, SumOfVariances)
        return loss

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

    def values(self, variances: TableVariances) -> tuple[float, float]:
        """(S, M) of a plan, from the variances of the tables at privacy cost 1 of one record."""
        workload = self.best_average.workload
        total = self.average_loss.value(variances.of_loss(self.average_loss), workload)
        return total, self.worst_loss.value(variances.of_loss(self.worst_loss), workload)

    def errors(
        self, total: float, largest: float, budget: Budget, measure: Measure = STANDARD_ERROR
    ) -> tuple[float, float]:
        """(average, largest) at a budget for (S, M): mean and largest variance, or their roots."""
        cost, power = float(budget.record_privacy_cost), measure.power
        weight = float(np.sum(self.average_loss.table_weights(self.best_average.workload)))
        return math.sqrt(total / weight / cost) ** power, math.sqrt(largest / cost) ** power


def frontier_of_strategies(
    reference: Optimum, average: SumOfVariances, worst: MaxVariance, on_progress: Progress
) -> Frontier:
    """The frontier between plans that measure attributes as the reference does."""
    on_progress("Planning for the best average and the best worst case", 0.0)
    ends = (
        optimum_with_strategies_of(reference, reference.workload, loss) for loss in (average, worst)
    )
    return frontier(*ends, on_progress=on_progress)


def frontier(
    best_average: Optimum,
    best_worst: Optimum,
    *,
    most_points: int = MOST_POINTS,
    on_progress: Progress = no_progress,
) -> Frontier:
    """The frontier between two optima of one workload: of a SumOfVariances and a MaxVariance.

    Between two neighbours it lies below their chord (mixing their noise scales gives it or
    better) and above both their lines of equal value. The next point goes where these leave most
    room, at the θ whose lines are parallel to the chord; so there are more where it bends more.
    """
    worst_loss = best_worst.loss
    assert isinstance(worst_loss, MaxVariance)
    frontier = Frontier(best_average, worst_loss, ())
    ends = []
    for worst_weight, optimum in ((0.0, best_average), (1.0, best_worst)):
        total, largest = frontier.values(optimum.table_variances)
        gap = (largest if worst_weight else total) / optimum.solution.lower_bound - 1
        ends.append(Point(worst_weight, total, largest, max(gap, 0.0)))
    frontier = replace(frontier, points=tuple(ends))
    while len(frontier.points) < most_points and not frontier.is_a_point:
        index, worst_weight = _next_point(frontier.points, frontier.unit)
        if worst_weight is None:
            break
        count = len(frontier.points)
        doing, done = f"Plan {count + 1} of up to {most_points}", count / most_points

        def report(*_: object, doing: str = doing, done: float = done) -> None:
            on_progress(doing, done)

        report()
        point = _point_between(frontier, worst_weight, report)
        points = (*frontier.points[:index], point, *frontier.points[index:])
        frontier = replace(frontier, points=points)
    return frontier


def points_at(
    frontier: Frontier, budget: Budget, measure: Measure = STANDARD_ERROR
) -> pd.DataFrame:
    """One row a point: worst_weight, average and largest (in the measure, at the budget), gap,
    given_up and gained (per cent of those of the best average; 0 for itself)."""
    points = frontier.points
    errors = [frontier.errors(point.total, point.largest, budget, measure) for point in points]
    frame = pd.DataFrame(errors, columns=["average", "largest"])
    return frame.assign(
        worst_weight=[point.worst_weight for point in points],
        gap=[point.gap for point in points],
        given_up=100 * (frame["average"] / frame["average"][0] - 1),
        gained=100 * (1 - frame["largest"] / frame["largest"][0]),
    )


def bend(frame: pd.DataFrame) -> int:
    """The row of `points_at` where most is gained for what is given up, each of what there is."""
    given_up = frame["given_up"] / max(frame["given_up"].max(), 1e-300)
    gained = frame["gained"] / max(frame["gained"].max(), 1e-300)
    return int((gained - given_up).argmax())


def describe_frontier(
    frontier: Frontier, frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> str:
    """The gain in the worst case for a larger average, in a sentence; frame: of `points_at`."""
    rows = frame.to_dict("records")
    first, middle, last = rows[0], rows[bend(frame)], rows[-1]
    alike = frontier.has_fixed_strategies
    among = " of the plans that measure attributes as yours does" if alike else ""
    start = (
        f"The best average{among}, {measure.stated(first['average'], record_noun)}, comes with a "
        f"{worst_case(frontier, measure)} of {rounded(first['largest'], 3)}."
    )
    if frontier.is_a_point:
        none = "None of these" if alike else "No plan"
        return (
            f"There is next to nothing to trade: one plan is as good as the best at both. {start} "
            f"{none} brings that below {rounded(last['largest'], 3)}."
        )
    if 0 < rows.index(middle) < len(rows) - 1:
        bent, all_the_way = _exchange(middle, measure), _exchange(last, measure)
        return f"{start} From there, {bent}; all the way, {all_the_way}."
    return f"{start} From there, {_exchange(last, measure)}."


def describe_point(row: dict) -> str:
    """A row of `points_at` for a list: "average 11 (+1.9 %), worst case 17 (−49 %)"."""
    return (
        f"average {rounded(row['average'], 3)} (+{rounded(row['given_up'], 2)} %), "
        f"worst case {rounded(row['largest'], 3)} (−{rounded(row['gained'], 2)} %)"
    )


def describe_marks(frontier: Frontier) -> str:
    """The meaning of the marks on the curve."""
    alike = frontier.has_fixed_strategies
    among = "among plans that measure attributes as yours does, " if alike else ""
    return f"Each mark is a plan at the current budget; {among}none is better at both."


def describe_applied(frontier: Frontier, row: dict) -> str:
    """The message when a row of `points_at` has been applied.

    The plan is the point where all attributes are counted by single values. Elsewhere it is planned
    with strategies of its own.
    """
    text = f"Applied: {describe_point(row)}."
    if 0 < row["worst_weight"] < 1:
        text += " The tables have the weights that give it, and the curve is drawn for them."
    if frontier.has_fixed_strategies:
        text += " Planned anew, with attributes measured otherwise, it can be a little better."
    return text


def worst_case(frontier: Frontier, measure: Measure = STANDARD_ERROR) -> str:
    """The name of the worst case."""
    if frontier.worst_loss.relative_to == "target":
        squared = "squared " if measure.power == 2 else ""
        return f"largest {squared}ratio of standard error to target"
    weights = frontier.best_average.workload.weights
    return f"largest {'' if np.all(weights == 1) else 'weighted '}{measure.noun}"


def scenario_between(scenario: Scenario, frontier: Frontier, worst_weight: float) -> Scenario:
    """A scenario whose plan is the point of the frontier at θ = worst_weight, if measured alike.

    Between the ends it is the plan for a weighted sum of variances, whose weights become the
    tables' weights. Raises `WorkloadError` where there are too many tables to list.
    """
    if worst_weight in (0, 1):
        loss = frontier.worst_loss if worst_weight else frontier.average_loss
        return scenario.replaced(loss=loss)
    workload = frontier.best_average.workload
    refuse_long(len(workload))
    in_sum, in_largest = _weights(frontier, worst_weight)
    weights = in_sum + _solve(frontier, worst_weight).shadow_prices * in_largest
    weights /= np.mean(weights)
    targets = {setting.attributes: setting.target for setting in scenario.request.settings}
    settings = [
        TableSetting(table, float(f"{weight:.6g}"), targets.get(table))
        for table, weight in zip(workload.tables, weights.tolist(), strict=True)
    ]
    return scenario.with_settings(settings).replaced(loss=SumOfVariances())


def _exchange(row: dict, measure: Measure) -> str:
    return (
        f"an average {measure.noun} {rounded(row['given_up'], 2)} % larger makes the worst case "
        f"{rounded(row['gained'], 2)} % smaller ({rounded(row['largest'], 3)})"
    )


def _point_between(frontier: Frontier, worst_weight: float, on_progress: Progress) -> Point:
    optimum, unit = frontier.best_average, frontier.unit
    solution = _solve(frontier, worst_weight, on_progress)
    total, largest = frontier.values(
        TableVariances.of(optimum.workload, optimum.closure, solution.sigma_squared)
    )
    value = (1 - worst_weight) * total / unit[0] + worst_weight * largest / unit[1]
    return Point(worst_weight, total, largest, max(value / solution.lower_bound - 1, 0.0))


def _next_point(points: Sequence[Point], unit: tuple[float, float]) -> tuple[int, float | None]:
    """(its index, θ) of the next point; θ is None where the frontier is known well enough.

    From the left end (0, 0) of a chord to its right end (dx, dy), where x is S/S* given up and y
    M/M* gained, the lines of equal value through the ends, (1−a) x = a y and
    (1−b) (x−dx) = b (y−dy), meet at (a, 1−a) · t with t = (b dy − (1−b) dx) / (b−a). In terms
    of (1−θ) x − θ y, which is 0 on the chord, that is (θ−a) t below it.
    """
    total, largest, shares = np.array(
        [(point.total, point.largest, point.worst_weight) for point in points]
    ).T
    x, y = total / unit[0], -largest / unit[1]
    dx, dy, a, b = np.diff(x), np.diff(y), shares[:-1], shares[1:]
    usable = (dx > 0) & (dy > 0) & (b > a)
    weights = np.where(usable, dx, 1.0) / np.where(usable, dx + dy, 1.0)
    room = (weights - a) * (b * dy - (1 - b) * dx) / np.where(usable, b - a, 1.0)
    room /= (1 - weights) * (x[-1] - x[0]) + weights * (y[-1] - y[0])
    chord = int(np.argmax(np.where(usable, room, 0.0)))
    if not usable[chord] or room[chord] <= _STRAIGHT:
        return 0, None
    return chord + 1, float(weights[chord])


def _weights(frontier: Frontier, worst_weight: float) -> tuple[np.ndarray, np.ndarray]:
    """The tables' weights in the sum and in the largest, float64[n_tables] each."""
    workload, unit = frontier.best_average.workload, frontier.unit
    return (
        (1 - worst_weight) / unit[0] * frontier.average_loss.table_weights(workload),
        worst_weight / unit[1] * frontier.worst_loss.table_weights(workload),
    )


def _solve(
    frontier: Frontier, worst_weight: float, on_progress: Progress = no_progress
) -> Solution:
    workload, closure = frontier.best_average.workload, frontier.best_average.closure
    in_sum, in_largest = _weights(frontier, worst_weight)
    return minimise_max_cell_variance(
        CellVariances(workload, closure),
        in_largest,
        1.0,
        _TOLERANCE,
        fixed_weights=closure.residual_weights(in_sum),
        on_progress=on_progress,
    )
