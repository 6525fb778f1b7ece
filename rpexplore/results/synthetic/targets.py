"""What synthetic records are fitted to: one-way and two-way tables that agree with each other."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import pi, sqrt

import numpy as np

from rpexplore.common.processes import Progress, no_progress
from rpexplore.domain.domain import AttributeIndices, Domain, subsets
from rpexplore.errors import ReleaseError
from rpexplore.estimation.agreement import fitted
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.estimation.table_map import ContributionArrays
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.results.estimates.shrinkage import measured_residuals
from rpexplore.results.synthetic.impossible import Impossible
from rpexplore.results.unbiased import Estimates

MOST_VALUES = 8_000  # of all attributes together; there is a number for each pair of values
_ROUNDS = 30  # of proportional fitting of a pair to its one-way tables
_OFF = 0.01  # of the records, in another group than a one-way table says
_UNKNOWN_SHARE = 1e-3  # of independent attributes, for a cell below 0


@dataclass(frozen=True, eq=False)
class PairTargets:
    """Shares of records, each table adding up to 1.

    one_way  of each attribute, float64[size]
    pairs    of pairs of attributes (i < j): float64[size i, size j]; any of them may be missing
    """

    one_way: tuple[np.ndarray, ...]
    pairs: Mapping[tuple[int, int], np.ndarray]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.one_way))

    def mutual_information(self) -> np.ndarray:
        """Of each two attributes, in nats, float64[d, d]; −1 where there is no target."""
        d = len(self.one_way)
        information = np.full((d, d), -1.0)
        for (i, j), table in self.pairs.items():
            independent = np.outer(table.sum(axis=1), table.sum(axis=0))
            cells = table > 0
            terms = table[cells] * np.log(table[cells] / independent[cells])
            information[i, j] = information[j, i] = max(float(terms.sum()), 0.0)
        return information

    def misfit(self, codes: np.ndarray) -> float:
        """Share of records in another cell of a two-way table than targets say, mean over tables.

        Half of Σ|share − target| over the cells (total variation). codes: int16[n, d]. 0 without a
        pair. Of independent draws it would not be 0, either.
        """
        misfits = []
        for (i, j), shares in self.pairs.items():
            cells = codes[:, i].astype(np.int64) * shares.shape[1] + codes[:, j]
            counts = np.bincount(cells, minlength=shares.size).reshape(shares.shape)
            misfits.append(np.abs(counts / len(codes) - shares).sum() / 2)
        return float(np.mean(misfits)) if misfits else 0.0

    def sampling_misfit(self, n_records: int) -> float:
        """The misfit to be expected of so many independent draws from the targets themselves.

        The mean deviation of a binomial share, √(2 t(1 − t) / πn), is at most 2 t(1 − t).
        """
        misfits = []
        for shares in self.pairs.values():
            spread = shares * (1 - shares)
            deviations = np.minimum(np.sqrt(2 * spread / (np.pi * n_records)), 2 * spread)
            misfits.append(deviations.sum() / 2)
        return float(np.mean(misfits)) if misfits else 0.0

    def groups_off(self, codes: np.ndarray) -> list[tuple[int, int, float, float]]:
        """Values whose share of the records is not their target, the farthest off first.

        Attribute, value, share of the records and target. Off by more than a share of 0.01 and
        than five standard deviations of independent draws. codes: int16[n, d]
        """
        found = []
        for attribute, wanted in enumerate(self.one_way):
            shares = np.bincount(codes[:, attribute], minlength=len(wanted)) / len(codes)
            off = np.abs(shares - wanted)
            by_chance = 5 * np.sqrt(wanted * (1 - wanted) / len(codes))
            for value in np.flatnonzero(off > np.maximum(_OFF, by_chance)).tolist():
                found.append((attribute, value, float(shares[value]), float(wanted[value])))
        return sorted(found, key=lambda group: -abs(group[2] - group[3]))

    def share_of(self, condition: Mapping[int, np.ndarray]) -> float | None:
        """Share of records that meet a condition; None if no target table has its attributes."""
        attributes = tuple(sorted(condition))
        if len(attributes) == 1:
            return float(self.one_way[attributes[0]][condition[attributes[0]]].sum())
        tables = [table for pair, table in self.pairs.items() if pair == attributes]
        values = np.ix_(*(condition[attribute] for attribute in attributes))
        return float(tables[0][values].sum()) if tables else None

    def without(self, impossible: Impossible) -> "PairTargets":
        """These targets with nothing in cells of which every record is impossible.

        Raises `ReleaseError` if no record is possible.
        """
        if not impossible.conditions:
            return self
        possible = impossible.possible_record()
        one_way, pairs = [values.copy() for values in self.one_way], dict(self.pairs)
        for condition in impossible.conditions:
            if len(condition) == 1:
                ((attribute, values),) = condition.items()
                one_way[attribute][values] = 0
        for attribute, values in enumerate(one_way):
            if not values.sum() > 0:
                values[possible[attribute]] = 1.0
            one_way[attribute] = values / values.sum()
        for condition in impossible.conditions:
            attributes = tuple(sorted(condition))
            if len(attributes) == 2 and attributes in pairs:
                first, second = (condition[attribute] for attribute in attributes)
                pairs[attributes] = np.where(np.outer(first, second), 0.0, pairs[attributes])
        agreeing = {(i, j): _fitted(t, one_way[i], one_way[j]) for (i, j), t in pairs.items()}
        return replace(self, one_way=tuple(one_way), pairs=agreeing)


def targets_from_tables(
    marginal: Callable[[AttributeIndices], np.ndarray],
    attributes: AttributeIndices,
    pairs: Collection[AttributeIndices],
) -> PairTargets:
    """Targets from tables of counts, made nonnegative where they are not, and pairs made to agree.

    Args:
        marginal: The counts of some attributes, by their indices in the domain, one axis each.
        attributes: Those of the records, ascending.
        pairs: Those pairs of them whose table is known.
    """
    one_way = [_shares(marginal((index,))) for index in attributes]
    position = {index: i for i, index in enumerate(attributes)}
    agreeing = {}
    for first, second in combinations(attributes, 2):
        if (first, second) in pairs:
            i, j = position[first], position[second]
            counts = marginal((first, second))
            # What is below 0 is not known to be empty, and without it totals may be out of reach.
            little = _UNKNOWN_SHARE * np.outer(one_way[i], one_way[j]) * max(counts.sum(), 1.0)
            shares = _shares(np.where(counts < 0, little, counts))
            agreeing[i, j] = _fitted(shares, one_way[i], one_way[j])
    return PairTargets(tuple(one_way), agreeing)


def _shares(counts: np.ndarray) -> np.ndarray:
    """Counts as shares of their total; even ones if none is above 0."""
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(counts.shape, 1 / counts.size)


def _fitted(pair: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A two-way table fitted to its one-way tables in proportion, adding up to 1."""
    table = fitted(pair.copy(), [columns, rows], _ROUNDS)
    total = table.sum()
    return table / total if total > 0 else np.outer(rows, columns)


