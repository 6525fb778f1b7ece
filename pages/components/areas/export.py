"""What one takes along of a plan for areas: its files, and how it is made again."""

from functools import partial

import streamlit as st

from pages.components.areas.usefulness import expected_in_areas
from pages.components.release.export import MANY, piece
from pages.components.release.given_approvals import given_approvals
from pages.components.shared.files import download
from pages.components.shared.session import current, kept
from rpexplore.export.area_bundle import FILENAME, area_bundle, area_report_html, area_report_pdf
from rpexplore.export.report import pdf
from rpexplore.export.reproduction.area_script import RUN, area_command, area_script
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.scenarios.area_study import AreaStudy


def take_along(planned: AreaPlan, opened: AreaStudy) -> None:
    """The plan files in one zip file, Python lines and a command line."""
    st.subheader("Take the plan with you")
    st.markdown("For those who check it, or run it elsewhere. None of it was made from records.")
    download(
        FILENAME,
        lambda: area_bundle(planned, opened),
        "Download the plan files (.zip)",
        type="primary",
        icon=":material/folder_zip:",
    )
    st.caption(
        "The plan file, the two Parquet files that belong beside it, and how it is made again."
    )
    scenario = current()
    expected = expected_in_areas(planned)
    approvals = given_approvals(planned)
    key = (planned, scenario, expected, approvals)
    slow = key if planned.workload.tree.n_areas > MANY else None
    piece(
        "report.html",
        "For the board that approves the plan: what is promised to whom, how accurate each level "
        "and table is, which areas are least accurate, and what is proven.",
        partial(area_report_html, planned, scenario, expected, approvals),
        slow=slow,
    )
    no_browser = pdf.find_browser() is None
    piece(
        "report.pdf",
        f"{pdf.NO_BROWSER}." if no_browser else "The same to print or to file.",
        partial(area_report_pdf, planned, scenario, expected, approvals),
        disabled=no_browser,
        slow=key,
    )
    shown = st.expander("The same in Python and on the command line", key="area commands")
    with shown:
        budget = planned.budget
        st.markdown("**In Python**, beside the codebook and its file of areas")
        st.code(kept(area_script, opened, budget), language="python", wrap_lines=True)
        st.markdown("**On the command line**")
        if command := kept(area_command, opened, budget):
            st.code(command, language="bash", wrap_lines=True)
        else:
            st.caption(
                "Options cannot say these tables: they take all tables up to some number of "
                "attributes on each level, with weights in the same proportions. Run the Python "
                "script instead."
            )
        st.markdown("**Then**, beside the records: check, release, and make whole counts")
        st.code(RUN, language="bash", wrap_lines=True)
