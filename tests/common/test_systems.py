"""What works where the operating system has less than Linux."""

import os
import subprocess
import sys

from rpexplore import release
from rpexplore.common.processes import workers
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
