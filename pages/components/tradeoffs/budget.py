"""What a smaller error costs, on the Trade-offs page: standard errors against the budget."""

import streamlit as st

from pages.components.shared.charts import exhibit, number, numbers
from pages.components.shared.session import current, escaped, show_messages
from pages.components.tradeoffs.adopt import use_budget
from rpexplore.analysis import budget_curves as curves
from rpexplore.analysis.budget_units import stated_delta
from rpexplore.analysis.sufficient_budgets import SufficientBudget, budget_for_error
from rpexplore.errors import RpexploreError
from rpexplore.figures import budget_curves as figures
from rpexplore.planning.optimum import Optimum
from rpexplore.workload.table_text import readable_title, table_from_text, texts_of_tables

HERE = "budget curves"
MOST_OPTIONS = 1000  # tables to choose from; of more, their attributes are typed
MOST_CURVES = 6  # as many as there are styles to tell apart
QUANTILES, MEDIAN, WORST = "quantiles", "median", "worst"
SHOWN = {
    QUANTILES: "Least accurate, median and most accurate",
    MEDIAN: "Median by number of attributes",
    WORST: "Least accurate by number of attributes",
}


def errors_against_budget(solution: Optimum) -> None:
    """Exact curves, and the budget that a wanted standard error would take."""
    budget, record_noun = current().budget, current().record_noun
    left, right = st.columns([1, 2], gap="large")
    with left:
        found = _chosen_curves(solution)
        workload_change = _change(found)
    present, delta = float(budget.rho), stated_delta(budget)
    marks, also = [], []
    if workload_change is None:
        rho, error = curves.half_error(found[0], budget)
        marks.append(figures.Mark(rho, error, "half the error: 4 × ρ"))
    else:
        series, wanted, enough = workload_change
        also.append(enough.needed)
        marks.append(figures.Mark(enough.needed, wanted, f"wanted: {wanted:g}", series))
    frame = curves.errors_by_budget(found, budget, also)
    marks = [mark for mark in marks if mark.rho <= frame["rho"].max()]
    with right:
        exhibit(
            figures.errors_by_budget(frame, present, delta, record_noun, marks),
            curves.describe_curves(found, budget, record_noun),
            "Standard error of a cell against the budget",
        )
        with st.expander("The numbers of this chart"):
            columns = {
                "curve": "Curve",
                "table": "Table",
                "rho": number("ρ", frame["rho"]),
                "epsilon": number(f"ε at δ = {delta}", frame["epsilon"]),
                "standard_error": number("Standard error σ", frame["standard_error"]),
            }
            numbers(frame, columns, "errors_by_budget.csv", "Standard errors by budget")


def _chosen_curves(solution: Optimum) -> list[curves.Curve]:
    """The curves to draw: an overview, and tables of the curator's choice."""
    shown = st.selectbox(
        "Curves", list(SHOWN), format_func=SHOWN.__getitem__, key="curves", bind="query-params"
    )
    if shown == QUANTILES:
        found = curves.quantile_curves(solution)
    else:
        found = curves.order_curves(solution, worst=shown == WORST)
    workload, domain = solution.workload, solution.workload.domain
    few = len(workload) <= MOST_OPTIONS
    typed = st.multiselect(
        "And these tables",
        list(texts_of_tables(domain, workload.tables)) if few else [],
        format_func=lambda text: readable_title(domain, table_from_text(domain, text)),
        key="tables with curves",
        accept_new_options=not few,
        max_selections=max(MOST_CURVES - len(found), 2) // (1 if workload.is_marginals else 2),
        placeholder="Choose tables" if few else "Type attributes, as in: age, sex",
        persist_state="session",
    )
    for text in typed:
        try:
            place = workload.position(table_from_text(domain, text))
        except RpexploreError as error:
            st.error(escaped(str(error)))
        else:
            found.extend(curves.table_curves(solution, place))
    return found


def _change(found: list[curves.Curve]) -> tuple[int, float, SufficientBudget] | None:
    """A wanted standard error, which curve's, and the budget it takes; None without one."""
    budget, record_noun = current().budget, current().record_noun
    st.markdown("**What would a smaller error cost?**")
    places = range(len(found))
    series = st.selectbox(
        "Whose error", places, format_func=lambda place: found[place].name, key="wanted for"
    )
    wanted = st.number_input(
        f"Wanted standard error σ, in {escaped(record_noun)}",
        min_value=0.0,
        value=None,
        key="wanted error",
        placeholder="such as 5",
        help="Within two of these, 95 % of the time.",
        persist_state="session",
    )
    if wanted is None or series is None or series not in places:
        return None
    try:
        enough = budget_for_error(found[series].variance, wanted, budget)
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return None
    st.markdown(
        escaped(curves.describe_workload_change(found[series], wanted, enough, budget, record_noun))
    )
    st.button(
        "Use this budget",
        on_click=use_budget,
        args=(HERE, enough.budget),
        disabled=enough.budget == budget,
    )
    show_messages(HERE)
    return series, wanted, enough
