"""Query plans: the budget that each method needs, and the share of it that each cell uses."""

import math

import pandas as pd

from rpexplore.analysis.queries import OPTIMUM
from rpexplore.common.formatting import rounded
from rpexplore.figures import axes
from rpexplore.figures.labels import shortened, shortened_labels
from rpexplore.figures.plotly_objects import go
from rpexplore.privacy.conversions import rho_text

_PLAN, _BASELINE = axes.style(0), axes.style(1)
_MOST_TICKS = 6
_LONGEST = 18  # characters of a label on the axis


def budgets_of_baselines(frame: pd.DataFrame, privacy_unit: str) -> go.Figure:
    """One bar a method, from the top, with its ρ and how many times the plan's it is.

    frame: of `analysis.queries.budgets_needed`; privacy_unit: what the budget protects
    """
    rows = frame.to_dict("records")
    looks = [_PLAN if row["baseline"] == OPTIMUM else _BASELINE for row in rows]
    rhos = [row["rho"] for row in rows]
    figure = axes.row_bars(
        [row["title"] for row in rows],
        rhos,
        rhos,
        [_number(row) for row in rows],
        hover="ρ = %{x:.3~g}",
        marker={
            "color": [look.fill(0.75) for look in looks],
            # Not told by colour alone.
            "pattern": {"shape": ["" if look is _PLAN else "/" for look in looks]},
        },
        room=0.35,
    )
    unit = axes.plotly_text(privacy_unit)
    figure.update_xaxes(title=f"budget ρ for {unit} that meets all targets")
    return axes.with_layout(figure, 80 + 40 * len(rows))


def _number(row: dict) -> str:
    rho = rho_text(row["rho"], 3, "nearest")
    return rho if row["baseline"] == OPTIMUM else f"{rho} ({rounded(row['largest_ratio'], 3)} ×)"


def shares_of_cells(frame: pd.DataFrame) -> go.Figure:
    """The cells in their order; those with unused budget stand out by colour and mark.

    frame: of `analysis.queries.profile_of_cells`
    """
    figure = go.Figure()
    looks = (False, "all of it used", axes.style(0)), (True, "some unused", axes.style(1))
    for spare, name, look in looks:
        rows = frame[frame["spare"] == spare]
        if rows.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=rows.index.tolist(),
                y=[axes.drawn(share) for share in rows["share"]],
                mode="markers",
                marker={"color": look.colour, "symbol": look.marker, "size": 7},
                hovertext=[axes.plotly_text(cell) for cell in rows["cell"]],
                hovertemplate="%{hovertext}: %{y:.1%}<extra></extra>",
                name=name,
            )
        )
    cells = frame["cell"].tolist()
    # Names of several attributes may differ anywhere; the numbers have them whole.
    short = [shortened(label, _LONGEST) for label in shortened_labels(cells, _LONGEST)]
    ticks = list(range(0, len(cells), math.ceil(len(cells) / _MOST_TICKS)))
    figure.update_xaxes(
        title="cell",
        tickvals=ticks,
        ticktext=[axes.plotly_text(short[tick]) for tick in ticks],
        range=[-0.5 - 0.01 * len(cells), len(cells) - 0.5 + 0.01 * len(cells)],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(axes.share_axis("share of the budget in use", 0, 1.06))
    return axes.with_layout(figure, 340, legend=True, t=40)
