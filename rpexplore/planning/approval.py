"""Approvals: a plan is verified, and signed by people with their SSH key. No records are needed."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.common.json_fields import (
    check_format,
    check_keys,
    dumps,
    loads,
    refusing,
    sha256_of,
    text_of,
)
from rpexplore.common.numbers import shown
from rpexplore.common.ssh_signatures import canonical_signature, key_facts, sign, signing_key
from rpexplore.common.text import plural
from rpexplore.errors import ApprovalError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import Verification, verify

# ---- Approvals: what people who have seen a plan sign with their SSH key. No records are needed.
#
# The file is JSON, a key a line. What is signed is the file without the line of its signature, so
# that grep, sed and ssh-keygen can check it (docs/approval-files.md).


NAMESPACE = "rpexplore-plan-approval"  # so that no signature for something else is an approval
FORMAT = ("rpexplore-approval", 1)
NAME_LENGTH, REMARKS_LENGTH = 100, 500  # characters
LARGEST = 65_536  # bytes of a file; one with a certificate has some thousand

# A principal, of letters that look like no others, without those that mean something in lists.
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._+@:/-]{{0,{NAME_LENGTH - 1}}}")
_KEY = re.compile(r"SHA256:[0-9A-Za-z+/]{43}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
_STATED = ("plan_sha256", "name", "key", "approved", "remarks")
_GET_AGAIN = "get it again from who signed it"


@dataclass(frozen=True)
class Approval:
    """That somebody approves a plan, signed with an SSH key. Raises `ApprovalError`.

    plan_sha256  the plan's name, whatever its file is called
    name         who approves: the principal by which lists of allowed signers know the key
    key          fingerprint of the key, as ssh-keygen writes it; of a certificate, its key's
    approved     when, in UTC, by the clock of who signed
    remarks      one line in any words; "" for none
    signature    of all this, as ssh-keygen writes it
    """

    plan_sha256: str
    name: str
    key: str
    approved: str
    remarks: str
    signature: str

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.remarks, str) or not self.remarks.isprintable():
            raise ApprovalError(
                "The remarks must be one line without control characters or others that cannot be "
                f"seen, got {shown(ascii(self.remarks))}; type them anew."
            )
        if len(self.remarks) > REMARKS_LENGTH:
            raise ApprovalError(
                f"The remarks can have {REMARKS_LENGTH} characters, got {len(self.remarks):,}; "
                "shorten them."
            )
        if not _KEY.fullmatch(self.key):
            raise ApprovalError(
                f"{shown(ascii(self.key))} is no fingerprint of a key; {_GET_AGAIN}."
            )
        if not _MOMENT.fullmatch(self.approved) or not _is_moment(self.approved):
            raise ApprovalError(
                f"{shown(ascii(self.approved))} is no time of an approval, such as "
                f"2026-11-20T09:30:00+00:00; {_GET_AGAIN}."
            )

    # ---- files

    @property
    def signed_text(self) -> str:
        """What is signed: the text of the file without the line of the signature."""
        return _text(self._facts)

    @cached_property
    def text(self) -> str:
        """The text of the file, the only one that there is of this approval."""
        return _text(self._facts, self.signature)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def _facts(self) -> dict[str, str]:
        return {key: getattr(self, key) for key in _STATED}

    @classmethod
    def load(cls, path: str | Path) -> "Approval":
        """Read an approval, as `text` has it. Raises `ApprovalError` for anything else.

        Whose signature it is, and whether it is of this text, `check` tells.
        """
        content = file_bytes(path, f"The approval {str(path)!r}", ApprovalError)
        return cls.parse(content, Path(path).name)

    @classmethod
    def parse(cls, content: bytes, source: str) -> "Approval":
        """The approval that a file holds; source: the file's name, for errors."""
        with refusing(ApprovalError, f"{source} is not an approval"):
            if len(content) > LARGEST:
                raise ApprovalError(f"it has {len(content):,} bytes, more than any")
            text = utf8_text(content, source, ApprovalError, may_have_mark=False)
            stated = loads(text)
            check_format(stated, *FORMAT, "approval")
            check_keys(stated, ("format", "format_version", "signature", *_STATED), "it")
            facts = {key: text_of(stated, key) for key in _STATED}
            facts["plan_sha256"] = sha256_of(stated, "plan_sha256")
            signature = canonical_signature(text_of(stated, "signature"))
            approval = cls(**facts, signature=signature)
        if approval.text != text:
            raise ApprovalError(
                f"{source} must be byte for byte as it was signed, and was written anew; "
                f"{_GET_AGAIN}."
            )
        return approval

    # ---- checks

    def check(self, plan_sha256: str) -> None:
        """Raise `ApprovalError` unless it is of this plan, and signed by the key that it names.

        Whether that key is the named person's is not known by this.
        """
        if self.plan_sha256 != plan_sha256:
            raise ApprovalError(
                f"The approval of {self.name} is of another plan, with the SHA-256 "
                f"{self.plan_sha256[:16]}…, not of this one, {plan_sha256[:16]}…; have this one "
                "approved."
            )
        key = signing_key(self.signed_text, self.signature, NAMESPACE)
        if key is None:
            raise ApprovalError(
                f"The approval of {self.name} was changed since it was signed, or signed for "
                f"another purpose; {_GET_AGAIN}."
            )
        if key != self.key:
            raise ApprovalError(
                f"The approval of {self.name} names the key {self.key}, and is signed by {key}; "
                f"{_GET_AGAIN}."
            )


