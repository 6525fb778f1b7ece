"""Noisy marginal: a table with noise of one known variance, measured by something else.

Its cells are the true counts plus independent noise of mean 0 and variance v. Summed over the
attributes that a residual A' does not have and centred along those that it has, they are an
unbiased contribution to that residual with σ² = v ∏_{j∈A∖A'} n_j, independent of those to all
others (docs/mathematics.md §10; ReM §3.2), so that nothing of what the table tells is lost.
"""

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rpexplore.common.exact_numbers import Exact, exact_fraction, shown
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.errors import BudgetError, ReleaseError
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.measurement_source import MeasurementSource
from rpexplore.releases.measurement import MAX_TABLE_CELLS

if TYPE_CHECKING:
    import pandas as pd

COUNT = "count"  # what the column of the counts is called, unless another is named


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMarginal:
    """Noisy counts of every cell of a marginal.

    places    of its attributes in the domain, ascending
    values    float64, one axis an attribute; read-only
    variance  of the noise of each cell, exact
    name      what people call it; the table's attributes if left out
    rho       the ρ of zCDP that it spent, exact, for its privacy unit; None: nobody stated it
    max_records_per_person
              of its privacy unit; None: the unit is one record

    Raises `ReleaseError` for counts of another shape or that are not finite, and for a variance
    that is not positive; `BudgetError` for a ρ or a number of records that is not.
    """

    domain: Domain
    places: tuple[int, ...]
    values: np.ndarray
    variance: Fraction
    name: str = ""
    rho: Fraction | None = None
    max_records_per_person: int | None = None

    def __post_init__(self) -> None:
        table = self.domain.describe(self.places)
        values = np.array(self.values, dtype=float)
        shape = tuple(self.domain.attributes[place].size for place in self.places)
        if values.shape != shape:
            raise ReleaseError(
                f"The noisy marginal {table} must have the shape {shape}, one axis an attribute, "
                f"got {values.shape}."
            )
        if not np.all(np.isfinite(values)):
            raise ReleaseError(
                f"The counts of the noisy marginal {table} must be finite numbers, got "
                f"{values[~np.isfinite(values)][0]}; leave the table out if a cell is not known."
            )
        if self.variance <= 0:
            raise ReleaseError(
                f"The variance of the noisy marginal {table} must be positive, got "
                f"{shown(self.variance)}; it is the square of the standard error of its cells."
            )
        values.setflags(write=False)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "name", self.name or f"marginal {table}")
        _ = self.source  # refuses what cannot be spent

    @classmethod
    def of(
        cls,
        domain: Domain,
        attributes: AttributeSet,
        values: ArrayLike,
        variance: Exact,
        *,
        name: str = "",
        rho: Exact | None = None,
        max_records_per_person: int | None = None,
    ) -> "NoisyMarginal":
        """From an array with one axis an attribute, in the order in which they are named."""
        names = [attributes] if isinstance(attributes, str) else list(attributes)
        places = domain.positions(names)
        found = np.asarray(values, dtype=float)
        if found.ndim == len(names):
            named = [domain.position(each) for each in names]
            found = found.transpose([named.index(place) for place in places])
        return cls(
            domain,
            places,
            found,
            _variance(variance),
            name,
            None if rho is None else exact_fraction(rho, "rho"),
            max_records_per_person,
        )

    @classmethod
    def of_frame(
        cls,
        domain: Domain,
        frame: "pd.DataFrame",
        variance: Exact,
        *,
        count: str = COUNT,
        name: str = "",
        rho: Exact | None = None,
        max_records_per_person: int | None = None,
    ) -> "NoisyMarginal":
        """From one row a cell: a column for each attribute, and one, `count`, for the counts.

        Values are written as in the codebook, or all of a column by their labels. Raises
        `ReleaseError` for a cell that is missing or there twice, a value that is not in the domain,
        and a column that is no attribute.
        """
        places, values = _counts_of_frame(domain, frame, count, name or "The noisy marginal")
        return cls(
            domain,
            places,
            values,
            _variance(variance),
            name,
            None if rho is None else exact_fraction(rho, "rho"),
            max_records_per_person,
        )

    @classmethod
    def load(
        cls,
        domain: Domain,
        path: str | Path,
        variance: Exact,
        *,
        count: str = COUNT,
        rho: Exact | None = None,
        max_records_per_person: int | None = None,
    ) -> "NoisyMarginal":
        """From a CSV file, in UTF-8, as `of_frame` reads it; it is called by the file's name."""
        import pandas as pd

        path = Path(path)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                header, *rows = [row for row in csv.reader(file, strict=True) if row]
        except OSError as error:
            raise ReleaseError(
                f"The noisy marginal {str(path)!r} cannot be read ({error.strerror}); check the "
                "path."
            ) from None
        except (ValueError, csv.Error):  # not UTF-8, empty, or quotes left open
            header, rows = [], [[""]]
        if any(len(row) != len(header) for row in rows):
            raise ReleaseError(
                f"The noisy marginal {str(path)!r} must be a CSV file in UTF-8 with a line of "
                "column names, and as many values in each row."
            )
        frame = pd.DataFrame(rows, columns=header)
        return cls.of_frame(
            domain,
            frame,
            variance,
            count=count,
            name=path.name,
            rho=rho,
            max_records_per_person=max_records_per_person,
        )

    @property
    def source(self) -> MeasurementSource:
        """What it is, and what it spent."""
        digest = hashlib.sha256(repr((self.places, self.values.shape)).encode())
        digest.update(self.values.tobytes())
        return MeasurementSource(
            self.name, digest.hexdigest(), self.rho, self.max_records_per_person
        )

    def estimates(self) -> Estimates:
        """What it tells of every residual within it."""
        several = [place for place in self.places if self.domain.sizes[place] > 1]
        counts = self.values.reshape([self.domain.attributes[place].size for place in several])
        subsets = [each for k in range(len(several) + 1) for each in combinations(several, k)]
        contributions, variances = {}, {}
        for subset in subsets:
            left = tuple(axis for axis, place in enumerate(several) if place not in subset)
            found = counts.sum(axis=left)
            for axis in range(found.ndim):
                found = found - found.mean(axis=axis, keepdims=True)
            contributions[subset] = found
            variances[subset] = self.variance * prod(counts.shape[axis] for axis in left)
        return Estimates(self.domain, (self.places,), contributions, variances, {}, (self.source,))

    def __repr__(self) -> str:
        return f"<NoisyMarginal {self.name!r} of {self.domain.describe(self.places)}>"


