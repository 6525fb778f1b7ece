"""A plan beside plainer mechanisms: how many times its privacy cost each of them would need."""

import math

from rpexplore.analysis.baselines import PLAN, Comparison
from rpexplore.figures import axes
from rpexplore.figures.plotly_objects import go

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
