"""Own counts on the Tables page, as lines of text that are typed, taken over or mended."""

from collections.abc import Callable

import streamlit as st

from pages.components.shared.inputs import revision
from pages.components.shared.session import bound, change, current, escaped, kept
from rpexplore.common.text import plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.workload.query_edits import (
    chosen_domain,
    differences_from_codebook,
    domain_of_text,
    example_text,
)
from rpexplore.workload.targets import NOTATIONS, Target, parse_target

# ---- The lines of a list of queries while they are edited: typed, taken over, or kept to be
# mended.


MOST_LISTED = 1000  # queries that can be edited as text


class TypedLines:
    """What was typed and is not in effect yet.

    typed  lines that wait to be read, or were refused; None while the list's own are shown
    """

    def __init__(self) -> None:
        self.typed: str | None = None
        self._revision = ""

    def type(self, text: str, revision: str) -> None:
        """Keep typed lines; `revision` names the state of the project that they were typed for."""
        self.typed, self._revision = text, revision

    def forget_others(self, revision: str) -> None:
        """Drop lines that were typed before an undo, or for another project."""
        if revision != self._revision:
            self.typed = None

    def read(
        self, codebook: Domain, present: StatedQueries | None, target: Target | None
    ) -> StatedQueries | None:
        """The list that the typed lines state; None if they are blank.

        It is about the attributes that the lines name; of a list with others than the codebook's,
        about these. target: of lines without one. Raises `WorkloadError` for lines that cannot be
        read.
        """
        if not self.typed or not self.typed.strip():
            return None
        own = None if present is None else present.queries.domain
        if own is not None and not differences_from_codebook(own, codebook):
            own = None
        return stated_from_text(domain_of_text(codebook, self.typed, own), self.typed, target)

    def shown(self, present: StatedQueries | None) -> str | None:
        """The lines to show: typed ones, or the list's; None for a list that no lines can hold."""
        if self.typed is not None:
            return self.typed
        if present is None:
            return ""
        try:
            return text_from_stated(present) if len(present) <= MOST_LISTED else None
        except WorkloadError:
            return None


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


def remove_button() -> None:
    """The button that removes the list, and lines that could not be read."""
    is_empty = current().query_list is None and typed_lines().typed is None
    st.button("Remove the list", on_click=remove_list, disabled=is_empty)


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
