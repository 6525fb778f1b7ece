"""Shares as bars, the number at the end of each."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rpexplore.analysis import shadow_prices
from rpexplore.common.formatting import describe_share
from rpexplore.figures import axes
from rpexplore.figures.chart import Chart, Column, columns_of

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
        title="Binding tables",
    )


def bars(frame: pd.DataFrame, names: str, what: str) -> go.Figure:
    """One bar a row, from the top: its share of `what`.

    frame: of `analysis.shadow_prices`; names: the column that names the rows. Where the frame has
    share_of_tables, a mark shows the share that the row would have if all tables had the same.
    """
    rows = frame.to_dict("records")
    shares = [row["share"] for row in rows]
    marks = [row.get("share_of_tables", 0.0) for row in rows]
    figure = axes.row_bars(
        [row[names] for row in rows],
        shares,
        # Beside the bar or the mark, whichever reaches further, so that neither hides the number.
        np.maximum(shares, marks).tolist(),
        [describe_share(share) for share in shares],
        hover="%{x:.2%}",
        marker={"color": axes.style(0).fill(0.75)},
        room=0.18,
    )
    if "share_of_tables" in frame:
        figure.add_trace(
            go.Scatter(
                x=marks,
                y=list(range(len(rows))),
                mode="markers",
                marker={"symbol": "line-ns", "size": 16, "line": {"color": axes.GREY, "width": 3}},
                hovertemplate="%{x:.2%} of the tables<extra></extra>",
                name="share of the tables",
            )
        )
    figure.update_xaxes(title=f"share of {axes.plotly_text(what)}")
    return axes.with_layout(figure, 110 + 30 * len(rows), legend="share_of_tables" in frame, t=30)
