"""Records coded as counting codes them, for tests of what each value means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rpexplore.data.coding import Faults, Takers, coders
from rpexplore.data.files.source import FileSource
from rpexplore.domain.domain import Domain


@dataclass(frozen=True, eq=False)
class CodedRecords:
    """codes: by attribute index, the index of every record's value."""

    codes: dict[int, np.ndarray]
    n_records: int
    sizes: np.ndarray

    def counts(self, indices: Sequence[int]) -> np.ndarray:
        """The marginal on these attributes, record by record."""
        counted = np.zeros([int(self.sizes[index]) for index in indices], dtype=np.int64)
        if not indices:
            return counted + self.n_records
        np.add.at(counted, tuple(self.codes[index] for index in indices), 1)
        return counted


def read_records(
    path: str | Path,
    domain: Domain,
    indices: Sequence[int],
    *,
    others: Mapping[str, str] | None = None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> CodedRecords:
    """All records of a file or folder in memory: what `FileSource.count` sees batch by batch.

    others: attribute name -> the value that takes what is unknown or missing
    """
    source, coding = FileSource(path), coders(domain, indices, FileSource(path).declared_missing())
    faults = Faults(domain, Takers.of(domain, others, others))
    parts: dict[int, list[np.ndarray]] = {index: [] for index in indices}
    n_records = 0
    with source.readable():
        for batch, share in source.batches([coder.name for coder in coding.values()]):
            for index, coder in coding.items():
                parts[index].append(faults.codes(index, batch.column(coder.name), coder))
            n_records += batch.num_rows
            on_progress(share)
    faults.refuse()
    none = [np.empty(0, dtype=np.uint8)]
    codes = {index: np.concatenate(part or none) for index, part in parts.items()}
    return CodedRecords(codes, n_records, domain.sizes)
