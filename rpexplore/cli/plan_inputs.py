"""What the options of the verb plan ask for, and the smallest budget for it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.cli import area_options, inputs
from rpexplore.cli import counts as preset_inputs
from rpexplore.cli.options import PresetName
from rpexplore.common.numbers import exact_share
from rpexplore.common.processes import Progress
from rpexplore.common.text import joined, plural
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.ordered_values import Integers
from rpexplore.errors import DomainError, PlanError, RpexploreError, WorkloadError
from rpexplore.planning import planner
from rpexplore.planning.counts_objectives import LARGEST, OBJECTIVES
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.losses.losses import Loss, MaxVariance
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import PARTS, Plan
from rpexplore.planning.planner import Optimum
from rpexplore.planning.serialization import loss_from_text
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import split_at_table, table_from_text, workload_from_csv
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    from rpexplore.analysis.rule_targets import RuleTargets
    from rpexplore.domain.area_tree import AreaTree
    from rpexplore.planning.areas.area_workload import AreaWorkload
    from rpexplore.planning.request import Request, Rounds
    from rpexplore.workload.query_definitions import StatedQueries


# ---- What the options of the verb plan ask for: tables, tables in areas, own counts, their
# shares.


_WAYS = ("up_to", "of_order", "at_most_cells", "table", "tables")


@dataclass(frozen=True)
class PartsAsked:
    """What is asked for, part by part.

    free     names of own counts that take only what the others leave of the budget
    guessed  what a preset has taken the attributes of the codebook for, a line each
    """

    tables: "Workload | None" = None
    areas: "AreaWorkload | None" = None
    counts: "StatedQueries | None" = None
    rounds: "Rounds | None" = None
    free: Sequence[str] = ()
    guessed: Sequence[str] = field(default_factory=list)

    @classmethod
    def from_options(
        cls,
        domain: "Domain",
        tree: "AreaTree | None",
        *,
        adaptive_for: "tuple[ExpectedCounts, float] | None",
        area_choice: tuple[str | None, Sequence[str], Sequence[str], Path | None],
        counts: tuple[Path | None, Sequence[str], str | None, str | None],
        preset: "tuple[PresetName | None, Sequence[str], Sequence[str]]",
        free: tuple[Path | None, Sequence[str]],
        **asked: Any,
    ) -> "PartsAsked":
        """Those of the command line; `WorkloadError` for what does not fit together.

        area_choice: --detail, --level, --level-weight and --lists; counts: --counts, --count,
        --count-target and --counts-of; preset: --preset, --role and --category; free:
        --free-counts and --free-count; asked: as of `inputs.workload_from_options`
        """
        from rpexplore.planning.request import Rounds

        of_counts, guessed = _counts(domain, tree, counts, preset)
        of_counts, named = _with_free(domain, of_counts, free, counts)
        at_levels, asked = split_by_level(domain, tree, asked)
        tables = areas = rounds = None
        of_named_levels = {}
        if at_levels and tree is not None:
            others = [text for text in asked["target"] if inputs.is_target(text)]
            of_named_levels = area_options.tables_at_levels(domain, tree, at_levels, others)
        if any(area_choice):
            detail, level, level_weight, lists = area_choice
            if tree is None:
                raise WorkloadError(
                    "--detail, --level, --level-weight and --lists are about areas, and the "
                    "codebook has none; name a file of areas with --areas."
                )
            detail = detail or "same"
            of_levels = area_options.tables_from_options(domain, detail, **asked)
            areas = area_options.area_workload_from_options(
                tree, of_levels, detail, level, level_weight, lists, of_named_levels
            )
        else:
            if of_named_levels and tree is not None:
                from rpexplore.planning.areas.area_workload import AreaWorkload

                areas = AreaWorkload.of_levels(tree, of_named_levels)
            if any(asked[key] not in (None, []) for key in _WAYS):
                tables = inputs.workload_from_options(domain, **asked)
            else:
                _refuse_loose(asked, areas is not None)
        if adaptive_for is not None:
            if tables is None:
                raise WorkloadError(
                    "--adaptive is about tables without areas, and none is asked for; ask for "
                    "one, such as --table age,sex, or leave --adaptive out."
                )
            expected, _ = adaptive_for
            rounds, tables = Rounds(tables, max(round(expected.total), 1)), None
        if tables is areas is rounds is of_counts is None:
            raise WorkloadError(
                "Say which tables: --up-to K, --of-order K, --at-most-cells N, --table A,B or "
                "--tables FILE; or which own counts: --counts FILE, --count TEXT or "
                "--preset NAME."
            )
        return cls(tables, areas, of_counts, rounds, named, guessed)

    @property
    def contents(self) -> str:
        """What is planned, for a sentence: "7 tables and 2 counts"."""
        n_tables = sum(len(each) for each in (self.tables,) if each is not None)
        n_tables += 0 if self.areas is None else self.areas.n_tables
        n_tables += 0 if self.rounds is None else len(self.rounds.workload)
        texts = [plural(n_tables, "table")] if n_tables else []
        if self.counts is not None:
            texts.append(plural(len(self.counts.queries), "count"))
        return joined(texts)

    def request(
        self,
        budget: "Budget",
        loss: "Loss",
        shares: Mapping[str, Fraction] | None,
        **search: Any,
    ) -> "Request":
        """The request of a plan within a budget; search: other fields of `Request`."""
        from rpexplore.planning.request import Request

        return Request(
            budget=budget,
            tables=self.tables,
            areas=self.areas,
            counts=None if self.counts is None else self.counts.queries,
            free_counts=self.free,
            rounds=self.rounds,
            loss=loss,
            shares=shares,
            **search,
        )


def _refuse_loose(asked: Mapping[str, Any], has_areas: bool) -> None:
    """Raise for options about tables without a level, where none is asked for."""
    loose = [
        (f"--{name}", f" {text!r}")
        for name in ("weight", "target", "basis")
        for text in asked[name]
        if not (has_areas and name == "target" and inputs.is_target(text))
    ]
    if asked.get("smooth_for") is not None:
        loose.append(("--smooth-weights or --from-release", ""))
    if loose and not has_areas:
        raise WorkloadError(f"{loose[0][0]} is about tables, and none is asked for.")
    if loose:
        raise WorkloadError(
            f"{''.join(loose[0])} is about tables that name no level of areas, and none of those "
            f"is asked for; ask for one, or leave {loose[0][0]} out."
        )


def split_by_level(
    domain: "Domain", tree: "AreaTree | None", asked: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Options about tables at levels of areas, by level, and those about other tables.

    {level: {"table": [names], "weight": {names: text}, "target": {names: text}}}; a table's names
    are without the level
    """
    if tree is None:
        return {}, dict(asked)

    levels = [level for level in tree.levels[1:] if level not in domain.names]
    areas = (Attribute(level, Integers(0, 0)) for level in levels)
    known = Domain((*domain.attributes, *areas)).with_levels
    at_levels: dict[str, dict[str, Any]] = {}
    left = dict(asked)

    def level_of(text: str) -> tuple[str, tuple[str, ...]] | None:
        names = table_from_text(known, text)
        named = [name for name in names if name in levels]
        if len(named) > 1:
            raise WorkloadError(
                f"The table {text!r} names the levels {joined(named)}; a table is of the areas of "
                "one level, so name one of them."
            )
        return (named[0], tuple(name for name in names if name not in levels)) if named else None

    _refuse_levels_in_file(domain, known, asked["tables"])
    left["table"] = []
    for text in asked["table"]:
        try:
            found = level_of(text)
        except DomainError as error:
            raise DomainError(
                f"{error} Levels of areas: {joined(levels)}; a table of the whole, "
                f"{tree.levels[0]!r}, names none."
            ) from None
        if found is None:
            left["table"].append(text)
        else:
            at_levels.setdefault(found[0], {"table": [], "weight": {}, "target": {}})
            at_levels[found[0]]["table"].append(found[1])
    for option in ("weight", "target"):
        left[option] = []
        for text in asked[option]:
            found = None
            if "=" in text and any(level in text for level in levels):
                table, value = split_at_table(known, text)
                found = level_of(table)
                if found is not None:
                    of_level = at_levels.get(found[0])
                    if of_level is None or set(found[1]) not in map(set, of_level["table"]):
                        raise WorkloadError(
                            f"--{option} {text!r} is about a table that is not asked for; ask for "
                            f"it with --table."
                        )
                    of_level[option][found[1]] = value
            if found is None:
                left[option].append(text)
    for text in asked["basis"]:
        _, sign, table = text.rpartition("@")
        with suppress(DomainError):  # said with the file or table that it may be
            if sign and level_of(table) is not None:
                raise WorkloadError(
                    f"--basis {text!r} is about a table that names a level, which has single "
                    "values; leave it out, or give all levels the same tables by --detail same."
                )
    return at_levels, left


