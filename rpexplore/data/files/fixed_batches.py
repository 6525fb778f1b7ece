"""Records from a text file of lines of one width, maybe compressed, batch by batch.

Positions count signs. A sign is one byte here: files are ASCII, as those of IPUMS are, or in an
encoding that somebody names, of one byte a sign. So a line is cut by its bytes, and whatever would
shift what stands behind it is refused: another width, a tab, a sign of several bytes.
"""

import codecs
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.files import UTF8, is_utf16
from rpexplore.data.files.csv_batches import opened, size_of_text
from rpexplore.domain.record_layout import Place, RecordLayout
from rpexplore.errors import DataError

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

_BLOCK = 1 << 22  # bytes of a file, which are read together
_LOOKED_ON = 1 << 16  # bytes in which the end of a line is looked for that is too long
_WHOLE = "^([+-]?)([0-9]+)$"


def fixed_batches(
    path: Path,
    name: str,
    layout: RecordLayout,
    names: Sequence[str],
    *,
    encoding: str | None = None,
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    """Batches of the named columns, as texts, each with the share of the file read so far.

    Blanks around a text are left out, and nothing but blanks is a missing value. Digits of a column
    with decimals have a point before the last of them, unless they are written with one.

    Args:
        path: Of the file, compressed or not.
        name: By which errors call it.
        layout: Where the columns are.
        names: Of columns that are there once.
        encoding: As Python calls it; None or UTF-8: ASCII.

    Raises:
        DataError: For a line that does not have the width of the layout, or holds a tab or another
            sign that takes more or fewer places than one, with its number and nothing of what it
            holds; for an encoding in which a sign can have several bytes.
    """
    if encoding in (UTF8, "ascii"):
        encoding = None
    if encoding is not None:
        _refuse_long_signs(name, encoding)
    places = layout.by_name
    size, n_read, n_lines = max(size_of_text(path), 1), 0, 0
    with opened(path) as file:
        mark = file.read(len(codecs.BOM_UTF8))
        if is_utf16(mark):
            raise DataError(
                f"The records {name!r} are in UTF-16, and are read in fixed width where each sign "
                "is a byte; save them in ASCII."
            )
        block = b"" if mark == codecs.BOM_UTF8 else mark
        block += _read(file, layout.width + 2 - len(block))
        end = b"\r\n" if block[layout.width :] == b"\r\n" else b"\n"
        stride = layout.width + len(end)
        whole = max(_BLOCK // stride, 1) * stride
        while block := block + _read(file, whole - len(block)):
            n_read += len(block)
            # Of the last line alone the end may be missing.
            is_last = len(block) < whole
            lines = block + end if is_last and not block.endswith(b"\n") else block
            table = _table(name, lines, layout.width, end, n_lines, encoding)
            if table is None:
                more = b"" if is_last else _read(file, _LOOKED_ON)
                raise _line_error(name, lines + more, layout.width, end, n_lines)
            n_lines += len(table)
            try:
                columns = {one: _column(table, places[one], encoding) for one in names}
            except UnicodeError:
                raise DataError(
                    f"The records {name!r} are not all text in the encoding {encoding}; name "
                    "theirs (--encoding)."
                ) from None
            share = min(n_read / size, 1.0)
            if columns:
                yield pa.record_batch(columns), share
            else:  # the number of records is all that is asked for
                yield pa.record_batch({"": pa.nulls(len(table))}), share
            block = b""


def _read(file: BinaryIO, n_bytes: int) -> bytes:
    """So many bytes, or all that are left: one that is unpacked may give fewer at a time."""
    parts = []
    while n_bytes > 0 and (part := file.read(n_bytes)):
        parts.append(part)
        n_bytes -= len(part)
    return b"".join(parts)


def _refuse_long_signs(name: str, encoding: str) -> None:
    """Raise `DataError` for an encoding in which several bytes can be one sign."""
    for first in range(0x20, 0x100):  # UTF-7 and HZ have such beginnings in ASCII
        for second in (0x41, 0x7B, 0x80, 0xA1):
            if len(bytes([first, second]).decode(encoding, "replace")) != 2:
                raise DataError(
                    f"The records {name!r} have columns by position, and in {encoding} a sign can "
                    "have several bytes, so that positions are not clear; save them in an encoding "
                    "of one byte a sign, such as windows-1252."
                )


def _table(
    name: str, lines: bytes, width: int, end: bytes, n_before: int, encoding: str | None
) -> np.ndarray | None:
    """The signs of some whole lines, uint8[n_lines, width + bytes of the line's end].

    None where a line does not fit; raises `DataError` for a sign that is not ASCII, unless an
    encoding is named.

    n_before: lines above these
    """
    stride = width + len(end)
    signs = np.frombuffer(lines, np.uint8)
    if len(lines) % stride == 0:
        table = signs.reshape(-1, stride)
        text = table[:, :width]
        has_ends = bool((table[:, width:] == np.frombuffer(end, np.uint8)).all())
        if has_ends and (text >= 0x20).all():
            beyond = table >= 0x80
            if encoding is None and beyond.any():
                n_line = n_before + int(beyond.any(axis=1).argmax()) + 1
                raise DataError(
                    f"The records {name!r} hold a sign in line {n_line:,} that is not ASCII, which "
                    "may take one place or several; name an encoding of one byte a sign "
                    "(--encoding windows-1252), or save them in ASCII."
                )
            return table
    return None


def _line_error(name: str, lines: bytes, width: int, end: bytes, n_before: int) -> DataError:
    """What is wrong with the first line that does not fit."""
    start, n_line = 0, n_before
    while True:
        n_line += 1
        stop = lines.find(b"\n", start)
        line = lines[start:] if stop < 0 else lines[start:stop]
        plain = line.removesuffix(b"\r")
        if stop >= 0 and len(plain) == width and min(plain) >= 0x20:
            if len(line) + 1 != width + len(end):
                return DataError(
                    f"The records {name!r} end line {n_line:,} unlike the first one (by a carriage "
                    "return and a line feed, or by the latter alone); save them with one kind of "
                    "line ends."
                )
            start = stop + 1
            continue
        if plain and min(plain) < 0x20 and len(plain) <= width:
            return DataError(
                f"The records {name!r} hold a tab or another control character in line "
                f"{n_line:,}, so that it is not clear at which position a column stands; write "
                "blanks in its place."
            )
        n_signs = f"{len(plain):,}" if stop >= 0 else f"more than {width:,}"
        return DataError(
            f"The records {name!r} have {n_signs} characters in line {n_line:,}, and the codebook "
            f"with the positions describes {width:,}; check that the two belong together, and "
            "that the file is complete."
        )


def _column(table: np.ndarray, place: Place, encoding: str | None) -> pa.DictionaryArray:
    """The texts at one place of all lines, by their distinct values."""
    width = place.end - place.start
    cut = np.ascontiguousarray(table[:, place.start : place.end])
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(cut), [None, pa.py_buffer(cut)]
    ).dictionary_encode()
    written = fixed.dictionary
    if encoding is None:
        texts = written.cast(pa.binary()).cast(pa.string())
    else:
        texts = pa.array([text.decode(encoding) for text in written.to_pylist()], pa.string())
    texts = pc.utf8_trim(texts, " ")
    if place.decimals:
        texts = _with_point(texts, place.decimals)
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    # Texts that differ in blanks alone are one now.
    one_each = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(one_each.indices.take(fixed.indices), one_each.dictionary)


def _with_point(texts: pa.Array, decimals: int) -> pa.Array:
    """The texts, with a point before the last decimals of those that are digits alone."""
    sign = pc.replace_substring_regex(texts, f"{_WHOLE}", r"\1")
    digits = pc.replace_substring_regex(texts, f"{_WHOLE}", r"\2")
    digits = pc.utf8_lpad(digits, decimals + 1, "0")
    pointed = pc.binary_join_element_wise(
        sign,
        pc.utf8_slice_codeunits(digits, 0, -decimals),
        ".",
        pc.utf8_slice_codeunits(digits, -decimals),
        "",
    )
    return pc.if_else(pc.match_substring_regex(texts, _WHOLE), pointed, texts)
