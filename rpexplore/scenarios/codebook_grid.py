"""The codebook as a grid that people edit: to a DataFrame, and back from what was typed."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pandas as pd

from rpexplore.common.json_fields import dumps, loads, refusing
from rpexplore.domain.amounts import WEIGHT_DECIMALS, Amounts
from rpexplore.domain.attribute import Attribute, Values
from rpexplore.domain.categories import Categories
from rpexplore.domain.dates import UNITS, reading_of, stated_day
from rpexplore.domain.domain import TO_COMPLETE, Domain, completed, is_unfinished
from rpexplore.domain.levels import LEVELS, Level, check_number, groups_of
from rpexplore.domain.ordered_values import NOT_STATED, Bins, Dates, Integers, Numbers
from rpexplore.errors import DomainError
from rpexplore.scenarios.bins import as_bins, bins_of_texts, edge_texts

CATEGORIES, INTEGERS, BINS, DATES = "categories", "whole numbers", "bins", "dates"
AMOUNTS = "amounts"
WEIGHTS = "weights"
UNFINISHED = "to be completed"
KINDS = [CATEGORIES, INTEGERS, BINS, DATES, AMOUNTS, WEIGHTS, UNFINISHED]

# Longer lists of values are not shown in the grid, and so cannot be changed there.
MAX_LISTED = 1000

_LIMITS = ("minimum", "maximum", "step")
_COLUMNS = ["remove", "name", "label", "kind", "size", "values", "minimum", "maximum", "step"]
# Cells that make sense together only: a lowest value may need the highest typed next to it.
_TOGETHER = (("name",), ("label",), ("kind", "values", "minimum", "maximum", "step"), ("remove",))


def codebook_grid(domain: Domain) -> pd.DataFrame:
    """One row an attribute: remove, name, label, kind, size, values, minimum, maximum, step.

    values: categories, or the edges of bins or dates, as texts; missing where there are none to
    edit. minimum, maximum, step: texts, of whole numbers and dates. An attribute that waits for
    its values has no size, and amounts have none: they have limits.
    """
    rows = [_row(attribute) for attribute in domain.attributes]
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"size": "Int64"})


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
    """The number of values over all attributes that have theirs; amounts have limits instead."""
    return sum(
        attribute.size
        for attribute in domain
        if not is_unfinished(attribute) and not isinstance(attribute.values, Amounts)
    )


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
    if is_unfinished(attribute):
        return _domain_with(domain, completed(attribute, values))
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
        "kind": _kind(attribute),
    }
    if is_unfinished(attribute):
        return row
    row["size"] = None if isinstance(values, Amounts) else attribute.size
    if isinstance(values, Integers):
        limits = values.minimum, values.maximum, values.step
    elif isinstance(values, Dates) and values.steps:
        limits = values.first, values.last, values.step
    elif isinstance(values, Amounts):
        return row | {"minimum": str(values.minimum), "maximum": str(values.maximum)}
    else:
        if attribute.size <= MAX_LISTED:
            row["values"] = _listed(values)
        return row
    return row | dict(zip(_LIMITS, map(str, limits), strict=True))


def _listed(values: Values) -> list[str]:
    """Categories, or edges, as they are typed."""
    if isinstance(values, Bins):
        return edge_texts(values)
    if isinstance(values, Dates):
        return [edge.isoformat() for edge in values.edges]
    assert isinstance(values, Categories)
    return list(values.values)


def _kind(attribute: Attribute) -> str:
    if is_unfinished(attribute):
        return UNFINISHED
    kinds = {Categories: CATEGORIES, Integers: INTEGERS, Bins: BINS, Dates: DATES}
    if isinstance(attribute.values, Amounts):
        return WEIGHTS if attribute.values.are_weights else AMOUNTS
    return kinds[type(attribute.values)]


def _edited(attribute: Attribute, change: Mapping[str, Any]) -> Attribute:
    name = str(change.get("name", attribute.name) or "").strip()
    label = str(change.get("label", attribute.label) or "").strip()
    kind = change.get("kind") or _kind(attribute)
    with refusing(DomainError, f"Attribute {attribute.name!r}"):
        if is_unfinished(attribute):
            attribute = completed(attribute, _completed(kind, change))
            return replace(attribute, name=name, label=label)
        if kind == UNFINISHED:
            values = _completed(kind, change)
        elif kind != _kind(attribute):
            values = _converted(attribute, kind)
            if kind == DATES and any(change.get(name) for name in ("values", *_LIMITS)):
                values = _edited_values(values, change)
        else:
            values = _edited_values(attribute.values, change)
    if isinstance(values, Amounts):
        return Attribute(name, values, label)
    # Another kind starts with as many values, in the same places.
    alike = kind != _kind(attribute) and values.size == attribute.size
    if alike:
        return Attribute(name, values, label, attribute.groups, attribute.levels)
    groups, levels = _groups_by_value(attribute, values), _levels_by_value(attribute, values)
    return Attribute(name, values, label, groups, levels)


def _completed(kind: str, change: Mapping[str, Any]) -> Values:
    """What was typed for an attribute that waited for its values, once that is enough."""
    listed = [str(text).strip() for text in change.get("values") or ()]
    typed = [change.get(name) for name in ("minimum", "maximum")]
    lowest, highest = ("" if limit is None else str(limit) for limit in typed)
    if lowest and highest and kind in (AMOUNTS, WEIGHTS):
        return _edited_values(_amounts(Decimal(0), Decimal(1), kind), change)
    if lowest and highest and kind in (UNFINISHED, INTEGERS, DATES):
        if kind == DATES or (kind == UNFINISHED and _is_day(lowest) and _is_day(highest)):
            return Dates(lowest, highest, str(change.get("step") or ""))
        return _edited_values(Integers(0, 0), {"step": 1} | dict(change))
    if listed and kind == DATES:
        return Dates(edges=tuple(listed))
    if listed and kind == BINS:
        return bins_of_texts(listed)
    return (
        Categories(tuple(listed))
        if listed and kind not in (INTEGERS, DATES, AMOUNTS, WEIGHTS)
        else TO_COMPLETE
    )


def _is_day(text: str) -> bool:
    """Whether a text is a day in full, or a month; a year is a number."""
    try:
        return not text.isdigit() and bool(stated_day(text))
    except DomainError:
        return False


def _edited_values(values: Values, change: Mapping[str, Any]) -> Values:
    limits = {name: str(change[name]) for name in _LIMITS if change.get(name) not in (None, "")}
    if isinstance(values, Integers):
        numbers = {}
        for name, text in limits.items():
            try:
                numbers[name] = int(text)
            except ValueError:
                noun = {"minimum": "lowest value", "maximum": "highest value", "step": "step"}[name]
                raise DomainError(f"The {noun} must be a whole number, got {text!r}.") from None
        return replace(values, **numbers)
    if isinstance(values, Amounts):
        limits.pop("step", None)
        return replace(values, **limits)  # pyright: ignore[reportArgumentType]  # read from texts
    if isinstance(values, Dates):
        if change.get("values"):
            edges = tuple(str(text).strip() for text in change["values"])
            return replace(values, first=None, last=None, step="", edges=edges)
        return replace(
            values,
            first=limits.get("minimum", values.first),
            last=limits.get("maximum", values.last),
            step=limits.get("step", values.step),
            edges=() if limits else values.edges,
        )
    if change.get("values") is None:
        return values
    texts = [str(text).strip() for text in change["values"]]
    if isinstance(values, Bins):
        edges = bins_of_texts(texts).edges
        are_whole = values.are_whole and all(map(float.is_integer, edges))
        return replace(values, edges=edges, are_whole=are_whole)
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
    missing = values.missing if isinstance(values, Numbers) else ()
    if kind == INTEGERS:
        return Integers(0, values.n_ordered - 1, missing=missing)
    if kind == DATES:
        return _as_dates(values, missing)
    if kind in (AMOUNTS, WEIGHTS):
        low, high = (0, 1000)
        if isinstance(values, Integers | Amounts):
            low, high = values.minimum, values.maximum
        return replace(_amounts(Decimal(low), Decimal(high), kind), missing=missing)
    if size > MAX_LISTED:
        raise DomainError(
            f"It has {size:,} values, too many to list in the grid (at most {MAX_LISTED:,}); "
            "describe it in a codebook file."
        )
    if kind == CATEGORIES:
        return Categories(tuple(attribute.labels()))
    if isinstance(values, Integers):
        return as_bins(values)
    return Bins(tuple(range(values.n_ordered + 1)), missing)


def _amounts(minimum: Decimal, maximum: Decimal, kind: str) -> Amounts:
    if kind == AMOUNTS:
        return Amounts(minimum, maximum)
    return Amounts(max(minimum, Decimal()), maximum, WEIGHT_DECIMALS, are_weights=True)


def _as_dates(values: Values, missing: tuple[tuple[str, str], ...]) -> Dates:
    """The days from the first to the last one that are listed, years, or else as many days."""
    if isinstance(values, Categories):
        days = [reading_of("").ordinal(value) for value in values.values]
        known = [date.fromordinal(day) for day in days if day is not None]
        if len(known) == len(days):
            return Dates(min(known), max(known))
    if isinstance(values, Integers) and values.minimum >= 1000 and values.maximum <= 9999:
        step = f"{values.step} years"
        return Dates(str(values.minimum), str(values.maximum), step, missing=missing)
    first = date(2000, 1, 1)
    last = first.toordinal() + min(values.n_ordered, MAX_LISTED) - 1
    return Dates(first, date.fromordinal(last), missing=missing)


# ---- Cells for missing values of numbers and dates, as lines that people type: "-9 = refused".


def lines_of_missing(values: Numbers) -> str:
    """The missing values with their labels, one a line; an empty cell has nothing in front."""
    return "\n".join(f"{value} = {label}" for value, label in values.missing)


def with_missing_lines(values: Numbers, text: str) -> Values:
    """Numbers or dates with these cells for missing values; raises `DomainError` as they do."""
    pairs = []
    for line in filter(str.strip, text.split("\n")):
        value, equals, label = line.partition("=")
        pairs.append((value.strip(), label.strip() if equals else NOT_STATED))
    assert isinstance(values, Integers | Bins | Dates | Amounts)
    return replace(values, missing=tuple(pairs))


# ---- Levels, as lines that people type: "adult: 0-17, 18+".


def lines_of_levels(attribute: Attribute) -> str:
    """The levels of an attribute, one a line, which `domain_with_level_lines` reads."""
    return "\n".join(
        f"{level.name}: {_text_of_level(level, attribute.values)}" for level in attribute.levels
    )


def domain_with_level_lines(domain: Domain, name: str, text: str) -> Domain:
    """The domain with these levels of an attribute; raises `DomainError` for unusable ones.

    A line is the level's name, a colon, and what a codebook file would state: a width, bands, a
    step of dates, or the values of each group, as "Europe = DE, FR; America = US".
    """
    attribute, levels = domain[name], []
    lines = list(filter(str.strip, text.split("\n")))
    check_number(len(lines), attribute.size)
    for line in lines:
        level, colon, stated = map(str.strip, line.partition(":"))
        if not colon or not stated:
            raise DomainError(
                f"A level must be a name, a colon and its groups, such as adult: 0-17, 18+, got "
                f"{line.strip()!r}."
            )
        said: Any = stated
        if re.fullmatch(r"[0-9]{1,9}(\.0+)?", stated):
            said = int(float(stated))
        if stated.startswith("{"):
            with refusing(DomainError, f"The groups of level {level!r} must be a JSON object"):
                said = loads(stated)
        elif "=" in stated:
            groups = [part.partition("=") for part in stated.split(";")]
            said = {
                group.strip(): [value.strip() for value in values.split(",")]
                for group, _, values in groups
            }
            if len(said) < len(groups):
                raise DomainError(f"The level {level!r} names a group twice; name each once.")
        levels.append(Level(level, groups_of(level, said, attribute.values)))
    return _domain_with(domain, replace(attribute, levels=tuple(levels)))


def _text_of_level(level: Level, values: Values) -> str:
    """What states a level: the shortest of a step, bands and lists that makes the same groups."""
    candidates = [", ".join(level.labels), *(UNITS if isinstance(values, Dates) else ())]
    for stated in candidates if not isinstance(values, Categories) else ():
        with suppress(DomainError):
            if groups_of(level.name, stated, values) == level.groups:
                return stated
    texts = list(map(values.label, range(values.size)))
    if isinstance(values, Categories):
        texts = list(values.values)
    members: dict[str, list[str]] = {}
    for group, value in zip(level.groups, texts, strict=True):
        members.setdefault(group, []).append(value)
    all_texts = (*members, *texts)
    if any(sign in text for text in all_texts for sign in "=,;{\n") or any(
        text != text.strip() for text in all_texts
    ):
        return dumps(members)
    return "; ".join(f"{group} = {', '.join(listed)}" for group, listed in members.items())
