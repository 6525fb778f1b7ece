"""The study as one file: saved, loaded, started anew."""

import streamlit as st

from pages.components.shared.autosave import new_study, other_drafts
from pages.components.shared.session import change_study, escaped, open_saved, say, study
from rpexplore.common.formatting import plural
from rpexplore.domain.provenance import except_found
from rpexplore.scenarios.project import Study


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
    but = except_found(*(scenario.domain for scenario in study().scenarios))
    st.markdown(
        "All scenarios together are a study. It is saved on this computer with every change, and "
        "found again after a refresh. As a file it can be kept elsewhere or passed on. It holds "
        f"what you have chosen, and nothing from records{escaped(but)}."
    )
    held = study()  # the file is made by another thread, which knows no session
    st.download_button(
        "Save study.json",
        lambda: held.text(),
        "study.json",
        "application/json",
        on_click="ignore",
    )
    # Only when it is open: the saved studies are read and checked for it.
    others = st.expander("Open another study", key="other studies", on_change="rerun")
    if not others.open:
        return
    with others:
        _saved_studies()
        st.file_uploader(
            "A study.json saved here, in place of all scenarios above",
            type=["json"],
            key="study file",
            on_change=load,
        )
        st.button("Start a new study on the sample survey", on_click=start_anew)


def _saved_studies() -> None:
    """The other studies that this browser changed last, each with a button to open it."""
    for key, draft in other_drafts().items():
        words, button = st.columns([4, 1], vertical_alignment="center")
        names = ", ".join(f"“{name}”" for name in draft.study.names)
        words.markdown(escaped(f"Saved {draft.saved:%Y-%m-%d %H:%M} UTC: {names}"))
        button.button("Open", key=f"open study {key}", on_click=open_saved, args=(key,))
