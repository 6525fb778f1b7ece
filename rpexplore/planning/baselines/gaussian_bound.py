"""A bound for all Gaussian mechanisms on weighted sums of variances of tables in any basis.

For any weights λ on the cells of all attributes, no Gaussian mechanism of privacy cost 1 has a
smaller Σ w · variance than (tr K^½)², K = Λ^½ V Λ^½, V = Σ w QᵀQ over the tables' queries Q
(docs/mathematics-baselines.md §16). Here λ is a product of one weight for each value of an
attribute. Then K falls apart into blocks; those of an attribute that all tables have in the same
basis are cut into small ones, at a loss that is computed too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rpexplore.common.processes import one_thread
from rpexplore.domain.domain import subsets
from rpexplore.planning.baselines.plan_bound import Alike, Axes, TableParts, Values, axes_of
from rpexplore.planning.baselines.residual_axis import as_weights
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.workload import Workload

# Work: cubes of sizes of what is decomposed, added up.
LITTLE_WORK = 4e9
"""About a second."""
_MOST_WORK = 4e10
_MOST_COORDINATES = 3400  # of one block: what this is enough for
_MOST_WORK_OF_BLOCKS = 1e9  # of a step, unless nothing is left to be cut
_WORK_OF_A_PART = 8e4  # of a pair of subsets of a table's attributes, however small its blocks are
_WORK_OF_VALUES = 3  # times their cube, of an attribute
_JOINED = (32, 16, 8, 4, 2, 1)  # directions of an attribute that are not cut, where all are many
_MOST_STEPS = 25
_STILL = 1e-4  # a step that raises the bound by less (relative) is the last one
_STRIDE = 3  # weights change as if by so many steps
_NOTHING = 1e-12  # of the largest: what is left out, which can only lower the bound
_UNTOLD = 1e-14  # of the largest: 0 but for rounding
# What rounding can have added: far more than the roots of such blocks are off by.
_ROUNDING = 1e-6


@one_thread()
def gaussian_bound(
    workload: Workload,
    closure: Closure,
    table_weights: np.ndarray,
    *,
    most_work: float = _MOST_WORK,
) -> float | None:
    """No Gaussian mechanism of privacy cost 1 has a smaller Σ weight · mean variance of a table.

    Args:
        closure: With the strategies of a plan, whose references the search for weights starts from.
        table_weights: float64[n_tables], at least 0.
        most_work: Cubes of sizes of what is decomposed, added up.

    Returns:
        None where it would take longer.
    """
    weighted = np.flatnonzero(table_weights > 0)
    work = float(np.sum(3.0 ** workload.orders[weighted])) * _WORK_OF_A_PART
    axes = axes_of(workload, closure) if work <= most_work else None
    if axes is None:
        return None
    tables = [TableParts.of(workload, axes, table, table_weights) for table in weighted.tolist()]
    own = {column: axis for column, axis in axes.items() if isinstance(axis, Values)}
    work += _WORK_OF_VALUES * sum(float(len(axis.decoding)) ** 3 for axis in own.values())
    if work > most_work:
        return None
    weights = {column: as_weights(np.abs(axis.decoding[:, 0])) for column, axis in own.items()}
    turned = {column: _Turned.of(axis, weights[column]) for column, axis in own.items()}
    n_joined = _joined(axes, tables, turned, work, most_work)
    if n_joined is None:
        return None
    best = 0.0
    for step in range(_MOST_STEPS):
        before = best
        root = _Root.of(axes, tables, turned, n_joined)
        if root is None:  # a direction more than with the weights before
            break
        bound, diagonals = root.bound()
        best = max(best, bound)
        if best <= before * (1 + _STILL) or (step + 2) * (work + root.work) > most_work:
            break
        for column, axis in own.items():
            change = (diagonals[column] / weights[column]) ** _STRIDE
            weights[column] = as_weights(weights[column] * change)
            turned[column] = _Turned.of(axis, weights[column])
    return best * (1 - _ROUNDING) if best > 0 else None


def _joined(
    axes: Axes,
    tables: Sequence[TableParts],
    turned: Mapping[int, "_Turned"],
    work: float,
    most_work: float,
) -> int | None:
    """Of how many directions of an attribute there is time for; None if of none.

    Args:
        work: Of a step, for everything but the blocks.
    """
    n_most = max((len(axis.directions) for axis in turned.values()), default=1)
    for n_joined in (n_most, *(n for n in _JOINED if n < n_most)):
        root = _Root.of(axes, tables, turned, n_joined)
        is_last = n_joined == _JOINED[-1] or all(len(axis.grams) > 1 for axis in turned.values())
        most = most_work - work if is_last else _MOST_WORK_OF_BLOCKS
        if root is not None and root.work <= most:
            return n_joined
    return None


@dataclass(frozen=True, eq=False)
class _Turned:
    """An attribute's directions: λ^½ first, then those most coupled with it.

    directions  float64[n values, n], orthonormal
    grams       by basis Λ^½ G Λ^½ in these, float64[n, n]; of a single one all but the first
                direction are uncoupled with each other
    """

    directions: np.ndarray
    grams: dict[int, np.ndarray]

    @classmethod
    def of(cls, axis: Values, weights: np.ndarray) -> "_Turned":
        half = np.sqrt(weights)
        grams = {q: half[:, None] * gram * half for q, gram in axis.grams.items()}
        in_turn = list(grams.values())
        if len(in_turn) > 1:  # directions that most bases tell nothing about come last
            in_turn.sort(key=lambda gram: np.linalg.matrix_rank(gram, hermitian=True))
        directions = half[:, None]
        for gram in in_turn:
            rest = np.linalg.qr(directions, mode="complete")[0][:, directions.shape[1] :]
            squares, vectors = np.linalg.eigh(rest.T @ gram @ rest)
            told = squares > _NOTHING * np.trace(gram)
            directions = np.hstack([directions, rest @ vectors[:, told][:, ::-1]])
        if len(in_turn) == 1:
            turned = directions.T @ in_turn[0] @ directions
            diagonal = np.diag(turned)[1:]
            lost = turned[0, 1:] ** 2 / diagonal * (1 + np.sqrt(diagonal / turned[0, 0]))
            order = 1 + np.argsort(-lost, kind="stable")
            directions = directions[:, [0, *order.tolist()]]
        own = {q: directions.T @ gram @ directions for q, gram in grams.items()}
        return cls(directions, own)

    def n_joined(self, most: int) -> int:
        """Directions that are not cut: with several bases all of them."""
        of_all = self.directions.shape[1] - 1
        return of_all if len(self.grams) > 1 else min(most, of_all)


@dataclass(frozen=True, eq=False)
class _Joined:
    """An attribute's first directions, which are joined, and others, which are cut.

    grams       by basis, of those of the first 1 + n that it tells something about
    others      the diagonal of the only one in the other directions
    couplings   of these with the first one
    """

    directions: np.ndarray
    n: int
    grams: dict[int, np.ndarray]
    others: np.ndarray
    couplings: np.ndarray

    @classmethod
    def of(cls, turned: _Turned, n_joined: int) -> "_Joined":
        n = turned.n_joined(n_joined)
        own = {}
        for basis, gram in turned.grams.items():
            diagonal = np.diag(gram)[: 1 + n]
            told = np.append(0, np.flatnonzero(diagonal > _UNTOLD * np.max(diagonal)))[-1]
            own[basis] = gram[: 1 + told, : 1 + told]
        gram = next(iter(turned.grams.values()))
        return cls(turned.directions, n, own, np.diag(gram)[1 + n :], gram[0, 1 + n :])

    @property
    def sum_of_roots(self) -> float:
        return float(np.sum(np.sqrt(self.others)))


@dataclass(frozen=True, eq=False)
class _Block:
    """Coordinates with the same attributes in others than joined directions: those that are `cut`.

    Such a block for each choice of their directions is a multiple of this one.

    tables  that have all attributes that are cut
    places  of sets of the other attributes, the coordinates in their joined directions, one axis
            an attribute; −1 where no table tells anything
    """

    cut: frozenset[int]
    tables: list[TableParts]
    places: dict[tuple[int, ...], np.ndarray]
    size: int

    def of_table(self, sizes: Mapping[int, int]) -> np.ndarray:
        """Coordinates in so many of these attributes' first directions, int64[product]."""
        found = np.zeros(list(sizes.values()), dtype=np.int64)
        for some in subsets(list(sizes)):
            where = tuple(slice(1, None) if column in some else 0 for column in sizes)
            first = tuple(slice(sizes[column] - 1) for column in some)
            found[where] = self.places[some][first]
        return found.ravel()


