"""Work outside the script thread: it goes on while the page is drawn again, or another page is."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakSet

from rpexplore.common.processes import Progress
from rpexplore.common.server_files import log_event, log_unexpected, timed_event
from rpexplore.common.text import duration
from rpexplore.errors import RpexploreError
from rpexplore.serving.sessions import limits, own_turn, session_number, turn, work_for

T = TypeVar("T")
NEVER = float("inf")
# How long the rest takes can be told after so many seconds, from such a share of the work on.
_TOLD_AFTER, _TOLD_FROM = 3.0, 0.1
_SECONDS_FOR_CANCELLED = 5.0  # when a server ends


class Cancelled(Exception):
    """Raised inside the work, at its next progress report, after it was cancelled."""


_kept: "WeakSet[Task]" = WeakSet()  # the tasks that a server waits for before it ends


def finish_kept_tasks() -> None:
    """Cancel what may be cancelled, and wait for the rest.

    While the interpreter still works as always: once it shuts down, no thread can be started. What
    is cancelled books nothing any more, and is waited for only for some seconds: it may not report
    for long.
    """
    tasks = list(_kept)
    for task in tasks:
        task.cancel(before=task.kept_from)
    until = time.monotonic() + _SECONDS_FOR_CANCELLED
    for task in tasks:
        left = max(until - time.monotonic(), 0)
        task.wait(left if task.was_cancelled else threading.TIMEOUT_MAX)


class TooLong(Exception):
    """Raised inside the work, at its next progress report, when its time is over."""


class Task(Generic[T]):
    """Work in a thread of its own: `doing` and `share` while it goes on, then result or error.

    work      is given a `Progress` to call, and returns the result
    error     for the screen; it may hold what was read from records and is kept nowhere else
    kept_from the share of the work from which on a server that is stopped waits for its end
    """

    def __init__(self, work: Callable[[Progress], T], *, kept_from: float = NEVER) -> None:
        self.doing, self.share = "Starting", 0.0
        self.result: T | None = None
        self.error = ""
        self.kept_from = kept_from
        self._work = work
        self.was_cancelled = False  # it may have come to its end all the same
        self._lock = threading.Lock()  # of being cancelled and going on, one comes first
        self._started = 0.0  # by the clock of `time.monotonic`
        self._session = session_number()
        self._own_turn = own_turn()
        self._thread = threading.Thread(target=self._go, name="task", daemon=True)

    def start(self) -> "Task[T]":
        self._started = time.monotonic()
        if self.kept_from < NEVER:
            _kept.add(self)
        self._thread.start()
        return self

    @property
    def is_going(self) -> bool:
        return self._thread.is_alive()

    @property
    def step(self) -> str:
        """What is being done, and about how long all of it goes on, once that can be told."""
        passed, share = time.monotonic() - self._started, self.share
        if passed < _TOLD_AFTER or share < _TOLD_FROM:
            return f"{self.doing} …"
        return f"{self.doing} … about {duration(passed * (1 - share) / share)} left"

    def cancel(self, before: float = NEVER) -> None:
        """Let the work stop at its next report; not if it has reported the share `before`."""
        with self._lock:
            self.was_cancelled |= self.share < before

    def wait(self, seconds: float) -> None:
        """Return when the work has ended, or after so many seconds."""
        self._thread.join(seconds)

    def _on_progress(self, doing: str, share: float) -> None:
        with self._lock:
            if self.was_cancelled and share < 1:  # what is finished stays
                raise Cancelled
            if share < 1 and self._is_over():
                raise TooLong
            self.share, self.doing = min(max(share, 0.0), 1.0), doing

    def _is_over(self) -> bool:
        """Whether the work has taken all the time that this server has for one piece."""
        most = limits().solve_seconds
        return self._own_turn is not None and time.monotonic() - self._started > most

    def _wait_for_turn(self, doing: str) -> None:
        self._on_progress(doing, 0.0)
        self._started = time.monotonic()  # waiting for others does not count

    def _go(self) -> None:
        try:
            with (
                turn(self._own_turn, self._wait_for_turn),
                work_for(self._session),
                timed_event("work done", session=self._session),
            ):
                self.result = self._work(self._on_progress)
        except Cancelled:
            self.error = "Cancelled."
        except TooLong:
            log_event("refused by a limit", limit="solve_seconds", session=self._session)
            most = duration(limits().solve_seconds)
            self.error = (
                f"This takes more than {most}, the most that this server has for it; ask for fewer "
                "or smaller tables, or fewer counts, or plan with your own app (rpexplore app)."
            )
        except RpexploreError as error:
            self.error = error.on_screen()
        except MemoryError:
            self.error = "There is not enough memory; ask for fewer or smaller tables."
        except Exception as error:
            # Its text could hold anything; a thread would print it with all its values.
            log_unexpected(error)
            self.error = f"This stopped unexpectedly ({type(error).__name__}); please report it."
