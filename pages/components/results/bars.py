"""A table of the results as bars, each with its interval."""

import streamlit as st

from pages.components.results.cells import by_size, chart, drawn, fixed_values, whole
from pages.components.shared.session import escaped
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.figures.released_cells import MOST_BARS, MOST_GROUPS, bars_with_intervals
from rpexplore.postprocessing.results import Results


def bars(found: Results, chosen: tuple[str, ...], record_noun: str) -> None:
    """One attribute on the axis, maybe a second side by side; others fixed or together."""
    cells = whole(found, chosen)
    left, right = st.columns([1, 3], gap="large")
    with left:
        along = st.selectbox("Along the axis", by_size(cells), key=f"bars along {chosen}")
        others = [name for name in chosen if name != along]
        beside, groups = _groups(cells, along, others) if others else (None, ())
        axes = [along] if beside is None else [along, beside]
        fixed = fixed_values(found, cells, axes)
    summed = [name for name in others if name not in axes and name not in fixed]
    with right:
        part = drawn(found, axes, fixed, summed)
        if part is None:
            return
        if beside is not None:
            part = part.only(beside, groups)
        most = MOST_BARS // max(len(groups), 1)
        part = part.first([most, MOST_GROUPS][: len(axes)])
        chart(
            bars_with_intervals(part, record_noun),
            part,
            part.describe_bars(record_noun),
            "Counts with their 95 % intervals as bars",
            summed,
        )


def _groups(
    cells: ReleasedCells, along: str, others: list[str]
) -> tuple[str | None, tuple[int, ...]]:
    """The attribute whose values stand side by side, and which of them; None: there is none."""
    beside = st.selectbox(
        "Side by side",
        [None, *others],
        format_func=lambda name: name or "nothing",
        key=f"bars beside {along} of {others}",
    )
    if beside is None:
        return None, ()
    labels = next(axis.labels for axis in cells.axes if axis.name == beside)
    if len(labels) <= MOST_GROUPS:
        return beside, tuple(range(len(labels)))
    picked = st.multiselect(
        escaped(f"Values of {beside}, up to {MOST_GROUPS}"),
        range(len(labels)),
        list(range(MOST_GROUPS)),
        format_func=labels.__getitem__,
        max_selections=MOST_GROUPS,
        key=f"bars groups of {beside} among {len(labels)}",
    )
    return beside, tuple(sorted(picked)) or tuple(range(MOST_GROUPS))
