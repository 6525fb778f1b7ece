"""Query plans: the budget that each method needs, and shares as rows of HTML."""

import math
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from rpexplore.analysis.queries import OPTIMUM, describe_budgets
from rpexplore.analysis.ranges import Range
from rpexplore.common.text import describe_share, rounded
from rpexplore.figures import axes
from rpexplore.figures.axes import go, shortened, shortened_labels
from rpexplore.figures.chart import COLUMNS, Chart, Column
from rpexplore.privacy.conversions import rho_text

_PLAN, _BASELINE = axes.style(0), axes.style(1)
_MOST_TICKS = 6
_LONGEST = 18  # characters of a label on the axis
_METHODS = (
    "Noise in every cell: each cell is counted with noise and the noisy cells are added up. A "
    "hierarchy of subtotals: halves, quarters and further parts are counted as well. The smallest "
    "sum of variances: the most accurate on average, each count compared with its target."
)
OUTCOME_COLUMNS = {
    "query": Column("own count", "text"),
    "wanted": Column("target", "text"),
    "outcome": Column("outcome", "text"),
    "margin_95": COLUMNS["margin_95"],
    "coefficient": Column("CV", "text"),
    "expected": Column("expected", "text"),
    "standard_error": COLUMNS["standard_error"],
    "share": Column("share of the budget", "share"),
    "condition": Column("condition", "text"),
}
_PROFILE_COLUMNS = {
    "cell": Column("cell", "text"),
    "share": Column("budget in use", "share"),
    "spare": Column("some unused", "text"),
}
FREE_COLUMNS = {
    "cell": Column("cell", "text"),
    "profile": Column("budget in use", "share"),
    "standard_error": Column("free count σ"),
    "present_standard_error": Column("from the released counts σ"),
    "combined_standard_error": Column("both together σ"),
}
_BASELINE_COLUMNS = {
    "title": Column("method", "text"),
    "measured": Column("numbers measured", "count"),
    "rho": Column("smallest ρ that meets all targets"),
    "largest_ratio": Column("largest variance over its target's, at this plan's ρ"),
    "mean_ratio": Column("the same on average"),
    "saved": Column("saved by this plan", "share"),
}


def baselines_chart(frame: pd.DataFrame, privacy_unit: str) -> Chart:
    """The budget of each method with its numbers; frame: of `analysis.queries.budgets_needed`."""
    return Chart(
        budgets_of_baselines(frame, privacy_unit),
        subject="Budget that each method needs to meet all targets",
        sentence=describe_budgets(frame),
        frame=frame,
        columns=_BASELINE_COLUMNS,
        file="budgets-of-baselines.csv",
        remark=_METHODS,
    )


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


def profile_chart(frame: pd.DataFrame, sentence: str) -> Chart:
    """The privacy profile with its numbers; frame: of `analysis.queries.profile_of_cells`."""
    return Chart(
        shares_of_cells(frame),
        subject="Share of the budget that the records of each cell use",
        sentence=sentence,
        frame=frame,
        columns=_PROFILE_COLUMNS,
        file="privacy-profile.csv",
        remark="Everybody is promised the whole budget; the records of a cell that uses less have "
        "more privacy than promised.",
    )


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


# ---- Rows of HTML with a bar for the publishable share.


# What is left out where there is little room has this class.
_WIDE = "wide"


def scenario_rows(frame: pd.DataFrame, record_nouns: Sequence[str], whom: str = "people") -> str:
    """A table of HTML, one row a scenario: what it gives for the tables that all have.

    frame: of `analysis.scenarios.shared_tables.outcomes`. record_nouns: what each scenario
    counts. whom: the word for those who are in good cells
    """
    has_shares = not np.isnan(frame["people_median"].to_numpy()).all()
    has_targets = sum(frame["targets"].tolist()) > 0
    heads = [("Scenario", ""), ("budget", _WIDE), ("median table, 95 %", "")]
    heads += [("least accurate table, 95 %", _WIDE)]
    heads += [("targets", "")] if has_targets else []
    heads += [(f"{whom} in good cells", "")] if has_shares else []
    head = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for text, kind in heads)
    body = []
    for row, noun in zip(frame.to_dict("records"), record_nouns, strict=True):
        cells = [
            f'<th scope="row">{escape(row["scenario"])}</th>',
            f'<td class="{_WIDE}">{escape(row["budget"])}</td>',
            f"<td>±{rounded(row['median_margin'], 3)} {escape(noun)}</td>",
            f'<td class="{_WIDE}">±{rounded(row["largest_margin"], 3)} {escape(noun)}<br>'
            f"<small>{escape(row['least_accurate'])}</small></td>",
        ]
        if has_targets:
            cells.append(f"<td>{_targets(row['targets'], row['missed'])}</td>")
        if has_shares:
            people = Range(*(row[f"people_{end}"] for end in Range._fields))
            known = not np.isnan(people.median)
            share = _bar(people.median, people.text(describe_share)) if known else "not known"
            cells.append(f"<td>{share}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    whole = table.replace(" %", "\u00a0%")  # no number is parted from its sign
    return f'<table class="rows{" bars" if has_shares else ""}">{whole}</table>'


def _targets(targets: int, missed: int) -> str:
    """ "✗ 3 of 20 missed", "✓ all 20 met", "–"."""
    if not targets:
        return "–"
    return f"<b>✗ {missed:,} of {targets:,} missed</b>" if missed else f"✓ all {targets:,} met"


def _bar(share: float, text: str) -> str:
    bar = f'<i><b style="width: {100 * share:.4g}%"></b></i>'
    return f'<div class="bar">{bar}<span>{text}</span></div>'
