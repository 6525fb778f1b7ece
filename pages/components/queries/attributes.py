"""What the list on the Queries page is about: attributes of the codebook, or those of a preset."""

from functools import partial

import streamlit as st

from pages.components.queries.query_lines import CHOSEN, HERE, domain, replace_list
from pages.components.shared.session import bind, change, current, escaped, say
from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.queries.definitions import StatedQueries, stated_from_text, text_from_stated
from rpexplore.queries.edits import (
    about_attributes,
    are_of_schema,
    choosable,
    chosen_domain,
    differences_from_schema,
)
from rpexplore.queries.presets import PRESETS
from rpexplore.queries.query_list import MAX_CELLS, checked_n_cells


def about() -> None:
    """The attributes, or a preset to start from."""
    schema, stated, present = current().domain, current().query_list, domain()
    left, right = st.columns(2, gap="large")
    with left:
        if stated is None or are_of_schema(stated.queries.domain, schema):
            _attributes(schema, present)
        else:
            _elsewhere(stated, schema)
    with right:
        _presets(stated is not None)


def _attributes(schema: Domain, present: Domain | None) -> None:
    """Attributes of the codebook, of which those can be chosen that still fit."""
    names = [] if present is None else list(present.names)
    options = [name for name in schema.names if name in {*names, *choosable(schema, names)}]

    def choose() -> None:
        chosen = st.session_state["chosen query attributes"]
        st.session_state[CHOSEN] = chosen
        stated = current().query_list
        if stated is not None:
            other = partial(about_attributes, stated)
            change(
                HERE,
                lambda: current().replaced(query_list=other(chosen_domain(schema, chosen))),
            )

    st.multiselect(
        "What your queries are about",
        options,
        key=bind("chosen query attributes", names),
        on_change=choose,
        placeholder="choose attributes of the codebook",
    )
    if not options:
        st.info(
            f"No attribute of the codebook has as few as {MAX_CELLS:,} values. Group the values of "
            "one on the Codebook page, or start from a list on the right."
        )
    elif present is not None:
        sizes = " × ".join(f"{each.name} ({each.size:,})" for each in present)
        left_out = len(schema) - len(options)
        st.caption(
            f"{plural(checked_n_cells(present), 'cell')} of at most {MAX_CELLS:,}: "
            f"{escaped(sizes)}."
            + f" {plural(left_out, 'attribute')} would make them too many."
            * bool(left_out)
        )


def _elsewhere(stated: StatedQueries, schema: Domain) -> None:
    """What a list is about whose attributes are not, or no longer, those of the codebook."""
    present = stated.queries.domain
    sizes = " × ".join(f"{each.name} ({each.size:,})" for each in present)
    differences = " ".join(differences_from_schema(present, schema))
    st.markdown(f"This list is about **attributes of its own**: {escaped(sizes)}.")
    st.info(
        escaped(
            f"{differences} The list is planned with the attributes it has; the records it is run "
            "on need the same."
        )
    )

    def again() -> StatedQueries:
        domain_now = chosen_domain(schema, present.names)
        return stated_from_text(domain_now, text_from_stated(stated))

    def read_again() -> None:
        change(HERE, lambda: current().replaced(query_list=again()))

    if all(name in schema for name in present.names):
        st.button("Read it with the codebook's values", on_click=read_again)


def _presets(replaces: bool) -> None:
    """Well-known lists to start from."""
    titles = {preset.title: preset for preset in PRESETS}
    title = st.selectbox("Or start from a well-known list", list(titles), key="query preset")
    preset = titles[title]

    def start() -> None:
        if replace_list(StatedQueries.of(preset.queries())):
            back = " Undo brings your list back." if replaces else ""
            say(HERE, "success", f"Started from “{preset.title}”.{back}")

    st.caption(escaped(preset.explanation))
    st.button("Start from this list", on_click=start)
    if replaces:
        st.caption("It replaces your list; Undo, above, brings it back.")
