"""A charged run: refused before it is booked, booked before any noise, drawn onto the disk."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from rpexplore.common.numbers import Exact, exact_fraction
from rpexplore.common.processes import Progress, part_of_progress
from rpexplore.common.text import data_size, joined, plural, rounded, with_article
from rpexplore.data.files.source import AnySource, source_of
from rpexplore.data.source import COUNTING, weight_note
from rpexplore.domain.domain import formulas_warning
from rpexplore.errors import ApprovalError, DataError, LedgerError, ReleaseError
from rpexplore.planning.approval import Approval, describe_approval, describe_checks
from rpexplore.planning.plan import Plan
from rpexplore.releases import measurement
from rpexplore.releases.adaptive_release import AdaptiveSteps
from rpexplore.releases.approvals import (
    check_approvals,
    most_demanded,
    read_approvals,
    write_approvals,
)
from rpexplore.releases.atomic_folder import (
    check_new,
    check_room,
    new_folder,
    not_written,
    not_written_but_drawn,
    unfinished_folder,
)
from rpexplore.releases.booked_run import (
    as_shown,
    booked_run,
    enter_finished,
    refuse_run_of_version_1,
    removing_other_figures,
    tidy,
)
from rpexplore.releases.ledger.account import (
    Account,
    LedgerEntry,
    check_clock,
    check_limit,
    check_neighbours,
)
from rpexplore.releases.ledger.chain import refuse_forgetful_home
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.overlaps import (
    ledger_of,
    note_account,
    refuse_among_records,
)
from rpexplore.releases.ledger.spent import Neighbours, Reading
from rpexplore.releases.manifest import now
from rpexplore.releases.measurement_file import (
    BOOKED,
    NOTE,
    BookingNote,
    Draft,
    Measured,
    pilot_sha256,
    write_booking,
)
from rpexplore.releases.persons import one_of_each, refuse_differing, refuse_more_in_a_period
from rpexplore.releases.pilot import (
    note_rest,
    refuse_pilot_of_rest,
    refuse_rest_alone,
    refuse_rest_of_other_pilot,
    refuse_shown_elsewhere,
    refuse_shown_otherwise,
    refuse_without_pilot,
)
from rpexplore.releases.readme import COUNTED_IMPOSSIBLE
from rpexplore.releases.release_steps import (
    ImpossibleRecords,
    PartCounts,
    PlanSteps,
    RunOptions,
    refuse_false_claims,
)

# ---- A charged run: everything is refused before it is booked, and it is booked before any noise.
#
# What stops a run after it was booked leaves its unfinished folder, and the charge stays. The same
# run into the same folder is then not charged again.


class ChargedRun:
    """What one run of a plan costs the records, from the first check to the last note.

    Its methods are called as `release.release` calls them: `count`, and within `folder` `book`
    and take what is `measured`.

    Raises `PlanError` for a plan that does not hold what it claims, `DataError` if there are no
    records, `LedgerError` for what the ledger would refuse, `ApprovalError` for approvals that are
    not right or do not suffice, and `ReleaseError` for what cannot be
    measured or written, or a rule for persons that is not about what the plan protects.
    """

    def __init__(self, plan: Plan, data: AnySource, output: Path, options: RunOptions) -> None:
        rule = options.person_rule
        if plan.budget.distinct is not None:
            rule = one_of_each(plan.budget, rule)
        if rule is not None:  # which then says it as the plan does, of whom it protects
            rule = replace(rule, noun=plan.budget.noun, period=plan.budget.period)
            options = replace(options, person_rule=rule)
        self._plan, self._output, self._options = plan, output, options
        self.steps = PlanSteps.of(plan)
        self.pilot_only = options.pilot_only
        if self.pilot_only:
            refuse_without_pilot(plan, output)
        else:
            refuse_pilot_of_rest(plan, output)
        check_new(output, drawn=NOTE)
        self._n_bytes = self.steps.n_bytes(
            parquet_only=options.parquet_only, file_per_table=options.file_per_table
        )
        check_room(self._n_bytes + len(plan.text), output)
        self._record_limit = _record_limit(plan, options.limit_rho)
        if rule is not None and plan.budget.period is not None and rule.excess != "refuse":
            raise ReleaseError(
                f"In a panel more records of {with_article(plan.budget.noun)} than the plan "
                "protects are refused, and not left out: which of them are counted would depend "
                "on the others."
            )
        if rule is not None and rule.most != plan.budget.max_records_per_person:
            raise ReleaseError(
                f"The plan protects {plan.budget.unit}, and the rule for {plan.budget.nouns} "
                f"allows {plural(rule.most, 'record')} of each; make both the same."
            )
        refuse_false_claims(plan)
        for steps in self.steps.parts:
            steps.check_measurable()

        columns = [*plan.columns, *([] if rule is None else rule.columns)]
        self._source = source = source_of(data, name=options.name, columns=columns)
        self.steps, self.fingerprint = self.steps.on(source), source.fingerprint()

        self.ledger = ledger = ledger_of(source, options.ledger)
        refuse_among_records(source, output, ledger.path)
        ledger.store.check_bookable()
        self._account = account = ledger.account_of(source)
        self._entry = _booked_before(ledger, account, plan, output)
        refuse_rest_alone(plan, output, is_booked=self._entry is not None)
        self._entry_id = None if self._entry is None else self._entry.id
        self._started = None if self._entry is None else self._entry.started
        self.is_booked = self._entry_id is not None
        self.counts = [
            PartCounts(source, options, steps, self.fingerprint) for steps in self.steps.parts
        ]
        self._impossible = ImpossibleRecords(plan)
        self._reading = options.reading(source)
        refuse_forgetful_home()
        if self._entry is None:
            refuse_shown_elsewhere(output)
            if self._record_limit is not None and account.limit_record_rho is None:
                ledger.store.check_bookable(sets_limit=True)
            check_neighbours(account, plan, self._reading)
            check_limit(account, plan, self._record_limit)
            check_approvals(account.approval_demands, plan.sha256, options.approvals)
            check_clock(account, now("microseconds"))
        else:
            refuse_shown_otherwise(self._entry, output, self.steps.n_pilot)
            refuse_rest_of_other_pilot(plan, self._entry, output, self.steps.n_pilot)
            _refuse_other_approvals(self._entry, options.approvals)
            _refuse_other_reading(self._entry, plan, self._reading)
            if not os.path.lexists(unfinished_folder(output) / NOTE):
                _refuse_beyond_limit(account)

    def count(self, on_progress: Progress) -> None:
        """Count what is measured first of each part, of the records as they were found.

        Raises `DataError` also if the records are not, or no longer, those that are expected, or
        have combinations that are impossible and not to be counted, and `ReleaseError` if there
        are too many.
        """
        options = self._options
        if options.expected_fingerprint not in (None, self.fingerprint):
            raise DataError(
                f"The records {self._source.name!r} have changed since they were checked; check "
                "them again."
            )
        on_progress(COUNTING, 0.0)
        booked, n_parts, n_kept, n_records = self.steps.booked_share, len(self.counts), 0, 0
        unknown_names = {*options.unknown_values, *options.missing_values}
        unknown_names -= set(self._plan.domain.names)
        if unknown_names:
            self._plan.domain.position(min(unknown_names))  # which says what is there
        for place, (steps, of_part) in enumerate(zip(self.steps.parts, self.counts, strict=True)):
            shares = (booked * place / n_parts, booked * (place + 1) / n_parts)
            counts = of_part.first(part_of_progress(on_progress, *shares))
            if counts.n_records == 0 and not options.may_be_empty:
                raise DataError(
                    f"There are no records in {self._source.name!r}; check that it is the right "
                    "one. A release of nothing is charged like any other: to have one, say that it "
                    "may be empty (the option --empty)."
                )
            n_records = counts.n_records
            steps.check_countable(counts)
            self._impossible.look_at(steps.plan.domain, counts)
            for before in self.counts[:place]:
                of_part.refuse_others(before)
            # No more is in memory than one part may take; what is beyond is counted again.
            n_kept += counts.n_cells
            if place and n_kept > measurement.PART_CELLS:
                n_kept -= counts.n_cells
                of_part.forget()
            del counts
        if self._plan.budget.period is not None and options.person_rule is not None:
            refuse_more_in_a_period(self._plan, self._source, options, n_records)
        if self._plan.budget.distinct is not None:
            refuse_differing(self._plan, self._source, options, n_records)
        if not options.count_impossible:
            domain = self._plan.domain
            for tables in self._impossible.passes():
                counts = self._source.count(
                    domain, tables, **options.takers(domain), person_rule=options.person_rule
                )
                self._impossible.look_at(domain, counts)
            self._impossible.refuse()

    @property
    def origin(self) -> Mapping[str, Any]:
        """What measurements of this run are drawn of, for whoever goes on with them."""
        options = self._options
        return {
            "started": self._started,
            "records": self.fingerprint.lasting_facts,
            "unknown_values": dict(options.unknown_values),
            **({"missing_values": dict(options.missing_values)} if options.missing_values else {}),
            "person_rule": options.person_rule.text if options.person_rule else "",
        }

    @property
    def positions(self) -> Mapping[str, str]:
        """The file that states where columns of records of fixed width are, and its SHA-256."""
        return self._source.positions

    @property
    def encoding(self) -> str:
        """That was named for the records; "" for none, or for UTF-8."""
        return self._source.named_encoding

    def findings(self) -> tuple[str, ...]:
        """What is in order when the records have been counted, in sentences."""
        most, rule = self._plan.budget.max_records_per_person, self._options.person_rule
        by_rule = "" if rule is None else f" {rule.text}"
        if rule is not None and rule.excess == "keep first":
            by_rule += (
                f" That protects {self._plan.budget.nouns}, as the plan says, and what the ledger "
                f"adds up for one record holds for {self._plan.budget.nouns} alone: a single "
                "record of one with more may cost up to four times as much, as another one takes "
                "its place."
            )
        if rule is None and most is not None:
            limit = f"more than {plural(most, 'record')}"
            by_rule = f" That no {self._plan.budget.noun} has {limit} is taken for granted."
        takes = [
            what
            for what, takers in (
                ("missing", self._options.missing_values),
                ("out-of-codebook", self._options.unknown_values),
            )
            if takers
        ]
        taken = f", or counted as the category that takes {' and '.join(takes)} values"
        room = "the run already: it costs nothing further" if self.is_booked else "room for the run"
        is_escaped = self._options.escape_formulas or not self._plan.has_labels_in_csv
        formulas = None if is_escaped else formulas_warning(self._plan.domain)
        approvals = [describe_approval(approval) for approval in self._options.approvals]
        if approvals:
            approvals.insert(0, describe_checks(most_demanded(self._account.approval_demands)))
        return (
            f"The plan holds what it claims, and protects {self._plan.budget.unit}.{by_rule}",
            "The records have every column that the plan needs, and each value in it is one of the "
            f"plan's{taken if takes else ''}.",
            *self._impossible_found(),
            f"{str(self._output)!r} can be written; about {data_size(self._n_bytes)} will be.",
            f"The ledger {self.ledger.name!r} has {room}.",
            *approvals,
            *self._source.remarks(),
            *filter(None, [weight_note(self._source, self._plan.domain), formulas]),
        )

    def taken(self) -> tuple[str, ...]:
        """What the curator has to know of the records that are counted. Private.

        How many values a category took that are missing or not in the codebook, and how many
        records have impossible combinations, as far as that was seen.
        """
        taken = dict.fromkeys(one for of_part in self.counts for one in of_part.taken)
        return (
            *(
                f"{n:,} of {name!r} {'is' if n == 1 else 'are'} {what}, and counted as {label!r}."
                for name, what, n, label in taken
            ),
            *self._impossible.sentences(),
        )

    def _impossible_found(self) -> Iterator[str]:
        """What became of records with impossible combinations, if the codebook states any."""
        if self._options.count_impossible and self._plan.domain.impossible:
            yield COUNTED_IMPOSSIBLE
        elif self._plan.domain.impossible:
            yield (
                "As far as the plan's columns tell, no record has a combination that the codebook "
                "states to be impossible."
            )

    @property
    def counting_note(self) -> str:
        """What left a server to be counted, and which weight was not used, in sentences; or ""."""
        said = (self._source.streaming_note, weight_note(self._source, self._plan.domain))
        return " ".join(filter(None, said))

    def book(self, folder: Path) -> int:
        """Enter the run in the ledger unless it is there, and return its number.

        It stays charged from here on, whatever happens. folder: the unfinished one, which has the
        note of it before.
        """
        approvals = self._options.approvals
        if self._entry is None or approvals:  # as they were booked, if they were
            write_approvals(folder, approvals)
        coming = self._plan if self._entry_id is None else None
        is_noted_again = note_account(self.ledger, self._source, coming, self._reading)
        if self._entry_id is None:
            n_entries = self.ledger.n_entries()
            started = now("microseconds")
            note = BookingNote(self.ledger.name, self._plan.sha256, n_entries, started)
            write_booking(folder, note)
            try:
                self._entry_id = self.ledger.book(
                    self._source,
                    self._plan,
                    self._output,
                    limit_record_rho=self._record_limit,
                    counted=self.fingerprint,
                    approvals=approvals,
                    started=started,
                    reading=self._reading,
                )
                self._entry = self.ledger.entry(self._entry_id) if approvals else None
                self._started = started
            except (ApprovalError, DataError):
                (folder / BOOKED).unlink()
                raise
            except LedgerError as error:  # a disk may fail when all is written
                failed = LedgerError(f"{error} {self._charge_after_error(folder)}")
                failed.says_charge = True
                raise failed from None
            self._refuse_two_accounts()
        if is_noted_again:  # by what it is known from now on
            note_account(self.ledger, self._source)
        read_approvals(folder, self.noted_approvals()[0])  # they may be missing: no noise before
        return self._entry_id

    def _refuse_two_accounts(self) -> None:
        """Raise `LedgerError` if another run has begun an account meanwhile, in another ledger.

        Of two that book at the same time, a file and its folder say, one at least sees the other,
        as each looks when it has booked.
        """
        try:
            ledger_of(self._source, self.ledger.name)
        except LedgerError as error:
            failed = LedgerError(
                f"{error} The run is charged in {self.ledger.name!r}, and no noise was drawn. If "
                "another run was booked at the same moment, merge the two ledgers (rpexplore "
                "ledger --merge), then run it again into the same folder, which costs nothing "
                "further."
            )
            failed.says_charge = True
            raise failed from None

    def noted_approvals(self) -> tuple[list[str], int]:
        """The approvals that the run was booked with, by SHA-256, and how many were demanded."""
        if self._entry is None:
            return [], 0
        return [noted.sha256 for noted in self._entry.approvals], self._entry.n_demanded

    def _charge_after_error(self, folder: Path) -> str:
        """Whether a booking that failed has charged the run, as the ledger tells."""
        again = "run it again into the same folder, which never charges it twice."
        try:
            if booked_run(self._output, self.ledger) is None:
                (folder / BOOKED).unlink()
                return "Nothing was charged."
        except LedgerError:
            return f"Whether the run is charged is not known; when the ledger is back, {again}"
        return f"The run is charged; {again}"

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder of the release, complete when the block ends well.

        Otherwise it is not there, or can be finished later if the run is booked. The ledger notes
        that the run has finished before the folder gets its name. Raises `ReleaseError` for what
        cannot be written, which says whether the run is charged.
        """
        is_new = not self.is_booked

        def finish(folder: Path) -> None:
            if self._entry_id is None:
                raise AssertionError("a release was written, but its run was not booked")
            enter_finished(self.ledger, self._entry_id, folder, self._output, self.steps.n_pilot)

        try:
            with new_folder(
                self._output, kept_with=BOOKED, drawn=NOTE, is_new=is_new, confirm=finish
            ) as folder:
                yield folder
        except OSError as error:
            folders = (unfinished_folder(self._output), self._output)
            if any((folder / NOTE).exists() for folder in folders):
                raise not_written_but_drawn(self._output, error) from None
            remedy = "The run was not booked; make room, or choose another folder."
            if self._entry_id is not None:
                remedy = (
                    "The run is charged; make room, and run it again into the same folder, which "
                    "costs nothing further."
                )
            raise ReleaseError(f"{not_written(self._output, error)}. {remedy}") from None
        tidy(self._output)

    def enter_pilot(self, folder: Path) -> None:
        """Enter in the ledger the figures of the run's pilot, just before they are shown.

        Raises `ReleaseError` if others were shown, and `LedgerError`.
        """
        if self._entry_id is None:
            raise AssertionError("a pilot was drawn, but its run was not booked")
        with removing_other_figures(folder):
            self.ledger.note_pilot(self._entry_id, pilot_sha256(folder, self.steps.n_pilot))


