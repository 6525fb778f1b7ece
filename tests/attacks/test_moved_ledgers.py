"""Ledgers that were moved: what is paid goes on, and no copy of the ledger has a second release.

Where the ledger was, the next run in it begins another file, which notes where it is now.
"""

import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from rpexplore.cli.main import cli
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.ledger import FILENAME, Ledger
from rpexplore.releases.release import release, resume
from tests.attacks.test_copied_runs import (
    booked_twice,
    drawn_apart,
    plan_of,
    states,
    stopped,
)


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "project" / "data" / "records.csv"
    path.parent.mkdir(parents=True)
    rows = ["age,sex,region", *(f"{i % 4},{i % 2},{i % 3}" for i in range(40))]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def output(data) -> Path:
    return data.parents[1] / "out"


def test_a_drawn_run_of_a_project_that_was_moved_is_finished_in_its_ledger_there(data, output):
    stopped("Writing", partial(release, plan_of("tables"), data, output))
    moved = output.parent.rename(output.parent.with_name("moved"))
    command = ["release", "--resume", "--out", str(moved / output.name)]
    refused = CliRunner().invoke(cli, command)
    assert "(--ledger)" in refused.output
    assert not (moved / output.name).exists()
    book = Ledger(moved / data.parent.name / FILENAME)
    done = CliRunner().invoke(cli, [*command, "--ledger", book.name])
    assert done.exit_code == 0, done.output
    assert states(book) == ["finished"]


@pytest.mark.parametrize("kind", ["tables", "a pilot"])
def test_a_booked_run_goes_on_in_a_ledger_that_was_moved_before_another_run(
    kind, data, output, tmp_path, monkeypatch
):
    run = partial(release, plan_of(kind), data, output)
    if kind == "a pilot":
        run(pilot_only=True)
    else:
        booked_twice(run, output, monkeypatch)
    moved = (data.parent / FILENAME).rename(tmp_path / "moved.sqlite")
    release(plan_of("tables"), data, tmp_path / "other", ledger=moved)
    assert (data.parent / FILENAME).exists()  # the note
    run(ledger=moved)
    assert states(Ledger(moved)) == ["finished", "finished"]


def test_a_moved_ledger_has_one_remedy_whatever_older_copy_is_where(data, tmp_path):
    """One message said to restore a copy, and the next one that a copy lacks entries."""
    own, backup, moved = data.parent / FILENAME, tmp_path / "backup.sqlite", tmp_path / "moved"
    run = partial(release, plan_of("own counts"), data)
    run(tmp_path / "first")
    shutil.copy(own, backup)
    run(tmp_path / "second")
    own.rename(moved)

    def refused(ledger: Path | None) -> None:
        with pytest.raises(LedgerError) as caught:
            run(tmp_path / "third", ledger=ledger)
        said = str(caught.value)
        assert re.search(r"Bring it back whole.*the whole one where it is now \(--ledger\)", said)
        assert "restore" not in said

    for ledger in (None, backup):
        refused(ledger)
    shutil.copy(backup, own)  # in its place
    for ledger in (None, own, moved):
        refused(ledger)
    own.unlink()  # as it is told
    run(tmp_path / "third", ledger=moved)


@pytest.mark.parametrize("how", ["moved", "merged"])
def test_a_run_is_not_finished_once_more_in_a_copy_of_a_ledger_that_was(
    how, data, output, tmp_path, monkeypatch
):
    first, second = drawn_apart(
        partial(release, plan_of("tables"), data, output), output, monkeypatch
    )
    own, now, copy = data.parent / FILENAME, tmp_path / "now.sqlite", tmp_path / "copy.sqlite"
    if how == "moved":
        own.rename(now)
        release(plan_of("own counts"), data, tmp_path / "other", ledger=now)
    else:
        others = shutil.copy(data, tmp_path / "others.csv")
        Ledger(now).set_limit(others, 1)
        Ledger(now).merge(Ledger(own))
    shutil.copy(now, copy)
    resume(first, ledger=now)
    with pytest.raises(LedgerError, match=r"is a copy of .* finished in both"):
        resume(second, ledger=copy)
    assert not second.exists()
