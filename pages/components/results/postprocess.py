"""Post-processing, each an explicit choice with its label; shrinkage; adaptive releases."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import streamlit as st

from pages.components.results.source import open_folder
from pages.components.shared.background import begin, follow_begun
from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.files import (
    data_files,
    new_folder_input,
    path_choice,
    paths_choice,
    released_folders,
)
from pages.components.shared.session import attempt, escaped, kept, say, show_messages
from rpexplore.analysis import released_cells as analysis
from rpexplore.analysis.glossary import meaning
from rpexplore.common.processes import Progress
from rpexplore.common.text import capitalised
from rpexplore.data.files.offered import ledgers
from rpexplore.domain.readings import READINGS
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.figures.fairness import shrinkage_chart
from rpexplore.releases.adaptive_release import BOUND_MEANING, AdaptiveRelease
from rpexplore.releases.items import PartReader
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import combine, write_combined
from rpexplore.results.duration import (
    nonnegative_seconds,
    rough_duration,
    smooth_seconds,
    writing_seconds,
)
from rpexplore.results.estimates.shrinkage import BY_SIZE
from rpexplore.results.known_release import KnownRelease
from rpexplore.results.known_totals import (
    far_from_measured,
    known_sentence,
    known_totals_from_csv,
    with_known_totals,
)
from rpexplore.results.processed_folder import postprocess, why_not_smooth
from rpexplore.results.processed_tables import Method, ProcessedTables
from rpexplore.results.results import load_any_results
from rpexplore.results.unbiased import Estimates
from rpexplore.serving.tasks import Task
from rpexplore.workload.table_text import title

HERE = "results"
POSTPROCESSING = "postprocessing"  # the work that goes on
_LEFT_OPEN = "section left open"  # the field of the one that is open at first
Work = Callable[[Progress, Path], object]


_UNBIASED = "unbiased"
_SECONDS: dict[Method | None, Callable[[TableRelease | Estimates], float]] = {
    None: writing_seconds,
    "nonnegative": nonnegative_seconds,
    "smooth": smooth_seconds,
}


def postprocessing(source: TableRelease | Estimates, whole: PartReader, folder: Path) -> None:
    """What can be made of unbiased tables; whole: all parts that they are of; folder: of these."""
    st.subheader("Post-processing")
    st.markdown(
        f"{meaning('Post-processing')} The released tables stay as they are; new ones go to a "
        "folder of their own, with a label."
    )
    if follow_begun(POSTPROCESSING):
        return
    field = f"processed into, of {folder}"
    with section("Make counts smooth, nonnegative or whole", field):
        _processing(source, folder, field)
    _combining(whole, folder)


def combining(whole: PartReader, folder: Path) -> None:
    """Combining, where no tables are processed; not while something else is being made."""
    if POSTPROCESSING not in st.session_state:
        st.subheader("Combining")
        _combining(whole, folder)


@contextmanager
def section(title: str, field: str) -> Iterator[None]:
    """A part of the page that makes a folder; it stays open, and says why, if that went wrong.

    field: key of the folder's field
    """
    with st.expander(title, expanded=st.session_state.get(_LEFT_OPEN) == field):
        show_messages(field)
        yield


def leave_open(field: str) -> None:
    """Have the part with this folder's field open, from the next run on."""
    st.session_state[_LEFT_OPEN] = field


BASES = (3, 5, 10)
"""Multiples that counts are offered to be rounded to."""


def rounding_choice(offered: Sequence[int], key: str) -> int:
    """0: counts stay as they are; 1: whole numbers; else multiples of the number."""
    return st.radio(
        "Rounding",
        offered,
        format_func=lambda base: {0: "None", 1: "Whole numbers"}.get(base, f"Multiples of {base}"),
        key=key,
        horizontal=True,
        persist_state="session",
        help="Multiples are for reading: they protect nobody, the noise does.",
    )


