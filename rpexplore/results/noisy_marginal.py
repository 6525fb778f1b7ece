"""Noisy marginal: a table measured by something else, the true counts plus independent noise.

Its noise has mean 0 and one known variance; what it says of each residual is in
docs/mathematics.md §10 (ReM §3.2).
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from rpexplore.common.files import file_bytes, utf8_text
from rpexplore.common.json_fields import refusing
from rpexplore.common.numbers import Exact, exact_fraction, read_only, shown
from rpexplore.common.text import csv_rows, refuse_unclear
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import AttributeIndices, AttributeSet, Domain, subsets
from rpexplore.errors import BudgetError, ReleaseError
from rpexplore.releases.large_tables import MAX_TABLE_CELLS
from rpexplore.results.measurement_source import MeasurementSource
from rpexplore.results.unbiased import Estimates

if TYPE_CHECKING:
    import pandas as pd


def variance_of_noise(law: str, scale: Exact) -> Fraction:
    """The variance of independent noise of a known law, exact or rounded up.

    Args:
        law: "laplace" (density ∝ exp(−|x|/scale)), "geometric" (whole numbers with probability ∝
            exp(−|k|/scale)) or "rounding" (the error is even between −scale/2 and scale/2, as of
            counts that are many times the base they are rounded to).
        scale: In records, positive.

    Raises:
        ReleaseError: For another law or a scale that is not positive.

    Example:
        >>> variance_of_noise("laplace", 2)
        Fraction(8, 1)
    """
    try:
        exact = exact_fraction(scale, f"The scale of {law} noise")
    except BudgetError as error:
        raise ReleaseError(str(error)) from None
    if exact <= 0:
        raise ReleaseError(f"The scale of {law} noise must be positive, got {shown(scale)}.")
    if law == "laplace":
        return 2 * exact**2
    if law == "rounding":
        return exact**2 / 12
    if law == "geometric":
        # 2 α/(1 − α)² with α = exp(−1/scale), as 1/(2 sinh²(1/(2 scale))); no less.
        half = min(float(1 / (2 * exact)), _LARGEST_HALF)
        return Fraction(math.nextafter(1 / (2 * math.sinh(half) ** 2) * (1 + 1e-12), math.inf))
    raise ReleaseError(
        f"The law of noise must be {', '.join(LAWS[:-1])} or {LAWS[-1]}, got {law!r}; state the "
        "variance of any other."
    )


LAWS = ("laplace", "geometric", "rounding")
_LARGEST_HALF = 100.0  # beyond, there is no noise to speak of: its variance would be below 1e-86

COUNT = "count"  # what the column of the counts is called, unless another is named


class _Stated(TypedDict, total=False):
    """What may be stated of a `NoisyMarginal` beside its counts; rho as people write it."""

    name: str
    rho: Exact | None
    max_records_per_person: int | None


_LEAST_VARIANCE = Fraction(1, 10**100)  # and one over it is the largest: floats hold both


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMarginal:
    """Noisy counts of every cell of a marginal.

    attribute_indices
              in the domain, ascending
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
    attribute_indices: AttributeIndices
    values: np.ndarray
    variance: Fraction
    name: str = ""
    rho: Fraction | None = None
    max_records_per_person: int | None = None

    def __post_init__(self) -> None:
        table = self.domain.describe(self.attribute_indices)
        values = np.array(self.values, dtype=float)
        shape = tuple(self.domain.attributes[index].size for index in self.attribute_indices)
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
        if not _LEAST_VARIANCE <= self.variance <= 1 / _LEAST_VARIANCE:
            raise ReleaseError(
                f"The variance of the noisy marginal {table} must be 1e-100 to 1e100, got "
                f"{shown(self.variance)}, a number that cannot be computed with; it is the square "
                "of the standard error of its cells."
            )
        object.__setattr__(self, "values", read_only(values))
        object.__setattr__(self, "name", self.name or f"marginal {table}")
        _ = self.source  # refuses what cannot be spent

    @classmethod
    def of(
        cls,
        domain: Domain,
        attributes: AttributeSet,
        values: ArrayLike,
        variance: Exact,
        **stated: Unpack[_Stated],
    ) -> "NoisyMarginal":
        """From an array with one axis an attribute, in the order in which they are named."""
        names = [attributes] if isinstance(attributes, str) else list(attributes)
        indices = domain.positions(names)
        array = np.asarray(values, dtype=float)
        if array.ndim == len(names):
            array = array.transpose([names.index(domain.names[index]) for index in indices])
        try:
            exact_variance = exact_fraction(variance, "The variance")
        except BudgetError as error:
            raise ReleaseError(str(error)) from None
        rho = stated.get("rho")
        # Any, so that a misspelt name is refused by the constructor.
        fields: Any = {**stated, "rho": None if rho is None else exact_fraction(rho, "rho")}
        return cls(domain, indices, array, exact_variance, **fields)

    @classmethod
    def of_frame(
        cls,
        domain: Domain,
        frame: "pd.DataFrame",
        variance: Exact,
        *,
        count: str = COUNT,
        **stated: Unpack[_Stated],
    ) -> "NoisyMarginal":
        """From one row a cell: a column for each attribute, and one, `count`, for the counts.

        Values are written as in the codebook, or all of a column by their labels. Raises
        `ReleaseError` for a cell that is missing or there twice, a value that is not in the domain,
        and a column that is no attribute.
        """
        noun = stated.get("name") or "The noisy marginal"
        names, values = _counts_of_frame(domain, frame, count, noun)
        return cls.of(domain, names, values, variance, **stated)

    @classmethod
    def load(
        cls,
        domain: Domain,
        path: str | Path,
        variance: Exact,
        *,
        count: str = COUNT,
        **stated: Unpack[_Stated],
    ) -> "NoisyMarginal":
        """From a CSV file in UTF-8, as `of_frame` reads it; called by the file's name or `name`."""
        import pandas as pd

        path = Path(path)
        noun = f"The noisy marginal {str(path)!r}"
        text = utf8_text(file_bytes(path, noun, ReleaseError), noun, ReleaseError)
        header, *rows = [row for _, row in csv_rows(text, noun, ReleaseError) if row] or [[]]
        if not header or any(len(row) != len(header) for row in rows):
            raise ReleaseError(
                f"{noun} must have a line of column names, and as many values in each row."
            )
        frame = pd.DataFrame(rows, columns=header)
        if header.count(count) == 1:
            with refusing(ReleaseError, noun):
                refuse_unclear(frame[count])
        stated.setdefault("name", path.name)
        return cls.of_frame(domain, frame, variance, count=count, **stated)

    @property
    def source(self) -> MeasurementSource:
        """What it is, and what it spent."""
        digest = hashlib.sha256(repr((self.attribute_indices, self.values.shape)).encode())
        digest.update(self.values.tobytes())
        return MeasurementSource(
            self.name, digest.hexdigest(), self.rho, self.max_records_per_person
        )

    def estimates(self) -> Estimates:
        """What it says of every residual within it."""
        several = [index for index in self.attribute_indices if self.domain.sizes[index] > 1]
        counts = self.values.reshape([self.domain.attributes[index].size for index in several])
        contributions, variances = {}, {}
        for subset in subsets(tuple(several)):
            left = tuple(axis for axis, index in enumerate(several) if index not in subset)
            centred = counts.sum(axis=left)
            for axis in range(centred.ndim):
                centred = centred - centred.mean(axis=axis, keepdims=True)
            contributions[subset] = centred
            variances[subset] = self.variance * prod(counts.shape[axis] for axis in left)
        tables = (self.attribute_indices,)
        return Estimates(self.domain, tables, contributions, variances, {}, (self.source,))

    def __repr__(self) -> str:
        return f"<NoisyMarginal {self.name!r} of {self.domain.describe(self.attribute_indices)}>"


