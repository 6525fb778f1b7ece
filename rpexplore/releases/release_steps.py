"""What a run is told, and its steps, of which each kind of plan has its own."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from rpexplore.common.concurrency import Progress
from rpexplore.common.exact_numbers import Exact
from rpexplore.data.counts import Counts
from rpexplore.data.source import Fingerprint, PersonRule
from rpexplore.errors import PlanError
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.queries.plan import QueryPlan
from rpexplore.queries.plan_kinds import verify
from rpexplore.releases.manifest import FinishedRelease
from rpexplore.releases.measurement import Part
from rpexplore.releases.measurement_file import MeasurementNote
from rpexplore.releases.query_release import QuerySteps
from rpexplore.releases.table_release import TableSteps


@dataclass(frozen=True)
class RunOptions:
    """How a plan is run on records; see `release.release`."""

    name: str | None = None
    unknown_values: Mapping[str, str] = field(default_factory=dict)
    person_rule: PersonRule | None = None
    ledger: str | Path | None = None
    limit_rho: Exact | None = None
    may_be_empty: bool = False
    escape_formulas: bool = False
    parquet_only: bool = False
    expected_fingerprint: Fingerprint | None = None


@dataclass(frozen=True)
class DryRun:
    """What a dry run has found in order, in words, and what the records look like from outside.

    Holds nothing that was read from records.
    """

    findings: tuple[str, ...]
    fingerprint: Fingerprint


class ReleaseSteps(Protocol):
    """What a release by a plan of one kind counts, measures and writes.

    release_kind               the class of its releases
    booked_share, drawn_share  shares of the whole run's time, of which `on_progress` is told: when
                               the run is booked (before, stopping it costs nothing), and when all
                               noise is drawn (after, it can be finished)
    """

    release_kind: ClassVar[type[FinishedRelease]]
    booked_share: ClassVar[float]
    drawn_share: ClassVar[float]

    def n_bytes(self, *, parquet_only: bool) -> float:
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
        self, folder: Path, note: MeasurementNote, on_progress: Progress
    ) -> Mapping[str, Any]:
        """Write all files of the release but the plan, from the measurements in the folder.

        What an earlier attempt has left there is written again. Returns the manifest, which is
        written last.
        """
        ...


_STEPS: dict[type[ReleasePlan], Callable[..., ReleaseSteps]] = {
    Plan: TableSteps,
    QueryPlan: QuerySteps,
}


def steps_of(plan: ReleasePlan) -> ReleaseSteps:
    """What a release by a plan counts, measures and writes.

    Raises `PlanError` for a kind of plan that cannot be released.
    """
    if type(plan) not in _STEPS:
        raise PlanError(f"A {plan.noun} cannot be released yet; it can be shown and verified.")
    return _STEPS[type(plan)](plan)


def refuse_false_claims(plan: ReleasePlan) -> None:
    """Raise `PlanError` for a plan that does not hold what it claims."""
    # Nothing of the guarantee depends on whether other strategies would be better.
    for check in verify(plan, strategies=False).checks:
        if not check.holds:
            raise PlanError(
                f"The plan does not hold what it claims ({check.name}: {check.finding}); make it "
                "again."
            )
