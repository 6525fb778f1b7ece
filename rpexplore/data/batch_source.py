"""Counting of records that can be read in batches as often as is needed: files and frames."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from rpexplore.data.coding import Coder, coders
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.counts import Counts
from rpexplore.data.persons import kept_records
from rpexplore.data.source import CountProgress, PersonRule
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError

Batches = Callable[[Sequence[str]], Iterator[tuple[pa.RecordBatch, float]]]
"""Batches of the named columns, from the first record on, and the share of all that has come."""

# Of the time of a run with a rule for persons: what looking for them takes.
_PERSONS_SHARE = 0.3


def count_batches(
    batches: Batches,
    name: str,
    domain: Domain,
    tables: Sequence[Sequence[int]],
    unknown_values: Mapping[str, str] | None,
    person_rule: PersonRule | None,
    on_progress: CountProgress,
) -> Counts:
    """Exact counts, as `Source.count`, of records that come in batches.

    The memory that this needs is stated in `counting`, and in `persons` for a `PersonRule`. name:
    what errors call the records.
    """
    attributes = sorted({attribute for table in tables for attribute in table})
    coding = coders(domain, attributes, unknown_values)
    before, kept = 0.0, None
    if person_rule is not None:
        before = _PERSONS_SHARE
        kept = kept_records(
            batches(_columns_of(person_rule)),
            person_rule,
            lambda share: on_progress(_PERSONS_SHARE * share),
        )
    return counts_of(
        _coded(batches, coding, kept, name),
        tables,
        domain.sizes.tolist(),
        on_progress=lambda share: on_progress(before + (1 - before) * share),
    )


def changed(name: str) -> DataError:
    """What is raised for records that were not the same all the while."""
    return DataError(
        f"The records {name!r} changed while they were counted; nothing of these counts is used. "
        "Wait until they are complete, and run again."
    )


def _columns_of(rule: PersonRule) -> list[str]:
    return [rule.column] if rule.order in (None, rule.column) else [rule.column, rule.order]


def _coded(
    batches: Batches, coding: Mapping[int, Coder], kept: np.ndarray | None, name: str
) -> Iterator[tuple[Codes, int, float]]:
    """The codes of each batch, of the kept records alone; others may hold anything."""
    start = 0
    for batch, share in batches([coder.name for coder in coding.values()]):
        if kept is not None:
            are_kept = kept[start : start + batch.num_rows]
            start += batch.num_rows
            if len(are_kept) < batch.num_rows:
                raise changed(name)
            if not np.all(are_kept):
                batch = batch.filter(pa.array(are_kept))
        codes = {
            attribute: coder.codes(batch.column(coder.name)) for attribute, coder in coding.items()
        }
        yield codes, batch.num_rows, share
