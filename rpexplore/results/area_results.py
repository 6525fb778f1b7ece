"""Tables of areas as results to look at, and sums over lists of areas."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from rpexplore.common.numbers import matrix_along
from rpexplore.domain.area_tree import (
    AreaRange,
    AreaTree,
    area_title,
    distinct_codes,
    distinct_names,
)
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.domain.result_schema import (
    AREA_GUESSES,
    MEANS,
    PROCESSED,
    RELEASED,
    Column,
    Schema,
    frame_of,
)
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.mechanism.asked_levels import least_noisy_query
from rpexplore.planning.mechanism.reconstruction import (
    MarginalNoise,
    Where,
    query_attributes,
    residuals_within,
    sums_of,
)
from rpexplore.releases.area_files import (
    asked_areas,
    asked_tables,
    items_of_areas,
    rows_of_areas,
)
from rpexplore.releases.area_release import TablesInAreas
from rpexplore.releases.items import Answer, Figures, Item, Marginal, PartReader
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.means import (
    MeanAnswer,
    clamping_of,
    mean_asked,
    ratio_columns,
    with_records,
    with_sum,
)
from rpexplore.releases.table_cells import (
    MEANS_FOLDER,
    Labels,
    label_columns,
    table_of_cells,
)
from rpexplore.results.estimates.area_counts import AreaCounts
from rpexplore.results.measurement_source import MeasurementSource, sources_of

if TYPE_CHECKING:
    import pandas as pd


# ---- Tables of areas as results to look at: those of one area, or of some areas side by side.


@dataclass(frozen=True, eq=False)
class AreaResults(PartReader):
    """A release of tables in areas, or whole counts or best guesses of it, to be walked through.

    whole   the counts, if these are looked at
    tables  the unbiased tables without areas that were released with them; None for none
    """

    release: TablesInAreas
    whole: AreaCounts | None = None
    tables: PartReader | None = None

    kind: ClassVar[str] = "whole areas"  # what a folder holds; a release has a part "areas"

    @classmethod
    def of(cls, source: PartReader) -> "AreaResults":
        """Itself, or the tables in areas of a release beside those without areas."""
        if isinstance(source, cls):
            return source
        return cls(source.area_tables(), tables=tables_of(source))

    @property
    def folder(self) -> Path:
        return self.release.folder if self.whole is None else self.whole.folder

    @cached_property
    def checked(self) -> CheckedFolder | Path:
        """The same folder, whose files are checked when they are read."""
        return (self.release if self.whole is None else self.whole).checked

    @property
    def named(self) -> Path:
        """The folder that people know: of the release, or of the whole counts."""
        return self.release.named if self.whole is None else self.whole.folder

    @property
    def plan(self) -> AreaDesign:
        return self.release.plan

    @property
    def tree(self) -> AreaTree:
        return self.release.tree

    @property
    def domain(self) -> Domain:
        return self.plan.domain

    @property
    def is_biased(self) -> bool:
        """Whether these are whole counts, so that intervals are not their own."""
        return self.whole is not None

    @property
    def is_smooth(self) -> bool:
        """Whether these are best guesses, with model-based errors."""
        return self.whole is not None and self.whole.is_smooth

    @property
    def has_unbiased(self) -> bool:
        return self.is_biased

    @property
    def contents(self) -> str:
        if self.whole is None:
            return self.plan.contents
        return "best guesses for areas" if self.is_smooth else "whole counts of areas"

    @property
    def label(self) -> str:
        """How the tables came about, in words that go with them."""
        return self.release.label if self.whole is None else self.whole.label

    @property
    def manifest(self) -> Mapping[str, Any]:
        return self.release.manifest if self.whole is None else self.whole.manifest

    @property
    def made_of(self) -> Sequence[MeasurementSource]:
        return self.release.made_of if self.whole is None else sources_of(self.release)

    @property
    def area_levels(self) -> Sequence[str]:
        levels = self.tree.levels
        used = {item.level for item in self.items}
        return levels[1 : 1 + max(i for i, level in enumerate(levels) if level in used)]

    @cached_property
    def items(self) -> Sequence[Item]:
        if self.whole is None:
            return items_of_areas(self.release.parts, self.checked)
        figures = AREA_GUESSES if self.is_smooth else PROCESSED
        return items_of_areas(self.release.parts, self.checked, figures, counts_only=True)

    def within(self, area: int, level: int) -> slice:
        """The areas of a level that lie in an area, by their numbers."""
        own = int(self.tree.level_of[area])
        return AreaRange.within(self.tree, own, area, area + 1, level).slices[-1]

    def of_area(self, area: int) -> "AreaTables":
        """The tables of one area."""
        return AreaTables(self, int(self.tree.level_of[area]), slice(area, area + 1), "")

    def side_by_side(
        self, level: int, areas: slice, empty: Sequence[int] | np.ndarray = ()
    ) -> "AreaTables":
        """The tables of areas of a level that follow one another, with one row an area and cell.

        empty: of empty areas that are to be in answers, too
        """
        name = self.tree.levels[level]
        figures = [column.name for column in AREA_GUESSES]
        while name in (*self.plan.domain.names, *figures):
            name += " (area)"
        return AreaTables(self, level, areas, name, tuple(int(area) for area in empty))


def tables_of(source: PartReader) -> PartReader | None:
    """The unbiased tables without areas among the parts of a release; None for none."""
    return next((part for part in source.readers if part.kind == "tables"), None)


@dataclass(frozen=True, eq=False)
class AreaTables(Figures):
    """Tables of areas, in the form of other `Results`.

    areas  that follow one another on a level, by their numbers
    axis   the column that says which area a row is of, before all attributes; "" for one area
    empty  empty areas that `answers` has behind the others, by their numbers
    """

    results: AreaResults
    level: int
    areas: slice
    axis: str = field()  # which has no default here: `Figures` has one
    empty: tuple[int, ...] = ()

    in_areas: ClassVar[bool] = True

    def unbiased_tables(self) -> "AreaTables":
        return self

    @property
    def label(self) -> str:
        """How the tables came about."""
        return self.results.label

    @property
    def is_biased(self) -> bool:
        return self.results.is_biased

    @property
    def is_smooth(self) -> bool:
        return self.results.is_smooth

    @property
    def has_unbiased(self) -> bool:
        return self.is_biased

    @property
    def title(self) -> str:
        """What the area is called, or the level."""
        tree = self.results.tree
        return tree.levels[self.level] if self.axis else area_title(tree, self.areas.start)

    @property
    def whose(self) -> tuple[str, ...]:
        """What tells files of other areas apart: the area, or the one that all areas lie in.

        With the first and the last of areas that are not all there are in it; () for the top.
        """
        if not self.axis:
            return (self.title,)
        tree, first, last = self.results.tree, self.areas.start, self.areas.stop - 1
        within, other = tree.parents[[first, last]].tolist()
        while within != other:  # an area has a greater number than what it is a part of
            within, other = sorted((int(tree.parents[max(within, other)]), min(within, other)))
        own = (area_title(tree, within),) if within > 0 else ()
        if self.results.within(max(within, 0), self.level) == self.areas:
            return own
        return (*own, f"{area_title(tree, first)} to {area_title(tree, last)}")

    @property
    def domain(self) -> Domain | None:
        """The attributes that can be added up; None for counts of which none can be."""
        return None if self.axis or self._stand_alone else self._plan.domain

    @property
    def _stand_alone(self) -> bool:
        """Whether nothing else is known from tables: of biased ones, and of other bases."""
        bases = [basis for _, basis in self._tables.attribute_bases]
        return self.is_biased or not all(one.is_identity or one.of_amounts for one in bases)

    @property
    def table_names(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table that some of the areas are asked for."""
        names = self._plan.workload.tables.tables
        return tuple((*self._axes, *names[table]) for table in self._asked)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those in some table, in the domain's order where they can be added up."""
        used = {name: None for table in self.table_names for name in table}
        order = used if self.domain is None else self.domain.names
        return tuple(name for name in order if name in used)

    def has(self, attributes: AttributeSet) -> bool:
        """Whether a table holds these attributes together, or has exactly them if it is biased."""
        names = set(attributes)
        if not names.issuperset(self._axes):
            return False
        tables = [set(table) for table in self.table_names]
        if self._stand_alone:
            return any(names == table for table in tables)
        return any(names <= table and not self._amounts & (table - names) for table in tables)

    @property
    def _amounts(self) -> set[str]:
        """The attributes of amounts, over which no table is summed."""
        domain = self._plan.domain
        return {domain.names[index] for index in domain.amounts}

    def table(self, *attributes: AttributeSet) -> "pd.DataFrame":
        """A table as it was released, one row a cell; `counts` if it is within a released one.

        Columns: the area's code, and its name if there are names, labels, value, standard_error,
        lower_95, upper_95; of whole counts those of `AreaCounts.table`. Raises `ReleaseError` where
        there is none.
        """
        indices = self._indices(attributes)
        asked = {self._tables.attribute_indices(table): table for table in self._asked}
        if indices in asked:
            return frame_of(self._of_axis(self._rows(asked[indices]), asked[indices]))
        return self.counts(*attributes)

    def counts(self, *attributes: AttributeSet) -> "pd.DataFrame":
        """A table, or what is within one, with its exact errors."""
        indices = self._indices(attributes)
        table = self._smallest_with(indices)
        if self._stand_alone:
            return frame_of(self._of_axis(self._rows(table), table))
        labels = [label_columns(self._plan.domain.attributes[index]) for index in indices]
        values, areas = self._answers(indices, table), asked_areas(self._parts, table, self.areas)
        variances = self._variances(indices, areas)
        if self.axis:
            labels = [self._labels(areas), *labels]
        else:
            values, variances = values[0], variances[0]
        return frame_of(table_of_cells(labels, values, variances))

    def answer(self, *attributes: AttributeSet, where: Where | None = None) -> Answer:
        """The unbiased answer of one area to a product query, as `Release.answer`."""
        if self.domain is None:
            raise ReleaseError(
                "Sums with exact errors are those of the unbiased counts of one area, of tables of "
                "single values; open it."
            )
        rows = self.answers(*attributes, where=where)
        figures = [float(rows[column.name].iloc[0]) for column in RELEASED]
        if (mean := mean_asked(self.domain, where)) is None:
            return Answer(*figures[:2])
        if np.isnan(figures[0]):
            raise ReleaseError(
                f"The records with {mean!r} are too few for a mean in {self.title}: the noise of "
                f"their number reaches 0; ask for {mean}=sum and {mean}=records."
            )
        return MeanAnswer(*figures)

    def answers(self, *attributes: AttributeSet, where: Where | None = None) -> "pd.DataFrame":
        """The unbiased answer of each of the areas to a product query, one row an area.

        Columns: the area's code, and its name if there are names, value, standard_error, lower_95,
        upper_95. Of amounts the sum, the records or the mean, which is missing where the noise of
        the number of records reaches 0. Raises `ReleaseError` for counts of which no sum has a
        known error.
        """
        if self._stand_alone:
            raise ReleaseError(
                "Sums with exact errors are those of the unbiased counts, of tables of single "
                "values; take a released table as it is."
            )
        where = where or {}
        if (mean := mean_asked(self._plan.domain, where)) is not None:
            where = with_sum(where, mean)
        if not attributes:
            where = self._at_levels(where)
        indices = query_attributes(self._plan.domain, attributes, where)
        table = self._smallest_with(indices)
        areas = asked_areas(self._parts, table, self.areas)
        groups, own = np.unique(self._plan.groups.of_area[areas], return_inverse=True)
        noises = [self._noise(indices, group) for group in groups.tolist()]
        vectors = noises[0].vectors(where)
        self._refuse_unknown(indices, vectors)
        cells = self._cells(indices, table)

        def summed(own: Mapping[int, np.ndarray]) -> np.ndarray:
            values = cells
            for index in reversed(indices):
                values = values @ own[index]
            return values

        values = summed(vectors)
        variances = np.array([noise.covariance(vectors, vectors) for noise in noises])[own]
        if mean is not None:
            of_records = noises[0].vectors(with_records(where, mean))
            pairs = ((of_records, of_records), (vectors, of_records))
            others = [np.array([noise.covariance(*two) for noise in noises])[own] for two in pairs]
            figures = ratio_columns(values, summed(of_records), variances, *others)
            return self._of_means(figures, areas)
        if not self.axis:
            return frame_of(table_of_cells([], values[0], variances[0]))
        nothing = np.zeros(len(self.empty))
        values, variances = np.append(values, nothing), np.append(variances, nothing)
        labels = [self._labels(np.append(areas, np.array(self.empty, dtype=np.int64)))]
        return frame_of(table_of_cells(labels, values, variances))

    def _of_means(self, figures: Sequence[np.ndarray], areas: np.ndarray) -> "pd.DataFrame":
        """A row an area; empty areas, which have nobody, have no mean either."""
        arrays = [pa.array(own, from_pandas=True) for own in figures]
        columns: list[Column] = list(MEANS)
        if self.axis:
            none = pa.nulls(len(self.empty), pa.float64())
            arrays = [pa.concat_arrays([own, none]) for own in arrays]
            labels = self._labels(np.append(areas, np.array(self.empty, dtype=np.int64)))
            columns = [*(column for column, _ in labels), *columns]
            arrays = [*(texts for _, texts in labels), *arrays]
        fields = [column.field(array.type) for column, array in zip(columns, arrays, strict=True)]
        return frame_of(pa.table(arrays, schema=pa.schema(fields)))

    def _at_levels(self, where: Where) -> Where:
        """A query at the levels that tables have, as `TableRelease.answer`; itself for none."""
        domain, axes = self._plan.domain, set(self._axes)
        tables = [tuple(name for name in table if name not in axes) for table in self.table_names]
        amounts = self._amounts.difference(where)
        held = [table for table in tables if not amounts.intersection(table)]
        group = int(self._plan.groups.of_area[self.areas][0])
        return least_noisy_query(domain, where, held, lambda own: self._noise(own, group))

    def _refuse_unknown(self, indices: AttributeIndices, vectors: Mapping[int, np.ndarray]) -> None:
        """Raise `ReleaseError` for a query about weights that are not the weighted count."""
        for index in set(indices) & set(self._plan.domain.weights):
            sums = sums_of(self._plan.domain, index)
            assert sums is not None
            (row,) = sums.of(np.eye(sums.attribute.size), 0)
            vector = vectors[index]
            if not np.allclose(vector, row * (vector @ row) / (row @ row), rtol=1e-12):
                raise ReleaseError(
                    f"Tables in areas have the weighted count of {sums.attribute.name!r} alone; "
                    f"ask for it, such as {sums.attribute.name}=weighted count."
                )

    @property
    def has_sums(self) -> bool:
        return not self._stand_alone

    def means_of(self, attributes: Collection[str]) -> "pd.DataFrame | None":
        table = self._tables.find(self._indices([attributes]))
        if self.is_biased or table not in self._asked or not self._tables.has_means[table]:
            return None
        rows = rows_of_areas(
            self._parts, self.results.checked, self.level, table, self.areas, MEANS_FOLDER
        )
        assert rows is not None
        return frame_of(self._of_axis(rows, table))

    def clamping_of(self, attributes: Collection[str]) -> str:
        return clamping_of(self._plan.domain, attributes)

    def marginals(self, attributes: Collection[str]) -> Sequence[Marginal]:
        if self._stand_alone:
            return super().marginals(attributes)
        indices = self._indices([attributes])
        table = self._smallest_with(indices)
        groups = self._plan.groups.of_area[asked_areas(self._parts, table, self.areas)].tolist()
        noises = {group: self._noise(indices, group) for group in set(groups)}
        cells = self._cells(indices, table)
        return [
            Marginal(values, noises[group]) for values, group in zip(cells, groups, strict=True)
        ]

    def area_numbers(self, attributes: Collection[str]) -> np.ndarray:
        """The numbers of the areas that have a table, in the order of its rows, int64."""
        table = self._smallest_with(self._indices([attributes]))
        return np.asarray(asked_areas(self._parts, table, self.areas))

    def axis_labels(self, attributes: Collection[str]) -> tuple[list[str], list[str]]:
        """Codes and names of the areas of `marginals`; without names these are empty."""
        table = self._smallest_with(self._indices([attributes]))
        numbers = asked_areas(self._parts, table, self.areas).tolist()
        names = distinct_names(self.results.tree, numbers)
        return list(distinct_codes(self.results.tree, numbers)), list(names or ())

    def reading_lines(self, *attributes: str) -> str:
        """Python lines that read a table for all areas of the level."""
        folder = repr(str(self.results.named))
        names = [self.results.tree.levels[self.level], *attributes]
        module, load = "results", "load_any_results"
        tables = f"load_any_results({folder}).area_tables()"
        if self.is_biased:
            module, load = "estimates.area_counts", "AreaCounts"
            tables = f"AreaCounts.load({folder})"
        return (
            f"from rpexplore.results.{module} import {load}\n\n"
            f"tables = {tables}\n"
            f"table = tables.table({', '.join(map(repr, names))})\n"
        )

    # ---- where it comes from

    @property
    def _plan(self) -> AreaDesign:
        return self.results.plan

    @property
    def _parts(self):
        return self.results.release.parts

    @property
    def _tables(self):
        return self._plan.workload.tables

    @property
    def _axes(self) -> tuple[str, ...]:
        return (self.axis,) if self.axis else ()

    @cached_property
    def _asked(self) -> list[int]:
        """The tables of the plan that some of the areas are asked for."""
        kinds = np.unique(self._plan.workload.kinds[self.areas])
        asked = asked_tables(self._plan)[kinds].any(axis=0)
        if self.is_biased:  # whole counts are of counts alone
            asked = asked & ~self._tables.has_amounts
        return np.flatnonzero(asked).tolist()

    def _indices(self, attributes: Collection[AttributeSet]) -> AttributeIndices:
        names = [
            name
            for name in chain.from_iterable(
                [each] if isinstance(each, str) else each for each in attributes
            )
            if name != self.axis
        ]
        return self._plan.domain.positions(names)

    def _smallest_with(self, indices: AttributeIndices) -> int:
        """The table with the fewest cells that holds these attributes; if biased just these."""
        wanted, amounts = set(indices), set(self._plan.domain.amounts)
        found = [
            table
            for table in self._asked
            if wanted <= set(own := self._tables.attribute_indices(table))
            and (len(own) == len(wanted) or not self._stand_alone)
            and not amounts & (set(own) - wanted)
        ]
        if not found:
            names = " × ".join(self._plan.domain.names[index] for index in indices) or "total"
            raise ReleaseError(
                f"There is no table of ({names}) for {self.title}; choose one that was asked for "
                "there."
            )
        return min(found, key=lambda table: int(self._tables.exact_cells[table]))

    def _rows(self, table: int) -> pa.Table:
        """The rows of a table as they are in its files; `ReleaseError` where they are not."""
        rows = rows_of_areas(self._parts, self.results.checked, self.level, table, self.areas)
        assert rows is not None
        return rows

    def _cells(self, indices: AttributeIndices, table: int) -> np.ndarray:
        """Values of a marginal of a table by single values, float64[n_areas, …].

        Of amounts what `low` and `high` count, which the sum and the number of records tell; of
        weights, whose sum alone is known, numbers that have this sum.
        """
        values = self._answers(indices, table)
        for axis, index in enumerate(indices, start=1):
            if (sums := sums_of(self._plan.domain, index)) is not None:
                rows = sums.of(np.eye(sums.attribute.size), 0)
                rows = rows * sums.basis.row_units(sums.attribute)[:, None]
                values = matrix_along(np.linalg.pinv(rows), values, axis)
        return values

    def _answers(self, indices: AttributeIndices, table: int) -> np.ndarray:
        """Values of a table, summed over other attributes than these: float64[n_areas, …]."""
        own, n_queries = self._tables.attribute_indices(table), self._tables.n_queries
        bases = self._tables.attribute_basis_index[table, : len(own)].tolist()
        values = self._rows(table)["value"].to_numpy()
        values = values.reshape(-1, *(n_queries[basis] for basis in bases))
        summed = tuple(axis for axis, index in enumerate(own, start=1) if index not in indices)
        return values.sum(axis=summed)

    def _variances(self, indices: AttributeIndices, areas: np.ndarray) -> np.ndarray:
        """Of the cells of a marginal in some areas, float64[n_areas, …]."""
        groups, own = np.unique(self._plan.groups.of_area[areas], return_inverse=True)
        return np.stack([self._noise(indices, group).variances for group in groups.tolist()])[own]

    def _noise(self, indices: AttributeIndices, group: int) -> MarginalNoise:
        plan = self._plan
        residuals = residuals_within(plan.closure, indices)
        variances = plan.residual_variances[:, group]
        sigma_squared = {subset: float(variances[row]) for subset, row in residuals.items()}
        closure = plan.closure
        return MarginalNoise(plan.domain, indices, closure.strategies, sigma_squared, closure.trees)

    def _labels(self, areas: np.ndarray) -> Labels:
        """The codes of areas side by side, and their names if they have some."""
        tree, numbers = self.results.tree, areas.tolist()
        code = Column(self.axis, "code", f"{self.axis}: the code of the area.", "", self.axis)
        labels = [(code, pa.array(distinct_codes(tree, numbers)))]
        if (names := distinct_names(tree, numbers)) is not None:
            meaning = f"{self.axis}: what its codes are called."
            label = Column(f"{self.axis} label", "label", meaning, "", self.axis)
            labels.append((label, pa.array(names)))
        return labels

    def _of_axis(self, rows: pa.Table, table: int) -> pa.Table:
        """The rows with the area's code and name, or without, in place of codes on all levels."""
        levels = self.results.tree.levels[1:]
        columns = Schema.of(rows).columns
        rows = rows.select([one.name for one in columns if one.attribute not in levels])
        if not self.axis:
            return rows
        areas = asked_areas(self._parts, table, self.areas)
        of_rows = np.repeat(np.arange(len(areas), dtype=np.int32), rows.num_rows // len(areas))
        for column, texts in reversed(self._labels(areas)):
            codes = pa.DictionaryArray.from_arrays(of_rows, texts)
            rows = rows.add_column(0, column.field(codes.type), codes)
        return rows
