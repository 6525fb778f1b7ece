"""Which tables are asked for ("all up to 3-way"), in a form that outlives a change of the codebook.

A `Workload` is derived from a `WorkloadRequest` and a domain.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys, text_of
from rpexplore.common.numbers import shown, whole_number
from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.bases import (
    BasisChoice,
    basis_choices_of,
    check_basis_choices,
    with_basis_choices,
)
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting, names_of, settings_of
from rpexplore.workload.attribute_sets import stacked
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.table_text import Table
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload
from rpexplore.workload.workload_arrays import setting_arrays

KINDS = ("up_to", "of_order", "at_most_cells", "listed")
_LEFT_OUT_EMPTY = ("smooth_weights", "weighted_by", "unweighted", "more")  # of files
MOST_ORDER, MOST_CELLS = 1_000_000, 2**53 - 1  # to ask for; a browser counts no further


@dataclass(frozen=True)
class TableLine:
    """Some of the tables asked for. Each kind keeps its own number or list while not in use.

    kind        "up_to": all tables up to k-way; "of_order": all k-way tables; "at_most_cells": all
                tables with at most so many cells; "listed": those of a list
    order       for "up_to" and "of_order"; all attributes where there are fewer
    cells       for "at_most_cells"
    listed      for "listed": attribute names of each table

    The other kinds than "listed" may be narrowed to fewer tables:

    only        the attributes that a table may have; (): any
    containing  the attributes that every table must have
    most_cells  cells that a table of "up_to" and "of_order" may have at most; None: any number

    Limits by cells count those of single values, whatever the bases of the attributes.
    """

    kind: str = "up_to"
    order: int = 2
    cells: int = 1000
    listed: tuple[Table, ...] = ()
    only: Table = ()
    containing: Table = ()
    most_cells: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise WorkloadError(
                f"The tables must be asked for as one of {', '.join(KINDS)}, got {self.kind!r}."
            )

    @property
    def is_narrowed(self) -> bool:
        """Whether something narrows the kind that is in use."""
        cells = self.most_cells if self.kind in ("up_to", "of_order") else None
        return self.kind != "listed" and bool(self.only or self.containing or cells is not None)

    @property
    def heading(self) -> str:
        """What is asked for, without what narrows it: "All tables up to 2-way"."""
        return {
            "up_to": f"All tables up to {self.order}-way",
            "of_order": f"All {self.order}-way tables",
            "at_most_cells": f"All tables of at most {plural(self.cells, 'cell')}",
            "listed": plural(len(self.listed), "listed table"),
        }[self.kind]

    def narrowed(self, counting: str = "") -> str:
        """What narrows it, to stand behind the heading: " that have region"; "" if nothing does.

        counting: which cells a limit counts, where that has to be said
        """
        text = counting if self.kind == "at_most_cells" else ""
        if not self.is_narrowed:
            return text
        if self.containing:
            text += f" that have {' and '.join(self.containing)}"
        if self.only:
            text += f", made of {', '.join(self.only)} only"
        if self.most_cells is not None and self.kind in ("up_to", "of_order"):
            text += f", with at most {plural(self.most_cells, 'cell')}{counting}"
        return text

    def tables(self, domain: Domain) -> Workload:
        """These tables, of single values and weight 1.

        Raises `WorkloadError` or `DomainError` where they do not fit the domain.
        """
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
            min(self.order, domain.n_columns),
            only=only,
            containing=self.containing,
            cells=self.most_cells,
        )

    def within(
        self, *, most_cells: int | None = None, most_order: int | None = None
    ) -> "TableLine | None":
        """The same line without the larger tables; None for a list."""
        if self.kind == "listed":
            return None
        if self.kind == "at_most_cells":
            if most_order is not None:
                return replace(self, kind="up_to", order=most_order, most_cells=self.cells)
            return replace(self, cells=min(self.cells, most_cells or self.cells))
        limits = [limit for limit in (most_cells, self.most_cells) if limit is not None]
        order = self.order if most_order is None else min(self.order, most_order)
        return replace(self, order=order, most_cells=min(limits, default=None))

    def to_json(self) -> dict[str, Any]:
        """The line as JSON values; `from_json` undoes it."""
        return {field.name: getattr(self, field.name) for field in fields(TableLine)}

    @classmethod
    def from_json(cls, content: Any) -> "TableLine":
        """The line that JSON values hold.

        Raises KeyError, TypeError, ValueError or `RpexploreError` for anything else.
        """
        check_keys(content, sorted(field.name for field in fields(TableLine)), "tables")
        _check_bounds(content, "order", 0, MOST_ORDER)
        _check_bounds(content, "cells", 1, MOST_CELLS)
        if content["most_cells"] is not None:
            _check_bounds(content, "most_cells", 1, MOST_CELLS)
        names = {
            "listed": tuple(map(names_of, content["listed"])),
            "only": names_of(content["only"]),
            "containing": names_of(content["containing"]),
        }
        return TableLine(**(content | names))


@dataclass(frozen=True)
class WorkloadRequest(TableLine):
    """The tables asked for: those of one line, which it is itself, and of further ones.

    groups      weights and targets of all tables with certain attributes, the later ones on top
    settings    those of single tables, on top of the groups; one whose table is not asked for is
                kept aside and has no effect
    basis_choices  bases of attributes other than their single values, in all tables or, on top of
                that, in some; tables that are not asked for are kept aside here, too
    smooth_weights  weights that make smooth tables accurate, in place of 1; None: 1
    weighted_by  the attribute of survey weights that makes all tables weighted counts; "": none
    unweighted  tables that it leaves as they are, also where they are not asked for
    more        the further lines; a table of several lines is one table
    """

    groups: tuple[GroupSetting, ...] = ()
    settings: tuple[TableSetting, ...] = ()
    basis_choices: tuple[BasisChoice, ...] = ()
    smooth_weights: SmoothWeights | None = None
    weighted_by: str = ""
    unweighted: tuple[Table, ...] = ()
    more: tuple[TableLine, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_basis_choices(self.basis_choices)

    @classmethod
    def of(cls, workload: Workload) -> "WorkloadRequest":
        """A request for exactly these tables: by their number of attributes if that tells them."""
        attributes, order = workload.domain.n_columns, int(workload.orders.max())
        counts = [math.comb(attributes, size) for size in range(order + 1)]
        # Tables are never repeated, so that the number of those of each order settles it.
        present = np.bincount(workload.orders, minlength=order + 1).tolist()
        if max(workload.used, default=0) >= attributes or workload.amounts:  # some at a level
            request = cls("listed", listed=tuple(workload.tables))
        elif present == counts:
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
    def default_weight(self) -> float:
        """The weight of tables that nothing else gives one; NaN: another one for each table."""
        return 1.0 if self.smooth_weights is None else math.nan

    @property
    def lines(self) -> tuple[TableLine, ...]:
        """The lines, of which it is the first."""
        return TableLine(**TableLine.to_json(self)), *self.more

    def with_lines(self, lines: Sequence[TableLine]) -> "WorkloadRequest":
        """The same request for the tables of these lines, one at least."""
        return replace(self, **lines[0].to_json(), more=tuple(lines[1:]))

    def within(
        self, *, most_cells: int | None = None, most_order: int | None = None
    ) -> "WorkloadRequest | None":
        """The same request without the larger tables; None if some are listed."""
        lines = [line.within(most_cells=most_cells, most_order=most_order) for line in self.lines]
        left = [line for line in lines if line is not None]
        return self.with_lines(left) if len(left) == len(lines) else None

    @property
    def text(self) -> str:
        """What is asked for: "All tables up to 2-way that have region"."""
        # The bases of attributes change the cells of a table, not what a limit counts.
        counting = " of single values" if self.basis_choices else ""
        texts = [line.heading + line.narrowed(counting) for line in self.lines]
        weighting = f", weighted by {self.weighted_by}" if self.weighted_by else ""
        return "; ".join(texts) + weighting

    def workload(self, domain: Domain) -> Workload:
        """The tables asked for, with their bases, weights and targets.

        Raises `WorkloadError` or `DomainError` where the request does not fit the domain.
        """
        workload = self.weighted(self._tables(domain))
        if any(name not in workload.domain for table in self.named for name in table):
            workload = workload.with_levels()  # for settings of tables that are kept aside
        workload = self.with_bases(workload)
        is_settled = not (self.groups or self.settings or self.smooth_weights)
        return workload if is_settled else self.settled(workload)

    def weighted(self, workload: Workload) -> Workload:
        """These tables, weighted as in this request."""
        if not self.weighted_by:
            return workload
        positions = workload.domain.positions
        there = [one for one in self.unweighted if workload.find(positions(one)) is not None]
        return workload.weighted_by(self.weighted_by, unweighted=there)

    def with_bases(self, workload: Workload) -> Workload:
        """These tables, with the bases of this request and no others."""
        if not self.basis_choices and workload.is_marginals:
            return workload
        return with_basis_choices(workload, self.basis_choices)

    def settled(self, workload: Workload) -> Workload:
        """These tables with the weights and the targets of this request and no others."""
        weights = np.ones(len(workload))
        if self.smooth_weights is not None:
            weights = self.smooth_weights.weights(workload)
        for rows, setting in self._rows_of_settings(workload):
            if setting.weight is not None:
                weights[rows] = setting.weight
            if isinstance(setting, GroupSetting) and setting.factor is not None:
                weights[rows] *= setting.factor
        targets, which = self.targets(workload)
        return replace(
            workload,
            weights=weights,
            targets=np.array([*(target.standard_error for target in targets), np.nan])[which],
            required=np.array([*(target.required for target in targets), False])[which],
        )

    def targets(self, workload: Workload) -> tuple[list[Target], np.ndarray]:
        """The targets as they were typed, and the index of that of each table.

        int64[n_tables], −1 where a table has none.
        """
        targets: list[Target] = []
        which = np.full(len(workload), -1)
        for rows, setting in self._rows_of_settings(workload):
            if setting.target is not None:
                which[rows] = len(targets)
                targets.append(setting.target)
        return targets, which

    def _rows_of_settings(
        self, workload: Workload
    ) -> Iterator[tuple[np.ndarray | int, GroupSetting | TableSetting]]:
        """Groups and then settings with their tables; without those kept aside."""
        for group in self.groups:
            yield workload.containing(group.containing), group
        for setting in self.settings:
            row = workload.find(workload.domain.positions(setting.attributes))
            if row is not None:
                yield row, setting

    def _tables(self, domain: Domain) -> Workload:
        lines = [line.tables(domain) for line in self.lines]
        if len(lines) == 1:
            return lines[0]
        widest = max((one.domain for one in lines), key=len)
        lines = [one if len(one.domain) == len(widest) else one.with_levels() for one in lines]
        members = np.unique(stacked([one.members for one in lines]), axis=0)
        return Workload(widest, members, **setting_arrays(len(members)))

    @property
    def named(self) -> Iterator[Table]:
        """All tables and groups that it names, in use or not."""
        for line in self.lines:
            yield from (*line.listed, line.only, line.containing)
        yield from self.unweighted
        if self.weighted_by:
            yield (self.weighted_by,)
        yield from (group.containing for group in self.groups)
        yield from (setting.attributes for setting in self.settings)
        for choice in self.basis_choices:
            yield from ((choice.attribute,), *choice.tables)
        if self.smooth_weights is not None and self.smooth_weights.pairs is not None:
            yield from ((name,) for name in self.smooth_weights.pairs.attributes)

    # ---- files

    def to_json(self) -> dict[str, Any]:
        """The request as JSON values; `from_json` undoes it."""
        content: dict[str, Any] = vars(self) | {
            "groups": [group.to_json() for group in self.groups],
            "settings": [setting.to_json() for setting in self.settings],
            "basis_choices": [choice.to_json() for choice in self.basis_choices],
            "more": [line.to_json() for line in self.more],
        }
        if self.smooth_weights is not None:
            content["smooth_weights"] = self.smooth_weights.to_json()
        for name in _LEFT_OUT_EMPTY:
            if not content[name]:
                del content[name]
        return content

    @classmethod
    def from_json(cls, content: Any) -> "WorkloadRequest":
        """The request that JSON values hold.

        Raises KeyError, TypeError, ValueError or `RpexploreError` for anything else.
        """
        names = {field.name for field in fields(cls)}
        names -= {name for name in _LEFT_OUT_EMPTY if name not in content}
        check_keys(content, sorted(names), "the tables")
        own = {field.name: content[field.name] for field in fields(TableLine)}
        parts = TableLine.from_json(own).to_json() | {
            "settings": tuple(map(TableSetting.from_json, content["settings"])),
            "groups": tuple(map(GroupSetting.from_json, content["groups"])),
            "basis_choices": tuple(map(BasisChoice.from_json, content["basis_choices"])),
        }
        if "smooth_weights" in content:
            parts["smooth_weights"] = SmoothWeights.from_json(content["smooth_weights"])
        if "weighted_by" in content:
            parts["weighted_by"] = text_of(content, "weighted_by")
        if "unweighted" in content:
            parts["unweighted"] = tuple(map(names_of, content["unweighted"]))
        if "more" in content:
            parts["more"] = tuple(map(TableLine.from_json, content["more"]))
        return cls(**parts)


def _check_bounds(content: dict[str, Any], name: str, least: int, most: int) -> None:
    number = whole_number(content[name])
    if number is None or not least <= number <= most:
        raise WorkloadError(
            f'"{name}" must be a whole number from {least} to {most:,}, got {shown(content[name])}.'
        )
