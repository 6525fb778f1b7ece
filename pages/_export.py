"""The export part of the Export and release page: everything one takes away with a plan."""

from collections.abc import Callable

import streamlit as st

from pages._found import found_warning
from pages._session import current, escaped, kept
from rpexplore.analysis.provenance import except_found
from rpexplore.analysis.standard_errors import csv_of_tables
from rpexplore.export import bundle, pdf
from rpexplore.plan import Plan


def export_section(planned: Plan) -> None:
    """One button for all of it, and one for each piece. All are made when they are asked for."""
    scenario, domain = current(), planned.workload.domain
    st.subheader("Take the plan with you")
    st.markdown(
        "Everything that somebody else needs to check the plan, to approve it, and to run it where "
        f"the records are. Nothing of it was made from records{escaped(except_found(domain))}."
    )
    found_warning(domain)
    st.download_button(
        "Download everything (.zip)",
        lambda: bundle.bundle(planned, scenario),
        bundle.FILENAME,
        "application/zip",
        type="primary",
        icon=":material/folder_zip:",
        on_click="ignore",
    )
    st.caption(
        "Holds report.html, plan.json, tables.csv, plan.py, codebook.json, the scenario as a file "
        "this app can open, and commands.txt."
    )
    missing = pdf.what_is_missing()
    left, middle, right = st.columns(3)
    with left:
        _piece(
            "report.html",
            "The report for whoever has to approve the plan: what it promises and to whom, how "
            "accurate each table is, who is worst off, what is proven, and what is left to do. One "
            "file for a browser; it needs no network.",
            lambda: bundle.report_of(planned, scenario),
            "text/html",
        )
        _piece(
            "report.pdf",
            f"The same to print or to file. {missing}{'.' if missing else ''}",
            lambda: pdf.pdf(bundle.contents_of(planned, scenario)),
            "application/pdf",
            disabled=bool(missing),
        )
    with middle:
        _piece(
            "plan.json",
            "The plan itself: all that a release needs. “rpexplore verify plan.json” checks it, "
            "“rpexplore release” runs it.",
            lambda: planned.text,
            "application/json",
        )
        _piece(
            "tables.csv",
            "Every table with its cells, standard error, importance and target.",
            lambda: csv_of_tables(planned),
            "text/csv",
        )
    with right:
        _piece(
            "plan.py",
            "A Python script that makes the plan again, checks that it is this one, and can run "
            "the release.",
            lambda: bundle.script_of(planned, scenario),
            "text/x-python",
        )
        _piece(
            "codebook.json",
            "The attributes and their values, for the command line.",
            lambda: domain.text("codebook.json"),
            "application/json",
        )
    shown = st.expander("The same from the command line", key="commands", on_change="rerun")
    if shown.open:
        with shown:
            st.caption("In a folder with the files from the button above.")
            commands = kept(
                "commands", (planned, scenario), lambda: bundle.commands_of(planned, scenario)
            )
            st.code(commands, language="bash", wrap_lines=True)


def _piece(
    name: str, what_for: str, make: Callable[[], str | bytes], kind: str, *, disabled: bool = False
) -> None:
    st.download_button(f"Download {name}", make, name, kind, on_click="ignore", disabled=disabled)
    st.caption(what_for)
