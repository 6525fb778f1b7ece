"""The command line: help, one-line errors, what it writes to a terminal, Ctrl-C."""

import io
import json
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from rpexplore.cli import console
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError, RpexploreError
from rpexplore.releases.ledger.ledger import Ledger
from tests.cli.program import BUDGET, started
from tests.support.processor_time import PATIENCE


def test_version_and_help(run):
    assert re.fullmatch(r"rpexplore \d+\.\d+\.\d+\S*\n", run.done("--version"))
    overview = run.done()
    assert overview == run.done("--help")
    verbs = ["schema", "plan", "show", "verify", "report", "release", "answer", "ledger", "app"]
    verbs += [
        "rewrite",
        "compare",
        "simulate",
        "counts",
        "combine",
        "postprocess",
        "publish",
        "registry",
        "workbook",
    ]
    # No summary of a verb is cut off.
    assert [re.search(rf"^  {verb} .*\.$", overview, re.MULTILINE) is None for verb in verbs] == [
        False
    ] * len(verbs)
    assert "..." not in overview.partition("Commands:")[2]
    budget = " ".join(run.done("plan", "--help").split())
    assert budget.count("Smaller = more private, less accurate.") == 5


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["plann"], "No such command 'plann'"),
        (["--verbose"], "see rpexplore --help."),
        (
            ["release", "p.json", "d.csv", "--where", "x"],
            "rpexplore release has no option '--where', but rpexplore plan has it; see",
        ),
        (["show"], "see rpexplore show --help."),
        (["show", "none.json"], "'none.json' cannot be read"),
        (["show", "codebook.csv"], "codebook.csv is not a plan file"),
        (["verify", "codebook.csv"], "is not a plan file"),
        (["release", "none.json", "records.csv", "--out", "o"], "'none.json' cannot be read"),
        (["schema", "records.csv"], "must have a header"),
        (["app", "--port", "0"], "see rpexplore app --help."),
    ],
)
def test_errors_are_one_line(run, arguments, refusal):
    assert refusal in run.refused(*arguments)
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    if "app" not in arguments:
        assert result.stderr == ""
    assert json.loads(result.stdout).keys() == {"error"}


def test_unexpected_errors_say_where_but_not_what(run, monkeypatch):
    def broken(*_):
        raise KeyError("a value from the records")

    monkeypatch.setattr(Domain, "load", broken)
    refusal = run.refused("schema", "codebook.csv")
    assert "This is a bug in rpexplore (KeyError in test_console.py, line" in refusal
    assert "a value" not in refusal
    monkeypatch.setenv("RPEXPLORE_DEBUG", "1")
    assert "Traceback" in run("schema", "codebook.csv").stderr


def test_errors_of_the_machine_are_in_plain_words(run, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("rpexplore.planning.request.optimum", lambda *_, **__: full())
    arguments = ["plan", "codebook.csv", "--up-to", "1", *BUDGET, "--out", "plan.json"]
    assert "not enough memory" in run.refused(*arguments)
    assert run.files() == {"codebook.csv", "records.csv"}


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file.csv"
    path.write_text("before", "utf-8")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RpexploreError, match="No space left"):
        console.write_new(path, "after", force=True)
    assert [p.read_text("utf-8") for p in tmp_path.iterdir()] == ["before"]


def test_messages_cannot_steer_the_terminal():
    error = DataError("It is so.", private="a\nb\x1b[2J\u202e")
    assert console.one_line(error.on_screen()) == "It is so. a b�[2J�"


def test_text_survives_a_terminal_without_greek(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    console.say("ρ = 1")
    assert written.getvalue() == b"? = 1\n"


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for screen, expected in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", screen)
        with console.progress("Planning") as on_progress:
            on_progress("Measuring", 0.5)
            end = time.monotonic() + PATIENCE
            while expected and "Measuring" not in screen.getvalue():
                assert time.monotonic() < end
                time.sleep(0.01)
        assert ("Measuring 50%" in screen.getvalue()) is expected
        assert bool(screen.getvalue()) is expected


# Replaces a function by one that says it is reached, and takes long.
ENDLESS = """
import sys, time
import {module} as module
def endless(*arguments, **options):
    print("reached", flush=True)
    time.sleep(7200)
module.{function} = endless
"""


@pytest.mark.parametrize(
    ("while_planning", "when_booked"),
    [
        (signal.SIGHUP, signal.SIGINT),
        pytest.param(signal.SIGINT, signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, signal.SIGHUP, marks=pytest.mark.nightly),
    ],
)
def test_a_signal_leaves_nothing_behind(while_planning, when_booked, planned):
    """Two real programs are stopped, one while it plans, one after it has booked its run."""
    before = planned.files()
    arguments = ["plan", "codebook.csv", "--up-to", "1", *BUDGET, "--out", "other.json"]
    planning = started(
        *arguments, patch=ENDLESS.format(module="rpexplore.planning.planner", function="optimum")
    )
    measuring = started(
        *("release", "plan.json", "records.csv", "--out", "out", "--json"),
        patch=ENDLESS.format(module="rpexplore.releases.release", function="write_measured"),
    )
    for process, number in ((planning, while_planning), (measuring, when_booked)):
        assert process.stdout is not None
        assert process.stdout.readline() == "reached\n"
        process.send_signal(number)
    stdout, stderr = planning.communicate(timeout=PATIENCE)
    assert (stdout, stderr) == ("", "Stopped. Nothing was left half-written.\n")
    assert planning.returncode == 128 + while_planning
    stdout, stderr = measuring.communicate(timeout=PATIENCE)
    assert "ρ = 0.1 stays charged. Run it again" in json.loads(stdout)["error"]
    assert stderr == ""
    assert measuring.returncode == 128 + when_booked
    assert planned.files() == before | {"rpexplore-ledger.sqlite", ".out.unfinished"}
    (run,) = Ledger.beside("records.csv").account("records.csv").entries
    assert run.state == "started"


@pytest.mark.nightly
def test_a_hangup_that_is_ignored_stays_so(planned):
    ignore = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    hang_up = "import os\nimport rpexplore.cli.main as main\n"
    hang_up += "say = main.say\nmain.say = lambda text: (os.kill(os.getpid(), 1), say(text))\n"
    process = started("--version", patch=ignore + hang_up)
    assert process.communicate(timeout=PATIENCE)[1] == ""
    assert process.returncode == 0


@pytest.mark.nightly
def test_output_that_nobody_reads_is_no_error(planned):
    process = started("show", "plan.json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(20) == 141
