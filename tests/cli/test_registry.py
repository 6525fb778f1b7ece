"""`rpexplore registry` on the command line: asks a person, names what is missing."""

from pathlib import Path

import pytest
import yaml

from rpexplore.cli import publish
from rpexplore.cli.publish import QUESTIONS
from rpexplore.results.formats.registry_entry import NEEDED, SECTORS

GIVEN = ("--name", "Atlas", "--curator", "X", "--curator", "Y", "--intended-use", "Planning")
MORE = ("--region", "Nowhere", "--sector", "Government", "--actors", "We", "--author", "Me")


@pytest.fixture
def released(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "out", "--yes")
    return planned


def test_what_is_missing_is_named_and_asked_for_on_a_terminal_only(released, monkeypatch):
    command = ("registry", "out", "--out", "entry.yaml", *GIVEN, *MORE)
    assert "only a person knows; give --justification." in released.refused(*command)
    assert not Path("entry.yaml").exists()
    monkeypatch.setattr(publish, "interactive", lambda: True)
    asked = released(*command, input="Board of May\n")
    assert asked.exit_code == 0
    assert "How were budget and tables chosen" in asked.stderr
    deployment = yaml.safe_load(Path("entry.yaml").read_text("utf-8"))["deployment"]
    assert deployment["basic"]["data_curators"] == ["X", "Y"]
    assert deployment["implementation"]["justification"].startswith("Board of May\n")
    assert "exists already" in released.refused(*command)


def test_questions_are_those_that_an_entry_needs():
    assert tuple(QUESTIONS) == NEEDED
    assert all(sector in QUESTIONS["sector"][1] for sector in SECTORS)
