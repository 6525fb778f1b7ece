"""A bound for all Gaussian mechanisms that a plan itself gives, however many cells there are.

No Gaussian mechanism of privacy cost 1 has a smaller Σ w · variance than (tr K^½)², K = Λ^½ V Λ^½,
V = Σ w QᵀQ, for any weights λ on the cells (docs/mathematics-baselines.md §16). Where a plan's
estimates have the covariance Y, S = Λ^½ Y⁻¹ Λ^½ is nearly a multiple of K^½. With C = S⁻¹ K S⁻¹,

    tr K^½ ≥ tr (C^½ S) ≥ (tr C S)^(3/2) / (tr C² S)^½,   tr C S = tr V Y,
                                                          tr C² S = tr V Y Λ⁻¹ Y V Y,

first as tr K^½ ≥ |tr K^½ U| for U of no singular value above 1, then by Hölder's inequality. With λ
a product of weights of values, all of these are sums of products of numbers, one an attribute.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from rpexplore.common.processes import one_thread
from rpexplore.domain.domain import subsets
from rpexplore.planning.baselines.residual_axis import as_weights
from rpexplore.planning.baselines.residual_bound import residual_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.levels import LevelTree
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

_MOST_VALUES = 2500  # of an attribute: matrices of its values are multiplied
_MOST_PARTS = 30_000  # of tables: pairs of subsets of their attributes; about ten seconds
_MOST_SWEEPS = 8
_STILL = 1e-3  # a sweep that lowers it by less (relative) is the last one
_TOTAL = -1  # stands for the basis of tables without an attribute: their total
_ROUNDING = 1e-8  # of the bound: far more than sums of such products are off by


@one_thread()
def plan_bound(
    workload: Workload, closure: Closure, sigma_squared: np.ndarray, table_weights: np.ndarray
) -> float | None:
    """No Gaussian mechanism of privacy cost 1 has a smaller Σ weight · mean variance of a table.

    Args:
        sigma_squared: Of a plan, float64[n_residuals]; in any unit.
        table_weights: float64[n_tables], at least 0.

    Returns:
        None where it would take long.
    """
    of_residuals = None
    if has_mixed_bases(workload, closure):
        of_residuals = residual_bound(workload, closure, sigma_squared, table_weights)
    if closure.residual_moments:
        return of_residuals
    of_plan = _of_plan(workload, closure, sigma_squared, table_weights)
    return max((bound for bound in (of_residuals, of_plan) if bound is not None), default=None)


def has_mixed_bases(workload: Workload, closure: Closure) -> bool:
    """Whether an attribute has several bases, and residuals are products over attributes."""
    if closure.trees or closure.has_own_costs:
        return False
    return len({attribute for attribute, _ in workload.attribute_bases}) < len(
        workload.attribute_bases
    )


def _of_plan(
    workload: Workload, closure: Closure, sigma_squared: np.ndarray, table_weights: np.ndarray
) -> float | None:
    """The bound at the plan's Y, with the best λ; None where it would take long."""
    weighted = np.flatnonzero(table_weights > 0)
    if np.sum(3.0 ** workload.orders[weighted]) > _MOST_PARTS:
        return None
    axes = axes_of(workload, closure)
    if axes is None:
        return None
    tables = [TableParts.of(workload, axes, table, table_weights) for table in weighted.tolist()]
    noise = _Noise(closure, axes, sigma_squared)
    loss = sum(
        table.weight
        * float(_product(noise.of(table.columns), [axes[c].traces[q] for c, q in table.parts]))
        for table in tables
    )
    return loss**3 / _least_square(axes, tables, noise) * (1 - _ROUNDING)


# ---- Attributes: what they add to products, by the parts of Y along them.
#
# Y is a sum over residuals of σ² times a product over attributes of Y_a = W_a W_aᵀ: a = 0 is the
# total, spread by z, and a = 1, 2, … are residuals of the attribute, or of its blocks.


