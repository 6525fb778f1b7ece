"""Plotly's graph objects, by the name that figures have for them: the one import of the extra."""

from rpexplore.common.extras import require

require("plotly", "app", "charts and reports")

import plotly.graph_objects as go  # noqa: E402 - first it is said what is missing

__all__ = ["go"]
