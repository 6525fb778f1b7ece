"""Closure: every subset of the workload's tables, and the linear map from noise to variances.

The residuals of the closure are what is measured (docs/mathematics.md §3, §4). With β, τ and η of
each attribute (`moments`), a residual costs p_A = ∏_{i∈A} β_i / σ²_A, and the mean variance of the
cells of a table is
    Var_A = ( Σ_{A'⊆A} pairs(A') σ²_{A'} ) · ∏_{i∈A} η_i / cells(A),    pairs(A) = ∏_{i∈A} τ_i/η_i,
so all there is to store is which residual lies in which table: a 0/1 matrix. Where tables have one
attribute in several bases, its τ/η differs between them, and the matrix holds by how much.

Attributes with a single value carry no residual; they are left out here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from rpexplore.common.numbers import read_only
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.domain import subsets
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.kept_totals import KeptInAreas, KeptTotals
from rpexplore.planning.mechanism.levels import Block, LevelTree, level_trees
from rpexplore.planning.mechanism.panel import Panel, dearest_person, largest_factors
from rpexplore.planning.mechanism.replacement import (
    Replacement,
    Totals,
    dearest_replacement,
    is_exact,
    largest_shares,
)
from rpexplore.planning.mechanism.strategy import (
    Moments,
    Strategy,
    measured_attributes,
    moments,
    moments_of_bases,
)
from rpexplore.planning.mechanism.subsets import MAX_INCIDENCES, residuals_of
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

_MOST_TREES = 6  # so that products of costs are exact


@dataclass(frozen=True, eq=False, repr=False)
class Closure:
    """The residuals of a workload, by number of attributes, then lexicographically.

    members    int32[n_residuals, max_order]: attribute indices, ascending, padded with −1
    incidence  csr float64[n_tables, n_residuals]: 1 where the residual's set lies in the table's
               (relative to the first basis, where there are several)
    sizes      int64[d]: attribute sizes
    cells      float64[n_tables]: cells of the workload's tables
    inverse_totals
               float64[n_tables]: ∏_{i∈A} 1/η_i, which is again the cells where all are single
               values
    pairs      float64[n_residuals]: ∏_{i∈A} τ_i/η_i, of the first basis of each attribute
    privacy_cost_factor
               float64[n_residuals]: p_A = ∏_{i∈A} β_i, a residual's cost at σ² = 1
    strategies how attributes in other bases than single values are measured, by index
    moments    T and N of each of `workload.attribute_bases`; () without strategies
    residual_moments
               the same by residual and basis, where a residual has a matrix of its own
    blocks     of levels and their groups, by the numbers that stand for them in `members`
    trees      of attributes that tables have at several levels. Then numbers of blocks stand for
               them in `members`, which follow those of the attributes (as they do in `sizes`); the
               incidence holds ∏ τ ∏ η itself, and `pairs` and `inverse_totals` are 1
    classes    csr float64[n_kinds, n_residuals]: what records of each kind cost in residuals,
               relative to the dearest one in each; None where every record costs the same
    prices     of these kinds, sum 1: `privacy_cost_factor` is p at them (`with_prices`)
    replacement
               where neighbours replace a record: how records may differ, with prices at which
               `privacy_cost_factor` is p; None where they add or remove one
    panel      where a person has one record a period at most: the period, with prices likewise
    by_residual
               whether neighbours replace a record, and each residual is charged the most that this
               costs in it (`replaced_shares`): tables of levels, amounts, aggregations
    in_areas   then also: what neighbours keep in areas, each of which has these residuals of its
               own, so that two records may be in different ones; None outside of areas
    kept       likewise: the totals that are exact, so that records also exchange values; None
               without any
    least_cost what a residual costs at least in a search; 0 elsewhere, as for the total that is
               public
    """

    members: np.ndarray
    incidence: sparse.csr_array
    sizes: np.ndarray
    cells: np.ndarray
    inverse_totals: np.ndarray
    pairs: np.ndarray
    privacy_cost_factor: np.ndarray
    strategies: Mapping[int, Strategy]
    moments: Sequence[Moments]
    residual_moments: Mapping[tuple[int, int], Moments] = field(default_factory=dict)
    blocks: Mapping[int, Block] = field(default_factory=dict)
    trees: tuple[LevelTree, ...] = ()
    classes: sparse.csr_array | None = None
    prices: np.ndarray | None = None
    replacement: Replacement | None = None
    panel: Panel | None = None
    by_residual: bool = False
    in_areas: KeptInAreas | None = None
    kept: KeptTotals | None = None
    least_cost: float = 0.0

    @classmethod
    def of(cls, workload: Workload, *, levels_apart: bool = False) -> "Closure":
        """The downward closure of a workload; `PlanError` if it has too many subsets to plan.

        levels_apart: as if levels of an attribute were attributes that have nothing to do with it
        """
        trees, blocks = level_trees(workload)
        if trees and not levels_apart:
            return cls._of_levels(workload, trees, blocks)
        sizes = workload.domain.sizes
        members, incidence, _ = residuals_of(workload.members, sizes)
        return cls(
            members=members,
            incidence=incidence,
            sizes=sizes,
            cells=workload.counted_cells,
            inverse_totals=workload.counted_cells,
            pairs=_product(members, sizes * (sizes - 1.0)),
            privacy_cost_factor=_product(members, (sizes - 1) / sizes),
            strategies={},
            moments=(),
            blocks=blocks,
        )

    @classmethod
    def _of_levels(
        cls, workload: Workload, trees: tuple[LevelTree, ...], blocks: Mapping[int, Block]
    ) -> "Closure":
        """The closure of tables with an attribute at several levels."""
        sizes = np.append(
            workload.domain.sizes,
            np.array([blocks[number].size for tree in trees for number in tree.numbers]),
        )
        members, owners = _with_blocks(workload.members, trees)
        residuals, of_virtual, _ = residuals_of(members, sizes)
        # A table's residuals are those of all its choices of blocks.
        owned = sparse.csr_array(
            (np.ones(len(owners)), (owners, np.arange(len(owners)))),
            (len(workload), len(owners)),
        )
        incidence = sparse.csr_array(owned @ of_virtual)
        incidence.sort_indices()
        incidence.data[:] = 1.0
        closure = cls(
            members=residuals,
            incidence=incidence,
            sizes=sizes,
            cells=workload.counted_cells,
            inverse_totals=workload.counted_cells,
            pairs=np.ones(len(residuals)),
            privacy_cost_factor=np.ones(len(residuals)),
            strategies={},
            moments=(),
            blocks=blocks,
            trees=trees,
        )
        # Where attributes need strategies, these are looked for first.
        return closure if measured_attributes(workload) else closure.with_strategies(workload, {})

    def with_strategies(self, workload: Workload, strategies: Mapping[int, Strategy]) -> "Closure":
        """This closure of the workload, when attributes are measured through these strategies.

        strategies: by attribute index, of all that some table has in other than single values
        """
        attributes = workload.domain.attributes
        strategies = {
            index: replace(
                strategy,
                range_in_steps=values.range_in_steps,
                product_units={
                    other: workload.domain.product_unit((other, index))
                    for other in workload.domain.amounts
                    if values.are_weights
                },
            )
            if index < len(attributes) and isinstance(values := attributes[index].values, Amounts)
            else strategy
            for index, strategy in strategies.items()
        }
        if self.trees:
            return self._with_strategies_of_levels(workload, strategies)
        if workload.is_marginals:
            return self
        of_bases = moments_of_bases(workload, strategies)
        inverse_totals = np.array([1 / basis.total_sum for basis in of_bases])
        ratios = np.array([basis.spread_sum / basis.total_sum for basis in of_bases])
        first = np.cumsum([0, *map(len, workload.bases[:-1])])  # of each attribute's bases
        closure = replace(
            self,
            incidence=self._relative(workload, ratios, first),
            cells=workload.cells,
            inverse_totals=_product(workload.attribute_basis_index, inverse_totals),
            pairs=_product(self.members, np.append(ratios, 1.0)[first]),
            strategies=dict(strategies),
            moments=of_bases,
        )
        closure = closure._with_own_matrices(workload)
        return replace(closure, privacy_cost_factor=closure.full_cost_factor)

    def _with_own_matrices(self, workload: Workload) -> "Closure":
        """This closure where strategies have matrices of their own for some residuals."""
        own = {number for number, one in self.strategies.items() if one.of_residuals}
        if not own:
            return replace(self, residual_moments={})
        found: dict[tuple[int, int], Moments] = {}
        data = self.incidence.data.copy()
        for place, (attribute, basis) in enumerate(workload.attribute_bases):
            if attribute not in own:
                continue
            queries = query_matrix(basis, workload.domain.attributes[attribute])
            having = np.any(workload.attribute_basis_index == place, axis=1)
            entries = np.flatnonzero(np.repeat(having, np.diff(self.incidence.indptr)))
            columns = self.incidence.indices[entries]
            for residual in np.unique(columns).tolist():
                strategy = self.strategies[attribute].of_residuals.get(self.attributes(residual))
                if strategy is None:
                    continue
                moments_there = found[residual, place] = strategy.moments(queries)
                ratio = moments_there.spread_sum / self.moments[place].spread_sum
                data[entries[columns == residual]] *= ratio
        incidence = sparse.csr_array(
            (data, self.incidence.indices, self.incidence.indptr), self.incidence.shape
        )
        return replace(self, incidence=incidence, residual_moments=found)

    @property
    def without_own_matrices(self) -> "dict[int, Strategy]":
        """The strategies, alike in all residuals."""
        return {number: replace(one, of_residuals={}) for number, one in self.strategies.items()}

    def own_matrices(self, residual: int) -> "dict[int, Strategy]":
        """The strategies of a residual's attributes that are not the ones of other residuals."""
        attributes = self.attributes(residual)
        return {
            number: own
            for number in attributes
            if number in self.strategies
            and (own := self.strategies[number].of_residuals.get(attributes)) is not None
        }

    @cached_property
    def residuals_with_own_matrices(self) -> list[int]:
        """Residuals of which some attribute has a matrix that is not that of others, ascending."""
        if not any(one.of_residuals for one in self.strategies.values()):
            return []
        return [residual for residual in range(len(self)) if self.own_matrices(residual)]

    def _with_strategies_of_levels(
        self, workload: Workload, strategies: Mapping[int, Strategy]
    ) -> "Closure":
        """The same where tables have levels: the incidence then holds all factors itself."""
        in_trees = {attribute: tree for tree in self.trees for attribute in tree.of_tables}
        attributes = workload.domain.attributes
        of_bases: list[Moments] = []
        of_trees: dict[int, np.ndarray] = {}  # of bases: what the total and every block are worth
        for place, (attribute, basis) in enumerate(workload.attribute_bases):
            tree = in_trees.get(attribute)
            if tree is None:
                of_bases.append(moments(workload, attribute, basis, strategies))
                continue
            queries = None if basis.is_identity else query_matrix(basis, attributes[attribute])
            if queries is None:
                of_trees[place] = tree.worths(attribute, strategies)
            else:
                of_trees[place] = tree.squares(attribute, strategies, queries).sum(axis=1)
            # As if the level were an attribute of its own, for comparison with other mechanisms.
            of_bases.append(
                Moments.of_single_values(int(self.sizes[attribute]))
                if queries is None
                else Moments.of_even_values(queries)
            )
        tables = np.repeat(np.arange(len(workload)), np.diff(self.incidence.indptr))
        members = self.members[self.incidence.indices]
        spread = np.array([*(basis.spread_sum for basis in of_bases), 1.0])
        total = np.array([*(basis.total_sum for basis in of_bases), 1.0])
        data = np.ones(len(tables))
        by_place = [np.ascontiguousarray(places) for places in members.T]
        for column in range(workload.members.shape[1]):  # of the attributes of a table, or −1
            own = np.take(workload.members[:, column], tables)
            bases = np.take(workload.attribute_basis_index[:, column], tables)
            inside = np.zeros(len(tables), dtype=bool)
            for places in by_place:
                inside |= places == own
            factors = np.where(inside, spread[bases], total[bases])
            for place, squares in of_trees.items():
                numbers = in_trees[workload.attribute_bases[place][0]].numbers
                rows = np.flatnonzero(bases == place)
                blocks = members[rows] - numbers[0] + 1
                is_own = (blocks > 0) & (blocks <= len(numbers))
                factors[rows] = squares[np.max(np.where(is_own, blocks, 0), axis=1, initial=0)]
            data *= factors
        closure = replace(
            self,
            incidence=sparse.csr_array(
                (data, self.incidence.indices, self.incidence.indptr), self.incidence.shape
            ),
            cells=workload.cells,
            inverse_totals=np.ones(len(workload)),
            pairs=np.ones(len(self)),
            strategies=dict(strategies),
            moments=of_bases,
            classes=_kinds_of_records(self.members, self.trees, strategies),
        )
        if closure.classes is None:
            return replace(closure, privacy_cost_factor=closure.full_cost_factor)
        n_kinds = closure.n_kinds
        return closure.with_prices(np.full(n_kinds, 1 / n_kinds))

    def with_prices(self, prices: np.ndarray) -> "Closure":
        """This closure with prices on the kinds of records, float64[n_kinds], sum 1.

        `privacy_cost_factor` is then what residuals cost at these prices: a plan whose cost is
        within a budget for every kind of record costs no more than that at any of them.
        """
        assert self.classes is not None
        factor = self.full_cost_factor * (self.classes.T @ prices)
        return replace(self, prices=read_only(prices), privacy_cost_factor=factor)

    def replacing(self, replacement: Replacement | None) -> "Closure":
        """This closure where neighbours replace a record, or (None) add or remove one.

        The total costs nothing where they replace one.
        """
        if replacement is None:
            costs = self.full_cost_factor
        else:
            costs = replacement.prices @ replacement.cost_factors(self)
        return replace(self, replacement=replacement, privacy_cost_factor=costs)

    def in_panel(self, panel: Panel | None) -> "Closure":
        """This closure where a person has at most one record a period, or (None) any records."""
        costs = self.full_cost_factor if panel is None else panel.cost_factors(self)
        return replace(self, panel=panel, privacy_cost_factor=costs)

    def replacing_by_residual(
        self,
        *,
        replaces: bool,
        least_cost: float = 0.0,
        in_areas: KeptInAreas | None = None,
        kept: KeptTotals | None = None,
    ) -> "Closure":
        """This closure where neighbours replace a record, each residual charged by itself; or not.

        least_cost: of a residual, for searches; in_areas: where each area has the tables; kept: the
        exact totals, if not those that it has

        Raises `PlanError` where residuals have matrices of their own: what it costs to replace a
        record is known of strategies that are alike in all residuals.
        """
        if replaces and self.residual_moments:
            raise PlanError(
                "Where neighbours replace a record, an attribute must be measured alike in all "
                "residuals; make the plan again."
            )
        closure = replace(
            self,
            by_residual=replaces,
            in_areas=in_areas,
            kept=(kept or self.kept) if replaces else None,
            least_cost=least_cost,
        )
        if closure.prices is not None:
            return closure.with_prices(closure.prices)
        return replace(closure, privacy_cost_factor=closure.full_cost_factor)

    @property
    def replaces(self) -> bool:
        """Whether neighbours replace records."""
        return self.replacement is not None or self.by_residual

    @cached_property
    def replaced_shares(self) -> np.ndarray:
        """The most that replacing a record costs in each residual, over twice p, exact or above.

        Fractions, object[n_residuals]; 0 of the total. Of a residual of one attribute it is δ, the
        largest ‖R e_u − R e_v‖² / 2β; of several the largest δ of its attributes, at least 1. Where
        records of different kinds cost different things, 1 + ν in the place of δ, with ν the
        largest −cos of the angle of two columns (docs/guarantees.md, "Replacing a record"). In
        areas it is at least 1: two records in different ones move a residual of each. Where totals
        in areas are exact, and records exchange values, as `exchanged_shares`; where those of
        tables are, as of `KeptTotals`.
        """
        if self.in_areas is not None and self.in_areas.exchanges:
            return np.array(self.in_areas.exchanged_shares(self), dtype=object)
        shares = [Fraction(int(n), max(int(n) - 1, 1)) for n in self.sizes.tolist()]
        for number, strategy in self.strategies.items():
            apart = strategy.squared_diameter, 2 * strategy.squared_sensitivity
            shares[number] = 1 + strategy.opposed if self.trees else Fraction(*apart)
        if self.kept is not None:
            return np.array(self.kept.shares(self, shares), dtype=object)
        order = sorted(range(len(shares)), key=shares.__getitem__)
        ranks = np.full(len(shares) + 1, -1)
        ranks[order] = np.arange(len(order))
        largest = np.max(ranks[self.members], axis=1, initial=-1)
        in_order = [shares[number] for number in order]
        alone = np.array([*in_order, Fraction(0)], dtype=object)[largest]
        several = (self.in_areas is not None) | (np.count_nonzero(self.members >= 0, axis=1) > 1)
        at_least_1 = np.maximum(alone, np.full(len(alone), Fraction(1), dtype=object))
        return np.where(several, at_least_1, alone)

    @property
    def exact_levels(self) -> np.ndarray:
        """Of residuals in areas: on how many levels, from the top on, neighbours keep them.

        int64[n_residuals]
        """
        if self.in_areas is None:
            return np.zeros(len(self), dtype=np.int64)
        return self.in_areas.levels_of(self)

    @property
    def exact_totals(self) -> Totals:
        """The attributes of each total that is released as it is, and that neighbours keep."""
        return () if self.replacement is None else self.replacement.exact

    @cached_property
    def is_public(self) -> np.ndarray:
        """Which residuals are the same for all neighbours: bool[n_residuals]."""
        if self.kept is not None:
            rows = ([index for index in row if index >= 0] for row in self.members.tolist())
            return np.array([self.kept.tells(row) for row in rows])
        if self.by_residual:
            return (np.count_nonzero(self.members >= 0, axis=1) == 0) & (self.in_areas is None)
        if self.replacement is None:
            return np.zeros(len(self), dtype=bool)
        return is_exact(self, self.exact_totals)

    @property
    def has_own_costs(self) -> bool:
        """Whether costs are other than those of an added or removed record."""
        return self.replaces or self.panel is not None

    @property
    def n_kinds(self) -> int:
        """How many kinds of records there are with costs of their own; 0 where all are alike."""
        shape: Any = (0,) if self.classes is None else self.classes.shape
        return int(shape[0])

    @cached_property
    def full_cost_factor(self) -> np.ndarray:
        """∏ β of each residual, what it costs the dearest record: float64[n_residuals].

        Where records are replaced, and residuals charged by themselves: the dearest replacement.
        """
        costs = (self.sizes - 1) / self.sizes
        for number, strategy in self.strategies.items():
            costs[number] = float(strategy.cost_factor)
        product = _product(self.members, costs)
        for residual in self.residuals_with_own_matrices:
            for number, own in self.own_matrices(residual).items():
                product[residual] *= float(own.cost_factor) / costs[number]
        if not self.by_residual:
            return product
        shares = 2 * self.replaced_shares.astype(float)
        return np.maximum(product * shares, self.least_cost)

    @property
    def largest_cost_factor(self) -> np.ndarray:
        """What each residual costs at σ² = 1 the neighbours that it costs most: [n_residuals]."""
        if self.panel is not None:
            return largest_factors(self, self.panel)
        if self.replacement is None:
            return self.full_cost_factor
        return self.full_cost_factor * largest_shares(self)

    def integer_scale(self, residual: int) -> int:
        """What the measured integers of a residual are larger by than the plan's numbers.

        ∏ n_i, or 2^b, times the steps of amounts (docs/mathematics.md §7.2, §7.3).
        """
        attributes = self.attributes(residual)
        return math.prod(
            self.strategies[index].scale_in(attributes)
            if index in self.strategies
            else int(self.sizes[index])
            for index in attributes
        )

    @cached_property
    def squared_scales(self) -> np.ndarray:
        """γ² over σ² of each residual: the product of its squared scales, float64[n_residuals]."""
        scales = self.sizes.astype(float)
        for index, strategy in self.strategies.items():
            scales[index] = strategy.scale_in(())
        return _product(self.members, scales**2) / self.product_units**2

    @cached_property
    def product_units(self) -> np.ndarray:
        """How many products of steps of amounts and weights are one, in residuals that have both.

        float64[n_residuals], 1 elsewhere.
        """
        units = np.ones(len(self))
        for index, strategy in self.strategies.items():
            for other, unit in strategy.product_units.items():
                has_both = [np.any(self.members == one, axis=1) for one in (index, other)]
                units[np.logical_and(*has_both)] *= unit
        return units

    @cached_property
    def measured_numbers(self) -> np.ndarray:
        """How many numbers the measurement of each residual has, float64[n_residuals]."""
        numbers = self.sizes.astype(float)
        numbers[list(self.strategies)] -= 1
        return _product(self.members, numbers)

    def largest_cost(self, sigma_squared: np.ndarray) -> float:
        """Privacy cost of the kind of record that costs most, or of the dearest replacement."""
        if self.replacement is not None:
            return dearest_replacement(self, self.replacement.groups, sigma_squared).bound
        if self.panel is not None:
            return dearest_person(self, self.panel, sigma_squared)
        if self.classes is None:
            return float(np.sum(self.privacy_cost_factor / sigma_squared))
        return float(np.max(self.classes @ (self.full_cost_factor / sigma_squared)))

    def needless(self, workload: Workload) -> np.ndarray:
        """Whether no table of the workload depends on a residual: bool[n_residuals].

        Own matrices need not tell the total of their attribute, or anything but the total.
        """
        asks = np.array([[one.asks_total, one.asks_spread] for one in self.moments] or [[True] * 2])
        if np.all(asks):
            return np.zeros(len(self), dtype=bool)
        asks = np.append(asks, [[True, True]], axis=0)  # for tables without the attribute
        tables = np.repeat(np.arange(len(workload)), np.diff(self.incidence.indptr))
        asked = np.ones(len(tables), dtype=bool)
        for attribute in {index for index, _ in workload.attribute_bases}:
            basis = np.max(
                np.where(workload.members == attribute, workload.attribute_basis_index, -1), axis=1
            )
            inside = np.any(self.members == attribute, axis=1)[self.incidence.indices]
            asked &= asks[basis[tables], inside.astype(int)]
        return np.bincount(self.incidence.indices, asked, len(self)) == 0

    def _relative(
        self, workload: Workload, ratios: np.ndarray, first: np.ndarray
    ) -> sparse.csr_array:
        """The incidence, times what τ/η of a table's bases is over that of the first ones."""
        if all(len(bases) < 2 for bases in workload.bases):
            return self.incidence
        tables = np.repeat(np.arange(len(workload)), np.diff(self.incidence.indptr))
        data = np.ones(len(tables))
        for attribute, bases in enumerate(workload.bases):
            if len(bases) < 2 or self.sizes[attribute] == 1:
                continue
            column = np.max(
                np.where(workload.members == attribute, workload.attribute_basis_index, -1), axis=1
            )
            relative = np.append(ratios / ratios[first[attribute]], 1.0)[column]
            inside = np.any(self.members == attribute, axis=1)[self.incidence.indices]
            data *= np.where(inside, relative[tables], 1.0)
        return sparse.csr_array(
            (data, self.incidence.indices, self.incidence.indptr), self.incidence.shape
        )

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def attribute_forms(self) -> np.ndarray:
        """Of each attribute a number, the same for those measured alike: int64[d + 1].

        Alike are those of one size without a strategy or blocks. Last, for the padding of
        `members`, is −1.
        """
        forms = np.append(self.sizes, -1)
        at_levels = {index for tree in self.trees for index in tree.of_tables}
        alone = sorted({*self.strategies, *self.blocks, *at_levels})
        forms[alone] = np.arange(len(alone)) - len(alone) - 1
        return forms

    @cached_property
    def residual_forms(self) -> np.ndarray:
        """0 for residuals whose attributes are measured as in others, else a number of its own.

        int64[n_residuals]
        """
        forms = np.zeros(len(self), dtype=np.int64)
        own = self.residuals_with_own_matrices
        forms[own] = 1 + np.arange(len(own))
        return forms

    @cached_property
    def tables_with_own_matrices(self) -> np.ndarray:
        """Which tables depend on a residual with matrices of its own: bool[n_tables]."""
        return self.incidence @ (self.residual_forms > 0) > 0

    @cached_property
    def columns(self) -> np.ndarray:
        """The attribute of the records that each attribute or block is of: int64[·]."""
        columns = np.arange(len(self.sizes))
        for number, block in self.blocks.items():
            columns[number] = block.column
        return columns

    def columns_of(self, residual: int) -> tuple[int, ...]:
        """The attributes of the records that a residual is computed from, ascending."""
        return tuple(sorted(int(self.columns[index]) for index in self.attributes(residual)))

    @cached_property
    def residual_cells(self) -> np.ndarray:
        """∏_{i∈A} n_i of each residual, float64[n_residuals]."""
        return _product(self.members, self.sizes.astype(float))

    def exact_product(
        self, factors: Sequence[int] | Sequence[Fraction], residuals: np.ndarray
    ) -> np.ndarray:
        """∏_{i∈A} factors[i] of some residuals, exact: object[len(residuals)]."""
        members = self.members[residuals]
        return np.multiply.reduce(np.array([*factors, 1], dtype=object)[members], axis=1)

    @cached_property
    def _incidence_transposed(self) -> sparse.csr_array:
        return sparse.csr_array(self.incidence.T)

    def variances(self, sigma_squared: np.ndarray) -> np.ndarray:
        """Mean variance of the cells of each table, [n_tables], from σ² [n_residuals]: B s.

        Without strategies all cells of a table have this one variance.
        """
        return self.per_cell(self.incidence @ (self.pairs * sigma_squared))

    def residual_weights(self, table_weights: np.ndarray) -> np.ndarray:
        """Weight of each σ² [n_residuals] in Σ_A table_weights[A] · Var_A: v = Bᵀ w."""
        return self.pairs * (self._incidence_transposed @ self.per_cell(table_weights))

    @cached_property
    def variance_matrix(self) -> np.ndarray:
        """B: how each σ² counts in the mean variance of each table, [n_tables, n_residuals]."""
        return self.per_cell(np.ones(len(self.cells)))[:, None] * (
            self.incidence.toarray() * self.pairs
        )

    def per_cell(self, of_tables: np.ndarray) -> np.ndarray:
        """Numbers of tables [n_tables] times ∏_{i∈A} η_i / cells(A)."""
        return of_tables / self.cells / self.inverse_totals

    def by_order(
        self, workload: Workload, tables: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Some tables of its workload by how many attributes with several values they have.

        Yields (indices among `tables`, columns, axes): columns int[m, 2^k] the residuals of each
        table by the bits of their subset (its first attribute the highest); axes int[m, k] the
        columns of the table's members that these attributes are in.
        """
        members = workload.members[tables]
        several = (members >= 0) & (np.append(self.sizes, 1)[members] > 1)
        counts = np.count_nonzero(several, axis=1)
        starts = self.incidence.indptr[tables]
        for k in np.unique(counts).tolist():
            chosen = np.flatnonzero(counts == k)
            columns = self.incidence.indices[starts[chosen][:, None] + _places_by_bits(k)]
            axes = np.nonzero(several[chosen])[1].reshape(len(chosen), k)
            yield chosen, columns, axes

    def subsets(self, table: int) -> np.ndarray:
        """Indices of the residuals within a table of the workload, ascending."""
        start, stop = self.incidence.indptr[table : table + 2]
        return self.incidence.indices[start:stop]

    def find(self, attributes: Sequence[int]) -> int | None:
        """Index of the residual on these ascending attribute indices; None if it is not there."""
        order = len(attributes)
        if order > self.members.shape[1]:
            return None
        start, stop = self._starts[order : order + 2].tolist()
        for column, attribute in enumerate(attributes):  # rows of an order are lexicographic
            ends = np.array([attribute, attribute + 1], dtype=np.int32)
            left, right = np.searchsorted(self.members[start:stop, column], ends).tolist()
            start, stop = start + left, start + right
        return start if start < stop else None

    @cached_property
    def _starts(self) -> np.ndarray:
        """Index of the first residual of each order, and the end: int64[max_order + 2]."""
        orders = np.count_nonzero(self.members >= 0, axis=1)
        return np.searchsorted(orders, np.arange(self.members.shape[1] + 2))

    def attributes(self, residual: int) -> tuple[int, ...]:
        """The attribute indices of a residual."""
        return tuple(attribute for attribute in self.members[residual].tolist() if attribute >= 0)


@lru_cache(maxsize=8)
def _places_by_bits(k: int) -> np.ndarray:
    """Where a table of k attributes has the residual of each subset, by its bits: int64[2^k]."""
    places = np.empty(2**k, dtype=np.int64)
    for place, subset in enumerate(subsets(range(k))):
        places[sum(1 << (k - 1 - axis) for axis in subset)] = place
    return read_only(places)


def _with_blocks(members: np.ndarray, trees: Sequence[LevelTree]) -> tuple[np.ndarray, np.ndarray]:
    """Tables with one block, of those that it needs, in the place of each level: all choices.

    Returns the members of these, int32[n, max_order], and the table that each is of, int64[n].
    """
    owners = np.arange(len(members))
    for tree in trees:
        parts, of_parts = [], []
        has_level = np.isin(members, list(tree.of_tables))
        without = np.flatnonzero(~np.any(has_level, axis=1))
        parts.append(members[without])
        of_parts.append(owners[without])
        for attribute in tree.of_tables:
            rows = np.flatnonzero(np.any(members == attribute, axis=1))
            for number in tree.within(attribute):
                parts.append(np.where(members[rows] == attribute, number, members[rows]))
                of_parts.append(owners[rows])
        members, owners = np.concatenate(parts), np.concatenate(of_parts)
        if len(members) > MAX_INCIDENCES // 4:
            raise PlanError(
                "The tables have so many groups of so many levels that they cannot be planned; "
                "ask for fewer levels, or for levels of fewer groups."
            )
    return members.astype(np.int32), owners


def _kinds_of_records(
    members: np.ndarray, trees: Sequence[LevelTree], strategies: Mapping[int, Strategy]
) -> sparse.csr_array | None:
    """What records of each kind cost in residuals, relative to the dearest one in each.

    csr float64[n_kinds, n_residuals], multiples of 1 / `COST_STEPS` for each tree. Records are of
    one kind if they cost the same everywhere; None if all are of one.
    """
    if len(trees) > _MOST_TREES:
        raise PlanError(
            f"Tables can have at most {_MOST_TREES} attributes at several levels each, got "
            f"{len(trees)}; use one level of some of them."
        )
    classes: sparse.csr_array | None = None
    for tree in trees:
        first = tree.numbers[0]
        inside = np.isin(members, tree.numbers)
        place = np.max(np.where(inside, members - first + 1, 0), axis=1, initial=0)
        costs = tree.costs(strategies)[:, place]
        if classes is None:
            classes = sparse.csr_array(costs)
            continue
        if classes.nnz * len(costs) > MAX_INCIDENCES:
            raise PlanError(
                "The levels of the tables tell too many kinds of records apart to be planned; ask "
                "for fewer levels, or for levels of fewer groups."
            )
        classes = _of_pairs(classes, costs)
    shape: Any = (0,) if classes is None else classes.shape
    return classes if shape[0] > 1 else None


def _of_pairs(classes: sparse.csr_array, costs: np.ndarray) -> sparse.csr_array:
    """Each row of costs, float64[n, n_residuals], times every row of classes, one after another."""
    shape: Any = classes.shape
    rows = np.repeat(np.arange(shape[0]), np.diff(classes.indptr))
    parts, indices, lengths = [], [], []
    for row in costs:
        products = classes.data * row[classes.indices]
        is_there = products != 0
        parts.append(products[is_there])
        indices.append(classes.indices[is_there])
        lengths.append(np.bincount(rows[is_there], minlength=shape[0]))
    starts = np.append(0, np.cumsum(np.concatenate(lengths)))
    own = np.concatenate(parts), np.concatenate(indices), starts
    return sparse.csr_array(own, shape=(len(costs) * shape[0], shape[1]))


def _product(members: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """∏ factors[i] over the attributes of each row, float64[len(members)]."""
    return np.prod(np.append(factors, 1.0)[members], axis=1)
