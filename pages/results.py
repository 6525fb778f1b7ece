"""Results: look at released tables, and make others of them."""

import streamlit as st

from pages.components.results.browser import browse
from pages.components.results.postprocess import after_the_noise
from pages.components.results.postprocess_task import finished_making, is_making
from pages.components.results.source import counted_of, opened
from pages.components.shared.session import project, show_messages
from rpexplore.postprocessing.processed_tables import ProcessedTables

project()  # on a new server, where this may be the first page to be asked for
finished_making()
st.title("Results")
st.markdown(
    "Released tables with their intervals. Nothing here reads a record, and nothing costs privacy."
)
show_messages("results")
found = opened()
if found is not None:
    source, folder = found
    browse(source, counted_of(source))
    if isinstance(source, ProcessedTables):
        is_making()
    else:
        after_the_noise(source, folder)
