"""What came out of a release beside the forecast that its plan keeps."""

from typing import Any

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.session import escaped
from rpexplore.analysis.outcome import Outcome, outcome_columns
from rpexplore.releases.finished_release import Release


def beside_forecast(release: Any) -> None:
    """Forecast and outcome by number of attributes and by table; nothing without a forecast."""
    if not isinstance(release, Release) or release.plan.forecast is None:
        return
    with st.expander("Forecast and outcome", key="outcome", on_change="rerun") as opened:
        if not opened.open:
            return
        outcome = worked_out(
            Outcome.of,
            release.plan,
            release.part("tables"),
            by=(release.plan.sha256, release.folder),
        )
        if outcome is None:
            return
        first, *others = outcome.sentences
        st.markdown(f"**{escaped(first)}**")
        st.caption(escaped(" ".join(others)))
        st.dataframe(
            outcome_columns(outcome.by_order(), "attributes", outcome.whom),
            hide_index=True,
            alt="Forecast and outcome by number of attributes",
        )
        by_table = outcome.tables()
        if len(by_table):
            st.dataframe(
                outcome_columns(by_table, "table", outcome.whom),
                hide_index=True,
                height=260,
                alt="Forecast and outcome of every table, that farthest below its forecast first",
            )
