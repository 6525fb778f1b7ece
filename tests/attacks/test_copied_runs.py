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
