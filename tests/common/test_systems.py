"""What works where the operating system has less than Linux."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from rpexplore import release
from rpexplore.common.processes import heed_memory_limit, workers
from rpexplore.releases.table_release import TableRelease
from tests.releases.table_plan import CSV, PLAN

WINDOWS = """
import os, signal, sys
sys.modules["fcntl"] = None
for name in ("sched_getaffinity", "posix_fallocate", "O_DIRECTORY", "O_NOFOLLOW", "getuid", "sync"):
    delattr(os, name)
del signal.SIGHUP
import rpexplore as rp
from rpexplore.cli import main, release
from rpexplore.errors import ReleaseError
from tests.releases.table_plan import PLAN
PLAN.save(sys.argv[1])
assert rp.Plan.load(sys.argv[1]).sha256 == PLAN.sha256
try:
    rp.release(PLAN, "records.csv", "out")
except ReleaseError as error:
    print(error)
"""


@pytest.mark.by_day(1)
@pytest.mark.skipif(sys.platform != "linux", reason="has limits of addresses")
@pytest.mark.parametrize(("limit", "code"), [(600_000_000, 2), (1_500_000_000, 0)])
def test_little_memory_is_said_in_a_sentence_or_suffices(limit, code, tmp_path):
    """With 64 threads of OpenBLAS, 1.5 GB would not; with less it loops."""
    PLAN.save(tmp_path / "plan.json")
    command = ["-c", "from rpexplore.cli.main import main; main()", "show", "plan.json"]
    environment = {name: value for name, value in os.environ.items() if "OPENBLAS" not in name}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    if code:
        assert done.stderr.startswith("error: This program may take 600 MB of memory here")


@pytest.mark.parametrize(("limit", "threads"), [(2 * 10**9, "1"), (10**10, None), (-1, None)])
def test_under_a_limit_of_memory_linear_algebra_has_one_thread(limit, threads, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    heed_memory_limit()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == threads
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)


def test_without_locks_plans_are_made_and_releases_refused(tmp_path):
    command = [sys.executable, "-c", WINDOWS, str(tmp_path / "plan.json")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert said.startswith("This system cannot lock a folder")
    assert (tmp_path / "plan.json").is_file()


def test_a_release_runs_where_processors_and_room_are_asked_for_otherwise(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "posix_fallocate")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "records.csv").write_text(CSV)
    release(PLAN, tmp_path / "data" / "records.csv", tmp_path / "out")
    assert TableRelease.load(tmp_path / "out").plan.sha256 == PLAN.sha256
    assert 1 <= workers() <= 4
