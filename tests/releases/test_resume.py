"""Runs that are stopped: killed, out of disk, refused at the end. Done, not imagined."""

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.errors import ReleaseError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.booked_run import booked_run
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.measurement_file import read_booking, write_booking
from rpexplore.releases.release import can_be_resumed, release, resume
from rpexplore.releases.table_release import TableRelease
from rpexplore.workload.query_list import QueryList
from tests.releases.table_plan import entries
from tests.support.query_lists import query_plan
from tests.support.sealed import edit_manifest
from tests.support.stopped_runs import REFUSED, killed, limited, started

DOMAIN = Domain.from_sizes({"a": 3, "b": 4, "c": 5, "d": 2})
COEFFICIENTS = np.vstack([np.ones(12), np.eye(12)[:5], np.repeat([1.0, 0, -1], 4)])
NAMES = tuple(f"query {number}" for number in range(len(COEFFICIENTS)))
QUERIES = QueryList(
    Domain.from_sizes({"a": 3, "b": 4}), COEFFICIENTS, NAMES, np.full(len(NAMES), 2.0)
)


def planned_with(rho: str) -> dict[str, PartPlan]:
    budget = Budget(rho=rho)
    tables = plan_tables(Workload.all_up_to(DOMAIN, 3), loss=SumOfVariances(), budget=budget)
    return {"tables": tables, "queries": query_plan(QUERIES, budget=budget)}


PLANS, OTHER_PLANS = planned_with("1/2"), planned_with("1/3")
TABLE = "rpexplore.releases.table_release.TableWriter.table"
WRITE = "rpexplore.releases.query_release.QuerySteps.write"
# Where a run is killed while it writes, and when it does so again.
WHILE_WRITING = {
    "tables": ((TABLE, 2), (TABLE, 5)),
    "queries": (
        (WRITE, 1),
        ("rpexplore.releases.release_steps.write_manifest", 1),
    ),
}


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    rows = np.random.default_rng(5).integers(0, DOMAIN.sizes, (40, 4))
    path.write_text("a,b,c,d\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.fixture(params=PLANS)
def kind(request, tmp_path) -> str:
    """The kind of the plan that is run, which is saved."""
    PLANS[request.param].save(tmp_path / "plan.json")
    return request.param


@pytest.fixture
def stopped(kind, data, output) -> Path:
    """The folder of a run that was killed while it wrote."""
    killed(*WHILE_WRITING[kind][0], *run_of(data, output))
    return unfinished(output)


def states(data: Path) -> list[str]:
    accounts = Ledger.beside(data).accounts()
    return [entry.state for account in accounts for entry in account.entries]


def unfinished(output: Path) -> Path:
    return output.parent / f".{output.name}.unfinished"


def drawn_numbers(folder: Path) -> list[int]:
    return np.fromfile(folder / "run" / "measured.int64", dtype="<i8").tolist()


def measured_in(folder: Path) -> list[int]:
    (path,) = (*folder.glob("residuals.parquet"), *folder.glob("counts/measurements.parquet"))
    return pq.read_table(path)["measured"].to_pylist()


def loaded(kind: str, folder: Path) -> Release:
    done = Release.load(folder)
    assert done.part(PLANS[kind].kind)
    return done


def stop(*_, **__):
    raise KeyboardInterrupt


def run_of(data: Path, output: Path) -> tuple[Path, Path, Path]:
    return data.parent.parent / "plan.json", data, output


STEPS = {
    "tables": "rpexplore.releases.table_release.TableSteps",
    "queries": "rpexplore.releases.query_release.QuerySteps",
}
NOTES = ("written-0.jsonl",)
NOISE = {
    "tables": ("rpexplore.releases.measurement.discrete_gaussian", 4),
    "queries": ("rpexplore.releases.query_release.discrete_gaussian", 1),
}


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("kind", "function", "nth", "charged"),
    [
        (kind, *point)
        for kind in PLANS
        for point in (
            (f"{STEPS[kind]}.check_countable", 1, 0),
            ("rpexplore.releases.ledger.ledger.Ledger.book", 1, 0),
            ("rpexplore.releases.release.write_measured", 1, 1),
            (*NOISE[kind], 1),
            ("os.fsync", 1, 0),
            ("os.posix_fallocate", 1, 0),
            ("os.fsync", 3, 0),
            ("os.fsync", 4, 1),
            ("rpexplore.releases.release.write_note", 1, 1),
            ("os.fsync", 5, 1),
        )
    ],
    indirect=["kind"],
)
def test_before_all_is_drawn_a_killed_run_can_be_run_again_and_is_charged_once(
    kind, function, nth, charged, data, output
):
    killed(function, nth, *run_of(data, output))
    assert states(data) == ["started"] * charged
    assert not output.exists()
    with pytest.raises(ReleaseError, match=r"no run into .* that could be finished"):
        resume(output)
    # Booked or not, the same run again is charged once in all.
    release(PLANS[kind], data, output)
    assert states(data) == ["finished"]
    assert entries(output.parent) == ["release"]


