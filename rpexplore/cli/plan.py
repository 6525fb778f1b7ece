"""The verb that plans: plan, with weights for smooth tables and adaptive rounds."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from rpexplore.cli import area_options, forecast_options, inputs, options, weights
from rpexplore.cli.commands import Option
from rpexplore.cli.console import progress, refuse_existing, say_result, text_table
from rpexplore.cli.options import MinimumBudgetFor
from rpexplore.cli.request_file import RequestFile
from rpexplore.common.processes import Progress
from rpexplore.common.text import describe_share
from rpexplore.errors import ReleaseError, WorkloadError

if TYPE_CHECKING:
    from rpexplore.cli.plan_inputs import PartsAsked
    from rpexplore.domain.domain import Domain
    from rpexplore.domain.expected_counts import ExpectedCounts
    from rpexplore.planning.adaptive import AdaptivePlan
    from rpexplore.planning.plan import Plan
    from rpexplore.planning.table_plan import TablePlan
    from rpexplore.privacy.budget import Budget
    from rpexplore.results.rehearsal import AdaptiveRehearsal
    from rpexplore.results.smooth_choice import SmoothChoice
    from rpexplore.workload.smooth_weights import SmoothWeights


# ---- Weights for smooth tables on the command line.


SmoothWeightsFlag = Annotated[
    bool,
    Option(
        "--smooth-weights",
        help="Weights for a release whose tables are to be smoothed, by the "
        "budget and the expected counts (--expected-count or --expected): the mixture with weights "
        "by cell that loses least in simulations without and with joint dependence of three "
        "attributes. Tables of 1 and 2 attributes within the others are added; --weight goes on "
        "top.",
    ),
]


FromRelease = Annotated[
    Path | None,
    Option(
        "--from-release",
        metavar="FOLDER",
        help="Weights for smooth tables, and more for pairs of attributes that depend on each "
        "other in a first release (or combined ones), of these records: for a second release that "
        "is combined with it. Looks at its noisy figures only. In trials both came 3 to 6 % nearer "
        "to the truth than one plan at ε = 0.1, and 2 % nearer to 1 % farther at ε = 1.",
    ),
]


def refuse_beside_smooth(
    option: str,
    has_expected: bool,
    minimum_budget: "MinimumBudgetFor | None",
    loss: str | None,
    weighting: str | None,
) -> None:
    """Raise `WorkloadError` for options that do not go with --smooth-weights or --from-release."""
    if option == "--smooth-weights" and not has_expected:
        raise WorkloadError(
            "--smooth-weights goes with --expected-count N or --expected FILE; give one of them."
        )
    if minimum_budget is not None:
        raise WorkloadError(
            f"{option} depends on the budget, which --minimum-budget has yet to find; give "
            "a budget instead."
        )
    if loss not in (None, "sum") or weighting not in (None, "equal"):
        raise WorkloadError(
            f"{option} is made for the average error with equal weight per table; leave "
            "--loss and --weighting out."
        )


def smooth_for(
    first_release: Path | None,
    domain: "Domain",
    budget: "Budget",
    expected: "tuple[ExpectedCounts, float] | None",
) -> "SmoothWeights":
    """The weights, by a first release, or by pairs for the expected counts."""
    if first_release is None:
        from rpexplore.scenarios.workload_changes import smooth_weights_for

        assert expected is not None
        return smooth_weights_for(budget, expected[0])
    from rpexplore.results.second_plan import weights_from_release

    with progress("Reading the first release") as on_progress:
        return weights_from_release(first_release, domain, budget, on_progress=on_progress)


def next_steps(weights: "SmoothWeights | None", first_release: Path | None) -> str | None:
    """What a plan made from a first release is for, and what to do with it; None for others."""
    if weights is None or first_release is None:
        return None
    return (
        f"{weights.text}. No record was looked at, only noisy figures of that release.\n"
        "Release this plan on the same records (both budgets add up), then combine and smooth:\n"
        f"  rpexplore combine {quote(str(first_release))} SECOND --out both\n"
        "  rpexplore postprocess both --smooth --out smooth"
    )


# ---- Adaptive plans on the command line.


AdaptiveFlag = Annotated[
    bool,
    Option(
        "--adaptive",
        help="A plan whose release selects, in rounds, what it measures more accurately: biased "
        "estimates, and nothing is promised of their accuracy beforehand. Needs --expected-count "
        "or --expected, by whose total the budget is divided; says when to choose it.",
    ),
]


AllowAdaptiveFlag = Annotated[
    bool,
    Option(
        "--allow-adaptive",
        help="With --smooth-weights: make an adaptive plan (see --adaptive) instead if it loses "
        "less in the simulations than the chosen weights.",
    ),
]


def refuse_beside_adaptive(
    option: str, wanted: "tuple[ExpectedCounts, float] | None", options: Mapping[str, Any]
) -> None:
    """Raise `WorkloadError` for options that do not go with --adaptive, or are missing.

    option: the one that was given, --adaptive or --allow-adaptive
    options: their names, and what was given; what counts as false was not
    """
    given = [name for name, value in options.items() if value]
    if given:
        raise WorkloadError(
            "An adaptive plan divides the budget by a rule of its own and promises no accuracy, so "
            f"{given[0]} does not go with {option}; leave one of them out."
        )
    if wanted is None:
        raise WorkloadError(
            f"{option} goes with --expected-count N or --expected FILE; give one of them."
        )


def rehearsed_adaptively(
    plan: "AdaptivePlan", expected: "ExpectedCounts", on_progress: "Progress"
) -> "AdaptiveRehearsal":
    """One made-up release of an adaptive plan, beside the plan that is made to be smoothed."""
    from rpexplore.analysis.adaptive import smooth_alternative
    from rpexplore.results.rehearsal import rehearse_adaptive

    return rehearse_adaptive(plan, smooth_alternative(plan), expected, on_progress=on_progress)


def adaptive_rehearsal(
    rehearsal: "AdaptiveRehearsal", record_noun: str
) -> tuple[dict[str, Any], str]:
    """What a rehearsal found: facts, and text."""
    frame = rehearsal.frame
    columns = {
        "made-up records": frame["population"].tolist(),
        "attributes": [f"{order}" for order in frame["order"]],
        "tables": [f"{count:,}" for count in frame["tables"]],
        "adaptive": list(map(describe_share, frame["adaptive"])),
        "smooth, of a fixed plan": list(map(describe_share, frame["fixed"])),
    }
    facts = {"records": rehearsal.n_records, "errors": frame.to_dict("records")}
    return facts, f"{text_table(columns)}\n\n{rehearsal.describe(record_noun)}"


# ---- The verb plan: tables, tables in areas and own counts under one budget, in one plan file.


_NO_AREAS = "No table is in the areas of the codebook; one that names a level is in each of them."


def plan(
    codebook: options.Codebook,
    out: options.PlanOut,
    request: RequestFile = None,
    loss: options.TheLoss = None,
    up_to: options.UpTo = None,
    of_order: options.OfOrder = None,
    at_most_cells: options.AtMostCells = None,
    table: options.Table = None,
    tables: options.TablesFile = None,
    sums: options.Sum = None,
    mean: options.Mean = None,
    by: options.By = None,
    weight_column: weights.WeightColumn = None,
    max_weight: weights.MaxWeight = None,
    weight_decimals: weights.WeightDecimals = None,
    unweighted: weights.Unweighted = None,
    weight: options.Weight = None,
    smooth_weights: SmoothWeightsFlag = False,
    from_release: FromRelease = None,
    adaptive: AdaptiveFlag = False,
    allow_adaptive: AllowAdaptiveFlag = False,
    target: options.Target = None,
    basis: options.Basis = None,
    uniform_reference: options.UniformReference = False,
    columns: options.Columns = None,
    not_stated: options.NotStated = None,
    areas: area_options.Areas = None,
    level_names: area_options.LevelNames = None,
    separator: area_options.Separator = None,
    lengths: area_options.Lengths = None,
    recode_areas: area_options.RecodeAreas = None,
    detail: area_options.ChosenDetail = None,
    level: area_options.Level = None,
    level_weight: area_options.LevelWeight = None,
    lists: area_options.Lists = None,
    uniform_levels: area_options.UniformLevels = False,
    compare: area_options.Compare = False,
    counts: options.Counts = None,
    count: options.Count = None,
    count_target: options.CountTarget = None,
    counts_objective: options.TheCountsObjective = None,
    free_counts: options.FreeCounts = None,
    free_count: options.FreeCount = None,
    counts_of: options.CountsOf = None,
    preset: options.ChosenPreset = None,
    role: options.PresetRole = None,
    category: options.PresetCategory = None,
    weighting: options.TheWeighting = None,
    relative_to: options.TheRelativeTo = None,
    rho: options.Rho = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    privacy_cost: options.PrivacyCost = None,
    minimum_budget: options.TheMinimumBudget = None,
    require: options.Require = None,
    certainty: options.TheCertainty = None,
    public: forecast_options.PublicFiles = None,
    most_people: options.MostPeopleFlag = False,
    share: options.Share = None,
    records_per_person: options.RecordsPerPerson = None,
    unit: options.UnitNoun = None,
    count_distinct: options.CountDistinct = None,
    neighbours: options.TheNeighbours = None,
    period: options.Period = None,
    max_periods: options.MaxPeriods = None,
    exact: options.Exact = None,
    tolerance: area_options.Tolerance = None,
    pilot: options.Pilot = None,
    then_most_people: options.ThenMostPeople = False,
    where: options.Universe = None,
    expected_count: options.ExpectedCount = None,
    expected: options.ExpectedFile = None,
    expected_areas: area_options.ExpectedAreas = None,
    cv_limit: options.CvLimit = None,
    design_effect: forecast_options.DesignEffect = None,
    weight_cv: forecast_options.WeightCv = None,
    sampling_fraction: forecast_options.SamplingFraction = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the most accurate plan within a privacy budget.

    Say which tables in one way or several; the same table twice is an error. A table that names
    a level of areas (--table municipality,sex,age) is in each of its areas. Add own counts with
    --counts or --count, sums and means of amounts with --sum, and survey weights with
    --weight-column. All of it shares one budget, split so that the objective of all together is
    best, or as --share says. Attributes count single values, or as --basis says. Give the budget in
    one way, or have it found with --minimum-budget or --require; its numbers are exact: 0.1 and 1/3
    mean just that. No records are needed.
    With --adaptive the tables are promised privacy, and no accuracy.
    """
    from rpexplore.cli import codebooks, plan_inputs, rule_options
    from rpexplore.cli.facts import plan_facts
    from rpexplore.cli.publishable import (
        design_from_options,
        expected_from_options,
        totals_of_tree,
        usefulness_facts,
        usefulness_of,
        usefulness_text,
    )
    from rpexplore.planning.pilot import share_of_budget, with_pilot
    from rpexplore.planning.request import plan as made_for

    refuse_existing(out, force)
    if pilot is not None:
        share_of_budget(pilot)
    stated = {"rho": rho, "epsilon": epsilon, "mu": mu, "privacy_cost": privacy_cost}
    if require and all(text is None for text in stated.values()):
        minimum_budget = minimum_budget or options.MinimumBudgetFor.targets
    rule_options.refuse_beside_rules(
        require, most_people, minimum_budget, certainty, public, of_rest=then_most_people
    )
    budget = inputs.budget_from_options(
        stated,
        delta,
        records_per_person,
        None if neighbours is None else neighbours.value,
        (period, max_periods),
        unit,
        count_distinct,
        find_smallest=minimum_budget is not None,
    )
    distinct_or_several = count_distinct or records_per_person is not None or period is not None
    with progress("Reading the codebook"):
        tree, domain = codebooks.codebook_from_options(
            codebook,
            areas,
            level_names,
            separator,
            lengths,
            recode_areas,
            columns=codebooks.roles_of_columns(columns),
        )
        weighted = "" if weight_column is not None or tree is not None else _weighted(codebook)
        domain = inputs.with_not_stated(domain, not_stated or [])
        budget = inputs.with_exact_totals(budget, domain, exact or [], neighbours, tree)
    records_weighted = weights.Weighting(
        weight_column, max_weight, weight_decimals, unweighted or []
    )
    not_weighted = {
        "--preset": preset, "--adaptive": adaptive,
        "--smooth-weights": smooth_weights, "--from-release": from_release,
    }  # fmt: skip
    domain = records_weighted.domain(domain, not_weighted)
    totals = totals_of_tree(tree, expected_areas)
    has_counts = expected_count is not None or expected is not None
    judged_by_public = ((most_people and public) or then_most_people) and not has_counts
    wanted = expected_from_options(
        domain, expected_count, expected, None if judged_by_public else cv_limit, totals
    )
    design = design_from_options(
        domain,
        design_effect,
        weight_cv,
        sampling_fraction,
        wanted or ((require or most_people) and public),
    )
    if adaptive or allow_adaptive:
        if not (adaptive or smooth_weights):
            raise WorkloadError(
                "--allow-adaptive lets the simulation of --smooth-weights decide; give "
                "--smooth-weights as well, or --adaptive for an adaptive plan in any case."
            )
        others = {
            "--loss": loss, "--weighting": weighting, "--relative-to": relative_to,
            "--smooth-weights": adaptive and smooth_weights, "--from-release": from_release,
            "--target": target, "--basis": basis, "--uniform-reference": uniform_reference,
            "--require": require, "--minimum-budget": minimum_budget, "--most-people": most_people,
            "--pilot": pilot,
        }  # fmt: skip
        refuse_beside_adaptive("--adaptive" if adaptive else "--allow-adaptive", wanted, others)
    is_smooth = smooth_weights or from_release is not None
    if is_smooth:
        option = "--smooth-weights" if from_release is None else "--from-release"
        refuse_beside_smooth(option, wanted is not None, minimum_budget, loss, weighting)

    def listed(smooth: "SmoothWeights | None") -> "PartsAsked":
        return plan_inputs.PartsAsked.from_options(
            domain,
            tree,
            adaptive_for=wanted if adaptive else None,
            area_choice=(detail, level or [], level_weight or [], lists),
            counts=(counts, count or [], count_target, counts_of),
            preset=(preset, role or [], category or []),
            free=(free_counts, free_count or []),
            up_to=up_to,
            of_order=of_order or [],
            at_most_cells=at_most_cells,
            table=[*(table or []), *inputs.tables_of_sums(domain, sums, mean, by)],
            tables=tables,
            weight=weight or [],
            smooth_for=smooth,
            target=target or [],
            basis=basis or [],
        )

    search: dict[str, Any] = {
        "uniform_reference": uniform_reference,
        "uniform_levels": uniform_levels,
        "tolerance": tolerance,
        "counts_objective": counts_objective or "largest",
    }
    smooth = chosen = None
    if is_smooth:
        smooth = smooth_for(from_release, domain, budget, wanted)
    with progress("Listing what is asked for"):
        asked = listed(smooth)
        shares = plan_inputs.shares_from_options(share or [])
    if smooth is not None and asked.tables is not None:
        from rpexplore.scenarios.workload_changes import at_budget, budget_of_tables

        objective = plan_inputs.loss_from_options(
            loss, weighting, relative_to, in_areas=asked.areas is not None
        )

        def by_whole() -> "TablePlan":
            request = asked.request(budget, objective, shares, **search)
            with progress(f"Planning {asked.contents}") as on_progress:
                return made_for(request, on_progress=on_progress).part("tables")

        are_alone = asked.areas is None and asked.counts is None
        of_tables = budget_of_tables(budget, by_whole, are_alone=are_alone)
        assert of_tables is not None
        if from_release is not None:
            smooth = at_budget(smooth, of_tables)
        else:
            from rpexplore.results.smooth_choice import choose_smooth_weights

            assert wanted is not None
            with progress("Simulating weights") as on_progress:
                chosen = choose_smooth_weights(
                    asked.tables, of_tables, wanted[0], on_progress=on_progress
                )
            adaptive = allow_adaptive and chosen.prefers_adaptive
            smooth = None if adaptive else chosen.weights
    with progress("Listing what is asked for"):
        if is_smooth:
            asked = listed(smooth)
        asked = records_weighted.of(asked)
        if areas is not None and asked.areas is None:
            raise WorkloadError(
                "--areas names areas, and no table is in them; name a level in a table, such as "
                f"--table {tree.levels[-1] if tree else 'municipality'},sex, or say --detail same "
                "for all tables on every level."
            )
        plan_inputs.refuse_without_effect(
            asked,
            of_losses={
                "--loss": loss,
                "--weighting": weighting,
                "--relative-to": relative_to,
            },
            of_counts={"--counts-objective": counts_objective},
            of_tables={"--uniform-reference": uniform_reference},
            of_areas={"--uniform-levels": uniform_levels, "--compare": compare},
        )
        if compare and lists is not None:
            raise WorkloadError(
                "--compare sets shares of the budget by level beside the tables in areas, where "
                "all areas of a level have the same tables; leave it or --lists out."
            )
    rules, ruled = (), None
    if require:
        with progress("Drawing populations") as on_progress:
            rules, ruled = rule_options.rules_from_options(
                asked, require, certainty, public or [], wanted, design, on_progress
            )
        if minimum_budget is not None:
            if ruled is None:
                raise WorkloadError(rule_options.NEEDS_FORECAST)
            asked = replace(asked, tables=ruled.workload)
    then = None
    if then_most_people:
        others = {
            "--minimum-budget or --require without a budget": minimum_budget,
            "--most-people": most_people, "--adaptive": adaptive,
            "--smooth-weights": smooth_weights, "--from-release": from_release,
        }  # fmt: skip
        then = rule_options.objective_of_rest(pilot, others, certainty, cv_limit, rules)
    weighed = None
    if most_people:
        others = {
            "--loss": loss, "--weighting": weighting, "--relative-to": relative_to,
            "--require without a budget" if require else "--minimum-budget": minimum_budget,
            "--smooth-weights and --from-release": smooth,
        }  # fmt: skip
        with progress("Weighing tables") as on_progress:
            weighed = rule_options.most_people_from_options(
                asked, budget, shares, others, certainty, public or [], wanted, cv_limit, design,
                ruled, on_progress,
            )  # fmt: skip
            asked = replace(asked, tables=weighed.workload)
    with progress(f"Planning {asked.contents}") as on_progress:
        reason = None
        if minimum_budget is None:
            objective = plan_inputs.loss_from_options(
                loss, weighting, relative_to, in_areas=asked.areas is not None
            )
            if then is not None:
                search |= {"pilot": pilot, "then": then}
            made = made_for(
                asked.request(budget, objective, shares, require=rules, **search),
                on_progress=on_progress,
            )
        else:
            from rpexplore.cli.plan_inputs import plan_at_smallest_budget

            made, reason = plan_at_smallest_budget(
                minimum_budget, asked, budget, (loss, weighting, relative_to), shares,
                ruled=ruled, on_progress=on_progress, **search,
            )  # fmt: skip
        if pilot is not None and then is None:
            made = with_pilot(made, pilot)
        if where is not None:
            made = made.within(where)
        beside = _beside(made, asked.counts is not None, compare, on_progress)
        if ruled is not None:
            beside["rule"] = rule_options.rule_outcome(
                made, ruled, minimum_budget is not None, on_progress
            )
        if weighed is not None:
            ranges = {"people": weighed.people._asdict(), "before": weighed.before._asdict()}
            facts_of_weights = {"limit": weighed.limit, **ranges}
            beside["most_people"] = facts_of_weights, weighed.text
        refuse_existing(out, force)
        made.save(out)
    warning, note = _warning(made, wanted, totals), records_weighted.note(domain, asked)
    each_is_one = "" if unit is None or distinct_or_several else _one_record_each(budget.noun)
    # Rules are judged by a forecast, which is shown with them.
    useful = usefulness_of(made, None if ruled or weighed else wanted, totals, design)
    choice = _when_to_choose(useful) if adaptive else None
    facts = {
        "plan": str(out),
        **plan_facts(made),
        **usefulness_facts(useful),
        **({"choice": choice} if adaptive else {}),
        "why": reason,
        "weights": None if smooth is None else smooth.text,
        **({} if chosen is None else {"weights_simulated": chosen.to_facts()}),
        "warning": warning,
        **({"weighted": weighted} if weighted else {}),
        **({"unit": each_is_one} if each_is_one else {}),
        **({"unweighted": note} if note else {}),
        **{name: found for name, (found, _) in beside.items()},
        **({"guessed": asked.guessed} if asked.guessed else {}),
    }  # fmt: skip
    texts = [
        "\n".join(
            ["Guessed from names and sizes (--role and --category correct it):", *asked.guessed]
        )
        if asked.guessed
        else None,
        reason,
        str(made),
        note,
        _NO_AREAS if tree is not None and asked.areas is None else None,
        *(text for _, text in beside.values()),
        usefulness_text(useful),
        None if chosen is None else _described(chosen, adaptive),
        _saved(made, out),
        next_steps(smooth, from_release),
        warning,
        weighted,
        each_is_one,
    ]
    say_result(as_json, facts, "\n\n".join(filter(None, texts)))