def _counts_of_frame(
    domain: Domain, frame: "pd.DataFrame", count: str, noun: str
) -> tuple[list[str], np.ndarray]:
    """(names of the attributes in the domain's order, counts: float64, one axis an attribute).

    count: the column of the counts; all others must be attributes, and rows may stand in any order.
    noun: what errors call the marginal. Raises `ReleaseError` for a column that is no attribute,
    a value that is not in the domain, a cell that is missing or there twice, and what is no number.
    """
    columns = list(frame.columns)
    if columns.count(count) != 1:
        raise ReleaseError(
            f"{noun} must have one column {count!r} with the noisy counts, got "
            f"{', '.join(map(str, columns)) or 'no columns'}."
        )
    columns.remove(count)
    for column in columns:
        if column not in domain:
            raise ReleaseError(
                f"{noun} has a column {column!r}, which is no attribute of the domain; rename it, "
                "or take it out."
            )
    attributes = [domain.attributes[index] for index in domain.positions(columns)]
    shape = [attribute.size for attribute in attributes]
    n_cells = prod(shape)
    if n_cells > MAX_TABLE_CELLS:
        raise ReleaseError(
            f"{noun} has {n_cells:,} cells by the domain, and a table can have "
            f"{MAX_TABLE_CELLS:,}; leave it out."
        )
    cells = np.zeros(len(frame), dtype=np.int64)
    for attribute in attributes:
        cells = cells * attribute.size + _codes(attribute, frame[attribute.name].tolist(), noun)
    times = np.bincount(cells, minlength=n_cells)
    if np.any(wrong := times != 1):
        cell = int(np.argmax(wrong))
        raise ReleaseError(
            f"{noun} must have one row for each of its {n_cells:,} cells, and has "
            f"{times[cell] or 'none'} for {_describe_cell(attributes, shape, cell)}."
        )
    values = np.empty(n_cells)
    for row, (cell, number) in enumerate(
        zip(cells.tolist(), frame[count].tolist(), strict=True), start=1
    ):
        try:
            if "_" in str(number):  # float() reads 1_5 as 15
                raise ValueError
            values[cell] = float(number)  # `NoisyMarginal` refuses what is not finite
        except (TypeError, ValueError):
            raise ReleaseError(
                f"{noun} must have numbers in the column {count!r}, got {shown(number)!r} in row "
                f"{row}."
            ) from None
    return [attribute.name for attribute in attributes], values.reshape(shape)


