"""The verbs for areas in areas: show the levels of a tree, plan tables for all its areas."""

from rpexplore.cli import area_inputs, area_options, inputs, options
from rpexplore.cli.commands import Group, command
from rpexplore.cli.console import progress, refuse_existing, say_help_alone, say_result
from rpexplore.errors import WorkloadError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def group() -> None:
    """Plan tables for areas in areas, such as a country's.

    For up to millions of areas, or for a classification, each area with the noise that is best for
    it. The plan is then shown, verified and released like any other: show, verify, release.
    """
    say_help_alone()


def levels(
    codebook: area_options.Codebook,
    areas: area_options.Areas = None,
    level_names: area_options.LevelNames = None,
    separator: area_options.Separator = None,
    lengths: area_options.Lengths = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the levels of areas: how many areas each has, and into how many parts they fall."""
    from rpexplore.analysis.areas.levels import level_sizes
    from rpexplore.cli.area_facts import level_table, note_on_depth
    from rpexplore.cli.facts import row_facts
    from rpexplore.common.formatting import plural

    with progress("Reading the areas"):
        tree, _ = area_inputs.areas_from_options(codebook, areas, level_names, separator, lengths)
        sizes = level_sizes(tree)
        note = note_on_depth(tree)
    parts = [level_table(sizes), plural(tree.n_areas, "area"), note]
    facts = {"areas": tree.n_areas, "levels": row_facts(sizes), "note": note}
    say_result(as_json, facts, "\n\n".join(filter(None, parts)))


def plan(
    codebook: area_options.Codebook,
    out: options.PlanOut,
    areas: area_options.Areas = None,
    level_names: area_options.LevelNames = None,
    separator: area_options.Separator = None,
    lengths: area_options.Lengths = None,
    detail: area_options.ChosenDetail = area_options.Detail.SAME,
    level: area_options.Level = None,
    level_weight: area_options.LevelWeight = None,
    lists: area_options.Lists = None,
    up_to: options.UpTo = None,
    of_order: options.OfOrder = None,
    at_most_cells: options.AtMostCells = None,
    table: options.Table = None,
    tables: options.TablesFile = None,
    weight: options.Weight = None,
    target: options.Target = None,
    basis: options.Basis = None,
    loss: area_options.AreaLoss = None,
    weighting: options.TheWeighting = None,
    relative_to: options.TheRelativeTo = None,
    uniform_levels: area_options.UniformLevels = False,
    tolerance: area_options.Tolerance = None,
    rho: options.Rho = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    privacy_cost: options.PrivacyCost = None,
    minimum_budget: area_options.MinimumBudget = False,
    records_per_person: options.RecordsPerPerson = None,
    compare: area_options.Compare = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the most accurate plan for tables in all areas, and save it.

    Say which tables of the other attributes in one way or several, and with --detail, --level and
    --level-weight what each level gets of them, or with --lists some areas. Give the budget in one
    way, or have it found with --minimum-budget. Two Parquet files are written beside the plan,
    which belong to it. No records are needed.
    """
    from rpexplore.analysis.areas.levels import beside_shares_by_level
    from rpexplore.cli.area_facts import note_on_depth, share_table
    from rpexplore.cli.facts import plan_facts, row_facts
    from rpexplore.planning.areas.area_minimum_budget import minimum_area_budget
    from rpexplore.planning.areas.area_planner import plan_areas

    refuse_existing(out, force)
    if compare and lists is not None:
        raise WorkloadError(
            "--compare sets shares of the budget by level beside the plan, where all areas of a "
            "level have the same tables; leave it or --lists out."
        )
    budget = inputs.budget_from_options(
        {"rho": rho, "epsilon": epsilon, "mu": mu, "privacy_cost": privacy_cost},
        delta,
        records_per_person,
        find_smallest=minimum_budget,
    )
    objective = area_inputs.loss_from_options(
        loss, weighting, relative_to, delta, find_smallest=minimum_budget
    )
    with progress("Reading the areas"):
        tree, domain = area_inputs.areas_from_options(
            codebook, areas, level_names, separator, lengths
        )
        asked = area_inputs.tables_from_options(
            domain,
            detail,
            up_to=up_to,
            of_order=of_order or [],
            at_most_cells=at_most_cells,
            table=table or [],
            tables=tables,
            weight=weight or [],
            target=target or [],
            basis=basis or [],
        )
        workload = area_inputs.area_workload_from_options(
            tree, asked, detail, level or [], level_weight or [], lists
        )
    with progress(f"Planning {workload.n_tables:,} tables") as on_progress:
        search = {
            "tolerance": tolerance,
            "uniform_levels": uniform_levels,
            "on_progress": on_progress,
        }
        if minimum_budget:
            made = minimum_area_budget(
                workload, max_records_per_person=records_per_person, **search
            )
        else:
            made = plan_areas(workload, loss=objective, budget=budget, **search)
        beside = beside_shares_by_level(made, on_progress=on_progress) if compare else None
        refuse_existing(out, force)
        made.save(out)
    compared = None if beside is None else row_facts(beside)
    note = note_on_depth(tree)
    facts = {"plan": str(out), **plan_facts(made), "beside_shares_by_level": compared, "note": note}
    parts = [
        str(made),
        None if beside is None else share_table(beside),
        note,
        f"Saved to {out}, with {' and '.join(made.files.by_name)} beside it\nSHA-256 {made.sha256}",
    ]
    say_result(as_json, facts, "\n\n".join(filter(None, parts)))


areas = command(group, Group, name="areas", invoke_without_command=True)
for verb in (levels, plan):
    areas.add_command(command(verb))
