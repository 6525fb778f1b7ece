"""Combining: several releases and noisy marginals of the same records into one set of tables.

The contributions of several sources to one residual are averaged with weights 1/σ²_k, which is
generalised least squares on everything at once (GReM-MLE, ReM §3.2; docs/mathematics.md §10). What
one source alone measured is kept.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from rpexplore.common.formatting import text_of_path
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.domain.same_cells import difference_of_cells
from rpexplore.errors import ReleaseError
from rpexplore.estimation.array_store import ArrayStore
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.measurement_source import refuse_unlike
from rpexplore.postprocessing.noisy_marginal import NoisyMarginal
from rpexplore.postprocessing.same_records import ReleaseId, refuse_other_records
from rpexplore.releases.items import PartReader
from rpexplore.releases.manifest import manifest_sha256

_MANY_CELLS = 16  # of two different tables are hardly ever all within a half of each other
_CHANCE = 1e-6  # that other counts are alike: less is no chance
_ALIKE = 0.01  # variances, relative: people round them


def combine(
    *parts: PartReader,
    noisy: Iterable[NoisyMarginal] = (),
    ledger: str | Path | None = None,
) -> Estimates:
    """The most accurate unbiased estimates of all tables of the parts.

    Spends nothing; what the parts spent adds up. All parts are in memory at once, 8 bytes a number.

    Args:
        parts: Releases with tables and combined ones, all of the same records: nothing in them can
            show it, the caller answers for it.
        noisy: Noisy marginals of these records from elsewhere.
        ledger: Where the runs are booked; those that it knows by different records are refused.

    Raises:
        ReleaseError: If parts have different domains, hold the same measurements, count
            out-of-codebook values differently, or measure an attribute by different strategies.
        LedgerError: If the ledger cannot be read.
    """
    marginals = list(noisy)
    if not parts and not marginals:
        raise ReleaseError("There is nothing to combine; name a release.")
    parts = tuple(part.unbiased_tables() for part in parts)
    if ledger is not None:
        refuse_other_records(ledger, [each for part in parts for each in _release_ids(part)])
    estimates = [Estimates.of(part) for part in parts]
    for marginal in marginals:
        _refuse_own_table(estimates, marginal)
    estimates += [marginal.estimates() for marginal in marginals]
    sources = tuple(source for part in estimates for source in part.sources)
    refuse_unlike(sources)
    for part in estimates[1:]:
        _refuse_different_domains(estimates[0], part)
    strategies = _common_strategies(estimates)
    # Σ 1/σ² of each residual, exact.
    precisions: defaultdict[AttributeIndices, Fraction] = defaultdict(Fraction)
    for part in estimates:
        for subset, variance in part.variances.items():
            precisions[subset] += 1 / variance
    return Estimates(
        _domain_of_all(estimates),
        tuple(table for part in estimates for table in part.tables),
        ArrayStore(
            (subset, _mean(subset, precision, estimates))
            for subset, precision in precisions.items()
        ),
        {subset: 1 / precision for subset, precision in precisions.items()},
        strategies,
        sources,
    )


def _domain_of_all(parts: Sequence[Estimates]) -> Domain:
    """The first part's domain, with what any part states to be impossible.

    Left out is what would not mean the same there, by other labels or groups.
    """
    domain = parts[0].domain
    stated = [
        combination
        for part in parts
        for combination in part.domain.impossible
        if all(_meaning(part.domain[name]) == _meaning(domain[name]) for name in combination.names)
    ]
    return replace(domain, impossible=tuple(stated))


def _meaning(attribute: Attribute) -> object:
    return attribute.values, attribute.groups


def _refuse_own_table(parts: Sequence[Estimates], marginal: NoisyMarginal) -> None:
    """Raise `ReleaseError` if a marginal is one that follows from a part: nothing new."""
    for part in parts:
        is_within = any(set(marginal.attribute_indices) <= set(table) for table in part.tables)
        same = part.domain.attributes == marginal.domain.attributes
        if same and is_within and _is_own_table(part, marginal):
            raise ReleaseError(
                f"The noisy marginal {marginal.name!r} is a table of one of the releases and "
                "would count twice; leave it out."
            )


def _is_own_table(part: Estimates, marginal: NoisyMarginal) -> bool:
    """Whether a part gives these counts, and that is no chance, or gives them as accurately."""
    names = [marginal.domain.names[index] for index in marginal.attribute_indices]
    own, size = part.marginal(names), marginal.values.size
    # Whole numbers may be a rounded table, but a few of them can also be alike by chance.
    tolerance = 0.51 if size >= _MANY_CELLS else 1e-6
    if np.any(np.abs(own - marginal.values) > tolerance + 1e-9 * np.abs(own)):
        return False
    variance = float(marginal.variance)
    chance = 0.0
    if np.array_equal(marginal.values, np.rint(marginal.values)):
        chance = min(1.0, 1 / math.sqrt(2 * math.pi * variance)) ** size
    as_accurate = np.isclose(part.marginal_variances(names), variance, rtol=_ALIKE)
    return chance < _CHANCE or bool(np.any(as_accurate))


def _mean(subset: AttributeIndices, precision: Fraction, parts: Sequence[Estimates]) -> np.ndarray:
    """The contribution of a residual: the parts' own, weighted by inverse variance."""
    having = [part for part in parts if subset in part.contributions]
    if len(having) == 1:
        return having[0].contributions[subset]
    weights = [float(1 / part.variances[subset] / precision) for part in having]
    weighted = zip(weights, having, strict=True)
    return np.sum([weight * part.contributions[subset] for weight, part in weighted], axis=0)


def _common_strategies(parts: Sequence[Estimates]) -> dict[int, Strategy]:
    """The strategy of each attribute in all parts that have it; `ReleaseError` if they differ."""
    strategies: dict[int, tuple[Strategy | None, Estimates]] = {}
    for part in parts:
        for index in sorted({index for subset in part.contributions for index in subset}):
            strategy = part.strategies.get(index)
            known, first = strategies.setdefault(index, (strategy, part))
            alike = strategy is known  # None: single values
            if strategy is not None and known is not None:
                alike = np.array_equal(strategy.matrix, known.matrix)
            if not alike:
                raise ReleaseError(
                    f"{part.domain.names[index]!r} was measured by different strategies for "
                    f"{first.sources[0].name!r} and {part.sources[0].name!r}, and such "
                    "measurements cannot be averaged; combine only releases that count single "
                    "values of this attribute, or were planned with the same strategy."
                )
    return {index: strategy for index, (strategy, _) in strategies.items() if strategy is not None}


def _refuse_different_domains(left: Estimates, right: Estimates) -> None:
    """Raise `ReleaseError` unless both have the same attributes with the same values, in order."""
    if difference := difference_of_cells(left.domain, right.domain):
        raise ReleaseError(
            f"{left.sources[0].name!r} and {right.sources[0].name!r} {difference}; combine only "
            "what was planned with the same codebook."
        )


def _release_ids(part: PartReader) -> list[ReleaseId]:
    """What the releases in a part are known by."""
    if not part.made_of:
        folder = text_of_path(part.home.resolve())
        return [ReleaseId(part.manifest["plan_sha256"], manifest_sha256(part.home), folder)]
    return [
        ReleaseId(source.plan_sha256, source.sha256, source.name)
        for source in part.made_of
        if source.is_release
    ]
