"""The columns of a file as attributes: by name only, or with the values in its records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from pages.components.codebook.attributes import HERE, change_codebook
from pages.components.shared.background import begin, finish
from pages.components.shared.session import attempt, current, escaped, say
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.data.files.columns import (
    DATA_FILE,
    MOST_VALUES,
    ColumnsFile,
    ColumnValues,
    Header,
    read_column_values,
)
from rpexplore.domain.codebook_columns import ROLES, ForeignTable
from rpexplore.domain.domain import CSV_ENDINGS, Domain
from rpexplore.scenarios import codebook_import
from rpexplore.serving.tasks import Task

NAMES, WITH_VALUES = "Names only", "Names, and the values found in the records"
WARNING = (
    "**What is found in records is not protected.** The values become part of the codebook, which "
    "is published with every table. A rare value (an occupation, a country of birth) tells "
    "everybody that somebody in the data has it, and a value that is not listed, that nobody has. "
    "No budget covers that. Where a codebook or another public list exists, use it instead. The "
    "label of each such attribute will say where its values come from."
)
PATIENCE = 2.0  # seconds a click waits for a small file before its progress is shown
READING = "columns task"


def choose_columns(
    file: ColumnsFile, name: str, content: Callable[[], bytes] | None = None
) -> None:
    """Widgets to take the columns of a file of this name.

    content: reads all of it; None where it cannot be a codebook
    """
    may_be_codebook = file.kind == DATA_FILE and Path(name).suffix.lower() in CSV_ENDINGS
    if content is not None and may_be_codebook and _is_codebook(name):
        if (table := attempt(lambda: ForeignTable.of(content(), name))) is not None:
            say_what_columns_are(table)
        return
    hint = " A CSV codebook has the columns `attribute` and `value`."
    st.markdown(
        f"{escaped(name)} ({file.kind}) has {plural(len(file.header.columns), 'column')} to choose "
        f"from; nothing but their names and types was read.{hint if file.kind == DATA_FILE else ''}"
    )
    chosen = columns_to_take(file.header)
    path = file.records
    with_values = path is not None and _takes_values()
    understood = path is None or not with_values or _is_understood(path)
    line = st.container(horizontal=True)
    for label, add in (
        ("Replace the codebook by these", False),
        ("Add these to the codebook", True),
    ):
        line.button(
            label,
            on_click=take_values if with_values else take_names,
            args=(Columns(name, file, chosen, add),),
            disabled=not chosen or not understood or (add and len(current().domain) == 0),
        )


def _is_codebook(name: str) -> bool:
    """Whether the rows of a file with other columns than a codebook has are one all the same."""
    return st.toggle(
        "It is a codebook, and its columns have other names",
        key=f"is codebook {name}",
        help="A public list with a row for each value. Its first rows are then read and shown, so "
        "leave this off for a file of records.",
    )


def say_what_columns_are(table: ForeignTable) -> None:
    """Widgets for what each column of a codebook is: guessed, and remembered by their names."""
    st.markdown("What are the columns of this codebook? Below are its first rows.")
    remembered = st.session_state.setdefault("roles of columns", {})
    guess = remembered.get(table.header, table.guess)
    columns: dict[str, str] = {}
    for role, place in zip(ROLES, st.columns(len(ROLES)), strict=True):
        offered = table.columns if role in ROLES[:2] else ["", *table.columns]
        known = guess.get(role, "")
        chosen = place.selectbox(
            role.capitalize(),
            offered,
            index=offered.index(known) if known in offered else None,
            format_func=lambda column: column or "none",
            key=f"{role} of {table.header}",
        )
        if chosen:
            columns[role] = chosen
    st.table(
        {
            f"{escaped(column)} ({role})": [
                dict(zip(table.header, row, strict=False)).get(column, "") for row in table.rows
            ]
            for role, column in columns.items()
        }
    )
    st.button(
        "Use this codebook",
        on_click=_take_table,
        args=(table, columns),
        disabled=len({*columns.values()}) < max(len(columns), 2),
    )


def _take_table(table: ForeignTable, columns: dict[str, str]) -> None:
    survey = codebook_import.survey_named_after(table.filename, current().survey)
    st.session_state["roles of columns"][table.header] = columns
    if change_codebook(
        HERE,
        lambda: table.codebook(columns),
        from_elsewhere=True,
        record_noun="records",
        survey=survey,
    ):
        say(HERE, "success", codebook_import.describe_loaded(current(), table.filename))


def _takes_values() -> bool:
    """Whether the values in the records are wanted too."""
    what = st.radio(
        "What to take from the file",
        [NAMES, WITH_VALUES],
        captions=[
            "No record is read. You give the values afterwards, from public knowledge.",
            "Reads all records of these columns, on this computer.",
        ],
        key="what to take",
        persist_state="session",
    )
    return what == WITH_VALUES


def _is_understood(path: Path) -> bool:
    """Whether the curator has agreed that values found in the records are published."""
    st.warning(WARNING)
    understood = st.checkbox(
        "I have read this, and the lists of values of these columns may be public",
        key=f"understood for {path}",
    )
    st.caption(
        f"A column with more than {MOST_VALUES} different values, or a measurement, is not listed. "
        "No values are counted."
    )
    return understood


def columns_to_take(header: Header) -> list[str]:
    """The columns that are ticked."""
    declared = {column.name: column.declared for column in header.columns}
    chosen = st.multiselect(
        "Columns that become attributes",
        list(declared),
        key="columns to take",
        format_func=lambda name: name + (f" ({declared[name]})" if declared.get(name) else ""),
        placeholder="none yet; leave out names, record numbers and the like",
    )
    if header.left_out:
        st.caption(
            f"{plural(header.left_out, 'column')} without a name of their own, or with columns "
            "inside, cannot be attributes."
        )
    return [name for name in declared if name in chosen]


@dataclass(frozen=True)
class Columns:
    """Columns of a file that replace the attributes of the codebook, or are added to it."""

    file_name: str
    file: ColumnsFile
    names: Sequence[str]
    add: bool


def take_names(columns: Columns) -> None:
    """Put the columns into the codebook, with the values that the file declares."""
    declared = {column.name: column.values for column in columns.file.header.columns}
    _put_into_codebook(columns, {name: declared[name] for name in columns.names})


def take_values(columns: Columns) -> None:
    """Begin to read the values of the columns from the records, for the codebook open now."""
    path = columns.file.records
    assert path is not None  # else they are not offered

    def work(on_progress: Progress) -> ColumnValues:
        doing = f"Reading {plural(len(columns.names), 'column')} of {columns.file_name}"
        on_progress(doing, 0.0)
        # Below 1, for work that reports its end is not cancelled any more.
        return read_column_values(
            path,
            columns.names,
            on_progress=lambda _, share: on_progress(doing, 0.99 * share),
        )

    if READING in st.session_state:
        st.session_state[READING][0].cancel()
    task = begin(READING, work, partial(_take_read, columns, _open_codebook()))
    task.wait(PATIENCE)
    finish(READING)


def _take_read(columns: Columns, codebook: tuple[str, Domain], task: Task[ColumnValues]) -> None:
    """Put the columns and the values that were read into the codebook they were read for."""
    read = task.result
    if task.was_cancelled:  # it may have come to its end all the same
        say(HERE, "error", "Cancelled. Nothing was changed.")
    elif read is None:
        say(HERE, "error", f"{task.error} Nothing was changed.")
    elif _open_codebook() != codebook:
        say(
            HERE,
            "warning",
            f"The values of {columns.file_name} were looked for in scenario {codebook[0]}, which "
            "is not open any more or has another codebook. They were dropped, and nothing was "
            "changed.",
        )
    else:
        values = {name: read.values.get(name, ()) for name in columns.names}
        if _put_into_codebook(columns, values, from_records=list(read.values)) and read.refused:
            reasons = "; ".join(f"{name} ({reason})" for name, reason in read.refused.items())
            say(HERE, "warning", f"Not listed: {reasons}. Give these values by hand.")


def _open_codebook() -> tuple[str, Domain]:
    """The open scenario's name and codebook."""
    return current().name, current().domain


def _put_into_codebook(
    columns: Columns, values: Mapping[str, Sequence[str]], from_records: Sequence[str] = ()
) -> bool:
    """Put columns into the codebook, those `from_records` marked; values that are there stay."""
    present = current().domain if columns.add else None
    record_noun, survey = current().record_noun, current().survey
    if not columns.add:
        record_noun = "records"
        survey = codebook_import.survey_named_after(columns.file_name, survey)
    done = change_codebook(
        HERE,
        lambda: codebook_import.domain_of_columns(
            values,
            from_records=from_records,
            present=present,
            missing={column.name: column.missing for column in columns.file.header.columns},
        ),
        from_elsewhere=not columns.add,
        record_noun=record_noun,
        survey=survey,
    )
    if done:
        taken = f"Took {plural(len(values), 'column')} of {columns.file_name}."
        say(HERE, "success", taken)
    return done
