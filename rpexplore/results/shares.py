"""Shares in per cent, with the exact covariances of what is counted and what it is a share of."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from rpexplore.domain.amounts import Amounts
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import CV_LIMIT, checked_cv_limit
from rpexplore.domain.readings import are_publishable_as_estimated
from rpexplore.domain.result_schema import RECORDS, RELEASED, Column, apart_from, frame_of
from rpexplore.domain.values import asks_mean
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.mechanism.reconstruction import MarginalNoise, Where
from rpexplore.releases.finished_release import Release
from rpexplore.releases.means import MeanAnswer, ratio_columns
from rpexplore.releases.query_release import OwnCounts
from rpexplore.releases.table_cells import Labels, label_columns
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.area_results import AreaTables
from rpexplore.results.unbiased import Estimates

Queries: TypeAlias = Mapping[int, sparse.csr_array]
"""Rows of each attribute of a marginal, [n_rows, n_i]: product queries, one axis an attribute."""

_FIELLER = (
    "From lower_95 to upper_95: contains the true share 95 % of the time (Fieller's interval)."
)
SHARES = (
    Column(
        "value",
        "value",
        "The share in per cent: the noisy count over the noisy count of its base. Empty where the "
        "base is too small to be published.",
        "%",
    ),
    Column(
        "standard_error",
        "error",
        "Of the privacy noise alone, in percentage points, with the exact covariance of count and "
        "base (delta method).",
        "%",
    ),
    Column("lower_95", "lower", _FIELLER, "%"),
    Column("upper_95", "upper", _FIELLER, "%"),
)
"""The figures of a table of shares."""


def share_columns(
    counts: np.ndarray,
    bases: np.ndarray,
    variances: np.ndarray,
    base_variances: np.ndarray,
    covariances: np.ndarray,
    cv_limit: float = CV_LIMIT,
) -> list[np.ndarray]:
    """Share, standard error and interval in per cent; NaN where the base is not publishable.

    All arrays are of one shape. The error is that of the delta method, the interval Fieller's; see
    `ratio_columns`.
    """
    is_large = are_publishable_as_estimated(np.sqrt(base_variances), bases, cv_limit)
    columns = ratio_columns(counts, bases, variances, base_variances, covariances)
    return [np.where(is_large, 100 * column, np.nan) for column in columns]


def shares_of_marginal(
    values: np.ndarray,
    noise: MarginalNoise,
    counted: Queries,
    base: Queries,
    cv_limit: float = CV_LIMIT,
) -> list[np.ndarray]:
    """The columns of `share_columns` of product queries on a marginal, one axis an attribute.

    Args:
        values: The marginal by single values, one axis an attribute of `noise`.
        counted, base: Rows of each attribute; a single row of the base goes with all that are
            counted.
    """
    shape = [_n_rows(counted[index]) for index in noise.attributes]
    arrays = (
        answers_of(values, noise, counted),
        answers_of(values, noise, base),
        noise.covariances(counted, counted),
        noise.covariances(base, base),
        noise.covariances(counted, base),
    )
    counts, bases, *moments = (np.broadcast_to(array, shape) for array in arrays)
    # What rounding leaves of a variance that is 0 may be below it.
    variances, base_variances = (np.maximum(moment, 0.0) for moment in moments[:2])
    return share_columns(counts, bases, variances, base_variances, moments[2], cv_limit)


def _n_rows(matrix: Any) -> int:  # sparse ones have no types
    return matrix.shape[0]


def answers_of(values: np.ndarray, noise: MarginalNoise, queries: Queries) -> np.ndarray:
    """Product queries on a marginal, one axis an attribute of `noise`."""
    for axis, index in enumerate(noise.attributes):
        first = np.moveaxis(values, axis, 0)
        answered = queries[index] @ first.reshape(len(first), -1)
        values = np.moveaxis(answered.reshape(-1, *first.shape[1:]), 0, axis)
    return values


def shares(
    results: Release | TableRelease | Estimates | AreaTables,
    where: Where,
    *,
    per: Collection[str] = (),
    among: Where | None = None,
    cv_limit: float = CV_LIMIT,
) -> pd.DataFrame:
    """What per cent of the records a selection is, for each combination of the values of `per`.

    Args:
        results: A release or other unbiased tables; or the tables of areas, of which each has
            shares of its own.
        where: What is counted, as in `Release.answer`; with an attribute of amounts, such as
            {"income": "sum", "sex": "f"}, the share in that sum.
        per: Attributes by whose values shares are told apart; none for one share.
        among: What the base is limited to, as `where`; all records if left out.
        cv_limit: The largest coefficient of variation of a base; shares of others are empty.

    Returns:
        One row a combination: the labels of `per`, value, standard_error, lower_95 and upper_95, in
        per cent.

    Raises:
        WorkloadError: If an attribute is in `per` and in a selection; for amounts anywhere but in
            `where`, or below 0; if no table holds all these attributes together.
    """
    tables: Any = results.unbiased_tables()
    among, cv_limit = among or {}, checked_cv_limit(cv_limit)
    names = list(dict.fromkeys([*per, *where, *among]))
    for name in per:
        if name in where or name in among:
            raise WorkloadError(
                f"The attribute {name!r} cannot both tell shares apart and be selected from; take "
                "it out of one of them."
            )
    marginals = tables.marginals(names)
    noise = marginals[0].noise
    domain = noise.domain
    _check_amounts(domain, where, [*per, *among])
    within, selected = noise.vectors(among), noise.vectors(where)
    for index in noise.attributes:
        if isinstance(domain.attributes[index].values, Amounts):
            within[index], selected[index] = selected[index], np.ones_like(selected[index])
    counted: dict[int, sparse.csr_array] = {}
    base: dict[int, sparse.csr_array] = {}
    for index in noise.attributes:
        if domain.names[index] in per:
            counted[index] = base[index] = sparse.csr_array(
                sparse.eye_array(int(domain.sizes[index]))
            )
        else:
            counted[index] = sparse.csr_array((selected[index] * within[index])[None])
            base[index] = sparse.csr_array(within[index][None])
    parts = [
        shares_of_marginal(one.values, one.noise, counted, base, cv_limit) for one in marginals
    ]
    figures = [np.concatenate([part[k].ravel() for part in parts]) for k in range(len(SHARES))]
    labels = [label_columns(domain[name]) for name in domain.names if name in per]
    if tables.axis:
        codes, texts = tables.axis_labels(names)
        column = Column(tables.axis, "code", f"{tables.axis}: the area.", "", tables.axis)
        areas: Labels = [(column, pa.array(codes))]
        if texts:
            label = Column(f"{tables.axis} label", "label", "", "", tables.axis)
            areas.append((label, pa.array(texts)))
        labels.insert(0, areas)
    return _frame(labels, figures)


def _check_amounts(domain: Domain, where: Where, others: Collection[str]) -> None:
    """Raise `WorkloadError` for amounts of which there is no share."""
    amounts = {
        name: values
        for name in (*where, *others)
        if isinstance(values := domain[name].values, Amounts)
    }
    for name, values in amounts.items():
        if name in others:
            raise WorkloadError(
                f"The attribute {name!r} has {values.noun}, by which no shares are told apart or "
                "limited; leave it out there."
            )
        if asks_mean(domain[name], where[name]):
            raise WorkloadError(
                f"A mean of {name!r} is no part of a whole, so it has no share; ask for that of "
                f"the sum ({name}=sum)."
            )
        if values.minimum < 0 and where[name] != RECORDS:
            raise WorkloadError(
                f"Amounts of {name!r} may be below 0, so a part of their sum can be more than all "
                "of it, and a share would mean nothing; ask for sums."
            )
        if len(where) == 1:
            raise WorkloadError(
                f"All of {name!r} is 100 % of itself; name the part whose share is asked for, such "
                f"as {name}=sum and a value of another attribute."
            )


def _frame(labels: Sequence[Labels], figures: Sequence[np.ndarray]) -> pd.DataFrame:
    """One row for each combination of labels, those of the last ones fastest."""
    sizes = [len(own[0][1]) for own in labels]
    places = np.indices(sizes).reshape(len(sizes), len(figures[0]))
    columns, arrays = [], []
    for own, place in zip(labels, places, strict=True):
        for column, texts in own:
            columns.append(column)
            arrays.append(texts.take(pa.array(place)))
    columns = [*apart_from(columns, RELEASED), *SHARES]
    arrays += [pa.array(figure, from_pandas=True) for figure in figures]
    fields = [column.field(array.type) for column, array in zip(columns, arrays, strict=True)]
    return frame_of(pa.table(arrays, schema=pa.schema(fields)))


def share_of_counts(counts: OwnCounts, name: str, base: str) -> list[float]:
    """Share, standard error and interval in per cent, of one own count in another.

    counts: the own counts of a release, or combined ones
    """
    return [float(column) for column in share_columns(*_pair_of_counts(counts, name, base))]


def mean_of_counts(counts: OwnCounts, name: str, base: str) -> MeanAnswer:
    """An own sum of amounts over an own count of records: the mean, with Fieller's interval.

    Raises `ReleaseError` where the noise of the count reaches 0.
    """
    figures = [float(column) for column in ratio_columns(*_pair_of_counts(counts, name, base))]
    if np.isnan(figures[0]):
        raise ReleaseError(f"The count {base!r} is too small for a mean: its noise reaches 0.")
    return MeanAnswer(*figures)


def _pair_of_counts(
    counts: OwnCounts, name: str, base: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The answers to two own counts, their variances, and their covariance."""
    names = list(counts.queries.names)
    one, other = counts.answer(name), counts.answer(base)
    rows = counts.noise_rows[[names.index(name), names.index(base)]]
    variances = rows @ rows.T
    return (
        np.asarray(one.value), np.asarray(other.value),
        variances[0, 0], variances[1, 1], variances[0, 1],
    )  # fmt: skip


SHARE = replace(
    SHARES[0],
    name="share",
    role="share",
    meaning="The share of the total in per cent; empty where the total is not publishable.",
)
SHARE_ERROR = replace(SHARES[1], name="share_standard_error", role="share_error")
