"""The forecasts of the verb plan: rules that tables must meet, and most people in good cells."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.cli.forecast_options import public_sources
from rpexplore.common.numbers import exact_fraction
from rpexplore.common.processes import Progress
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit
from rpexplore.domain.survey import SurveyDesign
from rpexplore.errors import WorkloadError
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.plan import Plan
from rpexplore.planning.request import share_of_budget
from rpexplore.planning.table_plan import RestObjective
from rpexplore.privacy.budget import Budget
from rpexplore.workload.rules import EXAMPLE, MEDIAN, SURELY, Rule, rules_of

if TYPE_CHECKING:
    from rpexplore.analysis.most_people import MostPeople
    from rpexplore.analysis.rule_targets import RuleTargets
    from rpexplore.cli.plan_inputs import PartsAsked
    from rpexplore.domain.public_tables import PublicTable

REQUIRED = "required"  # of --minimum-budget
NEEDS_FORECAST = (
    "--require finds the smallest budget by a forecast of the counts; give --public FILE or "
    "--expected-count N, or state a budget."
)


def refuse_beside_rules(
    require: Sequence[str] | None,
    most_people: bool,
    minimum: str | None,
    certainty: str | None,
    public: Sequence[Path] | None,
    *,
    of_rest: bool = False,
) -> None:
    """Raise `WorkloadError` for options that go with --require or --most-people, or not with it.

    of_rest: whether the rest behind a pilot is planned for most people, which has a certainty
    """
    has_forecast = bool(require) or most_people
    for name, value, is_used, others in (
        ("--certainty", certainty, has_forecast or of_rest, "--most-people or --then-most-people"),
        ("--public", public, has_forecast, "--most-people"),
    ):
        if value and not is_used:
            raise WorkloadError(
                f"{name} goes with --require RULE, such as --require '{EXAMPLE}', or with "
                f"{others}; give one of them."
            )
    if require and minimum == REQUIRED:
        raise WorkloadError(
            "--require finds the smallest budget for its rule and all targets; leave "
            "--minimum-budget required out."
        )


def rules_from_options(
    asked: "PartsAsked",
    require: Sequence[str],
    certainty: str | None,
    public: Sequence[Path],
    wanted: "tuple[ExpectedCounts, float] | None",
    survey: SurveyDesign | None,
    on_progress: Progress,
) -> "tuple[tuple[Rule, ...], RuleTargets | None]":
    """The rules of --require, and their targets by --public and --expected-count, if given.

    wanted: the counts of --expected-count, or of --expected, which are one public table more
    survey: whose sampling error counts beside the noise
    """
    from rpexplore.analysis.rule_targets import RuleTargets

    if asked.tables is None:
        raise WorkloadError(
            "--require is about tables, and none is asked for; ask for some, such as --up-to 2."
        )
    if wanted is None and not public:
        return rules_of(asked.tables, require, certainty or MEDIAN), None
    tables, expected = _public(public, wanted)
    ruled = RuleTargets(
        asked.tables, require, public=tables, expected=expected, certainty=certainty or MEDIAN,
        on_progress=on_progress, survey=survey,
    )  # fmt: skip
    return ruled.rules, ruled


def _public(
    public: Sequence[Path], wanted: "tuple[ExpectedCounts, float] | None"
) -> "tuple[list[Path | PublicTable | ExpectedCounts], float | None]":
    """The public tables of the options, and the number of records if one is stated."""
    counts, sources = None if wanted is None else wanted[0], public_sources(public)
    if counts is None or counts.attributes:
        return [*sources, *([] if counts is None else [counts])], None
    return [*sources], counts.total


def most_people_from_options(
    asked: "PartsAsked",
    budget: Budget,
    shares: Mapping[str, Fraction] | None,
    others: Mapping[str, object],
    certainty: str | None,
    public: Sequence[Path],
    wanted: "tuple[ExpectedCounts, float] | None",
    cv_limit: float | None,
    survey: SurveyDesign | None,
    ruled: "RuleTargets | None",
    on_progress: Progress,
) -> "MostPeople":
    """The weights of --most-people.

    budget: of all parts; shares: of it, as they are stated
    others: options that do not go with it, and their values
    cv_limit: as it was stated, else that of the rules if they have one in common
    ruled: has counts that were drawn already
    """
    from rpexplore.analysis.most_people import MostPeople

    if asked.tables is None:
        raise WorkloadError(
            "--most-people is about tables, and none is asked for; ask for some, such as --up-to 2."
        )
    for name, value in others.items():
        if value:
            raise WorkloadError(
                f"--most-people finds weights for the average error at a budget; leave {name} out."
            )
    if shares is None and (asked.areas is not None or asked.counts is not None):
        raise WorkloadError(
            "--most-people needs the budget of the tables; state the shares of the parts, such as "
            "--share tables=1/2."
        )
    if ruled is None and wanted is None and not public:
        raise WorkloadError(
            "--most-people needs a forecast of the counts; give --public FILE or --expected-count "
            "N."
        )
    if shares is not None and "tables" in shares:
        budget = share_of_budget(budget, shares["tables"])
    limits = {float(rule.cv) for rule in (ruled.rules if ruled else ())}
    limit = limits.pop() if len(limits) == 1 else CV_LIMIT
    given, expected = _public(public, wanted)
    return MostPeople(
        asked.tables, budget, given, expected, cv_limit or limit, certainty or MEDIAN, on_progress,
        drawn=None if ruled is None else ruled.counts, survey=survey,
    )  # fmt: skip


def objective_of_rest(
    pilot: str | None,
    others: Mapping[str, object],
    certainty: str | None,
    cv_limit: float | None,
    rules: Sequence[Rule],
) -> RestObjective:
    """What --then-most-people states.

    others: options that do not go with it, and their values
    cv_limit: as it was stated, else that of the rules if they have one in common
    """
    if pilot is None:
        raise WorkloadError(
            "--then-most-people plans the rest behind a pilot; give its share, such as --pilot 5%."
        )
    for name, value in others.items():
        if value:
            raise WorkloadError(
                "--then-most-people finds weights when the pilot is measured, for unbiased tables "
                f"at a stated budget; leave {name} out."
            )
    limits = {Fraction(rule.cv) for rule in rules}
    limit = exact_fraction(str(CV_LIMIT if cv_limit is None else checked_cv_limit(cv_limit)), "CV")
    if cv_limit is None and len(limits) == 1:
        limit = limits.pop()
    return RestObjective(limit, certainty or MEDIAN)


def rule_outcome(
    made: Plan, ruled: "RuleTargets", is_smallest: bool, on_progress: Progress
) -> tuple[dict[str, Any], str]:
    """How many tables of a plan meet its rules, as facts and as text.

    is_smallest: whether the plan has the smallest budget for them; else that is said
    """
    from rpexplore.analysis.forecast import Forecast
    from rpexplore.analysis.rule_targets import budget_range, describe_meeting
    from rpexplore.analysis.sufficient_budgets import sufficient_budget

    forecast = Forecast(made, drawn=ruled.counts, survey=ruled.survey)
    facts: dict[str, Any] = {
        "rules": [rule.text for rule in ruled.rules],
        "rests_on": ruled.counts.public.text,
        "tables": int(np.sum(forecast.judged)),
        "meeting": forecast.n_meeting(),
        "surely": forecast.n_meeting(SURELY),
        **({} if ruled.survey is None else {"survey": ruled.survey.to_json()}),
    }
    said, tables = [describe_meeting(forecast)], made.part("tables")
    closure = None if tables is None or ruled.reason else tables.closure
    by_rho = made.noise is None  # as what is measured depends on what was drawn before
    if not is_smallest:
        facts["smallest_budget"] = None
        if ruled.reason:
            said.append(ruled.reason)
        else:
            minimum = minimum_budget(ruled.workload).for_unit_of(made.budget)
            closure = minimum.closure
            noise = None if by_rho else minimum.noise
            needed = sufficient_budget(minimum.rho, made.budget, "The rule", noise)
            facts["smallest_budget"] = needed.rho
            said.append(f"All meet it from {needed.text} on, with a plan for it.")
        facts["why"] = ruled.reason or None
    found = None
    if closure is not None:
        found = budget_range(ruled, made.budget, closure, on_progress, by_rho=by_rho)
    facts["budget_range"] = None if found is None else found.to_json()
    if found is not None:
        said.append(f"How small the budget for the rule can be is a forecast too: {found.text}.")
    return facts, " ".join(said)
