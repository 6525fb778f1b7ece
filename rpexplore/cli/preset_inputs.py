"""The presets of the command line, and what its options make of them for a codebook."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rpexplore.cli.options import PresetName
from rpexplore.common.exact_numbers import shown_few
from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain
    from rpexplore.queries.fitted_presets import Preset
    from rpexplore.queries.preset_roles import Role, RoleMatch
    from rpexplore.queries.query_list import QueryList


def named_presets() -> "list[tuple[PresetName, Preset]]":
    from rpexplore.queries.presets import PRESETS

    return list(zip(PresetName, PRESETS, strict=True))


def preset_from_options(
    name: PresetName,
    *,
    domain: "Domain",
    role: Sequence[str],
    category: Sequence[str],
) -> "tuple[QueryList, list[str]]":
    """The queries of a preset, and what was guessed of the codebook, a line for each role."""
    from rpexplore.queries.preset_roles import describe_match, guessed_matches

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
    from rpexplore.queries.preset_roles import guessed_match

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
