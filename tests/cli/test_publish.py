"""`rpexplore publish` on the command line."""

import re
from pathlib import Path

import frictionless
import pytest

from rpexplore.cli.publish import Formats
from rpexplore.results.formats.publishing import FORMATS


@pytest.mark.nightly
def test_a_release_is_exported_with_what_only_people_know(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "out", "--yes")
    said = planned.json("publish", "out", "--out", "export", "--title", "Atlas", "--publisher", "X")
    assert said["formats"] == ["frictionless"]
    assert {"README.md", "datapackage.json", "tables/0006_sex_region.csv"} <= {*said["files"]}
    package = frictionless.Package("export/datapackage.json")
    assert (package.title, package.contributors[0]["title"]) == ("Atlas", "X")
    formats = [option for name in FORMATS for option in ("--format", name)]
    text = planned.done("publish", "out", "--out", "all", *formats)
    assert all(f"{format.title}: " in text for format in FORMATS.values())
    assert "There is no format" in planned.refused("publish", "out", "--out", "x", "--format", "y")
    planned.done("publish", "out", "--out", "seite", "--format", "html", "--language", "de")
    assert "Fehlerspanne" in Path("seite/tables.html").read_text("utf-8")
    assert "in English only" in planned.refused("publish", "out", "--out", "x", "--language", "de")
    assert not Path("x").exists()


def test_help_names_every_format():
    (option,) = Formats.__metadata__
    assert all(re.search(rf"\b{name}\b", option.help) for name in FORMATS)
