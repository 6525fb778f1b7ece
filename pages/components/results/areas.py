"""Results of areas: walked down from the top, one area or those of a level side by side."""

import streamlit as st

from pages.components.results.browser import browse_table
from pages.components.shared.area_walk import look_into, looked_into, way_down, way_up
from pages.components.shared.session import current, escaped, kept
from rpexplore.common.formatting import plural
from rpexplore.domain.named_areas import typed_area
from rpexplore.errors import DomainError
from rpexplore.planning.areas.area_sums import area_number
from rpexplore.postprocessing.areas.area_results import AreaResults, AreaTables
from rpexplore.postprocessing.publication import Publication
from rpexplore.workload.table_text import Table, title

_MOST_LISTED = 1000  # parts to choose from
_AT_ONCE = 500  # areas side by side
_ONE = -1  # in place of a level: the area itself


def browse_areas(results: AreaResults) -> Publication:
    """The way through the areas, what of them is shown, and a table of it.

    Returned is what of it is publishable.
    """
    tree, walk = results.tree, f"area of {results.release.home}"
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
    is_of_scenario = study is not None and study.domain == results.plan.domain
    noun = current().record_noun if is_of_scenario else "records"
    attributes = (*([tables.axis] if tables.axis else []), *table)
    publication = browse_table(tables, attributes, noun)
    _where_all_are(results, tables, table)
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


def _where_all_are(results: AreaResults, tables: AreaTables, table: Table) -> None:
    with st.expander("All areas of a level at once"):
        st.caption("Tables are Parquet files, of each level in a folder of its own; in Python:")
        st.code(tables.reading_lines(*table), language="python", wrap_lines=True)
