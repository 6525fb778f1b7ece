"""Everything one takes away with a plan, from the page where it leaves the app."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.components.areas.usefulness import expected_in_areas
from pages.components.plan.smooth_rehearsal import last_rehearsal
from pages.components.release.board import board_notes_input
from pages.components.release.given_approvals import given_approvals
from pages.components.shared.background import worked_out
from pages.components.shared.codebook_notices import values_from_records_warning
from pages.components.shared.files import Content, download
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import joined
from rpexplore.common.other_process import in_other_process
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.provenance import except_from_records
from rpexplore.export import bundle
from rpexplore.export.report import pdf
from rpexplore.export.reproduction.command_line import command_lines
from rpexplore.export.reproduction.script import python_script
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.scenario import Scenario

MANY = 10_000  # tables, whose report takes seconds


def take_along(planned: Plan) -> None:
    """The notes for the board, which are on tables of known accuracy, and all files of a plan."""
    if planned.part("tables") is not None:
        board_notes_input(planned)
    export_section(planned, current())


def export_section(planned: Plan, scenario: Scenario) -> None:
    """One button for all of it, and one for each piece. All are made on demand."""
    domain = planned.domain
    st.subheader("Take the plan with you")
    st.markdown(
        "For those who approve, check or run it. Nothing of it was made from records"
        f"{escaped(except_from_records(domain))}."
    )
    values_from_records_warning(domain)
    rehearsal = last_rehearsal(planned, scenario.expected)
    rehearsed = ", and what the rehearsal of smooth tables found" if rehearsal else ""
    approvals = given_approvals(planned)
    areas = planned.part("areas")
    # Those of the areas count where the scenario has none of its own, or none that fit them.
    expected = scenario.expected
    if areas is not None and (expected is None or planned.part("tables") is None):
        expected = expected_in_areas(areas)
    key = (planned, scenario, rehearsal, approvals, expected)
    slow = key if planned.n_items > MANY else None
    piece(
        bundle.FILENAME,
        "Report, plan and single files, as below but without the PDF; the scenario as a file that "
        "this app can open; and commands.txt.",
        partial(bundle.bundle, planned, scenario, rehearsal, approvals, expected),
        label="Download plan and report (.zip)",
        slow=slow,
    )
    piece(
        "report.html",
        "For the board that approves the plan: what is promised to whom, how accurate "
        f"{_each(planned)} is, what is proven, what is left to do{rehearsed}.",
        partial(bundle.report_html, planned, scenario, rehearsal, approvals, expected),
        slow=slow,
    )
    no_browser = pdf.find_browser() is None
    piece(
        "report.pdf",
        f"{pdf.NO_BROWSER}." if no_browser else "The same to print or to file.",
        partial(bundle.report_pdf, planned, scenario, rehearsal, approvals, expected),
        disabled=no_browser,
        slow=key,
    )
    piece(
        "plan.json",
        "“rpexplore verify” checks it, “rpexplore release” runs it. "
        + (
            "All that a release needs."
            if areas is None
            else "Its areas are two Parquet files, which belong beside it: take the zip file above."
        ),
        lambda: planned.text,
    )
    with st.expander("Single files for programs"):
        only_tables = [part.kind for part in planned.parts] == ["tables"]
        piece(
            "tables.csv" if only_tables else "accuracy.csv",
            "Every table with its cells, standard error, weight and target."
            if only_tables
            else f"How accurate {_each(planned)} is.",
            lambda: (
                in_other_process(csv_of_accuracy, planned) if slow else csv_of_accuracy(planned)
            ),
        )
        piece(
            "plan.py",
            "A Python script that makes the plan again, checks that it is this one, and can run "
            "the release.",
            lambda: python_script(planned, scenario),
        )
        piece(
            "codebook.json",
            "The attributes and their values, for the command line.",
            lambda: domain.text("codebook.json"),
        )
    shown = st.expander("The same from the command line", key="commands", on_change="rerun")
    if shown.open:
        with shown:
            st.caption("In a folder with the files from the button above.")
            files = tuple(bundle.approval_files(approvals))
            commands = kept(_commands, planned, scenario, rehearsal is not None, files, expected)
            st.code(commands, language="bash", wrap_lines=True)


_EACH = {
    "tables": "each table",
    "areas": "each level and table in areas",
    "counts": "each own count",
    "rounds": "each adaptive table",
}


def _each(planned: Plan) -> str:
    """What of a plan has an accuracy of its own, in words."""
    return joined([_EACH[part.kind] for part in planned.parts])


def _commands(
    planned: Plan,
    scenario: Scenario,
    rehearsed: bool,
    files: tuple[str, ...],
    expected: ExpectedCounts | None,
) -> str:
    return command_lines(planned, scenario, rehearsed, files, expected=expected)


def piece(
    name: str,
    purpose: str,
    make: Callable[[], Content],
    *,
    label: str = "",
    disabled: bool = False,
    slow: tuple | None = None,
) -> None:
    """A button for one file; a slow one (its key is given) is made beforehand, in a process."""
    content = make if slow is None else _made(name, slow, make, disabled)
    if content is not None:
        look = {"type": "primary", "icon": ":material/folder_zip:"} if label else {}
        download(name, content, label, disabled=disabled, **look)
    st.caption(purpose)


def _made(name: str, key: tuple, make: Callable[[], Content], disabled: bool) -> Content | None:
    """What `make` returns, once its button was pressed; until then the button."""

    def request() -> None:
        st.session_state[f"requested {name}"] = key

    if st.session_state.get(f"requested {name}") != key:
        st.button(f"Make {name}", on_click=request, disabled=disabled)
        return None
    return worked_out(_make, name, make, slot=name, by=key)


def _make(name: str, make: Callable[[], Content], on_progress: Progress) -> Content:
    return in_other_process(make, doing=f"Making {name}", on_progress=on_progress)
