"""Crosstabs: any table of results by rows and columns, with totals, shares and all their errors."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.analysis.released_cells import ReleasedCells, rows_of_amounts
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import CV_LIMIT
from rpexplore.domain.readings import are_publishable_as_estimated, quality_flags
from rpexplore.domain.result_schema import Schema
from rpexplore.domain.survey import Sampling
from rpexplore.planning.mechanism.reconstruction import sums_of
from rpexplore.releases.items import Item, PartReader
from rpexplore.results.formats.languages import ENGLISH, Sentence
from rpexplore.results.publication import Publication
from rpexplore.results.results import ShownTables
from rpexplore.results.shares import share_columns
from rpexplore.workload.bases import Basis
from rpexplore.workload.table_text import query_matrix

# Of unbiased counts by single values, every figure of a crosstab is a product query on one
# marginal: a cell, a group of values, a total. So totals are sums of the cells, and all errors and
# covariances are exact, by the formula of docs/mathematics.md §3.2. Of other tables (processed,
# estimated, of areas with ranges) nothing may be added up: totals are those of the smaller tables
# that there are, and shares have no errors.


MOST_ROWS, MOST_COLUMNS = 1000, 100
SINGLE_VALUES, AS_PLANNED = "single values", "as planned"
TOTALS = ("row", "column", "total")
"""What shares can be of."""
_MOST_ENTRIES = 20_000_000  # of a basis written out as a matrix, 160 MB


@dataclass(frozen=True, eq=False)
class Side:
    """What rows or columns are.

    names   of the attributes; () where there is one row or column
    labels  of each row, a text for each attribute
    codes   of each row likewise, "" where a codebook has none
    n_all   how many there are, of which the first are here
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    codes: tuple[tuple[str, ...], ...]
    n_all: int

    @classmethod
    def of(cls, axes: Sequence[Axis], n_all: int | None = None) -> "Side":
        """All combinations of the values of some axes, those of the last one fastest."""
        labels: list[tuple[str, ...]] = [()]
        codes: list[tuple[str, ...]] = [()]
        for axis in axes:
            own = axis.codes or ("",) * len(axis.labels)
            labels = [(*row, label) for row in labels for label in axis.labels]
            codes = [(*row, code) for row in codes for code in own]
        n_all = len(labels) if n_all is None else n_all
        return cls(tuple(axis.name for axis in axes), tuple(labels), tuple(codes), n_all)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Crosstab:
    """Figures by rows and columns; arrays are float64[n_rows, n_columns], totals among them.

    Unknown figures are NaN. With `has_total_row` the last row of the arrays is a total, with
    `has_total_column` the last column.

    values      what is shown: counts, or shares in per cent
    errors      standard errors of the values; of biased counts those of the unbiased ones beside
    counts, count_errors
                what coefficients of variation are made of
    row_covariances, column_covariances, all_covariances
                of each unbiased figure with the total of its row, of its column, or of all; None if
                not known
    kind        what the counts are: "noisy", "processed", "smooth", "estimated"
    unit        "" of counts, "%" of shares
    head        what stands above figures without an attribute across, by its key in `texts_of`
    said        what is left out or fixed, and what errors count
    small, fewer_than
                which counts are printed as fewer than a number; None: all are printed
    """

    rows: Side
    columns: Side
    values: np.ndarray
    errors: np.ndarray
    counts: np.ndarray
    count_errors: np.ndarray
    has_total_row: bool = False
    has_total_column: bool = False
    row_covariances: np.ndarray | None = None
    column_covariances: np.ndarray | None = None
    all_covariances: np.ndarray | None = None
    kind: str = "noisy"
    unit: str = ""
    head: str = "count"
    said: tuple[Sentence, ...] = ()
    small: np.ndarray | None = None
    fewer_than: int = 0

    @property
    def remarks(self) -> str:
        """What is said, in English; may be ""."""
        return " ".join(map(ENGLISH.say, self.said))

    @property
    def cvs(self) -> np.ndarray:
        """Coefficients of variation: ∞ of counts that are not above 0, NaN where not known."""
        cvs = np.full(self.counts.shape, np.inf)
        np.divide(self.count_errors, self.counts, out=cvs, where=self.counts > 0)
        cvs[(self.counts == 0) & (self.count_errors == 0)] = 0.0  # empty areas
        return np.where(np.isnan(self.counts) | np.isnan(self.count_errors), np.nan, cvs)

    @property
    def flags(self) -> np.ndarray:
        """The quality flag of each figure, "" where its error is not known."""
        return quality_flags(self.cvs)

    def publishable(self, cv_limit: float) -> np.ndarray:
        """Whether each figure is publishable, bool; none is whose error is not known."""
        errors, counts = self.count_errors, self.counts
        are_exact = (errors == 0) & (counts == 0) & (self.kind in ("noisy", "processed"))
        return are_exact | are_publishable_as_estimated(errors, counts, cv_limit)

    def with_sampling(self, sampling: Sampling | None) -> "Crosstab":
        """The same with CVs, flags and publishable figures by the error of noise and sampling.

        sampling: None changes nothing. Of shares it must be called before.
        """
        if sampling is None:
            return self
        names = (*self.rows.names, *self.columns.names)
        errors = sampling.total_errors(self.count_errors, self.counts, names)
        said = Sentence("sampling", {"design": sampling.design})
        return replace(self, count_errors=errors, said=(said, *self.said))

    def is_small(self, row: int, column: int) -> bool:
        """Whether words are printed in the place of a figure."""
        return self.small is not None and bool(self.small[row, column])

    def doubtful(self, publication: Publication) -> np.ndarray:
        """Which figures are marked or left empty, bool: those that are not publishable.

        Where no error is known at all nothing is marked.
        """
        are_known = bool(np.isfinite(self.count_errors).any())
        marked = ~self.publishable(publication.cv_limit)
        return marked & (are_known or publication.leave_empty)

    def shares(self, of: str, cv_limit: float) -> "Crosstab":
        """Each figure as a share of its total, in per cent, with its error in percentage points.

        Empty where the total is not publishable, or there is none. Errors are by the delta method,
        with the exact covariance of figure and total; a total is 100 % without any.

        of: one of `TOTALS`
        """
        every, last = slice(None), slice(-1, None)
        place = {"row": (every, last), "column": (last, every), "total": (last, last)}[of]
        has_total = {
            "row": self.has_total_column,
            "column": self.has_total_row,
            "total": self.has_grand_total,
        }[of]
        covariances = {
            "row": self.row_covariances,
            "column": self.column_covariances,
            "total": self.all_covariances,
        }[of]
        shape = self.values.shape
        empty = np.full(shape, np.nan)
        if not has_total:
            return replace(self, values=empty, errors=empty, unit="%")
        bases = np.broadcast_to(self.values[place], shape)
        if covariances is None:
            is_large = self.publishable(cv_limit)[place] & (self.values[place] > 0)
            values = np.where(is_large, 100 * self.values / np.where(bases > 0, bases, 1), np.nan)
            return replace(self, values=values, errors=empty, unit="%")
        base_variances = np.broadcast_to(self.errors[place] ** 2, shape)
        values, errors, *_ = share_columns(
            self.values, bases, self.errors**2, base_variances, covariances, cv_limit
        )
        values = np.where(self.publishable(cv_limit)[place], values, np.nan)  # by sampling as well
        errors = np.where(np.isnan(values), np.nan, errors)
        errors[place] = np.where(np.isnan(values[place]), np.nan, 0.0)
        return replace(self, values=values, errors=errors, unit="%")

    def sorted_by(self, column: int, *, ascending: bool = False) -> "Crosstab":
        """The same with the rows in the order of a column, the total row last; unknown ones behind.

        column: its place, −1 for the last one, which may be the total
        """
        n = len(self.rows)
        keys = self.values[:n, column]
        order = np.argsort(keys if ascending else -keys, kind="stable")
        whole = np.append(order, np.arange(n, len(self.values)))
        rows = replace(
            self.rows,
            labels=tuple(self.rows.labels[row] for row in order),
            codes=tuple(self.rows.codes[row] for row in order),
        )
        arrays = {
            name: None if array is None else array[whole] for name, array in self._arrays.items()
        }
        return replace(self, rows=rows, **arrays)

    def first(self, n_rows: int) -> "Crosstab":
        """The first rows, and the totals of all; `said` has what is left out."""
        if n_rows >= len(self.rows):
            return self
        kept = np.append(np.arange(n_rows), np.arange(len(self.rows), len(self.values)))
        side = replace(self.rows, labels=self.rows.labels[:n_rows], codes=self.rows.codes[:n_rows])
        arrays = {
            name: None if array is None else array[kept] for name, array in self._arrays.items()
        }
        cut = Sentence("first_rows", {"n": n_rows, "n_all": self.rows.n_all})
        return replace(self, rows=side, said=(*self.said, cut), **arrays)

    @property
    def _arrays(self) -> dict[str, np.ndarray | None]:
        names = ("values", "errors", "counts", "count_errors")
        return {name: getattr(self, name) for name in names} | {
            "row_covariances": self.row_covariances,
            "column_covariances": self.column_covariances,
            "all_covariances": self.all_covariances,
            "small": self.small,
        }

    @property
    def has_grand_total(self) -> bool:
        """Whether the last figure of the last row is that of all."""
        one_row, one_column = not self.rows.names, not self.columns.names
        return (self.has_total_row or one_row) and (self.has_total_column or one_column)


