"""A table of texts, one column a scenario, on the Scenarios page."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from rpexplore.scenarios.scenario import Scenario


def texts_of_scenarios(
    heading: str, texts: pd.DataFrame, scenarios: Sequence[Scenario], *, differing: bool
) -> None:
    """Rows that differ carry a mark, and can be all that is shown."""
    st.markdown(f"**{heading}**")
    rows = texts.loc[texts["differs"]] if differing else texts
    names = [f"scenario {index}" for index in range(len(scenarios))]
    frame = rows.set_axis([*names, "differs"], axis=1)
    frame["differs"] = ["≠" if differs else "" for differs in rows["differs"]]
    frame.insert(0, "row", frame.index)
    if frame.empty:
        st.caption("The same in all scenarios.")
        return
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        alt=f"{heading}, side by side; ≠ marks what differs",
        column_order=["row", "differs", *names],
        column_config={
            "row": st.column_config.TextColumn("", pinned=True),
            "differs": st.column_config.TextColumn("≠", width=40, help="≠: not the same in all"),
            **{name: scenario.name for name, scenario in zip(names, scenarios, strict=True)},
        },
    )
