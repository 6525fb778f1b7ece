"""Released cells with their intervals, to be drawn; subtotals; shrinkage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.cell_accuracy import Axis, label_columns
from rpexplore.common.text import describe_share, joined, plural, rounded
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.readings import are_publishable_as_estimated
from rpexplore.domain.result_schema import (
    ADAPTIVE,
    PROCESSED,
    RELEASED,
    SMOOTH,
    Column,
    Role,
    Schema,
)
from rpexplore.domain.survey import Sampling
from rpexplore.domain.values import coefficients
from rpexplore.errors import WorkloadError
from rpexplore.planning.part_plan import Z_95

# ---- Released cells: a table's noisy counts with their intervals, by axis, ready to be drawn.
#
# They come from the rows of a table, of which it does not matter here who released them. Where the
# counts were processed, the intervals are those of the unbiased counts beside them; smooth counts
# have a model-based error of their own. Adaptive estimates have that error and its interval alone.


_NUMBERS = ("value", "unbiased", "standard_error", "lower", "upper", "model_error")


@dataclass(frozen=True, eq=False)
class ReleasedCells:
    """The cells of a table, or of a part of it; arrays are float64, one axis for each of `axes`.

    value           what is released as the count
    unbiased        the noisy count that the interval is around; `value` itself unless processed
    standard_error  of `unbiased`; of adaptive estimates the model-based error
    lower, upper    ends of its 95 % interval
    what            what was done to the values, as text; "" if they are unbiased
    model_error     of smooth values, NaN where it is not known; None of others
    is_adaptive     whether they are adaptive estimates, with nothing unbiased beside them
    remarks         what the part leaves out, in sentences; may be ""
    """

    axes: tuple[Axis, ...]
    value: np.ndarray
    unbiased: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    what: str = ""
    model_error: np.ndarray | None = None
    is_adaptive: bool = False
    remarks: str = ""

    @classmethod
    def of(cls, frame: pd.DataFrame, attributes: Sequence[str]) -> "ReleasedCells":
        """The cells of a table of one row a cell, in row-major order.

        frame: of `Release.table`, or of the same of combined or processed tables: labels of the
        attributes, in their order, then the estimates. Raises `WorkloadError` for other rows.
        """
        schema = Schema.of(frame)
        axes = _axes(frame, schema, attributes)
        shape = tuple(len(axis.labels) for axis in axes)
        if len(frame) != np.prod(shape, dtype=np.int64):
            raise WorkloadError(
                f"The table of ({' × '.join(attributes) or 'total'}) has {len(frame):,} rows, and "
                f"its labels make {int(np.prod(shape)):,} cells; open the original folder."
            )
        numbers = {
            column.role: frame[column.name].to_numpy(dtype=float).reshape(shape)
            for column in schema.figures
            if column.is_number
        }
        value, model_error = numbers["value"], numbers.get("model_error")
        what = str(frame[schema.name("note")].iloc[0]) if schema.is_processed else ""
        return cls(
            axes,
            value,
            numbers.get("estimate", value),
            numbers["error"] if "error" in numbers else numbers["model_error"],
            numbers["lower"],
            numbers["upper"],
            what,
            model_error,
            schema.is_processed and not schema.has_unbiased,
        )

    # ---- parts

    def at(self, fixed: Mapping[str, int]) -> "ReleasedCells":
        """The cells where attributes have one value each, given by its index on their axis."""
        index = tuple(fixed.get(axis.name, slice(None)) for axis in self.axes)
        axes = tuple(axis for axis in self.axes if axis.name not in fixed)
        labels = {axis.name: axis.labels for axis in self.axes}
        remarks = [f"{name}: {labels[name][value]}." for name, value in fixed.items()]
        return self._part(axes, index, remarks)

    def along(self, names: Sequence[str]) -> "ReleasedCells":
        """The same cells with their axes in this order, all of them."""
        order = [[axis.name for axis in self.axes].index(name) for name in names]
        turned = {name: numbers.transpose(order) for name, numbers in self._numbers.items()}
        return replace(self, axes=tuple(self.axes[axis] for axis in order), **turned)

    def only(self, name: str, values: Sequence[int]) -> "ReleasedCells":
        """The cells with these values of an attribute, given by their indices."""
        axes = tuple(_chosen(axis, values) if axis.name == name else axis for axis in self.axes)
        index = tuple(list(values) if axis.name == name else slice(None) for axis in axes)
        return self._part(axes, index, [])

    def first(self, most: Sequence[int]) -> "ReleasedCells":
        """The cells of the first values along each axis; `remarks` says what is cut."""
        axes = tuple(
            _chosen(axis, range(min(limit, len(axis.labels))))
            for axis, limit in zip(self.axes, most, strict=True)
        )
        remarks = [
            f"Of the {len(axis.labels):,} values of {axis.name} the first {limit:,} are shown; the "
            "list has them all."
            for axis, limit in zip(self.axes, most, strict=True)
            if len(axis.labels) > limit
        ]
        return self._part(axes, tuple(slice(limit) for limit in most), remarks)

    def suppressed(self, cv_limit: float, sampling: Sampling | None = None) -> "ReleasedCells":
        """The same cells without values and intervals (NaN) where they are not publishable."""
        publishable = self.publishable(cv_limit, sampling)
        emptied = {
            name: np.where(publishable, self._numbers[name], np.nan)
            for name in self._numbers.keys() - {"standard_error"}
        }
        return replace(self, **emptied)

    # ---- what they say

    @property
    def is_biased(self) -> bool:
        return bool(self.what)

    @property
    def has_unbiased(self) -> bool:
        """Whether the intervals are those of unbiased counts beside the values."""
        return self.is_biased and not self.is_adaptive

    @property
    def includes_zero(self) -> np.ndarray:
        """Whether the interval of a cell includes 0, bool, shaped as the values."""
        return (self.lower <= 0) & (self.upper >= 0)

    @property
    def is_smooth(self) -> bool:
        return self.model_error is not None

    def marked(self, *, by_margin: bool) -> np.ndarray:
        """Which cells a heat map crosses or leaves blank, bool: those whose interval includes 0.

        None of smooth counts, which are there to show what the unbiased ones cannot.
        """
        return self.includes_zero & (by_margin or not self.is_smooth)

    def publishable(self, cv_limit: float, sampling: Sampling | None = None) -> np.ndarray:
        """Whether each cell is publishable by its own noisy count, bool, shaped as the values.

        sampling: whose error counts beside the noise, if it does
        """
        return are_publishable_as_estimated(*self.errors_and_counts(sampling), cv_limit)

    def errors_and_counts(self, sampling: Sampling | None) -> tuple[np.ndarray, np.ndarray]:
        """What CVs are made of: of smooth cells their smooth count and its model-based error."""
        errors, counts = self.standard_error, self.unbiased
        if self.model_error is not None:
            errors, counts = self.model_error, self.value
        if sampling is not None:
            errors = sampling.total_errors(errors, counts, [axis.name for axis in self.axes])
        return errors, counts

    @property
    def margin(self) -> np.ndarray:
        """Half of each interval."""
        return (self.upper - self.lower) / 2

    @property
    def relative_margin(self) -> np.ndarray:
        """The margin over the unbiased count's size; ∞ where that is 0."""
        size = np.abs(self.unbiased)
        return np.divide(self.margin, size, out=np.full(size.shape, np.inf), where=size > 0)

    @property
    def frame(self) -> pd.DataFrame:
        """One row a cell: a label for each axis, value, standard_error, lower_95, upper_95.

        Of processed counts also unbiased_value and value_is, of smooth ones model_error as well, as
        their tables have them.
        """
        figures = ADAPTIVE if self.is_adaptive else RELEASED
        if self.has_unbiased:
            figures = SMOOTH if self.is_smooth else PROCESSED
        indices = [along.ravel() for along in np.indices(self.value.shape)]
        labels = label_columns(self.axes, indices, [column.name for column in figures])
        numbers: dict[Role, Any] = {
            "value": self.value,
            "model_error": self.model_error,
            "estimate": self.unbiased,
            "error": self.standard_error,
            "margin": self.margin,
            "lower": self.lower,
            "upper": self.upper,
        }
        shown = {
            column.name: numbers[column.role].ravel() for column in figures if column.is_number
        }
        notes = {column.name: self.what for column in figures if not column.is_number}
        columns = [
            Column(name, "code", attribute=axis.name)
            for name, axis in zip(labels, self.axes, strict=True)
        ]
        return Schema((*columns, *figures)).marked(pd.DataFrame(labels | shown | notes))

    def describe_bars(self, what: str) -> str:
        """The bars of these cells described, for one or two axes; what: "counts of people"."""
        by = self.axes[0].name
        beside = f", side by side for each {self.axes[1].name}" if len(self.axes) > 1 else ""
        ends = "The line on each bar is its 95 % interval"
        if self.has_unbiased:
            ends = "The marks with lines are the unbiased noisy counts and their 95 % intervals"
        holds = ", if the model holds" if self.is_adaptive else ""
        return self._sentences(
            f"{self._kind} {what} by {by}{beside}.",
            f"{ends}: the true figure lies within, 95 % of the time{holds}.",
            self._doubtful,
        )

    def describe_heat(self, what: str, *, by_margin: bool, crossed: bool) -> str:
        """A heat map described: figures, or margins as a share; crossed: how cells are marked."""
        down, across = (axis.name for axis in self.axes)
        figures = f"{what} by {down} and {across}"
        start = f"{self._kind} {figures}; dark cells are far from 0."
        if by_margin:
            start = (
                f"Reliability of the {figures}: the margin of the 95 % interval as a share of the "
                f"{'' if self.is_adaptive else 'unbiased '}figure; dark cells are unreliable."
            )
        marked = "Such cells are crossed." if crossed else "Such cells are left blank."
        if not np.any(self.marked(by_margin=by_margin)):
            marked = ""
        return self._sentences(start, self._doubtful, marked)

    @property
    def _numbers(self) -> dict[str, np.ndarray]:
        every = {name: getattr(self, name) for name in _NUMBERS}
        return {name: numbers for name, numbers in every.items() if numbers is not None}

    @property
    def _kind(self) -> str:
        if self.is_adaptive:
            return "Estimated (adaptive, biased)"
        if self.is_smooth:
            return "Smooth (biased)"
        return "Processed (biased)" if self.is_biased else "Noisy"

    @property
    def _doubtful(self) -> str:
        """How many intervals include 0, and what that means."""
        doubtful = int(np.sum(self.includes_zero))
        if not doubtful:
            return "No interval includes 0."
        whose = "unbiased count's interval" if self.has_unbiased else "interval"
        return (
            f"In {doubtful:,} of {plural(self.value.size, 'cell')} the {whose} includes 0: such "
            "a figure cannot be told from 0."
        )

    def _sentences(self, *parts: str) -> str:
        return " ".join(part for part in (*parts, self.remarks) if part)

    def _part(
        self, axes: tuple[Axis, ...], index: tuple, remarks: Sequence[str]
    ) -> "ReleasedCells":
        parts = {name: numbers[index] for name, numbers in self._numbers.items()}
        text = " ".join(filter(None, (self.remarks, *remarks)))
        return replace(self, axes=axes, remarks=text, **parts)


