"""The bundle: all pieces in one file, agreeing with each other, the same every time."""

import io
import os
import re
import subprocess
import sys
import zipfile
from functools import cache, partial
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.processes import in_other_process
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.bundle import bundle
from rpexplore.reports.recipe import custom_basis_files
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_text import workload_from_csv
from tests.reports.reports import plan_of
from tests.reports.scenarios import SCENARIOS

nightly = partial(pytest.param, marks=pytest.mark.nightly)

NAMES = [
    "plan.json",
    "report.html",
    "tables.csv",
    "codebook.json",
    "plan.py",
    "scenario.json",
    "commands.txt",
]


@pytest.fixture(autouse=True)
def few_populations():
    """As many as a command draws: what it writes is compared."""


@cache
def bundle_of(name: str) -> bytes:
    return bundle(plan_of(name), SCENARIOS[name])


def unpacked(name: str) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(bundle_of(name))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.parametrize(
    "name", [*map(nightly, ("groups", "hostile", "own")), "long list with bases"]
)
def test_every_piece_belongs_to_the_same_plan(name):
    scenario = SCENARIOS[name]
    files = unpacked(name)
    basis_files = [name for name, _ in custom_basis_files(scenario.workload).values()]
    of_the_report = (
        [] if scenario.board.is_empty else ["expected.csv", "public-1.csv", "board.json"]
    )
    assert list(files) == [*NAMES, *of_the_report, *basis_files]
    plan = TablePlan.parse(files["plan.json"])
    assert plan.text == plan_of(name).text
    assert rp.verify(plan).holds
    domain = rp.Domain.parse(files["codebook.json"], "codebook.json")
    assert domain == plan.workload.domain
    read = workload_from_csv(domain, files["tables.csv"], "tables.csv")
    assert read.tables == plan.workload.tables
    assert Scenario.parse(files["scenario.json"]).table_plan().sha256 == plan.sha256
    for name in ("plan.py", "report.html", "commands.txt"):
        assert plan.sha256 in files[name]
    for name in files:
        assert f"#   {name} " in files["commands.txt"]


@pytest.mark.nightly
def test_it_is_the_same_to_the_byte_every_time_and_in_another_process():
    scenario, first = SCENARIOS["own"], bundle_of("own")
    read = Scenario.parse(scenario.text())
    assert in_other_process(bundle, read.table_plan(), read) == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


# By day test_parts_bundle.py runs such commands, in this process.
@pytest.mark.nightly
@pytest.mark.parametrize("name", [nightly("hostile"), "hostile basis_choices"])
def test_all_of_it_works_where_it_is_unpacked(name, tmp_path):
    for file, text in unpacked(name).items():
        (tmp_path / file).write_bytes(text.encode())
    # As a whole, commands.txt is a shell script that ends at the records it has no path of.
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    # What linear algebra is told to use decides last digits.
    environment |= {name: value for name, value in os.environ.items() if "OPENBLAS" in name}
    run = subprocess.run(
        ["sh", "-eu", "commands.txt"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "There are no records at 'PATH/TO/records.csv'" in run.stderr
    assert (tmp_path / "made.json").read_bytes() == (tmp_path / "plan.json").read_bytes()
    assert (tmp_path / "made.html").read_bytes() == (tmp_path / "report.html").read_bytes()


def test_nothing_of_this_machine_is_in_it():
    files = unpacked("own")
    for name, text in files.items():
        if name != "report.html":  # it holds plotly.js; see test_report
            assert str(Path.home()) not in text
            assert str(Path.cwd()) not in text
            assert not re.search(r"\b20[2-9]\d-\d\d-\d\d\b", text)