def _codes(attribute: Attribute, column: Sequence[object], noun: str) -> np.ndarray:
    """The indices of a column's values among those of an attribute, int64[len(column)]."""
    import pandas as pd

    texts = [str(value) for value in column]
    labels, in_codebook = attribute.labels(), attribute.stored_values()
    for known in (in_codebook, labels):
        codes = pd.Index(known, dtype=object).get_indexer(pd.Index(texts, dtype=object))
        if np.all(codes >= 0):
            return codes
    unknown = next((text for text in texts if text not in {*in_codebook, *labels}), None)
    if unknown is None:
        raise ReleaseError(
            f"{noun} writes some values of {attribute.name!r} as in the codebook and others by "
            "their labels; write all in one way."
        )
    raise ReleaseError(
        f"{noun} has the value {shown(unknown)!r} for {attribute.name!r}, which is not in the "
        f"domain; it knows {', '.join(in_codebook[:8])}{', …' if len(in_codebook) > 8 else ''}."
    )


def _describe_cell(attributes: Sequence[Attribute], shape: Sequence[int], cell: int) -> str:
    """A cell in words: "(sex = female, age = 0 to 2)", or "(total)"."""
    labels = [
        f"{attribute.name} = {attribute.values.label(int(index))}"
        for attribute, index in zip(attributes, np.unravel_index(cell, shape), strict=True)
    ]
    return f"({', '.join(labels) or 'total'})"