def describe_margin(frame: pd.DataFrame, record_noun: str) -> str:
    """Half the 95 % interval of a table's cells: "±32 people", or the range."""
    ends = Schema.of(frame).names("upper", "lower")
    lower, upper = (frame[name].to_numpy(dtype=float) for name in ends)
    margins = (upper - lower) / 2
    smallest, largest = rounded(float(margins.min()), 3), rounded(float(margins.max()), 3)
    if smallest == largest:
        return f"±{largest} {record_noun}"
    return (
        f"±{smallest} {record_noun} (the most accurate cell) to ±{largest} (the least accurate one)"
    )


def _axes(frame: pd.DataFrame, schema: Schema, attributes: Sequence[str]) -> tuple[Axis, ...]:
    """The axis of each attribute, from columns of its values and maybe of their labels."""
    if list(schema.attributes) != list(attributes):
        raise WorkloadError(
            f"The table is one of ({' × '.join(schema.attributes) or 'total'}), and not of "
            f"({' × '.join(attributes) or 'total'}); open the original folder."
        )
    axes = []
    for name in attributes:
        own = {one.role: one.name for one in schema.labels if one.attribute == name}
        codes, uniques = pd.factorize(frame[own["code"]])
        codes_of_axis: tuple[str, ...] = ()
        if "label" in own:
            codes_of_labels, named = pd.factorize(frame[own["label"]])
            # Where several codes have one label, an axis of labels would be too short.
            if np.array_equal(codes, codes_of_labels):
                codes_of_axis, uniques = tuple(map(str, uniques)), named
        axes.append(Axis(name, tuple(map(str, uniques)), codes_of_axis))
    return tuple(axes)


