"""The areas of a level on a map, where the user gives their shapes."""

from pathlib import Path

import streamlit as st

from pages.components.areas.by_area import table_of_areas
from pages.components.areas.study import HERE, area_plan, study
from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.files import upload
from pages.components.shared.serving import where_kept
from pages.components.shared.session import kept, say
from rpexplore.analysis.areas.map import AreaMap, read_map
from rpexplore.errors import RpexploreError
from rpexplore.figures.areas import map_chart
from rpexplore.scenarios.area_example import sample_map_for
from rpexplore.scenarios.area_study import AreaStudy

_MAP = "area map"


def on_a_map(opened: AreaStudy) -> None:
    """A box for a GeoJSON file, and its shapes coloured by accuracy."""
    planned = area_plan(opened)
    if planned is None:
        return
    errors = table_of_areas(planned)
    shapes: AreaMap | None = st.session_state.get(_MAP, {}).get(opened.areas.sha256)
    upload(
        "Drop the shapes of the areas" if shapes is None else "Drop other shapes",
        ["geojson", "json"],
        "area map file",
        _take,
        help="A GeoJSON file of polygons in longitude and latitude, each with the code of its area "
        "as its id or in a property. It is kept "
        f"{where_kept()} while this page is open.",
    )
    if shapes is None:
        st.info(
            "A map is optional: with a GeoJSON file of your own the areas of one level are drawn. "
            "Everything else works without."
        )
        if path := sample_map_for(opened.areas.tree):
            st.button(
                "Use the sample's map", icon=":material/map:", on_click=_take_sample, args=(path,)
            )
    else:
        chart_with_numbers(kept(map_chart, shapes, errors))


def _take_sample(path: Path) -> None:
    _take(path.read_bytes(), path.name)


def _take(content: bytes, name: str) -> None:
    opened = study()
    if opened is None:
        return
    try:
        shapes = read_map(content, name, opened.areas.tree)
    except RpexploreError as error:
        say(HERE, "error", f"{error} No map was drawn.")
        return
    st.session_state[_MAP] = {opened.areas.sha256: shapes}  # for these areas only
