"""The files of a release of tables in areas, and where the rows of some areas lie in them."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.result_schema import EMPTY_NOTE, MEANS, NOTE, RELEASED, Column
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.areas.tree_passes import stated_errors
from rpexplore.planning.mechanism.reconstruction import impossible_answers, query_matrices
from rpexplore.releases.area_measurement import AreaAnswers, PartAnswers
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.items import Item
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.means import (
    amounts_of,
    figures_of_means,
    figures_of_sums,
    labels_of_means,
    n_groups,
    ratio_columns,
)
from rpexplore.releases.measurement_file import Measured
from rpexplore.releases.table_cells import (
    MEANS_FOLDER,
    TABLES,
    Labels,
    arrays_of_figures,
    check_roles,
    constant_text,
    label_columns,
    notes_of,
    schema_of_cells,
    texts_at,
    write_rows,
)

# tables/5_block/0003_age_sex/00007.parquet   a table on a level, of the areas of a part: one row
#                                             a cell of an area, with a column for each level
# tables/5_block/0003_age_sex/empty.parquet   the same of areas that are known to have nobody
# means/5_block/0003_sex_income/00007.parquet  of a table with amounts: one row a group of an area
# residuals/00007.parquet                     what was measured in the areas of a part


_RESIDUALS, _EMPTY = "residuals", "empty.parquet"
_ROWS_AT_ONCE = 1 << 20
_RESIDUAL_SCHEMA = pa.schema(
    [(name, pa.int32()) for name in ("area", "residual", "cell")] + [("measured", pa.int64())]
)


def table_folder(plan: AreaDesign, level: int, table: int, within: str = TABLES) -> str:
    """Where the files of a table of `plan.workload.tables` on a level lie, or of its means."""
    names = plan.workload.tables.tables[table] or ("total",)
    title = "_".join(map(plain_name, names))[:80]
    return f"{within}/{level}_{plain_name(plan.workload.tree.levels[level])}/{table:04d}_{title}"


def plain_name(name: str) -> str:
    """A name as a folder has it."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")


def asked_tables(plan: AreaDesign) -> np.ndarray:
    """Which tables are asked for by each of the workloads, bool[n_workloads + 1, n_tables].

    The last row is that of no workload.
    """
    asked = np.zeros((len(plan.workload.workloads) + 1, len(plan.workload.tables)), dtype=bool)
    for kind, tables in enumerate(plan.workload.rows):
        asked[kind, tables] = True
    return asked


def area_files(parts: AreaParts) -> dict[str, list[str] | None]:
    """All files but the plan's and those that are in every folder; of a table, its attributes."""
    plan, files = parts.plan, {}
    for part in range(len(parts.areas)):
        files[residual_file(part)] = None
        for level, table in tables_of_part(parts, part):
            names = plan.workload.tables.tables[table]
            for within in folders_of(plan, table):
                files[table_file(plan, level, table, part, within)] = list(names)
    for level, table in tables_of_empty(plan):
        for within in folders_of(plan, table):
            files[empty_file(plan, level, table, within)] = list(plan.workload.tables.tables[table])
    return files


def folders_of(plan: AreaDesign, table: int) -> tuple[str, ...]:
    """The folders that have files of a table: TABLES, and that of means if it has means."""
    return (TABLES, MEANS_FOLDER) if plan.workload.tables.has_means[table] else (TABLES,)


def tables_of_empty(plan: AreaDesign) -> Iterator[tuple[int, int]]:
    """The levels that have empty areas, and the tables that some area of the level is asked for."""
    tree, asked = plan.workload.tree, asked_tables(plan)
    for level in range(1, len(tree.levels)):
        if len(tree.empty_on(level)):
            kinds = np.unique(plan.workload.kinds[tree.level_slice(level)])
            for table in np.flatnonzero(asked[kinds].any(axis=0)).tolist():
                yield level, table


