"""Shares as bars, the number at the end of each."""

import pandas as pd
import plotly.graph_objects as go

from rpexplore.analysis import shadow_prices
from rpexplore.common.formatting import describe_share
from rpexplore.figures.axes import GREY, finished, plotly_text, shortened, style
from rpexplore.figures.chart import Chart
from rpexplore.figures.columns import Column, columns_of

_MOST_BARS = 15


def chart(frame: pd.DataFrame, names: str, what: str) -> Chart:
    """The largest shadow prices.

    frame: of `analysis.shadow_prices`, names: the column that names its rows, what: the loss that
    they are shares of
    """
    rows = "number of attributes" if names == "attributes" else names
    remarks = []
    if names == "attribute":
        remarks.append("A table counts with each of its attributes.")
    if len(frame) > _MOST_BARS:
        remarks.append(f"The first {_MOST_BARS} of {len(frame):,}.")
    return Chart(
        bars(frame.head(_MOST_BARS), names, what),
        subject=f"Share of {what} by {rows}",
        sentence=shadow_prices.describe_first(frame, names, what),
        frame=frame,
        columns=columns_of(frame) | {"share": Column("shadow price", "share")},
        file=f"shadow_prices_by_{rows.replace(' ', '_')}.csv",
        remark=" ".join(remarks),
        title="Which tables decide",
    )


def bars(frame: pd.DataFrame, names: str, what: str) -> go.Figure:
    """One bar a row, from the top: its share of `what`.

    frame: of `analysis.shadow_prices`; names: the column that names the rows. Where the frame has
    share_of_tables, a mark shows the share that the row would have if all tables had the same.
    """
    rows = frame.to_dict("records")
    places = list(range(len(rows)))
    marks = [row.get("share_of_tables", 0.0) for row in rows]
    ends = [max(row["share"], mark) for row, mark in zip(rows, marks, strict=True)]
    figure = go.Figure()
    figure.add_trace(
        go.Bar(
            x=[row["share"] for row in rows],
            y=places,
            orientation="h",
            marker={"color": style(0).fill(0.75)},
            hovertext=[plotly_text(str(row[names])) for row in rows],
            hovertemplate="%{hovertext}: %{x:.2%}<extra></extra>",
            showlegend=False,
        )
    )
    if "share_of_tables" in frame:
        figure.add_trace(
            go.Scatter(
                x=marks,
                y=places,
                mode="markers",
                marker={"symbol": "line-ns", "size": 16, "line": {"color": GREY, "width": 3}},
                hovertemplate="%{x:.2%} of the tables<extra></extra>",
                name="share of the tables",
            )
        )
    # Beside the bar or the mark, whichever reaches further, so that neither hides the number.
    figure.add_trace(
        go.Scatter(
            x=[end + 0.02 * max(ends) for end in ends],
            y=places,
            mode="text",
            text=[describe_share(row["share"]) for row in rows],
            textposition="middle right",
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
    )
    figure.update_xaxes(
        title=f"share of {plotly_text(what)}",
        range=[0, 1.18 * max(ends)],
        showticklabels=False,  # each bar has its number
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        tickvals=places,
        ticktext=[plotly_text(shortened(str(row[names]))) for row in rows],
        range=[len(rows) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(
        bargap=0.35, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    )
    finished(figure, 110 + 30 * len(rows))
    figure.update_layout(margin={"t": 30})
    return figure
