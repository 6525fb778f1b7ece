"""Results: tables to be looked at, be they released, combined or processed."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.query_covariance import Where
from rpexplore.postprocessing.combination_folder import load_unbiased
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.processed_tables import KIND as PROCESSED
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.releases.manifest import read_manifest
from rpexplore.releases.marginal_estimate import Answer
from rpexplore.releases.query_release import QueryRelease
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
        return self.source.label

    @property
    def is_biased(self) -> bool:
        """Whether the counts were processed, so that intervals are not their own."""
        return isinstance(self.source, ProcessedTables)

    @property
    def domain(self) -> Domain | None:
        """The attributes with their values; None where only tables are known."""
        return self.source.domain

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table that was released, combined or processed."""
        return self.source.table_names

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes that are in some table, in the domain's order where it is known."""
        used = {name: None for table in self.tables for name in table}
        order = used if self.domain is None else self.domain.names
        return tuple(name for name in order if name in used)

    def ordered(self, attributes: Collection[str]) -> tuple[str, ...]:
        """The attributes in the order in which tables have them as columns."""
        table = next((table for table in self.tables if set(table) == set(attributes)), None)
        return table or tuple(name for name in self.names if name in attributes)

    def has(self, attributes: Collection[str]) -> bool:
        """Whether there are counts of these attributes together: a table, or within one."""
        return all(name in self.names for name in attributes) and self.source.has(attributes)

    def table(self, *attributes: AttributeSet) -> "pd.DataFrame":
        """The table of these attributes as it was released; by single values if it was not.

        Labels, then value, standard_error, lower_95 and upper_95; more of processed tables, see
        there. Raises `WorkloadError` or `ReleaseError` where `has` is False.
        """
        return self.source.table(*attributes)

    def counts(self, *attributes: AttributeSet) -> "pd.DataFrame":
        """`table`, but of a release always by single values, however its tables ask them."""
        return self.source.counts(*attributes)

    def answer(self, *attributes: AttributeSet, where: Where | None = None) -> Answer:
        """The noisy answer to a product query on a table, as `Release.answer`.

        Raises `ReleaseError` for processed tables, whose sums have no known error.
        """
        return self.source.answer(*attributes, where=where)


def load_results(folder: str | Path) -> Results:
    """What a folder holds: a release, combined tables, or processed ones.

    Raises `ReleaseError` if it is none of these, or a file was changed since it was written.
    """
    folder = Path(folder)
    kind = read_manifest(folder).get("format")
    if kind == QueryRelease.release_format[0]:
        raise ReleaseError(
            f"{str(folder)!r} holds the answers to a list of queries, and no tables; they are "
            "files in that folder. Name the folder of a release of tables."
        )
    if kind == PROCESSED[0]:
        return Results(ProcessedTables.load(folder))
    return Results(load_unbiased(folder))