def crosstab(
    results: ShownTables,
    down: Sequence[str],
    across: str | None = None,
    *,
    levels: Mapping[str, str] | None = None,
    fixed: Mapping[str, int] | None = None,
) -> Crosstab:
    """A table of results with its attributes down and across; those not named are summed over.

    Args:
        down: Attributes whose values are rows, all combinations of them; () for one row.
        across: The attribute whose values are columns; None for one column.
        levels: Attribute -> one of its `levels_of`; single values if left out.
        fixed: Attribute -> the place of the one of its values that is counted.

    Raises:
        ReleaseError, WorkloadError: If there is no table with these attributes.
    """
    levels, fixed = levels or {}, fixed or {}
    order = [*down, *([] if across is None else [across])]
    if results.has_sums:
        return _of_sums(results, order, across is not None, levels, fixed)
    return _of_tables(results, order, across is not None, fixed)


# ---- Levels: what an attribute's rows can be.


def levels_of(results: ShownTables, attribute: str) -> tuple[str, ...]:
    """The levels at which an attribute can be looked at, the usual one first.

    That is the basis that tables were planned with, else single values.
    """
    domain = results.domain
    if not results.has_sums or domain is None or attribute not in domain.names:
        return (SINGLE_VALUES,)
    own = domain[attribute]
    if isinstance(own.values, Amounts):
        return (SINGLE_VALUES,)
    levels = [SINGLE_VALUES, *(level.name for level in own.all_levels)]
    planned = _planned_basis(results, attribute)
    if planned is None:
        return tuple(levels)
    return (f"{AS_PLANNED} ({planned.suffix(own)})", *levels)


