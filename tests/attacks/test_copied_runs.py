"""Copies of an unfinished folder: whatever they draw, one charge has one release, and one pilot.

Two machines go on with copies of one folder, at one path of theirs and on one ledger. The second
machine is played by this one, which puts a copy where the first one has its folder.
"""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.releases import large_tables, measurement
from rpexplore.releases import release as release_module
from rpexplore.releases.atomic_folder import unfinished_folder
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.ledger.ledger_file import LedgerFile
from rpexplore.releases.manifest import manifest_sha256
from rpexplore.releases.release import release, resume
from rpexplore.workload.query_files import marginal_queries
from tests.support.ledgers import OWNER, database_ledger
from tests.support.stopped_runs import killed

DOMAIN = rp.Domain.from_sizes({"age": 4, "sex": 2, "region": 3})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)
TREE = rp.AreaTree.from_columns({"region": ["0", "1", "2"]})
IN_AREAS = rp.Workload.of(rp.Domain(DOMAIN.attributes[:2]), [("age", "sex")])
ORDERED = rp.Rounds(rp.Workload.all_of_order(DOMAIN, 3), 2_000)
COUNTS = marginal_queries(DOMAIN, 2)
KINDS_OF_RUNS = {
    "tables": {"tables": TABLES},
    "slices": {"tables": TABLES},
    "areas": {"areas": rp.AreaWorkload.of_levels(TREE, dict.fromkeys(TREE.levels, IN_AREAS))},
    "own counts": {"counts": COUNTS},
    "adaptive rounds": {"rounds": ORDERED},
    "several parts": {"tables": TABLES, "counts": COUNTS},
    "a panel": {
        "tables": TABLES,
        "budget": rp.Budget(rho=1, max_records_per_person=2, period="region"),
    },
    "a pilot": {"tables": TABLES, "counts": COUNTS, "pilot": "5%"},
}


