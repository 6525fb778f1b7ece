"""The line that shows that work goes on."""

import io
import sys
import time

import pytest

from rpexplore.cli import console
from rpexplore.cli.console import ProgressLine
from tests.support.processor_time import PATIENCE


@pytest.fixture(autouse=True)
def one_moment(monkeypatch):
    """Lines are drawn at once, and no time passes on them."""
    monkeypatch.setattr(console, "_PAUSE", 0.001)
    monkeypatch.setattr(console, "monotonic", lambda: 0.0)


def wait_for(screen: io.StringIO, text: str) -> None:
    end = time.monotonic() + PATIENCE
    while text not in screen.getvalue():
        assert time.monotonic() < end, screen.getvalue()
        time.sleep(0.01)


def test_it_is_drawn_over_itself_and_wiped_out(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with ProgressLine("Planning 1,000 tables") as line:
        wait_for(screen, "\rPlanning 1,000 tables 0:00")
        line.update("Searching", 0.254)
        wait_for(screen, f"\r{'Searching 25% 0:00':{len('Planning 1,000 tables 0:00')}}\r")
    *_, wiped, after = screen.getvalue().split("\r")
    assert not wiped.strip()
    assert len(wiped) == len("Searching 25% 0:00")
    assert after == ""


def test_it_stays_on_one_line_of_the_terminal(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "20")
    with ProgressLine("Planning " + "many " * 100 + "tables"):
        wait_for(screen, "\rPlanning many  0:00\r")
    assert max(map(len, screen.getvalue().split("\r"))) == 19


def test_a_terminal_that_was_closed_stops_nothing(monkeypatch):
    screen = io.StringIO()
    screen.close()
    monkeypatch.setattr(sys, "stderr", screen)
    with ProgressLine("Planning") as line:
        line.update("Searching", 0.5)
        time.sleep(0.02)
