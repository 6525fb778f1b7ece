"""Counting in areas of records that an engine groups: codes of areas, of attributes, and how many.

The engine knows no tree: it counts by the codes of areas as they are, together with the attributes
of a table, and its groups are put into their areas here. Memory here: 4 bytes a cell of the
tables, and a piece of rows at a time.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from rpexplore.data.blocks import maximal
from rpexplore.data.counts import Counts
from rpexplore.data.databases.request import STATE, Request, agree
from rpexplore.data.databases.streaming import Inspection, area_codes
from rpexplore.domain.domain import AttributeIndices

N_RECORDS = "n_records"
"""The column of rows that says how many records are alike."""

_NARROW = np.iinfo(np.uint32).max


class GroupTally:
    """Takes rows of groups in pieces, and gives the counts that follow.

    sets: sets of attributes by which the engine groups, none in another, at least one
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        of_domain = [_of_domain(table, request) for table in request.tables]
        self.sets: Sequence[AttributeIndices] = maximal(of_domain) or [()]
        self._tables: dict[AttributeIndices, np.ndarray] = {
            table: np.zeros([request.sizes[index] for index in table], dtype=np.uint32)
            for table in request.tables
        }
        self._n_records = dict.fromkeys(self.sets, 0)

    @cached_property
    def _of_sets(self) -> Mapping[AttributeIndices, Sequence[AttributeIndices]]:
        """The tables that are counted by each set, every one by one."""
        of_sets: dict[AttributeIndices, list[AttributeIndices]] = {each: [] for each in self.sets}
        for table in self._tables:
            wanted = set(_of_domain(table, self._request))
            of_sets[next(each for each in self.sets if wanted.issubset(each))].append(table)
        return of_sets

    def add(self, attributes: AttributeIndices, rows: pa.RecordBatch) -> None:
        """Count more groups of one of the sets; raises `DataError` for what is wrong with them.

        rows: c<index> of the set's attributes, columns of areas, STATE where there is a rule, and
            N_RECORDS
        """
        request, inspection = self._request, Inspection(self._request)
        given = {
            # What is not grouped by is nothing to refuse.
            index: rows.column(f"c{index}").to_numpy()
            if index in attributes
            else np.zeros(rows.num_rows, dtype=np.int8)
            for index in request.attribute_indices
        }
        state = None if request.rule is None else rows.column(STATE).to_numpy()
        codes = inspection.codes(given, state)
        request.refuse(inspection.checks.tolist())
        codes = {**codes, **area_codes(rows, request)}
        n_records = rows.column(N_RECORDS).to_numpy()
        self._n_records[attributes] += int(n_records.sum())
        for table in self._of_sets[attributes]:
            if self._n_records[attributes] > _NARROW:
                self._tables[table] = self._tables[table].astype(np.uint64, copy=False)
            counts = self._tables[table]
            cells = np.ravel_multi_index([codes[index] for index in table], counts.shape)
            np.add.at(counts.reshape(-1), cells, n_records.astype(counts.dtype))

    def counts(self) -> Counts:
        """The counts; raises `DataError` if they are not all of the same records."""
        counts = Counts(self._tables, self._n_records[self.sets[0]])
        # Tables of one set are sums of the same rows.
        has_lost = any(
            cells.sum(dtype=np.int64) != counts.n_records for cells in self._tables.values()
        )
        if has_lost or (len(self.sets) > 1 and not agree(counts)):
            raise self._request.changed_error()
        return counts


def _of_domain(table: AttributeIndices, request: Request) -> AttributeIndices:
    return tuple(index for index in table if index < len(request.domain))
