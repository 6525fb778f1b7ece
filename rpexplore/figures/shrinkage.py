"""Fairness of smooth tables: how far groups are from their unbiased counts, a bar each."""

import pandas as pd

from rpexplore.analysis.results.shrinkage import describe_groups
from rpexplore.common.formatting import rounded
from rpexplore.figures import axes
from rpexplore.figures.chart import COLUMNS, Chart, Column
from rpexplore.figures.plotly_objects import go

MOST_ROWS = 25  # of groups; of more, those that are farthest from their unbiased counts

_COLUMNS = {
    "cells": COLUMNS["cells"],
    "distance": Column("distance in standard errors", digits=3),
    "outside_95": Column("outside the 95 % interval", "share"),
    "clearly_above_1": Column("clearly above 1", "text"),
    "value": Column("smooth count (biased)", "estimate"),
    "unbiased_value": Column("noisy count (unbiased)", "estimate"),
    "standard_error": COLUMNS["standard_error"],
}


def shrinkage_chart(frame: pd.DataFrame, kind: str, file: str) -> Chart:
    """How far each group is from its unbiased counts.

    frame: rows of `ProcessedTables.shrinkage_by_group`, at least one.
    kind: what stands before a group in a sentence: "age", "smooth counts"
    """
    drawn = frame
    remark = "The unbiased count is the truth and noise of one standard error."
    if "yes" in frame["clearly_above_1"].tolist():
        remark += " Hatched: clearly above 1."
    if len(frame) > MOST_ROWS:
        drawn = frame.nlargest(MOST_ROWS, "distance")
        remark += f" The {MOST_ROWS} groups that are farthest are drawn; the numbers have all."
    columns = {"group": Column(kind, "text")}
    columns |= {name: column for name, column in _COLUMNS.items() if any(frame[name].notna())}
    return Chart(
        distances(drawn),
        subject=f"Distance of smooth from unbiased counts in standard errors, by {kind}",
        sentence=describe_groups(frame, kind),
        frame=frame.loc[:, list(columns)],
        columns=columns,
        file=file,
        remark=remark,
        title="How far groups were smoothed",
    )


def distances(frame: pd.DataFrame) -> go.Figure:
    """A bar for each row, with its number, and a line at 1: counts without any error.

    Those clearly above 1 are hatched.
    """
    values = [axes.drawn(value) for value in frame["distance"]]
    above = frame["clearly_above_1"].tolist()
    figure = axes.row_bars(
        list(frame["group"]),
        values,
        [max(value, 1.0) for value in values],  # not on the line
        [rounded(value, 3, zeros=True) for value in values],
        hover="%{x:.3g} standard errors",
        marker={
            "color": axes.style(0).fill(0.65),
            "line": {"color": axes.BLUE, "width": 1},
            "pattern": {"shape": ["/" if answer == "yes" else "" for answer in above]},
        },
        room=0.12,
    )
    line = {"color": axes.GREY, "width": 1.5, "dash": "dot"}
    figure.add_shape(type="line", x0=1, x1=1, y0=0, y1=1, yref="paper", line=line)
    text = {"text": "true counts would be at 1", "showarrow": False, "yanchor": "bottom"}
    # To the left, where there is room: the line may be at the right end.
    figure.add_annotation(x=1, y=1, yref="paper", xanchor="right", **text)
    return axes.with_layout(figure, 90 + 24 * len(values), t=40)
