"""Smooth tables of estimates: contributions of a best guess, with a stated error.

docs/mathematics.md §13. Biased: shrinking takes the differences of small groups first.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from rpexplore.common.processes import Progress, no_progress, one_thread, part_of_progress
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.errors import ReleaseError
from rpexplore.estimation.agreement import agreeing
from rpexplore.estimation.hidden import (
    contradicted,
    free_counts,
    hidden_scales,
    misfits,
    towards_measured,
)
from rpexplore.estimation.higher_tables import higher_tables
from rpexplore.estimation.nonnegative import impossible_cells, nonnegative
from rpexplore.estimation.one_way import one_way
from rpexplore.estimation.pairs import smooth_pairs
from rpexplore.estimation.standard_errors import (
    FEWEST_COUNTS,
    MOST_TABLES,
    ErrorModel,
    error_factor,
    pooled_factor,
    rehearsed_release,
    skewed_errors,
)
from rpexplore.estimation.table_map import ArrayStore, ContributionArrays, MeasuredResiduals
from rpexplore.planning.mechanism.reconstruction import marginal

_PAIRS_DONE, _FITTED = 0.3, 0.7  # shares of the work
_FITTED_AGAIN = 0.9  # share of a rehearsal
_CERTAINLY_OFF = 3.0  # standard errors of the unbiased count, which no noise explains
_GAP = 0.05  # of the small distance by which tables move to have no cell below 0
_MOST_CELLS_CORRECTED = 20_000_000  # beyond, such a search takes too long


@dataclass(frozen=True, eq=False)
class SmoothTables:
    """Contributions of smooth tables, which agree with each other and have no cell below 0.

    contributions  of every residual, float64, read-only;
                   `reconstruction.marginal` makes tables of them
    kept           share of each measured residual that was kept, 1 if nothing was shrunk: on
                   average over records; of higher orders, of what it says beyond its baseline
    raised         records added where cells would have been below 0, as a share of all
    contradicted   attributes of each residual that contradicted the model, and was estimated with
                   what was measured of it
    """

    contributions: ContributionArrays
    kept: Mapping[AttributeIndices, float]
    raised: float
    contradicted: tuple[AttributeIndices, ...]
    _measured: MeasuredResiduals
    _errors: ErrorModel
    _error_factors: dict[int, float] = field(default_factory=dict)  # once they are rehearsed
    _hidden: dict[AttributeIndices, float] = field(default_factory=dict)  # τ; likewise

    def rehearse_errors(self, on_progress: Progress = no_progress) -> None:
        """Find how wrong the model's errors are; takes a little longer than the tables did."""
        if self._error_factors:
            return
        doing = "Simulating the errors of smooth tables"
        truth, rehearsed, again = self.rehearsed(
            lambda _, share: on_progress(doing, _FITTED_AGAIN * share)
        )
        self._hidden.update(self._hidden_scales())
        factors, highest = {0: 1.0}, self._measured.largest_order
        for order in range(1, highest + 1):
            on_progress(doing, _FITTED_AGAIN + (1 - _FITTED_AGAIN) * (order - 1) / highest)
            tables, by_ours, by_rehearsal = rehearsed.of_order(order), [], []
            for subset in tables[:: max(len(tables) // MOST_TABLES, 1)]:
                off = np.abs(again._table(subset) - rehearsed.map.table(subset, truth))
                by_ours.append(self._ratios(subset, off))
                by_rehearsal.append(again._ratios(subset, off))
            factors[order] = pooled_factor(error_factor(by_ours), error_factor(by_rehearsal))
        self._error_factors.update(factors)

    def rehearsed(
        self, on_progress: Progress = no_progress, *, with_hidden: bool = False
    ) -> "tuple[ContributionArrays, MeasuredResiduals, SmoothTables]":
        """A possible truth, what would be measured of it, and the smooth tables of that.

        Of 16 attributes at most; the same tables always give the same (docs/mathematics.md §13.6).

        with_hidden: whether the truth deviates by what the model cannot see as well (§13.10)
        """
        scales = self._hidden_scales() if with_hidden else None

        def variance(subset: AttributeIndices, table: np.ndarray) -> np.ndarray:
            own = self._errors.own_variance(subset, table)
            return (
                own
                if scales is None
                else own + scales[subset] * free_counts(np.maximum(table, 0.0))
            )

        truth, measured = rehearsed_release(self._measured, self._table, variance)
        return truth, measured, smooth_residuals(measured, on_progress=on_progress)

    def _hidden_scales(self) -> Mapping[AttributeIndices, float]:
        own = self._errors.own_variance
        return hidden_scales(misfits(self._measured, self.contributions, self._table, own))

    def standard_errors(
        self, attributes: AttributeIndices, *, mean_square: bool = False
    ) -> np.ndarray:
        """The error of each cell of a marginal, float64, one axis an attribute.

        By the model, and what its tables may be wrong by that the measurements cannot exclude. Not
        more than that of the unbiased table or the distance from it, whichever is larger; 0 where
        no record is possible. Rehearses the errors if that was not done. Raises `ReleaseError` if
        no table holds the attributes together.

        mean_square: the root mean squared error, whose ± 1.96 reach less far up where a count is
            but a few errors (`skewed_errors`)
        """
        several = tuple(index for index in attributes if self._measured.sizes[index] > 1)
        if several not in self.contributions:
            raise ReleaseError(
                f"No smooth table holds the attributes {list(attributes)} together, so their "
                "errors are not known; ask for attributes of one table, in increasing order."
            )
        if several in self._measured.exact:
            return np.zeros(self._measured.shape(attributes))
        self.rehearse_errors()
        factor = self._error_factors[len(several)]
        parts = self._parts(several)
        squares = (factor * self._errors.standard_errors(several, parts)) ** 2
        squares += self._errors.hidden_variance(several, parts, self._hidden)
        if not mean_square:
            squares = skewed_errors(np.maximum(parts[several], 0.0), squares) ** 2
        noise = self._errors.unbiased_errors(several) ** 2
        unbiased = self._measured.map.table(several, self._measured.contributions)
        # Both are seen, so that neither is a matter of the model.
        distance = (parts[several] - unbiased) ** 2
        squares = np.minimum(squares, np.maximum(noise, distance))
        squares = np.maximum(squares, distance - _CERTAINLY_OFF**2 * noise)
        errors = self._measured.where_possible(several, np.sqrt(squares))
        return errors.reshape(self._measured.shape(attributes))

    def table(self, attributes: AttributeIndices) -> np.ndarray:
        """The counts of a marginal within the tables: float64, one axis an attribute."""
        several = tuple(index for index in attributes if self._measured.sizes[index] > 1)
        table = self._measured.where_possible(several, np.maximum(self._table(several), 0.0))
        return table.reshape(self._measured.shape(attributes))

    def expected_distance(self, subset: AttributeIndices, variance: float) -> float:
        """The L1 distance from the true counts that the model expects of a table, in records,

        once its residual is measured once more, with this σ². By the model alone, not rehearsed.
        """
        errors = self._errors.errors_after(subset, self._parts(subset), variance)
        return float(np.sqrt(2 / np.pi) * errors.sum())

    def _ratios(self, subset: AttributeIndices, off: np.ndarray) -> np.ndarray:
        """What a table is off over the model's errors, in cells of at least `FEWEST_COUNTS`."""
        parts = self._parts(subset)
        counted = parts[subset] >= FEWEST_COUNTS
        return off[counted] / self._errors.standard_errors(subset, parts)[counted]

    def _parts(self, subset: AttributeIndices) -> dict[AttributeIndices, np.ndarray]:
        return {part: self._table(part) for part in subsets(subset)}

    def _table(self, subset: AttributeIndices) -> np.ndarray:
        within = {part: self.contributions[part] for part in subsets(subset)}
        return marginal(subset, self._measured.sizes, within, self._measured.strategies)


@one_thread()
def smooth_residuals(
    measured: MeasuredResiduals, *, on_progress: Progress = no_progress
) -> SmoothTables:
    """The smooth tables of what was measured; the same residuals always give the same tables."""
    on_progress("Fitting one-way tables", 0.0)
    low = one_way(measured)
    pairs = smooth_pairs(measured, low, part_of_progress(on_progress, 0.02, _PAIRS_DONE))
    tables = ArrayStore({(): np.array(measured.total)})
    tables.update({(attribute,): table for attribute, table in low.tables.items()})
    tables.update(pairs.tables)
    kept = {(): 1.0, **{(attribute,): share for attribute, share in low.kept.items()}}
    kept |= pairs.kept
    weights = dict(pairs.weights)
    errors = ErrorModel(measured, low, pairs.model, weights)
    highest = measured.largest_order
    for order in range(3, highest + 1):
        start, end = (
            _PAIRS_DONE + (_FITTED - _PAIRS_DONE) * (done - 3) / (highest - 2)
            for done in (order, order + 1)
        )
        on_order = part_of_progress(on_progress, start, end)
        fit = higher_tables(measured, order, tables, errors.own_variance, on_order)
        kept |= fit.kept
        weights |= fit.weights
    for subset in measured.map.family:
        tables[subset] = measured.where_possible(subset, tables[subset])
    on_agreeing = part_of_progress(on_progress, _FITTED, 1.0)
    agreement = agreeing(measured.map, tables, errors.own_variance, on_agreeing)
    on_progress("Making the tables agree", 1.0)

    contributions = ArrayStore(agreement.contributions)
    # Below 1 record the total of smooth tables is not the one that was counted.
    exact = measured.exact if float(measured.contributions[()]) >= 1 else frozenset()
    contributions.update({one: measured.contributions[one] for one in exact})
    found = misfits(
        measured,
        contributions,
        lambda subset: np.maximum(measured.map.table(subset, contributions), 0.0),
        errors.own_variance,
    )
    against = contradicted(found)
    if sum(map(measured.map.cells, measured.map.tables)) > _MOST_CELLS_CORRECTED:
        against = []
    has_zeros = measured.zeros is not None and impossible_cells(measured.map, measured.zeros)
    if against or has_zeros or len(exact) > 1:
        # What agrees has small numbers again where no record is possible, and does not add up to
        # exact totals by as much. Left to `table` if no
        # search takes them out: whoever has drawn noise already needs tables.
        with suppress(ReleaseError):
            contributions = nonnegative(
                towards_measured(measured, contributions, {s: found[s] for s in against}),
                measured.sizes,
                measured.strategies,
                zeros=measured.zeros,
                kept=exact,
                gap=_GAP,
            ).contributions
    return SmoothTables(
        MappingProxyType(contributions),
        MappingProxyType(kept),
        agreement.raised,
        tuple(against),
        measured,
        errors,
    )
