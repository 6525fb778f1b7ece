"""Trade-offs: average against worst case, plainer mechanisms, what if, shadow prices."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from rpexplore.analysis import binding_targets, frontier, what_if
from rpexplore.analysis.baselines import BASELINE_HEADINGS, PLAN, Comparison, describe_missing
from rpexplore.analysis.measures import STANDARD_ERROR, VARIANCE, Accuracy, Measure
from rpexplore.common.text import capitalised, describe_share, rounded
from rpexplore.figures import axes
from rpexplore.figures.axes import go
from rpexplore.figures.chart import COLUMNS, Chart, Column, columns_of, in_measure
from rpexplore.privacy.budget import Budget

# ---- Average against worst case: the frontier, and where the current plan is.


# A text, the point that it belongs to, and whether it stands below that.
_Label: TypeAlias = tuple[str, tuple[float, float], bool]

_OVERLAP = 1.001  # marks within this factor in both errors have one label


def average_against_worst(
    frame: pd.DataFrame,
    bend: int,
    present: tuple[float, float],
    worst: str,
    record_noun: str,
    measure: Measure = STANDARD_ERROR,
) -> go.Figure:
    """The plans of which none is better at both, as a curve; further down and left is better.

    frame: of `analysis.frontier.points_at`; bend: the row to point out; present: (average, largest)
    of the current plan; worst: what the worst case is called
    """
    rows = frame.to_dict("records")
    look = axes.style(0)
    figure = go.Figure(
        go.Scatter(
            x=[row["average"] for row in rows],
            y=[row["largest"] for row in rows],
            mode="lines+markers",
            line=look.line(),
            marker={"symbol": look.marker, "size": 8},
            hovertext=[
                f"average {rounded(row['average'], 4)} (+{rounded(row['given_up'], 2)} %)<br>"
                f"worst case {rounded(row['largest'], 4)} (−{rounded(row['gained'], 2)} %)"
                for row in rows
            ],
            hoverinfo="text",
            **axes.UNFADED,
        )
    )
    figure.add_trace(axes.point(*present, axes.style(1).mark(17, 3, is_open=True)))
    average = f"average {measure.noun} ({measure.unit(axes.plotly_text(record_noun))})"
    sides = (
        _axis([present[0], *frame["average"]], average),
        _axis([present[1], *frame["largest"]], axes.plotly_text(worst)),
    )
    figure.update_xaxes(sides[0])
    figure.update_yaxes(sides[1])
    for text, point, below in _labels(rows, bend, present):
        x, y = (
            math.log10(value) if axis.get("type") == "log" else value
            for value, axis in zip(point, sides, strict=True)
        )
        low, high = sides[0]["range"]
        is_right = x > low + 0.7 * (high - low)
        shift = -14 if is_right else 14
        figure.add_annotation(
            x=x,
            y=y,
            text=text,
            showarrow=False,
            xanchor="right" if is_right else "left",
            xshift=0 if below else shift,
            yanchor="top" if below else "bottom",
            yshift=-8 if below else 0,
        )
    return axes.with_layout(figure, 385)


_FRONTIER_COLUMNS = {
    "average": Column("average σ", digits=4),
    "largest": Column("worst case", digits=4),
    "given_up": Column("average σ larger by", "change"),
    "gained": Column("worst case smaller by", "change"),
    "worst_weight": Column("weight of the worst case", "share"),
    "gap": Column("proven within"),
}
_AVERAGE = {
    STANDARD_ERROR: "The average is the root of the mean variance.",
    VARIANCE: "The average is the mean variance.",
}


def frontier_chart(
    curve: frontier.Frontier,
    frame: pd.DataFrame,
    present: tuple[float, float],
    sentence: str,
    record_noun: str,
    measure: Measure,
) -> Chart:
    """The frontier with its numbers; frame and present: as of `average_against_worst`."""
    unit = f" ({measure.unit(record_noun)})"
    if curve.worst_loss.relative_to == "target":
        unit = ""
    worst = f"{frontier.worst_case(curve, measure)}{unit}"
    bend = frontier.bend(frame)
    return Chart(
        average_against_worst(frame, bend, present, worst, record_noun, measure),
        subject="The best averages against the best worst cases",
        sentence=sentence,
        frame=frame,
        columns={name: in_measure(column, measure) for name, column in _FRONTIER_COLUMNS.items()},
        file="average_against_worst.csv",
        remark=f"{frontier.describe_marks(curve)} {_AVERAGE[measure]}",
    )


def _labels(rows: list[dict], bend: int, present: tuple[float, float]) -> list[_Label]:
    """Labels of the ends, the bend and the current plan; one label where two coincide."""
    marked = [("best average", rows[0], False), ("best worst case", rows[-1], True)]
    if 0 < bend < len(rows) - 1:
        text = (
            f"average +{rounded(rows[bend]['given_up'], 2)} %, worst case "
            f"−{rounded(rows[bend]['gained'], 2)} %"
        )
        marked.append((text, rows[bend], False))
    labels = [(text, (row["average"], row["largest"]), below) for text, row, below in marked]
    for index, (text, point, below) in enumerate(labels):
        if all(map(_overlap, point, present)):
            labels[index] = (f"{text} (current plan)", point, below)
            return labels
    return [*labels, ("current plan", present, False)]


def _overlap(left: float, right: float) -> bool:
    return max(left, right) <= min(left, right) * _OVERLAP


def _axis(values: Sequence[float], title: str) -> dict:
    """Linear where that shows the values well, however close together they are; else log."""
    low, high = min(values), max(values)
    if high > 3 * low:
        return axes.log_axis(*axes.log_range(low, high), f"{title}, log scale")
    margin = max(0.12 * (high - low), 1e-4 * high)
    return {
        "range": [low - margin, high + margin],
        "title": title,
        "gridcolor": axes.GRID,
        "zeroline": False,
        "nticks": 8,
    }


# ---- A plan beside plainer mechanisms: how many times its privacy cost each of them would need.


_MOST_TIMES = 1000.0
CUT_OFF = f"Bars are cut off at {_MOST_TIMES:,.0f} times."
_PLAN, _BASELINE = axes.style(0), axes.style(1)


def times_of_baselines(comparison: Comparison) -> go.Figure:
    """One bar a baseline that there is, the most expensive on top, then the plan; a log scale."""
    rows = comparison.there
    lengths = [max(min(row.log_times, math.log(_MOST_TIMES)), 0.0) for row in rows]
    # So that what costs the same as the plan has a bar too.
    shortest = 0.01 * max(*lengths, math.log(2))
    values = [shortest + length for length in lengths] + [shortest]
    texts = [row.budget_text.replace(" times", " ×") for row in rows] + ["1 ×"]
    looks = [_BASELINE] * len(rows) + [_PLAN]
    figure = axes.row_bars(
        [*(row.baseline.title for row in rows), PLAN],
        values,
        values,
        texts,
        hover="%{customdata}",
        marker={
            "color": [look.fill(0.75) for look in looks],
            # Not told by colour alone.
            "pattern": {"shape": ["" if look is _PLAN else "/" for look in looks]},
        },
        room=0.6,
    )
    figure.data[0].customdata = texts
    figure.update_xaxes(title="privacy cost ρ for the same errors (log scale)")
    return axes.with_layout(figure, 80 + 36 * len(values))


def is_cut_off(comparison: Comparison) -> bool:
    """Whether some bar is shorter than it should be."""
    return any(row.log_times > math.log(_MOST_TIMES) for row in comparison.there)


def baselines_chart(comparison: Comparison) -> Chart:
    """The privacy cost of plainer mechanisms with its numbers."""
    return Chart(
        times_of_baselines(comparison),
        subject="Privacy cost that plainer mechanisms need for the errors of this plan",
        sentence=comparison.sentences[0],
        frame=comparison.frame(missing=False),
        columns={name: Column(heading, "text") for name, heading in BASELINE_HEADINGS.items()},
        file="baselines.csv",
        remark=f"{CUT_OFF if is_cut_off(comparison) else ''} {describe_missing(comparison)}",
    )


# ---- From before to after: how the accuracy moves, one row a table or a group of tables.


_LEAST_MARGIN = 1.03  # around the marks, a factor
_CHARACTER = 6.5  # pixels, about


def before_and_after(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> go.Figure:
    """A line from each value before, a hollow mark, to the one after, a filled one.

    frame: columns name, concerned (bool: drawn in another style), before, after (NaN where there is
    none), and note, what stands at the right; one row each, from the top.
    """
    # Few traces, and shapes and texts in one step: Plotly checks all anew with each that is added.
    rows, marks = frame.to_dict("records"), []
    hovers = [axes.plotly_text(row["name"]) for row in rows]
    for y, row in enumerate(rows):
        ends = [(field, row[field]) for field in ("before", "after") if not math.isnan(row[field])]
        hovers[y] += f"<br>{', '.join(f'{field} {rounded(end, 3)}' for field, end in ends)}"
        hovers[y] += f"<br>{axes.plotly_text(row['note'])}"
    for concerned in (False, True):
        for field in ("before", "after"):
            of_trace = [
                y
                for y, row in enumerate(rows)
                if bool(row["concerned"]) == concerned and not math.isnan(row[field])
            ]
            if of_trace:
                marks.append(
                    axes.points(
                        [rows[y][field] for y in of_trace],
                        of_trace,
                        axes.style(int(concerned)).mark(11, is_open=field == "before"),
                        [hovers[y] for y in of_trace],
                    )
                )
    figure = go.Figure(marks)
    figure.update_layout(
        shapes=[
            {
                "type": "line",
                "x0": row["before"],
                "x1": row["after"],
                "y0": y,
                "y1": y,
                "line": {"color": axes.style(int(row["concerned"])).colour, "width": 3},
                "layer": "below",
            }
            for y, row in enumerate(rows)
            if not (math.isnan(row["before"]) or math.isnan(row["after"]))
        ],
        annotations=[
            {
                "xref": "paper",
                "x": 1.01,
                "y": y,
                "text": axes.plotly_text(row["note"]),
                "showarrow": False,
                "xanchor": "left",
            }
            for y, row in enumerate(rows)
        ],
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


_ERRORS = {"before": Column("current σ"), "after": Column("changed σ")}
_CHANGE = {"change": Column("change", "change")}
_GROUP_COLUMNS = {
    "name": COLUMNS["attributes"],
    "tables": COLUMNS["tables"],
    "lost": Column("no longer available", "count"),
    **_ERRORS,
    "smallest": Column("smallest change", "change"),
    "change": Column("median change", "change"),
    "largest": Column("largest change", "change"),
}
_TABLE_COLUMNS = {
    "table": COLUMNS["table"],
    "order": COLUMNS["order"],
    "concerned": Column("changed itself", "text"),
    **_ERRORS,
    **_CHANGE,
}
_MOST_DRAWN = 10  # single tables


def columns_of_changes(
    measure: Measure, columns: Mapping[str, Column] = _TABLE_COLUMNS
) -> dict[str, Column]:
    """The columns of the changes of single tables, in a measure."""
    return {name: in_measure(column, measure) for name, column in columns.items()}


def changes_by_order_chart(
    changes: what_if.AccuracyChanges, budget: Budget, sentence: str, record_noun: str
) -> Chart:
    """The accuracy before and after a change, by number of attributes; sentence: on all changes."""
    groups, measure = what_if.by_order(changes, budget), changes.measure
    errors = capitalised(measure.nouns)
    return Chart(
        before_and_after(groups, record_noun, measure),
        subject=f"{errors} before and after the change, by number of attributes",
        sentence=sentence,
        frame=groups,
        columns=columns_of_changes(measure, _GROUP_COLUMNS),
        file="what_if_by_order.csv",
        remark="Hollow: current; filled: changed. Medians; in brackets the range of the changes, "
        "if any.",
    )


def extreme_changes_chart(
    changes: what_if.AccuracyChanges, budget: Budget, record_noun: str
) -> Chart:
    """The single tables, of those not changed themselves, that change most and least."""
    frame, measure = what_if.extremes(changes, budget, _MOST_DRAWN), changes.measure
    columns = {"name": COLUMNS["table"], **_ERRORS, **_CHANGE}
    return Chart(
        before_and_after(frame, record_noun, measure),
        subject=f"{capitalised(measure.nouns)} of single tables before and after the change",
        sentence=what_if.describe_extremes(frame, record_noun, measure),
        frame=frame,
        columns=columns_of_changes(measure, columns),
        file="what_if_extremes.csv",
    )


# ---- Shares as bars, the number at the end of each.


_MOST_BARS = 15


def shadow_prices_chart(accuracy: Accuracy, kind: str, what: str) -> Chart:
    """The largest shadow prices.

    kind: what a row is, of `analysis.shadow_prices.FRAMES`; what: the loss that they are shares of
    """
    frame = binding_targets.FRAMES[kind](accuracy)
    rows = "number of attributes" if kind == "order" else kind
    remarks = []
    if kind == "attribute":
        remarks.append("A table counts with each of its attributes.")
    if len(frame) > _MOST_BARS:
        remarks.append(f"The first {_MOST_BARS} of {len(frame):,}.")
    return Chart(
        bars(frame.head(_MOST_BARS), what),
        subject=f"Share of {what} by {rows}",
        sentence=binding_targets.describe_first(frame, kind, what),
        frame=frame,
        columns=columns_of(frame) | {"share": Column("shadow price", "share")},
        file=f"shadow_prices_by_{rows.replace(' ', '_')}.csv",
        remark=" ".join(remarks),
        title="Binding tables",
    )


def bars(frame: pd.DataFrame, what: str) -> go.Figure:
    """One bar a row, from the top: its share of `what`.

    frame: of `analysis.binding_targets`; its first column names the rows. Where it has
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