def _booked_before(
    ledger: Ledger, account: Account, plan: Plan, output: Path
) -> LedgerEntry | None:
    """The entry of an earlier run of this plan into this folder that was stopped once booked.

    Its noise was not published, so that another one may be drawn. Raises `ReleaseError` if a run of
    another plan, of other records or in another ledger is booked for this folder.
    """
    entry = booked_run(output, ledger)
    if entry is None:
        return None
    refuse_run_of_version_1(output)
    if plan.booked_sha256 != entry.plan_sha256 or entry not in as_shown(account.entries):
        raise ReleaseError(
            f"A run into {str(output)!r} was booked and stopped; run the same plan (SHA-256 "
            f"{entry.plan_sha256[:12]}…) on the same records and with the same ledger again, which "
            "costs nothing further, or choose another folder."
        )
    return entry


def _refuse_other_approvals(entry: LedgerEntry, approvals: Sequence[Approval]) -> None:
    """Raise `ApprovalError` if other approvals are given than those that a run is booked with."""
    noted = [approval.sha256 for approval in entry.approvals]
    if approvals and [approval.sha256 for approval in approvals] != noted:
        names = joined([approval.name for approval in entry.approvals]) or "nobody"
        raise ApprovalError(
            f"The run is booked already, with the approvals of {names}; give no others to run it "
            "again (leave --approval out)."
        )


