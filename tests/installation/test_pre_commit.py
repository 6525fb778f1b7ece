"""The hook for pre-commit, run by pre-commit in a repository with plans."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.planning.planner import plan_tables

ROOT = Path(__file__).parents[2]
TABLES = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 3, "b": 2}), 2)


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A repository with a plan and a JSON file that is none."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    # Settings of git and of pre-commit that this machine may have say nothing here.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "environments"))
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    plan = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1"))
    plan.save(folder / "plan.json")
    (folder / "other.json").write_text('{"format": "another"}\n', "utf-8")
    return folder


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def checked(repository: Path) -> subprocess.CompletedProcess[str]:
    """What pre-commit makes of all that is to be committed."""
    git(repository, "add", "--all")
    command = [sys.executable, "-m", "pre_commit", "run", "--color", "never"]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)


def spoil(repository: Path) -> None:
    """Add two plans that are wrong."""
    text = (repository / "plan.json").read_text("utf-8")
    (repository / "changed.json").write_text(text.replace('{"rho":"1"}', '{"rho":"1/2"}'), "utf-8")
    (repository / "cut.json").write_text(text[:-20], "utf-8")


def check_hook(repository: Path) -> None:
    """Fail unless the hook passes a plan, and tells of two that are wrong a line each."""
    done = checked(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    spoil(repository)
    done = checked(repository)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    # Pre-commit hands the files over in an order of its own.
    changed, cut, holds = sorted(line for line in lines if ".json: " in line)
    assert changed.startswith("changed.json: ")
    assert cut.startswith("cut.json: cut.json is not a plan file")
    assert holds == "plan.json: holds"
    assert "- exit code: 2" in lines


def test_the_entry_of_the_hook_passes_a_plan_and_tells_of_each_that_is_wrong(repository):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    program, *arguments = hook["entry"].split()
    assert program == "rpexplore"
    others = [str(repository / name) for name in ("other.json", "plan.json")]
    done = CliRunner().invoke(cli, [*arguments, *others])
    assert done.exit_code == 0, done.output
    spoil(repository)
    files = sorted(map(str, repository.glob("*.json")))
    done = CliRunner().invoke(cli, [*arguments, *files])
    assert done.exit_code == 2
    changed, cut, holds = done.stdout.splitlines()[-3:]
    assert "cut.json is not a plan file" in cut
    assert holds.endswith("plan.json: holds")
    assert "changed.json: " in changed


@pytest.mark.nightly
def test_the_hook_in_this_environment(repository):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    program, _, arguments = hook["entry"].partition(" ")
    # Without an environment of its own, for which pre-commit would install everything.
    hook |= {"language": "system", "entry": f"{Path(sys.executable).parent / program} {arguments}"}
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    check_hook(repository)


@pytest.mark.nightly
def test_the_hook_that_pre_commit_installs(repository, tmp_path):
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir"]
    subprocess.run([*command, str(tmp_path), str(ROOT)], check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    git(source, "init", "--quiet")
    git(source, "add", "--all", "--force")
    git(source, "commit", "--quiet", "--message", "All")
    git(source, "tag", "v1")
    hooks = [{"id": "rpexplore-verify"}]
    config = {"repos": [{"repo": str(source), "rev": "v1", "hooks": hooks}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    check_hook(repository)
