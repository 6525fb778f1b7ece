"""Reconstruction: from measured residuals to tables, and the noise of the cells of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from rpexplore.common.numbers import in_slabs, matrix_along
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain
from rpexplore.domain.values import coefficients
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.levels import LevelTree
from rpexplore.planning.mechanism.strategy import Moments, Strategy
from rpexplore.workload.bases.sums import default_basis
from rpexplore.workload.table_text import QueryMatrix, query_matrix
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    from scipy import sparse

# ---- Reconstruction: from measured residuals to tables, by centring and broadcast sums.
#
# Measured is Ξ x + noise with Ξ = ⊗_{i∈A} (n_i I − 11ᵀ), in integers (docs/mathematics.md §7.2),
# or, of an attribute with a strategy, its integer matrix. Divided by ∏ n_i and centred along every
# axis, or decoded by D, it is the residual's contribution to the marginal A itself; a marginal is
# the sum of the contributions of its subsets, each spread over the missing axes, evenly or by z.


def contribution(
    measured: np.ndarray, attributes: Sequence[int], strategies: Mapping[int, Strategy]
) -> np.ndarray:
    """A residual's part of its own marginal, float64, one axis an attribute, of all its values.

    measured: one axis an attribute, as `measurement` says; further axes before them for a stack of
        residuals that are measured alike
    """
    values = np.array(measured, dtype=float)
    del measured  # there may be no room for both
    for axis, attribute in enumerate(attributes, start=-len(attributes)):
        strategy = strategies.get(attribute)
        if strategy is not None:
            strategy = strategy.within(attributes)
        if strategy is None:
            values /= values.shape[axis]
            values -= values.mean(axis=axis, keepdims=True)
        else:
            decoded = strategy.decoding / float(strategy.scale_in(attributes))
            values = matrix_along(decoded, values, axis)
    return values


def marginal(
    attributes: Sequence[int],
    sizes: np.ndarray,
    contributions: Mapping[tuple[int, ...], np.ndarray],
    strategies: Mapping[int, Strategy],
    trees: Sequence[LevelTree] = (),
) -> np.ndarray:
    """The unbiased marginal on ascending attribute indices, float64, one axis an attribute.

    contributions: of all subsets of `attributes` that have a residual, as `contribution` makes
        them; all stacks if one is. An attribute of one of the trees is there by its blocks
    """
    kept = [attribute for attribute in attributes if sizes[attribute] > 1]
    if any(attribute in tree.of_tables for tree in trees for attribute in kept):
        return _marginal_of_levels(attributes, sizes, contributions, strategies, trees)
    # Evenly is by one number: then what is spread stays as small as it is.
    shares = {
        attribute: strategies[attribute].reference
        if attribute in strategies
        else np.array([1 / int(sizes[attribute])])
        for attribute in kept
    }
    values = spread_sum(kept, contributions, shares)
    stack = values.shape[: values.ndim - len(kept)]
    return values.reshape([*stack, *(int(sizes[attribute]) for attribute in attributes)])


def _marginal_of_levels(
    attributes: Sequence[int],
    sizes: np.ndarray,
    contributions: Mapping[tuple[int, ...], np.ndarray],
    strategies: Mapping[int, Strategy],
    trees: Sequence[LevelTree],
) -> np.ndarray:
    """`marginal` where attributes are in tables at several levels: attribute by attribute, last
    first, and each of them down its tree."""
    kept = [attribute for attribute in attributes if sizes[attribute] > 1]
    tree_of = {index: tree for tree in trees for index in kept if index in tree.of_tables}
    axis_of = {index: axis for axis, index in enumerate(kept)}
    for index, tree in tree_of.items():
        axis_of |= dict.fromkeys(tree.numbers, axis_of[index])
    parts: dict[frozenset[int], np.ndarray] = {}
    for subset, part in contributions.items():
        n_stacked = part.ndim - len(subset)
        order = np.argsort([axis_of[index] for index in subset]).tolist()
        moved = part.transpose([*range(n_stacked), *(n_stacked + axis for axis in order)])
        parts[frozenset(subset)] = moved
    for done, attribute in enumerate(reversed(kept)):
        own = set(tree_of[attribute].numbers) if attribute in tree_of else {attribute}
        grown = {}
        for subset, part in parts.items():
            if subset & own:
                continue
            of_blocks = {
                number: np.moveaxis(parts[subset | {number}], -1 - done, -1)
                for number in own
                if subset | {number} in parts
            }
            if attribute in tree_of:
                values = tree_of[attribute].spread_down(attribute, part, of_blocks, strategies)
            else:
                strategy = strategies.get(attribute)
                share = 1 / int(sizes[attribute]) if strategy is None else strategy.reference
                values = part[..., None] * share + of_blocks[attribute]
            grown[subset] = np.moveaxis(values, -1, -1 - done)
        parts = grown
    values = parts[frozenset()]
    stack = values.shape[: values.ndim - len(kept)]
    return values.reshape([*stack, *(int(sizes[attribute]) for attribute in attributes)])


def spread_sum(
    attributes: Sequence[int],
    contributions: Mapping[tuple[int, ...], np.ndarray],
    shares: Mapping[int, np.ndarray],
) -> np.ndarray:
    """The sum of the contributions of all subsets, each spread over the missing axes by shares.

    shares: of every attribute, for each of its values or one number for all
    """
    parts, before, done = dict(contributions), list(attributes), 0
    while before:
        # Of the last attribute not done yet: what is known of its values, and the rest spread.
        attribute = before.pop()
        spread = shares[attribute].reshape([-1, *(1,) * done])
        parts = {
            subset: _sum(
                parts[(*subset, attribute)], np.expand_dims(part, part.ndim - done) * spread
            )
            for subset, part in parts.items()
            if attribute not in subset
        }
        done += 1
    return parts[()]


def _sum(values: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The sum of arrays, of which the second is of no more use: in its memory if that is enough."""
    return np.add(values, own, out=own if own.shape == values.shape else None)


