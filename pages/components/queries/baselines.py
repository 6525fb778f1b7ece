"""What the baselines, plainer methods for the same queries, would cost, on the Queries page."""

import streamlit as st

from pages.components.shared.background import Note, worked_out
from pages.components.shared.charts import exhibit, number, numbers
from pages.components.shared.session import current
from rpexplore.analysis.query_baselines import budgets_needed, describe_budgets, query_baselines
from rpexplore.figures.queries import budgets_of_baselines
from rpexplore.queries.planner import QueryOptimum

WAYS = (
    "Noise on every cell: each cell is counted with noise and the noisy cells are added up. A tree "
    "of subtotals: halves, quarters and so on are counted as well. The best on average: the "
    "smallest sum of variances, each compared with its target."
)


def compared(solution: QueryOptimum) -> None:
    """The budget that each way needs for the same targets, drawn and in numbers."""
    st.subheader("Baselines")

    def work(note: Note):
        return query_baselines(solution, on_progress=lambda doing, share: note(share, doing))

    baselines = worked_out("query baselines", (solution,), work)
    if baselines is None:
        return
    budget = current().budget
    frame = budgets_needed(baselines, budget)
    exhibit(
        budgets_of_baselines(frame, budget.unit),
        describe_budgets(frame),
        "Budget that each method needs to meet all targets",
        WAYS,
    )
    with st.expander("The numbers of this chart"):
        columns = {
            "title": "Method",
            "measured": st.column_config.NumberColumn("Numbers measured", format="localized"),
            "rho": number("ρ that meets all targets", frame["rho"]),
            "largest_ratio": number(
                "Largest variance over its target's, at this plan's ρ", frame["largest_ratio"]
            ),
            "mean_ratio": number("The same on average", frame["mean_ratio"]),
            "saved": st.column_config.NumberColumn("Saved by this plan", format="percent"),
        }
        numbers(frame, columns, "query_budgets.csv", "Budget needed by each method")
