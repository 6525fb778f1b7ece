"""What one takes along of a plan for areas: its files, and how it is made again."""

from functools import partial

import streamlit as st

from pages.components.areas.usefulness import expected_in_areas
from pages.components.release.export import MANY, piece
from pages.components.release.given_approvals import given_approvals
from pages.components.shared.session import current, kept
from rpexplore.export import bundle
from rpexplore.export.report import pdf
from rpexplore.export.reproduction.command_line import command_lines, make_command
from rpexplore.export.reproduction.script import python_script
from rpexplore.planning.areas.area_plan import AreaPlan

FILENAME = "area-plan.zip"


def take_along(planned: AreaPlan) -> None:
    """The plan files in one zip file, Python lines and a command line."""
    st.subheader("Take the plan with you")
    st.markdown("For those who check it, or run it elsewhere. None of it was made from records.")
    scenario = current()
    expected = expected_in_areas(planned)
    approvals = given_approvals(planned.alone)
    key = (planned, scenario, expected, approvals)
    slow = key if planned.workload.tree.n_areas > MANY else None
    piece(
        FILENAME,
        "Report, plan and the two Parquet files that belong beside it, the tables as a list, and "
        "how the plan is made again.",
        partial(bundle.bundle, planned.alone, scenario, None, approvals, expected),
        label="Download plan and report (.zip)",
        slow=slow,
    )
    piece(
        "report.html",
        "For the board that approves the plan: what is promised to whom, how accurate each level "
        "and table is, which areas are least accurate, and what is proven.",
        partial(bundle.report_html, planned.alone, scenario, None, approvals, expected),
        slow=slow,
    )
    no_browser = pdf.find_browser() is None
    piece(
        "report.pdf",
        f"{pdf.NO_BROWSER}." if no_browser else "The same to print or to file.",
        partial(bundle.report_pdf, planned.alone, scenario, None, approvals, expected),
        disabled=no_browser,
        slow=key,
    )
    shown = st.expander("The same in Python and on the command line", key="area commands")
    with shown:
        st.markdown("**In Python**, beside the codebook and its file of areas")
        st.code(kept(python_script, planned, scenario), language="python", wrap_lines=True)
        st.markdown("**On the command line**, beside them and the records")
        commands = kept(command_lines, planned, scenario)
        st.code(commands, language="bash", wrap_lines=True)
        if not kept(make_command, planned, scenario):
            st.caption(
                "Options cannot say these tables: they take all tables up to some number of "
                "attributes on each level, with weights in the same proportions. Run the Python "
                "script instead."
            )
