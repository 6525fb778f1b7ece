"""What of released tables is publishable, by their own noisy counts."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.domain.expected_counts import CV_LIMIT, checked_cv_limit
from rpexplore.domain.publishable import are_publishable_as_estimated, coefficients_of_variation

CV_COLUMN, PUBLISHABLE_COLUMN = "cv", "publishable"
CV_MEANING = (
    "The coefficient of variation: the standard error over the size of the noisy count. It is that "
    "of the released estimate, not of the true count, which nobody may know."
)
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

        An attribute of that name is told apart. A cell whose noisy count is 0 has no `cv`.
        """
        publishable, estimates = self.publishable(frame), _estimates(frame)
        cv = coefficients_of_variation(frame["standard_error"].to_numpy(dtype=float), estimates)
        taken = {name: f"{name} (attribute)" for name in (CV_COLUMN, PUBLISHABLE_COLUMN)}
        table = frame.rename(columns=taken)
        behind = table.columns.tolist().index("upper_95") + 1
        table.insert(behind, CV_COLUMN, np.where(np.isfinite(cv), cv, np.nan))
        table.insert(behind + 1, PUBLISHABLE_COLUMN, np.where(publishable, "yes", "no"))
        if self.leave_empty:
            # Of tables that are not processed, a column called unbiased_value is an attribute.
            unbiased = ["unbiased_value"] if _are_processed(frame) else []
            table.loc[~publishable, _LEFT_EMPTY + unbiased] = np.nan
        return table

    def publishable(self, frame: pd.DataFrame) -> np.ndarray:
        """Whether each cell is publishable, bool."""
        errors = frame["standard_error"].to_numpy(dtype=float)
        return are_publishable_as_estimated(errors, _estimates(frame), self.cv_limit)

    def hides(self, estimate: float, standard_error: float) -> bool:
        """Whether a noisy count is left empty."""
        error, count = np.array(standard_error), np.array(estimate)
        publishable = are_publishable_as_estimated(error, count, self.cv_limit)
        return self.leave_empty and not publishable.item()

    @property
    def rule(self) -> str:
        """Which cells are publishable, for the beginning of a sentence."""
        return f"Noisy count above 0 and CV at most {rounded(100 * self.cv_limit, 3)} %"

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


def _estimates(frame: pd.DataFrame) -> np.ndarray:
    """The noisy counts: those that standard errors and intervals belong to."""
    return frame["unbiased_value" if _are_processed(frame) else "value"].to_numpy(dtype=float)


def _are_processed(frame: pd.DataFrame) -> bool:
    return frame.columns[-1] == "value_is"