def empty_file(plan: AreaDesign, level: int, table: int, within: str = TABLES) -> str:
    """The file of a table in the empty areas of a level."""
    return f"{table_folder(plan, level, table, within)}/{_EMPTY}"


def write_empty(plan: AreaDesign, level: int, table: int, folder: Path) -> None:
    """Write a table in the empty areas of a level: 0 everywhere, with no error, and no means."""
    areas = plan.workload.tree.empty_on(level)
    n_cells = int(plan.workload.tables.exact_cells[table])

    def cells_of(some: slice) -> tuple[np.ndarray, np.ndarray]:
        nothing = np.zeros((len(areas[some]), n_cells))
        return nothing, nothing

    path = folder / empty_file(plan, level, table)
    _write_cells(plan, level, table, areas, cells_of, path)
    if plan.workload.tables.has_means[table]:
        n_means = n_groups(plan.workload.tables, table)

        def means_of(some: slice) -> list[np.ndarray]:
            return [np.full((len(areas[some]), n_means), np.nan)] * len(MEANS)

        path = folder / empty_file(plan, level, table, MEANS_FOLDER)
        _write_means(plan, level, table, areas, means_of, path)


def tables_of_part(parts: AreaParts, part: int) -> Iterator[tuple[int, int]]:
    """The levels of a part, and the tables of `plan.workload.tables` that are asked for there."""
    first, asked = 0 if part == 0 else parts.level, asked_tables(parts.plan)
    for level, areas in enumerate(parts.areas[part].slices, start=first):
        kinds = np.unique(parts.plan.workload.kinds[areas])
        for table in np.flatnonzero(asked[kinds].any(axis=0)).tolist():
            yield level, table


def table_file(plan: AreaDesign, level: int, table: int, part: int, within: str = TABLES) -> str:
    """The file of a table in the areas of a part on a level."""
    return f"{table_folder(plan, level, table, within)}/{part:05d}.parquet"


def residual_file(part: int) -> str:
    """The file of what was measured in a part."""
    return f"{_RESIDUALS}/{part:05d}.parquet"