# ---- Targets of synthetic records from a release: its smooth two-way tables.


MOST_RESIDUALS = 5_000
"""Up to so many all smooth tables are fitted, as larger tables tell pairs a little; else pairs."""

_MOST_PAIRS = 150  # whose errors are averaged


def refuse_many_values(domain: Domain, attributes: AttributeIndices) -> None:
    """Raise `ReleaseError` for attributes of too many values; before tables are made smooth."""
    n_values = int(domain.sizes[list(attributes)].sum())
    if n_values > MOST_VALUES:
        raise ReleaseError(
            f"The attributes have {n_values:,} values together, and synthetic records can be made "
            f"of at most {MOST_VALUES:,}; make them of a release with coarser values."
        )


def smooth_tables(estimates: Estimates, on_progress: Progress = no_progress) -> SmoothTables:
    """The smooth tables that records are fitted to; of many residuals, those of pairs alone.

    Without zeros by the codebook: `PairTargets.without` sets them, and `share_of` tells what they
    take away.
    """
    largest_order = 2 if len(estimates.contributions) > MOST_RESIDUALS else None
    measured = measured_residuals(estimates, largest_order)
    return smooth_residuals(measured, on_progress=on_progress)


def smooth_targets(
    estimates: Estimates, contributions: ContributionArrays, attributes: AttributeIndices
) -> tuple[PairTargets, float]:
    """What records are fitted to, from the contributions of smooth tables; and their total."""

    def counts(table: AttributeIndices) -> np.ndarray:
        return smooth_counts(estimates, contributions, table)

    pairs = [subset for subset in contributions if len(subset) == 2]
    targets = targets_from_tables(counts, attributes, pairs)
    return targets, max(float(contributions[()]), 1.0)


def smooth_counts(
    estimates: Estimates, contributions: ContributionArrays, table: AttributeIndices
) -> np.ndarray:
    """The counts of the single values of a smooth table, one axis an attribute."""
    sizes = estimates.domain.sizes
    several = tuple(index for index in table if sizes[index] > 1)
    within = {subset: contributions[subset] for subset in subsets(several)}
    return marginal(table, sizes, within, estimates.strategies)


def smooth_misfit(smooth: SmoothTables, total: float) -> float:
    """By how much noise has moved smooth two-way tables, as their model-based errors have it.

    As `PairTargets.misfit`: the share of the records in another cell than without noise, mean over
    tables. Of a normal error the mean deviation is √(2/π) times the standard error.
    """
    pairs = [subset for subset in smooth.contributions if len(subset) == 2]
    some = pairs[:: max(len(pairs) // _MOST_PAIRS, 1)]
    errors = (smooth.standard_errors(pair, mean_square=True) for pair in some)
    misfits = [of_pair.sum() / (sqrt(2 * pi) * total) for of_pair in errors]
    return float(np.mean(misfits)) if misfits else 0.0
