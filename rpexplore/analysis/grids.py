"""Schema and workload as grids that people edit: to DataFrames, and back from what was typed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.standard_errors import places_containing, titles
from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain import Domain
from rpexplore.errors import DomainError
from rpexplore.plan import Plan
from rpexplore.scenario import Scenario, Table, TableSetting
from rpexplore.workload import Workload

CATEGORIES, INTEGERS, BINS = "categories", "whole numbers", "intervals"
KINDS = [CATEGORIES, INTEGERS, BINS]

# Longer lists of values are not shown in the grid, and so cannot be changed there.
MAX_LISTED = 1000
_MAX_CSV_LINES = 1_000_000

# ---- the schema


def schema_grid(domain: Domain) -> pd.DataFrame:
    """One row an attribute: remove, name, label, kind, size, values, minimum, maximum, step.

    values: categories, or the edges of intervals, as texts; missing where there are none to edit.
    """
    return pd.DataFrame([_row(attribute) for attribute in domain.attributes]).astype(
        {"minimum": "Int64", "maximum": "Int64", "step": "Int64"}
    )


@dataclass(frozen=True)
class EditedDomain:
    """A domain read back from a grid, and which attributes only changed their name."""

    domain: Domain
    renamed: Mapping[str, str]


def domain_from_grid(domain: Domain, changes: Mapping[int, Mapping[str, Any]]) -> EditedDomain:
    """The domain after changes {row: {column: value}} to its grid.

    A new kind starts with values that come closest to the old ones, to be edited further.
    Raises `DomainError` for values that are none.
    """
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
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DomainError(f"{filename} is not UTF-8 text; save it as UTF-8.") from None
    return Domain.parse(text, filename)


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


def values_of(attribute: Attribute, most: int = MAX_LISTED) -> pd.DataFrame:
    """The first values of an attribute, as they stand in the records, and what they are called."""
    count = min(attribute.size, most)
    labels = [attribute.values.label(index) for index in range(count)]
    stored = attribute.values.values[:count] if isinstance(attribute.values, Categories) else labels
    return pd.DataFrame({"value": list(stored), "label": labels})


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


# ---- the workload


@dataclass(frozen=True)
class WorkloadTotals:
    """The size of a workload: tables, cells over all tables, and its largest table."""

    tables: int
    cells: int
    largest_table: str
    largest_cells: int


def totals(workload: Workload) -> WorkloadTotals:
    """The size of a workload, exact however large."""
    cells = workload.exact_cells
    largest = int(np.argmax(workload.cells))
    return WorkloadTotals(
        tables=len(workload),
        cells=int(cells.sum()),
        largest_table=titles(workload, np.array([largest]))[0],
        largest_cells=int(cells[largest]),
    )


def cross_product(domain: Domain) -> int:
    """Cells of the table of all attributes together, exact."""
    return math.prod(domain.sizes.tolist())


def first_list(scenario: Scenario, most: int) -> tuple[tuple[str, ...], ...]:
    """The list to start from: what is asked for so far, or, were that too long, each attribute."""
    if len(scenario.workload) <= most:
        return tuple(scenario.workload.tables)
    return tuple((name,) for name in scenario.domain.names)


def workload_grid(
    plan: Plan, containing: Sequence[str] = (), most: int | None = None
) -> tuple[pd.DataFrame, int]:
    """The first `most` tables that have all of these attributes, and how many there are in all.

    Columns, indexed by the table's place in the workload: table, cells, weight, target,
    standard_error.
    """
    workload = plan.workload
    places = places_containing(workload, containing)
    shown = places[:most]
    frame = pd.DataFrame(
        {
            "table": titles(workload, shown),
            "cells": workload.cells[shown],
            "weight": workload.weights[shown],
            "target": workload.targets[shown],
            "standard_error": plan.standard_errors[shown],
        },
        index=pd.Index(shown, name="place"),
    )
    return frame, len(places)


def settings_from_grid(
    scenario: Scenario, tables: Sequence[Table], changes: Mapping[int, Mapping[str, Any]]
) -> list[TableSetting]:
    """What is asked of the tables whose rows were changed: {row: {column: value}}.

    tables: the table of each row. An emptied weight is 1, an emptied target none.
    """
    present = {setting.attributes: setting for setting in scenario.request.settings}
    settings = []
    for row, change in changes.items():
        setting = present.get(tables[row], TableSetting(tables[row]))
        weight = change.get("weight", setting.weight)
        target = change.get("target", setting.target)
        settings.append(replace(setting, weight=1.0 if weight is None else weight, target=target))
    return settings


def settings_for_many(
    scenario: Scenario, containing: Sequence[str], weight: float | None, target: float | None
) -> list[TableSetting]:
    """One importance, one target, or both for every table that has all of these attributes."""
    given = {"weight": weight, "target": target}
    change = {field: value for field, value in given.items() if value is not None}
    places = places_containing(scenario.workload, containing).tolist()
    tables = [scenario.workload.tables[place] for place in places]
    return settings_from_grid(scenario, tables, dict.fromkeys(range(len(tables)), change))
