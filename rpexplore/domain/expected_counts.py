"""Expected counts: how many records each cell is expected to hold, from public sources only.

Either a total number alone, or the counts of an earlier published table (the margin). A table of
the workload takes the margin summed over the attributes it does not have, spread evenly over the
values of its attributes that the margin does not have.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import read_only, shown, whole_number
from rpexplore.common.text import describe_count, plural, rounded
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError

# The coefficient of variation up to which a cell is publishable, unless another one is chosen.
CV_LIMIT = 0.2
_LEAST_CV_LIMIT, _MOST_CV_LIMIT = 0.001, 10.0

MAX_CELLS = 100_000
MAX_ATTRIBUTES = 16
MAX_COUNT = 1e15
_LEAST_COUNT = 1e-100  # but 0: shares of less, by cell, leave what floats hold
_ROUNDING = 1e-9  # of the sum of counts that add up to one record


@dataclass(frozen=True)
class ExpectedCounts:
    """The counts of a public margin. Never made from the confidential records.

    attributes  names of the margin's attributes; () for a total number alone
    values      for each attribute its values, as they stand in data
    counts      row-major over the values, zero or positive, not all zero
    negative    how many of them were negative where they come from (noise) and are read as 0

    Raises `WorkloadError` for counts that cannot be used.
    """

    attributes: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    counts: tuple[float, ...]
    negative: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "values", tuple(tuple(listed) for listed in self.values))
        counts = tuple(map(checked_count, self.counts))
        object.__setattr__(self, "counts", counts)
        texts = [*self.attributes, *(value for listed in self.values for value in listed)]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise WorkloadError("Attributes and values must be filled texts.")
        if any(len(set(listed)) < len(listed) for listed in (self.attributes, *self.values)):
            raise WorkloadError("Attributes and values must be named once each.")
        check_margin_size(self.shape)
        if len(self.values) != len(self.attributes) or len(counts) != math.prod(self.shape):
            raise WorkloadError(
                f"Expected counts by {title_of(self.attributes)} must have "
                f"{plural(math.prod(self.shape), 'count')}, got {len(counts):,}."
            )
        if (whole_number(self.negative) or 0) != self.negative or self.negative < 0:
            raise WorkloadError(
                "How many counts were negative must be a whole number, got "
                f"{shown(self.negative)!r}."
            )
        if not any(counts):
            raise WorkloadError("The expected counts must not all be zero.")

    @classmethod
    def of_total(cls, total: float) -> "ExpectedCounts":
        """A total number of records, spread evenly over the cells of every table."""
        return cls((), (), (total,))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each attribute of the margin."""
        return tuple(len(listed) for listed in self.values)

    @property
    def total(self) -> float:
        return math.fsum(self.counts)

    @cached_property
    def margin(self) -> np.ndarray:
        """The counts, float64[shape], read-only."""
        return read_only(np.array(self.counts).reshape(self.shape))

    @property
    def text(self) -> str:
        """The source of the expected counts, for a sentence."""
        total = rounded(self.total, 6)
        if not self.attributes:
            return f"{total} in total, spread evenly over the cells of each table"
        spread = "spread evenly over the values of all other attributes"
        text = f"{total} in total, by {title_of(self.attributes)} as published, {spread}"
        if self.negative:
            text += f"; {plural(self.negative, 'negative number')} read as 0"
        return text

    def counts_of(self, attributes: Sequence[Attribute]) -> np.ndarray:
        """The expected count of each cell of a table by single values, one axis an attribute."""
        in_table = {attribute.name for attribute in attributes}
        missing = tuple(axis for axis, name in enumerate(self.attributes) if name not in in_table)
        sizes = [attribute.size for attribute in attributes]
        in_margin = [attribute.name in self.attributes for attribute in attributes]
        shape = [size if there else 1 for size, there in zip(sizes, in_margin, strict=True)]
        spread = math.prod(sizes) / math.prod(shape)
        return np.broadcast_to(self.margin.sum(axis=missing).reshape(shape), sizes) / spread

    def among(self, names: Collection[str]) -> "ExpectedCounts":
        """The same by those attributes that are among these names."""
        kept = [axis for axis, name in enumerate(self.attributes) if name in names]
        others = tuple(axis for axis in range(len(self.attributes)) if axis not in kept)
        if not kept:
            return ExpectedCounts.of_total(self.total)
        counts = self.margin.sum(axis=others).ravel().tolist()
        attributes = tuple(self.attributes[axis] for axis in kept)
        return ExpectedCounts(attributes, tuple(self.values[axis] for axis in kept), tuple(counts))

    def fitted(self, domain: Domain, renamed: Mapping[str, str] | None = None) -> "ExpectedCounts":
        """The same counts in the order of a codebook's attributes and values.

        renamed: old attribute name -> new one, for attributes that only changed their name.
        Raises `WorkloadError` that says why they do not fit the codebook.
        """
        names = [(renamed or {}).get(name, name) for name in self.attributes]
        orders = []  # of the values of each attribute, as indices of this margin
        for name, old, listed in zip(names, self.attributes, self.values, strict=True):
            if name not in domain:
                raise WorkloadError(
                    f"The expected counts are by {title_of(self.attributes)}, and the codebook has "
                    f"no attribute {old!r} any more."
                )
            texts = domain[name].stored_values(len(listed) + 1)
            if sorted(texts) != sorted(listed):
                unknown = next((value for value in listed if value not in texts), None)
                why = "has other values in the codebook"
                if unknown is not None:
                    why = f"has no value {unknown!r} in the codebook"
                raise WorkloadError(
                    f"The expected counts are by {title_of(self.attributes)}, and attribute "
                    f"{name!r} {why}."
                )
            index_of = {value: index for index, value in enumerate(listed)}
            orders.append([index_of[text] for text in texts])
        axes = sorted(range(len(names)), key=lambda axis: domain.position(names[axis]))
        margin = self.margin[np.ix_(*orders)] if orders else self.margin
        return ExpectedCounts(
            tuple(names[axis] for axis in axes),
            tuple(tuple(self.values[axis][index] for index in orders[axis]) for axis in axes),
            tuple(np.transpose(margin, axes).ravel().tolist()),
            self.negative,
        )

    # ---- files

    def to_json(self) -> dict[str, Any]:
        """The counts as JSON values; `from_json` undoes it."""
        counts = [int(count) if count.is_integer() else count for count in self.counts]
        content = {"attributes": self.attributes, "values": self.values, "counts": counts}
        return content | ({"negative": self.negative} if self.negative else {})

    @classmethod
    def from_json(cls, content: Any) -> "ExpectedCounts":
        """The counts that JSON values hold; raises `WorkloadError` if they are not usable."""
        with refusing(WorkloadError, "The expected counts cannot be read"):
            attributes, values, counts = (content[k] for k in ("attributes", "values", "counts"))
            listed = (attributes, values, counts, *values)
            if not all(isinstance(part, list | tuple) for part in listed):
                raise WorkloadError("attributes, values and counts must be lists.")
        return cls(tuple(attributes), tuple(values), tuple(counts), content.get("negative", 0))


