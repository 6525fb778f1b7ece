"""p-norm of the weighted variances: a loss between their sum and the largest of them.

It acts on the weighted variances x_A = weight_A · Var_A, with Var_A the mean cell variance of table
A and the weight its importance or 1/target².
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rpexplore.common.formatting import rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.base import weights_to_targets
from rpexplore.workload.workload import Workload

_RELATIVE = {"importance": "times importance", "target": "relative to its target"}


@dataclass(frozen=True)
class PNorm:
    """p-norm of the weighted variances: (Σ_A x_A^p)^(1/p), p ≥ 1.

    p = 1 is their sum, and the larger p, the nearer to the largest one (at most a factor
    n_tables^(1/p) above it). relative_to: "importance" or "target", as for `MaxVariance`.
    """

    p: float = 2.0
    relative_to: str = "importance"

    looks_at_worst_cells: ClassVar[bool] = False
    is_homogeneous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not _is_power(self.p):
            raise WorkloadError(f"p must be a number from 1 to 1000, got {self.p!r}.")
        if self.relative_to not in tuple(_RELATIVE):
            raise WorkloadError(
                f"relative_to must be 'importance' or 'target', got {self.relative_to!r}."
            )

    @property
    def description(self) -> str:
        which = _RELATIVE[self.relative_to]
        return f"the {rounded(float(self.p), 4)}-norm of variances {which}"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return f"small errors with large ones counting more (power {rounded(float(self.p), 4)})"

    def table_weights(self, workload: Workload) -> np.ndarray:
        """Importance of each table, or 1/target², float64[n_tables].

        Raises `WorkloadError` if it is relative to targets and a table has none.
        """
        if self.relative_to == "importance":
            return workload.weights
        everything = np.ones(len(workload), dtype=bool)
        return weights_to_targets(
            workload, everything, "choose a loss that is not relative to targets"
        )

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these mean cell variances [n_tables]."""
        return p_norm(self.table_weights(workload) * variances, self.p)

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """(f, 0): the loss is at least f · Σ dual_weights · Var, by Hölder's inequality.

        dual_weights: float64[n_tables], ≥ 0 and not all 0.
        """
        conjugate = np.inf if self.p == 1 else self.p / (self.p - 1)
        return 1 / p_norm(dual_weights / self.table_weights(workload), conjugate), 0.0


def p_norm(values: np.ndarray, p: float) -> float:
    """(Σ values^p)^(1/p) for values ≥ 0 and 1 ≤ p ≤ ∞, without overflow."""
    largest = float(np.max(values))
    if largest == 0 or np.isinf(p):
        return largest
    return largest * float(np.sum((values / largest) ** p) ** (1 / p))


def _is_power(value: object) -> bool:
    """Whether it is a number from 1 to 1000, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return False
    return bool(1 <= value <= 1000)
