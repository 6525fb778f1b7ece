"""Areas on a map: shapes of a GeoJSON file, matched to the areas of a tree by their codes."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rpexplore.analysis.area_accuracy import AreaErrors
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.common.numbers import shown
from rpexplore.common.text import joined, plural
from rpexplore.domain.area_tree import AreaTree, area_title
from rpexplore.domain.readings import coefficients_of_variation, quality_flags
from rpexplore.domain.survey import Sampling
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    import pyarrow as pa


# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


MOST_SHAPES = 5000
_MOST_BYTES = 50_000_000
_MOST_NAMED = 4  # areas without a shape
_POLYGONS = ("Polygon", "MultiPolygon")


_MOST_COMPARED = 40_000_000  # sides times corners
_NEAR = 2e-3  # of a corner to a side that it lies on, as a share of the side's length

Point = tuple[float, float]
Ring = list[Point]  # points (x, y), the first one again at the end


@dataclass(frozen=True, eq=False)
class AreaMap:
    """Shapes on a map, each an area of one level.

    level     which
    by        the property of the shapes that holds the codes
    areas     int64[n]: the area of each shape that has one
    rings     of these, the outer rings wound clockwise and the holes against it
    stretch   how much longer a unit upwards is than one to the right: 1, or by the latitude
    n_shapes  how many there were
    """

    tree: AreaTree
    level: str
    by: str
    areas: np.ndarray
    rings: list[list[Ring]]
    stretch: float
    n_shapes: int

    def frame(self, errors: AreaErrors) -> pd.DataFrame:
        """One row a shape: number, area, code, standard_error (NaN: not asked for)."""
        numbers = self.areas.tolist()
        return pd.DataFrame(
            {
                "number": numbers,
                "area": [area_title(self.tree, area) for area in numbers],
                "code": [" > ".join(self.tree.path(area)) for area in numbers],
                "standard_error": errors.errors[self.areas],
            }
        )

    def outcome(
        self,
        cells: ReleasedCells,
        numbers: np.ndarray,
        cv_limit: float,
        sampling: Sampling | None = None,
    ) -> pd.DataFrame:
        """One row a shape for whose area a figure was released; the index says which shape.

        Columns: area, code, value, standard_error, cv (∞ of counts that are not above 0), flag (of
        quality), publishable ("yes" or "no").

        cells: of one axis, the areas; numbers: those of these areas, int64; sampling: whose error
            counts beside the noise in CV, flag and what is publishable, if it does
        """
        order = np.argsort(numbers, kind="stable")
        places = np.minimum(np.searchsorted(numbers[order], self.areas), len(order) - 1)
        shapes = np.flatnonzero(numbers[order[places]] == self.areas)
        rows, areas = order[places[shapes]], self.areas[shapes].tolist()
        errors, _ = cells.errors_and_counts(None)
        total_errors, counts = cells.errors_and_counts(sampling)
        cvs = np.where(counts > 0, coefficients_of_variation(total_errors, counts), np.inf)
        return pd.DataFrame(
            {
                "area": [area_title(self.tree, area) for area in areas],
                "code": [" > ".join(self.tree.path(area)) for area in areas],
                "value": cells.value[rows],
                "standard_error": errors[rows],
                "cv": cvs[rows],
                "flag": quality_flags(cvs)[rows],
                "publishable": np.where(cells.publishable(cv_limit, sampling), "yes", "no")[rows],
            },
            index=pd.Index(shapes),
        )

    def borders(self, shapes: Sequence[int]) -> list[Ring]:
        """Where areas of the level above end, among some of the shapes: lines of two points.

        That is each side of a shape that no other one of the same area above has as well. Sides are
        the same if both ends are; corners of neighbours divide a side, unless there are too many.
        """
        rings = [(int(self.areas[shape]), ring) for shape in shapes for ring in self.rings[shape]]
        corners = np.unique(np.array([point for _, ring in rings for point in ring]), axis=0)
        n_sides = sum(len(ring) - 1 for _, ring in rings)
        owners: dict[tuple[Point, Point], list[int]] = {}
        for area, ring in rings:
            if n_sides * len(corners) <= _MOST_COMPARED:
                ring = _divided(ring, corners)
            for here, there in pairwise(ring):
                side = (here, there) if here < there else (there, here)
                owners.setdefault(side, []).append(int(self.tree.parents[area]))
        inner = {side for side, above in owners.items() if len(above) == 2 and len({*above}) == 1}
        return [list(side) for side in owners if side not in inner]

    def describe(self) -> str:
        """How many shapes and areas were matched."""
        n_areas = int(np.diff(self.tree.starts)[self.tree.levels.index(self.level)])
        if len(self.areas) == self.n_shapes == n_areas:
            return f"All {plural(n_areas, 'area')} of the level {self.level} have a shape."
        return (
            f"{len(self.areas):,} of {plural(self.n_shapes, 'shape')} are areas of the level "
            f"{self.level}, by {self.by}; that level has {plural(n_areas, 'area')}."
            f"{self._missing()}"
        )

    def _missing(self) -> str:
        """Which areas of the level have no shape: the first few."""
        of_level = self.tree.level_slice(self.tree.levels.index(self.level))
        missing = np.setdiff1d(np.arange(of_level.start, of_level.stop), self.areas)
        if not len(missing):
            return ""
        names = [area_title(self.tree, area) for area in missing[:_MOST_NAMED].tolist()]
        if len(missing) > _MOST_NAMED:
            names.append(f"{len(missing) - _MOST_NAMED:,} more")
        return f" Without a shape: {joined(names)}."


def read_map(content: bytes, filename: str, tree: AreaTree) -> AreaMap:
    """The map in a GeoJSON file, whose shapes are matched to the level that most of them fit.

    The code of an area may stand alone, where it is the only one on its level, or behind those of
    the areas that it lies in.

    Raises:
        DomainError: For a file that is no GeoJSON of polygons, or whose shapes are no areas of the
            tree.
    """
    features = _features(content, filename)
    # Sources of names: the id of each shape, and each of its properties.
    import pyarrow as pa

    columns = {"their id": [feature.get("id") for feature in features]}
    properties = [feature.get("properties") or {} for feature in features]
    for name in dict.fromkeys(name for of_feature in properties for name in of_feature):
        columns[f"the property {shown(name)}"] = [of_one.get(name) for of_one in properties]
    values = {
        name: pa.array([str(value) if type(value) in (str, int) else None for value in column])
        for name, column in columns.items()
        if any(type(value) in (str, int) for value in column)
    }
    best: tuple[int, str, str, np.ndarray] | None = None
    for level, codes, first in _codes_by_level(tree):
        for by, texts in values.items():
            found = _places(texts, codes)
            count = len(np.unique(found[found >= 0]))
            if count and (best is None or count > best[0]):
                best = count, level, by, np.where(found >= 0, found + first, -1)
    if best is None:
        example = tree.codes[tree.n_areas - 1].as_py()
        raise DomainError(
            f"No shape in {filename} has the code of an area, such as {example!r}, as its id or "
            f"one of its properties ({', '.join(values) or 'it has none'}); add the codes."
        )
    _, level, by, areas = best
    known = np.flatnonzero(areas >= 0)
    rings = [_rings(features[row]["geometry"]) for row in known.tolist()]
    return AreaMap(tree, level, by, areas[known], rings, _stretch(rings), len(features))


def _divided(ring: Ring, corners: np.ndarray) -> Ring:
    """A ring with the corners of other shapes that lie on its sides; corners: float64[n, 2]."""
    points: Ring = []
    for here, there in pairwise(ring):
        points.append(here)
        start, along = np.array(here), np.subtract(there, here)
        squared = float(along @ along)
        if squared == 0:
            continue
        beside = corners - start
        places = beside @ along / squared
        away = np.abs(beside[:, 0] * along[1] - beside[:, 1] * along[0]) / squared
        on_it = (places > _NEAR) & (places < 1 - _NEAR) & (away < _NEAR)
        between = corners[on_it][np.argsort(places[on_it])]
        points += [(float(x), float(y)) for x, y in between]
    return [*points, ring[-1]]


# ---- matching


def _codes_by_level(tree: AreaTree) -> "Iterator[tuple[str, pa.Array, int]]":
    """For each level below the top what its areas may be called, and its first area."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pa.array([""])
    for number, level in list(enumerate(tree.levels))[1:]:
        here, above = tree.level_slice(number), tree.level_slice(number - 1)
        codes = tree.codes.slice(here.start, here.stop - here.start).cast(pa.string())
        yield level, codes, here.start
        if number == 1:  # nothing stands before these
            whole = codes
            continue
        parents = pa.array(tree.parents[here] - above.start)
        whole = pc.binary_join_element_wise(whole.take(parents), codes, "")
        yield level, whole, here.start


