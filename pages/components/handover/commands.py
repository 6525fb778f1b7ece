"""What runs a plan where the records are."""

import streamlit as st

from pages.components.shared.session import escaped
from rpexplore.planning.plan import Plan

COMMANDS = """\
# Check what the plan claims: privacy cost, variances, and how close it is to the best one.
rpexplore verify {plan}

# Where approvals are wanted: sign it with an SSH key, and hand the file on.
rpexplore approve {plan} --key KEY

# Check everything, the records too, and spend nothing.
rpexplore release {plan} data.csv --out folder --dry-run

# Run it, once. Its cost is booked in the ledger beside the records before noise is drawn.
rpexplore release {plan} data.csv --out folder
"""


def commands(planned: Plan) -> None:
    """The plan in a sentence, and the commands that check and run it beside the records."""
    st.subheader("Run it where the records are")
    st.markdown(
        escaped(
            f"The plan: {planned.full_contents}, {planned.budget.amount_text(planned.rho)} for "
            f"{planned.budget.unit}. It is run once, by those who keep the records, on their own "
            "computer: no records come to this server."
        )
    )
    st.code(COMMANDS.format(plan="plan.json"), language="bash", wrap_lines=True)
    if [part.kind for part in planned.parts] == ["tables"]:
        st.caption(
            "Or in their own app (“rpexplore app”): the plan file is dropped on the page Codebook, "
            "and run on the page Release."
        )
    st.markdown(f"SHA-256 of the plan, by which they know that it is this one: `{planned.sha256}`")
