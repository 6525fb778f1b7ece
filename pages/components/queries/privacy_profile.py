"""Who has unused budget: the privacy profile of a query plan, and what is free to ask of whom."""

import streamlit as st

from pages.components.shared.charts import exhibit, number, numbers
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis.query_profile import describe_profile, profile_of_cells, spare_cells
from rpexplore.figures.queries import shares_of_cells
from rpexplore.queries.plan import QueryPlan


def spare(planned: QueryPlan) -> None:
    """The share of the budget that each cell uses, and the counts that would be free."""
    st.subheader("Who still has unused budget")
    words = describe_profile(planned, current().record_noun)
    if not planned.spare.any():
        st.markdown(escaped(words))
        return
    frame = kept("query profile", (planned,), lambda: profile_of_cells(planned))
    exhibit(
        shares_of_cells(frame),
        words,
        "Share of the budget that the records of each cell use",
        "Everybody is promised the whole budget; who is in a cell that uses less has more privacy "
        "than promised.",
    )
    with st.expander("The numbers of this chart"):
        numbers(
            frame,
            {
                "cell": st.column_config.TextColumn("Cell", width="medium"),
                "share": st.column_config.NumberColumn("Budget in use", format="percent"),
                "spare": "Some unused",
            },
            "query_profile.csv",
            "Share of the budget in use, by cell",
        )
    with st.expander("Counts that would cost nothing more"):
        st.markdown(
            "Each of these cells can be counted as well without anybody's protection falling below "
            "the promise, all of them together: a record is in one cell only. Add any of them to "
            "the list with the error below as its target, and what is met now can still be met at "
            "the same budget."
        )
        free = kept("spare cells", (planned,), lambda: spare_cells(planned))
        numbers(
            free,
            {
                "cell": st.column_config.TextColumn("Cell", width="medium"),
                "profile": st.column_config.NumberColumn("Budget in use", format="percent"),
                "standard_error": number("σ of the free count", free["standard_error"]),
                "present_standard_error": number(
                    "σ from the answers alone", free["present_standard_error"]
                ),
                "combined_standard_error": number(
                    "σ of both together", free["combined_standard_error"]
                ),
            },
            "free_counts.csv",
            "Cells with unused budget and the error of counting them",
        )
