"""Rows of the tables of areas: where those of some areas lie, so that no others are read."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.domain.result_schema import RELEASED, Column
from rpexplore.releases.areas.area_files import asked_tables, table_file, table_folder
from rpexplore.releases.areas.area_parts import AreaParts
from rpexplore.releases.items import Item
from rpexplore.releases.stored_tables import check_roles


def asked_areas(parts: AreaParts, table: int, areas: slice) -> np.ndarray:
    """Which of some areas are asked for a table, by their numbers: int64[n]."""
    kinds = parts.plan.workload.kinds[areas]
    return areas.start + np.flatnonzero(asked_tables(parts.plan)[kinds, table])


def items_of_areas(
    parts: AreaParts, folder: Path, figures: Sequence[Column] = RELEASED
) -> list[Item]:
    """Each table on each level of a folder for which it was asked, with all areas of the level.

    figures: the columns beside those of labels
    """
    plan, items = parts.plan, []
    tables = plan.workload.tables
    for level, name in enumerate(plan.workload.tree.levels):
        areas = plan.workload.tree.level_slice(level)
        for table, attributes in enumerate(tables.tables):
            n_areas = len(asked_areas(parts, table, areas))
            if n_areas:
                path = table_folder(plan, level, table)
                items.append(
                    Item(
                        tuple(attributes),
                        "_".join(path.split("/")[1:]),
                        n_areas * int(tables.exact_cells[table]),
                        partial(_all_rows, parts, folder, level, table, figures),
                        level=name,
                        file=path,
                    )
                )
    return items


def _all_rows(
    parts: AreaParts, folder: Path, level: int, table: int, figures: Sequence[Column]
) -> pa.Table:
    areas = parts.plan.workload.tree.level_slice(level)
    rows = rows_of_areas(parts, folder, level, table, areas)
    assert rows is not None
    check_roles(folder / table_folder(parts.plan, level, table), rows.schema, figures)
    return rows


def rows_of_areas(
    parts: AreaParts, folder: Path, level: int, table: int, areas: slice
) -> pa.Table | None:
    """A table in those areas of a level that are asked for it, one row a cell; None for none.

    Areas stand in a file in the order of their numbers, each with all cells, so that the rows of
    some that follow one another need no search.

    Args:
        folder: Of a release, or of whole counts of one.
        table: Its place in the plan's list of tables.
        areas: That follow one another, by their numbers.
    """
    n_cells = int(parts.plan.workload.tables.exact_cells[table])
    pieces = []
    for part, own in _parts_with(parts, level):
        within = slice(max(own.start, areas.start), min(own.stop, areas.stop))
        if within.start >= within.stop:
            continue
        n_before = len(asked_areas(parts, table, slice(own.start, within.start)))
        n_areas = len(asked_areas(parts, table, within))
        if n_areas:
            path = folder / table_file(parts.plan, level, table, part)
            pieces.append(_rows(path, n_before * n_cells, n_areas * n_cells))
    return pa.concat_tables(pieces).unify_dictionaries() if pieces else None


def _parts_with(parts: AreaParts, level: int) -> Iterator[tuple[int, slice]]:
    """The parts that have areas of a level, and these areas."""
    for part, areas in enumerate(parts.areas):
        own_level = level - (0 if part == 0 else parts.level)
        if 0 <= own_level < len(areas.slices):
            yield part, areas.slices[own_level]


def _rows(path: Path, start: int, count: int) -> pa.Table:
    """So many rows of a Parquet file from one on; only groups of rows that have some are read."""
    with pyarrow.parquet.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first, last = np.searchsorted(ends, [start, start + count - 1], side="right").tolist()
        rows = file.read_row_groups(range(first, last + 1))
        before = int(ends[first]) - sizes[first]
    return rows.slice(start - before, count)
