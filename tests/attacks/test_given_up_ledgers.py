"""Ledgers that were given up while an older copy of them, and of an unfinished folder, is there.

The run in that folder was released, and only what is given up told so.
"""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from rpexplore.cli.main import cli
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.releases import release as release_module
from rpexplore.releases.atomic_folder import unfinished_folder
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import FILENAME, Ledger, OtherFiguresError
from rpexplore.releases.release import release, resume
from tests.attacks.test_copied_runs import booked_twice, drawn_apart, plan_of, states, stop
from tests.support.ledgers import database_ledger, tamper

PLAN = plan_of("tables")


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    rows = ["age,sex,region", *(f"{i % 4},{i % 2},{i % 3}" for i in range(40))]
    path.write_text("\n".join(rows) + "\n")
    return path


def released_and_copied(
    drawn: str, data: Path, book: Ledger, monkeypatch
) -> tuple[Path, Callable[..., Release]]:
    """A copy of the ledger from before a run was released, and what goes on with a copy of the run.

    drawn: whether the copied folder has its noise, or is only booked
    """
    output, copy = data.parents[1] / "out", data.parents[1] / "copy.sqlite"
    run = partial(release, PLAN, data, ledger=book.name)
    if drawn == "drawn":
        first, second = drawn_apart(partial(run, output), output, monkeypatch)
        shutil.copy(str(book.path), copy)
        resume(first)
        return copy, partial(resume, second)
    folder = booked_twice(partial(run, output), output, monkeypatch)
    shutil.copy(str(book.path), copy)
    run(output).folder.rename(output.with_name("first"))
    folder.rename(unfinished_folder(output))
    return copy, partial(release, PLAN, data, output)


@pytest.mark.parametrize("drawn", ["drawn", "booked"])
def test_a_run_in_a_ledger_that_was_cut_back_and_given_up_is_not_gone_on_with(
    drawn, data, tmp_path, monkeypatch
):
    book = Ledger.beside(data)
    other = Path(shutil.copy(data, data.with_name("other.csv")))
    copy, go_on = released_and_copied(drawn, data, book, monkeypatch)
    shutil.copy(copy, str(book.path))
    book.forget(other, book.name)  # the entries are given up for all records in it
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))  # who has seen nothing of it
    with pytest.raises(LedgerError, match="was given up after") as caught:
        go_on()
    assert caught.value.says_charge
    assert states(book) == ["given up"]
    # Nor in a ledger that takes all this over.
    into = Ledger(tmp_path / "into.sqlite")
    into.set_limit(shutil.copy(data, tmp_path / "third.csv"), Fraction(1))
    into.merge(book)
    with pytest.raises(LedgerError, match="was given up after"):
        go_on()
    assert into.account(data).spent_record_rho == PLAN.record_rho


@pytest.mark.nightly
def test_a_run_in_a_database_that_was_cut_back_and_given_up_is_not_gone_on_with(
    data, tmp_path, postgres, monkeypatch
):
    book, output = database_ledger(postgres, monkeypatch), tmp_path / "out"
    run = partial(release, PLAN, data, output, ledger=book.name)
    folder = booked_twice(run, output, monkeypatch)
    before = book.store.read_events()
    run().folder.rename(tmp_path / "first")
    tamper(book, postgres, f"DELETE FROM events WHERE id > {len(before)}")
    tamper(
        book, postgres, f"UPDATE last SET n_events = {len(before)}, digest = '{before[-1].digest}'"
    )
    folder.rename(unfinished_folder(output))
    book.forget(data, book.name)
    with pytest.raises(LedgerError, match="was given up after"):
        run()
    assert states(book) == ["given up"]


@pytest.mark.parametrize("drawn", ["drawn", pytest.param("booked", marks=pytest.mark.nightly)])
def test_a_run_in_an_older_copy_of_a_ledger_that_was_given_up_is_not_gone_on_with(
    drawn, data, tmp_path, monkeypatch
):
    book, new = Ledger.beside(data), Ledger(tmp_path / "new.sqlite")
    copy, go_on = released_and_copied(drawn, data, book, monkeypatch)
    (data.parent / FILENAME).unlink()
    new.forget(data, book.name)
    assert (data.parent / FILENAME).exists()  # another ledger, with the note
    with pytest.raises(LedgerError, match=r"is a copy of|has its account in the ledger"):
        go_on(ledger=copy)
    monkeypatch.setenv("RPEXPLORE_HOME", str(tmp_path / "another"))
    new.merge(Ledger(copy))
    with pytest.raises(LedgerError, match="was given up after"):
        go_on(ledger=new.name)
    assert states(new) == ["given up"]


def test_other_records_of_a_ledger_that_is_gone_are_not_charged_in_an_older_copy(
    data, tmp_path, monkeypatch
):
    """Where the ledger was, giving it up for other records has begun another file."""
    book, other = Ledger.beside(data), Path(shutil.copy(data, data.with_name("other.csv")))
    release(PLAN, other, tmp_path / "other")
    copy, _ = released_and_copied("booked", data, book, monkeypatch)
    release(PLAN, other, tmp_path / "again")
    (data.parent / FILENAME).unlink()
    Ledger(tmp_path / "new.sqlite").forget(data, book.name)
    with pytest.raises(LedgerError, match="is an earlier copy, and lacks entries"):
        release(PLAN, other, tmp_path / "third", ledger=copy)
    shutil.copy(copy, str(book.path))
    with pytest.raises(LedgerError, match="lacks entries that it had when you last added to it"):
        release(PLAN, other, tmp_path / "third")


