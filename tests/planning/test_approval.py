"""Approvals: files with one form, which can be checked with ssh-keygen alone."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.ssh_signatures import sign
from rpexplore.errors import ApprovalError
from rpexplore.planning.approval import (
    LARGEST,
    NAME_LENGTH,
    NAMESPACE,
    REMARKS_LENGTH,
    Approval,
    describe_approval,
)
from rpexplore.planning.planner import plan_tables
from tests.support.ssh_keys import new_key, public, requires_ssh_keygen

pytestmark = requires_ssh_keygen
TABLES = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2}), 1)
PLAN = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
FORMATS = Path(__file__).parents[2] / "docs" / "approval-files.md"


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    new_key(folder, "alice@agency.example")
    return folder


@pytest.fixture(scope="module")
def approval(keys) -> Approval:
    return rp.approve(PLAN, keys / "alice", remarks="Seen by the board, “as agreed” — für 2026 \\n")


def test_an_approval_is_read_as_it_was_written(approval, tmp_path):
    (tmp_path / "approval.json").write_text(approval.text, "utf-8")
    loaded = Approval.load(tmp_path / "approval.json")
    assert loaded == approval
    loaded.check(PLAN.sha256)
    assert (loaded.plan_sha256, loaded.name) == (PLAN.sha256, "alice@agency.example")
    assert describe_approval(loaded).endswith(": Seen by the board, “as agreed” — für 2026 \\n")


def test_the_documented_commands_check_it_without_this_program(approval, keys, tmp_path):
    (block,) = re.findall(r"```sh\n(grep -v .*?)```", FORMATS.read_text("utf-8"), re.DOTALL)
    (tmp_path / "approval.json").write_text(approval.text, "utf-8")
    listed = f"alice@agency.example {public(keys / 'alice')}\n"
    (tmp_path / "allowed_signers").write_text(listed)

    def checked() -> subprocess.CompletedProcess[str]:
        command = ["sh", "-ec", block]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = checked()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('Good "rpexplore-plan-approval" signature for alice@agency')
    changed = approval.text.replace("Seen", "seen")
    (tmp_path / "approval.json").write_text(changed, "utf-8")
    assert checked().returncode != 0


@pytest.mark.parametrize(
    "name",
    ["", "-alice", "alice smith", "*@agency.example", "a,b", "!bob", '"a"', "a\nb", "zoë@x",
     "\u0430lice@x", "a" * (NAME_LENGTH + 1), "a#b", "a?"],
)  # fmt: skip
def test_a_name_that_could_be_taken_for_another_is_refused(name, keys):
    with pytest.raises(ApprovalError, match=r"The name of who approves must be .* such as alice@"):
        rp.approve(PLAN, keys / "alice", name=name)


@pytest.mark.parametrize(
    "remarks",
    ["a\nb", "a\rb", "a\tb", "\x1b[31m", "\x00", "a\u202eb", "a\u2066b", "a\u200bb", "a\u2028b",
     "\ud800", "x" * (REMARKS_LENGTH + 1)],
)  # fmt: skip
def test_remarks_that_could_confuse_are_refused(remarks, keys):
    with pytest.raises(ApprovalError, match=r"The remarks (must be one line|can have 500)"):
        rp.approve(PLAN, keys / "alice", remarks=remarks)


def test_the_name_is_the_comment_of_the_key_unless_one_is_given(keys, tmp_path):
    assert rp.approve(PLAN, keys / "alice", name="carol").name == "carol"
    nameless = new_key(tmp_path, "key", "-C", "")
    with pytest.raises(ApprovalError, match="no comment that could be a name; say in whose name"):
        rp.approve(PLAN, nameless)


def test_a_plan_that_does_not_hold_its_claims_is_not_approved(keys, monkeypatch):
    claimed = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
    object.__setattr__(claimed, "exact_privacy_cost", claimed.exact_privacy_cost / 2)
    with pytest.raises(ApprovalError, match=r"does not hold what it claims \(privacy cost"):
        rp.approve(claimed, keys / "alice")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",\n", ", \n", 1),
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace('"name"', '"name" '),
        lambda text: text.replace("ü", "\\u00fc"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace('"remarks"', '"more":"",\n"remarks"'),
        lambda text: text.replace('"format_version":1', '"format_version":2'),
        lambda text: text.replace("rpexplore-approval", "rpexplore-plan"),
        lambda text: text.replace('"name":"alice', '"name":"-alice'),
        lambda text: re.sub('"approved":"[^"]*"', '"approved":"2026-13-01T00:00:00+00:00"', text),
        lambda text: re.sub('"approved":"[^"]*"', '"approved":"yesterday"', text),
        lambda text: re.sub('"key":"[^"]*"', '"key":"MD5:00"', text),
        lambda text: re.sub('"plan_sha256":"[^"]*"', '"plan_sha256":"00"', text),
        lambda text: re.sub('"signature":"[^"]*"', '"signature":"none"', text),
        lambda text: text.replace(',\n"remarks"', f',\n{" " * LARGEST}"remarks"'),
        lambda text: "[]",
        lambda text: "",
    ],
)
def test_any_other_text_is_refused(change, approval):
    changed = change(approval.text)
    assert changed != approval.text
    with pytest.raises(ApprovalError, match=r"^a\.json (is not an approval|must be byte for byte)"):
        Approval.parse(changed.encode(), "a.json")


def test_the_key_that_signs_must_be_the_one_that_is_named(approval, tmp_path):
    bob = new_key(tmp_path, "bob@x")
    forged = replace(approval, signature=sign(approval.signed_text, NAMESPACE, bob))
    with pytest.raises(ApprovalError, match=r"names the key SHA256:.*, and is signed by SHA256:"):
        forged.check(PLAN.sha256)