@dataclass(eq=False)
class Values:
    """An attribute whose values differ.

    decoding  W, float64[n, n]: z, then what is decoded of each residual or block
    starts    where the columns of each of these begin, int64[n_parts]
    grams     by basis G, of the mean square of a query: float64[n, n]
    """

    decoding: np.ndarray
    starts: np.ndarray
    grams: dict[int, np.ndarray]

    def __post_init__(self) -> None:
        turned = self.decoding.T
        self.turned = {q: turned @ gram @ self.decoding for q, gram in self.grams.items()}
        self.traces = {q: self._summed(np.diag(gram)) for q, gram in self.turned.items()}

    def _summed(self, numbers: np.ndarray) -> np.ndarray:
        return np.add.reduceat(numbers, self.starts, axis=0)

    def weighted(self, weights: np.ndarray | None) -> "_Weighted":
        """At weights λ of the values."""
        assert weights is not None
        inner = self.decoding.T @ (self.decoding / weights[:, None])  # Wᵀ Λ⁻¹ W
        rest = float(inner[0, 0])
        edges = {q: self._summed(gram[0] * inner[:, 0]) / rest for q, gram in self.turned.items()}
        cubes = {}
        for one, other in product(self.turned, repeat=2):
            parts = [
                self._summed(self._summed(part * inner).T).T for part in self._parts(one, other)
            ]
            cubes[one, other] = np.stack(parts, axis=-1) / rest
        return _Weighted(rest, edges, cubes)

    @cached_property
    def by_value(self) -> "_Weighted":
        """For Λ⁻¹ that is 1 at one value, 0 elsewhere: cubes for each value along a last axis.

        Also for tables without the attribute (`_TOTAL`), so that nothing else is needed.
        """
        cubes = {}
        for one, other in product((*self.turned, _TOTAL), repeat=2):
            parts = []
            for part in self._parts(one, other):
                of_parts = [
                    self._summed(((self.decoding[:, b] @ part[:, b].T) * self.decoding).T)
                    if part[:, b].any()
                    else np.zeros((len(self.starts), len(self.decoding)))
                    for b in self._slices
                ]
                parts.append(np.stack(of_parts, axis=1))
            cubes[one, other] = np.stack(parts, axis=2)
        return _Weighted(1.0, {}, cubes)

    @property
    def _slices(self) -> list[slice]:
        stops = [*self.starts[1:].tolist(), len(self.decoding)]
        return [slice(*ends) for ends in zip(self.starts.tolist(), stops, strict=True)]

    def _parts(self, one: int, other: int) -> Iterator[np.ndarray]:
        """Σ over each part c of (Wᵀ G W)_{cp} (Wᵀ G′ W)_{qc}, float64[n, n]."""
        left, right = self._gram(one), self._gram(other)
        for part in self._slices:
            if left[part].any() and right[:, part].any():
                yield left[part].T @ right[:, part].T
            else:
                yield np.zeros_like(left)

    def _gram(self, q: int) -> np.ndarray:
        if q != _TOTAL:
            return self.turned[q]
        gram = np.zeros_like(self.decoding)
        gram[0, 0] = 1.0
        return gram


@dataclass(eq=False)
class Alike:
    """An attribute of n single values, whose weights are even."""

    n: int
    bases: Sequence[int]

    def __post_init__(self) -> None:
        n = float(self.n)
        self.traces = dict.fromkeys(self.bases, np.array([n**-2, (n - 1) / n]))

    def weighted(self, weights: np.ndarray | None) -> "_Weighted":
        """At even weights."""
        return self._weighted

    @cached_property
    def _weighted(self) -> "_Weighted":
        cube = np.zeros((2, 2, 2))
        cube[0, 0, 0], cube[1, 1, 1] = float(self.n) ** -4, (self.n - 1.0) / self.n
        edges = dict.fromkeys(self.bases, np.array([float(self.n) ** -2, 0.0]))
        return _Weighted(1.0, edges, dict.fromkeys(product(self.bases, self.bases), cube))


@dataclass(frozen=True, eq=False)
class _Weighted:
    """What an attribute adds to tr V Y Λ⁻¹ Y V Y.

    rest   ζ = zᵀ Λ⁻¹ z: for pairs of tables without it
    edges  by basis zᵀ G Y_a Λ⁻¹ z / ζ: for pairs of which one table has it
    cubes  by two bases tr G Y_a Λ⁻¹ Y_b G′ Y_c / ζ
    """

    rest: float
    edges: dict[int, np.ndarray]
    cubes: dict[tuple[int, int], np.ndarray]


