"""Releases of approved plans, of every kind: who approved stays with the run and the release."""

import json
from pathlib import Path

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ApprovalError, LedgerError, ReleaseError
from rpexplore.planning.approval import Approval
from rpexplore.planning.part_plan import PartPlan
from rpexplore.releases.ledger import chain
from rpexplore.releases.ledger.account import Account
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.table_release import TableRelease
from tests.releases import adaptive_run, area_plans
from tests.releases.table_plan import CSV, PLAN, QUERY_PLAN, ledger_rows
from tests.support.sealed import edit_manifest
from tests.support.ssh_keys import public, requires_ssh_keygen, with_keys

pytestmark = requires_ssh_keygen
PLANS: dict[str, PartPlan] = {
    "tables": PLAN,
    "queries": QUERY_PLAN,
    "areas": area_plans.PLANS["none below"],
    "adaptive": adaptive_run.PLAN,
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    return with_keys(folder, "alice@x", "bob@x")


@pytest.fixture(scope="module")
def demand(keys) -> rp.ApprovalDemand:
    listed = [f"{name}@x {public(keys / name)}\n" for name in ("alice", "bob")]
    return rp.ApprovalDemand(2, "".join(listed))


@pytest.fixture(params=PLANS)
def planned(request, tmp_path) -> tuple[PartPlan, Path]:
    """A plan, and records that it can be run on."""
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    if request.param == "adaptive":
        adaptive_run.write_records(path)
    elif request.param == "areas":
        pd.DataFrame(area_plans.RECORDS).to_csv(path, index=False)
    else:
        path.write_text(CSV)
    return PLANS[request.param], path


def approved(plan: PartPlan, keys: Path) -> list[Approval]:
    return [
        rp.approve(plan, keys / "alice", remarks="as [agreed](x)"),
        rp.approve(plan, keys / "bob"),
    ]


def account(data: Path) -> Account:
    return Ledger.beside(data).account(data)


@pytest.mark.by_day(1)
def test_a_plan_of_any_kind_is_run_once_it_is_approved(planned, keys, demand, tmp_path):
    plan, data = planned
    Ledger.beside(data).require_approvals(data, demand)
    alice, bob = approved(plan, keys)
    for given, says in (
        ([], "there is none"),
        ([alice], "there is 1, by alice@x. .*somebody else"),
    ):
        for function in (rp.dry_run, rp.release):
            with pytest.raises(ApprovalError, match=rf"approvals by 2 persons .*{says}"):
                function(plan, data, tmp_path / "out", approvals=given)
    assert account(data).entries == ()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]

    findings = rp.dry_run(plan, data, tmp_path / "out", approvals=[alice, bob]).findings
    assert any(finding.startswith("alice@x, 20") for finding in findings)
    rp.release(plan, data, tmp_path / "out", approvals=[alice, bob])
    done = rp.Release.load(tmp_path / "out")
    assert done.manifest["approvals"] == {
        "demanded": 2,
        "given": [
            {
                "path": f"approvals/{number}.json",
                "name": one.name,
                "key": one.key,
                "approved": one.approved,
                "remarks": one.remarks,
            }
            for number, one in enumerate((alice, bob), start=1)
        ],
    }
    assert (tmp_path / "out" / "approvals" / "2.json").read_text() == bob.text
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "demanded approvals by 2 persons; each of these was checked" in readme
    assert readme.endswith(f"key {bob.key}\n")
    (entry,) = account(data).entries
    assert entry.n_demanded == 2
    noted = [(one.sha256, one.name, one.key, one.approved) for one in entry.approvals]
    assert noted == [(one.sha256, one.name, one.key, one.approved) for one in (alice, bob)]


def test_without_a_demand_approvals_are_taken_for_what_is_known_of_them(keys, tmp_path):
    data = tmp_path / "records.csv"
    data.write_text(CSV)
    rp.release(PLAN, data, tmp_path / "out", approvals=[rp.approve(PLAN, keys / "bob", name="me")])
    manifest = TableRelease.load(tmp_path / "out").manifest
    assert (manifest["approvals"]["demanded"], account(data).entries[0].n_demanded) == (0, 0)
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "that this is the named person's was not checked" in " ".join(readme.split())


def test_a_demand_that_came_after_the_first_look_is_held_against_the_booking(
    keys, demand, tmp_path
):
    data = tmp_path / "records.csv"
    data.write_text(CSV)
    book = Ledger.beside(data)
    book.require_approvals(data, demand)
    with pytest.raises(ApprovalError, match="demands"):
        book.book(data, PLAN, tmp_path / "out")
    assert account(data).entries == ()
    book.book(data, PLAN, tmp_path / "out", approvals=approved(PLAN, keys))
    assert len(account(data).entries) == 1


