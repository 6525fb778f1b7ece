"""A chart as pages and reports show it: the figure, and what stands beside every figure."""

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from rpexplore.figures.columns import Column


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure with its caption, its alternative text and its numbers.

    subject   what is drawn, which is also the title of the numbers
    sentence  what it shows
    frame     the numbers
    columns   those of the frame that are shown, by name
    file      name of the numbers as CSV
    remark    how to read the marks
    title     where several charts stand below each other
    """

    figure: go.Figure
    subject: str
    sentence: str
    frame: pd.DataFrame
    columns: dict[str, Column]
    file: str
    remark: str = ""
    title: str = ""

    @property
    def caption(self) -> str:
        """What the chart shows, and how to read it."""
        return f"{self.sentence} {self.remark}".strip()

    @property
    def alternative_text(self) -> str:
        """What stands for the figure where it cannot be seen."""
        return f"{self.subject}. {self.sentence}"
