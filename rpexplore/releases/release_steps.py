"""What a run is told, the steps of its parts, of which each kind has its own, and its counts."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from rpexplore.common.numbers import Exact
from rpexplore.common.processes import Progress, part_of_progress
from rpexplore.common.text import plural
from rpexplore.data.areas import AreaShares, Work
from rpexplore.data.blocks import maximal
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.source import Counts, Fingerprint, PersonRule, Source
from rpexplore.domain.domain import Domain
from rpexplore.domain.universe import Universe
from rpexplore.domain.values import ImpossibleCombination, product_query
from rpexplore.errors import DataError, PlanError
from rpexplore.planning.approval import Approval
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import verify
from rpexplore.releases.adaptive_release import AdaptiveSteps
from rpexplore.releases.area_release import AreaSteps
from rpexplore.releases.finished_release import WrittenPart, part_folder, write_manifest
from rpexplore.releases.ledger.spent import Reading
from rpexplore.releases.measurement import PART_CELLS, Part
from rpexplore.releases.measurement_file import Measured, MeasurementNote
from rpexplore.releases.query_release import QuerySteps
from rpexplore.releases.table_release import TableSteps

_MEASURING = "Measuring with noise"
_BYTES_OF_NOTES = 10_000  # README and the manifest's head
_MOST_NAMED = 3  # impossible combinations in an error
# Of all records (), of those with each value of an attribute (its name,), and by area (None).
_Totals = dict[tuple[str, ...] | None, bytes]


@dataclass(frozen=True)
class RunOptions:
    """How a plan is run on records; see `release.release`."""

    name: str | None = None
    unknown_values: Mapping[str, str] = field(default_factory=dict)
    missing_values: Mapping[str, str] = field(default_factory=dict)
    person_rule: PersonRule | None = None
    ledger: str | Path | None = None
    limit_rho: Exact | None = None
    may_be_empty: bool = False
    count_impossible: bool = False
    escape_formulas: bool = False
    parquet_only: bool = False
    file_per_table: bool = False
    expected_fingerprint: Fingerprint | None = None
    approvals: Sequence[Approval] = ()
    pilot_only: bool = False
    universe: Universe | None = None

    def takers(self, domain: Domain) -> dict[str, Any]:
        """What takes values that are in no category, and which records are counted.

        As `Source.count` has it.
        """
        within = {} if self.universe is None else {"universe": self.universe}
        return within | {
            option: {name: value for name, value in takers.items() if name in domain.names}
            for option, takers in (
                ("unknown_values", self.unknown_values),
                ("missing_values", self.missing_values),
            )
        }

    def reading(self, source: Source) -> Reading:
        """How records are read and counted, as far as a ledger tells runs apart by it."""
        takers = (self.unknown_values, self.missing_values)
        return Reading(source.reading, *takers, self.person_rule)


@dataclass(frozen=True)
class DryRun:
    """What a dry run has found in order, in words, and what the records look like from outside.

    Holds nothing that was read from records but for `taken`: how many missing and out-of-codebook
    values a category took, in sentences for the curator's screen alone.
    """

    findings: tuple[str, ...]
    fingerprint: Fingerprint
    taken: tuple[str, ...] = field(default=(), repr=False, compare=False)


class PartSteps(Protocol):
    """What a release counts, measures and writes of one part of its plan.

    plan                       the part
    booked_share, drawn_share  shares of the time of a run of this part alone, of which
                               `on_progress` is told: when the run is booked (before, stopping it
                               costs nothing), and when all noise is drawn (after, it can be
                               finished)
    """

    @property
    def plan(self) -> Any: ...

    booked_share: ClassVar[float]
    drawn_share: ClassVar[float]

    def n_bytes(self, *, parquet_only: bool, file_per_table: bool = False) -> float:
        """About how much is written to the disk."""
        ...

    @property
    def parts(self) -> Sequence[Part]:
        """What is counted and measured at a time, in the plan's order; at least one.

        Each needs every attribute, and the first is counted before the run is booked.
        """
        ...

    def check_measurable(self) -> None:
        """Raise `ReleaseError` if the plan is too large, or its noise, to be measured."""
        ...

    def check_countable(self, counts: Counts) -> None:
        """Raise `ReleaseError` if a sum on the way to a measurement could leave 64-bit integers."""
        ...

    def measure(self, part: Part, counts: Counts) -> Generator[np.ndarray, None, None]:
        """The counts of a part with noise, in the plan's order, in pieces: int64[·] each.

        Noise is drawn here and nowhere else.
        """
        ...

    def write(
        self, folder: Path, measured: Measured, note: MeasurementNote, on_progress: Progress
    ) -> WrittenPart:
        """Write all files of the part into its folder, from its measurements.

        What an earlier attempt has left there is written again.
        """
        ...


_STEPS: dict[str, Callable[..., PartSteps]] = {
    "tables": TableSteps,
    "areas": AreaSteps,
    "counts": QuerySteps,
    "rounds": AdaptiveSteps,
}


@dataclass(frozen=True)
class PlanSteps:
    """What a release by a plan counts, measures and writes: the steps of its parts, in order.

    Rounds are the last part, as how many numbers they have is known only when they are drawn.
    """

    plan: Plan
    parts: tuple[PartSteps, ...]

    @classmethod
    def of(cls, plan: Plan | PartPlan) -> "PlanSteps":
        plan = Plan.of(plan)
        return cls(plan, tuple(_STEPS[part.kind](part) for part in plan.parts))

    def on(self, source: Source) -> "PlanSteps":
        """The steps on some records: those of areas are tasks of a cluster, if these are in one."""
        if not (isinstance(source, DatabaseSource) and source.works_on_areas):
            return self
        parts = (
            replace(steps, in_tasks=True) if isinstance(steps, AreaSteps) else steps
            for steps in self.parts
        )
        return PlanSteps(self.plan, tuple(parts))

    @property
    def booked_share(self) -> float:
        """When the run is booked, as a share of its time."""
        return sum(steps.booked_share for steps in self.parts) / len(self.parts)

    @property
    def drawn_share(self) -> float:
        """When all noise is drawn, as a share of the run's time."""
        return sum(steps.drawn_share for steps in self.parts) / len(self.parts)

    def n_bytes(self, *, parquet_only: bool, file_per_table: bool = False) -> float:
        """About how much is written to the disk, but for the plan's file."""
        forms = {"parquet_only": parquet_only, "file_per_table": file_per_table}
        return _BYTES_OF_NOTES + sum(steps.n_bytes(**forms) for steps in self.parts)

    def starts(self) -> list[int]:
        """Where the measurements of each part begin among all, and where the last begin to end."""
        sizes = (sum(part.n_measured for part in steps.parts) for steps in self.parts)
        return list(accumulate(sizes, initial=0))

    @property
    def n_pilot(self) -> int:
        """How many numbers a pilot measures, the first of all; 0 without one."""
        first = self.parts[0]
        return first.n_pilot if isinstance(first, TableSteps) else 0

    @property
    def rounds(self) -> AdaptiveSteps | None:
        """The steps of the adaptive rounds; None without."""
        last = self.parts[-1]
        return last if isinstance(last, AdaptiveSteps) else None

    def write(
        self, folder: Path, note: MeasurementNote, on_progress: Progress
    ) -> Mapping[str, Any]:
        """Write all files but the plan's, from the measurements in the folder.

        What an earlier attempt has left there is written again. Returns the manifest, which is
        written last.
        """
        written, shares = {}, [steps.n_bytes(parquet_only=True) for steps in self.parts]
        ends = list(accumulate(shares, initial=0.0))
        for place, (steps, start) in enumerate(zip(self.parts, self.starts(), strict=False)):
            kind, share = steps.plan.kind, (ends[place] / ends[-1], ends[place + 1] / ends[-1])
            part_folder(folder, kind).mkdir(exist_ok=True)
            written[kind] = steps.write(
                part_folder(folder, kind),
                Measured(folder, start),
                note,
                part_of_progress(on_progress, *share),
            )
        return write_manifest(folder, self.plan, note, written)


