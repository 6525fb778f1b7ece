"""What README and docs/ show runs as it stands there."""

import ast
import inspect
import operator
import re
import runpy
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import rpexplore as rp
from pages.components.shared.autosave import new_project
from rpexplore.cli.main import cli
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.workload.bases import Hierarchy, Prefix, Windows
from tests.support.ledgers import database_ledger
from tests.support.ssh_keys import requires_ssh_keygen
from tests.support.stopped_runs import killed

ROOT = Path(__file__).parents[1]
RECORDS = 4_000  # of the sample's 50,000: the tests wait for them at every release
SIX_COMMANDS = ("README.md", "The whole way in six commands")
FROM_PYTHON = ("README.md", "From Python")
AGGREGATION = ("docs/aggregation.md", "For all tables, or for some")
SMALLEST_BUDGET = ("docs/targets.md", "The smallest budget")
OWN_COUNTS = ("docs/own-counts.md", "Plan and release a list")
OBJECTIVE_OF_COUNTS = ("docs/own-counts.md", "Objective")
FREE_COUNTS = ("docs/own-counts.md", "Free counts")
PRESETS = ("docs/own-counts.md", "Presets")
AREA_PLANS = ("docs/areas.md", "Plan on the command line")
AREA_RELEASES = ("docs/areas.md", "Release the tables of all areas")
AREAS_IN_PYTHON = ("docs/areas.md", "In Python")
RULE_IN_PYTHON = ("docs/rule.md", "In Python")
ADAPTIVE = ("docs/adaptive.md", "Plan and release")
POSTPROCESSING = ("docs/postprocessing.md", "Combine, process, answer")
KNOWN_TOTALS = ("docs/postprocessing.md", "Publicly known totals")
SECOND_PLAN = ("docs/model-based-estimates.md", "A second plan from a first release")
SYNTHETIC_RECORDS = ("docs/synthetic-records.md", "Synthetic records")
DRY_RUN = ("docs/release.md", "Dry run")
STOPPED_RUNS = ("docs/stopped-runs.md", "What to do")
APPROVALS = ("docs/approvals.md", "From two keys to an approved release")
TEAM_LEDGER = ("docs/ledger.md", "A ledger for a team")
# The sections that show something to run: the verbs of their commands, their pieces of Python.
RUN = {
    SIX_COMMANDS: (["schema", "plan", "show", "verify", "release", "release"], 0),
    FROM_PYTHON: ([], 1),
    ("docs/codebook.md", "From a file"): (["schema"], 0),
    AGGREGATION: (["plan", "show", "release", "answer"], 1),
    SMALLEST_BUDGET: (["plan", "show"], 1),
    RULE_IN_PYTHON: ([], 1),
    ("docs/plan.md", "A loss of your own"): ([], 1),
    SECOND_PLAN: (["plan", "release", "plan", "release", "combine", "postprocess"], 0),
    OWN_COUNTS: (["plan", "verify", "release"], 1),
    OBJECTIVE_OF_COUNTS: (["plan", "show"], 0),
    FREE_COUNTS: (["plan", "verify"], 0),
    ("docs/tables.md", "Groups of values"): (["plan", "show"], 0),
    PRESETS: (["counts", "plan", "plan"], 0),
    AREA_PLANS: (["schema", *["plan"] * 3, "show", "forecast", "verify", "report"], 0),
    AREA_RELEASES: (["release", "postprocess", "postprocess", "synthesize"], 0),
    AREAS_IN_PYTHON: ([], 1),
    ("docs/survey.md", "Plan the parts on the command line"): (["plan", "verify", "release"], 0),
    ("docs/survey.md", "Plan the parts in Python"): ([], 1),
    ADAPTIVE: (["plan", "verify", "release"], 0),
    POSTPROCESSING: (["release", "combine", "postprocess", "answer"], 0),
    SYNTHETIC_RECORDS: (["synthesize"], 0),
}
# Those that a test of their own runs, which prepares what they start from.
RUN_APART = {
    KNOWN_TOTALS: (["postprocess", "postprocess"], 0),
    DRY_RUN: (["release"], 0),
    STOPPED_RUNS: (["release"], 0),
    APPROVALS: (["approve", "approve", "ledger", "verify", "release"], 0),
    TEAM_LEDGER: (["ledger", "release", "ledger"], 0),
}
BY_NIGHT = (
    *(SECOND_PLAN, SYNTHETIC_RECORDS, AREAS_IN_PYTHON, RULE_IN_PYTHON),
    *(AREA_PLANS, AREA_RELEASES, POSTPROCESSING, ADAPTIVE),
)
Section = tuple[str, str]


@cache
def sections(document: str) -> dict[str, str]:
    """The text below each heading of a document, its title included, up to the next heading."""
    text = (ROOT / document).read_text(encoding="utf-8")
    title, _, text = text.removeprefix("# ").partition("\n")
    before, *parts = re.split(r"^#{2,} (.*)\n", text, flags=re.MULTILINE)
    return {title: before, **dict(zip(parts[::2], parts[1::2], strict=True))}


