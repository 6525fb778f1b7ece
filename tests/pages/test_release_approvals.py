"""The Release page where the ledger demands approvals, and where they are given unasked."""

from pathlib import Path

import pytest

import rpexplore as rp
from pages.components.release.confirmation import BOX
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.table_release import TableRelease
from tests.pages.conftest import confirmed_run, finish, plain, run_button, set_up
from tests.support.ssh_keys import public, requires_ssh_keygen, with_keys

pytestmark = requires_ssh_keygen


@pytest.fixture
def keys(tmp_path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    return with_keys(folder, "alice@x", "bob@x")


def test_a_run_begins_once_it_is_approved(app, records, keys, tmp_path):
    listed = f"alice@x {public(keys / 'alice')}\n"
    Ledger.beside(records).require_approvals(records, rp.ApprovalDemand(1, listed))
    session = set_up(app("release"), records, tmp_path / "out")
    for signer, is_ready in (("bob", False), ("alice", True)):
        approval = rp.approve(session.planned, keys / signer).text.encode()
        session.file_uploader(key=BOX).upload(f"{signer}.json", approval).run()
        assert run_button(session).disabled == (not is_ready)
        if not is_ready:
            session.press("Leave out")
    finish(confirmed_run(session))
    given = TableRelease.load(tmp_path / "out").manifest["approvals"]["given"]
    assert [one["name"] for one in given] == ["alice@x"]


@pytest.mark.nightly
def test_a_run_waits_for_the_approvals_that_the_ledger_demands(app, records, keys, tmp_path):
    listed = "".join(f"{name}@x {public(keys / name)}\n" for name in ("alice", "bob"))
    Ledger.beside(records).require_approvals(records, rp.ApprovalDemand(2, listed))
    session = set_up(app("release"), records, tmp_path / "out")
    assert run_button(session).disabled
    assert "by 2 persons of its list" in plain(session.texts("info"))

    alice = rp.approve(session.planned, keys / "alice", remarks="*as agreed*")
    forged = rp.approve(session.planned, keys / "bob", name="carol@x")
    session.file_uploader(key=BOX).upload("forged.json", forged.text.encode()).run()
    assert "does not count" in plain(session.texts("error"))
    session.press("Leave out")
    session.file_uploader(key=BOX).upload("a.json", alice.text.encode()).run()
    assert "so far there is 1, by alice" in plain(session.texts("info"))
    assert "*as agreed*" in plain(session.texts("markdown"))
    assert run_button(session).disabled

    bob = rp.approve(session.planned, keys / "bob")
    session.file_uploader(key=BOX).upload("b.json", bob.text.encode()).run()
    assert not run_button(session).disabled
    finish(confirmed_run(session))
    given = TableRelease.load(tmp_path / "out").manifest["approvals"]["given"]
    assert [one["name"] for one in given] == ["alice@x", "bob@x"]


@pytest.mark.nightly
def test_approvals_that_nobody_demands_are_checked_and_named(app, records, keys, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    assert not run_button(session).disabled
    other = plan_tables(
        session.planned.workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/7")
    )
    wrong = rp.approve(other, keys / "alice").text.encode()
    session.file_uploader(key=BOX).upload("a.json", wrong).run()
    assert "is of another plan" in plain(session.texts("error"))
    session.file_uploader(key=BOX).upload("a.json", b"{}").run()
    assert "a.json is not an approval" in plain(session.texts("error"))
    approval = rp.approve(session.planned, keys / "alice")
    session.file_uploader(key=BOX).upload("a.json", approval.text.encode()).run()
    assert "was not checked against a list" in plain(session.texts("caption"))
    session.unfold("commands")
    assert "--approval approval-1.json" in plain(session.texts("code"))
    session.press("Run the release")
    assert "Approved by:** alice" in plain(session.texts("markdown"))
