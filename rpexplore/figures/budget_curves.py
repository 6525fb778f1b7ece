"""Curves against the budget: accuracy, and the shares of targets met and of publishable cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis import targets_met
from rpexplore.analysis.budget_curves import Curve, describe_curves
from rpexplore.analysis.budget_units import stated_delta
from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.text import capitalised, plural, rounded
from rpexplore.figures import axes
from rpexplore.figures.axes import go, shortened
from rpexplore.figures.chart import COLUMNS, Chart, Column
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.privacy.discrete_noise import DiscreteNoise, proven_epsilon

# The budget is on a log axis, ρ below and ε above; the current one is a dashed line.


_HEIGHT = 385
_CHARACTER = 6.5  # pixels, about, of a letter
_LABEL_ROOM = 0.06  # of the height of the axis, for a line of text
_POINTS_OF_EPSILON = 15
_MOST_SHARE = 1.32  # where the axis of shares ends: texts stand above 1


@dataclass(frozen=True)
class Mark:
    """A point to point out: at ρ, on the curve of a series, with a text beside it."""

    rho: float
    value: float
    text: str
    series: int = 0


def errors_by_budget(
    frame: pd.DataFrame,
    present: float,
    delta: str,
    record_noun: str,
    marks: Sequence[Mark] = (),
    measure: Measure = STANDARD_ERROR,
    noise: DiscreteNoise | None = None,
) -> go.Figure:
    """A measure against the budget on log axes, each curve labelled at its end.

    frame: of `analysis.budget_curves.errors_by_budget`; present: ρ; delta: that of ε, as text;
    noise: by which ε is proven, at any scale, as for the frame
    """
    column = measure.column
    low, high = axes.log_range(min(frame[column]), max(frame[column]))
    figure, ends = go.Figure(_epsilon_line(frame, low, delta)), []
    for series in sorted(set(frame["series"])):
        rows = frame.loc[frame["series"] == series]
        look, curve, table = axes.style(series), rows["curve"].iloc[0], rows["table"].iloc[0]
        which = f"{curve}: {table}" if table not in ("", curve) else curve
        figure.add_trace(
            go.Scatter(
                x=list(rows["rho"]),
                y=list(rows[column]),
                mode="lines+markers",
                line=look.line(),
                marker={"size": 5, "symbol": "circle"},
                **axes.UNFADED,
                text=[measure.text(value) for value in rows[column]],
                hovertemplate=f"{measure.symbol} = %{{text}}  {axes.plotly_text(which)}"
                "<extra></extra>",
            )
        )
        now = rows.loc[(rows["rho"] - present).abs().idxmin()]
        figure.add_trace(axes.point(present, float(now[column]), look.mark()))
        ends.append((float(rows[column].iloc[-1]), shortened(curve), look.colour))
    figure.update_yaxes(axes.error_axis(low, high, record_noun, measure, of=""))
    limits = min(frame["rho"]), max(frame["rho"])
    for mark in marks:
        look = axes.style(mark.series).mark(is_open=True)
        figure.add_trace(axes.point(mark.rho, mark.value, look))
        _label_in_a_free_corner(figure, mark, limits, (low, high))
    _budget_axes(figure, limits, delta, noise)
    _mark_present(figure, present, _LABEL_ROOM, 1 - 2 * _LABEL_ROOM)
    _label_ends(figure, ends, (low, high))
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(unifiedhovertitle={"text": "ρ = %{x:,.4~g}"})
    room = 30 + _CHARACTER * max(len(name) for _, name, _ in ends)
    return axes.with_layout(figure, _HEIGHT, r=room, t=60)


def errors_chart(
    curves: Sequence[Curve],
    frame: pd.DataFrame,
    budget: Budget,
    record_noun: str,
    marks: Sequence[Mark],
    measure: Measure,
    noise: DiscreteNoise | None,
) -> Chart:
    """The curves with their numbers; frame: of `analysis.budget_curves.errors_by_budget`."""
    delta = stated_delta(budget)
    figure = errors_by_budget(frame, float(budget.rho), delta, record_noun, marks, measure, noise)
    return Chart(
        figure,
        subject=f"{capitalised(measure.noun)} against the budget",
        sentence=describe_curves(curves, budget, record_noun, measure, noise),
        frame=frame,
        columns={
            "curve": Column("curve", "text"),
            "table": COLUMNS["table"],
            "rho": COLUMNS["rho"],
            "epsilon": Column(f"the same as ε at δ = {delta}"),
            measure.column: COLUMNS[measure.column],
        },
        file="errors_by_budget.csv",
    )


def targets_by_budget(
    frame: pd.DataFrame,
    present: float,
    delta: str,
    marks: Sequence[Mark] = (),
    noise: DiscreteNoise | None = None,
) -> go.Figure:
    """Share of the targets met against the budget, one step curve for each objective.

    frame: of `analysis.target_curves.met_by_budget`; the marks say whose curve is which; noise: of
    the first objective, by which the ε of the axis are proven.
    """
    low, high = axes.log_range(min(present, *frame["rho"]), max(present, *frame["rho"]))
    figure = go.Figure()
    for series, (objective, rows) in enumerate(frame.groupby("objective", sort=False)):
        look = axes.style(series)
        hover = [
            f"{plural(met, 'target')} met from {rho_text(rho, 4, 'nearest')} on<br>"
            f"(ε = {rounded(epsilon, 3, 'up')} at δ = {delta}), {axes.plotly_text(str(objective))}"
            for met, rho, epsilon in zip(rows["met"], rows["rho"], rows["epsilon"], strict=True)
        ]
        figure.add_trace(
            go.Scatter(
                x=[low, *rows["rho"], high],
                y=[0.0, *rows["share"], 1.0],
                mode="lines",
                line=look.line(shape="hv"),
                hovertext=[hover[0], *hover, hover[-1]],
                hoverinfo="text",
                name=axes.plotly_text(str(objective)),
            )
        )
    figure.update_yaxes(axes.share_axis("share of targets met", 0, _MOST_SHARE))
    for level, mark in enumerate(marks):
        figure.add_trace(axes.point(mark.rho, mark.value, axes.style(mark.series).mark()))
        is_left = mark.rho < math.sqrt(low * high)  # of the middle: then there is room at the right
        figure.add_annotation(
            x=math.log10(mark.rho),
            y=1 + 0.09 * level,
            text=axes.plotly_text(mark.text),
            showarrow=False,
            xanchor="left" if is_left else "right",
            yanchor="bottom",
            xshift=8 if is_left else -8,
            yshift=4,
        )
    _budget_axes(figure, (low, high), delta, noise)
    _mark_present(figure, present, 0, 1 / _MOST_SHARE)
    return axes.with_layout(figure, _HEIGHT, t=60)


def targets_chart(
    outlook: targets_met.Outlook,
    frame: pd.DataFrame,
    budget: Budget,
    delta: str,
    record_noun: str,
    noise: DiscreteNoise | None,
) -> Chart:
    """The share of targets met with its numbers; frame: of `targets_met.met_by_budget`."""
    enough, by_shortfall = outlook.enough, outlook.by_shortfall
    marks = [Mark(enough.needed, 1.0, f"current objective: ρ = {enough.rho}")]
    if by_shortfall is not None:
        text = f"{targets_met.SHORTFALL}: ρ = {by_shortfall.rho}"
        marks.append(Mark(by_shortfall.needed, 1.0, text, 1))
    return Chart(
        targets_by_budget(frame, float(budget.rho), delta, marks, noise),
        subject="Share of targets met against the budget",
        sentence=targets_met.describe_outlook(outlook, record_noun),
        frame=frame,
        columns={
            "objective": Column("objective", "text"),
            "rho": Column("budget ρ", digits=5),
            "epsilon": Column(f"the same as ε at δ = {delta}"),
            "met": Column("targets met", "count"),
            "share": COLUMNS["share"],
        },
        file="targets_by_budget.csv",
        remark=targets_met.describe_by_shortfall(outlook),
    )


def _label_in_a_free_corner(
    figure: go.Figure, mark: Mark, limits: tuple[float, float], errors: tuple[float, float]
) -> None:
    """A mark's text with a line to it. The curves fall: they leave two corners free."""
    is_right = mark.rho > math.sqrt(limits[0] * limits[1])  # of the middle; free there: the top
    low, high = errors
    below_texts = high * (low / high) ** (2 * _LABEL_ROOM)
    figure.add_shape(
        type="line",
        x0=mark.rho,
        x1=mark.rho,
        y0=mark.value,
        y1=below_texts if is_right else low,
        line={"color": axes.GREY, "width": 1.5, "dash": "dot"},
        layer="below",
    )
    figure.add_annotation(
        x=math.log10(mark.rho),
        yref="paper",
        y=1 - _LABEL_ROOM if is_right else 0,  # below the text at the current budget
        text=axes.plotly_text(mark.text),
        showarrow=False,
        xanchor="right" if is_right else "left",
        yanchor="top" if is_right else "bottom",
        xshift=-6 if is_right else 6,
    )


