"""What the README shows runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rpexplore.release import Release

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


def test_the_five_commands(folder):
    commands = re.findall(r"^    (rpexplore .*)$", README, re.MULTILINE)
    assert [command.split()[1] for command in commands] == [
        *("schema", "plan", "show", "verify", "release")
    ]
    for command in commands:
        program, *arguments = command.split()
        run = [str(Path(sys.executable).parent / program), *arguments]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    release = Release.load(folder / "household-release")
    people = release.table(())
    assert len(people) == 1
    assert abs(people["value"][0] - 50_001) < 7 * people["standard_error"][0]


def test_the_python_code(folder):
    (code,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    assert (folder / "all-three-way.json").exists()


def test_the_codebook_is_one(folder):
    from rpexplore import Domain

    (text,) = re.findall(r"^```json\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert Domain.parse(text, "codebook.json").sizes.tolist() == [2, 20, 3]