def _refuse_levels_in_file(domain: "Domain", known: "Domain", file: Path | None) -> None:
    """Raise for a list of tables that names a level, which only --table can.

    known: the domain with the levels as attributes
    """
    if file is None:
        return
    tables: Sequence[tuple[str, ...]] = ()
    with suppress(RpexploreError):  # said where the list is read
        tables = workload_from_csv(known, inputs.text_of(file), file.name).tables
    for table in tables:
        if levels := [name for name in table if name not in domain]:
            raise WorkloadError(
                f"{file.name} names the level {levels[0]!r} in a table; a table at a level is "
                "asked for by --table, such as "
                f"--table {','.join(sorted(table, key=levels.count, reverse=True))}."
            )


def refuse_without_effect(
    asked: PartsAsked,
    *,
    of_losses: Mapping[str, Any],
    of_counts: Mapping[str, Any],
    of_tables: Mapping[str, Any],
    of_areas: Mapping[str, Any],
) -> None:
    """Raise `WorkloadError` for options about what is not asked for: {option: its value}."""
    has_tables, has_areas = asked.tables is not None, asked.areas is not None
    has_losses = has_tables or has_areas or asked.rounds is not None
    for options, has_effect, about in (
        (of_losses, has_losses, "tables, not own counts, which have --counts-objective"),
        (of_counts, asked.counts is not None, "own counts, and none is asked for"),
        (of_tables, has_tables, "tables without areas, and none is asked for"),
        (of_areas, has_areas, "tables in areas, and none is asked for"),
    ):
        given = [name for name, value in options.items() if value]
        if given and not has_effect:
            raise WorkloadError(f"{given[0]} is about {about}; leave {given[0]} out.")


