"""An axis of labels: those that there is room for are written."""

import math
from collections.abc import Sequence

from rpexplore.figures.axes import plotly_text
from rpexplore.figures.labels import shortened

_MOST_TICKS = 12
_LONG = 8  # characters of a label


def category_axis(name: str, labels: Sequence[str], *, downwards: bool = False) -> dict:
    """Settings of a Plotly axis of labels at 0, 1, …; downwards: the first on top.

    About a dozen labels are written, fewer where they are long; downwards more, and shorter.
    """
    is_long = max(map(len, labels)) > _LONG
    most = _MOST_TICKS // 2 if is_long and not downwards else _MOST_TICKS
    if downwards:
        most = 2 * _MOST_TICKS
    needed = math.ceil(len(labels) / most)
    steps = (nice * 10**power for power in range(7) for nice in (1, 2, 5))
    ticks = list(range(0, len(labels), next(step for step in steps if step >= needed)))
    ends = [-0.5, len(labels) - 0.5]
    return {
        "title": plotly_text(name),
        "tickvals": ticks,
        "ticktext": [plotly_text(shortened(labels[tick], 18)) for tick in ticks],
        "range": ends[::-1] if downwards else ends,
        "showgrid": False,
        "zeroline": False,
    }
