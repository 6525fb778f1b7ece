"""Coarser tables: the levels that the attributes of a table could have in place of those they have.

Beside the levels of the codebook there are bands of numbers and dates, and the most common values
with all others together (`scenarios.table_changes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import Level
from rpexplore.domain.public_tables import PublicTables, cells_of
from rpexplore.scenarios.table_changes import SEVERAL, TableChange, coarser_levels
from rpexplore.workload.table_text import Table

NewLevels: TypeAlias = tuple[tuple[str, Level], ...]
"""(attribute, level) of those that the codebook has not got yet."""


@dataclass(frozen=True)
class Rung:
    """A level of an attribute, in the name that tables have.

    kind   as of `TableChange`; "" for what the table has now
    size   number of cells
    title  of the attribute, as people read it
    words  its level in quotes, or "single values"
    new    (attribute, level) if the codebook has not got it yet
    """

    kind: str
    name: str
    size: int
    title: str
    words: str
    new: NewLevels = ()


def rungs_of(domain: Domain, index: int, public: PublicTables) -> list[Rung]:
    """An attribute of tables, and then its coarser levels, those with most groups first.

    public: which values are rare, as far as it says
    """
    attribute, column = domain.attributes[index], int(domain.columns[index])
    of_records = domain.attributes[column]
    current = np.array(attribute.index_of_values or range(attribute.size))
    known = {level.name for level in of_records.all_levels}
    title, level_now = of_records.title, attribute.name.removeprefix(f"{of_records.name}@")
    words = "single values" if attribute.name == of_records.name else f"“{level_now}”"
    rungs = [Rung("", attribute.name, attribute.size, title, words)]
    for kind, level in coarser_levels(of_records, current, _public_shares(public, of_records.name)):
        new = () if level.name in known else ((of_records.name, level),)
        name = of_records.at_level(level).name
        rungs.append(Rung(kind, name, len(level.labels), title, f"“{level.name}”", new))
    return rungs


def _public_shares(public: PublicTables, name: str) -> np.ndarray | None:
    """The share of each value of an attribute of the records, if a public table says it."""
    known = public.domain.with_levels
    column = known.position(name)
    for of in public.connected:
        if column in of.columns:
            cells = cells_of(known, (column,), of.columns, of.sizes)
            return of.holds((int(known.sizes[column]),), cells)
    return None


def new_levels(rungs: Sequence[Rung]) -> NewLevels:
    """The levels of these that the codebook has not got yet."""
    return tuple(level for rung in rungs for level in rung.new)


def change_to(
    table: Table, now: Sequence[Rung], rungs: Sequence[Rung], known: Domain
) -> TableChange:
    """The change of a table to these levels from those of now; known: the domain that has them."""
    replacement = known.in_order([rung.name for rung in rungs])
    changed = [pair for pair in zip(rungs, now, strict=True) if pair[0] is not pair[1]]
    text = ", ".join(
        f"{rung.title} in {rung.words} instead of {before.words}" for rung, before in changed
    )
    action = changed[0][0].kind if len(changed) == 1 else SEVERAL
    return TableChange(action, text, table, replacement, new_levels(rungs))
