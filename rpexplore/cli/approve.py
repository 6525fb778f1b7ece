"""The verb that signs plans: approve."""

from pathlib import Path
from typing import Annotated

from rpexplore.cli import options
from rpexplore.cli.commands import Option
from rpexplore.cli.console import (
    agreed,
    interactive,
    progress,
    refuse_existing,
    say,
    say_result,
    write_new,
)
from rpexplore.errors import RpexploreError

# It imports what it needs itself, so that no other verb waits for it.

Key = Annotated[
    Path,
    Option(
        "--key",
        metavar="FILE",
        help="The SSH key that signs: a private key, or the public one (.pub) of a key that an "
        "agent or a security key holds.",
    ),
]
Name = Annotated[
    str | None,
    Option(
        "--as",
        metavar="NAME",
        help="Who approves, as lists of allowed signers name the key, such as "
        "alice@agency.example; else the key's comment.",
    ),
]
Remarks = Annotated[str, Option(metavar="TEXT", help="One line that goes with it.")]
ApprovalOut = Annotated[
    Path | None,
    Option("--out", metavar="FILE", help="Where the approval goes; else beside the plan, by NAME."),
]
AgreedBefore = Annotated[bool, Option("--yes", help="Do not ask before it is signed.")]

_MOST_ROWS = 20


def approve(
    plan_file: options.PlanFile,
    key: Key,
    name: Name = None,
    remarks: Remarks = "",
    out: ApprovalOut = None,
    force: options.Force = False,
    yes: AgreedBefore = False,
    as_json: options.AsJson = False,
) -> None:
    """Approve a plan: sign it with your SSH key, as git does.

    Shows what is approved, and refuses a plan that `verify` finds wrong. Needs the plan and
    ssh-keygen, and no records. The file that is written goes to who runs the release (`release
    --approval FILE`).
    """
    from rpexplore.cli.facts import plan_text
    from rpexplore.planning.approval import describe_approval, signed_approval, who_signs
    from rpexplore.planning.approving import verified
    from rpexplore.planning.plan import load_plan

    name, _ = who_signs(key, name)
    if out is None:
        by = name.replace("/", "-").replace(":", "-")
        out = plan_file.with_name(f"{plan_file.stem}-approval-{by}.json")
    refuse_existing(out, force)
    with progress("Checking the plan"):
        loaded = load_plan(plan_file)
        verification = verified(loaded)
    if not as_json:
        shown = plan_text(loaded, _MOST_ROWS)
        say(f"{shown}\n\n{verification}\n\nSHA-256 {loaded.sha256}\n")
    if interactive() and not yes and not agreed("Approve it?"):
        raise RpexploreError("Not approved: nothing was signed, nothing was written.")
    approval = signed_approval(loaded, key, name=name, remarks=remarks)
    write_new(out, approval.text, force)
    facts = {
        "approval": str(out),
        "plan_sha256": approval.plan_sha256,
        "name": approval.name,
        "key": approval.key,
        "approved": approval.approved,
        "remarks": approval.remarks,
    }
    say_result(as_json, facts, f"Approved: {describe_approval(approval)}\nWritten to {out}")
