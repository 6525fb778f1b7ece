"""The list of the Queries page as CSV: brought in, taken out, and a template."""

import streamlit as st

from pages.components.queries.query_lines import (
    HERE,
    MOST_LISTED,
    default_target,
    domain,
    replace_list,
)
from pages.components.shared.session import current, kept, revision, say
from rpexplore.analysis.query_outcomes import describe_queries
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.queries.csv_files import (
    csv_of_coefficients,
    csv_of_conditions,
    csv_template,
    stated_from_csv,
)
from rpexplore.queries.definitions import StatedQueries


def as_files() -> None:
    """A CSV file with conditions, or with a coefficient for each cell, in both directions."""
    about = domain()
    if about is None:
        return
    shown = st.expander("The list as a CSV file", key="query files", on_change="rerun")
    if not shown.open:
        return
    with shown:
        key = revision("query file")
        st.file_uploader(
            "CSV with the columns name, condition and target, or with name, target and a column of "
            "numbers for each cell; it replaces the list",
            type=["csv"],
            key=key,
            on_change=_load,
            args=(about, key),
        )
        line = st.container(horizontal=True)
        stated = current().query_list
        if stated is not None:
            by_condition = kept("query csv", (stated,), lambda: _by_condition(stated))
            if by_condition is not None:
                _button(line, "the list with conditions", "query-conditions.csv", by_condition)
            _button(
                line,
                "the list with numbers for cells",
                "query-coefficients.csv",
                lambda: csv_of_coefficients(stated),
            )
        _button(line, "a template with numbers", "query-template.csv", lambda: csv_template(about))
        st.caption(
            "With numbers, a query can be any weighted sum of cells: 1 counts a cell, 0 does not, "
            "and 0.5, −1 or 2.25 weigh it."
        )


def _load(about: Domain, key: str) -> None:
    file = st.session_state[key]
    if file is None:
        return
    had_one = current().query_list is not None
    try:
        stated = stated_from_csv(about, file.getvalue(), file.name, default_target())
    except RpexploreError as error:
        say(HERE, "error", f"{error} Nothing was changed.")
        return
    if replace_list(stated):
        back = " Undo brings the list before it back." if had_one else ""
        say(HERE, "success", f"Read {file.name}: {describe_queries(len(stated))}.{back}")


def _by_condition(stated: StatedQueries) -> str | None:
    try:
        return csv_of_conditions(stated) if len(stated) <= MOST_LISTED else None
    except WorkloadError:  # of a query that has no condition
        return None


def _button(line, what: str, file: str, content) -> None:
    line.download_button(f"Download {what}", content, file, "text/csv", on_click="ignore")
