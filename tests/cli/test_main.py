"""The command line: what each verb does, and its manners when something goes wrong."""

import hashlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import astuple
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from statistics import NormalDist

import pandas as pd
import pytest
from typer.testing import CliRunner

from rpexplore.cli import console as output
from rpexplore.cli import inputs
from rpexplore.cli.main import cli
from rpexplore.common import webapp_files as webapp_location
from rpexplore.data.batch_source import BatchSource
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError, RpexploreError
from rpexplore.planning import planner
from rpexplore.planning.losses.base import SumOfVariances
from rpexplore.planning.losses.p_norm import PNorm
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.measurement_file import write_measured
from rpexplore.releases.table_folder import Release
from rpexplore.workload.bases import CustomBasis, Prefix, Ranges
from rpexplore.workload.table_text import title
from rpexplore.workload.workload import Workload
from tests.support.plan_texts import laid_out, other_layouts

CODEBOOK = """attribute,value,label
age,young,
age,old,
sex,F,Female
sex,M,Male
region,R1,North
region,R2,South
region,R3,Elsewhere
"""
BUDGET = ("--loss", "sum", "--rho", "0.1")


class Program:
    """Runs verbs in this process, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, input: str | None = None):
        return CliRunner().invoke(cli, list(arguments), input=input)

    def done(self, *arguments: str) -> str:
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        return result.stdout

    def json(self, *arguments: str) -> dict:
        return json.loads(self.done(*arguments, "--json"))

    def refused(self, *arguments: str) -> str:
        """The message of an error, which is one line on standard error and nothing else."""
        result = self(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
        return result.stderr

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def run(tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    Path("codebook.csv").write_text(CODEBOOK, "utf-8")
    rows = [f"{('young', 'old')[i % 3 == 0]},{'FM'[i % 2]},R{i % 3 + 1}" for i in range(90)]
    Path("records.csv").write_text("\n".join(["age,sex,region", *rows]) + "\n", "utf-8")
    return Program(tmp_path)


@pytest.fixture
def planned(run) -> Program:
    run.done("plan", "codebook.csv", "--up-to", "2", *BUDGET, "--out", "plan.json")
    return run


# ---- the verbs


def test_schema_lists_attributes_and_cells(run):
    text = run.done("schema", "codebook.csv")
    assert re.search(r"^sex +categories +2 +Female, Male$", text, re.MULTILINE)
    assert "3 attributes; one table of all together would have 12 cells" in text
    facts = run.json("schema", "codebook.csv")
    assert [(a["name"], a["values"]) for a in facts["attributes"]] == [
        ("age", 2),
        ("sex", 2),
        ("region", 3),
    ]


def test_schema_tells_when_there_are_more_values_than_shown(run):
    Domain.from_sizes({"age": 5, "sex": 4, **dict.fromkeys("abcdefgh", 100)}).save("big.json")
    text = run.done("schema", "big.json")
    assert re.search(r"age +whole numbers +5 +0, 1, 2, 3, …$", text, re.MULTILINE)
    assert re.search(r"sex +whole numbers +4 +0, 1, 2, 3$", text, re.MULTILINE)
    assert "about 10^17 cells" in text


def test_schema_converts_and_overwrites_only_by_force(run):
    run.done("schema", "codebook.csv", "--out", "codebook.json")
    assert Domain.load("codebook.json").names == ("age", "sex", "region")
    Path("codebook.json").write_text("precious", "utf-8")
    assert "exists already" in run.refused("schema", "codebook.csv", "--out", "codebook.json")
    assert Path("codebook.json").read_text("utf-8") == "precious"
    run.done("schema", "codebook.csv", "--out", "codebook.json", "--force")
    assert Domain.load("codebook.json") == Domain.load("codebook.csv")
    run.refused("schema", "codebook.csv", "--out", "codebook.txt")
    assert "no folder" in run.refused("schema", "codebook.csv", "--out", "none/codebook.json")


def test_plan_is_saved_and_summed_up(run):
    text = run.done("plan", "codebook.csv", "--up-to", "2", *BUDGET, "--out", "plan.json")
    plan = Plan.load("plan.json")
    assert str(plan) in text
    assert "Saved to plan.json" in text
    assert f"SHA-256 {plan.sha256}" in text
    assert len(plan.workload) == 7


def test_plan_unites_tables_given_in_several_ways(run):
    Path("list.csv").write_text("attributes,weight,target\ntotal,2,9\nage × sex,3,\n", "utf-8")
    ways = ["--tables", "list.csv", "--of-order", "1", "--table", "sex,region"]
    more = ["--weight", "region,sex=1.5", "--target", "sex=12", "--weight", "total=4"]
    run.done("plan", "codebook.csv", *ways, *more, *BUDGET, "--out", "plan.json")
    workload = Plan.load("plan.json").workload
    names = [(), ("age",), ("sex",), ("region",), ("age", "sex"), ("sex", "region")]
    assert workload.tables == names
    assert workload.weights.tolist() == [4, 1, 1, 1, 3, 1.5]
    assert {index: t for index, t in enumerate(workload.targets) if t == t} == {0: 9, 2: 12}


def test_plan_takes_targets_in_any_unit(run):
    Path("list.csv").write_text("attributes,target,required\ntotal,+-60,yes\n", "utf-8")
    targets = ["--target", "age=±50 at 99 % required", "--target", "age,sex=5 % of 1,000"]
    ways = ["--tables", "list.csv", "--of-order", "1", "--table", "age,sex"]
    run.done("plan", "codebook.csv", *ways, *targets, *BUDGET, "--out", "plan.json")
    wanted = Plan.load("plan.json").workload.targets
    quantile = NormalDist().inv_cdf
    assert wanted[:2].tolist() == pytest.approx([60 / quantile(0.975), 50 / quantile(0.995)])
    assert wanted[-1] == 50


def test_targets_may_be_required(run):
    Path("list.csv").write_text("attributes,target,required\ntotal,+-60,yes\nage,5,\n", "utf-8")
    workload = inputs.workload_from_options(
        Domain.load("codebook.csv"),
        up_to=None,
        of_order=[],
        at_most_cells=None,
        table=["sex"],
        tables=Path("list.csv"),
        weight=[],
        target=["sex=±50 required"],
        basis=[],
    )
    assert workload.required.tolist() == [True, False, True]


def test_plan_takes_tables_by_cells(run):
    run.done("plan", "codebook.csv", "--at-most-cells", "4", *BUDGET, "--out", "plan.json")
    assert Plan.load("plan.json").workload.tables[-1] == ("age", "sex")


@pytest.mark.parametrize(
    ("budget", "rho"),
    [
        (["--rho", "1/3"], Fraction(1, 3)),
        (["--privacy-cost", "0.1"], Fraction(1, 20)),
        (["--mu", "0.3"], Fraction(9, 200)),
        (["--rho", "0.3", "--records-per-person", "3"], Fraction(3, 10)),
    ],
)
def test_budgets_are_exact(run, budget, rho):
    run.done("plan", "codebook.csv", "--up-to", "1", "--loss", "max", *budget, "--out", "plan.json")
    assert Plan.load("plan.json").budget.rho == rho


def test_budget_as_epsilon_and_delta(run):
    budget = ["--epsilon", "1", "--delta", "1e-9"]
    facts = run.json(
        "plan", "codebook.csv", "--up-to", "1", "--loss", "max", *budget, "--out", "plan.json"
    )
    assert 0.999 < facts["epsilon_by_delta"]["1e-9"] <= 1


def test_losses(run):
    for name, choice in {
        "cells.json": ["--loss", "sum", "--weighting", "cells"],
        "target.json": ["--loss", "max", "--relative-to", "target"],
        "norm.json": ["--loss", "p-norm:3", "--relative-to", "target"],
        "default.json": [],
    }.items():
        targets = ["--target", "age=3", "--target", "sex=4"]
        arguments = ["--table", "age", "--table", "sex", *targets, "--rho", "1"]
        run.done("plan", "codebook.csv", *arguments, *choice, "--out", name)
    assert Plan.load("cells.json").loss.weighting == "cells"
    assert Plan.load("norm.json").loss == PNorm(3, "target")
    assert Plan.load("default.json").loss == SumOfVariances()
    # Both maxima are held by their targets: the standard errors stand as 3 to 4.
    errors = Plan.load("target.json").standard_errors
    assert errors[0] / errors[1] == pytest.approx(3 / 4, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--up-to", "1", "--loss", "sum"], "Give the budget in one way"),
        (["--up-to", "1", *BUDGET, "--mu", "1"], "got --rho and --mu"),
        (["--up-to", "1", "--loss", "sum", "--epsilon", "1"], "got --epsilon"),
        (["--up-to", "1", "--loss", "sum", "--rho", "0"], "must be positive, got 0"),
        (["--up-to", "1", "--loss", "sum", "--rho", "much"], "got much"),
        ([*BUDGET], "Say which tables"),
        (["--up-to", "4", *BUDGET], "from 0 to 3"),
        (["--up-to", "2", "--table", "sex,age", *BUDGET], "(age, sex) is in the workload twice"),
        (["--table", "age,height", *BUDGET], "no attribute 'height'"),
        (["--tables", "none.csv", *BUDGET], "'none.csv' cannot be read"),
        (["--up-to", "1", *BUDGET, "--weight", "age"], "such as age,sex=5"),
        (["--up-to", "1", *BUDGET, "--weight", "age=x"], "weight must be a number"),
        (["--up-to", "1", *BUDGET, "--weight", "age=-1"], "(age) must be a positive number"),
        (["--up-to", "1", *BUDGET, "--target", "age"], "such as age,sex=20"),
        (["--up-to", "1", *BUDGET, "--target", "age=5 %"], "must be written like 20"),
        (["--up-to", "1", *BUDGET, "--target", "age=-1"], "must be a positive number, got -1"),
        (["--up-to", "1", *BUDGET, "--weight", "age=1", "--weight", "age=2"], "'age' twice"),
        (["--up-to", "1", *BUDGET, "--target", "age,sex=1"], "not in the workload"),
        (["--up-to", "1", *BUDGET, "--relative-to", "target"], "belongs to the losses max"),
        (["--up-to", "1", "--loss", "max", "--rho", "1", "--weighting", "sqrt"], "the losses sum"),
        (["--up-to", "1", "--loss", "max", "--rho", "1", "--relative-to", "target"], "no target"),
        (["--up-to", "1", *BUDGET, "--records-per-person", "0"], "at least 1, got 0"),
        (
            ["--up-to", "1", "--loss", "min", "--rho", "1"],
            "The loss must be one of sum, max",
        ),
        (["--up-to", "1", "--loss", "p-norm:x", "--rho", "1"], "a number, such as p-norm:2"),
        (["--up-to", "1", "--loss", "required", "--rho", "1"], "No target is marked required"),
        (
            ["--up-to", "1", "--loss", "required", "--rho", "0.1", "--target", "age=1 required"],
            "cannot all be met at this budget",
        ),
        (["--up-to", "one", *BUDGET], "see rpexplore plan --help."),
        (["--up-to", "1", "--rho", "1", "--weighting"], "see rpexplore plan --help."),
        (
            ["--up-to", "1", *BUDGET, "--basis", "age"],
            "must be an attribute, =, and its basis",
        ),
        (["--up-to", "1", *BUDGET, "--basis", "age=up"], "'age=up' must give the basis of 'age'"),
        (["--up-to", "1", *BUDGET, "--basis", "age=hierarchy"], "'age' must have groups"),
        (
            ["--up-to", "1", *BUDGET, "--basis", "region=custom:none.csv"],
            "'none.csv' cannot be read",
        ),
        (
            ["--up-to", "1", *BUDGET, "--basis", "region=custom:codebook.csv"],
            "must be a number or the name",
        ),
        (
            ["--up-to", "1", *BUDGET, "--basis", "age=prefix@sex"],
            "does not have the attribute 'age'",
        ),
        (["--up-to", "1", *BUDGET, "--basis", "age=prefix@age,sex"], "not in the workload"),
        (["--table", "sex", *BUDGET, "--basis", "age=prefix"], "No table has"),
    ],
)
def test_plan_refuses(run, options, refusal):
    assert refusal in run.refused("plan", "codebook.csv", *options, "--out", "plan.json")
    assert "plan.json" not in run.files()


def test_plan_overwrites_only_by_force(planned):
    before = Path("plan.json").read_bytes()
    again = ["plan", "codebook.csv", "--up-to", "1", *BUDGET, "--out", "plan.json"]
    assert "exists already" in planned.refused(*again)
    assert Path("plan.json").read_bytes() == before
    planned.done(*again, "--force")
    assert len(Plan.load("plan.json").workload) == 4


def test_show_has_the_worst_first_and_says_what_is_left_out(planned):
    text = planned.done("show", "plan.json", "--tables", "2")
    listed = text.partition("\ntable ")[2].splitlines()
    worst = Plan.load("plan.json").tables.nlargest(2, "standard_error")["attributes"]
    assert [line.split("  ")[0] for line in listed[2:4]] == [title(t) for t in worst]
    assert listed[4].startswith("… and 5 more tables: --tables 7 shows all")
    whole = planned.done("show", "plan.json")
    assert "more tables" not in whole
    assert all(name in whole for name in ("total", "age × sex", "sex × region"))


def test_show_tells_which_targets_are_met(run):
    targets = ["--target", "age=100", "--target", "sex=0.001"]
    run.done("plan", "codebook.csv", "--up-to", "1", *targets, *BUDGET, "--out", "plan.json")
    text = run.done("show", "plan.json")
    assert re.search(r"^age .*  100 +yes$", text, re.MULTILINE)
    assert re.search(r"^sex .*  0\.001 +no$", text, re.MULTILINE)


def test_show_writes_all_tables_and_plan_reads_them_again(planned):
    planned.done("show", "plan.json", "--tables", "1", "--csv", "tables.csv")
    assert len(Path("tables.csv").read_text("utf-8").splitlines()) == 8
    assert "exists already" in planned.refused("show", "plan.json", "--csv", "tables.csv")
    planned.done("plan", "codebook.csv", "--tables", "tables.csv", *BUDGET, "--out", "again.json")
    assert Path("again.json").read_bytes() == Path("plan.json").read_bytes()


def test_show_as_json_has_every_table(planned):
    facts = planned.json("show", "plan.json")
    plan = Plan.load("plan.json")
    assert facts["sha256"] == plan.sha256
    assert facts["table_count"] == len(facts["tables"]) == 7
    by_table = {tuple(row["attributes"]): row for row in facts["tables"]}
    assert by_table[("age", "sex")]["standard_error"] == plan.standard_errors[4]
    assert by_table[()]["target"] is None
    assert len(planned.json("show", "plan.json", "--tables", "2")["tables"]) == 2


def test_show_refuses_a_plan_that_claims_too_much(planned):
    content = json.loads(Path("plan.json").read_text("utf-8"))
    content["privacy_cost"] = "0.0001"
    Path("plan.json").write_text(laid_out(content), "utf-8")
    assert "does not hold what it claims" in planned.refused("show", "plan.json")


def test_a_reformatted_plan_is_refused_until_it_is_rewritten(planned):
    original = Path("plan.json").read_bytes()
    for layout, text in other_layouts(original.decode()).items():
        Path("other.json").write_bytes(text.encode())
        for verb in ("show", "verify"):
            message = planned.refused(verb, "other.json")
            assert "other.json must be byte for byte" in message, layout
            assert "rpexplore rewrite other.json --out FILE" in message
        facts = planned.json("rewrite", "other.json", "--out", "again.json", "--force")
        assert facts == {"plan": "again.json", "sha256": hashlib.sha256(original).hexdigest()}
        assert Path("again.json").read_bytes() == original


def test_rewrite_refuses_what_is_no_plan_or_claims_too_much(planned):
    content = json.loads(Path("plan.json").read_text("utf-8"))
    content["privacy_cost"] = "0.0001"
    Path("broken.json").write_text(json.dumps(content), "utf-8")
    for file, message in (
        ("broken.json", "does not hold what it claims"),
        ("codebook.csv", "is not a plan file"),
        ("none.json", "cannot be read"),
    ):
        assert message in planned.refused("rewrite", file, "--out", "again.json")
    assert "exists already" in planned.refused("rewrite", "plan.json", "--out", "plan.json")
    assert not Path("again.json").exists()


def test_verify_tells_by_its_exit_code(planned):
    text = planned.done("verify", "plan.json")
    assert text.count("ok  ") == 4
    assert "(ε, δ)-differentially private" in text
    assert planned.json("verify", "plan.json")["holds"] is True

    content = json.loads(Path("plan.json").read_text("utf-8"))
    content["residuals"][0]["sigma_squared"] = "0.001"
    Path("broken.json").write_text(laid_out(content), "utf-8")
    result = planned("verify", "broken.json")
    assert result.exit_code == 1
    assert "FAIL privacy cost" in result.stdout
    assert "does not hold what it claims" in result.stdout
    result = planned("verify", "broken.json", "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert facts["holds"] is False
    assert facts["guarantee"] is None
    assert not facts["checks"][0]["holds"]


# ---- release and ledger


def test_release_tells_what_it_charges_and_where_the_tables_are(planned):
    text = planned.done("release", "plan.json", "records.csv", "--out", "out")
    assert "Protects  one record" in text
    assert "Cost      ρ = 0.1 for this run" in text
    assert "Spent     ρ = 0 on this data so far" in text
    assert "Limit     none in the ledger" in text
    assert "The 7 noisy tables are in out" in text
    assert "Charged ρ = 0.1; spent on this data so far: ρ = 0.1" in text
    assert Path("out/manifest.json").is_file()
    again = planned.done("release", "plan.json", "records.csv", "--out", "out2")
    assert "Spent     ρ = 0.1 on this data so far" in again
    assert "spent on this data so far: ρ = 0.2" in again


def test_release_for_persons_tells_their_rho_and_books_that_of_records(run):
    arguments = ["--up-to", "1", *BUDGET, "--records-per-person", "2", "--out", "plan.json"]
    run.done("plan", "codebook.csv", *arguments)
    facts = run.json("release", "plan.json", "records.csv", "--out", "out", "--limit-rho", "0.3")
    charged = Fraction(facts["charged_rho"])
    assert charged == Plan.load("plan.json").rho
    assert Fraction(facts["spent_rho"]) == charged
    assert facts["limit_rho"] == "0.3"
    account = run.json("ledger", "records.csv")
    assert Fraction(account["spent_rho"]) == charged / 4
    assert Fraction(account["limit_rho"]) == Fraction(3, 40)
    assert account["runs"][0]["state"] == "finished"


def test_release_beyond_the_cap_is_refused(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "a", "--limit-rho", "0.15")
    result = planned("release", "plan.json", "records.csv", "--out", "b")
    assert result.exit_code == 2
    assert "Limit     ρ = 0.15" in result.stdout
    assert re.fullmatch(r"error: .*left of its budget limit.*\n", result.stderr)
    assert not Path("b").exists()


def test_release_puts_unknown_values_where_told(planned):
    with Path("records.csv").open("a", encoding="utf-8") as file:
        file.write("old,F,Atlantis\n")
    region = ["--unknown-values", "region=R3"]
    planned.done("release", "plan.json", "records.csv", "--out", "o", *region)
    for wrong in ("height=R3", "region", "=R3"):
        refusal = planned.refused(
            "release", "plan.json", "records.csv", "--out", "p", "--unknown-values", wrong
        )
        assert "such as region=R12" in refusal
    twice = ["--unknown-values", "region=R3", "--unknown-values", "region=R2"]
    refusal = planned.refused("release", "plan.json", "records.csv", "--out", "p", *twice)
    assert "twice" in refusal


@pytest.mark.parametrize("debug", ["0", "1"])
def test_values_of_records_are_shown_on_the_screen_only(planned, monkeypatch, debug):
    monkeypatch.setenv("RPEXPLORE_DEBUG", debug)
    with Path("records.csv").open("a", encoding="utf-8") as file:
        file.write("old,F,\x1b[31mAtlantis\n")
    command = ["release", "plan.json", "records.csv", "--out", "out"]
    result = planned(*command)
    assert result.exit_code == 2
    assert "Atlantis" not in result.output  # standard error may be a file
    assert "in a terminal" in result.stderr
    assert "Nothing was charged" in result.stderr
    monkeypatch.setattr("rpexplore.cli.console.on_a_terminal", lambda: True)
    result = planned(*command)
    assert result.exit_code == 2
    assert "Atlantis" not in result.stdout
    assert "Atlantis" in result.stderr
    assert "\x1b" not in result.stderr
    result = planned("release", "plan.json", "records.csv", "--out", "out", "--json")
    assert result.exit_code == 2
    assert "'region'" in json.loads(result.stdout)["error"]
    assert "Atlantis" not in result.output
    # Nothing was charged, and no file holds the value but the records.
    assert Ledger.beside("records.csv").account("records.csv").runs == ()
    holding = [p.name for p in Path().rglob("*") if p.is_file() and b"Atlantis" in p.read_bytes()]
    assert holding == ["records.csv"]


def test_a_cap_can_be_lifted(planned):
    planned.done("ledger", "records.csv", "--limit-record-rho", "1/3")
    assert "ρ = 0.333333" in planned.done("ledger", "records.csv")
    assert re.search(
        r"^Limit +none$",
        planned.done("ledger", "records.csv", "--limit-record-rho", "none"),
        re.MULTILINE,
    )


def test_release_asks_where_somebody_can_answer(planned, monkeypatch):
    monkeypatch.setattr("rpexplore.cli.release.interactive", lambda: True)
    command = ["release", "plan.json", "records.csv", "--out", "out"]
    refused = planned(*command, input="n\n")
    assert refused.exit_code == 2
    assert "nothing was charged" in refused.stderr
    assert not Path("out").exists()
    # The question does not disturb the JSON on standard output.
    agreed = planned(*command, "--json", input="y\n")
    assert agreed.exit_code == 0
    assert json.loads(agreed.stdout)["table_count"] == 7
    assert planned(*command[:-1], "out2", "--yes", input="").exit_code == 0


def test_a_stop_or_failure_after_booking_says_that_it_stays_charged(planned, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    def fail(*_):
        raise OSError(28, "No space left on device", "out")

    command = ["release", "plan.json", "records.csv", "--out", "out"]
    monkeypatch.setattr("rpexplore.releases.release.write_measured", stop)
    stopped = planned(*command)
    assert stopped.exit_code == 130
    assert stopped.stderr == (
        "Stopped. The run was booked before: ρ = 0.1 stays charged. Run it again, into the same "
        "folder: that costs nothing further.\n"
    )
    monkeypatch.setattr("rpexplore.releases.release.write_measured", fail)
    failed = planned(*command, "--json")
    assert failed.exit_code == 2
    refusal = json.loads(failed.stdout)["error"]
    assert "No space left on device" in refusal
    assert "ρ = 0.1 stays charged" in refusal
    monkeypatch.setattr("rpexplore.data.files.source.FileSource.count", stop)
    early = planned(*command)
    assert early.exit_code == 130
    assert "costs nothing further" in early.stderr
    account = Ledger.beside("records.csv").account("records.csv")
    assert [run.state for run in account.runs] == ["started"]
    assert not Path("out").exists()
    monkeypatch.setattr("rpexplore.data.files.source.FileSource.count", BatchSource.count)
    monkeypatch.setattr("rpexplore.releases.release.write_measured", write_measured)
    planned.done(*command)
    account = Ledger.beside("records.csv").account("records.csv")
    assert [run.state for run in account.runs] == ["finished"]


def test_ledger_shows_runs_and_sets_the_cap(planned):
    assert "ρ = 0 for one record" in planned.done("ledger", "records.csv")
    planned.done("release", "plan.json", "records.csv", "--out", "out", "--ledger", "book.sqlite")
    text = planned.done(
        "ledger", "records.csv", "--ledger", "book.sqlite", "--limit-record-rho", "1/3"
    )
    assert "Spent  ρ = 0.1 for one record" in text
    assert "Limit  ρ = 0.333333 for one record" in text
    assert re.search(r"^ +1 .* finished +\w{12}… +/.*/out$", text, re.MULTILINE)
    facts = planned.json("ledger", "records.csv", "--ledger", "book.sqlite")
    assert facts["limit_rho"] == "1/3"
    assert facts["runs"][0]["plan_sha256"] == Plan.load("plan.json").sha256
    assert "spent_rho" in planned.json("ledger", "records.csv")
    low = ["--ledger", "book.sqlite", "--limit-record-rho", "0.01"]
    assert "not below what is spent" in planned.refused("ledger", "records.csv", *low)
    assert "check the path" in planned.refused("ledger", "none.csv")


# ---- bases of attributes


@pytest.fixture
def planned_with_bases(run) -> Program:
    Path("mine.csv").write_text("query,R1,R2,R3\nnorth,1,0,0\nnot east,1,1,0\nall,1,1,1\n")
    Path("mine.npy").write_bytes(b"no matrix")
    bases = ["age=prefix", "region=custom:mine.csv", "region=ranges@region"]
    ways = [option for basis in bases for option in ("--basis", basis)]
    run.done("plan", "codebook.csv", "--up-to", "2", *ways, *BUDGET, "--out", "plan.json")
    return run


def test_attributes_have_other_bases(planned_with_bases):
    loaded = Plan.load("plan.json")
    domain = Domain.load("codebook.csv")
    own = CustomBasis([[1, 0, 0], [1, 1, 0], [1, 1, 1]], ["north", "not east", "all"], "mine")
    workload = Workload.all_up_to(domain, 2).with_bases({"age": Prefix(), "region": own})
    workload = workload.with_bases({"region": Ranges()}, tables=["region"])
    budget = Budget(rho="0.1")
    assert loaded.text == planner.plan(workload, loss=SumOfVariances(), budget=budget).text
    assert "is not a matrix" in planned_with_bases.refused(
        "plan", "codebook.csv", "--up-to", "1", *BUDGET, "--basis", "region=custom:mine.npy",
        "--out", "other.json",
    )  # fmt: skip


def test_totals_are_spread_evenly_on_demand(planned_with_bases):
    ways = ["--basis", "age=prefix", "--uniform-reference"]
    planned_with_bases.done(
        "plan", "codebook.csv", "--up-to", "1", *ways, *BUDGET, "--out", "even.json"
    )
    workload = Workload.all_up_to(Domain.load("codebook.csv"), 1).with_bases({"age": Prefix()})
    even = planner.plan(
        workload, loss=SumOfVariances(), budget=Budget(rho="0.1"), uniform_reference=True
    )
    assert Path("even.json").read_text("utf-8") == even.text


def test_show_says_which_bases_attributes_have(planned_with_bases):
    text = planned_with_bases.done("show", "plan.json")
    assert "age: cumulative: up to each value\n" in text
    assert "region: own matrix (mine)\n" in text
    assert "region: ranges: every range of values, in region\n" in text
    loaded = Plan.load("plan.json")
    line = next(line for line in text.splitlines() if line.startswith("region (ranges)"))
    row = loaded.workload.position("region")
    rms, worst = loaded.standard_errors[row], loaded.worst_standard_errors[row]
    assert f"{rms:.4g}"[:4] in line
    assert f"{worst:.4g}"[:4] in line
    assert worst > rms
    facts = planned_with_bases.json("show", "plan.json")
    assert facts["bases"][0] == {
        "attribute": "age",
        "basis": "prefix",
        "description": "cumulative: up to each value",
        "tables": None,
    }
    assert facts["bases"][2]["tables"] == [["region"]]
    assert facts["uniform_reference"] is False
    assert {"standard_error", "worst_standard_error"} <= facts["tables"][0].keys()


def test_tables_with_bases_are_written_and_read_again(planned_with_bases):
    planned_with_bases.done("show", "plan.json", "--csv", "tables.csv")
    header = Path("tables.csv").read_text("utf-8").splitlines()[0]
    assert header.startswith("attributes,aggregation,")
    bases = ["age=prefix", "region=custom:mine.csv", "region=ranges@region"]
    ways = [option for basis in bases for option in ("--basis", basis)]
    again = ["--tables", "tables.csv", *ways, *BUDGET, "--out", "again.json"]
    planned_with_bases.done("plan", "codebook.csv", *again)
    assert Path("again.json").read_bytes() == Path("plan.json").read_bytes()


def test_plans_of_single_values_have_the_columns_they_had(planned):
    planned.done("show", "plan.json", "--csv", "tables.csv")
    assert Path("tables.csv").read_text("utf-8").splitlines()[0] == (
        "attributes,order,cells,mean_variance,max_variance,standard_error,weight,target,"
        "shadow_price"
    )
    assert pd.read_csv("tables.csv")["standard_error"].is_monotonic_decreasing
    assert planned.json("show", "plan.json")["bases"] == []


@pytest.mark.parametrize(
    ("question", "table", "query"),
    [
        ([], (), {}),
        (["age=old"], ("age",), {"age": [0, 1]}),
        (["sex=Female", "age=young..old"], ("age", "sex"), {"age": [1, 1], "sex": [1, 0]}),
        (["region=R1,Elsewhere"], ("region",), {"region": [1, 0, 1]}),
    ],
)
def test_questions_are_answered_from_a_release(planned_with_bases, question, table, query):
    planned_with_bases.done("release", "plan.json", "records.csv", "--out", "out")
    value, error = astuple(Release.load("out").answer(table, where=query))
    facts = planned_with_bases.json("answer", "out", *question)
    assert facts["value"] == value
    assert facts["standard_error"] == error
    assert facts["lower_95"] == pytest.approx(value - 1.959964 * error, rel=1e-6)
    assert facts["upper_95"] == pytest.approx(value + 1.959964 * error, rel=1e-6)
    text = planned_with_bases.done("answer", "out", *question)
    assert f"{value:,.2f}" in text
    assert re.search(r"^Standard error +\d", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("question", "refusal"),
    [
        (["age=middle"], "got 'middle'"),
        (["height=3"], "must be an attribute of the plan"),
        (["age=old", "age=young"], "'age' twice"),
        (["age=old", "sex=F", "region=R1"], "holds no table with these attributes together"),
    ],
)
def test_questions_that_a_release_cannot_answer_are_refused(planned_with_bases, question, refusal):
    planned_with_bases.done("release", "plan.json", "records.csv", "--out", "out")
    assert refusal in planned_with_bases.refused("answer", "out", *question)
    assert "not a finished release" in planned_with_bases.refused("answer", "none", "age=old")


def test_the_search_for_what_to_measure_shows_how_far_it_is(run, monkeypatch):
    refusal = []

    @contextmanager
    def progress(doing):
        yield lambda doing, share: refusal.append((doing, share))

    # The package has a function of this module's name.
    monkeypatch.setattr(import_module("rpexplore.cli.planning"), "progress", progress)
    ways = ["--basis", "age=prefix", "--basis", "region=ranges"]
    run.done("plan", "codebook.csv", "--up-to", "2", *ways, *BUDGET, "--out", "plan.json")
    shares = [share for doing, share in refusal if doing == "Looking for what to measure"]
    assert shares
    assert all(0 <= share <= 1 for share in shares)


# ---- manners


def test_version_and_help(run):
    assert re.fullmatch(r"rpexplore \d+\.\d+\.\d+\S*\n", run.done("--version"))
    overview = run.done()
    assert overview == run.done("--help")
    verbs = ["schema", "plan", "show", "verify", "report", "release", "answer", "ledger", "app"]
    verbs += ["rewrite", "queries", "combine", "postprocess"]
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


def test_unexpected_errors_tell_where_but_not_what(run, monkeypatch):
    def broken(*_):
        raise KeyError("a value from the records")

    monkeypatch.setattr(Domain, "load", broken)
    refusal = run.refused("schema", "codebook.csv")
    assert "This is a bug in rpexplore (KeyError in test_main.py, line" in refusal
    assert "a value" not in refusal
    monkeypatch.setenv("RPEXPLORE_DEBUG", "1")
    assert "Traceback" in run("schema", "codebook.csv").stderr


def test_errors_of_the_machine_are_told_plainly(run, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("rpexplore.planning.planner.optimum", lambda *_, **__: full())
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
        output.write_new(path, "after", force=True)
    assert [p.read_text("utf-8") for p in tmp_path.iterdir()] == ["before"]


def test_messages_cannot_steer_the_terminal():
    error = DataError("It is so.", private="a\nb\x1b[2J\u202e")
    assert output.one_line(error.on_screen()) == "It is so. a b�[2J�"


def test_text_survives_a_terminal_without_greek(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    output.say("ρ = 1")
    assert written.getvalue() == b"? = 1\n"


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for screen, expected in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", screen)
        with output.progress("Planning [red]") as tell:
            tell("Measuring [red]", 0.5)
        assert ("Measuring [red]" in screen.getvalue()) is expected
        assert bool(screen.getvalue()) is expected


# ---- real processes


def started(*arguments: str, patch: str = "", **options) -> subprocess.Popen:
    """The program as a process, with `patch` run in it first. SIGINT is not ignored in it."""
    source = f"{patch}\nfrom rpexplore.cli.main import main\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", source, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


# Replaces a function by one that says it is reached, and takes long.
ENDLESS = """
import sys, time
import {module} as module
def endless(*arguments, **options):
    print("reached", flush=True)
    time.sleep(60)
