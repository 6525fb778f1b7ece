"""Accuracy over the cells of one table: which questions are answered more accurately than others.

One or two attributes are spread out; of the others a question is fixed, or the least accurate one
taken. Where there are many cells, neighbours make blocks, and the least accurate cell of each is
shown: a browser never gets more than about `MOST` × `MOST` numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import MARGIN
from rpexplore.analysis.cell_blocks import Blocks, TableNoise
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.table_variances import is_negligible_difference
from rpexplore.workload.bases import Ranges
from rpexplore.workload.query_matrix import QueryMatrix, query_matrix
from rpexplore.workload.table_titles import attribute_title, title_of, titles
from rpexplore.workload.workload import Workload

MOST = 100  # blocks along an axis of two
MOST_ALONG_A_LINE = 1000

_NUMBERS = ("standard_error", "margin_95")
_MIDDLE = (0.15, 0.85)  # of a line; what lies between is told as its middle


@dataclass(frozen=True)
class Axis:
    """One side of the picture: what it is called, and the questions along it."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CellAccuracy:
    """Standard errors over the cells of a table, or over some of them.

    table    what the table is called
    down     None where one attribute is spread out along a line
    errors   float64[n_down, n_across] (or [n_across]): of the least accurate cell of each block;
             NaN where there is none
    is_even  whether `across` goes on by values, so that a line may join them
    joint    how the label of a cell is made of those of the axes: " to " for ranges
    remarks  what holds for other attributes and for blocks, in sentences; may be ""
    """

    table: str
    down: Axis | None
    across: Axis
    errors: np.ndarray
    is_even: bool
    joint: str
    remarks: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row a block: its labels, standard_error and margin_95 (half a 95 % interval)."""
        held = np.argwhere(np.isfinite(self.errors))
        errors = self.errors[tuple(held.T)]
        labels = {
            f"{axis.name} (attribute)" if axis.name in _NUMBERS else axis.name: np.array(
                axis.labels, dtype=object
            )[held[:, place]]
            for place, axis in enumerate(self._axes)
        }
        return pd.DataFrame(labels | {"standard_error": errors, "margin_95": errors * MARGIN})

    @property
    def worst(self) -> tuple[int, ...]:
        """Where the least accurate cell is, among `errors`."""
        return self._place(int(np.nanargmax(self.errors)))

    @property
    def best(self) -> tuple[int, ...]:
        """Where the most accurate one of those that are shown is."""
        return self._place(int(np.nanargmin(self.errors)))

    @property
    def is_level(self) -> bool:
        """Whether all cells are equally accurate."""
        return is_negligible_difference(
            float(self.errors[self.best]), float(self.errors[self.worst])
        )

    def label(self, place: tuple[int, ...]) -> str:
        """What the cell at a place is called: "≤ 44, F", "18 to 24"."""
        named = [axis.labels[at] for axis, at in zip(self._axes, place, strict=True)]
        return named[0] if len(set(named)) == 1 else self.joint.join(named)

    def describe(self, record_noun: str) -> str:
        """Where the table is least and most accurate, and what the picture leaves out."""
        high, low = self.errors[self.worst], self.errors[self.best]
        if self.is_level:
            words = (
                f"All cells of {self.table} are equally accurate: σ = {rounded(high, 3)} "
                f"{record_noun}."
            )
        else:
            ends = (
                f"σ = {rounded(high, 3)} {record_noun} for {self.label(self.worst)} against "
                f"{rounded(low, 3)} for {self.label(self.best)}."
            )
            where = f"The cells of {self.table} are not equally accurate"
            if self._is_worst_in_the_middle:
                where = f"The middle of {self.across.name} is least accurate"
            words = f"{where}: {ends}"
        return f"{words} {self.remarks}".strip()

    @property
    def _axes(self) -> list[Axis]:
        return [axis for axis in (self.down, self.across) if axis is not None]

    @property
    def _is_worst_in_the_middle(self) -> bool:
        """Whether a line is highest well between its ends."""
        if self.down is not None or not self.is_even:
            return False
        share = self.worst[0] / max(len(self.errors) - 1, 1)
        ends = max(float(self.errors[0]), float(self.errors[-1]))
        highest = float(self.errors[self.worst])
        return _MIDDLE[0] < share < _MIDDLE[1] and not is_negligible_difference(ends, highest)

    def _place(self, flat: int) -> tuple[int, ...]:
        return tuple(int(at) for at in np.unravel_index(flat, self.errors.shape))


def accuracy_of_cells(
    forecast: Forecast,
    table: int,
    axes: Sequence[int],
    fixed: Mapping[int, int] | None = None,
) -> CellAccuracy:
    """Accuracy over the cells of a table (its place in the workload).

    axes   one or two of its attributes (0 is its first): across, or down and across. One that is
           asked in all ranges makes a triangle: from down, to across
    fixed  a question (row) of other attributes; of those that are left out, that with which a cell
           is least accurate is taken

    Raises `WorkloadError` for axes that the table does not have, and for a forecast without noise.
    """
    fixed, asked = dict(fixed or {}), questions_of(forecast, table)
    if forecast.noise is None:
        raise WorkloadError("The forecast has tables only; make it of a plan to see cells.")
    if not 1 <= len(set(axes)) == len(axes) <= 2 or not {*axes, *fixed} <= set(range(len(asked))):
        raise WorkloadError(
            f"One or two of the {len(asked)} attributes of a table can be spread out, got "
            f"{[*axes]}; choose others."
        )
    noise = TableNoise.of(forecast.noise, table)
    first = asked[axes[0]]
    is_triangle = len(axes) == 1 and isinstance(first.basis, Ranges)
    if is_triangle:
        down, across, errors, together = _triangle(first, noise, axes[0], fixed)
    elif len(axes) == 1:
        blocks = Blocks.even(first.n_rows, MOST_ALONG_A_LINE)
        down, across = None, _axis(first, blocks)
        errors = noise.largest_along(axes[0], blocks, fixed)
        together = len(across.labels) < first.n_rows
    else:
        second = asked[axes[1]]
        both = Blocks.even(first.n_rows, MOST), Blocks.even(second.n_rows, MOST)
        down, across = _axis(first, both[0]), _axis(second, both[1])
        errors = noise.largest_across((axes[0], axes[1]), both, fixed)
        together = errors.size < first.n_rows * second.n_rows
    return CellAccuracy(
        table=title_of(forecast.workload, table),
        down=down,
        across=across,
        errors=np.sqrt(errors),
        is_even=asked[axes[-1]].basis.follows_order,
        joint=" to " if is_triangle else ", ",
        remarks=_remarks(asked, axes, fixed, together),
    )


def questions_of(forecast: Forecast, table: int) -> list[QueryMatrix]:
    """What a table asks of each of its attributes."""
    workload = forecast.workload
    return [
        query_matrix(workload.basis_of(table, place), workload.domain.attributes[place])
        for place in workload.attribute_indices(table)
    ]


def usual_axes(forecast: Forecast, table: int) -> tuple[int, ...]:
    """Which of a table's attributes to spread out first: those whose questions differ most.

    One alone where it is asked in all ranges, two of several otherwise.
    """
    asked = questions_of(forecast, table)
    if len(asked) < 2 or forecast.noise is None:
        return tuple(range(len(asked)))
    noise = TableNoise.of(forecast.noise, table)
    lines = [noise.along(axis) for axis in range(len(asked))]
    first, second, *_ = sorted(
        range(len(asked)), key=lambda axis: float(-lines[axis].max() / lines[axis].min())
    )
    return (first,) if isinstance(asked[first].basis, Ranges) else tuple(sorted((first, second)))


def tables_with_cells(workload: Workload) -> dict[int, str]:
    """The tables that have more than one cell to look at, by place, with their titles."""
    places = np.flatnonzero(workload.orders > 0)
    return dict(zip(places.tolist(), titles(workload, places), strict=True))


def least_even_table(forecast: Forecast) -> int:
    """The table whose worst cell is the farthest from its best."""
    if forecast.noise is None:
        return 0
    variances = forecast.noise.variances
    return int(np.argmax(variances.worst / variances.best))


def _axis(asked: QueryMatrix, blocks: Blocks) -> Axis:
    return Axis(_name(asked), _labels(asked.label, blocks))


def _labels(label: Callable[[int], str], blocks: Blocks) -> tuple[str, ...]:
    """ "≤ 44", or "≤ 40 … ≤ 44" where several are taken together."""
    return tuple(
        label(first) if first == last else f"{label(first)} … {label(last)}"
        for first, last in blocks.bounds()
    )


def _triangle(
    asked: QueryMatrix, noise: TableNoise, axis: int, fixed: Mapping[int, int]
) -> tuple[Axis, Axis, np.ndarray, bool]:
    """(from, to, variances [n, n], whether ranges are taken together) of all ranges."""
    n, attribute = asked.n_values, asked.attribute
    values = Blocks.even(n, MOST)
    side = len(values.start)
    block_of = np.repeat(np.arange(side), np.diff(values.start, append=n))
    starts, ends = np.triu_indices(n)  # the order of the questions
    keys = block_of[starts] * side + block_of[ends]
    square = np.full(side * side, np.nan)
    square[np.unique(keys)] = noise.largest_along(axis, Blocks.of_keys(keys), fixed)
    labels = _labels(attribute.values.label, values)
    return (
        Axis(f"{attribute.name} from", labels),
        Axis(f"{attribute.name} to", labels),
        square.reshape(side, side),
        side < n,
    )


def _name(asked: QueryMatrix) -> str:
    return attribute_title(asked.attribute, asked.basis)


def _remarks(
    asked: Sequence[QueryMatrix], axes: Sequence[int], fixed: Mapping[int, int], together: bool
) -> str:
    others = [axis for axis in range(len(asked)) if axis not in axes and axis not in fixed]
    words = [f"{_name(asked[axis])}: {asked[axis].label(row)}." for axis, row in fixed.items()]
    if others:
        names = " and ".join(_name(asked[axis]) for axis in others)
        words.append(f"Whatever {names}: the least accurate cell is shown.")
    if together:
        words.append("Neighbouring cells are taken together, and the least accurate one is shown.")
    return " ".join(words)
