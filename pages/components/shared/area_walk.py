"""A walk through a tree of areas, how many there are on each level, and their shapes."""

from collections.abc import Sequence

import streamlit as st

from pages.components.shared.charts import metrics, numbers
from pages.components.shared.files import upload
from pages.components.shared.session import accepted, escaped, kept
from rpexplore.analysis.area_accuracy import describe_levels
from rpexplore.analysis.area_levels import level_sizes
from rpexplore.analysis.area_map import AreaMap, read_map
from rpexplore.common.text import joined
from rpexplore.domain.area_tree import AreaTree, area_title, areas_above, distinct_titles
from rpexplore.figures.areas import LEVEL_COLUMNS
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.examples import sample_map_for
from rpexplore.serving.sessions import where_kept

# ---- A walk through a tree of areas: the way back up, and the parts of an area to look into.


def looked_into(tree: AreaTree, key: str) -> int:
    """The area that the walk of this key has come to; the top at first, and in another tree."""
    of_tree, area = st.session_state.get(key, ("", 0))
    return area if of_tree == tree.sha256 else 0


def way_up(tree: AreaTree, key: str) -> None:
    """The areas that the present one lies in, each a button that leads back there."""
    line = st.container(horizontal=True, vertical_alignment="center", gap="xsmall")
    *above, here = areas_above(tree, looked_into(tree, key))
    for area in above:
        line.button(
            f"{escaped(area_title(tree, area))} ›",
            key=f"{key}: up to {area}",
            type="tertiary",
            on_click=look_into,
            args=(tree, key, area),
        )
    line.markdown(f"**{escaped(area_title(tree, here))}**", width="content")


def way_down(tree: AreaTree, key: str, parts: Sequence[int]) -> None:
    """A list of parts to look into, which can be searched; nothing where there are none."""
    if not parts:
        return
    titles = dict(zip(distinct_titles(tree, list(parts)), parts, strict=True))
    chosen = f"{key}: part"

    def take() -> None:
        look_into(tree, key, titles[st.session_state[chosen]])
        st.session_state[chosen] = None

    st.selectbox(
        "Look into one of its parts",
        list(titles),
        index=None,
        key=chosen,
        placeholder="Choose, or type to search",
        width=360,
        on_change=take,
    )


def look_into(tree: AreaTree, key: str, area: int) -> None:
    """Have the walk of this key be at an area, from the next run on."""
    st.session_state[key] = tree.sha256, area


# ---- The levels of areas: how many there are of each, and of their parts; never a list of areas.


def area_levels(opened: AreaStudy) -> None:
    """How many areas, levels and other attributes there are, and a table of the levels."""
    tree, domain = opened.areas.tree, opened.domain
    sizes = kept(level_sizes, tree, by=(tree,))
    metrics(
        ("Areas", f"{tree.n_areas:,}", escaped(opened.filename)),
        ("Levels", f"{len(tree.levels):,}", escaped(f"attribute {opened.attribute}")),
        ("Other attributes", f"{len(domain):,}", escaped(joined(domain.names))),
    )
    st.markdown(escaped(" ".join(filter(None, [describe_levels(sizes), tree.empty_text]))))
    numbers(sizes, LEVEL_COLUMNS, "levels.csv", "The levels of the areas")


# ---- Shapes of areas for a map, which the user gives: those of this session, and a box for others.


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
    shapes = accepted(messages, lambda: read_map(content, name, tree), "No map was drawn.")
    if shapes is not None:
        st.session_state[_MAP] = {tree.sha256: shapes}  # for these areas only
