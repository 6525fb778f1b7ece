"""A dry run, a run after its button was pressed, and what the ledger holds."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

import streamlit as st

from pages.components.release.behind_pilot import leave_run
from pages.components.release.export import export_section
from pages.components.release.form import ReleaseForm
from pages.components.release.release_task import RELEASE_TASK
from pages.components.results.files import page_for_readers
from pages.components.results.source import open_folder
from pages.components.shared.background import follow, has_ended
from pages.components.shared.charts import listing, metrics
from pages.components.shared.session import attempt, escaped
from rpexplore.analysis.glossary import meaning
from rpexplore.common.processes import Progress
from rpexplore.common.text import capitalised, plural
from rpexplore.data.source import Source
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.atomic_folder import unfinished_folder
from rpexplore.releases.booked_run import as_shown, booked_run
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.account import GIVEN_UP, Account, given_up_text
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.overlaps import datasets, describe_earlier_run, runs
from rpexplore.releases.ledger.spent import Reading
from rpexplore.releases.pilot import plan_behind_pilot
from rpexplore.releases.release import can_be_resumed, dry_run, resume
from rpexplore.releases.release_steps import DryRun
from rpexplore.results.publication import Publication, sampling_of
from rpexplore.serving.release_tasks import ReleaseInputs, ReleaseTask, going_since
from rpexplore.serving.tasks import Task

KEPT = "dry run"


def dry_run_button(inputs: ReleaseInputs) -> None:
    """The button that begins a dry run."""
    st.button(
        "Dry run",
        key="dry run button",
        help=meaning("Dry run"),
        on_click=_begin_dry_run,
        args=(inputs,),
    )


def inputs_after_dry_run(inputs: ReleaseInputs) -> ReleaseInputs | None:
    """The inputs, with what a dry run of exactly these has seen of the records, if there was one.

    None, and the page says why, after one that failed. Draws how far it is, and its result.
    """
    held: tuple[ReleaseInputs, Task[DryRun]] | None = st.session_state.get(KEPT)
    if held is None or not held[0].is_same_run(inputs):
        return inputs
    task = held[1]
    if not has_ended(task, KEPT, "Checking"):
        return inputs
    if task.result is None:
        st.error(escaped(f"{task.error} Nothing was charged."))
        if task.was_cancelled:
            return inputs
        st.info(
            "The release would fail for the same reason. Fix the problem or change your choices "
            "above, then repeat the dry run."
        )
        return None
    told = (*task.result.findings, *task.result.taken)
    findings = "\n".join(f"- {escaped(finding)}" for finding in told)
    st.success(f"All is in order; nothing was spent.\n{findings}")
    return replace(inputs, expected_fingerprint=task.result.fingerprint)


def _begin_dry_run(inputs: ReleaseInputs) -> None:
    held = st.session_state.get(KEPT)
    if held is not None:
        held[1].cancel()
    check = partial(dry_run, pilot_only=inputs.pilot_only)
    st.session_state[KEPT] = (inputs, Task(partial(inputs.call, check)).start())


@st.fragment(run_every=1)
def run_elsewhere(data: Source, account: Account | None) -> None:
    """A note on a run that this session did not begin, or began before the page was reloaded."""
    since = going_since(data)
    if since is None:
        st.rerun()
    runs = [] if account is None else [run for run in account.entries if run.state != "finished"]
    folder = escaped(runs[-1].output) if runs else "the folder it was given"
    st.info(
        f"A run on these records is in progress, since {utc_minute(since.isoformat())}. Its "
        f"release will be in {folder}; its cost is entered in the ledger."
    )


def release_in_progress(task: ReleaseTask) -> None:
    """A bar that follows the run; the page itself is drawn again when it has ended."""
    follow(task, "release", task.cost_of_cancelling, task.kept_from)
    st.caption("The run goes on if you look at other pages.")


def finished_release(release: Release, task: ReleaseTask) -> None:
    """What was charged, where the files are, and the way to the results."""
    st.success(f"Finished: {release.plan.contents}. {task.charge}")
    st.markdown("The files are in")
    st.code(str(release.folder.absolute()), language=None)
    for part in release.parts:
        if part.kind == "rounds":
            st.warning(f"{escaped(capitalised(part.label))}.", icon=":material/label_important:")
    publication = Publication(task.inputs.scenario.cv_limit, sampling=sampling_of(release))
    with st.container(horizontal=True, vertical_alignment="center"):
        page_for_readers(release, release.folder.absolute(), publication, type="primary")
        st.page_link("pages/results.py", label="Look at the results", icon=":material/table_view:")
        st.button("Prepare another release", on_click=leave_run)
    if release.part("tables") is not None:
        # Behind a pilot that of the first plan; that of the rest is in the release, beside it.
        export_section(release.plan.booked, task.inputs.scenario)


# ---- What the ledger holds: what the records have cost, its runs, and how one is finished.


RUN_COLUMNS = {
    "number": "Run",
    "started": "Started (UTC)",
    "rho": "Charged ρ",
    "epsilon": "Charged ε",
    "state": "State",
    "plan": "Plan (SHA-256)",
    "output": "Folder",
}
DATASET_COLUMNS = {
    "dataset": "Records",
    "runs": "Runs",
    "rho": "Spent ρ",
    "epsilon": "Spent ε",
    "limit": "Budget limit",
}
TASK = "finishing"


def is_paid(planned: Plan, output: Path | None, account: Account, ledger: Ledger) -> bool:
    """Whether this very run was booked and stopped before: again, it costs nothing further."""
    entry = None if output is None else attempt(lambda: booked_run(output, ledger))
    if entry is None or entry.plan_sha256 != planned.sha256:
        return False
    return entry in as_shown(account.entries)


def account_view(
    form: ReleaseForm,
    ledger: Ledger,
    account: Account,
    typed_limit: Fraction | None,
    reading: Reading,
    *,
    paid: bool,
) -> None:
    """What the records have cost so far and what they would after the run, run by run as well.

    reading: how the run reads and counts records; paid: whether it is charged already
    """
    budget = form.planned.budget
    spent, noted = account.spent, account.limit_record_rho
    then = spent if paid else account.spent_after(form.planned, reading)
    before, after = (one.record_rho * budget.records_factor for one in (spent, then))
    limit = typed_limit if noted is None else noted * budget.records_factor
    n_runs = plural(len(account.entries), "run")
    limit_text, limit_epsilon = "none", ""
    if limit is not None:  # rounded as what is spent, which else seems more where it is as much
        limit_text, limit_epsilon = rho_text(limit, 4), budget.epsilon_text(limit)
    metrics(
        ("Spent on these records", rho_text(before, 4), spent.epsilon_text(budget)),
        ("After this run", rho_text(after, 4), then.epsilon_text(budget)),
        ("Budget limit", limit_text, limit_epsilon),
    )
    earlier = "" if paid else describe_earlier_run(form.planned, account)
    if earlier:
        st.info(escaped(earlier))
    with st.expander(f"Ledger: {n_runs} on these records"):
        if account.entries:
            listing(runs(account, budget), RUN_COLUMNS, "Runs on these records")
        st.caption(
            f"Each ρ and ε is for {escaped(budget.unit)}, which this plan protects. The ε of all "
            f"runs after this one is proven {escaped(then.proof_for(budget))}. A run is entered "
            "before its noise is drawn, and stays charged whether or not it finished."
        )
        others = attempt(lambda: datasets(ledger, budget, without=account))
        if others is not None and len(others):
            st.markdown("Other records in this ledger")
            listing(others, DATASET_COLUMNS, "Other records in this ledger")


def unfinished_runs(account: Account, ledger: Ledger, going_on: Path | None) -> None:
    """A note on runs that were booked and never came to an end, and the way to finish them.

    going_on: the folder of one that the page goes on with
    """
    for entry in as_shown(account.entries):
        # Stopped between its entry as finished and its name, a release lacks only that.
        has_ended = entry.state == "finished" and (
            os.path.lexists(entry.output) or not can_be_resumed(entry.output, entry.id)
        )
        if has_ended or entry.output == str(going_on):
            continue
        if entry.state == GIVEN_UP:
            if os.path.lexists(unfinished_folder(Path(entry.output))):
                st.warning(escaped(given_up_text(entry, ledger.name)))
            continue
        state, way_on = "It stays charged.", None
        if can_be_resumed(entry.output, entry.id):
            state = "It is charged, and its noise is drawn and kept."
            way_on = "Finish it without further cost", _begin_finishing, (entry.output, ledger)
        elif attempt(partial(plan_behind_pilot, Path(entry.output))) is not None:
            state = "It is charged, and its pilot is released; going on costs nothing further."
            way_on = "Go on from its pilot", st.session_state.update, ({"output": entry.output},)
        elif attempt(partial(booked_run, Path(entry.output), ledger)) == entry:
            state = (
                "It is charged; run the same plan into that folder again, which costs nothing "
                "further."
            )
            way_on = "Take its folder", st.session_state.update, ({"output": entry.output},)
        st.warning(
            f"A run on these records into {escaped(entry.output)} was started at "
            f"{utc_minute(entry.started)} and did not finish. {state} (Unless another program is "
            "still at it.)"
        )
        if way_on is not None:
            label, on_click, args = way_on
            st.button(label, key=f"{label} {entry.id}", on_click=on_click, args=args)


def utc_minute(moment: str) -> str:
    """An ISO moment as "2026-11-21 17:09 UTC"."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def finishing() -> bool:
    """How far the finishing of a run is, or its result; whether it goes on."""
    task: Task[Release] | None = st.session_state.get(TASK)
    if task is None:
        return False
    if not has_ended(task, TASK, "Finishing"):
        return True
    del st.session_state[TASK]
    if task.result is None:
        st.error(escaped(task.error))
        return False
    # The failure that it had is mended, and its folder is not for another run.
    st.session_state.pop(RELEASE_TASK, None)
    st.session_state["output"] = ""
    folder, contents = task.result.folder, task.result.plan.contents
    st.success(
        escaped(f"Finished: {contents}. Nothing further was charged. The files are in {folder}.")
    )
    open_folder(folder)
    st.page_link("pages/results.py", label="Look at them")
    return False


def _begin_finishing(output: str, ledger: Ledger) -> None:
    def work(on_progress: Progress) -> Release:
        return resume(output, ledger=ledger.name, on_progress=on_progress)

    st.session_state[TASK] = Task(work, kept_from=0).start()
