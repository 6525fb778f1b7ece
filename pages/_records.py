"""The records of a release: where they are, and whether they can be those of the plan."""

import os
from pathlib import Path

import streamlit as st

from pages._places import path_of
from pages._run import Run
from pages._session import escaped
from rpexplore.domain import Domain
from rpexplore.plan import Plan
from rpexplore.webapp_location import sample_data_folder

SAMPLE, PATH = "The sample survey", "A file on this computer"
ENDINGS = (".csv", ".parquet", ".pq")


def sample_records() -> Path:
    return sample_data_folder() / "household.csv"


def data_source(planned: Plan) -> Path | None:
    """Where the records are, which are read in place and travel nowhere; None if not yet said."""
    st.subheader("The records")
    source = st.radio(
        "Take the records from",
        [SAMPLE, PATH],
        key="source",
        on_change=_forget,
        horizontal=True,
        persist_state="session",
    )
    if source == SAMPLE:
        data = sample_records()
        st.caption(f"About 50,000 made-up people: {escaped(str(data))}")
        if missing := _sample_problem(planned):
            st.info(escaped(missing))
            return None
        return data
    typed = st.text_input(
        "Path of the file (.csv or .parquet)",
        key="data path",
        on_change=_forget,
        persist_state="session",
        placeholder="/data/survey.csv",
        help="The file is read where it lies, on this computer. It needs the plan's attributes as "
        "columns; other columns are not read.",
    )
    if not typed.strip():
        st.info("Name the file with the records to go on.")
        return None
    data = path_of(typed)
    if problem := _file_problem(data):
        st.error(escaped(problem))
        return None
    return data


def _forget() -> None:
    """Other records: another folder for their release, and no word on an earlier failure."""
    st.session_state["output"] = ""
    held: Run | None = st.session_state.get("run")
    if held is not None and held.failed:
        del st.session_state["run"]


def _file_problem(data: Path) -> str:
    if os.path.isdir(data):
        return f"{data} is a folder; give the path of the file in it."
    if not os.path.isfile(data):
        return f"There is no file {data}; check the path."
    if data.suffix.lower() not in ENDINGS:
        return f"{data.name} is neither .csv nor .parquet; export the records as one of these."
    return "" if os.access(data, os.R_OK) else f"{data} cannot be read; ask for the right to."


def _sample_problem(planned: Plan) -> str:
    """Which columns the plan needs and the sample does not have, by its codebook."""
    domain = planned.workload.domain
    needed = [domain.names[place] for place in planned.workload.used]
    there = Domain.load(sample_data_folder() / "household.json").names
    missing = [name for name in needed if name not in there]
    if not missing:
        return ""
    shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
    return (
        f"The plan is for another schema: it needs columns that the sample survey does not have "
        f"({shown}). Take the records from a file."
    )
