"""What README and docs/ show runs as it stands there."""

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
from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.table_release import TableRelease
from rpexplore.workload.bases import Hierarchy, Prefix, Windows
from tests.support.ledgers import database_ledger
from tests.support.ssh_keys import requires_ssh_keygen
from tests.support.stopped_runs import killed

ROOT = Path(__file__).parents[1]
RECORDS = 4_000  # of the sample's 50,000: the tests wait for them at every release
SIX_COMMANDS = "The whole way in six commands"
AGGREGATION = "Aggregation: ranges, cumulative counts, groups"
TARGETS = "Accuracy first: targets"
QUERIES = "Queries: your own list"
PRESETS = "Presets"
ADAPTIVE = "Adaptive release"
AREAS = "Areas: tables for a whole country"
RECORDS_LIE = "Where the records lie"
FOUR_EYES = "Four eyes"
TEAM = "A ledger for a team"
# The sections that show something to run: the verbs of their commands, their pieces of Python.
RUN = {
    ("README.md", SIX_COMMANDS): (["schema", "plan", "show", "verify", "release", "release"], 0),
    ("README.md", "From Python"): ([], 1),
    ("docs/guide.md", "Codebook: which values are there?"): (["schema"], 0),
    ("docs/guide.md", "Tables: what do you want to publish?"): (
        ["plan", "release", "plan", "release", "combine", "postprocess"],
        0,
    ),
    ("docs/guide.md", AGGREGATION): (["plan", "show", "release", "answer"], 1),
    ("docs/guide.md", "Plan: how private, how accurate?"): ([], 1),
    ("docs/guide.md", TARGETS): (["plan", "show"], 1),
    ("docs/guide.md", QUERIES): (["queries", "verify", "release"], 1),
    ("docs/guide.md", PRESETS): (["queries", "queries", "queries"], 0),
    ("docs/guide.md", "Post-processing"): (["release", "combine", "postprocess", "answer"], 0),
    ("docs/guide.md", "Synthetic records"): (["synthesize"], 0),
    ("docs/guide.md", ADAPTIVE): (["plan", "verify", "release"], 0),
    ("docs/guide.md", AREAS): (
        [*["areas"] * 4, "show", "verify", "report", "release", "postprocess"],
        1,
    ),
}


@cache
def sections(document: str) -> dict[str, str]:
    """The text below each heading of a document, up to the next heading of any level."""
    text = (ROOT / document).read_text(encoding="utf-8")
    parts = re.split(r"^#{2,} (.*)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def commands(document: str, heading: str) -> list[list[str]]:
    """The arguments of each command of a section."""
    text = sections(document)[heading].replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(r"^    rpexplore (.*)$", text, re.MULTILINE)]


