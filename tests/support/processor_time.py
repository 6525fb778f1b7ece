"""How long something takes, whatever else the machine does and however fast it is.

Time on the clock says what other programs do; processor time says how fast the machine is. So a
limit is in seconds of processor time on the machine where limits are set, and one that is passed
is looked at beside work that is known.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 300
"""Seconds on the clock to wait for what comes at once unless something is broken."""

KNOWN_WORK = 200_000
KNOWN_SECONDS = 0.0065  # that this takes where limits are set


def slowness() -> float:
    """How many times slower this machine is now than where limits are set, at least 1."""
    start = time.process_time()
    total = 0
    for number in range(KNOWN_WORK):
        total += number % 7
    return max(1.0, (time.process_time() - start) / KNOWN_SECONDS)


def is_slow(took: float, most: float) -> bool:
    """Whether so much processor time is more than this, where limits are set."""
    return took > most and took > most * slowness()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fails if what is done in it takes more processor time, where limits are set."""
    start = time.process_time()
    yield
    assert not is_slow(time.process_time() - start, seconds)