def _places(texts: "pa.Array", codes: "pa.Array") -> np.ndarray:
    """The index of each text among the codes, int64; −1 for other texts.

    Nowhere if one of them stands there twice: the codes are then no names of areas.
    """
    import pyarrow.compute as pc

    # Not the other way round: there may be millions of codes, and there are few texts.
    wanted = texts.drop_null().unique()
    hits = pc.index_in(codes, value_set=wanted)
    rows = np.flatnonzero(pc.is_valid(hits).to_numpy(zero_copy_only=False))
    which = hits.take(rows).to_numpy()
    if len(np.unique(which)) < len(which):
        rows = which = np.zeros(0, dtype=np.int64)
    place = np.full(len(wanted) + 1, -1)  # and that of a missing text behind
    place[which] = rows
    of_texts = pc.fill_null(pc.index_in(texts, value_set=wanted), len(wanted))
    return place[of_texts.to_numpy()]


# ---- reading


def _features(content: bytes, filename: str) -> list[dict[str, Any]]:
    if len(content) > _MOST_BYTES:
        raise DomainError(
            f"{filename} has more than {_MOST_BYTES:,} bytes; simplify its shapes for a map."
        )
    try:
        stated = json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise DomainError(f"{filename} is no GeoJSON file: it is not JSON in UTF-8.") from None
    features = stated.get("features") if isinstance(stated, dict) else None
    if not isinstance(features, list) or not features:
        raise DomainError(
            f'{filename} is no GeoJSON file of shapes: it must hold a list "features".'
        )
    if len(features) > MOST_SHAPES:
        raise DomainError(
            f"{filename} has {len(features):,} shapes; a map can have {MOST_SHAPES:,}. Take those "
            "of a higher level, or of a part of the areas."
        )
    for number, feature in enumerate(features, 1):
        name = f"Shape {number:,} of {filename}"
        geometry = feature.get("geometry") if isinstance(feature, dict) else None
        if (
            not isinstance(geometry, dict)
            or geometry.get("type") not in _POLYGONS
            or not isinstance(feature.get("properties") or {}, dict)
        ):
            kind = geometry.get("type") if isinstance(geometry, dict) else None
            raise DomainError(f"{name} is no polygon, got {shown(str(kind))}; leave it out.")
        try:
            rings = _rings(geometry)
            is_usable = bool(rings) and all(
                len(ring) > 3 and all(map(math.isfinite, chain.from_iterable(ring)))
                for ring in rings
            )
        except (TypeError, ValueError, KeyError):
            is_usable = False
        if not is_usable:
            raise DomainError(
                f"{name} has no usable coordinates; each ring must have four points or more."
            )
    return features


