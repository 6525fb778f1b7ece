"""The dialog before a run: what is run, what it costs and gives, and who has approved it."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.components.release.form import ReleaseForm, given_approvals, held_approvals
from pages.components.shared.session import current, escaped, kept, say, show_messages
from rpexplore.common.text import plural
from rpexplore.errors import RpexploreError
from rpexplore.planning.approval import Approval, describe_approval, describe_checks
from rpexplore.planning.plan import Plan
from rpexplore.releases.approvals import missing_text, most_demanded, refuse_wrong
from rpexplore.releases.ledger.account import Account
from rpexplore.serving.release_tasks import ReleaseInputs, run_facts

HERE = "confirmation"
ASKED, TYPED = "confirmation asked", "confirmed name"


def ask(plan: Plan) -> None:
    """Have the dialog of this plan open from the next run of the page on."""
    if st.session_state.get(ASKED) != plan.sha256:  # a second click leaves what is typed
        st.session_state.update({ASKED: plan.sha256, TYPED: ""})


def confirmation(
    inputs: ReleaseInputs, start: Callable[[ReleaseInputs], None], *, paid: bool
) -> None:
    """The dialog, if it was asked for; `start` is called once the scenario's name was typed.

    paid: whether the run is charged already
    """
    if st.session_state.get(ASKED) != inputs.plan.sha256:
        return

    @st.dialog("Run the release?", width="medium", on_dismiss=_close)
    def dialog() -> None:
        if ASKED not in st.session_state:  # a button below has closed it
            st.rerun()
        name, spent = current().name, inputs.plan.amount_text
        facts = run_facts(inputs, current(), kept, paid=paid)
        st.markdown("\n".join(f"- **{label}:** {escaped(text)}" for label, text in facts.items()))
        with st.form("confirmation", border=False):
            st.text_input(
                "Type the name of the scenario to confirm; what is spent stays spent",
                key=TYPED,
                placeholder=name,
            )
            show_messages(HERE)
            with st.container(horizontal=True):
                st.form_submit_button(
                    "Run again" if paid else f"Spend {spent} and run",
                    type="primary",
                    on_click=_confirm,
                    args=(inputs, name, start),
                )
                st.form_submit_button("Cancel", on_click=_close)

    dialog()


def _confirm(inputs: ReleaseInputs, name: str, start: Callable[[ReleaseInputs], None]) -> None:
    if ASKED not in st.session_state:  # a second click
        return
    if " ".join(st.session_state[TYPED].split()) != " ".join(name.split()):
        say(HERE, "error", f"Nothing was run: the name of the scenario is {name}.")
        return
    _close()
    start(inputs)


def _close() -> None:
    st.session_state.pop(ASKED, None)


# ---- The approvals of the plan to be run: whose files were given, and what is still missing.


APPROVALS_HERE = "approvals"
BOX = "approval files"


def approvals_input(form: ReleaseForm, account: Account) -> tuple[Approval, ...]:
    """A box for files of approvals, and who has approved so far.

    The form is complete where they are what the ledger demands.
    """
    demands, planned = account.approval_demands, form.planned
    given = given_approvals(planned)
    if not demands:
        place = st.expander("Approvals", expanded=bool(given))
        place.caption("The ledger demands none. Those that are given go into the release.")
    else:
        place = st.container()
        for demand in demands:
            place.markdown(
                f"**Approvals.** The plan must be approved by {plural(demand.n, 'person')} of the "
                f"ledger's list ({escaped('; '.join(demand.names))}): each signs it with "
                "`rpexplore approve plan.json --key …` and hands over the file."
            )
    with place:
        st.file_uploader(
            "Approvals (.json)",
            type=["json"],
            key=BOX,
            accept_multiple_files=True,
            on_change=partial(_take, planned.sha256),
        )
        show_messages(APPROVALS_HERE)
        for approval in given:
            line, button = st.columns([5, 1])
            line.markdown(escaped(describe_approval(approval)))
            button.button(
                "Leave out",
                key=f"leave out {approval.sha256}",
                on_click=_leave_out,
                args=(approval.sha256,),
            )
        if given:
            st.caption(describe_checks(most_demanded(demands)))
            form.attempt(lambda: kept(refuse_wrong, demands, planned.sha256, given))
        if form.is_complete and (missing := missing_text(demands, given)):
            form.wait(escaped(missing))
    return given


def _take(plan_sha256: str) -> None:
    held = held_approvals()
    for file in st.session_state[BOX]:
        try:
            approval = Approval.parse(file.getvalue(), file.name)
            approval.check(plan_sha256)
        except RpexploreError as error:
            say(APPROVALS_HERE, "error", str(error))
        else:
            held[approval.sha256] = approval


def _leave_out(sha256: str) -> None:
    held_approvals().pop(sha256, None)
