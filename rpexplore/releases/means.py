"""Means of tables with amounts: a noisy sum over a noisy count, and its interval by Fieller.

Sum and count come from the same residuals, so their errors go together; the covariance is exact
(docs/mathematics-strategies.md §5.6).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rpexplore.common.numbers import normal_quantile
from rpexplore.domain.amounts import Amounts, sentences_of
from rpexplore.domain.domain import Domain
from rpexplore.domain.result_schema import (
    MEANS,
    RELEASED,
    SUMS_MEANING,
    WEIGHTED_MEANING,
    WEIGHTED_SUMS_MEANING,
    Column,
)
from rpexplore.domain.values import asks_mean
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.mechanism.reconstruction import Where
from rpexplore.releases.items import Answer, MarginalEstimate
from rpexplore.releases.manifest import CONFIDENCE
from rpexplore.releases.table_cells import Labels
from rpexplore.workload.workload import Workload


def ratio_columns(
    sums: np.ndarray,
    counts: np.ndarray,
    variances_of_sums: np.ndarray,
    variances_of_counts: np.ndarray,
    covariances: np.ndarray,
) -> list[np.ndarray]:
    """Mean, standard error and interval of each group, of one shape; NaN where there is no mean.

    The standard error is that of the delta method, √(v_S − 2 m c + m² v_N) / N with m = S / N. The
    interval holds the ratios r for which S − r N, whose variance is v_S − 2 r c + r² v_N, is within
    1.96 of its standard errors of 0 (Fieller 1954): exact for normal errors. It is bounded where
    the interval of the count does not hold 0; elsewhere, and below 0, no mean is told.
    """
    quantile = normal_quantile(CONFIDENCE)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts
        # How much of the squared count its noise may be: below 1, the ends are those of a parabola.
        share = quantile**2 * variances_of_counts / counts**2
        is_clear = (counts > 0) & (share < 1)
        variances = variances_of_sums - 2 * means * covariances + means**2 * variances_of_counts
        errors = np.sqrt(np.maximum(variances, 0.0)) / counts
        rest = variances_of_sums - covariances**2 / variances_of_counts
        middles = (means - share * covariances / variances_of_counts) / (1 - share)
        halves = quantile / counts * np.sqrt(np.maximum(variances - share * rest, 0.0))
        halves = halves / (1 - share)
    return [
        np.where(is_clear, column, np.nan)
        for column in (means, errors, middles - halves, middles + halves)
    ]


# ---- The mean that a query asks for: income=mean region=North.


def mean_asked(domain: Domain, where: Where | None) -> str | None:
    """The attribute of amounts whose mean a query asks for; None where it asks for none.

    Raises `WorkloadError` for the means of several.
    """
    names = [
        name
        for name, chosen in (where or {}).items()
        if name in domain and asks_mean(domain[name], chosen)
    ]
    if len(names) > 1:
        raise WorkloadError(
            f"A question can ask for one mean, got those of {' and '.join(names)}; ask for each."
        )
    return names[0] if names else None


def with_sum(where: Where, name: str) -> Where:
    """The query for the sum of amounts in place of their mean."""
    return {**where, name: "sum"}


def with_records(where: Where, name: str) -> Where:
    """The query for the number of records with an amount in place of their mean, or sum."""
    return {**where, name: "records"}


@dataclass(frozen=True)
class MeanAnswer(Answer):
    """A mean: a noisy sum over a noisy number of records, and Fieller's interval."""

    lower: float
    upper: float

    @property
    def lower_95(self) -> float:
        return self.lower

    @property
    def upper_95(self) -> float:
        return self.upper


def mean_of(estimate: MarginalEstimate, where: Where, name: str) -> MeanAnswer:
    """The mean of an attribute's amounts; where: the query for their sum.

    Raises `ReleaseError` where the noise of the number of records leaves none.
    """
    of_sum, of_records = (estimate.noise.vectors(one) for one in (where, with_records(where, name)))
    total, records = estimate.value(of_sum), estimate.value(of_records)
    covariance = estimate.noise.covariance
    figures = ratio_columns(
        np.array(total), np.array(records), np.array(covariance(of_sum, of_sum)),
        np.array(covariance(of_records, of_records)), np.array(covariance(of_sum, of_records)),
    )  # fmt: skip
    mean, error, lower, upper = map(float, figures)
    if np.isnan(mean):
        raise ReleaseError(
            f"The records with {name!r} are too few for a mean: their number is {records:,.0f}, "
            f"and its noise reaches 0; ask for {name}=sum and {name}=records, or for more records."
        )
    return MeanAnswer(mean, error, lower, upper)


