"""The results on the Plan page: guarantee, list of tables, simulations, the adaptive plan."""

from typing import Any

import streamlit as st

from pages.components.release.form import adaptive_link
from pages.components.shared.background import worked_out
from pages.components.shared.charts import listing
from pages.components.shared.expected_counts import adaptive_plan_of_scenario
from pages.components.shared.files import download
from pages.components.shared.inputs import attributes_filter
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import accuracy, targets_met
from rpexplore.analysis.adaptive import (
    describe_measured,
    measured_when,
    smooth_alternative,
    trials,
    when_to_choose,
)
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.good_tables import people_by_table
from rpexplore.common.processes import Progress
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.readings import READINGS
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS, SmoothRehearsal
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.results.rehearsal import AdaptiveRehearsal, rehearse_adaptive, rehearse_smooth_tables
from rpexplore.serving.sessions import last_step, plans_only

# ---- Proof and guarantee, all tables as a list, the files: what is one click away.


def proof(planned: TablePlan) -> None:
    """A button for how near to the best possible plan this one is, and what it guarantees."""
    # A plan with strategies is proven best among those with the same strategies.
    best_for = "what is measured" if planned.closure.strategies else "this objective"
    if planned.then is not None:  # the rest, which a pilot's figures decide, is not planned yet
        best_for = "the present weights"
    with st.popover(
        f"Proven optimal for {best_for}", icon=":material/verified:", type="tertiary", key="proof"
    ):
        gap = f"The proven gap is {rounded(planned.certificate.gap, 2, 'up')} of the objective."
        st.markdown(
            f"**Proven optimal for {best_for}.** {escaped(planned.proven)} {gap}",
            help=meaning("Optimality"),
        )
        st.markdown(escaped(planned.guarantee))


def table_list(planned: TablePlan, made: Forecast | None) -> None:
    """All tables as a list that can be sorted, the least accurate first."""
    containing = attributes_filter(planned.workload, "tables containing")
    request = current().request
    frame = kept(
        targets_met.of_tables, planned, containing, request, by=(planned, containing, request)
    )
    if frame.empty:
        st.info("No table has all of these attributes.")
        return
    columns: dict[str, Any] = {name: COLUMNS[name] for name in frame.columns if name in COLUMNS}
    columns["weight"] = st.column_config.NumberColumn("Weight", help=meaning("Weight"))
    if not frame[frame["outcome"] != ""].empty:
        columns |= {
            "wanted": Column("target", "text", term="Target"),
            "required": Column("required", "text", term="Required"),
            "outcome": Column("met or short by", "text"),
        }
    if made is not None:
        order = accuracy.least_accurate_first(planned, containing)
        people = kept(people_by_table, made, order, by=(made, tuple(containing)))
        frame = frame.assign(**people.set_index(frame.index))
        columns |= {
            "people": Column(f"{made.whom} in good cells", "text"),
            "meets": Column("meets the rule", "text"),
        }
    listing(frame, columns, "All tables with their standard errors")


def downloads(planned: TablePlan) -> None:
    """The plan file and the tables, made when they are downloaded."""
    with st.container(horizontal=True):
        download(
            "plan.json",
            lambda: planned.text,
            type="primary",
            help="All that a release needs, and no records: `rpexplore verify plan.json` checks "
            "it, `rpexplore release` runs it where the data lives.",
        )
        download("tables.csv", lambda: accuracy.csv_of_accuracy(planned))


# ---- What smooth tables of a plan would be like, rehearsed on made-up records when asked for.


WANTED, FOUND = "plan of the smooth rehearsal", "the smooth rehearsal"


def smooth_rehearsal(planned: TablePlan) -> None:
    """A button that rehearses the plan, and how near each reading of the tables comes."""
    expected = current().expected
    if expected is None:
        st.caption("Give expected counts, and you can simulate these errors here before the run.")
        return
    key = planned, expected
    if not _is_asked_for(
        WANTED,
        key,
        "Simulate them",
        "The simulation measures made-up records, from the expected counts, as this plan would "
        "measure yours, and compares unbiased, nonnegative and smooth tables with them. It "
        "reads no record and spends nothing.",
    ):
        return
    rehearsal = worked_out(rehearse_smooth_tables, planned, expected)
    if rehearsal is not None:
        st.session_state[FOUND] = key, rehearsal
        _show(rehearsal)


def _is_asked_for(wanted: str, key: tuple, label: str, what: str) -> bool:
    """Whether this session wants the simulation of `key`; else it is explained, and offered."""
    if st.session_state.get(wanted) == key:
        return True
    st.caption(what)
    st.button(
        label,
        on_click=st.session_state.update,
        args=({wanted: key},),
        help=meaning("Simulation"),
    )
    return False


def last_rehearsal(planned: Plan, expected: ExpectedCounts | None) -> SmoothRehearsal | None:
    """The rehearsal of a plan, if this session has made it."""
    key, rehearsal = st.session_state.get(FOUND, (None, None))
    return rehearsal if key == (planned, expected) else None


def _show(rehearsal: SmoothRehearsal) -> None:
    record_noun = current().record_noun
    columns = {name: COLUMNS[name] for name in ("order", "tables")}
    columns["unbiased"] = Column("unbiased", "text")
    if rehearsal.has_nonnegative:
        columns["nonnegative"] = Column("nonnegative", "text")
    columns["smooth"] = Column("smooth", "text", term="Smooth tables")
    # As the sentence above them has them.
    shares = [name for name in READINGS if name in columns]
    frame = rehearsal.frame.assign(**rehearsal.frame[shares].map(describe_share))
    st.markdown(escaped(rehearsal.describe(record_noun)))
    listing(frame, columns, "Simulated errors of unbiased, nonnegative and smooth tables")
    left_out = ""
    if not rehearsal.has_nonnegative:
        left_out = " Nonnegative tables are left out for time."
    st.caption(
        escaped(
            f"Errors of all cells of a table, {WITHOUT_SIGNS}, as a share of the {record_noun}; "
            f"mean over tables, simulated on made-up records. {rehearsal.caution}{left_out} The "
            f"report on the page {last_step().title} has these figures too."
        )
    )
    if current().request.smooth_weights is None:
        st.page_link(
            "pages/workload.py",
            label="Set weights for smooth tables",
            icon=":material/arrow_forward:",
            query_params={"part": "weights"},
        )


# ---- An adaptive plan of the open scenario: when to choose it, what it measures, a rehearsal.


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
        adaptive_link("Hand over this plan" if plans_only() else "Release with it")


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
    if not _is_asked_for(
        _WANTED,
        key,
        "Simulate the adaptive plan",
        "A simulation makes up records from the expected counts, and releases them by this "
        "plan and by a fixed one with weights for smooth tables. No record is read, and "
        "nothing is spent.",
    ):
        return
    rehearsal = worked_out(_rehearsed, *key)
    if rehearsal is None:
        return
    frame = rehearsal.frame
    shares = ["fixed", "adaptive"]
    columns = {"population": Column("made-up records", "text")}
    columns |= {name: COLUMNS[name] for name in ("order", "tables")}
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
