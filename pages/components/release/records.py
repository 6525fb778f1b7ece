"""The records of a release: where they are, and whether they can be those of the plan."""

import os
from pathlib import Path

import streamlit as st

from pages.components.release.run import BackgroundRelease
from pages.components.shared.paths import path_of
from pages.components.shared.session import escaped, kept
from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.data.databases.connections import connection_named, names_there, secrets_file
from rpexplore.data.databases.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Source
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.planning.release_plan import ReleasePlan

SAMPLE = "The sample survey"
PATH = "A file or folder on this computer"
DATABASE = "A table of a database"
ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")


def sample_records() -> FileSource:
    return FileSource(sample_data_folder() / "household.csv")


def data_source(planned: ReleasePlan) -> Source | None:
    """Where the records are; they are counted there and travel nowhere. None if not yet said."""
    st.subheader("The records")
    source = st.radio(
        "Take the records from",
        [SAMPLE, PATH, DATABASE],
        key="source",
        on_change=_forget,
        horizontal=True,
        persist_state="session",
    )
    if source == SAMPLE:
        data = sample_records()
        st.caption(f"About 50,000 made-up people: {escaped(str(data.path))}")
        if missing := _sample_problem(planned):
            st.info(escaped(missing))
            return None
        return data
    return _path() if source == PATH else _database()


def _path() -> Source | None:
    typed = st.text_input(
        "Path of the file (.csv or .parquet), or of a folder with such files",
        key="data path",
        on_change=_forget,
        persist_state="session",
        placeholder="/data/survey.csv",
        help="The records are counted where they lie, on this computer. They need the plan's "
        "attributes as columns; other columns are not read. Parts of folders such as year=2026 are "
        "columns too.",
    )
    if not typed.strip():
        st.info("Name the file or folder with the records to go on.")
        return None
    path = path_of(typed)
    if problem := _file_problem(path):
        st.error(escaped(problem))
        return None
    data = FileSource(path)
    try:
        data.fingerprint()
    except RpexploreError as error:
        st.error(escaped(error.on_screen()))
        return None
    return data


def _database() -> Source | None:
    """A table by the name of its connection; what the connection is never comes into the page."""
    left, right = st.columns(2)
    name = left.text_input(
        "Name of the connection",
        key="connection",
        on_change=_forget,
        persist_state="session",
        placeholder="SURVEY_DB",
        help="The address and password stay out of this page: name the environment variable of "
        "the server that holds them, or an entry under [connections] in "
        f"{escaped(str(secrets_file()))}, such as postgresql://user:password@host/database.",
    )
    table = right.text_input(
        "Table or view",
        key="database table",
        on_change=_forget,
        persist_state="session",
        placeholder="survey.people",
        help="It is counted there, by the database; only counts come back.",
    )
    if names := _names():
        left.caption(escaped(f"In the file of secrets: {', '.join(names)}"))
    if not name.strip() or not table.strip():
        st.info("Name the connection and the table with the records to go on.")
        return None
    try:
        return kept("engine source", (name, table), lambda: _reached(name.strip(), table.strip()))
    except RpexploreError as error:
        st.error(escaped(error.on_screen()))
        return None


def _reached(name: str, table: str) -> Source:
    """The table of a database, which was there a moment ago."""
    source = DatabaseSource(connection_named(name), table)
    source.fingerprint()
    return source


def _names() -> list[str]:
    try:
        return list(names_there())
    except RpexploreError as error:
        st.warning(escaped(str(error)))
        return []


def _forget() -> None:
    """Other records: another folder for their release, their own ledger and cap, and no word on an
    earlier failure."""
    for key in ("output", "ledger", "cap"):
        st.session_state[key] = ""
    held: BackgroundRelease | None = st.session_state.get("run")
    if held is not None and held.failed:
        del st.session_state["run"]


def _file_problem(data: Path) -> str:
    if not os.path.exists(data):
        return f"There is no file or folder {data}; check the path."
    if os.path.isfile(data) and not data.name.lower().endswith(ENDINGS):
        return f"{data.name} is neither .csv nor .parquet; export the records as one of these."
    return "" if os.access(data, os.R_OK) else f"{data} cannot be read; ask for the right to."


def _sample_problem(planned: ReleasePlan) -> str:
    """Which columns the plan needs and the sample does not have, by its codebook."""
    domain = planned.domain
    needed = [domain.names[index] for index in planned.attribute_indices]
    there = Domain.load(sample_data_folder() / "household.json").names
    missing = [name for name in needed if name not in there]
    if not missing:
        return ""
    shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
    return (
        f"The plan is for another codebook: it needs columns that the sample survey does not have "
        f"({shown}). Take the records from a file."
    )
