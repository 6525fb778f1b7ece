"""From a rule to targets: the largest standard error with which each table meets it.

"CV <= 20 % for 90 % of people" holds of a table with the standard error σ if σ ≤ 20 % · q, with q
the count that 90 % of its people are in cells of at least (docs/mathematics.md §22). With a
survey's design the total error counts, and sampling takes its part of 20 % · q. q is read off the
populations of a forecast; what then follows is a plan for targets: the smallest budget, the tables
that decide it, and their shadow prices.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import Forecast, public_tables_of
from rpexplore.analysis.populations import CountsOfTables
from rpexplore.analysis.ranges import RANGE, Range, at_certainty
from rpexplore.analysis.sufficient_budgets import SufficientBudget, sufficient_budget
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import describe_share, plural
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable
from rpexplore.domain.survey import SurveyDesign, counts_without_sampling, least_good_counts
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.minimum_budget import minimum_budget, rho_of_unit
from rpexplore.planning.planner import Optimum
from rpexplore.privacy.budget import Budget
from rpexplore.workload.rules import CELLS, CERTAINTIES, MEDIAN, Rule, rules_of
from rpexplore.workload.table_text import title_of
from rpexplore.workload.workload import Workload

_ROUNDING = 1e-9  # of shares
_MOST_CELLS = 1_000_000  # of a table whose impossible cells are counted
_MOST_PLANNED_AGAIN = 20_000  # tables, for each population
_RANGE_TOLERANCE = 0.01  # of budgets at the ends of a range, which are shown with three digits
_MOST_AT_ONCE = 2_000_000  # counts that are sorted together: some 80 MB


class _Unreached(NamedTuple):
    """A rule that no budget reaches: the table that most often stands in its way, and how many.

    is_sampling  whether the survey's own error is too large there, and not too few cells occupied
    most         share of the table's cells that hold anybody; of its people, or cells, that are
                 good without any noise where the survey's own error is too large
    """

    rule: Rule
    table: int
    n_tables: int
    is_sampling: bool
    most: Range


@dataclass(frozen=True, eq=False, repr=False)
class RuleTargets:
    """Rules as targets of tables, by what is public of their counts.

    Args:
        tables: The tables; those that have a target of their own keep the stricter one.
        require: Rules, such as "CV<=20% for 90% of people in each table".
        public, expected, on_progress, drawn: As of `Forecast`.
        certainty: Of rules that do not say it: "median", or "surely" for the lower end of the
            forecast.
        survey: The design of the survey, if its sampling error counts beside the noise: the CV of
            rules is then that of the total error.

    Raises:
        WorkloadError: If a rule or a public table cannot be used, or a rule names a table that
            cannot be forecast.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 1)
        >>> public = [rp.ExpectedCounts(("sex",), (("0", "1"),), (500, 1500))]
        >>> rule = "CV<=10% for 90% of people in sex"
        >>> found = rp.RuleTargets(tables, [rule], public=public)
        >>> found.workload.targets.tolist()
        [nan, nan, 50.0]
        >>> float(rp.minimum_budget(found.workload).budget.rho)
        0.00020001
    """

    tables: Workload
    require: Sequence[Rule | str]
    public: Sequence[str | Path | PublicTable | ExpectedCounts] = ()
    expected: float | None = None
    certainty: str = MEDIAN
    on_progress: Progress = no_progress
    drawn: DrawnCounts | None = None
    survey: SurveyDesign | None = None
    _targets: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.rules:
            raise WorkloadError("No rule is stated; state one, or plan without.")
        if self.survey is not None:
            self.survey.refuse_unknown(self.tables.tables)
        for rule in self.rules:
            if rule.tables and not np.all(self.counts.held[rule.places(self.tables)]):
                raise WorkloadError(
                    f"The rule {str(rule)!r} is about a table that cannot be forecast: of sums of "
                    "amounts, or of too many cells that are not equally accurate; leave it out."
                )

    @classmethod
    def worked_out(
        cls, rules: Sequence[Rule | str], drawn: DrawnCounts, survey: SurveyDesign | None
    ) -> "RuleTargets":
        """Rules for the tables that counts were drawn for, with `reason`, which takes long."""
        ruled = cls(drawn.workload, rules, drawn=drawn, survey=survey)
        _ = ruled.reason
        return ruled

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, for these tables."""
        return rules_of(self.tables, self.require, self.certainty)

    @cached_property
    def workload(self) -> Workload:
        """The tables with the targets that the rules come to.

        Raises `WorkloadError` if no budget reaches a rule, and says why.
        """
        if self.reason:
            raise WorkloadError(self.reason)
        return replace(self.tables, targets=self.targets())

    def targets(self, certainty: str = "") -> np.ndarray:
        """The largest standard error with which each table meets the rules, float64[n_tables].

        NaN where no rule is about it; 0 where no budget is enough. certainty: instead of that of
        the rules
        """
        if certainty not in self._targets:  # a page asks with every step of the budget
            targets = self.tables.targets.copy()
            for rule, errors in self.errors_of_rules:
                places = self.places(rule)
                enough = at_certainty(errors, certainty or rule.certainty)
                targets[places] = np.fmin(targets[places], enough)
            targets.flags.writeable = False
            self._targets[certainty] = targets
        return self._targets[certainty]

    @property
    def is_about_all(self) -> bool:
        """Whether every table has a target: by a rule, or one of its own."""
        return not np.any(np.isnan(self.targets()))

    @cached_property
    def reason(self) -> str:
        """Why no budget reaches the rules, in sentences; "" if one does."""
        if not self._unreached:
            return ""
        rule, table, n_tables, is_sampling, most = self._unreached[0]
        title = title_of(self.tables, table)
        more = f"; so it is in {plural(n_tables - 1, 'more table')}" if n_tables > 1 else ""
        if is_sampling:
            assert self.survey is not None
            return (
                f"No budget reaches the rule {str(rule)!r}: without any noise, the survey's own "
                f"error ({self.survey.text}) leaves {most.text(describe_share)} of the {rule.of} "
                f"of {title} in cells of such a CV{more}. Ask for a larger CV or a smaller share, "
                "for coarser levels, or leave such tables out."
            )
        why = (
            f"{most.text(describe_share)} of the cells of {title} hold anybody"
            if rule.of == CELLS
            else f"the counts of {title} are too small"
        )
        return (
            f"No budget reaches the rule {str(rule)!r}: {why}{more}. Ask for a smaller share or "
            "for people instead of cells, for coarser levels, or leave such tables out."
        )

    @cached_property
    def counts(self) -> DrawnCounts:
        """The counts that the rules are judged by."""
        if self.drawn is not None:
            return self.drawn
        public = public_tables_of(self.tables.domain, self.public, self.expected)
        return DrawnCounts.of(self.tables, public, self.on_progress)

    @property
    def text(self) -> str:
        """What the rules came to, in a sentence."""
        n_tables = int(np.sum(~np.isnan(self.workload.targets)))
        rests_on = self.counts.public.text
        total = "" if self.survey is None else f" of the total error ({self.survey.text})"
        return (
            f"{self.rules_text}: by a forecast{total} from {rests_on}, this comes to a target for "
            f"{plural(n_tables, 'table')}."
        )

    @property
    def rules_text(self) -> str:
        """The rules, for a sentence."""
        return "; ".join(rule.text for rule in self.rules)

    def places(self, rule: Rule) -> np.ndarray:
        """The tables that a rule is about and that are forecast, int64[n]."""
        places = np.array(rule.places(self.tables))
        return places[self.counts.held[places]]

    @cached_property
    def errors_of_rules(self) -> list[tuple[Rule, np.ndarray]]:
        """Each rule, and the largest standard errors of noise with which tables meet it.

        float64[n_tables_of_rule, n_populations]; 0 where none is small enough: κ q, less what the
        survey's own error takes of it
        """
        found, n_records = [], self.counts.public.n_records
        for rule, counts in zip(self.rules, self._least_counts, strict=True):
            cv, factors = float(rule.cv), self._factors[self.places(rule), None]
            errors = cv * counts_without_sampling(counts, cv, n_records, factors)
            found.append((rule, errors))
        return found

    # ---- inside

    @cached_property
    def _least_counts(self) -> list[np.ndarray]:
        """Of each rule, the least count that its share of people, or cells, have, by table.

        float64[n_tables_of_rule, n_populations]; 0 where no cell that must be good holds anybody.
        """
        drawn, found = self.counts, []
        shape = (len(self.tables), drawn.populations.n_populations)
        for rule in self.rules:
            counts = np.zeros(shape)
            share, wanted = float(rule.share), set(rule.places(self.tables))
            for group, places in drawn.groups:
                if wanted.isdisjoint(places.tolist()):
                    continue
                n_cells = self.tables.cells[places]
                n_records = drawn.populations.n_records
                counts[places] = least_counts(group, share, rule.of, n_records, n_cells)
            if rule.of == CELLS:
                counts[[place for place in wanted if self._possible(place) < share]] = 0.0
            found.append(counts[self.places(rule)])
        return found

    @cached_property
    def _factors(self) -> np.ndarray:
        """d (1 − f) of each table, 0 without a design: float64[n_tables]."""
        if self.survey is None:
            return np.zeros(len(self.tables))
        return self.survey.factors(self.tables.tables)

    def _possible(self, place: int) -> float:
        """The share of a table's cells that the codebook's combinations leave possible."""
        domain = self.tables.domain
        if not domain.impossible or self.tables.cells[place] > _MOST_CELLS:
            return 1.0
        possible = domain.structural_zeros.possible(self.tables.attribute_indices(place))
        return 1.0 if possible is None else float(possible.mean()) + _ROUNDING

    @cached_property
    def _unreached(self) -> list[_Unreached]:
        """Rules that in too many populations some table cannot meet at any budget."""
        found = []
        for counts, (rule, errors) in zip(self._least_counts, self.errors_of_rules, strict=True):
            missed = errors <= 0
            if at_certainty(~np.any(missed, axis=0), rule.certainty):
                continue
            row = int(np.argmax(missed.mean(axis=1)))
            table = int(self.places(rule)[row])
            n_tables = int(np.sum(~at_certainty(~missed, rule.certainty)))
            # No table may miss it by itself, and some table in each of many populations.
            is_sampling = self.survey is not None and bool(
                at_certainty(counts[row] > 0, rule.certainty)
            )
            least = float(np.finfo(np.float32).tiny)
            if is_sampling:
                n_records, factor = self.counts.public.n_records, self._factors[[table]]
                least = least_good_counts(np.zeros(1), float(rule.cv), n_records, factor).item()
            of_people = is_sampling and rule.of != CELLS
            most = self._share_above(table, least, of_people)
            found.append(_Unreached(rule, table, n_tables, is_sampling, most))
        return found

    def _share_above(self, table: int, least: float, of_people: bool) -> Range:
        """The share of a table's people, or cells, with at least so large a count."""
        for group, places in self.counts.groups:
            if table in places:
                one = np.array([int(np.flatnonzero(places == table)[0])])
                own = CountsOfTables(group.tables[one], group.counts[one], group.of_cells)
                n_cells = self.tables.cells[[table]]
                n_records = self.counts.populations.n_records
                people, cells = own.good(np.full(1, least), n_records, n_cells)
                return Range.of((people if of_people else cells)[0])
        raise AssertionError("only tables that are forecast are asked for")


