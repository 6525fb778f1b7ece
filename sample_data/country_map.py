"""A made-up map of Orsavia: an island and isles, cut into the areas that lie in each other.

Straight cuts, each at the place where both sides have room for the areas on them. Only arithmetic
that is the same on every machine, as in `drawing`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Point = tuple[float, float]
Shape = list[Point]  # corners of a convex polygon, against the clock
Draw = Callable[[], float]  # from 0 to 1

# Degrees of longitude and latitude; there is nothing but sea.
MAINLAND, ISLES = ((-28.0, 46.0), (3.4, 2.1)), ((-30.6, 48.35), (0.75, 0.35))
NORTH, CENTRE = ("R01", "R04"), ("R09", "R10", "R02")
EAST, SOUTH = ("R06", "R03", "R11"), ("R08", "R05", "R07")
ON_ISLES = "R12"
DIGITS = 4  # behind the point of a degree: 10 metres


def write_map(
    path: Path, parts: Mapping[str, Sequence[str]], names: Mapping[str, str],
    rooms: Mapping[str, float], draw: Draw,
) -> None:  # fmt: skip
    """Write a GeoJSON file of the areas without room for parts.

    Args:
        parts: Area -> the areas on it, for all that are divided; those of "" are the coarsest.
        names: Area -> what it is called.
        rooms: Area that is not divided -> how large it is beside others.
        draw: How cuts are slanted.
    """
    everywhere = dict(rooms)
    for area in reversed(parts):  # those that lie in others stand behind them
        everywhere[area] = sum(everywhere[part] for part in parts[area])

    def cut(shape: Shape, areas: Sequence[str]) -> dict[str, Shape]:
        """A part of a shape for each of these areas, neighbours in the list beside each other."""
        if len(areas) == 1:
            return {areas[0]: shape}
        room, half, count = sum(everywhere[area] for area in areas), 0.0, 0
        while count < len(areas) - 1 and (not count or half < 0.45 * room):
            half, count = half + everywhere[areas[count]], count + 1
        (x, y), slant = _longest_way(shape), 0.6 * (draw() - 0.5)
        one, other = _cut(shape, (x - slant * y, y + slant * x), half / room)
        return cut(one, areas[:count]) | cut(other, areas[count:])

    def room_of(*areas: str) -> float:
        return sum(everywhere[area] for area in areas)

    middle = room_of(*CENTRE, *EAST)
    others = room_of(*NORTH) + middle
    south, rest = _cut(
        _oval(*MAINLAND, 10), (0.05, 1), room_of(*SOUTH) / (room_of(*SOUTH) + others)
    )
    belt, north = _cut(rest, (-0.1, 1), middle / others)
    west, east = _cut(belt, (1, -0.15), room_of(*CENTRE) / middle)
    shapes = {ON_ISLES: _oval(*ISLES, 4)}
    for place, regions in ((north, NORTH), (west, CENTRE), (east, EAST), (south, SOUTH)):
        shapes |= cut(place, regions)
    for area in list(parts)[1:]:
        shapes |= cut(shapes.pop(area), parts[area])
    features = [
        {
            "type": "Feature",
            "id": area,
            "properties": {"name": names[area]},
            "geometry": {"type": "Polygon", "coordinates": [_ring(shapes[area])]},
        }
        for area in sorted(shapes)
    ]
    lines = ",\n".join(json.dumps(feature, separators=(",", ":")) for feature in features)
    path.write_text(f'{{"type":"FeatureCollection","features":[\n{lines}\n]}}\n', encoding="utf-8")


def _oval(middle: Point, radii: Point, corners: int) -> Shape:
    """An ellipse with so many corners in each quarter."""
    halves = [number / corners for number in range(corners)]  # tangents of half the angles
    quarter = [((1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)) for t in halves]
    turns = ((1, 0), (0, 1), (-1, 0), (0, -1))
    points = [(c * x - s * y, s * x + c * y) for c, s in turns for x, y in quarter]
    return [(middle[0] + radii[0] * x, middle[1] + radii[1] * y) for x, y in points]


def _longest_way(shape: Shape) -> Point:
    """From one to the other of the two corners that are farthest apart, downwards or rightwards."""
    ways = [(there[0] - here[0], there[1] - here[1]) for here in shape for there in shape]
    x, y = max(ways, key=lambda way: (way[0] ** 2 + way[1] ** 2, way))
    return (x, y) if x > -y else (-x, -y)


def _cut(shape: Shape, along: Point, share: float) -> tuple[Shape, Shape]:
    """What lies first in a direction, with this share of the surface, and the rest."""
    far = [x * along[0] + y * along[1] for x, y in shape]
    low, high = min(far), max(far)
    for _ in range(50):
        middle = (low + high) / 2
        if _surface(_before(shape, along, middle)) < share * _surface(shape):
            low = middle
        else:
            high = middle
    return _before(shape, along, low), _before(shape, (-along[0], -along[1]), -low)


def _before(shape: Shape, along: Point, end: float) -> Shape:
    """The part of a shape up to an end in a direction (Sutherland and Hodgman's clipping)."""
    kept = []
    for here, there in zip(shape, [*shape[1:], shape[0]], strict=True):
        at, then = (x * along[0] + y * along[1] - end for x, y in (here, there))
        if at <= 0:
            kept.append(here)
        if (at < 0) != (then < 0) and at != then:
            share = at / (at - then)
            kept.append(
                (here[0] + share * (there[0] - here[0]), here[1] + share * (there[1] - here[1]))
            )
    return kept


def _surface(shape: Shape) -> float:
    return sum(
        here[0] * there[1] - there[0] * here[1]
        for here, there in zip(shape, [*shape[1:], shape[0]], strict=True)
    ) / 2  # fmt: skip


def _ring(shape: Shape) -> list[list[float]]:
    """Rounded, without repeated corners, and closed."""
    points = list(dict.fromkeys((round(x, DIGITS), round(y, DIGITS)) for x, y in shape))
    return [[*point] for point in (*points, points[0])]
