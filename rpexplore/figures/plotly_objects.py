"""Plotly's graph objects, by the name that figures have for them: the one import of the extra."""

from rpexplore.common.extras import require

require("plotly", "app", "charts and reports")

import plotly.graph_objects as go  # noqa: E402 (only now: what is missing is said above)

__all__ = ["go"]