def _processing(source: TableRelease | Estimates, folder: Path, field: str) -> None:
    at_levels = bool(source.trees)
    methods: list[Method | None] = ["nonnegative"] if at_levels else list(_SECONDS)
    method = st.radio(
        "Counts, and what to publish them for",
        methods,
        format_func=lambda method: READINGS[method or _UNBIASED].name,
        captions=[READINGS[method or _UNBIASED].use for method in methods],
        key="counts to make",
        persist_state="session",
    )
    reading = READINGS[method or _UNBIASED]
    st.caption(f"{capitalised(reading.what)}. {capitalised(reading.trust)}.")
    base = rounding_choice([0, 1, *BASES], "make whole")
    agree = (
        "All tables agree, at all levels of an attribute."
        if at_levels
        else "All tables have the same total, and tables of two attributes the totals of those of "
        "one; the README of the folder names tables whose totals differ."
    )
    st.caption(
        f"{agree} Most counts change by less than 1. Biased: small counts may go to 0 together."
    )

    file = st.file_uploader(
        "Totals that are publicly known, to be met (optional)",
        type=["csv"],
        key="file of known totals of tables",
        help="A column total, and a column for each attribute that totals are by (age@adult for a "
        "level), empty in rows of all its values. They are not protected: give only what is "
        "public.",
    )
    known = None
    if file is not None:
        known = attempt(lambda: kept(_with_totals, source, file.name, file.getvalue()))
        if known is None:
            return
        st.caption(escaped(known_sentence(known.known_tables)))
        if doubt := kept(far_from_measured, source, known):
            st.warning(escaped(doubt))
        smooth = method == "smooth" and not known.known_totals
        if smooth and (reason := kept(why_not_smooth, known)):
            st.error(escaped(reason))
            return

    rounded = base if base > 1 else base == 1

    def work(on_progress: Progress, output: Path) -> None:
        if isinstance(known, Estimates) and method is None and not base:
            write_combined(known, output, on_progress=on_progress)
            return
        postprocess(
            known or source, output, method=method, rounded=rounded, on_progress=on_progress
        )

    output = new_folder_input("Folder for the processed tables", field, Path(f"{folder}-processed"))
    is_chosen = method is not None or base or known is not None
    if is_chosen:
        told_beforehand(kept(_SECONDS[method], source))
    else:
        st.caption(
            "Unbiased counts are those of the release; choose others, whole numbers or known "
            "totals."
        )
    work_button("Make the processed tables", work, output if is_chosen else None, field)


def _with_totals(
    source: TableRelease | Estimates, name: str, content: bytes
) -> Estimates | KnownRelease:
    return with_known_totals(source, known_totals_from_csv(source, name, content))


def _combining(whole: PartReader, folder: Path) -> None:
    field = f"combined into, of {folder}"
    with section("Combine with other releases of the same records", field):
        _combining_all(whole, folder, field)


def _combining_all(whole: PartReader, folder: Path, field: str) -> None:
    st.markdown(
        "What several releases measured is averaged by its accuracy, tables with tables, areas "
        "with areas and own counts with own counts. The results are the most accurate unbiased "
        "figures that all releases give, with exact errors; parts that only one release has are "
        "taken over, and the budgets of the releases add up. You vouch that they are of the same "
        "records: nothing in them can show it."
    )
    others = paths_choice(
        "Other releases",
        "combined with",
        released_folders(),
        help="Folders of releases, or of combined tables.",
    )
    ledger = path_choice(
        "Ledger (optional)",
        "ledger of combined",
        data_files(ledgers),
        example="/data/rpexplore-ledger.sqlite",
        help="Releases that it knows to be of different records are refused. Typed, it can be "
        "postgresql:NAME as well.",
    )

    def work(on_progress: Progress, output: Path) -> None:
        parts: list[PartReader] = [whole]
        for index, other in enumerate(others):
            on_progress(f"Reading {other.name}", 0.3 * index / len(others))
            parts.append(load_any_results(other))
        on_progress("Combining them", 0.3)
        combined = combine(*parts, ledger=None if ledger is None else str(ledger))
        write_combined(
            combined,
            output,
            on_progress=lambda doing, share: on_progress(doing, 0.4 + 0.6 * share),
        )

    output = new_folder_input("Folder for the combined tables", field, Path(f"{folder}-combined"))
    if others and (tables := {one.kind: one for one in whole.readers}.get("tables")) is not None:
        told_beforehand(kept(writing_seconds, tables))
    work_button("Combine them", work, output if others else None, field)


def told_beforehand(seconds: float) -> None:
    """How long work takes, in words."""
    st.caption(
        f"Takes {rough_duration(seconds)} if nothing else runs on this computer, and several times "
        "as long if much does. Its steps are shown, and it can be cancelled."
    )


def work_button(
    label: str, work: Work, output: Path | None, field: str, noun: str = "tables"
) -> None:
    """A button that starts the work on a new folder; None: it cannot be started yet.

    field: key of the folder's field; noun: what the folder will hold
    """
    args = (work, output, field, noun)
    st.button(label, disabled=output is None, on_click=_begin, args=args)


def _begin(work: Work, output: Path, field: str, noun: str) -> None:
    """Start making a folder, unless one is being made: a second click comes here too."""

    def at_end(task: Task[object]) -> None:
        if task.error:
            say(field, "error", task.error)
            leave_open(field)
            return
        st.session_state.pop(field, None)
        open_folder(output)
        say(HERE, "success", f"Finished: the {noun} are in {output}.")

    if POSTPROCESSING not in st.session_state:
        st.session_state.pop(_LEFT_OPEN, None)
        begin(POSTPROCESSING, lambda on_progress: work(on_progress, output), at_end)


