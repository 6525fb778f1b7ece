"""Query bases of attributes, in all tables or in some: kept, offered, as lines of text."""

import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys
from rpexplore.common.text import csv_text, joined, plural
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.table_settings import names_of
from rpexplore.workload.bases import BASES, Basis, CustomBasis, Identity, from_json, to_json
from rpexplore.workload.table_text import Table, query_matrix, table_from_text, title
from rpexplore.workload.workload import Workload


@dataclass(frozen=True)
class BasisChoice:
    """The basis that a curator chooses for an attribute.

    tables  those in which the attribute has this basis, whatever its basis elsewhere; (): all
            tables that have the attribute

    Raises `WorkloadError` for a basis that is none, and a table without the attribute.
    """

    attribute: str
    basis: Basis
    tables: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.basis, Basis):
            raise WorkloadError(
                f"The basis of {self.attribute!r} must be one of the library's, such as Prefix(), "
                f"got {type(self.basis).__name__}."
            )
        for table in self.tables:
            if self.attribute not in table:
                raise WorkloadError(
                    f"The table {title(table)} does not have the attribute {self.attribute!r}; "
                    "name it for tables that do."
                )

    def to_json(self) -> dict[str, Any]:
        """The choice as JSON values; without tables it holds for all. `from_json` undoes it."""
        return {"attribute": self.attribute, "basis": to_json(self.basis), "tables": self.tables}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "BasisChoice":
        """Raises KeyError, TypeError or `RpexploreError` for what it cannot be."""
        check_keys(content, ("attribute", "basis", "tables"), "each of the basis_choices")
        (name,) = names_of([content["attribute"]])
        tables = tuple(names_of(names) for names in content["tables"])
        return cls(name, from_json(content["basis"]), tables)


def check_basis_choices(basis_choices: Iterable[BasisChoice]) -> None:
    """Raise `WorkloadError` for an attribute with two bases in all tables, or in the same one."""
    seen: set[tuple[str, Table | None]] = set()
    for choice in basis_choices:
        for table in choice.tables or (None,):
            if (choice.attribute, table) in seen:
                where = "all tables" if table is None else f"the table {title(table)}"
                raise WorkloadError(
                    f"The attribute {choice.attribute!r} has two bases in {where}; keep one."
                )
            seen.add((choice.attribute, table))


def changed_basis_choices(
    basis_choices: Iterable[BasisChoice], attribute: str, basis: Basis, tables: Sequence[Table] = ()
) -> tuple[BasisChoice, ...]:
    """The choices after an attribute got this basis, in all tables or in these.

    Bases of single tables stay where all tables change. None is kept that changes nothing.
    """
    kept: list[BasisChoice] = []
    for choice in basis_choices:
        if choice.attribute != attribute or bool(tables) != bool(choice.tables):
            kept.append(choice)
        elif tables:
            left = tuple(table for table in choice.tables if table not in tables)
            if choice.basis == basis:
                tables = (*left, *tables)
            elif left:
                kept.append(replace(choice, tables=left))
    return without_needless([*kept, BasisChoice(attribute, basis, tuple(tables))])


def without_needless(basis_choices: Iterable[BasisChoice]) -> tuple[BasisChoice, ...]:
    """Those that change something: not to single values, or in a table to the basis of all."""
    basis_choices = tuple(basis_choices)
    general = _general_bases(basis_choices)
    needed = []
    for choice in basis_choices:
        otherwise = general.get(choice.attribute, Identity()) if choice.tables else Identity()
        if choice.basis != otherwise:
            needed.append(choice)
    return tuple(needed)


def _general_bases(basis_choices: Iterable[BasisChoice]) -> dict[str, Basis]:
    """The bases that attributes have in all tables."""
    return {choice.attribute: choice.basis for choice in basis_choices if not choice.tables}


def with_basis_choices(workload: Workload, basis_choices: Sequence[BasisChoice]) -> Workload:
    """The workload with these bases and no others; those of tables it does not have do not count.

    Raises `WorkloadError` or `DomainError` for a basis that does not fit its attribute.
    """
    if not workload.is_marginals:
        workload = replace(workload, bases=(), basis_index=np.empty((0, 0), dtype=np.int32))
    general = _general_bases(basis_choices)
    if general:
        workload = workload.with_bases(general)
    positions = workload.domain.positions
    for choice in basis_choices:
        tables = [table for table in choice.tables if workload.find(positions(table)) is not None]
        if tables:
            workload = workload.with_bases({choice.attribute: choice.basis}, tables=tables)
    return workload


