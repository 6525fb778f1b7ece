"""Area file: the areas of a tree as people have them, CSV or Parquet; see `AreaTree.from_file`."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.file_kinds import has_lists
from rpexplore.common.files import MOST_BYTES, file_bytes
from rpexplore.common.numbers import shown
from rpexplore.common.text import data_size, joined
from rpexplore.domain.area_levels import RowName, names_of_levels, refuse_deep, text_column
from rpexplore.domain.area_tree import MAX_AREAS, AreaTree
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa

CODE, PARENT, NAME, EMPTY = "code", "parent", "name", "empty"
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0", "")  # in the column of empty areas
OF_NAMES = "_name"  # behind the name of a level: the column of its areas' names


def read_area_file(
    path: str | Path,
    *,
    levels: Sequence[str] = (),
    separator: str | None = None,
    lengths: Sequence[int] = (),
) -> AreaTree:
    """The tree of a file, as `AreaTree.from_file` says."""
    path = Path(path)
    # The content has no name here: it may go when the columns are read.
    columns = columns_of_file(
        file_bytes(path, f"The file of areas {str(path)!r}", DomainError), path.name
    )
    return _tree_of_columns(*columns, path.name, levels, separator, lengths)


def tree_of_file(
    content: bytes,
    filename: str,
    *,
    levels: Sequence[str] = (),
    separator: str | None = None,
    lengths: Sequence[int] = (),
) -> AreaTree:
    """The tree of what a file holds."""
    columns = columns_of_file(content, filename)
    return _tree_of_columns(*columns, filename, levels, separator, lengths)


def _tree_of_columns(
    table: "dict[str, pa.Array]",
    row_name: RowName,
    filename: str,
    levels: Sequence[str],
    separator: str | None,
    lengths: Sequence[int],
) -> AreaTree:
    """The tree of the columns of a file, some of which are taken out of `table`."""
    empty = None if EMPTY in levels else _marks(table, row_name, filename)
    if separator is not None and lengths:
        raise DomainError("Give the separator of whole codes or the lengths of their parts.")
    if separator is not None or lengths:
        return _of_whole_codes(table, levels, separator, list(lengths), row_name, filename, empty)
    if CODE in table and PARENT in table:
        columns = [table[CODE], table[PARENT], table.get(NAME)]
        return AreaTree.from_parent_columns(*columns, levels=levels, empty=empty, row_name=row_name)
    # One column for each level.
    of_names = {f"{level}{OF_NAMES}": level for level in levels or table}
    levels = levels or [column for column in table if column not in of_names]
    for level in levels:
        if level not in table:
            raise DomainError(
                f"{filename} has no column {level!r} for a level; it has {joined(list(table))}."
            )
    names = {level: table[column] for column, level in of_names.items() if column in table}
    return AreaTree.from_columns(
        {level: table[level] for level in levels}, names, empty=empty, row_name=row_name
    )


def _marks(table: "dict[str, pa.Array]", row_name: RowName, filename: str) -> "np.ndarray | None":
    """Which rows are of empty areas, by the column that says so, which is taken out of `table`.

    None where there is none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if EMPTY not in table:
        return None
    texts = pc.utf8_lower(
        pc.utf8_trim_whitespace(text_column(f"values of the column {EMPTY!r}", table.pop(EMPTY)))
    )
    unclear = ~pc.is_in(texts, pa.array([*_YES, *_NO])).to_numpy(zero_copy_only=False)
    if np.any(unclear):
        row = int(np.argmax(unclear))
        raise DomainError(
            f"{row_name(row + 1)} has {shown(texts[row].as_py())!r} in the column {EMPTY}, which "
            "says of areas that are publicly known to have nobody yes, and of others no or "
            f"nothing; to have a level of that name in {filename}, name the levels."
        )
    return pc.is_in(texts, pa.array(_YES)).to_numpy(zero_copy_only=False)


def columns_of_file(content: bytes, filename: str) -> "tuple[dict[str, pa.Array], RowName]":
    """The columns of a CSV or Parquet file by their names, and what its rows are called."""
    if filename.lower().endswith(".parquet"):
        return _of_parquet(content, filename), f"Row {{:,}} of {filename}".format
    return _of_csv(content, filename), partial(_line, filename)