@pytest.mark.parametrize("kind", ["tables"], indirect=True)
def test_a_folder_put_back_when_its_run_has_finished_is_charged_again(kind, data, output, tmp_path):
    """Else whoever keeps a copy of it would draw noise of the same counts as often as they like."""
    killed("rpexplore.releases.release.write_measured", 1, *run_of(data, output))
    shutil.copytree(unfinished(output), tmp_path / "kept")
    release(PLANS[kind], data, output)
    assert states(data) == ["finished"]
    shutil.rmtree(output)
    shutil.copytree(tmp_path / "kept", unfinished(output))
    release(PLANS[kind], data, output)
    assert states(data) == ["finished"] * 2


def test_a_folder_whose_run_is_booked_is_for_no_other_plan(kind, data, output, monkeypatch):
    """That would draw its noise for what the plan before was charged."""
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.release.write_measured", stop)
        with pytest.raises(KeyboardInterrupt):
            release(PLANS[kind], data, output)
    with pytest.raises(ReleaseError, match=r"was booked and stopped; run the same plan \(SHA-256"):
        release(OTHER_PLANS[kind], data, output)
    assert states(data) == ["started"]
    release(PLANS[kind], data, output)
    assert states(data) == ["finished"]


@pytest.mark.parametrize("kind", ["tables"], indirect=True)
def test_a_run_that_was_booked_before_a_note_is_not_the_run_of_the_note(kind, data, output):
    """As where the same plan was stopped in this folder before: that is no second run for free."""
    killed("rpexplore.releases.release.write_measured", 1, *run_of(data, output))
    booked, folder = booked_run(output), unfinished(output)
    assert booked is not None
    note = replace(read_booking(folder), started="")  # as earlier versions wrote it
    for n_entries, found in ((booked.id - 1, booked), (booked.id, None)):
        write_booking(folder, replace(note, n_entries=n_entries))
        assert booked_run(output) == found


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("kind", "function", "nth"),
    [
        ("tables", TABLE, 1),
        ("tables", "rpexplore.releases.table_cells.file_entry", 9),
        ("tables", "rpexplore.releases.table_release.TableWriter.residuals", 1),
        ("tables", "rpexplore.releases.release_steps.write_manifest", 1),
        ("tables", "pathlib.Path.rmdir", 1),
        ("queries", "pyarrow.csv.write_csv", 1),
        ("queries", "rpexplore.releases.query_release.file_entry", 3),
        ("queries", "rpexplore.releases.release_steps.write_manifest", 1),
        *((kind, f"{STEPS[kind]}.write", 1) for kind in PLANS),
        *((kind, "rpexplore.releases.atomic_folder._usual_mode", 1) for kind in PLANS),
        *((kind, "os.sync", 1) for kind in PLANS),
    ],
    indirect=["kind"],
)
def test_once_all_is_drawn_a_killed_run_is_finished_without_drawing_again(
    kind, function, nth, data, output, forbidden_noise
):
    killed(function, nth, *run_of(data, output))
    assert states(data) == ["started"]
    assert not output.exists()
    with pytest.raises(ReleaseError, match="not a finished release"):
        loaded(kind, output)
    drawn = drawn_numbers(unfinished(output))
    data.unlink()  # the records are not needed
    done = resume(output)
    assert measured_in(output) == drawn
    assert states(data) == ["finished"]
    assert entries(output.parent) == ["release"]
    assert "run" not in entries(output)
    if kind == "queries":
        answers = PLANS[kind].strategy.decoding @ drawn
        assert np.allclose(done.answers["answer"], answers, 1e-12)
    else:
        assert len(list((output / "tables").iterdir())) == 2 * PLANS[kind].n_items
    assert loaded(kind, output).manifest == done.manifest
    assert resume(output).manifest == done.manifest  # it is complete: nothing is left to do