def commands(section: Section) -> list[list[str]]:
    """The arguments of each command of a section."""
    document, heading = section
    text = sections(document)[heading].replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(r"^    rpexplore (.*)$", text, re.MULTILINE)]


def python(section: Section) -> list[str]:
    """The pieces of Python of a section."""
    document, heading = section
    pattern = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return pattern.findall(sections(document)[heading])


def run(arguments: list[str]) -> str:
    """What a command prints, which must succeed."""
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """A folder that looks like a clone, with fewer records, where the commands write."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "sample_data").mkdir()
    sample = ROOT / "sample_data"
    files = ["household.json", "labour-force.json", "redistricting.json"]
    files += ["census-tables.json", "census-tables.toml"]
    for name in (*files, *(path.name for path in sample.glob("municipal-register*"))):
        (folder / "sample_data" / name).write_bytes((sample / name).read_bytes())
    lines = (sample / "household.csv").read_text("utf-8").splitlines(keepends=True)
    text = "".join(lines[: RECORDS + 1])
    (folder / "sample_data" / "household.csv").write_text(text, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def shown(folder) -> Callable[[Section], Path]:
    """Runs what a section shows, once, after the six commands and what stands above it on its page.

    Returns the folder.
    """

    @cache
    def run_section(section: Section) -> Path:
        if section != SIX_COMMANDS:
            run_section(SIX_COMMANDS)
        above = [other for other in RUN if other[0] == section[0]]
        for other in above[: above.index(section)] if section in above else []:
            run_section(other)
        for arguments in commands(section):
            run(arguments)
        for code in python(section):
            Path("shown.py").write_text(code, "utf-8")
            runpy.run_path("shown.py", run_name="__main__")
        return folder

    return run_section


def test_every_section_that_shows_something_to_run_is_run():
    documents = ["README.md", "CONTRIBUTING.md"]
    documents += [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")]
    shows = {
        section: ([arguments[0] for arguments in commands(section)], len(python(section)))
        for document in documents
        for section in ((document, heading) for heading in sections(document))
    }
    assert {section: what for section, what in shows.items() if what != ([], 0)} == RUN | RUN_APART


@pytest.mark.parametrize("section", [AREAS_IN_PYTHON, RULE_IN_PYTHON], ids=": ".join)
def test_what_runs_by_night_names_what_is_there(section):
    """Functions, and the arguments that they are given by name."""
    (code,) = python(section)
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    named = {}
    for call in calls:
        name = ast.unparse(call.func)
        if re.fullmatch(r"rp(\.\w+)+", name):
            function = operator.attrgetter(name.removeprefix("rp."))(rp)
            known = inspect.signature(function).parameters
            named[name] = [word.arg for word in call.keywords]
            assert set(named[name]) <= known.keys(), name
    assert len(named) > 2


@pytest.mark.parametrize(
    "section",
    [pytest.param(section, marks=[pytest.mark.nightly] * (section in BY_NIGHT)) for section in RUN],
    ids=": ".join,
)
def test_a_section_runs(shown, section):
    shown(section)


def test_the_five_commands(shown):
    release = TableRelease.load(shown(SIX_COMMANDS) / "household-release")
    people = release.table(())
    assert len(people) == 1
    assert abs(float(people["value"].iloc[0]) - RECORDS) < 7 * float(
        people["standard_error"].iloc[0]
    )


def test_the_python_code(shown):
    assert (shown(FROM_PYTHON) / "all-three-way.json").exists()


def test_ranges_and_groups(shown):
    released = TableRelease.load(shown(AGGREGATION) / "ages-release")
    bases = dict(
        zip(released.plan.workload.domain.names, released.plan.workload.bases, strict=True)
    )
    assert bases["age"] == (Prefix(), Windows(5))
    assert bases["region"] == (Hierarchy(),)
    everybody = released.table("region").iloc[0]  # the first node of a hierarchy
    assert abs(everybody["value"] - RECORDS) < 7 * everybody["standard_error"]


@pytest.mark.nightly
def test_postprocessing(shown):
    assert (shown(POSTPROCESSING) / "published" / "manifest.json").exists()


@pytest.mark.nightly
def test_known_totals(shown):
    shown(SIX_COMMANDS)
    Path("register.csv").write_text("sex,total\nF,3000\nM,2900\n", "utf-8")
    folder = shown(KNOWN_TOTALS)
    sexes = ProcessedTables.load(folder / "whole-with-register").table("sex")
    assert sexes["value"].tolist() == [3000, 2900]


@pytest.mark.nightly
def test_synthetic_records(shown):
    folder = shown(SYNTHETIC_RECORDS) / "synthetic"
    records = SyntheticRecords.load(folder).records()
    ages = records["age"].astype(int)
    assert not ((ages < 15) & (records["marital_status"] == "Married")).any()
    assert len(records) == pytest.approx(RECORDS, rel=0.5)


def test_targets(shown):
    plan = TablePlan.load(shown(SMALLEST_BUDGET) / "accurate.json")
    required = plan.workload.required
    assert np.count_nonzero(required) == 2
    assert np.all(
        plan.largest_standard_errors[required] <= plan.workload.targets[required] * (1 + 1e-9)
    )


def test_lists_of_queries(shown):
    folder = shown(OWN_COUNTS)
    assert np.all(QueryPlan.load(folder / "own-counts.json").met)
    answers = QueryRelease.load(folder / "own-counts-release").answers
    assert answers["name"].tolist() == ["adults", "young women", "everybody"]


def test_objectives_of_counts_and_free_counts(shown):
    first = QueryPlan.load(shown(OBJECTIVE_OF_COUNTS) / "first-targets.json")
    assert first.met.all()
    assert first.certificate.gap < 1e-3
    assert QueryPlan.load(shown(FREE_COUNTS) / "with-free.json").free_counts == ("boys",)


def test_presets(shown):
    folder = shown(PRESETS)
    pyramid = QueryPlan.load(folder / "pyramid.json").queries
    assert set(pyramid.domain.names) == {"sex", "age_group"}
    assert pyramid.names[0] == "young women"
    assert len(pyramid) == 3 * 8
    names = QueryPlan.load(folder / "districts.json").queries.names
    assert "P5 Military quarters" in names


@pytest.mark.nightly
def test_areas(shown):
    folder = shown(AREA_PLANS)
    shown(AREA_RELEASES)
    assert (folder / "areas-release" / "manifest.json").exists()


@pytest.mark.nightly
def test_areas_in_python_are_those_of_the_command_line(shown):
    folder = shown(AREAS_IN_PYTHON)
    plan = AreaPlan.load(folder / "areas.json")
    assert plan.sha256 == AreaPlan.load(folder / "same-areas.json").sha256


def test_dry_and_stopped_runs(folder, tmp_path, monkeypatch):
    """The dry run as it stands there; what resumes is shown on a run that was stopped."""
    shutil.copytree(folder / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    plan = plan_tables(
        rp.Workload.all_up_to(rp.Domain.load("sample_data/household.json"), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
    )
    plan.save("plan.json")
    (dry,), (finish,) = commands(DRY_RUN), commands(STOPPED_RUNS)
    assert "nothing was charged" in run(dry)
    assert not Path("checked").exists()
    output = finish[-1]
    table = "rpexplore.releases.table_release.TableWriter.table"
    killed(table, 3, "plan.json", "sample_data/household.csv", output)
    run(finish)
    assert TableRelease.load(output).plan.sha256 == plan.sha256


@requires_ssh_keygen
def test_approvals(folder, tmp_path, monkeypatch):
    """The commands as they stand there, those of the shell by a shell."""
    shutil.copytree(folder / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    domain = rp.Domain.load("sample_data/household.json")
    tables = rp.Workload.all_up_to(domain, 1)
    plan_tables(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)).save("plan.json")
    given = iter(commands(APPROVALS))
    document, heading = APPROVALS
    blocks = re.findall(r"(?:^    .*\n)+", sections(document)[heading], re.MULTILINE)
    for block in blocks:
        if not block.startswith("    rpexplore"):
            subprocess.run(["sh", "-ec", block], check=True)
        for _ in re.findall("^    rpexplore", block, re.MULTILINE):
            run(next(given))
    approved = TableRelease.load("approved").manifest["approvals"]
    names = [one["name"] for one in approved["given"]]
    assert (approved["demanded"], names) == (2, ["alice@agency.example", "bob@agency.example"])


@pytest.mark.nightly
def test_a_ledger_for_a_team(shown, postgres, monkeypatch):
    database_ledger(postgres, monkeypatch)
    postgres.run("DROP SCHEMA rpexplore_ledger CASCADE", "DROP ROLE IF EXISTS curator, steward")
    postgres.run("CREATE ROLE curator LOGIN", "CREATE ROLE steward LOGIN")
    monkeypatch.setenv("LEDGER", postgres.url.replace("keeper@", "curator@"))
    folder = shown(SIX_COMMANDS)
    shutil.copy(folder / "sample_data" / "household.csv", folder / "people.csv")
    said = [run(arguments) for arguments in commands(TEAM_LEDGER)]
    assert "Runs can be booked by curator. Limits and demands can be set by steward." in said[0]
    assert "finished" in said[2]
    postgres.run("DROP OWNED BY curator, steward", "DROP ROLE curator, steward")


def test_the_codebook_is_one():
    text = sections("docs/codebook-files.md")["Codebooks"]
    (codebook,) = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    domain = rp.Domain.parse(codebook, "codebook.json")
    assert domain.sizes.tolist() == [2, 20, 3, 12]
    assert len(domain.impossible) == 1


def test_the_tour_counts_the_tables_as_the_app_does():
    scenario = new_project().scenarios[0]
    tables = rp.Workload.all_up_to(scenario.domain, 3).tables
    counts = [len(scenario.workload), len(tables)]
    for names in ({"region"}, {"sex", "settlement"}):
        counts.append(sum(names <= set(table) for table in tables))
    said = re.findall(
        r"2-way: (\d+)|attributes: (\d+)|all (\d+) tables|give the (\d+)",
        sections("docs/tour.md")["Try it in ten minutes"].replace("\n   ", " "),
    )
    assert ["".join(numbers) for numbers in said] == [str(count) for count in counts]