def _line(filename: str, row: int) -> str:
    """The name of a row of a CSV file; the first line holds the names of the columns."""
    return f"Line {row + 1:,} of {filename}"


# ---- forms


def _of_whole_codes(
    table: "dict[str, pa.Array]",
    levels: Sequence[str],
    separator: str | None,
    lengths: list[int],
    row_name: RowName,
    filename: str,
    empty: "np.ndarray | None",
) -> AreaTree:
    """Of a column of whole codes: an area's code is what those of its parts begin with."""
    column = CODE if CODE in table else next(iter(table))
    codes = text_column(f"codes in the column {column!r}", table.pop(column))
    named = text_column("names of the areas", table[NAME]) if NAME in table else None
    order = _order_of(codes)
    if order is not None:  # one sort, after which most beginnings are in order too
        codes, named = codes.take(order), None if named is None else named.take(order)
        empty = None if empty is None else empty[order.to_numpy()]
        row_name = partial(_sorted_row, row_name, order)
    if separator is not None:
        beginnings = _beginnings_to(codes, separator)
    else:
        beginnings = _beginnings_of(codes, lengths, row_name)
    levels = names_of_levels(levels, len(beginnings), f"The codes in {filename}")
    names = {}
    if named is not None:
        names = dict(zip(levels, _names_where_codes_end(beginnings, named), strict=True))
    return AreaTree.from_columns(
        dict(zip(levels, beginnings, strict=True)), names, empty=empty, row_name=row_name
    )


def _order_of(codes: "pa.Array") -> "pa.Array | None":
    """The rows in the order of their codes; None where they are in it."""
    import pyarrow.compute as pc

    before, behind = codes.slice(0, max(len(codes) - 1, 0)), codes.slice(1)
    if pc.all(pc.less_equal(before, behind)).as_py() is not False:
        return None
    return pc.sort_indices(codes)


def _sorted_row(row_name: RowName, order: "pa.Array", row: int) -> str:
    """The name of a row of what was sorted."""
    return row_name(order[row - 1].as_py() + 1)


def _names_where_codes_end(beginnings: "list[pa.Array]", names: "pa.Array") -> "Iterator[pa.Array]":
    """For each level the names of the rows that end on it, "" for others."""
    import pyarrow.compute as pc

    for here, below in zip_longest(beginnings, beginnings[1:]):
        goes_on = pc.equal(here, "") if below is None else pc.not_equal(below, "")
        yield pc.if_else(pc.or_(goes_on, pc.equal(here, "")), "", names)