def test_a_resumed_run_can_be_killed_and_resumed(kind, stopped, data, output):
    drawn = drawn_numbers(stopped)
    killed(*WHILE_WRITING[kind][1], "resume", output)
    resume(output)
    assert measured_in(output) == drawn
    assert states(data) == ["finished"]


def test_killed_when_it_has_its_name_the_release_is_whole_and_can_be_tidied(kind, data, output):
    # The first three remove drafts of notes: on where the ledger ended, at booking and finishing,
    # and on what was shown.
    killed("shutil.rmtree", 4, *run_of(data, output))
    assert loaded(kind, output).plan.sha256 == PLANS[kind].sha256
    assert states(data) == ["finished"]
    assert can_be_resumed(output)
    assert resume(output).manifest == loaded(kind, output).manifest
    assert states(data) == ["finished"]
    assert "run" not in entries(output)
    assert not can_be_resumed(output)


def test_complete_files_are_kept_and_others_written_again(data, output, tmp_path, monkeypatch):
    monkeypatch.setattr("rpexplore.releases.residual_files._ROWS_PER_FILE", 50)
    monkeypatch.setattr("rpexplore.releases.manifest._BYTES_BETWEEN_NOTES", 0)
    PLANS["tables"].save(tmp_path / "plan.json")
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.table_release.table_readme", stop)
        with pytest.raises(KeyboardInterrupt):
            release(PLANS["tables"], data, output)
    before = {path.name: path.stat() for path in unfinished(output).rglob("*/*.*")}
    changed, cut = (unfinished(output) / "tables" / f"0001_a.{end}" for end in ("csv", "parquet"))
    changed.write_text(changed.read_text().replace("1", "2"))
    cut.write_bytes(cut.read_bytes()[:-9])
    (unfinished(output) / "residuals" / "0001.parquet").unlink()
    (unfinished(output) / "tables" / "other.csv").touch()
    with (unfinished(output) / "run" / "written-0.jsonl").open("a") as file:
        file.write('\n{"path": "tables/00')
    resume(output)
    after = {path.name: path.stat() for path in output.rglob("*/*.*")}
    assert after.keys() == before.keys() - {"drawn.json", "booked.json", "measured.int64", *NOTES}
    again = {name for name in after if after[name].st_mtime_ns != before[name].st_mtime_ns}
    assert again == {"0001_a.csv", "0001_a.parquet", "0001.parquet"}
    assert {name: after[name].st_size for name in after} == {
        name: before[name].st_size for name in after
    }
    TableRelease.load(output)


