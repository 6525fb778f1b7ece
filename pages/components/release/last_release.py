"""The last release of the open project, found again after a reload."""

import streamlit as st

from pages.components.results.source import open_folder
from pages.components.shared.autosave import autosaves, open_key
from pages.components.shared.files import download
from pages.components.shared.session import escaped
from rpexplore.export import bundle
from rpexplore.planning.plan import Plan


def last_release() -> None:
    """The way to the last release of the open project and to its exports, if there was one."""
    saved = autosaves().last_release(open_key())
    if saved is None:
        return
    with st.container(border=True):
        st.markdown(
            f"**Last release of this project:** {saved.contents}, in {escaped(str(saved.folder))}"
        )
        with st.container(horizontal=True):
            if st.button("Look at its results"):
                open_folder(saved.folder)
                st.switch_page("pages/results.py")
            if "tables" in saved.plan_format.split(","):
                download(
                    f"released-{bundle.FILENAME}",
                    lambda: bundle.bundle(Plan.load(saved.folder / "plan.json"), saved.scenario),
                    "Download its plan and report (.zip)",
                )