def test_without_approvals_nothing_is_said_of_them(tmp_path):
    (tmp_path / "records.csv").write_text(CSV)
    done = rp.release(PLAN, tmp_path / "records.csv", tmp_path / "out")
    assert "approvals" not in done.manifest
    assert not (tmp_path / "out" / "approvals").exists()
    assert "pprov" not in (tmp_path / "out" / "README.md").read_text()
    kinds = ledger_rows(Ledger.beside(tmp_path / "records.csv"), "SELECT kind FROM events")
    assert kinds == [("run",), ("finished",)]


def test_with_parquet_only_approvals_are_there(keys, tmp_path):
    (tmp_path / "records.csv").write_text(CSV)
    given = approved(PLAN, keys)
    rp.release(PLAN, tmp_path / "records.csv", tmp_path / "out", approvals=given, parquet_only=True)
    TableRelease.load(tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.csv"))


CHANGES = {
    "another name": lambda m: m["approvals"]["given"][0].update(name="carol@x"),
    "another day": lambda m: m["approvals"]["given"][0].update(
        approved="2020-01-01T00:00:00+00:00"
    ),
    "other remarks": lambda m: m["approvals"]["given"][0].update(remarks="never"),
    "another key": lambda m: m["approvals"]["given"][0].update(key=f"SHA256:{'A' * 43}"),
    "another path": lambda m: m["approvals"]["given"][0].update(path="plan.json"),
    "one less": lambda m: m["approvals"]["given"].pop(),
    "none": lambda m: m["approvals"].update(given=[]),
    "one more": lambda m: m["approvals"]["given"].append(m["approvals"]["given"][0]),
    "the key left out": lambda m: m.pop("approvals"),
    "more demanded than given": lambda m: m["approvals"].update(demanded=3),
    "a number that is none": lambda m: m["approvals"].update(demanded=True),
    "another kind": lambda m: m.update(approvals=["alice@x"]),
    "a key more": lambda m: m["approvals"].update(by="the board"),
    "a file not listed": lambda m: m.update(
        files=[entry for entry in m["files"] if entry["path"] != "approvals/2.json"]
    ),
}


@pytest.fixture(scope="module")
def released(keys, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    (folder / "records.csv").write_text(CSV)
    rp.release(PLAN, folder / "records.csv", folder / "out", approvals=approved(PLAN, keys))
    return folder / "out"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_manifest_that_says_otherwise_of_approvals_is_refused(change, released):
    text = (released / "manifest.json").read_text()
    edit_manifest(released, change)
    try:
        with pytest.raises(ReleaseError, match="use the original folder"):
            TableRelease.load(released)
    finally:
        (released / "manifest.json").write_text(text)
    TableRelease.load(released)


def test_the_demand_is_shown_changed_and_lifted_and_each_time_noted(keys, demand, tmp_path):
    data = tmp_path / "records.csv"
    data.write_text(CSV)
    ledger = Ledger.beside(data)
    assert account(data).approval_demands == ()
    ledger.require_approvals(data, demand)
    assert account(data).approval_demands == (demand,)
    loosened = rp.ApprovalDemand(1, demand.allowed_signers)
    ledger.require_approvals(data, loosened)
    assert account(data).approval_demands == (loosened,)
    ledger.require_approvals(data, None)
    assert account(data).approval_demands == ()
    rows = ledger_rows(ledger, "SELECT content FROM events WHERE kind = 'approvals'")
    events = [json.loads(text) for (text,) in rows]
    assert [event["n"] for event in events] == [2, 1, 0]
    assert all(event["noted"] and event["user"] for event in events)
    rp.release(PLAN, data, tmp_path / "out")


@pytest.mark.parametrize(
    "content",
    [
        {"n": -1, "allowed_signers": ""},
        {"n": 1, "allowed_signers": 1},
        {"n": True, "allowed_signers": ""},
        {"n": 1},
    ],
)
def test_a_demand_that_cannot_be_is_neither_entered_nor_read(content, tmp_path, monkeypatch):
    data = tmp_path / "records.csv"
    data.write_text(CSV)
    ledger = Ledger.beside(data)
    names = list(account(data).names)

    def add() -> None:
        with ledger.store.transaction() as book:
            book.add("approvals", {"names": names, "noted": "", "user": "", **content})

    with pytest.raises(LedgerError, match="The entry cannot be added to the ledger"):
        add()
    with monkeypatch.context() as patch:  # a program that adds it all the same
        patch.setattr(chain, "checked_content", lambda *_: {})
        add()
    with pytest.raises(LedgerError, match=r"Entry 1 of the ledger .* cannot be read"):
        account(data)


def test_another_ledger_does_not_lead_around_the_demand_of_the_one_beside_the_data(
    demand, tmp_path
):
    data = tmp_path / "records.csv"
    data.write_text(CSV)
    Ledger.beside(data).require_approvals(data, demand)
    with pytest.raises(LedgerError, match="has its account in the ledger"):
        rp.release(PLAN, data, tmp_path / "out", ledger=tmp_path / "other.sqlite")
    assert not (tmp_path / "other.sqlite").exists()
