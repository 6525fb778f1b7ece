"""Losses: what accurate means for a whole workload; weighted sum, largest variance, p-norm."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from rpexplore.common.text import rounded
from rpexplore.errors import WorkloadError
from rpexplore.workload.workload import Workload

# ---- What accurate means for a whole workload: the interface of a loss, and the two plain ones.
#
# A new loss is a class in this folder and a line in `rpexplore.planning.solving.LOSSES`; file,
# command line, page and report ask the class.


# How tables count in an average.
WEIGHTINGS = {
    "equal": "equal weight per table",
    "cells": "equal weight per cell",
    "sqrt": "square root of cells",
}
_EFFECTS = {
    "equal": "unless set otherwise",
    "cells": "so large tables count more",
    "sqrt": "between the two others",
}


def describe_weighting(weighting: str) -> str:
    """ "equal weight per cell, so large tables count more"."""
    return f"{WEIGHTINGS[weighting]}, {_EFFECTS[weighting]}"


@dataclass(frozen=True)
class NumberOption:
    """The option of a loss that is a number: its field, and how a page asks for it.

    least, most, step: in the unit that a person types; scale: how many of that unit are 1
    """

    field: str
    label: str
    least: float
    most: float
    step: float
    scale: float = 1.0
    help: str = ""

    @property
    def typed_label(self) -> str:
        """What a field is called in which a person types it."""
        return f"{self.label}, in %" if self.scale == 100 else self.label


class Loss(ABC):
    """A loss L(Var): what the planner minimises, and how it can be bounded from below.

    A loss is a frozen dataclass whose fields are its options: at most one number, and those that
    the command line knows as --weighting and --relative-to.
    """

    # Its name in files.
    kind: ClassVar[str]
    # Its name on the command line; "" if it cannot be written there.
    option: ClassVar[str] = ""
    number: ClassVar[NumberOption | None] = None
    _objective: ClassVar[str]
    # Whether Var_A is the variance of table A's least accurate cell, and not the mean one.
    looks_at_least_accurate_cells: ClassVar[bool] = False
    # Whether the best plan of one budget, scaled, is that of every other one.
    is_homogeneous: ClassVar[bool] = True
    # Whether the plan must meet the required targets.
    meets_required_targets: ClassVar[bool] = False
    # Whether the certificate states the largest weighted variance allowed.
    has_limit: ClassVar[bool] = False
    # Whether shadow prices alone prove the bound, as for a weighted sum or maximum.
    is_proven_by_shadow_prices: ClassVar[bool] = False
    # By how much, relative, a bound may be off that another computer finds from the same weights.
    bound_allowance: ClassVar[float] = 0.0
    # Whether its values can be computed.
    is_available: ClassVar[bool] = True

    @classmethod
    def choices(cls) -> "tuple[Loss, ...]":
        """The losses that a page offers, with their usual options."""
        return (cls(),)

    @property
    def choice(self) -> str:
        """Which of the `choices` of its class it is, whatever its other options are."""
        return self.option

    @property
    def objective(self) -> str:
        """The objective without its options: "minimise the average error"."""
        return self._objective

    @property
    def title(self) -> str:
        """The objective: "minimise the average error, equal weight per table"."""
        return self.objective

    @property
    @abstractmethod
    def description(self) -> str:
        """The minimised quantity, for a sentence: "the largest weighted variance"."""

    @property
    def compares_with_targets(self) -> bool:
        """Whether the tables that it counts need targets, and their weights have no effect."""
        return False

    @property
    def power(self) -> float | None:
        """p where the losses of several parts of a plan combine as a p-norm; None where not."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Its kind and its options, for files."""
        options: Any = self  # a dataclass, as every loss is
        return {"kind": self.kind, **asdict(options)}

    @abstractmethod
    def table_weights(self, workload: Workload) -> np.ndarray:
        """Weight on each table's variance, float64[n_tables]; 0: it does not count.

        Raises `WorkloadError` if the loss cannot be used with the workload.
        """

    @abstractmethod
    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these variances [n_tables]."""

    @abstractmethod
    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """(factor, offset): for all variances, L(Var) ≥ factor · Σ dual_weights · Var − offset.

        dual_weights: float64[n_tables], ≥ 0 and not all 0
        """

    def minorant_of_plan(
        self, dual_weights: np.ndarray, workload: Workload, limit: float | None, near: np.ndarray
    ) -> tuple[float, float]:
        """`minorant`, which may hold for variances within the limit of the plan only.

        near: variances near those of the best plan, float64[n_tables]
        """
        return self.minorant(dual_weights, workload)

    def caps(self, workload: Workload, limit: float | None = None) -> np.ndarray | None:
        """The largest variance that each table may have, float64[n_tables]; None: any."""
        return None

    def weights_on_means(self, workload: Workload, dual_weights: np.ndarray) -> np.ndarray:
        """The part of dual weights that is on a table's mean variance, float64[n_tables].

        The rest, prices of caps and shares of a largest variance, is on its least accurate cells.
        """
        return dual_weights


@dataclass(frozen=True)
class WeightedSum(Loss):
    """A loss that is a weighted sum of variances, as `SumOfVariances`, or bounds one."""

    weighting: str = "equal"

    def __post_init__(self) -> None:
        if self.weighting not in tuple(WEIGHTINGS):
            raise WorkloadError(
                f"The weighting must be one of {', '.join(WEIGHTINGS)}, got {self.weighting!r}."
            )

    @property
    def title(self) -> str:
        return f"{self.objective}, {WEIGHTINGS[self.weighting]}"

    @property
    def description(self) -> str:
        return f"the sum of variances times weight ({describe_weighting(self.weighting)})"

    def table_weights(self, workload: Workload) -> np.ndarray:
        scheme = {"equal": 1.0, "cells": workload.cells, "sqrt": np.sqrt(workload.cells)}
        with np.errstate(over="ignore"):  # the planner refuses what is out of its range
            return workload.weights * scheme[self.weighting]

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        return float(np.sum(self.table_weights(workload) * variances))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """The sum itself, as far as it is above the other."""
        counts = dual_weights > 0
        return float(np.min(self.table_weights(workload)[counts] / dual_weights[counts])), 0.0

    def weights_on_means(self, workload: Workload, dual_weights: np.ndarray) -> np.ndarray:
        return self.table_weights(workload)


@dataclass(frozen=True)
class SumOfVariances(WeightedSum):
    """Weighted sum of variances: Σ_A weight_A · scheme_A · Var_A (RP+ §6.2).

    Var_A is the mean cell variance of table A, weight_A the workload's weight, and scheme_A is 1
    ("equal"), cells(A) ("cells", the classical sum of all cell variances) or √cells(A) ("sqrt").

    Example:
        >>> SumOfVariances(weighting="cells").weighting
        'cells'
    """

    kind: ClassVar[str] = "sum_of_variances"
    option: ClassVar[str] = "sum"
    _objective: ClassVar[str] = "minimise the average error"
    is_proven_by_shadow_prices: ClassVar[bool] = True

    @property
    def power(self) -> float:
        return 1.0


class RelativeLoss(Loss):
    """The p-norm of variances times weight, or of variances over the squares of targets."""

    p: float
    relative_to: str

    def __post_init__(self) -> None:
        if self.relative_to not in ("weight", "target"):
            raise WorkloadError(
                f"relative_to must be 'weight' or 'target', got {self.relative_to!r}."
            )

    @property
    def compares_with_targets(self) -> bool:
        return self.relative_to == "target"

    @property
    def power(self) -> float:
        return self.p

    def table_weights(self, workload: Workload) -> np.ndarray:
        if self.relative_to == "weight":
            return workload.weights
        every_table = np.ones(len(workload), dtype=bool)
        return weights_to_targets(
            workload, every_table, "choose a loss that is not relative to targets"
        )

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        return p_norm(self.table_weights(workload) * variances, self.p)

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """By Hölder's inequality."""
        return 1 / p_norm(dual_weights / self.table_weights(workload), conjugate(self.p)), 0.0


