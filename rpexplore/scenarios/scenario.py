"""Scenario: everything a curator chooses for a plan, as one frozen value. Never holds a record.

The app keeps exactly one of these and replaces it; the plan follows from it. A `Workload` is
derived from a `WorkloadRequest` ("all up to 3-way"), which survives a change of the codebook.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_format, check_keys, list_of, loads, refusing
from rpexplore.common.numbers import exact_fraction, exact_text, shown
from rpexplore.common.text import check_text
from rpexplore.domain.area_tree_file import ReadTreeFile, no_tree_file
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.areas.area_plan import AreaPlan, with_budget
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.counts_objectives import LARGEST, OBJECTIVES, counts_objective
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.losses.losses import Loss, SumOfVariances
from rpexplore.planning.part_plan import keeping
from rpexplore.planning.part_shares import refuse_unsplittable, stated_shares
from rpexplore.planning.pilot import share_of_budget as share_of_pilot_budget
from rpexplore.planning.pilot import share_of_pilot, with_pilot
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import optimum
from rpexplore.planning.request import AtBudget, combined, share_of_budget, solved_for
from rpexplore.planning.serialization import loss_from_json
from rpexplore.planning.table_plan import RestObjective, TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.area_study import AreaStudy, study_from_json, study_to_json
from rpexplore.scenarios.bases import changed_basis_choices
from rpexplore.scenarios.board_notes import BoardNotes
from rpexplore.scenarios.codebook_change import CodebookChange
from rpexplore.scenarios.table_settings import (
    GroupSetting,
    TableSetting,
    changed_groups,
    changed_settings,
)
from rpexplore.scenarios.workload_request import TableLine, WorkloadRequest
from rpexplore.workload.bases import Basis
from rpexplore.workload.query_definitions import StatedQueries, stated_from_json, stated_to_json
from rpexplore.workload.rules import Rule
from rpexplore.workload.table_text import title
from rpexplore.workload.workload import Workload

FORMAT = "rpexplore-scenario"
FORMAT_VERSION = 2

NAME_LENGTH = 60  # also of a survey
NOTE_LENGTH = 2000
RECORD_NOUN_LENGTH = 100
MOST_PUBLIC_TABLES = 100
RECORDS = "records"  # what they are called where nobody has said what they are

_LEFT_OUT_EMPTY = (
    "survey", "board", "areas", "asks_for_tables", "shares", "counts_objective", "free_counts",
    "design", "pilot", "then", "rules", "public",
)  # of files  # fmt: skip
NOTHING_ASKED = "Nothing is asked for; ask for tables, or for own counts."
_UNUSABLE = "This is not a usable scenario"


@dataclass(frozen=True)
class Scenario:
    """The inputs of a plan, under a name.

    record_noun  what one record stands for, in the plural ("people")
    name         for people to tell scenarios apart; never empty
    note         what its author wants to remember about it
    survey       what the records are: "Household survey"; "" where nobody has said
    expected     public counts that evenly spread figures are judged by, if there are any: a number
                 of records, or else those of the newest public table; the plan does not depend on
                 them
    cv_limit     the largest coefficient of variation of a publishable cell: 0.2 is 20 %
    uniform_reference  measure attributes with ranges, groups and the like as classical
                 ResidualPlanner+ does: totals are spread evenly over the values, instead of by the
                 distribution that gives the most accurate tables
    query_list   own counts beside the tables, if there are any: about attributes of their own, so
                 that a change of the codebook leaves them as they are
    board        what the report tells the board beside the plan, and what it has decided
    areas        tables for areas, if there are any: of attributes of their own
    asks_for_tables  whether tables are asked for; without any, areas or own counts must be
    counts_objective  what own counts are planned for, as of a `Request`
    free_counts  names of own counts that take only what the others leave of the budget; those that
                 the list does not have are out of use
    shares       (kind of part, its share of the budget), 1 in all; (): the best ones. Those that
                 were stated for other parts than there are now are out of use
    design       of the survey, if its sampling error counts beside the noise in forecasts and
                 publishable shares; the plan does not depend on it
    pilot        share of the budget by which one-way tables are measured first, at most; None: no
                 pilot
    then         how certainly most people are to be in good cells by the plan of the rest, which
                 is made when the pilot is measured: "median" or "surely"; "": the rest is planned
                 now
    rules        what the tables are to meet; those about tables that are not asked for now are out
                 of use
    public       public tables that forecasts rest on; expected counts by attributes are one of them

    All of it is one plan within the budget, of the parts `kinds`.

    Example:
        >>> scenario = Scenario(Domain.from_sizes({"age": 100}), name="Ages")
        >>> Scenario.parse(scenario.text()).name
        'Ages'
    """

    domain: Domain
    request: WorkloadRequest = field(default_factory=WorkloadRequest)
    loss: Loss = field(default_factory=SumOfVariances)
    budget: Budget = field(default_factory=lambda: Budget(rho="0.1"))
    record_noun: str = RECORDS
    name: str = "Scenario 1"
    note: str = ""
    expected: ExpectedCounts | None = None
    cv_limit: float = CV_LIMIT
    uniform_reference: bool = False
    # Compared below: lists of queries hold arrays, which have no equality of their own.
    query_list: StatedQueries | None = None
    board: BoardNotes = field(default_factory=BoardNotes)
    survey: str = ""
    areas: AreaStudy | None = None
    asks_for_tables: bool = True
    shares: tuple[tuple[str, Fraction], ...] = ()
    counts_objective: str = LARGEST.option
    free_counts: tuple[str, ...] = ()
    design: SurveyDesign | None = None
    pilot: Fraction | None = None
    then: str = ""
    rules: tuple[Rule, ...] = ()
    public: tuple[PublicTable, ...] = ()

    def __post_init__(self) -> None:
        for noun, text, most in (
            ("name of a scenario", self.name, NAME_LENGTH),
            ("note of a scenario", self.note, NOTE_LENGTH),
            ("name of a survey", self.survey, NAME_LENGTH),
            ("word for what is counted", self.record_noun, RECORD_NOUN_LENGTH),
        ):
            check_text(text, f"The {noun}", most, WorkloadError)
        if not self.name.strip():
            raise WorkloadError("A scenario needs a name; type one.")
        if not isinstance(self.uniform_reference, bool):
            raise WorkloadError(
                f"Whether totals are spread evenly must be true or false, got "
                f"{shown(self.uniform_reference)}."
            )
        if not isinstance(self.asks_for_tables, bool):
            raise WorkloadError(
                f"Whether tables are asked for must be true or false, got "
                f"{shown(self.asks_for_tables)}."
            )
        counts_objective(self.counts_objective)
        if not all(isinstance(name, str) for name in self.free_counts):
            raise WorkloadError("Free counts are named by texts; name counts of the list.")
        if self.shares:
            stated_shares(dict(self.shares), [kind for kind, _ in self.shares])
        if self.pilot is not None:
            share_of_pilot_budget(self.pilot)
        object.__setattr__(self, "cv_limit", checked_cv_limit(self.cv_limit))
        if self.pilot is None and self.then:
            raise PlanError(
                "The rest is planned when a pilot is measured; state the pilot's share."
            )
        _ = self.rest_objective
        expected = self.expected
        if expected is not None and expected.attributes:
            if all(table.counts != expected for table in self.public):
                object.__setattr__(self, "public", (*self.public, PublicTable(expected)))
        elif expected is None and self.public:
            object.__setattr__(self, "expected", _judged_by(self.public, self.domain))
        if len(self.public) > MOST_PUBLIC_TABLES:
            raise WorkloadError(
                f"A scenario can have {MOST_PUBLIC_TABLES:,} public tables, got "
                f"{len(self.public):,}; remove one first."
            )

    @classmethod
    def of_plan(cls, plan: TablePlan, record_noun: str = RECORDS) -> "Scenario":
        """The inputs that a plan was made from.

        Raises `PlanError` for a plan of a rest, which is made of a pilot's figures.
        """
        if plan.first is not None:
            raise PlanError(
                "This is the plan of a rest, made of the figures of a pilot; open the first plan, "
                "whose file is beside it."
            )
        workload, then = plan.workload, plan.then
        return cls(
            workload.domain,
            WorkloadRequest.of(workload),
            plan.loss,
            plan.budget,
            record_noun,
            uniform_reference=plan.has_uniform_reference,
            cv_limit=CV_LIMIT if then is None else float(then.limit),
            pilot=share_of_pilot(plan),
            then="" if then is None else then.certainty,
            rules=plan.rules,
        )

    @cached_property
    def workload(self) -> Workload:
        """The tables; raises `WorkloadError` where the request cannot be met."""
        return self.request.workload(self.domain)

    @cached_property
    def public_tables(self) -> PublicTables | None:
        """What is public of the records, for forecasts; None if nothing is.

        Raises `WorkloadError` for totals that are too far apart, and for shares without a number of
        records.
        """
        expected = self.expected
        if expected is None and not self.public:
            return None
        number = expected.total if expected is not None and not expected.attributes else None
        return PublicTables(self.domain, self.public, number)

    @property
    def stated_public(self) -> tuple[PublicTable, ...]:
        """The public tables, without one that expected counts say alone."""
        is_said = self.expected is not None and self.public == (PublicTable(self.expected),)
        return () if is_said else self.public

    def with_public(self, tables: Iterable[PublicTable]) -> "Scenario":
        """A copy with these public tables; refuses what does not fit the codebook, or each other.

        A number of records that was typed stays.
        """
        fitted = tuple(table.fitted(self.domain) for table in tables)
        expected = self.expected
        if expected is not None and (
            expected.attributes or expected == _judged_by(self.public, self.domain)
        ):
            expected = None
        changed = self.replaced(public=fitted, expected=expected)
        if changed.public_tables is not None:
            _ = changed.public_tables.connected
        return changed

    @property
    def counted(self) -> str:
        """The word for those whom tables count: what the records are, else who is protected."""
        return self.budget.counted_as(self.record_noun)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of parts that its plan has, in the order of a plan.

        A codebook that has no attributes yet asks for no tables, where something else is asked for.
        """
        others = {"areas": self.areas, "counts": self.query_list}
        beside = tuple(kind for kind, asked in others.items() if asked is not None)
        has_tables = self.asks_for_tables and (len(self.domain) > 0 or not beside)
        return ("tables", *beside) if has_tables else beside

    @cached_property
    def planned_areas(self) -> AreaStudy | None:
        """The areas as they are planned: weighted as the tables are, where these are weighted.

        Tables that stay unweighted stay so in areas. Raises `WorkloadError` where the codebook of
        areas has the weights with other values.
        """
        asked, weights = self.areas, self.request.weighted_by
        if asked is None or not weights or "tables" not in self.kinds:
            return asked
        return asked.weighted_by(self.domain[weights], self.request.unweighted)

    @property
    def design_in_use(self) -> SurveyDesign | None:
        """The design without design effects of tables that are not asked for now."""
        return self.design and self.design.among(self.workload.tables)

    @property
    def stated_shares(self) -> dict[str, Fraction] | None:
        """Kind -> its share of the budget as it was stated; None where the best are wanted."""
        shares = dict(self.shares)
        return shares if shares and set(shares) == set(self.kinds) else None

    @property
    def rules_in_use(self) -> tuple[Rule, ...]:
        """The rules about tables that are asked for."""
        find, positions = self.workload.find, self.workload.domain.positions
        return tuple(
            rule
            for rule in self.rules
            if all(find(positions(table)) is not None for table in rule.tables)
        )

    @property
    def objective(self) -> Loss:
        """What the parts are compared by: the objective of tables, or else that of areas."""
        return next(iter(self._losses), self.loss)

    @property
    def splits_itself(self) -> bool:
        """Whether the best shares follow from the objective, which then is that of all parts."""
        return len(self.kinds) == 1 or (
            len(set(self._losses)) <= 1
            and self.objective.power is not None
            and (self.query_list is None or OBJECTIVES[self.counts_objective].is_homogeneous)
        )

    @property
    def _losses(self) -> tuple[Loss, ...]:
        """The objectives of its parts; own counts have none."""
        losses = {"tables": self.loss}
        if self.areas is not None:
            losses["areas"] = self.areas.loss
        return tuple(losses[kind] for kind in self.kinds if kind in losses)

    @property
    def used_free_counts(self) -> tuple[str, ...]:
        """The free counts that the list has; none where it has no others."""
        names = () if self.query_list is None else self.query_list.queries.names
        free = tuple(name for name in names if name in self.free_counts)
        return free if len(free) < len(names) else ()

    def budget_to_solve(self, kind: str) -> Budget:
        """At what a part is planned first: its stated share, or the whole budget, at its largest
        cost (`Budget.largest`)."""
        shares, budget = self.stated_shares, self.budget.largest
        return budget if shares is None else share_of_budget(budget, shares[kind])

    def plan(self) -> Plan:
        """The plan of all that is asked for; raises `RpexploreError` where there is none."""
        if not self.kinds:
            raise WorkloadError(NOTHING_ASKED)
        if self.stated_shares is None:  # before anything is planned for long
            if len(set(self._losses)) > 1:
                raise PlanError(
                    "Tables and areas have objectives of their own, which do not say how the "
                    "budget is best split between them: state the shares, or give both the same "
                    "objective."
                )
            refuse_unsplittable(self.kinds, self.objective, OBJECTIVES[self.counts_objective])
        made = {"tables": self._tables_at, "areas": self._areas_at, "counts": self._counts_at}
        parts = {
            kind: solved_for(made[kind], self.budget_to_solve(kind), scales=self.scales(kind))
            for kind in self.kinds
        }
        made = combined(
            parts, self.budget, self.objective, self.stated_shares, by_rho=bool(self.then)
        )
        return self.with_pilot(made)

    def with_pilot(self, plan: Plan) -> Plan:
        """The plan with the pilot that the scenario wants; raises `PlanError` if it can have none.

        Without tables none is wanted.
        """
        if self.pilot is None or plan.part("tables") is None:
            return plan
        return with_pilot(plan, self.pilot, then=self.rest_objective)

    @property
    def rest_objective(self) -> RestObjective | None:
        """What the rest is planned for when the pilot is measured; None: it is planned now."""
        return RestObjective(str(self.cv_limit), self.then) if self.then else None

    def table_plan(self) -> TablePlan:
        """The optimal plan of its tables at the whole budget."""
        at = solved_for(self._tables_at, self.budget.largest, scales=self.scales("tables"))
        return keeping(self.budget, at)  # pyright: ignore[reportReturnType]  # a part of tables

    def scales(self, kind: str) -> bool:
        """Whether the best noise of a part for one budget is that for others, up to its scale."""
        if kind == "counts":
            return OBJECTIVES[self.counts_objective].is_homogeneous
        return (self.areas.loss if kind == "areas" and self.areas else self.loss).is_homogeneous

    def _tables_at(self, first: Budget) -> AtBudget:
        solved = optimum(
            self.workload,
            loss=self.loss,
            budget=first,
            uniform_reference=self.uniform_reference,
        )
        return lambda budget: solved.at(budget, self.rules_in_use)

    def _areas_at(self, first: Budget) -> AtBudget:
        asked = self.planned_areas
        assert asked is not None

        def planned(budget: Budget) -> AreaPlan:
            return plan_areas(
                asked.workload, loss=asked.loss, budget=budget, uniform_levels=asked.uniform
            )

        found = planned(first)

        def at_budget(budget: Budget) -> AreaPlan:
            if (budget.neighbours, budget.exact) != (first.neighbours, first.exact):
                return planned(budget)
            return found if budget == first else with_budget(found, budget)

        return at_budget

    def _counts_at(self, first: Budget) -> AtBudget:
        assert self.query_list is not None
        return query_optimum(
            self.query_list.queries,
            objective=self.counts_objective,
            budget=first,
            free=self.used_free_counts,
            replaces=first.replaces,
            exact=first.exact,
        ).at

    @property
    def misses_target(self) -> str:
        """The first table without the target that the loss compares it with; "" if none is."""
        if not self.loss.compares_with_targets:
            return ""
        missing = np.flatnonzero(np.isnan(self.workload.targets))
        return title(self.workload.tables[missing[0]]) if len(missing) else ""

    @property
    def misses_required(self) -> bool:
        """Whether the objective is to meet required targets first, and there is none."""
        return self.loss.meets_required_targets and not np.any(self.workload.required)

    @property
    def settings_aside(self) -> int:
        """How many settings of single tables belong to tables that are not asked for now."""
        find, positions = self.workload.find, self.workload.domain.positions
        return sum(find(positions(setting.attributes)) is None for setting in self.request.settings)

    def replaced(self, **changes: Any) -> "Scenario":
        """A copy with other fields; what is known of the tables is kept where it stays true."""
        changed = replace(self, **changes)
        if not changes.keys() & {"domain", "request"} and "workload" in vars(self):
            return changed._with_workload(self.workload)
        return changed

    def with_request(self, **changes: Any) -> "Scenario":
        """A copy whose tables are asked for differently; refuses what cannot be met."""
        changed = replace(self, request=replace(self.request, **changes))
        if changes.keys() <= {"settings", "groups", "smooth_weights"} and "workload" in vars(self):
            return changed._with_workload(changed.request.settled(self.workload))
        if changes.keys() <= {"basis_choices"} and "workload" in vars(self):
            return changed._with_workload(changed.request.with_bases(self.workload))
        _ = changed.workload
        return changed

    def with_lines(self, lines: Sequence[TableLine]) -> "Scenario":
        """A copy that asks for the tables of these lines; refuses what cannot be met."""
        changed = replace(self, request=self.request.with_lines(lines))
        _ = changed.workload
        return changed

    def _with_workload(self, workload: Workload) -> "Scenario":
        """This scenario, which then need not derive its tables.

        Right only for the tables that its request gives in its domain.
        """
        vars(self)["workload"] = workload  # what `workload` would keep there
        return self

    def with_settings(self, changed: Iterable[TableSetting]) -> "Scenario":
        """A copy in which these tables have these settings."""
        ordered = [
            replace(setting, attributes=self.domain.with_levels.in_order(setting.attributes))
            for setting in changed
        ]
        asked = self.request
        settings = changed_settings(asked.groups, asked.settings, ordered, asked.default_weight)
        return self.with_request(settings=settings)

    def with_group(self, group: GroupSetting) -> "Scenario":
        """A copy in which all tables with certain attributes have this setting."""
        group = replace(group, containing=self.domain.with_levels.in_order(group.containing))
        groups, settings = changed_groups(self.request.groups, self.request.settings, group)
        return self.with_request(groups=groups, settings=settings)

    def with_basis(
        self, attribute: str, basis: Basis, tables: Iterable[Iterable[str]] = ()
    ) -> "Scenario":
        """A copy in which an attribute has this basis, in all tables or in these.

        Tables that were named one by one keep theirs where all tables change. Raises
        `WorkloadError` if the basis does not fit the attribute.
        """
        domain = self.domain.with_levels
        basis.check(domain[attribute])
        ordered = [domain.in_order(table) for table in tables]
        choices = changed_basis_choices(self.request.basis_choices, attribute, basis, ordered)
        position = domain.position
        choices = sorted(choices, key=lambda one: (position(one.attribute), bool(one.tables)))
        return self.with_request(basis_choices=tuple(choices))

    def with_domain(
        self,
        domain: Domain,
        *,
        renamed: Mapping[str, str] | None = None,
        from_elsewhere: bool = False,
    ) -> "tuple[Scenario, list[str]]":
        """A copy over another codebook, and a sentence for everything that had to be given up.

        renamed: old attribute name -> new one, for attributes that only changed their name
        from_elsewhere: the codebook was not edited but loaded, so that a weight or a target is
        kept only where all attributes of its table have the same values as before
        """
        change = CodebookChange(self.domain, domain, renamed or {}, from_elsewhere)
        request, notes = change.request(self.request)
        notes += change.lost_combinations
        public, expected = [], self.expected
        for table in self.public:
            try:
                public.append(table.fitted(domain, renamed))
            except WorkloadError as error:
                notes.append(f"{error} The public table was dropped: {table.title}.")
        if expected is not None and expected.attributes:
            expected = None  # those of a public table
        names, rules = renamed or {}, []
        for rule in self.rules:
            tables = [[names.get(name, name) for name in table] for table in rule.tables]
            if all(name in domain.with_levels for table in tables for name in table):
                rules.append(replace(rule, tables=tables))
            else:
                notes.append(f"The rule {str(rule)!r} was dropped: the codebook lacks its tables.")
        design = self.design
        if design is not None:
            design, lost = design.renamed(renamed or {}, domain.with_levels.names)
            notes += lost
        changed = replace(
            self, domain=domain, request=request, expected=expected, design=design,
            rules=tuple(rules), public=tuple(public),
        )  # fmt: skip
        return changed, notes

    # ---- files

    def text(self) -> str:
        """The scenario as JSON text; `parse` undoes it exactly."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file; `from_json` undoes it exactly."""
        # Expected counts that are those of a public table are written once.
        expected, public = self.expected, self.stated_public
        if public and expected == _judged_by(public, self.domain):
            expected = None
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "name": self.name,
            "note": self.note,
            "domain": self.domain.to_schema(),
            "record_noun": self.record_noun,
            "tables": self.request.to_json(),
            "loss": self.loss.to_json(),
            "budget": self.budget.to_json(),
            "expected": None if expected is None else expected.to_json(),
            "cv_limit": self.cv_limit,
            "uniform_reference": self.uniform_reference,
            "query_list": None if self.query_list is None else stated_to_json(self.query_list),
        }
        if self.survey:
            content["survey"] = self.survey
        if self.areas is not None:
            content["areas"] = study_to_json(self.areas)
        if not self.asks_for_tables:
            content["asks_for_tables"] = False
        if self.shares:
            content["shares"] = {kind: exact_text(share) for kind, share in self.shares}
        if self.rules:
            content["rules"] = [rule.to_json() for rule in self.rules]
        if self.counts_objective != LARGEST.option:
            content["counts_objective"] = self.counts_objective
        if self.free_counts:
            content["free_counts"] = list(self.free_counts)
        if self.design is not None:
            content["design"] = self.design.to_json()
        if self.pilot is not None:
            content["pilot"] = exact_text(self.pilot)
        if self.then:
            content["then"] = self.then
        if public:
            content["public"] = [table.to_json() for table in public]
        return content if self.board.is_empty else content | {"board": self.board.to_json()}

    @classmethod
    def parse(cls, text: str, read_tree: ReadTreeFile = no_tree_file) -> "Scenario":
        """The scenario that a text holds; raises `WorkloadError` if it is not a usable one."""
        with refusing(WorkloadError, _UNUSABLE):
            content = loads(text)
        return cls.from_json(content, read_tree)

    @classmethod
    def from_json(cls, content: Any, read_tree: ReadTreeFile = no_tree_file) -> "Scenario":
        """The scenario of a file's content; raises `WorkloadError` if it is not a usable one.

        read_tree: reads the file of its areas, when they are needed
        """
        with refusing(WorkloadError, _UNUSABLE):
            content = of_version_2(content)
            check_format(content, FORMAT, FORMAT_VERSION, "scenario")
            empty = {name for name in _LEFT_OUT_EMPTY if name not in content}
            own = [field.name for field in fields(cls) if field.name not in {"request", *empty}]
            check_keys(content, ["format", "format_version", "tables", *own], "a scenario")
            # Unlike the codebook of a plan, that of a scenario may be one that is only begun.
            domain = Domain.from_schema(content["domain"], may_be_empty=True)
            expected, queries = content["expected"], content["query_list"]
            areas = content.get("areas")
            if expected is not None:
                expected = ExpectedCounts.from_json(expected).fitted(domain)
            request = WorkloadRequest.from_json(content["tables"])
            for table in request.named:  # also those that are not in use now
                domain.with_levels.positions(table)
            for basis_choice in request.basis_choices:
                basis_choice.basis.check(domain.with_levels[basis_choice.attribute])
            scenario = cls(
                domain=domain,
                request=request,
                loss=loss_from_json(content["loss"]),
                budget=Budget.from_json(content["budget"]),
                record_noun=content["record_noun"],
                name=content["name"],
                note=content["note"],
                expected=expected,
                cv_limit=content["cv_limit"],
                uniform_reference=content["uniform_reference"],
                query_list=None if queries is None else stated_from_json(queries),
                board=BoardNotes.from_json(content.get("board", {})),
                survey=content.get("survey", ""),
                areas=None if areas is None else study_from_json(areas, read_tree),
                asks_for_tables=content.get("asks_for_tables", True),
                shares=tuple(
                    (kind, exact_fraction(share, f"The share of {shown(kind)}"))
                    for kind, share in content.get("shares", {}).items()
                ),
                rules=tuple(map(Rule.from_json, content.get("rules", ()))),
                counts_objective=content.get("counts_objective", LARGEST.option),
                free_counts=tuple(
                    list_of(content, "free_counts") if "free_counts" in content else ()
                ),
                design=SurveyDesign.from_json(content["design"]) if "design" in content else None,
                pilot=share_of_pilot_budget(content["pilot"]) if "pilot" in content else None,
                then=content.get("then", ""),
                public=tuple(
                    PublicTable.from_json(table).fitted(domain)
                    for table in (list_of(content, "public") if "public" in content else ())
                ),
            )
            _ = scenario.public_tables
            for rule in scenario.rules:
                for table in rule.tables:
                    domain.with_levels.positions(table)
            _ = scenario.workload
        return scenario


def _judged_by(tables: Sequence[PublicTable], domain: Domain) -> ExpectedCounts | None:
    """The counts that evenly spread figures are judged by: those of the newest table there is.

    Of a table at a level, whose values no attribute has, its total alone; None of shares alone.
    """
    counted = sorted(
        (table for table in tables if not table.is_shares), key=lambda table: table.date or "9999"
    )
    at_attributes = [
        table.counts for table in counted if all(name in domain for name in table.counts.attributes)
    ]
    if at_attributes:
        return at_attributes[-1]
    return ExpectedCounts.of_total(counted[-1].counts.total) if counted else None


def of_version_2(content: Any) -> Any:
    """The content of a scenario or project of version 1 as version 2 has it; any other as it is.

    Version 1 had tables, areas and queries side by side, each at the whole budget; version 2 has
    them as parts of one plan within it, at the best shares. Nothing else differs.
    """
    version = content.get("format_version") if isinstance(content, dict) else None
    is_old = type(version) is int and version == 1
    return content | {"format_version": FORMAT_VERSION} if is_old else content
