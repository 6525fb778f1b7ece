"""Points of a frontier, and where the next one goes: at the chord with most room below it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_STRAIGHT = 0.002  # where there is less room than this, of the whole extent, no point is added


@dataclass(frozen=True)
class Point:
    """One plan, by what it gives at privacy cost 1 of one record.

    share    θ: how much the worst case counts
    total    S: weighted sum of variances
    largest  M: largest weighted variance
    gap      how far (1 − θ) S/S* + θ M/M* can be above the smallest possible value, relative
    """

    share: float
    total: float
    largest: float
    gap: float


def next_point(points: Sequence[Point], unit: tuple[float, float]) -> tuple[int, float | None]:
    """(place, θ) of the next point; θ is None where the frontier is known well enough.

    From the left end (0, 0) of a chord to its right end (dx, dy), where x is S/S* given up and y
    M/M* gained, the lines of equal value through the ends, (1−a) x = a y and
    (1−b) (x−dx) = b (y−dy), meet at (a, 1−a) · t with t = (b dy − (1−b) dx) / (b−a). In terms
    of (1−θ) x − θ y, which is 0 on the chord, that is (θ−a) t below it.
    """
    total, largest, shares = np.array(
        [(point.total, point.largest, point.share) for point in points]
    ).T
    x, y = total / unit[0], -largest / unit[1]
    dx, dy, a, b = np.diff(x), np.diff(y), shares[:-1], shares[1:]
    usable = (dx > 0) & (dy > 0) & (b > a)
    theta = np.where(usable, dx, 1.0) / np.where(usable, dx + dy, 1.0)
    room = (theta - a) * (b * dy - (1 - b) * dx) / np.where(usable, b - a, 1.0)
    room /= (1 - theta) * (x[-1] - x[0]) + theta * (y[-1] - y[0])
    place = int(np.argmax(np.where(usable, room, 0.0)))
    if not usable[place] or room[place] <= _STRAIGHT:
        return 0, None
    return place + 1, float(theta[place])
