"""Where the areas come from: the sample country, files; and what their levels are like."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.areas.study import HERE, open_study, study
from pages.components.shared.area_levels import area_levels
from pages.components.shared.autosave import autosaves
from pages.components.shared.background import Task, begin, finish
from pages.components.shared.file_choice import data_files, path_choice
from pages.components.shared.files import upload_several
from pages.components.shared.serving import plans_only
from pages.components.shared.session import escaped, open_beside, project, say
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import plural
from rpexplore.data.files.offered import codebooks
from rpexplore.data.files.public_files import refuse_records_beside
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.errors import DomainError
from rpexplore.scenarios.area_example import COUNTRY, sample_project
from rpexplore.scenarios.area_study import AreaStudy

READING = "areas task"
_PATIENCE = 2.0  # seconds a click waits for small files before their progress is shown
_BOX = "area files"


def choose_areas() -> None:
    """The sample country by a click, files to drop, and files on this computer."""
    st.markdown(
        "Areas are a codebook in which one attribute is a **tree**: a country with its regions "
        "and municipalities, or a classification such as NACE or ICD-10. It is public knowledge; "
        "no records are needed."
    )
    st.button(
        "Open the sample country",
        icon=":material/map:",
        type="primary",
        on_click=lambda: open_beside(sample_project()),
        help=f"{COUNTRY} It opens in a project of its own; earlier work is kept.",
    )
    upload_several(
        "Drop a codebook together with its file of areas",
        ["json", "csv", "parquet"] if plans_only() else None,
        _BOX,
        _take_dropped,
        help="A JSON codebook of which one attribute names a file of areas, and that file: CSV or "
        "Parquet with a column for each level, with whole codes, or with codes and their parents.",
    )
    other_areas()
    if not plans_only():
        _choose_on_disk()


def _choose_on_disk() -> None:
    """A list of the codebooks on this computer."""
    path = path_choice(
        "Or choose a codebook on this computer",
        "areas path",
        data_files(codebooks),
        example="/data/register.json",
        help="A JSON codebook, beside which its file of areas lies.",
    )
    if path is not None:
        st.button("Open these areas", on_click=_take_path, args=(path,))


def other_areas() -> None:
    """Those of other scenarios of the project, each to be taken by a click, tables and all."""
    studies = {
        scenario.areas: scenario.name
        for scenario in project().scenarios
        if scenario.areas is not None and scenario.areas != study()
    }
    for number, (opened, name) in enumerate(studies.items()):
        st.button(
            f"Take {escaped(opened.filename)} as in “{escaped(name)}”",
            key=f"areas of another {number}",
            on_click=open_study,
            args=(opened,),
        )


def levels(opened: AreaStudy) -> None:
    """The levels of the areas, and how to open others."""
    area_levels(opened)
    st.button("Open other areas", on_click=open_study, args=(None,), icon=":material/folder_open:")


def _take_path(path: Path) -> None:
    _begin(path.name, lambda: AreaCodebook.load(path))


def _take_dropped(files: Sequence[Any]) -> None:
    contents = {Path(file.name).name: file.getvalue() for file in files}
    found = [name for name in contents if name.lower().endswith(".json")]
    if len(found) != 1:
        say(
            HERE,
            "error",
            f"Drop one JSON codebook and the file of areas that it names together; got "
            f"{plural(len(found), 'JSON file')} among {plural(len(contents), 'file')}.",
        )
        return
    (name,) = found
    if len(contents) == 1:
        # The two may come one after the other: the first alone is no mistake yet.
        say(HERE, "info", f"Now add the file of areas that {name} names to the same box.")
        return
    _begin(name, lambda: _read_dropped(contents, name))


def _read_dropped(contents: Mapping[str, bytes], name: str) -> AreaCodebook:
    beside = {other: content for other, content in contents.items() if other != name}
    if plans_only():
        refuse_records_beside(contents[name], name, beside)
    return AreaCodebook.from_files(contents[name], name, beside)


def _begin(name: str, load: Callable[[], AreaCodebook]) -> None:
    """Read areas outside the script thread: a country may have millions."""

    def read(on_progress: Progress) -> AreaStudy:
        on_progress("Reading the areas", 0.0)
        try:
            opened = AreaStudy.of(name, load())
        except DomainError as error:
            raise DomainError(f"{error} Nothing was opened.") from None
        on_progress("Keeping them beside the project", 0.6)
        with suppress(OSError):  # the page says so when it saves the project
            autosaves().save_tree(opened.areas.tree)
        return opened

    def use(task: Task[AreaStudy]) -> None:
        if task.result is None:
            say(HERE, "error", task.error)
        else:
            open_study(task.result)

    begin(READING, read, use).wait(_PATIENCE)
    finish(READING)
