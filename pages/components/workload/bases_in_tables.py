"""Another aggregation of an attribute in some of its tables, besides the general one."""

import streamlit as st

from pages.components.shared.session import change, current, escaped, say, show_messages
from pages.components.workload.basis_input import basis_input, forget_file
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import RpexploreError
from rpexplore.scenarios import basis_options
from rpexplore.workload.bases import Basis, Identity
from rpexplore.workload.table_text import Table, list_titles, title
from rpexplore.workload.table_titles import titles

MOST_OFFERED = 2000


def some_tables(attribute: Attribute, general: Basis) -> None:
    """The aggregations in single tables, and widgets for another one, drawn when they are unfolded.

    general: the aggregation in all other tables
    """
    name = attribute.name
    for position, choice in enumerate(current().request.basis_choices):
        if choice.attribute == name and choice.tables:
            line = st.container(horizontal=True, vertical_alignment="center", gap="small")
            line.markdown(
                f"In {escaped(list_titles(choice.tables))}: "
                f"**{escaped(choice.basis.describe(attribute))}**. "
                f"{escaped(basis_options.describe_queries(choice.basis, attribute))}",
                width="content",
            )
            line.button(
                "Remove",
                key=f"remove basis {position} of {name}",
                on_click=_drop,
                args=(position,),
                type="tertiary",
            )
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
        try:
            basis.check(attribute)
        except RpexploreError as error:
            say(slot, "error", f"{error} Nothing was changed.")
            return
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


def _drop(position: int) -> None:
    choices = current().request.basis_choices
    kept = (*choices[:position], *choices[position + 1 :])
    change("bases", lambda: current().with_request(basis_choices=kept))
