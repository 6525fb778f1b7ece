"""Best strategies: those with which a loss can be smallest, and a bound for all others.

For the largest variance the weights on the cells are themselves looked for (docs/mathematics.md
§5.4), as a product of one for each table and one for each row of each basis: rows (and tables)
whose variance is above the mean get more.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, product
from typing import Any

import numpy as np

from rpexplore.common.processes import Progress, Share, no_progress, no_share, one_thread
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.solvers.kinds_of_records import Limits, minimise_with_kinds
from rpexplore.planning.solvers.largest_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.record_prices import best_prices
from rpexplore.planning.solvers.solution import dual_bound
from rpexplore.planning.solvers.strategy_rounding import bits_for, integer_matrix, rotation
from rpexplore.planning.strategies import EXACT, FINE, ROUGH, StrategySearch, user_cache
from rpexplore.workload.bases import Identity, to_json
from rpexplore.workload.workload import Workload

_VERSION = 8  # of the search: strategies of another one are not used
_STILL = 1e-6  # a sweep that is expected to lower the sum by less (relative) is not made
_MOST_SWEEPS = 20
_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the sizes of groups, by which they get shares
_MOST_TURNED = 5000  # residuals of a plan in which powers are looked for attribute by attribute
_Powers = tuple[tuple[tuple[float, float], ...], ...]  # of each level of each tree, for z and Λ
_NEARLY = 1e-3  # relative, of a largest variance by which powers are compared
_OF_SUMS = 1e-4  # and of sums of variances
_MOST_SHARED = 200  # groups of a block that get shares of their own: larger ones get even shares
_BITS_OF_AMOUNTS = 8.0
_BITS_BESIDE_AMOUNTS = 9.0  # of what is measured of other attributes in tables with amounts
# Of blocks there: bits and rotated copies that are tried, until one costs no more than this.
_BITS_OF_BLOCKS, _COPIES, _LOST = (6, 7, 8, 10), 3, 2e-5
_BITS_OF_WEIGHTED = 4.0  # of amounts times weights, at a cost of some 0.02 % of variance
_ROUNDS = 200  # of new weights, for the largest variance
_STEADY = 1e-5  # rounds end when the weighted value grows by less (relative)


@one_thread()
def with_best_strategies(
    workload: Workload,
    closure: Closure,
    table_weights: np.ndarray,
    *,
    largest: bool = False,
    uniform_reference: bool = False,
    on_progress: Progress = no_progress,
) -> Closure:
    """The closure with the strategies that make a weighted sum, or maximum, of variances smallest.

    Those of an earlier search, in this process or in another one of the same user, are used again.

    Args:
        table_weights: float64[n_tables], on the mean variance of a table's cells, or with `largest`
            on that of its least accurate cell.
        uniform_reference: Whether all z are 1/n, as ResidualPlanner+ has them.
        on_progress: What it raises ends the search.

    Returns:
        The closure itself where no attribute needs a strategy.

    Raises:
        PlanError: If the bases are too ill-conditioned to compute with.
    """
    if workload.is_marginals:
        return closure
    if closure.trees:
        return _with_best_shares(
            workload,
            closure,
            table_weights,
            largest=largest,
            uniform_reference=uniform_reference,
            on_progress=on_progress,
        )
    key = _key(workload, table_weights, largest, uniform_reference)
    kept = user_cache().get(key)
    strategies = None if kept is None else _strategies_of(kept, workload)
    if strategies is not None:
        return closure.with_strategies(workload, strategies)
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # refused below
            search = StrategySearch(
                workload, closure, table_weights, keep_references=uniform_reference
            )
            on_share = partial(on_progress, "Looking for what to measure")
            if largest:
                search.start({}, lambda share: on_share(share / (_ROUNDS + 1)))
                _find_for_largest(search, on_share)
            else:
                search.start({}, lambda share: on_share(_share_after(0, share)))
                _find(search, on_share)
            strategies = _rounded(search)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        own = {index for index, basis in workload.attribute_bases if basis.parameter == "file"}
        indices = sorted(own) or measured_attributes(workload)
        names = ", ".join(repr(workload.domain.names[index]) for index in indices)
        raise PlanError(
            f"What to measure best could not be computed for {names}: "
            "queries of very different size, or nearly the same as each other, are beyond the "
            "digits of the computer. Scale them alike, or leave out those that follow from others."
        ) from None
    user_cache().put(key, _arrays_of(strategies))
    return closure.with_strategies(workload, strategies)


@one_thread()
def strategy_bound(
    workload: Workload, closure: Closure, table_weights: np.ndarray, *, largest: bool = False
) -> float:
    """A lower bound on the weighted loss at privacy cost 1, whatever matrices are measured.

    With the reference distributions of the closure's strategies. Each √(βτ) is at least the bound
    of `best_matrix` (docs/mathematics.md §5.1), and the loss grows with every one of them.
    Not finite where the weights are too large to compute with.
    """
    search = StrategySearch(workload, closure, table_weights, keep_references=True)
    references = {index: strategy.reference for index, strategy in closure.strategies.items()}
    try:
        search.start(references)
        if largest:
            _find_for_largest(search, no_share)
        return search.least_value() ** 2
    except (np.linalg.LinAlgError, ValueError, ArithmeticError):
        return math.nan


def _with_best_shares(
    workload: Workload, closure: Closure, table_weights: np.ndarray, **options: Any
) -> Closure:
    """`with_best_strategies` where attributes are in tables at several levels.

    Groups get shares of the group they lie in by a power of how many values they hold, the best of
    those tried. Attributes in other bases than single values have the strategies that are best
    where every level is an attribute of its own, by single values.
    """
    in_trees = {attribute for tree in closure.trees for attribute in tree.of_tables}
    measured = measured_attributes(workload)
    strategies: dict[int, Strategy] = {}
    if measured:
        names = workload.domain.names
        apart = workload.with_bases({names[index]: Identity() for index in in_trees})
        flat = Closure.of(apart, levels_apart=True)
        strategies |= with_best_strategies(apart, flat, table_weights, **options).strategies
    of_tables = np.sum(np.isin(workload.members, [*in_trees, *measured]), axis=1)
    bits = int(bits_for(max(int(np.max(of_tables)), 1)))
    beside_amounts = {
        place
        for place, tree in enumerate(closure.trees)
        if not _beside_amounts(workload).isdisjoint(tree.of_tables)
    }
    tried: dict[_Powers, tuple[float, Closure]] = {}
    sums = _Sums(table_weights)

    @cache
    def strategy_of(
        tree: int, level: int, block: int, powers: tuple[float, float], bits: int, copy: int
    ) -> Strategy | None:
        _, groups = closure.trees[tree].blocks[level][block]
        return _strategy_of_block(closure.trees[tree].leaves[level][groups], powers, bits, copy)

    def measured_so(powers: _Powers, few_bits: int = bits, copy: int = 0) -> Closure:
        own = {
            number: strategy
            for place, (tree, of_tree) in enumerate(zip(closure.trees, powers, strict=True))
            for level, (of_level, of_powers) in enumerate(zip(tree.blocks, of_tree, strict=True))
            for block, (number, _) in enumerate(of_level)
            if (
                strategy := strategy_of(place, level, block, of_powers, few_bits, copy)
                if place in beside_amounts
                else strategy_of(place, level, block, of_powers, bits, 0)
            )
            is not None
        }
        return closure.with_strategies(workload, {**strategies, **own})

    def value(powers: _Powers) -> float:
        if powers not in tried:
            made = measured_so(powers)
            if options["largest"]:
                worth = _value_of_maximum(workload, made, table_weights)
            else:
                worth = sums(made)
            tried[powers] = worth, made
        return tried[powers][0]

    uneven = [
        [
            level
            for level, (of_level, leaves) in enumerate(zip(tree.blocks, tree.leaves, strict=True))
            if any(np.ptp(leaves[groups]) for _, groups in of_level)
        ]
        for tree in closure.trees
    ]
    if not any(uneven) or options["uniform_reference"]:
        is_made = bool(closure.moments) and not (strategies or closure.strategies)
        return closure if is_made else closure.with_strategies(workload, strategies)
    evenly = [
        tuple(((power, 1.0),) * len(tree.blocks) for tree in closure.trees) for power in _POWERS
    ]
    best = min(evenly, key=value)
    # Tree by tree, then level by level, and both powers: for a sum, whose value is a closed form
    # and no search.
    of_sum = not options["largest"] and len(closure) <= _MOST_TURNED
    together = [(tree, levels) for tree, levels in enumerate(uneven) if levels]
    apart = [(tree, [one]) for tree, levels in together if len(levels) > 1 for one in levels]
    turns = product((0.25, 0.125), together), product((0.5, 0.25, 0.125), apart)
    for (step, (tree, levels)), place in product(chain(*turns) if of_sum else (), range(2)):
        best = min((best, *_moved(best, tree, levels, place, step)), key=value)
    if not beside_amounts:
        return tried[best][1]

    # Amounts multiply all integers by their range in smallest steps: in as few bits as there can
    # be, more records fit into 64 bits, and noise for smaller budgets.
    closely = _Sums(table_weights, _LOST)

    def close_value(made: Closure) -> float:
        if options["largest"]:
            return _value_of_maximum(workload, made, table_weights, _LOST)
        return closely(made)

    most = close_value(tried[best][1]) * (1 + _LOST)
    for few_bits, copy in product(_BITS_OF_BLOCKS, range(_COPIES)):
        if few_bits < bits and close_value(made := measured_so(best, few_bits, copy)) <= most:
            return made
    return tried[best][1]


def _moved(
    powers: _Powers, tree: int, levels: Sequence[int], place: int, step: float
) -> Iterator[_Powers]:
    """The powers with one of both (place) smaller and larger by a step on some levels of a tree."""
    for sign in (-step, step):
        of_tree = [list(of_level) for of_level in powers[tree]]
        for level in levels:
            of_tree[level][place] += sign
        changed = tuple((z, cost) for z, cost in of_tree)
        yield (*powers[:tree], changed, *powers[tree + 1 :])


def _beside_amounts(workload: Workload) -> set[int]:
    """The attributes of tables with amounts."""
    return set(workload.members[workload.has_amounts].ravel().tolist()) - {-1}


def _value_of_maximum(
    workload: Workload, closure: Closure, table_weights: np.ndarray, tolerance: float = _NEARLY
) -> float:
    """The smallest weighted largest variance at privacy cost 1, nearly."""

    cells = CellVariances(workload, closure)
    if closure.classes is None:
        solution = minimise_max_cell_variance(cells, table_weights, 1.0, tolerance)
    else:
        _, solution = minimise_with_kinds(cells, Limits(largest=table_weights), 1.0)
    largest = cells.least_accurate(solution.sigma_squared)
    return float(np.max(table_weights * largest.variances))


@dataclass
class _Sums:
    """The smallest weighted sums of variances at privacy cost 1, nearly, of one closure each.

    Any prices bound such a sum from below (docs/mathematics.md §5.5). Where those of the smallest
    one so far show that another is larger, it is not looked for, and the bound stands for it.
    """

    table_weights: np.ndarray
    tolerance: float = _OF_SUMS  # of each sum, relative
    least: float = math.inf
    prices: np.ndarray | None = None  # of the smallest one

    def __call__(self, closure: Closure) -> float:
        weights, prices = closure.residual_weights(self.table_weights), None
        if closure.classes is not None:
            if self.prices is not None and len(self.prices) == closure.n_kinds:
                bound = self._bound(closure.with_prices(self.prices), weights)
                if bound > self.least * (1 + 3 * self.tolerance):  # beyond what both are known to
                    return bound
            prices = best_prices(closure, weights / np.max(weights), self.tolerance)
            closure = closure.with_prices(prices)
        value = self._bound(closure, weights)
        if value < self.least:
            self.least, self.prices = value, prices
        return value

    def _bound(self, closure: Closure, weights: np.ndarray) -> float:
        return dual_bound(closure.privacy_cost_factor, weights, 1.0)


def _strategy_of_block(
    leaves: np.ndarray, powers: tuple[float, float], bits: int, copy: int
) -> Strategy | None:
    """What is measured of groups that hold so many values, float64[n]; None where all are alike.

    z and Λ are proportional to these powers of them: R is the best one for the values of the groups
    if privacy costs Λ there (docs/mathematics.md §4.1). Copies are rotated before they are rounded.
    """
    if len(leaves) > _MOST_SHARED or np.ptp(leaves) == 0:
        return None
    shares, weights = (leaves**power / np.sum(leaves**power) for power in powers)
    beyond = np.eye(len(leaves)) - np.outer(shares, np.ones(len(leaves)))
    halves = np.sqrt(weights)
    squares, vectors = np.linalg.eigh(halves[:, None] * (beyond.T @ beyond) * halves)
    roots = (vectors * np.sqrt(np.maximum(squares, 0.0))) @ vectors.T
    squares, vectors = np.linalg.eigh(roots / halves[:, None] / halves)
    matrix = np.sqrt(np.maximum(squares[1:], 0.0))[:, None] * vectors[:, 1:].T
    longest = np.sqrt(np.max(np.sum(matrix * matrix, axis=0)))
    if copy:
        matrix = rotation(len(matrix), copy) @ matrix
    return Strategy(np.rint(matrix / longest * 2.0**bits).astype(np.int64), bits)


def _key(workload: Workload, table_weights: np.ndarray, *flags: bool) -> str:
    """What the search depends on, and no more: neither names nor labels, nor the budget."""
    domain = workload.domain
    bases = [
        (index, to_json(basis), domain.attributes[index].groups if basis.uses_groups else ())
        for index, basis in workload.attribute_bases
    ]
    parts = [_VERSION, domain.sizes.tolist(), bases, workload.members.shape, *flags]
    digest = hashlib.sha256(json.dumps(parts).encode())
    for array in (workload.members, workload.basis_index, table_weights):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _arrays_of(strategies: Mapping[int, Strategy]) -> dict[str, np.ndarray]:
    """Strategies as a cache keeps them; those that several attributes share once."""
    first: dict[int, int] = {}
    arrays: dict[str, np.ndarray] = {}
    for attribute, strategy in strategies.items():
        if id(strategy) not in first:
            first[id(strategy)] = attribute
            arrays[f"matrix {attribute}"] = strategy.integers
        arrays[f"source {attribute}"] = np.array([first[id(strategy)], strategy.bits])
    return arrays


def _strategies_of(
    arrays: Mapping[str, np.ndarray], workload: Workload
) -> dict[int, Strategy] | None:
    """The strategies that a cache kept; None where they do not fit, whatever they are."""
    made: dict[int, Strategy] = {}
    strategies = {}
    try:
        for attribute in measured_attributes(workload):
            first, bits = arrays[f"source {attribute}"].tolist()
            if first not in made:
                made[first] = Strategy(arrays[f"matrix {first}"], bits)
            strategies[attribute] = made[first]
            if made[first].size != workload.domain.sizes[attribute]:
                return None
    except (KeyError, ValueError, TypeError, PlanError):
        return None
    return strategies


def _find(search: StrategySearch, on_share: Share) -> None:
    """Improve all attributes in turn, roughly and then exactly, until nothing is to be gained."""
    before, last = search.value(), math.inf
    rough, fine = (EXACT, EXACT) if search.keep_references else (ROUGH, FINE)
    for sweep in range(_MOST_SWEEPS):
        search.sweep(
            lambda share, sweep=sweep: on_share(_share_after(sweep + 1, share)),
            tolerance=rough if sweep == 0 else fine,
        )
        now = search.value()
        gain = 1 - now / before
        # Gains fall about geometrically.
        if search.is_alone or (sweep > 0 and gain * gain <= _STILL * last):
            return
        before, last = now, gain


def _share_after(sweeps: int, share: float) -> float:
    """The share of a search after so many sweeps, the start included, and a share of the next.

    Each counts for half of what is left, as nobody knows how many there will be.
    """
    return 1 - (1 - share / 2) / 2**sweeps


def _find_for_largest(search: StrategySearch, on_share: Share) -> None:
    """Look for the weights as well: y on the tables, of sum 1, and those on the rows."""
    weights, before = search.table_weights, 0.0
    search.table_weights = weights / len(search.workload)
    for round_ in range(_ROUNDS):
        search.sweep(lambda share, round_=round_: on_share((round_ + 1 + share) / (_ROUNDS + 1)))
        now = search.value()
        if round_ > 5 and now <= before * (1 + _STEADY):
            return
        before = now
        search.reweigh(weights)


def _rounded(search: StrategySearch) -> dict[int, Strategy]:
    """The strategies in integers."""
    has = np.isin(search.workload.members, search.attributes)
    bits = bits_for(max(int(np.max(np.count_nonzero(has, axis=1))), 1))
    of_amounts = np.isin(search.workload.members, search.workload.domain.amounts)
    is_weighted = bool(np.any(np.sum(of_amounts, axis=1) > 1))
    beside_amounts = _beside_amounts(search.workload)
    done: dict[int, Strategy] = {}  # attributes that were solved together stay alike
    strategies = {}
    for attribute in search.attributes:
        solution = search.measuring[attribute]
        if id(solution) not in done:
            problem = search.problem(attribute)
            # Amounts multiply all integers by their range: the smaller these are, the more records
            # and decimals there can be. Most often R is (−1, 1).
            has_amounts = attribute in search.workload.domain.amounts
            most = math.inf
            if has_amounts:
                most = _BITS_OF_WEIGHTED if is_weighted else _BITS_OF_AMOUNTS
            elif attribute in beside_amounts:
                most = _BITS_BESIDE_AMOUNTS
            own_bits = min(bits, most)
            matrix = np.empty((0, 1), dtype=np.int64)
            if len(problem.gram) > 1:
                matrix = integer_matrix(
                    solution,
                    own_bits,
                    problem.gram,
                    problem.worth,
                    uniform_reference=search.keep_references,
                )
            if attribute in search.distinct:
                matrix = search.distinct[attribute].integers(matrix)
            own_bits = math.ceil(own_bits)
            if has_amounts and (common := int(np.gcd.reduce(matrix, axis=None))) > 1:
                # Of another scale R is worth the same, and its noise is of that scale.
                matrix, own_bits = matrix // common, max(own_bits - common.bit_length() + 1, 0)
            done[id(solution)] = Strategy(matrix, own_bits)
        strategies[attribute] = done[id(solution)]
    return strategies
