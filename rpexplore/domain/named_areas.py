"""Areas of a tree by name: by their codes, in files of lists to be added up or of known totals.

Files are CSV or Parquet, with the columns of levels from the coarsest on (the lower ones empty for
an area above them), or with one column `code` or of one level, whose codes then must be those of
one area each. The whole is called by the name of the top level.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.common.numbers import shown
from rpexplore.domain.area_file import CODE, columns_of_file
from rpexplore.domain.area_levels import RowName, text_column
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.count_rows import TOTALS
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa

LIST = "list"


def lists_of_areas(
    tree: AreaTree, path: str | Path, content: bytes | None = None
) -> dict[str, list[int]]:
    """List -> the numbers of its areas, of a file with one row an area of a list.

    Its columns are `list`, and those that name the area. Empty areas have their numbers behind
    those of the tree. `DomainError` for what cannot be used.

    content: of the file, where it is not to be read
    """
    areas, names, row_name = _named(tree, path, content, [LIST], "lists of areas")
    lists: dict[str, list[int]] = {}
    for row, (area, name) in enumerate(zip(areas.tolist(), names, strict=True), 1):
        if not name.strip():
            raise DomainError(f"{row_name(row)} has no {LIST}; name the list that the area is in.")
        lists.setdefault(name, []).append(area)
    return lists


def typed_lists(text: str) -> dict[str, list[str | tuple[str, ...]]]:
    """List -> the codes of its areas, of lines such as "harbour: R0301, R03 > R0302".

    An area is named by its own code, or by its codes from the top. `DomainError` for other lines.
    """
    lists: dict[str, list[str | tuple[str, ...]]] = {}
    for line in filter(str.strip, text.splitlines()):
        name, _, typed = (part.strip() for part in line.rpartition(":"))
        codes = [code.strip() for code in typed.split(",") if code.strip()]
        if not name or not codes:
            raise DomainError(
                f"The line {shown(line)!r} must be a name, a colon and codes of areas with commas "
                "between, such as “harbour: R0301, R0302”."
            )
        if name in lists:
            raise DomainError(f"The list {shown(name)!r} stands there twice; make one line of it.")
        lists[name] = [typed_area(code) for code in codes]
    return lists


def typed_area(text: str) -> str | tuple[str, ...]:
    """The codes of an area from the top, typed as "R03 > R0301", or its own code alone."""
    codes = tuple(code.strip() for code in text.split(">"))
    return codes if len(codes) > 1 else text.strip()


@dataclass(frozen=True)
class AreaTotals:
    """Publicly known totals of areas, and the file that states them.

    text    of the file, a CSV
    totals  by the numbers of the areas
    """

    text: str
    totals: Mapping[int, int]

    @classmethod
    def of_file(cls, tree: AreaTree, content: bytes, name: str) -> "AreaTotals":
        """Those of a file; `DomainError` for what cannot be used."""
        totals = totals_of_areas(tree, name, content)
        return cls(utf8_text(content, f"The file {name}", DomainError), totals)

    @property
    def number(self) -> int:
        """How many records all these areas hold."""
        return sum(self.totals.values())


def totals_of_areas(
    tree: AreaTree, path: str | Path, content: bytes | None = None
) -> dict[int, int]:
    """The numbers of areas -> their totals, of a file with one row an area.

    Its columns are `total`, or one that is called `count`, `population` and the like, and those
    that name the area. Empty areas, whose total can be nothing
    but 0, are left out. `DomainError` for what cannot be used.

    content: of the file, where it is not to be read
    """
    areas, texts, row_name = _named(tree, path, content, TOTALS, "known totals")
    totals: dict[int, int] = {}
    for row, (area, text) in enumerate(zip(areas.tolist(), texts, strict=True), 1):
        if not re.fullmatch("[0-9]{1,15}", text.strip()):
            raise DomainError(
                f"{row_name(row)} has the total {shown(text)!r}; write a whole number such as "
                "1250, without separators."
            )
        if area in totals:
            raise DomainError(
                f"{row_name(row)} has a total of the area {_path(tree, area)} once more; keep one."
            )
        totals[area] = int(text)
        if area >= tree.n_areas and totals[area]:
            raise DomainError(
                f"{row_name(row)} has the total {text.strip()} of the area {_path(tree, area)}, "
                "which is stated to be empty; make it 0, or take the mark out of the areas."
            )
    if not totals:
        raise DomainError(f"{Path(path).name} has no rows; give a row for each area's total.")
    return {area: total for area, total in totals.items() if area < tree.n_areas}


def _named(
    tree: AreaTree, path: str | Path, content: bytes | None, called: Sequence[str], noun: str
) -> tuple[np.ndarray, list[str], RowName]:
    """The areas of a file's rows, int64[n], what they have in a column, and names of its rows.

    called: what the column may be called, the first of these that there is
    """
    path = Path(path)
    if content is None:
        content = file_bytes(path, f"The file of {noun} {str(path)!r}", DomainError)
    table, row_name = columns_of_file(content, path.name)
    by_name = {name.strip().lower(): name for name in table}
    column = next((by_name[name] for name in called if name in by_name), called[0])
    levels = [level for level in tree.levels[1:] if level in table and level != column]
    from_top = list(tree.levels[1 : len(levels) + 1])
    by_code = levels if len(levels) == 1 else [CODE]
    if column not in table or (levels != from_top and by_code != levels) or (
        not levels and CODE not in table
    ):  # fmt: skip
        raise DomainError(
            f"{path.name} has the columns {', '.join(table)}; {noun} need the column {column}, and "
            f"the columns {', '.join(tree.levels[1:])} (from the first on, as many as are needed) "
            f"or one column {CODE}."
        )
    texts = text_column(f"values of the column {column!r}", table[column])
    if levels and levels == from_top:
        columns = [text_column(f"codes on the level {level}", table[level]) for level in levels]
        areas = _by_path(tree, columns, row_name)
    else:
        codes = text_column(f"codes in the column {by_code[0]!r}", table[by_code[0]])
        level = tree.levels.index(levels[0]) if levels else None
        remedy = "give a column for each level"
        areas = areas_by_code(tree, codes, lambda row: row_name(row + 1), remedy, level)
    return areas, texts.to_pylist(), row_name


def _by_path(tree: AreaTree, columns: "Sequence[pa.Array]", row_name: RowName) -> np.ndarray:
    """The areas with these codes from below the top, int64[n_rows]."""
    areas = []
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    for row, codes in enumerate(rows, 1):
        given = [code for code in codes if code]
        if not given or any(codes[len(given) :]):
            raise DomainError(
                f"{row_name(row)} has no code on the level {tree.levels[1 + codes.index('')]}; "
                f"give the codes from the coarsest level on, or {tree.levels[0]} for the whole."
            )
        try:
            areas.append(tree.find(given, empty=True))
        except DomainError as error:
            if given != [tree.levels[0]]:
                raise DomainError(f"{row_name(row)}: {error}") from None
            areas.append(0)
    return np.array(areas, dtype=np.int64)


def areas_by_code(
    tree: AreaTree, codes: "pa.Array", row_name: RowName, remedy: str, level: int | None = None
) -> np.ndarray:
    """The areas with these codes on a level, or on any, int64[n_rows]; empty ones as well.

    remedy: for a code of several areas. `DomainError` for one that is not of one area.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    within = slice(1, tree.n_areas) if level is None else tree.level_slice(level)
    numbers = np.arange(within.start, within.stop)
    coded = codes.dictionary_encode()
    searched = tree.codes.slice(within.start, within.stop - within.start)
    if tree.empty is not None:
        empty = np.arange(tree.n_areas, tree.n_all) if level is None else tree.empty_on(level)
        numbers = np.append(numbers, empty)
        searched = tree.all_codes.take(pa.array(numbers))
    entries = pc.fill_null(pc.index_in(searched, value_set=coded.dictionary), -1).to_numpy()
    places = np.flatnonzero(entries >= 0)
    areas = np.zeros(len(coded.dictionary), dtype=np.int64)
    areas[entries[places]] = numbers[places]
    counts = np.bincount(entries[places], minlength=len(areas))
    rows = coded.indices.to_numpy()
    unfit = (counts != 1) & ~((counts == 0) & (np.array(coded.dictionary) == tree.levels[0]))
    if np.any(unfit[rows]):
        row = int(np.argmax(unfit[rows]))
        code, count = codes[row].as_py(), int(counts[rows[row]])
        why = f"no area has it; check it, or write {tree.levels[0]} for the whole"
        if count:
            why = f"{count:,} areas have it; {remedy}"
        raise DomainError(f"{row_name(row)} has the code {shown(code)!r}, but {why}.")
    return areas[rows]


def _path(tree: AreaTree, area: int) -> str:
    return " > ".join(tree.path(area)) or tree.levels[0]
