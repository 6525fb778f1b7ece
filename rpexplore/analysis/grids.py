"""The schema as a grid that people edit: to a DataFrame, and back from what was typed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain import Domain
from rpexplore.errors import DomainError
from rpexplore.plan import Plan
from rpexplore.scenario import Scenario, titles_in_words
from rpexplore.words import plural

CATEGORIES, INTEGERS, BINS = "categories", "whole numbers", "intervals"
KINDS = [CATEGORIES, INTEGERS, BINS]

# Longer lists of values are not shown in the grid, and so cannot be changed there.
MAX_LISTED = 1000
_MAX_CSV_LINES = 1_000_000


def schema_grid(domain: Domain) -> pd.DataFrame:
    """One row an attribute: remove, name, label, kind, size, values, minimum, maximum, step.

    values: categories, or the edges of intervals, as texts; missing where there are none to edit.
    """
    return pd.DataFrame([_row(attribute) for attribute in domain.attributes]).astype(
        {"minimum": "Int64", "maximum": "Int64", "step": "Int64"}
    )


@dataclass(frozen=True)
class EditedDomain:
    """A domain read back from a grid, which attributes only changed their name, and why the
    changes that are not in it were refused."""

    domain: Domain
    renamed: Mapping[str, str]
    refused: tuple[str, ...] = ()


# Cells that make sense together only: a lowest value may need the highest typed next to it.
_TOGETHER = (("name",), ("label",), ("kind", "values", "minimum", "maximum", "step"), ("remove",))


def domain_from_grid(domain: Domain, changes: Mapping[int, Mapping[str, Any]]) -> EditedDomain:
    """The domain after changes {row: {column: value}} to its grid.

    A new kind starts with values that come closest to the old ones, to be edited further.
    Changes that cannot be used are refused one by one; the others are in the domain.
    """
    try:
        return _changed_domain(domain, changes)
    except DomainError:
        pass
    taken: dict[int, dict[str, Any]] = {}
    result, refused = EditedDomain(domain, {}), []
    for row, change in changes.items():
        for columns in _TOGETHER:
            part = {column: change[column] for column in columns if column in change}
            if not part:
                continue
            trial = taken | {row: taken.get(row, {}) | part}
            try:
                result, taken = _changed_domain(domain, trial), trial
            except DomainError as error:
                refused.append(str(error))
    return replace(result, refused=tuple(refused))


def _changed_domain(domain: Domain, changes: Mapping[int, Mapping[str, Any]]) -> EditedDomain:
    attributes, renamed = [], {}
    for place, attribute in enumerate(domain.attributes):
        change = changes.get(place, {})
        if change.get("remove"):
            continue
        edited = _edited(attribute, change)
        renamed[attribute.name] = edited.name
        attributes.append(edited)
    if not attributes:
        raise DomainError("A schema needs at least one attribute; add another before removing it.")
    return EditedDomain(Domain(tuple(attributes)), renamed)


def cross_product(domain: Domain) -> int:
    """Cells of the table of all attributes together, exact."""
    return math.prod(domain.sizes.tolist())


def with_new_attribute(domain: Domain) -> Domain:
    """The domain with one more attribute, to be named and described by the user."""
    number = len(domain) + 1
    while f"attribute_{number}" in domain.names:
        number += 1
    return Domain((*domain.attributes, Attribute(f"attribute_{number}", Integers(0, 9))))


def why_no_csv(domain: Domain) -> str:
    """Why there is no CSV codebook of a domain, in a sentence; "" where there is one."""
    grouped = [each.name for each in domain.attributes if not _is_listable(each.values)]
    if grouped:
        return f"A CSV codebook lists single values; {grouped[0]} groups numbers. JSON holds all."
    if int(domain.sizes.sum()) > _MAX_CSV_LINES:
        return "There are too many values to list one by one. JSON holds all."
    return ""


def _is_listable(values: Categories | Integers | Bins) -> bool:
    return isinstance(values, Categories) or (isinstance(values, Integers) and values.step == 1)


def domain_from_bytes(content: bytes, filename: str) -> Domain:
    """The domain of an uploaded codebook; the ending of `filename` tells its format."""
    return Domain.parse(_text(content, filename), filename)


def scenario_from_bytes(content: bytes, filename: str, present: Scenario) -> Scenario:
    """The inputs of an uploaded plan; for the present schema it counts what is counted now.

    Raises `RpexploreError` for a file that is no plan.
    """
    opened = Scenario.of_plan(Plan.parse(_text(content, filename), filename))
    same = opened.domain == present.domain
    return opened.replaced(counted=present.counted) if same else opened


def _text(content: bytes, filename: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DomainError(f"{filename} is not UTF-8 text; save it as UTF-8.") from None


def domain_from_lines(text: str) -> Domain:
    """A schema typed as lines: "age 0..99", "income 0..9999 step 500", "region 12", "sex: F, M".

    Raises `DomainError` naming the line that cannot be used.
    """
    attributes = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                attributes.append(_attribute_from_line(line.strip()))
            except DomainError as error:
                raise DomainError(f"Line {number}: {error}") from None
    return Domain(tuple(attributes))


def loaded_in_words(scenario: Scenario, what: str) -> str:
    """What was loaded as the schema, and which settings of tables are still there."""
    domain = scenario.domain
    values = plural(sum(domain.sizes.tolist()), "value")
    words = f"Loaded {what}: {plural(len(domain), 'attribute')}, {values}."
    kept = [setting.attributes for setting in scenario.request.settings]
    return f"{words} Kept: importance or target of {titles_in_words(kept)}." if kept else words


def values_of(attribute: Attribute, most: int = MAX_LISTED) -> pd.DataFrame:
    """The first values of an attribute, as they stand in the records, and what they are called."""
    count = min(attribute.size, most)
    labels = [attribute.values.label(index) for index in range(count)]
    stored = attribute.values.values[:count] if isinstance(attribute.values, Categories) else labels
    return pd.DataFrame({"value": list(stored), "label": labels})


def domain_with_labels(
    domain: Domain, name: str, changes: Mapping[int, Mapping[str, Any]]
) -> EditedDomain:
    """The domain after changes {row: {"label": text}} to the values of one attribute.

    An emptied label is the value itself. Labels that cannot be used are refused one by one.
    """
    place, attribute = domain.names.index(name), domain[name]
    refused: list[str] = []
    values = attribute.values
    assert isinstance(values, Categories)  # others have no labels of their own
    for row, change in changes.items():
        labels = list(values.labels)
        labels[row] = str(change.get("label") or "").strip() or values.values[row]
        try:
            values = Categories(values.values, tuple(labels))
        except DomainError as error:
            refused.append(f"Attribute {name!r}: {error}")
    attributes = list(domain.attributes)
    attributes[place] = replace(attribute, values=values)
    return EditedDomain(Domain(tuple(attributes)), {}, tuple(refused))


def _row(attribute: Attribute) -> dict[str, Any]:
    values = attribute.values
    row: dict[str, Any] = {
        "remove": False,
        "name": attribute.name,
        "label": attribute.label,
        "kind": _kind(values),
        "size": attribute.size,
        "values": None,
        "minimum": None,
        "maximum": None,
        "step": None,
    }
    if isinstance(values, Integers):
        row |= {"minimum": values.minimum, "maximum": values.maximum, "step": values.step}
    elif attribute.size <= MAX_LISTED:
        row["values"] = _texts(values)
    return row


def _kind(values: Categories | Integers | Bins) -> str:
    return {Categories: CATEGORIES, Integers: INTEGERS, Bins: BINS}[type(values)]


def _texts(values: Categories | Bins) -> list[str]:
    return (
        list(values.values)
        if isinstance(values, Categories)
        else [f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in values.edges]
    )


def _edited(attribute: Attribute, change: Mapping[str, Any]) -> Attribute:
    name = str(change.get("name", attribute.name) or "").strip()
    label = str(change.get("label", attribute.label) or "").strip()
    kind = change.get("kind") or _kind(attribute.values)
    try:
        if kind != _kind(attribute.values):
            values = _converted(attribute, kind)
        else:
            values = _edited_values(attribute.values, change)
    except DomainError as error:
        raise DomainError(f"Attribute {attribute.name!r}: {error}") from None
    return Attribute(name, values, label)


def _edited_values(
    values: Categories | Integers | Bins, change: Mapping[str, Any]
) -> Categories | Integers | Bins:
    if isinstance(values, Integers):
        given = {
            key: int(change[key])
            for key in ("minimum", "maximum", "step")
            if change.get(key) is not None
        }
        old = {"minimum": values.minimum, "maximum": values.maximum, "step": values.step}
        return Integers(**(old | given))
    if change.get("values") is None:
        return values
    texts = [str(text).strip() for text in change["values"]]
    if isinstance(values, Bins):
        return Bins(tuple(_edge(text) for text in texts))
    # A category that stays keeps its label.
    labels = dict(zip(values.values, values.labels, strict=True))
    return Categories(tuple(texts), tuple(labels.get(text, text) for text in texts))


def _converted(attribute: Attribute, kind: str) -> Categories | Integers | Bins:
    """Values of another kind, of the same number where that can be."""
    values, size = attribute.values, attribute.size
    if kind == INTEGERS:
        return Integers(0, size - 1)
    if size > MAX_LISTED:
        raise DomainError(
            f"It has {size:,} values, too many to list in the grid (at most {MAX_LISTED:,}); "
            "describe it in a codebook file."
        )
    if kind == CATEGORIES:
        return Categories(tuple(attribute.labels()))
    if isinstance(values, Integers):
        starts = range(values.minimum, values.maximum + 1, values.step)
        return Bins((*map(float, starts), float(values.maximum + 1)))
    return Bins(tuple(float(edge) for edge in range(size + 1)))


def _edge(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DomainError(f"An edge must be a number, got {text!r}.") from None


def _attribute_from_line(line: str) -> Attribute:
    name, colon, listed = line.partition(":")
    if colon:
        values = tuple(value.strip() for value in listed.split(",") if value.strip())
        return Attribute(name.strip(), Categories(values))
    words = line.replace("=", " ").rsplit(" step ", 1)
    name, _, last = words[0].strip().rpartition(" ")
    low, dots, high = last.partition("..")
    try:
        step = int(words[1]) if len(words) > 1 else 1
        limits = (int(low), int(high)) if dots else (0, int(last) - 1)
    except ValueError:
        limits, step = None, 1
    if not name or limits is None:
        raise DomainError(
            f"{line!r} must be a name with its number of values (region 12), its range (age 0..99) "
            "or its categories (sex: F, M)."
        )
    return Attribute(name.strip(), Integers(*limits, step))
