"""Approvals in the folder of a release: their files, and what manifest and README say of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rpexplore.common.files import names_to_disk
from rpexplore.errors import ApprovalError, ReleaseError
from rpexplore.planning.approval import Approval, describe_approval, describe_checks
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.releases.approval import MOST
from rpexplore.releases.atomic_folder import write_to_disk

FOLDER = "approvals"
APPROVALS = "approvals"  # their key in a manifest
_STATED = ("name", "key", "approved", "remarks")


def paths_of_approvals(n_approvals: int) -> list[str]:
    """Where so many approvals lie in a release."""
    return [f"{FOLDER}/{number}.json" for number in range(1, n_approvals + 1)]


def write_approvals(folder: Path, approvals: Sequence[Approval]) -> None:
    """Write the files of approvals; they are on disk afterwards."""
    if not approvals:
        return
    (folder / FOLDER).mkdir(exist_ok=True)
    for path, approval in zip(paths_of_approvals(len(approvals)), approvals, strict=True):
        write_to_disk(folder / path, approval.text)
    names_to_disk(folder / FOLDER)
    names_to_disk(folder)


def read_approvals(folder: Path, digests: Sequence[str]) -> tuple[Approval, ...]:
    """The approvals of an unfinished run, by their SHA-256. Raises `ReleaseError`."""
    approvals = []
    for path, digest in zip(paths_of_approvals(len(digests)), digests, strict=True):
        try:
            approval = Approval.load(folder / path)
            if approval.sha256 != digest:
                raise ApprovalError("it was changed")
        except ApprovalError:
            raise ReleaseError(
                f"The run in {str(folder)!r} cannot be finished: its approval {path} is missing or "
                "was changed; restore it."
            ) from None
        approvals.append(approval)
    return tuple(approvals)


def facts_of_approvals(approvals: Sequence[Approval], n_demanded: int) -> dict[str, Any]:
    """What a manifest says of approvals, by key; nothing where there are none."""
    if not approvals:
        return {}
    given = [
        {"path": path, **{key: getattr(approval, key) for key in _STATED}}
        for path, approval in zip(paths_of_approvals(len(approvals)), approvals, strict=True)
    ]
    return {APPROVALS: {"demanded": n_demanded, "given": given}}


def facts_in_folder(folder: Path, stated: Any, plan: Plan | PartPlan) -> dict[str, Any]:
    """What a manifest must say of the approvals in its folder, if it says how many there are.

    Whether they are signed is not checked here, as that needs ssh-keygen: `rpexplore verify` does.
    Raises `ApprovalError`, `KeyError` or `TypeError` for what cannot be.
    """
    n_demanded, n_given = stated["demanded"], len(stated["given"])
    if type(n_demanded) is not int or not 0 <= n_demanded <= n_given <= MOST or not n_given:
        raise ApprovalError("there are fewer approvals than were demanded")
    approvals = [Approval.load(folder / path) for path in paths_of_approvals(n_given)]
    if any(approval.plan_sha256 != plan.sha256 for approval in approvals):
        raise ApprovalError("an approval is of another plan")
    return facts_of_approvals(approvals, n_demanded)


def readme_section(approvals: Sequence[Approval], n_demanded: int) -> str:
    """The section of a README that names who approved; "" without approvals.

    In lines of code, where remarks that people type are nothing but text.
    """
    if not approvals:
        return ""
    lines = "".join(f"    {describe_approval(approval)}\n" for approval in approvals)
    return (
        f"\n## Who approved the plan\n\n{describe_checks(n_demanded)} Their files, in "
        f"`{FOLDER}/`, are checked with `rpexplore verify plan.json --approval FILE "
        f"--allowed-signers FILE`.\n\n{lines}"
    )
