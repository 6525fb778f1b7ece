"""Approving a plan of whatever kind: it is verified, and then signed."""

from pathlib import Path

from rpexplore.errors import ApprovalError
from rpexplore.planning.approval import Approval, signed_approval
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import Verification, verify


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
