"""Refused records: the process ends by exit code 2, holds no file open, and leaves no memory dump.

A process that ends by SIGABRT can leave a core, with every record that it has read.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

import rpexplore as rp
from rpexplore.common.processes import in_other_process
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError
from tests.cli.program import started
from tests.support.processes import dumpable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc and prctl")

N_RUNS = 200 if os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly" else 1  # 10 of 254 failed
PATIENCE = 30  # seconds
DOMAIN = rp.Domain((rp.Attribute("sex", rp.Categories(("f", "m"))),))


FORBIDDEN = "0 (0, 0)"
REPORT = """
import atexit
from tests.support.processes import dumpable
atexit.register(lambda: print(dumpable()))
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def refused(tmp_path, monkeypatch) -> list[str]:
    """A release of records with a value outside the codebook, long before their end."""
    monkeypatch.chdir(tmp_path)
    tables = rp.Workload.all_up_to(DOMAIN, 1)
    rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)).save("plan.json")
    Path("people.csv").write_text("sex,note\nx,1\n" + "f,2\n" * 2000)
    return ["release", "plan.json", "people.csv", "--out", "out", "--yes"]


def test_refused_records_end_a_process_that_cannot_be_dumped_by_exit_code_2(refused):
    for _ in range(N_RUNS):
        process = started(*refused, patch=REPORT, env=os.environ | {"PYTHONPATH": str(ROOT)})
        printed, said = process.communicate()
        assert (process.returncode, said.count("\n")) == (2, 1), said
        assert printed.splitlines()[-1] == FORBIDDEN


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_threads_of_arrow_need_no_interpreter_to_read_on(ending, tmp_path, monkeypatch):
    """One that waits for it at exit is what ends a process by SIGABRT."""
    pd.DataFrame({"sex": ["f", "x"]}).to_csv(tmp_path / f"people.{ending}", index=False)
    given = []
    open_csv = pyarrow.csv.open_csv
    monkeypatch.setattr(
        pyarrow.csv, "open_csv", lambda file, **kw: (given.append(file), open_csv(file, **kw))[1]
    )
    with pytest.raises(DataError):
        FileSource(tmp_path / f"people.{ending}").count(DOMAIN, [(0,)])
    assert [type(file) for file in given] == [
        pa.OSFile if ending == "csv" else pa.CompressedInputStream
    ]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("rule", [None, PersonRule("id", 9)], ids=["", "persons"])
def test_no_file_is_open_after_a_refusal(ending, rule, tmp_path):
    """Also while somebody keeps the error, whose traceback holds whatever was at work."""
    path = tmp_path / f"people.{ending}"
    frame = pd.DataFrame({"sex": ["x"] * 300_000, "id": ["", *["7"] * 299_999]})
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    with pytest.raises(DataError) as caught:
        FileSource(path).count(DOMAIN, [(0,)], person_rule=rule)
    end = time.monotonic() + PATIENCE
    while open_files := [link for link in links() if link == str(path)]:
        # Arrow may still read ahead for a moment.
        assert time.monotonic() < end, (open_files, caught.value)
        time.sleep(0.01)


def links() -> list[str]:
    """What this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # that of the list itself
            continue
    return found


def test_processes_that_read_records_for_it_cannot_be_dumped():
    assert in_other_process(dumpable) == FORBIDDEN


def test_the_app_cannot_be_dumped():
    program = """
import asyncio
from rpexplore.serving.server import lifespan
from tests.support.processes import dumpable
async def serve():
    async with lifespan(None):
        print(dumpable())
asyncio.run(serve())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [FORBIDDEN], done.stderr
