"""Standard errors and targets met against the budget, on the Trade-offs page."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.plan.targets import explanation_of_targets
from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.inputs import number_field
from pages.components.shared.session import attempt, current, escaped, kept, show_messages
from pages.components.shared.solutions import optimum, part_budget
from pages.components.tradeoffs.frontier import use_budget
from rpexplore.analysis import budget_curves, targets_met
from rpexplore.analysis.budget_units import stated_delta
from rpexplore.analysis.measures import Measure
from rpexplore.analysis.sufficient_budgets import SufficientBudget
from rpexplore.common.text import number_text
from rpexplore.figures.budget_curves import Mark, errors_chart, targets_chart
from rpexplore.figures.chart import COLUMNS, Column, in_measure
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.mechanism.variances import cells_differ
from rpexplore.planning.planner import Optimum
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.table_text import readable_title, table_from_text, texts_of_tables

HERE = "budget curves"
SMALLER_ERRORS = "What would smaller errors cost in privacy?"
PROPORTIONS_KEPT = (
    "With this objective, the best plan differs from budget to budget. What is shown for other "
    "budgets keeps the proportions of the current plan; the plan that is made for one can only be "
    "better."
)
MOST_OPTIONS = 1000  # tables to choose from; of more, their attributes are typed
MOST_CURVES = 6  # as many as there are styles to tell apart
QUANTILES, MEDIAN, LEAST_ACCURATE = "quantiles", "median", "least accurate"
SHOWN = {
    QUANTILES: "Least accurate, median and most accurate",
    MEDIAN: "Median by number of attributes",
    LEAST_ACCURATE: "Least accurate by number of attributes",
}
TABLE_COLUMNS = {
    "table": COLUMNS["table"],
    "target": Column("target σ"),
    "present": Column("current σ"),
    "met": Column("met now", "text"),
    "needed_rho": Column("met from ρ"),
    "times": Column("times the current ρ"),
}


def budget_view(solution: Optimum, measure: Measure) -> None:
    """Exact curves of tables, and the budget that a wanted accuracy would take."""
    noise = _noise(solution, part_budget("tables"))
    _curves("tables", lambda: _chosen_curves(solution), noise, measure)


def budget_view_of_part(planned: AreaPlan | QueryPlan, measure: Measure) -> None:
    """The same by level of areas, or for own counts."""
    if isinstance(planned, AreaPlan):
        drawn, scales = budget_curves.area_curves(planned), planned.loss.is_homogeneous
    else:
        drawn, scales = budget_curves.count_curves(planned), planned.objective.is_homogeneous
    _curves(planned.kind, lambda: drawn, planned.noise, measure)
    if not scales:
        st.caption(PROPORTIONS_KEPT)


def _curves(
    kind: str,
    curves: Callable[[], list[budget_curves.Curve]],
    noise: DiscreteNoise | None,
    measure: Measure,
) -> None:
    budget, record_noun = part_budget(kind), current().record_noun
    left, right = st.columns([1, 2], gap="large")
    with left:
        drawn = curves()
        wanted = _wanted_value(kind, drawn, measure, noise)
    if wanted is None:
        rho, value = budget_curves.half_value(drawn[0], budget, measure)
        mark = Mark(rho, value, f"half of it: {budget_curves.times_for_half(measure)} × ρ")
        frame = budget_curves.errors_by_budget(drawn, budget, measure=measure, noise=noise)
    else:
        series, value, enough = wanted
        mark = Mark(enough.needed, value, f"wanted: {measure.text(value, 6)}", series)
        frame = budget_curves.errors_by_budget(drawn, budget, [enough.needed], measure, noise)
    marks = [mark] if mark.rho <= frame["rho"].to_numpy().max() else []

    def take(point: dict[str, Any]) -> None:
        """Fill in what the chosen curve is at the budget that was clicked."""
        of = st.session_state.get("wanted for")
        curve = next((curve for curve in drawn if curve.name == of), drawn[0])
        value = curve.value(point["x"], budget, measure)
        st.session_state[_wanted_key(measure)] = number_text(measure.to_type(value))

    with right:
        chart = errors_chart(drawn, frame, budget, record_noun, marks, measure, noise)
        chart_with_numbers(chart, "Click a point to fill in what it takes.", take=take)


def _noise(solution: Optimum, budget: Budget) -> DiscreteNoise | None:
    """By which an ε is proven; None where it follows from ρ alone, for a rest to be planned."""
    return None if current().then else solution.noise(budget)


def _wanted_key(measure: Measure) -> str:
    return f"wanted {measure.column}"


def _chosen_curves(solution: Optimum) -> list[budget_curves.Curve]:
    """The curves to draw: an overview, and tables of the curator's choice."""
    shown = st.selectbox(
        "Curves", list(SHOWN), format_func=SHOWN.__getitem__, key="curves", bind="query-params"
    )
    if shown == QUANTILES:
        drawn = budget_curves.quantile_curves(solution)
    else:
        is_least = shown == LEAST_ACCURATE
        drawn = budget_curves.order_curves(solution, least_accurate=is_least)
    workload, domain = solution.workload, solution.workload.domain
    few = len(workload) <= MOST_OPTIONS
    typed = st.multiselect(
        "And these tables",
        list(texts_of_tables(domain, workload.tables)) if few else [],
        format_func=lambda text: readable_title(domain, table_from_text(domain, text)),
        key="tables with curves",
        accept_new_options=not few,
        max_selections=max(MOST_CURVES - len(drawn), 2) // (1 if workload.is_marginals else 2),
        placeholder="Choose tables" if few else "Type attributes, as in: age, sex",
        persist_state="session",
    )
    for text in typed:
        drawn.extend(attempt(lambda text=text: _curves_of(solution, text)) or [])
    return drawn


