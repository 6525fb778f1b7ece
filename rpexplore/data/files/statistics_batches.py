"""Records from a file of SPSS, Stata or SAS, by pyreadstat in another process, batch by batch."""

from collections.abc import Callable, Generator, Mapping
from datetime import date
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from rpexplore.common.files import HEAD
from rpexplore.common.numbers import shown_few
from rpexplore.common.processes import written_by_other_process
from rpexplore.common.statistics_files import (
    PACKAGES,
    DictionaryVariable,
    StoredTexts,
    damaged,
    dictionary,
    read_dictionary,
    read_part,
    readable,
    states_encoding,
    statistics_format,
)
from rpexplore.data.coding import Declared
from rpexplore.data.files.statistics_ends import ends_as_stated
from rpexplore.domain.codebook_formats import value_text
from rpexplore.errors import DataError

_BATCH_VALUES = 1 << 20  # of all columns together; each is a Python object while it is read
_LEAST_ROWS, _MOST_ROWS = 1 << 14, 1 << 18  # of a batch
_SHARE = b"share"
_LETTERS = "abcdefghijklmnopqrstuvwxyz_"  # of extended missing values
_MILLISECONDS = {"day": 86_400_000, "day in s": 1000, "s": 1000, "ms": 1}  # of a unit of dates
_PER_YEAR = {"month": 12, "quarter": 4}
_STATED = slice(80, 84)  # bytes of a file of SPSS: how many records it states


def statistics_variables(
    path: Path, name: str, encoding: str | None = None
) -> tuple[DictionaryVariable, ...]:
    """The variables of the file, which errors call so; looks at no record.

    encoding: as of `dictionary`
    """
    return dictionary(path, _format(path), f"The file {name!r}", DataError, encoding)


def encoding_remarks(files: Mapping[str, Path], encoding: str | None) -> tuple[str, ...]:
    """That files state the encoding of their texts, and are read in one that was named.

    files: by how errors call them; encoding: None where none was named
    """
    if encoding is None:
        return ()
    stating = [
        name
        for name, path in files.items()
        if states_encoding(path, _format(path), f"The file {name!r}", DataError)
    ]
    if not stating:
        return ()
    return (
        f"The encoding of texts is stated in {shown_few(stating)} itself; they are read as "
        f"{encoding}, as is named (--encoding), whatever is stated.",
    )


