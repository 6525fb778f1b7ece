"""How much of a plan for areas is publishable, by level, where it is known how many records."""

import streamlit as st

from pages.components.shared.charts import listing
from pages.components.shared.numbers import number_field
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis.areas.usefulness import AreaUsefulness, publishable_in_areas
from rpexplore.analysis.glossary import meaning
from rpexplore.common.typed_numbers import number_of
from rpexplore.domain.expected_counts import MAX_COUNT, ExpectedCounts
from rpexplore.errors import RpexploreError
from rpexplore.figures.areas import USEFUL_COLUMNS
from rpexplore.planning.areas.area_plan import AreaPlan

_TOTAL = "expected records of areas"


def usefulness_of_areas(planned: AreaPlan) -> None:
    """The publishable share of each level, or a field for the number of records."""
    if not planned.workload.tables.is_marginals:
        return  # which cells are publishable is known of single values only
    st.subheader("Is that accurate enough?")
    if _fitting(planned) is None:
        number_field(
            "About how many records there will be, in all areas together",
            _TOTAL,
            least=0.0,
            most=MAX_COUNT,
            width=420,
            persist_state="session",
            help=f"{meaning('Expected counts')} Give only what is already public.",
        )
        st.caption("This number stays with the visit: it is not saved with the scenario.")
    useful = area_usefulness(planned)
    if useful is None:
        st.caption("With it, the accuracy of every level is shown beside the counts to expect.")
        return
    st.markdown(f"**{escaped(useful.describe())}**", help=meaning("Publishable share"))
    listing(useful.by_level, USEFUL_COLUMNS, "Publishable share of each level")
    st.caption(escaped(f"Expected counts: {useful.expected_text}."))


def area_usefulness(planned: AreaPlan) -> AreaUsefulness | None:
    """What of the plan is publishable; None without expected counts."""
    expected = expected_in_areas(planned)
    if expected is None:
        return None
    limit = current().cv_limit
    return kept(_useful, planned, expected, limit)


def expected_in_areas(planned: AreaPlan) -> ExpectedCounts | None:
    """The scenario's expected counts where they fit the plan's attributes, or the typed number."""
    fitting = _fitting(planned)
    if fitting is not None:
        return fitting
    try:
        total = number_of(st.session_state.get(_TOTAL) or "", least=0.0, most=MAX_COUNT)
        return ExpectedCounts.of_total(total) if total else None
    except RpexploreError:  # the field says so
        return None


def _fitting(planned: AreaPlan) -> ExpectedCounts | None:
    expected = current().expected
    try:
        return None if expected is None else expected.fitted(planned.domain)
    except RpexploreError:
        return None


def _useful(planned: AreaPlan, expected: ExpectedCounts, cv_limit: float) -> AreaUsefulness:
    return publishable_in_areas(planned, expected, cv_limit=cv_limit)
