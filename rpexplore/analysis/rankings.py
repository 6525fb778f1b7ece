"""Tables from the least to the most accurate."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import MARGIN, titles
from rpexplore.analysis.forecast import Forecast
from rpexplore.workload.workload import Workload


def worst_and_best(forecast: Forecast, most: int = 10) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables with the largest standard errors, largest first, and those with the smallest.

    Columns as those of `ranking`. Where there are few, none is in both.
    """
    errors = forecast.standard_errors
    few = min(most, len(errors) - len(errors) // 2)
    ascending = np.argsort(errors, kind="stable")
    worst, best = ascending[::-1][:few], ascending[: min(most, len(errors) - few)]
    return (
        _rows(forecast, worst, titles(forecast.workload, worst)),
        _rows(forecast, best, titles(forecast.workload, best)),
    )


def all_titles(workload: Workload) -> np.ndarray:
    """What to call each table, object[n_tables]: most of the work for a long list, to be kept."""
    return np.array(titles(workload, np.arange(len(workload))), dtype=object)


def ranking(forecast: Forecast, names: np.ndarray) -> pd.DataFrame:
    """All tables, the worst off first: table, order, cells, standard_error, margin_95 and
    times_median, how many times the median standard error that is; where cells differ also
    best_standard_error and worst_standard_error, of the table's most and least accurate cell.

    names: `all_titles` of the workload
    """
    places = np.argsort(-forecast.standard_errors, kind="stable")
    return _rows(forecast, places, names[places])


def _rows(
    forecast: Forecast, places: np.ndarray, names: Sequence[str] | np.ndarray
) -> pd.DataFrame:
    workload, errors = forecast.workload, forecast.standard_errors[places]
    return pd.DataFrame(
        {
            "table": names,
            "order": workload.orders[places],
            "cells": workload.cells[places],
            "standard_error": errors,
            "margin_95": errors * MARGIN,
            "times_median": errors / np.median(forecast.standard_errors),
        }
        | forecast.extremes(places)
    )
