"""What an attribute adds to the traces of `residual_bound`, and their slopes.

With W = D or z, Y_T = W_T W_Tᵀ, its number in a term is tr G Y_R Λ⁻¹ Y_S G′ Y_T, the scalar
product of Λ^-½ Y_R G W_T and Λ^-½ Y_S G′ W_T. Those with the same W_T are one matrix product.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

_NOTHING = 1e-300  # that is divided by
_LEAST_WEIGHT = 1e-9  # of a value, of the largest one


def as_weights(of_values: np.ndarray) -> np.ndarray:
    """Numbers of values as weights, none of them next to nothing, of sum 1."""
    of_values = np.maximum(of_values, _LEAST_WEIGHT * np.max(of_values))
    return of_values / np.sum(of_values)


@dataclass(frozen=True, eq=False)
class ResidualTable:
    """A table of weight above 0.

    weight  on a query's variance
    bases   of each attribute of several values: its place in `workload.attribute_bases`
    parts   the residuals within the table, int64
    """

    weight: float
    bases: dict[int, int]
    parts: np.ndarray

    @classmethod
    def of(
        cls, workload: Workload, closure: Closure, table: int, table_weights: np.ndarray
    ) -> "ResidualTable":
        weight, bases = float(table_weights[table]), {}
        places = workload.attribute_basis_index[table].tolist()
        for attribute, place in zip(workload.attribute_indices(table), places, strict=False):
            if closure.sizes[attribute] > 1:
                bases[attribute] = place
            else:
                queries = query_matrix(
                    workload.attribute_bases[place][1], workload.domain.attributes[attribute]
                )
                weight *= float(queries.mean_gram[0, 0])
        return cls(weight, bases, np.sort(closure.subsets(table)))


class Group(NamedTuple):
    """Products with the same W_T: a row for each basis of a table with T, and R within it.

    asked   by basis: the residuals R that have the attribute, and those that do not
    n_rows  of both together, over all bases
    start   where the matrix of their scalar products begins among all of them
    """

    part: int
    asked: list[tuple[int, list[int], list[int]]]
    n_rows: int
    start: int


class Products(NamedTuple):
    """Of a basis G in a group: G W_T; Y_R of all R inside in one; z outside, and zᵀ G W_T."""

    basis: int
    inside: list[int]
    outside: list[int]
    right: np.ndarray
    covariances: np.ndarray
    references: np.ndarray
    of_references: np.ndarray


@dataclass(frozen=True, eq=False)
class ResidualAxis:
    """An attribute.

    bases    of each table, its number in `grams`, int64
    grams    G of each basis, the first of tables without the attribute, 11ᵀ: float64[n, n]
    factors  W of each residual at the start, float64[n, k]: z, k = 1, or D
    above    residuals along whose D these move: itself where it has the attribute
    weights  λ at the start, float64[n]
    is_even  whether it stays so: W of single values are in other coordinates
    inside   whether a residual has the attribute, bool[n_residuals]
    n_alike  columns of D that one stands for: of single values in all tables all are alike
    groups   one for each residual
    places   of T, basis, R: its row in the group of T, int64; −1 where no table asks for it
    """

    bases: np.ndarray
    grams: list[np.ndarray]
    factors: list[np.ndarray]
    above: list[int]
    weights: np.ndarray
    is_even: bool
    inside: np.ndarray
    n_alike: int
    groups: list[Group]
    places: np.ndarray

    @classmethod
    def of(
        cls,
        workload: Workload,
        closure: Closure,
        attribute: int,
        insides: Sequence[tuple[int, ...]],
        tables: Sequence[ResidualTable],
        of_tables: Sequence[np.ndarray],
    ) -> "ResidualAxis":
        """At a plan's strategies, of residuals with these attributes."""
        n, strategy = int(closure.sizes[attribute]), closure.strategies.get(attribute)
        numbers = {p: k for k, p in enumerate(workload.places_of_bases(attribute), start=1)}
        bases = np.array([numbers.get(table.bases.get(attribute, -1), 0) for table in tables])
        if strategy is None:
            # Single values: the ones, and one direction beside them for all.
            grams = [np.diag([float(n), 0.0]), *(np.eye(2) / n for _ in numbers)]
            reference, n_alike, weights = np.array([[n**-0.5], [0]]), n - 1, np.full(2, 1 / n)
            found = [np.array([[0.0], [1.0]]) if attribute in one else reference for one in insides]
        else:
            values = workload.domain.attributes[attribute]
            asked = [query_matrix(basis, values).mean_gram for basis in workload.bases[attribute]]
            grams = [np.ones((n, n)), *asked]
            n_alike, weights = 1, as_weights(np.abs(strategy.reference))
            found = [
                strategy.of_residuals.get(one, strategy).decoding
                if attribute in one
                else strategy.reference[:, None]
                for one in insides
            ]
        inside = np.array([attribute in one for one in insides])
        groups, places = _groups(inside, bases, len(grams), of_tables)
        is_even = strategy is None
        above = _above(attribute, insides)
        return cls(bases, grams, found, above, weights, is_even, inside, n_alike, groups, places)

    def moves(self, logs: np.ndarray, of_traces: np.ndarray) -> list[np.ndarray]:
        """What is added to W of each residual is a multiple of, float64[n, …].

        D by those of D (DᵀGD)^½, with the slope G of the trace in D Dᵀ, so that directions that
        queries ask more about move further: fewer steps reach as high. z by those of the residual
        above, at the same scale: so all moves are about as far.

        Args:
            logs: Logarithms of σ², float64[n_residuals].
            of_traces: Slopes of tr V Y in `traces`, float64[n_bases, n_residuals].
        """
        found: list[np.ndarray] = []
        for residual, above in enumerate(self.above):
            factor = self.factors[above]
            if self.is_even:
                found.append(factor * self.inside[residual])
                continue
            slopes = zip(of_traces[:, above].tolist(), self.grams, strict=True)
            gram = sum((slope * gram for slope, gram in slopes), np.zeros(()))
            squares, vectors = np.linalg.eigh(factor.T @ gram @ factor)
            roots = np.sqrt(np.maximum(squares / max(np.mean(squares), _NOTHING), 0.0))
            scale = math.exp((logs[above] - logs[residual]) / 2)
            found.append(factor @ (vectors * roots @ vectors.T) * scale)
        return found

    @property
    def n_numbers(self) -> float:
        """In all products Λ^-½ Y_R G W_T."""
        return float(sum(group.n_rows * self.factors[group.part].size for group in self.groups))

    @property
    def n_scalars(self) -> int:
        return self.groups[-1].start + self.groups[-1].n_rows ** 2

    def traces(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        """tr G Y, float64[n_bases, n_residuals]."""
        of_all = [[np.sum((gram @ w) * w) for w in factors] for gram in self.grams]
        return np.array(of_all) * np.where(self.inside, self.n_alike, 1)

    def scalars(
        self, factors: Sequence[np.ndarray], weights: np.ndarray
    ) -> tuple[np.ndarray, list[tuple[np.ndarray, list[Products]]]]:
        """All scalar products, float64[n_scalars], and by group what they are of."""
        found, kept = np.empty(self.n_scalars), []
        covariances = np.zeros((len(factors), len(weights), len(weights)))
        for r in np.flatnonzero(self.inside).tolist():
            covariances[r] = factors[r] @ factors[r].T
        for group in self.groups:
            w = factors[group.part]
            rows, products, at = np.empty((group.n_rows, *w.shape)), [], 0
            for basis, inside, outside in group.asked:
                right = self.grams[basis] @ w
                of_inside = covariances[inside].reshape(-1, len(w))
                references = np.array([factors[r][:, 0] for r in outside])
                of_references = references @ right
                middle, start = at + len(inside), at
                at = middle + len(outside)
                rows[start:middle] = (of_inside @ right).reshape(-1, *w.shape)
                rows[middle:at] = references[:, :, None] * of_references[:, None]
                one = (basis, inside, outside, right, of_inside)
                products.append(Products(*one, references, of_references))
            rows /= np.sqrt(weights)[:, None]
            flat = rows.reshape(group.n_rows, -1)
            times = self.n_alike if self.inside[group.part] else 1
            found[group.start : group.start + group.n_rows**2] = (flat @ flat.T).ravel() * times
            kept.append((rows, products))
        return found, kept

    def slopes(
        self,
        factors: Sequence[np.ndarray],
        weights: np.ndarray,
        kept: Sequence[tuple[np.ndarray, list[Products]]],
        of_scalars: np.ndarray,
        of_traces: np.ndarray,
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """In W of each residual and in log λ, from those in `scalars` and `traces`."""
        found, of_weights = [np.zeros(w.shape) for w in factors], np.zeros(len(weights))
        of_covariances = np.zeros((len(factors), len(weights), len(weights)))
        for group, (rows, products) in zip(self.groups, kept, strict=True):
            square = of_scalars[group.start : group.start + group.n_rows**2]
            square = square.reshape(group.n_rows, group.n_rows)
            times = self.n_alike if self.inside[group.part] else 1
            of_rows = times * ((square + square.T) @ rows.reshape(group.n_rows, -1))
            of_rows = of_rows.reshape(rows.shape)
            of_weights -= np.einsum("rvk,rvk->v", rows, of_rows) / 2
            of_rows /= np.sqrt(weights)[:, None]
            at = 0
            for one in products:
                middle, start = at + len(one.inside), at
                at = middle + len(one.outside)
                here = of_rows[start:middle].reshape(-1, one.right.shape[1])
                of_covariances[one.inside] += (here @ one.right.T).reshape(-1, *2 * weights.shape)
                of_right = one.covariances.T @ here
                here = of_rows[middle:at]
                turned = np.einsum("rv,rvk->rk", one.references, here)
                of_references = np.einsum("rvk,rk->rv", here, one.of_references)
                of_references += turned @ one.right.T
                for r, slope in zip(one.outside, of_references, strict=True):
                    found[r][:, 0] += slope
                found[group.part] += self.grams[one.basis] @ (of_right + one.references.T @ turned)
        for r in np.flatnonzero(self.inside).tolist():
            found[r] = found[r] + (of_covariances[r] + of_covariances[r].T) @ factors[r]
        times = np.where(self.inside, self.n_alike, 1)
        for basis, r in zip(*np.nonzero(of_traces), strict=True):
            found[r] += 2 * times[r] * of_traces[basis, r] * (self.grams[basis] @ factors[r])
        return found, of_weights


def _above(attribute: int, insides: Sequence[tuple[int, ...]]) -> list[int]:
    """Of each residual the one with an attribute as well, or that of the attribute alone."""
    numbers = {inside: number for number, inside in enumerate(insides)}
    alone = numbers[attribute,]
    return [numbers.get(tuple(sorted({*inside, attribute})), alone) for inside in insides]


def _groups(
    inside: np.ndarray, bases: np.ndarray, n_bases: int, of_tables: Sequence[np.ndarray]
) -> tuple[list[Group], np.ndarray]:
    """Those of an attribute, and the place of each row."""
    asked: dict[int, dict[int, set[int]]] = {}
    for basis, parts in zip(bases.tolist(), of_tables, strict=True):
        for part in parts.tolist():
            asked.setdefault(part, {}).setdefault(basis, set()).update(parts.tolist())
    groups, start = [], 0
    places = np.full((len(inside), n_bases, len(inside)), -1)
    for part, by_basis in sorted(asked.items()):
        rows, n_rows = [], 0
        for basis, all_of_it in sorted(by_basis.items()):
            having = [r for r in sorted(all_of_it) if inside[r]]
            without = [r for r in sorted(all_of_it) if not inside[r]]
            order = [*having, *without]
            places[part, basis, order] = n_rows + np.arange(len(order))
            n_rows += len(order)
            rows.append((basis, having, without))
        groups.append(Group(part, rows, n_rows, start))
        start += n_rows**2
    return groups, places
