"""Notes for the board: kept with the scenario, in sections that reports have."""

import json
from dataclasses import replace

import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.board_notes import SECTIONS, BoardNotes
from rpexplore.scenarios.scenario import Scenario

NOTES = BoardNotes(
    (("Targets", "As agreed.\nIn May."), ("Accuracy", "Fine.")),
    ("Who keeps the ledger?", " ", "Who reviews?"),
    "Approved, provided that it is run once.",
    "0123456789abcdef",
    ("A. Miller, chair, 2026-11-20",),
)


def test_notes_are_saved_with_their_scenario_and_left_out_where_there_are_none():
    scenario = Scenario(rp.Domain.from_sizes({"age": 10}))
    assert "board" not in json.loads(scenario.text())
    noted = scenario.replaced(board=NOTES)
    assert noted != scenario
    assert Scenario.parse(noted.text()) == noted
    assert noted.replaced(board=BoardNotes()) == scenario


def test_comments_stand_in_the_order_of_the_report_and_empty_ones_go():
    assert [heading for heading, _ in NOTES.comments] == ["Accuracy", "Targets"]
    assert NOTES.questions == ("Who keeps the ledger?", "Who reviews?")
    assert NOTES.with_comment("Accuracy", " ").comments == (("Targets", "As agreed.\nIn May."),)
    assert replace(NOTES, decision="").decided_on == ""


def test_a_file_may_leave_out_what_is_empty(tmp_path):
    path = tmp_path / "board.json"
    path.write_text('{"decision": "No."}')
    assert BoardNotes.load(path) == BoardNotes(decision="No.")
    path.write_text(NOTES.text())
    assert BoardNotes.load(path) == NOTES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "of another kind"),
        ({"remarks": "x"}, "'remarks'"),
        ({"comments": {"Acuracy": "x"}}, "no section 'Acuracy'"),
        ({"comments": {SECTIONS[0]: "x" * 2001}}, "2,001; shorten"),
        ({"comments": ["x"]}, "of another kind"),
        ({"questions": "one"}, "questions must be a list"),
        ({"questions": [1]}, "must be a text"),
        ({"questions": ["?"] * 101}, "got 101"),
        ({"decision": None}, "decision must be a text"),
        ({"decision": "x", "decided_on": "yesterday"}, "SHA-256"),
        ({"decided_by": ["\ud800"]}, "UTF-8"),
    ],
)
def test_notes_that_cannot_be_used_are_refused_by_name(content, message):
    with pytest.raises(WorkloadError, match=message):
        BoardNotes.from_json(content)
