"""The bundles of own counts, of adaptive plans and of plans of several parts."""

import io
import runpy
import shlex
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.adaptive import AdaptivePlan, adaptive_plan
from rpexplore.planning.counts import QueryPlan
from rpexplore.reports.bundle import bundle
from rpexplore.reports.script import make_command
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.query_definitions import stated_from_text
from tests.cli.program import Program
from tests.support.query_lists import query_plan

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 3})
STATED = stated_from_text(
    rp.Domain(tuple(DOMAIN[name] for name in ("age", "sex"))),
    "everybody: total ± 10\nwomen: sex = 1 @ 2 % of 500\nold men: age >= 8 & sex = 0 @ 3",
)
BUDGET = rp.Budget(rho="0.02", max_records_per_person=2)
ALL = rp.Workload.all_of_order(DOMAIN, 3)
WEIGHTED = rp.QueryList(STATED.queries.domain, np.arange(20.0)[None], ("sum",), np.array([12.5]))


@pytest.fixture
def run(tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path)


def counts(queries: rp.QueryList = STATED.queries) -> QueryPlan:
    return query_plan(queries, budget=BUDGET)


def with_free_counts() -> QueryPlan:
    return query_plan(STATED.queries, budget=BUDGET, objective="sum", free=("everybody",))


def adaptive() -> AdaptivePlan:
    return adaptive_plan(ALL, budget=BUDGET, expected_records=1000)


def together(rounds: rp.Rounds | None = None) -> rp.Plan:
    """Tables and own counts, split as is best; with adaptive tables in stated shares."""
    asked = rp.Request(
        tables=rp.Workload.all_up_to(DOMAIN, 2),
        counts=STATED.queries,
        rounds=rounds,
        budget=BUDGET,
        shares=None if rounds is None else {"tables": "1/2", "counts": "1/3", "rounds": "1/6"},
    )
    return rp.plan(asked)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("plan", "files"),
    [
        (counts(), {"own-counts.csv"}),
        (counts(WEIGHTED), {"own-counts.csv"}),
        (with_free_counts(), {"own-counts.csv"}),
        (adaptive(), {"tables.csv"}),
        (together(), {"tables.csv", "own-counts.csv"}),
        (together(rp.Rounds(ALL, 1000)), {"tables.csv", "own-counts.csv", "estimated_tables.csv"}),
    ],
)
def test_all_of_it_makes_the_plan_again(plan: Any, files, run, monkeypatch):
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
    monkeypatch.setattr(sys, "argv", ["plan.py", "--save", "again.json"])
    runpy.run_path("plan.py", run_name="__main__")
    assert Path("again.json").read_bytes() == Path("plan.json").read_bytes()
    command = shlex.split(make_command(plan, scenario).replace("\\\n", ""))
    if not command:  # no options say tables and adaptive ones at once
        command = ["rpexplore", "rewrite", "again.json", "--out", "made.json"]
        assert "\npython plan.py --save made.json\n" in lines
    run.done(*command[1:])
    assert Path("made.json").read_bytes() == Path("plan.json").read_bytes()
    report = next(line for line in lines.splitlines() if line.startswith("rpexplore report"))
    run.done(*shlex.split(report)[1:])
    assert Path("made.html").read_bytes() == Path("report.html").read_bytes()
