"""What the list on the Queries page is about: attributes of the codebook, or those of a preset."""

import streamlit as st

from pages.components.queries.query_lines import HERE, query_domain, typed_lines
from pages.components.shared.session import bound, change, current, escaped
from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.queries.definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.queries.edits import (
    about_attributes,
    choosable,
    chosen_domain,
    differences_from_codebook,
)
from rpexplore.queries.query_list import MAX_CELLS, checked_n_cells


def query_attributes() -> None:
    """The attributes, of the codebook or the list's own."""
    codebook, stated = current().domain, current().query_list
    if stated is None or not differences_from_codebook(stated.queries.domain, codebook):
        _codebook_attributes(codebook)
    else:
        _own_attributes(stated, codebook)


def _codebook_attributes(codebook: Domain) -> None:
    """Attributes of the codebook, of which those can be chosen that still fit."""
    domain = query_domain()
    names = [] if domain is None else list(domain.names)
    options = [name for name in codebook.names if name in {*names, *choosable(codebook, names)}]

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
        "Attributes of your queries",
        options,
        placeholder="choose attributes of the codebook",
        **bound("chosen query attributes", names, choose),
    )
    if not options:
        st.info(
            f"No attribute of the codebook has as few as {MAX_CELLS:,} values. Group the values of "
            "one on the Codebook page, or start from a preset."
        )
    elif domain is not None:
        text = f"{plural(checked_n_cells(domain), 'cell')} of at most {MAX_CELLS:,}: "
        text += f"{_describe_sizes(domain)}."
        if len(options) < len(codebook):
            left_out = plural(len(codebook) - len(options), "attribute")
            text += f" {left_out} would give more, and cannot be chosen."
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