Axes = Mapping[int, Values | Alike]


def axes_of(workload: Workload, closure: Closure) -> Axes | None:
    """The attributes of the records that tables have, those of one value aside."""
    domain, axes = workload.domain, {}
    trees = {tree.column: tree for tree in closure.trees}
    of_columns: dict[int, list[int]] = {}
    for place, (attribute, _) in enumerate(workload.attribute_bases):
        of_columns.setdefault(int(domain.columns[attribute]), []).append(place)
    for column, places in of_columns.items():
        attribute = workload.attribute_bases[places[0]][0]
        strategy, tree = closure.strategies.get(attribute), trees.get(column)
        if tree is not None:
            decoding, starts = _of_tree(tree, closure)
            groups = {one: _values_of_groups(tree, one) for one in tree.of_tables}
        elif strategy is not None:
            decoding = np.column_stack([strategy.reference, strategy.decoding])
            starts, groups = np.array([0, 1]), {}
        else:
            if domain.sizes[attribute] > 1:
                axes[column] = Alike(int(domain.sizes[attribute]), places)
            continue
        if len(decoding) > _MOST_VALUES:
            return None
        grams = {}
        for place in places:
            one, basis = workload.attribute_bases[place]
            gram = query_matrix(basis, domain.attributes[one]).mean_gram
            grams[place] = gram[np.ix_(groups[one], groups[one])] if one in groups else gram
        axes[column] = Values(decoding, starts, grams)
    return axes


def _values_of_groups(tree: LevelTree, attribute: int) -> np.ndarray:
    """The value of an attribute of tables that each group of the last level is part of."""
    level, index = tree.of_tables[attribute]
    group = np.arange(tree.sizes[-1])
    for parents in tree.parents[:level:-1]:
        group = parents[group]
    return index[group]


def _of_tree(tree: LevelTree, closure: Closure) -> tuple[np.ndarray, np.ndarray]:
    """How the groups of the last level are decoded of the total and all blocks, as `Values`."""
    shares = tree.shares(closure.strategies)
    parts = [np.ones((1, 1))]
    for level, (parents, blocks) in enumerate(zip(tree.parents, tree.blocks, strict=True)):
        parts = [part[parents] * shares[level][:, None] for part in parts]
        for number, groups in blocks:
            strategy = closure.strategies.get(number)
            n = len(groups)
            part = np.zeros((len(parents), n - 1))
            if strategy is None:  # an orthonormal basis beside the ones: D Dᵀ = I − 11ᵀ/n
                part[groups] = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][
                    :, 1:
                ]
            else:
                part[groups] = strategy.decoding
            parts.append(part)
    starts = np.cumsum([0, *(part.shape[1] for part in parts[:-1])])
    return np.hstack(parts), starts


# ---- Sums over tables and residuals.


@dataclass(frozen=True, eq=False)
class TableParts:
    """A table's weight on a query's variance, and its attributes of the records with bases."""

    weight: float
    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls, workload: Workload, axes: Axes, table: int, table_weights: np.ndarray
    ) -> "TableParts":
        weight, parts = float(table_weights[table]), []
        places = workload.attribute_basis_index[table].tolist()
        for attribute, place in zip(workload.attribute_indices(table), places, strict=False):
            column = int(workload.domain.columns[attribute])
            if column in axes:
                parts.append((column, place))
                continue
            basis = workload.attribute_bases[place][1]
            queries = query_matrix(basis, workload.domain.attributes[attribute])
            weight *= float(queries.mean_gram[0, 0])
        return cls(weight, tuple(sorted(parts)))

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column, _ in self.parts)


