"""Notes for the board, typed on the Release page."""

import pytest

from tests.pages.conftest import plain


def test_notes_for_the_board_are_kept_with_the_scenario_and_the_plan_they_are_on(app, small):
    session = app("release", small)
    assert not session.text_area  # folded
    session.unfold("board notes")
    session.selectbox(key="commented section").set_value("Targets").run()
    session.text_area(key="comment on Targets").set_value("As agreed.").run()
    session.text_area(key="questions").set_value("Who reviews?\n\nWhen?").run()
    session.text_area(key="decided by").set_value("A. Miller, chair, 2026-11-20").run()
    session.text_area(key="decision").set_value("Approved.").run()
    notes = session.scenario.board
    assert notes.comments == (("Targets", "As agreed."),)
    assert notes.questions == ("Who reviews?", "When?")
    assert (notes.decision, notes.decided_on) == ("Approved.", session.planned.sha256)
    assert notes.decided_by == ("A. Miller, chair, 2026-11-20",)


@pytest.mark.nightly
def test_refused_lines_stay_to_be_mended(app, small):
    session = app("release", small)
    session.unfold("board notes")
    session.text_area(key="questions").set_value("Who reviews?").run()
    typed = "Who reviews?\nWhen?\n" + "x" * 301
    session.text_area(key="questions").set_value(typed).run()
    session.text_area(key="decision").set_value("Approved.").run()
    assert session.text_area(key="questions").value == typed
    assert "Not saved yet. A line for the board can have 300" in plain(session.texts("error"))
    assert session.scenario.board.questions == ("Who reviews?",)
    session.text_area(key="questions").set_value(typed[:-1]).run()
    assert session.scenario.board.questions == tuple(typed[:-1].split("\n"))
    assert not session.texts("error")
    session.text_area(key="decided by").set_value("x" * 301).run()
    session.button(key="Undo step").click().run()
    assert session.text_area(key="decided by").value == ""
    assert session.scenario.board.questions == ("Who reviews?",)
