"""Counting of records that an engine hands over, coded or as they are: by the counter of files.

For engines whose records may pass through this process. Memory is that of `counting`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.concurrency import Progress
from rpexplore.data.area_coding import AreaCoder
from rpexplore.data.coding import MISSING, UNKNOWN, Coder
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.counts import Counts
from rpexplore.data.databases.request import BEYOND, OF_NOBODY, STATE, Request
from rpexplore.errors import DataError


class Inspection:
    """Sees what is wrong with coded records, batch by batch.

    checks: as `Request.refuse` takes them, of the batches so far
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self.checks = np.zeros(request.n_checks, dtype=np.int64)

    def codes(self, columns: Mapping[int, np.ndarray], state: np.ndarray | None) -> Codes:
        """Category indices as they are counted; 0 for what `checks` tells of.

        Args:
            columns: Codes [n] of every attribute of the request, `UNKNOWN` and `MISSING` among
                them.
            state: What every record's person is for the rule, [n]; None where there is no rule.
        """
        codes = {}
        for position, (index, column) in enumerate(columns.items()):
            if len(column) and column.min() < 0:
                self.checks[2 * position] += np.count_nonzero(column == UNKNOWN)
                self.checks[2 * position + 1] += np.count_nonzero(column == MISSING)
                column = np.maximum(column, 0)
            codes[index] = column.astype(np.min_scalar_type(self._request.sizes[index] - 1))
        if state is not None:
            self.checks[2 * len(columns)] += np.count_nonzero(state == OF_NOBODY)
            self.checks[2 * len(columns) + 1] += np.count_nonzero(state == BEYOND)
        return codes

    def codes_of_areas(self, coder: AreaCoder, areas: np.ndarray) -> Codes:
        """The codes of the areas that records are counted by, 0 for what `checks` tells of.

        areas: as of `AreaCoder.areas`
        """
        if len(areas) and areas.min() < 0:
            refused = np.bincount(-1 - areas[areas < 0], minlength=len(coder.refusals))
            self.checks[-len(refused) :] += refused
            areas = np.maximum(areas, 0)
        return coder.codes_of_areas(areas)


def count_streamed(
    batches: Iterable[pa.RecordBatch], request: Request, on_progress: Progress
) -> Counts:
    """Exact counts of coded records.

    batches: c<index> for every attribute of the request, its `area_columns`, and STATE where there
        is a rule

    Raises `DataError` at the first batch in which something is wrong.
    """

    def inspected() -> Iterator[tuple[Codes, int, float]]:
        for batch in batches:
            inspection = Inspection(request)
            columns = {
                index: batch.column(f"c{index}").to_numpy() for index in request.attribute_indices
            }
            state = None if request.rule is None else batch.column(STATE).to_numpy()
            codes = inspection.codes(columns, state)
            request.refuse(inspection.checks.tolist())
            yield {**codes, **area_codes(batch, request)}, batch.num_rows, 0.0

    return counts_of(inspected(), request.tables, request.sizes, on_progress=on_progress)


def area_codes(batch: pa.RecordBatch, request: Request) -> Codes:
    """The codes of the areas that records are counted by; none where they are counted by none.

    Raises `DataError` for a record that lies in no area.
    """
    return {} if request.area_coder is None else request.area_coder.codes(in_areas(batch, request))


def in_areas(batch: pa.RecordBatch, request: Request) -> pa.RecordBatch:
    """Records as `AreaCoder` takes them, of `area_columns`, of which there may be none."""
    # A batch that is made of no columns has no records; one of which none is chosen keeps them.
    columns = request.area_columns
    return batch.select(list(columns)).rename_columns(list(columns.values()))


def coded(batches: Iterable[pa.RecordBatch], request: Request) -> Iterator[pa.RecordBatch]:
    """Batches as `count_streamed` has them, without STATE.

    batches: v<index> of records as they are, for every attribute of the request, and its
        `area_columns`
    """
    coders = coders_of(request, request.attribute_indices)
    for batch in batches:
        columns: dict[str, Any] = {
            f"c{i}": codes for i, codes in signed_codes(batch, coders).items()
        }
        columns |= {area: batch.column(area) for area in request.area_columns}
        # A batch without a column would have no length.
        yield pa.record_batch(columns or {"any": batch.column(0)})


def coders_of(request: Request, attribute_indices: Sequence[int]) -> dict[int, Coder]:
    return {
        index: Coder(request.domain.attributes[index], request.unknown_codes.get(index))
        for index in attribute_indices
    }


def signed_codes(batch: pa.RecordBatch, coders: Mapping[int, Coder]) -> dict[int, np.ndarray]:
    """The codes of columns v<index>, `UNKNOWN` and `MISSING` among them."""
    with nothing_quoted():
        return {
            index: coder.signed_codes(batch.column(f"v{index}")) for index, coder in coders.items()
        }


@contextmanager
def nothing_quoted() -> Iterator[None]:
    """Raise `DataError` for what Arrow cannot read, which it may quote: errors end in logs."""
    try:
        yield
    except pa.ArrowException:
        raise DataError("A column of the records holds what cannot be read.") from None
