"""The publishable share against the budget: what a larger one would buy."""

import pandas as pd

from rpexplore.common.formatting import describe_share
from rpexplore.figures import axes
from rpexplore.figures.chart import Chart, Column
from rpexplore.figures.plotly_objects import go

_HEIGHT = 260


def publishable_share_chart(
    frame: pd.DataFrame, unit: str, now: tuple[float, float], before: tuple[float, float] | None
) -> Chart:
    """Share of publishable cells by budget; the axes stay where they are while the budget moves.

    frame: of `analysis.budget_curves.publishable_by_budget`. unit: that of its budgets, such as
    "ρ". now, before: budget and share of the plan, and of the one before the last change
    """
    budgets = frame["budget"].tolist()
    low, high = min(budgets), max(budgets)
    figure = go.Figure(
        go.Scatter(
            x=budgets,
            y=list(frame["share"]),
            mode="lines",
            line=axes.style(0).line(),
            hovertemplate=f"{unit} = %{{x:.4~g}}: %{{y:.1%}}<extra></extra>",
        )
    )
    if before is not None:
        ring = axes.style(0).mark(is_open=True) | {"color": axes.GREY}
        figure.add_trace(axes.point(*before, ring, hover="before the last change"))
    figure.add_trace(axes.point(*now, axes.style(0).mark(12)))
    figure.update_xaxes(axes.log_axis(low, high, f"privacy budget {unit} (log scale)"))
    figure.update_yaxes(axes.share_axis("publishable cells", -0.02, 1.04))
    sentence = (
        f"At {unit} = {now[0]:.4g}, {describe_share(now[1])} of the cells are publishable; at "
        f"{unit} = {high:.4g}, {describe_share(float(frame['share'].iloc[-1]))}."
    )
    return Chart(
        axes.with_layout(figure, _HEIGHT),
        subject="Share of publishable cells by privacy budget",
        sentence=sentence,
        frame=frame,
        columns={"budget": Column(f"budget {unit}"), "share": Column("publishable share", "share")},
        file="publishable_share_by_budget.csv",
        remark="" if before is None else "Ring: before the last change.",
    )
