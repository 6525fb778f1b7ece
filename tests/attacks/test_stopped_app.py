"""The app stopped while it runs a release: nothing is lost, nothing is spent twice, nobody is left.

A run that was booked is finished before the app ends, or can be finished at no further cost. A few
stops in `make test`, 60 in `make test-all`.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.installation import sample_data_folder
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.release import can_be_resumed
from rpexplore.releases.table_release import TableRelease
from tests.support.app_with_run import BEGUN, FOLDER, OUTPUT, SCRIPT
from tests.support.processes import heed_signals

NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
PATIENCE = 120  # seconds
LONGEST = 3.0  # seconds: about as long as the run

# As `rpexplore app` in a terminal; only the script that it serves is another one.
PROGRAM = f"""
import sys
from pathlib import Path
from rpexplore.cli import serve as webapp
webapp.app_script = lambda: Path({str(SCRIPT)!r})
from rpexplore.cli.main import main
sys.argv = ["rpexplore", "app", "--no-browser", "--port", sys.argv[1]]
main()
"""


def to_all(which: signal.Signals) -> Callable[[subprocess.Popen], None]:
    """What a terminal sends; the server, in a session of its own, is told by the program."""
    return lambda program: os.killpg(program.pid, which)


def twice(program: subprocess.Popen) -> None:
    """Ctrl-C, and again where the app waits for the run."""
    os.killpg(program.pid, signal.SIGINT)
    try:
        program.wait(0.3)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGINT)


STOPS: dict[str, Callable[[subprocess.Popen], None]] = {
    "Ctrl-C": to_all(signal.SIGINT),
    "Ctrl-C twice": twice,
    "SIGTERM": lambda program: program.send_signal(signal.SIGTERM),
    "SIGTERM to all": to_all(signal.SIGTERM),
    "SIGHUP to all": to_all(signal.SIGHUP),
    "killed": lambda program: program.kill(),
}
STOPS_BY_DAY = {"Ctrl-C twice": 1}
STOPS_BY_NIGHT = dict.fromkeys(STOPS, 10)


@pytest.fixture(scope="module")
def plan() -> TablePlan:
    """A plan whose run takes seconds, most of them after it is booked."""
    domain = rp.Domain.load(sample_data_folder() / "household.json")
    workload = rp.Workload.all_up_to(domain, 3)
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))


@contextmanager
def app_with_run(folder: Path) -> Iterator[subprocess.Popen]:
    """The app, whose run of the plan in this folder has just begun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(port)],
        env=os.environ | {FOLDER: str(folder), "RPEXPLORE_HOME": str(folder / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    try:
        wait_for(lambda: (folder / BEGUN).exists(), program)
        yield program
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def wait_for(happened: Callable[[], bool], program: subprocess.Popen) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def states(data: Path) -> list[str]:
    return [run.state for run in Ledger.beside(data).account(data).entries]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("stop", "n"),
    [
        (stop, n)
        for stop, most in (STOPS_BY_NIGHT if NIGHTLY else STOPS_BY_DAY).items()
        for n in range(most)
    ],
)
def test_a_stopped_app_leaves_nothing_half_charged(stop, n, plan, tmp_path):
    data = Path(shutil.copy(sample_data_folder() / "household.csv", tmp_path / "records.csv"))
    output = tmp_path / OUTPUT
    plan.save(tmp_path / "plan.json")
    with app_with_run(tmp_path) as program:
        if NIGHTLY:
            time.sleep(random.Random(f"{stop} {n}").uniform(0, LONGEST))
        else:
            wait_for(lambda: (tmp_path / FILENAME).exists() and bool(states(data)), program)
        STOPS[stop](program)
        # Ends when nobody can write there any more: the server has ended as well.
        _, written = program.communicate(timeout=PATIENCE)
    assert "Traceback" not in written
    (state,) = states(data) or ["free"]
    if stop != "Ctrl-C twice":
        assert state != "started", written
        assert output.exists() == (state == "finished")
    # The second ends it at once: also between the name of the folder and the note in the ledger.
    assert output.exists() or state != "finished"
    if can_be_resumed(output):
        rp.resume(output)
    elif state != "finished":
        rp.release(plan, data, output)
    assert states(data) == ["finished"]
    assert TableRelease.load(output)
