"""The bases that an attribute can have, with examples of queries, and what tables then count."""

import string

import numpy as np

from rpexplore.common.csv_text import csv_text
from rpexplore.common.formatting import joined, plural
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.workload.bases import BASES, Basis
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload


def available_kinds(attribute: Attribute) -> list[str]:
    """The kinds of bases that the attribute can have, in the order in which they are offered."""
    return [kind for kind, basis in BASES.items() if not basis.unavailable_reason(attribute)]


def unavailable_bases(attribute: Attribute) -> str:
    """Which bases cannot be chosen, and why: one sentence, "" if all can."""
    titles: dict[str, list[str]] = {}
    for basis in BASES.values():
        if reason := basis.unavailable_reason(attribute):
            titles.setdefault(reason, []).append(basis.title)
    text = "; ".join(f"{', '.join(listed)} ({reason})" for reason, listed in titles.items())
    return f"Not for these values: {text}." if text else ""


def template_csv(attribute: Attribute) -> str:
    """A custom basis to start from as CSV: the total, and each value; usable as it is."""
    names = attribute.stored_values()
    total = "all"
    while total in names:
        total += " together"
    rows: list[list[str | int]] = [["query", *names]]
    if len(names) > 1:
        rows.append([total, *[1] * len(names)])
    units = np.eye(len(names), dtype=int).tolist()
    return csv_text([*rows, *([name, *unit] for name, unit in zip(names, units, strict=True))])


def describe_queries(basis: Basis, attribute: Attribute) -> str:
    """ "100 queries, such as “≤ 25”, “≤ 50” and “≤ 75”."."""
    queries = query_matrix(basis, attribute)
    count = queries.n_rows
    rows = [row for row in dict.fromkeys(basis.example_rows(attribute)) if row < count]
    quoted = [f"“{queries.label(row)}”" for row in rows[:3]]
    separator = ", such as " if count > len(quoted) else ": "
    return f"{plural(count, 'query')}{separator}{joined(quoted)}."


def describe_order(basis: Basis, attribute: Attribute) -> str:
    """For categories, which have no order by themselves, the one that counts here; else ""."""
    if not isinstance(attribute.values, Categories) or not basis.depends_on_order:
        return ""
    labels = attribute.labels()
    listed = ", ".join(labels if len(labels) <= 4 else [*labels[:3], "…", labels[-1]])
    return f"Values count in the order of the codebook: {listed}."


def describe_table(workload: Workload, table: int, record_noun: str) -> str:
    """What a table counts: "people with age ≤ a, by region (with its groups)"."""
    limits, by = [], []
    letters = iter(string.ascii_lowercase * 3)
    for index in workload.attribute_indices(table):
        attribute = workload.domain.attributes[index]
        basis = workload.basis_of(table, index)
        up_to = " up to " if isinstance(attribute.values, Categories) else " ≤ "
        limit = basis.limit(attribute.name, up_to, letters)
        if limit:
            limits.append(limit)
        else:
            by.append(basis.by(attribute.name))
    parts = [f" with {joined(limits)}"] if limits else []
    parts += [f" by {joined(by)}"] if by else []
    return record_noun + (",".join(parts) or " in all")


def example_table(workload: Workload, name: str, basis: Basis) -> int | None:
    """A small table of several attributes in which one uses this basis; None if no table does."""
    pair = workload.domain.position(name), basis
    if pair not in workload.attribute_bases:
        return None
    index = workload.attribute_bases.index(pair)
    tables = np.flatnonzero(np.any(workload.attribute_basis_index == index, axis=1))
    distances = np.minimum(np.abs(workload.orders[tables] - 2), 3)
    return int(tables[np.argmin(distances)])
