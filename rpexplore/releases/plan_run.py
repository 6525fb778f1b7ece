"""What a release by one kind of plan counts, measures and writes; all else is the same for all."""

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from rpexplore.data.counts import Counts
from rpexplore.releases.measurement_file import MeasurementNote
from rpexplore.releases.query_folder import QueryRelease
from rpexplore.releases.table_folder import Release

FinishedRelease: TypeAlias = Release | QueryRelease


class PlanRun(Protocol):
    """One kind of plan while it is run.

    release_format             format and version that the manifest of its release names
    booked_share, drawn_share  shares of the whole run's time, of which `on_progress` is told: when
                               the run is booked (before, stopping it costs nothing), and when all
                               noise is drawn (after, it can be finished)
    """

    release_format: ClassVar[tuple[str, int]]
    booked_share: ClassVar[float]
    drawn_share: ClassVar[float]

    @property
    def n_bytes(self) -> float:
        """About how much is written to the disk."""
        ...

    @property
    def tables(self) -> Sequence[Sequence[int]]:
        """The sets of attribute indices whose exact counts are needed."""
        ...

    @property
    def n_measured(self) -> int:
        """How many numbers are measured."""
        ...

    def check_measurable(self) -> None:
        """Raise `ReleaseError` if the plan is too large, or its noise, to be measured."""
        ...

    def check_countable(self, counts: Counts) -> None:
        """Raise `ReleaseError` if a sum on the way to a measurement could leave 64-bit integers."""
        ...

    def measure(self, counts: Counts) -> Generator[np.ndarray, None, None]:
        """The counts with noise, in the plan's order, in parts: int64[·] each, in all n_measured.

        Noise is drawn here and nowhere else.
        """
        ...

    def write(
        self, folder: Path, note: MeasurementNote, on_share: Callable[[float], None]
    ) -> Mapping[str, Any]:
        """Write all files of the release but the plan, from the measurements in the folder.

        What an earlier attempt has left there is written again. on_share: told the share that is
        written. Returns the manifest, which is written last.
        """
        ...

    def finished_release(self, folder: Path, manifest: Mapping[str, Any]) -> FinishedRelease:
        """The release in a folder that is complete."""
        ...