def plan_of(kind: str) -> Plan:
    return rp.plan(rp.Request(**{"budget": rp.Budget(rho=1), **KINDS_OF_RUNS[kind]}))


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    rows = ["age,sex,region,person", *(f"{i % 4},{i % 2},{i % 3},{i}" for i in range(40))]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def output(tmp_path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def ledger(request, data, monkeypatch) -> Ledger:
    """That both machines use: a file on a disk of theirs, or in PostgreSQL."""
    if request.param == "file":
        return Ledger.beside(data)
    return database_ledger(request.getfixturevalue("postgres"), monkeypatch)


def states(ledger: Ledger) -> list[str]:
    return [entry.state for account in ledger.accounts() for entry in account.entries]


def stop(*_, **__) -> None:
    raise KeyboardInterrupt


def stopped(moment: str, run: Callable[..., Release]) -> None:
    """Run, and stop when that is being done."""

    def on_progress(doing: str, _: float) -> None:
        if moment in doing:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(on_progress=on_progress)


def booked_twice(run: Callable[..., Release], output: Path, monkeypatch) -> Path:
    """The unfinished folder of a run that was stopped before its noise was drawn, and its copy."""
    with monkeypatch.context() as patch:
        patch.setattr(release_module, "write_measured", stop)
        with pytest.raises(KeyboardInterrupt):
            run()
    copy = output.parent / "copy"
    shutil.copytree(unfinished_folder(output), copy)
    return copy


def drawn_apart(run: Callable[..., Release], output: Path, monkeypatch) -> tuple[Path, Path]:
    """Two outputs of one booked run: all is drawn for each of them, and nothing is finished."""
    copy = booked_twice(run, output, monkeypatch)
    outputs = output.with_name("first"), output.with_name("second")
    for one in outputs:
        stopped("Writing the release", run)
        unfinished_folder(output).rename(unfinished_folder(one))
        if copy.exists():
            copy.rename(unfinished_folder(output))
    drawn = [(unfinished_folder(one) / "run" / "measured.int64").read_bytes() for one in outputs]
    assert drawn[0] != drawn[1]
    return outputs


def at_the_last_moment(monkeypatch, act: Callable[[], object]) -> None:
    """Act when the next folder is about to get its name."""
    sync = os.sync

    def synced() -> None:
        monkeypatch.setattr(os, "sync", sync)
        sync()
        act()

    monkeypatch.setattr(os, "sync", synced)


@pytest.mark.parametrize(
    ("kind", "ledger"),
    [
        ("tables", "file"),
        *(
            pytest.param(kind, "file", marks=pytest.mark.nightly)
            for kind in KINDS_OF_RUNS
            if kind != "tables"
        ),
        pytest.param("tables", "postgresql", marks=pytest.mark.nightly),
    ],
    indirect=["ledger"],
)
def test_of_copies_that_are_finished_at_the_same_instant_one_is_a_release(
    kind, data, output, ledger, monkeypatch
):
    """Both were released: each had looked into the ledger before the other one was noted there."""
    rule = rp.PersonRule("person", 2) if kind == "a panel" else None
    if kind == "slices":
        monkeypatch.setattr(large_tables, "MAX_TABLE_CELLS", 5)
        monkeypatch.setattr(measurement, "PART_CELLS", 5)
    run = partial(release, plan_of(kind), data, output, ledger=ledger.name, person_rule=rule)
    first, second = drawn_apart(run, output, monkeypatch)
    at_the_last_moment(monkeypatch, partial(resume, second))
    with pytest.raises(ReleaseError, match="one charge is for one release") as caught:
        resume(first)
    assert caught.value.says_charge
    assert not first.exists()
    assert not unfinished_folder(first).exists()
    assert Release.load(second)
    assert states(ledger) == ["finished"]


@pytest.mark.parametrize(
    ("first_shows", "ledger"),
    [
        ("its pilot", "file"),
        pytest.param("all", "file", marks=pytest.mark.nightly),
        pytest.param("its pilot", "postgresql", marks=pytest.mark.nightly),
        pytest.param("all", "postgresql", marks=pytest.mark.nightly),
    ],
    indirect=["ledger"],
)
def test_a_copy_neither_shows_nor_releases_another_pilot_than_was_shown(
    first_shows, data, output, ledger, tmp_path, monkeypatch
):
    """The pilot that was shown may lie anywhere by then: the ledger tells."""
    plan = plan_of("a pilot")
    run = partial(release, plan, data, output, ledger=ledger.name)
    copy = booked_twice(run, output, monkeypatch)
    before = unfinished_folder(output).rename(tmp_path / "before")
    copy.rename(unfinished_folder(output))
    stopped("Writing the release", run)  # a whole release with a pilot of its own is drawn
    other = unfinished_folder(output).rename(unfinished_folder(tmp_path / "other"))
    shutil.copytree(before, unfinished_folder(output))
    shown = run(pilot_only=first_shows == "its pilot").folder
    shown.rename(tmp_path / "shown")
    with pytest.raises(ReleaseError, match=r"one charge is for one|finished elsewhere"):
        resume(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    if first_shows == "its pilot":
        assert not other.exists()
        unfinished_folder(output).rename(tmp_path / "after")
        before.rename(unfinished_folder(output))
        for pilot_only in (True, False):
            with pytest.raises(ReleaseError, match="which is not drawn again"):
                run(pilot_only=pilot_only)
        shutil.rmtree(unfinished_folder(output))
        (tmp_path / "after").rename(unfinished_folder(output))
        run()
    assert states(ledger) == ["finished"]


@pytest.mark.parametrize("meanwhile", ["a pilot", "a release"])
def test_of_two_pilots_that_are_shown_at_the_same_instant_one_is(
    meanwhile, data, output, monkeypatch
):
    run = partial(release, plan_of("a pilot"), data, output)
    book, figures = Ledger.beside(data), "0" * 64

    def act() -> None:
        ((entry,),) = (account.entries for account in book.accounts())
        if meanwhile == "a pilot":
            book.note_pilot(entry.id, figures)
        else:
            book.finish(entry.id, "1" * 64, figures)

    at_the_last_moment(monkeypatch, act)
    with pytest.raises(ReleaseError, match="one charge is for one pilot") as caught:
        run(pilot_only=True)
    assert caught.value.says_charge
    assert [path.name for path in output.parent.iterdir() if "out" in path.name] == []
    (account,) = book.accounts()
    assert [entry.pilot_sha256 for entry in account.entries] == [figures]


def test_a_pilot_that_was_entered_and_not_shown_is_shown_by_the_next_run(data, output, monkeypatch):
    run = partial(release, plan_of("a pilot"), data, output)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "note_pilot", entered_and_stopped(Ledger.note_pilot))
        with pytest.raises(KeyboardInterrupt):
            run(pilot_only=True)
    assert not output.with_name("out-pilot").exists()
    drawn = (unfinished_folder(output) / "run" / "measured.int64").read_bytes()
    assert Release.load(run(pilot_only=True).folder)
    assert (unfinished_folder(output) / "run" / "measured.int64").read_bytes() == drawn
    run()
    assert states(Ledger.beside(data)) == ["finished"]


def entered_and_stopped(enter: Callable[..., None]) -> Callable[..., None]:
    def entering(*arguments) -> None:
        enter(*arguments)
        raise KeyboardInterrupt

    return entering


@pytest.mark.parametrize("kind", [pytest.param("tables", marks=pytest.mark.nightly), "a pilot"])
def test_killed_between_its_entry_and_its_name_a_release_gets_that_and_no_copy_does(
    kind, data, output, tmp_path, monkeypatch
):
    plan, book = tmp_path / "plan.json", Ledger.beside(data)
    plan_of(kind).save(plan)
    copy = booked_twice(partial(release, plan_of(kind), data, output), output, monkeypatch)
    # Where a ledger ends is noted right behind each entry.
    killed("rpexplore.releases.ledger.ledger_file.note_end", 1, plan, data, output)
    assert states(book) == ["finished"]
    assert not output.exists()
    with pytest.raises(ReleaseError, match="rpexplore release --resume"):
        release(plan_of(kind), data, output)
    entered = unfinished_folder(output).rename(unfinished_folder(tmp_path / "entered"))
    shutil.copytree(copy, unfinished_folder(output))
    with pytest.raises(ReleaseError, match=r"no run into .* that could be finished"):
        resume(output)  # nothing of it is drawn, and the ledger has its run as finished
    shutil.copytree(entered, unfinished_folder(tmp_path / "edited"))
    (unfinished_folder(tmp_path / "edited") / "manifest.json").write_text("{}")
    with pytest.raises(ReleaseError, match="finished elsewhere"):
        resume(tmp_path / "edited")
    (entry,) = book.account(data).entries
    done = resume(tmp_path / "entered")
    assert manifest_sha256(done.folder) == entry.manifest_sha256
    assert not (done.folder / "run").exists()
    assert resume(done.folder).table("age").equals(done.table("age"))
    assert states(book) == ["finished"]


@pytest.mark.parametrize("where", ["there", "moved away"])
def test_a_run_is_not_finished_once_more_in_a_copy_of_its_ledger(
    where, data, output, tmp_path, monkeypatch
):
    first, second = drawn_apart(
        partial(release, plan_of("tables"), data, output), output, monkeypatch
    )
    copy, own = tmp_path / "copy.sqlite", data.parent / FILENAME
    shutil.copy(own, copy)
    if where == "there":
        with pytest.raises(LedgerError, match=r"is a copy of .* leave --ledger out"):
            resume(first, ledger=copy)
    resume(first)
    if where == "moved away":
        own.rename(tmp_path / "moved.sqlite")
    with pytest.raises(LedgerError, match=r"is a copy of .* leave --ledger out"):
        resume(second, ledger=copy)
    assert not second.exists()
    if where == "moved away":
        with pytest.raises(ReleaseError, match="finished elsewhere"):
            resume(second, ledger=tmp_path / "moved.sqlite")


def test_a_copy_at_another_path_is_another_run_and_charged(data, output, tmp_path, monkeypatch):
    run = partial(release, plan_of("tables"), data)
    copy = booked_twice(partial(run, output), output, monkeypatch)
    elsewhere = tmp_path / "elsewhere"
    copy.rename(unfinished_folder(elsewhere))
    for one in (elsewhere, output):
        run(one)
    assert states(Ledger.beside(data)) == ["finished", "finished"]


def test_an_unfinished_folder_is_no_release_whatever_is_written_in_it(data, output):
    stopped("Finished", partial(release, plan_of("tables"), data, output))
    output.rename(unfinished_folder(output))
    with pytest.raises(ReleaseError, match="is the unfinished folder of a run"):
        Release.load(unfinished_folder(output))


def test_a_ledger_that_cannot_note_the_end_names_the_way_on_and_nothing_is_released(
    data, output, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "finish", full)
        with pytest.raises(LedgerError, match="rpexplore release --resume --out") as caught:
            release(plan_of("tables"), data, output)
    assert caught.value.says_charge
    assert not output.exists()
    assert states(Ledger.beside(data)) == ["started"]
    assert resume(output).table("age") is not None
    assert states(Ledger.beside(data)) == ["finished"]


def full(*_) -> None:
    raise LedgerError("The ledger cannot be used (database or disk is full).")


@pytest.mark.parametrize(
    ("shows_pilot", "ledger"),
    [
        (False, "file"),
        pytest.param(True, "file", marks=pytest.mark.nightly),
        pytest.param(False, "postgresql", marks=pytest.mark.nightly),
        pytest.param(True, "postgresql", marks=pytest.mark.nightly),
    ],
    indirect=["ledger"],
)
def test_two_releases_of_a_run_in_copies_of_a_ledger_are_charged_twice_when_these_are_merged(
    shows_pilot, data, output, ledger, tmp_path, monkeypatch
):
    """Where the ledger was copied with the folder, nothing tells of the other one until then."""
    run = partial(release, plan_of("a pilot"), data, output, pilot_only=shows_pilot)
    copy = booked_twice(run, output, monkeypatch)
    shutil.copytree(data.parent, tmp_path / "data on the other machine")
    first = run().folder
    first.rename(tmp_path / "released")
    shutil.rmtree(unfinished_folder(output), ignore_errors=True)
    data.parent.rename(tmp_path / "data on this machine")
    (tmp_path / "data on the other machine").rename(data.parent)
    copy.rename(unfinished_folder(output))
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home on the other machine"))
    run()
    other = Ledger.beside(tmp_path / "data on this machine" / data.name)
    (rho,) = [one.spent_record_rho for one in other.accounts()]
    into = Ledger.beside(data)
    if ledger.path is None:
        into = Ledger(f"postgresql:{OWNER}")
        assert into.merge(Ledger.beside(data)) == 1
    for n_taken in (1, 0):  # nothing twice
        assert into.merge(other) == n_taken
    assert [one.spent_record_rho for one in into.accounts()] == [2 * rho]


def on_two_machines(data: Path, run: Callable[[], object], tmp_path, monkeypatch) -> None:
    """Run here, and on a machine with copies of all that is there; what each has is kept apart.

    Ledger, unfinished folder, outputs and home of each are in `here` and `there`; nothing is left.
    """
    own = [data.parent / FILENAME, unfinished_folder(tmp_path / "out"), tmp_path / "home"]
    (tmp_path / "home").mkdir(exist_ok=True)
    shutil.copytree(tmp_path, tmp_path / "before", ignore=shutil.ignore_patterns("before"))
    for machine in ("here", "there"):
        if machine == "there":
            for path in own:
                (tmp_path / "before" / path.relative_to(tmp_path)).rename(path)
        run()
        (tmp_path / machine).mkdir()
        for path in (*own, tmp_path / "out-pilot"):
            path.rename(tmp_path / machine / path.name.lstrip("."))


@pytest.mark.parametrize(
    "here_draws", ["its pilot", pytest.param("all", marks=pytest.mark.nightly)]
)
def test_two_pilots_that_are_charged_twice_when_ledgers_are_merged_can_both_go_on(
    here_draws, data, output, tmp_path, monkeypatch
):
    """One was refused, and removed where all was drawn, as the ledger has two runs for it."""
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "home"))
    run = partial(release, plan_of("a pilot"), data, output)
    shutil.rmtree(booked_twice(run, output, monkeypatch))

    def show() -> None:
        run(pilot_only=True)
        if here_draws == "all" and not (tmp_path / "here").exists():
            stopped("Writing the release", run)

    on_two_machines(data, show, tmp_path, monkeypatch)
    book = Ledger.beside(data)
    shutil.copy(tmp_path / "here" / FILENAME, book.path)
    (tmp_path / "here" / "home").rename(tmp_path / "home")
    assert book.merge(Ledger(tmp_path / "there" / FILENAME)) == 1
    for machine in ("here", "there"):
        (tmp_path / machine / "out.unfinished").rename(unfinished_folder(output))
        (tmp_path / machine / "out-pilot").rename(tmp_path / "out-pilot")
        if machine == "here" and here_draws == "all":
            resume(output)
        else:
            run()
        output.rename(tmp_path / machine / "out")
        (tmp_path / "out-pilot").rename(tmp_path / machine / "out-pilot")
    assert states(book) == ["finished", "finished"]


