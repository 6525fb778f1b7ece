"""The Fairness chart: accuracy of a cell against cells of its table, a panel for each plan."""

import math
import textwrap
from collections.abc import Sequence

import pandas as pd

from rpexplore.analysis import variance_by_size
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.formatting import capitalised, rounded
from rpexplore.figures import axes
from rpexplore.figures.chart import Chart, columns_of
from rpexplore.figures.plotly_objects import go

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LARGEST_BUBBLE = 14  # px
_COLUMNS = 2  # of panels: more would lie on each other on a narrow screen
_WIDTH_OF_TITLE = 22  # characters of a line
_GAP = 0.08  # between columns, of the width
_HEIGHT, _ROOM = 150, 65  # px: of a panel, and between rows


def fairness_chart(forecasts: Sequence[Forecast], record_noun: str, own: str = "") -> Chart:
    """The Fairness chart: the measure of the forecasts against the number of cells, log–log.

    own: the plan that is marked
    """
    measure = forecasts[0].measure
    binned = len(forecasts[0].workload) > variance_by_size.MOST_POINTS
    frame = (variance_by_size.bins if binned else variance_by_size.points)(forecasts)
    return Chart(
        by_plan(frame, record_noun, own, measure),
        subject=f"{capitalised(measure.noun)} of a cell against the number of cells of its table, "
        "by plan",
        sentence=variance_by_size.describe(forecasts, record_noun),
        frame=frame,
        columns=columns_of(frame),
        file="accuracy_by_size.csv",
        remark="Each mark stands for the tables of nearly that size and accuracy; the larger, the "
        "more tables."
        if binned
        else "Each mark is a table.",
        title="Accuracy by size of the table",
    )


def by_plan(
    frame: pd.DataFrame, record_noun: str, own: str = "", measure: Measure = STANDARD_ERROR
) -> go.Figure:
    """A panel for each plan, with shared axes.

    frame: of `analysis.variance_by_size.points`, a point a table, or of `.bins`, a bubble a bin,
    its area by the number of tables. own: the plan that is marked as the reader's.
    """
    plans = list(dict.fromkeys(frame["plan"]))
    named: set[str] = set()
    traces = []
    for panel, plan in enumerate(plans):
        for trace in _traces(frame.loc[frame["plan"] == plan], frame, measure):
            trace |= {"xaxis": f"x{_number(panel)}", "yaxis": f"y{_number(panel)}"}
            trace |= {"showlegend": trace["name"] not in named}
            named.add(trace["name"])
            traces.append(trace)
    titles = [f"{plan} (yours)" if plan == own else plan for plan in plans]
    return _figure(traces, frame, record_noun, titles, measure)


