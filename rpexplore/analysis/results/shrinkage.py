"""Fairness of smooth tables: how far the counts of groups are from the unbiased ones.

Distances are root mean squares of (smooth − unbiased) / standard error over cells. The unbiased
count is the truth plus noise of that standard error, so that smooth counts without any error would
be at a distance of 1, and outside 5 % of the 95 % intervals. Nearer to 0, noise was kept; clearly
above 1, differences that are more than noise were smoothed away.

As smooth counts go with the noise and not against it, their root mean squared error is √(d² − 1)
standard errors at least, at a distance of d: beyond √2 they are less accurate than the unbiased
ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from rpexplore.analysis.results.released_cells import ReleasedCells
from rpexplore.common.formatting import describe_share, joined, plural, rounded

LEVELS = (0.0, 1.0, 5.0, 20.0, 100.0, 1000.0, 10_000.0)
"""Smooth counts at which the levels begin; the last has no end."""

_LEVEL_NAMES = (
    f"below {LEVELS[1]:,.0f}",
    *(f"{low:,.0f} to below {high:,.0f}" for low, high in pairwise(LEVELS[1:])),
    f"{LEVELS[-1]:,.0f} and more",
)
_AS_THE_TRUTH = 1.0  # the distance of counts without any error
_DEVIATIONS = 3  # above it, of a distance that is clearly so; there may be a thousand groups
_MOVED = ["group", "cells", "distance", "outside_95"]


def by_value(tables: Iterable[ReleasedCells]) -> dict[str, pd.DataFrame]:
    """Of each attribute one row a value: its cells in all of the tables, and its own count.

    Columns group (the value's label), cells, distance, outside_95 (share of the cells whose smooth
    count is outside the interval of the unbiased one), clearly_above (whether the distance is above
    1 by more than chance), value, unbiased_value and standard_error (of the table of this attribute
    alone; NaN if that is not among the tables).

    tables: smooth ones
    """
    sums: dict[str, _Sums] = {}
    counts: dict[str, dict[str, tuple[float, ...]]] = {}
    for cells in tables:
        indices = np.indices(cells.value.shape)
        for position, axis in enumerate(cells.axes):
            sums.setdefault(axis.name, _Sums()).add(cells, indices[position], axis.labels)
        if len(cells.axes) == 1:
            (axis,) = cells.axes
            numbers = zip(cells.value, cells.unbiased, cells.standard_error, strict=True)
            counts[axis.name] = dict(zip(axis.labels, numbers, strict=True))
    frames = {attribute: of_attribute.frame for attribute, of_attribute in sums.items()}
    for attribute, frame in frames.items():
        known = counts.get(attribute, {})
        own = [known.get(label, (np.nan,) * 3) for label in frame["group"]]
        frame[["value", "unbiased_value", "standard_error"]] = np.reshape(own, (-1, 3))
    return frames


def farthest_attribute(frames: Mapping[str, pd.DataFrame]) -> str:
    """The attribute with the group that is farthest beyond what chance explains; `by_value`."""

    def beyond(attribute: str) -> float:
        return float(np.max(frames[attribute]["distance"] - _by_chance(frames[attribute])))

    return max(frames, key=beyond)


def by_level(tables: Iterable[ReleasedCells]) -> pd.DataFrame:
    """One row a level of smooth counts: columns from group to clearly_above as `by_value`.

    Levels are of smooth counts, not of unbiased ones: a cell among the largest of these is there
    because of its noise as well. Those without cells are left out.
    """
    sums = _Sums()
    for cells in tables:
        levels = np.searchsorted(LEVELS, cells.value, side="right") - 1
        sums.add(cells, np.maximum(levels, 0), _LEVEL_NAMES)
    frame = sums.frame
    order = {name: i for i, name in enumerate(_LEVEL_NAMES)}
    return frame.sort_values("group", key=lambda names: names.map(order), ignore_index=True)


def describe_groups(frame: pd.DataFrame, kind: str) -> str:
    """The group that was moved farthest, and the least; kind: "age", "smooth counts"."""
    far, near = frame.loc[frame["distance"].idxmax()], frame.loc[frame["distance"].idxmin()]
    n_above = int(np.sum(frame["clearly_above"]))
    parts = [
        f"Farthest from the unbiased counts: {kind} {far['group']}, "
        f"{rounded(far['distance'], 3, zeros=True)} standard errors in "
        f"{plural(int(far['cells']), 'cell')} "
        f"(root mean square), {describe_share(far['outside_95'])} of them outside the 95 % "
        "interval."
    ]
    if len(frame) > 1:
        parts.append(f"Nearest: {near['group']}, {rounded(near['distance'], 3, zeros=True)}.")
    are = "is" if n_above == 1 else "are"
    parts.append(
        f"{n_above:,} of {plural(len(frame), 'group')} {are} clearly above 1, where counts "
        "without any error would be: differences that are more than noise were smoothed away "
        "there, and the unbiased counts show them."
        if n_above
        else "None is clearly above 1, where counts without any error would be. That does not show "
        "that no difference was lost: nobody can see those that are smaller than the noise."
    )
    return " ".join(parts)


def median_kept(kept: pd.DataFrame) -> dict[int, float]:
    """The share that the median table of each number of attributes keeps.

    kept: one row a measured residual, with order and share_kept
    """
    return kept.groupby("order")["share_kept"].median().to_dict()


def describe_kept(kept: pd.DataFrame) -> str:
    """Shares kept in the median table of each number of attributes; kept: as in `median_kept`."""
    parts = [
        f"{describe_share(share)} if it is {order}-way"
        for order, share in median_kept(kept).items()
    ]
    return (
        "Of what was measured of a table, beyond that which all measurements together suggest for "
        f"it, the median table keeps {joined(parts)}. The rest was taken for noise. What all "
        "measurements suggest is in the table in any case."
    )


def _by_chance(frame: pd.DataFrame) -> np.ndarray:
    """How far above that of the truth a distance may be by chance: float64, by group."""
    # √(1/2n) is the standard deviation of a root mean square of n independent normal numbers.
    return _DEVIATIONS / np.sqrt(2 * frame["cells"].to_numpy())


class _Sums:
    """Cells, squared distances and cells outside their intervals, added up by group."""

    def __init__(self) -> None:
        self._by_group: dict[str, np.ndarray] = {}

    def add(self, cells: ReleasedCells, group: np.ndarray, names: Sequence[str]) -> None:
        """group: of each cell, as a position in the names."""
        distances = (cells.value - cells.unbiased) / cells.standard_error
        outside = (cells.value < cells.lower) | (cells.value > cells.upper)
        summed = [
            np.bincount(group.ravel(), weights=weights, minlength=len(names))
            for weights in (np.ones(group.size), distances.ravel() ** 2, outside.ravel())
        ]
        for name, sums in zip(names, np.transpose(summed), strict=True):
            self._by_group[name] = self._by_group.get(name, 0.0) + sums

    @property
    def frame(self) -> pd.DataFrame:
        rows = [
            (name, int(cells), np.sqrt(squares / cells), outside / cells)
            for name, (cells, squares, outside) in self._by_group.items()
            if cells
        ]
        frame = pd.DataFrame(rows, columns=_MOVED)
        above = frame["distance"].to_numpy(dtype=float) > _AS_THE_TRUTH + _by_chance(frame)
        return frame.assign(clearly_above=above)