def loss_from_options(
    loss: str | None, weighting: str | None, relative_to: str | None, *, in_areas: bool
) -> "Loss":
    """The objective; `WorkloadError` for one that cannot be planned for in areas."""
    if in_areas:
        return area_options.loss_from_options(loss, weighting, relative_to)
    return loss_from_text(loss or "sum", weighting=weighting, relative_to=relative_to)


def shares_from_options(share: Sequence[str]) -> dict[str, Fraction] | None:
    """Shares of the budget such as tables=1/2, exact; None where none is stated."""
    shares: dict[str, Fraction] = {}
    for text in share:
        kind, sign, number = text.partition("=")
        if not sign or kind not in PARTS:
            raise PlanError(
                f"--share {text!r} must be PART=SHARE, such as tables=1/2; the parts are "
                f"{joined(list(PARTS))}."
            )
        if kind in shares:
            raise PlanError(f"--share names {kind} twice; name it once.")
        shares[kind] = exact_share(number, f"The share of {kind}")
    return shares or None


def _counts(
    domain: "Domain",
    tree: "AreaTree | None",
    counts: tuple[Path | None, Sequence[str], str | None, str | None],
    preset: "tuple[PresetName | None, Sequence[str], Sequence[str]]",
) -> "tuple[StatedQueries | None, list[str]]":
    """The own counts, with those of a preset behind them, and what was guessed for it."""
    from rpexplore.workload.query_definitions import StatedQueries
    from rpexplore.workload.query_edits import with_queries

    file, listed, target, attributes = counts
    name, role, category = preset
    if name is None and (role or category):
        raise RpexploreError("--role and --category go with --preset NAME; give both.")
    stated = None
    if file is not None or listed:
        try:
            stated = inputs.queries_from_options(
                domain=domain, attributes=attributes, queries=file, query=listed, target=target
            )
        except RpexploreError as error:
            named = [
                level
                for level in ([] if tree is None else tree.levels)
                if repr(level) in str(error)
            ]
            if not named:
                raise
            raise RpexploreError(
                f"Own counts are about single records and not about areas, and {named[0]!r} is a "
                f"level of areas; ask for it in a table, such as --table {named[0]},sex."
            ) from None
    elif target or attributes:
        raise RpexploreError(
            "--count-target and --counts-of are about own counts; give some with --counts "
            "or --count."
        )
    if name is None:
        return stated, []
    fitted, guessed = preset_inputs.preset_from_options(
        name, domain=domain, role=role, category=category
    )
    return with_queries(stated, StatedQueries.of(fitted)), guessed