def _variance(given: Exact) -> Fraction:
    """The variance as an exact number."""
    try:
        return exact_fraction(given, "The variance")
    except BudgetError as error:
        raise ReleaseError(str(error)) from None


def _counts_of_frame(
    domain: Domain, frame: "pd.DataFrame", count: str, called: str
) -> tuple[tuple[int, ...], np.ndarray]:
    """(ascending places of the attributes, counts: float64, one axis an attribute).

    count: the column of the counts; all others must be attributes, and rows may stand in any order.
    called: what errors call the marginal. Raises `ReleaseError` for a column that is no attribute,
    a value that is not in the domain, a cell that is missing or there twice, and what is no number.
    """
    columns = list(frame.columns)
    if columns.count(count) != 1:
        raise ReleaseError(
            f"{called} must have one column {count!r} with the noisy counts, got "
            f"{', '.join(map(str, columns)) or 'no columns'}."
        )
    names = [column for column in columns if column != count]
    for name in names:
        if name not in domain:
            raise ReleaseError(
                f"{called} has a column {name!r}, which is no attribute of the domain; rename it, "
                "or take it out."
            )
    places = domain.positions(names)
    attributes = [domain.attributes[place] for place in places]
    shape = [attribute.size for attribute in attributes]
    if prod(shape) > MAX_TABLE_CELLS:
        raise ReleaseError(
            f"{called} has {prod(shape):,} cells by the domain, and a table can have "
            f"{MAX_TABLE_CELLS:,}; leave it out."
        )
    flat = np.zeros(len(frame), dtype=np.int64)
    for attribute in attributes:
        flat = flat * attribute.size + _codes(attribute, frame[attribute.name].tolist(), called)
    times = np.bincount(flat, minlength=prod(shape))
    if np.any(wrong := times != 1):
        cell = int(np.argmax(wrong))
        raise ReleaseError(
            f"{called} must have one row for each of its {prod(shape):,} cells, and has "
            f"{times[cell] or 'none'} for {_describe_cell(attributes, shape, cell)}."
        )
    values = np.empty(prod(shape))
    values[flat] = _numbers(frame[count].tolist(), count, called)
    return places, values.reshape(shape)


def _codes(attribute: Attribute, column: Sequence[object], called: str) -> np.ndarray:
    """The places of a column's values among those of an attribute, int64[len(column)]."""
    texts = [str(value) for value in column]
    labels, by_value = attribute.labels(), attribute.stored_values()
    known = next(
        (
            places
            for places in (
                {text: i for i, text in enumerate(listed)} for listed in (by_value, labels)
            )
            if all(text in places for text in texts)
        ),
        None,
    )
    if known is None:
        either = {*by_value, *labels}
        wrong = next((text for text in texts if text not in either), None)
        raise ReleaseError(
            f"{called} writes some values of {attribute.name!r} as in the codebook and others by "
            "their labels; write all in one way."
            if wrong is None
            else f"{called} has the value {shown(wrong)!r} for {attribute.name!r}, which is not in "
            f"the domain; it knows {', '.join(by_value[:8])}{', …' if len(by_value) > 8 else ''}."
        )
    return np.array([known[text] for text in texts], dtype=np.int64)


def _numbers(column: Sequence[object], count: str, called: str) -> np.ndarray:
    """The counts, float64[len(column)]; whether they are finite is seen to where they are kept."""
    found = np.empty(len(column))
    for row, value in enumerate(column):
        try:
            found[row] = float(value)  # pyright: ignore[reportArgumentType] (that is the question)
        except (TypeError, ValueError):
            raise ReleaseError(
                f"{called} must have numbers in the column {count!r}, got {shown(value)!r} in row "
                f"{row + 1}."
            ) from None
    return found


def _describe_cell(attributes: Sequence[Attribute], shape: Sequence[int], cell: int) -> str:
    """A cell in words: "(sex = female, age = 0 to 2)", or "(total)"."""
    places = [int(place) for place in np.unravel_index(cell, shape)] if shape else []
    named = [
        f"{attribute.name} = {attribute.values.label(place)}"
        for attribute, place in zip(attributes, places, strict=True)
    ]
    return f"({', '.join(named) or 'total'})"
