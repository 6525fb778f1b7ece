"""The records of a release: where they are, and what becomes of values the schema lacks."""

from pathlib import Path

import streamlit as st

from pages._session import escaped
from rpexplore.analysis.grids import values_of
from rpexplore.plan import Plan
from rpexplore.webapp_location import sample_data_folder

SAMPLE, PATH = "The sample survey", "A file on this computer"


def forget_output() -> None:
    """Other records, another folder for their release."""
    st.session_state["output"] = ""


def data_source() -> Path | None:
    """Where the records are; they are read in place and travel nowhere."""
    st.subheader("The records")
    source = st.radio(
        "Take the records from",
        [SAMPLE, PATH],
        key="source",
        on_change=forget_output,
        horizontal=True,
        persist_state="session",
    )
    if source == SAMPLE:
        data = sample_data_folder() / "household.csv"
        st.caption(f"About 50,000 made-up people: {escaped(str(data))}")
        return data
    typed = st.text_input(
        "Path of the file (.csv or .parquet)",
        key="data path",
        on_change=forget_output,
        persist_state="session",
        placeholder="/data/survey.csv",
        help="The file is read where it lies, on this computer. It needs the plan's attributes as "
        "columns; other columns are not read.",
    )
    if not typed.strip():
        return None
    path = Path(typed.strip()).expanduser()
    if not path.is_file():
        st.error(escaped(f"There is no file {typed.strip()}; check the path."))
        return None
    return path


def other_categories(planned: Plan) -> dict[str, str]:
    """For attributes of the user's choice: the category that takes values not in the schema."""
    with st.expander("Values that are not in the schema"):
        st.markdown(
            "Records with a value that is not in the schema, or with none, are refused before any "
            "privacy is spent. Or choose attributes, and a category each, that takes such values."
        )
        domain = planned.workload.domain
        chosen = st.multiselect(
            "Put other values into a category of",
            domain.names,
            key="others",
            persist_state="session",
        )
        return {
            name: st.selectbox(
                f"Other values of {escaped(name)} become",
                values_of(domain[name])["value"].tolist(),
                key=f"other value of {name}",
            )
            for name in chosen
        }