def refuse_false_claims(plan: Plan) -> None:
    """Raise `PlanError` for a plan that does not hold what it claims."""
    # Nothing of the guarantee depends on whether other strategies would be better.
    for check in verify(plan, strategies=False).checks:
        if not check.holds:
            raise PlanError(
                f"The plan does not hold what it claims ({check.name}: {check.finding}); make it "
                "again."
            )


class PartCounts:
    """Exact counts for one part of a plan, of the same records. Private; never written anywhere.

    What is counted at a time are its `Part`s; those that follow each other with the same tables are
    counted once. The counts of no others are in memory at a time.

    Args:
        fingerprint: What the records look like from outside.
    """

    def __init__(
        self, source: Source, options: RunOptions, steps: PartSteps, fingerprint: Fingerprint
    ) -> None:
        self._plan, self._source, self._options, self._steps = steps.plan, source, options, steps
        self._parts, self._fingerprint = steps.parts, fingerprint
        self._takers = options.takers(self._plan.domain)
        self.taken: tuple[tuple[str, str, int, str], ...] = ()  # as of `Counts`
        self._kept: Counts | None = None
        self._kept_tables: Sequence[Sequence[int]] = ()
        self._totals: _Totals = {}

    def first(self, on_progress: Progress) -> Counts:
        """Those of the first part; what the others must agree with."""
        self._kept = self._count(self._parts[0], on_progress)
        self.taken = self._kept.taken
        self._kept_tables = self._parts[0].tables
        return self._kept

    def forget(self) -> None:
        """Free the memory of what was counted; it is counted again where it is needed."""
        self._take_kept()

    def refuse_others(self, others: "PartCounts") -> None:
        """Raise `DataError` unless what was counted first, here and there, is of the same records.

        Of persons who have more records than are counted, a database may keep others for other
        columns; then only the number of records is compared.
        """
        own, other = self._first_totals(), others._first_totals()
        rule = self._options.person_rule
        drops = rule is not None and rule.excess != "refuse"
        shared = {()} if drops else own.keys() & other.keys()
        if any(own[names] != other[names] for names in shared):
            raise self._changed()

    def _first_totals(self) -> _Totals:
        """`_totals_of` what was counted first, which outlive its counts."""
        if not self._totals and self._kept is not None:
            self._totals = self._totals_of(self._kept)
        return self._totals

    def measured(
        self, parts: Sequence[Part], on_progress: Progress
    ) -> Generator[Iterator[np.ndarray], None, None]:
        """What is measured of each part, in pieces; all of it must be taken before the next.

        Args:
            parts: Those that are left, up to the last.
            on_progress: Told how many numbers of the part are there, or as good as that.

        Raises `DataError` if the records are not the same any more.
        """
        for part in parts:
            if part.items.start and isinstance(self._steps, AreaSteps) and self._steps.in_tasks:
                yield from self._measured_in_tasks(*self._steps.tasks_from(part), on_progress)
                return
            # The first was counted before.
            n_counted = part.n_measured / 2 if part.items.start else 0.0
            counts = self._of(part, part_of_progress(on_progress, 0.0, n_counted))
            on_measured = part_of_progress(on_progress, n_counted, part.n_measured)
            with closing(self._steps.measure(part, counts)) as pieces:
                del counts  # else they are in memory while the next part is counted
                yield _with_progress(pieces, part.n_measured, on_measured)

    def again(self, part: Part, on_progress: Progress) -> Counts:
        """The counts of a part that was measured, once more and for the last time."""
        counts = self._of(part, on_progress)
        self.forget()
        return counts

    def _measured_in_tasks(
        self, shares: AreaShares, work: Work, on_progress: Progress
    ) -> Generator[Iterator[np.ndarray], None, None]:
        """As `measured`, of parts whose records are counted and measured where they lie."""
        first, source = self._parts[0], self._source
        assert isinstance(source, DatabaseSource)
        assert first.areas is not None
        self.forget()

        def check(counts: Counts) -> None:
            if self._totals_of(counts) != self._totals:
                raise self._changed()

        made = source.worked_on(
            self._plan.domain,
            first.tables,
            areas=first.areas,
            shares=shares,
            work=work,
            check=check,
            **self._takers,
            person_rule=self._options.person_rule,
            on_progress=lambda _, share: on_progress(_MEASURING, share),
        )
        with closing(made):
            yield from made
        self._check_fingerprint()

    def _of(self, part: Part, on_progress: Progress) -> Counts:
        counts = self._take_kept()
        if part.tables is not self._kept_tables:
            counts = None
        if counts is None:
            counts = self._count(part, on_progress)
            if self._totals_of(counts) != self._totals:
                raise self._changed()
        pairs = pairwise(self._parts)
        same = any(this is part and after.tables is part.tables for this, after in pairs)
        if same or part.is_needed_again:
            self._kept, self._kept_tables = counts, part.tables
        return counts

    def _take_kept(self) -> Counts | None:
        """What was counted last, which is in memory no longer than it is used."""
        self._first_totals()
        counts, self._kept = self._kept, None
        return counts

    def _count(self, part: Part, on_progress: Progress) -> Counts:
        counted_by: dict[str, Any] = {} if part.areas is None else {"areas": part.areas}
        if part.atoms is not None:
            counted_by["atoms"] = part.atoms
        domain = self._plan.domain
        counts = self._source.count(
            domain.of_records if part.areas is None else domain,
            part.tables,
            **self._takers,
            person_rule=self._options.person_rule,
            on_progress=on_progress,
            **counted_by,
        )
        self._check_fingerprint()
        return counts

    def _check_fingerprint(self) -> None:
        if self._source.fingerprint() != self._fingerprint:
            raise self._changed()

    def _totals_of(self, counts: Counts) -> _Totals:
        """What all parts have to agree on: how many records have each value of each attribute."""
        domain = self._plan.domain
        totals: _Totals = {(): counts.counts(()).tobytes()}
        for index in self._plan.attribute_indices:
            totals[domain.names[index],] = counts.counts((index,)).tobytes()
        if (areas := self._parts[0].areas) is not None:  # and in areas down to the subtrees
            totals[None] = counts.counts((len(domain) + len(areas.cuts) - 1,)).tobytes()
        return totals

    def _changed(self) -> DataError:
        return DataError(
            f"The records {self._source.name!r} have changed while they were counted; run it "
            "again when nobody writes to them."
        )


