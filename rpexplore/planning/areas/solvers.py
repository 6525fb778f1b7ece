"""The best precisions on a tree of areas, with a proof (docs/mathematics.md §15.4, §15.5)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.tree_passes import Estimation

# A multiplicative fixed point of the conditions for an optimum: a precision grows while a little
# more of it is worth more than it costs, the price of an area while its records are the most
# exposed, and for a largest variance the price of a table while it is the least accurate. Each
# round gives a plan and a bound that no plan can go below.


# Prices that vanish would leave their areas' precisions undefined: all together may be so much.
_LEAST_PRICES = 1e-9
# What a bound is lowered by, relative: for rounding in the passes, and because the residuals of a
# profile are alike to 10^-10 only.
_ALLOWANCE = 1e-9
# Where an area is known exactly, each of its parts is known from the others, too, and prices that
# take whole steps may swing ever farther.
_SHORT_STEP = 0.5
_LEAST_PRECISION = 1e-30  # where the largest cost of a record is 1


@dataclass(frozen=True, eq=False)
class AreaState:
    """The state of a search.

    precisions    float64[n_profiles, n_groups], of one area of each group
    prices        float64[n_kinds, n_groups]: of the privacy of records of each kind in one area of
                  each group, 0 for areas with parts; summed over areas and kinds 1
    table_prices  float64[n_tables, n_groups]: of a largest variance, the weight of each scaled
                  variance in the sum that proves the bound, summed over areas 1; of caps, what
                  each is worth in the unit of the loss
    step          exponent of the next change of table prices
    known         where caps are kept, the highest bound and the smallest value that were met
    """

    precisions: np.ndarray
    prices: np.ndarray
    table_prices: np.ndarray | None = None
    step: float = 1.0
    known: tuple[float, float] = (0.0, np.inf)


@dataclass(frozen=True, eq=False)
class AreaRound:
    """The value and bound of a state at a privacy cost of 1, and the next state.

    value   the loss of its precisions, or at most that of `mended` ones
    bound   no precisions have a smaller loss
    follow  makes the next state
    mended  makes the state with precisions that keep all caps; None where its own do
    """

    value: float
    bound: float
    follow: Callable[[], AreaState]
    mended: Callable[[], AreaState] | None = None

    @property
    def gap(self) -> float:
        """How far the value can be above the smallest possible one, relative."""
        return self.value / self.bound - 1 if self.bound > 0 else np.inf


@dataclass(frozen=True, eq=False)
class AreaProblem(ABC):
    """The loss of precisions on the tree, at a privacy cost of 1.

    groups   the areas
    costs    float64[n_profiles]: cost of each profile at precision 1, and its part in variances
    kinds    float64[n_kinds, n_profiles]: the part of this cost that a record of each kind has
    uniform  whether all areas of a level get one precision
    exact_levels
             of each profile: on so many levels, from the top on, it is known exactly, and costs
             nothing; () where none is
    """

    groups: AreaGroups
    costs: np.ndarray
    kinds: np.ndarray
    uniform: bool
    exact_levels: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    @abstractmethod
    def asked(self) -> np.ndarray:
        """Where a profile counts in something that is asked, bool[n_profiles, n_groups]."""

    @abstractmethod
    def visit(self, state: AreaState) -> AreaRound:
        """The value and the bound of a state."""

    @abstractmethod
    def start(self) -> AreaState:
        """The first state of a search."""

    @cached_property
    def measured(self) -> np.ndarray:
        """Where measuring may be worth something, bool[n_profiles, n_groups].

        Within areas that are asked for, on what is asked and what holds or adjoins it: with all of
        its parts an area is known from them. Elsewhere other measurements cost the same or less and
        say more (docs/mathematics.md §15.4).
        """
        measured = self.asked.copy()
        for siblings in self.groups.upwards:
            parts = slice(None), siblings.groups
            within = np.logical_or.reduceat(measured[parts], siblings.first, axis=1)
            measured[:, siblings.owners] |= within
            # A sibling adjoins what is asked: together with it, it tells the parent.
            measured[parts] |= np.repeat(within, siblings.sizes, axis=1)
        # But nothing outside all areas that are asked for.
        under_asked = self.asked.copy()
        for siblings in self.groups.downwards:
            under_asked[:, siblings.groups] |= under_asked[:, siblings.parents]
        measured &= under_asked
        for row, n_levels in zip(measured, self.exact_levels, strict=False):
            row[self.groups.above(n_levels)] = False
        return measured

    def proven(self, state: AreaState) -> float:
        """The bound that any state proves; not above 0 where that is nothing."""
        return self.visit(self.lawful(state)).bound

    def lawful(self, state: AreaState) -> AreaState:
        """With prices lowered that sum to more than 1: they would prove too much."""
        total = float(np.sum(self.groups.multiplicity * state.prices))
        return replace(state, prices=state.prices / max(total, 1.0))

    def estimations(self, precisions: np.ndarray) -> Iterator[Estimation]:
        """Of each profile, one at a time."""
        levels = self.exact_levels or (0,) * len(precisions)
        pairs = zip(precisions, levels, strict=True)
        return (Estimation.of(self.groups, row, n_levels) for row, n_levels in pairs)

    def even_prices(self) -> np.ndarray:
        """The same price for all areas without parts, and all kinds of records."""
        undivided = np.zeros((len(self.kinds), len(self.groups)))
        undivided[:, self.groups.undivided] = 1
        return self.shares(undivided)

    def shares(self, prices: np.ndarray) -> np.ndarray:
        """Prices with a sum over areas of 1, none of those above 0 vanishing."""
        multiplicity = self.groups.multiplicity
        least = _LEAST_PRICES / np.sum(multiplicity * (prices > 0))
        prices = prices / np.sum(multiplicity * prices)
        prices = np.where(prices > 0, np.maximum(prices, least), 0.0)
        return prices / np.sum(multiplicity * prices)

    def normalised(self, state: AreaState) -> tuple[np.ndarray, np.ndarray]:
        """The precisions at a cost of 1, and the next prices of areas."""
        # A record is counted in its area and in all above it: its cost is the sum on the way down.
        costs = np.stack(
            [
                self.groups.summed_downwards((of_kind * self.costs) @ state.precisions)
                for of_kind in self.kinds
            ]
        )
        largest = float(np.max(costs[:, self.groups.undivided]))
        # What is worth nothing vanishes slowly; above 0 the gradient is what it says.
        precisions = state.precisions / largest
        precisions[~self.measured] = 0
        np.maximum(precisions, _LEAST_PRECISION, out=precisions, where=self.measured)
        # The multiplicative step for prices: up where records are the most exposed (§15.4).
        step = _SHORT_STEP * state.step if any(self.exact_levels) else 1.0
        return precisions, self.shares(state.prices * costs**step)

    def bound_and_ratios(
        self, loss: float, gradients: np.ndarray, prices: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The bound of a weighted sum by these prices, and each precision's worth over its price.

        loss, gradients: of the sum, the latter float64[n_profiles, n_groups], overwritten
        """
        worth = gradients
        worth[~self.measured] = 0
        # A precision of an area costs the prices of all areas within it.
        below = np.stack([self.groups.summed_upwards(of_kind) for of_kind in prices])
        if len(self.kinds) > 1:
            below = self.kinds.T @ below
        # One precision a level: worth and price are those of the level as a whole.
        if self.uniform:
            counted = self.groups.multiplicity * self.measured
            worth = np.where(self.measured, self.groups.by_level(worth * counted), 0.0)
            below = self.groups.by_level(below * counted)
        ratios = np.divide(worth, below, out=worth, where=self.measured)
        # Weak duality: with prices of sum 1, no precisions of cost 1 have a loss below L² / max
        # ratio, as L is convex and homogeneous of degree −1 (§15.4).
        return loss * loss / float(np.max(ratios)) * (1 - _ALLOWANCE), ratios


