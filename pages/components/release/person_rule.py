"""How it is seen to that no person has more records than the plan protects."""

import streamlit as st

from pages.components.shared.session import escaped, kept
from rpexplore.common.formatting import plural
from rpexplore.data.source import PersonRule, Source
from rpexplore.errors import RpexploreError
from rpexplore.planning.release_plan import ReleasePlan

REFUSE, KEEP = "Refuse the records", "Count only the first"


def person_rule(planned: ReleasePlan, data: Source) -> tuple[bool, PersonRule | None]:
    """Whether what was chosen can be used, and the rule; (True, None) where there is none."""
    most = planned.budget.max_records_per_person
    if most is None:
        return True, None
    try:
        columns = kept("columns of the records", (data,), lambda: list(data.columns()))
    except RpexploreError as error:
        st.error(escaped(error.on_screen()))
        return False, None
    st.markdown(
        f"The plan protects {escaped(planned.budget.unit)}. Name the column that says whose a "
        "record is, and that nobody has more is seen to; without it, it is taken for granted."
    )
    left, middle, right = st.columns(3)
    column = left.selectbox(
        "Column with the person",
        columns,
        index=None,
        key="person column",
        persist_state="session",
        placeholder="none: taken for granted",
    )
    if column is None:
        return True, None
    excess = middle.radio(
        f"If a person has more than {plural(most, 'record')}",
        [REFUSE, KEEP],
        key="person excess",
        persist_state="session",
    )
    if excess == REFUSE:
        return True, PersonRule(column, most)
    has_order = data.home is not None
    order = right.selectbox(
        "The first by which column",
        columns,
        index=None,
        key="person order",
        persist_state="session",
        placeholder="the order of the file" if has_order else "Choose a column",
    )
    if order is None and not has_order:
        st.info("The records of a database have no order: choose the column that gives one.")
        return False, None
    return True, PersonRule(column, most, "keep first", order)