def budget_with_objective(
    ruled: RuleTargets,
    optimum: Optimum,
    budget: Budget,
    certainty: str = "",
    *,
    by_rho: bool = False,
) -> SufficientBudget | None:
    """The smallest budget at which all tables meet the rules, planned for another objective.

    Args:
        ruled: The rules, as targets of the optimum's tables.
        optimum: With an objective whose best noise at one budget is that of another, scaled.
        budget: The current one, for the privacy unit and the comparison.
        certainty: Instead of that of the rules: "surely" for the upper end of the forecast.
        by_rho: Whether ε follows from ρ alone, as where a rest is planned behind a pilot.

    Returns:
        The budget; None where none reaches the rules, or the objective's noise does not scale.
    """
    if ruled.reason or optimum.budget is not None:
        return None
    targets = ruled.targets(certainty) / ruled.tables.units
    if np.nanmin(targets) <= 0:
        return None
    cost = float(np.nanmax(optimum.table_variances.largest / targets**2))
    needed = rho_of_unit(cost, budget.max_records_per_person)
    noise = None if by_rho else optimum.noise(budget)
    return sufficient_budget(needed, budget, "The rule", noise)


@dataclass(frozen=True)
class BudgetRange:
    """The smallest budget for rules in the populations of a forecast: 90 % of them lie between.

    low, median, high: None where no budget is enough
    """

    low: SufficientBudget | None
    median: SufficientBudget | None
    high: SufficientBudget | None

    @property
    def text(self) -> str:
        """ "In 90 % of the populations … it is ε = 0.91 to ε = 1.6", for the end of a sentence."""
        low, high = (
            "no budget at all" if end is None else end.short_text for end in (self.low, self.high)
        )
        between = low if low == high else f"{low} to {high}"
        return f"in 90 % of the populations that may be behind the forecast it is {between}"

    def to_json(self) -> dict[str, str | None]:
        """ρ of each as text; None where no budget is enough."""
        ends = {"low": self.low, "median": self.median, "high": self.high}
        return {name: None if end is None else end.rho for name, end in ends.items()}