def python(document: str, heading: str) -> list[str]:
    """The pieces of Python of a section."""
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
    for name in (*files, *(path.name for path in sample.glob("municipal-register*"))):
        (folder / "sample_data" / name).write_bytes((sample / name).read_bytes())
    lines = (sample / "household.csv").read_text("utf-8").splitlines(keepends=True)
    text = "".join(lines[: RECORDS + 1])
    (folder / "sample_data" / "household.csv").write_text(text, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def shown(folder) -> Callable[[str, str], Path]:
    """Runs what a section shows, once, after the six commands; returns the folder."""

    @cache
    def run_section(document: str, heading: str) -> Path:
        if heading != SIX_COMMANDS:
            run_section("README.md", SIX_COMMANDS)
        for arguments in commands(document, heading):
            run(arguments)
        for code in python(document, heading):
            Path("shown.py").write_text(code, "utf-8")
            runpy.run_path("shown.py", run_name="__main__")
        return folder

    return run_section


def test_every_section_that_shows_something_to_run_is_run():
    documents = ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
    blocks = {
        (document, heading): (
            [arguments[0] for arguments in commands(document, heading)],
            len(python(document, heading)),
        )
        for document in documents
        for heading in sections(document)
    }
    runnable = {section: what for section, what in blocks.items() if what != ([], 0)}
    assert runnable.pop(("docs/guide.md", RECORDS_LIE)) == (["release", "release"], 0)
    approve, ledger = "approve", "ledger"
    by_hand = [approve, approve, ledger, "verify", "release"]
    assert runnable.pop(("docs/guide.md", FOUR_EYES)) == (by_hand, 0)
    assert runnable.pop(("docs/guide.md", TEAM)) == (["ledger", "release", "ledger"], 0)
    assert runnable == RUN


@pytest.mark.parametrize(("document", "heading"), RUN)
def test_a_section_runs(shown, document, heading):
    shown(document, heading)


def test_the_five_commands(shown):
    release = TableRelease.load(shown("README.md", SIX_COMMANDS) / "household-release")
    people = release.table(())
    assert len(people) == 1
    assert abs(float(people["value"].iloc[0]) - RECORDS) < 7 * float(
        people["standard_error"].iloc[0]
    )


def test_the_python_code(shown):
    assert (shown("README.md", "From Python") / "all-three-way.json").exists()


def test_ranges_and_groups(shown):
    released = TableRelease.load(shown("docs/guide.md", AGGREGATION) / "ages-release")
    bases = dict(
        zip(released.plan.workload.domain.names, released.plan.workload.bases, strict=True)
    )
    assert bases["age"] == (Prefix(), Windows(5))
    assert bases["region"] == (Hierarchy(),)
    everybody = released.table("region").iloc[0]  # the first node of a hierarchy
    assert abs(everybody["value"] - RECORDS) < 7 * everybody["standard_error"]


def test_postprocessing(shown):
    assert (shown("docs/guide.md", "Post-processing") / "published" / "manifest.json").exists()


def test_synthetic_records(shown):
    folder = shown("docs/guide.md", "Synthetic records") / "synthetic"
    records = rp.SyntheticRecords.load(folder).records()
    ages = records["age"].astype(int)
    assert not ((ages < 15) & (records["marital_status"] == "Married")).any()
    assert len(records) == pytest.approx(RECORDS, rel=0.5)


def test_targets(shown):
    plan = rp.TablePlan.load(shown("docs/guide.md", TARGETS) / "accurate.json")
    required = plan.workload.required
    assert np.count_nonzero(required) == 2
    assert np.all(
        plan.largest_standard_errors[required] <= plan.workload.targets[required] * (1 + 1e-9)
    )


def test_lists_of_queries(shown):
    folder = shown("docs/guide.md", QUERIES)
    assert np.all(QueryPlan.load(folder / "queries.json").met)
    answers = QueryRelease.load(folder / "queries-release").answers
    assert answers["name"].tolist() == ["adults", "young women", "everybody"]


def test_presets(shown):
    folder = shown("docs/guide.md", PRESETS)
    pyramid = QueryPlan.load(folder / "pyramid.json").queries
    assert set(pyramid.domain.names) == {"sex", "age_group"}
    assert pyramid.names[0] == "young women"
    assert len(pyramid) == 3 * 8
    names = QueryPlan.load(folder / "districts.json").queries.names
    assert "P5 Military quarters" in names


def test_areas(shown):
    folder = shown("docs/guide.md", AREAS)
    plan = rp.AreaPlan.load(folder / "areas.json")
    assert plan.sha256 == rp.AreaPlan.load(folder / "same-areas.json").sha256
    assert (folder / "areas-release" / "manifest.json").exists()


def test_where_the_records_lie(folder, tmp_path, monkeypatch):
    """The dry run as it stands there; what resumes is shown on a run that was stopped."""
    shutil.copytree(folder / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    plan = plan_tables(
        rp.Workload.all_up_to(rp.Domain.load("sample_data/household.json"), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
    )
    plan.save("plan.json")
    dry, finish = commands("docs/guide.md", RECORDS_LIE)
    assert "nothing was charged" in run(dry)
    assert not Path("checked").exists()
    output = finish[-1]
    table = "rpexplore.releases.table_files.TableWriter.table"
    killed(table, 3, "plan.json", "sample_data/household.csv", output)
    run(finish)
    assert TableRelease.load(output).plan.sha256 == plan.sha256


@requires_ssh_keygen
def test_four_eyes(folder, tmp_path, monkeypatch):
    """The commands as they stand there, those of the shell by a shell."""
    shutil.copytree(folder / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    domain = rp.Domain.load("sample_data/household.json")
    tables = rp.Workload.all_up_to(domain, 1)
    plan_tables(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)).save("plan.json")
    given = iter(commands("docs/guide.md", FOUR_EYES))
    blocks = re.findall(r"(?:^    .*\n)+", sections("docs/guide.md")[FOUR_EYES], re.MULTILINE)
    for block in blocks:
        if not block.startswith("    rpexplore"):
            subprocess.run(["sh", "-ec", block], check=True)
        for _ in re.findall("^    rpexplore", block, re.MULTILINE):
            run(next(given))
    approved = TableRelease.load("approved").manifest["approvals"]
    names = [one["name"] for one in approved["given"]]
    assert (approved["demanded"], names) == (2, ["alice@agency.example", "bob@agency.example"])


def test_a_ledger_for_a_team(shown, postgres, monkeypatch):
    database_ledger(postgres, monkeypatch)
    postgres.run("DROP SCHEMA rpexplore_ledger CASCADE", "DROP ROLE IF EXISTS curator")
    postgres.run("CREATE ROLE curator LOGIN")
    monkeypatch.setenv("LEDGER", postgres.url.replace("keeper@", "curator@"))
    folder = shown("README.md", SIX_COMMANDS)
    shutil.copy(folder / "sample_data" / "household.csv", folder / "people.csv")
    said = [run(arguments) for arguments in commands("docs/guide.md", TEAM)]
    assert "is made. Entries can be added by curator." in said[0]
    assert "finished" in said[2]
    postgres.run("DROP OWNED BY curator", "DROP ROLE curator")


def test_the_codebook_is_one():
    text = sections("docs/formats.md")["Codebooks"]
    (codebook,) = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    domain = rp.Domain.parse(codebook, "codebook.json")
    assert domain.sizes.tolist() == [2, 20, 3]
    assert len(domain.impossible) == 1


def test_the_tour_counts_the_tables_as_the_app_does():
    scenario = new_project().scenarios[0]
    tables = rp.Workload.all_up_to(scenario.domain, 3).tables
    counts = [len(scenario.workload), len(tables)]
    for names in ({"region"}, {"sex", "settlement"}):
        counts.append(sum(names <= set(table) for table in tables))
    said = re.findall(
        r"2-way: (\d+)|attributes: (\d+)|all (\d+) tables|give the (\d+)",
        sections("README.md")["A tour in ten minutes"].replace("\n   ", " "),
    )
    assert ["".join(numbers) for numbers in said] == [str(count) for count in counts]
