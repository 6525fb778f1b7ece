"""Scenarios side by side on the Scenarios page: inputs, outcomes, curves, single tables."""

import streamlit as st

from pages._optima import plan
from pages._session import current, escaped, kept, study
from rpexplore.analysis import comparison as compared
from rpexplore.analysis import distributions
from rpexplore.analysis.forecasts import Forecast
from rpexplore.figures import curves as figures
from rpexplore.plan import Plan
from rpexplore.scenario import Scenario
from rpexplore.words import column_format

MOST = 6  # as many as there are styles to tell apart


def comparison() -> None:
    """Choose scenarios, and see where they differ and what comes of each."""
    st.subheader("Side by side")
    names = study().names
    if len(names) == 1:
        st.info("There is one scenario so far; duplicate it, and change the copy, to compare.")
        return
    chosen = st.multiselect(
        "Scenarios to compare",
        names,
        default=names[:MOST],
        key="compared",
        max_selections=MOST,
        persist_state="session",
    )
    scenarios = [each for each in study().scenarios if each.name in chosen]
    if len(scenarios) < 2:
        st.info("Choose at least two scenarios.")
        return
    plans = [plan(scenario) for scenario in scenarios]
    pairs = [(each, made) for each, made in zip(scenarios, plans, strict=True) if made is not None]
    if len(pairs) < len(scenarios):
        return
    made = [found for _, found in pairs]
    differing = st.toggle("Only where they differ", key="only differing", persist_state="session")
    _words("What they ask for", compared.inputs(scenarios), differing)
    _words("What comes of them", compared.outcomes(scenarios, made), differing)
    _curves(scenarios, made)
    _tables(scenarios, made)


def _words(heading: str, frame, differing: bool) -> None:
    """A table of words; rows that differ carry a mark, and can be all that is shown."""
    shown = frame[frame["differs"]] if differing else frame
    st.markdown(f"**{heading}**")
    if shown.empty:
        st.caption("The same in all of them.")
        return
    first = frame.columns[0]
    st.dataframe(
        shown.assign(differs=shown["differs"].map({True: "≠", False: ""})),
        hide_index=True,
        height="content",
        alt=f"{heading}, side by side; ≠ marks what differs",
        column_order=[first, "differs", *frame.columns[1:-1]],
        column_config={
            first: st.column_config.TextColumn("", pinned=True),
            "differs": st.column_config.TextColumn("≠", width=40, help="≠: not the same in all"),
        },
    )


def _curves(scenarios: list[Scenario], plans: list[Plan]) -> None:
    """The distribution of standard errors of every scenario, in one chart."""
    forecasts = [
        Forecast.of_plan(scenario.name, made)
        for scenario, made in zip(scenarios, plans, strict=True)
    ]
    key = tuple(plans) + tuple(scenario.name for scenario in scenarios)
    curves, quantiles = kept(
        "compared curves",
        key,
        lambda: (
            distributions.curves_by_plan(forecasts),
            distributions.quantiles_by_plan(forecasts),
        ),
    )
    counted = current().counted
    sentence = distributions.by_plan_in_words(quantiles, counted)
    st.markdown("**How many tables reach which accuracy**")
    st.plotly_chart(
        figures.shares_of_tables(curves, counted),
        alt=f"Share of tables by standard error, one curve a scenario. {sentence}",
        config={"displayModeBar": False},
    )
    st.caption(f"{escaped(sentence)} A curve further left is a more accurate plan.")
    with st.expander("The numbers of this chart"):
        st.dataframe(quantiles, hide_index=True, alt="Quantiles of the standard error by scenario")
        st.download_button(
            "Download scenarios.csv", curves.to_csv(index=False), "scenarios.csv", on_click="ignore"
        )


def _tables(scenarios: list[Scenario], plans: list[Plan]) -> None:
    """How single tables fare in two of the scenarios."""
    st.markdown("**Table by table**")
    names = [scenario.name for scenario in scenarios]
    left, right = st.columns(2)
    one = left.selectbox("From", names, key="compared from", persist_state="session")
    two = right.selectbox(
        "to", [name for name in names if name != one], key="compared to", persist_state="session"
    )
    before, after = plans[names.index(one)], plans[names.index(two)]
    frame = kept(
        "compared tables", (before, after), lambda: compared.table_differences(before, after)
    )
    st.markdown(escaped(compared.differences_in_words(frame, one, two)))
    if frame.empty:
        return
    digits = column_format([*frame["left"], *frame["right"]])
    st.dataframe(
        frame.assign(change=100 * frame["change"]),
        hide_index=True,
        lazy=len(frame) > 2000,
        alt=f"Standard error of each table in {one} and in {two}",
        column_config={
            "table": st.column_config.TextColumn("Table", width="medium"),
            "order": "Attributes",
            "left": st.column_config.NumberColumn(f"σ in {one}", format=digits),
            "right": st.column_config.NumberColumn(f"σ in {two}", format=digits),
            "change": st.column_config.NumberColumn("Change", format="%+.1f %%"),
        },
    )
    st.download_button(
        "Download differences.csv",
        lambda: frame.to_csv(index=False),
        "differences.csv",
        on_click="ignore",
    )
