"""The areas of the open scenario: where they come from, their tables, and their plan."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.shared.area_walk import area_levels
from pages.components.shared.autosave import autosaves
from pages.components.shared.background import begin, finish, task_name, worked_out
from pages.components.shared.files import data_files, path_choice, upload_several
from pages.components.shared.inputs import apply_cells, revision
from pages.components.shared.session import (
    attempt,
    change,
    change_fields,
    current,
    escaped,
    open_beside,
    project,
    say,
)
from pages.components.shared.solutions import NO_PLAN, budget_of_stated, part, solved_areas
from rpexplore.analysis.area_accuracy import budget_within_reach
from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.scenario_comparison import AreaOutcome
from rpexplore.analysis.workload_grid import (
    Setting,
    describe_grid,
    level_columns,
    level_grid,
    typed_target,
)
from rpexplore.analysis.workload_grid import study_from_grid as typed_into
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.data.files.offered import codebooks, refuse_records_beside
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.errors import DomainError, OutOfReachError
from rpexplore.scenarios.area_study import PRESETS, AreaStudy
from rpexplore.scenarios.examples import COUNTRY, COUNTRY_KEY, sample_project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.serving.sessions import plans_only
from rpexplore.serving.tasks import Task

HERE = "areas"  # where messages of the page go
GRIDS: Mapping[Setting, str] = {"weight": "area weights", "target": "area targets"}
_TARGET = "area target for all"


def open_study(opened: AreaStudy | None) -> None:
    """Give the open scenario these areas, or none.

    If they are those that it has, and whose file was missing, their tables stay.
    """
    before = current().areas
    if opened is not None and before is not None:
        if (before.areas.sha256, before.domain) == (opened.areas.sha256, opened.domain):
            before.areas.give(opened.areas.tree)
            opened = replace(before, filename=opened.filename)
        else:
            say(
                HERE,
                "warning",
                f"The areas of {opened.filename} are not those that this scenario had, so that "
                "their tables begin anew. Undo brings back the others.",
            )
    change_fields(HERE, areas=opened)


def change_study(make: Callable[[AreaStudy], AreaStudy]) -> bool:
    """Replace the open study; what is refused leaves the old one, and a message."""
    opened = current().areas
    return opened is not None and change(HERE, lambda: current().replaced(areas=make(opened)))


def is_read(opened: AreaStudy) -> bool:
    """Whether the areas are in memory; they are read, and the page says how far or what is wrong.

    Where their file is missing, the page asks for it.
    """
    if opened.areas.is_read:
        st.session_state.pop(task_name(_read), None)  # it would keep them in memory
        return True
    sha256 = opened.areas.sha256
    by = sha256, autosaves().has_tree(sha256)  # read anew if a missing file is there again
    return worked_out(_read, opened, by=by) is not None


def file_is_missing(opened: AreaStudy) -> bool:
    """Whether the areas could not be read; then the page says how they come back."""
    _, task = st.session_state[task_name(_read)]
    if opened.areas.is_read or task.is_going:
        return False
    st.info(
        f"The tables of these areas are kept. Open {escaped(opened.filename)} with its file of "
        "areas below, or the project.zip in which they were saved, on the Scenarios page."
    )
    return True


def _read(opened: AreaStudy, on_progress: Progress) -> bool:
    on_progress(f"Reading {plural(opened.areas.n_areas, 'area')}", 0.0)
    return opened.areas.tree is not None


def areas_can_be_planned(opened: AreaStudy) -> bool:
    """Whether there is a plan for the areas; if not, the page says why, and what to do."""
    if missing := opened.misses_targets:
        with st.container(border=True):
            st.markdown(
                "The objective of the areas compares every table with a target, a standard error "
                f"of a cell. Some have none yet, such as {escaped(missing)}: set one for all of "
                "these here, or each in the areas' view Tables."
            )
            _target_for_all()
        return False
    if opened.requires_none:
        st.info(
            "No target of the areas is required yet: write required behind one in their view "
            "Tables, such as 20 required."
        )
        return False
    found = solved_areas(current())
    if isinstance(found, OutOfReachError):
        _offer_budget(found, opened)
        return False
    return found is not None


def _offer_budget(refused: OutOfReachError, opened: AreaStudy) -> None:
    """Say that required targets cannot be met, and offer the budget at which they can."""
    st.error(escaped(f"{NO_PLAN}{refused}"))
    found = attempt(
        lambda: budget_within_reach(
            refused,
            current().budget_to_solve("areas"),
            (current().planned_areas or opened).workload,
        )
    )
    if found is None:
        return
    enough, text = found
    budget = budget_of_stated("areas", enough.budget)
    st.markdown(escaped(text))
    st.button(
        f"Use {escaped(stated_text(budget))}",
        key="use the budget of required targets",
        on_click=change_fields,
        args=(HERE,),
        kwargs={"budget": budget},
        help="The budget of the Plan page is then this one, too.",
    )


def area_outcome(scenario: Scenario) -> AreaOutcome | None:
    """What comes of a scenario's areas; None while it is planned, and where there is no plan."""
    planned = part("areas", scenario)
    if planned is None:
        return None
    return worked_out(
        AreaOutcome.of,
        planned,
        scenario,
        doing="Working out what comes of the areas",
        problem=f"{scenario.name}: {NO_PLAN}",
        slot=scenario.name,
        by=(planned, scenario.public, scenario.expected, scenario.areas),
    )