def test_a_run_that_is_being_written_as_its_ledger_is_given_up_does_not_become_a_release(
    data, tmp_path, monkeypatch
):
    book, output = Ledger.beside(data), tmp_path / "out"
    older = tmp_path / "older.sqlite"
    write = release_module.write_note

    def given_up_meanwhile(*arguments) -> None:
        write(*arguments)
        shutil.copy(str(book.path), older)
        book.set_limit(data, Fraction(1))
        shutil.copy(older, str(book.path))
        book.forget(data, book.name)

    with monkeypatch.context() as patch:
        patch.setattr(release_module, "write_note", given_up_meanwhile)
        with pytest.raises(ReleaseError, match="was given up after") as caught:
            release(PLAN, data, output)
    assert caught.value.says_charge
    assert not output.exists()
    assert not unfinished_folder(output).exists()


def test_what_is_booked_after_a_ledger_was_given_up_goes_on_and_what_was_before_is_run_anew(
    data, tmp_path, monkeypatch
):
    book, output = Ledger.beside(data), tmp_path / "out"
    copy, go_on = released_and_copied("booked", data, book, monkeypatch)
    shutil.copy(copy, str(book.path))
    book.forget(data, book.name)
    shutil.rmtree(unfinished_folder(output))  # as the refusal says
    with monkeypatch.context() as patch:
        patch.setattr(release_module, "write_measured", stop)
        with pytest.raises(KeyboardInterrupt):
            go_on()
    go_on()
    assert states(book) == ["given up", "finished"]
    assert book.account(data).spent_record_rho == 2 * PLAN.record_rho
    said = CliRunner().invoke(cli, ["ledger", str(data), "--json"]).output
    assert '"given up"' in said


@pytest.mark.parametrize("is_lost", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_run_is_not_released_twice_by_an_older_copy_that_another_ledger_took_over(
    is_lost, data, tmp_path, monkeypatch
):
    book, into = Ledger.beside(data), Ledger(tmp_path / "into.sqlite")
    copy, go_on = released_and_copied("drawn", data, book, monkeypatch)
    into.set_limit(shutil.copy(data, tmp_path / "third.csv"), Fraction(1))
    if is_lost:
        (data.parent / FILENAME).unlink()
    into.merge(Ledger(copy))
    with pytest.raises(ReleaseError, match="has finished elsewhere"):
        go_on(ledger=into.name)
    # Not even where that is seen in the end alone.
    monkeypatch.setattr("rpexplore.releases.booked_run.shown_figures", lambda *_: {})
    with pytest.raises(ReleaseError, match="You have shown other figures of this run") as caught:
        go_on(ledger=into.name)
    assert caught.value.says_charge
    assert states(into) == ["started"]


def test_no_second_pilot_is_shown_by_an_older_copy_that_another_ledger_took_over(data, tmp_path):
    book, into, copy = Ledger.beside(data), Ledger(tmp_path / "into.sqlite"), tmp_path / "copy"
    number = book.book(data, PLAN, tmp_path / "out")
    shutil.copy(str(book.path), copy)
    book.note_pilot(number, "0" * 64)
    into.set_limit(shutil.copy(data, tmp_path / "third.csv"), Fraction(1))
    into.merge(Ledger(copy))
    ((entry,),) = (account.entries for account in into.accounts() if account.entries)
    for shown in (into.note_pilot, partial(into.finish, pilot_sha256="1" * 64)):
        with pytest.raises(OtherFiguresError, match="You have shown other figures of this run"):
            shown(entry.id, "1" * 64)
    into.note_pilot(entry.id, "0" * 64)


def test_a_ledger_that_was_given_up_once_is_missed_like_any_other(data, tmp_path, monkeypatch):
    book, older = Ledger.beside(data), tmp_path / "older.sqlite"
    release(PLAN, data, tmp_path / "0")
    shutil.copy(str(book.path), older)
    release(PLAN, data, tmp_path / "1")
    shutil.copy(older, str(book.path))
    book.forget(data, book.name)
    copy, go_on = released_and_copied("drawn", data, book, monkeypatch)
    (data.parent / FILENAME).unlink()
    with pytest.raises(LedgerError, match=r"is a copy of .* finished in both"):
        go_on(ledger=copy)


def test_no_run_is_charged_that_a_clock_set_back_would_have_given_up_at_once(
    data, tmp_path, monkeypatch
):
    book, new = Ledger.beside(data), Ledger(tmp_path / "new.sqlite")
    release(PLAN, data, tmp_path / "first")
    (data.parent / FILENAME).unlink()
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="microseconds")
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.ledger.merging.now", lambda _: ahead)
        new.forget(data, book.name)
    run = partial(release, PLAN, data, tmp_path / "out", ledger=new.name)
    for refused in (run, partial(new.book, data, PLAN, tmp_path / "out")):
        with pytest.raises(LedgerError, match="Set the clock right"):
            refused()
    assert states(new) == []
    later = (datetime.now(UTC) + timedelta(hours=2)).isoformat(timespec="microseconds")
    monkeypatch.setattr("rpexplore.releases.charged_run.now", lambda _: later)
    run()
    assert states(new) == ["finished"]