def statistics_batches(
    path: Path, name: str, header: list[str], names: list[str], encoding: str | None = None
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    """Batches of the named columns, each with the share of the file read so far.

    Numbers come as numbers, user-defined missing values as they are, extended ones (.a) of columns
    that have labels for some as texts; dates as 2026-11-24. What is missing or blank is null. Times
    are refused by name, as in other sources.

    name: by which errors call the file; header: the names of all columns; encoding: as of
    `dictionary`
    """
    form, called = _format(path), f"The file {name!r}"
    columns = names or header[:1]
    rows = min(max(_BATCH_VALUES // len(columns), _LEAST_ROWS), _MOST_ROWS)
    task = (str(path), form, called, columns, rows, encoding)
    ended = damaged(form, called, DataError)
    with written_by_other_process(_write_batches, *task, ended=ended) as output:
        try:
            with pa.ipc.open_stream(output) as reader:
                for field in reader.schema:
                    if pa.types.is_duration(field.type):
                        raise DataError(
                            f"The column {field.name!r} of {name!r} holds times, or dates that are "
                            "counted otherwise than by days, months or quarters (such as weeks, or "
                            "with leap seconds), which cannot be counted; make it a text, a number "
                            "or a date for each record."
                        )
                while True:
                    batch, said = reader.read_next_batch_with_custom_metadata()
                    yield batch, float(said[_SHARE])
        except StopIteration:
            pass
        except (pa.ArrowException, OSError):  # nothing, or not all of it: the process ended
            raise ended from None


def declared_by(variable: DictionaryVariable, package: str) -> Declared | None:
    """What the dictionary declares to stand for no answer, as the batches have it.

    Of numbers also which of them may be rounded: that is not told by the type that they have here.
    """
    if variable.kind == "text":
        texts = tuple(str(first).rstrip() for first, last in variable.missing if first == last)
        return Declared(texts=texts) if texts else None
    texts = ()
    if _has_letters(variable):  # then those without a label are read as texts, too
        texts = tuple(value_text(letter, is_text=False, package=package) for letter in _LETTERS)
    ranges = variable.missing
    if variable.dates is not None and ranges:  # which Stata, with its months, has none of
        first_day, unit = variable.dates
        per_day, start = 86_400_000 / _MILLISECONDS[unit], date.fromisoformat(first_day).toordinal()
        ranges = [[float(np.floor(end / per_day)) + start for end in one] for one in ranges]
        ranges = tuple((low, high) for low, high in ranges)
    if variable.dates is not None:
        return Declared(ranges, texts, are_days=True) if ranges or texts else None
    return Declared(ranges, texts, exact_below=variable.exact_below)


def _format(path: Path) -> str:
    with path.open("rb") as file:
        form = statistics_format(file.read(HEAD), path.name)
    assert form is not None  # by its ending at least
    return form


# ---- in the other process


def _write_batches(
    output: IO[bytes],
    path: str,
    form: str,
    name: str,
    columns: list[str],
    rows: int,
    encoding: str | None,
) -> None:
    with readable(form, name, DataError), open(path, "rb") as file:
        size = max(file.seek(0, 2), 1)
        dictionary_variables, said, texts = read_dictionary(
            file, form, Path(path), name, DataError, encoding
        )
        if not ends_as_stated(file, form, sum(said.variable_storage_width.values())):
            raise damaged(form, name, DataError)
        stored = {
            variable.name: (variable, name)
            for variable, name in zip(dictionary_variables, said.column_names, strict=True)
        }
        taken, names = zip(*(stored[column] for column in columns), strict=True)
        options: dict[str, Any] = {**texts.options, "usecols": list(names), "row_limit": rows}
        schema = pa.schema([(variable.name, _type(variable)) for variable in taken])
        with pa.ipc.new_stream(output, schema) as writer:
            start, n_read = 0, rows
            whole: Any = _ToTheEnd(file) if form in ("sav", "zsav") else file
            while n_read == rows:
                part, _ = read_part(whole, form, row_offset=start, **options)
                n_read = len(part)
                start += n_read
                arrays = [
                    _array(
                        _decoded(part[name], texts) if one.kind == "text" else part[name],
                        one,
                        PACKAGES[form],
                    )
                    for name, one in zip(names, taken, strict=True)
                ]
                batch = pa.record_batch(arrays, schema=schema)
                share = start / max(said.number_rows, 1) if said.number_rows else file.tell() / size
                writer.write_batch(batch, {_SHARE: str(min(share, 1.0))})
        if said.number_rows not in (None, -1, start):
            raise damaged(form, name, DataError)


class _ToTheEnd:
    """An open file of SPSS that does not state how many records it has (-1 in its header).

    Its reader then reads them all. By what is stated it would pass over records behind these.
    """

    read: Callable[[int], bytes]

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.read, self.tell = file, self._read_head, file.tell

    def seek(self, offset: int, whence: int = 0) -> int:
        self.read = self._read_head
        return self._file.seek(offset, whence)

    def _read_head(self, size: int = -1) -> bytes:
        start = self._file.tell()
        content = self._file.read(size)
        if start >= _STATED.stop:
            self.read = self._file.read  # as fast as the file: some readers take a record at a time
            return content
        head = bytearray(start) + content
        head[_STATED] = b"\xff" * len(head[_STATED])
        return bytes(head[start:])


def _type(variable: DictionaryVariable) -> pa.DataType:
    if variable.kind == "times":
        return pa.duration("s")  # which is refused
    is_number = variable.kind not in ("text", "dates") and not _has_letters(variable)
    if not is_number:
        return pa.string()
    return pa.float32() if variable.is_single else pa.float64()


def _has_letters(variable: DictionaryVariable) -> bool:
    """Whether some extended missing values have labels."""
    return variable.kind != "text" and any(isinstance(value, str) for value in variable.labels)


def _decoded(column: Any, stored: StoredTexts) -> Any:
    """A column of texts as they were meant."""
    texts = {text: stored.read(text) for text in column.unique()} if stored.options else {}
    if all(text is decoded for text, decoded in texts.items()):
        return column
    return pd.Series([texts[text] for text in column], dtype=object)


def _array(column: Any, variable: DictionaryVariable, package: str) -> pa.Array:
    if variable.kind == "times":
        return pa.nulls(len(column), _type(variable))
    if variable.kind == "text":
        return pa.array(column.replace("", None), pa.string(), from_pandas=True)
    if _has_letters(variable):
        texts = {
            value: None if pd.isna(value) else _text_of(value, variable, package)
            for value in column.unique()
        }
        return pa.array([texts.get(value) for value in column], pa.string())
    # Letters of a column whose dictionary has none, too, are what is missing.
    numbers = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    if variable.dates is None:
        return pa.array(numbers, _type(variable), from_pandas=True)
    return pa.array(_dates(numbers, *variable.dates), pa.string())


def _text_of(value: Any, variable: DictionaryVariable, package: str) -> str | None:
    if variable.dates is not None and not isinstance(value, str):
        return _dates(np.array([value], dtype=np.float64), *variable.dates)[0]
    if variable.is_single and not isinstance(value, str):
        value = float(str(np.float32(value)))  # 0.7, not the nearest number of 32 bits to it
    return value_text(value, is_text=False, package=package)


def _dates(numbers: np.ndarray, first_day: str, unit: str) -> list[str | None]:
    """As 2026-11-24, or 2026-11-24 13:30:00; texts of numbers where no calendar goes.

    Months and quarters as 2026-11 and 2026-Q4.
    """
    if unit in _PER_YEAR:
        year = int(first_day[:4])
        return [_period(number, year, _PER_YEAR[unit]) for number in numbers.tolist()]
    factor = _MILLISECONDS[unit]
    shown = "D" if unit.startswith("day") else "s"
    texts = []
    for number in numbers:
        if not np.isfinite(number):
            texts.append(None)
        elif abs(number * factor) > 2.5e14:  # some 8,000 years
            texts.append(repr(float(number)))
        else:
            moment = np.datetime64(first_day, "ms") + np.timedelta64(round(number * factor), "ms")
            texts.append(str(moment.astype(f"datetime64[{shown}]")).replace("T", " "))
    return texts


def _period(number: float, first_year: int, per_year: int) -> str | None:
    """The month or quarter that is so many after the first one of a year."""
    if not np.isfinite(number):
        return None
    years, place = divmod(number, per_year)
    if not number.is_integer() or not 1 <= first_year + years <= 9999:
        return repr(number)
    year = f"{int(first_year + years):04}"
    return f"{year}-{int(place) + 1:02}" if per_year == 12 else f"{year}-Q{int(place) + 1}"