def basis_choices_of(workload: Workload) -> tuple[BasisChoice, ...]:
    """The choices with which `with_basis_choices` gives these tables their bases."""
    choices: list[BasisChoice] = []
    for attribute_index, bases in enumerate(workload.bases):
        if all(basis.is_identity or basis.of_amounts for basis in bases):
            continue
        name, where = workload.domain.names[attribute_index], workload.members == attribute_index
        counts = np.bincount(workload.basis_index[where], minlength=len(bases))
        general = int(np.argmax(counts))
        choices.append(BasisChoice(name, bases[general]))
        for index, basis in enumerate(bases):
            if index != general:
                has_basis = np.any(where & (workload.basis_index == index), axis=1)
                tables = [workload.tables[row] for row in np.flatnonzero(has_basis).tolist()]
                choices.append(BasisChoice(name, basis, tuple(tables)))
    return without_needless(choices)


# ---- Basis choices as lines of text: "age=prefix", "age=windows:5",
# "age=custom:mine.csv@age,sex".


ReadCustom = Callable[[Path, Attribute], CustomBasis]


def text_forms() -> str:
    """The texts that stand for a basis, for a sentence."""
    return joined([form for basis in BASES.values() for form in basis.text_forms], " or ")


def basis_choice_from_text(domain: Domain, text: str, read_custom: ReadCustom) -> BasisChoice:
    """The choice of a line: an attribute, =, its basis, and maybe @ and a table.

    read_custom: reads a file with a custom basis of an attribute

    Raises `RpexploreError` for anything else, or a basis that the attribute cannot have.
    """
    signs = [index for index, character in enumerate(text) if character == "="]
    for sign in reversed(signs):  # names of attributes may hold one, too
        if text[:sign] in domain:
            return _choice(domain, domain[text[:sign]], text[sign + 1 :], text, read_custom)
    name = text.partition("=")[0]
    if len(signs) == 1 and name.strip():
        domain.position(name)  # names what it has, or what may be meant
    raise WorkloadError(
        f"{text!r} must be an attribute, =, and its basis ({text_forms()}), such as age=prefix."
    )


def text_of_basis_choice(
    basis_choice: BasisChoice, tables: Sequence[str], file: str = ""
) -> list[str]:
    """The choice as lines, one for each table; `basis_choice_from_text` undoes it.

    tables: the text of each of its tables. file: the name of the file with its custom basis.
    """
    basis = basis_choice.basis
    parameter = file if basis.parameter == "file" else basis.parameter_text()
    line = f"{basis_choice.attribute}={basis.kind}"
    if parameter:
        line += f":{parameter}"
    return [f"{line}@{table}" for table in tables] or [line]


def with_listed_basis_choices(workload: Workload, basis_choices: Sequence[BasisChoice]) -> Workload:
    """The workload with these bases; a later choice takes the place of an earlier one.

    Raises `WorkloadError` for one that has nothing to change, since no table is there for it.
    """
    merged: tuple[BasisChoice, ...] = ()
    for choice in basis_choices:
        index = workload.domain.position(choice.attribute)
        if not choice.tables and index not in workload.used:
            raise WorkloadError(
                f"No table has the attribute {choice.attribute!r}; leave out its basis, or add a "
                "table with it."
            )
        for table in choice.tables:
            workload.position(table)
        merged = changed_basis_choices(merged, choice.attribute, choice.basis, choice.tables)
    return with_basis_choices(workload, merged)


def _choice(
    domain: Domain, attribute: Attribute, basis_text: str, text: str, read_custom: ReadCustom
) -> BasisChoice:
    for candidate, table_text in _splits_at_table(basis_text):
        basis = _basis(candidate, attribute, read_custom, is_last=table_text is None)
        if basis is None:
            continue
        basis.check(attribute)
        tables = () if table_text is None else (table_from_text(domain, table_text),)
        return BasisChoice(attribute.name, basis, tables)
    raise WorkloadError(f"{text!r} must give the basis of {attribute.name!r}: {text_forms()}.")


def _splits_at_table(text: str) -> Iterator[tuple[str, str | None]]:
    """Where a basis may end and a table begin; names of files and attributes may hold an @."""
    for index, character in enumerate(text):
        if character == "@":
            yield text[:index].strip(), text[index + 1 :]
    yield text.strip(), None


def _basis(
    text: str, attribute: Attribute, read_custom: ReadCustom, *, is_last: bool
) -> Basis | None:
    """The basis of a text; None where it is none, or names a file that is not there."""
    kind, _, parameter = text.partition(":")
    if kind not in BASES:
        return None
    if BASES[kind].parameter != "file":
        return BASES[kind].from_parameter(parameter)
    if not parameter or not (is_last or Path(parameter).is_file()):
        return None
    return read_custom(Path(parameter), attribute)


# ---- The bases that an attribute can have, with examples of queries, and what tables then count.


def available_kinds(attribute: Attribute) -> list[str]:
    """The kinds of bases that the attribute can have, in the order in which they are offered."""
    return [kind for kind, basis in BASES.items() if not basis.unavailable_reason(attribute)]


def unavailable_bases(attribute: Attribute) -> str:
    """Which bases cannot be chosen, and why: one sentence, "" if all can."""
    titles: dict[str, list[str]] = {}
    for basis in BASES.values():
        if basis.of_amounts:
            continue  # nobody would look for it here
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
