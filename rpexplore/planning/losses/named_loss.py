"""The name of an own loss, as a plan file has it: its expression stays in the script."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rpexplore.errors import PlanError
from rpexplore.workload.workload import Workload


@dataclass(frozen=True)
class UnavailableLoss:
    """An own loss (`CustomLoss`) of which only the name is known. Nothing can be planned with it.

    Its plan can be verified as far as privacy and accuracy go, and released.
    """

    name: str

    looks_at_worst_cells: ClassVar[bool] = False
    is_homogeneous: ClassVar[bool] = False  # not known

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise PlanError(f"An own loss must be named by a text, got {self.name!r}.")

    @property
    def description(self) -> str:
        return f"the loss “{self.name}”"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return f"a small loss “{self.name}”"

    def table_weights(self, workload: Workload) -> np.ndarray:
        raise self._unknown()

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        raise self._unknown()

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        raise self._unknown()

    def _unknown(self) -> PlanError:
        return PlanError(
            f"A plan file holds the name of the loss “{self.name}”, and not what it is; give the "
            "CustomLoss of the script that made the plan."
        )
