"""Strategies in integers: R over a power of two, at almost no loss (docs/mathematics.md §7.3).

What rounding costs is accuracy alone, chiefly through the largest column norm, which sets the
privacy cost: all columns must come out equally long, none longer than it was.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import attrgetter

import numpy as np

from rpexplore.planning.solvers.strategy_matrix import StrategySolution

# The value of a root and a reference distribution, and its slopes in them: float, float[n].
Worth = Callable[[float, np.ndarray], tuple[float, float, np.ndarray]]

# Where 1 is added and where it is taken away, int64[n_changes] each; n: nowhere.
Changes = tuple[np.ndarray, np.ndarray]

# With so many bits rounding costs next to nothing: nothing is tried beyond the plain matrix.
_PLENTY_OF_BITS = 12
# With fewer, and not too many values, rotated matrices are rounded as well, and the best improved:
# for n values this number / n² of them, at least one and at most so many, below 9 bits more.
_MOST_TURNED = 120
_IMPROVED, _MOST_IMPROVED = 4000, 4
_FEW_BITS, _MOST_IF_FEW_BITS = 9, 40
_TURNS = 3  # rotated matrices for each that is improved
_MOST_IF_UNIFORM = 60  # values
_MOST_STEPS = 3000  # in improving one
_PROMISING = 4  # moves for each value that are looked at in a step
_REJECTED = 8  # steps tried in vain before it is given up
_GAIN = 2e-7  # of a step, relative: less is not worth its time
_ENOUGH = (
    2e-5  # of the root lost to rounding: with the plain matrix improved so far, no other is tried
)
_LARGEST = 1e6  # number in the inverse times that in R: above, decoding would be inexact


def bits_for(strategies_together: int) -> float:
    """The bits of R's columns if at most so many measured attributes meet in one table.

    Entries of the columns' products stay within 2^38, so that sums over 2^23 records and their
    noise fit into 64 bits, or are refused before a release (docs/mathematics.md §7.4).
    """
    return {1: 12.0, 2: 12.0, 3: 10.0, 4: 9.0}.get(strategies_together, 38 / strategies_together)


def integer_matrix(
    measuring: StrategySolution,
    bits: float,
    gram: np.ndarray,
    worth: Worth,
    *,
    uniform_reference: bool = False,
) -> np.ndarray:
    """R·2^bits in integers, int64[n − 1, n], |entries| ≤ 2^bits, chosen by what it is worth.

    gram: of which the root is meant. worth: of a root and a reference distribution, smaller is
    better. uniform_reference: every row sums to 0 exactly, so that z stays 1/n.
    """
    n = len(gram)
    is_improved = bits < _PLENTY_OF_BITS and n <= (
        _MOST_IF_UNIFORM if uniform_reference else _MOST_TURNED
    )
    changes = _changes(n, uniform_reference) if is_improved else None

    def rounding(matrix: np.ndarray) -> _Rounding:
        return _Rounding(_rounded(matrix * 2**bits, 4**bits, uniform_reference), gram, worth)

    if changes is not None:
        exact = _Rounding(measuring.matrix * 2**bits, gram, worth)
        first = rounding(measuring.matrix)
        if np.isfinite(exact.worth) and np.isfinite(first.worth):
            first = first.improved(changes, 2.0**bits)
            if first.worth <= exact.worth + _ENOUGH * exact.root:
                return first.integers.astype(np.int64)
    most = _MOST_IMPROVED if bits >= _FEW_BITS else _MOST_IF_FEW_BITS
    n_improved = max(1, min(most, _IMPROVED // n**2))
    n_turns = _TURNS * n_improved if bits < _PLENTY_OF_BITS and n <= _MOST_TURNED else 0
    copies = turned(measuring.matrix, bits, n_turns)
    tried = [one for one in map(rounding, copies) if np.isfinite(one.worth)]
    if not tried:
        raise ValueError(f"R cannot be rounded to {bits:g} bits: it is too near a singular one")
    if changes is not None:
        best = sorted(tried, key=attrgetter("worth"))[:n_improved]
        tried = [one.improved(changes, 2.0**bits) for one in best]
    return min(tried, key=attrgetter("worth")).integers.astype(np.int64)


class _Rounding:
    """An integer matrix, as float64, and what it is worth: infinite if it cannot be decoded."""

    def __init__(self, integers: np.ndarray, gram: np.ndarray, worth: Worth) -> None:
        self.integers, self._gram, self._worth_of = integers, gram, worth
        self.worth = np.inf
        try:
            self.inverse = np.linalg.inv(np.vstack([np.ones(len(gram)), integers]))
        except np.linalg.LinAlgError:
            return
        if not np.abs(self.inverse).max() * np.abs(integers).max() < _LARGEST:
            return
        self.reference, self.decoding = self.inverse[:, 0], self.inverse[:, 1:]
        self.columns = (integers**2).sum(axis=0)
        self.products = gram @ self.decoding
        self.spread = np.sum(self.products * self.decoding)
        if self.spread >= 0:
            self.root = float(np.sqrt(self.columns.max() * self.spread))
            self.worth, *self.slopes = worth(self.root, self.reference)

    def improved(self, changes: Changes, most: float) -> "_Rounding":
        """Itself after steps that each change entries in many columns, as long as these gain.

        most: what no entry may exceed.
        """
        at = self
        n = together = len(self.reference)
        for _ in range(_MOST_STEPS):
            # The moves that gain most by themselves, best first: int[3, m], of each its row, and
            # where 1 is added and taken away.
            estimates = at._estimates(changes, most).ravel()
            count = min(_PROMISING * len(at.reference), len(estimates))
            best = np.argpartition(estimates, count - 1)[:count]
            best = best[estimates[best] < at.worth]
            if np.sum(at.worth - estimates[best]) <= _GAIN * at.worth:
                return at  # even all together
            best = best[np.argsort(estimates[best], kind="stable")]
            row, change = np.unravel_index(best, (len(at.integers), len(changes[0])))
            moves = np.stack([row, changes[0][change], changes[1][change]])
            for _ in range(_REJECTED):
                rows, up, down = chosen = _apart(moves, n, together)
                if not len(rows):
                    return at
                integers = _with_nothing(at.integers)
                integers[rows, up] += 1
                integers[rows, down] -= 1
                changed = _Rounding(integers[:, :n], at._gram, at._worth_of)
                if changed.worth < at.worth * (1 - _GAIN):
                    break
                # Together they were too many, or the one was not what it promised.
                moves = moves[:, 1:] if len(rows) == 1 else chosen
                together = max(len(rows) // 2, 1)
            else:
                return at
            at, together = changed, min(2 * len(rows), n)
        return at

    def _estimates(self, changes: Changes, most: float) -> np.ndarray:
        """Estimated worth of each row with each change, float64[n_rows, n_changes].

        By Sherman and Morrison for the inverse; the worth is taken as linear.
        """
        integers, columns = _with_nothing(self.integers), np.append(self.columns, 0)
        decoding, reference = _with_nothing(self.decoding.T), np.append(self.reference, 0)
        up, down = changes
        longest = np.broadcast_to(_longest_of_others(columns, changes), (len(integers), len(up)))
        within = np.ones(longest.shape, dtype=bool)
        for places, by in ((up, 1), (down, -1)):
            entries = integers[:, places] + by
            longest = np.maximum(longest, columns[places] - 1 + 2 * by * entries)
            within &= np.abs(entries) <= most
        along = decoding[:, up] - decoding[:, down]
        crossed = (self.products.T @ self.decoding) @ decoding
        across = crossed[:, up] - crossed[:, down]
        lengths = np.sum(along**2, axis=0)
        own = np.sum(self.products * self.decoding, axis=0)[:, None]
        by_root, by_reference = self.slopes
        shifts = (by_reference @ self.decoding)[:, None] * (reference[up] - reference[down])
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = 1 / (1 + along)
            spreads = self.spread - 2 * factors * across + factors**2 * own * lengths
            roots = np.sqrt(longest * spreads)
            estimates = self.worth + by_root * (roots - self.root) - factors * shifts
        return np.where(within & np.isfinite(estimates), estimates, np.inf)


def _changes(n: int, uniform_reference: bool) -> Changes:
    """One entry up or down, or if all z are 1/n one up and another down."""
    if uniform_reference:
        up, down = np.nonzero(~np.eye(n, dtype=bool))
        return up, down
    each, nowhere = np.arange(n), np.full(n, n)
    return np.append(each, nowhere), np.append(nowhere, each)


def _with_nothing(matrix: np.ndarray) -> np.ndarray:
    """The matrix with a column of nothing behind, for changes in one column."""
    padded = np.zeros((len(matrix), matrix.shape[1] + 1))  # np.pad takes ten times as long
    padded[:, :-1] = matrix
    return padded


def _longest_of_others(columns: np.ndarray, changes: Changes) -> np.ndarray:
    """The largest of these numbers in columns that a change leaves alone, float64[n_changes]."""
    up, down = changes
    first, second, third = np.argsort(-columns, kind="stable")[:3]
    has_first, has_second = ((up == column) | (down == column) for column in (first, second))
    others = np.where(has_second, columns[third], columns[second])
    return np.where(has_first, others, columns[first])


def _apart(moves: np.ndarray, n: int, most: int) -> np.ndarray:
    """The first of these moves, as many as may be, no two of them in one row or column."""
    chosen: list[int] = []
    rows: set[int] = set()
    columns: set[int] = set()
    for index, (row, up, down) in enumerate(moves.T.tolist()):
        touched = {up, down} - {n}
        if row not in rows and not touched & columns:
            rows.add(row)
            columns |= touched
            chosen.append(index)
            if len(chosen) == most:
                break
    return moves[:, chosen]


def turned(matrix: np.ndarray, bits: float, count: int) -> Iterator[np.ndarray]:
    """The matrix and `count` others that are as good before rounding.

    Rotated and a little smaller, with directions that rounding would lose raised.
    """
    rows = len(matrix)
    raised = [matrix]
    leasts = 4 * 2.0**-bits, 2.0 ** (-bits / 2), 2.0 ** (-bits / 4)
    # Where none needs to be raised, finding that out takes a tenth of a decomposition.
    if not _are_longer(matrix, max(leasts)):
        left, lengths, right = np.linalg.svd(matrix, full_matrices=False)
        for least in leasts:
            if lengths.min() < least < 0.5:
                lifted = left * np.maximum(lengths, least) @ right
                raised.append(lifted / np.sqrt((lifted**2).sum(axis=0).max()))
    yield from raised
    for turn in range(1, count + 1):
        shrunk = 1 - 0.3 * ((turn * np.sqrt(3)) % 1)
        yield rotation(rows, turn) @ raised[turn % len(raised)] * shrunk


@lru_cache(maxsize=256)
def rotation(rows: int, turn: int) -> np.ndarray:
    """One of many rotations, the same at every call: float64[rows, rows]."""
    fractions = (np.sqrt(2) * (np.arange(rows * rows) + turn) ** 2) % 1 - 0.5
    return np.linalg.qr(fractions.reshape(rows, rows))[0]


def _are_longer(matrix: np.ndarray, least: float) -> bool:
    """Whether all singular values of a matrix with fewer rows than columns are above this one."""
    squares = matrix @ matrix.T
    squares[np.diag_indices_from(squares)] -= least**2
    try:
        np.linalg.cholesky(squares)
    except np.linalg.LinAlgError:
        return False
    return True


def _rounded(scaled: np.ndarray, most: float, uniform_reference: bool) -> np.ndarray:
    """Rounded to whole numbers, no column longer than the longest was: norm² ≤ `most` at best.

    Columns are shortened where the change from `scaled` is smallest for what it shortens; with
    `uniform_reference`, what is taken from a column is given to one that has room.
    """
    integers = np.round(scaled)
    if uniform_reference:
        _balance(integers, scaled)
    limit = min(np.floor((scaled**2).sum(axis=0).max() + 1e-6), most)
    squares = (integers**2).sum(axis=0)
    for column in range(integers.shape[1]):
        while squares[column] > limit:
            entries = integers[:, column]
            toward = np.sign(entries)
            off = entries - scaled[:, column]
            with np.errstate(divide="ignore"):
                costs = np.where(
                    toward != 0, (1 - 2 * toward * off) / (2 * np.abs(entries) - 1), np.inf
                )
            if not uniform_reference:
                row = int(np.argmin(costs))
                integers[row, column] -= toward[row]
            elif not _handed_on(integers, scaled, squares, limit, column, np.argsort(costs)):
                break
            squares[column] = (integers[:, column] ** 2).sum()
    return integers


def _balance(integers: np.ndarray, scaled: np.ndarray) -> None:
    """Let every row sum to 0, by moving the entries that rounding moved furthest the other way."""
    for row, exact in zip(integers, scaled, strict=True):
        excess = int(row.sum())
        if excess:
            step = np.sign(excess)
            furthest = np.argsort(-step * (row - exact), kind="stable")[: abs(excess)]
            row[furthest] -= step


def _handed_on(
    integers: np.ndarray,
    scaled: np.ndarray,
    squares: np.ndarray,
    limit: float,
    column: int,
    rows: np.ndarray,
) -> bool:
    """Move 1 from a column to another one in the first of some rows where that one has room."""
    for row in rows:
        entries = integers[row]
        step = np.sign(entries[column])
        if step == 0:
            return False
        longer = squares + 2 * step * entries + 1
        costs = np.where(longer <= limit, step * (entries - scaled[row]), np.inf)
        costs[column] = np.inf
        taker = int(np.argmin(costs))
        if np.isfinite(costs[taker]):
            entries[column] -= step
            entries[taker] += step
            squares[taker] = longer[taker]
            return True
    return False