def _refuse_other_reading(entry: LedgerEntry, plan: Plan, reading: Reading) -> None:
    """Raise `LedgerError` if a booked run would tell other totals than it is booked with."""
    own = Neighbours.by(plan, reading)
    if replace(entry.kind, counted=()) != own:
        raise LedgerError(
            "The run is booked already, for neighbours that "
            f"{entry.kind.does}; now they would be those that {own.does}. Run it with the options "
            "for reading records as before, or into another folder as a run of its own."
        )


def _refuse_beyond_limit(account: Account) -> None:
    """Raise `LedgerError` if what is booked is more than the limit, as after a merge of ledgers."""
    limit, spent = account.limit_record_rho, account.spent_record_rho
    if limit is not None and spent > limit:
        raise LedgerError(
            f"The runs that are booked for {account.dataset!r}, this one among them, cost ρ = "
            f"{rounded(spent, 6, 'up')} for one record, more than its budget limit of "
            f"{rounded(limit, 6)}: ledgers with runs booked at the same time were merged. Raise "
            "the limit to go on with this one."
        )


def _record_limit(plan: Plan, limit_rho: Exact | None) -> Fraction | None:
    """The budget limit for one record, from one that is given for the plan's privacy unit."""
    if limit_rho is None:
        return None
    limit = exact_fraction(limit_rho, "limit_rho")
    if limit <= 0:
        raise LedgerError(f"The budget limit must be a positive ρ, got {limit_rho}.")
    return limit / plan.budget.records_factor