def test_a_manifest_that_is_not_the_ledger_s_is_not_noted(data, output, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.booked_run.shutil.rmtree", lambda *_, **__: None)
        release(PLANS["tables"], data, output)
    edit_manifest(output, lambda manifest: manifest["versions"].update(numpy="0"))
    with pytest.raises(ReleaseError, match=r"is not the one that the ledger .* holds"):
        resume(output)


def test_another_run_does_not_clear_what_can_be_finished(
    kind, stopped, data, output, forbidden_noise
):
    with pytest.raises(ReleaseError, match="rpexplore release --resume"):
        release(PLANS[kind], data, output)
    assert states(data) == ["started"]
    resume(output)
    assert states(data) == ["finished"]


def test_resumed_releases_are_those_of_the_measurements(stopped, output, monkeypatch):
    """The same measurements give the same bytes, however often the writing was begun."""
    # A run that has finished is finished nowhere else.
    monkeypatch.setattr("rpexplore.releases.release.enter_finished", lambda *_: None)
    shutil.copytree(stopped, output.parent / ".copy.unfinished")
    first, second = (
        {entry["path"]: entry["sha256"] for entry in resume(folder).manifest["files"]}
        for folder in (output, output.parent / "copy")
    )
    assert first == second


def test_two_resumes_at_once_write_one_release(kind, stopped, data, output):
    both = [started("resume", output) for _ in range(2)]
    for process in both:
        process.join(120)
    codes = sorted(process.exitcode or 0 for process in both)
    # Whichever comes second is refused, or finds the first one's release of queries complete.
    assert codes == [0, REFUSED] or (kind == "queries" and codes == [0, 0])
    assert loaded(kind, output)
    assert states(data) == ["finished"]


# --- a full disk: no file may grow beyond a limit


def test_a_disk_without_room_for_the_noise_is_noticed_before_the_charge(data, output, tmp_path):
    half = PLANS["tables"].record_rho
    Ledger.beside(data).set_limit(data, half)  # makes the file, as large as it gets
    size = Ledger.beside(data).path.stat().st_size
    big = Domain.from_sizes({"a": 3, "b": 4, "c": size // 8})
    workload = Workload.all_up_to(big, 3)
    plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho="1/2")).save(
        tmp_path / "plan.json"
    )
    message = limited(size, *run_of(data, output))
    assert "File too large" in message
    assert "was not booked" in message
    assert states(data) == []
    assert entries(output.parent) == []


def test_a_resume_without_room_leaves_all_that_another_needs(stopped, output):
    drawn = drawn_numbers(stopped)
    message = limited(400, "resume", output)
    assert "File too large" in message
    resume(output)
    assert measured_in(output) == drawn


@pytest.mark.parametrize(
    ("kind", "function"), [("tables", TABLE), ("queries", "pyarrow.csv.write_csv")]
)
def test_a_disk_that_is_full_afterwards_is_told_how_to_go_on(
    kind, function, data, output, monkeypatch
):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(function, full)
        with pytest.raises(ReleaseError, match=r"No space left .* without further cost") as caught:
            release(PLANS[kind], data, output)
    assert f"--resume --out {output}" in str(caught.value)
    assert states(data) == ["started"]
    drawn = drawn_numbers(unfinished(output))
    data.unlink()
    resume(output)
    assert measured_in(output) == drawn


# --- what was left is not what was booked


@pytest.mark.parametrize("what", ["measured", "shorter", "plan", "note", "other plan", "ledger"])
def test_a_changed_remainder_is_refused_and_kept(kind, what, stopped, data, output, tmp_path):
    measured, note = stopped / "run" / "measured.int64", stopped / "run" / "drawn.json"
    other_plan, ledger = OTHER_PLANS[kind], None
    if what == "measured":
        measured.write_bytes(bytes([measured.read_bytes()[0] ^ 1]) + measured.read_bytes()[1:])
    elif what == "shorter":
        measured.write_bytes(measured.read_bytes()[:-8])
    elif what == "note":
        note.write_text("{}")
    elif what == "ledger":
        ledger = tmp_path / "elsewhere.sqlite"
    else:
        (stopped / "plan.json").write_text(other_plan.text)
        if what == "other plan":
            content = {**json.loads(note.read_text()), "plan_sha256": other_plan.sha256}
            note.write_text(json.dumps(content))
    with pytest.raises(ReleaseError, match="cannot be finished"):
        resume(output, ledger=ledger)
    assert stopped.exists()
    assert not output.exists()
    assert states(data) == ["started"]


def test_nothing_to_resume(output):
    with pytest.raises(ReleaseError, match="no run into"):
        resume(output)
    unfinished(output).mkdir()
    with pytest.raises(ReleaseError, match="no run into"):
        resume(output)


# --- killed at any moment


@pytest.mark.nightly
def test_at_whatever_moment_it_is_killed(kind, data, output):
    """By the clock: whatever the moment, one charge at most, nothing half, and a way on."""
    outcomes = set()
    for attempt in range(14 if kind == "tables" else 8):
        folder = output.with_name(f"release{attempt}")
        before = len(states(data))
        process = started(*run_of(data, folder))
        time.sleep(0.012 * attempt)
        process.kill()
        process.join(120)
        charged = len(states(data)) - before
        assert charged <= 1
        drawn = (unfinished(folder) / "run" / "drawn.json").exists()
        if folder.exists():
            assert charged == 1
            loaded(kind, folder)
            outcomes.add("finished")
        elif drawn:
            assert charged == 1
            numbers = drawn_numbers(unfinished(folder))
            resume(folder)
            assert measured_in(folder) == numbers
            assert states(data)[-1] == "finished"
            outcomes.add("drawn")
        else:
            outcomes.add("charged" if charged else "free")
    assert outcomes  # which moments are met depends on the machine
