"""Tables: which tables are released, how much each matters, and what they count: a part each."""

import streamlit as st

from pages.components.shared.session import current, escaped, show_messages
from pages.components.shared.solutions import plan
from pages.components.shared.texts import explained_title
from pages.components.workload import builders
from pages.components.workload.bases import basis_choices
from pages.components.workload.builders import HERE, take_list, which_tables
from pages.components.workload.settings import HERE as SETTINGS
from pages.components.workload.settings import PARTS, apply_typed, choose_part, lead_on, settings
from pages.components.workload.weights import survey_weights
from rpexplore.common.text import plural
from rpexplore.planning.table_plan import TablePlan


def planned() -> TablePlan | None:
    """The plan; None, and the page says why, where there is none."""
    scenario = current()
    if scenario.misses_target:
        st.error(
            f"There is no plan yet: table {escaped(scenario.misses_target)} has no target. Set one "
            "for every table under Weights and targets, or choose another objective on the Plan "
            "page."
        )
        return None
    return plan()


apply_typed()
take_list()
explained_title("Tables")
show_messages(HERE)
scenario, fit = current(), builders.fit()
st.markdown(f"**{escaped(scenario.request.text)}**")
if scenario.settings_aside:
    st.caption(
        f"{plural(scenario.settings_aside, 'setting')} of tables outside the present ones kept "
        "aside."
    )
sizes = st.container(key="sizes")
outcome = planned() if fit.can_be_planned else None
with sizes:
    builders.sizes(outcome)
builders.obstacles(fit)
part = choose_part(scenario)
if part != "weights":  # where its grid shows them
    show_messages(SETTINGS)
st.subheader(PARTS[part].question)
st.caption(PARTS[part].purpose)
with st.container(key="layout"):
    if part == "weights":
        settings(outcome)
    elif part == "aggregation":
        basis_choices()
    else:
        which_tables(outcome)
        survey_weights()
lead_on(part)
