"""Own counts on the Tables page, as lines of text that are typed, taken over or mended."""

from collections.abc import Callable

import streamlit as st

from pages.components.shared.inputs import revision
from pages.components.shared.session import bound, change, current, escaped, kept
from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.workload.query_edits import chosen_domain, differences_from_codebook, example_text
from rpexplore.workload.query_typing import TypedLines
from rpexplore.workload.targets import NOTATIONS, Target, parse_target

# ---- The list as lines of text.


HERE = "queries"
USUAL_TARGET = "±20"
# As plain text: code in a caption would be too faint to read.
NOTATION = (
    "Conditions compare attributes with values, as in age >= 18, 18 <= age < 65 or "
    'region in ("north", "south"), joined by &, |, ! and brackets; total counts everybody. '
    "A condition by sex, region@groups stands for a count of each combination. "
    f"Targets: {NOTATIONS}, behind ± or @. Name and target may be left out."
)


def typed_lines() -> TypedLines:
    """What was typed in this session and is not in effect yet."""
    lines: TypedLines = st.session_state.setdefault("typed queries", TypedLines())
    lines.forget_others(revision(HERE))
    return lines


def replace_list(make: Callable[[], StatedQueries | None]) -> bool:
    """Put another list in place of the current one, and forget lines that could not be read."""
    is_replaced = change(HERE, lambda: current().replaced(query_list=make()))
    if is_replaced:
        typed_lines().typed = None
    return is_replaced


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
        lines.typed = None


def query_list() -> None:
    """The queries as lines of text."""
    stated, lines = current().query_list, typed_lines()
    text = kept(lines.shown, stated, by=(stated, lines.typed))
    if text is None:
        st.info(
            f"This list of {plural(len(stated or ()), 'own count')} cannot be edited here: it is "
            "long, or has counts that no line can hold. Download the CSV file below, change it, "
            "and load it again."
        )
    else:
        st.text_area(
            "One count a line, as name: condition ± margin",
            height=160,
            placeholder=_example(),
            **bound("query lines", text, lambda typed: lines.type(typed, revision(HERE))),
        )
        with st.expander("How counts are written", type="compact"):
            st.caption(escaped(NOTATION))


def target_input() -> None:
    """The target of counts that have none of their own."""
    st.text_input(
        "Target, unless a line has its own",
        USUAL_TARGET,
        key="query target",
        persist_state="session",
        help=f"Counts for what you type or add from now on: {NOTATIONS}.",
    )
    if default_target() is None:
        st.error(escaped(f"The target of counts without one must be like {NOTATIONS}."))


def _example() -> str:
    """Lines that could be typed, about the first attribute that can be."""
    first = choosable(current().domain)[:1]
    return example_text(chosen_domain(current().domain, first)) if first else ""


# ---- What the list is about: attributes of the codebook, or those of a preset.


def choosable(codebook: Domain) -> list[str]:
    """The attributes that counts can be about: all but amounts."""
    return [name for index, name in enumerate(codebook.names) if index not in codebook.amounts]


def own_attributes() -> None:
    """What a list is about whose attributes are not, or no longer, those of the codebook."""
    codebook, stated = current().domain, current().query_list
    if stated is None:
        return
    domain = stated.queries.domain
    differences = " ".join(differences_from_codebook(domain, codebook))
    if not differences:
        return
    st.markdown(f"This list is about **attributes of its own**: {_describe_sizes(domain)}.")
    st.info(
        escaped(
            f"{differences} The list is planned with the attributes it has; the records it is run "
            "on need the same."
        )
    )

    def with_codebook_values() -> StatedQueries:
        return stated_from_text(chosen_domain(codebook, domain.names), text_from_stated(stated))

    def read_again() -> None:
        change(HERE, lambda: current().replaced(query_list=with_codebook_values()))

    if all(name in codebook for name in domain.names):
        st.button("Read it with the codebook's values", on_click=read_again)


def _describe_sizes(domain: Domain) -> str:
    sizes = (f"{attribute.name} ({attribute.size:,})" for attribute in domain)
    return escaped(" × ".join(sizes))
