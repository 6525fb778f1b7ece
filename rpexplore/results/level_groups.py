"""The levels that tables have attributes at: which values are in which group, and groups in groups.

Folders of processed tables hold no codebook; what formats need of it is in their manifest.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rpexplore.domain.domain import Domain

LEVELS, TITLES = "levels", "titles"
"""Keys of a manifest: for each level its attribute and groups; what attributes are called."""


@dataclass(frozen=True)
class LevelGroups:
    """A level of an attribute, by the codes that tables have.

    of      the attribute
    groups  for each group of the level, in order, the values in it
    """

    of: str
    groups: Mapping[str, Collection[str]]


def levels_of_domain(domain: Domain, names: Iterable[str]) -> dict[str, LevelGroups]:
    """The levels among some attributes of a domain."""
    levels = {}
    for name in names:
        if name not in domain.names or not (own := domain[name]).of:
            continue
        labels = own.labels()
        groups: dict[str, list[str]] = {label: [] for label in labels}
        values = domain[own.of].stored_values()
        for value, place in zip(values, own.index_of_values, strict=True):
            if place >= 0:
                groups[labels[place]].append(value)
        levels[name] = LevelGroups(own.of, groups)
    return levels


def codebook_facts(domain: Domain, names: Collection[str]) -> dict[str, Any]:
    """What a manifest says of the codebook of some attributes; `levels_in` reads the levels."""
    titles = {name: domain[name].label for name in names if domain[name].label}
    levels = {
        name: {"of": level.of, "groups": {group: list(own) for group, own in level.groups.items()}}
        for name, level in levels_of_domain(domain, names).items()
    }
    return {key: facts for key, facts in ((TITLES, titles), (LEVELS, levels)) if facts}


def codebook_facts_in(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says of the codebook; raises `TypeError` and the like for what none says."""
    facts: dict[str, Any] = {}
    if TITLES in manifest:
        facts[TITLES] = {name: _text(title) for name, title in manifest[TITLES].items()}
    if LEVELS in manifest:
        facts[LEVELS] = {
            name: {
                "of": _text(one["of"]),
                "groups": {group: [*map(_text, own)] for group, own in one["groups"].items()},
            }
            for name, one in manifest[LEVELS].items()
        }
    return facts


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(value)
    return value


def levels_in(manifest: Mapping[str, Any]) -> dict[str, LevelGroups]:
    """The levels that a manifest names; none in those that were written without."""
    stated = manifest.get(LEVELS, {})
    return {name: LevelGroups(one["of"], one["groups"]) for name, one in stated.items()}


def parents_at_levels(
    attribute: str, levels: Mapping[str, LevelGroups], values: Iterable[str]
) -> dict[tuple[str, str], tuple[str, str]]:
    """The smallest group that each value of an attribute, and each group, lies in: a tree.

    Of groups with the same values, the one of the level with fewer groups is the larger one; no
    group lies in others that only share some of its values.

    Args:
        attribute: Whose values they are.
        levels: Of this attribute, by their names.
        values: Those that are told of.

    Returns:
        Attribute or level, and value or group -> level and group.
    """
    of_level = {
        name: {value: group for group, own in level.groups.items() for value in own}
        for name, level in levels.items()
    }
    order = sorted(levels, key=lambda name: -len(levels[name].groups))  # finer levels first
    rank = {name: place for place, name in enumerate(order)}
    nodes = [((attribute, value), [value], -1) for value in values]
    nodes += [
        ((name, group), list(own), rank[name])
        for name, level in levels.items()
        for group, own in level.groups.items()
    ]
    parents = {}
    for node, members, own_rank in nodes:
        within = []
        for name in order:
            group = of_level[name].get(members[0])
            if group is None or name == node[0]:
                continue
            size = len(levels[name].groups[group])
            is_larger = size > len(members) or (size == len(members) and rank[name] > own_rank)
            if is_larger and all(of_level[name].get(value) == group for value in members):
                within.append((size, rank[name], (name, group)))
        if within:
            parents[node] = min(within)[2]
    return parents
