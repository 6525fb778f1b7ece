"""A table of the results as a heat map: counts, or how reliable they are."""

import streamlit as st

from pages.components.results.cells import by_size, chart, drawn, fixed_values, whole
from rpexplore.figures.released_cells import MOST_CELLS, heat_map, is_crossed
from rpexplore.postprocessing.results import Results

COUNTS, MARGINS = "How many", "How reliable"


def heat(found: Results, chosen: tuple[str, ...], record_noun: str) -> None:
    """Two attributes on the axes; others fixed or together."""
    cells = whole(found, chosen)
    left, right = st.columns([1, 3], gap="large")
    with left:
        across = st.selectbox("Across", by_size(cells), key=f"heat across {chosen}")
        others = [name for name in by_size(cells) if name != across]
        down = st.selectbox("Down", others, key=f"heat down {others}")
        colour = st.radio(
            "Colour",
            [COUNTS, MARGINS],
            key="heat colour",
            persist_state="session",
            help="How reliable: the margin of the 95 % interval as a share of the count. At 100 % "
            "and more the count cannot be told from 0.",
        )
        fixed = fixed_values(found, cells, [down, across])
    summed = [name for name in others if name != down and name not in fixed]
    with right:
        part = drawn(found, [down, across], fixed, summed)
        if part is None:
            return
        part, by_margin = part.first([MOST_CELLS, MOST_CELLS]), colour == MARGINS
        chart(
            heat_map(part, record_noun, by_margin=by_margin),
            part,
            part.describe_heat(record_noun, by_margin=by_margin, crossed=is_crossed(part)),
            "Margins as a share of the counts as a heat map"
            if by_margin
            else "Counts as a heat map",
            summed,
        )
