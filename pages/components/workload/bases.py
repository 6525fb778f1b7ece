"""Aggregation of each attribute, on the Tables page: single values, cumulative, hierarchy, …

Only attributes with another aggregation than single values are listed, not a hundred others.
"""

import streamlit as st

from pages.components.shared.session import bind, change, current, escaped, show_messages
from pages.components.workload.bases_in_tables import some_tables
from pages.components.workload.basis_input import basis_input, forget_file
from rpexplore.common.formatting import plural
from rpexplore.domain.attribute import Attribute
from rpexplore.scenarios import basis_options as basis_options
from rpexplore.workload.bases import Basis, Identity

_BEGUN = "bases begun"  # attributes that are listed, although they have single values so far


def basis_choices() -> None:
    """The aggregation of each attribute, and widgets to change it."""
    st.subheader("Aggregation of each attribute")
    st.markdown(
        "Usually a table counts **single values**. Counts of a number can also be **cumulative** "
        "or over **ranges**, those of a place follow a **hierarchy** such as regions. The plan "
        "makes accurate what the tables count."
    )
    names = _listed()
    for name in names:
        _attribute(current().domain[name])
    show_messages("bases")
    others = [name for name in current().domain.names if name not in names]
    st.selectbox(
        "Change the aggregation of",
        others,
        index=None,
        key=bind("ask differently", None),
        on_change=_begin,
        placeholder="Choose an attribute",
        width=480,
    )


def _general(name: str) -> Basis:
    """The aggregation of an attribute in all tables that are not named one by one."""
    of_all = {
        each.attribute: each.basis for each in current().request.basis_choices if not each.tables
    }
    return of_all.get(name, Identity())


def _listed() -> list[str]:
    begun = st.session_state.get(_BEGUN, [])
    asked = {each.attribute for each in current().request.basis_choices}
    return [name for name in current().domain.names if name in asked or name in begun]


def _begin() -> None:
    name = st.session_state["ask differently"]
    if name is not None:
        st.session_state[_BEGUN] = [*st.session_state.get(_BEGUN, []), name]


def _attribute(attribute: Attribute) -> None:
    """One attribute: the way in all its tables, what that asks, and other ways in some tables."""
    name, present = attribute.name, _general(attribute.name)
    place, key = f"bases {name}", f"asked {name}"

    def ask(basis: Basis) -> None:
        _begin_again(name)
        change(place, lambda: current().with_basis(name, basis))

    with st.container(border=True, gap="small"):
        called, way, more, last = st.columns([3, 4, 4, 2], vertical_alignment="bottom")
        called.markdown(
            f"**{escaped(name)}**  \n{plural(attribute.size, 'value')}"
            + (f", in {plural(_groups(attribute), 'group')}" if attribute.groups else "")
        )
        last.button("Remove", key=f"remove {key}", on_click=_drop, args=(name,), type="tertiary")
        basis_input(way, more, st.container(), attribute, present, ask, slot=place, key=key)
        show_messages(place)
        _what_it_asks(attribute, present)
        some_tables(attribute, present)


def _what_it_asks(attribute: Attribute, basis: Basis) -> None:
    """The questions, and what a table answers, in words."""
    words = [basis_options.describe_queries(basis, attribute)]
    table = basis_options.example_table(current().workload, attribute.name, basis)
    if table is not None:
        answer = basis_options.describe_table(current().workload, table, current().record_noun)
        words.append(f"A table counts {answer}.")
    words.append(basis_options.describe_order(basis, attribute))
    words.append(basis_options.unavailable_bases(attribute))
    st.caption(escaped(" ".join(filter(None, words))))


def _groups(attribute: Attribute) -> int:
    return len(set(filter(None, attribute.groups)))


def _begin_again(name: str) -> None:
    """Keep an attribute listed, also when it is asked by its single values again."""
    begun = st.session_state.setdefault(_BEGUN, [])
    if name not in begun:
        begun.append(name)


def _drop(name: str) -> None:
    """Ask an attribute by its single values everywhere."""
    st.session_state[_BEGUN] = [each for each in st.session_state.get(_BEGUN, []) if each != name]
    forget_file(f"asked {name}")
    kept = tuple(each for each in current().request.basis_choices if each.attribute != name)
    change("bases", lambda: current().with_request(basis_choices=kept))
