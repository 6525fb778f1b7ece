"""Attacks by a home in which nothing can be noted, or whose notes on ledgers and runs are damaged.

What a user has charged and shown is remembered there, so that older copies of a ledger or of a
run's folder are noticed (docs/ledger.md): it is never forgotten without a word.
"""

import os
import shutil
from pathlib import Path

import pytest

from rpexplore.errors import LedgerError
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger import chain
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import dry_run, release, resume
from tests.attacks.books import PLAN

NESTED = "[" * 100_000  # too deep for a reader of JSON


def notes(folder: str) -> list[Path]:
    return sorted((Path(os.environ["RPEXPLORE_HOME"]) / folder).glob("*.json"))


@pytest.mark.parametrize("shut", ["", "ledgers", "runs"])
def test_a_home_that_cannot_be_written_to_is_told_before_a_run_is_booked(
    shut, data, no_noise, tmp_path, monkeypatch
):
    access, home = os.access, tmp_path / "home"
    closed = home / shut
    closed.mkdir(parents=True)
    monkeypatch.setenv("RPEXPLORE_HOME", str(home))
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != closed and access(path, mode)
    )
    for run in (release, dry_run):
        with pytest.raises(LedgerError, match=r"noted in .*home.*RPEXPLORE_HOME"):
            run(PLAN, data, tmp_path / "out")
    assert not Ledger.of(data).account(data).entries
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("shut", [".", "rpexplore-ledger.sqlite"])
def test_a_ledger_that_cannot_be_written_to_is_told_by_a_dry_run(shut, data, tmp_path, monkeypatch):
    """The run alone had refused it, where the ledger was to be booked in."""
    release(PLAN, data, tmp_path / "out")
    access, closed = os.access, data.parent / shut
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: (mode == os.R_OK or Path(path) != closed) and access(path, mode),
    )
    for run in (release, dry_run):
        with pytest.raises(LedgerError, match="Nothing can be booked in the ledger"):
            run(PLAN, data, tmp_path / "again")


def test_a_release_gets_its_name_when_it_is_noted_in_the_home(data, tmp_path, monkeypatch):
    """A disk that is full at the end: the run was shown, and the home knew nothing of it."""

    def fail(*_, **__) -> None:
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(chain, "write_whole", fail)
        with pytest.raises(LedgerError, match=r"charged and written.*--resume.*full"):
            release(PLAN, data, tmp_path / "out")
    assert not notes("runs")
    assert not (tmp_path / "out").exists()
    assert Release.load(resume(tmp_path / "out").folder)
    assert len(notes("runs")) == 1
    assert len(Ledger.of(data).account(data).entries) == 1


@pytest.mark.parametrize("folder", ["runs", "ledgers"])
@pytest.mark.parametrize("content", [NESTED, "", "[]", '{"end": 1, "manifest_sha256"'])
def test_a_damaged_note_of_a_run_or_ledger_is_one_error(folder, content, data, tmp_path):
    """It was taken for none, or ended in a traceback."""

    def stop(doing: str, _: float) -> None:
        if doing == "Writing the release":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(PLAN, data, tmp_path / "out", on_progress=stop)
    shutil.copytree(tmp_path / ".out.unfinished", tmp_path / "copy")
    done = resume(tmp_path / "out")
    done.folder.rename(tmp_path / "done")
    (tmp_path / "copy").rename(tmp_path / ".out.unfinished")
    (note,) = notes(folder)
    note.write_text(content)
    with pytest.raises(LedgerError, match=rf"The note .*{note.name}.* cannot be read.*remove it"):
        resume(tmp_path / "out") if folder == "runs" else release(PLAN, data, tmp_path / "more")
    assert not (tmp_path / "out").exists()


def test_damaged_lines_on_ledgers_end_in_no_traceback(data, tmp_path):
    home = Path(os.environ["RPEXPLORE_HOME"])
    home.mkdir(mode=0o700)
    (home / "ledgers.json").write_text(f"{NESTED}\n")
    assert release(PLAN, data, tmp_path / "out").folder.is_dir()
