"""Marks on figures: a value that everything is compared with."""

import math

import plotly.graph_objects as go

from rpexplore.figures.axes import GREY


def marked_line(figure: go.Figure, value: float, text: str) -> None:
    """An upright dotted line at a value of a logarithmic x axis, with its text on top."""
    line = {"color": GREY, "width": 1.5, "dash": "dot"}
    ends = {"x0": value, "x1": value, "y0": 0, "y1": 1, "yref": "paper"}
    figure.add_shape(type="line", **ends, line=line, layer="below")
    # Unlike shapes, annotations are placed by the logarithm.
    figure.add_annotation(
        x=math.log10(value), y=1, yref="paper", yanchor="bottom", text=text, showarrow=False
    )