def _epsilon_line(frame: pd.DataFrame, y: float, delta: str) -> go.Scatter:
    """Nothing to see: it adds ε to what is shown while pointing at a budget.

    Its marks are clicked like those of the others, which lie in the same places along the axis.
    """
    unseen = {"marker": {"opacity": 0}}
    rows = frame.loc[frame["series"] == frame["series"].iloc[0]]
    return go.Scatter(
        x=list(rows["rho"]),
        y=[y] * len(rows),
        mode="lines+markers",
        line={"width": 0, "color": axes.GREY},
        marker={"opacity": 0},
        selected=unseen,
        unselected=unseen,
        text=[rounded(epsilon, 3, "up") for epsilon in rows["epsilon"]],
        hovertemplate=f"ε = %{{text}} at δ = {axes.plotly_text(delta)}<extra></extra>",
    )


def _budget_axes(
    figure: go.Figure, limits: tuple[float, float], delta: str, noise: DiscreteNoise | None
) -> None:
    """ρ below, and above the round ε that are the same budgets at this δ, by the noise."""
    title = "budget ρ (log scale)<br>← more private · more accurate →"
    figure.update_xaxes(axes.log_axis(*limits, title))
    # ε grows with ρ, nearly as a power of it: on log axes lines between a few points are within a
    # pixel of it.
    rhos = np.geomspace(*limits, _POINTS_OF_EPSILON)
    known = [proven_epsilon(rho, delta, noise) for rho in rhos.tolist()]
    rhos, known = rhos[np.array(known) > 0], [epsilon for epsilon in known if epsilon]
    epsilons = axes.log_ticks(known[0], known[-1]) if known else []
    places = np.interp(np.log(epsilons), np.log(known), np.log(rhos)) if known else np.empty(0)
    figure.add_trace(go.Scatter(x=[], y=[], xaxis="x2", hoverinfo="skip"))
    figure.update_layout(
        xaxis2={
            "overlaying": "x",
            "side": "top",
            "type": "log",
            "range": [math.log10(limit) for limit in limits],
            "tickvals": np.exp(places).tolist(),
            "ticktext": [rounded(epsilon, 4) for epsilon in epsilons],
            "title": f"the same budget as ε at δ = {axes.plotly_text(delta)}",
            "showgrid": False,
            "zeroline": False,
        }
    )


