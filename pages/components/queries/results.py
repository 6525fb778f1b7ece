"""What the plan of a list of queries gives: in numbers, proven, query by query, and as files."""

import streamlit as st

from pages.components.shared.charts import number, numbers
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis.query_outcomes import describe_queries, of_queries, query_headline
from rpexplore.analysis.sufficient_budgets import rho_below_no_queries_are_met
from rpexplore.common.formatting import plural, rounded
from rpexplore.queries.definitions import StatedQueries
from rpexplore.queries.plan import QueryPlan
from rpexplore.queries.planner import QueryOptimum

COMMAND = "rpexplore release query-plan.json records.csv --out released-queries"


def headline(planned: QueryPlan) -> None:
    """How many queries, how many targets are met, privacy, and how far off the list is."""
    top = query_headline(planned, _stated())
    met, privacy = (column.container(gap="xxsmall") for column in st.columns(2))
    met.metric("Targets met", f"{top.met:,} of {top.queries:,}")
    cells = plural(planned.queries.n_cells, "cell")
    met.caption(f"{describe_queries(top.queries)} over {cells}")
    privacy.metric("Privacy", f"ρ = {rounded(planned.rho, 3, 'up')}")
    privacy.caption(f"{'; '.join(planned.guarantees[:2])}; protects {escaped(planned.budget.unit)}")
    st.markdown(f":material/straighten: **Targets.** {escaped(top.text)}")


def certificate(planned: QueryPlan, solution: QueryOptimum) -> None:
    """What is proven of the plan, and of the smallest budget."""
    least = rounded(rho_below_no_queries_are_met(solution, planned.budget), 4, "down")
    st.markdown(
        f":material/verified: **Accuracy proven best.** {escaped(planned.proven)} With less than "
        f"ρ = {least} no method with Gaussian noise meets all targets."
    )


def outcomes(planned: QueryPlan) -> None:
    """Every query with its target and what it gets."""
    stated, record_noun = _stated(), current().record_noun
    st.subheader("Query by query")
    frame = kept("query outcomes", (planned, stated), lambda: of_queries(planned, stated))
    columns = {
        "query": st.column_config.TextColumn("Query", width="medium"),
        "condition": st.column_config.TextColumn("Condition", width="medium"),
        "wanted": "Target",
        "standard_error": number("Standard error σ", frame["standard_error"]),
        "margin_95": number("95 % margin of error", frame["margin_95"]),
        "outcome": "Met or short by",
        "share": st.column_config.NumberColumn("Share of the budget", format="percent"),
    }
    numbers(frame, columns, "queries.csv", "Every query with its target and its standard error")
    st.caption(
        f"Errors are in {escaped(record_noun)}. Share of the budget: whose targets make the "
        "smallest budget as large as it is. Targets of the others are met on the way."
    )


def downloads(planned: QueryPlan) -> None:
    """The plan file, and how it is run where the records are."""
    st.download_button(
        "Download query-plan.json",
        lambda: planned.text,
        "query-plan.json",
        "application/json",
        type="primary",
        on_click="ignore",
    )
    st.caption(
        "The plan file holds everything a release needs, and no records. Where the records are, "
        "this runs it, and enters what it costs in the ledger:"
    )
    st.code(COMMAND, language="bash", wrap_lines=True)


def _stated() -> StatedQueries:
    stated = current().query_list
    assert stated is not None  # there is a plan of it
    return stated
