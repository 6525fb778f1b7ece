"""The study as one file: saved, loaded, started anew."""

import streamlit as st

from pages._drafts import new_study
from pages._session import change_study, say, study
from rpexplore.study import Study
from rpexplore.words import plural


def study_file(place: str) -> None:
    """Widgets to save and load the whole study; messages go to `place`."""

    def load() -> None:
        file = st.session_state["study file"]
        if file is None:
            return
        if change_study(place, lambda: Study.from_bytes(file.getvalue(), file.name)):
            scenarios = plural(len(study().scenarios), "scenario")
            say(place, "success", f"Opened {file.name}: {scenarios}. Undo brings back the others.")

    def start_anew() -> None:
        if change_study(place, new_study):
            say(place, "success", "A new study on the sample survey. Undo brings back the other.")

    st.subheader("The study as a file")
    st.markdown(
        "All scenarios together are a study. It is saved on this computer with every change, and "
        "found again after a refresh. As a file it can be kept elsewhere or passed on. It holds "
        "what you have chosen, and no records."
    )
    st.download_button(
        "Save study.json",
        lambda: study().text(),
        "study.json",
        "application/json",
        on_click="ignore",
    )
    with st.expander("Open another study"):
        st.file_uploader(
            "A study.json saved here, in place of all scenarios above",
            type=["json"],
            key="study file",
            on_change=load,
        )
        st.button("Start a new study on the sample survey", on_click=start_anew)