def _with_free(
    domain: "Domain",
    stated: "StatedQueries | None",
    free: tuple[Path | None, Sequence[str]],
    counts: tuple[Path | None, Sequence[str], str | None, str | None],
) -> "tuple[StatedQueries | None, tuple[str, ...]]":
    """The own counts with a second list behind them, and the names of those that are free."""
    from rpexplore.workload.query_edits import with_queries

    file, named = free
    if stated is None and (file is not None or named):
        raise RpexploreError(
            "--free-counts and --free-count take what other own counts leave of the budget; give "
            "some with --counts, --count or --preset."
        )
    if stated is None or file is None:
        return stated, tuple(named)
    *_, target, attributes = counts
    second = inputs.queries_from_options(
        domain=domain, attributes=attributes, queries=file, query=[], target=target
    )
    joint = with_queries(stated, second)
    return joint, (*named, *joint.queries.names[len(stated) :])


# ---- The smallest budget that meets the targets, and the plan at it.


TARGETS, REQUIRED = "targets", "required"


def loss_that_meets(
    which: str, workload: Workload, text: str | None, weighting: str | None, relative_to: str | None
) -> Loss:
    """The loss of a plan that meets targets at the smallest budget for them.

    which: TARGETS, for all there are, or REQUIRED. text: the loss, where one is given. Raises
    `WorkloadError` for one that does not see to it.
    """
    if text is None:
        everywhere = not np.any(np.isnan(workload.targets))
        text = "max" if which == TARGETS and everywhere else "required"
    if text.strip() == "max" and relative_to is None:
        relative_to = "target"
    loss = loss_from_text(text, weighting=weighting, relative_to=relative_to)
    in_proportion = which == TARGETS and loss == MaxVariance(relative_to="target")
    if not (in_proportion or loss.meets_required_targets):
        fitting = "required, required-then-targets"
        if which == TARGETS:
            fitting += " or max --relative-to target"
        raise WorkloadError(
            f"--minimum-budget {which} goes with a --loss that sees to it that they are met "
            f"({fitting}), got {text}; leave --loss out."
        )
    return loss


def optimum_at_smallest_budget(
    which: str,
    workload: Workload,
    loss: Loss,
    reference_budget: Budget,
    *,
    uniform_reference: bool,
    on_progress: Progress,
) -> tuple[Optimum, Budget, str]:
    """The optimum at the smallest budget for targets, that budget, and why it is that large.

    Where the loss is the average once required targets are met, all targets that the budget is for
    become required. reference_budget: for the privacy unit, and the unit the budget is stated in.

    Raises `WorkloadError` if there are no such targets, `BudgetError` if no budget is large enough.
    """
    from rpexplore.analysis.binding_targets import (
        budget_explanation,
        describe_advice,
        describe_binding,
    )
    from rpexplore.analysis.sufficient_budgets import restated, smallest_budget

    required_only = which == REQUIRED
    if isinstance(loss, SumWithinTargets) and not required_only:
        workload = replace(workload, required=~np.isnan(workload.targets))
    options = {"uniform_reference": uniform_reference, "on_progress": on_progress}
    neighbours = reference_budget.neighbours
    minimum = minimum_budget(
        workload,
        required_only=required_only,
        max_records_per_person=reference_budget.max_records_per_person,
        neighbours=neighbours,
        period=reference_budget.period,
        exact=reference_budget.exact,
        unit_noun=reference_budget.unit_noun,
        **options,
    )
    explanation = budget_explanation(minimum, reference_budget, required_only=required_only)
    budget = explanation.advised.budget
    # By other strategies the same budget might not be enough.
    strategies = None if workload.is_marginals else minimum.closure.strategies
    optimum = planner.optimum(workload, loss=loss, budget=budget, strategies=strategies, **options)
    if isinstance(loss, MaxVariance):
        # Both are found to a tolerance, so another budget may be the one for just this plan.
        of_plan = smallest_budget(optimum, reference_budget).budget
        budget = max(budget, of_plan, key=lambda candidate: candidate.rho)
    budget = restated(budget, optimum.noise(budget))  # its noise is not quite that of the minimum
    reason = (
        f"{describe_binding(explanation, compared=False)} {describe_advice(explanation)}".strip()
    )
    return optimum, budget, reason


