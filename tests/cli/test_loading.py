"""What a verb loads: nothing slow that its output does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

from rpexplore.common.numbers import normal_quantile
from rpexplore.planning.part_plan import Z_95
from tests.cli.program import CODEBOOK

SLOW = ("pandas", "pyarrow", "scipy.linalg", "scipy.optimize")


def slow_modules_of(folder: Path, *arguments: str, slow: tuple[str, ...] = SLOW) -> str:
    """Which of the slow packages are loaded after a verb, in a process of its own."""
    source = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print([name for name in {slow} if name in sys.modules]))\n"
        "from rpexplore.cli.main import main\nmain()"
    )
    command = [sys.executable, "-c", source, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loading")
    (folder / "codebook.csv").write_text(CODEBOOK, "utf-8")
    return folder


def test_planning_and_showing_load_no_frames(folder: Path):
    options = ("--out", "plan.json", "--up-to", "2", "--rho", "0.1")
    assert slow_modules_of(folder, "plan", "codebook.csv", *options) == "[]"
    assert slow_modules_of(folder, "show", "plan.json") == "[]"


@pytest.mark.nightly
def test_tables_as_csv_load_frames(folder: Path):
    options = ("--out", "listed.json", "--up-to", "2", "--rho", "0.1")
    slow_modules_of(folder, "plan", "codebook.csv", *options)
    assert "pandas" in slow_modules_of(folder, "show", "listed.json", "--csv", "plan.csv")


def test_showing_a_codebook_loads_nothing_of_planning(folder: Path):
    slow = ("pandas", "pyarrow", "scipy", "rpexplore.planning")
    assert slow_modules_of(folder, "schema", "codebook.csv", slow=slow) == "[]"


def test_the_quantile_that_is_written_out_is_the_one_of_scipy():
    assert normal_quantile(0.95) == Z_95
