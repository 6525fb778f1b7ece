"""Most people in good cells within a budget: weights of tables, for the sum of variances.

The share of a table's people who are in good cells falls with its standard error as a forecast
says. It is no convex function of variances, so no plan is proven best for it. But where no small
change of the noise is better, the plan also minimises Σ w_A Var_A with w_A = −d share_A / d Var_A
(docs/mathematics.md §23): weights are set to these derivatives and planned with again and again,
and the best plan on the way is kept.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import public_tables_of
from rpexplore.analysis.measures import Accuracy
from rpexplore.analysis.ranges import Range, at_certainty
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit
from rpexplore.domain.public_tables import PublicTable
from rpexplore.domain.survey import SurveyDesign, least_good_counts
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import Optimum, optimum, optimum_with_strategies_of
from rpexplore.planning.rest import on_top_of_pilot, stating_rest
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.rules import CERTAINTIES, MEDIAN, SURELY
from rpexplore.workload.workload import Workload

_ROUNDS = 12  # after which nothing was gained any more on five data sets
_STEP = 0.5  # of logarithms of weights towards the derivatives
# Derivatives are taken over so much of the logarithm of a standard error, at first and at last:
# wide ones see tables that become good with much less noise, narrow ones where the best is.
_WIDEST, _NARROWEST = 0.7, 0.15
_LEAST_DERIVATIVE = 0.02  # of the mean one: no table is given up altogether
_LEAST_GAIN = 1e-6  # of people: less is rounding
_DIGITS = 3  # of weights, as people type them


@dataclass(frozen=True, eq=False, repr=False)
class MostPeople:
    """Weights with which most people are in good cells within a budget, by a forecast.

    Args:
        tables: The tables; the people of one of weight 2 count twice.
        budget: Of the plan.
        public, expected, on_progress, drawn, survey: As of `Forecast`.
        strategies: By which attributes at several levels are measured, by index; None: the best.
        limit: The largest coefficient of variation of a good cell: 0.2 is 20 %.
        certainty: "median": most people by the median of the forecast; "surely": by the lower end
            of its range.

    Raises:
        WorkloadError: If public tables cannot be used, or nothing says how many records there are.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> found = MostPeople(tables, rp.Budget(rho="0.01"), expected=20_000)
        >>> found.people.median >= found.before.median
        True
        >>> plan = rp.plan(found.workload, loss=rp.SumOfVariances(), budget=found.budget)
    """

    tables: Workload
    budget: Budget
    public: Sequence[str | Path | PublicTable | ExpectedCounts] = ()
    expected: float | None = None
    limit: float = CV_LIMIT
    certainty: str = MEDIAN
    on_progress: Progress = no_progress
    drawn: DrawnCounts | None = None
    survey: SurveyDesign | None = None
    strategies: Mapping[int, Strategy] | None = None

    def __post_init__(self) -> None:
        checked_cv_limit(self.limit)
        if self.certainty not in CERTAINTIES:
            raise WorkloadError(
                f"The certainty must be {MEDIAN} or {SURELY}, got {self.certainty!r}."
            )
        if self.survey is not None:
            self.survey.refuse_unknown(self.tables.tables)
        _ = self.counts  # so that what is wrong is said here

    @cached_property
    def counts(self) -> DrawnCounts:
        """The counts by which cells are judged."""
        if self.drawn is not None:
            return self.drawn
        public = public_tables_of(self.tables.domain, self.public, self.expected)
        drawing = part_of_progress(self.on_progress, 0.0, 0.5)
        return DrawnCounts.of(self.tables, public, drawing)

    @property
    def workload(self) -> Workload:
        """The tables with the weights that were found: for `SumOfVariances()`."""
        return self._found[0]

    @property
    def plan(self) -> TablePlan:
        """The plan with these weights, for these tables alone."""
        return self._optimum_of(self.workload).at(self.budget)

    @property
    def before(self) -> Range:
        """Share of people in good cells with the weights as they are, the mean over tables."""
        return self._found[1]

    @property
    def people(self) -> Range:
        """The same with the weights that were found."""
        return self._found[2]

    @property
    def text(self) -> str:
        """What is gained, in a sentence."""
        whom = self.budget.counted
        return (
            f"Weights for most {whom} in good cells (CV of at most {100 * self.limit:g} %): "
            f"{self.people.text(describe_share)} of {whom} are, and "
            f"{self.before.text(describe_share)} with the weights as they were, by a forecast from "
            f"{self.counts.public.text}."
        )

    # ---- inside

    def _optimum_of(self, workload: Workload) -> Optimum:
        # Strategies of attributes in other bases are those of the weights as they were.
        return optimum_with_strategies_of(self._first, workload, SumOfVariances())

    @cached_property
    def _first(self) -> Optimum:
        if self.strategies is None:
            return optimum(self.tables, loss=SumOfVariances())
        # Solved for the neighbours of the budget, as other ones would have strategies of their own.
        return optimum(
            self.tables, loss=SumOfVariances(), budget=self.budget, strategies=self.strategies
        )

    def _shares(self, accuracy: Accuracy, times: float = 1.0) -> np.ndarray:
        """Shares of people in good cells at so many times the errors, [n_tables, n_populations].

        NaN for tables that cannot be forecast.
        """
        n_records = self.counts.public.n_records
        factors = np.zeros(len(self.tables))
        if self.survey is not None:
            factors = self.survey.factors(self.tables.tables)

        def least(errors: np.ndarray, places: np.ndarray) -> np.ndarray:
            own = factors[places].reshape(-1, *[1] * (errors.ndim - 1))
            return least_good_counts(errors, self.limit, n_records, own)

        return self.counts.shares(
            times * accuracy.standard_errors,
            lambda row: times * accuracy.cell_standard_errors(row),
            least,
        )[0]

    @cached_property
    def _found(self) -> tuple[Workload, Range, Range]:
        """The best weights, and the people in good cells before and with them."""
        held, own_weights = self.counts.held, self.tables.weights
        mean_weights = own_weights[held] / np.sum(own_weights[held])
        workload, solved = self.tables, self._first
        tried: list[tuple[float, Workload, np.ndarray]] = []
        for number in range(_ROUNDS):
            self.on_progress("Weighing tables", 0.5 + 0.5 * number / _ROUNDS)
            accuracy = Accuracy.of_optimum("", solved, self.budget)
            overall = mean_weights @ self._shares(accuracy)[held]
            value = float(at_certainty(overall, self.certainty))
            tried.append((value, workload, overall))
            # At the lower end the populations with fewest people in good cells decide.
            chosen = overall <= np.quantile(overall, 0.25)
            if self.certainty == MEDIAN:
                chosen = np.ones_like(chosen)
            width = _WIDEST * (_NARROWEST / _WIDEST) ** (number / (_ROUNDS - 1))
            more, less = (self._shares(accuracy, math.exp(by)) for by in (-width, width))
            derivatives = (more - less)[:, chosen].mean(axis=1) / (2 * width) * own_weights
            least = _LEAST_DERIVATIVE * np.mean(derivatives[held])
            if not least > 0:  # all cells are good, or none is, with more noise and with less
                break
            # Tables that cannot be forecast count like those in the middle.
            usual = np.mean(derivatives[held])
            derivatives = np.where(held, np.maximum(derivatives, least), usual)
            # d share / d Var = (d share / d ln σ) / (2 Var), up to a factor of all.
            wanted = np.log(derivatives / (accuracy.standard_errors / self.tables.units) ** 2)
            weights = (1 - _STEP) * np.log(workload.weights) + _STEP * (wanted - np.mean(wanted))
            workload = replace(self.tables, weights=_typed(np.exp(weights - np.mean(weights))))
            solved = self._optimum_of(workload)
        self.on_progress("Weighing tables", 1.0)
        most = max(value for value, *_ in tried) - _LEAST_GAIN
        _, workload, overall = next(one for one in tried if one[0] >= most)
        return workload, Range.of(tried[0][2]), Range.of(overall)


@dataclass(frozen=True, eq=False, repr=False)
class PlannedRest:
    """The plan of a rest, and the weights that it is made with.

    plan   of everything, pilot and rest, which names the first plan
    found  the weights, and what they gain by the figures of the pilot
    """

    plan: Plan
    found: MostPeople

    @property
    def text(self) -> str:
        """What the plan gains, and what it costs other tables, beside going on with the first one.

        "With this plan 95 % (95 % to 96 %) of people are in good cells (CV of at most 20 %), …"
        """
        own, first = (one.part("tables").standard_errors for one in (self.plan, self.plan.booked))
        ratios, found = own / first, self.found
        least, median, most = (rounded(float(x), 3) for x in np.quantile(ratios, (0, 0.5, 1)))
        return (
            f"With this plan {found.people.text(describe_share)} of {found.budget.counted} are in "
            f"good cells (CV of at most {100 * found.limit:g} %), and "
            f"{found.before.text(describe_share)} with the weights of the first plan, by a "
            f"forecast from the pilot's figures. "
            f"The standard error of a table is {least} to {most} times that with the weights of "
            f"the first plan, {median} times in the median; the privacy cost is the same."
        )


def planned_rest(
    first: Plan, public: Sequence[PublicTable], on_progress: Progress = no_progress
) -> PlannedRest:
    """`plan_of_rest`, with the weights that it is made with."""
    tables = stating_rest(first)
    pilots = {table.pilot_sha256 for table in public}
    if len(pilots) != 1 or "" in pilots:
        raise PlanError(
            "The rest is planned from the figures of one pilot and nothing else; give the tables "
            "of its release, rpexplore.results.pilot_tables.pilot_tables(FOLDER), alone."
        )
    found = MostPeople(
        tables.workload,
        tables.budget,
        public,
        limit=float(tables.then.limit),
        certainty=tables.then.certainty,
        on_progress=on_progress,
        strategies=tables.closure.strategies or None,
    )
    return PlannedRest(on_top_of_pilot(first, found.plan, *pilots), found)


def plan_of_rest(
    first: Plan, public: Sequence[PublicTable], *, on_progress: Progress = no_progress
) -> Plan:
    """The plan of what is measured after a pilot, made of its figures, on top of what it measured.

    Args:
        first: The plan whose pilot is released, with `then`: what the rest is planned for.
        public: The pilot's figures: `results.pilot_tables.pilot_tables` of its release.

    Returns:
        The plan to release into the folder of the run. It goes on with that run, and with no other
        one, at no further cost, and has the first plan in a file beside it.

    Raises:
        PlanError: If the first plan does not state what its rest is planned for, or the tables are
            not those of one pilot.
        WorkloadError: If the public tables cannot be used.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 9, "sex": 2}), 2)
        >>> first = rp.plan(
        ...     tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.01"), pilot="5%",
        ...     then=rp.RestObjective(),
        ... )
        >>> counts = rp.ExpectedCounts(("sex",), (("0", "1"),), (900, 100))
        >>> figures = [rp.PublicTable(counts, pilot_sha256=64 * "0")]
        >>> rest = plan_of_rest(first, figures)  # in truth pilot_tables("out-pilot")
        >>> rest.booked_sha256 == first.sha256, rest.rho <= first.rho
        (True, True)
    """
    return planned_rest(first, public, on_progress).plan


def _typed(weights: np.ndarray) -> np.ndarray:
    """Weights with a few digits, float64[n]."""
    digits = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(weights)))
    return np.rint(weights * digits) / digits