def _mark_present(figure: go.Figure, present: float, bottom: float, top: float) -> None:
    """The current budget: a line between these shares of the height, which leave texts clear."""
    line = {"color": axes.GREY, "width": 1.5, "dash": "dash"}
    ends = {"x0": present, "x1": present, "y0": bottom, "y1": top, "yref": "y domain"}
    figure.add_shape(type="line", **ends, line=line)
    figure.add_annotation(
        x=math.log10(present),
        yref="paper",
        y=1,
        text=f"current: {rho_text(present, 6, 'nearest')}",
        showarrow=False,
        xanchor="left",
        yanchor="top",
        xshift=6,
    )


def _label_ends(
    figure: go.Figure, ends: Sequence[tuple[float, str, str]], limits: tuple[float, float]
) -> None:
    """Name the curves to the right of their ends: (value, name, colour) of each."""
    low, high = (math.log10(limit) for limit in limits)
    heights = [math.log10(value) for value, _, _ in ends]
    moved = axes.spread_apart(heights, _LABEL_ROOM * (high - low))
    below, above = max(low - min(moved), 0.0), max(max(moved) - high, 0.0)
    moved = [height + below - above for height in moved]  # beyond the axis, none would be seen
    for (value, name, colour), height in zip(ends, moved, strict=True):
        figure.add_shape(
            type="line",
            xref="paper",
            x0=1,
            x1=1.015,
            y0=value,
            y1=10**height,
            line={"color": colour, "width": 1.5},
        )
        figure.add_annotation(
            xref="paper",
            x=1.02,
            y=height,
            text=axes.plotly_text(name),
            showarrow=False,
            xanchor="left",
            yanchor="middle",
        )
