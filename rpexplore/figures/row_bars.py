"""Horizontal bars, one a row from the top, each with its number at the end."""

from collections.abc import Sequence

import plotly.graph_objects as go

from rpexplore.figures.axes import numbers_beside, plotly_text, row_axis


def row_bars(
    labels: Sequence[object],
    values: Sequence[float],
    ends: Sequence[float],
    texts: Sequence[str],
    *,
    hover: str,
    marker: dict,
    room: float,
) -> go.Figure:
    """A figure with the bars.

    Args:
        labels: What the rows are called, [n].
        values: The lengths of the bars, [n].
        ends: Beyond which values the numbers stand, [n].
        texts: The numbers, [n].
        hover: How Plotly shows a value.
        marker: How Plotly draws the bars.
        room: For the numbers, as a share of the largest end.
    """
    rows, most = list(range(len(labels))), max(ends)
    bars = go.Bar(
        x=values,
        y=rows,
        orientation="h",
        marker=marker,
        hovertext=[plotly_text(str(label)) for label in labels],
        hovertemplate=f"%{{hovertext}}: {hover}<extra></extra>",
        showlegend=False,
    )
    numbers = numbers_beside([end + 0.02 * most for end in ends], rows, texts)
    figure = go.Figure([bars, numbers.update(showlegend=False)])
    figure.update_xaxes(
        range=[0, (1 + room) * most],
        showticklabels=False,  # each bar has its number
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(row_axis(labels))
    return figure.update_layout(bargap=0.35)