def answers(values: np.ndarray, matrices: Sequence[QueryMatrix | None]) -> np.ndarray:
    """The answers of a table from its marginal; a `QueryMatrix` an axis, None for single values.

    The axes are the last ones: there may be a stack of marginals.
    """
    for axis, matrix in enumerate(matrices, start=-len(matrices)):
        if matrix is not None:
            values = in_slabs(partial(matrix.of, axis=axis), values, axis)
    return values


def impossible_answers(
    domain: Domain, attributes: AttributeIndices, matrices: Sequence[QueryMatrix | None] = ()
) -> np.ndarray | None:
    """Which answers of a table count no possible record; None if all count some.

    bool, one axis an attribute. matrices: as for `answers`; those that do not count records, but
    weigh them, leave it open.
    """
    possible = domain.structural_zeros.possible(attributes)
    if possible is None or any(one and not one.basis.counts_records for one in matrices):
        return None
    none = answers(possible.astype(float), matrices) == 0
    return none if np.any(none) else None


def sums_of(domain: Domain, attribute: int) -> QueryMatrix | None:
    """The sums and counts of an attribute of amounts; None of others."""
    if attribute not in domain.amounts:
        return None
    amounts = domain.attributes[attribute]
    return query_matrix(default_basis(amounts), amounts)


def query_matrices(workload: Workload) -> list[QueryMatrix | None]:
    """The queries of each of `workload.attribute_bases`; None: single values. To be made once."""
    attributes = workload.domain.attributes
    return [
        None if basis.is_identity else query_matrix(basis, attributes[attribute])
        for attribute, basis in workload.attribute_bases
    ]


# ---- Noise of a marginal: what it does to cells, pairs of cells and queries.
#
# The formulas of docs/mathematics.md §3.2; all for exact noise scales, without any records.


Where = Mapping[str, str | Sequence[str] | Sequence[float]]
"""A product query: attribute name -> its values as texts ("0..17"), or a number for each value."""


def residuals_within(closure: Closure, attributes: Sequence[int]) -> dict[AttributeIndices, int]:
    """The residual of every subset of these ascending attribute indices.

    Raises `WorkloadError` if no table of the plan holds them together.
    """
    kept = [attribute for attribute in attributes if closure.sizes[attribute] > 1]
    in_trees = {index: tree for tree in closure.trees for index in kept if index in tree.of_tables}
    choices = [
        (None, *(in_trees[index].within(index) if index in in_trees else (index,)))
        for index in kept
    ]
    finest = [own[-1] for own in choices]
    if closure.find(sorted(index for index in finest if index is not None)) is None:
        raise WorkloadError(
            "The plan holds no table with these attributes together, so it says nothing about "
            "them; add such a table to the workload."
        )
    chosen = ([index for index in choice if index is not None] for choice in product(*choices))
    subsets = sorted((tuple(sorted(subset)) for subset in chosen), key=lambda one: (len(one), one))
    residuals = {subset: closure.find(subset) for subset in subsets}
    return {subset: residual for subset, residual in residuals.items() if residual is not None}


def query_attributes(
    domain: Domain, attributes: Sequence[AttributeSet], where: Where | None = None
) -> AttributeIndices:
    """The attributes that are named one by one, or as one collection; if none, those of `where`."""
    if not attributes:
        return domain.positions(where or ())
    if len(attributes) == 1:
        return domain.positions(attributes[0])
    return domain.positions(str(name) for name in attributes)


