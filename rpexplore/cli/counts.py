"""The verbs around own counts: what to start from, a preset or a template."""

from rpexplore.cli import inputs, options, preset_inputs
from rpexplore.cli.commands import Group, command
from rpexplore.cli.console import say, say_help_alone, say_json, say_result, write_new
from rpexplore.errors import RpexploreError

# Each verb imports what it needs itself, so that none waits for what it does not use.


def group() -> None:
    """Start a list of counts of your own, each with its own target.

    For counts that are no cells of tables: "adults", "children in the north", sums with weights.
    `rpexplore plan --counts FILE` plans them, beside tables or alone.
    """
    say_help_alone()


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

    Each row is a count; it has the total and all single values, and can be planned as it is.
    """
    from rpexplore.queries.csv_files import csv_template

    if out.suffix.lower() != ".csv":
        raise RpexploreError(f"The file must end in .csv, got {out.name!r}; rename it.")
    from rpexplore.domain.domain import Domain

    domain = inputs.domain_of_counts(Domain.load(codebook), attributes)
    write_new(out, csv_template(domain), force)
    facts = {"template": str(out), "attributes": list(domain.names)}
    say_result(as_json, facts, f"Written to {out}")


counts = command(group, Group, name="counts", invoke_without_command=True)
for verb in (presets, template):
    counts.add_command(command(verb))
