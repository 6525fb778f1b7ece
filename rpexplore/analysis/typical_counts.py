"""Typical counts: how a table may look, by one of the populations of a forecast, with flags."""

from dataclasses import dataclass

import numpy as np

from rpexplore.analysis.cell_accuracy import query_matrices
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.measures import Accuracy
from rpexplore.domain.readings import FLAGS, coefficients_of_variation, quality_flags
from rpexplore.domain.survey import SurveyDesign, least_good_counts, sampling_variances
from rpexplore.errors import WorkloadError
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import attribute_title, title_of

MOST_ROWS, MOST_COLUMNS = 7, 4
_MOST_CELLS = 20_000  # of a table whose cells are all gone through: 4 MB in 48 populations
_ENDS = (0.05, 0.95)  # of the range over populations


@dataclass(frozen=True, eq=False)
class TypicalCounts:
    """Some rows and columns of a table, evenly chosen, with the counts of a typical population.

    That is the population with the median share of people in good cells of this table. What single
    cells hold differs from population to population where nothing is public of them: that is in
    their ranges.

    down, across   what rows and columns are called: attributes; across may be ""
    rows, columns  labels of those that are shown
    n_rows, n_columns
                   how many the table has
    counts         float64[rows, columns]
    low, high      where 90 % of the populations lie, shaped alike; equal where a count is public
    cvs, flags     coefficients of variation of the counts, and quality flags: by the noise, and the
                   own error of a survey
    is_doubtful    which counts miss the limit of the CV, bool
    """

    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    n_rows: int
    n_columns: int
    counts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cvs: np.ndarray
    flags: np.ndarray
    is_doubtful: np.ndarray

    @property
    def is_public(self) -> np.ndarray:
        """Which counts are certain, as public tables say them: bool[rows, columns]."""
        return self.low == self.high

    @property
    def caption(self) -> str:
        """What the figures are, in a few sentences."""
        whose = "These counts are public."
        if not np.all(self.is_public):
            public = ", but for public counts in bold" if np.any(self.is_public) else ""
            whose = f"A typical population, made up{public}; point at a count for its range."
        part = ""
        if (len(self.rows), len(self.columns)) != (self.n_rows, self.n_columns):
            part = f" {len(self.rows)} of {self.n_rows:,} rows"
            if self.n_columns > 1:
                part += f", {len(self.columns)} of {self.n_columns:,} columns"
            part += "."
        limits = ", ".join(f"{100 * limit:g}" for _, limit in FLAGS)
        return f"{whose}{part} A–E: CV up to {limits} %, above; in brackets: not to publish."


def typical_counts(
    plan: TablePlan,
    drawn: DrawnCounts,
    table: int,
    limit: float,
    survey: SurveyDesign | None = None,
) -> TypicalCounts:
    """The counts of a table as they may be, without noise, and flagged by the noise of a plan.

    Args:
        drawn: The counts that a forecast of the plan's tables is made from.
        table: Its index in the workload.
        limit: The largest coefficient of variation of a good cell.
        survey: The design of the survey, if its own error counts.

    Raises:
        WorkloadError: If the table cannot be forecast, or has too many cells to be shown.
    """
    accuracy = Accuracy.of_plan("", plan)
    matrices = query_matrices(accuracy, table)
    shape = tuple(matrix.n_rows for matrix in matrices)
    counts = _cells(drawn, table, title_of(plan.workload, table)).reshape(-1, *shape)
    errors = np.full(shape, accuracy.standard_errors[table])
    if not drawn.is_even[table]:
        errors = accuracy.cell_standard_errors(table).reshape(shape)
    # The attribute of fewest values goes across, all others together down.
    across = int(np.argmin(shape)) if len(shape) > 1 else None
    if across is not None:
        counts, errors = np.moveaxis(counts, across + 1, -1), np.moveaxis(errors, across, -1)
    n_columns = 1 if across is None else shape[across]
    counts, errors = counts.reshape(len(counts), -1, n_columns), errors.reshape(-1, n_columns)
    n_rows = len(errors)
    rows, columns = _evenly(n_rows, MOST_ROWS), _evenly(n_columns, MOST_COLUMNS)
    factors = np.zeros(1) if survey is None else survey.factors([plan.workload.tables[table]])

    least = least_good_counts(errors, limit, drawn.public.n_records, factors)
    good = counts * (counts >= least)
    people_in_good, people = (of.sum(axis=(1, 2), dtype=float) for of in (good, counts))
    ranked = np.argsort(people_in_good / people, kind="stable")
    counts = np.round(counts[:, rows][:, :, columns].astype(float))
    low, high = np.quantile(counts, _ENDS, axis=0, method="closest_observation")
    counts, errors = counts[ranked[len(ranked) // 2]], errors[rows][:, columns]
    sampled = sampling_variances(counts, drawn.public.n_records, factors)
    cvs = coefficients_of_variation(np.sqrt(errors**2 + sampled), counts)
    names = [attribute_title(matrix.attribute, matrix.basis) for matrix in matrices]
    others = [axis for axis in range(len(shape)) if axis != across]
    places = np.unravel_index(rows, [shape[axis] for axis in others]) if others else ()
    labels = [
        [matrices[axis].label(int(place)) for place in of_axis]
        for axis, of_axis in zip(others, places, strict=True)
    ]
    return TypicalCounts(
        down=" × ".join(names[axis] for axis in others),
        across="" if across is None else names[across],
        rows=tuple(", ".join(row) for row in zip(*labels, strict=True)) or ("total",),
        columns=("",) if across is None else tuple(map(matrices[across].label, columns.tolist())),
        n_rows=n_rows,
        n_columns=n_columns,
        counts=counts,
        low=low,
        high=high,
        cvs=cvs,
        flags=quality_flags(cvs),
        is_doubtful=cvs > limit,
    )


def _cells(drawn: DrawnCounts, table: int, title: str) -> np.ndarray:
    """The counts of all cells of a table, float[n_populations, n_cells]."""
    for group, places in drawn.groups:
        own = np.flatnonzero(places == table)
        if len(own) and group.of_cells:
            return group.counts[own[0]]
        if len(own):
            if drawn.workload.cells[table] > _MOST_CELLS or not drawn.populations.kept:
                raise WorkloadError(
                    f"{title} has too many cells to show typical counts; look at a smaller table."
                )
            return drawn.populations.cells_of(drawn.tables[table])
    raise WorkloadError(f"{title} cannot be forecast; look at another table.")


def _evenly(n: int, most: int) -> np.ndarray:
    """So many of n places at most, the first and the last among them: int64."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))
