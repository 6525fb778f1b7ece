"""What the report tells the board beside the plan: comments, open questions, and the decision."""

from dataclasses import replace
from typing import Any

import streamlit as st

from pages.components.shared.editors import revision
from pages.components.shared.session import attempt, bound, change, current, show_messages
from rpexplore.errors import WorkloadError
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.board_notes import SECTIONS, TEXT_LENGTH, BoardNotes

HERE = "board"


def board_notes_input(planned: Plan) -> None:
    """Comments, questions and decision, kept with the scenario and printed in its report."""
    notes = current().board
    shown = st.expander("Notes for the board", key="board notes", on_change="rerun")
    if not shown.open:
        return

    def decide(text: str) -> None:
        _change(decision=text, decided_on=planned.sha256)

    with shown:
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
