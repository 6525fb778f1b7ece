"""Work outside the script thread, as a page shows it: how far it is, its outcome, its failure."""

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from pages.components.shared.session import escaped, kept, kept_name, repeat_messages
from rpexplore.common.processes import Progress
from rpexplore.serving.tasks import NEVER, Task

T = TypeVar("T")
PATIENCE = 3.0  # seconds a page waits before it shows how far the work is


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
            repeat_messages()
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
    work: Callable[..., T],
    *args: Any,
    doing: str = "",
    problem: str = "",
    slot: str = "",
    by: tuple = (),
) -> T | None:
    """`result_of` a task for `work(*args, on_progress=…)`, which is kept as by `kept`.

    doing: what work is about that takes no `on_progress`, to be shown meanwhile
    """
    name = task_name(work, slot)
    before = st.session_state.get(name)
    task = kept(begun, work, args, doing, slot=f"{work.__qualname__} {slot}", by=by or args)
    if before is not None and before[1] is not task:
        before[1].cancel()
    return result_of(
        task, name, "Working it out", lambda: st.session_state.pop(name, None), problem
    )


def begun(work: Callable[..., T], args: tuple, doing: str) -> Task[T]:
    """A task for work that has begun."""

    def call(on_progress: Progress) -> T:
        if not doing:
            return work(*args, on_progress=on_progress)
        on_progress(doing, 0.0)
        return work(*args)

    return Task(call).start()


def task_name(work: Callable, slot: str = "") -> str:
    """Where the session keeps the task of `worked_out`."""
    return kept_name(begun, f"{work.__qualname__} {slot}")
