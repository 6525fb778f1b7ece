"""A map of Orsavia as a mesh of small six-sided fields, on which areas grow beside each other.

Borders follow the edges of fields, whose corners are moved a little: areas have no gaps between
them, and look as if hills and rivers had drawn them. Only arithmetic that is the same on every
machine, as in `drawing`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path

Field = tuple[int, int]  # place of its middle in the mesh; fields have a neighbour on each side
Point = tuple[float, float]
Draw = Callable[[], float]  # from 0 to 1

CORNERS = ((0, 2), (-1, 1), (-1, -1), (0, -2), (1, -1), (1, 1))  # against the clock
SIDES = ((2, 0), (-2, 0), (1, 3), (-1, 3), (1, -3), (-1, -3))
# Degrees of longitude and latitude of a step; at 46° north fields are then as wide as high.
STEP: Point = (0.0362, 0.0143)
MIDDLE: Point = (-28.0, 46.0)  # there is nothing but sea
DIGITS = 3  # behind the point of a degree: 100 metres

# Coasts by corners, in degrees from the middle: bays and capes that `rugged` makes more of.
MAINLAND: tuple[Point, ...] = (
    (-2.6, 0.9), (-3.3, 0.75), (-3.05, 0.2), (-2.45, 0.05), (-2.7, -0.5), (-3.35, -0.75),
    (-3.6, -1.3), (-2.9, -1.35), (-2.3, -1.1), (-1.75, -1.35), (-1.5, -1.95), (-0.9, -2.3),
    (-0.1, -2.15), (0.1, -1.6), (0.75, -1.45), (1.35, -1.75), (2.2, -1.9), (2.75, -1.5),
    (2.3, -1.05), (1.75, -0.75), (2.3, -0.5), (3.05, -0.55), (3.5, -0.05), (3.1, 0.5), (2.45, 0.4),
    (2.2, 0.75), (2.65, 1.2), (2.9, 1.8), (2.2, 2.05), (1.55, 1.7), (0.85, 1.75), (0.55, 2.3),
    (-0.2, 2.45), (-0.65, 2.0), (-0.45, 1.4), (-0.95, 1.15), (-1.35, 1.6), (-2.0, 1.55),
)  # fmt: skip
ISLES: tuple[tuple[Point, ...], ...] = (
    ((-2.95, 2.0), (-3.1, 1.75), (-2.75, 1.6), (-2.35, 1.8), (-2.2, 2.15), (-2.6, 2.3)),
    ((-3.75, 1.65), (-3.85, 1.35), (-3.5, 1.2), (-3.25, 1.4), (-3.4, 1.65)),
    ((-3.75, 2.35), (-3.8, 2.1), (-3.45, 2.05), (-3.3, 2.3), (-3.5, 2.45)),
)
LAKES: tuple[tuple[Point, ...], ...] = (
    ((1.0, 0.75), (1.15, 0.5), (1.45, 0.45), (1.55, 0.7), (1.3, 0.95)),
    ((0.75, 0.15), (0.9, 0.0), (1.15, 0.1), (1.0, 0.28)),
)


def middle_of(field: Field) -> Point:
    """Degrees from the middle of the map."""
    return field[0] * STEP[0], field[1] * STEP[1]


def rugged(coast: Sequence[Point], draw: Draw, times: int = 3) -> list[Point]:
    """A coast with a corner more on each side, moved in or out by up to a third of it, so often."""
    corners = list(coast)
    for _ in range(times):
        finer = []
        for (x, y), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            way = 0.66 * (draw() - 0.5)
            finer += [(x, y), ((x + x1) / 2 - way * (y1 - y), (y + y1) / 2 + way * (x1 - x))]
        corners = finer
    return corners


def fields_within(coast: Sequence[Point]) -> set[Field]:
    """The fields whose middle lies within a closed line."""
    low, high = min(y for _, y in coast), max(y for _, y in coast)
    west, east = min(x for x, _ in coast), max(x for x, _ in coast)
    found = set()
    for row in range(int(low / STEP[1] / 3) - 1, int(high / STEP[1] / 3) + 2):
        for column in range(int(west / STEP[0]) - 2, int(east / STEP[0]) + 3):
            field = (column, 3 * row)
            if (column + row) % 2 == 0 and _is_within(middle_of(field), coast):
                found.add(field)
    return found


def _is_within(point: Point, line: Sequence[Point]) -> bool:
    """Whether a ray from the point crosses the line an odd number of times."""
    (x, y), inside = point, False
    for (x0, y0), (x1, y1) in zip(line, [*line[1:], line[0]], strict=True):
        if (y0 > y) != (y1 > y) and x < x0 + (x1 - x0) * (y - y0) / (y1 - y0):
            inside = not inside
    return inside


def beside(field: Field) -> list[Field]:
    return [(field[0] + x, field[1] + y) for x, y in SIDES]


def connected(fields: Iterable[Field]) -> list[list[Field]]:
    """The islands that some fields are, the largest first."""
    left, islands = set(fields), []
    for field in sorted(left):
        if field in left:
            left.remove(field)
            island = [field]
            for one in island:
                near = [other for other in beside(one) if other in left]
                left.difference_update(near)
                island += near
            islands.append(sorted(island))
    return sorted(islands, key=lambda island: (-len(island), island))


def spread(fields: Sequence[Field], count: int, draw: Draw) -> list[Field]:
    """So many of the fields, of some that are drawn always the one farthest from the others."""
    chosen = [fields[int(draw() * len(fields))]]
    while len(chosen) < min(count, len(fields)):
        drawn = [fields[int(draw() * len(fields))] for _ in range(8)]
        others = [middle_of(field) for field in chosen]
        farthest = max(
            drawn, key=lambda one: min(distance(middle_of(one), other) for other in others)
        )
        if farthest in chosen:
            farthest = next(field for field in fields if field not in chosen)
        chosen.append(farthest)
    return chosen


def distance(one: Point, other: Point) -> float:
    (x, y), (x1, y1) = one, other
    """Squared, in degrees of latitude; a degree of longitude is 0.69 of one here."""
    return (x - x1) * (x - x1) * 0.48 + (y - y1) * (y - y1)


def grown(
    fields: Iterable[Field], seeds: Sequence[Field], speeds: Sequence[float], draw: Draw
) -> list[list[Field]]:
    """The fields that each seed reaches first: each area is connected, and all of them are all.

    Some steps take longer than others, and hills slow all of them down, so that borders wind.
    """
    hills: dict[Field, float] = {}
    free, areas = set(fields), [[] for _ in seeds]
    reached = [(0.0, number, seed) for number, seed in enumerate(seeds)]
    while reached:
        time, number, field = heappop(reached)
        if field not in free:
            continue
        free.remove(field)
        areas[number].append(field)
        hill = field[0] // 7, field[1] // 10
        if hill not in hills:
            hills[hill] = 0.3 + 3 * draw() * draw()
        for other in beside(field):
            if other in free:
                steps = hills[hill] * (0.3 + draw()) / speeds[number]
                heappush(reached, (time + steps, number, other))
    return [sorted(area) for area in areas]


def write_map(
    path: Path, areas: Mapping[str, Sequence[Field]], names: Mapping[str, str], draw: Draw
) -> None:
    """Write a GeoJSON file of areas, by code: each a polygon, with holes where others lie in it."""
    moved: dict[Field, Point] = {}
    features = []
    for code, fields in areas.items():
        rings = [_placed(ring, moved, draw) for ring in _rings(fields)]
        rings.sort(
            key=_surface, reverse=True
        )  # the outer one runs against the clock, holes with it
        features.append(
            {"type": "Feature", "id": code, "properties": {"name": names[code]},
             "geometry": {"type": "Polygon", "coordinates": rings}}
        )  # fmt: skip
    lines = ",\n".join(
        json.dumps(feature, separators=(",", ":"), ensure_ascii=False) for feature in features
    )
    path.write_bytes(f'{{"type":"FeatureCollection","features":[\n{lines}\n]}}\n'.encode())


def _rings(fields: Iterable[Field]) -> list[list[Field]]:
    """The corners around connected fields: sides of two of them are no border."""
    after: dict[Field, Field] = {}
    mine = set(fields)
    for x, y in sorted(mine):
        corners = [(x + right, y + up) for right, up in CORNERS]
        for here, there, side in zip(corners, [*corners[1:], corners[0]], _ACROSS, strict=True):
            if (x + side[0], y + side[1]) not in mine:
                after[here] = there  # three fields meet in a corner: one way leads on from it
    rings = []
    while after:
        ring = [min(after)]
        while (following := after.pop(ring[-1])) != ring[0]:
            ring.append(following)
        rings.append(ring)
    return rings


# The neighbour across each side, between a corner and the next one.
_ACROSS = ((-1, 3), (-2, 0), (-1, -3), (1, -3), (2, 0), (1, 3))


def _placed(ring: Sequence[Field], moved: dict[Field, Point], draw: Draw) -> list[list[float]]:
    """The corners in degrees, each moved a little, alike for all fields that meet there."""
    for corner in ring:
        if corner not in moved:
            x, y = middle_of(corner)
            x, y = x + 0.9 * (draw() - 0.5) * STEP[0], y + 0.9 * (draw() - 0.5) * STEP[1]
            moved[corner] = (round(MIDDLE[0] + x, DIGITS), round(MIDDLE[1] + y, DIGITS))
    return [[*moved[corner]] for corner in (*ring, ring[0])]


def _surface(ring: Sequence[Sequence[float]]) -> float:
    return sum(
        here[0] * there[1] - there[0] * here[1]
        for here, there in zip(ring, [*ring[1:], ring[0]], strict=True)
    ) / 2  # fmt: skip
