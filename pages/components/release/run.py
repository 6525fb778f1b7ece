"""A release in the background: a rerun of the page, another page, or a reload of the browser must
not stop it or start it twice, because a run that has been booked is charged even if it fails."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from pages.components.shared.background import Task
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import rounded, text_of_path
from rpexplore.data.source import Fingerprint, PersonRule, Source
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.ledger import Account, Ledger
from rpexplore.releases.plan_run import FinishedRelease
from rpexplore.releases.release import release, run_of

# The runs that are going, by their records: one list for all sessions of the server. Every session
# may read it, so it holds nothing but since when.
_going: dict[str, datetime] = {}
_lock = threading.Lock()


def going_since(data: Source) -> datetime | None:
    """When the run on these records began that is going on now, in whatever session."""
    return _going.get(_whole_name(data))


def _whole_name(data: Source) -> str:
    """What the records are called, whoever asks."""
    return data.dataset(Path("/"))


def any_going() -> bool:
    """Whether there is a run on any records at all."""
    return bool(_going)


@dataclass(frozen=True)
class Job:
    """What a click on the button asks for, and the account that was shown beside it."""

    plan: ReleasePlan
    record_noun: str  # what one record stands for, in the plural
    data: Source
    output: Path
    unknown_values: Mapping[str, str]
    person_rule: PersonRule | None
    ledger: Ledger
    cap: Fraction | None  # ρ of the plan's privacy unit
    account: Account
    expected_fingerprint: Fingerprint | None = None  # what a dry run has seen of the records

    def asks_the_same(self, other: "Job") -> bool:
        """Whether another job would do the same, whatever was checked or spent meanwhile."""
        return replace(self, account=other.account, expected_fingerprint=None) == replace(
            other, expected_fingerprint=None
        )

    def rho(self, record_rho: Fraction) -> str:
        """ρ for one record, as the plan's privacy unit has it, in words."""
        return f"ρ = {rounded(record_rho * self.plan.budget.records_factor, 4, 'up')}"


class BackgroundRelease:
    """One run: its `task` tells how far it is, and in the end the release or why there is none."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.charge = ""
        # A server that is stopped waits for a run that has been booked.
        self.task: Task[FinishedRelease] = Task(self._go, keep_on=True)

    @classmethod
    def begun(cls, job: Job) -> "BackgroundRelease | None":
        """A run that is going, unless another one on the same records is."""
        run, records = cls(job), _whole_name(job.data)
        with _lock:
            if records in _going:
                return None
            _going[records] = datetime.now(UTC)
        try:
            run.task.start()
        except BaseException:
            _going.pop(records)
            raise
        return run

    @property
    def release(self) -> FinishedRelease | None:
        return self.task.result

    @property
    def is_going(self) -> bool:
        return self.task.is_going

    @property
    def booked_share(self) -> float:
        """The share of the work from which on cancelling costs something."""
        return run_of(self.job.plan).booked_share

    def cost_of_cancelling(self) -> str:
        """What cancelling now would cost, in words; "" before the run is booked."""
        if self.task.share < self.booked_share:
            return ""
        if self.task.share > run_of(self.job.plan).drawn_share:
            return (
                f"This run is in the ledger: {self.job.rho(self.job.plan.record_rho)} stays "
                "charged. Its noise is drawn and kept, so that it can be finished later without "
                "further cost."
            )
        return (
            f"This run is in the ledger: {self.job.rho(self.job.plan.record_rho)} stays charged, "
            "although nothing will be released."
        )

    @property
    def failed(self) -> bool:
        return not self.is_going and self.release is None

    def _go(self, on_progress: Progress) -> FinishedRelease:
        job, records = self.job, _whole_name(self.job.data)
        try:
            # Only the sample's ledger may lack its folder; the page refuses others.
            job.ledger.path.parent.mkdir(parents=True, exist_ok=True)
            return release(
                job.plan,
                job.data,
                job.output,
                unknown_values=job.unknown_values,
                person_rule=job.person_rule,
                expected_fingerprint=job.expected_fingerprint,
                ledger=job.ledger.path,
                cap_rho=job.cap,
                on_progress=on_progress,
            )
        finally:
            self.charge = self._charge()
            _going.pop(records, None)

    def _charge(self) -> str:
        """What the ledger says afterwards that this run has cost."""
        job = self.job
        try:
            after = job.ledger.account(job.data)
        except Exception:
            return "What was charged cannot be read from the ledger."
        output, known = text_of_path(job.output.resolve()), {run.id for run in job.account.runs}
        charged = sum(
            (run.record_rho for run in after.runs if run.id not in known and run.output == output),
            Fraction(0),
        )
        if not charged:
            return "Nothing was charged."
        return (
            f"This run was charged {job.rho(charged)}, which stays so; in total "
            f"{job.rho(after.spent_record_rho)} has been spent on these records."
        )