def _chosen(axis: Axis, values: Iterable[int]) -> Axis:
    """The axis with these of its values, given by their indices."""
    values = list(values)
    labels = tuple(axis.labels[value] for value in values)
    return Axis(axis.name, labels, tuple(axis.codes[value] for value in values if axis.codes))


# ---- Subtotals of a released table: which cells are added up, and what they come to, in words.


def vector_of(attribute: Attribute, values: Sequence[int]) -> list[float]:
    """1 at these values and 0 elsewhere: their sum; none: that of all.

    Of amounts, the first is a place in `rows_of_amounts`; none: the sum.
    """
    if isinstance(attribute.values, Amounts):
        return coefficients(attribute, rows_of_amounts(attribute.values)[(*values, 0)[0]])
    wanted = set(values) or range(attribute.size)
    return [float(value in wanted) for value in range(attribute.size)]


def rows_of_amounts(values: Amounts) -> list[str]:
    """What there is to know of amounts: the sum, the records with one, those of missing values."""
    return [values.sum_label, "records", *values.missing_labels]


def describe_sum(
    domain: Domain,
    chosen: Mapping[str, Sequence[int]],
    value: float,
    error: float,
    record_noun: str,
) -> str:
    """ "people with age 18 to 24 and sex Female: 1,234 ±56, 95 % of the time (σ = 28.6)"."""
    parts = [_sum_of(domain[name], values) for name, values in chosen.items()]
    limits = joined([part for part in parts if part])
    who = f"{record_noun} with {limits}" if limits else f"{record_noun} in all"
    is_weighted, is_sum = False, False
    for name, values in chosen.items():
        amounts = domain[name].values
        if isinstance(amounts, Amounts) and (*values, 0)[0] == 0:
            if amounts.are_weights:
                is_weighted = True
            else:
                unit = f" in {amounts.unit}" if amounts.unit else ""
                is_sum, who = True, f"sum of {name}{unit} of {who}"
    if is_weighted:
        who = f"weighted {who}" if is_sum else f"weighted count of {who}"
    margin = rounded(Z_95 * error, 3)
    return f"{who}: {value:,.0f} ±{margin}, 95 % of the time (σ = {rounded(error, 3)})"