class _Noise:
    """σ² of the residuals within sets of attributes of the records."""

    def __init__(self, closure: Closure, axes: Axes, sigma_squared: np.ndarray) -> None:
        part = dict.fromkeys(range(len(closure.sizes)), 1)
        for tree in closure.trees:
            part |= {number: place for place, number in enumerate(tree.numbers, start=1)}
        self._found: dict[tuple[int, ...], np.ndarray] = {}
        self._sizes = {
            column: len(next(iter(axis.traces.values()))) for column, axis in axes.items()
        }
        scale = float(np.max(sigma_squared))
        self._of = {
            tuple(
                sorted((int(closure.columns[number]), part[number]) for number in attributes)
            ): value
            for attributes, value in zip(
                map(closure.attributes, range(len(closure))),
                (sigma_squared / scale).tolist(),
                strict=True,
            )
        }

    def of(self, columns: tuple[int, ...]) -> np.ndarray:
        """Of every choice of a part of each of these attributes, float64[n_parts, …]."""
        if columns not in self._found:
            shape = [self._sizes[column] for column in columns]
            found = np.zeros(shape)
            for choice in np.ndindex(*shape):
                key = tuple((c, part) for c, part in zip(columns, choice, strict=True) if part)
                found[choice] = self._of.get(key, 0.0)  # 0: no table needs it
            self._found[columns] = found
        return self._found[columns]


def _product(tensor: np.ndarray, vectors: Sequence[np.ndarray]) -> np.ndarray:
    """A tensor contracted with one vector for each of its last axes."""
    for vector in reversed(vectors):
        tensor = tensor @ vector
    return tensor


def _least_square(axes: Axes, tables: Sequence[TableParts], noise: _Noise) -> float:
    """tr V Y Λ⁻¹ Y V Y at weights λ of values for which it is nearly the smallest.

    For one attribute, the others held, it is Σ h/λ: smallest where λ ∝ √h.
    """
    own = {column: axis for column, axis in axes.items() if isinstance(axis, Values)}
    weights = {column: as_weights(np.abs(axis.decoding[:, 0])) for column, axis in own.items()}
    found = math.inf
    for _ in range(_MOST_SWEEPS):
        before = found
        for column in own:
            of_values = np.maximum(_squared(axes, tables, noise, weights, column), 0.0)
            weights[column] = as_weights(np.sqrt(of_values))
            found = float(np.sum(of_values / weights[column]))
        if found > before * (1 - _STILL):
            break
    return found


def _squared(
    axes: Axes,
    tables: Sequence[TableParts],
    noise: _Noise,
    weights: Mapping[int, np.ndarray],
    kept: int,
) -> np.ndarray:
    """h of the values of an attribute: Σ h/λ is tr V Y Λ⁻¹ Y V Y, whatever its λ: float64[n].

    A sum over pairs of tables and triples of residuals. Of a pair with the attributes u in common
    the others are contracted first. Pairs that have v ⊇ u in common count with a sign, (−1) to the
    number of attributes of v beyond u, so that those with u alone are left.
    """
    at = {
        column: axis.by_value
        if column == kept and isinstance(axis, Values)
        else axis.weighted(weights.get(column))
        for column, axis in axes.items()
    }
    sums: dict[tuple[tuple[int, ...], tuple[int, ...]], dict[tuple[int, ...], np.ndarray]] = {}
    for table in tables:
        # All tables have the one attribute: those without it ask for its total.
        of_table = {kept: _TOTAL, **dict(table.parts)}
        columns = tuple(sorted(of_table))
        others = [column for column in columns if column != kept]
        of_noise = noise.of(columns) * table.weight
        for chosen in subsets(others):
            common = tuple(sorted((kept, *chosen)))
            rest = [column for column in others if column not in chosen]
            tensor = of_noise.transpose([columns.index(column) for column in (*common, *rest)])
            tensor = _product(tensor, [at[column].edges[of_table[column]] for column in rest])
            bases = tuple(of_table[column] for column in common)
            for more in subsets(rest):
                by_bases = sums.setdefault((more, common), {})
                by_bases[bases] = by_bases.get(bases, 0.0) + tensor
    total = np.zeros(1)
    for (more, common), by_bases in sums.items():
        n = len(common)
        one_axes, other_axes, both_axes = (list(range(k * n, k * n + n)) for k in range(3))
        for one, other in product(by_bases, repeat=2):
            operands: list = [by_bases[one], one_axes, by_bases[other], other_axes]
            operands += [noise.of(common), both_axes]
            for place, column in enumerate(common):
                cube = at[column].cubes[one[place], other[place]]
                of_values = [3 * n] if column == kept else []
                operands += [cube, [place, n + place, 2 * n + place, *of_values]]
            total = total + (-1) ** len(more) * np.einsum(*operands, [3 * n], optimize=n > 1)
    return total * math.prod(axis.rest for axis in at.values())