def test_a_complete_release_ends_no_run_of_another_ledger_with_its_number(data, output, tmp_path):
    """That run had its noise drawn, and could never be finished."""
    stopped("Finished", partial(release, plan_of("tables"), data, output))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.charged_run.tidy", stop)
        with pytest.raises(KeyboardInterrupt):
            release(plan_of("tables"), data, tmp_path / "complete")
    book = Ledger.beside(data)
    book.path.rename(tmp_path / "gone.sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RPEXPLORE_HOME", str(tmp_path / "other home"))
        for name in ("one", "two"):
            stopped(
                "Writing the release",
                partial(release, plan_of("own counts"), data, tmp_path / name),
            )
        with pytest.raises(ReleaseError, match="does not have the run of the release"):
            resume(tmp_path / "complete")
        assert states(book) == ["started", "started"]
        resume(tmp_path / "two")


@pytest.mark.parametrize("is_named", [True, False])
def test_a_run_that_finished_in_a_ledger_that_was_moved_is_not_finished_in_an_older_copy(
    is_named, data, output, tmp_path, monkeypatch
):
    """Under the name of neither the user had added what the copy lacks."""
    first, second = drawn_apart(
        partial(release, plan_of("tables"), data, output), output, monkeypatch
    )
    own, copy = data.parent / FILENAME, tmp_path / "copy.sqlite"
    shutil.copy(own, copy)
    own.rename(tmp_path / "moved.sqlite")
    resume(first, ledger=tmp_path / "moved.sqlite")
    if not is_named:
        copy.rename(own)
    with pytest.raises(LedgerError, match=r"is a copy of .* finished in both"):
        resume(second, ledger=copy if is_named else None)
    assert not second.exists()
    with pytest.raises(ReleaseError, match="finished elsewhere"):
        resume(second, ledger=tmp_path / "moved.sqlite")


