"""The best precisions within caps on variances, with a proof (docs/mathematics.md §15.5).

The search of `solvers`, in which caps have prices too: a price rises while its variance is above
the cap or the loss below what can be reached, and falls otherwise. Precisions that break caps a
little are mixed with some that keep all of them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rpexplore.planning.areas.solvers import AreaMaximum, AreaRound, AreaState, TableProblem

# Caps are lowered by so much, relative, that they hold after precisions have been rounded.
_CAP_ROUNDING = 1e-9
_ROUNDING = 1e-13  # of variances, by which a mix of precisions may be above lowered caps
_LEAST_PRICES = 1e-9  # of all caps together over the loss: none vanishes, as in `solvers`
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
        return AreaMaximum(self.groups, self.costs, self.uniform, self.columns, weights)

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
