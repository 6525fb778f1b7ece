"""What no estimate of small areas can be better than: the posterior under what made the state.

Of some areas of the made-up state and all that lies in them the posterior of the true counts is
sampled (Metropolis), given noise as in a release and more than anybody has: the distribution that
the state was made from, the true shares of what they lie in, and the true counts of all else. Its
medians, cell by cell and for each table by itself, have the least Σ |error| that an estimate can
have on average, whether it adds up or not. Cases of `tests.benchmarks.run`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rpexplore.planning.areas.area_plan import AreaPlan
from tests.benchmarks import made_up_state
from tests.benchmarks.measure import Row
from tests.benchmarks.small_areas import errors_of, made_up

_SAMPLES = 60  # of the posterior that are kept, of 4/3 as many: the truth has to be forgotten
_STEPS = 120  # of each block between them
TABLES = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
_SIZES = tuple(made_up_state.DOMAIN.sizes.tolist())
_LAST = len(made_up_state.LEVELS)
_MOVE, _ADD, _TAKE, _EXCHANGE = range(4)  # to another cell, in, out, to another block
_CHANCES = (0.5, 0.2, 0.2, 0.1)


@dataclass(frozen=True, eq=False)
class Subtrees:
    """Some areas of one level, the roots, with everything in them, and what is known of it.

    counts       int64[n_blocks, 252], true, root by root
    within       of each level from the roots down to blocks, int64[n_blocks]: the own number of
                 the area that each block is in
    precisions   of each level float64[n]: of its areas' answers, as multiples of `information`; of
                 roots with the answers to all that they lie in, as the rest of that is known
    shares       float64[n_roots, 252], true, of what the roots lie in
    following    sums of the Dirichlet shares of each level about those above
    mean_size    of blocks, which are Poisson with Gamma means
    information  float64[252, 252]: inverse covariance of the answers to cells at a multiple of 1
    """

    counts: np.ndarray
    within: list[np.ndarray]
    precisions: list[np.ndarray]
    shares: np.ndarray
    following: tuple[int, ...]
    mean_size: float
    information: np.ndarray

    @cached_property
    def n_areas(self) -> list[int]:
        return [len(own) for own in self.precisions]

    @cached_property
    def parents(self) -> list[np.ndarray]:
        """Of each level the numbers of what its areas lie in; of roots their own."""
        found = [np.arange(self.n_areas[0])]
        for above, own in zip(self.within, self.within[1:], strict=False):
            of = np.empty(own.max() + 1, dtype=np.int64)
            of[own] = above
            found.append(of)
        return found

    def counts_of(self, level: int, blocks: np.ndarray) -> np.ndarray:
        """Sums over blocks, [..., n_blocks, 252], in the areas of a level, counted from roots."""
        starts = np.searchsorted(self.within[level], np.arange(self.n_areas[level]))
        return np.add.reduceat(blocks, starts, axis=-2)

    def shares_given(
        self, x: np.ndarray, known: list[np.ndarray], generator: np.random.Generator
    ) -> list[np.ndarray]:
        """Shares of each level but blocks, drawn given counts and former shares.

        By the tables that a Dirichlet process seats people at (Antoniak 1974), level by level.
        """
        seated, sums = x, []
        for level in range(len(self.within) - 1, 0, -1):
            prior = self.following[level] * known[level - 1]
            area, cell = np.nonzero(seated)
            times = seated[area, cell]
            entries = np.repeat(np.arange(len(area)), times)
            order = np.arange(len(entries)) - np.repeat(np.cumsum(times) - times, times)
            of = self.parents[level][area]
            own = prior[of, cell][entries]
            opens = generator.random(len(entries)) * (own + order) < own
            seated = np.zeros((self.n_areas[level - 1], x.shape[1]), dtype=np.int64)
            np.add.at(seated, (of[entries], cell[entries]), opens)
            sums.insert(0, seated)
        found, above = [], self.shares
        for level, own in enumerate(sums):
            shares = generator.gamma(self.following[level] * above[self.parents[level]] + own)
            above = shares / shares.sum(axis=1, keepdims=True)
            found.append(above)
        return found

    def first_shares(self) -> list[np.ndarray]:
        """Shares of each level but blocks, to begin with: those of what the roots lie in."""
        found = [self.shares]
        for parents in self.parents[1:-1]:
            found.append(found[-1][parents])
        return found


def posterior(
    of: Subtrees, seed: int, n_samples: int = _SAMPLES, n_steps: int = _STEPS
) -> np.ndarray:
    """Counts of blocks drawn from their posterior: int16[n_samples, n_blocks, 252].

    A chain for each root begins with the truth, which is a draw from the posterior like any other.
    """
    generator, j = np.random.default_rng(seed), of.information
    root, c = np.linalg.cholesky(j), float(j[0, 0])
    x, sizes = of.counts.copy(), of.counts.sum(axis=1)
    n_roots, n_blocks = of.n_areas[0], np.bincount(of.within[0])
    first = np.cumsum(n_blocks) - n_blocks
    steps = int(n_steps * np.mean(n_blocks))
    # J (y - x) of every area.
    g = [
        generator.normal(size=(len(own), len(j))) @ root.T / np.sqrt(own)[:, None]
        for own in of.precisions
    ]
    total, r = float(of.following[-1]), made_up_state.SIZES
    p = of.mean_size / (of.mean_size + r)
    # Cells to change are chosen by what does not change, rare ones often enough.
    chosen = np.cumsum(np.sqrt(of.shares), axis=1)
    chosen /= chosen[:, -1:]
    shares, found = of.first_shares(), []
    for _ in range(20):
        shares = of.shares_given(x, shares, generator)
    for batch in range(4 * n_samples // 3):
        shares = of.shares_given(x, shares, generator)
        a, parents = total * shares[-1], of.parents[-1]
        blocks = first + (generator.random((steps, 2, n_roots)) * n_blocks).astype(np.int64)
        uniform = generator.random((n_roots, steps * 2))
        cells = [np.searchsorted(own, u) for own, u in zip(chosen, uniform, strict=True)]
        cells = np.stack(cells, axis=1).reshape(steps, 2, n_roots)
        limits = np.log(generator.random((steps, n_roots)))
        # Kinds are drawn root by root, so that chains are independent of each other.
        kinds = generator.choice(4, (steps, n_roots), p=_CHANCES)
        for step, kind in enumerate(kinds):
            (b1, b2), (j1, j2) = blocks[step], cells[step]
            b2, j2 = np.where(kind == _MOVE, b1, b2), np.where(kind == _EXCHANGE, j1, j2)
            takes, adds, resizes = kind != _ADD, kind != _TAKE, kind != _MOVE
            with np.errstate(divide="ignore", invalid="ignore"):
                own = x[b1, j1]
                fewer = np.log(np.maximum(own / (own - 1 + a[parents[b1], j1]), 0.0))
                own = x[b2, j2]
                more = np.log((own + a[parents[b2], j2]) / (own + 1))
            own = np.maximum(sizes[b1], 1)
            fewer += resizes * np.log((own - 1 + total) / ((own - 1 + r) * p))
            more += resizes * np.log((sizes[b2] + r) * p / (sizes[b2] + total))
            together = np.where(kind == _MOVE, j[j1, j2], 0.0)
            for within, t, own in zip(of.within, of.precisions, g, strict=True):
                n1, n2 = within[b1], within[b2]
                inside = (kind == _EXCHANGE) & (n1 == n2)
                fewer -= np.where(inside, 0.0, t[n1] * (own[n1, j1] + c / 2 - together))
                more += np.where(inside, 0.0, t[n2] * (own[n2, j2] - c / 2))
            ratio = np.where(takes, fewer, 0.0) + np.where(adds, more, 0.0)
            taken = (limits[step] < ratio) & ((b1 != b2) | (j1 != j2) | (takes != adds))
            if not np.any(taken):
                continue
            takes, adds = takes & taken, adds & taken
            b1, j1, b2, j2 = b1[takes], j1[takes], b2[adds], j2[adds]
            x[b1, j1] -= 1
            sizes[b1] -= 1
            x[b2, j2] += 1
            sizes[b2] += 1
            for within, own in zip(of.within, g, strict=True):
                own[within[b1]] += j[j1]
                own[within[b2]] -= j[j2]
        if batch >= n_samples // 3:
            found.append(x.astype(np.int16))
    return np.array(found[:n_samples])


def margin(cells: np.ndarray, attributes: tuple[int, ...]) -> np.ndarray:
    """The table of some attributes, [..., n_cells], of [..., 252]."""
    split = cells.reshape(*cells.shape[:-1], *_SIZES)
    others = tuple(index - 3 for index in range(3) if index not in attributes)
    return split.sum(axis=others, dtype=np.int32).reshape(*cells.shape[:-1], -1)


def errors_of_medians(drawn: np.ndarray, counts: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """Σ |median - truth| of each table and area, float64[n]."""
    return {
        table: np.abs(np.median(margin(drawn, table), axis=0) - margin(counts, table)).sum(axis=1)
        for table in TABLES
    }


@dataclass(frozen=True, eq=False)
class State:
    """A share of the made-up state, its plan, and the shares that its people were drawn with."""

    plan: AreaPlan
    counts: np.ndarray
    shares: list[np.ndarray]

    @classmethod
    def of(cls, share: int) -> "State":
        plan, counts = made_up(share)
        generator = np.random.default_rng(0)  # as of `counts_in_areas`
        shares = list(made_up_state.shares_in_areas(plan.workload.tree, generator))
        return cls(plan, counts.reshape(len(counts), -1), shares)

    def multiples(self, areas: np.ndarray) -> np.ndarray:
        return self.plan.multiples[0, self.plan.groups.of_area[areas]].astype(float)

    @property
    def information(self) -> np.ndarray:
        """Inverse covariance of the answers to cells of an area, whose multiple is 1."""
        found = np.zeros((1, 1))
        for residual, scale in enumerate(self.plan.scales.tolist()):
            own = np.full((1, 1), scale)
            for index, size in enumerate(_SIZES):
                within = index in self.plan.closure.attributes(residual)
                own = np.kron(own, np.eye(size) - 1 / size if within else np.ones((size, size)))
            found = found + own
        return found

    def subtrees(self, level: int, n_roots: int, seed: int = 0) -> Subtrees:
        """Of some areas of a level, drawn at random."""
        tree = self.plan.workload.tree
        every = np.arange(tree.starts[level], tree.starts[level + 1])
        chosen = np.random.default_rng(seed).choice(every, min(n_roots, len(every)), replace=False)
        areas = [np.sort(chosen)]
        for _ in range(level, _LAST):
            own = tree.first_parts[areas[-1]], tree.n_parts[areas[-1]]
            areas.append(np.concatenate([np.arange(a, a + n) for a, n in zip(*own, strict=True)]))
        within = [np.arange(len(areas[-1]))]
        for above, own in zip(areas[-2::-1], areas[:0:-1], strict=True):
            within.insert(0, np.searchsorted(above, tree.parents[own])[within[0]])
        precisions, around = [self.multiples(own) for own in areas], areas[0]
        while (around := tree.parents[around])[0] >= 0:
            precisions[0] += self.multiples(around)
        above = tree.parents[areas[0]] - tree.starts[level - 1]
        mean_size = self.counts[0].sum() / (tree.starts[_LAST + 1] - tree.starts[_LAST])
        return Subtrees(
            self.counts[areas[-1]].astype(np.int64), within, precisions,
            self.shares[level - 1][above], made_up_state.FOLLOWING[level - 1 :],
            float(mean_size), self.information,
        )  # fmt: skip


def guesses_over_their_floor() -> list[Row]:
    """Blocks of a twentieth of the state: best guesses beside medians that know the prior."""
    state = State.of(20)
    shape = -1, *_SIZES
    guesses = errors_of(state.plan, state.counts.reshape(shape), 1)
    clusters = state.subtrees(_LAST - 1, 100)
    floor = errors_of_medians(posterior(clusters, 0), clusters.counts)
    names = {(): "totals", (1, 2): "Hispanic x race", (0, 1, 2): "all cells"}
    return [
        (f"blocks of a twentieth of a state, best guesses over their floor: {name}, times",
         guesses.mean("guesses", _LAST, table) / float(floor[table].mean()), "<=", 1.25)
        for table, name in names.items()
    ]  # fmt: skip


CASES = (guesses_over_their_floor,)
