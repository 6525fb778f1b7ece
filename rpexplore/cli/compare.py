"""The verb that compares a plan with plainer mechanisms."""

import math
from collections.abc import Callable
from typing import Any, NoReturn

from rpexplore.cli import options
from rpexplore.cli.console import progress, say_result, text_table
from rpexplore.common.concurrency import Progress
from rpexplore.errors import RpexploreError

_USUAL_TABLES = 20

# Each function imports what it needs itself, so that no other verb waits for it.


def compare(
    plan_file: options.PlanFile,
    tables: options.HowMany = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare a plan with plainer mechanisms at equal cost.

    Tables: how many times the privacy cost noise in every cell, hierarchies, wavelets, Fourier
    coefficients or the strategies of HDMM would need for the errors of the plan, by its objective;
    and what no mechanism can go below. With --tables also the standard errors that they have in
    tables. Tables in areas: shares of the budget by level. Own counts: what plainer mechanisms need
    for the same targets. All from formulas: no record is read.
    """
    from rpexplore.planning.plan import load_plan

    with progress("Reading the plan") as on_progress:
        found, parts = {}, load_plan(plan_file).parts
        for part in parts:
            try:
                found[part.kind] = _COMPARED[part.kind](part, tables, on_progress)
            except RpexploreError as error:
                if len(parts) == 1:
                    raise
                found[part.kind] = {"sentences": [str(error)]}, str(error)
    facts = {kind: facts for kind, (facts, _) in found.items()}
    if len(facts) == 1:
        (facts,) = facts.values()
    say_result(as_json, facts, "\n\n".join(text for _, text in found.values()))


def _tables(part: Any, count: int | None, on_progress: Progress) -> tuple[dict[str, Any], str]:
    from rpexplore.analysis.baselines import PLAN, describe_missing
    from rpexplore.analysis.baselines import compare as compared
    from rpexplore.cli.facts import row_facts
    from rpexplore.common.formatting import describe_numbers

    comparison = compared(part, on_progress=on_progress)
    there = comparison.there
    errors = comparison.of_tables().head(_USUAL_TABLES if count is None else count)
    texts = [
        "\n".join(comparison.sentences),
        text_table(
            {
                "name": [row.baseline.name for row in there],
                "baseline": [row.baseline.title for row in there],
                "known as": [row.baseline.source for row in there],
                "privacy cost for the same": [row.budget_text for row in there],
            },
            alignment="<<<>",
        ),
        describe_missing(comparison),
    ]
    if count:
        columns = {"table": errors["table"].tolist(), PLAN: describe_numbers(errors[PLAN])}
        columns |= {
            row.baseline.name: describe_numbers(errors[row.baseline.title]) for row in there
        }
        texts += ["Standard errors at the plan's privacy cost:", text_table(columns)]
    share = comparison.least_share
    facts = {
        "baselines": row_facts(comparison.frame().replace(math.inf, math.nan)),
        "least_share_of_budget": None if math.isnan(share) else share,
        "laplace_epsilon": comparison.laplace_epsilon if comparison.laplace_sentence else None,
        "sentences": comparison.sentences,
        "tables": row_facts(errors.replace(math.inf, math.nan)),
    }
    return facts, "\n\n".join(filter(None, texts))


def _areas(part: Any, count: int | None, on_progress: Progress) -> tuple[dict[str, Any], str]:
    from rpexplore.analysis.areas.accuracy import describe_shares
    from rpexplore.analysis.areas.levels import beside_shares_by_level
    from rpexplore.cli.area_facts import share_table
    from rpexplore.cli.facts import row_facts

    beside = beside_shares_by_level(part, on_progress=on_progress)
    sentence = describe_shares(beside)
    facts = {"beside_shares_by_level": row_facts(beside), "sentences": [sentence]}
    return facts, f"{sentence}\n\n{share_table(beside)}"


def _counts(part: Any, count: int | None, on_progress: Progress) -> tuple[dict[str, Any], str]:
    from rpexplore.analysis.queries import (
        budgets_needed,
        describe_budgets,
        optimum_of,
        query_baselines,
    )
    from rpexplore.cli.facts import baseline_table, row_facts

    baselines = query_baselines(optimum_of(part), on_progress=on_progress)
    needed = budgets_needed(baselines, part.budget)
    sentence = describe_budgets(needed)
    facts = {"baselines": row_facts(needed), "sentences": [sentence]}
    return facts, f"{sentence}\n\n{baseline_table(needed)}"


def _rounds(part: Any, count: int | None, on_progress: Progress) -> NoReturn:
    raise RpexploreError(
        "Nothing is promised of the accuracy of an adaptive plan beforehand, so there is nothing "
        "to compare; `rpexplore rehearse` sets made-up tables beside those of a fixed plan."
    )


_COMPARED: dict[str, Callable[[Any, int | None, Progress], tuple[dict[str, Any], str]]] = {
    "tables": _tables,
    "areas": _areas,
    "counts": _counts,
    "rounds": _rounds,
}
