"""Request: what a survey asks for under one budget, and its plan. No records.

    tables   a workload of tables
    areas    tables in the areas of a tree
    counts   own counts, each with a target
    rounds   tables that are estimated, and measured further while the release runs

Each part is planned by itself for the objective; the budget is split between them so that the
objective of all of them together is as small as can be (`shares`), or as stated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from rpexplore.common.numbers import Exact
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.planning.areas.area_plan import with_budget
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.counts_objectives import LARGEST, OBJECTIVES, counts_objective
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.free_counts import indices_of_free
from rpexplore.planning.held_totals import refuse_unheld
from rpexplore.planning.losses.losses import Loss, SumOfVariances
from rpexplore.planning.part_plan import PartPlan, keeping
from rpexplore.planning.part_shares import (
    best_shares,
    refuse_unreplaced,
    refuse_unsplittable,
    refuse_unweighted,
    refuse_without_panel,
    stated_shares,
)
from rpexplore.planning.pilot import share_of_budget as share_of_pilot
from rpexplore.planning.pilot import with_pilot
from rpexplore.planning.plan import PARTS, Plan
from rpexplore.planning.planner import optimum, refuse_type
from rpexplore.planning.solvers.queries import TOLERANCE as COUNTS_TOLERANCE
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.table_plan import RestObjective
from rpexplore.privacy.budget import Budget
from rpexplore.workload.query_list import QueryList
from rpexplore.workload.rules import Rule, rules_of
from rpexplore.workload.workload import Workload

AtBudget = Callable[[Budget], PartPlan]


@dataclass(frozen=True)
class Rounds:
    """Adaptive tables: what is estimated, and about how many records there will be."""

    workload: Workload
    expected_records: int


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for, and by which objective; at least one part.

    tables, areas, counts, rounds   the parts
    loss               what tables and tables in areas are planned for; own counts count in the
                       split like tables of one cell
    counts_objective   what own counts are planned for: the "largest" ratio of a variance to its
                       squared target, the "sum" of all ratios, or "targets-then-sum"
    free_counts        names of own counts that take only what the others leave of their budget
    shares             kind -> share of the budget, exact and 1 in all; without it the best
    require            rules that the tables are to meet, such as "CV<=20% for 90% of people in each
                       table"; the plan keeps them. `RuleTargets` turns them into targets
    uniform_reference, uniform_levels, tolerance   as of `plan_tables` and `plan_areas`
    pilot              share of the budget that measures one-way tables first, as of `with_pilot`
    then               what the rest is planned for when the pilot is measured; None: all now
    universe           which records are counted, by a condition on their own values, such as
                       'rectype = "P" & age >= 16'; its columns need not be in the codebook. "": all
    """

    budget: Budget
    tables: Workload | None = None
    areas: AreaWorkload | None = None
    counts: QueryList | None = None
    rounds: Rounds | None = None
    loss: Loss = field(default_factory=SumOfVariances)
    counts_objective: str = LARGEST.option
    free_counts: Sequence[str] = ()
    shares: Mapping[str, Exact] | None = None
    require: Sequence[Rule | str] = ()
    uniform_reference: bool = False
    uniform_levels: bool = False
    tolerance: float | None = None
    pilot: Exact | None = None
    then: RestObjective | None = None
    universe: str = ""

    def __post_init__(self) -> None:
        refuse_type(self.budget, {Budget}, "budget", "Budget(rho=0.5)")
        counts_objective(self.counts_objective)
        if self.free_counts:
            if self.counts is None:
                raise WorkloadError("Free counts are own counts, and none is asked for.")
            indices_of_free(self.counts, self.free_counts)
        if not self.kinds:
            raise WorkloadError("Nothing is asked for; ask for tables, or for own counts.")
        in_areas = None if self.areas is None else self.areas.tables
        refuse_unweighted(self.tables, in_areas, self.counts, self.kinds)
        refuse_unreplaced(self.budget, self.kinds)
        refuse_without_panel(self.budget, self.kinds)
        refuse_unheld(self.budget, self.tables, self.areas)
        if self.pilot is not None:
            share_of_pilot(self.pilot)
        elif self.then is not None:
            raise PlanError("What the rest is planned for goes with a pilot; state its share.")
        if self.require and self.tables is None:
            raise WorkloadError(
                "A rule is about tables, and none is asked for; ask for some, or leave it out."
            )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of its tables. Raises `WorkloadError` for those that cannot be used."""
        return () if self.tables is None else rules_of(self.tables, self.require)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of parts that it has, in the order of a plan."""
        return tuple(kind for kind in PARTS if getattr(self, kind) is not None)