def _beginnings_to(codes: "pa.Array", separator: str) -> "list[pa.Array]":
    """The codes up to each separator, "" where they end before."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not separator:
        raise DomainError("The separator of whole codes must be one sign or more.")
    n_separators = pc.max(pc.count_substring(codes, separator)).as_py() or 0
    refuse_deep(n_separators + 1)  # before all beginnings are made, of which each is a code again
    pieces = pc.split_pattern(codes, separator)
    counts = pc.list_value_length(pieces).to_numpy()
    first, flat = np.cumsum(counts) - counts, pieces.flatten()
    beginnings = []
    for number in range(int(np.max(counts, initial=1))):
        goes_on = counts > number
        piece = flat.take(pa.array(first + number, mask=~goes_on))
        if beginnings:
            # An empty part in the middle is a missing code, which is told as one.
            piece = pc.if_else(pc.equal(piece, ""), None, piece)
            piece = pc.binary_join_element_wise(beginnings[-1], piece, separator)
        beginnings.append(pc.fill_null(piece, ""))
    return beginnings


def _beginnings_of(codes: "pa.Array", lengths: list[int], row_name: RowName) -> "list[pa.Array]":
    """The codes up to each part of these lengths, "" where they end before."""
    import pyarrow.compute as pc

    if any(type(length) is not int or length < 1 for length in lengths):
        raise DomainError(f"The lengths of parts of codes must be whole numbers, got {lengths!r}.")
    refuse_deep(len(lengths))
    ends = list(accumulate(lengths))
    n_signs = pc.utf8_length(codes).to_numpy()
    wrong = ~np.isin(n_signs, ends)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise DomainError(
            f"{row_name(row + 1)} has the code {codes[row].as_py()!r} of {n_signs[row]} signs; by "
            f"the lengths of its parts it must have {joined(list(map(str, ends)), ' or ')}."
        )
    deepest = [end for end in ends if end <= int(np.max(n_signs))]
    return [
        codes
        if end == deepest[-1] == int(np.min(n_signs))
        else pc.if_else(n_signs >= end, pc.utf8_slice_codeunits(codes, 0, end), "")
        for end in deepest
    ]


# ---- files


def _of_parquet(content: bytes, filename: str) -> "dict[str, pa.Array]":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(pa.BufferReader(content))
        if has_lists(about):
            raise DomainError(
                f"{filename} has lists in its cells; each column of an area must hold one value a "
                "row."
            )
        # A few bytes may stand for any number of rows.
        n_rows = about.num_rows
        table = pq.read_table(pa.BufferReader(content)) if n_rows <= MAX_AREAS else None
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise DomainError(f"{filename} is no Parquet file, or a damaged one.") from None
    if table is None:
        raise DomainError(
            f"{filename} has {n_rows:,} rows, and a tree can have {MAX_AREAS:,} areas at most; "
            "leave out the lowest level."
        )
    columns = _columns(table, filename)
    del table  # there may be no room for two of all columns
    return {name: columns.pop(name).combine_chunks() for name in list(columns)}


def _of_csv(content: bytes, filename: str) -> "dict[str, pa.Array]":
    """The columns of a CSV file as texts; lines are counted without those within quotes."""
    import pyarrow as pa
    from pyarrow import csv

    unusable: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        unusable.append(row)
        return "skip" if len(unusable) < 2 else "error"

    try:
        if filename.lower().endswith(".gz"):
            packed, content = content, b""
            content = pa.CompressedInputStream(pa.BufferReader(packed), "gzip").read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise DomainError(
                    f"{filename} becomes larger than {data_size(MOST_BYTES)} when it is unpacked; "
                    "save the areas as Parquet, or leave out the lowest level."
                )
        header = _header(content, filename)
        table = csv.read_csv(
            pa.BufferReader(content),
            read_options=csv.ReadOptions(use_threads=False),
            parse_options=csv.ParseOptions(
                delimiter=_delimiter(header),
                ignore_empty_lines=False,
                invalid_row_handler=refuse,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(_names_in(header), pa.string()),
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        if not unusable:
            raise DomainError(
                f"{filename} is no usable CSV file in UTF-8 ({shown(str(error))}); check quotes "
                "and encoding."
            ) from None
        table = None
    if unusable:
        row = unusable[0]
        raise DomainError(
            f"{_line(filename, (row.number or 2) - 1)} has {row.actual_columns} values for "
            f"{row.expected_columns} columns; put texts that hold a comma in quotes."
        )
    assert table is not None
    columns = _columns(table, filename)
    del table  # there may be no room for two of all columns
    return {name: columns.pop(name).combine_chunks() for name in list(columns)}


def _header(text: bytes, filename: str) -> str:
    try:
        return text.partition(b"\n")[0].decode("utf-8-sig").rstrip("\r")
    except UnicodeDecodeError:
        raise DomainError(f"{filename} is not UTF-8 text; save it as UTF-8.") from None


def _delimiter(header: str) -> str:
    return ";" if ";" in header and "," not in header else ","


def _names_in(header: str) -> list[str]:
    import csv

    return next(csv.reader([header], delimiter=_delimiter(header)), [])


def _columns(table: "pa.Table", filename: str) -> "dict[str, pa.ChunkedArray]":
    names = table.column_names
    for name in names:
        if names.count(name) > 1 or not name.strip():
            raise DomainError(
                f"{filename} has {names.count(name)} columns {name!r}; give each column a name of "
                "its own."
            )
    if not names:
        raise DomainError(f"{filename} has no columns; see what forms a file of areas can have.")
    return dict(zip(names, table.columns, strict=True))
