"""The codebook as a grid that people edit: to a DataFrame, and back from what was typed."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pandas as pd

from rpexplore.common.json_fields import refusing
from rpexplore.domain.attribute import LEVELS, Attribute, Bins, Categories, Integers, Values
from rpexplore.domain.domain import TO_COMPLETE, Domain, is_unfinished
from rpexplore.domain.levels import Level
from rpexplore.errors import DomainError
from rpexplore.scenarios.bins import as_bins, bins_of_texts, edge_texts

CATEGORIES, INTEGERS, BINS = "categories", "whole numbers", "bins"
UNFINISHED = "to be completed"
KINDS = [CATEGORIES, INTEGERS, BINS, UNFINISHED]

# Longer lists of values are not shown in the grid, and so cannot be changed there.
MAX_LISTED = 1000

_COLUMNS = ["remove", "name", "label", "kind", "size", "values", "minimum", "maximum", "step"]
# Cells that make sense together only: a lowest value may need the highest typed next to it.
_TOGETHER = (("name",), ("label",), ("kind", "values", "minimum", "maximum", "step"), ("remove",))


def codebook_grid(domain: Domain) -> pd.DataFrame:
    """One row an attribute: remove, name, label, kind, size, values, minimum, maximum, step.

    values: categories, or the edges of bins, as texts; missing where there are none to edit.
    An attribute that waits for its values has no size.
    """
    whole = ("size", "minimum", "maximum", "step")
    rows = [_row(attribute) for attribute in domain.attributes]
    return pd.DataFrame(rows, columns=_COLUMNS).astype(dict.fromkeys(whole, "Int64"))


def domain_from_grid(
    domain: Domain, changes: Mapping[int, Mapping[str, Any]]
) -> tuple[Domain, dict[str, str], list[str]]:
    """The domain after changes {row: {column: value}} to its grid; {old name: new name}; refusals.

    A new kind starts with values that come closest to the old ones, to be edited further.
    Changes that cannot be used are refused one by one; the others are in the domain.
    """
    try:
        return *_changed_domain(domain, changes), []
    except DomainError:
        pass
    accepted: dict[int, dict[str, Any]] = {}
    refused = []
    for row, change in changes.items():
        for columns in _TOGETHER:
            part = {column: change[column] for column in columns if column in change}
            trial = accepted | {row: accepted.get(row, {}) | part}
            try:
                _changed_domain(domain, trial)
            except DomainError as error:
                refused.append(str(error))
            else:
                accepted = trial
    return *_changed_domain(domain, accepted), refused


def _changed_domain(
    domain: Domain, changes: Mapping[int, Mapping[str, Any]]
) -> tuple[Domain, dict[str, str]]:
    attributes, renamed = [], {}
    for row, attribute in enumerate(domain.attributes):
        change = changes.get(row, {})
        if not change.get("remove"):
            attributes.append(_edited(attribute, change))
            renamed[attribute.name] = attributes[-1].name
    return domain.with_attributes(attributes, renamed), renamed


def values_in_all(domain: Domain) -> int:
    """The number of values over all attributes that have theirs."""
    return sum(attribute.size for attribute in domain if not is_unfinished(attribute))


def with_new_attribute(domain: Domain) -> Domain:
    """The domain with one more attribute, to be named and described by the user."""
    number = len(domain) + 1
    while f"attribute_{number}" in domain.names:
        number += 1
    new = Attribute(f"attribute_{number}", TO_COMPLETE)
    return domain.with_attributes((*domain.attributes, new))


def values_of(attribute: Attribute, most: int = MAX_LISTED) -> pd.DataFrame:
    """The first values of an attribute: as they stand in the records, what they are called, and
    the group they lie in ("South > East"; "" for none): columns value, label, group."""
    count = min(attribute.size, most)
    groups = [LEVELS.join(path) for path in attribute.groups[:count]] or [""] * count
    return pd.DataFrame(
        {
            "value": attribute.stored_values(count),
            "label": attribute.labels(count),
            "group": groups,
        }
    )


def categories_from_text(text: str) -> Categories:
    """Categories that are typed one a line, or in a single line separated by commas.

    Raises `DomainError` for one that is there twice.
    """
    lines = text.strip().splitlines()
    parts = lines[0].split(",") if len(lines) == 1 else lines
    return Categories(tuple(part.strip() for part in parts if part.strip()))


def domain_with_values(domain: Domain, name: str, values: Values) -> Domain:
    """The domain in which an attribute has these values; one that stays keeps its group."""
    attribute = domain[name]
    groups, levels = _groups_by_value(attribute, values), _levels_by_value(attribute, values)
    changed = replace(attribute, values=values, groups=groups, levels=levels)
    return _domain_with(domain, changed)


def domain_with_labels(
    domain: Domain, name: str, changes: Mapping[int, Mapping[str, Any]]
) -> tuple[Domain, list[str]]:
    """The domain after changes {row: {"label": text, "group": text}} to an attribute's values.

    And why some of them are refused, one by one. An emptied label is the value itself; only
    categories have labels of their own. Groups are paths, "South > East"; an emptied one is none.
    """
    refused: list[str] = []
    attribute = domain[name]
    for row, change in changes.items():
        for column, with_text in (("label", _with_label), ("group", _with_group)):
            if column in change:
                try:
                    attribute = with_text(attribute, row, str(change[column] or "").strip())
                except DomainError as error:
                    refused.append(str(error))
    return _domain_with(domain, attribute), refused


def _with_label(attribute: Attribute, row: int, text: str) -> Attribute:
    values = attribute.values
    assert isinstance(values, Categories)
    labels = list(values.labels)
    labels[row] = text or values.values[row]
    with refusing(DomainError, f"Attribute {attribute.name!r}"):
        return replace(attribute, values=replace(values, labels=tuple(labels)))


def _with_group(attribute: Attribute, row: int, text: str) -> Attribute:
    groups = list(attribute.groups or ((),) * attribute.size)
    groups[row] = tuple(text.split(LEVELS)) if text else ()
    return replace(attribute, groups=tuple(groups))


def _domain_with(domain: Domain, attribute: Attribute) -> Domain:
    """The domain with this in place of its attribute of that name."""
    attributes = list(domain.attributes)
    attributes[domain.position(attribute.name)] = attribute
    return domain.with_attributes(attributes)


def _groups_by_value(attribute: Attribute, values: Values) -> tuple[tuple[str, ...], ...]:
    """The groups of an attribute after it has these values: each value that stays keeps its own."""
    if not attribute.groups:
        return ()
    group_of = dict(zip(_keys(attribute.values), attribute.groups, strict=True))
    return tuple(group_of.get(key, ()) for key in _keys(values))


def _levels_by_value(attribute: Attribute, values: Values) -> tuple[Level, ...]:
    """The levels of an attribute after it has these values: each value that stays keeps its group.

    A new value is a group by itself; a level that groups nothing any more is left out.
    """
    labels, levels = [values.label(index) for index in range(values.size)], []
    for level in attribute.levels:
        group_of = dict(zip(_keys(attribute.values), level.groups, strict=True))
        groups = [
            group_of.get(key, label) for key, label in zip(_keys(values), labels, strict=True)
        ]
        if 1 < len(set(groups)) < len(groups):
            levels.append(Level(level.name, tuple(groups)))
    return tuple(levels)


def _keys(values: Values) -> list[Any]:
    """What tells each value from others before and after a change."""
    if isinstance(values, Categories):
        return list(values.values)
    if isinstance(values, Bins):  # not by labels: that of a bin changes when it is no longer last
        return [*pairwise(values.edges), *values.missing_labels]
    return [values.label(index) for index in range(values.size)]


def _row(attribute: Attribute) -> dict[str, Any]:
    values = attribute.values
    row: dict[str, Any] = dict.fromkeys(_COLUMNS) | {
        "remove": False,
        "name": attribute.name,
        "label": attribute.label,
        "kind": _kind(values),
    }
    if is_unfinished(attribute):
        return row
    row["size"] = attribute.size
    if isinstance(values, Integers):
        row |= {"minimum": values.minimum, "maximum": values.maximum, "step": values.step}
    elif attribute.size <= MAX_LISTED:
        row["values"] = edge_texts(values) if isinstance(values, Bins) else list(values.values)
    return row


def _kind(values: Values) -> str:
    if values == TO_COMPLETE:
        return UNFINISHED
    return {Categories: CATEGORIES, Integers: INTEGERS, Bins: BINS}[type(values)]


def _edited(attribute: Attribute, change: Mapping[str, Any]) -> Attribute:
    name = str(change.get("name", attribute.name) or "").strip()
    label = str(change.get("label", attribute.label) or "").strip()
    kind = change.get("kind") or _kind(attribute.values)
    with refusing(DomainError, f"Attribute {attribute.name!r}"):
        if kind == UNFINISHED or is_unfinished(attribute):
            values = _completed(kind, change)
        elif kind != _kind(attribute.values):
            values = _converted(attribute, kind)
        else:
            values = _edited_values(attribute.values, change)
    # Another kind starts with as many values, in the same places.
    alike = kind != _kind(attribute.values) and values.size == attribute.size
    if alike:
        return Attribute(name, values, label, attribute.groups, attribute.levels)
    groups, levels = _groups_by_value(attribute, values), _levels_by_value(attribute, values)
    return Attribute(name, values, label, groups, levels)


def _completed(kind: str, change: Mapping[str, Any]) -> Values:
    """What was typed for an attribute that waited for its values, once that is enough."""
    listed = [str(text).strip() for text in change.get("values") or ()]
    lowest, highest = change.get("minimum"), change.get("maximum")
    if lowest is not None and highest is not None and kind in (UNFINISHED, INTEGERS):
        return Integers(int(lowest), int(highest), int(change.get("step") or 1))
    if listed and kind == BINS:
        return bins_of_texts(listed)
    return Categories(tuple(listed)) if listed and kind != INTEGERS else TO_COMPLETE


def _edited_values(values: Values, change: Mapping[str, Any]) -> Values:
    if isinstance(values, Integers):
        limits = {key: change.get(key) for key in ("minimum", "maximum", "step")}
        return replace(values, **{key: int(v) for key, v in limits.items() if v is not None})
    if change.get("values") is None:
        return values
    texts = [str(text).strip() for text in change["values"]]
    if isinstance(values, Bins):
        return replace(values, edges=bins_of_texts(texts).edges)
    # A category that stays keeps its label, and what else it may be written like.
    labels = dict(zip(values.values, values.labels, strict=True))
    spelled = dict(zip(values.values, values.spellings, strict=False))
    return Categories(
        tuple(texts),
        tuple(labels.get(text, text) for text in texts),
        tuple(spelled.get(text, ()) for text in texts),
        values.are_numbers,
    )


def _converted(attribute: Attribute, kind: str) -> Values:
    """Values of another kind, of the same number where that can be."""
    values, size = attribute.values, attribute.size
    if kind == INTEGERS:
        if isinstance(values, Bins):
            return Integers(0, values.n_ordered - 1, missing=values.missing)
        return Integers(0, size - 1)
    if size > MAX_LISTED:
        raise DomainError(
            f"It has {size:,} values, too many to list in the grid (at most {MAX_LISTED:,}); "
            "describe it in a codebook file."
        )
    if kind == CATEGORIES:
        return Categories(tuple(attribute.labels()))
    if isinstance(values, Integers):
        return as_bins(values)
    return Bins(tuple(range(size + 1)))
