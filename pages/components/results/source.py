"""What the Results page looks at: the release of this session, or what a folder holds."""

import os
from pathlib import Path

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.paths import path_of
from pages.components.shared.session import current, escaped
from rpexplore.common.formatting import capitalised
from rpexplore.postprocessing.results import AnyTables, Results, load_results
from rpexplore.releases.table_folder import Release

SESSION, FOLDER = "The release of this session", "A folder"


def opened() -> tuple[AnyTables, Path] | None:
    """The tables to look at, and their folder; None, which the page explains, while there are none.

    The label of processed tables stands above all.
    """
    top = st.container()
    run = st.session_state.get("run")
    done = None if run is None or run.is_going else run.release
    if not isinstance(done, Release):  # answers to queries are no tables
        done = None
    choices = [FOLDER] if done is None else [SESSION, FOLDER]
    source = choices[0]
    if len(choices) > 1:
        source = st.radio(
            "Tables of", choices, key="results from", horizontal=True, persist_state="session"
        )
    if done is not None and source == SESSION:
        st.caption(escaped(str(done.folder.absolute())))
        return done, done.folder
    folder = _folder()
    if folder is None:
        return None
    found = worked_out(
        "opened results", (str(folder), _stamp(folder)), lambda on_progress: load_results(folder)
    )
    if found is None:
        return None
    with top:
        _label(found)
    return found.source, folder


def open_folder(folder: Path) -> None:
    """Have the page look at a folder, from its next run on."""
    st.session_state["results from"] = FOLDER
    st.session_state["results folder"] = str(folder)


def counted_of(source: AnyTables) -> str:
    """What a record stands for, if these tables can be those of the open scenario."""
    known = set(Results(source).names) <= set(current().domain.names)
    return current().record_noun if known else "records"


def _folder() -> Path | None:
    typed = st.text_input(
        "Folder with the tables",
        key="results folder",
        persist_state="session",
        placeholder="releases/survey-2026-11-22",
        help="Of a release, of combined tables, or of processed ones. Every file is checked "
        "against what was written.",
    )
    if not typed.strip():
        st.info(
            "Run a release on the page before, or name the folder of one, to look at its tables."
        )
        return None
    folder = path_of(typed).absolute()
    if not os.path.isdir(folder):
        st.error(escaped(f"There is no folder {folder}; check the path."))
        return None
    return folder


def _stamp(folder: Path) -> int:
    """When the folder was finished; another time, and it is read anew."""
    try:
        return (folder / "manifest.json").stat().st_mtime_ns
    except OSError:
        return 0


def _label(found: Results) -> None:
    if found.is_biased:
        st.warning(
            f"**Processed tables:** {escaped(found.label)}. For adding up and comparing counts use "
            "the unbiased ones beside them.",
            icon=":material/label_important:",
        )
    else:
        st.caption(escaped(capitalised(found.label)))
