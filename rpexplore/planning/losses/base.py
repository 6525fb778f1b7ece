"""The losses a curator can choose: what "accurate" means for a whole workload.

Each loss turns a workload's importance weights into weights on a variance of each table: the mean
of its cells' variances, or that of its worst cell. All cells of a marginal have one variance; those
of a table of ranges or running totals differ.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rpexplore.errors import WorkloadError
from rpexplore.workload.workload import Workload

# One set of words for pages, reports and tables of scenarios: what a plan can be for, …
AIMS = {
    "sum": "small errors on average",
    "largest": "a small largest error",
    "target": "targets met as well as can be",
    "required": "the musts met, then small errors on average",
    "musts, then targets": "the musts met, then the other targets as well as can be",
    "bounded": "small errors on average, the largest one bounded",
}
# … and how tables count in an average, with what that means for large ones.
WEIGHTINGS = {
    "equal": "every table alike",
    "cells": "every cell alike",
    "sqrt": "square root of cells",
}
_EFFECTS = {"cells": "so large tables count more", "sqrt": "between the two others"}


def weighting_in_words(weighting: str) -> str:
    """ "every table alike", "every cell alike, so large tables count more"."""
    words = WEIGHTINGS[weighting]
    return f"{words}, {_EFFECTS[weighting]}" if weighting in _EFFECTS else words


class Loss(Protocol):
    """What planner, plan file and verification need to know of a loss L(Var)."""

    # Whether Var_A is the variance of table A's least accurate cell, and not the mean one.
    looks_at_worst_cells: ClassVar[bool]
    # Whether the best plan of one budget, scaled, is that of every other (docs/mathematics.md
    # §6.2).
    is_homogeneous: ClassVar[bool]

    @property
    def description(self) -> str:
        """What is minimised, for a sentence: "the largest importance-weighted variance"."""
        ...

    @property
    def aim(self) -> str:
        """What a plan with this loss is for: "a small largest error"."""
        ...

    def table_weights(self, workload: Workload) -> np.ndarray:
        """Weight on each table's variance, float64[n_tables]; 0: it does not count."""
        ...

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these variances [n_tables]."""
        ...

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """(factor, offset): for all variances, L(Var) ≥ factor · Σ dual_weights · Var − offset.

        With it the smallest weighted sum, which RP+ Lemma 2 gives, bounds L from below.
        """
        ...


@dataclass(frozen=True)
class SumOfVariances:
    """Weighted sum of variances: Σ_A importance_A · scheme_A · Var_A (RP+ §6.2).

    Var_A is the mean cell variance of table A, importance_A the workload's weight, and scheme_A
    is 1 ("equal"), cells(A) ("cells", the classical sum of all cell variances) or √cells(A)
    ("sqrt"). Own weights: the workload's weights with "equal".
    """

    weighting: str = "equal"

    looks_at_worst_cells: ClassVar[bool] = False
    is_homogeneous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.weighting not in tuple(WEIGHTINGS):
            raise WorkloadError(
                f"The weighting must be one of {', '.join(WEIGHTINGS)}, got {self.weighting!r}."
            )

    @property
    def description(self) -> str:
        return f"the sum of variances times importance ({weighting_in_words(self.weighting)})"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for: "small errors on average, every table alike"."""
        return f"{AIMS['sum']}, {WEIGHTINGS[self.weighting]}"

    def table_weights(self, workload: Workload) -> np.ndarray:
        """Weight on each table's variance, float64[n_tables]."""
        scheme = {"equal": 1.0, "cells": workload.cells, "sqrt": np.sqrt(workload.cells)}
        with np.errstate(over="ignore"):  # the planner refuses what is out of its range
            return workload.weights * scheme[self.weighting]

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these mean cell variances [n_tables]."""
        return float(np.sum(self.table_weights(workload) * variances))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """The sum itself, as far as it is above the other."""
        counted = dual_weights > 0
        return float(np.min(self.table_weights(workload)[counted] / dual_weights[counted])), 0.0


@dataclass(frozen=True)
class MaxVariance:
    """Largest weighted variance: max_A Var_A / t_A, Var_A that of A's worst cell.

    relative_to="importance": t_A = 1 / the table's importance weight. relative_to="target":
    t_A = the square of the table's target standard error, so the loss is at most 1 exactly when
    every target is met; every table must then have a target, and importance weights are not used.
    """

    relative_to: str = "importance"

    looks_at_worst_cells: ClassVar[bool] = True
    is_homogeneous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.relative_to not in ("importance", "target"):
            raise WorkloadError(
                f"relative_to must be 'importance' or 'target', got {self.relative_to!r}."
            )

    @property
    def description(self) -> str:
        if self.relative_to == "target":
            return "the largest variance relative to its target"
        return "the largest importance-weighted variance"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return AIMS["target" if self.relative_to == "target" else "largest"]

    def table_weights(self, workload: Workload) -> np.ndarray:
        """Weight on each table's variance, float64[n_tables]."""
        if self.relative_to == "importance":
            return workload.weights
        everything = np.ones(len(workload), dtype=bool)
        return weights_to_targets(workload, everything, "use MaxVariance(relative_to='importance')")

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables' worst cells have these variances [n_tables]."""
        return float(np.max(self.table_weights(workload) * variances))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """A maximum is at least any mean."""
        return 1 / float(np.sum(dual_weights / self.table_weights(workload))), 0.0


def weights_to_targets(workload: Workload, tables: np.ndarray, instead: str) -> np.ndarray:
    """1/target² of these tables, 0 for others, float64[n_tables].

    tables: bool[n_tables]. Raises `WorkloadError` for one without a target; instead: what else
    could be done.
    """
    missing = tables & np.isnan(workload.targets)
    if np.any(missing):
        raise WorkloadError(
            f"The table {workload.describe(int(np.argmax(missing)))} has no target; give every "
            f"table one, or {instead}."
        )
    with np.errstate(over="ignore"):  # the planner refuses what is out of its range
        return np.where(tables, workload.targets**-2.0, 0.0)
