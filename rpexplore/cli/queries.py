"""The verbs for lists of queries: plan them, start from a preset or a template."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rpexplore.cli import plan_inputs
from rpexplore.cli import plan_options as options
from rpexplore.cli import query_options as own
from rpexplore.cli.console import progress, refuse_existing, say, say_json, write_new

if TYPE_CHECKING:
    from rpexplore.queries.plan import QueryPlan

# Each verb imports what it needs itself, so that none waits for what it does not use.

queries = typer.Typer(rich_markup_mode=None)


@queries.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """Plan lists of queries, each with its own target.

    For counts that are no cells of tables: "adults", "children in the north", sums with weights.
    The plan is then shown, verified and released like any other: show, verify, release.
    """
    if context.invoked_subcommand is None:
        say(context.get_help())


@queries.command()
def plan(
    out: own.PlanOut,
    codebook: own.Codebook = None,
    attributes: own.Attributes = None,
    queries: own.Queries = None,
    query: own.Query = None,
    target: own.Target = None,
    preset: own.Chosen = None,
    rho: options.Rho = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    privacy_cost: options.PrivacyCost = None,
    minimum_budget: own.MinimumBudget = False,
    records_per_person: options.RecordsPerPerson = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the most accurate plan for a list of queries, and save it.

    All targets are met, or missed by one common factor that is the smallest possible. Give the
    budget in one way, or have it found with --minimum-budget. No records are needed.
    """
    from rpexplore.analysis.query_baselines import budgets_needed, query_baselines
    from rpexplore.analysis.sufficient_budgets import smallest_query_budget
    from rpexplore.cli.query_facts import (
        baseline_table,
        query_plan_facts,
        row_facts,
        spare_text,
    )
    from rpexplore.queries.planner import query_optimum

    refuse_existing(out, force)
    stated = {"rho": rho, "epsilon": epsilon, "mu": mu, "privacy_cost": privacy_cost}
    if minimum_budget:
        budget = plan_inputs.unit_from_options(
            "--minimum-budget", records_per_person, delta, **stated
        )
    else:
        budget = plan_inputs.budget_from_options(
            records_per_person, "--minimum-budget", delta=delta, **stated
        )
    with progress("Listing the queries"):
        listed = own.queries_from_options(
            codebook=codebook,
            attributes=attributes,
            queries=queries,
            query=query or [],
            target=target,
            preset=preset,
        )
    with progress(f"Planning {len(listed):,} queries") as tell:
        found = query_optimum(listed, on_progress=tell)
        if minimum_budget:
            budget = smallest_query_budget(found, budget).budget
        made = found.at(budget)
        baselines = query_baselines(found, on_progress=tell)
        refuse_existing(out, force)
        made.save(out)
    needed = budgets_needed(baselines, budget)
    if as_json:
        facts = {"plan": str(out), **query_plan_facts(made), "baselines": row_facts(needed)}
        say_json(facts)
        return
    say(f"{made}\n\n{baseline_table(needed)}\n\n{spare_text(made)}")
    say(f"\nSaved to {out}")
    say(f"SHA-256 {made.sha256}")


@queries.command()
def presets(as_json: options.AsJson = False) -> None:
    """Tell which well-known lists there are to start from."""
    made = [(name, preset, preset.queries()) for name, preset in own.named_presets()]
    if as_json:
        facts = [
            {
                "name": name.value,
                "title": preset.title,
                "explanation": preset.explanation,
                "query_count": len(listed),
                "cell_count": listed.n_cells,
                "attributes": list(listed.domain.names),
            }
            for name, preset, listed in made
        ]
        say_json({"presets": facts})
        return
    for name, preset, listed in made:
        say(f"{name.value}: {preset.title}")
        say(f"  {preset.explanation}")
        say(
            f"  {len(listed):,} queries over {listed.n_cells:,} cells of "
            f"{' × '.join(listed.domain.names)}\n"
        )


@queries.command()
def template(
    codebook: own.CodebookOfTemplate,
    out: own.TemplateOut,
    attributes: own.Attributes = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a CSV file to start from, with a coefficient for each cell.

    Each row is a query; it has the total and all single values, and can be planned as it is.
    """
    from rpexplore.queries.csv_files import csv_template

    domain = own.domain_from_options(codebook, attributes)
    write_new(out, csv_template(domain), force)
    if as_json:
        say_json({"template": str(out), "attributes": list(domain.names)})
        return
    say(f"Written to {out}")


def show_queries(
    plan: "QueryPlan", count: int | None, csv: Path | None, force: bool, as_json: bool
) -> None:
    """What a plan of queries promises, query by query: `count` of them, else 20 (as JSON: all)."""
    from rpexplore.cli.query_facts import (
        queries_against_targets,
        query_plan_facts,
        query_table,
        row_facts,
        spare_text,
    )

    rows = queries_against_targets(plan)
    if csv is not None:
        write_new(csv, rows.to_csv(index=False, lineterminator="\n"), force)
    if as_json:
        listed = row_facts(rows if count is None else rows.head(count))
        say_json({**query_plan_facts(plan), "queries": listed, "csv": csv and str(csv)})
        return
    say(str(plan))
    shown = min(len(rows), 20 if count is None else count)
    if shown:
        say(f"\n{query_table(rows.head(shown))}")
    if shown < len(rows):
        say(
            f"… and {len(rows) - shown:,} more queries: --tables {len(rows)} shows all, "
            "--csv FILE writes all."
        )
    say(f"\n{spare_text(plan)}")
    if csv is not None:
        say(f"All {len(rows):,} queries are in {csv}.")