@dataclass(frozen=True, eq=False)
class MarginalNoise:
    """The noise in a marginal, by single values, whatever the bases of the table that holds it.

    attributes     ascending indices
    strategies     how attributes are measured that are not by single values
    sigma_squared  σ² of the residual of every subset, without single-valued attributes
    trees          of attributes at several levels, which are in subsets by their blocks
    """

    domain: Domain
    attributes: AttributeIndices
    strategies: Mapping[int, Strategy]
    sigma_squared: Mapping[AttributeIndices, float]
    trees: Sequence[LevelTree] = ()

    @cached_property
    def variances(self) -> np.ndarray:
        """The variance of every cell, one axis an attribute; of amounts of each of their sums."""
        sizes = self.domain.sizes
        several = [attribute for attribute in self.attributes if sizes[attribute] > 1]
        axes = [self._value_factors(attribute) for attribute in several]
        variances = self._scales(several)
        for factors in axes:
            variances = np.tensordot(variances, factors, axes=(0, 0))
        for subset in self._with_own_matrices:
            product = np.array(self.sigma_squared[subset])
            for attribute, factors in zip(several, axes, strict=True):
                factor = factors[self._place(attribute, subset)]
                if attribute in subset and attribute in self.strategies:
                    factor = self.strategies[attribute].within(subset).value_moments.spread
                product = np.multiply.outer(product, factor)
            variances = variances + product
        single = [axis for axis, index in enumerate(self.attributes) if sizes[index] == 1]
        return np.expand_dims(variances, tuple(single))

    @cached_property
    def _with_own_matrices(self) -> list[AttributeIndices]:
        """Subsets of which some attribute is measured by a matrix that is not that of others."""
        own = [one.of_residuals for one in self.strategies.values() if one.of_residuals]
        return [subset for subset in self.sigma_squared if any(subset in one for one in own)]

    def _value_factors(self, attribute: int) -> np.ndarray:
        """What multiplies σ² without the attribute and with it, or each block: [2 or more, n]."""
        strategy, size = self.strategies.get(attribute), int(self.domain.sizes[attribute])
        if (tree := self._tree(attribute)) is not None:
            return tree.squares(attribute, self.strategies)
        if strategy is not None and (sums := sums_of(self.domain, attribute)) is not None:
            moments = strategy.moments(sums)
            squares = sums.basis.row_units(sums.attribute) ** 2
            return np.stack([moments.total, moments.spread]) * squares
        moments = strategy.value_moments if strategy else Moments.of_single_values(size)
        return np.stack([moments.total, moments.spread])

    def _scales(self, attributes: Sequence[int]) -> np.ndarray:
        """σ² of each subset, by which of the numbers of each attribute it has; 0: of none.

        And of those with matrices of their own, which are to be added.
        """
        scales = np.zeros([1 + len(self._numbers(attribute)) for attribute in attributes])
        for subset, sigma_squared in self.sigma_squared.items():
            if subset in self._with_own_matrices:
                continue
            scales[tuple(self._place(one, subset) for one in attributes)] = sigma_squared
        return scales

    def _place(self, attribute: int, subset: AttributeIndices) -> int:
        """Which of the numbers of an attribute a subset has, from 1 on; 0: none."""
        own = self._numbers(attribute)
        return next((1 + own.index(index) for index in subset if index in own), 0)

    def covariances(
        self, left: "Mapping[int, sparse.csr_array]", right: "Mapping[int, sparse.csr_array]"
    ) -> np.ndarray:
        """Covariances of the answers to pairs of product queries, one axis an attribute.

        The same formula as `covariance`, for all combinations of rows at once. Rows of the two
        matrices of an attribute are paired by their place: with `right` the same as `left` these
        are the variances of all cells of a table with any rows, totals among them.

        left, right: a matrix [n_rows, n_i] for each attribute of A; one of a single row on the
            right is paired with all rows on the left
        """
        sums = self._scales(self.attributes)
        pairs = {index: (left[index], right[index]) for index in self.attributes}
        axes = {index: self._factors(index, *pair) for index, pair in pairs.items()}
        for factors in axes.values():
            sums = np.tensordot(sums, factors, axes=(0, 0))
        for subset in self._with_own_matrices:
            product = np.array(self.sigma_squared[subset])
            for attribute, pair in pairs.items():
                factors = axes[attribute]
                if attribute in subset:
                    factors = self._factors(attribute, *pair, subset)
                factor = factors[self._place(attribute, subset)]
                product = np.multiply.outer(product, factor)
            sums = sums + product
        return sums

    def _factors(
        self,
        attribute: int,
        left: "sparse.csr_array",
        right: "sparse.csr_array",
        subset: AttributeIndices = (),
    ) -> np.ndarray:
        """What multiplies σ² where the attribute is not in a residual, and where it is.

        float64[1 + numbers that stand for it, n_rows]
        """
        if (tree := self._tree(attribute)) is not None:
            return tree.products(attribute, left, right, self.strategies)
        strategy = self.strategies.get(attribute)
        if strategy is not None:
            outside = (left @ strategy.reference) * (right @ strategy.reference)
            decoding = strategy.within(subset).decoding
            inside = np.sum((left @ decoding) * (right @ decoding), axis=1)
            return np.stack([outside, inside])
        size = int(self.domain.sizes[attribute])
        totals = np.asarray(left.sum(axis=1)) * np.asarray(right.sum(axis=1))
        products = np.asarray(left.multiply(right).sum(axis=1))
        return np.stack([totals / size**2, products - totals / size])

    def _tree(self, attribute: int) -> LevelTree | None:
        return next((tree for tree in self.trees if attribute in tree.of_tables), None)

    def _numbers(self, attribute: int) -> tuple[int, ...]:
        """What stands for the attribute in subsets."""
        tree = self._tree(attribute)
        return (attribute,) if tree is None else tree.numbers

    def vectors(self, where: Where) -> dict[int, np.ndarray]:
        """The vector of each attribute in a product query, float64[n_i]; ones if not named.

        Raises `WorkloadError` for an attribute not in the table, and numbers that do not fit it;
        `DomainError` for a text that names no values.
        """
        vectors = {
            attribute: np.ones(int(self.domain.sizes[attribute])) for attribute in self.attributes
        }
        for name, values in where.items():
            attribute = self.domain.position(name)
            if attribute not in vectors:
                raise WorkloadError(
                    f"The table {self.domain.describe(self.attributes)} does not have the "
                    f"attribute {name!r}; ask a table that has it."
                )
            try:
                if _is_selection(values):
                    values = coefficients(self.domain[name], values)
                vector = np.asarray(values, dtype=float)
            except (TypeError, ValueError):
                vector = np.empty(0)
            if vector.shape != vectors[attribute].shape or not np.all(np.isfinite(vector)):
                raise WorkloadError(
                    f"The query on {name!r} must be {len(vectors[attribute])} finite numbers, one "
                    f"for each of its values, got the shape {vector.shape}."
                )
            vectors[attribute] = vector
        return vectors

    def covariance(self, left: Mapping[int, np.ndarray], right: Mapping[int, np.ndarray]) -> float:
        """Covariance of two product queries ⊗_{i∈A} q_i on the marginal on A.

        The last row of docs/mathematics.md §3.2 (cells: q_i a unit vector); §4.2 for strategies.

        left, right: a vector q_i float64[n_i] for each attribute of A
        """
        inside, outside = {}, {}  # by what stands for the attribute in subsets
        for attribute, one in left.items():
            other, strategy = right[attribute], self.strategies.get(attribute)
            if (tree := self._tree(attribute)) is not None:
                of_one = tree.of_query(attribute, one, self.strategies)
                of_other = tree.of_query(attribute, other, self.strategies)
                outside[attribute] = float(of_one[0][0] * of_other[0][0])
                for number, own, others in zip(tree.numbers, of_one[1:], of_other[1:], strict=True):
                    inside[number] = float(own @ others)
                continue
            if strategy is not None:
                decoding = strategy.decoding  # not D Dᵀ: a variance must not round to below 0
                inside[attribute] = float((one @ decoding) @ (other @ decoding))
                z = strategy.reference
                outside[attribute] = float(one @ z) * float(other @ z)
                continue
            size = int(self.domain.sizes[attribute])
            totals = float(np.sum(one)) * float(np.sum(other))
            inside[attribute] = float(np.dot(one, other)) - totals / size
            outside[attribute] = totals / size**2
        covariance = 0.0
        for subset, factor in self.sigma_squared.items():
            has_own = subset in self._with_own_matrices
            for attribute, one in left.items():
                own = [index for index in self._numbers(attribute) if index in subset]
                if own and has_own and attribute in self.strategies:
                    decoding = self.strategies[attribute].within(subset).decoding
                    factor *= float((one @ decoding) @ (right[attribute] @ decoding))
                    continue
                factor *= inside[own[0]] if own else outside[attribute]
            covariance += factor
        return float(covariance)


def _is_selection(values: str | Sequence[str] | Sequence[float]) -> TypeGuard[str | Sequence[str]]:
    """Whether values are named by texts; else there is a number for each."""
    if isinstance(values, str):
        return True
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