def _when_to_choose(useful: dict[str, Any]) -> tuple[str, ...]:
    """When to choose adaptive tables, in sentences."""
    from rpexplore.analysis.adaptive import when_to_choose

    return (
        *when_to_choose(useful["rounds"]),
        "`rpexplore simulate` does so for a plan, and `plan --smooth-weights` before there is one.",
    )


def _described(chosen: "SmoothChoice", adaptive: bool) -> str:
    """The choice of weights, and how the adaptive plan is had where it is preferred."""
    if adaptive:
        return f"{chosen.describe()} So this plan is the adaptive one."
    if chosen.prefers_adaptive:
        return f"{chosen.describe()} Add --allow-adaptive to plan that one instead."
    return chosen.describe()


def _weighted(codebook: Path) -> str:
    from rpexplore.domain.codebook_remarks import remark_on_weights

    return remark_on_weights(codebook)


def _one_record_each(noun: str) -> str:
    return (
        f"One {noun} is taken to be one record, as in a file with one row a {noun}. If a {noun} "
        "can have several, say how many at most (--records-per-person 7), or count each once by "
        "the column that has its number (--count-distinct COLUMN)."
    )


def _saved(made: "Plan", out: Path) -> str:
    beside = f", with {' and '.join(made.companions)} beside it" if made.companions else ""
    return f"Saved to {out}{beside}\nSHA-256 {made.sha256}"


