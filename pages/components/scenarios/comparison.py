"""Scenarios side by side on the Scenarios page: inputs, outcomes, curves, single tables."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.session import bound, escaped, kept, project
from pages.components.shared.solutions import plan
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.scenarios import side_by_side as scenario_comparison
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.figures.distributions import distribution_by_plan_chart
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.scenario import Scenario

MOST = 6  # as many as there are styles to tell apart


def comparison() -> None:
    """Choose scenarios, and see where their inputs and outcomes differ."""
    st.subheader("Side by side")
    if len(project().scenarios) == 1:
        st.info("There is one scenario; duplicate it, and change the copy, to compare.")
        return
    scenarios = _chosen()
    if len(scenarios) < 2:
        st.info("Choose at least two scenarios.")
        return
    plans = [planned for scenario in scenarios if (planned := plan(scenario)) is not None]
    if len(plans) < len(scenarios):
        return
    differing = st.toggle("Only where they differ", key="only differing", persist_state="session")
    inputs = kept(scenario_comparison.inputs, scenarios)
    outcomes = kept(scenario_comparison.outcomes, scenarios, plans)
    _side_by_side("Inputs", inputs, scenarios, differing)
    _side_by_side("Outcomes", outcomes, scenarios, differing)
    _curves(scenarios, plans)
    _tables(scenarios, plans)


def _chosen() -> list[Scenario]:
    """The scenarios to compare: all but those that were taken out, so that new ones are in."""
    names = project().names
    left_out = st.session_state.setdefault("not compared", frozenset())

    def choose(chosen: list[str]) -> None:
        st.session_state["not compared"] = frozenset(names) - set(chosen)

    shown = [name for name in names if name not in left_out][:MOST]
    chosen = st.multiselect(
        "Scenarios to compare",
        names,
        max_selections=MOST,
        **bound("compared", shown, choose),
    )
    return [scenario for scenario in project().scenarios if scenario.name in chosen]


def _side_by_side(
    heading: str, texts: pd.DataFrame, scenarios: list[Scenario], differing: bool
) -> None:
    """A table of texts; rows that differ carry a mark, and can be all that is shown."""
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


def _curves(scenarios: list[Scenario], plans: list[Plan]) -> None:
    """The distribution of standard errors of every scenario, in one chart."""
    forecasts = [
        kept(Forecast.of_plan, scenario.name, planned, slot=scenario.name)
        for scenario, planned in zip(scenarios, plans, strict=True)
    ]
    record_noun = scenario_comparison.common_noun(scenarios)
    chart = kept(distribution_by_plan_chart, forecasts, record_noun)
    chart = replace(
        chart,
        subject="Share of tables by standard error, one curve a scenario",
        columns=chart.columns | {"series": Column("scenario", "text")},
        file="scenarios.csv",
        remark="A curve further left is a more accurate plan.",
    )
    st.markdown("**Share of tables by accuracy**")
    chart_with_numbers(chart)


def _tables(scenarios: list[Scenario], plans: list[Plan]) -> None:
    """The standard errors of single tables in two of the scenarios."""
    st.markdown("**Table by table**")
    names = [scenario.name for scenario in scenarios]
    left, right = st.columns(2)
    one = left.selectbox("From", names, key=_valid_key("compared from", names))
    others = [name for name in names if name != one]
    two = right.selectbox("to", others, key=_valid_key("compared to", others))
    before, after = plans[names.index(one)], plans[names.index(two)]
    frame = kept(scenario_comparison.table_differences, before, after)
    st.markdown(escaped(scenario_comparison.describe_differences(frame, one, two)))
    if frame.empty:
        return
    differ = "left_largest" in frame  # the cells of some table
    mean = "root mean square of cells" if differ else "standard error"
    columns = {
        "table": COLUMNS["table"],
        "order": COLUMNS["order"],
        "left": Column(f"{mean} σ in {one}"),
        "right": Column(f"{mean} σ in {two}"),
    }
    if differ:
        columns["left_largest"] = Column(f"least accurate cell σ in {one}")
        columns["right_largest"] = Column(f"least accurate cell σ in {two}")
    columns["change"] = Column("change of the root mean square" if differ else "change", "share")
    alt = f"Standard error of each table in {one} and in {two}"
    numbers(frame, columns, "differences.csv", alt)


def _valid_key(key: str, names: list[str]) -> str:
    """The key of a choice among these names, which is forgotten when it is none of them."""
    if st.session_state.get(key) not in names:
        st.session_state[key] = names[0]
    return key
