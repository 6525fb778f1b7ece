"""Scenario: everything a curator chooses for a plan, as one frozen value. Never holds a record.

The app keeps exactly one of these and replaces it; the plan follows from it. A `Workload` is
derived from a `WorkloadRequest`, which remembers how the tables were asked for ("all up to 3
attributes"), so that the question survives a change of the schema.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rpexplore import codebook
from rpexplore.budget import Budget
from rpexplore.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.losses import Loss, MaxVariance, SumOfVariances
from rpexplore.plan import Plan
from rpexplore.plan_file import loss_from_json, loss_to_json
from rpexplore.planner import plan
from rpexplore.table_lists import table_from_text, text_from_table
from rpexplore.workload import Workload

FORMAT = "rpexplore-scenario"
FORMAT_VERSION = 1

KINDS = {
    "up_to": "all tables of up to so many attributes",
    "of_order": "all tables of exactly so many attributes",
    "at_most_cells": "all tables with at most so many cells",
    "listed": "the tables of a list",
}

Table = tuple[str, ...]


@dataclass(frozen=True)
class TableSetting:
    """What a curator asks of one table beyond having it."""

    attributes: Table
    weight: float = 1.0
    target: float | None = None

    @property
    def is_plain(self) -> bool:
        return self.weight == 1.0 and self.target is None


@dataclass(frozen=True)
class WorkloadRequest:
    """How the tables are asked for. Each kind keeps its own number or list while not in use.

    order     for "up_to" and "of_order"
    cells     for "at_most_cells"
    listed    for "listed": attribute names of each table
    settings  importance and target of single tables; one whose table is not asked for is kept
              aside and has no effect
    """

    kind: str = "up_to"
    order: int = 2
    cells: int = 1000
    listed: tuple[Table, ...] = ()
    settings: tuple[TableSetting, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise WorkloadError(
                f"The tables must be asked for as one of {', '.join(KINDS)}, got {self.kind!r}."
            )

    @classmethod
    def of(cls, workload: Workload) -> "WorkloadRequest":
        """A request for exactly these tables: by their number of attributes if that tells them."""
        settings = tuple(
            TableSetting(table, weight, None if math.isnan(target) else target)
            for table, weight, target in zip(
                workload.tables, workload.weights.tolist(), workload.targets.tolist(), strict=True
            )
            if weight != 1.0 or not math.isnan(target)
        )
        attributes, order = len(workload.domain), int(workload.orders.max())
        counts = [math.comb(attributes, size) for size in range(order + 1)]
        # Tables are never repeated, so that the number of those of each order settles it.
        present = np.bincount(workload.orders, minlength=order + 1).tolist()
        if present == counts:
            return cls("up_to", order=order, settings=settings)
        if present == [0] * order + counts[-1:]:
            return cls("of_order", order=order, settings=settings)
        return cls("listed", listed=tuple(workload.tables), settings=settings)

    def workload(self, domain: Domain) -> Workload:
        """The tables asked for, with their importance and targets.

        Raises `WorkloadError` or `DomainError` where the request does not fit the domain.
        """
        if self.kind == "up_to":
            workload = Workload.all_up_to(domain, self.order)
        elif self.kind == "of_order":
            workload = Workload.all_of_order(domain, self.order)
        elif self.kind == "at_most_cells":
            workload = Workload.all_with_at_most(domain, cells=self.cells)
        else:
            workload = Workload.of(domain, self.listed)
        if not self.settings:
            return workload
        asked_for = set(workload.tables)
        used = [setting for setting in self.settings if setting.attributes in asked_for]
        workload = workload.with_weights({setting.attributes: setting.weight for setting in used})
        return workload.with_targets({setting.attributes: setting.target for setting in used})


@dataclass(frozen=True)
class Scenario:
    """The inputs of a plan. `counted` is what one record stands for, in the plural ("people")."""

    domain: Domain
    request: WorkloadRequest = WorkloadRequest()
    loss: Loss = field(default_factory=SumOfVariances)
    budget: Budget = field(default_factory=lambda: Budget(rho="0.1"))
    counted: str = "records"

    @classmethod
    def of_plan(cls, plan: Plan, counted: str = "records") -> "Scenario":
        """The inputs that a plan was made from."""
        workload = plan.workload
        request = WorkloadRequest.of(workload)
        return cls(workload.domain, request, plan.loss, plan.budget, counted)

    @cached_property
    def workload(self) -> Workload:
        """The tables; raises `WorkloadError` where the request cannot be met."""
        return self.request.workload(self.domain)

    def plan(self) -> Plan:
        """The optimal plan; raises `RpexploreError` where there is none."""
        return plan(self.workload, loss=self.loss, budget=self.budget)

    @property
    def misses_target(self) -> str:
        """The first table without the target that the loss compares it with; "" if none is."""
        if not isinstance(self.loss, MaxVariance) or self.loss.relative_to != "target":
            return ""
        missing = np.flatnonzero(np.isnan(self.workload.targets))
        return title(self.workload.tables[missing[0]]) if len(missing) else ""

    @property
    def settings_aside(self) -> int:
        """How many settings belong to tables that are not asked for now."""
        asked_for = set(self.workload.tables) if self.request.settings else set()
        return sum(setting.attributes not in asked_for for setting in self.request.settings)

    def replaced(self, **changes: Any) -> "Scenario":
        """A copy with other fields."""
        return replace(self, **changes)

    def with_request(self, **changes: Any) -> "Scenario":
        """A copy whose tables are asked for differently; refuses what cannot be met."""
        changed = replace(self, request=replace(self.request, **changes))
        _ = changed.workload
        return changed

    def with_settings(self, changed: Iterable[TableSetting]) -> "Scenario":
        """A copy in which these tables have these settings; refuses weights that are no weights."""
        settings = {setting.attributes: setting for setting in self.request.settings}
        for setting in changed:
            names = _in_order(self.domain, setting.attributes)
            settings[names] = replace(setting, attributes=names)
        kept = tuple(setting for setting in settings.values() if not setting.is_plain)
        return self.with_request(settings=kept)

    def with_domain(
        self,
        domain: Domain,
        *,
        renamed: Mapping[str, str] | None = None,
        from_elsewhere: bool = False,
    ) -> "tuple[Scenario, list[str]]":
        """A copy over another schema, and a sentence for everything that had to be given up.

        renamed: old attribute name -> new one, for attributes that only changed their name
        from_elsewhere: the schema was not edited but loaded, so that an importance or a target is
        kept only where all attributes of its table have the same values as before
        """
        request, notes = self.request, []
        new_name = {name: name for name in domain.names} | dict(renamed or {})

        def moved(table: Table) -> Table | None:
            names = [new_name.get(name) for name in table]
            known = [name for name in names if name in domain.names]
            return _in_order(domain, known) if len(known) == len(names) else None

        listed = tuple(table for old in request.listed if (table := moved(old)) is not None)

        def settled(table: Table) -> Table | None:
            """Where the settings of a table go."""
            same = not from_elsewhere or all(
                name in domain.names and self.domain[name].values == domain[name].values
                for name in table
            )
            return moved(table) if same else None

        settings = tuple(
            replace(setting, attributes=table)
            for setting in request.settings
            if (table := settled(setting.attributes)) is not None
        )
        notes += _given_up(request.listed, [moved(t) for t in request.listed], "listed table")
        with_setting = [setting.attributes for setting in request.settings]
        notes += _given_up(
            with_setting, [settled(t) for t in with_setting], "importance or target of table"
        )
        order = min(request.order, len(domain))
        if order < request.order and request.kind in ("up_to", "of_order"):
            extent = "up to" if request.kind == "up_to" else "exactly"
            notes.append(
                f"The tables had {extent} {request.order} attributes; the schema now has "
                f"{len(domain)}, so they have {extent} {order}."
            )
        kind = request.kind
        if kind == "listed" and not listed:
            kind, order = "up_to", min(2, len(domain))
            notes.append(
                "No listed table fits the schema any more; all tables of up to "
                f"{order} attribute{'s' if order > 1 else ''} are asked for instead."
            )
        request = replace(request, kind=kind, order=order, listed=listed, settings=settings)
        changed = replace(self, domain=domain, request=request)
        try:
            _ = changed.workload
        except WorkloadError as error:  # too many tables for the new schema
            notes.append(f"{error} All tables of one attribute are asked for instead.")
            changed = replace(changed, request=replace(request, kind="up_to", order=1))
        return changed, notes

    # ---- files

    def text(self) -> str:
        """The scenario as JSON text; `parse` undoes it exactly."""
        request = self.request
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "domain": codebook.schema_from_attributes(self.domain.attributes),
            "counted": self.counted,
            "tables": {
                "kind": request.kind,
                "order": request.order,
                "cells": request.cells,
                "listed": request.listed,
                "settings": [
                    {"attributes": each.attributes, "weight": each.weight, "target": each.target}
                    for each in request.settings
                ],
            },
            "loss": loss_to_json(self.loss),
            "budget": self.budget.to_json(),
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def parse(cls, text: str) -> "Scenario":
        """The scenario that a text holds; raises `WorkloadError` if it is not a usable one."""
        try:
            content = json.loads(text)
            if content["format"] != FORMAT or content["format_version"] != FORMAT_VERSION:
                raise ValueError(f'"format" must be {FORMAT!r} in version {FORMAT_VERSION}')
            tables = content["tables"]
            scenario = cls(
                Domain(tuple(codebook.attributes_from_schema(content["domain"]))),
                WorkloadRequest(
                    kind=tables["kind"],
                    order=tables["order"],
                    cells=tables["cells"],
                    listed=tuple(tuple(table) for table in tables["listed"]),
                    settings=tuple(
                        TableSetting(tuple(each["attributes"]), each["weight"], each["target"])
                        for each in tables["settings"]
                    ),
                ),
                loss_from_json(content["loss"]),
                Budget.from_json(content["budget"]),
                str(content["counted"]),
            )
            _ = scenario.workload
        except (KeyError, TypeError, ValueError, AttributeError, RpexploreError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise WorkloadError(f"This is not a usable scenario: {what.rstrip('.')}.") from None
        return scenario


# ---- lists of tables


def tables_from_text(domain: Domain, text: str) -> tuple[Table, ...]:
    """The tables of a list, one a line, each as `table_lists` reads it; empty lines are skipped.

    Raises `WorkloadError` naming the line that cannot be used.
    """
    tables: dict[Table, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            table = table_from_text(domain, line)
        except RpexploreError as error:
            raise WorkloadError(f"Line {number}: {error}") from None
        if table in tables:
            raise WorkloadError(
                f"Line {number}: the table {title(table)} is already in line {tables[table]}; "
                "keep one of them."
            )
        tables[table] = number
    if not tables:
        raise WorkloadError('The list has no tables; write one a line, such as "age, sex".')
    return tuple(tables)


def text_from_tables(tables: Iterable[Table]) -> str:
    """The list as text; `tables_from_text` undoes it."""
    return "\n".join(text_from_table(table) for table in tables)


def title(table: Table) -> str:
    """What to call a table on screen: "age × sex", "(total)"."""
    return " × ".join(table) or "(total)"


def titles_in_words(tables: Sequence[Table], most: int = 5) -> str:
    """The first few tables for a sentence: "age; age × sex; and 3 more"."""
    more = f"; and {len(tables) - most:,} more" if len(tables) > most else ""
    return "; ".join(title(table) for table in tables[:most]) + more


def _in_order(domain: Domain, names: Iterable[str]) -> Table:
    return tuple(domain.names[place] for place in domain.positions(list(names)))


def _given_up(old: Iterable[Table], new: Iterable[Table | None], noun: str) -> list[str]:
    """A sentence that names what has no place in the new schema, if anything."""
    lost = [table for table, kept in zip(old, new, strict=True) if kept is None]
    if not lost:
        return []
    shown = titles_in_words(lost)
    return [
        f"Dropped, because the schema no longer has their attributes as they were: {noun} {shown}."
    ]
