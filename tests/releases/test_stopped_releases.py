"""Releases that are interrupted, killed or raced: booked before any noise, and once."""

import contextlib
import importlib
import signal
import subprocess
import sys
import threading
from fractions import Fraction

import pytest

from rpexplore.errors import ReleaseError, RpexploreError
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import release, resume
from rpexplore.releases.table_release import TableRelease
from tests.releases.table_plan import PLAN, draw_by, entries, no_noise, runs
from tests.support.processor_time import PATIENCE


def test_a_run_is_on_disk_before_the_first_noise(planned, data, output, monkeypatch):
    seen = []

    def spy(size, gamma_squared):
        seen.append([run.state for run in runs(data)])
        assert not output.exists()
        return no_noise(size, gamma_squared)

    draw_by(monkeypatch, spy)
    release(planned, data, output)
    assert seen == [["started"]] * (len(PLAN.closure) if planned is PLAN else 1)
    assert [run.state for run in runs(data)] == ["finished"]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize(
    "where",
    ["noise", "rpexplore.releases.release.write_measured", "rpexplore.releases.release.write_note"],
)
def test_an_interrupted_run_stays_charged_and_can_be_run_again_for_nothing(
    error, where, planned, data, output, monkeypatch
):
    calls = []

    def interrupt(*args, **options):
        calls.append(args)
        raise error

    with monkeypatch.context() as patch:
        if where == "noise":
            draw_by(patch, interrupt)
        else:
            patch.setattr(where, interrupt)
        with pytest.raises(error):
            release(planned, data, output)
    assert calls
    assert [run.state for run in runs(data)] == ["started"]
    assert runs(data)[0].record_rho == planned.record_rho
    assert entries(output.parent) == [".release.unfinished"]
    release(planned, data, output)
    assert [run.state for run in runs(data)] == ["finished"]
    assert entries(output.parent) == ["release"]


def test_a_full_disk_is_told_in_one_sentence(data, output, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rpexplore.releases.release.write_measured", full)
    with pytest.raises(ReleaseError, match="No space left on device"):
        release(PLAN, data, output)
    assert [run.state for run in runs(data)] == ["started"]
    assert entries(output.parent) == [".release.unfinished"]


def test_what_fails_before_the_booking_is_not_said_to_be_charged(data, output, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rpexplore.releases.charged_run.write_booking", full)
    with pytest.raises(RpexploreError) as caught:
        release(PLAN, data, output)
    assert runs(data) == ()
    assert entries(output.parent) == []
    assert "stays charged" not in str(caught.value)


KILLED = """
import os, signal, sys
import rpexplore.releases.measurement as module
from rpexplore.planning.plan import Plan
from rpexplore.releases.release import release
calls = []
discrete_gaussian = module.discrete_gaussian
def deadly(*args):
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return discrete_gaussian(*args)
module.discrete_gaussian = deadly
release(Plan.load(sys.argv[1]), sys.argv[2], sys.argv[3])
"""


@pytest.mark.nightly
def test_a_killed_run_stays_charged_and_leaves_nothing_that_looks_finished(data, output, tmp_path):
    PLAN.save(tmp_path / "plan.json")
    arguments = [str(tmp_path / "plan.json"), str(data), str(output)]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], timeout=PATIENCE, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert [run.state for run in runs(data)] == ["started"]
    (left,) = output.parent.iterdir()
    assert left.name == ".release.unfinished"
    assert left.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ReleaseError, match="not a finished release"):
        TableRelease.load(left)
    release(PLAN, data, output)
    assert entries(output.parent) == ["release"]


def test_an_output_that_appears_on_the_way_is_not_overwritten(data, output, monkeypatch):
    def meanwhile(size, gamma_squared):
        output.mkdir(exist_ok=True)
        (output / "precious").touch()
        return no_noise(size, gamma_squared)

    draw_by(monkeypatch, meanwhile)
    with pytest.raises(ReleaseError, match="already something"):
        release(PLAN, data, output)
    assert entries(output) == ["precious"]
    assert [run.state for run in runs(data)] == ["started"]
    # What is paid for is not lost: it is finished when the way is free.
    output.rename(output.with_name("away"))
    resume(output)
    assert entries(output.parent) == ["away", "release"]
    assert [run.state for run in runs(data)] == ["finished"]


def race(monkeypatch, *calls) -> list[TableRelease | RpexploreError]:
    """Runs the calls at once, each held where its records have been read; what each gave."""
    module = importlib.import_module("rpexplore.releases.measurement")
    everybody, check = threading.Barrier(len(calls)), module.check_countable

    def wait(*args):
        with contextlib.suppress(threading.BrokenBarrierError):  # one was refused before
            everybody.wait(1)
        check(*args)

    monkeypatch.setattr(module, "check_countable", wait)
    outcomes = []

    def attempt(call):
        try:
            outcomes.append(call())
        except RpexploreError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=attempt, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_two_runs_racing_for_the_last_of_the_limit_one_wins(data, output, monkeypatch):
    Ledger.beside(data).set_limit(data, Fraction(3, 4))
    drawn = []

    def spy(size, gamma_squared):
        drawn.append(size)
        return no_noise(size, gamma_squared)

    draw_by(monkeypatch, spy)
    outcomes = race(
        monkeypatch,
        lambda: release(PLAN, data, output),
        lambda: release(PLAN, data, output.with_name("two")),
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["LedgerError", "Release"]
    assert len(drawn) == len(PLAN.closure)  # the loser drew none
    assert len(runs(data)) == 1
    assert len(entries(output.parent)) == 1


def test_of_two_first_caps_one_is_noted_and_the_other_refused(data, output, monkeypatch):
    account, everybody = Ledger.account_of, threading.Barrier(2)

    def slow_account(self, source):
        booked = account(self, source)
        with contextlib.suppress(threading.BrokenBarrierError):
            everybody.wait(0.5)
        return booked

    monkeypatch.setattr(Ledger, "account_of", slow_account)
    outcomes = race(
        monkeypatch,
        lambda: release(PLAN, data, output, limit_rho=1),
        lambda: release(PLAN, data, output.with_name("two"), limit_rho=2),
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["LedgerError", "Release"]


def test_of_two_runs_to_one_output_one_is_refused_before_it_pays(data, output, monkeypatch):
    outcomes = race(monkeypatch, *[lambda: release(PLAN, data, output)] * 2)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [
        "Release",
        "ReleaseError",
    ]
    assert [run.state for run in runs(data)] == ["finished"]
    assert entries(output.parent) == ["release"]
    TableRelease.load(output)
