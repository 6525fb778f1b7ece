"""How the Fairness page says which cell of each table its charts and lists are about."""

from dataclasses import replace

import pandas as pd

from rpexplore.analysis.forecast import Forecast
from rpexplore.figures.chart import Chart
from rpexplore.figures.columns import COLUMNS
from rpexplore.planning.mechanism.table_variances import CELLS


def chart_with_cell(chart: Chart, forecast: Forecast) -> Chart:
    """A chart that says at which cell of each table it looks, where cells of a table differ."""
    if not forecast.cells_differ:
        return chart
    return replace(
        chart,
        sentence=f"{chart.sentence} {forecast.cell_text}",
        frame=with_cell(chart.frame, forecast),
        columns={**chart.columns, "cell": COLUMNS["cell"]},
    )


def with_cell(frame: pd.DataFrame, forecast: Forecast) -> pd.DataFrame:
    """The numbers with the cell that they are about, where cells of a table differ."""
    return frame.assign(cell=CELLS[forecast.cell]) if forecast.cells_differ else frame