_OF_TYPE = {Workload: "tables", AreaWorkload: "areas", QueryList: "counts", Rounds: "rounds"}


def plan(
    request: Request | Workload | AreaWorkload | QueryList | Rounds,
    *,
    loss: Loss | None = None,
    budget: Budget | None = None,
    counts_objective: str | None = None,
    shares: Mapping[str, Exact] | None = None,
    uniform_reference: bool = False,
    tolerance: float | None = None,
    pilot: Exact | None = None,
    then: RestObjective | None = None,
    on_progress: Progress = no_progress,
) -> Plan:
    """The plan with the smallest loss within the budget, with its certificate.

    Args:
        request: What is asked for; or a single part of it, with loss and budget beside it.
        loss: What is minimised: `SumOfVariances`, `MaxVariance` and others. Own counts alone need
            none.
        budget: The most that the plan may cost.
        counts_objective: Of own counts, as of `Request`: without it, "largest".
        shares: Kind of part -> its share of the budget ("1/3"), if it is not to be the best one.
        uniform_reference: Measure bases through evenly spread totals, as ResidualPlanner+ does.
        tolerance: Relative gap to the smallest possible loss at which a search may end.
        pilot: Share of the budget ("5%") by which one-way tables are measured first, at most; the
            tables are as accurate as without (`with_pilot`).
        then: What the rest is planned for when the pilot is measured (`plan_of_rest`).
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the search.

    Returns:
        The plan; `plan.certificate` says how far it can be from the best one.

    Raises:
        WorkloadError: If nothing is asked for, or the loss cannot be used with it.
        PlanError: If it cannot be planned, or the shares of the budget must be stated.
        OutOfReachError: If required targets cannot all be met.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain.from_sizes({"age": 100, "sex": 2})
        >>> women = rp.QueryList(rp.Domain.from_sizes({"sex": 2}), [[0, 1]], ("women",), [5])
        >>> both = rp.Request(
        ...     tables=rp.Workload.all_up_to(domain, 2), counts=women, budget=rp.Budget(rho="0.1")
        ... )
        >>> made = rp.plan(both)
        >>> made.contents, made.rho <= made.budget.rho
        ('4 noisy tables and 1 noisy own count', True)
    """
    if not isinstance(request, Request):
        kind = _OF_TYPE.get(type(request))
        if kind is None:
            raise PlanError(
                "A plan is made for a Request, or a Workload, AreaWorkload or QueryList, got "
                f"{type(request).__name__}."
            )
        refuse_type(budget, {Budget}, "budget", "Budget(rho=0.5)")
        assert budget is not None
        if loss is None and kind in ("tables", "areas"):
            raise PlanError("Tables need a loss, such as SumOfVariances(); name one.")
        given = {"loss": loss, "counts_objective": counts_objective}
        chosen = {name: value for name, value in given.items() if value is not None}
        request = Request(
            **{kind: request},  # pyright: ignore[reportArgumentType]  # by the type above
            **chosen,  # pyright: ignore[reportArgumentType]
            budget=budget,
            shares=shares,
            uniform_reference=uniform_reference,
            tolerance=tolerance,
            pilot=pilot,
            then=then,
        )
    elif (loss, budget, counts_objective, shares, uniform_reference, tolerance, pilot, then) != (
        *(None, None, None, None, False, None, None, None),
    ):
        raise PlanError(
            "A Request has its own loss, budget, shares and options; state them there alone."
        )
    kinds = request.kinds
    by_rho = "rounds" in kinds or request.then is not None
    shares_of = stated_shares(request.shares, kinds) if request.shares is not None else None
    if shares_of is None:
        # Before anything is planned for long.
        refuse_unsplittable(kinds, request.loss, OBJECTIVES[request.counts_objective])
    makers: dict[str, AtBudget] = {}
    for place, kind in enumerate(kinds):
        share = part_of_progress(on_progress, place / len(kinds), (place + 1) / len(kinds))
        first = request.budget if by_rho else request.budget.largest
        if shares_of is not None:
            first = share_of_budget(first, shares_of[kind])
        solve = partial(_MAKERS[kind], request, share)
        makers[kind] = solved_for(solve, first, scales=_scales(request, kind))
    made = combined(makers, request.budget, request.loss, shares_of, by_rho=by_rho)
    made = made.within(request.universe)
    return made if request.pilot is None else with_pilot(made, request.pilot, then=request.then)


