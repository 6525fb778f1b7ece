"""Data: which attributes there are, and which values each can take."""

import streamlit as st

from pages.components.codebook.attributes import (
    HERE,
    add_attribute,
    apply_typed,
    areas_of_codebook,
    downloads,
    grid,
    impossible_combinations,
    stated_combinations,
)
from pages.components.codebook.files import READING, choose_source
from pages.components.codebook.public_tables import public_inputs
from pages.components.codebook.values import apply_labels, values_and_labels
from pages.components.shared.background import finish, follow_begun
from pages.components.shared.protected import who_is_protected
from pages.components.shared.session import (
    bound,
    change_fields,
    change_names,
    current,
    project,
    show_messages,
)
from pages.components.shared.texts import explained_title, next_page
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import describe_count
from rpexplore.scenarios.codebook_grid import values_in_all
from rpexplore.scenarios.scenario import NAME_LENGTH

PROTECTED = "who is protected"

finish(READING)
apply_typed()
apply_labels()
explained_title("Data")
st.markdown(
    "Attributes and values are **public knowledge**: a list of values taken from the records would "
    "give away that somebody has them. No records are needed here."
)
choose_source()
follow_begun(READING)
show_messages(HERE)
domain = current().domain
if len(domain) == 0:
    st.info(
        "No attributes yet. Choose above where to start from, or add the first attribute here; "
        "then its name, kind and values can be typed into a grid."
    )
    st.button("Add an attribute", icon=":material/add:", on_click=add_attribute)
else:
    left, middle, right = st.columns(3)
    left.metric("Attributes", f"{len(domain):,}", help=meaning("Attribute"))
    middle.metric("Categories", f"{values_in_all(domain):,}", help=meaning("Category"))
    right.metric(
        "Combinations of all attributes",
        describe_count(domain.n_combinations),
        help="Cells of the table that crosses all attributes. Planning never builds that table.",
    )
    grid()
    downloads()
    # (Its state is kept: without a key, a message that comes or goes above it would close it.)
    with st.expander(
        "Values and labels of one attribute, its groups and its bins",
        key="one attribute",
        on_change="rerun",
    ):
        values_and_labels()
    stated_combinations()
    with st.expander("Impossible combinations", key="impossible", on_change="rerun"):
        impossible_combinations()
areas_of_codebook()
named, counted = st.columns(2)
named.text_input(
    "Name of the survey",
    max_chars=NAME_LENGTH,
    help="Shown on every page and on the first page of the report, and shared by all scenarios of "
    "this survey.",
    **bound(
        "survey",
        current().survey,
        lambda name: change_names(HERE, lambda: project().with_survey(name.strip())),
    ),
)
counted.text_input(
    "What the records are, such as people or households",
    max_chars=40,
    **bound(
        "record_noun",
        current().record_noun,
        lambda noun: change_fields(HERE, record_noun=noun.strip() or "records"),
    ),
)
if len(domain) > 0:
    who_is_protected(PROTECTED)
    show_messages(PROTECTED)
    st.subheader("What is public")
    st.markdown(meaning("Public table"))
    public_inputs()
    next_page("workload", "Tables")
