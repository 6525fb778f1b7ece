"""Shapes of GeoJSON files: matched to areas by their codes, wound for drawing, refused."""

import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.area_map import read_map
from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.errors import DomainError
from rpexplore.figures.areas import QUANTITIES, outcome_chart

# Towns have the same codes in both regions; whole codes tell them apart.
TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
UP, DOWN = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]], [[0, 0], [0, 4], [4, 4], [4, 0], [0, 0]]


def features(*codes, key="code", rings=(UP,), **more):
    shape = {"type": "Polygon", "coordinates": list(rings)}
    listed = [{"properties": {key: code, "name": "x"}, "geometry": shape, **more} for code in codes]
    return json.dumps({"features": listed}).encode()


def test_shapes_are_matched_to_the_level_that_most_of_them_fit():
    shapes = read_map(features("N2", "S1", "N1", "?"), "map.geojson", TREE)
    assert shapes.level == "town"
    assert [TREE.path(area) for area in shapes.areas] == [("N", "2"), ("S", "1"), ("N", "1")]
    assert shapes.describe() == (
        "3 of 4 shapes are areas of the level town, by the property code; that level has 3 areas."
    )
    whole = read_map(features("N2", "S1", "N1"), "map.geojson", TREE)
    assert whole.describe() == "All 3 areas of the level town have a shape."
    regions = read_map(features("S", key="kürzel"), "map.geojson", TREE)
    assert regions.describe().endswith("that level has 2 areas. Without a shape: N.")
    assert (regions.level, regions.areas.tolist()) == ("region", [2])
    numbered = rp.AreaTree.from_columns({"town": ["7", "12"]})
    assert read_map(features(12), "m", numbered).areas.tolist() == [1]  # in the order of codes
    # Two towns are called "1", so that it names none; "2" is the only one.
    with pytest.raises(DomainError, match="has the code of an area"):
        read_map(features("1", "2"), "m", TREE)
    assert read_map(features("2"), "m", TREE).areas.tolist() == [TREE.find(("N", "2"))]


def test_outer_rings_are_wound_one_way_and_holes_the_other():
    for outer, hole in ((UP, DOWN), (DOWN, UP), (UP, UP)):
        shapes = read_map(features("N", rings=(outer, hole)), "m", TREE)
        assert shapes.rings == [[[tuple(p) for p in DOWN], [tuple(p) for p in UP]]]
    far = [[0, 59], [1, 59], [1, 61], [0, 61], [0, 59]]
    assert read_map(features("N", rings=[far]), "m", TREE).stretch == pytest.approx(2)  # 1/cos 60°
    metres = [[500000, 10], [500001, 10], [500001, 11], [500000, 10]]
    assert read_map(features("N", rings=[metres]), "m", TREE).stretch == 1


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"\xff", "is no GeoJSON file: it is not JSON"),
        (b"[1]", 'must hold a list "features"'),
        (features("X"), "No shape in m has the code of an area, such as '1'"),
        (features("N", rings=[[[0, 0], [1, 1]]]), "Shape 1 of m has no usable coordinates"),
        (features("N", rings=[[[0, None]] * 4]), "no usable coordinates"),
        (features("N", rings=()), "no usable coordinates"),
        (features("N", geometry={"type": "Point", "coordinates": [0, 0]}), "is no polygon"),
        (features("N", geometry=None), "is no polygon"),
    ],
)
def test_a_file_without_usable_shapes_is_refused(content, error):
    with pytest.raises(DomainError, match=error):
        read_map(content, "m", TREE)


def box(x, y, width=1, height=1):
    return [[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]


def test_borders_of_the_level_above_are_where_its_areas_end():
    """N1 and N2 side by side, S1 over half of each: N's outline, and S's, without what N is cut by.

    The long side of S1 has a corner of N1 and N2 on it, at x = 1.
    """
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"123"]})
    shapes = [
        {"id": code, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for code, ring in (("1", box(0, 0)), ("2", box(1, 0)), ("3", box(0, 1, width=2)))
    ]
    areas = read_map(json.dumps({"features": shapes}).encode(), "m", tree)
    lines = {tuple(sorted(line)) for line in areas.borders(range(3))}
    assert ((1, 0), (1, 1)) not in lines
    inner = {((0, 1), (1, 1)), ((1, 1), (2, 1))}
    outer = {
        ((0, 0), (1, 0)), ((1, 0), (2, 0)), ((0, 0), (0, 1)), ((2, 0), (2, 1)),
        ((0, 1), (0, 2)), ((2, 1), (2, 2)), ((0, 2), (2, 2)),
    }  # fmt: skip
    assert lines == inner | outer
    assert ((1, 0), (1, 1)) in {tuple(sorted(line)) for line in areas.borders([0])}


def test_figures_go_to_the_shapes_of_their_areas():
    shapes = read_map(features("N2", "S1", "N1"), "map.geojson", TREE)
    order = [TREE.find(path) for path in (("N", "1"), ("N", "2"))]  # none of S1
    value, error = np.array([40.0, -3.0]), np.array([4.0, 4.0])
    axis = Axis("town", ("N1", "N2"))
    cells = ReleasedCells((axis,), value, value, error, value - 8, value + 8)
    frame = shapes.outcome(cells, np.array(order), 0.2)
    assert frame.index.tolist() == [0, 2]
    assert frame["value"].tolist() == [-3, 40]
    assert frame["cv"].tolist() == [np.inf, 0.1]
    assert frame["flag"].tolist() == ["E", "B"]
    assert frame["publishable"].tolist() == ["no", "yes"]
    for shown in QUANTITIES:
        chart = outcome_chart(shapes, frame, shown, "people", "")
        assert "1 of the 2 figures on the map are publishable" in chart.sentence
        assert "http" not in str(chart.figure.to_json())