def combined(
    parts: Mapping[str, AtBudget],
    budget: Budget,
    loss: Loss,
    shares: Mapping[str, Fraction] | None = None,
    *,
    by_rho: bool = False,
) -> Plan:
    """The plan of parts that can be planned at any budget: kind -> how, in the order of a plan.

    shares: kind -> share of the budget, 1 in all; None: the best ones for the objective
    by_rho: whether an (ε, δ) must follow from ρ alone: where what is measured depends on noise
    Raises `PlanError` where the objective does not say which are the best.
    """
    first = budget if by_rho else budget.largest
    if shares is None:
        shares = dict.fromkeys(parts, Fraction(1))
        if len(parts) > 1:
            shares = best_shares([at(first) for at in parts.values()], loss)

    def whole(within: Budget) -> Plan:
        made = [at(share_of_budget(within, shares[kind])) for kind, at in parts.items()]
        return Plan(tuple(made), within, made[0].version)

    return keeping(budget, whole, by_rho=by_rho)


def solved_for(solve: Callable[[Budget], AtBudget], first: Budget, *, scales: bool) -> AtBudget:
    """How a part is planned at any budget, solved for the first one.

    scales: whether that solution is the one of other budgets, too; else each is solved for
    """
    known = solve(first)
    if scales:
        return known

    def at(budget: Budget) -> PartPlan:
        is_first = budget.record_privacy_cost == first.record_privacy_cost
        return (known if is_first else solve(budget))(budget)

    return at


def share_of_budget(budget: Budget, share: Fraction) -> Budget:
    """The budget of a part, exact; the whole one as it was stated."""
    if share == 1:
        return budget
    return budget.of_unit(privacy_cost=budget.privacy_cost * share)


# ---- how each part is planned, scalable to another budget wherever its loss allows that


def _scales(request: Request, kind: str) -> bool:
    if kind == "counts":
        return OBJECTIVES[request.counts_objective].is_homogeneous
    return kind == "rounds" or request.loss.is_homogeneous


def _tables_at(request: Request, on_progress: Progress, budget: Budget) -> AtBudget:
    assert request.tables is not None
    rules = request.rules  # what is wrong with them is said before anything is planned for long
    solved = optimum(
        request.tables,
        loss=request.loss,
        budget=budget,
        tolerance=TOLERANCE if request.tolerance is None else request.tolerance,
        uniform_reference=request.uniform_reference,
        on_progress=on_progress,
    )
    return lambda of_part: solved.at(of_part, rules)


def _areas_at(request: Request, on_progress: Progress, budget: Budget) -> AtBudget:
    assert request.areas is not None
    found = plan_areas(
        request.areas,
        loss=request.loss,
        budget=budget,
        tolerance=request.tolerance,
        uniform_levels=request.uniform_levels,
        on_progress=on_progress,
    )
    return lambda of_part: found if of_part == budget else with_budget(found, of_part)


def _counts_at(request: Request, on_progress: Progress, budget: Budget) -> AtBudget:
    assert request.counts is not None
    return query_optimum(
        request.counts,
        objective=request.counts_objective,
        free=request.free_counts,
        budget=budget,
        tolerance=COUNTS_TOLERANCE if request.tolerance is None else request.tolerance,
        replaces=budget.replaces,
        exact=budget.exact,
        on_progress=on_progress,
    ).at


def _rounds_at(request: Request, on_progress: Progress, budget: Budget) -> AtBudget:
    rounds = request.rounds
    assert rounds is not None
    return lambda of_part: adaptive_plan(
        rounds.workload, budget=of_part, expected_records=rounds.expected_records
    )


_MAKERS: dict[str, Callable[[Request, Progress, Budget], AtBudget]] = {
    "tables": _tables_at,
    "areas": _areas_at,
    "counts": _counts_at,
    "rounds": _rounds_at,
}
