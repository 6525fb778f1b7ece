"""Tables: which tables are released, by which aggregations, and how much each matters."""

import streamlit as st

from pages.components.shared.explanations import explained_title
from pages.components.shared.session import current, escaped, show_messages
from pages.components.shared.solutions import plan
from pages.components.workload import feasibility
from pages.components.workload.bases import basis_choices
from pages.components.workload.builders import HERE, builders, take_list
from pages.components.workload.settings import apply_typed, settings
from rpexplore.common.formatting import plural
from rpexplore.planning.plan import Plan


def planned() -> Plan | None:
    """The plan; None, and the page says why, where there is none."""
    scenario = current()
    if scenario.misses_target:
        st.error(
            f"There is no plan yet: table {escaped(scenario.misses_target)} has no target. Set one "
            "for every table below, or choose another objective on the Plan page."
        )
        return None
    return plan()


apply_typed()
take_list()
explained_title("Tables")
builders()
show_messages(HERE)
basis_choices()
scenario, fit = current(), feasibility.fit()
st.subheader("Size and accuracy")
st.markdown(f"**{escaped(scenario.request.text)}**")
outcome = planned() if fit.can_be_planned else None
feasibility.sizes(outcome)
feasibility.obstacles(fit)
if scenario.settings_aside:
    st.caption(
        f"{plural(scenario.settings_aside, 'setting')} of tables outside the present ones kept "
        "aside."
    )
settings(outcome)
st.page_link("pages/plan.py", label="Next: the plan", icon=":material/arrow_forward:")