@dataclass(frozen=True, eq=False)
class _Part:
    """A block's eigenvectors float64[size, n], with roots of the eigenvalues, above 0."""

    vectors: np.ndarray
    roots: np.ndarray


@dataclass(frozen=True, eq=False)
class _Root:
    """tr K^½ at weights of the values."""

    axes: Axes
    joined: dict[int, _Joined]
    blocks: dict[frozenset[int], _Block]

    @classmethod
    def of(
        cls,
        axes: Axes,
        tables: Sequence[TableParts],
        turned: Mapping[int, _Turned],
        n_joined: int,
    ) -> "_Root | None":
        """None where a block is too large."""
        joined = {column: _Joined.of(axis, n_joined) for column, axis in turned.items()}
        having: dict[frozenset[int], list[TableParts]] = {}
        for table in tables:
            may_be_cut = [c for c in table.columns if c not in joined or len(joined[c].others)]
            for cut in subsets(may_be_cut):
                having.setdefault(frozenset(cut), []).append(table)
        blocks = {}
        for cut, with_it in having.items():
            told: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
            for table in with_it:
                n = {c: len(joined[c].grams[q]) - 1 for c, q in table.parts if c in joined}
                for some in subsets([column for column in n if column not in cut]):
                    told.setdefault(some, []).append(tuple(n[column] for column in some))
            places, size = {}, 0
            for some, shapes in told.items():
                if size + max(map(math.prod, shapes)) > _MOST_COORDINATES:
                    return None
                places[some] = _numbered(shapes, size)
                size = max(size, int(np.max(places[some], initial=-1)) + 1)
            blocks[cut] = _Block(cut, with_it, places, size)
        return cls(axes, joined, blocks)

    @property
    def work(self) -> float:
        of_blocks = sum(float(block.size) ** 3 for block in self.blocks.values())
        return of_blocks + _WORK_OF_A_PART * len(self.blocks) * len(self.joined)

    def bound(self) -> tuple[float, dict[int, np.ndarray]]:
        """A lower bound of (tr K^½)², and of each attribute the diagonal of the root, by value."""
        total, parts = 0.0, {}
        diagonals = {c: np.zeros([axis.directions.shape[1]] * 2) for c, axis in self.joined.items()}
        for cut, block in self.blocks.items():
            part = parts[cut] = self._part(block)
            times = math.prod(map(self._times, cut))
            of_block = float(np.sum(part.roots))
            total += times * of_block
            root = part.vectors * part.roots @ part.vectors.T
            for column, diagonal in diagonals.items():
                axis = self.joined[column]
                if column in cut:
                    others = np.arange(1 + axis.n, len(diagonal))
                    share = np.sqrt(axis.others) / axis.sum_of_roots
                    diagonal[others, others] += times * of_block * share
                else:
                    self._add(diagonal, column, block, times * root)
        by_value = {
            column: np.maximum(np.sum(axis.directions @ diagonals[column] * axis.directions, 1), 0)
            for column, axis in self.joined.items()
        }
        return total**3 / (total + self._lost(parts)), by_value

    def _times(self, column: int) -> float:
        """What roots of blocks add up to, over the directions of an attribute that is cut."""
        if column in self.joined:
            return self.joined[column].sum_of_roots
        axis = self.axes[column]
        assert isinstance(axis, Alike)
        return axis.n - 1.0

    def _factor(self, table: TableParts, cut: frozenset[int]) -> tuple[np.ndarray, dict[int, int]]:
        """A table's part of K in first and joined directions, and how many an attribute."""
        factor, sizes = np.full((1, 1), table.weight), {}
        for column, basis in table.parts:
            axis = self.axes[column]
            if isinstance(axis, Alike):
                factor = factor / float(axis.n) ** 2
            elif column not in cut:
                gram = self.joined[column].grams[basis]
                factor, sizes[column] = np.kron(factor, gram), len(gram)
        return factor, sizes

    def _part(self, block: _Block) -> _Part:
        gram = np.zeros((block.size, block.size))
        for table in block.tables:
            factor, sizes = self._factor(table, block.cut)
            places = block.of_table(sizes)
            gram[np.ix_(places, places)] += factor
        # Coordinates of which no query tells anything.
        told = np.flatnonzero(np.diag(gram) > _NOTHING * np.max(np.diag(gram)))
        squares, vectors = np.linalg.eigh(gram[np.ix_(told, told)])
        # Eigenvalues lowered by what rounding may have added to them.
        rounding = 4 * len(told) * np.finfo(float).eps * float(np.max(squares))
        kept = squares > max(_NOTHING * float(np.max(squares)), 2 * rounding)
        placed = np.zeros((block.size, int(np.sum(kept))))
        placed[told] = vectors[:, kept]
        return _Part(placed, np.sqrt(squares[kept] - rounding))

    def _lost(self, parts: Mapping[frozenset[int], _Part]) -> float:
        """Σ over pairs of blocks tr K_gh S_h⁻² K_hg S_g⁻¹, S the roots of the blocks."""
        found = 0.0
        for cut, both in self.blocks.items():
            alike, own = cut - set(self.joined), cut & set(self.joined)
            for in_one, in_other in product(subsets(sorted(own)), repeat=2):
                if in_one == in_other or own != {*in_one, *in_other}:
                    continue
                found += self._lost_between(alike | set(in_one), alike | set(in_other), both, parts)
        return found

    def _lost_between(
        self,
        one: frozenset[int],
        other: frozenset[int],
        both: _Block,
        parts: Mapping[frozenset[int], _Part],
    ) -> float:
        gram = 0.0
        for table in both.tables:
            factor, sizes = self._factor(table, both.cut)
            left = parts[one].vectors[self.blocks[one].of_table(sizes)]
            right = parts[other].vectors[self.blocks[other].of_table(sizes)]
            gram = gram + left.T @ factor @ right
        times = math.prod(map(self._times, one & other))
        for column in one ^ other:
            axis = self.joined[column]
            power = 0.5 if column in one else 1.0
            times *= float(np.sum(axis.couplings**2 / axis.others**power))
        roots = parts[one].roots[:, None] * parts[other].roots ** 2
        return times * float(np.sum(gram**2 / roots))

    def _add(self, diagonal: np.ndarray, column: int, block: _Block, root: np.ndarray) -> None:
        """Add a root's sum over all attributes but one, in its first and joined directions."""
        root = np.pad(root, (0, 1))  # at −1: nothing
        for some, places in block.places.items():
            if column in some:
                continue
            diagonal[0, 0] += np.sum(np.diag(root)[places])
            with_it = tuple(sorted((*some, column)))
            if with_it not in block.places:
                continue
            inside = np.moveaxis(block.places[with_it], with_it.index(column), 0)
            n = len(inside)
            outside = places[tuple(map(slice, inside.shape[1:]))]
            rows = np.stack([outside, *inside]).reshape(1 + n, -1)
            joined = np.sum(root[rows[:, None], rows[None]], axis=2)
            joined[0, 0] = 0.0
            diagonal[: 1 + n, : 1 + n] += joined


def _numbered(shapes: Sequence[tuple[int, ...]], start: int) -> np.ndarray:
    """Numbers from `start` for what lies in any of these boxes, −1 elsewhere in what holds them."""
    places = np.full(np.max(shapes, axis=0).astype(np.int64), -1)
    for shape in shapes:
        places[tuple(map(slice, shape))] = 0
    places[places == 0] = start + np.arange(np.sum(places == 0))
    return places
