"""Which tables each level is asked for: presets, and grids of weights and targets."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.components.areas.study import (
    GRIDS,
    HERE,
    change_study,
    forget_typed,
    study,
    target_for_all,
)
from pages.components.shared.editors import apply_cells, revision
from pages.components.shared.session import escaped
from rpexplore.analysis.areas.grid import Setting, describe_grid, level_columns, level_grid
from rpexplore.analysis.areas.grid import study_from_grid as typed_into
from rpexplore.analysis.glossary import meaning
from rpexplore.scenarios.area_study import PRESETS, AreaStudy

_PRESET = "area preset"


def apply_typed() -> None:
    """Apply what was typed into the grids; call it before anything is drawn."""
    for setting, name in GRIDS.items():
        apply_cells(name, HERE, _applied(setting))


def _applied(setting: Setting) -> Any:
    def apply(cells: Mapping[int, Mapping[str, Any]]) -> Sequence[str]:
        opened = study()
        if opened is None:
            return ()
        edited, refused = typed_into(opened, setting, cells)
        change_study(lambda _: edited)
        return refused

    return apply


def tables_view(opened: AreaStudy) -> None:
    """Presets, the grid of weights, and where the objective has them that of targets."""
    st.markdown(escaped(describe_grid(opened)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox("Preset", list(PRESETS), key=_PRESET, width=340, persist_state="session")
        st.button("Apply", on_click=_take_preset)
    st.markdown("**Weight of each table on each level**, empty: not asked for")
    st.caption(
        "Tables here are of single values; from Python and the command line attributes may be in "
        "other bases, such as cumulative."
    )
    _grid(opened, "weight")
    loss = opened.loss
    if loss.compares_with_targets or loss.meets_required_targets:
        heading = "**Target of each table on each level**, a standard error of a cell"
        if loss.meets_required_targets:
            heading += "; one that has to be met in every area says so: 20 required"
        st.markdown(heading)
        if loss.compares_with_targets:
            target_for_all()
        _grid(opened, "target")
    else:
        st.caption("Targets come in with objectives that compare with or meet them, under Plan.")


def _grid(opened: AreaStudy, setting: Setting) -> None:
    headings = level_columns(opened)
    explained = meaning("Weight" if setting == "weight" else "Target")
    st.data_editor(
        level_grid(opened, setting),
        key=revision(GRIDS[setting]),
        hide_index=True,
        placeholder="",
        alt=f"{setting.capitalize()} of each table on each level, editable",
        column_config={
            "table": st.column_config.TextColumn(
                "Table", disabled=True, width="medium", pinned=True
            ),
            "cells": st.column_config.NumberColumn("Cells", disabled=True, format="localized"),
            **{
                column: st.column_config.TextColumn(level, help=explained, width="small")
                for column, level in headings.items()
            },
        },
        column_order=["table", *headings, "cells"],
    )


def _take_preset() -> None:
    preset = st.session_state[_PRESET]
    if change_study(lambda opened: opened.with_preset(preset)):
        forget_typed()
