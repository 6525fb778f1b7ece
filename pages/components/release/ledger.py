"""What the ledger holds: on these records, and on others."""

import streamlit as st

from pages.components.shared.charts import listing
from pages.components.shared.session import escaped
from rpexplore.common.formatting import plural
from rpexplore.errors import RpexploreError
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.ledger import Account, Ledger
from rpexplore.releases.ledger_frames import datasets, runs


def ledger_view(planned: ReleasePlan, ledger: Ledger, account: Account) -> None:
    """Every run on the records, and in a line what has been spent on others."""
    with st.expander(f"What the ledger holds: {plural(len(account.runs), 'run')} on these records"):
        if account.runs:
            listing(
                runs(account, planned.budget.records_factor),
                {
                    "run": "Run",
                    "started": "Started (UTC)",
                    "rho": st.column_config.TextColumn(
                        "Charged ρ", help=f"for {planned.budget.unit}"
                    ),
                    "state": "State",
                    "plan": "Plan (SHA-256)",
                    "output": "Folder",
                },
                "Runs on these records",
            )
        st.caption(
            f"Each ρ is for {escaped(planned.budget.unit)}, which this plan protects. A run is "
            "entered before its noise is drawn, and stays charged whether or not it finished."
        )
        try:
            others = datasets(ledger, planned.budget.records_factor, without=account.dataset)
        except RpexploreError as error:
            st.error(escaped(str(error)))
            return
        if len(others):
            st.markdown("Other records in this ledger")
            listing(
                others,
                {"dataset": "Records", "runs": "Runs", "rho": "Spent ρ", "cap": "Budget limit"},
                "Other records in this ledger",
            )