def _target_for_all() -> None:
    """A box for the target of every table without one."""
    with (
        st.form("area targets", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input("Target for every table without one", key=_TARGET, width=260)
        st.form_submit_button("Set", on_click=_set_missing)


def _set_missing() -> None:
    typed = st.session_state[_TARGET]
    if change_study(
        lambda opened: opened.with_target_where_missing(
            typed_target(typed.strip() or "none", "The target")
        )
    ):
        forget_typed()


def forget_typed() -> None:
    """The grids of weights and targets forget what was typed."""
    for name in GRIDS.values():
        revision(name, step=True)


# ---- Where the areas come from: the sample country, files; and what their levels are like.


READING = "areas task"
_PATIENCE = 2.0  # seconds a click waits for small files before their progress is shown
_BOX = "area files"


def choose_areas() -> None:
    """The sample country by a click, files to drop, and files on this computer."""
    st.markdown(
        "Areas are a codebook in which one attribute is a **tree**: a country with its regions "
        "and municipalities, or a classification such as NACE or ICD-10. It is public knowledge; "
        "no records are needed."
    )
    st.button(
        "Open the sample country",
        icon=":material/map:",
        type="primary",
        on_click=lambda: open_beside(sample_project(), COUNTRY_KEY),
        help=f"{COUNTRY} It opens in a project of its own; earlier work is kept.",
    )
    upload_several(
        "Drop a codebook together with its file of areas",
        ["json", "csv", "parquet"] if plans_only() else None,
        _BOX,
        _take_dropped,
        help="A JSON codebook of which one attribute names a file of areas, and that file: CSV or "
        "Parquet with a column for each level, with whole codes, or with codes and their parents.",
    )
    other_areas()
    if not plans_only():
        path = path_choice(
            "Or choose a codebook on this computer",
            "areas path",
            data_files(codebooks),
            example="/data/register.json",
            help="A JSON codebook, beside which its file of areas lies.",
        )
        if path is not None:
            book = partial(AreaCodebook.load, path)
            st.button("Open these areas", on_click=_begin, args=(path.name, book))


def other_areas() -> None:
    """Those of other scenarios of the project, each to be taken by a click, tables and all."""
    studies = {
        scenario.areas: scenario.name
        for scenario in project().scenarios
        if scenario.areas is not None and scenario.areas != current().areas
    }
    for number, (opened, name) in enumerate(studies.items()):
        st.button(
            f"Take {escaped(opened.filename)} as in “{escaped(name)}”",
            key=f"areas of another {number}",
            on_click=open_study,
            args=(opened,),
        )


def levels(opened: AreaStudy) -> None:
    """The levels of the areas, and how to open others."""
    area_levels(opened)
    st.button("Open other areas", on_click=open_study, args=(None,), icon=":material/folder_open:")


def _take_dropped(files: Sequence[Any]) -> None:
    contents = {Path(file.name).name: file.getvalue() for file in files}
    found = [name for name in contents if name.lower().endswith(".json")]
    if len(found) != 1:
        say(
            HERE,
            "error",
            f"Drop one JSON codebook and the file of areas that it names together; got "
            f"{plural(len(found), 'JSON file')} among {plural(len(contents), 'file')}.",
        )
        return
    (name,) = found
    if len(contents) == 1:
        # The two may come one after the other: the first alone is no mistake yet.
        say(HERE, "info", f"Now add the file of areas that {name} names to the same box.")
        return
    _begin(name, lambda: _read_dropped(contents, name))


def _read_dropped(contents: Mapping[str, bytes], name: str) -> AreaCodebook:
    beside = {other: content for other, content in contents.items() if other != name}
    if plans_only():
        refuse_records_beside(contents[name], name, beside)
    return AreaCodebook.from_files(contents[name], name, beside)


def _begin(name: str, load: Callable[[], AreaCodebook]) -> None:
    """Read areas outside the script thread: a country may have millions."""

    def read(on_progress: Progress) -> AreaStudy:
        on_progress("Reading the areas", 0.0)
        try:
            opened = AreaStudy.of(name, load())
        except DomainError as error:
            raise DomainError(f"{error} Nothing was opened.") from None
        on_progress("Keeping them beside the project", 0.6)
        with suppress(OSError):  # the page says so when it saves the project
            autosaves().save_tree(opened.areas.tree)
        return opened

    def use(task: Task[AreaStudy]) -> None:
        if task.result is None:
            say(HERE, "error", task.error)
        else:
            open_study(task.result)

    begin(READING, read, use).wait(_PATIENCE)
    finish(READING)


# ---- Which tables each level is asked for: presets, and grids of weights and targets.


_PRESET = "area preset"


def apply_typed() -> None:
    """Apply what was typed into the grids; call it before anything is drawn."""
    for setting, name in GRIDS.items():
        apply_cells(name, HERE, _applied(setting))


def _applied(setting: Setting) -> Any:
    def apply(cells: Mapping[int, Mapping[str, Any]]) -> Sequence[str]:
        opened = current().areas
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
    with st.container(horizontal=True, vertical_alignment="bottom"):
        levels = st.multiselect("A table on the levels", opened.levels, key="levels of table")
        names = st.multiselect(
            "by",
            opened.domain.names,
            key="table on levels",
            placeholder="nothing: totals",
            help="With an amount, such as an income, the table has its sums and means."
            if opened.domain.amounts
            else None,
        )
        for label, alone in (("Add this table", False), ("Only this table", True)):
            st.button(
                label, key=label, on_click=_take_table, args=(levels, names, alone),
                disabled=not levels,
            )  # fmt: skip
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


def _take_table(levels: Sequence[str], names: Sequence[str], alone: bool) -> None:
    if change_study(lambda opened: opened.with_table(levels, names, alone=alone)):
        forget_typed()


def _take_preset() -> None:
    preset = st.session_state[_PRESET]
    if change_study(lambda opened: opened.with_preset(preset)):
        forget_typed()
