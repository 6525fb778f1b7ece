"""From before to after: how the accuracy moves, one row a table or a group of tables."""

import math

import pandas as pd

from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.formatting import rounded
from rpexplore.figures import axes
from rpexplore.figures.plotly_objects import go

_LEAST_MARGIN = 1.03  # around the marks, a factor
_CHARACTER = 6.5  # pixels, about


def before_and_after(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> go.Figure:
    """A line from each value before, a hollow mark, to the one after, a filled one.

    frame: columns name, concerned (bool: drawn in another style), before, after (NaN where there is
    none), and note, what stands at the right; one row each, from the top.
    """
    rows, figure = frame.to_dict("records"), go.Figure()
    for y, row in enumerate(rows):
        look = axes.style(int(row["concerned"]))
        for field in ("before", "after"):
            if math.isnan(row[field]):
                continue
            mark = look.mark(11, is_open=field == "before")
            parts = [
                f"{field} {rounded(row[field], 3)}"
                for field in ("before", "after")
                if not math.isnan(row[field])
            ]
            name, note = axes.plotly_text(row["name"]), axes.plotly_text(row["note"])
            figure.add_trace(
                axes.point(row[field], y, mark, f"{name}<br>{', '.join(parts)}<br>{note}")
            )
        if not (math.isnan(row["before"]) or math.isnan(row["after"])):
            figure.add_shape(
                type="line",
                x0=row["before"],
                x1=row["after"],
                y0=y,
                y1=y,
                line={"color": look.colour, "width": 3},
                layer="below",
            )
        figure.add_annotation(
            xref="paper",
            x=1.01,
            y=y,
            text=axes.plotly_text(row["note"]),
            showarrow=False,
            xanchor="left",
        )
    values = [v for v in (*frame["before"], *frame["after"]) if not math.isnan(v)]
    margin = max((max(values) / min(values)) ** 0.1, _LEAST_MARGIN)
    axis = axes.error_axis(min(values) / margin, max(values) * margin, record_noun, measure)
    step = 1 + len(axis["tickvals"]) // 5  # on a narrow screen as well, labels stand side by side
    axis |= {ticks: axis[ticks][::step] for ticks in ("tickvals", "ticktext")}
    figure.update_xaxes(axis, showgrid=True, tickangle=0)
    figure.update_yaxes(axes.row_axis(list(frame["name"])))
    room = 20 + _CHARACTER * max(len(row["note"]) for row in rows)
    return axes.with_layout(figure, 90 + 34 * len(rows), r=room)