@dataclass(frozen=True, eq=False)
class AreaSum(AreaProblem):
    """Σ costs_k weights_kv V_kv over areas.

    weights  of one area of each group, float64[n_profiles, n_groups] ≥ 0
    """

    weights: np.ndarray

    @property
    def asked(self) -> np.ndarray:
        return self.weights > 0

    def start(self) -> AreaState:
        return AreaState(self.measured.astype(float), self.even_prices())

    def visit(self, state: AreaState) -> AreaRound:
        precisions, prices = self.normalised(state)
        loss, gradients = 0.0, np.empty_like(self.weights)
        for profile, estimation in enumerate(self.estimations(precisions)):
            of_groups = self.groups.multiplicity * self.weights[profile] * estimation.variances
            loss += self.costs[profile] * float(np.sum(of_groups))
            # Per area and per unit of the profile's cost: c_k is in the worth and the price alike.
            gradients[profile] = estimation.gradient(self.weights[profile])
        bound, ratios = self.bound_and_ratios(loss, gradients, state.prices)
        return AreaRound(
            # t ← t √(ratio / loss): the fixed point has ratio = loss wherever t > 0.
            loss,
            bound,
            lambda: AreaState(precisions * np.sqrt(ratios / loss), prices),
        )


@dataclass(frozen=True, eq=False)
class TableProblem(AreaProblem):
    """A loss of variances of tables; Var is Σ_k columns_Ak costs_k V_k of table A in an area.

    columns  float64[n_tables, n_profiles]
    weights  of each table of one area of each group, float64[n_tables, n_groups]; 0: not asked for
    """

    columns: np.ndarray
    weights: np.ndarray

    def variances_and_gradients(
        self, precisions: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of tables, [n_tables, n_groups], and of a weighted sum, [n_profiles, n_groups].

        weights: of profiles in that sum, [n_profiles, n_groups], overwritten
        """
        # In place, because with many tables each of these arrays is a large part of the memory.
        variances, gradients = np.zeros_like(self.weights), weights  # each in the other's place
        for profile, estimation in enumerate(self.estimations(precisions)):
            counts = self.columns[:, profile] * self.costs[profile]
            for row, count in zip(variances, counts, strict=True):
                row += count * estimation.variances
            gradients[profile] = estimation.gradient(weights[profile])
        return variances, gradients

    def lowered(self, table_prices: np.ndarray) -> np.ndarray:
        """Prices of tables, lowered where they sum to more than 1 over areas."""
        return table_prices / max(float(np.sum(table_prices @ self.groups.multiplicity)), 1.0)

    def even_shares(self, counted: np.ndarray) -> np.ndarray:
        """The same for all levels, whatever their numbers of areas; sum over areas 1.

        counted: which tables of one area of each group have one, bool[n_tables, n_groups]
        """
        sizes = self.groups.by_level(self.groups.multiplicity * counted)
        return self.shares(counted / np.maximum(sizes, 1))


@dataclass(frozen=True, eq=False)
class AreaMaximum(TableProblem):
    """The largest weight times variance of a table."""

    @property
    def asked(self) -> np.ndarray:
        return (self.columns.T > 0).astype(float) @ (self.weights > 0) > 0

    @cached_property
    def factors(self) -> "tuple[AreaMaximum, AreaMaximum] | None":
        """All tables in a single area, and a single table in all areas, where that is enough.

        It is where areas are asked for the same tables, with weights in the same proportions
        (docs/mathematics.md §15.5). Where some numbers are known exactly, the product of both is
        not enough, but near the best.
        """
        if self.columns.size == 1 or len(self.groups) == 1:
            return None
        of_tables = self.weights[:, np.argmax(self.weights.any(axis=0))]
        # Rank one: weights = of_tables ⊗ of_areas, else the problem does not fall apart.
        of_areas = self.weights.max(axis=0) / of_tables.max()
        if not np.allclose(np.outer(of_tables, of_areas), self.weights, rtol=1e-12, atol=0):
            return None
        one, top = np.ones((1, 1)), AreaGroups.single()
        return (
            AreaMaximum(top, self.costs, self.kinds, False, self.columns, of_tables[:, None]),
            AreaMaximum(self.groups, one[0], one, self.uniform, one, of_areas[None, :]),
        )

    def start(self) -> AreaState:
        prices = self.even_shares(self.weights > 0)
        return AreaState(self.measured.astype(float), self.even_prices(), prices)

    def lawful(self, state: AreaState) -> AreaState:
        assert state.table_prices is not None
        lowered = replace(state, table_prices=self.lowered(state.table_prices))
        return super().lawful(lowered)

    def visit(self, state: AreaState) -> AreaRound:
        table_prices = state.table_prices
        assert table_prices is not None
        precisions, prices = self.normalised(state)
        weights = self.columns.T @ (table_prices * self.weights)
        variances, gradients = self.variances_and_gradients(precisions, weights)
        scaled = np.multiply(variances, self.weights, out=variances)
        # In one step: with many tables each array is a large part of what verification takes.
        loss = float(np.einsum("v,av,av->", self.groups.multiplicity, table_prices, scaled))
        bound, ratios = self.bound_and_ratios(loss, gradients, state.prices)

        def follow() -> AreaState:
            # Prices of the least accurate tables rise, in proportion to their scaled variance
            # (§15.5).
            following = self.shares(table_prices * scaled**state.step)
            return AreaState(precisions * np.sqrt(ratios / loss), prices, following, state.step)

        return AreaRound(float(np.max(scaled)), bound, follow)


# ---- The best precisions within caps on variances, with a proof (docs/mathematics.md §15.5).
#
# The search of `solvers`, in which caps have prices too: a price rises while its variance is above
# the cap or the loss below what can be reached, and falls otherwise. Precisions that break caps a
# little are mixed with some that keep all of them.


# Caps are lowered by so much, relative, that they hold after precisions have been rounded.
_CAP_ROUNDING = 1e-9
_ROUNDING = 1e-13  # of variances, by which a mix of precisions may be above lowered caps
_FARTHEST = 10.0  # by how much a price changes at once, at most
_LEAST_BOUND = 0.01  # of the value, where the bound is below that
_ROOM_FOR_ALL = 0.5  # share of what caps leave that goes to everything alike
# By so many steps of its precisions a plan's bound is improved: mixing them has cost some of it.
_STEPS_OF_PROOF = 3


@dataclass(frozen=True, eq=False)
class AreaCapped(TableProblem):
    """Weighted variances with none above its cap: their sum, or the largest of them.

    Prices of tables are those of caps, in the unit of the loss, and for the largest also those of
    the weighted variances, of sum 1 over areas.

    weights  as of a `TableProblem`; 0 for tables that the loss does not count
    caps     float64[n_tables, n_groups]: the largest variances; inf: any
    largest  whether the loss is the largest; a table then has no weight where it has a cap
    room     precisions at a cost of 1 that keep all caps with room, [n_profiles, n_groups]; None
             where only bounds are needed
    """

    caps: np.ndarray
    largest: bool
    room: np.ndarray | None = None

    @property
    def asked(self) -> np.ndarray:
        counted = (self.weights > 0) | self.capped
        return (self.columns.T > 0).astype(float) @ counted > 0

    @cached_property
    def capped(self) -> np.ndarray:
        """Whether a table has a cap, bool[n_tables, n_groups]."""
        return np.isfinite(self.caps)

    @cached_property
    def relative(self) -> AreaMaximum:
        """The problem of coming as far inside all caps as can be."""
        weights = np.where(self.capped, 1 / self.caps, 0.0) / (1 - _CAP_ROUNDING)
        return AreaMaximum(
            self.groups,
            self.costs,
            self.kinds,
            self.uniform,
            self.columns,
            weights,
            exact_levels=self.exact_levels,
        )

    def with_room(self, inside: AreaState) -> "AreaCapped":
        """With the room of a state of `relative` whose value is below 1."""
        precisions, _ = self.relative.normalised(inside)
        every = self.measured.astype(float)
        of_every, _ = self.normalised(AreaState(every, self.even_prices()))
        # Both cost 1, and costs are linear in precisions: so does the mix.
        share = _ROOM_FOR_ALL * (1 - self.relative.visit(inside).value)
        return replace(self, room=(1 - share) * precisions + share * of_every)

    @cached_property
    def _of_room(self) -> tuple[float, float]:
        """Loss of the room, and its largest variance over its cap."""
        if self.room is None:
            return np.inf, 0.0
        variances, _ = self.variances_and_gradients(self.room, np.zeros_like(self.room))
        return self._loss(variances), self._broken(variances)

    def _loss(self, variances: np.ndarray) -> float:
        weighted = self.weights * variances
        if self.largest:
            return float(np.max(weighted))
        return float(np.sum(weighted @ self.groups.multiplicity))

    def _broken(self, variances: np.ndarray) -> float:
        """The largest variance over its lowered cap."""
        return float(np.max(variances / self.caps)) / (1 - _CAP_ROUNDING)

    def start(self) -> AreaState:
        """All caps together cost as much as the loss."""
        assert self.room is not None
        prices = self._of_room[0] * self.even_shares(self.capped)
        if self.largest:
            prices += self.even_shares(self.weights > 0)
        return AreaState(self.room, self.even_prices(), prices)

    def lawful(self, state: AreaState) -> AreaState:
        prices = state.table_prices
        assert prices is not None
        if self.largest:  # prices of caps may be any
            prices = np.where(self.capped, prices, self.lowered(np.where(self.capped, 0, prices)))
        return super().lawful(replace(state, table_prices=prices))

    def proven(self, state: AreaState) -> float:
        """The best of a state and of some steps of its precisions, each of which is a proof."""
        state, bounds = self.lawful(state), []
        for _ in range(1 + _STEPS_OF_PROOF):
            found = self.visit(state)
            bounds.append(found.bound)
            state = replace(state, precisions=found.follow().precisions)
        return max(bounds)

    def visit(self, state: AreaState) -> AreaRound:
        table_prices, sizes = state.table_prices, self.groups.multiplicity
        assert table_prices is not None
        precisions, prices = self.normalised(state)
        of_caps = np.where(self.capped, table_prices, 0.0)
        on_loss = self.weights * table_prices if self.largest else self.weights
        # Lagrangian: the loss plus each cap's price times Var/cap; the prices themselves are taken
        # off the bound.
        weights = self.columns.T @ (on_loss + of_caps / self.caps)
        variances, gradients = self.variances_and_gradients(precisions, weights)
        relative = variances / self.caps
        counted = float(np.sum((on_loss * variances) @ sizes))
        # The weighted sum at these precisions: its bound, less the caps' prices, is that of the
        # problem.
        total = counted + float(np.sum((of_caps * relative) @ sizes))
        bound, ratios = self.bound_and_ratios(total, gradients, state.prices)
        bound -= float(np.sum(of_caps @ sizes))
        loss, broken = self._loss(variances), self._broken(variances)
        value, share = loss, 0.0
        if broken > 1 + _ROUNDING:
            of_room, room_broken = self._of_room
            share = (broken - 1) / (broken - room_broken)
            value = (1 - share) * loss + share * of_room  # at most, as variances are convex

        def follow() -> AreaState:
            # The best loss lies between what was proven and found; steering by a single round's
            # bound and value goes around in circles.
            low, high = max(bound, state.known[0]), min(value, state.known[1])
            reachable = np.sqrt(high * max(low, _LEAST_BOUND * high))
            # A cap's price rises while its variance is above the cap, or the loss below what can be
            # reached (§15.5).
            steps = relative * (reachable / counted / (1 - _CAP_ROUNDING))
            steps = np.clip(steps, 1 / _FARTHEST, _FARTHEST) ** state.step
            # A price of 0 would stay 0.
            least = _LEAST_PRICES * loss / float(np.sum(self.capped @ sizes))
            following = np.where(self.capped, np.maximum(of_caps * steps, least), 0.0)
            if self.largest:
                of_loss = np.where(self.capped, 0.0, table_prices)
                following += self.shares(of_loss * (self.weights * variances) ** state.step)
            moved = precisions * np.sqrt(ratios / total)
            return AreaState(moved, prices, following, state.step, (low, high))

        def mended() -> AreaState:
            assert self.room is not None
            return replace(state, precisions=(1 - share) * precisions + share * self.room)

        return AreaRound(value, bound, follow, mended if share else None)