def plan_at_smallest_budget(
    which: str,
    asked: PartsAsked,
    reference_budget: Budget,
    objective: tuple[str | None, str | None, str | None],
    shares: Mapping[str, Fraction] | None,
    *,
    ruled: "RuleTargets | None",
    uniform_reference: bool,
    uniform_levels: bool,
    tolerance: float | None,
    counts_objective: str,
    on_progress: Progress,
) -> tuple[Plan, str | None]:
    """The plan at the smallest budget for all targets of all parts, and why it is that large.

    Each part gets the smallest budget that meets its own targets; the plan's is their sum.

    which: TARGETS, or REQUIRED where only tables without areas have other targets
    objective: --loss, --weighting and --relative-to
    ruled: the rules that the targets of tables are from, if they are; the plan keeps them

    Raises `WorkloadError` for parts without targets, or options that do not go with it.
    """
    from rpexplore.analysis.sufficient_budgets import restated, smallest_query_budget
    from rpexplore.planning.areas.area_planner import minimum_area_budget
    from rpexplore.planning.counts_planner import query_optimum

    if shares is not None:
        raise WorkloadError("--minimum-budget finds the shares of the parts; leave --share out.")
    in_areas = () if asked.areas is None else asked.areas.workloads
    has_others = asked.counts is not None or not all(np.all(one.required) for one in in_areas)
    if which == REQUIRED and has_others:
        raise WorkloadError(
            "--minimum-budget required goes with tables alone, or tables in areas whose targets "
            "are all required: of others it would meet all targets; say --minimum-budget targets, "
            "or plan them by themselves."
        )
    parts: list[PartPlan] = []
    reason, most = None, reference_budget.max_records_per_person
    if asked.tables is not None:
        loss = loss_that_meets(which, asked.tables, *objective)
        optimum, budget, reason = optimum_at_smallest_budget(
            which, asked.tables, loss, reference_budget,
            uniform_reference=uniform_reference, on_progress=on_progress,
        )  # fmt: skip
        parts.append(optimum.at(budget, () if ruled is None else ruled.rules))
        if ruled is not None:
            reason = f"{ruled.text} {reason}"
    elif any(objective):
        name = ("loss", "weighting", "relative-to")[[bool(text) for text in objective].index(True)]
        raise WorkloadError(
            "--minimum-budget finds the smallest ρ for the largest error relative to targets; "
            f"leave --{name} out."
        )
    if asked.areas is not None:
        parts.append(
            minimum_area_budget(
                asked.areas,
                max_records_per_person=most,
                unit_noun=reference_budget.unit_noun,
                neighbours=reference_budget.neighbours,
                exact=reference_budget.exact,
                tolerance=tolerance,
                uniform_levels=uniform_levels,
                on_progress=on_progress,
            )
        )
    if asked.counts is not None:
        # That of the largest ratio is the smallest budget at which targets can come first.
        first = OBJECTIVES[counts_objective]
        by = first.option if first.is_homogeneous else LARGEST.option
        queries, free = asked.counts.queries, asked.free
        optimum = query_optimum(queries, objective=by, free=free, on_progress=on_progress)
        budget = smallest_query_budget(optimum, reference_budget).budget
        if not first.is_homogeneous:
            optimum = query_optimum(
                queries, objective=first.option, budget=budget, free=free, on_progress=on_progress
            )
        parts.append(optimum.at(restated(budget, optimum.noise(budget))))
    total = sum((part.budget.privacy_cost for part in parts), Fraction())
    budget = parts[0].budget
    if len(parts) > 1:
        budget = reference_budget.of_unit(privacy_cost=total)
    return Plan(tuple(parts), budget, parts[0].version), reason