def budget_range(
    ruled: RuleTargets,
    budget: Budget,
    solved: Optimum | Closure,
    on_progress: Progress = no_progress,
    *,
    by_rho: bool = False,
) -> BudgetRange | None:
    """How far the smallest budget for rules depends on the counts that are not public.

    Args:
        ruled: The rules, of which the forecast has the counts.
        budget: The current one, for the privacy unit and the comparison.
        solved: An objective's optimum, whose noise is scaled; or the closure of the tables, with
            which the smallest budget of any plan is found for each population, up to 1 %.
        by_rho: As of `budget_with_objective`.

    Returns:
        None where the objective's noise does not scale, or the tables are too many to plan again.
    """
    if isinstance(solved, Optimum) and solved.budget is not None:
        return None
    if isinstance(solved, Closure) and len(ruled.tables) > _MOST_PLANNED_AGAIN:
        return None
    n_populations, own = ruled.counts.populations.n_populations, ruled.tables.targets
    targets = np.repeat(own[:, None], n_populations, axis=1)
    for rule, errors in ruled.errors_of_rules:
        places = ruled.places(rule)
        targets[places] = np.fmin(targets[places], errors)
    needed = np.full(n_populations, np.inf)
    noises = (
        {number: solved.noise(budget) for number in range(n_populations)}
        if isinstance(solved, Optimum)
        else {}
    )
    for number in np.flatnonzero(np.nanmin(targets, axis=0) > 0).tolist():
        on_progress("Finding the range of the smallest budget", number / n_populations)
        tables = replace(ruled.tables, targets=targets[:, number])
        if isinstance(solved, Optimum):
            costs = solved.table_variances.largest / tables.planned_targets**2
            needed[number] = rho_of_unit(float(np.nanmax(costs)), budget.max_records_per_person)
        else:
            smallest = minimum_budget(tables, closure=solved, tolerance=_RANGE_TOLERANCE)
            smallest = smallest.for_unit_of(budget)
            needed[number], noises[number] = smallest.rho, smallest.noise
    # Of the draws themselves, as there is nothing between a budget and none.
    order = np.argsort(needed)
    low = max(math.floor(RANGE[0] * (n_populations + 1)) - 1, 0)
    ends = order[[low, (n_populations - 1) // 2, n_populations - 1 - low]].tolist()
    return BudgetRange(
        *(
            sufficient_budget(
                float(needed[end]), budget, "The rule", None if by_rho else noises[end]
            )
            if needed[end] < np.inf
            else None
            for end in ends
        )
    )


def describe_meeting(forecast: Forecast) -> str:
    """How many tables of a plan meet its rules, in a sentence."""
    of = int(np.sum(forecast.judged))
    median, surely = (forecast.n_meeting(certainty) for certainty in CERTAINTIES)
    return (
        f"{median:,} of {plural(of, 'table')} {'meets' if of == 1 else 'meet'} the rule by the "
        f"median of the forecast, {surely:,} surely."
    )


def least_counts(
    group: CountsOfTables, share: float, of: str, n_records: np.ndarray, n_cells: np.ndarray
) -> np.ndarray:
    """The largest count q so that a share of people, or of cells, are in cells of at least q.

    float64[n, n_populations]: of each table of a group; 0 where there is none above 0.
    n_records: float64[n_populations]; n_cells: float64[n]
    """
    most = max(_MOST_AT_ONCE // group.counts[0].size, 1)
    if len(group.tables) > most:
        pieces = []
        for first in range(0, len(group.tables), most):
            own = slice(first, first + most)
            piece = CountsOfTables(group.tables[own], group.counts[own], group.of_cells)
            pieces.append(least_counts(piece, share, of, n_records, n_cells[own]))
        return np.concatenate(pieces)
    falling = -np.sort(-group.counts.astype(float), axis=2)
    if of == CELLS:
        # Of m people in a cell of a count, one stands for n_records / m / count cells.
        people_of_one = n_records[:, None] / falling.shape[2]
        weights = np.ones_like(falling) if group.of_cells else people_of_one / falling
        needed = share * n_cells[:, None, None]
    else:
        weights = falling if group.of_cells else np.ones_like(falling)
        needed = share * weights.sum(axis=2, keepdims=True)
    reached = np.cumsum(weights, axis=2) >= needed * (1 - _ROUNDING)
    first = np.argmax(reached, axis=2)[:, :, None]
    counts = np.take_along_axis(falling, first, axis=2)[:, :, 0]
    return np.where(reached[:, :, -1], counts, 0.0)