def write_residuals(parts: AreaParts, part: int, measured: Measured, folder: Path) -> None:
    """Write what was measured in a part.

    area: its number in the plan's list of areas; residual: its place in the plan's list; cell:
    row-major.
    """
    with pyarrow.parquet.ParquetWriter(
        folder / residual_file(part),
        _RESIDUAL_SCHEMA,
        use_dictionary=["area", "residual", "cell"],  # pyright: ignore[reportArgumentType]
        write_statistics=False,
    ) as writer:
        for profile, width in enumerate(parts.widths.tolist()):
            areas = parts.of_profile(part, profile)
            if areas is None:
                continue
            numbers = areas.areas[parts.measured_rows(profile, areas)].astype(np.int32)
            residual, cell = _residual_cells(parts, profile)
            start, step = parts.bounds(part, profile)[0], max(_ROWS_AT_ONCE // width, 1)
            for first in range(0, len(numbers), step):
                some = numbers[first : first + step]
                begin = start + first * width
                columns = [
                    np.repeat(some, width),
                    np.tile(residual, len(some)),
                    np.tile(cell, len(some)),
                    measured.read(begin, begin + len(some) * width),
                ]
                writer.write_batch(pa.record_batch(columns, schema=_RESIDUAL_SCHEMA))


def _residual_cells(parts: AreaParts, profile: int) -> tuple[np.ndarray, np.ndarray]:
    """The residual and the cell of each column of a profile, int32[n_columns] each."""
    residuals, cells = [], []
    for columns in parts.columns[profile]:
        for residual in columns.residuals:
            within = parts.of_residuals[residual][1]
            size = within.stop - within.start
            residuals.append(np.full(size, residual, dtype=np.int32))
            cells.append(np.arange(size, dtype=np.int32))
    return np.concatenate(residuals), np.concatenate(cells)


def write_table(of_part: PartAnswers, part: int, level: int, table: int, folder: Path) -> None:
    """Write a table in the areas of a part on a level of the tree, where it is asked for there.

    And its means, if it has some.
    """
    parts, plan = of_part.parts, of_part.parts.plan
    own_level = level - (0 if part == 0 else parts.level)
    areas, rows = of_part.areas.slices[own_level], of_part.areas.rows(own_level)
    within = np.flatnonzero(asked_tables(plan)[plan.workload.kinds[areas], table])
    numbers, own_rows = areas.start + within, rows.start + within
    errors_of = CellErrors.of(parts, table)

    def cells_of(some: slice) -> tuple[np.ndarray, np.ndarray]:
        values = of_part.tables(table, own_rows[some])
        return values.reshape(len(values), -1), errors_of.areas(numbers[some])

    _write_cells(
        plan, level, table, numbers, cells_of, folder / table_file(plan, level, table, part)
    )
    if not plan.workload.tables.has_means[table]:
        return
    factors, (axis, _) = (
        parts.sum_covariance_factors(table),
        amounts_of(plan.workload.tables, table),
    )

    def means_of(some: slice) -> list[np.ndarray]:
        values = of_part.tables(table, own_rows[some])
        variances = errors_of.areas(numbers[some]).reshape(values.shape) ** 2
        covariances = errors_of.residual_variances(numbers[some]).T @ factors
        sums, counts = (np.take(values, row, 1 + axis) for row in (0, 1))
        of_sums, of_counts = (np.take(variances, row, 1 + axis) for row in (0, 1))
        covariances = covariances.reshape(sums.shape)
        return ratio_columns(sums, counts, of_sums, of_counts, covariances)

    path = folder / table_file(plan, level, table, part, MEANS_FOLDER)
    _write_means(plan, level, table, numbers, means_of, path)


@dataclass(frozen=True, eq=False)
class CellErrors:
    """The exact standard errors of the cells of a table.

    residuals  int64[n]: those that the table has
    factors    float64[n, n_cells]: how their variances get into its cells; [n, 1] where all cells
               are alike
    """

    plan: AreaDesign
    residuals: np.ndarray
    factors: np.ndarray

    @classmethod
    def of(cls, parts: AreaParts, table: int) -> "CellErrors":
        """Of a table of `plan.workload.tables`."""
        return cls(parts.plan, *parts.cell_factors(table))

    def areas(self, areas: np.ndarray) -> np.ndarray:
        """In some areas, by their numbers: float64[n_areas, n_cells], or [n_areas, 1] if alike."""
        return self.from_variances(self.residual_variances(areas))

    def residual_variances(self, areas: np.ndarray) -> np.ndarray:
        """Of the answers to the residuals in some areas: float64[n, n_areas]."""
        groups = self.plan.groups.of_area[areas]
        return self.plan.residual_variances[np.ix_(self.residuals, groups)]

    def from_variances(self, variances: np.ndarray) -> np.ndarray:
        """From those of its residuals' answers, float64[n, m]: float64[m, n_cells or 1]."""
        return stated_errors(variances.T @ self.factors)


def _write_cells(
    plan: AreaDesign,
    level: int,
    table: int,
    areas: np.ndarray,
    cells_of: Callable[[slice], tuple[np.ndarray, np.ndarray]],
    path: Path,
) -> None:
    """Write a table of some areas of a level: a row a cell, the areas one after another.

    areas: by their numbers. cells_of: values and standard errors of some of them, a row an area
    """
    tables = plan.workload.tables
    matrices = query_matrices(tables)
    impossible = impossible_answers(
        plan.domain,
        tables.attribute_indices(table),
        [matrices[basis] for basis in tables.attribute_basis_index[table] if basis >= 0],
    )
    figures = figures_of_sums(tables, table) if tables.has_amounts[table] else RELEASED

    def columns_of(some: slice) -> list[pa.Array]:
        values, errors = cells_of(some)
        errors = np.ascontiguousarray(np.broadcast_to(errors, values.shape))
        return arrays_of_figures(RELEASED, values.reshape(-1), errors.reshape(-1))

    labels = _labels_of(plan, table)
    _write_rows(plan.workload.tree, level, labels, figures, areas, columns_of, path, impossible)


def _write_means(
    plan: AreaDesign,
    level: int,
    table: int,
    areas: np.ndarray,
    means_of: Callable[[slice], list[np.ndarray]],
    path: Path,
) -> None:
    """Write the means of a table of some areas of a level, as `_write_cells`.

    means_of: the figures `MEANS` of some of the areas, a row an area; NaN where there is no mean
    """

    def columns_of(some: slice) -> list[pa.Array]:
        return [pa.array(column.reshape(-1), from_pandas=True) for column in means_of(some)]

    tables = plan.workload.tables
    labels = labels_of_means(tables, table, _labels_of(plan, table))
    figures = figures_of_means(tables, table)
    _write_rows(plan.workload.tree, level, labels, figures, areas, columns_of, path)


def _labels_of(plan: AreaDesign, table: int) -> list[Labels]:
    """The columns of labels of a table, an attribute after another."""
    tables = plan.workload.tables
    return [
        label_columns(plan.domain.attributes[index], tables.basis_of(table, index))
        for index in tables.attribute_indices(table)
    ]


def _write_rows(
    tree: AreaTree,
    level: int,
    labels: Sequence[Labels],
    figures: Sequence[Column],
    areas: np.ndarray,
    columns_of: Callable[[slice], list[pa.Array]],
    path: Path,
    impossible: np.ndarray | None = None,
) -> None:
    """Write the rows of some areas of a level, the areas one after another.

    columns_of: the figures of some of the areas, in the order of their rows
    impossible: bool, one axis an attribute: the cells of an area that no record can be in
    """
    shape = [len(named[0][1]) for named in labels]
    of_cells = [column for named in labels for column, _ in named]
    has_notes = impossible is not None or tree.empty is not None
    # The areas of one file are all empty, or none is.
    is_empty = len(areas) > 0 and int(areas[0]) >= tree.n_areas
    columns = (*figures, NOTE) if has_notes else figures
    schema = schema_of_cells([*area_columns(tree, level), *of_cells], columns)
    n_cells = int(np.prod(shape, dtype=np.int64))
    codes = np.indices(shape, dtype=np.int32).reshape(len(shape), n_cells)
    step = max(_ROWS_AT_ONCE // n_cells, 1)

    def piece(start: int) -> pa.Table:
        some = slice(start, start + step)
        n_areas = len(areas[some])
        columns: list[Any] = [
            pa.DictionaryArray.from_arrays(np.repeat(indices, n_cells), texts)
            for indices, texts in _texts_of(tree, areas[some], level)
        ]
        for code, named in zip(codes, labels, strict=True):
            tiled = np.tile(code, n_areas)
            columns += texts_at(tiled, named)
        columns += columns_of(some)
        if is_empty:
            columns.append(constant_text(EMPTY_NOTE, n_areas * n_cells))
        elif has_notes:
            of_area = np.zeros(n_cells, bool) if impossible is None else impossible.reshape(-1)
            columns.append(notes_of(np.tile(of_area, n_areas)))
        return pa.table(columns, schema=schema)

    write_rows(path, map(piece, range(0, len(areas), step)))


def area_columns(tree: AreaTree, level: int) -> list[Column]:
    """The columns that say which area of a level a row is of: codes on the way down, and a name."""
    columns = [
        Column(name, "code", f"{name}: the code of the area.", attribute=name)
        for name in tree.levels[1 : level + 1]
    ]
    if level and tree.names is not None:
        name = tree.levels[level]
        meaning = f"{name}: what its codes are called."
        columns.append(Column(f"{name} label", "label", meaning, attribute=name))
    return columns


def _texts_of(tree: AreaTree, areas: np.ndarray, level: int) -> list[tuple[np.ndarray, pa.Array]]:
    """For each level below the top, down to theirs, the codes of areas on the way to them.

    And the names of the areas, if there are names. As positions in a list, int32[n_areas], and the
    list.
    """
    found = []
    names = tree.all_names
    if level and names is not None:
        found.append(_among(names, areas))
    for _ in range(level):
        found.append(_among(tree.all_codes, areas))
        areas = tree.all_parents[areas]
    return found[::-1] if names is None else [*found[:0:-1], *found[:1]]


def _among(texts: pa.Array, areas: np.ndarray) -> tuple[np.ndarray, pa.Array]:
    """The texts of some areas, by their numbers, as positions in a list of distinct ones."""
    first, last = int(areas.min()), int(areas.max())
    encoded = texts.slice(first, last + 1 - first).dictionary_encode()
    return encoded.indices.to_numpy()[areas - first].astype(np.int32), encoded.dictionary


# ---- What was measured in areas, as files have it.


@dataclass(frozen=True, eq=False)
class ReleasedAnswers(AreaAnswers):
    """The answers of a finished release; folder: of its areas."""

    folder: CheckedFolder
    _kept: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def home(self) -> Path:
        return self.folder.home.resolve()

    def numbers(self, part: int, profile: int) -> np.ndarray:
        """From the file of the part's residuals, of which the last is kept."""
        if part not in self._kept:
            self._kept.clear()
            rows = pyarrow.parquet.read_table(
                self.folder / residual_file(part), columns=["measured"]
            )
            self._kept[part] = rows["measured"].to_numpy()
        first = self.parts.bounds(part, 0)[0]
        start, stop = (place - first for place in self.parts.bounds(part, profile))
        return self._kept[part][start:stop]

    def for_workers(self) -> "ReleasedAnswers":
        """The same, as it is sent: it knows the highest areas, and reads the rest where it is."""
        files = [
            entry
            for entry in self.folder.manifest["files"]
            if f"/{_RESIDUALS}/" in f"/{entry['path']}"
        ]
        folder = CheckedFolder(self.home, {"files": files}, self.folder.within)
        found = ReleasedAnswers(self.parts, folder)
        vars(found)["_above"] = self._above
        return found


# ---- Rows of the tables of areas: where those of some areas lie, so that no others are read.


def asked_areas(parts: AreaParts, table: int, areas: slice) -> np.ndarray:
    """Which of some areas are asked for a table, by their numbers: int64[n]."""
    kinds = parts.plan.workload.kinds[areas]
    return areas.start + np.flatnonzero(asked_tables(parts.plan)[kinds, table])


def items_of_areas(
    parts: AreaParts,
    folder: CheckedFolder | Path,
    figures: Sequence[Column] = RELEASED,
    *,
    counts_only: bool = False,
) -> list[Item]:
    """Each table on each level of a folder for which it was asked, with all areas of the level.

    Empty areas come last.

    figures: the columns beside those of labels; counts_only: without tables of amounts
    """
    plan, items = parts.plan, []
    tables = plan.workload.tables
    for level, name in enumerate(plan.workload.tree.levels):
        areas = plan.workload.tree.level_slice(level)
        for table, attributes in enumerate(tables.tables):
            n_areas = len(asked_areas(parts, table, areas))
            if n_areas and not (counts_only and tables.has_amounts[table]):
                n_areas += len(plan.workload.tree.empty_on(level))
                for within in folders_of(plan, table):
                    path = table_folder(plan, level, table, within)
                    has = MEANS if within == MEANS_FOLDER else figures
                    title = "_".join(path.split("/")[1:])
                    items.append(
                        Item(
                            tuple(attributes),
                            f"{title}_means" if within == MEANS_FOLDER else title,
                            n_areas * rows_of_area(plan, table, within),
                            partial(_all_rows, parts, folder, level, table, has, within),
                            level=name,
                            file=path,
                            note="means" if within == MEANS_FOLDER else "",
                        )
                    )
    return items


def rows_of_area(plan: AreaDesign, table: int, within: str = TABLES) -> int:
    """How many rows a table has in an area, or its means."""
    tables = plan.workload.tables
    return n_groups(tables, table) if within == MEANS_FOLDER else int(tables.exact_cells[table])


def _all_rows(
    parts: AreaParts,
    folder: CheckedFolder | Path,
    level: int,
    table: int,
    figures: Sequence[Column],
    within: str,
) -> pa.Table:
    areas = parts.plan.workload.tree.level_slice(level)
    rows = with_empty(
        rows_of_areas(parts, folder, level, table, areas, within),
        rows_of_empty(parts.plan, folder, level, table, within=within),
    )
    assert rows is not None
    check_roles(folder / table_folder(parts.plan, level, table, within), rows.schema, figures)
    return rows


def rows_of_areas(
    parts: AreaParts,
    folder: CheckedFolder | Path,
    level: int,
    table: int,
    areas: slice,
    within: str = TABLES,
) -> pa.Table | None:
    """A table in those areas of a level that are asked for it, one row a cell; None for none.

    Areas stand in a file in the order of their numbers, each with all cells, so that the rows of
    some that follow one another need no search.

    Args:
        folder: Of a release, or of whole counts of one.
        table: Its place in the plan's list of tables.
        areas: That follow one another, by their numbers.
        within: TABLES, or MEANS_FOLDER: its means, one row a group.
    """
    n_cells = rows_of_area(parts.plan, table, within)
    pieces = []
    for part, of_part in enumerate(parts.areas):
        own_level = level - (0 if part == 0 else parts.level)
        if not 0 <= own_level < len(of_part.slices):
            continue
        own = of_part.slices[own_level]
        some = slice(max(own.start, areas.start), min(own.stop, areas.stop))
        if some.start >= some.stop:
            continue
        n_before = len(asked_areas(parts, table, slice(own.start, some.start)))
        n_areas = len(asked_areas(parts, table, some))
        if n_areas:
            path = folder / table_file(parts.plan, level, table, part, within)
            pieces.append(_rows(path, n_before * n_cells, n_areas * n_cells))
    return pa.concat_tables(pieces).unify_dictionaries() if pieces else None


def rows_of_empty(
    plan: AreaDesign,
    folder: CheckedFolder | Path,
    level: int,
    table: int,
    top: int = 0,
    within: str = TABLES,
) -> pa.Table | None:
    """A table in the empty areas of a level that lie in an area, one row a cell; None for none."""
    tree = plan.workload.tree
    areas = tree.empty_on(level)
    wanted = np.isin(areas, tree.empty_on(level, top))
    if not np.any(wanted):
        return None
    rows = pyarrow.parquet.read_table(folder / empty_file(plan, level, table, within))
    n_cells = rows_of_area(plan, table, within)
    return rows.filter(pa.array(np.repeat(wanted, n_cells)))


def with_empty(rows: pa.Table | None, empty: pa.Table | None) -> pa.Table | None:
    """The rows of areas, and behind them those of empty ones; None for neither."""
    if rows is None or empty is None:
        return empty if rows is None else rows
    return pa.concat_tables([rows, empty]).unify_dictionaries()


def _rows(path: Path, start: int, count: int) -> pa.Table:
    """So many rows of a Parquet file from one on; only groups of rows that have some are read."""
    with pyarrow.parquet.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first, last = np.searchsorted(ends, [start, start + count - 1], side="right").tolist()
        rows = file.read_row_groups(range(first, last + 1))
        before = int(ends[first]) - sizes[first]
    return rows.slice(start - before, count)
