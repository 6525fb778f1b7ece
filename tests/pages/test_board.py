"""Notes for the board, typed on the Release page."""

from tests.pages.conftest import plain


def test_notes_for_the_board_are_kept_with_the_scenario_and_the_plan_they_are_on(app, small):
    session = app("release", small)
    assert not session.text_area  # folded
    session.unfold("board notes")
    session.selectbox(key="commented section").set_value("Targets").run()
    session.text_area(key="comment on Targets").set_value("As agreed.").run()
    session.text_area(key="open questions").set_value("Who reviews?\n\nWhen?").run()
    session.text_area(key="decided by").set_value("A. Miller, chair, 2026-11-20").run()
    session.text_area(key="decision").set_value("Approved.").run()
    notes = session.scenario.board
    assert notes.comments == (("Targets", "As agreed."),)
    assert notes.questions == ("Who reviews?", "When?")
    assert (notes.decision, notes.decided_on) == ("Approved.", session.planned.sha256)
    assert notes.decided_by == ("A. Miller, chair, 2026-11-20",)
    session.text_area(key="open questions").set_value("x" * 301).run()
    assert "can have 300 characters" in plain(session.texts("error"))
    assert session.scenario.board == notes