def _curves_of(solution: Optimum, text: str) -> list[budget_curves.Curve]:
    workload = solution.workload
    table = workload.position(table_from_text(workload.domain, text))
    return budget_curves.table_curves(solution, table)


def _wanted_value(
    kind: str, drawn: list[budget_curves.Curve], measure: Measure, noise: DiscreteNoise | None
) -> tuple[int, float, SufficientBudget] | None:
    """Which curve is wanted to be how accurate, and the budget it takes; None: none."""
    budget, record_noun = part_budget(kind), current().record_noun
    st.markdown("**Budget for a wanted accuracy**")
    # By name, which means the same curve among others; a browser keeps what it shows.
    names = [curve.name for curve in drawn]
    name = st.selectbox("Of", names, key="wanted for")
    wanted = number_field(
        f"Wanted {measure.noun} in {escaped(measure.unit(record_noun))}",
        _wanted_key(measure),
        least=0.0,
        placeholder="such as 5",
        help="A point of a curve that is clicked is filled in here. An answer is within 2 standard "
        "errors of the true one, 95 % of the time.",
        persist_state="session",
    )
    if wanted is None or name not in names:
        return None
    series = names.index(name)
    enough = attempt(
        lambda: budget_curves.budget_for_value(drawn[series], wanted, budget, measure, noise)
    )
    if enough is None:
        return None
    sentence = budget_curves.describe_wanted_value(
        drawn[series], wanted, enough, budget, record_noun, measure
    )
    st.markdown(escaped(sentence))
    st.button(
        f"Use this budget: {enough.short_text}",
        on_click=use_budget,
        args=(HERE, enough.budget, kind),
        disabled=enough.is_stated_as(budget),
    )
    show_messages(HERE)
    return series, wanted, enough


def targets_view(solution: Optimum, measure: Measure) -> None:
    """Targets met at rising budgets, the smallest sufficient one, and the last to be met."""
    some, every = targets_met.has_targets(solution)
    if not some:
        st.info(
            "No table has a target yet. Give the tables that need it a wanted standard error on "
            "the Tables page; this view then tells what meeting them costs."
        )
        st.page_link("pages/workload.py", label="To the tables")
        return
    if current().loss.meets_required_targets:
        _required_targets()
        return
    optima = {targets_met.CURRENT: solution}
    if every and solution.loss != targets_met.TARGET_LOSS:
        by_shortfall = optimum(targets_met.TARGET_LOSS)
        if by_shortfall is None:
            return
        optima[targets_met.SHORTFALL] = by_shortfall
    budget = part_budget("tables")
    by_shortfall = optima.get(targets_met.SHORTFALL)
    by_rho = bool(current().then)
    asked = solution, by_shortfall, budget
    outlook = attempt(lambda: kept(targets_met.outlook, *asked, by=(*asked, by_rho), by_rho=by_rho))
    if outlook is None:
        return
    left, right = st.columns([1, 2], gap="large")
    with left:
        _headline(outlook, every)
    by = *optima.values(), budget, by_rho
    frame = kept(targets_met.met_by_budget, optima, budget, by=by, by_rho=by_rho)
    delta = stated_delta(current().budget)
    with right:
        chart_with_numbers(
            targets_chart(
                outlook, frame, budget, delta, current().record_noun, _noise(solution, budget)
            )
        )
    _last_to_be_met(solution, measure)


def _required_targets() -> None:
    """The smallest budget for the required targets, where the objective sees to them first."""
    explanation = explanation_of_targets(required_only=True)
    if explanation is None:
        return
    enough = explanation.enough
    st.metric("All required targets met, from", f"ρ = {enough.rho}")
    st.caption(enough.compared)
    st.markdown(
        "This objective meets the required targets first, and gives what is left to the other "
        "tables: each budget has a plan of its own. Another budget is tried on the Plan page, "
        "which also tells the binding targets."
    )
    st.page_link("pages/plan.py", label="To the plan")


def _headline(outlook: targets_met.Outlook, every: bool) -> None:
    """How many are met, what all would take, and buttons to apply that."""
    met, enough, by_shortfall = (st.container(gap="xxsmall") for _ in range(3))
    met.metric("Targets met now", f"{outlook.met:,} of {outlook.targets:,}")
    enough.metric("All met, with the current objective, from", f"ρ = {outlook.enough.rho}")
    enough.caption(outlook.enough.compared)
    enough.button("Use this budget", on_click=use_budget, args=(HERE, outlook.enough.budget))
    if outlook.by_shortfall is not None:
        by_shortfall.metric(
            "All met, with the smallest shortfall, from", f"ρ = {outlook.by_shortfall.rho}"
        )
        by_shortfall.caption(outlook.by_shortfall.compared)
        by_shortfall.button(
            "Apply this budget and objective",
            on_click=use_budget,
            args=(HERE, outlook.by_shortfall.budget),
            kwargs={"loss": targets_met.TARGET_LOSS},
        )
    elif not every:
        by_shortfall.caption(
            "The plan with the smallest shortfall from targets may do with less. It needs a target "
            "for every table; set the missing ones on the Plan page."
        )
    show_messages(HERE)


def _last_to_be_met(solution: Optimum, measure: Measure) -> None:
    """All tables with a target, the one that needs the largest budget first."""
    budget = part_budget("tables")
    st.subheader("The last to be met first")
    frame = kept(targets_met.last_to_be_met, solution, budget, None, measure.power)
    if cells_differ(solution.table_variances):
        st.caption(
            f"A target is met when the least accurate cell of its table meets it; the "
            f"{measure.nouns} are those of that cell."
        )
    columns = {name: in_measure(column, measure) for name, column in TABLE_COLUMNS.items()}
    numbers(frame, columns, "targets.csv", "Tables with a target, the last to be met first")
