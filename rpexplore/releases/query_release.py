"""A release of queries: what it counts, measures and writes."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rpexplore.data.counts import Counts
from rpexplore.errors import ReleaseError
from rpexplore.queries.plan import QueryPlan
from rpexplore.releases.discrete_gaussian import discrete_gaussian
from rpexplore.releases.measurement_file import MeasurementNote, read_measured
from rpexplore.releases.query_folder import FORMAT, QueryRelease, write_query_release

_MOST_MEASURED = 2**61  # in absolute value, without noise


@dataclass(frozen=True)
class QueryRun:
    """A plan of queries while it is run, a `PlanRun`: the rows of its strategy are measured."""

    plan: QueryPlan
    release_format: ClassVar[tuple[str, int]] = FORMAT
    # Whatever comes after the counting is quick.
    booked_share: ClassVar[float] = 0.9
    drawn_share: ClassVar[float] = 0.95

    @property
    def n_bytes(self) -> float:
        return 3.0 * len(self.plan.text)  # the plan is in the folder, and nothing else is larger

    @property
    def tables(self) -> Sequence[Sequence[int]]:
        return [self.plan.attribute_indices]

    @property
    def n_measured(self) -> int:
        return len(self.plan.strategy.integers)

    def check_measurable(self) -> None:
        """A query plan has a small strategy, and noise that can be drawn, or it would be none."""

    def check_countable(self, counts: Counts) -> None:
        """Raise `ReleaseError` if R x, or a sum on the way to it, could leave 64-bit integers.

        All of them are at most max |R_ij| · records; noise is below 2^55.
        """
        largest = int(np.max(np.abs(self.plan.strategy.integers)))
        if largest * max(counts.n_records, 1) >= _MOST_MEASURED:
            raise ReleaseError(
                "There are too many records to measure these queries in 64-bit integers; split the "
                "records, or use queries whose coefficients have fewer digits."
            )

    def measure(self, counts: Counts) -> Generator[np.ndarray, None, None]:
        """R x + noise: int64[k], x the exact counts of the cells, the last attribute fastest.

        The noise is independent discrete Gaussian of variance parameter γ², which costs
        ρ = max_j Σ_i R_ij² / (2γ²): a record is in one cell j, and moves R x by column j.
        """
        cells = counts.counts(self.plan.attribute_indices).ravel()
        exact = self.plan.strategy.integers @ cells
        yield exact + discrete_gaussian(len(exact), self.plan.gamma_squared)

    def write(
        self, folder: Path, note: MeasurementNote, on_share: Callable[[float], None]
    ) -> Mapping[str, Any]:
        """The answers D (R x + noise) = W x + D·noise, and what was measured."""
        measured = read_measured(folder, 0, self.n_measured)
        answers = self.plan.strategy.decoding @ measured
        manifest = write_query_release(folder, self.plan, measured, answers, note)
        on_share(1.0)
        return manifest

    def finished_release(self, folder: Path, manifest: Mapping[str, Any]) -> QueryRelease:
        return QueryRelease(folder, self.plan, manifest)
