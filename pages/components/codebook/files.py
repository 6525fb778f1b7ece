"""Where a codebook comes from: an example, a file and its columns, typed lines, nothing."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.codebook.attributes import GRID, HERE, change_codebook
from pages.components.shared.background import begin, finish
from pages.components.shared.files import data_files, forget_upload, path_choice, upload
from pages.components.shared.inputs import revision
from pages.components.shared.session import accepted, attempt, change, current, escaped, kept, say
from rpexplore.common.files import file_bytes
from rpexplore.common.numbers import shown
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.data.files.columns import (
    DATA_FILE,
    MOST_VALUES,
    CodebookFile,
    ColumnsFile,
    ColumnValues,
    Header,
    OwnFile,
    PackageFile,
    Recognised,
    read_column_values,
    recognise,
    recognise_path,
)
from rpexplore.data.files.offered import CODEBOOK_ENDINGS, codebooks, recognise_public
from rpexplore.domain.codebook_columns import ROLES, ROLES_OF_VARIABLES, ForeignTable
from rpexplore.domain.codebook_formats import refuse_large
from rpexplore.domain.codebook_remarks import describe_left_out
from rpexplore.domain.domain import CSV_ENDINGS, Domain
from rpexplore.domain.hierarchy_file import HierarchyFile, with_hierarchy
from rpexplore.errors import DomainError, RpexploreError
from rpexplore.planning.plan import FORMAT as PLAN_FORMAT
from rpexplore.scenarios import codebook_import
from rpexplore.scenarios.examples import EXAMPLES, Example
from rpexplore.serving.sessions import plans_only, reading
from rpexplore.serving.tasks import Task

EXAMPLE, FILE, TYPED, EMPTY = "An example", "A file", "Typed in", "Empty"
LINES = "age 0..99\nsex: Female, Male\nregion 12\nincome 0..9999 step 500"


def choose_source() -> None:
    """Widgets to replace the codebook."""
    source = st.segmented_control(
        "Start from", [EXAMPLE, FILE, TYPED, EMPTY], key="codebook source"
    )
    if source == EXAMPLE:
        _example()
    elif source == FILE:
        choose_file()
    elif source == TYPED:
        st.text_area(
            "One attribute a line: a name with its number of values, its range, or its categories",
            placeholder=LINES,
            key="typed",
            height=140,
        )
        st.button("Use this codebook", on_click=_take_typed)
    elif source == EMPTY:
        st.markdown("No attributes at all: add them one by one in the grid below.")
        st.button(
            "Start with an empty codebook",
            on_click=_take,
            args=(lambda: Domain(()), "an empty codebook"),
        )
    else:
        st.caption("Choose a source to replace the attributes below, or change them in the grid.")


def _example() -> None:
    titles = {example.title: example for example in EXAMPLES}
    title = st.radio(
        "Example",
        list(titles),
        key="codebook of example",
        horizontal=True,
    )
    example = titles[title]
    st.caption(escaped(example.summary))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Use the codebook of this example", on_click=_take_example, args=(example,))
        st.page_link("pages/home.py", label="Open it finished, with its tables and plans, on Home")


def _take_example(example: Example) -> None:
    """The codebook of an example, with the expected counts and the noun that belong to it."""
    _take(
        lambda: example.domain,
        f"the {example.title[0].lower()}{example.title[1:]}",
        record_noun=example.record_noun,
        expected=example.expected,
        public=(),
        survey=example.title,
    )


def _take_typed() -> None:
    text = st.session_state["typed"]
    _take(lambda: codebook_import.domain_from_lines(text), "the typed lines")


def _take(make: Callable[[], Domain], what: str, **more: Any) -> None:
    """Replace the codebook, and what else the scenario says of the records."""
    options = {"record_noun": "records", **more}
    if change_codebook(HERE, make, from_elsewhere=True, **options):
        say(HERE, "success", codebook_import.describe_loaded(current(), what))


# ---- A file for the Data page, dropped or chosen: what it is, and what of it can be used.


BOX = "codebook"
_CODEBOOKS = (
    "A codebook is a Frictionless Table Schema, a Data Package (datapackage.json), a CSV file or "
    "a spreadsheet (.xlsx, .ods) with the columns attribute and value, DDI (.xml), PX, or sizes "
    'such as {"age": 32}'
)
_HIERARCHY = "A hierarchy of τ-ARGUS (.hrc) gives an attribute its groups."
_FILES = (
    f"{_CODEBOOKS}, and the labels in a file of SPSS, Stata or SAS. Of a data file (CSV, Parquet "
    f"and these) the names of the columns are read, and none of the records. {_HIERARCHY}"
)
_PUBLIC_FILES = f"{_CODEBOOKS}. {_HIERARCHY}"
_NOT_TAKEN = (
    "Files with records, such as those of SPSS, Stata and SAS, are not taken. Make the codebook "
    "where they are (`rpexplore schema survey.sav --out codebook.json`), and upload that."
)


def choose_file() -> None:
    """A box to drop a file into, and a list of the files on this computer."""
    if plans_only():
        label, endings, help = "Drop a codebook or a plan", CODEBOOK_ENDINGS, _PUBLIC_FILES
    else:
        label, endings, help = "Drop a codebook, a plan or a data file", None, _FILES
    file = upload(label, endings, BOX, _take_dropped, help=help)
    if (
        plans_only()
    ):  # of other files the browser sends nothing, and says why only under the pointer
        st.caption(_NOT_TAKEN)
    dropped = None
    with suppress(RpexploreError), reading():  # said when it was dropped
        dropped = file and kept(_recognise, file.getvalue(), file.name, by=(file.file_id,))
    if isinstance(dropped, ColumnsFile | PackageFile | HierarchyFile | ForeignTable):
        _offer(dropped, file.name, file.getvalue)
        return
    if isinstance(dropped, CodebookFile) and dropped.others is not None:
        _offer_others(dropped.others, file.name)
        return
    if not plans_only():
        _choose_on_disk()


def _choose_on_disk() -> None:
    """A list of the files on this computer."""
    path = path_choice(
        "Or choose a file on this computer",
        "header path",
        data_files(codebooks),
        example="/data/survey.csv",
        help="A codebook or a data file. It stays where it is: nothing of it is uploaded, and of a "
        "data file the names and declared types of the columns are read.",
    )
    if path is None:
        return
    chosen = attempt(lambda: recognise_path(path))
    if not isinstance(chosen, OwnFile):
        _offer(chosen, path.name, lambda: _codebook_at(path))
    elif chosen.format == PLAN_FORMAT:
        st.button("Use this plan", on_click=_take_plan_at, args=(path,))
    else:
        st.error(escaped(_no_codebook(chosen, path.name)))


def _recognise(content: bytes, name: str) -> Recognised:
    return (recognise_public if plans_only() else recognise)(content, name)


def _codebook_at(path: Path) -> bytes:
    refuse_large(path.stat().st_size, path.name)
    return file_bytes(path, str(path), DomainError)


def _offer(
    file: CodebookFile | ColumnsFile | PackageFile | HierarchyFile | ForeignTable | None,
    name: str,
    content: Callable[[], bytes],
) -> None:
    """What a file holds, with a button to use it; of several tables one is chosen first.

    content: reads all of it
    """
    if isinstance(file, PackageFile):
        package = file
        table = st.selectbox("Table of the Data Package", package.tables, key="package table")
        file = attempt(lambda: package.table(table))
    if isinstance(file, ColumnsFile):
        choose_columns(file, name, None if plans_only() else content)
    elif isinstance(file, ForeignTable):
        say_what_columns_are(file)
    elif isinstance(file, HierarchyFile):
        _offer_groups(file)
    elif file is not None:
        st.markdown(escaped(codebook_import.describe_codebook(file.domain, file.kind)))
        if file.without_values:
            st.caption(escaped(_left_out(file)))
        for remark in file.remarks:
            st.caption(escaped(remark))
        st.button("Use this codebook", on_click=_take_codebook, args=(file, name))
        if file.others is not None:
            _offer_others(file.others, name)


def _offer_groups(file: HierarchyFile) -> None:
    """Which attribute the groups are of, those first that have all codes of the file."""
    domain = current().domain
    names = list(dict.fromkeys([*file.fitting(domain), *domain.names]))
    st.markdown(
        f"{escaped(file.filename)} groups {plural(len(file.paths), 'value')} of an attribute; "
        "values that are not in it keep their groups."
    )
    name = st.selectbox("Attribute with these values", names, key="attribute of groups")
    st.button("Use these groups", on_click=_take_groups, args=(file, name), disabled=not names)


def _take_groups(file: HierarchyFile, name: str) -> None:
    if change_codebook(HERE, lambda: with_hierarchy(current().domain, name, file)):
        say(HERE, "success", f"{name} has the groups of {file.filename}.")


def _offer_others(others: ColumnsFile, name: str) -> None:
    with st.expander("Other columns of this file"):
        choose_columns(others, name)


def _take_dropped(content: bytes, name: str) -> None:
    """Use a codebook or a plan at once; of a file with columns these are chosen first."""
    dropped = accepted(HERE, lambda: _recognise(content, name), "Nothing was changed.")
    if dropped is None:
        forget_upload(BOX)
    elif isinstance(dropped, CodebookFile):
        _take_codebook(dropped, name)
    elif isinstance(dropped, ColumnsFile | PackageFile | HierarchyFile | ForeignTable):
        return
    elif dropped.format == PLAN_FORMAT:
        _take_plan(content, name)
    else:
        say(HERE, "error", _no_codebook(dropped, name))


def _take_codebook(file: CodebookFile, name: str) -> None:
    survey = codebook_import.survey_named_after(name, current().survey)
    if not change_codebook(
        HERE, lambda: file.domain, from_elsewhere=True, record_noun="records", survey=survey
    ):
        return
    say(HERE, "success", codebook_import.describe_loaded(current(), f"{name} ({file.kind})"))
    for remark in file.remarks:
        say(HERE, "warning", remark)
    if file.without_values:
        say(HERE, "warning", _left_out(file))


def _take_plan_at(path: Path) -> None:
    content = accepted(
        HERE, lambda: file_bytes(path, str(path), DomainError), "Nothing was changed."
    )
    if content is not None:
        _take_plan(content, path.name)


def _take_plan(content: bytes, name: str) -> None:
    if not change(HERE, lambda: codebook_import.scenario_from_bytes(content, name, current())):
        return
    revision(GRID, step=True)
    st.session_state["typed list"] = None  # of the tables before this plan
    tables = plural(len(current().workload), "table")
    attributes = plural(len(current().domain), "attribute")
    say(
        HERE,
        "success",
        f"Opened {name}: {attributes}, {tables}. The scenario now has its codebook, tables, "
        "weights, targets, objective and budget.",
    )


def _left_out(file: CodebookFile) -> str:
    return describe_left_out(file.without_values, is_draft=file.others is not None)


def _no_codebook(file: OwnFile, name: str) -> str:
    return (
        f"{name} is no codebook, but a file of the kind {shown(file.format)}; a project is opened "
        "on Home. Nothing was changed."
    )


# ---- The columns of a file as attributes: by name only, or with the values in its records.


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
    if (
        content is not None
        and may_be_codebook
        and st.toggle(
            "It is a codebook, and its columns have other names",
            key=f"is codebook {name}",
            help="A public list with a row for each value. Its first rows are then read and shown, "
            "so leave this off for a file of records.",
        )
    ):
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


def say_what_columns_are(table: ForeignTable) -> None:
    """Widgets for what each column of a codebook is: guessed, and remembered by their names."""
    st.markdown("What are the columns of this codebook? Below are its first rows.")
    remembered = st.session_state.setdefault("roles of columns", {})
    known_columns = remembered.get(table.header)
    is_of_variables = "values" in known_columns if known_columns else table.seems_of_variables
    rows = ("One row a value", "One row an attribute")
    one_row = st.segmented_control(
        "What is a row?",
        rows,
        default=rows[is_of_variables],
        required=True,
        key=f"row of {table.header}",
    )
    roles, guess = ROLES, table.guess
    if one_row == rows[1]:
        roles, guess = ROLES_OF_VARIABLES, table.guess_of_variables
    if known_columns and roles[1] in known_columns:
        guess = known_columns
    columns: dict[str, str] = {}
    for role, place in zip(roles, st.columns(len(roles)), strict=True):
        offered = table.columns if role in roles[:2] else ["", *table.columns]
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