def signed_approval(
    plan: Plan | PartPlan, key: str | Path, *, name: str | None = None, remarks: str = ""
) -> Approval:
    """An approval of a plan that was checked, signed now; see `queries.approving.approve`."""
    path = Path(key).expanduser()
    name, fingerprint = who_signs(path, name)
    unsigned = Approval(
        plan_sha256=plan.sha256,
        name=name,
        key=fingerprint,
        approved=datetime.now(UTC).isoformat(timespec="seconds"),
        remarks=remarks.strip(),
        signature="",
    )
    signature = sign(unsigned.signed_text, NAMESPACE, path)
    approval = Approval(**unsigned._facts, signature=signature)
    approval.check(plan.sha256)
    return approval


def who_signs(key: Path, name: str | None = None) -> tuple[str, str]:
    """In whose name a key signs, its comment if none is given, and its fingerprint."""
    fingerprint, comment = key_facts(key)
    if name is None and not _NAME.fullmatch(comment):
        raise ApprovalError(
            f"The key {str(key)!r} has no comment that could be a name; say in whose name it "
            "approves (--as alice@agency.example)."
        )
    name = comment if name is None else name
    _check_name(name)
    return name, fingerprint


def describe_approval(approval: Approval) -> str:
    """Who approved when, with which key, and remarks, in one line; these come last.

    So letters that are written from right to left move nothing but themselves.
    """
    minute = approval.approved.replace("T", " ")[:16]
    remarks = f": {approval.remarks}" if approval.remarks else ""
    return f"{approval.name}, {minute} UTC, key {approval.key}{remarks}"


def describe_checks(n_demanded: int, *, booked: bool = False) -> str:
    """How far approvals were checked, as a sentence.

    n_demanded: by how many people a ledger demands them; booked: the run is in the ledger
    """
    if not n_demanded:
        return (
            "Each approval is signed with the key beside it; that this is the named person's was "
            "not checked against a list of allowed signers."
        )
    demands, is_or_was = ("demanded", "was") if booked else ("demands", "is")
    return (
        f"The ledger {demands} approvals by {plural(n_demanded, 'person')}; each of these "
        f"{is_or_was} checked against its list of allowed signers when the run {is_or_was} booked."
    )


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ApprovalError(
            f"The name of who approves must be up to {NAME_LENGTH} letters, digits and . _ + @ "
            f": / - of ASCII, and begin with a letter or digit, got {shown(ascii(name))}; "
            "name it as lists of allowed signers do, such as alice@agency.example."
        )


def _text(facts: Mapping[str, str], signature: str | None = None) -> str:
    """The facts as JSON, a key a line, with or without the line of a signature."""
    name, version = FORMAT
    signed = {} if signature is None else {"signature": signature}
    fields = {"format": name, "format_version": version, **signed, **facts}
    lines = ",\n".join(f"{dumps(key)}:{dumps(value)}" for key, value in fields.items())
    return f"{{\n{lines}\n}}\n"


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# ---- Approving a plan of whatever kind: it is verified, and then signed.


def approve(
    plan: Plan | PartPlan, key: str | Path, *, name: str | None = None, remarks: str = ""
) -> Approval:
    """Approve a plan: verify it, and sign its SHA-256 with an SSH key, as git signs.

    Needs the plan alone, on any machine with `ssh-keygen`. The plan is approved, for whichever
    records and however many runs; a ledger's budget limit bounds their number.

    Args:
        key: A private key, or the public one of a key that an agent or a security key holds.
        name: Who approves, as lists of allowed signers name the key; else the key's comment.
        remarks: One line that goes with it.

    Raises:
        ApprovalError: If the plan does not hold what it claims, or the key does not sign.

    Example:
        >>> import subprocess, tempfile, rpexplore as rp
        >>> tables = rp.Workload.all_of_order(rp.Domain.from_sizes({"age": 100, "sex": 2}), 1)
        >>> plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     new_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/key"]
        ...     done = subprocess.run(new_key, check=True)
        ...     approval = rp.approve(plan, f"{folder}/key", name="alice@agency.example")
        >>> approval.plan_sha256 == plan.sha256, approval.name
        (True, 'alice@agency.example')
    """
    verified(plan)
    return signed_approval(plan, key, name=name, remarks=remarks)


def verified(plan: Plan | PartPlan) -> Verification:
    """What there is to approve; raises `ApprovalError` for a plan that does not hold its claims."""
    verification = verify(plan)
    for check in verification.checks:
        if not check.holds:
            raise ApprovalError(
                f"The plan does not hold what it claims ({check.name}: {check.finding}), and is "
                "not approved; have it made again."
            )
    return verification