def checked_cv_limit(value: Any) -> float:
    """The largest coefficient of variation of a publishable cell: 0.2 is 20 %.

    Raises `WorkloadError` for what is no number, and for less than 0.1 % or more than 1,000 %.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not _LEAST_CV_LIMIT <= value <= _MOST_CV_LIMIT:
        raise WorkloadError(
            "The largest coefficient of variation of a publishable cell must be a number from "
            f"{_LEAST_CV_LIMIT:g} to {_MOST_CV_LIMIT:g} (0.2 is 20 %), got {shown(value)}."
        )
    return float(value)


def checked_count(value: Any) -> float:
    """A count as a float; `WorkloadError` for what is none."""
    count = checked_number(value)
    if 0 < count < _LEAST_COUNT:
        raise WorkloadError(
            f"The count {shown(value)} is a number that cannot be computed with; write 0, or a "
            f"count from {_LEAST_COUNT:g} on."
        )
    if not 0 <= count <= MAX_COUNT:
        remedy = "; write 0 for it" if count < 0 else ""
        raise WorkloadError(f"The count must be 0 to {MAX_COUNT:g}, got {shown(value)}{remedy}.")
    return count + 0.0  # "-0" is 0


def checked_records(value: Any) -> float:
    """A number of expected records as a float; `WorkloadError` for less than one."""
    if checked_number(value) < 1 - _ROUNDING:
        raise WorkloadError(
            f"The number of expected records must be at least 1, got {float(value):g}."
        )
    return checked_count(value)


def checked_number(value: Any) -> float:
    """A value as a float; `WorkloadError` for what is none, such as "1_5", which float() takes."""
    try:
        if isinstance(value, bool) or "_" in str(value):
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise WorkloadError(
            f"The count must be a number such as 1250, got {shown(value)!r}."
        ) from None


def check_margin_size(shape: Sequence[int]) -> None:
    if math.prod(shape) > MAX_CELLS or len(shape) > MAX_ATTRIBUTES:
        raise WorkloadError(
            f"Expected counts may be by at most {MAX_ATTRIBUTES} attributes with {MAX_CELLS:,} "
            f"cells together, got {len(shape)} with {describe_count(math.prod(shape))}; sum over "
            "some of them first."
        )


def title_of(attributes: Iterable[str]) -> str:
    """The title of a margin: "age × sex", "the total"."""
    return " × ".join(attributes) or "the total"
