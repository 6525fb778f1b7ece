"""Work on areas in a cluster: coded records are brought together by shares, a task each."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.processes import no_progress
from rpexplore.data.areas import AreaShares, Work
from rpexplore.data.coding import MISSING, UNKNOWN, code_type
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.engines import spark_worker as worker
from rpexplore.data.engines.packing import Layout, words_of
from rpexplore.data.engines.session import Request
from rpexplore.data.source import Counts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import Integers

# A share's coded records go from the tasks that read them to the one that counts them and works on
# the counts. What it makes of these is handed over when it is done. In place of a task that is
# lost, Spark begins another, and takes the rows of one of them: what the other has made is lost
# with it.


SHARE = "share"
"""A column of rows: whose they are, by one of the `Tasks.keys`."""
COLUMNS = "chunk int, width int, places binary, counts binary, share bigint"
_SCHEMA = worker.SCHEMA.append(pa.field(SHARE, pa.int64()))
_OF_SHARES = worker.CHECKS - 1  # the chunk of how many records each share has
_RECORDS = 1 << 12  # in a row: thousands of rows come at a time
_NUMBERS = 1 << 18  # in a row of what was made

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Tasks:
    """The work on the records of areas, as it is sent to the cluster.

    request  what is counted of all records
    work     what is made of a share's counts
    keys     the number by which Spark spreads the rows of all counts, and then those of each share
    """

    request: Request
    layout: Layout
    shares: AreaShares
    work: Work
    keys: Sequence[int]

    def rows_of_part(self, batches: worker.Batches) -> Iterator[pa.RecordBatch]:
        """Counts of a part of the records, in chunks, and its coded records by share."""
        n_records = np.zeros(len(self.shares), dtype=np.int64)

        def by_share(codes: Codes) -> Iterator[pa.RecordBatch]:
            shares = self.shares.of_areas[codes[worker.AREAS]]
            order = np.argsort(shares, kind="stable")
            ends = np.searchsorted(shares[order], np.arange(len(self.shares) + 1)).tolist()
            n_records[:] += np.diff(ends)
            for key, begin, end in zip(self.keys[1:], ends, ends[1:], strict=False):
                for start in range(begin, end, _RECORDS):
                    some = order[start : min(start + _RECORDS, end)]
                    # An attribute after another.
                    packed = b"".join(codes[index][some].tobytes() for index in self._columns)
                    yield _batch(key, chunk=len(some), counts=packed)

        def all_rows() -> Iterator[pa.RecordBatch]:
            yield from worker.counts_of_part(batches, self.request, self.layout, more=by_share)
            yield worker.row_batch(_OF_SHARES, n_records)

        for batch in all_rows():
            yield batch if SHARE in batch.schema.names else self._of_counts(batch)

    def made(self, batches: worker.Batches) -> Iterator[pa.RecordBatch]:
        """Sums of counts, and what is made of each share. batches: rows in the order of SHARE."""
        rows = (row for batch in batches for row in batch.to_pylist())
        for key, of_share in groupby(rows, lambda row: row[SHARE]):
            if key == self.keys[0]:
                counted = pa.RecordBatch.from_pylist(list(of_share), _SCHEMA)
                yield from map(self._of_counts, worker.added_counts([counted]))
            else:
                yield from self._made_of_share(self.keys.index(key) - 1, of_share)

    def _made_of_share(self, number: int, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        share, key = self.shares.shares[number], self.keys[number + 1]
        first, sizes = len(self.request.domain), self.request.domain.sizes.tolist()
        counted = {index for table in share.tables for index in table}
        cuts = {
            index: cut.of_areas()
            for index, cut in enumerate(share.cuts.cuts, start=first)
            if index in counted
        }

        def coded() -> Iterator[tuple[Codes, int, float]]:
            for row in rows:
                if row[worker.CHUNK]:
                    codes = self._unpacked(row)
                    areas = codes[worker.AREAS]
                    codes |= {index: cut[areas] for index, cut in cuts.items()}
                    yield codes, len(areas), 0.0

        sizes += [cut.size for cut in share.cuts.cuts]
        ranges = self.request.ranges
        counts = counts_of(coded(), share.tables, sizes, ranges=ranges, on_progress=no_progress)
        yield _batch(key, chunk=counts.n_records)
        for piece in self.work(number, counts):
            for start in range(0, len(piece), _NUMBERS):
                some = piece[start : start + _NUMBERS]
                width = code_type(int(max(some.max() + 1, -some.min())))
                packed = some.astype(width).tobytes()
                yield _batch(key, width=width.itemsize, counts=packed)

    def _unpacked(self, row: Row) -> dict[int, np.ndarray]:
        codes, start = {}, 0
        for index, kind in self._columns.items():
            codes[index] = np.frombuffer(row[worker.COUNTS], kind, row[worker.CHUNK], start)
            start += codes[index].nbytes
        return codes

    @property
    def _columns(self) -> dict[int, np.dtype]:
        """The packed columns of records, and their types."""
        sizes, indices = self.request.code_sizes, self.request.attribute_indices
        kinds = {index: np.min_scalar_type(sizes[index] - 1) for index in indices}
        return {worker.AREAS: np.dtype(np.int32), **kinds}

    def _of_counts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys = pa.array([self.keys[0]] * len(batch), pa.int64())
        return pa.record_batch(
            [*(batch.column(name) for name in worker.SCHEMA.names), keys], _SCHEMA
        )


def _batch(key: int, **columns: int | bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{SHARE: key, **columns}], _SCHEMA)


def taken(
    rows: Iterable[Row], tasks: Tasks, check: Callable[[Counts], None]
) -> Generator[Iterator[np.ndarray], None, None]:
    """What was made of each share, once, in the order of the shares; each must be taken up.

    rows: of `Tasks.made`, those of a share together
    check: told the counts of all records before, and may refuse them

    Errors are those of `spark_worker.counts_of_chunks`.
    """
    request, groups = tasks.request, _in_order(rows, tasks)
    of_counts = list(next(groups))
    n_records = np.zeros(worker.CHUNK_CELLS, dtype=np.int64)
    for row in of_counts:
        if row[worker.CHUNK] == _OF_SHARES:
            worker.add_row(row, n_records)
    counted = (row for row in of_counts if row[worker.CHUNK] != _OF_SHARES)
    check(worker.counts_of_chunks(counted, request))
    for of_share, expected in zip(groups, n_records.tolist(), strict=False):
        yield _numbers(of_share, expected, request)


def _numbers(rows: Iterator[Row], expected: int, request: Request) -> Iterator[np.ndarray]:
    """The result for a share of so many records."""
    if next(rows)[worker.CHUNK] != expected:
        raise request.changed_error()
    for row in rows:
        if row[worker.WIDTH] is None:  # it begins again
            raise request.changed_error()
        yield np.frombuffer(row[worker.COUNTS], f"i{row[worker.WIDTH]}")


def _in_order(rows: Iterable[Row], tasks: Tasks) -> Generator[Iterator[Row], None, None]:
    """The rows of each key, in the order of the keys; raises `DataError` for any that come twice.

    Spark gives them in this order, as the keys are made; others would wait here.
    """
    numbers = {key: number for number, key in enumerate(tasks.keys)}
    groups = groupby(rows, lambda row: numbers[row[SHARE]])
    waiting: dict[int, list[Row]] = {}
    for wanted in range(len(numbers)):
        while wanted not in waiting:
            number, group = next(groups, (-1, iter(())))
            if number < wanted or number in waiting:
                raise tasks.request.changed_error()
            if number == wanted:
                yield group
                break
            waiting[number] = list(group)
        else:
            yield iter(waiting.pop(wanted))
    if next(groups, None) is not None:
        raise tasks.request.changed_error()


# ---- Codes of values as Spark's SQL makes them, many of them in one whole number.
#
# A value on its way from Spark's rows to Python costs more than what is done with it there, so that
# what is plain is looked up before: texts letter by letter as they stand in the codebook, and whole
# numbers. What is not found so may still be in the codebook, written in another way. `Coder` tells,
# of a second reading: what a value means is said there alone.
#
# Texts of a codebook are part of a statement as hexadecimal digits only.


WHOLE = ("tinyint", "smallint", "int", "bigint")
_TEXT = "string"  # no collation of its own

_MOST_LISTED = 32  # Spark compares one after the other; with more, Arrow and its lookup are faster
# Attributes whose code together stays below the 8,000 bytes of a method that Java compiles. Spark
# makes one method of an operator, unless one of its expressions has no code, as those on arrays.
_MOST_IN_A_METHOD = 20


def layout_of(kinds: Mapping[str, str], request: Request, unlisted: Collection[int]) -> Layout:
    """Which attributes are looked up by Spark, and which values go to the workers as they are.

    Args:
        kinds: Spark's type of each column.
        unlisted: Attributes known to hold other values than those that are looked up.
    """
    listed = [
        index
        for index in request.attribute_indices
        if index not in unlisted
        and _lookup(request.domain.attributes[index], kinds, code_bit=0) is not None
    ]
    unlisted = [index for index in request.attribute_indices if index not in listed]
    words = words_of(request, listed) if listed else ()
    return Layout(tuple(map(dict, words)), tuple(unlisted))


def word_expressions(kinds: Mapping[str, str], request: Request, layout: Layout) -> list[str]:
    """Expressions w0, w1, … : sums of codes, each multiplied by the power of two that it is at."""
    expressions = []
    for position, word in enumerate(layout.words):
        terms, column = [], ""
        for name, bit in word.items():
            attribute = request.domain.attributes[int(name[1:])]
            column = quoted(attribute.name)
            code = _lookup(attribute, kinds, bit)
            unlisted = f"IF({column} IS NULL, {MISSING << bit}L, {UNKNOWN << bit}L)"
            terms.append(f"coalesce({code}, {unlisted})")
        if sum(map(len, layout.words)) > _MOST_IN_A_METHOD:
            # 0, and Spark cannot know that.
            terms.append(f"IF(hash({column}) = 0, size(transform(array({column}), x -> x)) - 1, 0)")
        expressions.append(f"{' + '.join(terms)} AS w{position}")
    return expressions


def _lookup(attribute: Attribute, kinds: Mapping[str, str], code_bit: int) -> str | None:
    """The code of a value, shifted to this bit; None for a column that Spark cannot look up."""
    values, kind = attribute.values, kinds[attribute.name]
    column = quoted(attribute.name)
    if isinstance(values, Integers):
        if kind not in WHOLE or values.codes_of_texts:
            return None
        steps = f"(CAST({column} AS BIGINT) - {values.minimum}L)"
        if values.step > 1:
            steps = f"({steps} DIV {values.step}L)"
        return (
            f"IF({column} BETWEEN {values.minimum}L AND {values.maximum}L, "
            f"shiftleft({steps}, {code_bit}), NULL)"
        )
    if not isinstance(values, Categories) or len(values.readings) > _MOST_LISTED:
        return None
    if kind == _TEXT:
        key = f"CAST({column} AS BINARY)"  # of two texts that a collation takes for one
        # As listed, too: a text in another form than the compared one would be read once more.
        texts = {**values.readings, **values.texts}
        keys = {f"X'{text.encode().hex()}'": code for text, code in texts.items()}
    elif kind in WHOLE:
        key = f"CAST({column} AS BIGINT)"
        keys = {f"{text}L": code for text, code in values.readings.items() if _is_whole(text)}
    else:
        return None
    entries = ", ".join(f"{text}, {code << code_bit}L" for text, code in keys.items())
    return f"try_element_at(map({entries}), {key})" if keys else None


def _is_whole(text: str) -> bool:
    """Whether a text is what a whole number of 64 bits becomes as a text, the smallest left out."""
    try:
        number = int(text)
    except ValueError:
        return False
    return str(number) == text and abs(number) < 2**63


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
