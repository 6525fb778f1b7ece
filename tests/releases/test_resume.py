"""Runs that are stopped: killed, out of disk, refused at the end. Done, not imagined."""

import json
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.release import can_be_resumed, release, resume
from rpexplore.releases.table_release import Release
from tests.support.sealed import edit_manifest
from tests.support.stopped_runs import REFUSED, killed, limited, started

DOMAIN = Domain.from_sizes({"a": 3, "b": 4, "c": 5, "d": 2})
TABLE = "rpexplore.releases.table_files.TableWriter.table"
PLAN = plan(Workload.all_up_to(DOMAIN, 3), loss=SumOfVariances(), budget=Budget(rho="1/2"))


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    rows = np.random.default_rng(5).integers(0, DOMAIN.sizes, (40, 4))
    path.write_text("a,b,c,d\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    PLAN.save(tmp_path / "plan.json")
    return path


@pytest.fixture
def output(data) -> Path:
    (data.parent.parent / "outputs").mkdir()
    return data.parent.parent / "outputs" / "release"


@pytest.fixture
def forbidden_noise(monkeypatch):
    def draw(*args, **options):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", draw)


def states(data: Path) -> list[str]:
    return [run.state for run in Ledger.beside(data).account(data).entries]


def unfinished(output: Path) -> Path:
    return output.parent / f".{output.name}.unfinished"


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def drawn_numbers(folder: Path) -> list[int]:
    return np.fromfile(folder / "run" / "measured.int64", dtype="<i8").tolist()


def measured_in(release_folder: Path) -> list[int]:
    return pq.read_table(release_folder / "residuals.parquet")["measured"].to_pylist()


def run_of(data: Path, output: Path) -> tuple[Path, Path, Path]:
    return data.parent.parent / "plan.json", data, output


@pytest.mark.parametrize(
    ("function", "nth", "charged"),
    [
        ("rpexplore.releases.table_release.TableSteps.check_countable", 1, 0),
        ("rpexplore.releases.ledger.Ledger.book", 1, 0),
        ("rpexplore.releases.release.write_measured", 1, 1),
        ("rpexplore.releases.measurement.measure_residual", 7, 1),
        ("os.fsync", 1, 0),
        ("rpexplore.releases.release.preallocate", 1, 0),
        ("os.fsync", 4, 0),
        ("os.fsync", 5, 1),
        ("rpexplore.releases.release.write_note", 1, 1),
        ("os.fsync", 6, 1),
    ],
)
def test_before_all_is_drawn_a_killed_run_can_be_run_again_and_is_charged_once(
    function, nth, charged, data, output
):
    killed(function, nth, *run_of(data, output))
    assert states(data) == ["started"] * charged
    assert not output.exists()
    with pytest.raises(ReleaseError, match=r"no run into .* that could be finished"):
        resume(output)
    # Booked or not, the same run again is charged once in all.
    release(PLAN, data, output)
    assert states(data) == ["finished"]
    assert entries(output.parent) == ["release"]


@pytest.mark.parametrize(
    ("function", "nth"),
    [
        ("rpexplore.releases.table_release.TableSteps.write", 1),
        (TABLE, 1),
        ("rpexplore.releases.table_files.file_entry", 9),
        ("rpexplore.releases.table_files.TableWriter.residuals", 1),
        ("rpexplore.releases.table_release.Release.write_manifest", 1),
        ("rpexplore.releases.atomic_folder._open_as_usual", 1),
        ("pathlib.Path.rmdir", 1),
        ("os.sync", 1),
    ],
)
def test_once_all_is_drawn_a_killed_run_is_finished_without_drawing_again(
    function, nth, data, output, forbidden_noise
):
    killed(function, nth, *run_of(data, output))
    assert states(data) == ["started"]
    assert not output.exists()
    with pytest.raises(ReleaseError, match="not a finished release"):
        Release.load(output)
    drawn = drawn_numbers(unfinished(output))
    data.unlink()  # the records are not needed
    done = resume(output)
    assert measured_in(output) == drawn
    assert states_of(output, data) == ["finished"]
    assert entries(output.parent) == ["release"]
    assert "run" not in entries(output)
    assert len(list((output / "tables").iterdir())) == 2 * len(PLAN.workload)
    assert Release.load(output).manifest == done.manifest
    with pytest.raises(ReleaseError, match="already something"):
        resume(output)


def states_of(output: Path, data: Path) -> list[str]:
    accounts = Ledger.beside(data).accounts()
    return [run.state for account in accounts for run in account.entries]


def test_a_resumed_run_can_be_killed_and_resumed(data, output):
    killed(TABLE, 3, *run_of(data, output))
    drawn = drawn_numbers(unfinished(output))
    killed(TABLE, 5, "resume", output)
    resume(output)
    assert measured_in(output) == drawn
    assert states(data) == ["finished"]


def test_killed_when_it_has_its_name_the_release_is_whole_and_can_be_tidied(data, output):
    killed("shutil.rmtree", 2, *run_of(data, output))  # the first is before tables are written
    assert output.exists()
    assert Release.load(output).plan.sha256 == PLAN.sha256
    assert states(data) == ["finished"]
    assert can_be_resumed(output)
    resume(output)
    assert states(data) == ["finished"]
    assert "run" not in entries(output)
    assert not can_be_resumed(output)


def test_a_manifest_that_is_not_the_ledger_s_is_not_noted(data, output, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.charged_run.shutil.rmtree", lambda *_, **__: None)
        release(PLAN, data, output)
    edit_manifest(output, lambda manifest: manifest["versions"].update(numpy="0"))
    with pytest.raises(ReleaseError, match=r"is not the one that the ledger .* holds"):
        resume(output)


def test_another_run_does_not_clear_what_can_be_finished(data, output, forbidden_noise):
    killed(TABLE, 2, *run_of(data, output))
    with pytest.raises(ReleaseError, match="rpexplore release --resume"):
        release(PLAN, data, output)
    assert states(data) == ["started"]
    resume(output)
    assert states(data) == ["finished"]


def test_resumed_tables_are_those_of_the_measurements(data, output):
    """The same measurements give the same bytes, however often the writing was begun."""
    killed(TABLE, 2, *run_of(data, output))
    shutil.copytree(unfinished(output), output.parent / ".copy.unfinished")
    first, second = resume(output), resume(output.parent / "copy")
    hashes = [
        {entry["path"]: entry["sha256"] for entry in each.manifest["files"]}
        for each in (first, second)
    ]
    assert hashes[0] == hashes[1]


def test_two_resumes_at_once_write_one_release(data, output):
    killed(TABLE, 2, *run_of(data, output))
    both = [started("resume", output) for _ in range(2)]
    for each in both:
        each.join(120)
    assert sorted(each.exitcode or 0 for each in both) == [0, REFUSED]
    assert Release.load(output)
    assert states(data) == ["finished"]


# --- a full disk: no file may grow beyond a limit


def test_a_disk_without_room_for_the_noise_is_noticed_before_the_charge(data, output):
    Ledger.beside(data).set_limit(data, PLAN.record_rho)  # makes the file, as large as it gets
    size = Ledger.beside(data).path.stat().st_size
    big = Domain.from_sizes({"a": 3, "b": 4, "c": size // 8})
    workload = Workload.all_up_to(big, 3)
    plan(workload, loss=SumOfVariances(), budget=Budget(rho="1/2")).save(
        data.parent.parent / "plan.json"
    )
    message = limited(size, *run_of(data, output))
    assert "File too large" in message
    assert "was not booked" in message
    assert states(data) == []
    assert entries(output.parent) == []


def test_a_resume_without_room_leaves_all_that_another_needs(data, output):
    killed(TABLE, 2, *run_of(data, output))
    drawn = drawn_numbers(unfinished(output))
    message = limited(400, "resume", output)
    assert "File too large" in message
    resume(output)
    assert measured_in(output) == drawn


def test_a_disk_that_is_full_afterwards_is_told_how_to_go_on(data, output, monkeypatch):
    def full(self, position):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.table_files.TableWriter.table", full)
        with pytest.raises(ReleaseError, match=r"No space left .* without further cost") as caught:
            release(PLAN, data, output)
    assert f"--resume --out {output}" in str(caught.value)
    assert states(data) == ["started"]
    drawn = drawn_numbers(unfinished(output))
    resume(output)
    assert measured_in(output) == drawn


# --- what was left is not what was booked


@pytest.mark.parametrize("how", ["measured", "shorter", "plan", "note", "other plan", "ledger"])
def test_a_changed_remainder_is_refused_and_kept(how, data, output, tmp_path):
    killed(TABLE, 2, *run_of(data, output))
    left, ledger = unfinished(output), None
    measured = left / "run" / "measured.int64"
    if how == "measured":
        measured.write_bytes(bytes([measured.read_bytes()[0] ^ 1]) + measured.read_bytes()[1:])
    elif how == "shorter":
        measured.write_bytes(measured.read_bytes()[:-8])
    elif how == "plan":
        other_plan = plan(PLAN.workload, loss=SumOfVariances(), budget=Budget(rho="1/3"))
        (left / "plan.json").write_text(other_plan.text)
    elif how == "note":
        (left / "run" / "drawn.json").write_text("{}")
    elif how == "other plan":
        other_plan = plan(PLAN.workload, loss=SumOfVariances(), budget=Budget(rho="1/3"))
        (left / "plan.json").write_text(other_plan.text)
        note = json.loads((left / "run" / "drawn.json").read_text())
        note["plan_sha256"] = other_plan.sha256
        (left / "run" / "drawn.json").write_text(json.dumps(note))
    else:
        ledger = tmp_path / "elsewhere.sqlite"
    with pytest.raises(ReleaseError, match="cannot be finished"):
        resume(output, ledger=ledger)
    assert left.exists()
    assert not output.exists()
    assert states(data) == ["started"]


def test_nothing_to_resume(output):
    with pytest.raises(ReleaseError, match="no run into"):
        resume(output)
    unfinished(output).mkdir()
    with pytest.raises(ReleaseError, match="no run into"):
        resume(output)


# --- killed at any moment


def test_at_whatever_moment_it_is_killed(data, output):
    """By the clock: whatever the moment, one charge at most, nothing half, and a way on."""
    seen = set()
    for attempt in range(14):
        where = output.with_name(f"release{attempt}")
        before = len(states(data))
        run = started(*run_of(data, where))
        time.sleep(0.012 * attempt)
        run.kill()
        run.join(120)
        charged = len(states(data)) - before
        assert charged <= 1
        drawn = (unfinished(where) / "run" / "drawn.json").exists()
        if where.exists():
            assert charged == 1
            Release.load(where)
            seen.add("finished")
        elif drawn:
            assert charged == 1
            numbers = drawn_numbers(unfinished(where))
            resume(where)
            assert measured_in(where) == numbers
            assert states(data)[-1] == "finished"
            seen.add("drawn")
        else:
            seen.add("charged" if charged else "free")
    assert seen  # which moments are met depends on the machine
