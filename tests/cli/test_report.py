"""The verb `rpexplore report`: what it writes, and what it refuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.reports import report
from rpexplore.reports.report import html
from rpexplore.reports.report import report as report_report
from rpexplore.results.rehearsal import rehearse_smooth_tables
from rpexplore.scenarios.board_notes import BoardNotes
from tests.reports.reports import Page
from tests.reports.scenarios import SCENARIOS
from tests.support.browser import needs_browser


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = SCENARIOS["up to"].table_plan()
    made.save("plan.json")
    return made


def run(*arguments: str):
    return CliRunner().invoke(cli, ["report", "plan.json", *arguments])


def test_html_is_the_report_of_the_app(plan):
    names = ("--survey", "Census", "--name", "A & B", "--note", "Two\nlines")
    done = run("--out", "report.html", *names, "--record-noun", "people")
    assert done.exit_code == 0, done.output
    assert done.stdout == "Written to report.html\n"
    wanted = html(
        report_report(plan, survey="Census", name="A & B", note="Two\nlines", record_noun="people")
    )
    assert Path("report.html").read_bytes() == wanted.encode()


@pytest.mark.nightly
def test_notes_for_the_board_and_expected_counts_are_in_it(plan):
    notes = BoardNotes(decision="Approved.", decided_on=plan.sha256[:12])
    Path("board.json").write_text(notes.with_comment("Targets", "As agreed.").text())
    (name, *_), first, last = plan.domain.names, "# source: the office\n", "# date: 2011\n"
    values = plan.domain.attributes[0].stored_values()
    for file, facts, count in (("new", first, 3), ("old", last, 2)):
        cells = [f"{value},{count if value == values[0] else 1}" for value in values]
        shares = "\n".join([f"{name},share", *cells])
        Path(f"{file}.csv").write_text(facts + shares)
    options = ("--board", "board.json", "--expected-count", "5000", "--cv-limit", "0.1")
    options += ("--public", "new.csv", "--public", "old.csv")
    done = run("--out", "report.html", *options)
    assert done.exit_code == 0, done.output
    text = Path("report.html").read_text("utf-8")
    for sentence in (
        "As agreed.",
        "This is the plan that the decision is on.",
        "at most 10 %;",
        "5,000 records are expected.",
        "the office",
        f"old.csv (2011) and new.csv contradict each other by {name}",
    ):
        assert sentence in text
    assert done.stderr == ""
    rehearsal = rehearse_smooth_tables(plan, rp.ExpectedCounts.of_total(5000))
    done = run("--out", "rehearsed.html", "--expected-count", "5000", "--simulate")
    assert done.exit_code == 0, done.output
    assert rehearsal.describe("records") in Page(Path("rehearsed.html").read_text("utf-8")).text
    done = run("--out", "other.html", "--simulate")
    assert "give --expected-count N or --expected FILE" in done.stderr
    Path("board.json").write_text('{"decision": "Approved.", "decided_on": "01234567"}')
    done = run("--out", "report.html", "--force", "--board", "board.json")
    assert "The decision is on another plan, with the SHA-256 01234567" in done.stderr
    Path("board.json").write_text('{"remarks": "x"}')
    done = run("--out", "other.html", "--board", "board.json")
    assert "'remarks'; they may have comments, questions, decision" in done.stderr


# By day tests/reports/test_pdf.py makes one.
@pytest.mark.nightly
@needs_browser
def test_pdf(plan):
    done = run("--out", "report.PDF", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "report": "report.PDF",
        "sha256": plan.sha256,
        "warning": None,
    }
    assert Path("report.PDF").read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize("name", ["report", "report.txt", "html"])
@pytest.mark.usefixtures("plan")
def test_other_endings_are_refused(name):
    done = run("--out", name)
    assert done.exit_code == 2
    assert done.stderr == f"error: A report must end in .html or .pdf, got '{name}'.\n"
    assert not Path(name).exists()


@pytest.mark.usefixtures("plan")
def test_what_is_there_is_kept_unless_forced():
    Path("report.html").write_text("mine")
    assert "exists already" in run("--out", "report.html").stderr
    assert Path("report.html").read_text() == "mine"
    assert run("--out", "report.html", "--force").exit_code == 0
    assert Path("report.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.usefixtures("plan")
def test_a_missing_browser_is_one_line_with_the_remedy(monkeypatch):
    monkeypatch.setattr(report, "find_browser", lambda: None)
    done = run("--out", "report.pdf")
    assert done.exit_code == 2
    assert done.stderr == f"error: {report.NO_BROWSER}.\n"
    assert not Path("report.pdf").exists()


def test_a_plan_that_was_changed_is_refused(plan):
    text = plan.text.replace('"privacy_cost":"0.2"', '"privacy_cost":"0.1"')
    assert text != plan.text
    Path("plan.json").write_text(text)
    done = run("--out", "report.html")
    assert done.exit_code == 2
    assert not Path("report.html").exists()
