"""What the Fairness page compares: the curator's plan and the schemes, and one to look at."""

import streamlit as st

from pages.components.shared.charts import metrics
from pages.components.shared.measure import cells_of_open_scenario, measure_input
from pages.components.shared.session import attempt, current, escaped, kept
from pages.components.shared.solutions import NO_PLAN, optimum, part_budget
from rpexplore.analysis import fairness
from rpexplore.analysis.expected_cells import in_measure
from rpexplore.analysis.forecast import SCHEMES, Forecast, scheme_of, unweighted
from rpexplore.analysis.measures import COEFFICIENT_OF_VARIATION
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
    own, budget = scenario.workload, part_budget("tables", scenario)
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


def seen_as_chosen(compared: list[Forecast], chosen: Forecast) -> tuple[list[Forecast], Forecast]:
    """The forecasts in the measure, and at the cell of each table, that the curator chooses."""
    cells = cells_of_open_scenario()
    measure = measure_input([cells])
    there = compared
    if measure != COEFFICIENT_OF_VARIATION and any(plan.cells_differ for plan in compared):
        there = _at_chosen_cell(compared)
    there = [kept(in_measure, plan, measure, cells, slot=plan.name) for plan in there]
    return there, there[compared.index(chosen)]


def _at_chosen_cell(compared: list[Forecast]) -> list[Forecast]:
    cell = st.segmented_control(
        "The cells of a table are not equally accurate here. Cell to look at",
        list(CELLS),
        default="mean",
        format_func=CELLS.__getitem__,
        required=True,
        key="cell_shown",
        bind="query-params",
        help="Of each table; everything below is about that cell.",
    )
    return [kept(forecast.at_cell, cell or "mean", slot=forecast.name) for forecast in compared]


def headline(chosen: Forecast) -> None:
    """The least and the most accurate table, and how uneven that is."""
    record_noun = escaped(current().record_noun)
    if fairness.is_even(chosen):
        st.markdown(escaped(fairness.describe_unevenness(chosen, current().record_noun)))
        return
    found, measure = fairness.measures_of(chosen), chosen.measure
    symbol = measure.symbol
    figures = [
        (
            f"{which} accurate table",
            f"{symbol} = {measure.text(found[end])}",
            f"±{rounded(frame['margin_95'].tolist()[0], 3)} {record_noun} (95 %), in "
            f"{escaped(str(frame['table'][0]))}",
        )
        for which, end, frame in zip(
            ("Least", "Most"),
            ("largest", "smallest"),
            fairness.least_and_most_accurate(chosen, 1),
            strict=True,
        )
    ]
    within = describe_share(found["within_twice"])
    figures += [
        (
            "Least vs most accurate",
            f"{rounded(found['ratio'], 3, zeros=True)} times",
            f"{within} of tables: at most twice",
        ),
        (
            f"Gini index of {symbol}",
            rounded(found["gini"], 2, zeros=True),
            "0: all tables equally accurate",
        ),
    ]
    metrics(*figures)
