"""Many queries at once on the Queries page: made from attributes, or loaded from a CSV file."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.components.queries.list import (
    HERE,
    MOST_LISTED,
    default_target,
    query_domain,
    replace_list,
)
from pages.components.shared.files import download, upload
from pages.components.shared.inputs import revision
from pages.components.shared.session import change, current, kept, say
from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.bases import Prefix, Ranges
from rpexplore.workload.query_definitions import StatedQueries
from rpexplore.workload.query_edits import with_queries
from rpexplore.workload.query_files import (
    crossed_queries,
    csv_of_coefficients,
    csv_of_conditions,
    csv_template,
    marginal_queries,
    stated_from_csv,
)
from rpexplore.workload.query_list import MAX_CELLS, QueryList

TABLES = "Every cell of small tables"
CUMULATIVE = "Cumulative counts"
RANGES = "Every range of values"


def builders() -> None:
    """Queries that are made from the attributes, and put behind the list."""
    domain = query_domain()
    if domain is None:
        return
    with st.expander("Add many at once"):
        kind = st.segmented_control(
            "What to add",
            [TABLES, CUMULATIVE, RANGES],
            default=TABLES,
            required=True,
            key="queries to add",
        )
        if kind == TABLES:
            most = st.number_input(
                "Attributes in a table, at most",
                min_value=0,
                max_value=len(domain),
                value=min(1, len(domain)),
                key=f"queries up to {len(domain)}",
            )
            args = (lambda: marginal_queries(domain, most),)
        else:
            left, right = st.columns(2)
            name = left.selectbox("Of the attribute", domain.names, key="queries along")
            by = right.multiselect(
                "for each combination of",
                [other for other in domain.names if other != name],
                key=f"queries by other than {name}",
                placeholder="nothing: for all together",
            )
            basis = Prefix() if kind == CUMULATIVE else Ranges()
            args = (lambda: crossed_queries(domain, name, basis, by),)
        st.button("Add to the list", on_click=_add, args=args)
        st.caption(
            "They get the target of counts without one of their own. What counts the same as a "
            "count of the list is left out."
        )


def _add(make: Callable[[], QueryList]) -> None:
    before = current().query_list

    def longer() -> Scenario:
        target = default_target()
        if target is None:
            raise WorkloadError("Own counts need a target; mend the one above first.")
        added = StatedQueries.of(make(), target)
        return current().replaced(query_list=with_queries(before, added))

    if change(HERE, longer):
        added = len(current().query_list or ()) - len(before or ())
        say(HERE, "success", f"Added {plural(added, 'own count')}.")


def csv_files() -> None:
    """A CSV file with conditions, or with a coefficient for each cell, in both directions."""
    domain = query_domain()
    if domain is None:
        return
    expander = st.expander("The list as a CSV file", key="query files", on_change="rerun")
    if not expander.open:
        return
    with expander:
        upload(
            "CSV with the columns name, condition and target, or with name, target and a column of "
            "numbers for each cell; it replaces the list",
            ["csv"],
            revision("query file"),
            partial(_load, domain),
        )
        with st.container(horizontal=True):
            _downloads(domain)
        st.caption(
            "With numbers, an own count can be any weighted sum of cells: 1 counts a cell, 0 does "
            "not, and 0.5, −1 or 2.25 weigh it."
        )


def _load(domain: Domain, content: bytes, name: str) -> None:
    had_one = current().query_list is not None
    if replace_list(lambda: stated_from_csv(domain, content, name, default_target())):
        back = " Undo brings the list before it back." if had_one else ""
        count = plural(len(current().query_list or ()), "own count")
        say(HERE, "success", f"Read {name}: {count}.{back}")


def _downloads(domain: Domain) -> None:
    """The list as CSV files, and a template for one."""
    stated = current().query_list
    if stated is not None:
        conditions = kept(_with_conditions, stated)
        if conditions is not None:
            download("own-counts.csv", conditions, "Download the list with conditions")
        if stated.queries.atoms is None:
            download(
                "own-counts-coefficients.csv",
                lambda: csv_of_coefficients(stated),
                "Download the list with numbers for cells",
            )
    if domain.n_cells <= MAX_CELLS:
        download(
            "own-counts-template.csv",
            lambda: csv_template(domain),
            "Download a template with numbers",
        )


def _with_conditions(stated: StatedQueries) -> str | None:
    try:
        return csv_of_conditions(stated) if len(stated) <= MOST_LISTED else None
    except WorkloadError:  # of a query that has no condition
        return None
