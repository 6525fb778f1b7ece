"""What of released tables is publishable, by their own noisy counts."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.domain.expected_counts import CV_LIMIT, checked_cv_limit
from rpexplore.domain.publishable import are_publishable_as_estimated, coefficients_of_variation
from rpexplore.domain.readings import SMOOTH_COVERAGE

CV_COLUMN, PUBLISHABLE_COLUMN = "cv", "publishable"
CV_MEANING = (
    "The coefficient of variation: the standard error over the size of the noisy count. It is that "
    "of the released estimate, not of the true count, which nobody may know."
)
SMOOTH_CV_MEANING = (
    "The coefficient of variation: the model-based error over the smooth count, as in small area "
    "estimation. It is right as far as the model is. Cells without a model-based error, of tables "
    "with ranges, groups or other sums, have none and are not marked as publishable."
)
MODEL_ERROR_MEANING = (
    "The root mean squared error of the smooth count if the model holds; not guaranteed. The "
    "smooth count ± 1.96 times it, no lower than 0, is a model-based 95 % interval. Empty where "
    f"a table has ranges, groups or other sums. {SMOOTH_COVERAGE}"
)
STANDARD_ERROR_MEANING = "Of the privacy noise alone; errors that were in the records come on top."
INTERVAL_MEANING = (
    "From lower_95 to upper_95: contains the true count 95 % of the time (about that where "
    "the standard error is below 2, because noise on counts comes in whole steps)."
)
ADAPTIVE_ERROR_MEANING = (
    "The root mean squared error of the estimate if the model holds; not guaranteed."
)
ADAPTIVE_INTERVAL_MEANING = (
    "From lower_95 to upper_95: contains the true count in about 95 % of the cells if the model "
    "holds."
)
SMOOTHING_GAINS_MEANING = (
    "Whether the model-based error is smaller than the standard error of the unbiased counts by "
    "more than 5 % (root mean squares over the cells of a table). Where it is not, smoothing gains "
    "next to nothing: publish the unbiased counts. Empty where a table has ranges, groups or other "
    "sums."
)
NO_GAIN = "Smoothing gains next to nothing here: publish the unbiased counts."
# Of the standard error. Model-based errors are no larger than that, so that what gains nothing has
# nearly the same.
_SMALLEST_GAIN = 0.05
_ADAPTIVE = ("model_error", "lower_95", "upper_95", "value_is")  # the last columns
_LEFT_EMPTY = ["value", "lower_95", "upper_95", CV_COLUMN]


@dataclass(frozen=True)
class Publication:
    """Which cells of a table of results are publishable, and what becomes of the others.

    cv_limit     the largest coefficient of variation of a publishable cell: 0.2 is 20 %
    leave_empty  whether other cells have no count and no interval

    Raises `WorkloadError` if the limit is none.
    """

    cv_limit: float = CV_LIMIT
    leave_empty: bool = False

    def __post_init__(self) -> None:
        checked_cv_limit(self.cv_limit)

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table of results with `cv` and `publishable` ("yes" or "no") behind the interval.

        In smooth tables they stand behind the model-based error, of which they are made.
        An attribute of that name is told apart. A cell whose count is 0 has no `cv`.
        """
        publishable, smooth = self.publishable(frame), are_smooth(frame)
        cv = coefficients_of_variation(*_errors_and_estimates(frame))
        taken = {name: f"{name} (attribute)" for name in (CV_COLUMN, PUBLISHABLE_COLUMN)}
        table = frame.rename(columns=taken)
        behind = table.columns.tolist().index("model_error" if smooth else "upper_95") + 1
        table.insert(behind, CV_COLUMN, np.where(np.isfinite(cv), cv, np.nan))
        table.insert(behind + 1, PUBLISHABLE_COLUMN, np.where(publishable, "yes", "no"))
        if self.leave_empty:
            # Of tables that are not processed, columns called like these are attributes.
            has_unbiased = _are_processed(frame) and not are_adaptive(frame)
            more = ["unbiased_value"] if has_unbiased else []
            more += ["model_error"] if smooth else []
            table.loc[~publishable, _LEFT_EMPTY + more] = np.nan
        return table

    def publishable(self, frame: pd.DataFrame) -> np.ndarray:
        """Whether each cell is publishable, bool: smooth cells by their model-based error."""
        return are_publishable_as_estimated(*_errors_and_estimates(frame), self.cv_limit)

    def hides(self, estimate: float, standard_error: float) -> bool:
        """Whether a noisy count is left empty."""
        error, count = np.array(standard_error), np.array(estimate)
        publishable = are_publishable_as_estimated(error, count, self.cv_limit)
        return self.leave_empty and not publishable.item()

    def rule(self, *, smooth: bool = False) -> str:
        """Which cells are publishable, for the beginning of a sentence.

        smooth: whether the tables are smooth
        """
        count, cv = ("Smooth", "model-based CV") if smooth else ("Noisy", "CV")
        return f"{count} count above 0 and {cv} at most {rounded(100 * self.cv_limit, 3)} %"

    def describe(self, n_publishable: int, n_cells: int) -> str:
        """How many cells are publishable, and what is done with the others."""
        are = "is" if n_publishable == 1 else "are"
        text = (
            f"{n_publishable:,} of {plural(n_cells, 'cell')} {are} publishable "
            f"({describe_share(n_publishable / n_cells)})"
        )
        if n_publishable < n_cells and self.leave_empty:
            text += "; the others are left empty"
        return f"{text}."


def are_smooth(frame: pd.DataFrame) -> bool:
    """Whether a table of results has smooth counts with their model-based error."""
    return _are_processed(frame) and "model_error" in frame


def are_adaptive(frame: pd.DataFrame) -> bool:
    """Whether a table is that of an adaptive release: no unbiased counts beside its estimates.

    With what `Publication.table` inserts or without it.
    """
    columns = [name for name in frame.columns if name not in (CV_COLUMN, PUBLISHABLE_COLUMN)]
    return tuple(columns[-len(_ADAPTIVE) :]) == _ADAPTIVE


def has_errors(frame: pd.DataFrame) -> bool:
    """Whether errors are known by which cells are publishable: not of sums of smooth counts."""
    errors, _ = _errors_and_estimates(frame)
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
        if not are_smooth(frame) or are_adaptive(frame):
            return None
        return cls.of(frame["standard_error"].to_numpy(), frame["model_error"].to_numpy())

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
        return (
            f"{NO_GAIN} Over the cells of this table, the model-based error of the smooth counts "
            f"is {smooth}, within 5 % of the standard error of the unbiased ones, {unbiased} (root "
            "mean squares)."
        )


def _errors_and_estimates(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The errors that CVs are made of, and the counts that they belong to."""
    error, estimate = "standard_error", "value"
    if are_smooth(frame):
        error = "model_error"
    elif _are_processed(frame):
        estimate = "unbiased_value"
    return frame[error].to_numpy(dtype=float), frame[estimate].to_numpy(dtype=float)


def _are_processed(frame: pd.DataFrame) -> bool:
    return frame.columns[-1] == "value_is"
