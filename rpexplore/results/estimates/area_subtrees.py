"""Whole counts and best guesses of subtrees, each given the counts of its highest areas.

Subtrees need nothing of each other, so that they are worked on one after another here, or each in a
task of a cluster, with the same result. What a worker of a cluster needs is imported here, and
nothing else of this package: numpy, pyarrow and scipy.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod
from typing import TypeAlias

import numpy as np

from rpexplore.common.processes import Progress, one_thread
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.session import session_of
from rpexplore.errors import ReleaseError
from rpexplore.releases.area_measurement import AreaAnswers
from rpexplore.results.estimates.area_cells import PartCells
from rpexplore.results.estimates.whole_areas import WholeCounts

Found: TypeAlias = Mapping[int, tuple[np.ndarray, np.ndarray | None]]
"""Counts by level, int32[n_areas, n_cells], and squared errors where these are estimated."""


def by_level(
    whole: WholeCounts,
    level: int,
    areas: slice,
    counts: np.ndarray,
    errors: np.ndarray | None,
    last: int,
) -> Found:
    """The counts of some areas of a level, and of all within them down to another."""
    pieces: dict[int, list[tuple[np.ndarray, np.ndarray | None]]] = {}
    for at, _, found, squared in whole.downwards(level, areas, counts, last, errors):
        pieces.setdefault(at, []).append((found.astype(np.int32), squared))
    joined = {}
    for at, found in pieces.items():
        squares = [own for _, own in found if own is not None]
        all_counts = np.concatenate([own for own, _ in found])
        joined[at] = all_counts, np.concatenate(squares) if squares else None
    return joined


@dataclass(frozen=True, eq=False)
class Subtrees:
    """The subtrees of a release, and what there is to know of the areas above them.

    Called with the number of one, it gives its counts.

    whole    counts of all areas but for the answers, which are those of the subtree
    answers  of the release
    counts   of the highest areas of all subtrees, one after another
    errors   squared, of these; None where they are not estimated
    base     what answers are divided by
    """

    whole: WholeCounts
    answers: AreaAnswers
    counts: np.ndarray
    errors: np.ndarray | None
    base: int = 1

    @property
    def numbers(self) -> range:
        """Of the parts of the release that are subtrees."""
        parts = self.answers.parts
        return range(1 if parts.level else 0, len(parts.areas))

    def __call__(self, part: int) -> Found:
        parts, cells = self.answers.parts, self.whole.cells
        areas = parts.areas[part].slices[0]
        first = int(self.whole.tree.starts[parts.level])
        rows = slice(areas.start - first, areas.stop - first)
        unbiased = PartCells(cells, self.answers.of_part(part), parts.level)
        within = replace(self.whole, answers=lambda *given: unbiased(*given) / self.base)
        errors = None if self.errors is None else self.errors[rows]
        last = len(cells.attributes) - 1
        return by_level(within, parts.level, areas, self.counts[rows], errors, last)

    def in_task(self, part: int) -> Sequence[np.ndarray]:
        """Its counts and errors, level by level, as they are sent; nothing where it has no files.

        The same as here, so that linear algebra uses one thread, where that can be told.
        """
        try:
            self.answers.numbers(part, 0)
        except ReleaseError:
            return []
        with one_thread() if find_spec("threadpoolctl") else nullcontext():
            found = self(part)
        arrays = []
        for counts, errors in found.values():
            assert errors is not None
            narrow = np.min_scalar_type(int(counts.max(initial=0)))
            arrays += [counts.astype(narrow), errors]
        return arrays

    def of_arrays(self, arrays: Sequence[np.ndarray]) -> Found:
        """What `in_task` has sent."""
        found, level = {}, self.answers.parts.level
        for at, (counts, errors) in enumerate(zip(arrays[::2], arrays[1::2], strict=True), level):
            counts = counts.astype(np.int32).reshape(-1, prod(self.whole.cells.shape(at)))
            found[at] = counts, errors.reshape(len(counts), -1)
        return found


def here(subtrees: Subtrees) -> Generator[tuple[int, Found], None, None]:
    """The counts of each subtree, one after another, with the number of the part."""
    for part in subtrees.numbers:
        yield part, subtrees(part)


def check_cluster(cluster: Connection, answers: AreaAnswers) -> None:
    """Raise `ReleaseError` if a connection leads to no cluster, or for a combined release."""
    if cluster.engine != "spark":
        raise ReleaseError(
            f"The connection {cluster.name!r} is to {cluster.engine}, and best guesses are "
            "computed in Spark or here; name a connection to Spark, or none."
        )
    if answers.home is None:
        raise ReleaseError(
            "Best guesses of combined releases are computed here, not in Spark; name no connection."
        )


def in_cluster(
    subtrees: Subtrees, cluster: Connection, on_progress: Callable[[int], None]
) -> Generator[tuple[int, Found], None, None]:
    """The counts of each subtree, a task each, in any order, with the number of the part.

    Workers read what was measured in the folder of the release.

    Args:
        subtrees: Of best guesses, of a release that `check_cluster` takes.
        cluster: Spark, likewise.
        on_progress: Told how many are done, now and then.

    Raises:
        ReleaseError: If workers do not have the files of the release.
        DataError: For what Spark refuses.
    """
    sent = replace(subtrees, answers=subtrees.answers.for_workers())
    numbers, n_done = subtrees.numbers, 0

    def compute(task: int) -> Sequence[np.ndarray]:
        return sent.in_task(numbers[task])

    progress: Progress = lambda *_: on_progress(n_done)  # noqa: E731
    # Of an optional extra.
    from rpexplore.data.engines.spark_session import ClusterSession

    with session_of(cluster) as session:
        assert isinstance(session, ClusterSession)
        computed = session.computed(compute, len(numbers), progress)
        with closing(computed) as made:
            for task, arrays in made:
                yield numbers[task], subtrees.of_arrays(arrays)
                n_done += 1
    if n_done < len(numbers):
        raise ReleaseError(
            f"Workers of Spark do not have the release {str(sent.answers.home)!r} as it is "
            "here; put it into a folder that all of them have at the same path, or compute here, "
            "without the connection."
        )
