"""Drawing: what a booked run measures, on disk as it is drawn.

Parts of a plan follow each other in its order. Adaptive rounds come last; in each of them what was
drawn before is used, so that it is on disk, and noted, before that.
"""

from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import accumulate
from pathlib import Path

import numpy as np

from rpexplore.common.concurrency import Progress, part_of_progress
from rpexplore.planning.plan import Plan
from rpexplore.releases.adaptive.adaptive_release import AdaptiveSteps
from rpexplore.releases.charged_run import ChargedRun
from rpexplore.releases.measurement_file import Draft, Measured
from rpexplore.releases.release_steps import PlanSteps

_FIRST_SHARE = 0.25  # of the time of drawing, that the first plan of an adaptive one takes


def draft_of(charged_run: ChargedRun, plan: Plan, folder: Path) -> Draft:
    """Where a run draws to; raises `OSError` if there is no room for it."""
    steps = charged_run.steps
    ends = _ends(steps)
    n_used = None
    if steps.rounds is not None:
        n_used = ends[-1]
        ends += range(ends[-1] + 1, ends[-1] + steps.rounds.n_in_rounds + 1)
    return Draft(folder, plan, ends, charged_run.origin, n_used=n_used)


def _ends(steps: PlanSteps) -> list[int]:
    """How many numbers are drawn when each piece of each part is."""
    return list(accumulate(piece.n_measured for part in steps.parts for piece in part.parts))


def write_measured(
    charged_run: ChargedRun, draft: Draft, folder: Path, on_progress: Progress
) -> None:
    """Draw and write what the draft does not have yet, a part after another, then the rounds."""
    steps = charged_run.steps
    on_drawing = part_of_progress(on_progress, steps.booked_share, steps.drawn_share)
    first_share = 1.0 if steps.rounds is None else _FIRST_SHARE
    _write_parts(charged_run, draft, part_of_progress(on_drawing, 0.0, first_share))
    if steps.rounds is not None:
        on_rounds = part_of_progress(on_drawing, first_share, 1.0)
        _write_rounds(charged_run, steps.rounds, draft, folder, on_rounds)
    draft.end()


def _write_parts(charged_run: ChargedRun, draft: Draft, on_progress: Progress) -> None:
    """Draw the pieces of each part that are left, each noted when it is on disk."""
    last, end = _ends(charged_run.steps)[-1], 0

    def on_measured(doing: str, n_more: float) -> None:
        on_progress(doing, (draft.n_measured + n_more) / last)

    for steps, counts in zip(charged_run.steps.parts, charged_run.counts, strict=True):
        left = []
        for piece in steps.parts:
            end += piece.n_measured
            if end > draft.n_measured:
                left.append(piece)
        if not left and steps is not charged_run.steps.rounds:
            counts.forget()
        with closing(counts.measured(left, on_measured)) as measured:
            for piece, numbers in zip(left, measured, strict=True):
                wanted = draft.n_measured + piece.n_measured
                draft.add(numbers)
                if draft.n_measured != wanted:
                    raise AssertionError("a part has other numbers than its plan says")
                if wanted < last:
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