def unit_of_query(
    domain: Domain, where: Where, record_noun: str, tables: Iterable[Collection[str]]
) -> str:
    """What the answer to a query is a number of: "EUR, sum of income", or the records.

    Where some of the tables is weighted, amounts are said to be weighted or unweighted.
    """
    mean, what, unit, is_weighted = mean_asked(domain, where), "", "", False
    for name, chosen in where.items():
        amounts = domain[name].values if name in domain else None
        if not isinstance(amounts, Amounts) or not isinstance(chosen, str):
            continue
        if name == mean or chosen.strip() in ("sum", amounts.sum_label):
            if amounts.are_weights:
                is_weighted = True
            else:
                unit, what = amounts.unit, f"{'mean' if name == mean else 'sum'} of {name}"
    if what:
        weights = {domain.names[index] for index in domain.weights}
        if any(weights.intersection(table) for table in tables):
            what = f"{'weighted' if is_weighted else 'unweighted'} {what}"
        return f"{unit}, {what}"
    return f"weighted {record_noun or 'count'}" if is_weighted else record_noun


class Figures(NamedTuple):
    """What the cells of a table are, and their unit: "sums of income in EUR", "EUR"."""

    what: str
    unit: str

    @property
    def heading(self) -> str:
        """The same for a heading, behind which "by" and attributes may stand: "people"."""
        return self.unit if self.what == f"counts of {self.unit}" else self.what


def figures_of(
    domain: Domain | None, names: Iterable[str], chosen: Mapping[str, str], record_noun: str
) -> Figures:
    """What a view of a table shows.

    Args:
        domain: With the attributes of amounts among these; None: there are none.
        names: The attributes of the table.
        chosen: The label of each attribute that is shown at one value alone.
        record_noun: What the table counts.
    """
    weighted, has_sums, has_counts, of, unit = "", False, True, "", ""
    for name in names:
        values = domain[name].values if domain is not None and name in domain else None
        if not isinstance(values, Amounts):
            continue
        is_sum, is_other = (
            name not in chosen or (chosen[name] == values.sum_label) is wanted
            for wanted in (True, False)
        )
        if values.are_weights:
            weighted = " and ".join(["weighted"] * is_sum + ["unweighted"] * is_other) + " "
        else:
            has_sums, has_counts = is_sum, is_other
            unit = values.unit
            of = f"{name} in {unit}" if unit else name
    counted = f"{weighted}counts of {record_noun}"
    whats = [f"{weighted}sums of {of}"] * has_sums + [counted] * has_counts
    units = [unit] * bool(has_sums and unit) + [f"{weighted}{record_noun}"] * has_counts
    return Figures(" and ".join(whats), " and ".join(units))


def amounts_of(workload: Workload, position: int) -> tuple[int, Amounts]:
    """Which axis of a table has amounts, and these; of weights only where it has nothing else."""
    found = [
        (axis, values)
        for axis, index in enumerate(workload.attribute_indices(position))
        if isinstance(values := workload.domain.attributes[index].values, Amounts)
    ]
    return min(found, key=lambda one: one[1].are_weights)


def n_groups(workload: Workload, position: int) -> int:
    """How many groups a table with amounts has sums and means of."""
    axis, _ = amounts_of(workload, position)
    index = workload.attribute_indices(position)[axis]
    rows = workload.bases[index][0].n_rows(workload.domain.attributes[index])
    return int(workload.exact_cells[position]) // rows


def figures_of_sums(workload: Workload, position: int) -> tuple[Column, ...]:
    """The columns `RELEASED` of a table with amounts: of sums and of counts, as rows say.

    Of weights, of weighted counts; of both, of weighted sums.
    """
    meaning = SUMS_MEANING if workload.has_means[position] else WEIGHTED_MEANING
    if workload.has_means[position] and workload.is_weighted[position]:
        meaning = WEIGHTED_SUMS_MEANING
    value, *others = (replace(column, unit="") for column in RELEASED)
    return (replace(value, meaning=f"{meaning}{clamping_sentences(workload, position)}"), *others)


def clamping_sentences(workload: Workload, position: int) -> str:
    """What is done to amounts of a table beyond their limits, to its weights, and to products."""
    attributes = workload.domain.attributes
    values = (attributes[index].values for index in workload.attribute_indices(position))
    return sentences_of(one for one in values if isinstance(one, Amounts))


def labels_of_means(workload: Workload, position: int, labels: Sequence[Labels]) -> list[Labels]:
    """The labels of the means of a table, from those of its sums, an attribute after another."""
    axis, amounts = amounts_of(workload, position)
    unit = f" ({amounts.unit})" if amounts.unit else ""
    named = [*labels]
    named[axis] = [(labels[axis][0][0], pa.array([f"mean{unit}"]))]
    for place, index in enumerate(workload.attribute_indices(position)):
        if index in workload.domain.weights:
            named[place] = [(labels[place][0][0], pa.array(["weighted"]))]
    return named


def figures_of_means(workload: Workload, position: int) -> tuple[Column, ...]:
    """The columns `MEANS` of a table, in the unit of its amounts."""
    _, amounts = amounts_of(workload, position)
    mean, *others = (replace(column, unit=amounts.unit) for column in MEANS)
    clamping = clamping_sentences(workload, position)
    return (replace(mean, meaning=f"{mean.meaning} {clamping}"), *others)


def clamping_of(domain: Domain, attributes: Collection[str]) -> str:
    """What was done to amounts among some attributes beyond their limits; "" without amounts."""
    values = (domain[name].values for name in attributes if name in domain)
    return sentences_of(one for one in values if isinstance(one, Amounts))
