"""A dry run: everything that a run does before it costs something, for nothing."""

from dataclasses import replace

import streamlit as st

from pages.components.release.run import Job
from pages.components.shared.background import Task, has_ended
from pages.components.shared.session import escaped
from rpexplore.common.concurrency import Progress
from rpexplore.releases.charged_run import DryRun
from rpexplore.releases.release import dry_run

KEPT = "dry run"


def job_after_dry_run(job: Job) -> Job:
    """The job, with what a dry run of exactly this job has seen of the records, if there was one.

    Draws the button, how far the dry run is, and what it has found.
    """
    st.button(
        "Dry run",
        key="dry run button",
        help="The plan, the folder, the ledger and every record are checked as for a "
        "run. Nothing is spent and nothing written.",
        on_click=_begin,
        args=(job,),
    )
    held: tuple[Job, Task[DryRun]] | None = st.session_state.get(KEPT)
    if held is None or not held[0].asks_the_same(job):
        return job
    task = held[1]
    if not has_ended(task, KEPT, "Checking"):
        return job
    if task.result is None:
        st.error(escaped(f"{task.error} Nothing was charged."))
        return job
    listed = "\n".join(f"- {escaped(finding)}" for finding in task.result.findings)
    st.success(f"All is in order; nothing was spent.\n{listed}")
    return replace(job, expected_fingerprint=task.result.fingerprint)


def _begin(job: Job) -> None:
    held = st.session_state.get(KEPT)
    if held is not None:
        held[1].cancel()

    def work(on_progress: Progress) -> DryRun:
        # Only the sample's ledger may lack its folder; the page refuses others.
        job.ledger.path.parent.mkdir(parents=True, exist_ok=True)
        return dry_run(
            job.plan,
            job.data,
            job.output,
            unknown_values=job.unknown_values,
            person_rule=job.person_rule,
            ledger=job.ledger.path,
            cap_rho=job.cap,
            on_progress=on_progress,
        )

    st.session_state[KEPT] = (job, Task(work).start())
