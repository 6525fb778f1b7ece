"""How a curator asks for tables ("all up to 3 attributes"), so that the question outlives a schema.

A `Workload` is derived from a `WorkloadRequest` and a domain.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import shown, whole_number
from rpexplore.common.formatting import plural
from rpexplore.common.json_fields import check_keys
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.basis_choices import (
    BasisChoice,
    basis_choices_of,
    changed_basis_choices,
    check_basis_choices,
    with_basis_choices,
)
from rpexplore.scenarios.table_settings import (
    GroupSetting,
    TableSetting,
    names_of,
    settings_of,
    with_group,
    with_single,
)
from rpexplore.workload.bases import Basis
from rpexplore.workload.table_text import Table
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

KINDS = {
    "up_to": "all tables of up to so many attributes",
    "of_order": "all tables of exactly so many attributes",
    "at_most_cells": "all tables with at most so many cells",
    "listed": "the tables of a list",
}
MOST_ORDER, MOST_CELLS = 1_000_000, 2**53 - 1  # to ask for; a browser counts no further


@dataclass(frozen=True)
class WorkloadRequest:
    """How the tables are asked for. Each kind keeps its own number or list while not in use.

    order       for "up_to" and "of_order"; all attributes where there are fewer
    cells       for "at_most_cells"
    listed      for "listed": attribute names of each table

    The other kinds than "listed" may be narrowed to fewer tables:

    only        the attributes that a table may have; (): any
    containing  the attributes that every table must have
    most_cells  cells that a table of "up_to" and "of_order" may have at most; None: any number

    Limits by cells count those of single values, however attributes are asked.

    What is asked of the tables beyond having them:

    groups      weights and targets of all tables with certain attributes, the later ones on top
    settings    those of single tables, on top of the groups; one whose table is not asked for is
                kept aside and has no effect
    basis_choices  attributes that are asked other than by their single values, in all tables or, on
                top of that, in some; tables that are not asked for are kept aside here, too
    """

    kind: str = "up_to"
    order: int = 2
    cells: int = 1000
    listed: tuple[Table, ...] = ()
    settings: tuple[TableSetting, ...] = ()
    only: Table = ()
    containing: Table = ()
    most_cells: int | None = None
    groups: tuple[GroupSetting, ...] = ()
    basis_choices: tuple[BasisChoice, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise WorkloadError(
                f"The tables must be asked for as one of {', '.join(KINDS)}, got {self.kind!r}."
            )
        # Also of tables that are not asked for now: they may be later.
        for setting in self.settings:
            _check_positive("weight", setting.weight, setting.attributes)
        for group in self.groups:
            _check_positive("weight", group.weight, group.containing)
            _check_positive("factor", group.factor, group.containing)
        check_basis_choices(self.basis_choices)

    @classmethod
    def of(cls, workload: Workload) -> "WorkloadRequest":
        """A request for exactly these tables: by their number of attributes if that tells them."""
        attributes, order = len(workload.domain), int(workload.orders.max())
        counts = [math.comb(attributes, size) for size in range(order + 1)]
        # Tables are never repeated, so that the number of those of each order settles it.
        present = np.bincount(workload.orders, minlength=order + 1).tolist()
        if present == counts:
            request = cls("up_to", order=order)
        elif present == [0] * order + counts[-1:]:
            request = cls("of_order", order=order)
        else:
            request = cls("listed", listed=tuple(workload.tables))
        groups, settings = settings_of(workload)
        return replace(
            request, groups=groups, settings=settings, basis_choices=basis_choices_of(workload)
        )

    @property
    def is_narrowed(self) -> bool:
        """Whether something narrows the kind that is in use."""
        cells = self.most_cells if self.kind in ("up_to", "of_order") else None
        return self.kind != "listed" and bool(self.only or self.containing or cells is not None)

    @property
    def text(self) -> str:
        """What is asked for: "All tables of up to 2 attributes that have region"."""
        # How attributes are asked changes the cells of a table, not what a limit counts.
        counting = " of single values" if self.basis_choices else ""
        attributes, cells = plural(self.order, "attribute"), plural(self.cells, "cell") + counting
        words = {
            "up_to": f"All tables of up to {attributes}",
            "of_order": f"All tables of exactly {attributes}",
            "at_most_cells": f"All tables of at most {cells}",
            "listed": f"{plural(len(self.listed), 'listed table')}",
        }[self.kind]
        if not self.is_narrowed:
            return words
        needed, allowed = " and ".join(self.containing), ", ".join(self.only)
        if needed:
            words += f" that have {needed}"
        if allowed:
            words += f", made of {allowed} only"
        if self.most_cells is not None and self.kind in ("up_to", "of_order"):
            words += f", with at most {plural(self.most_cells, 'cell')}{counting}"
        return words

    def workload(self, domain: Domain) -> Workload:
        """The tables asked for, with the ways they are asked in, their weights and targets.

        Raises `WorkloadError` or `DomainError` where the request does not fit the domain.
        """
        workload = self.with_bases(self._tables(domain))
        return self.settled(workload) if self.groups or self.settings else workload

    def with_bases(self, workload: Workload) -> Workload:
        """These tables, with their attributes asked as they are here, in no other ways."""
        if not self.basis_choices and workload.is_marginals:
            return workload
        return with_basis_choices(workload, self.basis_choices)

    def settled(self, workload: Workload) -> Workload:
        """These tables with the weights and the targets that are asked for here, no others.

        How their attributes are asked stays as it is.
        """
        weights = np.ones(len(workload))
        for group in self.groups:
            rows = workload.containing(group.containing)
            if group.weight is not None:
                weights[rows] = group.weight
            if group.factor is not None:
                weights[rows] *= group.factor
        for setting in self.settings:
            row = workload.find(workload.domain.positions(setting.attributes))
            if row is not None and setting.weight is not None:
                weights[row] = setting.weight
        wanted, which = self.targets(workload)
        return replace(
            workload,
            weights=weights,
            targets=np.array([*(each.standard_error for each in wanted), np.nan])[which],
            required=np.array([*(each.required for each in wanted), False])[which],
        )

    def targets(self, workload: Workload) -> tuple[list[Target], np.ndarray]:
        """The targets asked for as they were typed, and which of them each table has.

        The latter as places in the list, int64[n_tables], −1 where a table has none.
        """
        wanted: list[Target] = []
        which = np.full(len(workload), -1)
        for group in self.groups:
            if group.target is not None:
                which[workload.containing(group.containing)] = len(wanted)
                wanted.append(group.target)
        for setting in self.settings:
            row = workload.find(workload.domain.positions(setting.attributes))
            if row is not None and setting.target is not None:
                which[row] = len(wanted)
                wanted.append(setting.target)
        return wanted, which

    def _tables(self, domain: Domain) -> Workload:
        if self.kind == "listed":
            return Workload.of(domain, self.listed)
        only = self.only or None
        if self.kind == "at_most_cells":
            return Workload.all_with_at_most(
                domain, cells=self.cells, only=only, containing=self.containing
            )
        make = Workload.all_up_to if self.kind == "up_to" else Workload.all_of_order
        return make(
            domain,
            min(self.order, len(domain)),
            only=only,
            containing=self.containing,
            cells=self.most_cells,
        )

    @property
    def named(self) -> Iterable[Table]:
        """All tables and groups that it names, in use or not."""
        groups = (group.containing for group in self.groups)
        settings = (setting.attributes for setting in self.settings)
        of_bases = (
            names
            for choice in self.basis_choices
            for names in ((choice.attribute,), *choice.tables)
        )
        return (*self.listed, self.only, self.containing, *groups, *settings, *of_bases)

    def aside(self, workload: Workload) -> int:
        """How many settings of single tables belong to tables that the workload does not hold."""
        positions = workload.domain.positions
        return sum(workload.find(positions(each.attributes)) is None for each in self.settings)

    def with_settings(self, changed: Iterable[TableSetting]) -> "WorkloadRequest":
        """A copy in which these tables (names in domain order) have these settings."""
        return replace(self, settings=with_single(self.groups, self.settings, changed))

    def with_group(self, group: GroupSetting) -> "WorkloadRequest":
        """A copy in which all tables of a group have this setting, whatever theirs was before."""
        groups, settings = with_group(self.groups, self.settings, group)
        return replace(self, groups=groups, settings=settings)

    def with_basis(
        self, attribute: str, basis: Basis, tables: Iterable[Table] = ()
    ) -> "WorkloadRequest":
        """A copy that asks an attribute so in all tables, or in these (names in domain order).

        What is asked in single tables stays where all are asked.
        """
        choices = changed_basis_choices(self.basis_choices, attribute, basis, tuple(tables))
        return replace(self, basis_choices=choices)

    def within(
        self, *, most_cells: int | None = None, most_order: int | None = None
    ) -> "WorkloadRequest | None":
        """The same question without the larger tables; None where a list answers it."""
        if self.kind == "listed":
            return None
        if self.kind == "at_most_cells":
            if most_order is not None:
                return replace(self, kind="up_to", order=most_order, most_cells=self.cells)
            return replace(self, cells=min(self.cells, most_cells or self.cells))
        limits = [limit for limit in (most_cells, self.most_cells) if limit is not None]
        order = self.order if most_order is None else min(self.order, most_order)
        return replace(self, order=order, most_cells=min(limits, default=None))

    # ---- files

    def to_json(self) -> dict[str, Any]:
        """The request as JSON values; `from_json` undoes it."""
        return {
            "kind": self.kind,
            "order": self.order,
            "cells": self.cells,
            "listed": self.listed,
            "only": self.only,
            "containing": self.containing,
            "most_cells": self.most_cells,
            "groups": [group.to_json() for group in self.groups],
            "settings": [setting.to_json() for setting in self.settings],
            "basis_choices": [choice.to_json() for choice in self.basis_choices],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "WorkloadRequest":
        """The request that JSON values hold.

        Raises KeyError, TypeError, ValueError or `RpexploreError` for anything else.
        """
        check_keys(content, [field.name for field in fields(cls)], "the tables")
        return cls(
            kind=content["kind"],
            order=_bounded(content["order"], "order", 0, MOST_ORDER),
            cells=_bounded(content["cells"], "cells", 1, MOST_CELLS),
            listed=tuple(names_of(names) for names in content["listed"]),
            settings=tuple(map(TableSetting.from_json, content["settings"])),
            only=names_of(content["only"]),
            containing=names_of(content["containing"]),
            most_cells=None
            if content["most_cells"] is None
            else _bounded(content["most_cells"], "most_cells", 1, MOST_CELLS),
            groups=tuple(map(GroupSetting.from_json, content["groups"])),
            basis_choices=tuple(map(BasisChoice.from_json, content["basis_choices"])),
        )


def _bounded(value: Any, name: str, least: int, most: int) -> int:
    number = whole_number(value)
    if number is None or not least <= number <= most:
        raise WorkloadError(
            f'"{name}" must be a whole number from {least} to {most:,}, got {shown(value)}.'
        )
    return number


def _check_positive(noun: str, value: Any, whose: Table) -> None:
    right = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (right and 0 < value <= sys.float_info.max):
        names = f"({', '.join(whose) or 'total'})"
        raise WorkloadError(f"The {noun} of {names} must be a positive number, got {shown(value)}.")
