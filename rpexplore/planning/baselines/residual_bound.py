"""`plan_bound` where residuals have matrices of their own.

The bound is the same, with the covariance Y of the plan's estimates: (tr V Y)³ / tr (V Y Λ⁻¹ Y V Y)
(docs/mathematics-baselines.md §16). Y is a sum over residuals S of σ² ⊗ Y_i, with Y_i = D Dᵀ of the
residual for the attributes of S and z zᵀ for others, so that both traces are sums over pairs of
tables A, B and triples of residuals within A, within B and within both, of one number an attribute.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

_MOST_WORK = 2e8  # numbers that a round over the attributes multiplies
_MOST_SWEEPS = 6
_STILL = 3e-3  # a sweep that lowers the second trace by less (relative) is the last one
_LEAST_WEIGHT = 1e-9  # of a value, of the largest one
_ROUNDING = 1e-8  # of the bound: far more than sums of such products are off by
_MOST_VALUES = 500  # of an attribute
_TOTAL = -1  # stands for the basis of tables without an attribute


def residual_bound(
    workload: Workload, closure: Closure, sigma_squared: np.ndarray, table_weights: np.ndarray
) -> float | None:
    """`plan_bound` of a plan with strategies by residual; None where it would take long."""
    scale = float(np.max(sigma_squared))
    tables = [
        _Table.of(workload, closure, table, table_weights, sigma_squared / scale)
        for table in np.flatnonzero(table_weights > 0).tolist()
    ]
    used = {attribute for table in tables for attribute in table.bases}
    if any(int(closure.sizes[attribute]) > _MOST_VALUES for attribute in used):
        return None
    axes = {attribute: _Axis.of(workload, closure, attribute) for attribute in sorted(used)}
    n_values = sum(len(axis.reference) for axis in axes.values())
    work = sum(
        float(len(one.values) * len(other.values) * 2 ** len(one.bases.keys() & other.bases.keys()))
        for one, other in product(tables, repeat=2)
    )
    if work * n_values > _MOST_WORK:
        return None
    loss = 0.0
    for table in tables:
        variances = table.weight * table.values
        for attribute, place in table.bases.items():
            variances = variances * axes[attribute].traces[place][table.parts(attribute, axes)]
        loss += float(np.sum(variances))
    weights = {attribute: as_weights(np.abs(axis.reference)) for attribute, axis in axes.items()}
    least = math.inf
    for _ in range(_MOST_SWEEPS):
        before = least
        for attribute in axes:
            of_values = np.maximum(_squared(axes, tables, weights, attribute), 0.0)
            weights[attribute] = as_weights(np.sqrt(of_values))
            least = float(np.sum(of_values / weights[attribute]))
        if least > before * (1 - _STILL):
            break
    return loss**3 / least * (1 - _ROUNDING)


def as_weights(of_values: np.ndarray) -> np.ndarray:
    """Numbers of values as weights, none of them next to nothing, of sum 1."""
    of_values = np.maximum(of_values, _LEAST_WEIGHT * np.max(of_values))
    return of_values / np.sum(of_values)


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of weight above 0.

    weight     on a query's variance
    bases      of each attribute of several values: its place in `workload.attribute_bases`
    residuals  within the table, by their attributes
    values     σ² of each
    """

    weight: float
    bases: dict[int, int]
    residuals: list[tuple[int, ...]]
    values: np.ndarray

    @classmethod
    def of(
        cls,
        workload: Workload,
        closure: Closure,
        table: int,
        table_weights: np.ndarray,
        sigma_squared: np.ndarray,
    ) -> "_Table":
        weight, bases = float(table_weights[table]), {}
        places = workload.attribute_basis_index[table].tolist()
        for attribute, place in zip(workload.attribute_indices(table), places, strict=False):
            if closure.sizes[attribute] > 1:
                bases[attribute] = place
            else:
                weight *= float(_gram(workload, place)[0, 0])
        within = closure.subsets(table)
        residuals = [closure.attributes(residual) for residual in within.tolist()]
        return cls(weight, bases, residuals, sigma_squared[within])

    def parts(self, attribute: int, axes: "Mapping[int, _Axis]") -> np.ndarray:
        """What of an attribute is in each residual: int64[n_residuals]."""
        return np.array(
            [axes[attribute].part_of(residual) for residual in self.residuals], np.int64
        )


def _gram(workload: Workload, place: int) -> np.ndarray:
    """That of a mean square of the queries of a basis: float64[n, n]."""
    attribute, basis = workload.attribute_bases[place]
    queries = query_matrix(basis, workload.domain.attributes[attribute])
    return queries.operator.gram / queries.n_rows


