"""Work outside the script thread: it goes on while the page is drawn again, or another page is."""

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

import streamlit as st

from pages.components.shared.serving import limits, own_turn, session_number, turn, work_for
from pages.components.shared.session import escaped, kept, kept_name
from rpexplore.common.processes import Progress
from rpexplore.common.server_files import log_event, log_unexpected, timed_event
from rpexplore.common.text import duration
from rpexplore.errors import RpexploreError

T = TypeVar("T")
NEVER = float("inf")
PATIENCE = 3.0  # seconds a page waits before it shows how far the work is
# How long the rest takes can be told after so many seconds, from such a share of the work on.
_TOLD_AFTER, _TOLD_FROM = 3.0, 0.1


class Cancelled(Exception):
    """Raised inside the work, at its next progress report, after it was cancelled."""


_kept: "WeakSet[Task]" = WeakSet()  # the tasks that a server waits for before it ends


def finish_kept_tasks() -> None:
    """Cancel what may be cancelled, and wait for the rest.

    While the interpreter still works as always: once it shuts down, no thread can be started.
    """
    tasks = list(_kept)
    for task in tasks:
        task.cancel(before=task.kept_from)
    for task in tasks:
        task.wait(threading.TIMEOUT_MAX)


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
                "or smaller tables, or plan with your own app (rpexplore app)."
            )
        except RpexploreError as error:
            self.error = error.on_screen()
        except MemoryError:
            self.error = "There is not enough memory; ask for fewer or smaller tables."
        except Exception as error:
            # Its text could hold anything; a thread would print it with all its values.
            log_unexpected(error)
            self.error = f"This stopped unexpectedly ({type(error).__name__}); please report it."


def follow(
    task: Task, key: str, cost: Callable[[], str] = lambda: "", free_before: float = NEVER
) -> None:
    """A bar that follows a task, with a button to cancel it; the page is drawn again at its end.

    cost         what cancelling would cost now, as a sentence; it has then to be confirmed
    free_before  the share of the work from which on it costs something
    """

    @st.fragment(run_every=0.4)
    def bar() -> None:
        if not task.is_going:
            st.rerun()
        # Not columns: in a narrow part of a page the button would be cut.
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.progress(task.share, text=task.step)
            if text := cost():
                with st.popover("Cancel"):
                    st.markdown(text)
                    st.button(
                        "Cancel all the same", key=f"cancel at a cost {key}", on_click=task.cancel
                    )
            else:
                st.button("Cancel", key=f"cancel {key}", on_click=task.cancel, args=(free_before,))

    bar()


def begin(key: str, work: Callable[[Progress], T], at_end: Callable[[Task[T]], None]) -> Task[T]:
    """Start work that the session keeps by its key; `at_end` is given the task by `finish`."""
    task = Task(work).start()
    st.session_state[key] = task, at_end
    return task


def finish(key: str) -> None:
    """Use the outcome of the work kept by this key once it has ended; call it in every run."""
    if key in st.session_state and not st.session_state[key][0].is_going:
        task, at_end = st.session_state.pop(key)
        at_end(task)


def follow_begun(key: str) -> bool:
    """Whether there is work kept by this key; how far it is, is then on the page."""
    if key in st.session_state:
        follow(st.session_state[key][0], key)
    return key in st.session_state


def has_ended(task: Task, key: str, doing: str) -> bool:
    """Whether a task is done: it is waited for a little; after that its progress is shown."""
    if task.is_going:
        with st.spinner(f"{doing} …"):
            task.wait(PATIENCE)
    if task.is_going:
        follow(task, key)
        return False
    return True


def result_of(
    task: Task[T], key: str, doing: str, forget: Callable[[], None], problem: str = ""
) -> T | None:
    """The result of a task; None while it goes on, which the page shows, and where it failed.

    Then the page says why, after `problem`, and has a button that forgets the task.
    """
    if not has_ended(task, key, doing):
        return None
    if task.result is None:
        st.error(escaped(f"{problem}{task.error}"))
        st.button("Try again", key=f"again {key}", on_click=forget)
    return task.result


def worked_out(
    work: Callable[..., T], *args: Any, problem: str = "", slot: str = "", by: tuple = ()
) -> T | None:
    """`result_of` a task for `work(*args, on_progress=…)`, which is kept as by `kept`."""
    name = task_name(work, slot)
    before = st.session_state.get(name)
    task = kept(begun, work, args, slot=f"{work.__qualname__} {slot}", by=by or args)
    if before is not None and before[1] is not task:
        before[1].cancel()
    return result_of(
        task, name, "Working it out", lambda: st.session_state.pop(name, None), problem
    )


def begun(work: Callable[..., T], args: tuple) -> Task[T]:
    """A task for work that has begun."""
    return Task(lambda on_progress: work(*args, on_progress=on_progress)).start()


def task_name(work: Callable, slot: str = "") -> str:
    """Where the session keeps the task of `worked_out`."""
    return kept_name(begun, f"{work.__qualname__} {slot}")
