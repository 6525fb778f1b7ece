"""p-norm of the weighted variances: a loss between their sum and the largest of them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rpexplore.common.formatting import rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.base import NumberOption, RelativeLoss


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
