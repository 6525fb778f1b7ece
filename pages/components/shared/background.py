"""Work outside the script thread: it goes on while the page is drawn again, or another page is."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import streamlit as st

from pages.components.shared.session import escaped, kept
from rpexplore.errors import RpexploreError

T = TypeVar("T")
NEVER = float("inf")
PATIENCE = 3.0  # seconds a page waits before it shows how far the work is
Note = Callable[[float, str], None]  # how much is done, 0 to 1, and what is being done


class Cancelled(Exception):
    """Raised inside the work, at its next note, after somebody has asked to cancel it."""


class Task(Generic[T]):
    """Work in a thread of its own: `doing` and `share` while it goes on, then result or error.

    work      is given a function to note how far it is, and returns the result
    error     for the screen; it may hold what was read from records and is kept nowhere else
    keep_on   a server that is stopped waits for the work, as it must for a release
    """

    def __init__(self, work: Callable[[Note], T], *, keep_on: bool = False) -> None:
        self.doing, self.share = "Starting", 0.0
        self.result: T | None = None
        self.error = ""
        self._work = work
        self._asked_to_cancel = False
        self._lock = threading.Lock()  # of being cancelled and going on, one comes first
        self._thread = threading.Thread(target=self._go, name="task", daemon=not keep_on)

    def start(self) -> "Task[T]":
        self._thread.start()
        return self

    @property
    def is_going(self) -> bool:
        return self._thread.is_alive()

    @property
    def was_cancelled(self) -> bool:
        """Whether it was asked to stop; it may have come to its end all the same."""
        return self._asked_to_cancel

    def cancel(self, before: float = NEVER) -> None:
        """Ask the work to stop at its next note; not if it has noted the share `before` already."""
        with self._lock:
            self._asked_to_cancel |= self.share < before

    def wait(self, seconds: float) -> None:
        """Return when the work has ended, or after so many seconds."""
        self._thread.join(seconds)

    def _note(self, share: float, doing: str) -> None:
        with self._lock:
            if self._asked_to_cancel and share < 1:  # what is finished stays
                raise Cancelled
            self.share, self.doing = min(max(share, 0.0), 1.0), doing

    def _go(self) -> None:
        try:
            self.result = self._work(self._note)
        except Cancelled:
            self.error = "Cancelled."
        except RpexploreError as error:
            self.error = error.on_screen()
        except MemoryError:
            self.error = "There is not enough memory; ask for fewer or smaller tables."
        except Exception as error:
            # Its text could hold anything; a thread would print it with all its values.
            self.error = f"This stopped unexpectedly ({type(error).__name__}); please report it."


def follow(
    task: Task, key: str, cost: Callable[[], str] = lambda: "", free_before: float = NEVER
) -> None:
    """A bar that follows a task, with a button to cancel it; the page is drawn again at its end.

    cost         what cancelling would cost now, in words; it is then asked for once more
    free_before  the share of the work from which on it costs something
    """

    @st.fragment(run_every=0.4)
    def bar() -> None:
        if not task.is_going:
            st.rerun()
        left, right = st.columns([5, 1], vertical_alignment="bottom")
        left.progress(task.share, text=f"{task.doing} …")
        words = cost()
        if words:
            with right.popover("Cancel"):
                st.markdown(words)
                st.button(
                    "Cancel all the same", key=f"cancel at a cost {key}", on_click=task.cancel
                )
        else:
            right.button("Cancel", key=f"cancel {key}", on_click=task.cancel, args=(free_before,))

    bar()


def has_ended(task: Task, key: str, doing: str) -> bool:
    """Whether a task is done: it is waited for a little; after that its progress is shown."""
    if task.is_going:
        with st.spinner(f"{doing} …"):
            task.wait(PATIENCE)
    if task.is_going:
        follow(task, key)
        return False
    return True


def worked_out(name: str, key: tuple, work: Callable[[Note], T]) -> T | None:
    """What `work` returns, done once for each key outside the script thread.

    None while it goes on (its progress is then on the page), and where it failed (the page then
    says why).
    """
    before = st.session_state.get(f"kept {name}")
    if before is not None and before[0] != key:
        before[1].cancel()
    task = kept(name, key, lambda: Task(work).start())
    if not has_ended(task, name, "Working it out"):
        return None
    if task.result is None:
        st.error(escaped(task.error))
        st.button("Try again", key=f"again {name}", on_click=_forget, args=(name,))
    return task.result


def _forget(name: str) -> None:
    st.session_state.pop(f"kept {name}", None)
