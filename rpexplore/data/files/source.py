"""The records of a file, or of a folder of files of one kind; a path as a source of records."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from rpexplore.common.formatting import text_of_path
from rpexplore.data.coding import Coder, coders
from rpexplore.data.counts import Counts
from rpexplore.data.files.batches import batches, columns_of, readable
from rpexplore.data.files.counting import Codes, counts_of
from rpexplore.data.files.listing import record_files
from rpexplore.data.files.persons import kept_records
from rpexplore.data.source import CountProgress, Fingerprint, PersonRule, Source
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError

# Of the time of a run with a rule for persons: what looking for them takes.
_PERSONS_SHARE = 0.3


@dataclass(frozen=True)
class FileSource:
    """The records of a .csv or .parquet file, or of a folder as `record_files` takes it.

    The memory that counting needs is stated in `counting`, and in `persons` for a `PersonRule`.
    """

    path: Path

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "path", Path(path))

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def home(self) -> Path | None:
        return self.path.resolve().parent

    def dataset(self, folder: Path) -> str:
        """The path as seen from the folder, where it lies inside; else the whole path."""
        path = self.path.resolve()
        return text_of_path(path.relative_to(folder) if path.is_relative_to(folder) else path)

    def fingerprint(self) -> Fingerprint:
        """Size and last change of all files, and a digest of their names, sizes and times.

        Raises `DataError` if there are none, or if a folder changes while it is looked at.
        """
        with readable(self.path):
            if not self.path.exists():
                raise DataError(f"There are no records at {str(self.path)!r}; check the path.")
            seen, again = self._files(), self._files()
        if seen != again:
            raise DataError(
                f"The records {str(self.path)!r} change while they are looked at; wait until they "
                "are complete."
            )
        latest = max(changed for _, _, changed, _, _ in seen)
        modified = datetime.fromtimestamp(latest / 1e9, UTC).isoformat(timespec="seconds")
        digest = hashlib.sha256(json.dumps(seen).encode()).hexdigest()
        return Fingerprint(sum(size for _, size, _, _, _ in seen), modified, digest)

    def _files(self) -> list[tuple[str, int, int, int, int]]:
        """Name, bytes, times of contents and of any change in nanoseconds, and place on the disk
        of every file."""
        found = []
        for file in record_files(self.path):
            stat = file.path.stat()
            name = text_of_path(file.path.relative_to(self.path))
            # The time of a change cannot be set back as that of the contents can.
            found.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
        return found

    def columns(self) -> tuple[str, ...]:
        """Those of the first file, then the keys of the folders."""
        with readable(self.path):
            first = record_files(self.path)[0]
            return (*columns_of(first), *first.keys)

    def count(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        unknown_values: Mapping[str, str] | None = None,
        person_rule: PersonRule | None = None,
        on_progress: CountProgress = lambda share: None,
    ) -> Counts:
        coding = coders(
            domain, sorted({place for table in tables for place in table}), unknown_values
        )
        before = self.fingerprint()
        begun = 0.0 if person_rule is None else _PERSONS_SHARE
        with readable(self.path):
            kept = None if person_rule is None else self._kept(person_rule, on_progress)
            counts = counts_of(
                self._coded(coding, kept),
                tables,
                domain.sizes.tolist(),
                on_progress=lambda share: on_progress(begun + (1 - begun) * share),
            )
        if self.fingerprint() != before:
            raise _changed(self.path)
        on_progress(1.0)
        return counts

    def _kept(self, rule: PersonRule, on_progress: CountProgress) -> np.ndarray:
        named = [rule.column] if rule.order in (None, rule.column) else [rule.column, rule.order]
        return kept_records(
            batches(self.path, named), rule, lambda share: on_progress(_PERSONS_SHARE * share)
        )

    def _coded(
        self, coding: Mapping[int, Coder], kept: np.ndarray | None
    ) -> Iterator[tuple[Codes, int, float]]:
        """The codes of each batch, of the kept records alone; others may hold anything."""
        start = 0
        for batch, share in batches(self.path, [coder.name for coder in coding.values()]):
            if kept is not None:
                these = kept[start : start + batch.num_rows]
                start += batch.num_rows
                if len(these) < batch.num_rows:
                    raise _changed(self.path)
                if not np.all(these):
                    batch = batch.filter(pa.array(these))
            codes = {
                place: coder.codes(batch.column(coder.name)) for place, coder in coding.items()
            }
            yield codes, batch.num_rows, share


def _changed(path: Path) -> DataError:
    return DataError(
        f"The records {str(path)!r} changed while they were counted; nothing of these counts is "
        "used. Wait until they are complete, and run again."
    )


AnySource = str | Path | Source


def source_of(data: AnySource) -> Source:
    """A source as it is; a path as the file or folder there."""
    return FileSource(data) if isinstance(data, (str, Path)) else data
