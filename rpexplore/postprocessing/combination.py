"""Combining: several releases and noisy marginals of the same records into one set of tables.

Where several sources measured one residual, each has the truth plus independent noise of
covariance σ²_k times one and the same matrix; so the best linear unbiased estimate is their mean
weighted by 1/σ²_k, with 1/σ² = Σ 1/σ²_k (GReM-MLE, ReM §3.2). What one source alone
measured is kept. As no residual follows from others, this is generalised least squares on
everything at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from rpexplore.common.formatting import text_of_path
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.measurement_source import refuse_unlike
from rpexplore.postprocessing.noisy_marginal import NoisyMarginal
from rpexplore.postprocessing.same_records import RunId, refuse_other_records
from rpexplore.releases.table_folder import Release

_MANY_CELLS = 16  # of two different tables are hardly ever all within a half of each other


def combine(
    *parts: Release | Estimates,
    noisy: Iterable[NoisyMarginal] = (),
    ledger: str | Path | None = None,
) -> Estimates:
    """The most accurate unbiased tables that follow from all parts; they are the parts' tables.

    parts   releases, and what was combined before, all of the same records: nothing in them can
            show it, so the caller answers for it
    noisy   noisy marginals of these records from elsewhere
    ledger  where the runs are booked; those that it knows by different records are refused

    Spends nothing. What the parts spent adds up. All parts are in memory at once, 8 bytes a number.

    Raises `ReleaseError` for parts that cannot be combined: different domains, the same
    measurements twice, other values counted in other categories, an attribute measured in
    different ways; `LedgerError` for a ledger that cannot be read.
    """
    marginals = list(noisy)
    if not parts and not marginals:
        raise ReleaseError("There is nothing to combine; name a release.")
    if ledger is not None:
        refuse_other_records(ledger, [run for part in parts for run in _runs(part)])
    found = [part if isinstance(part, Estimates) else Estimates.of(part) for part in parts]
    for marginal in marginals:
        _refuse_own_table(found, marginal)
    found += [marginal.estimates() for marginal in marginals]
    sources = tuple(source for each in found for source in each.sources)
    refuse_unlike(sources)
    for each in found[1:]:
        _refuse_other_domain(found[0], each)
    strategies = _common_strategies(found)
    precisions = _precisions(each.variances for each in found)
    return Estimates(
        found[0].domain,
        tuple(table for each in found for table in each.tables),
        {subset: _mean(subset, precision, found) for subset, precision in precisions.items()},
        {subset: 1 / precision for subset, precision in precisions.items()},
        strategies,
        sources,
    )


def _refuse_own_table(parts: Sequence[Estimates], marginal: NoisyMarginal) -> None:
    """Raise `ReleaseError` if a marginal is one that follows from a part: nothing new."""
    names = [marginal.domain.names[place] for place in marginal.places]
    # Whole numbers may be a rounded table, but a few of them can also be alike by chance.
    tolerance = 0.51 if marginal.values.size >= _MANY_CELLS else 1e-6
    for part in parts:
        if part.domain == marginal.domain and any(
            set(marginal.places) <= set(table) for table in part.tables
        ):
            own = part.marginal(names)
            if own.shape == marginal.values.shape and np.all(
                np.abs(own - marginal.values) <= tolerance + 1e-9 * np.abs(own)
            ):
                raise ReleaseError(
                    f"The noisy marginal {marginal.name!r} holds what a release says of its "
                    "attributes already, so it would count twice; leave it out."
                )


def _precisions(
    of_parts: Iterable[Mapping[AttributeIndices, Fraction]],
) -> dict[AttributeIndices, Fraction]:
    """Σ 1/σ² of each residual, exact."""
    total: dict[AttributeIndices, Fraction] = {}
    for variances in of_parts:
        for subset, variance in variances.items():
            before = total.get(subset)
            total[subset] = 1 / variance if before is None else before + 1 / variance
    return total


def _mean(subset: AttributeIndices, precision: Fraction, parts: Sequence[Estimates]) -> np.ndarray:
    """The contribution of a residual: the parts' own, weighted by inverse variance."""
    having = [part for part in parts if subset in part.contributions]
    if len(having) == 1:
        return having[0].contributions[subset]
    weights = [float(1 / part.variances[subset] / precision) for part in having]
    weighted = zip(weights, having, strict=True)
    return np.sum([weight * part.contributions[subset] for weight, part in weighted], axis=0)


def _common_strategies(parts: Sequence[Estimates]) -> dict[int, Strategy]:
    """How each attribute is measured by all parts that have it; `ReleaseError` if not alike."""
    found: dict[int, tuple[Strategy | None, Estimates]] = {}
    for part in parts:
        for place in sorted({place for subset in part.contributions for place in subset}):
            strategy = part.strategies.get(place)
            known, first = found.setdefault(place, (strategy, part))
            if not _alike(strategy, known):
                raise ReleaseError(
                    f"{part.domain.names[place]!r} was measured in one way for "
                    f"{first.sources[0].name!r} and in another for {part.sources[0].name!r}, so "
                    "their measurements answer different questions and cannot be averaged; combine "
                    "only what asks this attribute by single values, or was planned with the same "
                    "strategies."
                )
    return {place: strategy for place, (strategy, _) in found.items() if strategy is not None}


def _alike(one: Strategy | None, other: Strategy | None) -> bool:
    """Whether two strategies measure the same; None: single values."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one.matrix, other.matrix)


def _refuse_other_domain(first: Estimates, other: Estimates) -> None:
    """Raise `ReleaseError` unless both have the same attributes with the same values, in order."""
    names = first.sources[0].name, other.sources[0].name
    if first.domain.names != other.domain.names:
        raise ReleaseError(
            f"{names[0]!r} and {names[1]!r} have different attributes, "
            f"{_listed(first.domain.names)} and {_listed(other.domain.names)}; combine only what "
            "was planned with the same codebook."
        )
    for mine, theirs in zip(first.domain, other.domain, strict=True):
        if _values(mine) != _values(theirs):
            raise ReleaseError(
                f"The values of {mine.name!r} differ between {names[0]!r} and {names[1]!r}, so "
                "their cells do not count the same; combine only what was planned with the same "
                "codebook."
            )


def _values(attribute: Attribute) -> object:
    """What tells an attribute's values from others, whatever they are called."""
    values = attribute.values
    return values.values if isinstance(values, Categories) else values


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names[:8])}{', …' if len(names) > 8 else ''})"


def _runs(part: Release | Estimates) -> list[RunId]:
    """The runs that a part was released by."""
    if isinstance(part, Release):
        return [RunId(part.plan.sha256, text_of_path(part.folder.resolve()))]
    return [RunId(each.plan_sha256, each.name) for each in part.sources if each.is_release]