# ---- How far smooth tables were shrunk: by group, by size of the counts, and table by table.


VALUES, SIZES, TABLES = "Values of an attribute", "Size of the smooth count", "Tables"


def shrinkage(tables: ProcessedTables) -> None:
    """How far groups are from their unbiased counts, and what was kept of each measurement."""
    st.subheader("How far counts were smoothed")
    st.markdown(
        "Smoothing takes differences from small groups first. Here is how far smooth counts are "
        "from the unbiased ones, in standard errors (root mean square). At 1 no more than noise "
        "was taken away. Clearly above 1, real differences went with it; above 1.41 the unbiased "
        "counts of a group are more accurate than its smooth ones."
    )
    attributes = tables.attributes
    by = st.radio(
        "By",
        [VALUES, SIZES, TABLES] if attributes else [SIZES],
        key="smoothed by",
        horizontal=True,
        persist_state="session",
    )
    if by == TABLES:
        _by_table(tables)
        return
    groups = kept(_groups, tables)
    if by == SIZES:
        attribute, kind, file = BY_SIZE, "smooth counts", "smoothed_by_size.csv"
    else:
        far = analysis.farthest_group(groups.loc[groups["attribute"] != BY_SIZE, :])
        # Of these tables: others have another attribute to begin with.
        attribute = kind = st.selectbox(
            "Attribute",
            attributes,
            attributes.index(far["attribute"]),
            key=f"smoothed by attribute of {tables.folder}",
        )
        file = "smoothed_by_value.csv"
    of_attribute = groups.loc[groups["attribute"] == attribute, :]
    chart_with_numbers(shrinkage_chart(of_attribute, kind, file))


def _groups(tables: ProcessedTables) -> pd.DataFrame:
    return tables.shrinkage_by_group


def _by_table(tables: ProcessedTables) -> None:
    """What was kept of each measurement, and where smoothing gains next to nothing."""
    frame = tables.shrinkage
    st.markdown(escaped(analysis.describe_kept(frame)))
    st.markdown(escaped(analysis.describe_gains(frame)))
    columns = {
        "table": COLUMNS["table"],
        "smoothing_gains": Column("smoothing gains", "text"),
        "share_kept": Column("share kept", "share", term="Share kept"),
        "standard_error": COLUMNS["standard_error"],
        "model_error": Column("model-based error", term="Model-based error"),
        "order": COLUMNS["order"],
        "cells": COLUMNS["cells"],
    }
    frame = frame.assign(table=[" × ".join(names) for names in frame["attributes"]])
    frame = frame.drop(columns="attributes")
    frame = frame.sort_values("share_kept", kind="stable", ignore_index=True)
    numbers(frame, columns, "smoothed_tables.csv", "What smoothing kept and gains, by table")


# ---- Of an adaptive release: how far each table can be from the truth, and what rounds selected.


BOUND_COLUMNS = {
    "table": Column("table", "text"),
    "bound": Column("all errors together, 95 %", "text"),
    "measured": Column("all of it measured", "text"),
}
SELECTED_COLUMNS = {
    "round": Column("round", "count"),
    "drawn": Column("drawn as", "count"),
    "table": Column("selected and measured", "text"),
}


def how_it_came_about(release: AdaptiveRelease, record_noun: str) -> None:
    """The bound of each table, what each round selected, and what cannot be made of all this."""
    st.subheader("How far each table can be from the truth", help=BOUND_MEANING)
    bounds = release.bounds.assign(bound=release.describe_bounds(record_noun))
    # The smallest first; those without one last.
    bounds = bounds.sort_values("error_bound_95", kind="stable")
    columns = {
        "table": list(map(title, bounds["attributes"])),
        "bound": bounds["bound"],
        "measured": ["yes" if one else "no" for one in bounds["measured"]],
    }
    numbers(pd.DataFrame(columns), BOUND_COLUMNS, "bounds.csv", "The bound of every table")
    st.subheader("What the rounds selected")
    selected = release.selections
    columns = {
        "round": selected["round"],
        "drawn": selected["drawn"],
        "table": list(map(title, selected["attributes"])),
    }
    numbers(pd.DataFrame(columns), SELECTED_COLUMNS, "rounds.csv", "What was selected")
    st.info(
        "Unbiased counts, subtotals with exact errors, nonnegative or whole tables and "
        "combinations with other releases are made of releases whose plan is not adaptive."
    )
