"""Columns of a data file that become attributes, after their values were looked for if wanted."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from pages.components.shared.background import Task, follow
from pages.components.shared.session import change_domain, current, revision, say
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import plural
from rpexplore.data.files.columns import ColumnValues, Header, read_column_values
from rpexplore.domain.domain import Domain
from rpexplore.scenarios import schema_import as schema_sources

PATIENCE = 2.0  # seconds a click waits for a small file before its progress is shown
TASK = "columns task"


def take(
    place: str,
    grid: str,
    path: Path,
    header: Header,
    chosen: Sequence[str],
    with_values: bool,
    add: bool,
) -> None:
    """Take the columns over, after reading the records if that was chosen."""
    if not with_values:
        fixed = {column.name: column.values for column in header.columns}
        take_over(place, grid, {name: fixed[name] for name in chosen}, path.name, add)
        return

    def work(on_progress: Progress) -> ColumnValues:
        doing = f"Reading {plural(len(chosen), 'column')} of {path.name}"
        on_progress(doing, 0.0)
        # Below 1, for work that reports its end is not cancelled any more.
        return read_column_values(
            path, chosen, on_progress=lambda _, share: on_progress(doing, 0.99 * share)
        )

    if TASK in st.session_state:
        st.session_state[TASK][0].cancel()
    task = Task(work).start()
    begun = for_whom()
    st.session_state[TASK] = (task, partial(take_found, place, grid, chosen, path, add, begun))
    task.wait(PATIENCE)
    finish_reading()


def follow_reading() -> None:
    """Show how far a reading of records is, if one is going on."""
    if TASK in st.session_state:
        follow(st.session_state[TASK][0], "columns")


def finish_reading() -> None:
    """Take over what a reading of records has found, once it is done; call it in every run."""
    held = st.session_state.get(TASK)
    if held is not None and not held[0].is_going:
        del st.session_state[TASK]
        held[1](held[0])


def for_whom() -> tuple[str, Domain]:
    """Which scenario, and which of its schemas, a reading of records belongs to."""
    return current().name, current().domain


def take_found(
    place: str,
    grid: str,
    chosen: Sequence[str],
    path: Path,
    add: bool,
    begun: tuple[str, Domain],
    task: Task[ColumnValues],
) -> None:
    """Take over what was found, for the codebook that it was looked for and no other.

    begun: what `for_whom` was when the reading began
    """
    found = task.result
    if task.was_cancelled:  # it may have come to its end all the same
        say(place, "error", "Cancelled. Nothing was changed.")
        return
    if found is None:
        say(place, "error", f"{task.error} Nothing was changed.")
        return
    if for_whom() != begun:
        say(
            place,
            "warning",
            f"The values of {path.name} were looked for in scenario {begun[0]}. It is not open any "
            "more, or its codebook was changed meanwhile, so they were dropped and nothing was "
            "changed.",
        )
        return
    values: dict[str, Sequence[str]] = {name: found.values.get(name, ()) for name in chosen}
    if not take_over(place, grid, values, path.name, add, found=list(found.values)):
        return
    if found.refused:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in found.refused.items())
        say(place, "warning", f"Not listed: {reasons}. Give these values by hand.")


def take_over(
    place: str,
    grid: str,
    columns: dict[str, Sequence[str]],
    filename: str,
    add: bool,
    found: Sequence[str] = (),
) -> bool:
    """Put the columns into the codebook; what has its values already there keeps them."""
    present = current().domain if add else None
    record_noun = current().record_noun if add else "records"
    done = change_domain(
        place,
        lambda: schema_sources.domain_of_columns(columns, found=found, present=present),
        from_elsewhere=not add,
        record_noun=record_noun,
    )
    if done:
        revision(grid, step=True)
        say(place, "success", f"Took {plural(len(columns), 'column')} of {filename}.")
    return done
