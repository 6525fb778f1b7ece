"""The areas of scenarios side by side, on the Scenarios page."""

from collections.abc import Sequence

import streamlit as st

from pages.components.areas.study import area_outcome
from pages.components.scenarios.texts import texts_of_scenarios
from pages.components.shared.session import escaped, kept
from rpexplore.analysis.scenarios.areas_side_by_side import area_inputs, area_outcomes
from rpexplore.common.formatting import joined
from rpexplore.scenarios.scenario import Scenario


def areas_of_scenarios(scenarios: Sequence[Scenario]) -> None:
    """Inputs and outcomes of those that have areas; they are planned one after another."""
    having = [scenario for scenario in scenarios if scenario.areas is not None]
    others = [f"“{scenario.name}”" for scenario in scenarios if scenario.areas is None]
    if others:
        st.caption(escaped(f"Without areas: {joined(others)}."))
    inputs = kept(area_inputs, having)
    texts_of_scenarios("Inputs", inputs, having, differing=False)
    outcomes = []
    for scenario in having:
        outcome = area_outcome(scenario)
        if outcome is None:
            return
        outcomes.append(outcome)
    texts_of_scenarios("Outcomes", kept(area_outcomes, having, outcomes), having, differing=False)
    if inputs.loc[["Areas", "Tables", "Objective"], "differs"].any():
        st.caption(
            "The objective compares plans only where areas, tables with their weights and targets, "
            "and the objective itself are the same."
        )
