"""Releases of areas from Spark whose noise is known, and told: what a worker does is seen here."""

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

from rpexplore.data.source import Counts
from rpexplore.releases import area_parts

SMALL = {"PART_NUMBERS": 30, "PART_CELLS": 1}
PARTS = "rpexplore.releases.area_parts"
SAMPLER = "rpexplore.releases.area_measurement.discrete_gaussian"


def same_noise(size, gamma_squared):
    """What is drawn for a number depends on its place and its variance alone."""
    return np.arange(size) * int(gamma_squared * 1000) % 701 - 350


class Watched:
    """The work of a plan's parts in a worker, with the sizes of parts that hold here.

    Args:
        work: What is done in the worker.
        folder: Where each try of each share leaves its draws.
        draw: The noise; None for what is really drawn.
        on_drawn: Called with the number of earlier tries when a part of what is measured of a
            share has been handed over.
    """

    def __init__(
        self,
        work: Callable[[int, Counts], Iterator[np.ndarray]],
        folder: Path,
        draw: Callable | None = same_noise,
        on_drawn: Callable[[int], None] = lambda n_tries: None,
    ) -> None:
        self._work, self._folder, self._draw, self._on_drawn = work, folder, draw, on_drawn
        self._constants = {name: getattr(area_parts, name) for name in SMALL}

    def __call__(self, share: int, counts: Counts) -> Iterator[np.ndarray]:
        with patch.multiple(PARTS, **self._constants):
            if self._draw is None:
                pieces = list(self._work(share, counts))
            else:
                with patch(SAMPLER, self._draw):
                    pieces = list(self._work(share, counts))
        n_tries = len(list(self._folder.glob(f"share {share} try *.npy")))
        np.save(self._folder / f"share {share} try {n_tries}.npy", np.concatenate(pieces))
        yield pieces[0]
        self._on_drawn(n_tries)
        yield from pieces[1:]
