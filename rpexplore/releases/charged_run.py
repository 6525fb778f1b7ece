"""A charged run: everything is refused before it is booked, and it is booked before any noise.

    charge = ChargedRun(plan, source, output, ledger, cap_rho)  # refuses what it can
    counts = charge.counted(domain, tables)                 # reads records, refuses what is left
    with charge.folder() as folder:
        charge.book()                                       # on disk from here on
        ...                                                 # draw noise, write

What stops a run after it was booked leaves no folder, and the charge stays. A run whose noise is
all drawn, and on disk, is left as it is to be finished later.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from rpexplore.common.exact_numbers import Exact, exact_fraction
from rpexplore.common.formatting import data_size, plural
from rpexplore.data.counts import Counts
from rpexplore.data.source import Fingerprint, PersonRule, Source
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError, LedgerError, PlanError, ReleaseError
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.planning.verification import Verification
from rpexplore.releases.atomic_folder import new_folder, unfinished
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.ledger_overlaps import refuse_overlaps

Progress = Callable[[str, float], None]
"""What a run tells: what is being done, and which share of everything is done."""


def refuse_broken(verification: Verification) -> None:
    """Raise `PlanError` for a plan that does not hold what it claims."""
    if not verification.holds:
        broken = next(check for check in verification.checks if not check.holds)
        raise PlanError(
            f"The plan does not hold what it claims ({broken.name}: {broken.finding}); make it "
            "again."
        )


@dataclass(frozen=True)
class DryRun:
    """What a dry run has found in order, in words, and what the records look like from outside.

    Holds nothing that was read from records.
    """

    findings: tuple[str, ...]
    stamp: Fingerprint


class ChargedRun:
    """What one run of a verified plan costs the records, from the first check to the last note.

    kept_with: the file with which an unfinished folder can be finished later, see `new_folder`

    Raises `DataError` if there are no records, `LedgerError` for what the ledger would refuse.
    """

    def __init__(
        self,
        plan: ReleasePlan,
        source: Source,
        output: Path,
        ledger: str | Path | None,
        cap_rho: Exact | None,
        *,
        kept_with: str | None = None,
    ) -> None:
        self.stamp = source.fingerprint()
        self._plan, self._source, self._output, self._kept_with = plan, source, output, kept_with
        self.book_of_runs = Ledger(ledger) if ledger is not None else Ledger.beside(source)
        self._cap = None if cap_rho is None else _record_cap(plan, cap_rho)
        self._run: int | None = None
        folder = self.book_of_runs.path.parent
        if not folder.is_dir():
            raise LedgerError(f"There is no folder {str(folder)!r} for the ledger; check the path.")
        self.book_of_runs.check(source, plan, plan.record_rho, self._cap)
        refuse_overlaps(self.book_of_runs, source)

    def counted(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        other: Mapping[str, str],
        persons: PersonRule | None,
        checked: Fingerprint | None,
        progress: Callable[[float], None],
    ) -> Counts:
        """Exact counts, as `Source.counted`, of the records as they were found to be.

        checked: what they were when they were checked before, if they were

        Raises `DataError` also if they are not, or no longer, the same, and `ReleaseError` for a
        rule for persons that is not about what the plan protects.
        """
        _check_persons(self._plan, persons)
        if checked is not None and checked != self.stamp:
            raise DataError(
                f"The records {self._source.name!r} have changed since they were checked; check "
                "them again."
            )
        counts = self._source.count(
            domain, tables, unknown_values=other, person_rule=persons, on_progress=progress
        )
        if self._source.fingerprint() != self.stamp:
            raise DataError(
                f"The records {self._source.name!r} have changed while they were counted; run it "
                "again when nobody writes to them."
            )
        return counts

    def dry_run(self, room: float, other: Mapping[str, str], persons: PersonRule | None) -> DryRun:
        """What is in order when the records have been counted; room: bytes that will be written."""
        most = self._plan.budget.max_records_per_person
        by_rule = "" if persons is None else f" {persons.words}"
        if persons is None and most is not None:
            by_rule = f" That nobody has more than {plural(most, 'record')} is taken for granted."
        others = ", or counted as the value that takes others" if other else ""
        findings = (
            f"The plan holds what it claims, and protects {self._plan.budget.unit}.{by_rule}",
            "The records have every column that the plan needs, and each value in it is one of the "
            f"plan's{others}.",
            f"{str(self._output)!r} can be written; about {data_size(room)} will be.",
            f"The ledger {str(self.book_of_runs.path)!r} has room for the run.",
        )
        return DryRun(findings, self.stamp)

    def book(self) -> int:
        """Enter the run in the ledger, and return its number.

        It stays charged from here on, whatever happens.
        """
        self._run = self.book_of_runs.book(
            self._source, self._plan, self._plan.record_rho, self._output, self._cap
        )
        return self._run

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder of the release, complete when the block ends well, not there otherwise.

        The ledger then notes that the run has finished. Raises `ReleaseError` for what cannot be
        written, which says whether the run is charged.
        """
        try:
            with new_folder(self._output, kept_with=self._kept_with) as folder:
                yield folder
                if self._run is None:
                    raise AssertionError("a release was written, but its run was not booked")
                run = self._run
        except OSError as error:
            raise self._not_written(error) from None
        note_finished(self.book_of_runs, run, self._output)

    def _not_written(self, error: OSError) -> ReleaseError:
        told = f"The release could not be written to {str(self._output)!r} "
        told += f"({error.strerror or error})"
        if self._kept_with is not None and (unfinished(self._output) / self._kept_with).exists():
            return ReleaseError(f"{told}. {how_to_finish(self._output)}")
        charge = "was not booked" if self._run is None else "was booked before and stays charged"
        return ReleaseError(
            f"{told} and nothing of it was left; the run {charge}. Make room, or choose another "
            "folder."
        )


def _check_persons(plan: ReleasePlan, persons: PersonRule | None) -> None:
    most = plan.budget.max_records_per_person
    if persons is not None and persons.most != most:
        raise ReleaseError(
            f"The plan protects {plan.budget.unit}, and the rule for persons allows "
            f"{plural(persons.most, 'record')} of each; make both the same."
        )


def how_to_finish(output: Path) -> str:
    """What to do about a run that was stopped after its noise was drawn, in words."""
    return (
        "The run is charged, and its noise is drawn and kept: make room, if that was the reason, "
        f"and finish it without further cost (rpexplore release --resume --out {output})."
    )


def note_finished(ledger: Ledger, run: int, output: Path) -> None:
    """Note in the ledger that a run's release is complete; raises `LedgerError`, which says so."""
    try:
        ledger.finish(run)
    except LedgerError as error:
        raise LedgerError(
            f"The release is complete at {str(output)!r} and charged; only the note that it "
            f"finished could not be made. {error}"
        ) from None


def _record_cap(plan: ReleasePlan, cap_rho: Exact) -> Fraction:
    """The cap, given for the plan's privacy unit, for one record."""
    cap = exact_fraction(cap_rho, "cap_rho")
    if cap <= 0:
        raise LedgerError(f"The cap must be a positive ρ, got {cap_rho}.")
    return cap / plan.budget.records_factor
