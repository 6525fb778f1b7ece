"""The plan beside plainer mechanisms, on the Trade-offs page: why not something simpler?"""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.session import escaped
from pages.components.shared.solutions import plan
from rpexplore.analysis.baselines import BASELINE_HEADINGS, compare, describe_missing
from rpexplore.analysis.measures import Measure
from rpexplore.figures.baselines import CUT_OFF, is_cut_off, times_of_baselines
from rpexplore.figures.chart import Chart, Column
from rpexplore.planning.optimum import Optimum


def baselines_view(solution: Optimum, measure: Measure) -> None:
    """What plainer mechanisms would need for the plan's errors, drawn, in words and in numbers."""
    planned = plan()
    comparison = None if planned is None else worked_out(compare, planned)
    if comparison is None:
        return
    first, *others = comparison.sentences
    columns = {name: Column(heading, "text") for name, heading in BASELINE_HEADINGS.items()}
    chart_with_numbers(
        Chart(
            times_of_baselines(comparison),
            subject="Privacy cost that plainer mechanisms need for the errors of this plan",
            sentence=first,
            frame=comparison.frame(missing=False),
            columns=columns,
            file="baselines.csv",
            remark=f"{CUT_OFF if is_cut_off(comparison) else ''} {describe_missing(comparison)}",
        )
    )
    for sentence in others:
        st.markdown(escaped(sentence))
