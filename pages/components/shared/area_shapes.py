"""Shapes of areas for a map, which the user gives: those of this session, and a box for others."""

import streamlit as st

from pages.components.shared.files import upload
from pages.components.shared.session import say
from rpexplore.analysis.area_map import AreaMap, read_map
from rpexplore.domain.area_tree import AreaTree
from rpexplore.errors import RpexploreError
from rpexplore.scenarios.examples import sample_map_for
from rpexplore.serving.sessions import where_kept

_MAP = "area map"


def shapes_of(tree: AreaTree, key: str, messages: str) -> AreaMap | None:
    """The shapes of some areas, and a box for others; None while there are none.

    The sample country has shapes of its own. key: of the box; messages: where the page says what is
    wrong with a file
    """
    if tree.sha256 not in st.session_state.get(_MAP, {}) and (path := sample_map_for(tree)):
        _take(tree, path.read_bytes(), path.name, messages)
    shapes: AreaMap | None = st.session_state.get(_MAP, {}).get(tree.sha256)
    upload(
        "Drop the shapes of the areas" if shapes is None else "Drop other shapes",
        ["geojson", "json"],
        key,
        lambda content, name: _take(tree, content, name, messages),
        help="A GeoJSON file of polygons in longitude and latitude, each with the code of its area "
        "as its id or in a property. It is kept "
        f"{where_kept()} while this page is open.",
    )
    if shapes is None:
        st.info(
            "A map is optional: with a GeoJSON file of your own the areas of one level are drawn. "
            "Everything else works without."
        )
    return shapes


def _take(tree: AreaTree, content: bytes, name: str, messages: str) -> None:
    try:
        shapes = read_map(content, name, tree)
    except RpexploreError as error:
        say(messages, "error", f"{error} No map was drawn.")
        return
    st.session_state[_MAP] = {tree.sha256: shapes}  # for these areas only
