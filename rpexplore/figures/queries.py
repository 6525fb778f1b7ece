"""Query plans: the budget that each method needs, and the share of it that each cell uses."""

import math

import pandas as pd
import plotly.graph_objects as go

from rpexplore.analysis.query_baselines import OPTIMUM
from rpexplore.common.formatting import rounded
from rpexplore.figures.axes import GRID, finished, plotly_text, shortened, style

_PLAN, _OTHER = style(0), style(1)
_MOST_TICKS = 6
_LONGEST = 18  # characters of a label on the axis


def budgets_of_ways(frame: pd.DataFrame, unit: str) -> go.Figure:
    """One bar a way, from the top, with its ρ and how many times the plan's it is.

    frame: of `analysis.query_baselines.budgets_needed`; unit: what the budget protects
    """
    rows = frame.to_dict("records")
    places, most = list(range(len(rows))), max(row["rho"] for row in rows)
    looks = [_PLAN if row["way"] == OPTIMUM else _OTHER for row in rows]
    figure = go.Figure()
    figure.add_trace(
        go.Bar(
            x=[row["rho"] for row in rows],
            y=places,
            orientation="h",
            marker={
                "color": [look.fill(0.75) for look in looks],
                # Not told by colour alone.
                "pattern": {"shape": ["" if look is _PLAN else "/" for look in looks]},
            },
            hovertext=[plotly_text(row["title"]) for row in rows],
            hovertemplate="%{hovertext}: ρ = %{x:.3~g}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_trace(
        go.Scatter(
            x=[row["rho"] + 0.015 * most for row in rows],
            y=places,
            mode="text",
            text=[_number(row) for row in rows],
            textposition="middle right",
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
    )
    figure.update_xaxes(
        title=f"budget ρ for {plotly_text(unit)} that meets all targets",
        range=[0, 1.35 * most],
        showticklabels=False,  # each bar has its number
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        tickvals=places,
        ticktext=[plotly_text(row["title"]) for row in rows],
        range=[len(rows) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(bargap=0.35)
    return finished(figure, 80 + 40 * len(rows))


def _number(row: dict) -> str:
    rho = f"ρ = {rounded(row['rho'], 3)}"
    return rho if row["way"] == OPTIMUM else f"{rho} ({rounded(row['largest_ratio'], 3)} ×)"


def shares_of_cells(frame: pd.DataFrame) -> go.Figure:
    """The cells in their order; those with unused budget stand out by colour and mark.

    frame: of `analysis.query_profile.profile_of_cells`
    """
    figure = go.Figure()
    for spare, name, look in ((False, "all of it used", 0), (True, "some unused", 1)):
        rows = frame[frame["spare"] == spare]
        if rows.empty:
            continue
        drawn = style(look)
        figure.add_trace(
            go.Scatter(
                x=rows.index.tolist(),
                y=[float(f"{share:.5g}") for share in rows["share"]],
                mode="markers",
                marker={"color": drawn.colour, "symbol": drawn.marker, "size": 7},
                hovertext=[plotly_text(cell) for cell in rows["cell"]],
                hovertemplate="%{hovertext}: %{y:.1%}<extra></extra>",
                name=name,
                showlegend=True,
            )
        )
    cells = frame["cell"].tolist()
    ticks = list(range(0, len(cells), math.ceil(len(cells) / _MOST_TICKS)))
    figure.update_xaxes(
        title="cell",
        tickvals=ticks,
        ticktext=[plotly_text(shortened(cells[tick], _LONGEST)) for tick in ticks],
        range=[-0.5 - 0.01 * len(cells), len(cells) - 0.5 + 0.01 * len(cells)],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        title="share of the budget in use",
        range=[0, 1.06],
        tickformat=".0%",
        gridcolor=GRID,
        zeroline=False,
    )
    figure.update_layout(
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, hovermode="closest"
    )
    return finished(figure, 340).update_layout(margin={"t": 40})
