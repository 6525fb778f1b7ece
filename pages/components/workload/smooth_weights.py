"""Weights for smooth tables: what they do to the unbiased errors, before they are applied."""

import streamlit as st

from pages.components.release.form import adaptive_link
from pages.components.shared.background import worked_out
from pages.components.shared.files import finished_at, path_choice, released_folders
from pages.components.shared.inputs import removable
from pages.components.shared.session import attempt, change, current, escaped, kept
from pages.components.shared.solutions import plan
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.scenario_comparison import describe_before_and_after
from rpexplore.analysis.shared_tables import Contender
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.smooth_rehearsal import SAME_NOISE
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.results.rehearsal import describe_smooth_change
from rpexplore.results.second_plan import weights_from_release
from rpexplore.results.smooth_choice import choose_smooth_weights
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import (
    at_budget,
    budget_of_tables,
    describe_added,
    for_smooth_tables,
    smooth_weights,
    weights_are_outdated,
)
from rpexplore.serving.sessions import plans_only
from rpexplore.workload.smooth_weights import SmoothWeights

HERE = "settings"
OPEN = "smooth weights are shown"
REHEARSED = "smooth weights that are rehearsed"
EXPECTED, RELEASED = "Expected counts", "A first release"
TITLE = "Weights for smooth tables"
BY_WHOLE = "Weights for smooth tables at the whole budget"  # of the plan that says the share


def smooth_weights_input(planned: TablePlan | None) -> None:
    """A button; then in its place what the weights do to the tables, and one that applies them."""
    if not st.session_state.get(OPEN):
        st.button(
            TITLE, on_click=st.session_state.update, args=({OPEN: True},), help=meaning(TITLE)
        )
        return
    with st.container(border=True, gap="small"):
        st.markdown(f"**{TITLE}**")
        st.caption(
            f"{meaning(TITLE)} The weights replace those of all tables, the objective becomes the "
            "average error with equal weight per table, and targets stay."
        )
        after, weights = None, _weights()
        if weights is not None:
            proposed = attempt(lambda: kept(_proposed, current(), weights), show=st.info)
            after = None if proposed is None else _effect(planned, proposed)
        key, expected = None, current().expected
        # A rehearsal is of one plan, and a second one is smoothed together with the first.
        is_first = weights is not None and weights.pairs is None
        if is_first and planned is not None and after is not None and expected is not None:
            key = planned, after, expected, current().record_noun
            if st.session_state.get(REHEARSED) == key:
                _rehearsal(*key)
                key = None
        with st.container(horizontal=True):
            if weights is not None:
                st.button(
                    "Apply",
                    on_click=_apply,
                    args=(weights,),
                    type="primary",
                    key="apply smooth weights",
                )
            if key is not None:
                st.button(
                    "Simulate smooth tables",
                    on_click=st.session_state.update,
                    args=({REHEARSED: key},),
                    help=meaning("Simulation"),
                )
            st.button("Close", on_click=_close, key="close smooth weights")


def smooth_weights_in_effect() -> None:
    """The weights for smooth tables, if they are in effect, with a button that removes them."""
    weights = current().request.smooth_weights
    if weights is None:
        return
    removable(escaped(weights.text), "drop smooth weights", _remove)
    if weights.pairs is not None:
        st.caption(
            "Release this plan on the same records: both budgets add up. Then combine both "
            "releases, and make smooth tables of them together."
        )
    if weights_are_outdated(current()):
        st.caption(
            "The budget or the expected number of records is another one now. After a large change "
            "set the weights anew."
        )


def _weights() -> SmoothWeights | None:
    """The weights by expected counts, or by a first release; None, explained, without either."""
    chosen = EXPECTED
    if not plans_only():  # where there are no releases
        choices = [EXPECTED, RELEASED]
        chosen = st.radio("Made from", choices, key="smooth weights by", horizontal=True)
    if chosen == EXPECTED:
        if current().expected is None:
            # The page has one field for it, above.
            st.caption(
                f"They depend on how many {escaped(current().record_noun)} there will be: type the "
                "expected number above."
            )
            return None
        scenario = current()
        budget = _budget_of_tables(smooth_weights(scenario))
        if budget is None:
            return None
        choice = worked_out(choose_smooth_weights, scenario.workload, budget, scenario.expected)
        if choice is None:
            return None
        st.markdown(escaped(choice.describe()))
        if choice.prefers_adaptive:
            adaptive_link("Choose the adaptive plan")
        return choice.weights
    st.caption(
        "For a second release of the same records: pairs of attributes that depend on each other "
        "in the first one have more of the budget. Only its noisy figures are looked at. In trials "
        "both releases together came 3 to 6 % nearer to the truth than one plan of the same "
        "budget at ε = 0.1, and from 2 % nearer to 1 % farther at ε = 1."
    )
    folder = path_choice(
        "First release",
        "first release",
        released_folders(),
        example="releases/survey-2026-11-22",
        help="The folder of a release of tables, or of combined ones.",
    )
    if folder is None:
        return None
    whole = current().budget
    by = folder, finished_at(folder), current().domain, whole
    weights = worked_out(weights_from_release, folder, current().domain, whole, by=by)
    budget = None if weights is None else _budget_of_tables(weights)
    return None if weights is None or budget is None else at_budget(weights, budget)


def _budget_of_tables(weights: SmoothWeights) -> Budget | None:
    """That at which they are set; None, which the page explains, while there is no plan.

    weights: those for the whole budget
    """

    def plan_by_whole() -> TablePlan | None:
        by_whole = attempt(lambda: for_smooth_tables(current(), weights).replaced(name=BY_WHOLE))
        return None if by_whole is None else plan(by_whole)

    are_alone = len(current().kinds) == 1
    return budget_of_tables(current().budget, plan_by_whole, are_alone=are_alone)


def _effect(planned: TablePlan | None, proposed: Scenario) -> TablePlan | None:
    """The tables that are added, and unbiased errors before and after; the plan after."""
    if added := describe_added(current().workload, proposed.workload):
        st.markdown(escaped(added))
    after = plan(proposed)
    if planned is None or after is None:
        return after
    sentence = kept(
        describe_before_and_after,
        Contender(current(), planned),
        Contender(proposed, after),
        by=(planned, after, current().record_noun),
    )
    st.markdown(escaped(sentence))
    return after


def _rehearsal(
    before: TablePlan, after: TablePlan, expected: ExpectedCounts, record_noun: str
) -> None:
    """How much nearer smooth tables come."""
    change_of_smooth = worked_out(describe_smooth_change, before, after, expected, record_noun)
    if change_of_smooth is not None:
        st.markdown(escaped(change_of_smooth))
        st.caption(
            "Made-up records follow the expected counts; everything else about them is invented. "
            f"{SAME_NOISE} No record is read, and nothing is spent."
        )


def _proposed(scenario: Scenario, weights: SmoothWeights) -> Scenario:
    # Under another name, by which the page keeps what belongs to it.
    return for_smooth_tables(scenario, weights).replaced(name=TITLE)


def _apply(weights: SmoothWeights) -> None:
    if change(HERE, lambda: for_smooth_tables(current(), weights)):
        _close()


def _close() -> None:
    st.session_state[OPEN] = False


def _remove() -> None:
    change(HERE, lambda: current().with_request(smooth_weights=None))
