"""Who counts as having approved, by a list of allowed signers as ssh-keygen has it."""

from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.ssh_signatures import sign
from rpexplore.errors import ApprovalError
from rpexplore.planning.approval import Approval
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.approvals import ApprovalDemand, check_approvals, load_approvals
from tests.support.ssh_keys import certified, new_key, public, requires_ssh_keygen

pytestmark = requires_ssh_keygen
TABLES = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2}), 1)
PLAN = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
OTHER = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/3"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    return {name: new_key(folder, f"{name}@x") for name in ("alice", "bob", "second", "authority")}


@pytest.fixture(scope="module")
def lines(keys) -> dict[str, str]:
    return {name: public(key) for name, key in keys.items()}


def approved(keys, *pairs: tuple[str, str]) -> list[Approval]:
    return [rp.approve(PLAN, keys[key], name=f"{name}@x") for name, key in pairs]


def check(n: int, listed: list[str], approvals: list[Approval], plan: TablePlan = PLAN) -> None:
    check_approvals([ApprovalDemand(n, "\n".join(listed))], plan.sha256, approvals)


@pytest.mark.parametrize(
    "line",
    [
        "alice@x {alice}",
        "bob@x,alice@x {alice} a comment",
        'alice@x {alice} "AGENCY\\alice AAAA"',
        "*@x {alice}",
        'alice@x namespaces="git,rpexplore-plan-approval" {alice}',
        'alice@x valid-after="20200101",valid-before="29990101" {alice}',
        "# nobody yet\n\n\talice@x\t{alice}",
        "carol@x {bob}\nalice@x {alice}\n",
    ],
)
def test_a_line_that_allows_the_key_to_sign_in_the_name_counts(line, keys, lines):
    check(1, [line.format(**lines)], approved(keys, ("alice", "alice")))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("alice@x {bob}", "is not listed for that name"),
        ("bob@x {alice}", "is not listed for that name"),
        ("!alice@x,*@x {alice}", "is not listed for that name"),
        ('alice@x namespaces="git" {alice}', "may only sign for other purposes"),
        ('alice@x valid-before="20200101" {alice}', "had expired"),
        ('alice@x valid-after="29990101" {alice}', "is not valid yet"),
        ("*@x cert-authority {alice}", "is not listed for that name"),
        ('alice@x nonsense="1" {alice}', "is not listed for that name"),
    ],
)
def test_one_that_does_not_is_refused_with_the_reason(line, reason, keys, lines):
    with pytest.raises(
        ApprovalError, match=f"approval of alice@x does not count: its key .*{reason}"
    ):
        check(1, [line.format(**lines)], approved(keys, ("alice", "alice")))


def test_a_key_taken_out_of_the_list_counts_no_longer(keys, lines):
    given = approved(keys, ("alice", "alice"))
    check(1, [f"alice@x {lines['alice']}", f"bob@x {lines['bob']}"], given)
    with pytest.raises(ApprovalError, match="not listed"):
        check(1, [f"bob@x {lines['bob']}"], given)


def test_a_certificate_counts_for_the_names_and_days_that_are_in_it(keys, lines, tmp_path):
    carol = new_key(tmp_path, "carol@x")
    listed = [f"*@x cert-authority {lines['authority']}"]
    certificate = certified(keys["authority"], carol, "-n", "carol@x", "-V", "+1d")
    check(1, listed, [rp.approve(PLAN, certificate, name="carol@x")])
    with pytest.raises(ApprovalError, match="a certificate that is not for this name and day"):
        check(1, listed, [rp.approve(PLAN, certificate, name="bob@x")])
    with pytest.raises(ApprovalError, match="not listed"):  # a listed key is not its certificate
        check(1, [f"carol@x {public(carol)}"], [rp.approve(PLAN, certificate, name="carol@x")])
    certified(keys["authority"], carol, "-n", "carol@x", "-V", "20200101:20200102")
    with pytest.raises(ApprovalError, match="a certificate that is not for this name and day"):
        check(1, listed, [rp.approve(PLAN, certificate, name="carol@x")])
    certified(keys["bob"], carol, "-n", "carol@x", "-V", "+1d")  # another authority
    with pytest.raises(ApprovalError, match="not listed"):
        check(1, listed, [rp.approve(PLAN, certificate, name="carol@x")])


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("listed", "pairs"),
    [
        # two names of one key
        (["alice@x {alice}", "alias@x {alice}"], [("alice", "alice"), ("alias", "alice")]),
        # two keys of one name
        (["alice@x {alice}", "alice@x {second}"], [("alice", "alice"), ("alice", "second")]),
        # a name in common: alice and alias are one
        (
            ["alice@x,alias@x {alice}", "alias@x {second}"],
            [("alice", "alice"), ("alias", "second")],
        ),
        # and one that is written in other letters
        (["alice@x {alice}", "Alice@x {second}"], [("alice", "alice"), ("Alice", "second")]),
        # and over a third line that nobody signs by
        (
            ["alice@x {alice}", "alice@x,alias@x {authority}", "alias@x {second}"],
            [("alice", "alice"), ("alias", "second")],
        ),
        # a wildcard lets a key sign as somebody else, who is then counted once
        (["alice@x {alice}", "*@x {second}"], [("alice", "alice"), ("alice", "second")]),
        (["*@x {alice}"], [("carol", "alice"), ("dave", "alice")]),
        # the same approval twice
        (["alice@x {alice}"], [("alice", "alice"), ("alice", "alice")]),
    ],
)
def test_one_person_counts_once(listed, pairs, keys, lines):
    listed = [*(line.format(**lines) for line in listed), f"bob@x {lines['bob']}"]
    given = approved(keys, *pairs)
    check(1, listed, given)
    with pytest.raises(ApprovalError, match=r"by 2 persons of its list .*; so far there is 1, by"):
        check(2, listed, given)
    check(2, listed, [*given, *approved(keys, ("bob", "bob"))])


