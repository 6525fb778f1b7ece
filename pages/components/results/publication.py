"""Which cells of the results are publishable, and whether others are left empty."""

import streamlit as st

from pages.components.results.source import is_of_current
from pages.components.shared.numbers import number_field
from pages.components.shared.session import current
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.postprocessing.publication import CV_MEANING, Publication
from rpexplore.postprocessing.results import ShownTables


def publication_input(results: ShownTables) -> Publication:
    """A limit, at first that of the open scenario where the tables can be its, and a choice."""
    usual = current().cv_limit if is_of_current(results) else CV_LIMIT
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        percent = number_field(
            "Publishable: CV at most (%)",
            f"limit of results, usually {usual}",
            value=float(f"{100 * usual:.10g}"),
            least=0.1,
            most=1000.0,
            width=230,
            help=f"{CV_MEANING} A count that is not above 0 is not publishable.",
            persist_state="session",
        )
        leave_empty = st.checkbox(
            "Leave cells that are not publishable empty",
            key="leave cells empty",
            persist_state="session",
            help="In what is shown and downloaded here: CSV, Parquet and the workbook. The folder "
            "of the results stays as it is.",
        )
    return Publication(usual if percent is None else percent / 100, leave_empty)
