"""Shares as bars, the number at the end of each."""

import numpy as np
import pandas as pd

from rpexplore.analysis import shadow_prices
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import describe_share
from rpexplore.figures import axes
from rpexplore.figures.chart import Chart, Column, columns_of
from rpexplore.figures.plotly_objects import go

_MOST_BARS = 15


def shadow_prices_chart(forecast: Forecast, kind: str, what: str) -> Chart:
    """The largest shadow prices.

    kind: what a row is, of `analysis.shadow_prices.FRAMES`; what: the loss that they are shares of
    """
    frame = shadow_prices.FRAMES[kind](forecast)
    rows = "number of attributes" if kind == "order" else kind
    remarks = []
    if kind == "attribute":
        remarks.append("A table counts with each of its attributes.")
    if len(frame) > _MOST_BARS:
        remarks.append(f"The first {_MOST_BARS} of {len(frame):,}.")
    return Chart(
        bars(frame.head(_MOST_BARS), what),
        subject=f"Share of {what} by {rows}",
        sentence=shadow_prices.describe_first(frame, kind, what),
        frame=frame,
        columns=columns_of(frame) | {"share": Column("shadow price", "share")},
        file=f"shadow_prices_by_{rows.replace(' ', '_')}.csv",
        remark=" ".join(remarks),
        title="Binding tables",
    )


def bars(frame: pd.DataFrame, what: str) -> go.Figure:
    """One bar a row, from the top: its share of `what`.

    frame: of `analysis.shadow_prices`; its first column names the rows. Where it has
    share_of_tables, a mark shows the share that the row would have if all tables had the same.
    """
    shares = frame["share"].tolist()
    has_marks = "share_of_tables" in frame
    marks = frame["share_of_tables"].tolist() if has_marks else shares
    figure = axes.row_bars(
        frame.iloc[:, 0].tolist(),
        shares,
        # Beside the bar or the mark, whichever reaches further, so that neither hides the number.
        np.maximum(shares, marks).tolist(),
        [describe_share(share) for share in shares],
        hover="%{x:.2%}",
        marker={"color": axes.style(0).fill(0.75)},
        room=0.18,
    )
    if has_marks:
        figure.add_trace(
            go.Scatter(
                x=marks,
                y=list(range(len(marks))),
                mode="markers",
                marker={"symbol": "line-ns", "size": 16, "line": {"color": axes.GREY, "width": 3}},
                hovertemplate="%{x:.2%} of the tables<extra></extra>",
                name="share of the tables",
            )
        )
    figure.update_xaxes(title=f"share of {axes.plotly_text(what)}")
    return axes.with_layout(figure, 110 + 30 * len(shares), legend=has_marks, t=30)