module.{function} = endless
"""


def test_ctrl_c_leaves_nothing_behind(planned):
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
    for process in (planning, measuring):
        assert process.stdout is not None
        assert process.stdout.readline() == "reached\n"
        process.send_signal(signal.SIGINT)
    stdout, stderr = planning.communicate(timeout=20)
    assert (stdout, stderr) == ("", "Stopped. Nothing was left half-written.\n")
    assert planning.returncode == 130
    stdout, stderr = measuring.communicate(timeout=20)
    assert "ρ = 0.1 stays charged" in json.loads(stdout)["error"]
    assert stderr == ""
    assert measuring.returncode == 130
    assert planned.files() == before | {"rpexplore-ledger.sqlite", ".out.unfinished"}
    (run,) = Ledger.beside("records.csv").account("records.csv").runs
    assert run.state == "started"


def test_output_that_nobody_reads_is_no_error(planned):
    process = started("show", "plan.json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(20) == 141


# What must not count: settings in the user's home, in the current folder, in the environment.
OPEN_SETTINGS = """
[server]
address = "0.0.0.0"
enableCORS = false
baseUrlPath = "elsewhere"
sslCertFile = "none.pem"
[browser]
gatherUsageStats = true
[global]
developmentMode = true
"""


def test_app_answers_this_machine_only_and_stops_on_ctrl_c(tmp_path):
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit/config.toml").write_text(OPEN_SETTINGS, "utf-8")
    (tmp_path / "streamlit.py").write_text("raise SystemExit('a stranger')", "utf-8")
    environment = {**os.environ, "HOME": str(tmp_path), "STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}
    port = free_port()
    where = {"cwd": tmp_path, "env": environment, "start_new_session": True}
    app = started("app", "--port", str(port), "--no-browser", **where)
    try:
        assert app.stdout is not None
        assert f"http://127.0.0.1:{port}" in app.stdout.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health") as answer:
            assert answer.read() == b"ok"
        # A server on all addresses would answer on this one as well.
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", port), timeout=2)
        # As a terminal does: to the program and to the app it started.
        os.killpg(app.pid, signal.SIGINT)
        _, stderr = app.communicate(timeout=20)
    finally:
        if app.poll() is None:
            os.killpg(app.pid, signal.SIGKILL)
            app.communicate()
    assert app.returncode == 0
    assert "Traceback" not in stderr
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=2)


def test_app_says_that_its_port_is_taken(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusal = run.refused("app", "--port", str(port))
    assert f"Port {port} cannot be used" in refusal
    assert "--port" in refusal


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---- where the app's files are


@pytest.mark.parametrize("installed", [True, False])
def test_app_files_are_found_in_a_wheel_and_in_a_checkout(tmp_path, monkeypatch, installed):
    package = tmp_path / "rpexplore"
    folder = package / "webapp" if installed else tmp_path
    (folder / "sample_data").mkdir(parents=True)
    (folder / "app.py").touch()
    (tmp_path / ("other.toml" if installed else "pyproject.toml")).touch()
    monkeypatch.setattr(webapp_location, "_PACKAGE", package)
    assert webapp_location.app_script() == folder / "app.py"
    assert webapp_location.sample_data_folder() == folder / "sample_data"


def test_files_of_others_beside_an_installed_package_are_not_the_app(tmp_path, monkeypatch):
    (tmp_path / "app.py").touch()
    (tmp_path / "sample_data").mkdir()
    monkeypatch.setattr(webapp_location, "_PACKAGE", tmp_path / "rpexplore")
    with pytest.raises(RpexploreError, match="install rpexplore again"):
        webapp_location.app_script()


def test_app_files_of_this_checkout_are_there():
    assert webapp_location.app_script().is_file()
    assert (webapp_location.sample_data_folder() / "household.csv").is_file()