def test_an_option_that_only_looks_like_that_of_an_authority_makes_nobody_two(keys, lines):
    line = 'alice@x,alias@x namespaces="cert-authority,rpexplore-plan-approval" '
    listed = [line + lines["alice"], f"alias@x {lines['second']}", f"bob@x {lines['bob']}"]
    with pytest.raises(ApprovalError, match="there is 1, by alice@x alias alias@x"):
        check(2, listed, approved(keys, ("alice", "alice"), ("alias", "second")))


def test_an_approval_of_another_plan_is_refused_with_or_without_a_list(keys, lines):
    given = approved(keys, ("alice", "alice"))
    for demands in ([], [ApprovalDemand(1, f"alice@x {lines['alice']}")]):
        with pytest.raises(
            ApprovalError, match=r"is of another plan, with the SHA-256 [0-9a-f]{16}"
        ):
            check_approvals(demands, OTHER.sha256, given)


def test_a_signature_for_another_purpose_is_refused(keys, lines):
    (given,) = approved(keys, ("alice", "alice"))
    facts = {name: getattr(given, name) for name in
             ("plan_sha256", "name", "key", "approved", "remarks")}  # fmt: skip
    other = Approval(**facts, signature=sign(given.signed_text, "git", keys["alice"]))
    for demands in ([], [ApprovalDemand(1, f"alice@x {lines['alice']}")]):
        with pytest.raises(ApprovalError, match="signed for another purpose"):
            check_approvals(demands, PLAN.sha256, [other])


def test_one_wrong_approval_is_refused_beside_enough_right_ones(keys, lines):
    given = approved(keys, ("alice", "alice"), ("bob", "bob"))
    with pytest.raises(ApprovalError, match="approval of bob@x does not count"):
        check(1, [f"alice@x {lines['alice']}"], given)


@pytest.mark.parametrize(
    ("n", "text", "says"),
    [
        (0, "alice@x {alice}", "From 1 to 100 approvals"),
        (101, "alice@x {alice}", "From 1 to 100 approvals"),
        (1, "", "has 0 persons"),
        (1, "# alice@x {alice}", "has 0 persons"),
        (2, "alice@x {alice}\nalias@x {alice}", r"has 1 person .* approvals by 2"),
        (1, "alice@x {alice}\nalice@x", "Line 2 of the list"),
        (1, "alice@x ssh-ed25519 AAAA?", "Line 1 of the list"),
        (1, "{alice}", "Line 1 of the list"),
        # what ssh-keygen reads otherwise than it looks
        (1, 'alice@x,"alias@x"{alice} AAAA', "Line 1 .* names without quotation marks"),
        (1, 'alice@x,"alias@x"namespaces="git" {alice}', "Line 1 of the list"),
        (1, '"alice@x" {alice}', "Line 1 of the list"),
        (1, 'alice@x namespaces="\\",cert-authority" {alice}', "Line 1 .* without backslashes"),
        (1, 'alice@x namespaces="git {alice}', "Line 1 of the list"),
        (1, "alice@x {alice}\rbob@x {bob}", "Line 1 of the list"),
        (1, "alice@x {alice}\x00", "must be a text"),
        (1, "#" + "x" * 1_100_000, "can have 1,048,576 characters"),
    ],
)
def test_a_demand_that_nobody_could_meet_is_refused(n, text, says, lines):
    with pytest.raises(ApprovalError, match=says):
        ApprovalDemand(n, text.format(**lines))


def test_a_list_is_read_with_the_line_ends_of_any_system(tmp_path, keys, lines):
    (tmp_path / "list").write_bytes(f"alice@x {lines['alice']}\r\n".encode())
    demand = ApprovalDemand.load(tmp_path / "list")
    check_approvals([demand], PLAN.sha256, approved(keys, ("alice", "alice")))
    with pytest.raises(ApprovalError, match="cannot be read"):
        ApprovalDemand.load(tmp_path / "none")


def test_approvals_are_taken_once_and_not_without_end(keys, tmp_path):
    (given,) = approved(keys, ("alice", "alice"))
    (tmp_path / "a.json").write_text(given.text)
    assert load_approvals([given, tmp_path / "a.json", str(tmp_path / "a.json")]) == (given,)
    with pytest.raises(ApprovalError, match="A plan can have 100 approvals, got 101"):
        load_approvals([given] * 101)
