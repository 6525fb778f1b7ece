"""The approvals of the plan to be run: whose files were given, and what is still missing."""

from functools import partial

import streamlit as st

from pages.components.release.form import ReleaseForm
from pages.components.release.given_approvals import given_approvals, held_approvals
from pages.components.shared.session import escaped, kept, say, show_messages
from rpexplore.common.formatting import plural
from rpexplore.errors import RpexploreError
from rpexplore.planning.approval import Approval, describe_approval, describe_checks
from rpexplore.releases.approval import missing_text, refuse_wrong
from rpexplore.releases.ledger.account import Account

HERE = "approvals"
BOX = "approval files"


def approvals_input(form: ReleaseForm, account: Account) -> tuple[Approval, ...]:
    """A box for files of approvals, and who has approved so far.

    The form is complete where they are what the ledger demands.
    """
    demand, planned = account.approval_demand, form.planned
    given = given_approvals(planned)
    if demand is None:
        place = st.expander("Approvals", expanded=bool(given))
        place.caption("The ledger demands none. Those that are given go into the release.")
    else:
        place = st.container()
        place.markdown(
            f"**Approvals.** The plan must be approved by {plural(demand.n, 'person')} of the "
            f"ledger's list ({escaped('; '.join(demand.names))}): each signs it with `rpexplore "
            "approve plan.json --key …` and hands over the file."
        )
    with place:
        st.file_uploader(
            "Approvals (.json)",
            type=["json"],
            key=BOX,
            accept_multiple_files=True,
            on_change=partial(_take, planned.sha256),
        )
        show_messages(HERE)
        for approval in given:
            line, button = st.columns([5, 1])
            line.markdown(escaped(describe_approval(approval)))
            button.button(
                "Leave out",
                key=f"leave out {approval.sha256}",
                on_click=_leave_out,
                args=(approval,),
            )
        if given:
            st.caption(describe_checks(0 if demand is None else demand.n))
            form.attempt(lambda: kept(refuse_wrong, demand, planned.sha256, given))
        if form.is_complete and (missing := missing_text(demand, given)):
            form.wait(escaped(missing))
    return given


def _take(plan_sha256: str) -> None:
    held = held_approvals()
    for file in st.session_state[BOX]:
        try:
            approval = Approval.parse(file.getvalue(), file.name)
            approval.check(plan_sha256)
        except RpexploreError as error:
            say(HERE, "error", str(error))
        else:
            held[approval.sha256] = approval


def _leave_out(approval: Approval) -> None:
    held_approvals().pop(approval.sha256, None)
