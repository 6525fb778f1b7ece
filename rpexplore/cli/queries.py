"""The verbs for lists of queries: plan them, start from a preset or a template."""

from rpexplore.cli import inputs, options, preset_inputs
from rpexplore.cli.commands import Group, command
from rpexplore.cli.console import (
    progress,
    refuse_existing,
    say,
    say_help_alone,
    say_json,
    say_result,
    write_new,
)
from rpexplore.errors import RpexploreError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def group() -> None:
    """Plan lists of queries, each with its own target.

    For counts that are no cells of tables: "adults", "children in the north", sums with weights.
    The plan is then shown, verified and released like any other: show, verify, release.
    """
    say_help_alone()


def plan(
    out: options.PlanOut,
    codebook: options.QueryCodebook = None,
    attributes: options.QueryAttributes = None,
    queries: options.Queries = None,
    query: options.Query = None,
    target: options.QueryTarget = None,
    preset: options.ChosenPreset = None,
    role: options.PresetRole = None,
    category: options.PresetCategory = None,
    rho: options.Rho = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    privacy_cost: options.PrivacyCost = None,
    minimum_budget: options.QueryMinimumBudget = False,
    records_per_person: options.RecordsPerPerson = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the most accurate plan for a list of queries, and save it.

    All targets are met, or missed by one common factor that is the smallest possible. Give the
    budget in one way, or have it found with --minimum-budget. No records are needed.
    """
    from rpexplore.analysis.queries import budgets_needed, query_baselines
    from rpexplore.analysis.sufficient_budgets import smallest_query_budget
    from rpexplore.cli.facts import baseline_table, plan_facts, row_facts, spare_text
    from rpexplore.planning.counts.query_planner import query_optimum
    from rpexplore.queries.definitions import StatedQueries
    from rpexplore.queries.edits import with_queries

    refuse_existing(out, force)
    budget = inputs.budget_from_options(
        {"rho": rho, "epsilon": epsilon, "mu": mu, "privacy_cost": privacy_cost},
        delta,
        records_per_person,
        find_smallest=minimum_budget,
    )
    guessed: list[str] = []
    with progress("Listing the queries"):
        stated = None
        if preset is None and (role or category):
            raise RpexploreError("--role and --category go with --preset NAME; give both.")
        if preset is not None and (target or attributes) and not (query or queries):
            raise RpexploreError(
                "A preset has queries and targets of its own; leave --target and --attributes out, "
                "or give queries of your own beside it with --query."
            )
        if preset is None or query or queries:
            stated = inputs.queries_from_options(
                codebook=codebook,
                attributes=attributes,
                queries=queries,
                query=query or [],
                target=target,
            )
        if preset is not None:
            fitted, guessed = preset_inputs.preset_from_options(
                preset, codebook=codebook, role=role or [], category=category or []
            )
            stated = with_queries(stated, StatedQueries.of(fitted))
        assert stated is not None
        query_list = stated.queries
    with progress(f"Planning {len(query_list):,} queries") as on_progress:
        optimum = query_optimum(query_list, on_progress=on_progress)
        if minimum_budget:
            budget = smallest_query_budget(optimum, budget).budget
        made = optimum.at(budget)
        baselines = query_baselines(optimum, on_progress=on_progress)
        refuse_existing(out, force)
        made.save(out)
    needed = budgets_needed(baselines, budget)
    facts = {"plan": str(out), **plan_facts(made), "baselines": row_facts(needed)}
    text = f"{made}\n\n{baseline_table(needed)}\n\n{spare_text(made)}\n\nSaved to {out}"
    if guessed:
        facts["guessed"] = guessed
        told = ["Guessed from names and sizes (--role and --category correct it):", *guessed]
        text = "\n".join([*told, "", text])
    say_result(as_json, facts, f"{text}\nSHA-256 {made.sha256}")


def presets(as_json: options.AsJson = False) -> None:
    """Tell which well-known lists there are to start from."""
    from rpexplore.queries.fitted_presets import describe_targets

    facts = []
    for name, preset in preset_inputs.named_presets():
        query_list = preset.queries()
        facts.append(
            {
                "name": name.value,
                "title": preset.title,
                "explanation": preset.explanation,
                "query_count": len(query_list),
                "cell_count": query_list.n_cells,
                "targets": describe_targets(query_list),
                "attributes": list(query_list.domain.names),
                "roles": [role.key for role in preset.roles],
            }
        )
    if as_json:
        say_json({"presets": facts})
        return
    for fact in facts:
        say(f"{fact['name']}: {fact['title']}\n  {fact['explanation']}")
        count, cells = fact["query_count"], fact["cell_count"]
        say(f"  {count:,} queries over {cells:,} cells of {' × '.join(fact['attributes'])}")
        say(f"  targets: {fact['targets']}")
        say(f"  roles: {', '.join(fact['roles'])}\n")


def template(
    codebook: options.TemplateCodebook,
    out: options.TemplateOut,
    attributes: options.QueryAttributes = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a CSV file to start from, with a coefficient for each cell.

    Each row is a query; it has the total and all single values, and can be planned as it is.
    """
    from rpexplore.queries.csv_files import csv_template

    if out.suffix.lower() != ".csv":
        raise RpexploreError(f"The file must end in .csv, got {out.name!r}; rename it.")
    domain = inputs.domain_from_options(codebook, attributes)
    write_new(out, csv_template(domain), force)
    facts = {"template": str(out), "attributes": list(domain.names)}
    say_result(as_json, facts, f"Written to {out}")


queries = command(group, Group, name="queries", invoke_without_command=True)
for verb in (plan, presets, template):
    queries.add_command(command(verb))
