"""Fairness of tables and their cells, and of smooth tables by group."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis import distributions
from rpexplore.analysis.measures import STANDARD_ERROR, Accuracy, Measure
from rpexplore.analysis.released_cells import describe_groups
from rpexplore.common.text import capitalised, plural, rounded
from rpexplore.figures import axes
from rpexplore.figures.axes import go
from rpexplore.figures.chart import COLUMNS, Chart, Column, columns_of

# ---- The Fairness chart: accuracy of a cell against cells of its table, a panel for each plan.


_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LARGEST_BUBBLE = 14  # px
_COLUMNS = 2  # of panels: more would lie on each other on a narrow screen
_WIDTH_OF_TITLE = 22  # characters of a line
_GAP = 0.08  # between columns, of the width
_HEIGHT, _ROOM = 150, 65  # px: of a panel, and between rows


def fairness_chart(accuracies: Sequence[Accuracy], record_noun: str, own: str = "") -> Chart:
    """The Fairness chart: a measure of accuracy against the number of cells, log–log.

    own: the plan that is marked
    """
    measure = accuracies[0].measure
    binned = len(accuracies[0].workload) > distributions.MOST_POINTS
    frame = (distributions.bins if binned else distributions.points)(accuracies)
    return Chart(
        by_plan(frame, record_noun, own, measure),
        subject=f"{capitalised(measure.noun)} of a cell against the number of cells of its table, "
        "by plan",
        sentence=distributions.describe(accuracies, record_noun),
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


def single_tables_chart(accuracy: Accuracy, tables: np.ndarray, record_noun: str) -> Chart:
    """Some tables of a plan, each a mark, with their numbers; tables: their positions, (n,)."""
    frame, measure = distributions.points([accuracy], tables), accuracy.measure
    count = plural(len(tables), "table")
    return Chart(
        single_tables(frame, record_noun, measure),
        subject=f"{measure.title} of a cell against the size of single tables",
        sentence=f"{count} of “{accuracy.name}”, each a mark; point at it for its name.",
        frame=frame,
        columns=columns_of(frame),
        file="single_tables.csv",
    )


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
                "x": _as_short(rows["cells"]),
                "y": _as_short(rows[measure.column]),
                "text": texts,
                "hovertemplate": f"{head}<br>cells: {about}%{{x:,.0f}}<br>{measure.noun}: {about}"
                "%{y:,.3~g}<extra></extra>",
                "mode": "markers",
                "marker": marker,
                "name": name,
                "legendgroup": name,
            }
        )
    return traces


def _as_short(numbers: pd.Series) -> np.ndarray:
    """The numbers in half of the bytes, unless some are too large or too small for that."""
    given, limits = numbers.to_numpy(dtype="float64"), np.finfo(np.float32)
    sizes = np.abs(given[given != 0])
    is_short = np.all((sizes >= limits.tiny) & (sizes <= limits.max))
    return given.astype("float32") if is_short else given


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


# ---- Fairness of smooth tables: how far groups are from their unbiased counts, a bar each.


MOST_ROWS = 25  # of groups; of more, those that are farthest from their unbiased counts

_SHRINKAGE_COLUMNS = {
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
    columns |= {
        name: column for name, column in _SHRINKAGE_COLUMNS.items() if any(frame[name].notna())
    }
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
