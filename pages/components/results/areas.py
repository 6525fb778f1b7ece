"""Results of areas: walked down from the top, sums over any areas, and whole counts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.results.browser import browse_table
from pages.components.results.files import table_downloads
from pages.components.results.postprocess import (
    BASES,
    POSTPROCESSING,
    rounding_choice,
    section,
    work_button,
)
from pages.components.shared.area_walk import look_into, looked_into, way_down, way_up
from pages.components.shared.background import follow_begun, worked_out
from pages.components.shared.charts import listing
from pages.components.shared.files import new_folder_input
from pages.components.shared.session import attempt, current, escaped, kept
from rpexplore.analysis.glossary import meaning
from rpexplore.common.processes import Progress
from rpexplore.common.text import plural
from rpexplore.domain.named_areas import lists_of_areas, totals_of_areas, typed_area, typed_lists
from rpexplore.domain.survey import Sampling
from rpexplore.errors import DomainError
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.areas.area_sums import AreaName, area_number
from rpexplore.results.area_results import AreaResults, AreaTables
from rpexplore.results.estimates.area_counts import area_guesses, whole_area_counts
from rpexplore.results.publication import Publication
from rpexplore.results.results import BEST_GUESSES
from rpexplore.workload.table_text import Table, title

# ---- Results of areas: walked down from the top, one area or those of a level side by side.


_MOST_LISTED = 1000  # parts to choose from
_AT_ONCE = 500  # areas side by side
_ONE = -1  # in place of a level: the area itself


def browse_areas(results: AreaResults, sampling: Sampling | None) -> Publication:
    """The way through the areas, what of them is shown, and a table of it.

    Returned is what of it is publishable. sampling: as of `browse_table`
    """
    tree, walk = results.tree, f"area of {results.release.named}"
    way_up(tree, walk)
    top = looked_into(tree, walk)
    parts = results.within(top, min(int(tree.level_of[top]) + 1, len(tree.levels) - 1))
    own = range(parts.start, parts.stop) if int(tree.n_parts[top]) else range(0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        way_down(tree, walk, own[:_MOST_LISTED])
        _find(results, walk)
    if len(own) > _MOST_LISTED:
        st.caption(
            f"Of {len(own):,} parts the first {_MOST_LISTED:,} are listed; go to others by their "
            "codes."
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        tables = _shown(results, top)
        table = _table(tables)
    if table is None:
        st.info("There is no table for these areas; look at those of another level.")
        return Publication()
    study = current().areas
    attributes_released = tuple(results.plan.domain)  # weights of the tables among them
    is_of_scenario = study is not None and all(
        attribute in attributes_released for attribute in study.domain
    )
    noun = current().record_noun if is_of_scenario else "records"
    attributes = (*([tables.axis] if tables.axis else []), *table)
    publication = browse_table(tables, attributes, noun, sampling, results.named)
    with st.expander("All areas of a level at once"):
        st.caption("Tables are Parquet files, of each level in a folder of its own; in Python:")
        st.code(tables.reading_lines(*table), language="python", wrap_lines=True)
    return publication


def _find(results: AreaResults, walk: str) -> None:
    """A box for the code of any area."""
    key = f"{walk}: code"

    def take() -> None:
        typed = st.session_state[key].strip()
        if not typed:
            return
        try:
            look_into(results.tree, walk, area_number(results.tree, typed_area(typed)))
        except DomainError as error:
            st.session_state[f"{key} refused"] = str(error)
        else:
            st.session_state[key] = ""

    st.text_input(
        "Or go to an area by its code",
        key=key,
        on_change=take,
        placeholder="code, or codes from the top with >",
        width=300,
    )
    if refused := st.session_state.pop(f"{key} refused", ""):
        st.error(escaped(refused))


def _shown(results: AreaResults, top: int) -> AreaTables:
    """The area itself, or the areas of a level within it, as many as can be looked at at once."""
    tree, own = results.tree, int(results.tree.level_of[top])
    areas = {level: results.within(top, level) for level in range(own + 1, len(tree.levels))}
    counts = {level: some.stop - some.start for level, some in areas.items()}
    texts = {_ONE: "the area itself"} | {
        level: f"{plural(count, 'area')} of the level {tree.levels[level]}, side by side"
        for level, count in counts.items()
        if count
    }
    if st.session_state.get(f"areas shown within {own}") not in texts:  # another area had it
        st.session_state.pop(f"areas shown within {own}", None)
    level = st.selectbox(
        "Show",
        list(texts),
        format_func=texts.__getitem__,
        key=f"areas shown within {own}",
        width=360,
    )
    if level == _ONE:
        return kept(results.of_area, top)
    some = areas[level]
    starts = range(some.start, some.stop, _AT_ONCE)
    if len(starts) > 1:
        first = st.selectbox(
            "Which",
            starts,
            format_func=lambda start: (
                f"{start - some.start + 1:,} to {min(start + _AT_ONCE, some.stop) - some.start:,}"
            ),
            key=f"first area within {top} on {level}",
            width=180,
        )
        some = slice(first, min(first + _AT_ONCE, some.stop))
    if len(tree.empty_on(level, top)):
        st.caption(
            f"{plural(len(tree.empty_on(level, top)), 'area')} of the level stated to be empty: "
            "exactly 0; the files of the release have them as well."
        )
    return kept(results.side_by_side, level, some)


def _table(tables: AreaTables) -> Table | None:
    """One of the tables that the areas have, chosen by the user; None where there is none."""
    names = [name[1:] if tables.axis else name for name in tables.table_names]
    if not names:
        return None
    titles = {title(name): name for name in names}
    key = "table of areas looked at"
    if st.session_state.get(key) not in titles:
        # One attribute first; the total alone says little.
        st.session_state[key] = title(min(names, key=lambda name: (not name, len(name))))
    chosen = st.selectbox("Table", list(titles), key=key, width=300, persist_state="session")
    return titles[chosen]


# ---- What is made of a release of areas: sums over any areas, and whole counts.


_FILES = ["csv", "parquet"]
_SUM_COLUMNS = {
    "list": Column("list", "text"),
    "value": Column("noisy count", "estimate"),
    "standard_error": COLUMNS["standard_error"],
    "lower_95": Column("95 % interval from", "estimate"),
    "upper_95": Column("95 % interval to", "estimate"),
}


def area_work(results: AreaResults) -> None:
    """Sums over lists of areas, and whole counts in a folder of their own."""
    st.subheader("More from this release")
    field = f"areas added up, of {results.named}"
    with section("Add up areas that are no area of the tree, such as a school district", field):
        _sums(results)
    st.markdown(f"{meaning('Post-processing')} The released tables stay as they are.")
    if follow_begun(POSTPROCESSING):
        return
    field = f"whole counts into, of {results.named}"
    with section("Make whole counts that are never negative and add up", field):
        _whole_counts(results, field)


def _sums(results: AreaResults) -> None:
    st.caption(
        "Unbiased, with exact standard errors. Areas of a list may be of any levels, but must not "
        "overlap."
    )
    typed = st.text_area(
        "Lists, one a line: a name, a colon, and codes of areas",
        key="lists of areas",
        persist_state="session",
        placeholder="Harbour school district: R030101, R030102",
        help="Each area by its own code, where no other has it, or by its codes from the top, such "
        "as R03 > R0301.",
    )
    file = st.file_uploader(
        "Or a file of lists",
        type=_FILES,
        key="file of lists of areas",
        help="One row an area of a list: a column list, and a column code or one for each level.",
    )
    tables = {title(table): table for table in results.plan.workload.tables.tables}
    table = tables[st.selectbox("Table to add up", list(tables), width=360)]
    lists = attempt(lambda: _lists(results, typed, file))
    if not lists:
        return
    by = (results, table, typed, None if file is None else file.getvalue())
    add_up = results.release.sums_of_areas
    sums = worked_out(add_up, lists, *table, doing="Adding up areas", by=by)
    if sums is None:
        return
    labels = {name: Column(name, "name") for name in sums if name not in _SUM_COLUMNS}
    columns = {"list": _SUM_COLUMNS["list"], **labels, **_SUM_COLUMNS}
    listing(sums, columns, "Sums over lists of areas")
    table_downloads(sums, "sums_of_areas.csv")


def _lists(results: AreaResults, typed: str, file: Any) -> dict[str, Iterable[AreaName]]:
    """The typed lists and those of the file."""
    lists: dict[str, Iterable[AreaName]] = {}
    lists.update(typed_lists(typed))
    if file is not None:
        lists.update(kept(lists_of_areas, results.tree, file.name, file.getvalue()))
    return lists


def _whole_counts(results: AreaResults, field: str) -> None:
    st.caption(
        "Whole numbers, none below 0; areas add up to what they are parts of, and all tables of an "
        "area agree. Biased, and labelled so in every row, beside the unbiased count and its "
        "interval. Single cells of small areas come nearer to the truth, totals hardly; sums of "
        "large cells are better taken from the unbiased counts."
    )
    guessed = st.radio(
        "How",
        [True, False],
        format_func=lambda guessed: BEST_GUESSES if guessed else "Nearest whole counts",
        key="how whole counts are made",
        horizontal=True,
        help="Best guesses draw each area towards the shares of the area around it, as far as what "
        "was measured is noise, and have model-based errors. The nearest whole counts use the "
        "counts of each area alone, and no error of them is known.",
    )
    base = 1 if guessed else rounding_choice([1, *BASES], "round whole counts")
    file = st.file_uploader(
        "Totals that are publicly known, to be met (optional)",
        type=_FILES,
        key="file of known totals",
        help="One row an area: a column total, and a column code or one for each level. They are "
        "not protected: give only what is public.",
    )
    totals: dict[AreaName, int] = {}
    if file is not None:
        known = attempt(lambda: kept(totals_of_areas, results.tree, file.name, file.getvalue()))
        if known is None:
            return
        totals |= known

    def work(on_progress: Progress, output: Path) -> None:
        if guessed:
            area_guesses(results.release, output, totals=totals, on_progress=on_progress)
        else:
            whole_area_counts(
                results.release, output, totals=totals, base=base, on_progress=on_progress
            )

    name = "best guesses" if guessed else "whole counts"
    proposed = Path(f"{results.named}-{'guesses' if guessed else 'whole'}")
    own_field = f"{field}: {name}"
    output = new_folder_input(f"Folder for the {name}", own_field, proposed)
    work_button(f"Make {name}", work, output, own_field, name)
