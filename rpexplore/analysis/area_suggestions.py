"""Area suggestions: what would make a table in areas good enough, what that gains and costs.

As for tables (`suggestions`): for a table on a level of areas of which too few people are in good
cells, changes are tried: a coarser level of areas, coarser values, several of these together, an
attribute left out, more weight, more budget, the table left out on this level. All tables that
could come in its place are drawn at once, in the same populations; with the errors of now the
finest that is enough is looked for, and the best of each kind is planned anew and forecast.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import nan, sqrt

import numpy as np

from rpexplore.analysis.area_forecast import AreaForecast, JudgedTable, judged
from rpexplore.analysis.coarser_tables import Rung, change_to, new_levels, rungs_of
from rpexplore.analysis.drawn_areas import CountsInAreas, DrawnAreas
from rpexplore.analysis.proposals import (
    AreaProposal,
    TableSuggestions,
    meets_rule,
    more_budget,
    more_weight,
)
from rpexplore.analysis.ranges import Range
from rpexplore.common.processes import Progress, part_of_progress
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.planning.areas.area_plan import AreaPlan, with_budget
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.scenarios.table_changes import (
    LEFT_OUT,
    WEIGHT,
    WITHOUT,
    TableChange,
    changed_tables,
    over,
    with_new_levels,
)
from rpexplore.workload.table_text import Table, title_of
from rpexplore.workload.workload import Workload

AREAS = "areas"
"""The action of a change to a coarser level of areas."""

_MOST_DRAWN = 60  # tables that could come in the place of one
_MOST_OTHERS = 30  # tables on levels that are looked at for what a proposal costs; evenly chosen
_MOST_SEARCHES, _MORE = 3, 1.05  # searches of a kind; by how much errors grow for the next one
_NOTICED = 0.005  # of people: what a proposal gains at least
_TOLERANCE = 3e-3  # of searches for the best plan: far below what a forecast knows
_ROUNDING = 1e-9  # of shares
_LEAST_ERROR = 1e-9  # in records; of what is exact


def area_suggestions(
    forecast: AreaForecast,
    tables: Sequence[tuple[str, AttributeSet]],
    most: int,
    on_progress: Progress,
) -> list[TableSuggestions]:
    """`AreaForecast.suggest`."""
    plan = forecast.areas_of_plan
    tree, asked = plan.workload.tree, plan.workload.tables
    people = {(one.level, one.table): one.people for one in forecast.judged_tables}
    chosen: list[tuple[int, int]] = []
    for level, table in tables or forecast.missing[:most]:
        if level not in tree.levels:
            raise WorkloadError(
                f"The areas have no level {level!r}; they have {', '.join(tree.levels)}."
            )
        place = tree.levels.index(level), asked.position(table)
        if place not in people:
            named = f"The table {asked.describe(place[1])} on the level {level!r}"
            if asked.has_amounts[place[1]]:
                raise WorkloadError(
                    f"{named} cannot be forecast; proposals are for counts of records; name a "
                    "table without amounts."
                )
            raise WorkloadError(f"{named} is not in the plan, or cannot be forecast; name another.")
        chosen.append(place)
    made = []
    for number, (level, row) in enumerate(chosen):
        ends = number / len(chosen), (number + 1) / len(chosen)
        bench = _Bench(forecast, level, row, _known(people[level, row]))
        made.append(bench.suggested(part_of_progress(on_progress, *ends)))
    return made


def _known(people: np.ndarray) -> np.ndarray:
    """Of the populations in which anybody lives on the level."""
    known = people[~np.isnan(people)]
    return known if len(known) else np.zeros(1)


def _median(people: np.ndarray) -> float:
    return float(np.median(_known(people)))


@dataclass(frozen=True, eq=False)
class _Bench:
    """Where changes of a table on a level are tried.

    people  in good cells now, by the forecast: float64[n_populations]
    """

    forecast: AreaForecast
    level: int
    row: int
    people: np.ndarray

    @property
    def plan(self) -> AreaPlan:
        return self.forecast.areas_of_plan

    @property
    def areas(self) -> AreaWorkload:
        return self.plan.workload

    @property
    def table(self) -> Table:
        return self.areas.tables.tables[self.row]

    @cached_property
    def _effect(self) -> float | None:
        survey = self.forecast.survey
        return None if survey is None else float(survey.factors([self.table])[0])

    # ---- the tables that could come in its place, and what they count

    @cached_property
    def _rungs(self) -> list[list[Rung]]:
        """Of each attribute the levels it could have: so many that all tables can be drawn."""
        asked = self.areas.tables
        indices = asked.attribute_indices(self.row)
        if not all(asked.basis_of(self.row, index).is_identity for index in indices):
            return []
        rungs = [rungs_of(asked.domain, index, self.forecast.counts.public) for index in indices]
        while np.prod([len(own) for own in rungs]) > _MOST_DRAWN:
            longest = max(range(len(rungs)), key=lambda axis: len(rungs[axis]))
            first, *others = rungs[longest]
            rungs[longest] = [first, *others[1::2]]
        return rungs

    @cached_property
    def _domain(self) -> Domain:
        """With all levels that these have."""
        new = dict.fromkeys(level for own in self._rungs for level in new_levels(own))
        return with_new_levels(self.areas.domain, tuple(new)).with_levels

    @cached_property
    def _coarser(self) -> dict[tuple[Rung, ...], TableChange]:
        """The changes to coarser values that do not lead to a table that is there already."""
        now, there = tuple(own[0] for own in self._rungs), self._names_on(self.level)
        found = {}
        for rungs in product(*self._rungs):
            if rungs != now:
                change = change_to(self.table, now, rungs, self._domain)
                if change.replacement not in there:
                    found[rungs] = change
        return found

    @cached_property
    def _shorter(self) -> list[TableChange]:
        there = self._names_on(self.level)
        shorter = [tuple(one for one in self.table if one != name) for name in self.table]
        return [
            TableChange(WITHOUT, f"without {name}", self.table, table)
            for name, table in zip(self.table, shorter, strict=True)
            if table not in there
        ]

    def _names_on(self, level: int) -> set[Table]:
        """The tables that are asked for in some area of a level."""
        kinds = np.unique(self.areas.kinds[self.areas.tree.level_slice(level)])
        return {table for kind in kinds if kind >= 0 for table in self.areas.workloads[kind].tables}

    @cached_property
    def _drawn(self) -> tuple[DrawnAreas, Mapping[tuple[int, Table], CountsInAreas]]:
        """These and the tables that there are, in the same populations; by level and table."""
        more = [change.replacement for change in (*self._coarser.values(), *self._shorter)]
        drawn_before = self.forecast.counts
        # Levels of a codebook that has more of them: the figures are the same.
        public = replace(drawn_before.public, domain=self._domain.of_records)
        asked = self._with(self.level, [table for table in more if table is not None])
        for level in range(1, self.level):
            if self.table not in self._names_on(level):
                asked = _with_tables(asked, level, [self.table])
        drawn = DrawnAreas.of(asked, public, drawn_before.totals)
        names = asked.tables.tables
        return drawn, {(one.level, names[one.table]): one for one in drawn.counts}

    def _with(self, level: int, tables: Sequence[Table]) -> AreaWorkload:
        known = self._domain if any(map(len, self._rungs)) else self.areas.domain
        asked = replace(
            self.areas, workloads=tuple(over(one, known) for one in self.areas.workloads)
        )
        return _with_tables(asked, level, tables, of=self.table) if tables else asked

    def _judged(
        self, plan: AreaPlan, level: int, table: Table, row: int, times: float = 1.0
    ) -> JudgedTable:
        """A table of the drawn ones, by the errors of a row of a plan."""
        drawn, counts = self._drawn
        limit, share = self.forecast.limit, self.forecast.share
        return judged(
            plan, drawn, counts[level, table], row, limit, share, effect=self._effect, times=times
        )

    # ---- what is worth planning anew

    def suggested(self, on_progress: Progress) -> TableSuggestions:
        level_name = self.areas.tree.levels[self.level]
        title = f"{level_name}: {title_of(self.areas.tables, self.row)}"
        tried: list[AreaProposal] = []
        searches = [*self._searches()]
        for number, search in enumerate(searches):
            on_progress(f"Trying changes of {title}", number / len(searches))
            with suppress(RpexploreError):  # such as required targets that cannot be met then
                tried += self._found(search)
        useful = (one for one in tried if one.people is None or one.gained > _NOTICED)
        return TableSuggestions(
            (level_name, *self.table),
            title,
            Range.of(self.people),
            tuple(sorted(useful, key=lambda one: one.rank)),
            self.forecast.whom,
        )

    def _found(self, search: "Callable[[float], _Change | None]") -> list[AreaProposal]:
        """The best that a search finds: it goes on with what errors are once it is planned."""
        inflation, found, done = 1.0, list[AreaProposal](), list[TableChange]()
        for _ in range(_MOST_SEARCHES):
            asked = search(inflation)
            if asked is None or asked.change in done:
                break
            done.append(asked.change)
            found.append(self._planned(asked))
            if asked.change.replacement is None or asked.level != self.level:
                break
            needed = found[-1].standard_error / self._error_now
            inflation = needed if found[-1].is_enough else max(needed, _MORE * inflation)
        return sorted(found, key=lambda one: one.rank)[:1]

    @cached_property
    def _now(self) -> JudgedTable:
        return self._judged(self.plan, self.level, self.table, self.row)

    @property
    def _error_now(self) -> float:
        return self._mean_error(self._now)

    def _mean_error(self, one: JudgedTable) -> float:
        """The root mean square of the errors in the areas of a level."""
        weights = self._drawn[0].stands_for[one.rows]
        return sqrt(float(np.average(one.errors**2, weights=weights)))

    def _searches(self) -> "Iterator[Callable[[float], _Change | None]]":
        for axis, own in enumerate(self._rungs):
            for kind in dict.fromkeys(rung.kind for rung in own[1:]):
                yield partial(self._coarser_by, axis, kind)
        if len(self._rungs) > 1:
            yield self._several
        for change in self._shorter:
            yield lambda _, change=change: _Change(change, self.level)
        for level in range(self.level - 1, 0, -1):
            yield partial(self._on_level, level)
        yield lambda _: self._more_weight()
        yield lambda _: self._more_budget()
        if self.areas.n_tables > 1:
            where = self.areas.tree.levels[self.level]
            left = TableChange(LEFT_OUT, f"Leave the table out on the level {where}", self.table)
            yield lambda _: _Change(left, self.level)

    def _is_enough(self, people: np.ndarray) -> bool:
        return Range.of(_known(people)).low >= self.forecast.share - _ROUNDING

    def _expected(self, change: TableChange, inflation: float) -> np.ndarray:
        assert change.replacement is not None
        return self._judged(self.plan, self.level, change.replacement, self.row, inflation).people

    def _coarser_by(self, axis: int, kind: str, inflation: float) -> "_Change | None":
        """The finest level of this kind that is enough, or else the coarsest."""
        best = None
        now = tuple(own[0] for own in self._rungs)
        for rung in self._rungs[axis][1:]:
            change = self._coarser.get((*now[:axis], rung, *now[axis + 1 :]))
            if rung.kind == kind and change is not None:
                best = _Change(change, self.level)
                if self._is_enough(self._expected(change, inflation)):
                    break
        return best

    def _several(self, inflation: float) -> "_Change | None":
        """Several attributes coarser: the table of most cells that is enough, or none."""
        now = tuple(own[0] for own in self._rungs)
        several = [
            rungs
            for rungs in self._coarser
            if sum(rung is not first for rung, first in zip(rungs, now, strict=True)) > 1
        ]
        several.sort(key=lambda rungs: -np.prod([float(rung.size) for rung in rungs]))
        for rungs in several:
            if self._is_enough(self._expected(self._coarser[rungs], inflation)):
                return _Change(self._coarser[rungs], self.level)
        return None

    def _on_level(self, level: int, _: float) -> "_Change":
        names = self.areas.tree.levels
        is_there = self.table in self._names_on(level)
        text = f"On the level {names[level]} {'alone' if is_there else 'instead'}, and not on "
        text += names[self.level]
        return _Change(TableChange(AREAS, text, self.table, self.table), level)

    def _more_weight(self) -> "_Change | None":
        weights = [
            float(one.weights[one.position(self.table)])
            for one in self.areas.workloads
            if self.table in one.tables
        ]
        if len(weights) == 0 or self._is_enough(self._now.people):
            return None
        weight = weights[0]

        def is_enough(factor: int) -> bool:
            change = TableChange(WEIGHT, "", self.table, weight=factor * weight)
            plan = self._plan_after(_Change(change, self.level))
            row = plan.workload.tables.position(self.table)
            return self._is_enough(self._judged(plan, self.level, self.table, row).people)

        return _Change(more_weight(self.table, weight, is_enough), self.level)

    def _more_budget(self) -> "_Change | None":
        """The smallest budget at which the table meets the rule."""
        if not self.plan.loss.is_homogeneous:
            return None

        def is_enough(times: float) -> bool:
            errors = 1 / sqrt(times)
            one = self._judged(self.plan, self.level, self.table, self.row, errors)
            return self._is_enough(one.people)

        change = more_budget(self.table, self.plan.budget, self.plan.noise, is_enough)
        return None if change is None else _Change(change, self.level)

    # ---- planned anew, and forecast

    def _plan_after(self, asked: "_Change") -> AreaPlan:
        plan, change = self.plan, asked.change
        if change.budget is not None:
            return with_budget(plan, change.budget)
        workload = changed_areas(self.areas, self.level, change, onto=asked.level)
        return plan_areas(
            workload,
            loss=plan.loss,
            budget=plan.budget,
            uniform_levels=plan.uniform,
            tolerance=_TOLERANCE,
        )

    @cached_property
    def _others(self) -> list[tuple[int, Table, int, JudgedTable]]:
        """Level, table, row and judgement of those that are looked at, without this one."""
        rows = {table: row for row, table in enumerate(self.areas.tables.tables)}
        there = [
            (level, table)
            for level, table in self._drawn[1]
            if table in self._names_on(level) and (level, table) != (self.level, self.table)
        ]
        if len(there) > _MOST_OTHERS:
            chosen = np.linspace(0, len(there) - 1, _MOST_OTHERS).round().astype(int)
            there = [there[place] for place in chosen.tolist()]
        return [
            (level, table, rows[table], self._judged(self.plan, level, table, rows[table]))
            for level, table in there
        ]

    def _planned(self, asked: "_Change") -> AreaProposal:
        change, planned = asked.change, self._plan_after(asked)
        tables, tree = planned.workload.tables, self.areas.tree
        rows = {table: row for row, table in enumerate(tables.tables)}
        own: JudgedTable | None = None
        after = change.replacement if change.replacement is not None else self.table
        if change.action != LEFT_OUT:
            own = self._judged(planned, asked.level, after, rows[after])
        people = None if own is None else Range.of(_known(own.people))
        variances, gained, meeting = [], [], 0.0
        for level, table, _, before in self._others:
            if (level, table) == (asked.level, after):
                continue
            now = self._judged(planned, level, table, rows[table])
            variances.append(
                (self._mean_error(now) / max(self._mean_error(before), 1e-300)) ** 2 - 1
            )
            gained.append(float(np.nanmean(now.people - before.people)))
            meeting += float(np.median(now.meeting) - np.median(before.meeting))
        return AreaProposal(
            change=change,
            workload=tables,
            budget=change.budget or self.plan.budget,
            table=""
            if own is None
            else f"{tree.levels[asked.level]}: {title_of(tables, rows[after])}",
            cells=0.0 if own is None else own.n_cells * own.n_areas,
            standard_error=nan if own is None else self._mean_error(own),
            people=people,
            gained=nan if people is None else people.median - _median(self._now.people),
            meets="" if people is None else meets_rule(people, self.forecast.share),
            others_variance=float(np.median(variances)) if variances else 0.0,
            others_largest=float(np.max(variances)) if variances else 0.0,
            others_people=float(np.mean(gained)) if gained else 0.0,
            others_meeting=meeting,
            areas=planned.workload,
        )


@dataclass(frozen=True)
class _Change:
    """A change, and the level that the table is on then."""

    change: TableChange
    level: int


# ---- Tables in areas after a change of one of them on a level.


def changed_areas(
    workload: AreaWorkload, level: int, change: TableChange, *, onto: int
) -> AreaWorkload:
    """The tables in areas after a change of a table in all areas of a level that have it.

    onto: the level that it is on then, if it has another one; its weight and target go with it
    """
    if onto == level:
        changed = _changed_on(workload, level, change.table, lambda one: _changed(one, change))
    else:
        left = TableChange(LEFT_OUT, "", change.table)
        changed = _with_tables(workload, onto, [change.table], of=change.table)
        changed = _changed_on(changed, level, change.table, lambda one: _changed(one, left))
    longest = max((one.domain for one in changed.workloads), key=len)
    return replace(changed, workloads=tuple(over(one, longest) for one in changed.workloads))


def _changed(workload: Workload, change: TableChange) -> Workload | None:
    """The tables of some areas after a change; None if none is left."""
    if change.action == LEFT_OUT and len(workload) == 1:
        return None
    return changed_tables(workload, change)


def _changed_on(
    workload: AreaWorkload,
    level: int,
    table: Table | None,
    change: Callable[[Workload], Workload | None],
) -> AreaWorkload:
    """The areas of a level with other tables, where they have this one (None: any at all)."""
    kinds, workloads = workload.kinds.copy(), list(workload.workloads)
    own = workload.tree.level_slice(level)
    for kind in np.unique(kinds[own]).tolist():
        if kind < 0 or (table is not None and table not in workloads[kind].tables):
            continue
        changed = change(workloads[kind])
        of_level = kinds[own] == kind
        if changed is None:
            kinds[own] = np.where(of_level, -1, kinds[own])
        else:  # the same tables may be asked for on another level
            workloads.append(changed)
            kinds[own] = np.where(of_level, len(workloads) - 1, kinds[own])
    used, moved = np.unique(kinds, return_inverse=True)
    kept = tuple(workloads[kind] for kind in used.tolist() if kind >= 0)
    if not kept:
        raise WorkloadError("No table would be left in any area; keep one.")
    longest = max((one.domain for one in kept), key=len)
    kept = tuple(over(one, longest) for one in kept)
    return AreaWorkload(workload.tree, kept, moved - int(used[0] < 0))


def _with_tables(
    workload: AreaWorkload,
    level: int,
    tables: Sequence[Table],
    *,
    of: Table | None = None,
) -> AreaWorkload:
    """The same with more tables in the areas of a level that have any, or all if none has.

    of: of whose weight and target they are
    """
    source = next((one for one in workload.workloads if of is not None and of in one.tables), None)
    known = max((one.domain for one in workload.workloads), key=len)
    options = {}
    if source is not None and of is not None:
        row = source.position(of)
        target = source.targets[row]
        options = {
            "weights": [float(source.weights[row])] * len(tables),
            "targets": [None if np.isnan(target) else float(target)] * len(tables),
        }
    added = Workload.of(known, list(tables), **options)
    own = workload.tree.level_slice(level)
    if np.all(workload.kinds[own] < 0):
        kinds = workload.kinds.copy()
        kinds[own] = len(workload.workloads)
        return AreaWorkload(workload.tree, (*workload.workloads, added), kinds)

    def change(one: Workload) -> Workload:
        missing = [table for table in added.tables if table not in one.tables]
        if not missing:
            return one
        if len(missing) == len(added):
            return over(one, known) | added
        return over(one, known) | Workload.of(known, missing)

    return _changed_on(workload, level, None, change)