@dataclass(frozen=True)
class MaxVariance(RelativeLoss):
    """Largest weighted variance of a cell: max_A Var_A / t_A (docs/mathematics.md §6.3).

    relative_to="weight": t_A = 1 / the table's weight. relative_to="target": t_A = the square of
    the table's target standard error, which every table must have; weights are not used.

    Example:
        >>> MaxVariance().looks_at_least_accurate_cells
        True
    """

    relative_to: str = "weight"

    p = np.inf
    kind: ClassVar[str] = "max_variance"
    option: ClassVar[str] = "max"
    looks_at_least_accurate_cells: ClassVar[bool] = True
    is_proven_by_shadow_prices: ClassVar[bool] = True

    @classmethod
    def choices(cls) -> tuple[Loss, ...]:
        return cls(), cls(relative_to="target")

    @property
    def choice(self) -> str:
        return f"{self.option} relative to target" if self.compares_with_targets else self.option

    @property
    def objective(self) -> str:
        if self.compares_with_targets:
            return "minimise the largest shortfall from targets"
        return "minimise the largest error"

    @property
    def description(self) -> str:
        if self.compares_with_targets:
            return "the largest variance relative to its target"
        return "the largest weighted variance"


def p_norm(values: np.ndarray, p: float) -> float:
    """(Σ values^p)^(1/p) for values ≥ 0 and 1 ≤ p ≤ ∞, without overflow."""
    largest = float(np.max(values))
    if largest == 0 or np.isinf(p):
        return largest
    return largest * float(np.sum((values / largest) ** p) ** (1 / p))


