"""The project as one file: saved, loaded, started anew."""

import streamlit as st

from pages.components.shared.autosave import (
    delete_saved,
    new_project,
    other_saved_projects,
    project_of_upload,
)
from pages.components.shared.files import download, upload
from pages.components.shared.serving import plans_only, where_kept
from pages.components.shared.session import change_project, escaped, open_saved, project, say
from rpexplore.common.formatting import plural
from rpexplore.domain.provenance import except_from_records
from rpexplore.scenarios.project_file import content_of, filename_of


def project_file(slot: str) -> None:
    """Widgets to save and load the whole project; messages go to `slot`."""

    def load(content: bytes, name: str) -> None:
        if change_project(slot, lambda: project_of_upload(content, name)):
            _give_up_release()
            scenarios = plural(len(project().scenarios), "scenario")
            say(slot, "success", f"Opened {name}: {scenarios}. Undo brings back the others.")

    def start_anew() -> None:
        if change_project(slot, new_project):
            _give_up_release()
            say(slot, "success", "A new project on the sample survey. Undo brings back the other.")

    st.subheader("The project as a file")
    but = except_from_records(*(scenario.domain for scenario in project().scenarios))
    st.markdown(
        "All scenarios together are a project. It is saved "
        f"{where_kept()} with every change, and found again after a refresh. As a file it can be "
        "kept elsewhere or passed on. It holds "
        f"what you have chosen, and nothing from records{escaped(but)}."
    )
    held = project()  # the file is made by another thread, which knows no session
    file = filename_of(held)
    download(file, lambda: content_of(held), f"Save {file}")
    if held.areas:
        st.caption("It is a zip file because the areas are in it, for another computer.")
    # Only when it is open: the saved projects are read and checked for it.
    expander = st.expander("Open another project", key="other projects", on_change="rerun")
    if not expander.open:
        return
    with expander:
        _saved_projects()
        upload(
            "A project file saved here, in place of all scenarios above",
            ["json", "zip"],
            "project file",
            load,
        )
        st.button("Start a new project on the sample survey", on_click=start_anew)


def _give_up_release() -> None:
    if not plans_only():  # else there is none
        from pages.components.release.release_task import give_up_release

        give_up_release()


def _saved_projects() -> None:
    """The other projects that this browser changed last, each with a button to open it."""
    for key, saved in other_saved_projects().items():
        text, button = st.columns([4, 1], vertical_alignment="center")
        names = ", ".join(f"“{name}”" for name in saved.project.names)
        survey = saved.project.current.survey
        whose = f"{survey}, saved" if survey else "Saved"
        text.markdown(escaped(f"{whose} {saved.saved:%Y-%m-%d %H:%M} UTC: {names}"))
        button.button("Open", key=f"open project {key}", on_click=open_saved, args=(key,))
        if plans_only():  # where an account has room for some only
            button.button("Delete", key=f"delete project {key}", on_click=delete_saved, args=(key,))
