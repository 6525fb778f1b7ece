"""What the README shows runs as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.queries.plan import QueryPlan
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.table_release import Release
from rpexplore.workload.bases import Hierarchy, Prefix, Windows
from tests.support.stopped_runs import killed

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that looks like a clone where the README's commands write."""
    (tmp_path / "sample_data").mkdir()
    for name in ("household.json", "household.csv"):
        (tmp_path / "sample_data" / name).write_bytes((ROOT / "sample_data" / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def section(heading: str) -> str:
    (text,) = re.findall(rf"^## {heading}\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    return text


def commands_of(heading: str) -> list[str]:
    text = section(heading).replace("\\\n", " ")
    return re.findall(r"^    (rpexplore .*)$", text, re.MULTILINE)


def run_commands(heading: str) -> list[str]:
    """Run the commands of a section, in their order; returns their verbs."""
    commands = commands_of(heading)
    for command in commands:
        program, *arguments = shlex.split(command)
        run = [str(Path(sys.executable).parent / program), *arguments]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return [command.split()[1] for command in commands]


def run_python(heading: str) -> None:
    """Run every piece of Python of a section, each by itself."""
    pieces = re.findall(r"^```python\n(.*?)^```", section(heading), re.MULTILINE | re.DOTALL)
    assert pieces
    for code in pieces:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_five_commands(folder):
    verbs = run_commands("The whole way in five commands")
    assert verbs == ["schema", "plan", "show", "verify", "release"]
    release = Release.load(folder / "household-release")
    people = release.table(())
    assert len(people) == 1
    assert abs(people["value"][0] - 50_001) < 7 * people["standard_error"][0]


def test_the_python_code(folder):
    run_python("From Python")
    assert (folder / "all-three-way.json").exists()


def test_ranges_and_groups(folder):
    verbs = run_commands("Ranges, running totals and groups")
    assert verbs == ["plan", "show", "release", "answer"]
    released = Release.load(folder / "asked-release")
    bases = dict(
        zip(released.plan.workload.domain.names, released.plan.workload.bases, strict=True)
    )
    assert bases["age"] == (Prefix(), Windows(5))
    assert bases["region"] == (Hierarchy(),)
    everybody = released.table("region").iloc[0]  # the first node of a hierarchy
    assert abs(everybody["value"] - 50_001) < 7 * everybody["standard_error"]
    run_python("Ranges, running totals and groups")


def test_after_the_noise(folder):
    run_commands("The whole way in five commands")
    verbs = run_commands("After the noise")
    assert verbs == ["release", "combine", "postprocess", "answer"]
    assert (folder / "published" / "manifest.json").exists()


def test_where_the_records_lie(folder):
    """The dry run as it stands there; what resumes is shown on a run that was stopped."""
    plan = rp.plan(
        rp.Workload.all_up_to(rp.Domain.load("sample_data/household.json"), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
    )
    plan.save("plan.json")
    dry, finish = commands_of("Where the records lie")
    program = str(Path(sys.executable).parent / "rpexplore")
    found = subprocess.run(
        [program, *shlex.split(dry)[1:]], check=True, capture_output=True, text=True
    )
    assert "nothing was charged" in found.stdout
    assert not Path("checked").exists()
    output = shlex.split(finish)[-1]
    table = "rpexplore.releases.table_folder.FolderWriter.table"
    killed(table, 3, "plan.json", "sample_data/household.csv", output)
    subprocess.run([program, *shlex.split(finish)[1:]], check=True, stdout=subprocess.DEVNULL)
    assert Release.load(output).plan.sha256 == plan.sha256


def test_the_codebook_is_one(folder):
    from rpexplore import Domain

    (text,) = re.findall(r"^```json\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert Domain.parse(text, "codebook.json").sizes.tolist() == [2, 20, 3]


def test_targets(folder):
    assert run_commands("Accuracy first: targets") == ["plan", "show"]
    plan = rp.Plan.load(folder / "accurate.json")
    musts = plan.workload.musts
    assert np.count_nonzero(musts) == 2
    assert np.all(plan.worst_standard_errors[musts] <= plan.workload.targets[musts] * (1 + 1e-9))
    run_python("Accuracy first: targets")


def test_lists_of_queries(folder):
    verbs = run_commands("Your own list of queries")
    assert verbs == ["queries", "verify", "release"]
    assert np.all(QueryPlan.load(folder / "queries.json").met)
    answers = QueryRelease.load(folder / "queries-release").answers
    assert answers["name"].tolist() == ["adults", "young women", "everybody"]