def _planned_basis(results: ShownTables, attribute: str) -> Basis | None:
    """The first basis that a table of the plan has for an attribute, if it can be written out."""
    workload = getattr(getattr(results, "plan", None), "workload", None)
    if workload is None or not hasattr(workload, "attribute_bases"):
        return None
    for index, basis in workload.attribute_bases:
        own = workload.domain.attributes[index]
        if own.name == attribute and not basis.is_identity:
            return basis if basis.n_rows(own) * own.size <= _MOST_ENTRIES else None
    return None


@dataclass(frozen=True, eq=False)
class _Rows:
    """Queries about one attribute: a matrix [n_rows, n_i], of which the last may be the total.

    n_all  how many there are without the total, of which the first are here
    """

    axis: Axis
    matrix: Any  # sparse.csr_array, whose parts have no types
    has_total: bool
    n_all: int


def _rows_of(results: ShownTables, domain: "Domain", index: int, level: str, most: int) -> _Rows:
    """The rows of an attribute at a level, no more than so many, and the total."""
    attribute = domain.attributes[index]
    if (sums := sums_of(domain, index)) is not None:
        units = sums.basis.row_units(attribute)
        matrix = sums.of(np.eye(attribute.size), 0) * units[:, None]
        labels = tuple(rows_of_amounts(attribute.values))  # pyright: ignore[reportArgumentType]
        return _Rows(Axis(attribute.name, labels), sparse.csr_array(matrix), False, len(matrix))
    level_of_groups = next((one for one in attribute.all_levels if one.name == level), None)
    codes: tuple[str, ...] = ()
    matrix: Any
    if level_of_groups is not None:
        labels = level_of_groups.labels
        place = {label: row for row, label in enumerate(labels)}
        groups = np.array([place[group] for group in level_of_groups.groups])
        entries = np.ones(attribute.size), (groups, np.arange(attribute.size))
        matrix = sparse.csr_array(entries, shape=(len(labels), attribute.size))
    elif level.startswith(AS_PLANNED) and (basis := _planned_basis(results, attribute.name)):
        query = query_matrix(basis, attribute)
        labels = tuple(query.label(row) for row in range(min(query.n_rows, most)))
        matrix = sparse.csr_array(query.of(np.eye(attribute.size), 0))
    else:
        labels, codes = _values_of(attribute, most)
        matrix = sparse.csr_array(sparse.eye_array(attribute.size))
    n_all, total = matrix.shape[0], sparse.csr_array(np.ones((1, attribute.size)))
    matrix = sparse.csr_array(sparse.vstack([matrix[:most], total]))
    return _Rows(Axis(attribute.name, labels[:most], codes[:most]), matrix, True, n_all)


