"""How much of a plan for areas is publishable, by level, where it is known how many records."""

from dataclasses import replace

import streamlit as st

from pages.components.areas.study import change_study, study
from pages.components.shared.charts import listing
from pages.components.shared.session import bound, current, escaped, kept
from rpexplore.analysis.areas.usefulness import AreaUsefulness, publishable_in_areas
from rpexplore.analysis.glossary import meaning
from rpexplore.common.typed_numbers import number_of, number_text
from rpexplore.domain.expected_counts import MAX_COUNT, ExpectedCounts
from rpexplore.errors import RpexploreError
from rpexplore.figures.areas import USEFUL_COLUMNS
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.scenarios.area_study import AreaStudy

_TOTAL = "expected records of areas"


def usefulness_of_areas(planned: AreaPlan) -> None:
    """The publishable share of each level, or a field for the number of records."""
    if not planned.workload.tables.is_marginals:
        return  # which cells are publishable is known of single values only
    st.subheader("Is that accurate enough?")
    if _fitting(planned) is None:
        _total_input()
    useful = area_usefulness(planned)
    if useful is None:
        st.caption("With it, the accuracy of every level is shown beside the counts to expect.")
        return
    st.markdown(f"**{escaped(useful.describe())}**", help=meaning("Publishable share"))
    listing(useful.by_level, USEFUL_COLUMNS, "Publishable share of each level")
    st.caption(escaped(f"Expected counts: {useful.expected_text}."))


def _total_input() -> None:
    opened = study()
    expected = None if opened is None else opened.expected

    def take(typed: str) -> None:
        def expect(before: AreaStudy) -> AreaStudy:
            total = number_of(typed, "The number of records", least=0.0, most=MAX_COUNT)
            return replace(before, expected=ExpectedCounts.of_total(total) if total else None)

        change_study(expect)

    st.text_input(
        "About how many records there will be, in all areas together",
        width=420,
        help=f"{meaning('Expected counts')} Give only what is already public. It is saved with the "
        "scenario.",
        **bound(_TOTAL, number_text(None if expected is None else expected.total), take),
    )


def area_usefulness(planned: AreaPlan) -> AreaUsefulness | None:
    """What of the plan is publishable; None without expected counts."""
    expected = expected_in_areas(planned)
    if expected is None:
        return None
    limit = current().cv_limit
    return kept(_useful, planned, expected, limit)


def expected_in_areas(planned: AreaPlan) -> ExpectedCounts | None:
    """The scenario's expected counts where they fit the plan's attributes, or its areas' own."""
    opened = study()
    return _fitting(planned) or (None if opened is None else opened.expected)


def _fitting(planned: AreaPlan) -> ExpectedCounts | None:
    expected = current().expected
    try:
        return None if expected is None else expected.fitted(planned.domain)
    except RpexploreError:
        return None


def _useful(planned: AreaPlan, expected: ExpectedCounts, cv_limit: float) -> AreaUsefulness:
    return publishable_in_areas(planned, expected, cv_limit=cv_limit)