def test_an_end_that_a_server_is_still_entering_is_waited_for(data, output, monkeypatch):
    """The release was written anew, refused as another one, and removed."""
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "finish", entered_and_stopped(Ledger.finish))
        patch.setattr("rpexplore.releases.ledger.ledger_file.note_end", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            release(plan_of("tables"), data, output)
    read = LedgerFile.read_events

    def unsettled(file: LedgerFile) -> list:
        return [event for event in read(file) if event.kind != "finished"]

    monkeypatch.setattr("rpexplore.releases.finished_release.now", lambda: "later")
    monkeypatch.setattr(LedgerFile, "read_events", unsettled)
    monkeypatch.setattr(LedgerFile, "settled_events", read)
    assert Release.load(resume(output).folder)


def test_a_shown_pilot_that_was_moved_is_not_cleared_by_a_new_run(data, output, tmp_path):
    run = partial(release, plan_of("a pilot"), data)
    run(output, pilot_only=True)
    moved = unfinished_folder(output).rename(unfinished_folder(tmp_path / "moved"))
    for pilot_only in (True, False):
        with pytest.raises(ReleaseError, match="move it back to where it was"):
            run(tmp_path / "moved", pilot_only=pilot_only)
    assert states(Ledger.beside(data)) == ["started"]
    moved.rename(unfinished_folder(output))
    run(output)
    assert states(Ledger.beside(data)) == ["finished"]


def test_a_run_goes_on_behind_its_pilot_on_a_ledger_that_does_not_tell_of_it(
    data, output, tmp_path, monkeypatch
):
    """A copy from before the pilot was shown, merged: the run was refused, and told to run."""
    run, book = partial(release, plan_of("a pilot"), data, output), Ledger.beside(data)
    noted = Ledger.note_pilot

    def copied_and_noted(ledger: Ledger, *figures) -> None:
        shutil.copy(book.path, tmp_path / "older.sqlite")
        noted(ledger, *figures)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "note_pilot", copied_and_noted)
        run(pilot_only=True)
    book.path.unlink()
    merged = Ledger(tmp_path / "data" / "merged.sqlite")
    assert merged.merge(Ledger(tmp_path / "older.sqlite")) == 1
    run(ledger=merged.path)
    assert states(merged) == ["finished"]
