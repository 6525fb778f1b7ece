"""Attacks on approvals: changed, used for something else, or asked for after they were checked."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common import ssh_signatures
from rpexplore.common.ssh_signatures import refusal
from rpexplore.errors import ApprovalError, ReleaseError
from rpexplore.planning.approval import NAMESPACE, Approval
from rpexplore.planning.planner import plan_tables
from rpexplore.releases import charged_run
from rpexplore.releases.approvals import check_approvals
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import can_be_resumed
from rpexplore.releases.table_release import TableRelease
from tests.support.ssh_keys import public, requires_ssh_keygen, with_keys
from tests.support.stopped_runs import killed

pytestmark = requires_ssh_keygen
NIGHTLY = os.environ.get("RPEXPLORE_TEST_PROFILE") == "nightly"
STEP = 1 if NIGHTLY else 3  # bytes; one bit of each, by night all
TABLES = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2, "b": 3}), 2)
PLAN = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
OTHER = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/3"))
BEFORE_NOISE = ("rpexplore.releases.release.write_measured", 1)
WHILE_WRITING = ("rpexplore.releases.table_release.TableWriter.table", 2)


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    return with_keys(folder, "alice@x", "bob@x")


@pytest.fixture
def folder(keys, tmp_path) -> Path:
    """A plan, records, and a ledger that demands alice's approval."""
    PLAN.save(tmp_path / "plan.json")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "records.csv").write_text("a,b\n0,0\n1,2\n1,1\n")
    require(tmp_path, keys, "alice")
    return tmp_path


@pytest.fixture
def alice(keys) -> Approval:
    return rp.approve(PLAN, keys / "alice", remarks="as agreed")


def require(folder: Path, keys: Path, *names: str) -> None:
    listed = "".join(f"{name}@x {public(keys / name)}\n" for name in names)
    book(folder).require_approvals(records(folder), rp.ApprovalDemand(len(names), listed))


def records(folder: Path) -> Path:
    return folder / "data" / "records.csv"


def book(folder: Path) -> Ledger:
    return Ledger.beside(records(folder))


def runs(folder: Path):
    return book(folder).account(records(folder)).entries


def test_no_byte_of_an_approval_can_be_changed(keys, alice):
    demand = rp.ApprovalDemand(1, f"*@* {public(keys / 'alice')}\n")
    content = alice.text.encode()
    check_approvals([demand], PLAN.sha256, [Approval.parse(content, "a.json")])
    signed = 0
    for spot in range(0, len(content), STEP):
        for bit in range(8) if NIGHTLY else [spot % 8]:
            changed = bytearray(content)
            changed[spot] ^= 1 << bit
            with pytest.raises(ApprovalError):  # noqa: PT012 (either line may refuse it)
                approval = Approval.parse(bytes(changed), "a.json")
                signed += 1
                check_approvals([demand], PLAN.sha256, [approval])
    assert signed > 50  # so many are approvals still, of something else or by nobody


def test_an_approval_is_not_one_of_another_plan(folder, alice):
    with pytest.raises(ApprovalError, match="is of another plan"):
        rp.release(OTHER, records(folder), folder / "out", approvals=[alice])
    assert runs(folder) == ()


@pytest.mark.parametrize("zone", ["UTC", "XXX+12", "XXX-14"])
@pytest.mark.parametrize(("hours", "reason"), [(1, ""), (-1, "had expired")])
def test_the_days_of_a_key_are_those_of_utc(hours, reason, zone, keys, alice, monkeypatch):
    """12 hours west of UTC a key would be good for half a day more, 14 hours east no more."""
    monkeypatch.setenv("TZ", zone)
    end = datetime.now(UTC) + timedelta(hours=hours)
    options = f'valid-before="{end:%Y%m%d%H%M%S}"'
    listed = f"alice@x {options} {public(keys / 'alice')}\n"
    assert refusal(alice.signed_text, alice.signature, NAMESPACE, listed, "alice@x") == reason


