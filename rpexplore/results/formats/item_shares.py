"""Shares of the figures of exported tables, in columns of their own beside the figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.domain.readings import are_publishable_as_estimated
from rpexplore.domain.result_schema import Column
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.reconstruction import sums_of
from rpexplore.releases.items import Item, Marginal, PartReader
from rpexplore.results.area_results import AreaResults, AreaTables
from rpexplore.results.formats.amount_texts import amounts_in
from rpexplore.results.formats.crosstab import across_of_item
from rpexplore.results.shares import SHARE, SHARE_ERROR, answers_of, shares_of_marginal
from rpexplore.workload.table_text import QueryMatrix


def with_shares(part: PartReader, item: Item, rows: pa.Table, of: str) -> pa.Table:
    """The rows of a table, with the share of each figure and its error behind the figures.

    In areas shares are of the totals of each area; sums have those of their groups in the sum of
    all. Own counts and means have none.

    of: one of `TOTALS`; rows and columns are those of the crosstab of the table
    """
    if part.kind == "counts" or item.is_of_means:
        return rows
    across = across_of_item(part, item)
    summed = {
        "row": [across],
        "column": [name for name in item.attributes if name != across],
        "total": list(item.attributes),
    }[of]
    if item.level is not None:
        summed = [name for name in summed if name in item.attributes]
    shares, errors = _shares(part, item, [name for name in summed if name is not None])
    missing = np.full(rows.num_rows - len(shares), np.nan)  # empty areas, behind the others
    columns: list[tuple[Column, np.ndarray]] = [(SHARE, shares), (SHARE_ERROR, errors)]
    if np.isnan(errors).all() and not np.isnan(shares).all():
        columns = columns[:1]  # of figures whose errors are not known
    for column, figures in columns:
        array = pa.array(np.append(figures, missing), from_pandas=False)
        rows = rows.append_column(column.field(array.type), array)
    return rows


def _shares(part: Any, item: Item, summed: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Of each row of a table, in per cent; NaN where not known."""
    empty = np.full(item.n_rows, np.nan)
    names = list(item.attributes)
    amounts = amounts_in(part.domain, item)
    # A sum and a number of records add up to nothing; parts of sums may be more than all below 0.
    summed = [name for name in summed if name not in amounts]
    if not summed or any(values.minimum < 0 for values in amounts.values()):
        return empty, empty
    domain: Any
    if item.level is not None:
        areas = AreaResults.of(part)
        number = areas.tree.levels.index(item.level)
        results = areas.side_by_side(number, areas.tree.level_slice(number))
        domain = areas.domain
        queries: Sequence[QueryMatrix | None] = [sums_of(domain, domain.position(name))
                                                 for name in names]  # fmt: skip
        unbiased = AreaResults(areas.release).side_by_side(number, areas.tree.level_slice(number))
    else:
        results, domain, unbiased = part, part.domain, None
        queries = [None] * len(names)
        if results.has_sums:
            queries = results.queries[results.table_names.index(item.attributes)]
    if not results.has_sums:
        own = names if item.level is None else [results.axis, *names]
        if (
            unbiased is not None
            and unbiased.has_sums
            and not results.has_counts([name for name in own if name not in summed])
        ):
            return _shares_of_summed_cells(results, unbiased, names, summed)
        return _biased_shares(results, item, own, summed)
    counted, base = {}, {}
    for name, query in zip(names, queries, strict=True):
        index = domain.position(name)
        size = domain.attributes[index].size
        matrix = sparse.csr_array(sparse.eye_array(size))
        if query is not None:
            matrix = sparse.csr_array(query.of(np.eye(size), 0))
        counted[index] = base[index] = matrix
        if name in summed:
            base[index] = sparse.csr_array(np.ones((1, size)))
    axes = [sorted(counted).index(domain.position(name)) for name in names]

    def of_marginal(one: Marginal) -> list[np.ndarray]:
        columns = shares_of_marginal(one.values, one.noise, counted, base)
        return [column.transpose(axes).ravel() for column in columns[:2]]

    parts = [of_marginal(one) for one in results.marginals(names)]
    shares, errors = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return shares, errors


def _shares_of_summed_cells(
    results: Any, unbiased: AreaTables, names: Sequence[str], summed: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Of whole counts of areas, whose totals are sums of their cells where no table has these.

    Without errors. Whether a total is publishable tells the unbiased one that it was made of.
    """
    own = [results.axis, *names]
    cells = ReleasedCells.of(results.table(own), own)
    axes = tuple(1 + place for place, name in enumerate(names) if name in summed)
    bases = cells.value.sum(axis=axes, keepdims=True)
    domain = unbiased.results.domain
    totals: dict[int, Any] = {}
    for name in names:
        size = domain[name].size
        row = np.ones((1, size)) if name in summed else sparse.eye_array(size)
        totals[domain.position(name)] = sparse.csr_array(row)
    order = [sorted(totals).index(domain.position(name)) for name in names]
    are_large = []
    for one in unbiased.marginals(names):
        counts = answers_of(one.values, one.noise, totals).transpose(order)
        errors = np.sqrt(np.maximum(one.noise.covariances(totals, totals), 0.0)).transpose(order)
        are_large.append(are_publishable_as_estimated(errors, counts, CV_LIMIT))
    is_large = np.stack(are_large) & (bases > 0)
    shares = np.where(is_large, 100 * cells.value / np.where(bases > 0, bases, 1), np.nan)
    return shares.ravel(), np.full(shares.size, np.nan)


def _biased_shares(
    results: Any, item: Item, names: Sequence[str], summed: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """From the smaller tables beside a table of which nothing may be added up, without errors."""
    empty = np.full(item.n_rows, np.nan)
    kept = [name for name in names if name not in summed]
    if not results.has_counts(kept):
        return empty, empty
    try:
        cells = ReleasedCells.of(results.table(names), names)
        smaller = ReleasedCells.of(results.table(kept), kept)
    except ReleaseError:
        return empty, empty
    shape = [1 if name in summed else len(axis.labels) for name, axis in zip(names, cells.axes,
                                                                          strict=True)]  # fmt: skip
    labels = [axis.labels for axis in cells.axes if axis.name in kept]
    if labels != [axis.labels for axis in smaller.axes]:
        return empty, empty
    bases, counts = smaller.value.reshape(shape), smaller.unbiased.reshape(shape)
    errors = smaller.standard_error
    if smaller.model_error is not None:
        counts, errors = bases, smaller.model_error
    is_large = are_publishable_as_estimated(errors.reshape(shape), counts, CV_LIMIT) & (bases > 0)
    shares = np.where(is_large, 100 * cells.value / np.where(bases > 0, bases, 1), np.nan)
    return shares.ravel(), np.full(shares.size, np.nan)
