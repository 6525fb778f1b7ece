"""Counting of records that can be read in batches again, at most m records of a person."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.data.areas import AreaCoder, AreaCuts
from rpexplore.data.coding import (
    Faults,
    Takers,
    as_numbers,
    as_text,
    coders,
    distinct_values,
    of_known_type,
)
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.source import COUNTING, Counts, PersonRule, Source
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError

# ---- Counting of records that can be read in batches as often as is needed: files and frames.


# Of the time of a run with a rule for persons: what looking for them takes.
_PERSONS_SHARE = 0.3


class BatchSource(Source):
    """A source whose records are read in batches.

    The memory that counting needs is stated in `counting`, and in `persons` for a `PersonRule`.
    """

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Batches of the named columns, from the first record on, each with the share read by then.

        Raises `DataError` for a column that is not there once.
        """

    def declared_missing(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Column -> ranges of numbers, ends included, that the records themselves call missing."""
        return {}

    def remarks(self) -> tuple[str, ...]:
        return ()

    @property
    def streaming_note(self) -> str:
        return ""

    @abstractmethod
    def readable(self) -> AbstractContextManager[None]:
        """A block in which what cannot be read is raised as a `DataError`."""

    def count(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        unknown_values: Mapping[str, str] | None = None,
        missing_values: Mapping[str, str] | None = None,
        person_rule: PersonRule | None = None,
        areas: AreaCuts | None = None,
        on_progress: Progress = no_progress,
    ) -> Counts:
        before = self.fingerprint()
        attributes = {index for table in tables for index in table if index < len(domain)}
        faults = Faults(domain, Takers.of(domain, unknown_values, missing_values))
        coding = coders(domain, attributes, self.declared_missing())
        names, sizes = [coder.name for coder in coding.values()], domain.sizes.tolist()
        start, kept, area_coder = 0.0, None, None

        def code(batch: pa.RecordBatch) -> Codes:
            codes = {
                index: faults.codes(index, batch.column(coder.name), coder)
                for index, coder in coding.items()
            }
            return codes if area_coder is None else codes | area_coder.codes(batch)

        with self.readable():
            if areas is not None:
                area_coder = AreaCoder(areas, self.name, self.columns(), first=len(domain))
                names += area_coder.names
                sizes += area_coder.sizes
            if person_rule is not None:
                start = _PERSONS_SHARE
                kept = kept_records(
                    self.batches(person_rule.columns),
                    person_rule,
                    part_of_progress(on_progress, 0.0, start),
                )
            counts = counts_of(
                self._coded(names, code, kept),
                tables,
                sizes,
                on_progress=part_of_progress(on_progress, start, 1.0),
            )
        if self.fingerprint() != before:
            raise self._changed()
        faults.refuse()
        on_progress(COUNTING, 1.0)
        return replace(counts, taken=faults.taken())

    def _coded(
        self,
        names: Sequence[str],
        code: Callable[[pa.RecordBatch], Codes],
        kept: np.ndarray | None,
    ) -> Iterator[tuple[Codes, int, float]]:
        """The codes of each batch, of the kept records alone; others may hold anything."""
        start = 0
        for batch, share in self.batches(names):
            if kept is not None:
                are_kept = kept[start : start + batch.num_rows]
                start += batch.num_rows
                if len(are_kept) < batch.num_rows:
                    raise self._changed()
                batch = batch.filter(pa.array(are_kept))
            yield code(batch), batch.num_rows, share

    def _changed(self) -> DataError:
        return DataError(
            f"The records {self.name!r} changed while they were counted; nothing of these counts "
            "is used. Wait until they are complete, and run again."
        )


# ---- Persons: which records are kept where one person may have only so many (`PersonRule`).
#
# Memory, for each record: 21 bytes while all persons are known by whole numbers, 29 otherwise; with
# an order 8 more, and another 16 (and its texts) where the order is not by numbers.


# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


_PIECE = 1 << 20  # records that are compared at a time
_LARGEST = 10**18  # of the whole numbers that are keys themselves; texts of them are read exactly


def kept_records(
    batches: Iterable[tuple[pa.RecordBatch, float]], rule: PersonRule, on_progress: Progress
) -> np.ndarray:
    """Which records are counted, in the order of the batches: bool[n_records].

    batches: the columns that the rule names, and the share of all records read by then.

    What stands for a person is compared as text, so that 3 and "3" are one. Of the order, numbers
    come first, by size (as 64-bit floating point), then texts by letter, then what is missing; ties
    stay in the order of the records. So which records of a person are kept depends on these alone.

    Raises `DataError` for a record of nobody, and, where the rule refuses them, for more records
    of one person than it allows.
    """
    persons, order = _Persons(rule.column), _Order()
    for batch, share in batches:
        persons.add(batch.column(rule.column))
        if rule.order is not None:
            order.add(batch.column(rule.order))
        on_progress(COUNTING, share)
    keys = persons.keys()
    by_person = np.lexsort([*order.keys(), *keys])  # the last key first, ties as they come
    kept = np.ones(len(by_person), dtype=bool)
    for start in range(rule.most, len(by_person), _PIECE):
        records = by_person[start : start + _PIECE]
        earlier = by_person[start - rule.most :][: len(records)]
        is_beyond = np.all([key[records] == key[earlier] for key in keys], axis=0)
        if rule.excess == "refuse" and np.any(is_beyond):
            raise rule.excess_error()
        kept[records[is_beyond]] = False
    return kept


class _Persons:
    """The person of each record, as one or two numbers that are equal only for one person."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._kind = ""
        self._low: list[np.ndarray] = []
        self._high: list[np.ndarray | None] = []

    def add(self, column: pa.Array) -> None:
        kind = _kind_of(column.type)
        if self._kind not in ("", kind):
            raise DataError(
                f"The column {self._column!r} holds {self._kind} in some files and {kind} in "
                "others, so that one person may be written in two ways; make them alike."
            )
        self._kind = kind
        low, high, missing = person_keys(column)
        if np.any(missing):
            raise DataError(
                f"The column {self._column!r} does not say of every record whose it is; fill it, "
                "or leave these records out of the data."
            )
        self._low.append(low)
        self._high.append(high)

    def keys(self) -> list[np.ndarray]:
        """int64[n_records] each; forgets what it was made from."""
        low, sizes = _concatenate(self._low), [len(part) for part in self._low]
        self._low.clear()
        if all(part is None for part in self._high):
            return [low]
        parts = zip(self._high, sizes, strict=True)
        high = _concatenate([np.zeros(n, np.int64) if part is None else part for part, n in parts])
        self._high.clear()
        return [low, high]


def person_keys(column: pa.Array) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Whose each record is, as two int64[n] that are equal only for one person; which is nobody's.

    The second is None where all persons are known by whole numbers, and 0 for each of these.
    """
    distinct, indices = distinct_values(column)
    low, high, missing = _distinct_keys(of_known_type(distinct))
    is_missing = np.append(missing, True)[indices]
    # What is missing may stand behind the distinct values.
    low = np.append(low, 0)[indices]
    return low, None if high is None else np.append(high, 0)[indices], is_missing


def _kind_of(kind: pa.DataType) -> str:
    """Which ids can be told to be one and the same: whole numbers and their texts, for instance."""
    if pa.types.is_floating(kind):
        return "floating point numbers"
    return "decimal numbers" if pa.types.is_decimal(kind) else "texts or whole numbers"


def _distinct_keys(values: pa.Array) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Two int64[k] for each value, the second 0 (None: all are) for a whole number, and what is
    missing, bool[k]. Other texts are known by 127 bits of their BLAKE2 digest."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_integer(values.type) and not pa.types.is_uint64(values.type):
        numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        if not np.any(numbers <= -_LARGEST) and not np.any(numbers >= _LARGEST):
            return numbers, None, missing
    texts = pc.fill_null(as_text(values), "0")
    whole = pc.match_substring_regex(texts, r"^(0|-?[1-9][0-9]{0,17})$")
    numbers = pc.if_else(whole, texts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    not_whole = texts.filter(pc.invert(whole)).to_pylist()
    if not not_whole:
        return numbers, None, missing
    digests = b"".join(blake2b(text.encode(), digest_size=16).digest() for text in not_whole)
    pairs = np.frombuffer(digests, dtype=np.int64).reshape(-1, 2)
    low, high = numbers.copy(), np.zeros(len(numbers), dtype=np.int64)
    where = ~whole.to_numpy(zero_copy_only=False)
    low[where], high[where] = pairs[:, 0], pairs[:, 1] | 1
    return low, high, missing


class _Order:
    """By what the records of a person are ordered: numbers, then texts, then what is missing."""

    def __init__(self) -> None:
        self._numbers: list[np.ndarray] = []
        # Of each record, among all texts; −1 for a number, −2 for what is missing.
        self._text_indices: list[np.ndarray] = []
        self._texts: list[pa.Array] = []
        self._n_texts = 0

    def add(self, column: pa.Array) -> None:
        distinct, indices = distinct_values(column)
        values = of_known_type(distinct)
        numbers = np.append(as_numbers(values), np.nan)
        text_indices = np.where(np.isnan(numbers), -2, -1)
        if pa.types.is_string(values.type):
            is_text = np.isnan(numbers[:-1]) & values.is_valid().to_numpy(zero_copy_only=False)
            texts = values.filter(pa.array(is_text))
            text_indices[:-1][is_text] = self._n_texts + np.arange(len(texts))
            self._texts.append(texts)
            self._n_texts += len(texts)
        self._numbers.append(numbers[indices])
        self._text_indices.append(text_indices[indices])

    def keys(self) -> list[np.ndarray]:
        """The sort keys, the lesser one first; none without a column."""
        if not self._numbers:
            return []
        numbers, indices = _concatenate(self._numbers), _concatenate(self._text_indices)
        self._numbers.clear()
        self._text_indices.clear()
        if not self._n_texts:
            return [numbers]  # not a number: comes last
        ranks = pc.rank(pa.concat_arrays(self._texts), tiebreaker="dense").to_numpy()
        # At the end, where −2 and −1 point to.
        ranks = np.append(ranks.astype(np.int64), [self._n_texts + 1, 0])
        return [ranks[indices], numbers]


def _concatenate(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
