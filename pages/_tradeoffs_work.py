"""How the Trade-offs page waits for what takes longer, and takes over what it found."""

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from pages._session import add_scenario, change, current, escaped, kept, say
from pages._task import Note, Task, follow
from rpexplore.budget import Budget
from rpexplore.scenario import NOTE_LENGTH, Scenario
from rpexplore.words import rounded

T = TypeVar("T")
PATIENCE = 3.0  # seconds a page waits before it shows how far the work is


def worked_out(name: str, key: tuple, work: Callable[[Note], T]) -> T | None:
    """What `work` returns, done once for each key outside the script thread.

    None while it goes on (its progress is then on the page), and where it failed (the page then
    says why).
    """
    before = st.session_state.get(f"kept {name}")
    if before is not None and before[0] != key:
        before[1].cancel()
    task = kept(name, key, lambda: Task(work).start())
    if task.is_going:
        with st.spinner("Working it out …"):
            task.wait(PATIENCE)
    if task.is_going:
        follow(task, name)
        return None
    if task.result is None:
        st.error(escaped(task.error))
        st.button("Try again", key=f"again {name}", on_click=_forget, args=(name,))
    return task.result


def _forget(name: str) -> None:
    st.session_state.pop(f"kept {name}", None)


def use_budget(place: str, budget: Budget, **more: Any) -> None:
    """Take a budget over into the open scenario, maybe with other changes."""
    if change(place, lambda: current().replaced(budget=budget, **more)):
        say(place, "success", f"Taken over: the budget is now ρ = {rounded(budget.rho, 6)}.")


def keep_scenario(place: str, make: Callable[[], Scenario], note: str) -> None:
    """Keep what came out as a further scenario, with a note of what it is, and open it."""
    if add_scenario(place, lambda: make().replaced(note=note[:NOTE_LENGTH])):
        say(place, "success", f"Kept as “{current().name}”, which is open now.")
