"""A walk through a tree of areas: the way back up, and the parts of an area to look into."""

from collections.abc import Sequence

import streamlit as st

from pages.components.shared.session import escaped
from rpexplore.domain.area_titles import area_title, areas_above, distinct_titles
from rpexplore.domain.area_tree import AreaTree


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
