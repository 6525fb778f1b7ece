"""The share of the budget that records of each cell use, one mark a cell."""

import math

import pandas as pd
import plotly.graph_objects as go

from rpexplore.figures.axes import GRID, finished, plotly_text, style
from rpexplore.figures.labels import shortened

_MOST_TICKS = 6
_LONGEST = 18  # characters of a label on the axis


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
