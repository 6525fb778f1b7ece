"""Statements of an engine that run in threads of their own, and are stopped when nobody waits."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from rpexplore.common.concurrency import Progress
from rpexplore.data.source import COUNTING

_PATIENCE = 0.2  # seconds between two looks whether somebody still waits

Piece = TypeVar("Piece")


def side_by_side(
    rows: Sequence[Callable[[], Generator[Piece, None, None]]],
    cancel: Callable[[], None],
    on_progress: Progress,
) -> Generator[Piece, None, None]:
    """The results of statements, each in a thread of its own, piece by piece in any order.

    An error of one stops the others, as does `on_progress` by raising, and whoever closes this.
    cancel: stops all statements that run
    """
    with ThreadPoolExecutor(len(rows)) as workers:
        started = [fetched() for fetched in rows]
        fetching = {workers.submit(next, pieces, None): pieces for pieces in started}
        try:
            while fetching:
                done = wait(fetching, _PATIENCE, FIRST_COMPLETED).done
                if not done:
                    on_progress(COUNTING, 0.0)
                for fetched in done:
                    pieces = fetching.pop(fetched)
                    if (piece := fetched.result()) is not None:
                        yield piece
                        fetching[workers.submit(next, pieces, None)] = pieces
        finally:
            while not all(fetched.done() for fetched in fetching):
                with suppress(Exception):
                    cancel()
                wait(fetching, _PATIENCE)
            for pieces in started:
                pieces.close()
