"""An adaptive plan of the open scenario: when to choose it, what it measures, a rehearsal."""

import streamlit as st

from pages.components.release.form import ADAPTIVE, ADDRESS
from pages.components.shared.background import worked_out
from pages.components.shared.charts import listing
from pages.components.shared.expected_counts import adaptive_plan_of_scenario
from pages.components.shared.files import download
from pages.components.shared.session import current, escaped
from rpexplore.analysis.adaptive import (
    describe_measured,
    measured_when,
    smooth_alternative,
    trials,
    when_to_choose,
)
from rpexplore.analysis.glossary import meaning
from rpexplore.common.processes import Progress
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.results.rehearsal import AdaptiveRehearsal, rehearse_adaptive
from rpexplore.serving.sessions import last_step, plans_only

_WANTED = "plan of the adaptive rehearsal"
_FIXED, _ADAPTIVE = Column("smooth, fixed plan", "text"), Column("adaptive", "text")
_STEP_COLUMNS = {
    "step": Column("step", "text"),
    "measured": Column("residuals", "count"),
    "share": Column("share of the budget", "share"),
    "selection_rho": Column("selecting, ρ"),
    "measurement_rho": Column("measuring, ρ"),
}


def adaptive_view() -> None:
    """When to choose such a plan, what it measures, a rehearsal, and where it is released."""
    st.markdown(escaped(" ".join(when_to_choose(None))))
    _trials()
    if current().expected is None:
        st.info("Type above how many there will be, about: by it the budget is divided.")
        return
    made = adaptive_plan_of_scenario()
    if made is None:
        return
    st.markdown("**What a run would measure, and when**")
    st.markdown(escaped(" ".join(describe_measured(made))))
    listing(measured_when(made), _STEP_COLUMNS, "The budget by round")
    _rehearsal(made)
    with st.container(horizontal=True, vertical_alignment="center"):
        download("adaptive-plan.json", made.text)
        st.page_link(
            f"pages/{last_step().page}.py",
            label="Hand over this plan" if plans_only() else "Release with it",
            icon=":material/arrow_forward:",
            query_params={ADDRESS: ADAPTIVE},
        )


def _trials() -> None:
    frame = trials()
    errors = ["fixed", "adaptive"]
    columns = {
        "data": Column("tried with", "text"),
        "epsilon": Column("budget ε", "text"),
        "fixed": _FIXED,
        "adaptive": _ADAPTIVE,
    }
    listing(
        frame.assign(**frame[errors].map(lambda share: f"{rounded(100 * share, 3)} %")),
        columns,
        "Errors of fixed and adaptive plans in trials",
    )
    st.caption(
        f"All 3-way tables, δ = 1e-9: errors of all cells of a table, {WITHOUT_SIGNS}, as a share "
        "of the records; mean over tables and releases."
    )


def _rehearsal(made: AdaptivePlan) -> None:
    expected, record_noun = current().expected, current().record_noun
    if expected is None:
        return
    key = made, expected
    if st.session_state.get(_WANTED) != key:
        st.caption(
            "A simulation makes up records from the expected counts, and releases them by this "
            "plan and by a fixed one with weights for smooth tables. No record is read, and "
            "nothing is spent."
        )
        st.button(
            "Simulate the adaptive plan",
            on_click=st.session_state.update,
            args=({_WANTED: key},),
            help=meaning("Simulation"),
        )
        return
    rehearsal = worked_out(_rehearsed, *key)
    if rehearsal is None:
        return
    frame = rehearsal.frame
    shares = ["fixed", "adaptive"]
    columns = {name: COLUMNS[name] for name in ("order", "tables")}
    columns |= {"fixed": _FIXED, "adaptive": _ADAPTIVE}
    st.markdown(escaped(rehearsal.describe(record_noun)))
    listing(
        frame.assign(**frame[shares].map(describe_share)),
        columns,
        "Simulated errors of an adaptive release and of smooth tables",
    )


def _rehearsed(
    plan: AdaptivePlan, expected: ExpectedCounts, on_progress: Progress
) -> AdaptiveRehearsal:
    on_progress("Planning", 0.0)
    return rehearse_adaptive(plan, smooth_alternative(plan), expected, on_progress=on_progress)
