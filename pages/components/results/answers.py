"""The answers of a release of a query list, and what is proven of them."""

import streamlit as st

from pages.components.shared.charts import numbers
from pages.components.shared.session import escaped, kept
from rpexplore.common.formatting import rounded
from rpexplore.figures.columns import COLUMNS, Column
from rpexplore.releases.query_release import QueryRelease

ANSWER_COLUMNS = {
    "name": Column("query", "text"),
    "answer": Column("answer", "estimate"),
    "standard_error": COLUMNS["standard_error"],
    "margin_95": COLUMNS["margin_95"],
    "target": Column("target σ"),
    "met": Column("target met", "text"),
}


def browse_answers(release: QueryRelease) -> None:
    """Every query with its noisy answer and its accuracy, and what the plan guarantees."""
    plan = release.plan
    privacy = f"ρ = {rounded(plan.rho, 3, 'up')} ({plan.guarantees[0]}) for {plan.budget.unit}"
    st.markdown(
        f"{escaped(plan.contents)} with {escaped(privacy)}; "
        f"{int(plan.met.sum()):,} of {len(plan.met):,} targets are met. Answers are unbiased, not "
        "rounded, and may be negative."
    )
    st.markdown(f":material/verified: **Accuracy proven best.** {escaped(plan.proven)}")
    answers = kept("answers", (release,), lambda: release.answers)
    alt = "Every query with its noisy answer and its accuracy"
    numbers(answers, ANSWER_COLUMNS, "answers.csv", alt)
    with st.expander("What this release guarantees, in full"):
        st.markdown(escaped(plan.guarantee))
