"""A release in the background: a rerun of the page, another page, or a reload of the browser must
not stop it or start it twice, because a run that has been booked is charged even if it fails."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from rpexplore.errors import RpexploreError
from rpexplore.ledger import Account, Ledger, text_of_path
from rpexplore.plan import Plan
from rpexplore.release import Release, release
from rpexplore.words import rounded

# The runs that are going, by their records: one list for all sessions of the server. Every session
# may read it, so it holds nothing but since when.
_going: dict[Path, datetime] = {}
_lock = threading.Lock()


def going_since(data: Path) -> datetime | None:
    """When the run on these records began that is going on now, in whatever session."""
    return _going.get(data.resolve())


def any_going() -> bool:
    """Whether there is a run on any records at all."""
    return bool(_going)


@dataclass(frozen=True)
class Job:
    """What a click on the button asks for, and the account that was shown beside it."""

    plan: Plan
    data: Path
    output: Path
    other: Mapping[str, str]
    ledger: Ledger
    cap: Fraction | None  # ρ of the plan's privacy unit
    account: Account

    def rho(self, record_rho: Fraction) -> str:
        """ρ for one record, as the plan's privacy unit has it, in words."""
        return f"ρ = {rounded(record_rho * self.plan.budget.records_factor, 4, 'up')}"


class Run:
    """One run: `doing` and `share` while it goes on, then a `release` or an `error` for the screen.

    The error's text may hold what was read from records; it is shown and not kept anywhere else.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.doing, self.share = "Starting", 0.0
        self.release: Release | None = None
        self.error = ""
        self.charge = ""
        # Not a daemon: a server that is stopped waits for a run that has been booked.
        self._thread = threading.Thread(target=self._go, name="release", daemon=False)

    @classmethod
    def begun(cls, job: Job) -> "Run | None":
        """A run that is going, unless another one on the same records is."""
        run, records = cls(job), job.data.resolve()
        with _lock:
            if records in _going:
                return None
            _going[records] = datetime.now(UTC)
        try:
            run._thread.start()
        except BaseException:
            _going.pop(records)
            raise
        return run

    @property
    def is_going(self) -> bool:
        return self._thread.is_alive()

    @property
    def failed(self) -> bool:
        return not self.is_going and self.release is None

    def wait(self, seconds: float) -> None:
        """Return when the run has ended, or after so many seconds."""
        self._thread.join(seconds)

    def _go(self) -> None:
        job, records = self.job, self.job.data.resolve()
        try:
            # Only the sample's ledger may lack its folder; the page refuses others.
            job.ledger.path.parent.mkdir(parents=True, exist_ok=True)
            self.release = release(
                job.plan,
                job.data,
                job.output,
                other=job.other,
                ledger=job.ledger.path,
                cap_rho=job.cap,
                progress=self._note,
            )
        except RpexploreError as error:
            self.error = error.on_screen()
        except MemoryError:
            self.error = "There is not enough memory; ask for fewer or smaller tables."
        except Exception as error:
            # Its text could hold anything; a thread would print it with all its values.
            self.error = f"The run stopped unexpectedly ({type(error).__name__}); please report it."
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

    def _note(self, doing: str, share: float) -> None:
        self.doing, self.share = doing, min(max(share, 0.0), 1.0)
