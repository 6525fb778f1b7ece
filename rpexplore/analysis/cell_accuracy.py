"""Accuracy over the cells of one table: which queries are answered more accurately than others."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from rpexplore.analysis.measures import STANDARD_ERROR, Accuracy, Measure
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.product_sums import ProductSum
from rpexplore.planning.mechanism.strategy import Moments, hull
from rpexplore.planning.mechanism.variances import is_negligible_difference
from rpexplore.planning.part_plan import Z_95
from rpexplore.workload.table_text import (
    QueryMatrix,
    attribute_title,
    query_matrix,
    title_of,
    titles,
)
from rpexplore.workload.workload import Workload

# ---- The least accurate cell of each block of a table's cells, without going through the cells.
#
# The variance of a cell is multilinear in the pairs (N, T) of its rows, with nonnegative
# coefficients (docs/mathematics.md §4.3). So of the rows of a block only those can hold its least
# accurate cell whose pair is on the upper right hull of all pairs (`cells.hull`): a handful of
# hundreds.


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of a query matrix in blocks.

    rows   int64[n_rows]: all rows, block by block
    start  int64[n_blocks]: where each block begins among them; ascending
    """

    rows: np.ndarray
    start: np.ndarray

    @classmethod
    def even(cls, n_rows: int, most: int) -> "Blocks":
        """At most so many blocks of neighbouring rows, as even as can be."""
        count = min(n_rows, most)
        return cls(np.arange(n_rows), np.arange(count) * n_rows // count)

    @classmethod
    def of_keys(cls, keys: np.ndarray) -> "Blocks":
        """Rows with the same key make a block, by ascending key; keys: int64[n_rows]."""
        rows = np.argsort(keys, kind="stable")
        return cls(rows, np.flatnonzero(np.diff(keys[rows], prepend=-1)))

    def bounds(self) -> list[tuple[int, int]]:
        """(first row, last row) of each block."""
        ends = np.append(self.start[1:], len(self.rows)) - 1
        return list(zip(self.rows[self.start].tolist(), self.rows[ends].tolist(), strict=True))

    def hulls(self, of: Moments) -> np.ndarray:
        """The rows that can hold a block's least accurate cell, int64[n_blocks, width]: the last
        is repeated to fill up."""
        hulls = []
        for part in np.split(self.rows, self.start[1:]):
            if of.total.strides == of.spread.strides == (0,):  # all cells are alike
                part = part[:1]
            hulls.append(part[hull(of.total[part], of.spread[part], largest=True)])
        width = max(map(len, hulls))
        return np.array([np.pad(rows, (0, width - len(rows)), "edge") for rows in hulls])


@dataclass(frozen=True, eq=False)
class TableNoise:
    """The noise that the variance of each cell of a table follows from.

    sigma_squared  float64[2, 2, …]: of the residual with (1) or without (0) each attribute
    moments        of each attribute, for the table's basis
    own            the variances of cells, where these do not tell them: residuals have matrices of
                   their own
    """

    sigma_squared: np.ndarray
    moments: list[Moments]
    own: ProductSum | None = None

    @classmethod
    def of(cls, accuracy: Accuracy, table: int) -> "TableNoise":
        cells, workload = accuracy.cells, accuracy.workload
        order = int(workload.orders[table])
        _, columns, axes = next(cells.closure.by_order(workload, np.array([table])))
        # Attributes with a single value have no residual.
        within = np.zeros((2,) * order)
        where = tuple(slice(None) if axis in axes[0] else 0 for axis in range(order))
        within[where] = accuracy.sigma_squared[columns[0]].reshape((2,) * axes.shape[1])
        bases = workload.attribute_basis_index[table, :order]
        own = cells.product_sum(table, accuracy.sigma_squared)
        return cls(within, [cells.moments[basis] for basis in bases], own)

    def along(self, axis: int) -> np.ndarray:
        """Variance by row of one attribute, of an average row of all others, float64[n_rows]."""
        if self.own is not None:
            return self.own.mean_along(axis)
        means = [np.array([[of.total_sum], [of.spread_sum]]) / len(of.total) for of in self.moments]
        weights = self._contracted(
            {index: pair for index, pair in enumerate(means) if index != axis}
        )
        return weights[0, 0] * self.moments[axis].total + weights[1, 0] * self.moments[axis].spread

    def largest_along(self, axis: int, blocks: Blocks, fixed: Mapping[int, int]) -> np.ndarray:
        """The largest variance in each block of rows of one attribute, float64[n_blocks].

        fixed: the row of other attributes; of those that are not in it, any
        """
        if self.own is not None:
            largest = self.own.largest_along([axis], fixed)
            return np.maximum.reduceat(largest[blocks.rows], blocks.start)
        weights = self._contracted(self._candidates(fixed, {axis}))
        of, largest = self.moments[axis], np.zeros(len(blocks.rows))
        for point in hull(weights[0], weights[1], largest=True).tolist():
            variances = weights[0, point] * of.total + weights[1, point] * of.spread
            np.maximum(largest, variances, out=largest)
        return np.maximum.reduceat(largest[blocks.rows], blocks.start)

    def largest_across(
        self, axes: Sequence[int], blocks: Sequence[Blocks], fixed: Mapping[int, int]
    ) -> np.ndarray:
        """The largest variance in each block of rows of two attributes, float64[n_down, n_across].

        fixed: as of `largest_along`
        """
        if self.own is not None:
            cells = self.own.largest_along(axes, fixed)
            for axis, own in enumerate(blocks):
                cells = np.maximum.reduceat(cells.take(own.rows, axis), own.start, axis)
            return cells
        weights = self._contracted(self._candidates(fixed, set(axes)))
        if axes[0] > axes[1]:
            weights = weights.swapaxes(0, 1)
        down = blocks[0].hulls(self.moments[axes[0]])
        across = blocks[1].hulls(self.moments[axes[1]])
        pairs = _pairs(self.moments[axes[1]], across.ravel())
        largest = np.zeros((len(down), across.size))
        for block, rows in enumerate(down.tolist()):
            for pair in _pairs(self.moments[axes[0]], np.array(sorted(set(rows)))):
                left = np.tensordot(pair, weights, axes=1)
                left = left[:, hull(left[0], left[1], largest=True)]
                largest[block] = np.maximum(largest[block], np.max(pairs @ left, axis=1))
        return largest.reshape(len(down), *across.shape).max(axis=2)

    def _candidates(self, fixed: Mapping[int, int], spread_out: set[int]) -> dict[int, np.ndarray]:
        """{attribute: pairs [2, m] of the rows it may have} of those that are not spread out."""
        candidates = {}
        for axis, of in enumerate(self.moments):
            if axis not in spread_out:
                row = fixed.get(axis)
                rows = hull(of.total, of.spread, largest=True) if row is None else np.array([row])
                candidates[axis] = _pairs(of, rows).T
        return candidates

    def _contracted(self, pairs: Mapping[int, np.ndarray]) -> np.ndarray:
        """What is left of σ² when these attributes have these pairs: [2, …, all combinations]."""
        kept = [axis for axis in range(self.sigma_squared.ndim) if axis not in pairs]
        within = np.transpose(self.sigma_squared, [*pairs, *kept])
        combined = reduce(
            lambda left, pair: np.tensordot(left, pair, axes=(0, 0)), pairs.values(), within
        )
        return combined.reshape(*(2,) * len(kept), -1)


def _pairs(of: Moments, rows: np.ndarray) -> np.ndarray:
    """(N, T) of rows, float64[len(rows), 2]."""
    return np.column_stack([of.total[rows], of.spread[rows]])


# ---- Accuracy over the cells of one table: which queries are answered more accurately than
# others.
#
# One or two attributes are spread out; of the others a query is fixed, or the least accurate one
# taken. Where there are many cells, neighbours make blocks, and the least accurate cell of each is
# shown: a browser never gets more than about `MOST` × `MOST` numbers.


MOST = 100  # blocks along an axis of two
MOST_ALONG_A_LINE = 1000

_NUMBERS = ("standard_error", "variance", "margin_95")


@dataclass(frozen=True)
class Axis:
    """One side of the picture: what it is called, and the queries along it.

    codes: of the labels, where a codebook has both; else empty
    """

    name: str
    labels: tuple[str, ...]
    codes: tuple[str, ...] = ()

    @property
    def headings(self) -> tuple[str, ...]:
        """Code and label in one text, "E1: Primary"; the label alone where there is no code."""
        codes = self.codes or ("",) * len(self.labels)
        pairs = zip(codes, self.labels, strict=True)
        return tuple(f"{code}: {label}" if code else label for code, label in pairs)


def label_columns(
    axes: Sequence[Axis], indices: Iterable[np.ndarray], numbers: Collection[str]
) -> dict[str, np.ndarray]:
    """A column for each axis, its labels at these indices; one named as a number says more."""
    return {
        f"{axis.name} (attribute)" if axis.name in numbers else axis.name: np.array(
            axis.labels, dtype=object
        )[of_axis]
        for axis, of_axis in zip(axes, indices, strict=True)
    }


@dataclass(frozen=True, eq=False)
class CellAccuracy:
    """Standard errors over the cells of a table, or over some of them.

    table    what the table is called
    axes     down and across; or across alone, where one attribute is spread out along a line
    errors   float64[n_down, n_across] (or [n_across]): of the least accurate cell of each block;
             NaN where there is none
    is_even  whether the axis across goes on by values, so that a line may join them
    joint    how the label of a cell is made of those of the axes: " to " for ranges
    remarks  what holds for other attributes and for blocks, in sentences; may be ""
    measure  in which it is told: of the standard error alone, whatever the counts
    """

    table: str
    axes: tuple[Axis, ...]
    errors: np.ndarray
    is_even: bool
    joint: str
    remarks: str
    measure: Measure = STANDARD_ERROR

    @property
    def values(self) -> np.ndarray:
        """`errors` in the measure."""
        return self.errors**self.measure.power

    @property
    def frame(self) -> pd.DataFrame:
        """One row a block: its labels, the measure, standard_error and margin_95 (half a 95 %
        interval)."""
        blocks = np.nonzero(np.isfinite(self.errors))
        errors = self.errors[blocks]
        columns = label_columns(self.axes, blocks, _NUMBERS)
        columns |= {self.measure.column: self.values[blocks], "standard_error": errors}
        return pd.DataFrame(columns | {"margin_95": errors * Z_95})

    @property
    def least_accurate(self) -> tuple[int, ...]:
        """The index of the least accurate cell among `errors`."""
        return self._index(np.nanargmax(self.errors))

    @property
    def most_accurate(self) -> tuple[int, ...]:
        """The index of the most accurate cell that is shown."""
        return self._index(np.nanargmin(self.errors))

    @property
    def is_level(self) -> bool:
        """Whether all cells are equally accurate."""
        return is_negligible_difference(
            float(np.nanmin(self.errors)), float(np.nanmax(self.errors))
        )

    def label(self, cell: tuple[int, ...]) -> str:
        """The title of the cell at an index: "≤ 44, F", "18 to 24"."""
        labels = [axis.labels[index] for axis, index in zip(self.axes, cell, strict=True)]
        return labels[0] if len(set(labels)) == 1 else self.joint.join(labels)

    def describe(self, record_noun: str) -> str:
        """Where the table is least and most accurate, and what the picture leaves out."""
        least, most = self.least_accurate, self.most_accurate
        high = self.measure.stated(float(self.values[least]), record_noun)
        if self.is_level:
            symbol = self.measure.symbol
            text = f"All cells of {self.table} are equally accurate: {symbol} = {high}."
        else:
            low = self.measure.text(float(self.values[most]))
            text = (
                f"The cells of {self.table} are not equally accurate: {self.measure.symbol} = "
                f"{high} for {self.label(least)} against {low} for {self.label(most)}."
            )
        return f"{text} {self.remarks}".strip()

    def _index(self, flat: np.intp) -> tuple[int, ...]:
        return tuple(int(index) for index in np.unravel_index(flat, self.errors.shape))


def accuracy_of_cells(
    accuracy: Accuracy,
    table: int,
    axes: Sequence[int],
    fixed: Mapping[int, int] | None = None,
) -> CellAccuracy:
    """Accuracy over the cells of a table.

    Args:
        accuracy: Made of a plan or an optimum.
        table: Its index in the workload.
        axes: One or two of its attributes (0 is its first): across, or down and across. One whose
            basis is all ranges makes a triangle: from down, to across.
        fixed: A query (row) of other attributes; of those that are left out, that with which a
            cell is least accurate is taken.

    Raises:
        WorkloadError: If the table does not have these axes.
    """
    fixed, matrices = dict(fixed or {}), query_matrices(accuracy, table)
    count = len(matrices)
    for axis, matrix in enumerate(matrices):
        if matrix.basis.of_amounts and axis not in axes:
            fixed.setdefault(axis, 0)  # the sum: no unit is common to it and counts
    if not 1 <= len(set(axes)) == len(axes) <= 2 or not {*axes, *fixed} <= set(range(count)):
        raise WorkloadError(
            f"One or two of the {count} attributes of a table can be spread out, got {[*axes]}; "
            "choose others."
        )
    noise, spread_out = TableNoise.of(accuracy, table), [matrices[axis] for axis in axes]
    is_triangle = len(axes) == 1 and _is_triangle(spread_out[0])
    if is_triangle:
        lengths = [spread_out[0].n_values] * 2
        shown, variances = _triangle(spread_out[0], noise, axes[0], fixed)
    else:
        lengths = [matrix.n_rows for matrix in spread_out]
        most = MOST if len(axes) == 2 else MOST_ALONG_A_LINE
        blocks = [Blocks.even(length, most) for length in lengths]
        shown = tuple(
            Axis(_name(matrix), _labels(matrix.label, of_axis))
            for matrix, of_axis in zip(spread_out, blocks, strict=True)
        )
        if len(axes) == 2:
            variances = noise.largest_across(axes, blocks, fixed)
        else:
            variances = noise.largest_along(axes[0], blocks[0], fixed)
    for axis, matrix in enumerate(matrices):
        if matrix.basis.of_amounts:
            squares = matrix.basis.row_units(matrix.attribute) ** 2
            if axis in fixed:
                variances = variances * squares[fixed[axis]]
            else:
                along = [1] * variances.ndim
                along[list(axes).index(axis)] = -1
                variances = variances * squares.reshape(along)
    remarks = [
        f"{_name(matrices[axis])}: {matrices[axis].label(row)}." for axis, row in fixed.items()
    ]
    free = [_name(matrices[axis]) for axis in range(count) if axis not in (*axes, *fixed)]
    if free:
        remarks.append(f"Whatever {' and '.join(free)}: the least accurate cell is shown.")
    if [len(axis.labels) for axis in shown] != lengths:
        remarks.append("Of neighbouring cells together the least accurate one is shown.")
    return CellAccuracy(
        table=title_of(accuracy.workload, table),
        axes=shown,
        errors=np.sqrt(variances),
        is_even=matrices[axes[-1]].basis.follows_order,
        joint=" to " if is_triangle else ", ",
        remarks=" ".join(remarks),
    )


def query_matrices(accuracy: Accuracy, table: int) -> list[QueryMatrix]:
    """The queries of each attribute of a table."""
    workload = accuracy.workload
    return [
        query_matrix(workload.basis_of(table, attribute), workload.domain.attributes[attribute])
        for attribute in workload.attribute_indices(table)
    ]


def usual_axes(accuracy: Accuracy, table: int) -> tuple[int, ...]:
    """Which of a table's attributes to spread out first: those whose queries differ most.

    One alone where its basis is all ranges, two of several otherwise.
    """
    matrices = query_matrices(accuracy, table)
    if len(matrices) < 2:
        return tuple(range(len(matrices)))
    noise = TableNoise.of(accuracy, table)
    lines = [noise.along(axis) for axis in range(len(matrices))]
    ratios = np.array([line.max() / line.min() for line in lines])
    first, second, *_ = np.argsort(-ratios, kind="stable").tolist()
    return (first,) if _is_triangle(matrices[first]) else tuple(sorted((first, second)))


def _is_triangle(matrix: QueryMatrix) -> bool:
    """Whether rows run over all pairs of a first and a last value: no missing ones behind."""
    attribute = matrix.attribute
    return matrix.basis.is_triangle and attribute.n_ordered == attribute.size


def tables_with_cells(workload: Workload) -> dict[int, str]:
    """The tables that have more than one cell to look at, by index, with their titles."""
    tables = np.flatnonzero(workload.orders > 0)
    return dict(zip(tables.tolist(), titles(workload, tables), strict=True))


def least_even_table(accuracy: Accuracy) -> int:
    """The table whose least accurate cell is the farthest from its most accurate one."""
    return int(np.argmax(accuracy.variances.largest / accuracy.variances.smallest))


def _labels(label: Callable[[int], str], blocks: Blocks) -> tuple[str, ...]:
    """ "≤ 44", or "≤ 40 … ≤ 44" where several are taken together."""
    return tuple(
        label(first) if first == last else f"{label(first)} … {label(last)}"
        for first, last in blocks.bounds()
    )


def _triangle(
    matrix: QueryMatrix, noise: TableNoise, axis: int, fixed: Mapping[int, int]
) -> tuple[tuple[Axis, ...], np.ndarray]:
    """(from and to, variances [n, n]) of all ranges."""
    n, attribute = matrix.n_values, matrix.attribute
    values = Blocks.even(n, MOST)
    side = len(values.start)
    block_of = np.repeat(np.arange(side), np.diff(values.start, append=n))
    starts, ends = np.triu_indices(n)  # the order of the queries
    keys = block_of[starts] * side + block_of[ends]
    square = np.full(side * side, np.nan)
    square[np.unique(keys)] = noise.largest_along(axis, Blocks.of_keys(keys), fixed)
    labels = _labels(attribute.values.label, values)
    axes = Axis(f"{attribute.name} from", labels), Axis(f"{attribute.name} to", labels)
    return axes, square.reshape(side, side)


def _name(matrix: QueryMatrix) -> str:
    return attribute_title(matrix.attribute, matrix.basis)
