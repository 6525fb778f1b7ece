"""Strategies in integers: R over a power of two, at almost no loss (docs/mathematics.md §7.3).

What rounding costs is accuracy alone, chiefly through the largest column norm, which sets the
privacy cost: all columns must come out equally long, none longer than it was.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter

import numpy as np

from rpexplore.planning.solvers.strategy_matrix import StrategySolution

Worth = Callable[[float, np.ndarray], float]

# With so many bits rounding costs next to nothing: nothing is tried beyond the plain matrix.
_PLENTY_OF_BITS = 12
# With fewer, and not too many values, as many rotated matrices are rounded; for few values more.
_MOST_TURNED, _TURNS = 120, 40
_FEW, _TURNS_IF_FEW = 12, 200
# Of these the best are improved, for n values this number / n² of them, and at least one.
_IMPROVED = 4000
_MOST_IF_UNIFORM = 60  # values
_MOST_STEPS = 3000  # in improving one
_TRIED = 8  # changes, those that promise most, before it is given up
_DIFFERENCE = 1e-6
_GAIN = 1e-7  # of a change, relative: less is not worth its time
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
    tried = [
        _Rounding(_rounded(turned * 2**bits, 4**bits, uniform_reference), gram, worth)
        for turned in _turned(measuring.matrix, bits)
    ]
    tried = [rounding for rounding in tried if np.isfinite(rounding.worth)]
    if not tried:
        raise ValueError(f"R cannot be rounded to {bits:g} bits: it is too near a singular one")
    if bits < _PLENTY_OF_BITS and n <= (_MOST_IF_UNIFORM if uniform_reference else _MOST_TURNED):
        best = sorted(tried, key=attrgetter("worth"))[: max(1, _IMPROVED // n**2)]
        tried = [rounding.improved(_changes(n, uniform_reference), 2.0**bits) for rounding in best]
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
            self.worth = worth(self.root, self.reference)

    def improved(self, changes: np.ndarray, most: float) -> "_Rounding":
        """Itself after one `changes` after another has been added to a row, while that gains.

        changes: float64[n_changes, n]. most: what no entry may exceed.
        """
        at = self
        for _ in range(_MOST_STEPS):
            estimates = at._estimates(changes, most)
            for move in np.argsort(estimates, axis=None)[:_TRIED]:
                row, change = np.unravel_index(move, estimates.shape)
                if not estimates[row, change] < at.worth:
                    return at
                integers = at.integers.copy()
                integers[row] += changes[change]
                changed = _Rounding(integers, at._gram, at._worth_of)
                if changed.worth < at.worth * (1 - _GAIN):
                    at = changed
                    break
            else:
                return at
        return at

    def _estimates(self, changes: np.ndarray, most: float) -> np.ndarray:
        """What each row with each change would be worth, nearly: float64[n_rows, n_changes].

        By Sherman and Morrison for the inverse; the worth is taken as linear.
        """
        longest = np.broadcast_to(
            np.where(changes == 0, self.columns, 0).max(axis=1), (len(self.integers), len(changes))
        )
        within = np.ones(longest.shape, dtype=bool)
        for ends in (changes.argmax(axis=1), changes.argmin(axis=1)):  # one may be no change
            by = np.take_along_axis(changes, ends[:, None], 1)[:, 0]
            entries = self.integers[:, ends] + by
            longest = np.maximum(longest, self.columns[ends] - by**2 + 2 * by * entries)
            within &= np.abs(entries) <= most
        along = (changes @ self.decoding).T
        lengths = np.sum(along**2, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = 1 / (1 + along)
            own = np.sum(self.products * self.decoding, axis=0)[:, None]
            across = (self.products.T @ self.decoding) @ along
            spreads = self.spread - 2 * factors * across + factors**2 * own * lengths
            roots = np.sqrt(longest * spreads)
            by_root, by_reference = self._slopes()
            moved = factors * (by_reference @ self.decoding)[:, None] * (changes @ self.reference)
            estimates = self.worth + by_root * (roots - self.root) - moved
        return np.where(within & np.isfinite(estimates), estimates, np.inf)

    def _slopes(self) -> tuple[float, np.ndarray]:
        """The worth's slopes in the root and in the reference distribution, by differences."""
        step = _DIFFERENCE * self.root
        rise = self._worth_of(self.root + step, self.reference) - self.worth
        by_root = rise / max(step, 1e-300)
        references = self.reference + _DIFFERENCE * np.eye(len(self.reference))
        values = np.array([self._worth_of(self.root, reference) for reference in references])
        return by_root, (values - self.worth) / _DIFFERENCE


def _changes(n: int, uniform_reference: bool) -> np.ndarray:
    """One entry up or down, or if all z are 1/n one up and another down: float64[n_changes, n]."""
    ones = np.eye(n)
    if not uniform_reference:
        return np.vstack([ones, -ones])
    return (ones[:, None] - ones).reshape(n * n, n)[~np.eye(n, dtype=bool).ravel()]


def _turned(matrix: np.ndarray, bits: float) -> Iterator[np.ndarray]:
    """The matrix, and as long as these are cheap, others that are as good before rounding.

    Rotated and a little smaller, with directions that rounding would lose raised.
    """
    rows, n = matrix.shape
    left, lengths, right = np.linalg.svd(matrix, full_matrices=False)
    raised = [matrix]
    for least in (4 * 2.0**-bits, 2.0 ** (-bits / 2), 2.0 ** (-bits / 4)):
        if lengths.min() < least < 0.5:
            lifted = left * np.maximum(lengths, least) @ right
            raised.append(lifted / np.sqrt((lifted**2).sum(axis=0).max()))
    yield from raised
    if bits >= _PLENTY_OF_BITS or n > _MOST_TURNED:
        return
    for turn in range(1, _TURNS_IF_FEW if n <= _FEW else _TURNS):
        fractions = (np.sqrt(2) * (np.arange(rows * rows) + turn) ** 2) % 1 - 0.5
        rotation = np.linalg.qr(fractions.reshape(rows, rows))[0]
        shrunk = 1 - 0.3 * ((turn * np.sqrt(3)) % 1)
        yield rotation @ raised[turn % len(raised)] * shrunk


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
