"""Suggestions: what would make a table good enough, what that gains and what it costs the others.

For a table of which too few people are in good cells (`forecast`), changes are tried: levels of the
codebook, bands, rare values merged, several of these together, an attribute left out, more weight,
more budget, the table left out. Many are tried with the errors that the table has now; the best of
them are planned anew, at the same budget, and forecast with the populations that are drawn already.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import log, nan, sqrt

import numpy as np

from rpexplore.analysis.coarser_tables import NewLevels, Rung, change_to, new_levels, rungs_of
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.populations import CountsOfTables, Factors
from rpexplore.analysis.proposals import (
    Proposal,
    TableSuggestions,
    meets_rule,
    more_budget,
    more_weight,
)
from rpexplore.analysis.ranges import Range
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.domain.survey import SurveyDesign, least_good_counts
from rpexplore.errors import PlanError, RpexploreError, WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.planner import optimum, record_cost
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.table_changes import (
    LEFT_OUT,
    SEVERAL,
    WITHOUT,
    TableChange,
    changed_tables,
    rows_after,
    with_new_levels,
)
from rpexplore.workload.table_text import Table, title_of
from rpexplore.workload.workload import Workload

_TOLERANCE = 1e-3  # of searches for the best plan: far below what a forecast knows
# Tables of plans in which groups of several levels get the best shares of each other: with more of
# them that takes long, and the errors without it are a few per cent larger.
_MOST_SEARCHED = 10_000
_MOST_SEARCHES, _MORE = 3, 1.05  # searches of a kind; by how much errors grow for the next one
_MOST_OTHERS = 10_000  # tables that are looked at for what a proposal costs; of more, evenly chosen
_LEAST_LOST = 0.01  # of the logarithm of cells: two levels may have as many groups
_NOTICED = 0.005  # of people: what a proposal gains at least
_ROUNDING = 1e-9  # of shares


def suggestions(
    plan: TablePlan,
    drawn: DrawnCounts,
    limit: float,
    share: float,
    tables: Sequence[AttributeSet] = (),
    most: int = 5,
    survey: SurveyDesign | None = None,
    noun: str | None = None,
    on_progress: Progress = no_progress,
) -> list[TableSuggestions]:
    """What would make tables good enough: of a plan, with the counts that were drawn for it.

    Args:
        plan: Of the tables.
        drawn: The counts of its tables.
        limit: The largest coefficient of variation of a good cell.
        share: Of a table's people who are to be in good cells.
        tables: The tables to look at; those with fewest people in good cells if none is named.
        most: How many of these at most.
        survey: The design of the survey, if its sampling error counts beside the noise.
        noun: The word for those whom the tables count; by default the plan's.

    Raises:
        WorkloadError: If a named table is not there, or cannot be forecast.
        PlanError: If the objective of the plan is known to a script alone.
    """
    bench = Bench(plan, drawn, limit, share, survey, noun or plan.budget.counted)
    if tables:
        places = [plan.workload.position(table) for table in tables]
        for place in places:
            if not drawn.held[place]:
                remedy = "name another"
                if plan.workload.has_amounts[place]:
                    remedy = "proposals are for counts of records; name a table without amounts"
                raise WorkloadError(
                    f"The table {plan.workload.describe(place)} cannot be forecast; {remedy}."
                )
    else:
        medians = np.median(bench.people, axis=1)
        missing = np.flatnonzero(drawn.held & (medians < share - _ROUNDING))
        places = missing[np.argsort(medians[missing], kind="stable")][:most].tolist()
    made = []
    for number, place in enumerate(places):
        ends = number / len(places), (number + 1) / len(places)
        made.append(bench.suggested(place, part_of_progress(on_progress, *ends)))
    return made


@dataclass(frozen=True, eq=False)
class _Errors:
    """Standard errors of tables of counts, by the noise scales of a plan or nearly one."""

    workload: Workload
    closure: Closure
    sigma_squared: np.ndarray

    @cached_property
    def of_tables(self) -> np.ndarray:
        """The root mean square of each table's cells, float64[n_tables]."""
        return np.sqrt(self.closure.variances(self.sigma_squared)) * self.workload.units

    @cached_property
    def _cells(self) -> CellVariances:
        return CellVariances(self.workload, self.closure)

    def of_cells(self, row: int) -> np.ndarray:
        """Those of all cells of a table, one axis an attribute."""
        return self._cells.standard_errors_of(row, self.sigma_squared)


