"""The list on the Queries page, as lines of text."""

import streamlit as st

from pages.components.shared.session import bind, change, current, escaped, kept, revision
from rpexplore.analysis.query_outcomes import describe_queries
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.queries.definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.queries.edits import choosable, chosen_domain, domain_of_text, example_text
from rpexplore.workload.targets import NOTATIONS, Target, parse_target

HERE = "queries"
MOST_LISTED = 1000  # queries that can be edited as text
USUAL_TARGET = "±20"
# As plain text: code in a caption would be too faint to read.
NOTATION = (
    "Conditions compare attributes with values, as in age >= 18, 18 <= age < 65 or "
    'region in ("north", "south"), joined by &, |, ! and brackets; total counts everybody. '
    f"Targets: {NOTATIONS}, behind ± or @. Name and target may be left out."
)
CHOSEN = "query attributes"  # in the session: those chosen for a list that is not there yet
_TYPED = "typed queries"


def domain() -> Domain | None:
    """What the queries are about: the list's attributes, or those chosen for one; None: nothing."""
    scenario = current()
    if scenario.query_list is not None:
        return scenario.query_list.queries.domain
    chosen = [each for each in st.session_state.get(CHOSEN, ()) if each in scenario.domain]
    try:
        return chosen_domain(scenario.domain, chosen) if chosen else None
    except RpexploreError:  # the codebook has changed since they were chosen
        return None


def replace_list(stated: StatedQueries | None) -> bool:
    """Put another list in place of the current one, and forget lines that could not be read."""
    st.session_state[_TYPED] = None
    return change(HERE, lambda: current().replaced(query_list=stated))


def default_target() -> Target | None:
    """The target of queries that have none of their own; None where the typed one is none."""
    try:
        target = parse_target(st.session_state.get("query target", USUAL_TARGET))
    except RpexploreError:
        return None
    return None if target.required else target


def take_typed() -> None:
    """Take over the typed lines; refused ones are kept to be mended, and say so on every visit."""
    text = _typed()
    if text is None:
        return
    before = current().query_list
    if not text.strip():
        if before is not None:  # what it was about stays chosen
            st.session_state[CHOSEN] = list(before.queries.domain.names)
        replace_list(None)
        return

    def read() -> StatedQueries:
        schema = current().domain
        return stated_from_text(domain_of_text(schema, text, domain()), text, default_target())

    done = change(
        HERE,
        lambda: current().replaced(query_list=read()),
        otherwise="There is no list until this is mended."
        if before is None
        else "Until this is mended, the list before it stays in effect.",
    )
    if done:
        st.session_state[_TYPED] = None


def lines() -> None:
    """The queries as lines of text, and the target of those that have none of their own."""
    stated, typed = current().query_list, _typed()
    st.subheader("The list")
    text = typed
    if text is None:
        text = "" if stated is None else kept("query lines", (stated,), lambda: _text_of(stated))
    if text is None:
        st.info(
            f"This list of {describe_queries(len(stated or ()))} cannot be edited here: it is "
            "long, or has queries that no line can hold. Take it from the CSV file below, change "
            "it there, and bring it back."
        )
    else:
        st.text_area(
            "One query a line, as name: condition ± margin",
            key=bind("query lines", text),
            on_change=_set_typed,
            height=260,
            placeholder=_example(),
        )
        st.caption(escaped(NOTATION))
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    left.text_input(
        "Target of queries without one of their own",
        USUAL_TARGET,
        key="query target",
        persist_state="session",
        help=f"Counts for what you type or add from now on: {NOTATIONS}.",
    )
    right.button(
        "Remove the list",
        on_click=_remove,
        disabled=stated is None and typed is None,
    )
    if default_target() is None:
        st.error(escaped(f"The target of queries without one must be like {NOTATIONS}."))


def _example() -> str:
    """Lines that could be typed, about what is chosen or the first attribute that can be."""
    about, schema = domain(), current().domain
    if about is None:
        first = choosable(schema)[:1]
        about = chosen_domain(schema, first) if first else None
    return "" if about is None else example_text(about)


def _remove() -> None:
    replace_list(None)


def _typed() -> str | None:
    """Lines that were typed and not taken over; not those of before an undo or another project."""
    held = st.session_state.get(_TYPED)
    return held[1] if held is not None and held[0] == revision(HERE) else None


def _set_typed() -> None:
    st.session_state[_TYPED] = (revision(HERE), st.session_state["query lines"])


def _text_of(stated: StatedQueries) -> str | None:
    try:
        return text_from_stated(stated) if len(stated) <= MOST_LISTED else None
    except WorkloadError:
        return None