def _beside(
    made: "Plan", has_counts: bool, compare: bool, on_progress: Any
) -> dict[str, tuple[Any, str | None]]:
    """What is shown beside a plan, as facts and as text: baselines of counts, depth of areas."""
    from rpexplore.cli.facts import baseline_table, row_facts, spare_text

    beside: dict[str, tuple[Any, str | None]] = {}
    if (of_areas := made.part("areas")) is not None:
        from rpexplore.cli.facts import note_on_depth, share_table

        if compare:
            from rpexplore.analysis.area_levels import beside_shares_by_level

            rows = beside_shares_by_level(of_areas, on_progress=on_progress)
            beside["beside_shares_by_level"] = row_facts(rows), share_table(rows)
        note = note_on_depth(of_areas.workload.tree)
        beside["note"] = note, note
    if has_counts and (of_counts := made.part("counts")) is not None:
        from rpexplore.analysis.queries import budgets_needed, optimum_of, query_baselines

        if of_counts.budget.replaces:  # plainer mechanisms are compared for added records
            return beside
        baselines = query_baselines(optimum_of(of_counts), on_progress=on_progress)
        needed = budgets_needed(baselines, of_counts.budget)
        text = f"{baseline_table(needed)}\n\n{spare_text(of_counts)}"
        beside["baselines"] = row_facts(needed), text
    return beside


def _warning(
    made: "Plan",
    wanted: "tuple[ExpectedCounts, float] | None",
    totals: dict[int, float] | None,
) -> str | None:
    """Why the plan cannot be released, if it cannot; that δ or an exact total is dubious, if so."""
    from rpexplore.analysis.budget_units import delta_warning
    from rpexplore.analysis.exact_totals import exact_total_warnings
    from rpexplore.releases.measurement import check_measurable

    tables, rounds = made.part("tables"), made.part("rounds")
    try:
        for part in filter(None, (tables, None if rounds is None else rounds.first)):
            check_measurable(part)
    except ReleaseError as error:
        return f"This plan cannot be released: {error}"
    expected = None if wanted is None else wanted[0]
    found = [delta_warning(made.budget, expected), *exact_total_warnings(made, expected, totals)]
    return " ".join(filter(None, found)) or None
