"""Aggregation of each attribute, on the Tables page: in all tables, and another one in some.

Only attributes with another aggregation than single values are listed, not a hundred others.
"""

from functools import partial

import streamlit as st

from pages.components.shared.editors import removable
from pages.components.shared.session import bound, change, current, escaped, show_messages
from pages.components.workload.basis_input import basis_input, forget_file
from rpexplore.analysis.glossary import meaning
from rpexplore.common.formatting import capitalised, plural
from rpexplore.domain.attribute import Attribute
from rpexplore.scenarios import basis_options
from rpexplore.scenarios.basis_choices import BasisChoice
from rpexplore.workload.bases import BASES, Basis, Identity
from rpexplore.workload.table_text import Table, list_titles, title, titles

_CHOSEN = "attributes with a basis chosen"  # listed, even if it is single values again
MOST_OFFERED = 2000


def basis_choices() -> None:
    """The aggregation of each attribute, and widgets to change it."""
    listed = _listed()
    with st.container(key="inputs"), st.container(gap="small"):
        st.selectbox(
            "Change the aggregation of",
            [name for name in current().domain.names if name not in listed],
            index=None,
            placeholder="Choose an attribute",
            help=meaning("Aggregation"),
            **bound("attribute to change", None, _list),
        )
        show_messages("bases")
    with st.container(gap="small"):
        for name in listed:
            _attribute(current().domain[name])
        if not listed:
            kinds = [capitalised(basis.title) for basis in BASES.values()]
            st.markdown("All tables count single values now. The kinds of aggregation:")
            st.markdown("\n".join(f"- **{kind}**: {meaning(kind)}" for kind in kinds))


def _listed() -> list[str]:
    names = {choice.attribute for choice in current().request.basis_choices}
    names.update(st.session_state.get(_CHOSEN, ()))
    return [name for name in current().domain.names if name in names]


def _list(name: str | None) -> None:
    """Keep an attribute listed, also when it has single values again."""
    if name is not None:
        st.session_state.setdefault(_CHOSEN, set()).add(name)


def _attribute(attribute: Attribute) -> None:
    """One attribute: its aggregation, what that counts, and other ones in some tables."""
    name = attribute.name
    choices = current().request.basis_choices
    in_all_tables = {choice.attribute: choice.basis for choice in choices if not choice.tables}
    present = in_all_tables.get(name, Identity())
    slot, key = f"bases {name}", f"of all {name}"

    def choose(basis: Basis) -> None:
        _list(name)
        change(slot, lambda: current().with_basis(name, basis))

    with st.container(border=True, gap="small"):
        title, kind, more, last = st.columns([3, 4, 4, 2], vertical_alignment="bottom")
        size = plural(attribute.size, "value")
        if attribute.groups:
            size += f", in {plural(len({*attribute.groups} - {()}), 'group')}"
        title.markdown(f"**{escaped(name)}**  \n{size}")
        last.button("Remove", key=f"remove {key}", on_click=_drop, args=(name,), type="tertiary")
        basis_input(kind, more, st.container(), attribute, present, choose, slot=slot, key=key)
        show_messages(slot)
        _describe(attribute, present)
        some_tables(attribute, present)


def _describe(attribute: Attribute, basis: Basis) -> None:
    """The queries, and what a table counts."""
    workload = current().workload
    sentences = [basis_options.describe_queries(basis, attribute)]
    table = basis_options.example_table(workload, attribute.name, basis)
    if table is not None:
        counted = basis_options.describe_table(workload, table, current().record_noun)
        sentences.append(f"A table counts {counted}.")
    sentences.append(basis_options.describe_order(basis, attribute))
    sentences.append(basis_options.unavailable_bases(attribute))
    st.caption(escaped(" ".join(filter(None, sentences))))


def _drop(name: str) -> None:
    """Count single values of an attribute in all tables."""
    st.session_state.get(_CHOSEN, set()).discard(name)
    forget_file(f"of all {name}")
    choices = current().request.basis_choices
    _set_choices(tuple(choice for choice in choices if choice.attribute != name))


def some_tables(attribute: Attribute, general: Basis) -> None:
    """The aggregations in single tables, and widgets for another one, drawn when they are unfolded.

    general: the aggregation in all other tables
    """
    name = attribute.name
    choices = current().request.basis_choices
    for position, choice in enumerate(choices):
        if choice.attribute == name and choice.tables:
            text = (
                f"In {escaped(list_titles(choice.tables))}: "
                f"**{escaped(choice.basis.describe(attribute))}**. "
                f"{escaped(basis_options.describe_queries(choice.basis, attribute))}"
            )
            others = (*choices[:position], *choices[position + 1 :])
            removable(text, f"remove basis {position} of {name}", partial(_set_choices, others))
    shown = st.expander(
        "Another aggregation in some tables", key=f"some {name}", type="compact", on_change="rerun"
    )
    if shown.open:
        with shown:
            _other_basis(attribute, general)


def _other_basis(attribute: Attribute, general: Basis) -> None:
    name, workload = attribute.name, current().workload
    slot, key = f"bases {name} in some", f"of some {name}"
    rows = workload.containing([name])
    offered = rows[:MOST_OFFERED]
    tables = [workload.tables[row] for row in offered.tolist()]
    if not tables:
        st.caption(f"No table has {escaped(name)} now.")
        return
    known_titles: dict[Table, str] = dict(zip(tables, titles(workload, offered), strict=True))
    picked = st.multiselect(
        f"Only in these tables with {escaped(name)}",
        tables,
        format_func=lambda table: known_titles.get(table, title(table)),
        key=f"tables {key}",
        persist_state="session",
        placeholder="Choose tables",
        help="Other tables have the aggregation above.",
    )
    if len(rows) > len(offered):
        st.caption(
            f"The first {len(offered):,} of {len(rows):,} tables; narrow the tables above to "
            "choose among others."
        )
    present: Basis = st.session_state.get(f"basis {key}", Identity())

    def choose(basis: Basis) -> None:
        basis.check(attribute)
        st.session_state[f"basis {key}"] = basis

    def apply() -> None:
        if change(slot, lambda: current().with_basis(name, present, tuple(picked))):
            st.session_state[f"tables {key}"] = []
            st.session_state.pop(f"basis {key}", None)
            forget_file(key)

    kind, more, last = st.columns([4, 4, 3], vertical_alignment="bottom")
    below = st.container()
    basis_input(
        kind, more, below, attribute, present, choose, slot=slot, key=key, label_end=" there"
    )
    last.button(
        "Apply to these tables",
        key=f"apply {key}",
        on_click=apply,
        disabled=not picked or present == general,
    )
    show_messages(slot)


def _set_choices(choices: tuple[BasisChoice, ...]) -> None:
    change("bases", lambda: current().with_request(basis_choices=choices))
