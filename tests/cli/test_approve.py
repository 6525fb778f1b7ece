"""Four eyes on the command line: approve, demand approvals, verify them, release."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.support.ssh_keys import new_key, public, requires_ssh_keygen

pytestmark = requires_ssh_keygen
ALICE = "plan-approval-alice@agency.example.json"


@pytest.fixture
def team(planned) -> Program:
    """A plan, two keys, and the list with both."""
    keys = {name: new_key(Path(), f"{name}@agency.example") for name in ("alice", "bob")}
    listed = [f"{name}@agency.example {public(key.absolute())}\n" for name, key in keys.items()]
    Path("allowed_signers").write_text("".join(listed))
    return planned


def test_a_plan_is_shown_verified_and_signed(team):
    text = team.done("approve", "plan.json", "--key", "alice", "--remarks", "as agreed")
    sha256 = team.json("verify", "plan.json")["sha256"]
    for part in ("Protects   one record", "ok   privacy cost", "ρ-zCDP", f"SHA-256 {sha256}"):
        assert part in text
    assert text.endswith(f": as agreed\nWritten to {ALICE}\n")
    assert json.loads(Path(ALICE).read_text())["plan_sha256"] == sha256
    facts = team.json("approve", "plan.json", "--key", "bob.pub", "--as", "b/c", "--out", "b.json")
    assert (facts["name"], facts["approval"], facts["remarks"]) == ("b/c", "b.json", "")
    assert team.json("approve", "plan.json", "--key", "bob", "--as", "b/c")["approval"] == (
        "plan-approval-b-c.json"
    )


def test_nothing_is_signed_that_was_not_agreed_to(team, monkeypatch):
    monkeypatch.setattr("rpexplore.cli.report.interactive", lambda: True)
    for answer, code in (("", 2), ("n\n", 2), ("yes\n", 0)):
        result = team("approve", "plan.json", "--key", "alice", input=answer)
        assert result.exit_code == code, result.output
        assert "Approve it? [y/N]" in result.stderr
        assert Path(ALICE).exists() == (code == 0)
    assert "Approve it?" not in team("approve", "plan.json", "--key", "bob", "--yes").stderr


def test_what_cannot_be_approved_is_refused_before_it_is_shown(team):
    assert "is no SSH key" in team.refused("approve", "plan.json", "--key", "nobody")
    assert "must be up to" in team.refused("approve", "plan.json", "--key", "bob", "--as", "-x")
    Path(ALICE).touch()
    assert "exists already" in team.refused("approve", "plan.json", "--key", "alice")
    team.done("approve", "plan.json", "--key", "alice", "--force")


def test_a_release_waits_for_the_people_that_the_ledger_demands(team):
    shown = team.done(
        "ledger", "records.csv", "--require-approvals", "allowed_signers", "--approvals", "2"
    )
    needs = (
        "Needs   approvals of the plan by 2 persons of: alice@agency.example; bob@agency.example"
    )
    assert needs in shown
    Path("allowed_signers").write_text(f"*@* {public(Path('alice').absolute())}\n")  # too late
    run = ["release", "plan.json", "records.csv", "--out", "out"]
    result = team(*run)
    assert (result.exit_code, Path("out").exists()) == (2, False)
    assert "so far there is none. Have the plan approved" in result.stderr
    assert result.stderr.endswith("Nothing was charged, nothing was written.\n")
    for key in ("alice", "bob"):
        team.done("approve", "plan.json", "--key", key, "--out", f"{key}.json")
    given = ["--approval", "alice.json", "--approval", "bob.json"]
    findings = team.json(*run, "--dry-run", *given)["findings"]
    assert any(finding.startswith("bob@agency.example, ") for finding in findings)
    team.done(*run, *given)
    assert Path("out/approvals/2.json").read_text() == Path("bob.json").read_text()
    shown = team.done("ledger", "records.csv")
    assert "approved by" in shown
    assert shown.endswith("alice@agency.example, bob@agency.example\n")
    facts = team.json("ledger", "records.csv")
    assert [demand["n"] for demand in facts["approval_demands"]] == [2]
    assert [one["name"][:3] for one in facts["runs"][0]["approvals"]] == ["ali", "bob"]
    assert "Needs" not in team.done("ledger", "records.csv", "--require-approvals", "None")
    team.done(*run[:-1], "again")


def test_the_options_of_a_demand_go_together(team):
    ledger = ["ledger", "records.csv"]
    assert "goes with --require-approvals" in team.refused(*ledger, "--approvals", "2")
    nowhere = team.refused(*ledger, "--require-approvals", "none", "--approvals", "1")
    assert "name the list" in nowhere
    many = ["--require-approvals", "allowed_signers", "--approvals", "3"]
    assert "has 2 persons" in team.refused(*ledger, *many)
    assert "cannot be read" in team.refused(*ledger, "--require-approvals", "nothing")
    assert not Path("rpexplore-ledger.sqlite").exists()
    resumed = ["release", "--resume", "--out", "out", "--approval", "a.json"]
    assert "takes no --approval" in team.refused(*resumed)


def test_verify_checks_approvals_of_the_plan(team):
    team.done("approve", "plan.json", "--key", "alice", "--out", "a.json")
    verify = ["verify", "plan.json", "--approval", "a.json"]
    assert "was not checked against a list" in team.done(*verify)
    listed = team.done(*verify, "--allowed-signers", "allowed_signers")
    assert "Approved, by people of the list:\nalice@agency.example, " in listed
    facts = team.json(*verify)
    assert (facts["holds"], facts["approvals"][0]["name"]) == (True, "alice@agency.example")
    Path("others").write_text(f"bob@agency.example {public(Path('bob').absolute())}\n")
    assert "does not count" in team.refused(*verify, "--allowed-signers", "others")
    alone = team.refused("verify", "plan.json", "--allowed-signers", "allowed_signers")
    assert "goes with --approval" in alone
    Path("a.json").write_text(Path("a.json").read_text().replace("alice@", "alicf@"))
    assert "was changed since it was signed" in team.refused(*verify)


@pytest.mark.nightly
def test_a_report_names_who_approved(team):
    team.done("approve", "plan.json", "--key", "alice", "--remarks", "<b>as agreed</b>")
    team.done("report", "plan.json", "--approval", ALICE, "--out", "report.html")
    html = Path("report.html").read_text("utf-8")
    assert ">Approvals</h2>" in html
    assert "&lt;b&gt;as agreed&lt;/b&gt;" in html
    assert "alice@agency.example" in html.replace("<wbr>", "")
    team.done("report", "plan.json", "--out", "without.html")
    assert ">Approvals</h2>" not in Path("without.html").read_text("utf-8")
    team.done("plan", "codebook.csv", "--up-to", "1", "--rho", "1", "--out", "other.json")
    other = ["report", "other.json", "--approval", ALICE, "--out", "other.html"]
    assert "is of another plan" in team.refused(*other)
