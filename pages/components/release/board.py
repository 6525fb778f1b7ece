"""What the report tells the board beside the plan: comments, open questions, and the decision."""

from dataclasses import replace
from typing import Any

import streamlit as st

from pages.components.shared.session import bound, change, current, show_messages
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.board_notes import SECTIONS, TEXT_LENGTH

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
        st.text_area(
            "Open questions, one a line",
            **bound(
                "open questions",
                "\n".join(notes.questions),
                lambda text: _change(questions=tuple(text.split("\n"))),
            ),
        )
        st.text_area(
            "Decision",
            max_chars=TEXT_LENGTH,
            help="Kept with the plan that it is on. If the plan changes later, the report says "
            "that the decision is on another one.",
            **bound("decision", notes.decision, decide),
        )
        st.text_area(
            "Decided by: name, role and date, one a line",
            placeholder="A. Miller, chair, 2026-11-20",
            **bound(
                "decided by",
                "\n".join(notes.decided_by),
                lambda text: _change(decided_by=tuple(text.split("\n"))),
            ),
        )
        show_messages(HERE)


def _change(**fields: Any) -> None:
    change(HERE, lambda: current().replaced(board=replace(current().board, **fields)))
