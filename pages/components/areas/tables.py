"""Which tables each level is asked for: presets, and grids of weights and targets."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.components.areas.study import HERE, change_study, study
from pages.components.shared.editors import apply_cells, revision
from pages.components.shared.session import escaped
from rpexplore.analysis.area_grid import Setting, describe_grid, level_columns, level_grid
from rpexplore.analysis.area_grid import study_from_grid as typed_into
from rpexplore.analysis.glossary import meaning
from rpexplore.common.typed_numbers import needed_number_of
from rpexplore.scenarios.area_study import PRESETS, AreaStudy

_GRIDS: Mapping[Setting, str] = {"weight": "area weights", "target": "area targets"}
_PRESET, _TARGET = "area preset", "area target for all"


def apply_typed() -> None:
    """Apply what was typed into the grids; call it before anything is drawn."""
    for setting, name in _GRIDS.items():
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
    _grid(opened, "weight")
    if opened.loss.compares_with_targets:
        st.markdown("**Target of each table on each level**, a standard error of a cell")
        with (
            st.form("area targets", border=False),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            st.text_input("Target for every table without one", key=_TARGET, width=260)
            st.form_submit_button("Set", on_click=_set_missing)
        _grid(opened, "target")
    else:
        st.caption(
            "Targets come in with the objective “minimise the largest shortfall from targets”, "
            "under Plan."
        )


def _grid(opened: AreaStudy, setting: Setting) -> None:
    headings = level_columns(opened)
    explained = meaning("Weight" if setting == "weight" else "Target")
    st.data_editor(
        level_grid(opened, setting),
        key=revision(_GRIDS[setting]),
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
        _forget_typed()


def _set_missing() -> None:
    typed = st.session_state[_TARGET]
    if change_study(
        lambda opened: opened.with_target_where_missing(
            needed_number_of(typed, "The target", least=0.0)
        )
    ):
        _forget_typed()


def _forget_typed() -> None:
    for name in _GRIDS.values():
        revision(name, step=True)
