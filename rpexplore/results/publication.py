"""What of released tables is publishable, by their own noisy counts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd

from rpexplore.common.text import describe_share, plural, rounded
from rpexplore.domain.expected_counts import CV_LIMIT, checked_cv_limit
from rpexplore.domain.readings import (
    are_publishable_as_estimated,
    coefficients_of_variation,
    quality_flags,
)
from rpexplore.domain.result_schema import (
    CV,
    PUBLISHABLE,
    QUALITY,
    TOTAL_CV,
    Role,
    Schema,
    apart_from,
)
from rpexplore.domain.survey import Sampling

CV_MEANING = (
    "The coefficient of variation: the standard error over the size of the noisy count. It is that "
    "of the released estimate, not of the true count, which nobody may know."
)
SMOOTH_CV_MEANING = (
    "The coefficient of variation: the model-based error over the smooth count, as in small area "
    "estimation. It is right as far as the model is. Cells without a model-based error, of tables "
    "with ranges, groups or other sums, have none and are not marked as publishable."
)
SMOOTHING_GAINS_MEANING = (
    "Whether the model-based error is smaller than the standard error of the unbiased counts by "
    "more than 5 % (root mean squares over the cells of a table). Where it is not, smoothing gains "
    "next to nothing: publish the unbiased counts. Empty where a table has ranges, groups or other "
    "sums."
)
NO_GAIN = "Smoothing gains next to nothing here: publish the unbiased counts."
# Of the standard error.
_SMALLEST_GAIN = 0.05
_LEFT_EMPTY: tuple[Role, ...] = ("value", "estimate", "model_error", "lower", "upper", "cv")


@dataclass(frozen=True)
class Publication:
    """Which cells of a table of results are publishable, and what becomes of the others.

    cv_limit     the largest coefficient of variation of a publishable cell: 0.2 is 20 %
    leave_empty  whether other cells have no count and no interval
    sampling     the sampling error that counts beside the noise, if it does

    Raises `WorkloadError` if the limit is none.
    """

    cv_limit: float = CV_LIMIT
    leave_empty: bool = False
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        checked_cv_limit(self.cv_limit)

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table of results with `cv`, `quality` and `publishable` behind the interval.

        These are numbers, letters A to E, and "yes" or "no".

        In smooth tables they stand behind the model-based error, of which they are made.
        An attribute of that name is told apart. A cell whose count is 0 has no `cv`.
        """
        publishable, schema = self.publishable(frame), Schema.of(frame)
        errors, counts = self._errors_and_counts(frame)
        cv = coefficients_of_variation(errors, counts)
        are_exact = (errors == 0) & (counts == 0)
        flags = quality_flags(
            np.select([np.isnan(errors), are_exact, counts <= 0], [np.nan, 0.0, np.inf], cv)
        )
        added = (CV if self.sampling is None else TOTAL_CV, QUALITY, PUBLISHABLE)
        labels = apart_from(schema.labels, (*schema.figures, *added))
        named = dict(zip([one.name for one in schema.labels], labels, strict=True))
        table = frame.rename(columns={old: new.name for old, new in named.items()})
        columns = [named.get(column.name, column) for column in schema.columns]
        after = schema.name("model_error" if schema.is_smooth else schema.last_of_interval)
        behind = table.columns.tolist().index(after) + 1
        table.insert(behind, CV.name, np.where(np.isfinite(cv), cv, np.nan))
        answers = pd.Categorical.from_codes(publishable.astype(np.int8), ["no", "yes"])
        table.insert(behind + 1, QUALITY.name, flags)
        table.insert(behind + 2, PUBLISHABLE.name, answers)
        columns[behind:behind] = added
        schema = Schema(tuple(columns))
        if self.leave_empty:
            table.loc[~publishable, schema.names(*_LEFT_EMPTY)] = np.nan
        return schema.marked(table)

    def publishable(self, frame: pd.DataFrame) -> np.ndarray:
        """Whether each cell is publishable, bool: smooth cells by their model-based error.

        So are the cells of empty areas, which are exactly 0 and have no noise.
        """
        errors, counts = self._errors_and_counts(frame)
        are_exact = (errors == 0) & (counts == 0) & (not Schema.of(frame).is_smooth)
        return are_exact | are_publishable_as_estimated(errors, counts, self.cv_limit)

    def hides(self, estimate: float, standard_error: float) -> bool:
        """Whether a noisy count is left empty."""
        error, count = np.array([standard_error]), np.array([estimate])
        if self.sampling is not None:
            error = self.sampling.total_errors(error, count, ())
        publishable = are_publishable_as_estimated(error, count, self.cv_limit)
        return self.leave_empty and not publishable.item()

    def file_of(self, names: Sequence[str]) -> str:
        """What to call a table of these attributes: "age_sex.csv", as in the folder of a release.

        "age_sex-publishable.csv" where other cells are left empty.
        """
        # Letters of any script stay: names that differ by an accent do not meet in one file.
        parts = (
            re.sub(r"[\W_]+", "-", normalize("NFC", name)).strip("-")
            for name in names or ("total",)
        )
        kind = "-publishable" if self.leave_empty else ""
        return f"{'_'.join(filter(None, parts))[:80] or 'table'}{kind}.csv"

    def rule(self, *, smooth: bool = False) -> str:
        """Which cells are publishable, for the beginning of a sentence.

        smooth: whether the tables are smooth
        """
        count, cv = ("Smooth", "model-based CV") if smooth else ("Noisy", "CV")
        cv = f"total {cv}" if self.sampling is not None else cv
        return f"{count} count above 0 and {cv} at most {rounded(100 * self.cv_limit, 3)} %"

    def describe(self, n_publishable: int, n_cells: int, of: str = "") -> str:
        """How many cells are publishable, and what is done with the others.

        of: what the cells are of, such as "single values", where the same table has others
        """
        are = "is" if n_publishable == 1 else "are"
        text = (
            f"{n_publishable:,} of {plural(n_cells, 'cell')}{of and f' of {of}'} {are} publishable "
            f"({describe_share(n_publishable / n_cells)})"
        )
        if n_publishable < n_cells and self.leave_empty:
            text += "; the others are left empty"
        return f"{text}."

    def _errors_and_counts(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """The errors that CVs are made of, with sampling if that counts, and their figures."""
        errors, counts = _errors_and_counts(frame)
        if self.sampling is not None:
            errors = self.sampling.total_errors(errors, counts, Schema.of(frame).attributes)
        return errors, counts


def sampling_of(results: Any) -> Sampling | None:
    """The sampling error that the forecast counted which the plan of some results keeps."""
    forecast = getattr(getattr(results, "plan", None), "forecast", None)
    if forecast is None or forecast.survey is None:
        return None
    return Sampling(forecast.survey, forecast.n_records)


def has_errors(frame: pd.DataFrame) -> bool:
    """Whether errors are known by which cells are publishable: not of sums of smooth counts."""
    errors, _ = _errors_and_counts(frame)
    return bool(np.isfinite(errors).any())


@dataclass(frozen=True)
class SmoothingGain:
    """The errors of a table before and after smoothing, root mean squares over its cells.

    standard_error  of the unbiased counts
    model_error     of the smooth counts, model-based
    """

    standard_error: float
    model_error: float

    @classmethod
    def of(cls, standard_errors: np.ndarray, model_errors: np.ndarray) -> "SmoothingGain | None":
        """From the errors of each cell; None where model-based ones are not known (NaN)."""
        if np.isnan(model_errors).any():
            return None
        errors = standard_errors, model_errors
        return cls(*(float(np.sqrt(np.mean(of_cells**2))) for of_cells in errors))

    @classmethod
    def of_table(cls, frame: pd.DataFrame) -> "SmoothingGain | None":
        """Of a table of results; None unless it has smooth counts beside unbiased ones."""
        schema = Schema.of(frame)
        if not (schema.is_smooth and schema.has_unbiased):
            return None
        return cls.of(*(frame[schema.name(role)].to_numpy() for role in ("error", "model_error")))

    @property
    def is_gain(self) -> bool:
        """Whether the smooth counts are the more accurate ones, as far as the model holds."""
        return self.model_error < (1 - _SMALLEST_GAIN) * self.standard_error

    @property
    def text(self) -> str:
        """Whether it is a gain, "yes" or "no"."""
        return "yes" if self.is_gain else "no"

    def describe(self) -> str:
        """That smoothing gains nothing, and why; "" where it does."""
        if self.is_gain:
            return ""
        unbiased, smooth = (
            rounded(error, 3, zeros=True) for error in (self.standard_error, self.model_error)
        )
        is_larger = self.model_error > (1 + _SMALLEST_GAIN) * self.standard_error
        compared = "more than" if is_larger else "within 5 % of"
        return (
            f"{NO_GAIN} Over the cells of this table, the model-based error of the smooth counts "
            f"is {smooth}, {compared} the standard error of the unbiased ones, {unbiased} (root "
            "mean squares)."
        )


def _errors_and_counts(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The errors that CVs are made of, and the figures that they belong to."""
    error, count = Schema.of(frame).error_and_count
    return frame[error].to_numpy(dtype=float), frame[count].to_numpy(dtype=float)
