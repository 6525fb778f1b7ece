"""A charged run: everything is refused before it is booked, and it is booked before any noise.

    charged_run = ChargedRun(plan, source, output, options)  # refuses what it can
    counts = charged_run.count(on_progress)                  # reads records, refuses what is left
    with charged_run.folder() as folder:
        charged_run.book()                                   # on disk from here on
        ...                                                  # draw noise, write

What stops a run after it was booked leaves no folder, and the charge stays. A run whose noise is
all drawn, and on disk, is left as it is to be finished later.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from rpexplore.common.concurrency import Progress, part_of_progress
from rpexplore.common.exact_numbers import Exact, exact_fraction
from rpexplore.common.formatting import data_size, plural
from rpexplore.data.counts import Counts
from rpexplore.data.source import COUNTING, Fingerprint, PersonRule, Source
from rpexplore.errors import DataError, LedgerError, ReleaseError
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.atomic_folder import check_new, check_room, new_folder, unfinished_folder
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.ledger_overlaps import refuse_overlaps
from rpexplore.releases.measurement_file import NOTE
from rpexplore.releases.plan_run import verified_run_of


@dataclass(frozen=True)
class RunOptions:
    """How a plan is run on records; see `release.release`."""

    unknown_values: Mapping[str, str] = field(default_factory=dict)
    person_rule: PersonRule | None = None
    ledger: str | Path | None = None
    limit_rho: Exact | None = None
    expected_fingerprint: Fingerprint | None = None


@dataclass(frozen=True)
class DryRun:
    """What a dry run has found in order, in words, and what the records look like from outside.

    Holds nothing that was read from records.
    """

    findings: tuple[str, ...]
    fingerprint: Fingerprint


class ChargedRun:
    """What one run of a plan costs the records, from the first check to the last note.

    Raises `PlanError` for a plan that does not hold what it claims, `DataError` if there are no
    records, `LedgerError` for what the ledger would refuse, and `ReleaseError` for what cannot be
    measured or written, or a rule for persons that is not about what the plan protects.
    """

    def __init__(
        self, plan: ReleasePlan, source: Source, output: Path, options: RunOptions
    ) -> None:
        self._plan, self._source, self._output, self._options = plan, source, output, options
        self.run = verified_run_of(plan)
        self.run.check_measurable()
        check_new(output, kept_with=NOTE)
        check_room(self.run.n_bytes, output)
        self._fingerprint = source.fingerprint()
        named = options.ledger
        self.ledger = Ledger(named) if named is not None else Ledger.beside(source)
        self._record_limit = _record_limit(plan, options.limit_rho)
        self._entry_id: int | None = None
        folder = self.ledger.path.parent
        if not folder.is_dir():
            raise LedgerError(f"There is no folder {str(folder)!r} for the ledger; check the path.")
        self.ledger.check(source, plan, plan.record_rho, self._record_limit)
        refuse_overlaps(self.ledger, source)
        rule = options.person_rule
        if rule is not None and rule.most != plan.budget.max_records_per_person:
            raise ReleaseError(
                f"The plan protects {plan.budget.unit}, and the rule for persons allows "
                f"{plural(rule.most, 'record')} of each; make both the same."
            )

    def count(self, on_progress: Progress) -> Counts:
        """Exact counts of everything that the plan measures, of the records as they were found.

        Raises `DataError` also if the records are not, or no longer, those that are expected, and
        `ReleaseError` if there are too many.
        """
        options = self._options
        if options.expected_fingerprint not in (None, self._fingerprint):
            raise DataError(
                f"The records {self._source.name!r} have changed since they were checked; check "
                "them again."
            )
        on_progress(COUNTING, 0.0)
        counts = self._source.count(
            self._plan.domain,
            self.run.tables,
            unknown_values=options.unknown_values,
            person_rule=options.person_rule,
            on_progress=part_of_progress(on_progress, 0.0, self.run.booked_share),
        )
        if self._source.fingerprint() != self._fingerprint:
            raise DataError(
                f"The records {self._source.name!r} have changed while they were counted; run it "
                "again when nobody writes to them."
            )
        self.run.check_countable(counts)
        return counts

    def dry_run(self) -> DryRun:
        """What is in order when the records have been counted."""
        most, rule = self._plan.budget.max_records_per_person, self._options.person_rule
        by_rule = "" if rule is None else f" {rule.text}"
        if rule is None and most is not None:
            by_rule = f" That nobody has more than {plural(most, 'record')} is taken for granted."
        unknown = ", or counted as the category that takes out-of-codebook values"
        findings = (
            f"The plan holds what it claims, and protects {self._plan.budget.unit}.{by_rule}",
            "The records have every column that the plan needs, and each value in it is one of the "
            f"plan's{unknown if self._options.unknown_values else ''}.",
            f"{str(self._output)!r} can be written; about {data_size(self.run.n_bytes)} will be.",
            f"The ledger {str(self.ledger.path)!r} has room for the run.",
        )
        return DryRun(findings, self._fingerprint)

    def book(self) -> int:
        """Enter the run in the ledger, and return its number.

        It stays charged from here on, whatever happens.
        """
        self._entry_id = self.ledger.book(
            self._source, self._plan, self._plan.record_rho, self._output, self._record_limit
        )
        return self._entry_id

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder of the release, complete when the block ends well.

        Otherwise it is not there, or can be finished later if its noise is noted as drawn. The
        ledger then notes that the run has finished. Raises `ReleaseError` for what cannot be
        written, which says whether the run is charged.
        """
        try:
            with new_folder(self._output, kept_with=NOTE) as folder:
                yield folder
                if self._entry_id is None:
                    raise AssertionError("a release was written, but its run was not booked")
        except OSError as error:
            if (unfinished_folder(self._output) / NOTE).exists():
                raise not_written_but_drawn(self._output, error) from None
            was_booked = "was not booked"
            if self._entry_id is not None:
                was_booked = "was booked before and stays charged"
            raise ReleaseError(
                f"{_not_written(self._output, error)} and nothing of it was left; the run "
                f"{was_booked}. Make room, or choose another folder."
            ) from None
        note_finished(self.ledger, self._entry_id, self._output)


def not_written_but_drawn(output: Path, error: OSError) -> ReleaseError:
    """What is raised for a run that was stopped after its noise was drawn."""
    return ReleaseError(
        f"{_not_written(output, error)}. The run is charged, and its noise is drawn and kept: make "
        "room, if that was the reason, and finish it without further cost (rpexplore release "
        f"--resume --out {output})."
    )


def _not_written(output: Path, error: OSError) -> str:
    return f"The release could not be written to {str(output)!r} ({error.strerror or error})"


def note_finished(ledger: Ledger, entry_id: int, output: Path) -> None:
    """Note in the ledger that a run's release is complete; raises `LedgerError`, which says so."""
    try:
        ledger.finish(entry_id)
    except LedgerError as error:
        raise LedgerError(
            f"The release is complete at {str(output)!r} and charged; only the note that it "
            f"finished could not be made. {error}"
        ) from None


def _record_limit(plan: ReleasePlan, limit_rho: Exact | None) -> Fraction | None:
    """The budget limit for one record, from one that is given for the plan's privacy unit."""
    if limit_rho is None:
        return None
    limit = exact_fraction(limit_rho, "limit_rho")
    if limit <= 0:
        raise LedgerError(f"The budget limit must be a positive ρ, got {limit_rho}.")
    return limit / plan.budget.records_factor