def conjugate(p: float) -> float:
    """q with 1/p + 1/q = 1."""
    return 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)


def weights_to_targets(workload: Workload, tables: np.ndarray, remedy: str) -> np.ndarray:
    """1/target² of these tables, bool[n_tables], 0 for others: float64[n_tables].

    Raises `WorkloadError` for one without a target; remedy: what else could be done.
    """
    missing = tables & np.isnan(workload.targets)
    if np.any(missing):
        raise WorkloadError(
            f"The table {workload.describe(int(np.argmax(missing)))} has no target; give every "
            f"table one, or {remedy}."
        )
    with np.errstate(over="ignore"):  # the planner refuses what is out of its range
        return np.where(tables, workload.planned_targets**-2.0, 0.0)


# ---- p-norm of the weighted variances: a loss between their sum and the largest of them.


@dataclass(frozen=True)
class PNorm(RelativeLoss):
    """p-norm of the weighted variances: (Σ_A x_A^p)^(1/p), p ≥ 1, x_A = weight_A · Var_A.

    Var_A is the mean cell variance of table A. The larger p, the nearer to the largest one.
    relative_to: "weight" or "target", as for `MaxVariance`.

    Example:
        >>> PNorm(p=3).p
        3
    """

    p: float = 2.0
    relative_to: str = "weight"

    kind: ClassVar[str] = "p_norm"
    option: ClassVar[str] = "p-norm"
    _objective: ClassVar[str] = "compromise between average and largest error (p-norm)"
    number: ClassVar[NumberOption | None] = NumberOption(
        "p",
        "Power p: 1 is the sum, and the larger it is, the more the largest variances count",
        least=1.0,
        most=1000.0,
        step=1.0,
    )

    def __post_init__(self) -> None:
        is_number = isinstance(self.p, int | float | np.number) and not isinstance(self.p, bool)
        if not is_number or not 1 <= self.p <= 1000:
            raise WorkloadError(f"p must be a number from 1 to 1000, got {self.p!r}.")
        super().__post_init__()

    @property
    def title(self) -> str:
        return f"{self.objective}, p = {rounded(float(self.p), 4)}"

    @property
    def description(self) -> str:
        which = "relative to its target" if self.compares_with_targets else "times weight"
        return f"the {rounded(float(self.p), 4)}-norm of variances {which}"
