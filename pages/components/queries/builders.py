"""Many queries at once on the Queries page: all small tables, cumulative counts, every range."""

import streamlit as st

from pages.components.queries.query_lines import HERE, default_target, domain
from pages.components.shared.session import change, current, say
from rpexplore.analysis.query_outcomes import describe_queries
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.builders import cumulative_queries, marginal_queries, range_queries
from rpexplore.queries.edits import with_queries
from rpexplore.queries.query_list import QueryList

TABLES, CUMULATIVE, RANGES = "tables", "cumulative", "ranges"
NAMES = {
    TABLES: "Every cell of small tables",
    CUMULATIVE: "Cumulative counts",
    RANGES: "Every range of values",
}


def add_many() -> None:
    """Queries that are made from the attributes, and put behind the list."""
    about = domain()
    if about is None:
        return
    with st.expander("Add many at once"):
        kind = st.segmented_control(
            "What to add",
            list(NAMES),
            format_func=NAMES.__getitem__,
            default=TABLES,
            required=True,
            key="queries to add",
        )
        if kind == TABLES:
            st.number_input(
                "Attributes in a table, at most",
                min_value=0,
                max_value=len(about),
                value=min(1, len(about)),
                key=f"queries up to {len(about)}",
            )
        else:
            left, right = st.columns(2)
            name = left.selectbox("Of the attribute", about.names, key="queries along")
            right.multiselect(
                "for each combination of",
                [each for each in about.names if each != name],
                key=f"queries by other than {name}",
                placeholder="nothing: for all together",
            )
        st.button("Add to the list", on_click=_add, args=(about, kind))
        st.caption(
            "They get the target of queries without one of their own. What counts the same as a "
            "query of the list is left out."
        )


def _add(about: Domain, kind: str) -> None:
    before = current().query_list

    def make() -> QueryList:
        if kind == TABLES:
            return marginal_queries(about, int(st.session_state[f"queries up to {len(about)}"]))
        name = st.session_state["queries along"]
        by = st.session_state[f"queries by other than {name}"]
        return (cumulative_queries if kind == CUMULATIVE else range_queries)(about, name, by)

    def longer():
        target = default_target()
        if target is None:
            raise WorkloadError("Queries need a target; mend the one above first.")
        return current().replaced(query_list=with_queries(before, make(), target))

    if change(HERE, longer):
        now = current().query_list
        added = len(now or ()) - len(before or ())
        say(HERE, "success", f"Added {describe_queries(added)}.")
