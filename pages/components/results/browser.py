"""The results browser: any table as a grid, as bars or as a heat map, and any subtotal of it."""

import streamlit as st

from pages.components.results.bars import bars
from pages.components.results.cells import read
from pages.components.results.grid import grid
from pages.components.results.heat_map import heat
from pages.components.results.subtotal import any_range
from pages.components.shared.session import kept
from rpexplore.postprocessing.results import AnyTables, Results

GRID, BARS, HEAT = "Grid", "Bars", "Heat map"
LEAST = {GRID: 0, BARS: 1, HEAT: 2}  # attributes
WORDS = {GRID: "a grid", BARS: "bars", HEAT: "a heat map"}


def browse(source: AnyTables, record_noun: str) -> None:
    """One table, chosen by its attributes; record_noun: what one record stands for, in the
    plural."""
    found = kept("results", (source,), lambda: Results(source))
    chosen = _attributes(found)
    if not found.has(chosen):
        others = " Take one out, or choose others." if chosen else " Choose some."
        what = "processed" if found.is_biased else "released"
        exactly = "exactly these attributes" if found.is_biased else "all of these attributes"
        st.info(f"There is no {what} table with {exactly}.{others}")
        return
    view = st.radio(
        "Show as", list(LEAST), key="results view", horizontal=True, persist_state="session"
    )
    if len(chosen) < LEAST[view]:
        needed = "an attribute" if LEAST[view] == 1 else "two attributes"
        st.info(f"Choose {needed} at least to see the table as {WORDS[view]}.")
    else:
        read({GRID: grid, BARS: bars, HEAT: heat}[view], found, chosen, record_noun)
    if found.is_biased:
        st.caption(
            "Subtotals with exact errors are those of the unbiased counts: open the release that "
            "these tables were made of."
        )
    else:
        any_range(found, chosen, record_noun)


def _attributes(found: Results) -> tuple[str, ...]:
    """The attributes of the table to look at; those of one that is there to begin with."""
    held = st.session_state.get("looked at")
    if held is None or any(name not in found.names for name in held):
        # The first of the largest tables' kind is telling enough to start with.
        st.session_state["looked at"] = list(found.tables[len(found.tables) // 2])
    chosen = st.multiselect(
        "Attributes of the table",
        found.names,
        key="looked at",
        placeholder="the total",
        help="Tables as they were processed."
        if found.is_biased
        else "Any released table, and any that is inside one: its counts are summed from what was "
        "measured, and have exact errors too.",
    )
    return found.ordered(chosen)
