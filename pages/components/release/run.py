"""A release in the background: a rerun of the page, another page, or a reload of the browser must
not stop it or start it twice, because a run that has been booked is charged even if it fails."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from pages.components.shared.background import Task
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import text_of_path
from rpexplore.data.source import Fingerprint, PersonRule, Source
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.privacy.conversions import rho_text
from rpexplore.releases.ledger import Account, Ledger
from rpexplore.releases.manifest import FinishedRelease
from rpexplore.releases.release import release, steps_of

T = TypeVar("T")

# Since when runs are going, by each name of their records: one list for all sessions of the
# server. Every session may read it, so it holds nothing else.
_going: dict[str, datetime] = {}
_lock = threading.Lock()


def going_since(data: Source) -> datetime | None:
    """When the run on these records began that is going on now, in whatever session."""
    return next((_going[name] for name in _names_of(data) if name in _going), None)


def any_going() -> bool:
    """Whether there is a run on any records at all."""
    return bool(_going)


def _names_of(data: Source) -> tuple[str, ...]:
    """What the records are called in every session."""
    return data.names(Path("/"))


@dataclass(frozen=True)
class Job:
    """What a click on the button starts, and the account that was shown beside it."""

    plan: ReleasePlan
    record_noun: str  # what one record stands for, in the plural
    data: Source
    output: Path
    unknown_values: Mapping[str, str]
    person_rule: PersonRule | None
    ledger: Ledger
    limit: Fraction | None  # ρ of the plan's privacy unit
    account: Account
    escape_formulas: bool = False  # in CSV files
    expected_fingerprint: Fingerprint | None = None  # what a dry run has seen of the records

    def is_same_run(self, job: "Job") -> bool:
        """Whether another job would do the same, whatever was checked or spent meanwhile."""
        return replace(self, account=job.account, expected_fingerprint=None) == replace(
            job, expected_fingerprint=None
        )

    def run(self, function: Callable[..., T], on_progress: Progress, **options: Any) -> T:
        """What `release` or `dry_run` returns for this job."""
        # Only the folder of releases may not be there yet; the page refuses others.
        self.ledger.path.parent.mkdir(parents=True, exist_ok=True)
        return function(
            self.plan,
            self.data,
            self.output,
            unknown_values=self.unknown_values,
            person_rule=self.person_rule,
            ledger=self.ledger.path,
            limit_rho=self.limit,
            escape_formulas=self.escape_formulas,
            on_progress=on_progress,
            **options,
        )

    def describe_rho(self, record_rho: Fraction) -> str:
        """ρ for one record, as the plan's privacy unit has it: "ρ = 0.1"."""
        return rho_text(record_rho * self.plan.budget.records_factor, 4)


class BackgroundRelease:
    """One run: its `task` tells how far it is, and in the end the release or why there is none.

    charge  what the ledger says afterwards that it has cost
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.charge = ""
        self._names = _names_of(job.data)
        # A server that is stopped waits for a run that has been booked.
        self.task: Task[FinishedRelease] = Task(self._release, kept_from=self.booked_share)

    @classmethod
    def begin(cls, job: Job) -> "BackgroundRelease | None":
        """Start a run, unless another one on the same records is going."""
        run = cls(job)
        with _lock:
            if going_since(job.data) is not None:
                return None
            _going.update(dict.fromkeys(run._names, datetime.now(UTC)))
        try:
            run.task.start()
        except BaseException:
            run._forget()
            raise
        return run

    @property
    def release(self) -> FinishedRelease | None:
        return self.task.result

    @property
    def is_going(self) -> bool:
        return self.task.is_going

    @property
    def failed(self) -> bool:
        return not self.is_going and self.release is None

    @property
    def booked_share(self) -> float:
        """The share of the work from which on cancelling costs something."""
        return steps_of(self.job.plan).booked_share

    def cost_of_cancelling(self) -> str:
        """What cancelling now would cost, as sentences; "" before the run is booked."""
        if self.task.share < self.booked_share:
            return ""
        further = "It can be run again into the same folder without further cost."
        if self.task.share > steps_of(self.job.plan).drawn_share:
            further = "Its noise is drawn and kept; it can be finished later without further cost."
        rho = self.job.describe_rho(self.job.plan.record_rho)
        return f"This run is in the ledger: {rho} stays charged. {further}"

    def _release(self, on_progress: Progress) -> FinishedRelease:
        job = self.job
        try:
            return job.run(release, on_progress, expected_fingerprint=job.expected_fingerprint)
        finally:
            self.charge = self._describe_charge()
            self._forget()

    def _forget(self) -> None:
        for name in self._names:
            _going.pop(name, None)

    def _describe_charge(self) -> str:
        job = self.job
        try:
            after = job.ledger.account(job.data)
        except Exception:
            return "What was charged cannot be read from the ledger."
        output, known = text_of_path(job.output.resolve()), {run.id for run in job.account.entries}
        charged = sum(
            (
                run.record_rho
                for run in after.entries
                if run.id not in known and run.output == output
            ),
            Fraction(0),
        )
        if not charged:
            return "Nothing was charged."
        return (
            f"This run was charged {job.describe_rho(charged)}, which cannot be undone; in total "
            f"{job.describe_rho(after.spent_record_rho)} has been spent on these records."
        )
