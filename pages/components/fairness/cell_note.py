"""How the Fairness page says which cell of each table its charts and lists are about."""

from dataclasses import replace

import pandas as pd

from pages.components.shared.charts import chart_with_numbers
from rpexplore.analysis.forecast import Forecast
from rpexplore.figures.chart import Chart
from rpexplore.figures.columns import COLUMNS
from rpexplore.planning.mechanism.table_variances import CELLS


def chart_at_cell(chart: Chart, forecast: Forecast, more: str = "") -> None:
    """Draw a chart; it says at which cell of each table it looks, where cells differ."""
    if forecast.cells_differ:
        chart = replace(
            chart,
            sentence=f"{chart.sentence} {forecast.cell_text}",
            frame=with_cell(chart.frame, forecast),
            columns={**chart.columns, "cell": COLUMNS["cell"]},
        )
    chart_with_numbers(chart, more)


def with_cell(frame: pd.DataFrame, forecast: Forecast) -> pd.DataFrame:
    """The numbers with the cell that they are about, where cells of a table differ."""
    return frame.assign(cell=CELLS[forecast.cell]) if forecast.cells_differ else frame