def _rings(geometry: dict[str, Any]) -> list[Ring]:
    """The rings of a polygon or of several, outer ones clockwise and holes against it.

    Files have both, and a hole is left open only where it is wound the other way.
    """
    polygons = geometry["coordinates"]
    rings = []
    for polygon in [polygons] if geometry["type"] == "Polygon" else polygons:
        for number, points in enumerate(polygon):
            ring = [(float(x), float(y)) for x, y, *_ in points]
            # The shoelace formula: twice the area, above 0 if the ring is wound against the clock.
            is_clockwise = (
                math.fsum(
                    here[0] * there[1] - there[0] * here[1]
                    for here, there in zip(ring, [*ring[1:], ring[0]], strict=True)
                )
                < 0
            )
            rings.append(ring if is_clockwise == (number == 0) else ring[::-1])
    return rings


def _stretch(rings: list[list[Ring]]) -> float:
    """Degrees of longitude are shorter the farther from the equator; other units are alike."""
    points = np.array([point for of_shape in rings for ring in of_shape for point in ring])
    middle = float(np.mean([points[:, 1].min(), points[:, 1].max()]))
    if np.max(np.abs(points[:, 0])) > 180 or np.max(np.abs(points[:, 1])) > 85:
        return 1.0
    return 1 / math.cos(math.radians(middle))
