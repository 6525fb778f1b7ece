"""Scenarios side by side on the Scenarios page: inputs, outcomes, curves, single tables."""

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from pages.components.shared.charts import chart_with_numbers, number, numbers
from pages.components.shared.session import bind, escaped, kept, project
from pages.components.shared.solutions import plan
from rpexplore.analysis import scenario_comparison as compared
from rpexplore.analysis.forecast import Forecast
from rpexplore.figures import distributions
from rpexplore.figures.columns import Column
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.scenario import Scenario

MOST = 6  # as many as there are styles to tell apart


def comparison() -> None:
    """Choose scenarios, and see where they differ and what comes of each."""
    st.subheader("Side by side")
    if len(project().scenarios) == 1:
        st.info("There is one scenario so far; duplicate it, and change the copy, to compare.")
        return
    scenarios = _chosen()
    if len(scenarios) < 2:
        st.info("Choose at least two scenarios.")
        return
    plans = [made for each in scenarios if (made := plan(each)) is not None]
    if len(plans) < len(scenarios):
        return
    differing = st.toggle("Only where they differ", key="only differing", persist_state="session")
    asked, found = kept(
        "compared words",
        (*scenarios, *plans),
        lambda: (compared.inputs(scenarios), compared.outcomes(scenarios, plans)),
    )
    _words("What they ask for", asked, scenarios, differing)
    _words("What comes of them", found, scenarios, differing)
    _curves(scenarios, plans)
    _tables(scenarios, plans)


def _chosen() -> list[Scenario]:
    """The scenarios to compare: all but those that were taken out, so that new ones are in."""
    names = project().names
    left_out = st.session_state.setdefault("not compared", frozenset())

    def choose() -> None:
        st.session_state["not compared"] = frozenset(names) - set(st.session_state["compared"])

    shown = [name for name in names if name not in left_out][:MOST]
    chosen = st.multiselect(
        "Scenarios to compare",
        names,
        key=bind("compared", shown),
        on_change=choose,
        max_selections=MOST,
    )
    return [each for each in project().scenarios if each.name in chosen]


def _words(
    heading: str, found: compared.SideBySide, scenarios: list[Scenario], differing: bool
) -> None:
    """A table of words; rows that differ carry a mark, and can be all that is shown."""
    st.markdown(f"**{heading}**")
    frame = found.texts.set_axis([f"scenario {place}" for place in found.texts], axis=1)
    frame.insert(0, "differs", ["≠" if differs else "" for differs in found.differs])
    frame.insert(0, "row", frame.index)
    if differing:
        frame = frame[found.differs]
    if frame.empty:
        st.caption("The same in all of them.")
        return
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        alt=f"{heading}, side by side; ≠ marks what differs",
        column_config={
            "row": st.column_config.TextColumn("", pinned=True),
            "differs": st.column_config.TextColumn("≠", width=40, help="≠: not the same in all"),
            **{f"scenario {place}": each.name for place, each in enumerate(scenarios)},
        },
    )


def _curves(scenarios: list[Scenario], plans: list[Plan]) -> None:
    """The distribution of standard errors of every scenario, in one chart."""
    names = tuple(scenario.name for scenario in scenarios)
    forecasts = [Forecast.of_plan(*pair) for pair in zip(names, plans, strict=True)]
    record_noun = compared.common_noun(scenarios)
    chart = kept(
        "compared curves",
        (*plans, names, record_noun),
        lambda: distributions.chart_by_plan(forecasts, record_noun),
    )
    st.markdown("**How many tables reach which accuracy**")
    chart_with_numbers(
        replace(
            chart,
            subject="Share of tables by standard error, one curve a scenario",
            columns=chart.columns | {"series": Column("scenario", "text")},
            file="scenarios.csv",
        ),
        "A curve further left is a more accurate plan.",
    )


def _tables(scenarios: list[Scenario], plans: list[Plan]) -> None:
    """How single tables fare in two of the scenarios."""
    st.markdown("**Table by table**")
    names = [scenario.name for scenario in scenarios]
    left, right = st.columns(2)
    one = left.selectbox("From", names, key=_still("compared from", names))
    others = [name for name in names if name != one]
    two = right.selectbox("to", others, key=_still("compared to", others))
    before, after = plans[names.index(one)], plans[names.index(two)]
    frame = kept(
        "compared tables", (before, after), lambda: compared.table_differences(before, after)
    )
    st.markdown(escaped(compared.describe_differences(frame, one, two)))
    if frame.empty:
        return
    whose = "typical cell σ" if "left_worst" in frame else "σ"
    numbers(
        frame,
        {
            "table": st.column_config.TextColumn("Table", width="medium"),
            "order": "Attributes",
            "left": number(f"{whose} in {one}", frame["left"]),
            "right": number(f"{whose} in {two}", frame["right"]),
            **_worst_columns(frame, one, two),
            "change": st.column_config.NumberColumn(
                "Change of the typical cell" if "left_worst" in frame else "Change",
                format="percent",
            ),
        },
        "differences.csv",
        f"Standard error of each table in {one} and in {two}",
    )


def _worst_columns(frame: pd.DataFrame, one: str, two: str) -> dict[str, Any]:
    """The least accurate cells, where cells of a table differ."""
    if "left_worst" not in frame:
        return {}
    return {
        "left_worst": number(f"least accurate cell σ in {one}", frame["left_worst"]),
        "right_worst": number(f"least accurate cell σ in {two}", frame["right_worst"]),
    }


def _still(key: str, names: list[str]) -> str:
    """The key of a choice among these names, which is forgotten when it is none of them."""
    if st.session_state.get(key) not in names:
        st.session_state[key] = names[0]
    return key
