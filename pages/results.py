"""Results: look at what was released, and make other tables of it."""

import streamlit as st

from pages.components.results.browser import browse, browse_answers
from pages.components.results.postprocess import HERE, POSTPROCESSING, postprocessing
from pages.components.results.reading_code import reading_code
from pages.components.results.source import record_noun_of, results_source
from pages.components.shared.background import finish, follow_begun
from pages.components.shared.session import project, show_messages
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.releases.query_release import QueryRelease

project()  # on a new server, where this may be the first page to be requested
finish(POSTPROCESSING)
st.title("Results")
st.markdown(
    "Released tables and answers with their accuracy. Nothing here reads a record, and nothing "
    "costs privacy."
)
show_messages(HERE)
results = results_source()
if results is not None:
    source, folder = results
    if isinstance(source, QueryRelease):
        browse_answers(source)
    else:
        reading_code(source, folder, browse(source, record_noun_of(source)))
        if isinstance(source, ProcessedTables):
            follow_begun(POSTPROCESSING)
        else:
            postprocessing(source, folder)
