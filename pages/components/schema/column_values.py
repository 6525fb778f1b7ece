"""Columns of a data file that become attributes, with the values in the records if wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from pages.components.shared.background import Task, follow
from pages.components.shared.editors import revision
from pages.components.shared.session import change_domain, current, say
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import plural
from rpexplore.data.files.columns import ColumnValues, Header, read_column_values
from rpexplore.domain.domain import Domain
from rpexplore.scenarios import schema_import as schema_sources

PATIENCE = 2.0  # seconds a click waits for a small file before its progress is shown
TASK = "columns task"


@dataclass(frozen=True)
class Columns:
    """Columns of a data file that are to become attributes.

    add   whether they are added to the codebook; else they replace it
    slot  where messages are drawn
    grid  the editor that starts afresh
    """

    path: Path
    names: Sequence[str]
    add: bool
    slot: str
    grid: str


def take(columns: Columns, header: Header, with_values: bool) -> None:
    """Put the columns into the codebook, after reading the records if that was chosen."""
    if not with_values:
        declared = {column.name: column.values for column in header.columns}
        _put_into_codebook(columns, {name: declared[name] for name in columns.names})
        return

    def work(on_progress: Progress) -> ColumnValues:
        doing = f"Reading {plural(len(columns.names), 'column')} of {columns.path.name}"
        on_progress(doing, 0.0)
        # Below 1, for work that reports its end is not cancelled any more.
        return read_column_values(
            columns.path,
            columns.names,
            on_progress=lambda _, share: on_progress(doing, 0.99 * share),
        )

    if TASK in st.session_state:
        st.session_state[TASK][0].cancel()
    task = Task(work).start()
    st.session_state[TASK] = task, columns, _open_codebook()
    task.wait(PATIENCE)
    finish_reading()


def follow_reading() -> None:
    """Show how far a reading of records is, if one is going on."""
    if TASK in st.session_state:
        follow(st.session_state[TASK][0], "columns")


def finish_reading() -> None:
    """Use the values of a reading of records, once it is done; call it in every run.

    They are for the codebook that was open when it began, and no other.
    """
    if TASK not in st.session_state or st.session_state[TASK][0].is_going:
        return
    task, columns, codebook = st.session_state.pop(TASK)
    read: ColumnValues | None = task.result
    if task.was_cancelled:  # it may have come to its end all the same
        say(columns.slot, "error", "Cancelled. Nothing was changed.")
    elif read is None:
        say(columns.slot, "error", f"{task.error} Nothing was changed.")
    elif _open_codebook() != codebook:
        say(
            columns.slot,
            "warning",
            f"The values of {columns.path.name} were looked for in scenario {codebook[0]}, which "
            "is not open any more or has another codebook. They were dropped, and nothing was "
            "changed.",
        )
    else:
        values = {name: read.values.get(name, ()) for name in columns.names}
        if _put_into_codebook(columns, values, found=list(read.values)) and read.refused:
            reasons = "; ".join(f"{name} ({reason})" for name, reason in read.refused.items())
            say(columns.slot, "warning", f"Not listed: {reasons}. Give these values by hand.")


def _open_codebook() -> tuple[str, Domain]:
    """The open scenario's name and codebook."""
    return current().name, current().domain


def _put_into_codebook(
    columns: Columns, values: Mapping[str, Sequence[str]], found: Sequence[str] = ()
) -> bool:
    """Put columns into the codebook; what has its values already there keeps them.

    found: names of those whose values come from the records
    """
    present = current().domain if columns.add else None
    record_noun = current().record_noun if columns.add else "records"
    done = change_domain(
        columns.slot,
        lambda: schema_sources.domain_of_columns(values, from_records=found, present=present),
        from_elsewhere=not columns.add,
        record_noun=record_noun,
    )
    if done:
        revision(columns.grid, step=True)
        taken = f"Took {plural(len(values), 'column')} of {columns.path.name}."
        say(columns.slot, "success", taken)
    return done
