"""How each attribute is asked, on the Tables page: by its values, cumulatively, in groups, …

Only attributes that are asked specially are listed, so that a hundred others do not stand between.
"""

import streamlit as st

from pages.components.shared.session import bind, change, current, escaped, show_messages
from pages.components.workload.bases_in_tables import some_tables
from pages.components.workload.basis_input import basis_input, forget_file
from rpexplore.common.formatting import plural
from rpexplore.domain.attribute import Attribute
from rpexplore.scenarios import basis_options as basis_options
from rpexplore.workload.bases import Basis, Identity

_BEGUN = "bases begun"  # attributes that are listed, although they are asked as usual so far


def basis_choices() -> None:
    """What is asked of each attribute, and widgets to ask it differently."""
    st.subheader("How each attribute is asked")
    st.markdown(
        "Usually a table counts **each value**. A number can also be asked **cumulatively** "
        "or in **ranges**, a place in a **hierarchy** such as regions. What you ask for is what "
        "becomes accurate."
    )
    names = _listed()
    for name in names:
        _attribute(current().domain[name])
    show_messages("bases")
    others = [name for name in current().domain.names if name not in names]
    st.selectbox(
        "Ask an attribute differently",
        others,
        index=None,
        key=bind("ask differently", None),
        on_change=_begin,
        placeholder="Choose an attribute",
        width=480,
    )


def _general(name: str) -> Basis:
    """How an attribute is asked in all tables that are not named one by one."""
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
