"""The verbs around own counts: what to start from, a preset or a template."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rpexplore.cli import inputs, options
from rpexplore.cli.commands import Group, command
from rpexplore.cli.console import say, say_help_alone, say_json, say_result, write_new
from rpexplore.cli.options import PresetName
from rpexplore.common.numbers import shown_few
from rpexplore.errors import RpexploreError, WorkloadError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain
    from rpexplore.workload.preset_roles import Role, RoleMatch
    from rpexplore.workload.presets import Preset
    from rpexplore.workload.query_list import QueryList


# Each verb imports what it needs itself, so that none waits for what it does not use.


def group() -> None:
    """Start a list of own counts, each with its own target.

    For counts that are no cells of tables: "adults", "children in the north", sums with weights.
    `rpexplore plan --counts FILE` plans them, beside tables or alone.
    """
    say_help_alone()


def presets(as_json: options.AsJson = False) -> None:
    """Tell which well-known lists there are to start from."""
    from rpexplore.workload.presets import describe_targets

    facts, over = [], {}
    for name, preset in named_presets():
        query_list = preset.queries()
        over[name.value] = query_list.cells_text
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
        say(
            f"  {fact['query_count']:,} counts over {over[fact['name']]} of "
            f"{' × '.join(fact['attributes'])}"
        )
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
    from rpexplore.workload.query_files import csv_template

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

# ---- The presets of the command line, and what its options make of them for a codebook.


def named_presets() -> "list[tuple[PresetName, Preset]]":
    from rpexplore.workload.presets import PRESETS

    return list(zip(PresetName, PRESETS, strict=True))


def preset_from_options(
    name: PresetName,
    *,
    domain: "Domain",
    role: Sequence[str],
    category: Sequence[str],
) -> "tuple[QueryList, list[str]]":
    """The queries of a preset, and what was guessed of the codebook, a line for each role."""
    from rpexplore.workload.preset_roles import describe_match, guessed_matches

    preset = dict(named_presets())[name]
    matches = guessed_matches(preset.roles, domain)
    roles = {one.key: one for one in preset.roles}
    for option in role:
        _correct_role(option, roles, domain, matches)
    for option in category:
        _correct_category(option, domain, matches)
    fitted = preset.fitted(domain, matches)
    told = [describe_match(one, matches.get(one.key), domain) for one in preset.roles]
    return fitted.queries, [*told, fitted.text]


def _correct_role(
    option: str, roles: "Mapping[str, Role]", domain: "Domain", matches: "dict[str, RoleMatch]"
) -> None:
    """Take the attribute of an option such as race=eth for the role; none leaves the role out."""
    from rpexplore.workload.preset_roles import guessed_match

    key, sign, name = option.partition("=")
    if not sign or key not in roles:
        raise WorkloadError(
            f"--role {option!r} must be one of {', '.join(roles)}, =, and an attribute, such as "
            f"{next(iter(roles))}={domain.names[0]}; without an attribute the role is left out."
        )
    matches.pop(key, None)
    if name:
        matches[key] = guessed_match(roles[key], domain[name])


def _correct_category(option: str, domain: "Domain", matches: "dict[str, RoleMatch]") -> None:
    """Take the category of an option such as "race:2+=Two or more races" for the value."""
    key, _, rest = option.partition(":")
    value, sign, category = rest.rpartition("=")
    if not sign:
        raise WorkloadError(
            f"--category {option!r} must be written ROLE:VALUE=CATEGORY, such as "
            "'race:2+=Two or more races'."
        )
    match = matches.get(key)
    if match is not None and not match.options:
        raise WorkloadError(
            f"--category {option!r}: the role {key!r} has no categories; each value is asked."
        )
    if match is None:
        known = [one for one, other in matches.items() if other.options]
        raise WorkloadError(
            f"--category {option!r}: {key!r} is no role with categories and an attribute here; "
            + (f"such are {shown_few(known)}." if known else "this preset has none.")
        )
    values = domain[match.attribute].stored_values(len(match.options))
    if value not in values:
        raise WorkloadError(
            f"--category {option!r}: the attribute {match.attribute!r} has no value {value!r}; it "
            f"has {shown_few(values)}."
        )
    place = values.index(value)
    options = (*match.options[:place], category, *match.options[place + 1 :])
    matches[key] = replace(match, options=options)
