"""The bundles of own counts, of adaptive plans and of plans of several parts."""

import io
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.export.bundle import bundle
from rpexplore.export.reproduction.command_line import make_command
from rpexplore.export.reproduction.script import python_script
from rpexplore.planning.planner import plan_tables
from rpexplore.queries.definitions import stated_from_text
from rpexplore.scenarios.scenario import Scenario
from tests.cli.program import Program

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 3})
STATED = stated_from_text(
    rp.Domain(tuple(DOMAIN[name] for name in ("age", "sex"))),
    "everybody: total ± 10\nwomen: sex = 1 @ 2 % of 500\nold men: age >= 8 & sex = 0 @ 3",
)
BUDGET = rp.Budget(rho="0.02", max_records_per_person=2)
WEIGHTED = rp.QueryList(STATED.queries.domain, np.arange(20.0)[None], ("sum",), np.array([12.5]))


@pytest.fixture
def run(tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path)


def counts(queries: rp.QueryList = STATED.queries) -> rp.QueryPlan:
    return rp.query_plan(queries, budget=BUDGET)


def adaptive() -> rp.AdaptivePlan:
    tables = rp.Workload.all_of_order(DOMAIN, 3)
    return rp.adaptive_plan(tables, budget=BUDGET, expected_records=1000)


@pytest.mark.parametrize(
    ("plan", "files"),
    [
        (counts(), {"queries.csv"}),
        (counts(WEIGHTED), {"queries.csv"}),
        (adaptive(), {"tables.csv"}),
    ],
)
def test_all_of_it_makes_the_plan_again(plan: Any, files, run):
    scenario = Scenario(DOMAIN, budget=BUDGET, name="Ours", query_list=STATED)
    with zipfile.ZipFile(io.BytesIO(bundle(plan, scenario))) as archive:
        archive.extractall(".")
        names = {*archive.namelist()}
    assert names == files | {
        "plan.json", "report.html", "codebook.json", "plan.py", "scenario.json", "commands.txt",
    }  # fmt: skip
    lines = Path("commands.txt").read_text("utf-8")
    assert all(f"#   {name} " in lines for name in names)
    run.done("verify", "plan.json")
    script = [sys.executable, "plan.py", "--save", "again.json"]
    assert subprocess.run(script, check=False).returncode == 0
    assert Path("again.json").read_bytes() == Path("plan.json").read_bytes()
    command = shlex.split(make_command(plan, scenario).replace("\\\n", ""))
    run.done(*command[1:])
    assert Path("made.json").read_bytes() == Path("plan.json").read_bytes()
    report = next(line for line in lines.splitlines() if line.startswith("rpexplore report"))
    run.done(*shlex.split(report)[1:])
    assert Path("made.html").read_bytes() == Path("report.html").read_bytes()


def test_a_script_asks_for_several_parts_at_once():
    tables = plan_tables(
        rp.Workload.all_up_to(DOMAIN, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1")
    )

    class Both:
        """What scripts ask of a plan of several parts."""

        parts = (tables, counts())
        budget, rho, domain = rp.Budget(rho="0.12"), tables.rho, DOMAIN
        sha256, version = "0" * 64, "1"

    plan: Any = Both()
    scenario = Scenario(DOMAIN, budget=plan.budget)
    script = python_script(plan, scenario)
    compile(script, "plan.py", "exec")
    assert (
        "    return rp.plan(\n        rp.Request(\n            tables=workload(domain()),\n"
        in script
    )
    assert "            counts=counts(),\n" in script
    assert '            budget=rp.Budget(rho="0.12"),\n' in script
    assert script.count("def domain()") == script.count("def counts()") == 1
    assert make_command(plan, scenario) == ""  # the script makes it
