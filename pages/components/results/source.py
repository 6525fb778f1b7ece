"""What the Results page looks at: the release of this project, or what a folder holds."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.components.release.release_task import project_task
from pages.components.shared.autosave import PARAMETER, autosaves, is_saved, open_key, save_project
from pages.components.shared.background import worked_out
from pages.components.shared.files import finished_at, path_choice, released_folders
from pages.components.shared.session import current, escaped, kept, project
from rpexplore.common.text import capitalised
from rpexplore.domain.levels import AT
from rpexplore.domain.readings import WARNINGS
from rpexplore.planning.plan import TITLES
from rpexplore.releases.manifest import MANIFEST, read_manifest
from rpexplore.results.estimates.area_counts import KIND as WHOLE_COUNTS
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.results import (
    Results,
    ShownTables,
    load_any_results,
    load_area_results,
    readings_of,
    source_folder,
)
from rpexplore.results.synthetic.area_records import KIND as AREA_RECORDS
from rpexplore.results.synthetic.area_records import AreaRecords
from rpexplore.results.synthetic.records import KIND as SYNTHETIC
from rpexplore.results.synthetic.records import SyntheticRecords

SESSION, FOLDER = "The release of this project", "A folder"
_PROJECT, _NOTED = "results of project", "results noted"  # its key, and what is noted with it


@dataclass(frozen=True, eq=False)
class Shown:
    """What the page looks at.

    part    a part of a release, or what was made of releases
    whole   all that the folder holds
    folder  where it is
    """

    part: Any
    whole: Any
    folder: Path


def results_source() -> Shown | None:
    """What to look at; None, which the page explains, while there is nothing.

    The label of what is biased stands above all.
    """
    _recall()
    top = st.container()
    task = project_task()
    release = None if task is None else task.result
    if release is not None:
        choices = [SESSION, FOLDER]
        chosen = st.radio(
            "Results of", choices, key="results from", horizontal=True, persist_state="session"
        )
        if chosen == SESSION:
            st.caption(escaped(str(release.folder.absolute())))
            _note(release.folder.absolute())
            return _shown(release, release.folder, top)
    folder = _folder()
    if folder is None:
        if not st.session_state["results folder"]:
            _note(None)
        return None
    others = tuple(released_folders().names)
    doing, by = f"Reading {folder.name}", (folder, finished_at(folder))
    results = worked_out(_load, folder, others, doing=doing, by=by)
    if results is None:
        return None
    _note(folder)
    if kept(_is_of_project, open_key(), folder):
        st.caption(SESSION)
    return _shown(results, folder, top)


def _shown(results: Any, folder: Path, top: DeltaGenerator) -> Shown:
    """One of the parts of what a folder holds, chosen by the user where there are several."""
    part = results.readers[0]
    if len(results.readers) > 1:
        kinds = {one.kind: one for one in results.readers}
        chosen = st.segmented_control(
            "Part of the release",
            list(kinds),
            format_func=lambda kind: TITLES[kind],
            default=part.kind,
            required=True,
            key="part of results",
            persist_state="session",
        )
        part = kinds.get(chosen, part)
    with top:
        _label(part)
    return Shown(part, results, folder)


def _is_of_project(key: str, folder: Path) -> bool:
    """Whether the release of a project, which is found again after a reload, is in the folder."""
    last = autosaves().last_release(key)
    return last is not None and last.folder == folder


def open_folder(folder: Path) -> None:
    """Have the page look at a folder, from its next run on."""
    st.session_state["results from"] = FOLDER
    st.session_state["results folder"] = str(folder)
    st.session_state[_PROJECT] = open_key()


def _recall() -> None:
    """Look at what was last looked at with this project, after a reload or in another project."""
    key = open_key()
    if st.session_state.get(_PROJECT) == key:
        return
    noted = autosaves().results_folder(key)
    st.session_state["results folder"] = "" if noted is None else str(noted)
    st.session_state[_PROJECT], st.session_state[_NOTED] = key, noted


def _note(folder: Path | None) -> None:
    """Note what is looked at beside the saved project, which is saved if it was not yet."""
    if st.session_state.get(_NOTED) == folder:
        return
    if not is_saved():
        save_project(project())
        st.query_params[PARAMETER] = open_key()  # for a reload
    with suppress(OSError):  # without the note the folder is chosen again
        autosaves().save_results_folder(open_key(), folder)
    st.session_state[_PROJECT], st.session_state[_NOTED] = open_key(), folder


def record_noun_of(source: Results) -> str:
    """What a record stands for, if these tables can be those of the open scenario."""
    return current().record_noun if is_of_current(source) else "records"


def is_of_current(source: ShownTables) -> bool:
    """Whether these tables can be those of the open scenario."""
    names = set(current().domain.names)  # without those of levels, such as age@five-year
    return all(names & {name, name.partition(AT)[0]} for name in source.attributes)


def _load(folder: Path, others: tuple[Path, ...]) -> Any:
    kind = read_manifest(folder).get("format")
    if kind == SYNTHETIC[0]:
        return SyntheticRecords.load(folder)
    if kind == AREA_RECORDS[0]:
        return AreaRecords.load(folder)
    if kind == WHOLE_COUNTS[0]:
        return load_area_results(folder, others)
    return load_any_results(folder)


def _folder() -> Path | None:
    folder = path_choice(
        "Folder with the results",
        "results folder",
        released_folders(),
        example="releases/survey-2026-11-22",
        help="Of a release, of combined or processed tables, or of synthetic records. Every file "
        "is checked against what was written.",
    )
    if folder is None:
        st.info("Run a release, or choose its folder.")
        return None
    if not os.path.isdir(folder):
        st.error(escaped(f"There is no folder {folder.absolute()}; check the path."))
        return None
    return folder.absolute()


_UNBIASED = "Unbiased"


def reading_choice(shown: Shown) -> None:
    """Which reading of the tables is shown, where several were made: each is a folder."""
    folder, origin = shown.folder.absolute(), shown.folder.absolute()
    if shown.part.kind == "processed":
        origin = kept(origin_of, shown.part)
    elif shown.part.kind == "whole areas":
        origin = shown.part.release.named
    if origin is None:
        return
    beside = [path.parent for path in sorted(origin.parent.glob(f"*/{MANIFEST}"))]
    others = dict.fromkeys([folder, *beside, *released_folders().names])
    folders = {_UNBIASED: origin, **kept(readings_of, origin, tuple(others))}
    if len(folders) == 1:
        return
    now = next((name for name, own in folders.items() if own.absolute() == folder), None)
    key = "reading of results"

    def take() -> None:
        if chosen := st.session_state[key]:
            open_folder(folders[chosen].absolute())

    st.session_state[key] = now
    st.segmented_control(
        "Counts",
        list(folders),
        key=key,
        on_change=take,
        help="Unbiased counts have exact errors and may be negative. Best guesses are nearer to "
        "the truth if their model holds, and biased. Whole numbers are biased, and read easily.",
    )


def origin_of(results: ProcessedTables | SyntheticRecords | AreaRecords) -> Path | None:
    sources = results.manifest["sources"]
    # Beside it first, where the app proposes to make it.
    beside = [results.folder.parent / source["name"] for source in sources]
    kind = "areas" if isinstance(results, AreaRecords) else "tables"
    return source_folder(sources, [*beside, *released_folders().names], kind)


def _label(part: Any) -> None:
    """What results are, if they are not unbiased; own counts say it beside them."""
    if part.kind == "counts":
        return
    are_records = part.kind in ("synthetic", "area records")
    if are_records:
        said = WARNINGS[part.kind]
    elif part.kind == "whole areas":
        said = WARNINGS["best guesses" if part.is_smooth else part.kind]
    elif part.kind == "rounds":
        said = (
            f"**Adaptive release:** {escaped(part.label)}. To add up or compare counts, use a "
            "release of unbiased tables."
        )
    elif part.kind == "processed":
        said = f"{escaped(part.label)}."
        if part.is_smooth:
            said = (
                f"{escaped(part.steps)}. ± in the crosstab is model-based, and nothing guarantees "
                "it. The 95 % intervals in the list and in charts are those of the unbiased "
                "counts, and hold whatever the model."
            )
        said = (
            f"**Processed tables:** {said} To add up or compare counts, use the unbiased ones: of "
            "the release, or in the list of each table."
        )
    else:
        st.caption(escaped(capitalised(part.label)))
        return
    st.warning(said, icon=":material/label_important:")
    if are_records and (origin := kept(origin_of, part)) is not None:
        st.button(
            f"Open the source: {escaped(origin.name)}",
            icon=":material/arrow_back:",
            on_click=open_folder,
            args=(origin,),
        )
