"""The list on the Queries page, as lines of text."""

from collections.abc import Callable

import streamlit as st

from pages.components.queries.typed_lines import TypedLines
from pages.components.shared.editors import revision
from pages.components.shared.session import bound, change, current, escaped, kept
from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.queries.definitions import StatedQueries
from rpexplore.queries.edits import choosable, chosen_domain, example_text
from rpexplore.workload.targets import NOTATIONS, Target, parse_target

HERE = "queries"
USUAL_TARGET = "±20"
# As plain text: code in a caption would be too faint to read.
NOTATION = (
    "Conditions compare attributes with values, as in age >= 18, 18 <= age < 65 or "
    'region in ("north", "south"), joined by &, |, ! and brackets; total counts everybody. '
    f"Targets: {NOTATIONS}, behind ± or @. Name and target may be left out."
)


def typed_lines() -> TypedLines:
    """What was typed in this session and is not in effect yet."""
    lines: TypedLines = st.session_state.setdefault("typed queries", TypedLines())
    lines.forget_others(revision(HERE))
    return lines


def query_domain() -> Domain | None:
    """What the queries are about; None while that is not chosen."""
    return typed_lines().domain(current().domain, current().query_list)


def replace_list(make: Callable[[], StatedQueries | None]) -> bool:
    """Put another list in place of the current one, and forget lines that could not be read."""
    is_replaced = change(HERE, lambda: current().replaced(query_list=make()))
    if is_replaced:
        typed_lines().typed = None
    return is_replaced


def remove_list() -> None:
    replace_list(lambda: None)


def default_target() -> Target | None:
    """The target of queries that have none of their own; None where the typed one is none."""
    try:
        target = parse_target(st.session_state.get("query target", USUAL_TARGET))
    except RpexploreError:
        return None
    return None if target.required else target


def take_typed() -> None:
    """Take over the typed lines; refused ones are kept to be mended, and say so on every visit."""
    lines, before, codebook = typed_lines(), current().query_list, current().domain
    if lines.typed is None:
        return
    accepted = change(
        HERE,
        lambda: current().replaced(query_list=lines.read(codebook, before, default_target())),
        otherwise="There is no list until this is mended."
        if before is None
        else "Until this is mended, the list before it stays in effect.",
    )
    if accepted:
        lines.accept(before)


def query_list() -> None:
    """The queries as lines of text, and the target of those that have none of their own."""
    stated, lines = current().query_list, typed_lines()
    text = kept(lines.shown, stated, by=(stated, lines.typed))
    if text is None:
        st.info(
            f"This list of {plural(len(stated or ()), 'query')} cannot be edited here: it is "
            "long, or has queries that no line can hold. Download the CSV file below, change it, "
            "and load it again."
        )
    else:
        st.text_area(
            "One query a line, as name: condition ± margin",
            height=220,
            placeholder=_example(),
            **bound("query lines", text, lambda typed: lines.type(typed, revision(HERE))),
        )
        with st.expander("How queries are written", type="compact"):
            st.caption(escaped(NOTATION))
    st.text_input(
        "Target of queries without one of their own",
        USUAL_TARGET,
        key="query target",
        persist_state="session",
        help=f"Counts for what you type or add from now on: {NOTATIONS}.",
    )
    if default_target() is None:
        st.error(escaped(f"The target of queries without one must be like {NOTATIONS}."))


def _example() -> str:
    """Lines that could be typed, about what is chosen or the first attribute that can be."""
    domain, codebook = query_domain(), current().domain
    if domain is None:
        first = choosable(codebook)[:1]
        domain = chosen_domain(codebook, first) if first else None
    return "" if domain is None else example_text(domain)


def remove_button() -> None:
    """The button that removes the list, and lines that could not be read."""
    is_empty = current().query_list is None and typed_lines().typed is None
    st.button("Remove the list", on_click=remove_list, disabled=is_empty)
