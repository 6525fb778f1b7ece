"""Values that were taken from the records: every document that speaks of records names them."""

import io
import runpy
import zipfile

import pytest

import rpexplore as rp
from rpexplore.domain.domain import FOUND_IN_RECORDS
from rpexplore.reports.bundle import bundle, contents_of
from rpexplore.reports.report import html
from rpexplore.reports.script import command_lines, python_script
from rpexplore.reports.section import Beside, Checklist
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.reports.scenarios import SCENARIOS

BUT = ", except the values of {}, which were taken from the records and are not protected"
# A name that would end a comment, a docstring, or a replacement field.
ODD = 'x""" {but}\u2028import os'


def scenario_with(*from_records: str) -> Scenario:
    values = rp.Categories(("F", "M"))
    taken = [rp.Attribute(name, values, FOUND_IN_RECORDS) for name in from_records]
    domain = rp.Domain((rp.Attribute("age", rp.Integers(0, 9)), *taken))
    return Scenario(domain, WorkloadRequest(order=1))


def texts(scenario: Scenario) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(bundle(scenario.table_plan(), scenario))) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_every_document_names_them():
    scenario = scenario_with("sex")
    files, but = texts(scenario), BUT.format("sex")
    assert f"Made without looking at any record{but}." in files["report.html"]
    assert f"before the records are read{but}." in files["report.html"]
    assert f"was done without the records{but}." in files["report.html"]
    assert "Taken from the records were the values of sex." in files["report.html"]
    assert f"# Nothing here was made from records{but}." in files["commands.txt"]
    assert f"# Nothing here was made from records{but}." in files["plan.py"]
    assert "public knowledge but for those named above." in files["plan.py"]
    assert FOUND_IN_RECORDS in files["codebook.json"]
    assert FOUND_IN_RECORDS in files["plan.json"]


def test_the_label_does_not_cover_them_and_the_checklist_asks():
    made = contents_of(scenario_with("sex").table_plan(), scenario_with("sex"))
    lists = made.label.parts[-1]
    assert isinstance(lists, Beside)
    (left_out,) = (each.sentences for each in lists.lists if each.title == "Not covered")
    assert left_out[0].startswith("That the values of sex are listed: they were taken from")
    (points,) = (
        part.rows for each in made.sections for part in each.parts if isinstance(part, Checklist)
    )
    (todo,) = (row[2] for row in points if row[0] == "Choices that depend on data")
    assert todo.startswith("Take the values of sex from a public list instead")


@pytest.mark.by_day(1)
@pytest.mark.parametrize("scenario", [scenario_with(), SCENARIOS["hostile"]], ids=["plain", "odd"])
def test_without_any_nothing_is_taken_back(scenario):
    files = texts(scenario)
    assert "Made without looking at any record." in files["report.html"]
    assert "# Nothing here was made from records." in files["commands.txt"]
    assert "which are public knowledge." in files["plan.py"]
    assert "taken from the records and" not in "".join(files.values())


def test_odd_names_end_no_comment_and_no_docstring(tmp_path):
    scenario = scenario_with(ODD)
    plan = scenario.table_plan()
    script = python_script(plan, scenario)
    (tmp_path / "plan.py").write_text(script, encoding="utf-8")
    made = runpy.run_path(str(tmp_path / "plan.py"), run_name="exported")
    assert made["plan"]().text == plan.text
    commands = texts(scenario)["commands.txt"].removesuffix(command_lines(plan, scenario))
    assert all(line.startswith("#") or not line for line in commands.splitlines())
    assert ODD not in html(contents_of(plan, scenario)).split("<body")[0]
