"""What the Fairness page compares: the curator's plan and the schemes, and one to look at."""

import streamlit as st

from pages.components.shared.session import attempt, current, escaped, kept
from pages.components.shared.solutions import NO_PLAN, optimum
from rpexplore.analysis import fairness
from rpexplore.analysis.forecast import SCHEMES, Forecast, scheme_of, unweighted
from rpexplore.common.formatting import describe_share, rounded
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.table_variances import CELLS
from rpexplore.planning.optimum import Optimum
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.workload import Workload

OWN = "Your plan"


def forecasts(scenario: Scenario) -> list[Forecast]:
    """The curator's plan and the four schemes, which weigh tables by their own rule alone.

    Empty while they are being worked out or where there are none; the page then says why.
    """
    own, budget = scenario.workload, scenario.budget
    bare = kept(unweighted, own)
    plans: dict[str, tuple[Loss, Workload]] = {name: (loss, bare) for name, loss in SCHEMES.items()}
    if scenario.misses_target:
        st.info(
            f"Your own plan is not among these: table {escaped(scenario.misses_target)} has no "
            "target yet. Set one on the Plan page."
        )
    elif not scheme_of(scenario.loss, own):
        plans = {OWN: (scenario.loss, own), **plans}
    # Each measures attributes as is best for itself: what is best for one rule can make another
    # one look less even than it is.
    solutions: dict[str, Optimum] = {}
    for name, (loss, workload) in plans.items():
        solution = optimum(loss, scenario, workload)
        if solution is None:
            return []
        solutions[name] = solution

    return (
        attempt(
            lambda: [
                kept(Forecast.of_optimum, name, solution, budget, slot=name)
                for name, solution in solutions.items()
            ],
            NO_PLAN,
        )
        or []
    )


def own_scheme() -> str:
    """The scheme that is the curator's own plan; "" if that is none of them."""
    return scheme_of(current().loss, current().workload)


def choose_forecast(compared: list[Forecast]) -> Forecast:
    """The forecast to look at closely: the curator's own plan, or another one."""
    own = own_scheme()
    by_name = {forecast.name: forecast for forecast in compared}
    chosen = st.segmented_control(
        "Plan to look at: all have the same tables and budget",
        list(by_name),
        default=own or compared[0].name,
        format_func=lambda name: f"{name} (your plan)" if name == own else name,
        required=True,
        key="plan_shown",
        bind="query-params",
        help="Your plan, and plans with other rules for how much each table counts.",
    )
    return by_name.get(chosen or "", compared[0])


def at_chosen_cell(compared: list[Forecast], chosen: Forecast) -> tuple[list[Forecast], Forecast]:
    """The forecasts as seen at one cell of each table, which the curator chooses.

    Unchanged where all cells of a table are equally accurate: then there is nothing to choose.
    """
    if not any(forecast.cells_differ for forecast in compared):
        return compared, chosen
    cell = st.segmented_control(
        "The cells of a table are not equally accurate here. Cell to look at",
        list(CELLS),
        default="mean",
        format_func=CELLS.__getitem__,
        required=True,
        key="cell_shown",
        bind="query-params",
        help="Of each table; everything below is about that standard error.",
    )
    there = [kept(forecast.at_cell, cell or "mean", slot=forecast.name) for forecast in compared]
    return there, there[compared.index(chosen)]


def headline(chosen: Forecast) -> None:
    """The least and the most accurate table, and how uneven that is."""
    record_noun = escaped(current().record_noun)
    if fairness.is_even(chosen):
        st.markdown(escaped(fairness.describe_unevenness(chosen, current().record_noun)))
        return
    measures = fairness.measures_of(chosen)
    least, most = (frame["table"][0] for frame in fairness.least_and_most_accurate(chosen, 1))
    largest, smallest, ratio, gini = (column.container(gap="xxsmall") for column in st.columns(4))
    largest.metric("Least accurate table", f"σ = {rounded(measures['largest'], 3)}")
    largest.caption(f"{record_noun}, in {escaped(str(least))}")
    smallest.metric("Most accurate table", f"σ = {rounded(measures['smallest'], 3)}")
    smallest.caption(f"{record_noun}, in {escaped(str(most))}")
    ratio.metric("Least vs most accurate", f"{rounded(measures['ratio'], 3, zeros=True)} times")
    ratio.caption(
        f"{describe_share(measures['within_twice'])} of the tables within twice the smallest"
    )
    gini.metric("Gini index of σ", rounded(measures["gini"], 2, zeros=True))
    gini.caption("0: all tables equally accurate")