@dataclass(eq=False)
class _Axis:
    """What an attribute adds to products.

    attribute  its index
    decodings  W_a of every part a of Y along it, Y_a = W_a W_aᵀ: z, D, and those of residuals
    own        by residual, the place of its own D among these
    grams      by basis G; that of `_TOTAL` is 11ᵀ
    """

    attribute: int
    decodings: list[np.ndarray]
    own: dict[tuple[int, ...], int]
    grams: dict[int, np.ndarray]

    @classmethod
    def of(cls, workload: Workload, closure: Closure, attribute: int) -> "_Axis":
        strategy, n = closure.strategies.get(attribute), int(closure.sizes[attribute])
        places = [p for p, (one, _) in enumerate(workload.attribute_bases) if one == attribute]
        grams = {place: _gram(workload, place) for place in places} | {_TOTAL: np.ones((n, n))}
        if strategy is None:  # an orthonormal basis beside the ones: D Dᵀ = I − 11ᵀ/n
            even = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
            return cls(attribute, [np.full((n, 1), 1 / n), even], {}, grams)
        matrices = [strategy.reference[:, None], strategy.decoding]
        own = {}
        for residual, matrix in strategy.of_residuals.items():
            own[residual] = len(matrices)
            matrices.append(matrix.decoding)
        return cls(attribute, matrices, own, grams)

    @property
    def reference(self) -> np.ndarray:
        return self.decodings[0][:, 0]

    def part_of(self, residual: tuple[int, ...]) -> int:
        """Which part of Y along the attribute a residual has."""
        return self.own.get(residual, 1) if self.attribute in residual else 0

    @cached_property
    def covariances(self) -> np.ndarray:
        """Y_a, float64[n_parts, n, n]."""
        return np.stack([matrix @ matrix.T for matrix in self.decodings])

    @cached_property
    def traces(self) -> dict[int, np.ndarray]:
        """By basis tr G Y_a, float64[n_parts]."""
        return {q: np.sum(self.covariances * gram, axis=(1, 2)) for q, gram in self.grams.items()}

    @cached_property
    def by_value(self) -> dict[tuple[int, int], np.ndarray]:
        """By two bases h, float64[n_parts, n_parts, n_parts, n], of a, b and c.

        Σ h/λ = tr G Y_a Λ⁻¹ Y_b G′ Y_c.
        """
        n_parts, n = self.covariances.shape[:2]
        pairs = list(product(self.grams, repeat=2))
        cubes = {pair: np.empty((n_parts, n_parts, n_parts, n)) for pair in pairs}
        for part, matrix in enumerate(self.decodings):
            turned = {q: self.covariances @ (gram @ matrix) for q, gram in self.grams.items()}
            for one, other in pairs:
                cubes[one, other][:, :, part] = np.einsum(
                    "avk,bvk->abv", turned[one], turned[other]
                )
        return cubes

    def weighted(
        self, weights: np.ndarray
    ) -> tuple[dict[int, np.ndarray], dict[tuple[int, int], np.ndarray], float]:
        """At weights λ: by basis zᵀ G Y_a Λ⁻¹ z; by two bases the cubes; and zᵀ Λ⁻¹ z."""
        z, inverse = self.reference, 1 / weights
        edges = {q: (self.covariances @ (inverse * z)) @ (g @ z) for q, g in self.grams.items()}
        cubes = {pair: cube @ inverse for pair, cube in self.by_value.items()}
        return edges, cubes, float(z**2 @ inverse)


def _squared(
    axes: Mapping[int, _Axis],
    tables: list[_Table],
    weights: Mapping[int, np.ndarray],
    kept: int,
) -> np.ndarray:
    """h of the values of an attribute: Σ h/λ is tr V Y Λ⁻¹ Y V Y, whatever its λ: float64[n]."""
    at = {i: axis.weighted(weights[i]) for i, axis in axes.items() if i != kept}
    parts = [{i: table.parts(i, axes) for i in axes} for table in tables]
    places = {}
    for table in tables:
        for residual, value in zip(table.residuals, table.values.tolist(), strict=True):
            places[residual] = value
    total = np.zeros(len(axes[kept].reference))
    for first, one in enumerate(tables):
        for second, other in enumerate(tables[: first + 1]):
            times = one.weight * other.weight * (1 if first == second else 2)
            left, right = one.values * times, other.values
            both = [residual for residual in one.residuals if other.bases.keys() >= set(residual)]
            product_of = np.array([places[residual] for residual in both])
            for i, (edges, _, rest) in at.items():
                if i in one.bases and i not in other.bases:
                    left = left * edges[one.bases[i]][parts[first][i]]
                elif i in other.bases and i not in one.bases:
                    right = right * edges[other.bases[i]][parts[second][i]]
                elif i not in one.bases:
                    left = left * rest
            found = left[:, None, None] * right[:, None] * product_of
            inside = {i: np.array([axes[i].part_of(residual) for residual in both]) for i in axes}
            for i, (_, cubes, _) in at.items():
                if i in one.bases and i in other.bases:
                    cube = cubes[one.bases[i], other.bases[i]]
                    where = parts[first][i][:, None, None], parts[second][i][:, None], inside[i]
                    found = found * cube[where]
            pair = one.bases.get(kept, _TOTAL), other.bases.get(kept, _TOTAL)
            where = parts[first][kept][:, None, None], parts[second][kept][:, None], inside[kept]
            total += np.tensordot(found, axes[kept].by_value[pair][where], axes=3)
    return total
