"""Where a codebook comes from: an example, a file, typed lines, nothing."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.codebook.attributes import GRID, HERE, change_codebook
from pages.components.codebook.file_columns import choose_columns, say_what_columns_are
from pages.components.shared.files import data_files, forget_upload, path_choice, upload
from pages.components.shared.inputs import revision
from pages.components.shared.session import attempt, change, current, escaped, kept, say
from rpexplore.common.files import file_bytes
from rpexplore.common.numbers import shown
from rpexplore.common.text import plural
from rpexplore.data.files.columns import (
    CodebookFile,
    ColumnsFile,
    OwnFile,
    PackageFile,
    Recognised,
    recognise,
    recognise_path,
)
from rpexplore.data.files.offered import CODEBOOK_ENDINGS, codebooks, recognise_public
from rpexplore.domain.codebook_columns import ForeignTable
from rpexplore.domain.codebook_formats import refuse_large
from rpexplore.domain.codebook_remarks import describe_left_out
from rpexplore.domain.domain import Domain
from rpexplore.domain.hierarchy_file import HierarchyFile, with_hierarchy
from rpexplore.errors import DomainError, RpexploreError
from rpexplore.planning.plan import FORMAT as PLAN_FORMAT
from rpexplore.scenarios import codebook_import
from rpexplore.scenarios.examples import EXAMPLES, Example
from rpexplore.serving.sessions import plans_only, reading

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
    try:
        dropped = _recognise(content, name)
    except RpexploreError as error:
        say(HERE, "error", f"{error} Nothing was changed.")
        forget_upload(BOX)
        return
    if isinstance(dropped, CodebookFile):
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
    try:
        content = file_bytes(path, str(path), DomainError)
    except RpexploreError as error:
        say(HERE, "error", f"{error} Nothing was changed.")
        return
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