# ---- Drawing: what a booked run measures, on disk as it is drawn.
#
# Parts of a plan follow each other in its order. Adaptive rounds come last; in each of them what
# was drawn before is used, so that it is on disk, and noted, before that.


_FIRST_SHARE = 0.25  # of the time of drawing, that the first plan of an adaptive one takes


def draft_of(charged_run: ChargedRun, plan: Plan, folder: Path) -> Draft:
    """Where a run draws to; raises `OSError` if there is no room for it."""
    steps = charged_run.steps
    ends = _ends(steps)
    n_used = steps.n_pilot or None  # what a pilot has measured may be published
    if steps.rounds is not None:
        n_used = n_used or ends[-1]
        ends += range(ends[-1] + 1, ends[-1] + steps.rounds.n_in_rounds + 1)
    return Draft(folder, plan, ends, charged_run.origin, n_used=n_used)


def _ends(steps: PlanSteps) -> list[int]:
    """How many numbers are drawn when each piece of each part is."""
    return list(accumulate(piece.n_measured for part in steps.parts for piece in part.parts))


def write_measured(
    charged_run: ChargedRun, draft: Draft, folder: Path, on_progress: Progress
) -> None:
    """Draw and write what the draft does not have yet, a part after another, then the rounds.

    Nothing behind the pilot is drawn if the run is told so.
    """
    steps = charged_run.steps
    note_rest(steps.plan, folder, is_begun=draft.n_measured > steps.n_pilot)
    on_drawing = part_of_progress(on_progress, steps.booked_share, steps.drawn_share)
    first_share = 1.0 if steps.rounds is None else _FIRST_SHARE
    _write_parts(charged_run, draft, part_of_progress(on_drawing, 0.0, first_share))
    if charged_run.pilot_only:
        return
    if steps.rounds is not None:
        on_rounds = part_of_progress(on_drawing, first_share, 1.0)
        _write_rounds(charged_run, steps.rounds, draft, folder, on_rounds)
    draft.end()