def _sum_of(attribute: Attribute, values: Sequence[int]) -> str:
    """ "age 18 to 24", "region Northshore or Eastport"; "" for all values."""
    if isinstance(attribute.values, Amounts):
        labels = ["", attribute.name, *attribute.values.missing_labels]
        return labels[(*values, 0)[0]]
    if len(values) in (0, attribute.size):
        return ""
    if not isinstance(attribute.values, Categories):
        return f"{attribute.name} {attribute.values.range_label(values[0], values[-1])}"
    labels = [attribute.values.label(value) for value in values]
    return f"{attribute.name} " + joined(labels, " or ")


# ---- Fairness of smooth tables, in words: how far groups are from their unbiased counts.
#
# What distances are, and which of them are clearly above 1, is in `results.estimates.shrinkage`.


def farthest_group(groups: pd.DataFrame) -> dict[str, Any]:
    """The row of the group that is farthest beyond what chance explains.

    groups: one row a group of an attribute, with distance and limit
    """
    rows = groups.to_dict("records")
    return max(rows, key=lambda group: group["distance"] - group["limit"])


def describe_groups(frame: pd.DataFrame, kind: str) -> str:
    """The group that was moved farthest, and the least; kind: "age", "smooth counts"."""
    by_distance = sorted(frame.to_dict("records"), key=lambda group: group["distance"])
    near, far = by_distance[0], by_distance[-1]
    parts = [_describe_far(far, kind)]
    if len(frame) > 1:
        parts.append(f"Nearest: {near['group']}, {rounded(near['distance'], 3, zeros=True)}.")
    return " ".join([*parts, _describe_above(frame)])