def test_another_ssh_keygen_in_the_path_and_the_environment_change_no_judgement(
    keys, alice, tmp_path, monkeypatch
):
    fake = tmp_path / "ssh-keygen"
    fake.write_text('#!/bin/sh\necho "Good \\"x\\" signature with ED25519 key"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    given = []
    run = ssh_signatures.subprocess.run

    def noted(command, **options):
        given.append((command[0], options["env"]))
        return run(command, **options)

    monkeypatch.setattr(ssh_signatures.subprocess, "run", noted)
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    listed = f"bob@x {public(keys / 'bob')}\n"
    alice.check(PLAN.sha256)
    reason = refusal(alice.signed_text, alice.signature, NAMESPACE, listed, "alice@x")
    assert reason == "is not listed for that name"
    assert len(given) == 2
    assert {os.path.isabs(program) and Path(program) != fake for program, _ in given} == {True}
    assert {frozenset(environment) for _, environment in given} == {
        frozenset({"TZ", "LC_ALL", "PATH"})
    }


def changed_after_the_check(monkeypatch, change: Callable[[], None]) -> None:
    """Have something happen when a run was checked and counted, and is about to be booked."""
    write = charged_run.write_booking

    def write_booking(*arguments):
        write(*arguments)
        change()

    monkeypatch.setattr(charged_run, "write_booking", write_booking)


def test_a_demand_that_is_made_while_a_run_counts_is_heeded(folder, keys, alice, monkeypatch):
    checked = rp.dry_run(PLAN, records(folder), folder / "out", approvals=[alice])
    changed_after_the_check(monkeypatch, lambda: require(folder, keys, "alice", "bob"))
    with pytest.raises(ApprovalError, match=r"by 2 persons .* there is 1, by alice@x"):
        rp.release(
            PLAN,
            records(folder),
            folder / "out",
            approvals=[alice],
            expected_fingerprint=checked.fingerprint,
        )
    assert runs(folder) == ()
    assert sorted(path.name for path in folder.iterdir()) == ["data", "plan.json"]


def test_who_is_taken_off_the_list_while_a_run_counts_counts_no_longer(
    folder, keys, alice, monkeypatch
):
    changed_after_the_check(monkeypatch, lambda: require(folder, keys, "bob"))
    with pytest.raises(ApprovalError, match="is not listed for that name"):
        rp.release(PLAN, records(folder), folder / "out", approvals=[alice])
    assert runs(folder) == ()


def test_one_approval_is_good_for_every_run_of_its_plan(folder, alice):
    """It is the plan that was approved; the budget limit bounds how often it is run."""
    for number in (1, 2):
        rp.release(PLAN, records(folder), folder / f"out-{number}", approvals=[alice])
    assert [run.approvals[0].sha256 for run in runs(folder)] == [alice.sha256] * 2


def killed_run(folder: Path, alice: Approval, where: tuple[str, int]) -> None:
    (folder / "plan-approval-alice.json").write_text(alice.text)
    killed(*where, folder / "plan.json", records(folder), folder / "out")


def check_finished(folder: Path, alice: Approval) -> None:
    manifest = TableRelease.load(folder / "out").manifest
    assert manifest["approvals"]["demanded"] == 1
    assert [one["name"] for one in manifest["approvals"]["given"]] == ["alice@x"]
    (run,) = runs(folder)
    assert (run.state, run.approvals[0].sha256) == ("finished", alice.sha256)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("is_given_again", [True, False])
def test_a_run_killed_before_its_noise_keeps_who_approved(is_given_again, folder, keys, alice):
    killed_run(folder, alice, BEFORE_NOISE)
    other = rp.approve(PLAN, keys / "bob")
    with pytest.raises(ApprovalError, match="booked already, with the approvals of alice@x"):
        rp.release(PLAN, records(folder), folder / "out", approvals=[other])
    require(folder, keys, "alice", "bob")  # it was booked when alice sufficed
    rp.release(PLAN, records(folder), folder / "out", approvals=[alice] if is_given_again else [])
    check_finished(folder, alice)


def test_a_run_whose_approvals_are_lost_draws_no_noise_until_they_are_back(folder, alice):
    killed_run(folder, alice, BEFORE_NOISE)
    (folder / ".out.unfinished" / "approvals" / "1.json").write_text("{}")
    with pytest.raises(ReleaseError, match=r"its approval approvals/1\.json is missing or was ch"):
        rp.release(PLAN, records(folder), folder / "out")
    assert not can_be_resumed(folder / "out")
    rp.release(PLAN, records(folder), folder / "out", approvals=[alice])
    check_finished(folder, alice)


def test_a_run_killed_while_it_writes_keeps_who_approved(folder, alice):
    killed_run(folder, alice, WHILE_WRITING)
    path = folder / ".out.unfinished" / "approvals" / "1.json"
    path.write_text(alice.text.replace("as agreed", "as argued"))
    with pytest.raises(ReleaseError, match=r"approvals/1\.json is missing or was changed"):
        rp.resume(folder / "out")
    path.write_text(alice.text)
    rp.resume(folder / "out")
    check_finished(folder, alice)