def _write_parts(charged_run: ChargedRun, draft: Draft, on_progress: Progress) -> None:
    """Draw the pieces of each part that are left, each noted when it is on disk."""
    pilot_only = charged_run.pilot_only
    last, end, n_pilot = _ends(charged_run.steps)[-1], 0, charged_run.steps.n_pilot

    def on_measured(doing: str, n_more: float) -> None:
        on_progress(doing, (draft.n_measured + n_more) / last)

    for steps, counts in zip(charged_run.steps.parts, charged_run.counts, strict=True):
        left = []
        for piece in steps.parts:
            end += piece.n_measured
            if end > draft.n_measured and (end <= n_pilot or not pilot_only):
                left.append(piece)
        if not left and steps is not charged_run.steps.rounds:
            counts.forget()
        with closing(counts.measured(left, on_measured)) as measured:
            for piece, numbers in zip(left, measured, strict=True):
                wanted = draft.n_measured + piece.n_measured
                draft.add(numbers)
                if draft.n_measured != wanted:
                    raise AssertionError("a part has other numbers than its plan says")
                if wanted == n_pilot:
                    draft.note(charged_run.origin)  # it may be published: never drawn again
                    if pilot_only:
                        return
                elif wanted < last:
                    with suppress(OSError):  # without room for it, a run that stops begins anew
                        draft.note(charged_run.origin)


def _write_rounds(
    charged_run: ChargedRun,
    steps: AdaptiveSteps,
    draft: Draft,
    folder: Path,
    on_progress: Progress,
) -> None:
    """Draw the rounds that are left, each on disk before it is used."""
    (piece,) = steps.parts
    measured = Measured(folder, charged_run.steps.starts()[-2])

    def write(pieces: Iterable[np.ndarray]) -> None:
        draft.add(pieces)
        draft.note(charged_run.origin)

    write([])  # what the first plan measured is about to be used
    counts = charged_run.counts[-1].again(piece, part_of_progress(on_progress, 0.0, 0.0))
    n_drawn = draft.n_measured - measured.start
    steps.measure_rounds(measured, n_drawn, counts, write, on_progress)
