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
        if all(basis.is_identity for basis in bases):
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