def _with_progress(
    pieces: Iterator[np.ndarray], n_measured: int, on_progress: Progress
) -> Iterator[np.ndarray]:
    """The measured pieces of a part as they are; tells how far they have come."""
    n_done = 0
    for piece in pieces:
        on_progress(_MEASURING, n_done / n_measured)
        yield piece
        n_done += piece.size


class ImpossibleRecords:
    """How many records have combinations that the codebook states to be impossible. Private.

    Read off the counts of a plan's parts where one of their tables has all attributes of a
    combination; the others are counted for it, in as few passes over the records as memory allows.
    Of a combination with an attribute that the plan does not read, no record tells; only cells that
    the combinations rule out whatever that attribute is are looked at.
    """

    def __init__(self, plan: Plan) -> None:
        self._domain = domain = plan.domain
        counted = {
            part.domain.names[index] for part in plan.parts for index in part.attribute_indices
        }
        self._left = [one for one in domain.impossible if counted.issuperset(one.names)]
        self._looks_at_cells = len(self._left) < len(domain.impossible)
        self._found: dict[str, int] = {}

    def look_at(self, domain: Domain, counts: Counts) -> None:
        """See what these counts tell; domain: that of their tables."""
        for one in self._left[:]:
            with suppress(KeyError):  # of an attribute, or a table, that is not there
                self._see(one, self._table(domain, counts, one.names))
                self._left.remove(one)
        if self._looks_at_cells:
            self._look_at_cells(domain, counts)

    def passes(self) -> Iterator[list[tuple[int, ...]]]:
        """The tables, of the plan's domain, to be counted at a time for what is still not known.

        Raises `DataError` for a combination of so many values that no table of them fits.
        """
        tables = maximal(self._domain.positions(one.names) for one in self._left)
        batch, n_cells = list[tuple[int, ...]](), 0
        for table in tables:
            size = prod(self._domain.sizes[list(table)].tolist())
            if size > PART_CELLS:
                names = " × ".join(self._domain.names[index] for index in table)
                raise DataError(
                    f"Whether records have the impossible combinations of {names} cannot be "
                    f"checked: these have {size:,} values together. State them with fewer "
                    "attributes, or count such records as they are (the option "
                    "--count-impossible; in Python count_impossible=True)."
                )
            if batch and n_cells + size > PART_CELLS:
                yield batch
                batch, n_cells = [], 0
            batch.append(table)
            n_cells += size
        if batch:
            yield batch

    def refuse(self) -> None:
        """Raise `DataError` for what was found, by the names of combinations."""
        if not self._found:
            return
        few, is_one = list(self._found)[:_MOST_NAMED], len(self._found) == 1
        more = len(self._found) - len(few)
        raise DataError(
            f"The records have {'a combination' if is_one else 'combinations'} that the codebook "
            f"states to be impossible: {'; '.join(few)}{f'; and {more:,} more' if more else ''}. "
            "Correct the records, or the codebook, or count such records as they are (the option "
            "--count-impossible; in Python count_impossible=True).",
            private=" ".join(self.sentences()),
        )

    def sentences(self) -> tuple[str, ...]:
        """How many records have each combination. Private."""
        return tuple(
            f"{plural(n, 'record')} {'has' if n == 1 else 'have'} {text}."
            for text, n in self._found.items()
        )

    def _see(self, one: ImpossibleCombination, table: np.ndarray) -> None:
        chosen = product_query(self._domain, dict(one.selections))
        cells = table[np.ix_(*(np.array(chosen[name], dtype=bool) for name in one.names))]
        if n := int(cells.sum()):
            self._found[one.text] = n

    def _look_at_cells(self, domain: Domain, counts: Counts) -> None:
        """See to cells in which no record can be, whatever attributes hold that are not read."""
        zeros = self._domain.structural_zeros
        own = [
            [domain.names[index] for index in table if index < len(domain)]
            for table in counts.tables
        ]
        for table in maximal(
            self._domain.positions(
                [name for name in names if self._domain.position(name) in zeros.kinds]
            )
            for names in own
        ):
            possible = zeros.possible(table)
            if possible is None:
                continue
            names = [self._domain.names[index] for index in table]
            if n := int(self._table(domain, counts, names)[~possible].sum()):
                self._found[f"values of {' × '.join(names)} that no possible record has"] = n

    @staticmethod
    def _table(domain: Domain, counts: Counts, names: Collection[str]) -> np.ndarray:
        """The counts of a table with its axes in the order of these names.

        Raises `KeyError` where there are none.
        """
        known = {name: index for index, name in enumerate(domain.names)}
        indices = np.array([known[name] for name in names])
        return counts.counts(np.sort(indices).tolist()).transpose(np.argsort(np.argsort(indices)))
