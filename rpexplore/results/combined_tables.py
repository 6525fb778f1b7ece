"""Combined tables: several releases and noisy marginals of the same records, averaged by accuracy.

The contributions of several sources to one residual are averaged with weights 1/σ²_k, which is
generalised least squares on everything at once (GReM-MLE, ReM §3.2; docs/mathematics.md §10). What
one source alone measured is kept.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from rpexplore.domain.domain import AttributeIndices, Domain, difference_of_cells
from rpexplore.domain.levels import Level
from rpexplore.errors import ReleaseError
from rpexplore.estimation.table_map import ArrayStore
from rpexplore.planning.mechanism.levels import Block, LevelTree, level_trees
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.results.combined_sources import joint_domain
from rpexplore.results.known_release import groups_of_values
from rpexplore.results.noisy_marginal import NoisyMarginal
from rpexplore.results.unbiased import Estimates
from rpexplore.workload.workload import Workload

_MANY_CELLS = 16  # of two different tables are hardly ever all within a half of each other
_CHANCE = 1e-6  # that other counts are alike: less is no chance
_NO_NOISE = 1e-9  # the chance that noise alone makes releases differ so much
_ALIKE = 0.01  # variances, relative: people round them


def combined_tables(parts: Sequence[Estimates], noisy: Sequence[NoisyMarginal]) -> Estimates:
    """The most accurate unbiased estimates of all tables of the parts.

    All parts are in memory at once, 8 bytes a number. noisy: marginals from elsewhere. Estimates
    that meet publicly known totals are the only part.

    Raises:
        ReleaseError: If parts have different domains or levels, hold the same measurements,
            measure an attribute by different strategies, or differ by more than their noise does.
    """
    for marginal in noisy:
        _refuse_own_table(parts, marginal)
    released = len(parts)
    estimates = [*parts, *(marginal.estimates() for marginal in noisy)]
    for part in estimates[1:]:
        _refuse_different_domains(estimates[0], part)
    estimates = _in_one_domain(estimates)
    strategies = common_strategies(
        estimates[0].domain.names,
        (
            (index, part.strategies.get(index), part.sources[0].name)
            for part in estimates
            for index in sorted({index for subset in part.contributions for index in subset})
        ),
        {number: block.column for number, block in estimates[0].blocks.items()},
    )
    _refuse_other_matrices(estimates, strategies)
    for left, right in combinations(estimates[:released], 2):
        _refuse_other_counts(left, right, strategies)
    # Σ 1/σ² of each residual, exact.
    precisions: defaultdict[AttributeIndices, Fraction] = defaultdict(Fraction)
    for part in estimates:
        for subset, variance in part.variances.items():
            precisions[subset] += 1 / variance
    domain = estimates[0].domain
    joint = joint_domain([part.domain for part in estimates])
    return Estimates(
        replace(
            domain,
            attributes=tuple(joint[name] for name in domain.names),
            impossible=joint.impossible,
        ),
        tuple(table for part in estimates for table in part.tables),
        ArrayStore(
            (subset, _mean(subset, precision, estimates))
            for subset, precision in precisions.items()
        ),
        {subset: 1 / precision for subset, precision in precisions.items()},
        strategies,
        tuple(source for part in estimates for source in part.sources),
        open_attributes=tuple(sorted({i for part in estimates for i in part.open_attributes})),
        known=estimates[0].known,  # of one part alone
        trees=estimates[0].trees,
        blocks=estimates[0].blocks,
    )


def _refuse_other_counts(
    left: Estimates, right: Estimates, strategies: Mapping[int, Strategy]
) -> None:
    """Raise `ReleaseError` if releases differ by more than noise does, but by a chance of 10⁻⁹.

    The difference of two contributions to a residual has noise of covariance (σ²_1 + σ²_2) ⊗ P_n,
    so that its square over σ²_1 + σ²_2 has the expectation ∏(n − 1). For noise as concentrated as
    the normal one, the sum of d of these exceeds d + 2√(d t) + 2 t with a chance of at most exp(−t)
    (Hsu, Kakade and Zhang 2012, https://arxiv.org/abs/1110.2842). Of noise from elsewhere this is
    not known. A small difference between records remains unseen.
    """
    if not all(source.is_release for source in (*left.sources, *right.sources)):
        return
    square, expected = 0.0, 0
    for subset in left.variances.keys() & right.variances.keys():
        if strategies.keys() & set(subset):
            continue
        difference = left.contributions[subset] - right.contributions[subset]
        variance = float(left.variances[subset] + right.variances[subset])
        square += float(np.sum(np.square(difference))) / variance
        expected += math.prod(size - 1 for size in difference.shape)
    t = -math.log(_NO_NOISE)
    if square > expected + 2 * math.sqrt(expected * t) + 2 * t:
        raise ReleaseError(
            f"{left.sources[0].name!r} and {right.sources[0].name!r} differ by more than their "
            "noise explains, so that they are hardly of the same records, counted in the same way; "
            "combine only releases that are."
        )


def _refuse_own_table(parts: Sequence[Estimates], marginal: NoisyMarginal) -> None:
    """Raise `ReleaseError` if a marginal is one that follows from a part: nothing new."""
    names = {marginal.domain.names[index] for index in marginal.attribute_indices}
    for part in parts:
        is_within = any(names <= set(table) for table in part.table_names)
        same = part.domain.of_records.attributes == marginal.domain.of_records.attributes
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


def common_strategies(
    names: Sequence[str] | Mapping[int, str],
    measured: Iterable[tuple[int, Strategy | None, str]],
    blocks: Mapping[int, int] | None = None,
) -> dict[int, Strategy]:
    """The strategy of each attribute in all releases that measured it.

    Args:
        names: Of the attributes.
        measured: The index of an attribute, its strategy (None: single values), and the release.
        blocks: The numbers of blocks of levels among the indices, and the attributes they are of.

    Raises:
        ReleaseError: If they differ.
    """
    known: dict[int, tuple[Strategy | None, str]] = {}
    for index, strategy, release in measured:
        other, first = known.setdefault(index, (strategy, release))
        alike = strategy is other
        if strategy is not None and other is not None:
            alike = np.array_equal(strategy.matrix, other.matrix)
            if alike and strategy.of_residuals:
                # Each may have matrices of its own for residuals that the other has not measured.
                joint = {**strategy.of_residuals, **other.of_residuals}
                known[index] = replace(other, of_residuals=joint), first
        if not alike and blocks and index in blocks:
            raise ReleaseError(
                f"The groups at the levels of {names[blocks[index]]!r} were measured with other "
                f"shares of each other for {first!r} than for {release!r}, and such measurements "
                "cannot be averaged; combine only releases with the same tables and weights, or "
                "plan them with --uniform-reference."
            )
        if not alike:
            raise _measured_differently(names[index], first, release)
    return {index: strategy for index, (strategy, _) in known.items() if strategy is not None}


def _refuse_other_matrices(parts: Sequence[Estimates], strategies: Mapping[int, Strategy]) -> None:
    """Raise `ReleaseError` if a residual was measured by one matrix here and another one there."""
    by_residual = {index for index, strategy in strategies.items() if strategy.of_residuals}
    measured: dict[tuple[AttributeIndices, int], tuple[Strategy, str]] = {}
    for part in parts:
        release = part.sources[0].name
        for subset in part.contributions:
            for index in by_residual.intersection(subset):
                own = part.strategies[index].within(subset)
                other, first = measured.setdefault((subset, index), (own, release))
                if not np.array_equal(own.matrix, other.matrix):
                    raise _measured_differently(part.domain.names[index], first, release)


def _measured_differently(name: str, first: str, other: str) -> ReleaseError:
    return ReleaseError(
        f"{name!r} was measured by different strategies for {first!r} and {other!r}, and such "
        "measurements cannot be averaged; combine only releases that count single values of this "
        "attribute, or were planned with the same strategy."
    )


def _in_one_domain(parts: Sequence[Estimates]) -> list[Estimates]:
    """The same estimates, all over the domain that has the levels of all of them.

    A release knows levels only where a table is at one, and of a level its own codebook's. Where
    all tables together have an attribute at several levels, each release must have measured it by
    the groups that these levels split into; raises `ReleaseError` where one has not.
    """
    if all(part.domain.of_records is part.domain for part in parts):
        return list(parts)
    used = [
        {part.domain.names[index] for table in part.tables for index in table} for part in parts
    ]
    columns = []
    for index, attribute in enumerate(parts[0].domain.of_records):
        levels: dict[str, Level] = {}
        others: dict[str, Level] = {}
        for part, names in zip(parts, used, strict=True):
            for level in part.domain.attributes[index].all_levels:
                name = attribute.at_level(level).name
                if name in names and levels.setdefault(level.name, level) != level:
                    raise ReleaseError(
                        f"{name!r} has other groups for {part.sources[0].name!r} than for a "
                        "release before it, so that they do not count the same; combine only what "
                        "was planned with the same levels."
                    )
                others.setdefault(level.name, level)
        columns.append(replace(attribute, levels=tuple((others | levels).values())))
    domain = Domain(tuple(columns), parts[0].domain.impossible).with_levels
    tables = {table for part in parts for table in part.table_names}
    trees, blocks = level_trees(Workload.of(domain, sorted(tables)))
    of_trees = {number: blocks[number] for tree in trees for number in tree.numbers}
    return [_over(domain, trees, of_trees, part) for part in parts]


def _over(
    domain: Domain, trees: tuple[LevelTree, ...], blocks: Mapping[int, Block], part: Estimates
) -> Estimates:
    """The estimates with the indices of a domain that has all attributes of their tables.

    trees, blocks: of all tables
    """
    numbers, orders = {}, {}
    for own in sorted({index for subset in part.contributions for index in subset}):
        numbers[own], orders[own] = _number_in(domain, trees, blocks, part, own)
    moved = {
        subset: tuple(sorted(numbers[index] for index in subset)) for subset in part.contributions
    }

    def turned(subset: AttributeIndices) -> np.ndarray:
        values = part.contributions[subset]
        for axis, own in enumerate(subset):
            values = values.take(orders[own], axis)
        return values.transpose(np.argsort([numbers[index] for index in subset]))

    def strategy_in(own: int, strategy: Strategy) -> Strategy:
        of_residuals = {
            moved[subset]: replace(matrix, integers=matrix.integers[:, orders[own]])
            for subset, matrix in strategy.of_residuals.items()
            if subset in moved
        }
        integers = strategy.integers[:, orders[own]]
        return replace(strategy, integers=integers, of_residuals=of_residuals)

    return replace(
        part,
        domain=domain,
        tables=tuple(map(domain.positions, part.table_names)),
        contributions=ArrayStore((moved[own], turned(own)) for own in part.contributions),
        variances={moved[subset]: variance for subset, variance in part.variances.items()},
        strategies={
            numbers[own]: strategy_in(own, strategy)
            for own, strategy in part.strategies.items()
            if own in numbers
        },
        open_attributes=tuple(
            domain.position(part.domain.names[index]) for index in part.open_attributes
        ),
        known=frozenset(moved[subset] for subset in part.known),
        trees=trees,
        blocks=blocks,
    )


def _number_in(
    domain: Domain,
    trees: Sequence[LevelTree],
    blocks: Mapping[int, Block],
    part: Estimates,
    own: int,
) -> tuple[int, np.ndarray]:
    """What stands for an attribute or block of a part among all tables, and its groups' order.

    Raises `ReleaseError` where nothing does: the part measured other groups.
    """
    if own in part.blocks:
        number, column = -1, part.blocks[own].column
        partition = part.blocks[own].index_of_values
    else:
        number = domain.position(part.domain.names[own])
        column, partition = int(domain.columns[number]), groups_of_values(domain, number)
    tree = next((tree for tree in trees if tree.column == column), None)
    if tree is None:
        return number, np.arange(int(domain.sizes[number]))
    inside = partition >= 0
    for candidate in tree.numbers:
        theirs = blocks[candidate].index_of_values
        order = np.full(int(partition.max()) + 1, -1)
        if blocks[candidate].size == len(order) and np.array_equal(theirs >= 0, inside):
            order[theirs[inside]] = partition[inside]
            if np.array_equal(order[theirs[inside]], partition[inside]):
                return candidate, order
    at = ", ".join(domain.names[index] for index in sorted(tree.of_tables))
    raise ReleaseError(
        f"The tables of {part.sources[0].name!r} have {domain.names[column]!r} at other levels "
        f"than all releases together ({at}), so that it was measured by other groups, and such "
        "measurements cannot be averaged; combine only releases with the same levels of it."
    )


def _refuse_different_domains(left: Estimates, right: Estimates) -> None:
    """Raise `ReleaseError` unless both have the same attributes with the same values, in order."""
    if difference := difference_of_cells(left.domain, right.domain):
        raise ReleaseError(
            f"{left.sources[0].name!r} and {right.sources[0].name!r} {difference}; combine only "
            "what was planned with the same codebook."
        )
