"""What people add to a report for the board: printed in its section, and nothing but text."""

from dataclasses import replace
from functools import cache

import pytest

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.bundle import contents_of
from rpexplore.reports.report import html, report
from rpexplore.scenarios.board_notes import SECTIONS, BoardNotes
from rpexplore.scenarios.scenario import Scenario
from tests.reports.reports import Page, report_of

ATTACK = "</p><script>alert(1)</script><img src=x onerror=alert(2)>"


SMALL = Scenario(rp.Domain.from_sizes({"age": 3, "sex": 2}))


@cache
def small_plan() -> TablePlan:
    return SMALL.table_plan()


def page_with(notes: BoardNotes) -> Page:
    return Page(html(contents_of(small_plan(), SMALL.replaced(board=notes))))


@pytest.mark.nightly
def test_a_report_takes_the_notes_from_their_file(tmp_path):
    notes = BoardNotes((("Accuracy", "On accuracy."),))
    (tmp_path / "board.json").write_text(notes.text())
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2}), 1)
    plan = plan_tables(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    page = html(report(plan, board=tmp_path / "board.json"))
    assert page == html(report(plan, board=str(tmp_path / "board.json")))
    assert page == html(report(plan, board=notes)) != html(report(plan))


def section(page: Page, heading: str) -> str:
    (text,) = (text for _, text in page.all("section") if heading in text.strip().split("\n")[0])
    return text


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", ["groups", "prefix"])
def test_every_section_but_appendix_and_glossary_can_be_commented_on(name):
    made = report_of(name)
    headings = [made.label.heading, *(section.heading for section in made.sections)]
    assert set(headings) - set(SECTIONS) == {"Appendix: all values", "Glossary"}
    assert [heading for heading in SECTIONS if heading in headings] == headings[:-2]


def test_comments_are_printed_in_their_sections():
    notes = BoardNotes((("Privacy label", "On the label."), ("Accuracy", "On accuracy.")))
    page = page_with(notes.with_comment("Relative errors", "Of no section here."))
    assert "Comment: On accuracy." in section(page, "Accuracy")
    assert "On accuracy." not in section(page, "Fairness")
    assert "On the label." in section(page, "Comment on the privacy label")
    assert "Of no section here." in section(page, "Questions and decision")


def test_questions_and_decision_come_first_with_lines_for_what_is_open():
    page = page_with(BoardNotes(questions=("Who reviews?",)))
    text = section(page, "Questions and decision")
    assert "Who reviews?" in text
    by_hand = [attrs for attrs, _ in page.all("dd") if attrs.get("class") == "by-hand"]
    assert len(by_hand) == 4  # the decision, and three signatures
    by_hand = [row for row in report_of("groups").front[1].parts[0].rows if len(row) == 1]
    assert len(by_hand) == 5  # and open questions, where there are no notes


def test_a_decision_says_whether_it_is_on_this_plan():
    plan = small_plan()
    notes = BoardNotes(
        decision="Approved.", decided_on=plan.sha256, decided_by=("A. Miller, chair",)
    )
    text = page_with(notes).text
    assert "Approved. This is the plan that the decision is on." in text
    assert "Signature of A. Miller, chair" in text
    text = page_with(replace(notes, decided_on="0" * 64)).text
    assert "on another plan, with the SHA-256 0000000000000000…, not on the one of this" in text


def test_what_is_typed_is_text_and_nothing_else():
    notes = BoardNotes(
        tuple((heading, ATTACK) for heading in SECTIONS), (ATTACK,), ATTACK, "", (ATTACK,)
    )
    page = page_with(notes)
    assert page.text.count("onerror=alert(2)") == len(SECTIONS) + 3
    assert not page.all("img")
    assert not [text for _, text in page.all("script") if "alert(1)" in text]