def single_tables(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> go.Figure:
    """Every table of one plan as a point, drawn by WebGL: made for ten thousand and more.

    frame: of `analysis.variance_by_size.points` for one plan
    """
    traces = [trace | {"type": "scattergl"} for trace in _traces(frame, frame, measure)]
    return _figure(traces, frame, record_noun, [""], measure)


def _traces(part: pd.DataFrame, whole: pd.DataFrame, measure: Measure) -> list[dict]:
    """One trace for each group of orders of a plan."""
    traces = []
    for group in sorted(set(part["group"])):
        rows, look = part.loc[part["group"] == group], axes.style(group)
        name = str(rows["attributes"].iloc[0])
        marker = {"color": look.colour, "symbol": look.marker, "size": 6, "opacity": 0.75}
        if "tables" in part:
            marker |= {
                "size": list(rows["tables"]),
                "sizemode": "area",
                "sizeref": 2 * max(whole["tables"]) / _LARGEST_BUBBLE**2,
                "sizemin": 3,
            }
            texts = [f"{count:,}" for count in rows["tables"]]
            head, about = f"tables of {name}: %{{text}}", "about "
        else:
            texts = [axes.plotly_text(table) for table in rows["table"]]
            head, about = "%{text}", ""
        traces.append(
            {
                "type": "scatter",
                "x": rows["cells"].to_numpy(dtype="float32"),
                "y": rows[measure.column].to_numpy(dtype="float32"),
                "text": texts,
                "hovertemplate": f"{head}<br>cells: {about}%{{x:,.0f}}<br>{measure.noun}: {about}"
                f"%{{y:{measure.hover}}}<extra></extra>",
                "mode": "markers",
                "marker": marker,
                "name": name,
                "legendgroup": name,
            }
        )
    return traces


def _figure(
    traces: list[dict],
    frame: pd.DataFrame,
    record_noun: str,
    titles: list[str],
    measure: Measure,
) -> go.Figure:
    """The figure with a panel for each title.

    Made of plain values in one go: adding to a Plotly figure bit by bit takes several times as
    long.
    """
    panels = len(titles)
    columns = min(panels, _COLUMNS)
    rows = math.ceil(panels / columns)
    inside = rows * _HEIGHT + (rows - 1) * _ROOM
    width, height, room = (1 + _GAP) / columns - _GAP, _HEIGHT / inside, _ROOM / inside
    cells_low, cells_high = axes.log_range(min(frame["cells"]), max(frame["cells"]))
    low, high = axes.log_range(min(frame[measure.column]), max(frame[measure.column]))
    across = _axis(cells_low, cells_high, 4 if panels > 1 else 9, whole=True)
    upwards, name = _axis(low, high, 8), measure.label(axes.plotly_text(record_noun), "log scale")
    if measure.is_share:
        upwards["ticktext"] = [measure.text(tick, 4) for tick in upwards["tickvals"]]
    layout: dict = {"annotations": []}
    for panel, title in enumerate(titles):
        (row, column), number = divmod(panel, columns), _number(panel)
        left, top, in_middle = column * (width + _GAP), 1 - row * (height + room), row == rows // 2
        layout[f"xaxis{number}"] = across | {
            "domain": [left, left + width],
            "anchor": f"y{number}",
            "title": "cells of the table" if panel + columns >= panels else None,
        }
        layout[f"yaxis{number}"] = upwards | {
            "domain": [max(top - height, 0), top],
            "anchor": f"x{number}",
            "showticklabels": column == 0,
            "title": name if in_middle and not column else "",
        }
        lines = textwrap.wrap(title, _WIDTH_OF_TITLE)
        layout["annotations"].append(
            {
                "text": "<br>".join(map(axes.plotly_text, lines)),
                "x": left + width / 2,
                "y": top,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "center",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 13},
            }
        )
    figure = go.Figure({"data": traces, "layout": layout})
    axes.with_layout(figure, inside + 140, legend=True, t=80)
    return figure.update_layout(legend_y=1 + 40 / inside, legend_itemsizing="constant")


def _number(panel: int) -> str:
    """How Plotly numbers axes: the first one has none."""
    return "" if panel == 0 else str(panel + 1)


def _axis(low: float, high: float, most: int, *, whole: bool = False) -> dict:
    """A log axis with at most so many ticks, large powers of ten in few characters.

    whole: ticks are whole numbers only
    """
    axis = axes.log_axis(low, high)
    ticks = [tick for tick in axis["tickvals"] if not whole or float(tick).is_integer()]
    if len(ticks) > most:
        decades = [tick for tick in ticks if _exponent(tick) is not None]
        ticks = decades if len(decades) >= 2 else ticks
        ticks = ticks[:: math.ceil(len(ticks) / most)]
    return axis | {"tickvals": ticks, "ticktext": [_tick_text(tick) for tick in ticks]}


def _exponent(tick: float) -> int | None:
    """10 to the power of what this is, if that is a whole number."""
    exponent = round(math.log10(tick))
    return exponent if math.isclose(tick, 10.0**exponent, rel_tol=1e-9) else None


def _tick_text(tick: float) -> str:
    exponent = _exponent(tick)
    if exponent is not None and exponent >= 5:
        return f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return rounded(tick, 4)
