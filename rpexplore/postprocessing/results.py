"""Results: tables to be looked at, be they released, combined or processed."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rpexplore.domain.domain import Domain
from rpexplore.errors import ReleaseError
from rpexplore.postprocessing import combination_folder as combined_folder
from rpexplore.postprocessing import processed_folder
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.releases.query_folder import FORMAT as OF_QUERIES
from rpexplore.releases.table_folder import Release

if TYPE_CHECKING:
    import pandas as pd

AnyTables = Release | Estimates | ProcessedTables


@dataclass(frozen=True, eq=False)
class Results:
    """Tables from one source, and what else follows from them. Noisy figures only."""

    source: AnyTables

    @property
    def label(self) -> str:
        """How the tables came about, in words that go with them."""
        return "unbiased; as released" if isinstance(self.source, Release) else self.source.label

    @property
    def is_biased(self) -> bool:
        """Whether the counts were processed, so that intervals are not their own."""
        return isinstance(self.source, ProcessedTables)

    @property
    def domain(self) -> Domain | None:
        """The attributes with their values; None where only tables are known."""
        match self.source:
            case Release():
                return self.source.plan.workload.domain
            case Estimates():
                return self.source.domain
        return None

    @cached_property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table that was released, combined or processed."""
        match self.source:
            case Release():
                return tuple(tuple(table) for table in self.source.plan.workload.tables)
            case Estimates():
                names = self.source.domain.names
                return tuple(tuple(names[place] for place in table) for table in self.source.tables)
        return self.source.tables

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes that are in some table, in the domain's order where it is known."""
        used = {name: None for table in self.tables for name in table}
        order = used if self.domain is None else self.domain.names
        return tuple(name for name in order if name in used)

    def ordered(self, attributes: Collection[str]) -> tuple[str, ...]:
        """The attributes in the order in which tables have them as columns."""
        if isinstance(self.source, ProcessedTables):
            return self.source.find(attributes) or tuple(attributes)
        return tuple(name for name in self.names if name in attributes)

    def has(self, attributes: Collection[str]) -> bool:
        """Whether there are counts of these attributes together: a table, or within one."""
        if any(name not in self.names for name in attributes):
            return False
        match self.source:
            case ProcessedTables():
                return self.source.find(attributes) is not None
            case Release():
                return self.source.plan.closure.find(self._several(attributes)) is not None
        return self._several(attributes) in self.source.contributions

    def asked(self, attributes: Collection[str]) -> "pd.DataFrame":
        """The table of these attributes as it was released; by single values if it was not.

        Labels, then value, standard_error, lower_95 and upper_95; more of processed tables, see
        there. Raises `WorkloadError` or `ReleaseError` where `has` is False.
        """
        if isinstance(self.source, Release) and not self._is_released(attributes):
            return self.source.rebuilt(self.ordered(attributes))
        return self.source.table(self.ordered(attributes))

    def counts(self, attributes: Collection[str]) -> "pd.DataFrame":
        """`asked`, but of a release always by single values, however its tables ask them."""
        if isinstance(self.source, Release):
            return self.source.rebuilt(self.ordered(attributes))
        return self.asked(attributes)

    def answer(
        self, table: Collection[str], query: Mapping[str, Sequence[float]]
    ) -> tuple[float, float]:
        """(value, standard error) of a product query on a table, as `Release.answer`.

        Raises `ReleaseError` for processed tables, whose sums have no known error.
        """
        if isinstance(self.source, ProcessedTables):
            raise ReleaseError(
                "Sums of processed counts have no known standard error; ask the release that they "
                "were made of."
            )
        return self.source.answer(self.ordered(table), query)

    def _several(self, attributes: Collection[str]) -> tuple[int, ...]:
        """The places of those attributes that have several values, which noise is known of."""
        assert self.domain is not None
        places = self.domain.positions(attributes)
        return tuple(place for place in places if self.domain.sizes[place] > 1)

    def _is_released(self, attributes: Collection[str]) -> bool:
        return frozenset(attributes) in self._sets

    @cached_property
    def _sets(self) -> frozenset[frozenset[str]]:
        return frozenset(map(frozenset, self.tables))


def opened_results(folder: str | Path) -> Results:
    """What a folder holds: a release, combined tables, or processed ones.

    Raises `ReleaseError` if it is none of these, or a file was changed since it was written.
    """
    folder = Path(folder)
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        manifest = None
    kind = manifest.get("format") if isinstance(manifest, dict) else None
    if kind is None:
        raise ReleaseError(
            f"{str(folder)!r} is not the folder of a finished release: it has no readable "
            "manifest.json; check the path, and name the folder itself."
        )
    if kind == OF_QUERIES[0]:
        raise ReleaseError(
            f"{str(folder)!r} holds the answers to a list of queries, and no tables; they are "
            "files in that folder. Name the folder of a release of tables."
        )
    if kind == processed_folder.KIND[0]:
        return Results(ProcessedTables.load(folder))
    return Results(combined_folder.opened(folder))
