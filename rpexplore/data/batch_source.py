"""Counting of records that can be read in batches as often as is needed: files and frames."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np
import pyarrow as pa

from rpexplore.common.concurrency import Progress, no_progress, part_of_progress
from rpexplore.data.area_coding import AreaCoder, AreaCuts
from rpexplore.data.coding import coders
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.counts import Counts
from rpexplore.data.persons import kept_records
from rpexplore.data.source import COUNTING, PersonRule, Source
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError

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
        person_rule: PersonRule | None = None,
        areas: AreaCuts | None = None,
        on_progress: Progress = no_progress,
    ) -> Counts:
        before = self.fingerprint()
        attributes = {index for table in tables for index in table if index < len(domain)}
        coding = coders(domain, attributes, unknown_values)
        names, sizes = [coder.name for coder in coding.values()], domain.sizes.tolist()
        start, kept, area_coder = 0.0, None, None

        def code(batch: pa.RecordBatch) -> Codes:
            columns = coding.items()
            codes = {index: coder.codes(batch.column(coder.name)) for index, coder in columns}
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
        on_progress(COUNTING, 1.0)
        return counts

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
