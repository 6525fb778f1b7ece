"""The list on the page Own counts, as lines of text that are typed, taken over or mended."""

from collections.abc import Callable

import streamlit as st

from pages.components.shared.inputs import revision
from pages.components.shared.session import bound, change, current, escaped, kept
from rpexplore.common.text import capitalised, describe_count, plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.workload.query_definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.workload.query_edits import (
    about_attributes,
    chosen_domain,
    differences_from_codebook,
    domain_of_text,
    example_text,
)
from rpexplore.workload.query_list import MAX_ATOMS, MAX_CELLS
from rpexplore.workload.targets import NOTATIONS, Target, parse_target

# ---- The lines of a list of queries while they are edited: typed, taken over, or kept to be
# mended.


MOST_LISTED = 1000  # queries that can be edited as text


class TypedLines:
    """What was typed and is not in effect yet, and what a list is about that is not there yet.

    typed   lines that wait to be read, or were refused; None while the list's own are shown
    chosen  names of attributes, of which the codebook may have lost some
    """

    def __init__(self) -> None:
        self.typed: str | None = None
        self.chosen: tuple[str, ...] = ()
        self._revision = ""

    def type(self, text: str, revision: str) -> None:
        """Keep typed lines; `revision` names the state of the project that they were typed for."""
        self.typed, self._revision = text, revision

    def forget_others(self, revision: str) -> None:
        """Drop lines that were typed before an undo, or for another project."""
        if revision != self._revision:
            self.typed = None

    def domain(self, codebook: Domain, present: StatedQueries | None) -> Domain | None:
        """What the queries are about: the list's attributes, or the chosen ones; None: nothing."""
        if present is not None:
            return present.queries.domain
        chosen = [name for name in self.chosen if name in codebook]
        try:
            return chosen_domain(codebook, chosen) if chosen else None
        except RpexploreError:  # the codebook has changed since they were chosen
            return None

    def read(
        self, codebook: Domain, present: StatedQueries | None, target: Target | None
    ) -> StatedQueries | None:
        """The list that the typed lines state; None if they are blank.

        target: of lines without one. Raises `WorkloadError` for lines that cannot be read.
        """
        if not self.typed or not self.typed.strip():
            return None
        domain = domain_of_text(codebook, self.typed, self.domain(codebook, present))
        return stated_from_text(domain, self.typed, target)

    def accept(self, before: StatedQueries | None) -> None:
        """Note that what was read is in effect; the attributes of a removed list stay chosen."""
        if before is not None and not (self.typed or "").strip():
            self.chosen = before.queries.domain.names
        self.typed = None

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


# ---- The list on the page Own counts, as lines of text.


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
            f"This list of {plural(len(stated or ()), 'own count')} cannot be edited here: it is "
            "long, or has counts that no line can hold. Download the CSV file below, change it, "
            "and load it again."
        )
    else:
        st.text_area(
            "One count a line, as name: condition ± margin",
            height=220,
            placeholder=_example(),
            **bound("query lines", text, lambda typed: lines.type(typed, revision(HERE))),
        )
        with st.expander("How counts are written", type="compact"):
            st.caption(escaped(NOTATION))
    st.text_input(
        "Target of counts without one of their own",
        USUAL_TARGET,
        key="query target",
        persist_state="session",
        help=f"Counts for what you type or add from now on: {NOTATIONS}.",
    )
    if default_target() is None:
        st.error(escaped(f"The target of counts without one must be like {NOTATIONS}."))


def _example() -> str:
    """Lines that could be typed, about what is chosen or the first attribute that can be."""
    domain, codebook = query_domain(), current().domain
    if domain is None:
        first = _choosable(codebook)[:1]
        domain = chosen_domain(codebook, first) if first else None
    return "" if domain is None else example_text(domain)


def remove_button() -> None:
    """The button that removes the list, and lines that could not be read."""
    is_empty = current().query_list is None and typed_lines().typed is None
    st.button("Remove the list", on_click=remove_list, disabled=is_empty)


# ---- What the list on the page Own counts is about: attributes of the codebook, or those of a
# preset.


def query_attributes() -> None:
    """The attributes, of the codebook or the list's own."""
    codebook, stated = current().domain, current().query_list
    if stated is None or not differences_from_codebook(stated.queries.domain, codebook):
        _codebook_attributes(codebook)
    else:
        _own_attributes(stated, codebook)


def _choosable(codebook: Domain) -> list[str]:
    """The attributes that counts can be about: all but amounts."""
    return [name for index, name in enumerate(codebook.names) if index not in codebook.amounts]


def _codebook_attributes(codebook: Domain) -> None:
    """Attributes of the codebook."""
    domain = query_domain()
    names = [] if domain is None else list(domain.names)

    def choose(chosen: list[str]) -> None:
        stated = current().query_list
        # A browser may still report this box after another list has taken its place.
        if stated is not None and differences_from_codebook(stated.queries.domain, codebook):
            return
        typed_lines().chosen = tuple(chosen)
        if stated is not None:
            change(
                HERE,
                lambda: current().replaced(
                    query_list=about_attributes(stated, chosen_domain(codebook, chosen))
                ),
            )

    st.multiselect(
        "Attributes of your counts",
        _choosable(codebook),
        placeholder="choose attributes of the codebook",
        **bound("chosen query attributes", names, choose),
    )
    if domain is not None:
        n_cells = domain.n_cells
        cells = f"{describe_count(n_cells)} cell{'' if n_cells == 1 else 's'}"
        text = f"{capitalised(cells)}: {_describe_sizes(domain)}."
        if n_cells > MAX_CELLS:
            text += (
                f" Conditions may tell {MAX_ATOMS:,} groups of them apart; counts added below, and "
                f"files with numbers for cells, are for at most {MAX_CELLS:,} cells."
            )
        st.caption(text)


def _own_attributes(stated: StatedQueries, codebook: Domain) -> None:
    """What a list is about whose attributes are not, or no longer, those of the codebook."""
    domain = stated.queries.domain
    differences = " ".join(differences_from_codebook(domain, codebook))
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
