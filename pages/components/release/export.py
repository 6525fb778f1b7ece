"""Everything one takes away with a plan: files, notes for the board, and commands."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from pages.components.plan.results import last_rehearsal
from pages.components.release.form import given_approvals
from pages.components.shared.background import worked_out
from pages.components.shared.charts import folded
from pages.components.shared.expected_counts import known_area_totals
from pages.components.shared.files import Content, download
from pages.components.shared.inputs import revision
from pages.components.shared.session import (
    attempt,
    bound,
    change,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.texts import values_from_records_warning
from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.analysis.published_lines import expected_of_plan
from rpexplore.common.processes import Progress, in_other_process
from rpexplore.domain.domain import except_from_records
from rpexplore.errors import WorkloadError
from rpexplore.planning.plan import Plan
from rpexplore.reports import bundle, report
from rpexplore.reports.script import parts_with_accuracy, python_script, run_commands
from rpexplore.results.estimates.area_guess_errors import guess_errors_of
from rpexplore.scenarios.board_notes import SECTIONS, TEXT_LENGTH, BoardNotes
from rpexplore.scenarios.scenario import Scenario

# ---- Everything one takes away with a plan, from the page where it leaves the app.


MANY = 10_000  # tables, whose report takes seconds


def take_along(planned: Plan) -> None:
    """The notes for the board, which are on tables of known accuracy, and all files of a plan."""
    if planned.part("tables") is not None:
        folded("Notes for the board", "board notes", partial(board_notes_input, planned))
    export_section(planned, current())


def export_section(planned: Plan, scenario: Scenario) -> None:
    """One button for all of it, and one for each piece. All are made on demand."""
    domain = planned.domain
    st.subheader("Export the plan")
    st.markdown(
        "For those who approve, check or run it. Nothing of it was made from records"
        f"{escaped(except_from_records(domain))}."
    )
    values_from_records_warning(domain)
    rehearsal = last_rehearsal(planned, scenario.expected)
    rehearsed = ", and what the simulation of smooth tables found" if rehearsal else ""
    approvals = given_approvals(planned)
    areas = planned.part("areas")
    totals = None if areas is None else known_area_totals(areas, scenario)
    known = None if totals is None else totals.totals
    expected = expected_of_plan(planned, scenario, totals)
    guesses = kept(guess_errors_of, planned, expected, scenario.cv_limit, known)
    key = (planned, scenario, rehearsal, approvals, expected, totals)
    contents = (*key[:-1], guesses, totals)
    slow = key if planned.n_items > MANY else None
    piece(
        bundle.FILENAME,
        "Report, plan and single files, as below but without the PDF; the scenario as a file that "
        "this app can open; and commands.txt.",
        partial(bundle.bundle, *contents),
        label="Download plan and report (.zip)",
        slow=slow,
    )
    piece(
        "report.html",
        "For the board that approves the plan: what is promised to whom, how accurate "
        f"{parts_with_accuracy(planned)} is, what is proven, what is left to do{rehearsed}.",
        partial(bundle.report_as, report.html, *contents),
        slow=slow,
    )
    no_browser = report.find_browser() is None
    piece(
        "report.pdf",
        f"{report.NO_BROWSER}." if no_browser else "The same to print or to file.",
        partial(bundle.report_as, report.pdf, *contents),
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
            else f"How accurate {parts_with_accuracy(planned)} is.",
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

    def command_lines() -> None:
        st.caption("In a folder with the files from the button above.")
        st.code(bundle.commands_of(*key), language="bash", wrap_lines=True)

    folded("The same from the command line", "commands", command_lines)


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
    request = {f"requested {name}": key}
    if st.session_state.get(f"requested {name}") != key:
        update = st.session_state.update
        st.button(f"Make {name}", on_click=update, args=(request,), disabled=disabled)
        return None
    return worked_out(_make, name, make, slot=name, by=key)


def _make(name: str, make: Callable[[], Content], on_progress: Progress) -> Content:
    return in_other_process(make, doing=f"Making {name}", on_progress=on_progress)


# ---- What the report tells the board beside the plan: comments, open questions, and the decision.


HERE = "board"


def board_notes_input(planned: Plan) -> None:
    """Comments, questions and decision, kept with the scenario and printed in its report."""
    notes = current().board

    def decide(text: str) -> None:
        _change(decision=text, decided_on=planned.sha256)

    st.caption(
        "Printed in the report and saved with the scenario. The report has lines to fill in by "
        "hand for a decision and names that are left empty."
    )
    heading = st.selectbox(
        "Section to comment on",
        SECTIONS,
        key="commented section",
        persist_state="session",
        format_func=lambda name: f"{name} ✓" if notes.comment(name) else name,
    )
    st.text_area(
        f"Comment on {heading}",
        max_chars=TEXT_LENGTH,
        **bound(
            f"comment on {heading}",
            notes.comment(heading),
            lambda text: _change(comments=notes.with_comment(heading, text).comments),
        ),
    )
    _lines_input("Open questions, one a line", "questions", notes)
    st.text_area(
        "Decision",
        max_chars=TEXT_LENGTH,
        help="Kept with the plan that it is on. If the plan changes later, the report says "
        "that the decision is on another one.",
        **bound("decision", notes.decision, decide),
    )
    _lines_input(
        "Decided by: name, role and date, one a line",
        "decided_by",
        notes,
        placeholder="A. Miller, chair, 2026-11-20",
    )
    show_messages(HERE)


def _lines_input(label: str, field: str, notes: BoardNotes, placeholder: str = "") -> None:
    """A field of lines; refused ones stay to be mended, with the reason, until an undo."""
    refused = f"{revision(HERE)} refused {field}"

    def with_lines(text: str) -> BoardNotes:
        return replace(current().board, **{field: tuple(text.split("\n"))})

    def take(text: str) -> None:
        try:
            changed = with_lines(text)
        except WorkloadError:
            st.session_state[refused] = text
        else:
            st.session_state.pop(refused, None)
            change(HERE, lambda: current().replaced(board=changed))

    text = st.session_state.get(refused)
    shown = "\n".join(getattr(notes, field)) if text is None else text
    st.text_area(label, placeholder=placeholder, **bound(field.replace("_", " "), shown, take))
    if text is not None:
        attempt(lambda: with_lines(text), "Not saved yet. ")


def _change(**fields: Any) -> None:
    change(HERE, lambda: current().replaced(board=replace(current().board, **fields)))


# ---- What runs a plan where the records are.


def commands(planned: Plan) -> None:
    """The plan in a sentence, and the commands that check and run it beside the records."""
    st.subheader("Run it where the records are")
    st.markdown(
        escaped(
            f"The plan: {planned.full_contents}, {planned.amount_text} for "
            f"{planned.budget.full_unit}. It is run once, by those who keep the records, on their "
            "own computer: no records come to this server."
        )
    )
    st.code(run_commands(planned), language="bash", wrap_lines=True)
    if [part.kind for part in planned.parts] == ["tables"]:
        st.caption(
            "Or in their own app (“rpexplore app”): the plan file is dropped on the page Data, "
            "and run on the page Release."
        )
    st.markdown(f"SHA-256 of the plan, by which they know that it is this one: `{planned.sha256}`")