def _values_of(attribute: Attribute, most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels of the first values, and their codes where some have another one."""
    labels = tuple(attribute.labels(most))
    if not isinstance(attribute.values, Categories):
        return labels, ()
    codes = tuple(attribute.stored_values(most))
    return labels, () if codes == labels else codes


# ---- Of unbiased counts by single values: everything from one marginal.


def _of_sums(
    results: ShownTables,
    order: Sequence[str],
    has_columns: bool,
    levels: Mapping[str, str],
    fixed: Mapping[str, int],
) -> Crosstab:
    areas = results.axis  # side by side, as one axis
    marginals = results.marginals(list(dict.fromkeys([*order, *fixed])))
    domain, attributes = marginals[0].noise.domain, marginals[0].noise.attributes
    n_down = len(order) - has_columns
    axes: dict[str, _Rows] = {}
    for place, name in enumerate(order):
        if name != areas:
            most = MOST_ROWS if place < n_down else MOST_COLUMNS
            index = domain.position(name)
            axes[name] = _rows_of(results, domain, index, levels.get(name, ""), most)
    left: dict[int, Any] = {domain.position(name): rows.matrix for name, rows in axes.items()}
    for name, value in fixed.items():
        rows = _rows_of(results, domain, domain.position(name), "", value + 1)
        left[domain.position(name)] = rows.matrix[[value]]
    totals = {
        name: {domain.position(name): sparse.csr_array(np.ones((1, domain[name].size)))}
        for name in axes
    }
    row_totals = [totals[name] for name in order[n_down:] if name in axes]
    column_totals = [totals[name] for name in order[:n_down] if name in axes]
    of_totals = (row_totals, column_totals, [*row_totals, *column_totals])
    queries = [left, *(reduce(or_, some, left) for some in of_totals)]
    names = [domain.names[index] for index in attributes]

    def turned(array: np.ndarray) -> np.ndarray:
        """The axes in the order of `axes`, without those of fixed attributes."""
        kept, gone = ([names.index(name) for name in some] for some in (axes, fixed))
        return array.transpose([*kept, *gone]).reshape([array.shape[axis] for axis in kept])

    def answers(values: np.ndarray) -> np.ndarray:
        for axis, index in enumerate(attributes):
            first = np.moveaxis(values, axis, 0)
            answered = left[index] @ first.reshape(len(first), -1)
            values = np.moveaxis(answered.reshape(-1, *first.shape[1:]), 0, axis)
        return turned(values)

    noises = {id(marginal.noise): marginal.noise for marginal in marginals}  # areas share them
    covariances = {
        key: [turned(noise.covariances(left, right)) for right in queries]
        for key, noise in noises.items()
    }
    parts = [(answers(one.values), *covariances[id(one.noise)]) for one in marginals]
    has_total = [name in axes and axes[name].has_total for name in order]
    values, variances, with_row, with_column, with_all = (
        _folded(np.stack(some, order.index(areas)) if areas else some[0], has_total, n_down)
        for some in zip(*parts, strict=True)
    )
    sides = [axes[name].axis if name in axes else _axis_of_areas(results, names) for name in order]
    sizes = [
        axes[name].n_all if name in axes else len(side.labels)
        for name, side in zip(order, sides, strict=True)
    ]
    has_total_row = n_down > 0 and all(has_total[:n_down])
    has_total_column = has_columns and has_total[-1]
    errors = np.sqrt(np.maximum(variances, 0.0))
    return Crosstab(
        Side.of(sides[:n_down], math.prod(sizes[:n_down])),
        Side.of(sides[n_down:], math.prod(sizes[n_down:])),
        values,
        errors,
        values,
        errors,
        has_total_row,
        has_total_column,
        with_row if has_total_column else None,
        with_column if has_total_row else None,
        with_all,
        said=(
            *(
                Sentence("as_said", {"text": f"{name}: {_rows_label(domain[name], value)}."})
                for name, value in fixed.items()
            ),
            *(
                _first_values(side.name, len(side.labels), size)
                for side, size in zip(sides, sizes, strict=True)
                if len(side.labels) < size
            ),
        ),
    )


def _first_values(name: str, shown: int, n_all: int) -> Sentence:
    return Sentence("first_values", {"name": name, "n": shown, "n_all": n_all})


def _axis_of_areas(results: Any, names: Sequence[str]) -> Axis:
    codes, labels = results.axis_labels(names)
    return Axis(results.axis, tuple(labels or codes), tuple(codes) if labels else ())


def _rows_label(attribute: Attribute, row: int) -> str:
    if isinstance(attribute.values, Amounts):
        return rows_of_amounts(attribute.values)[row]
    return attribute.values.label(row)


def _folded(array: np.ndarray, has_total: Sequence[bool], n_down: int) -> np.ndarray:
    """float64[n_rows, n_columns] of one axis an attribute, in each of which the total is last.

    Of several attributes down, only the total of all of them stays.
    """
    if n_down == len(has_total):
        array = array[..., None]
    down = has_total[:n_down]
    body = array[tuple(slice(None, -1) if total else slice(None) for total in down)]
    body = body.reshape(-1, array.shape[-1])
    if not down or not all(down):
        return body
    return np.concatenate([body, array[(-1,) * n_down][None]])


# ---- Of other tables: their cells as they are, and totals from the smaller tables beside them.


def _of_tables(
    results: ShownTables, order: Sequence[str], has_columns: bool, fixed: Mapping[str, int]
) -> Crosstab:
    def cells_of(names: Sequence[str]) -> ReleasedCells:
        wanted = results.in_column_order([*names, *fixed])
        return ReleasedCells.of(results.counts(wanted), wanted).at(fixed).along(names)

    def totals(names: Sequence[str]) -> ReleasedCells | None:
        return cells_of(names) if results.has_counts([*names, *fixed]) else None

    return crosstab_of_cells(cells_of(order), has_columns=has_columns, totals=totals)


def _no_totals(_: Sequence[str]) -> ReleasedCells | None:
    return None


def crosstab_of_cells(
    cells: ReleasedCells,
    *,
    has_columns: bool,
    totals: Callable[[Sequence[str]], ReleasedCells | None] = _no_totals,
) -> Crosstab:
    """Cells with their last axis across, or all axes down.

    totals: the cells of the table along fewer axes, by their names; None where there is none
    """
    axes = list(cells.axes)
    n_down = len(axes) - has_columns
    names = [axis.name for axis in axes]
    n_columns = len(axes[-1].labels) if has_columns else 1
    shown = min(n_columns, MOST_COLUMNS)
    arrays = [array.reshape(-1, n_columns)[:, :shown] for array in _figures(cells)]
    said = [Sentence("as_said", {"text": cells.remarks})] if cells.remarks else []
    if has_columns:
        axes[-1] = Axis(names[-1], axes[-1].labels[:shown], axes[-1].codes[:shown])
        if shown < n_columns:
            said.append(_first_values(names[-1], shown, n_columns))
    in_rows = totals(names[:n_down]) if has_columns else None
    in_columns = totals(names[n_down:]) if n_down else None
    if in_rows is not None:
        beside = [array.reshape(-1, 1) for array in _figures(in_rows)]
        arrays = [np.hstack(pair) for pair in zip(arrays, beside, strict=True)]
    if in_columns is not None:
        below = [array.reshape(1, -1)[:, :shown] for array in _figures(in_columns)]
        if in_rows is not None:
            corner = totals([])
            last = [np.full((1, 1), np.nan)] * 4
            if corner is not None:
                last = [array.reshape(1, 1) for array in _figures(corner)]
            below = [np.hstack(pair) for pair in zip(below, last, strict=True)]
        arrays = [np.vstack(pair) for pair in zip(arrays, below, strict=True)]
    values, errors, counts, count_errors = arrays
    kind = "noisy"
    if cells.is_biased:
        kind = "smooth" if cells.is_smooth else "processed"
    if cells.is_adaptive:
        kind = "estimated"
    whole = Crosstab(
        Side.of(axes[:n_down]),
        Side.of(axes[n_down:]),
        values,
        errors,
        counts,
        count_errors,
        has_total_row=in_columns is not None,
        has_total_column=in_rows is not None,
        kind=kind,
        said=tuple(said),
    )
    return whole.first(MOST_ROWS)


def _figures(cells: ReleasedCells) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values, the errors shown with them, and what their CVs are made of."""
    if cells.model_error is not None:
        return cells.value, cells.model_error, cells.value, cells.model_error
    return cells.value, cells.standard_error, cells.unbiased, cells.standard_error


MOST_BESIDE = 12
"""Values of the last attribute that stand side by side where nobody has chosen."""


def crosstab_of_rows(frame: pd.DataFrame) -> Crosstab:
    """Any table of results as it was written, with its last attribute across if that has few
    values, without totals: areas, own counts, means. Shows shares where the rows have them.
    """
    schema = Schema.of(frame)
    shown: list[tuple[str, list[str], list[str]]] = []
    for name in schema.attributes:
        own = {one.role: one.name for one in schema.labels if one.attribute == name}
        codes = frame[own["code"]].astype(str).tolist() if "code" in own else []
        labels = frame[own["label"]].fillna("").astype(str).tolist() if "label" in own else codes
        shown.append((name, labels, codes if "label" in own and codes else []))
    numbers = {
        one.role: frame[one.name].to_numpy(dtype=float) for one in schema.figures if one.is_number
    }
    error, count = (frame[name].to_numpy(dtype=float) for name in schema.error_and_count)
    shares, unit = numbers.get("share"), ""
    arrays: list[np.ndarray] = [numbers["value"], error, count, error]
    if shares is not None and not np.isnan(shares).all():
        unknown = np.full(len(frame), np.nan)
        arrays, unit = [shares, numbers.get("share_error", unknown), count, error], "%"
    n_columns, across = 1, Side((), ((),), ((),), 1)
    if len(shown) > 1:
        name, labels, codes = shown[-1]
        of_rows = pd.factorize(pd.Series(labels))[0]
        width = int(of_rows.max(initial=0)) + 1
        repeats = np.tile(np.arange(width), -(-len(frame) // width))[: len(frame)]
        if width <= MOST_BESIDE and len(frame) % width == 0 and np.array_equal(of_rows, repeats):
            n_columns = width
            axis = Axis(name, tuple(labels[:width]), tuple(codes[:width]))
            across, shown = Side.of([axis]), shown[:-1]
    n_rows = len(frame) // n_columns
    down = Side(
        tuple(name for name, _, _ in shown),
        tuple(zip(*(labels[::n_columns] for _, labels, _ in shown), strict=True)) or ((),) * n_rows,
        tuple(
            zip(*((codes or [""] * len(frame))[::n_columns] for _, _, codes in shown), strict=True)
        )
        or ((),) * n_rows,
        n_rows,
    )
    kind = "noisy"
    if schema.is_processed:
        kind = "smooth" if schema.is_smooth else "processed"
    if schema.is_smooth and not schema.has_unbiased:
        kind = "estimated"
    values, errors, counts, count_errors = (array.reshape(n_rows, n_columns) for array in arrays)
    return Crosstab(down, across, values, errors, counts, count_errors, kind=kind, unit=unit)


def crosstab_of_item(
    part: PartReader, item: Item, shares: str = "", sampling: Sampling | None = None
) -> Crosstab:
    """A table of a part as its readers see it: at its usual levels, its last few values across.

    shares: what figures are shares of, one of `TOTALS`; "" for counts, as where there are none
    """
    results: Any = part
    if not has_sides(part, item):
        return crosstab_of_rows(item.frame).with_sampling(sampling)
    names = list(item.attributes)
    levels = {name: levels_of(results, name)[0] for name in names}
    across = across_of_item(part, item)
    down = [name for name in names if name != across]
    table = crosstab(results, down, across, levels=levels).with_sampling(sampling)
    as_shares = table.shares(shares, CV_LIMIT) if shares else table
    return table if np.isnan(as_shares.values).all() else as_shares


def across_of_item(part: PartReader, item: Item) -> str | None:
    """The attribute across in the crosstab of a table; None where all are down."""
    results: Any = part
    names = list(item.attributes)
    if not has_sides(part, item):
        return names[-1] if names else None
    if results.has_sums:
        sizes = {}
        for name, index in zip(names, map(results.domain.position, names), strict=True):
            level = levels_of(results, name)[0]
            sizes[name] = _rows_of(results, results.domain, index, level, MOST_BESIDE + 1).n_all
    else:
        axes = ReleasedCells.of(item.frame, names).axes
        sizes = {axis.name: len(axis.labels) for axis in axes}
    few = [name for name in names if sizes[name] <= MOST_BESIDE]
    return few[-1] if few and len(names) > 1 else None


def has_sides(part: PartReader, item: Item) -> bool:
    """Whether a table is shown by `crosstab`, and not row by row."""
    is_table = item.level is None and not item.is_of_means
    return is_table and part.kind in ("tables", "rounds", "processed")
