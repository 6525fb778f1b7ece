"""Drawing: what a booked run measures, on disk as it is drawn.

Parts of a plan follow each other in its order. Of an adaptive plan rounds come behind, in each of
which what was drawn before is used; so it is on disk, and noted, before that.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from itertools import accumulate
from pathlib import Path

import numpy as np

from rpexplore.common.concurrency import Progress, part_of_progress
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.adaptive.adaptive_release import AdaptiveSteps
from rpexplore.releases.charged_run import ChargedRun
from rpexplore.releases.measurement_file import Draft
from rpexplore.releases.release_steps import ReleaseSteps

_FIRST_SHARE = 0.25  # of the time of drawing, that the first plan of an adaptive one takes


def draft_of(charged_run: ChargedRun, plan: ReleasePlan, folder: Path) -> Draft:
    """Where a run draws to; raises `OSError` if there is no room for it."""
    steps = charged_run.steps
    is_used = isinstance(steps, AdaptiveSteps)
    return Draft(folder, plan, _ends(steps), charged_run.origin, is_used=is_used)


def _ends(steps: ReleaseSteps) -> Sequence[int]:
    """How many numbers may have been drawn where a run goes on: those of parts, or in rounds."""
    ends = list(accumulate(part.n_measured for part in steps.parts))
    if isinstance(steps, AdaptiveSteps):
        return range(ends[-1], ends[-1] + steps.n_in_rounds + 1)
    return ends


def write_measured(
    charged_run: ChargedRun, draft: Draft, folder: Path, on_progress: Progress
) -> None:
    """Draw and write what the draft does not have yet, a part after another, then the rounds."""
    steps = charged_run.steps
    on_drawing = part_of_progress(on_progress, steps.booked_share, steps.drawn_share)
    if isinstance(steps, AdaptiveSteps):
        _write_parts(charged_run, draft, part_of_progress(on_drawing, 0.0, _FIRST_SHARE))
        on_rounds = part_of_progress(on_drawing, _FIRST_SHARE, 1.0)
        _write_rounds(charged_run, steps, draft, folder, on_rounds)
    else:
        _write_parts(charged_run, draft, on_drawing)
    draft.end()


def _write_parts(charged_run: ChargedRun, draft: Draft, on_progress: Progress) -> None:
    steps = charged_run.steps
    ends = list(accumulate(part.n_measured for part in steps.parts))
    left = [part for part, end in zip(steps.parts, ends, strict=True) if end > draft.n_measured]

    def on_measured(doing: str, n_more: float) -> None:
        on_progress(doing, (draft.n_measured + n_more) / ends[-1])

    with closing(charged_run.measured(left, on_measured)) as measured:
        for part, pieces in zip(left, measured, strict=True):
            end = draft.n_measured + part.n_measured
            draft.add(pieces)
            if draft.n_measured != end:
                raise AssertionError("a part has other numbers than its plan says")
            if end < ends[-1]:
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
    (part,) = steps.parts

    def write(pieces: Iterable[np.ndarray]) -> None:
        draft.add(pieces)
        draft.note(charged_run.origin)

    write([])  # what the first plan measured is about to be used
    counts = charged_run.counted_again(part, part_of_progress(on_progress, 0.0, 0.0))
    steps.measure_rounds(folder, draft.n_measured, counts, write, on_progress)