@dataclass(frozen=True)
class _Search:
    """A search for a change that is just surely enough, were errors so many times those of now."""

    change: Callable[[float], TableChange | None]
    is_last_resort: bool = False


@dataclass(frozen=True, eq=False)
class Bench:
    """Where changes of a plan are tried; it keeps the counts that were drawn of changed tables."""

    plan: TablePlan
    drawn: DrawnCounts
    limit: float
    share: float
    survey: SurveyDesign | None
    whom: str
    _counts: dict[Table, CountsOfTables] = field(default_factory=dict)
    _weighted: dict[tuple[Table, float], _Errors] = field(default_factory=dict)
    _domains: dict[NewLevels, Domain] = field(default_factory=dict)
    _factors_of_people: Factors = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.plan.loss.is_available:
            raise PlanError(
                "Suggestions need the objective of the plan, which only the script that made it "
                "knows; make them there."
            )

    @property
    def workload(self) -> Workload:
        return self.plan.workload

    @cached_property
    def errors(self) -> _Errors:
        """Those of the plan."""
        return _Errors(self.workload, self.plan.closure, self.plan.sigma_squared.floats)

    @cached_property
    def people(self) -> np.ndarray:
        """Shares of people in good cells now, float64[n_tables, n_populations]."""
        return self.drawn.shares(self.errors.of_tables, self.errors.of_cells, self._least_counts)[0]

    @cached_property
    def _others(self) -> DrawnCounts:
        """The counts of the tables that are looked at for what a proposal costs the others."""
        return self.drawn.of_some(_MOST_OTHERS)

    @cached_property
    def _factors(self) -> np.ndarray:
        """d (1 − f) of each table: float64[n_tables]."""
        assert self.survey is not None
        return self.survey.factors(self.workload.tables)

    def _least_counts(self, errors: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The smallest good count of each table, or of each of its cells; shaped as the errors.

        A table in place of another one has its design effect.
        """
        if self.survey is None:
            return errors / self.limit
        factors = self._factors[places].reshape(-1, *[1] * (errors.ndim - 1))
        return least_good_counts(errors, self.limit, self.drawn.public.n_records, factors)

    def planned_errors(
        self, workload: Workload, budget: Budget, closure: Closure | None = None
    ) -> _Errors:
        """Those of the best plan for other tables, nearly; closure: if they have one already."""
        is_simple = self.plan.has_uniform_reference or len(workload) > _MOST_SEARCHED
        found = optimum(
            workload,
            loss=self.plan.loss,
            budget=budget,
            tolerance=max(TOLERANCE, _TOLERANCE),
            uniform_reference=is_simple,
            closure=closure,
        )
        cost = record_cost(budget)
        solved_at = 1.0 if found.budget is None else record_cost(found.budget)
        sigma_squared = found.solution.sigma_squared * (solved_at / cost)
        return _Errors(workload, found.closure, sigma_squared)

    def _errors_after(self, change: TableChange, workload: Workload) -> _Errors:
        """Those of the best plan after a change, nearly; without a search where they follow."""
        if change.budget is not None and self.plan.loss.is_homogeneous:
            times = record_cost(change.budget) / record_cost(self.plan.budget)
            scales = self.errors.sigma_squared / times
            return _Errors(workload, self.errors.closure, scales)
        if change.weight is not None:
            return self._with_weight(change.table, change.weight)
        return self.planned_errors(workload, change.budget or self.plan.budget)

    def _with_weight(self, table: Table, weight: float) -> _Errors:
        """Those where a table has another weight."""
        if (table, weight) not in self._weighted:
            changed, closure = self.workload.with_weights({table: weight}), self.plan.closure
            # Of single values it does not depend on the weights.
            is_same = changed.is_marginals and not (closure.trees or closure.has_own_costs)
            self._weighted[table, weight] = self.planned_errors(
                changed, self.plan.budget, closure if is_same else None
            )
        return self._weighted[table, weight]

    # ---- what is worth planning anew

    def forget_factors(self) -> None:
        """Of the tables that were looked at: of each some 30 MB."""
        self._factors_of_people.clear()

    def suggested(self, place: int, on_progress: Progress) -> TableSuggestions:
        """The table in this row."""
        title, tried = title_of(self.workload, place), list[Proposal]()
        self.forget_factors()
        searches = [*self._searches(place)]
        for number, search in enumerate(searches):
            on_progress(f"Trying changes of {title}", number / len(searches))
            with suppress(RpexploreError):  # such as required targets that cannot be met then
                tried += self._found(place, search, tried)
        useful = (one for one in tried if one.people is None or one.gained > _NOTICED)
        return TableSuggestions(
            self.workload.tables[place],
            title,
            Range.of(self.people[place]),
            tuple(sorted(useful, key=lambda one: one.rank)),
            self.whom,
        )

    def _found(self, place: int, search: _Search, tried: list[Proposal]) -> list[Proposal]:
        """The best that a search finds: it goes on with what errors are once it is planned."""
        if search.is_last_resort and any(one.is_enough for one in tried):
            return []
        inflation, found = 1.0, list[Proposal]()
        for _ in range(_MOST_SEARCHES):
            change = search.change(inflation)
            if change is None or any(one.change == change for one in found):
                break
            found.append(self._planned(place, change))
            if change.replacement is None:
                break
            needed = found[-1].standard_error / self.errors.of_tables[place]
            inflation = needed if found[-1].is_enough else max(needed, _MORE * inflation)
        return sorted(found, key=lambda one: one.rank)[:1]

    def _searches(self, place: int) -> Iterator[_Search]:
        """Of each kind for the change that keeps most and is just enough, or else helps most."""
        table, workload = self.workload.tables[place], self.workload
        indices = workload.attribute_indices(place)
        is_of_counts = all(workload.basis_of(place, index).is_identity for index in indices)
        if is_of_counts and self.drawn.populations.kept:
            rungs = [rungs_of(workload.domain, index, self.drawn.public) for index in indices]
            for axis, own in enumerate(rungs):
                for kind in dict.fromkeys(rung.kind for rung in own[1:]):
                    yield _Search(partial(self._coarser, table, rungs, axis, kind))
            for name in table if len(table) > 1 else ():
                shorter = tuple(one for one in table if one != name)
                if workload.find(workload.domain.positions(shorter)) is None:
                    change = TableChange(WITHOUT, f"without {name}", table, shorter)
                    yield _Search(lambda _, change=change: change)
            if len(table) > 1:
                yield _Search(partial(self._several, table, rungs), is_last_resort=True)
        yield _Search(lambda _: self._more_weight(place))
        yield _Search(lambda _: self._more_budget(place))
        if len(workload) > 1:
            yield _Search(lambda _: TableChange(LEFT_OUT, "Leave the table out", table))

    def _coarser(
        self, table: Table, rungs: list[list[Rung]], axis: int, kind: str, inflation: float
    ) -> TableChange | None:
        """The finest level of this kind that is enough, or else the coarsest."""
        now, best = tuple(own[0] for own in rungs), None
        for rung in rungs[axis][1:]:
            if rung.kind == kind:
                change = self.coarser_by(table, now, (*now[:axis], rung, *now[axis + 1 :]))
                best = change or best
                if change is not None and self.is_enough(self.expected(change, inflation)):
                    break
        return best

    def _several(
        self, table: Table, rungs: list[list[Rung]], inflation: float
    ) -> TableChange | None:
        """Several attributes coarser: rung by rung, by most people gained for the cells lost.

        Then each is as fine again as it can be.
        """

        def tried(steps: Sequence[int]) -> tuple[TableChange | None, np.ndarray]:
            chosen = tuple(own[step] for own, step in zip(rungs, steps, strict=True))
            change = self.coarser_by(table, [own[0] for own in rungs], chosen)
            people = np.zeros(1) if change is None else self.expected(change, inflation)
            return change, people

        steps, best = [0] * len(rungs), None
        people = self.people[self.workload.position(table)]
        while not self.is_enough(people):
            options = []
            for axis, own in enumerate(rungs):
                if steps[axis] + 1 < len(own):
                    further = [*steps[:axis], steps[axis] + 1, *steps[axis + 1 :]]
                    change, then = tried(further)
                    lost = log(own[steps[axis]].size / own[further[axis]].size)
                    gained = float(np.mean(then) - np.mean(people)) / max(lost, _LEAST_LOST)
                    options.append((gained, axis, further, change, then))
            if not options:
                break
            _, _, steps, best, people = max(options, key=lambda option: option[:2])
        for axis in range(len(rungs)):
            while self.is_enough(people) and steps[axis]:
                finer = [*steps[:axis], steps[axis] - 1, *steps[axis + 1 :]]
                change, then = tried(finer)
                if change is None or not self.is_enough(then):
                    break
                steps, best = finer, change
        return best if best is not None and best.action == SEVERAL else None

    def coarser_by(
        self, table: Table, now: Sequence[Rung], rungs: Sequence[Rung]
    ) -> TableChange | None:
        """The change to these levels; None if that table is there already."""
        known = self._with(new_levels(rungs))
        change, domain = change_to(table, now, rungs, known), self.workload.domain
        assert change.replacement is not None
        is_known = all(name in domain for name in change.replacement)
        if is_known and self.workload.find(domain.positions(change.replacement)) is not None:
            return None
        return change

    def _more_weight(self, place: int) -> TableChange | None:
        workload, table = self.workload, self.workload.tables[place]
        weight, loss = float(workload.weights[place]), self.plan.loss
        doubled = workload.with_weights({table: 2 * weight})
        has_no_effect = np.array_equal(loss.table_weights(workload), loss.table_weights(doubled))
        if has_no_effect or self.is_enough(self.people[place]):
            return None

        def is_enough(factor: int) -> bool:
            errors = self._with_weight(table, factor * weight)
            return self.is_enough(
                self.people_in_good_cells(place, self._counts_now(place), errors, place)
            )

        return more_weight(table, weight, is_enough)

    def _more_budget(self, place: int) -> TableChange | None:
        """The smallest budget at which the table meets the rule."""
        counts = self._counts_now(place)

        def is_enough(times: float) -> bool:
            return self.is_enough(
                self.people_in_good_cells(place, counts, self.errors, place, times)
            )

        return more_budget(
            self.workload.tables[place], self.plan.budget, self.plan.noise, is_enough
        )

    # ---- the people in good cells

    def _counts_now(self, place: int) -> CountsOfTables:
        """The counts that are drawn of a table."""
        for counts, places in self.drawn.groups:
            own = np.flatnonzero(places == place)
            if len(own):
                return CountsOfTables(own, counts.counts[own], counts.of_cells)
        raise WorkloadError(f"The table {self.workload.describe(place)} cannot be forecast.")

    def counts_of(self, change: TableChange) -> CountsOfTables:
        """The counts of the table that comes in place of another one."""
        assert change.replacement is not None
        if change.replacement not in self._counts:
            known = self._with(change.levels)
            counts = self.drawn.populations.counts_of(
                known.positions(change.replacement), known, self._factors_of_people
            )
            self._counts[change.replacement] = counts
        return self._counts[change.replacement]

    def _with(self, levels: NewLevels) -> Domain:
        """The domain of tables with these levels as well, made once: many changes are tried."""
        if levels not in self._domains:
            known = with_new_levels(self.workload.domain, levels)
            self._domains[levels] = known.with_levels
        return self._domains[levels]

    def is_enough(self, people: np.ndarray) -> bool:
        """Whether the rule is surely met: by the lower end of the range over populations."""
        return Range.of(people).low >= self.share - _ROUNDING

    def expected(self, change: TableChange, inflation: float) -> np.ndarray:
        """Shares of people in good cells, with so many times the error of now: float64[n]."""
        place = self.workload.position(change.table)
        errors = inflation * self.errors.of_tables[[place]]
        least = self._least_counts(errors, np.array([place]))
        n_records = self.drawn.populations.n_records
        return self.counts_of(change).good(least, n_records, np.ones(1))[0][0]

    def people_in_good_cells(
        self, place: int, counts: CountsOfTables, errors: _Errors, row: int, times: float = 1.0
    ) -> np.ndarray:
        """Shares of people in good cells, float64[n_populations].

        Of the table in this row, which is or replaces that at the place; at so many times the
        budget of its errors.
        """
        own = errors.of_tables[[row]]
        if counts.of_cells:
            own = errors.of_cells(row).reshape(1, -1)
        least = self._least_counts(own / sqrt(times), np.array([place]))
        return counts.good(least, self.drawn.populations.n_records, np.ones(1))[0][0]

    def _planned(self, place: int, change: TableChange) -> Proposal:
        """A change, planned anew and forecast."""
        workload = changed_tables(self.workload, change)
        budget = change.budget or self.plan.budget
        planned = self._errors_after(change, workload)
        rows = rows_after(self.workload, workload)
        row = rows[place]
        if change.replacement is not None:
            row = workload.position(change.replacement)
        people = None
        if row >= 0:
            is_new = change.replacement is not None
            counts = self.counts_of(change) if is_new else self._counts_now(place)
            people = self.people_in_good_cells(place, counts, planned, int(row))

        found = None if people is None else Range.of(people)
        return Proposal(
            change=change,
            workload=workload,
            budget=budget,
            table="" if people is None else title_of(workload, int(row)),
            cells=0.0 if people is None else float(workload.cells[row]),
            standard_error=nan if people is None else float(planned.of_tables[row]),
            people=found,
            gained=nan if found is None else found.median - float(np.median(self.people[place])),
            meets="" if found is None else meets_rule(found, self.share),
            **self.others_after(planned, rows, [place]),
        )

    def others_after(
        self, planned: _Errors, rows: np.ndarray, changed: Sequence[int]
    ) -> dict[str, float]:
        """What a change costs the tables that stay: the fields `others_…` of a `Proposal`.

        planned: errors after it; rows: `rows_after` it; changed: the places of changed tables
        """
        others = rows >= 0
        others[changed] = False
        errors = np.full(len(rows), np.nan)
        errors[others] = planned.of_tables[rows[others]]
        before = self.errors.of_tables
        changes = (errors[others] / before[others]) ** 2 - 1
        after, _ = self._others.shares(
            errors,
            lambda one: planned.of_cells(int(rows[one])) if others[one] else np.full(1, np.nan),
            self._least_counts,
        )
        n_others = np.count_nonzero(others & self.drawn.held)
        others &= self._others.held
        now, then = self.people[others], after[others]
        meeting = [np.median((p >= self.share - _ROUNDING).sum(axis=0)) for p in (now, then)]
        return {
            "others_variance": float(np.median(changes)) if len(changes) else 0.0,
            "others_largest": float(np.max(changes)) if len(changes) else 0.0,
            "others_people": float(np.mean(then - now)) if len(now) else 0.0,
            "others_meeting": float(meeting[1] - meeting[0]) * n_others / max(len(now), 1),
        }
