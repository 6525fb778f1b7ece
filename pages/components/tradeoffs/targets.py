"""What the targets cost, on the Trade-offs page: how many are met against the budget."""

import streamlit as st

from pages.components.shared.charts import exhibit, number, numbers
from pages.components.shared.session import current, escaped, kept, show_messages
from pages.components.shared.solutions import optimum
from pages.components.tradeoffs.adopt import use_budget
from rpexplore.analysis import target_curves as targets
from rpexplore.analysis.budget_units import stated_delta
from rpexplore.errors import RpexploreError
from rpexplore.figures import budget_curves as figures
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.optimum import Optimum

HERE = "target curves"


def targets_against_budget(solution: Optimum) -> None:
    """Targets met at rising budgets, the smallest sufficient one, and the last to be met."""
    some, every = targets.has_targets(solution)
    if not some:
        st.info(
            "No table has a target yet. Give the tables that need it a wanted standard error on "
            "the Tables page; this view then tells what meeting them costs."
        )
        st.page_link("pages/workload.py", label="To the tables")
        return
    by_shortfall = None
    if every and solution.loss != targets.TARGET_LOSS:
        by_shortfall = optimum(targets.TARGET_LOSS)
        if by_shortfall is None:
            return
    budget, delta = current().budget, stated_delta(current().budget)
    try:
        found = kept(
            "targets outlook",
            (solution, by_shortfall, budget),
            lambda: targets.outlook(solution, by_shortfall, budget),
        )
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return
    left, right = st.columns([1, 2], gap="large")
    with left:
        _headline(found, every)
    optima = {targets.CURRENT: solution}
    if by_shortfall is not None:
        optima[targets.SHORTFALL] = by_shortfall
    frame = kept(
        "targets met",
        (*optima.values(), budget),
        lambda: targets.met_by_budget(optima, budget),
    )
    marks = [figures.Mark(found.enough.needed, 1.0, f"current objective: ρ = {found.enough.rho}")]
    if found.by_shortfall is not None:
        text = f"{targets.SHORTFALL}: ρ = {found.by_shortfall.rho}"
        marks.append(figures.Mark(found.by_shortfall.needed, 1.0, text, 1))
    with right:
        exhibit(
            figures.targets_by_budget(frame, float(budget.rho), delta, marks),
            targets.describe_outlook(found, current().record_noun),
            "Share of targets met against the budget",
            escaped(targets.describe_by_shortfall(found)),
        )
        with st.expander("The numbers of this chart"):
            columns = {
                "objective": "Objective",
                "rho": number("ρ", frame["rho"], 5),
                "epsilon": number(f"ε at δ = {delta}", frame["epsilon"]),
                "met": st.column_config.NumberColumn("Targets met", format="localized"),
                "share": st.column_config.NumberColumn("Share", format="percent"),
            }
            numbers(frame, columns, "targets_by_budget.csv", "Targets met by budget")
    _last_to_be_met(solution)


def _headline(found: targets.Outlook, every: bool) -> None:
    """How many are met, what all would take, and buttons to apply that."""
    met, enough, by_shortfall = (st.container(gap="xxsmall") for _ in range(3))
    met.metric("Targets met now", f"{found.met:,} of {found.targets:,}")
    enough.metric("All met, with the current objective, from", f"ρ = {found.enough.rho}")
    enough.caption(found.enough.compared)
    enough.button("Use this budget", on_click=use_budget, args=(HERE, found.enough.budget))
    if found.by_shortfall is not None:
        by_shortfall.metric(
            "All met, with the smallest shortfall, from", f"ρ = {found.by_shortfall.rho}"
        )
        by_shortfall.caption(found.by_shortfall.compared)
        by_shortfall.button(
            "Apply this budget and objective",
            on_click=use_budget,
            args=(HERE, found.by_shortfall.budget),
            kwargs={"loss": targets.TARGET_LOSS},
        )
    elif not every:
        by_shortfall.caption(
            "The plan with the smallest shortfall from targets may do with less. It needs a target "
            "for every table; set the missing ones on the Plan page."
        )
    show_messages(HERE)


def _last_to_be_met(solution: Optimum) -> None:
    """All tables with a target, the one that needs the largest budget first."""
    budget = current().budget
    st.subheader("The last to be met first")
    frame = kept(
        "last to be met", (solution, budget), lambda: targets.last_to_be_met(solution, budget)
    )
    if cells_differ(solution.table_variances):
        st.caption(
            "A target is met when the least accurate cell of its table meets it; the standard "
            "errors are those of that cell."
        )
    columns = {
        "table": st.column_config.TextColumn("Table", width="medium"),
        "target": number("Target σ", frame["target"]),
        "standard_error": number("Standard error σ now", frame["standard_error"]),
        "met": "Met now",
        "needed_rho": number("Met from ρ", frame["needed_rho"]),
        "times": number("Times the current budget", frame["times"]),
    }
    numbers(frame, columns, "targets.csv", "Tables with a target, the last to be met first")