def describe_farthest(groups: pd.DataFrame) -> str:
    """Of the values of all attributes, the one that was moved farthest; as `farthest_group`."""
    far = farthest_group(groups)
    return f"{_describe_far(far, far['attribute'])} {_describe_above(groups)}"


def _describe_far(far: Mapping[str, Any], kind: str) -> str:
    return (
        f"Farthest from the unbiased counts: {kind} {far['group']}, "
        f"{rounded(far['distance'], 3, zeros=True)} standard errors in "
        f"{plural(far['cells'], 'cell')} (root mean square), with "
        f"{describe_share(far['outside_95'])} of these cells outside the 95 % interval."
    )


def _describe_above(frame: pd.DataFrame) -> str:
    """How many groups are clearly above 1, and what that means."""
    n_above = frame["clearly_above_1"].tolist().count("yes")
    if n_above:
        are = "is" if n_above == 1 else "are"
        return (
            f"{n_above:,} of {plural(len(frame), 'group')} {are} clearly above 1, where counts "
            "without any error would be: differences that are more than noise were smoothed away "
            "there, and the unbiased counts show them."
        )
    none = "It is not" if len(frame) == 1 else f"None of {plural(len(frame), 'group')} is"
    return (
        f"{none} clearly above 1, where counts without any error would be. That does not show "
        "that no difference was lost: nobody can see those that are smaller than the noise."
    )


def median_kept(kept: pd.DataFrame) -> dict[int, float]:
    """The share that the median table of each number of attributes keeps.

    kept: one row a measured residual, with order and share_kept
    """
    return kept.groupby("order")["share_kept"].median().to_dict()


def describe_kept(kept: pd.DataFrame) -> str:
    """Shares kept in the median table of each number of attributes; kept: as in `median_kept`."""
    parts = [
        f"{describe_share(share)} in tables of {plural(order, 'attribute')}"
        for order, share in median_kept(kept).items()
    ]
    return (
        "A smooth table is what all measurements together suggest for it, plus a share of what was "
        f"measured of it beyond that: {joined(parts)} (medians). The rest was taken for noise."
    )


def describe_gains(tables: pd.DataFrame) -> str:
    """In how many tables smoothing gains next to nothing.

    tables: one row each, with smoothing_gains
    """
    gains = tables["smoothing_gains"].tolist()
    n_none, n_known = gains.count("no"), gains.count("yes") + gains.count("no")
    if not n_known:
        return "Where smoothing gains next to nothing is not known: no table is of single values."
    if not n_none:
        return f"Smoothing gains accuracy in all of {plural(n_known, 'table')}, by its own errors."
    return (
        f"In {n_none:,} of {plural(n_known, 'table')} smoothing gains next to nothing: the "
        "model-based error is not clearly below the standard error. Publish the unbiased counts "
        "there."
    )
