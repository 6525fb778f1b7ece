"""The verb that compares a plan with plainer mechanisms."""

import math

from rpexplore.cli import options
from rpexplore.cli.console import progress, say_result, text_table
from rpexplore.errors import RpexploreError

_USUAL_TABLES = 20

# It imports what it needs itself, so that no other verb waits for it.


def compare(
    plan_file: options.PlanFile,
    tables: options.HowMany = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare a plan with plainer mechanisms at equal cost.

    How many times the privacy cost noise in every cell, hierarchies, wavelets, Fourier coefficients
    or the strategies of HDMM would need for the errors of the plan, by its objective; and what no
    mechanism can go below. All from formulas: no record is read. With --tables also the standard
    errors that they have in tables.
    """
    from rpexplore.analysis.baselines import PLAN, describe_missing
    from rpexplore.analysis.baselines import compare as compared
    from rpexplore.cli.facts import row_facts
    from rpexplore.common.formatting import describe_numbers
    from rpexplore.planning.areas.area_plan import AreaPlan
    from rpexplore.planning.plan import load_plan

    with progress("Reading the plan") as on_progress:
        plan = load_plan(plan_file)
        if isinstance(plan, AreaPlan):
            raise RpexploreError(
                f"{plan_file.name} is {plan.kind_text}, and plans of tables are compared here; "
                "`rpexplore areas plan --compare` compares plans for areas."
            )
        comparison = compared(plan, on_progress=on_progress)
    there = comparison.there
    errors = comparison.of_tables().head(_USUAL_TABLES if tables is None else tables)
    names = [row.baseline.name for row in there]
    parts = [
        "\n".join(comparison.sentences),
        text_table(
            {
                "name": names,
                "baseline": [row.baseline.title for row in there],
                "known as": [row.baseline.source for row in there],
                "privacy cost for the same": [row.budget_text for row in there],
            },
            alignment="<<<>",
        ),
        describe_missing(comparison),
    ]
    if tables:
        columns = {"table": errors["table"].tolist(), PLAN: describe_numbers(errors[PLAN])}
        columns |= {
            row.baseline.name: describe_numbers(errors[row.baseline.title]) for row in there
        }
        parts += ["Standard errors at the plan's privacy cost:", text_table(columns)]
    share = comparison.least_share
    facts = {
        "baselines": row_facts(comparison.frame().replace(math.inf, math.nan)),
        "least_share_of_budget": None if math.isnan(share) else share,
        "laplace_epsilon": comparison.laplace_epsilon if comparison.laplace_sentence else None,
        "sentences": comparison.sentences,
        "tables": row_facts(errors.replace(math.inf, math.nan)),
    }
    say_result(as_json, facts, "\n\n".join(filter(None, parts)))
