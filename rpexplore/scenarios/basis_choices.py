"""Query bases of attributes, in all tables or in some, kept apart from a codebook."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.table_settings import names_of
from rpexplore.workload.bases import Basis, Identity, from_json, to_json
from rpexplore.workload.table_text import Table, title
from rpexplore.workload.workload import Workload


@dataclass(frozen=True)
class BasisChoice:
    """A way in which a curator asks an attribute: cumulatively, in ranges, in groups, …

    tables  those in which it is asked so, on top of how it is asked elsewhere; (): all tables that
            have it

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
    """Raise `WorkloadError` for an attribute that is asked in two ways in the same place."""
    seen: set[tuple[str, Table | None]] = set()
    for basis_choice in basis_choices:
        for table in basis_choice.tables or (None,):
            if (basis_choice.attribute, table) in seen:
                where = "all tables" if table is None else f"the table {title(table)}"
                raise WorkloadError(
                    f"The attribute {basis_choice.attribute!r} has two bases in {where}; keep one."
                )
            seen.add((basis_choice.attribute, table))


def changed_basis_choices(
    basis_choices: Iterable[BasisChoice], attribute: str, basis: Basis, tables: Sequence[Table] = ()
) -> tuple[BasisChoice, ...]:
    """Askings after an attribute was asked in this way, in all tables or in these.

    Ways of single tables stay where all are asked. None is kept that changes nothing.
    """
    kept: list[BasisChoice] = []
    for each in basis_choices:
        if each.attribute != attribute:
            kept.append(each)
        elif tables and each.tables:
            left = tuple(table for table in each.tables if table not in tables)
            if each.basis == basis:
                tables = (*left, *tables)
            elif left:
                kept.append(replace(each, tables=left))
        elif bool(tables) != bool(each.tables):
            kept.append(each)
    return without_needless([*kept, BasisChoice(attribute, basis, tuple(tables))])


def without_needless(basis_choices: Iterable[BasisChoice]) -> tuple[BasisChoice, ...]:
    """Those that change how something is asked: not to single values, or to what all tables do."""
    basis_choices = tuple(basis_choices)
    general = {each.attribute: each.basis for each in basis_choices if not each.tables}
    return tuple(
        each
        for each in basis_choices
        if each.basis != (general.get(each.attribute, Identity()) if each.tables else Identity())
    )


def with_basis_choices(workload: Workload, basis_choices: Sequence[BasisChoice]) -> Workload:
    """These tables, asked in these ways and in no others; tables that are not there count for none.

    Raises `WorkloadError` or `DomainError` for a way in which an attribute cannot be asked.
    """
    if not workload.is_marginals:
        workload = replace(workload, bases=(), basis_index=np.empty((0, 0), dtype=np.int32))
    general = {each.attribute: each.basis for each in basis_choices if not each.tables}
    if general:
        workload = workload.with_bases(general)
    positions = workload.domain.positions
    for each in basis_choices:
        there = [table for table in each.tables if workload.find(positions(table)) is not None]
        if there:
            workload = workload.with_bases({each.attribute: each.basis}, tables=there)
    return workload


def basis_choices_of(workload: Workload) -> tuple[BasisChoice, ...]:
    """The choices with which `with_basis_choices` gives these tables their ways."""
    found: list[BasisChoice] = []
    for place, listed in enumerate(workload.bases):
        if all(basis.is_identity for basis in listed):
            continue
        name, where = workload.domain.names[place], workload.members == place
        counts = np.bincount(workload.basis_index[where], minlength=len(listed))
        general = int(np.argmax(counts))
        found.append(BasisChoice(name, listed[general]))
        for way, basis in enumerate(listed):
            if way != general:
                rows = np.flatnonzero(
                    np.any(where & (workload.basis_index == way), axis=1)
                ).tolist()
                found.append(BasisChoice(name, basis, tuple(workload.tables[row] for row in rows)))
    return without_needless(found)
