"""Convex losses between the sum and the largest: p-norm, mixture, worst tables, squared excess.

Each acts on the weighted variances x_A = weight_A · Var_A, with Var_A the mean cell variance of
table A and the weight its importance or 1/target². All are symmetric in x, convex, and never fall
when an x rises. Each bounds itself from below by a weighted sum of the variances
(`minorant`), which is what certifies a plan (math.md §2.3): no plan's weighted sum can be below the
closed form of §2.1.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rpexplore.common.formatting import rounded, share_in_words
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.base import weights_to_targets
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import cvxpy

# What a table that meets its target still counts, beside the squared excess of the others: enough
# that it is made as accurate as can be, too little to take much from a table in excess.
INSIDE_TARGET = 1e-3

_RELATIVE = {"importance": "times importance", "target": "relative to its target"}


class _OfWeightedVariances:
    """What these losses share: they look at x = weight · Var, and at every table alike."""

    relative_to: str  # "importance" or "target"

    looks_at_worst_cells: ClassVar[bool] = False
    is_homogeneous: ClassVar[bool] = True
    is_symmetric: ClassVar[bool] = True  # unchanged when tables swap their x

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

    @property
    def _which(self) -> str:
        return _RELATIVE[self.relative_to]


@dataclass(frozen=True)
class PNorm(_OfWeightedVariances):
    """p-norm of the weighted variances: (Σ_A x_A^p)^(1/p), p ≥ 1.

    p = 1 is their sum, and the larger p, the nearer to the largest one (at most a factor
    n_tables^(1/p) above it). relative_to: "importance" or "target", as for `MaxVariance`.
    """

    p: float = 2.0
    relative_to: str = "importance"

    def __post_init__(self) -> None:
        _refuse_unless_number("p", self.p, 1 <= _number(self.p) <= 1000, "from 1 to 1000")
        _refuse_unknown(self.relative_to)

    @property
    def description(self) -> str:
        return f"the {rounded(float(self.p), 4)}-norm of variances {self._which}"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return f"small errors with large ones counting more (power {rounded(float(self.p), 4)})"

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these mean cell variances [n_tables]."""
        return _norm(self.table_weights(workload) * variances, self.p)

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """(f, 0): the loss is at least f · Σ dual_weights · Var, by Hölder's inequality.

        dual_weights: float64[n_tables], ≥ 0 and not all 0.
        """
        conjugate = np.inf if self.p == 1 else self.p / (self.p - 1)
        return 1 / _norm(dual_weights / self.table_weights(workload), conjugate), 0.0

    def expression(self, weighted: "cvxpy.Expression", counts: np.ndarray) -> "cvxpy.Expression":
        """The loss of classes of `counts` [n_classes] tables with equal weighted variances."""
        import cvxpy

        if self.p == 1:
            return counts @ weighted
        repeated = cvxpy.multiply(counts ** (1 / self.p), weighted)
        # Power cones hold any p; the other form would round it to a fraction.
        p: Any = self.p
        return cvxpy.pnorm(repeated, p, approx=p == 2)


@dataclass(frozen=True)
class MeanAndMax(_OfWeightedVariances):
    """Mixture of mean and largest: (1 − share) · mean of x + share · max of x, 0 < share < 1.

    relative_to: "importance" or "target", as for `MaxVariance`.
    """

    share: float = 0.5
    relative_to: str = "importance"

    def __post_init__(self) -> None:
        _refuse_unless_number("share", self.share, 0 < _number(self.share) < 1, "between 0 and 1")
        _refuse_unknown(self.relative_to)

    @property
    def description(self) -> str:
        share = float(self.share)
        return (
            f"{share_in_words(share)} the largest and {share_in_words(1 - share)} the average of "
            f"the variances {self._which}"
        )

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        share = share_in_words(float(self.share))
        return f"small errors on average and a small largest error (counting {share})"

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these mean cell variances [n_tables]."""
        weighted = self.table_weights(workload) * variances
        return float((1 - self.share) * np.mean(weighted) + self.share * np.max(weighted))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """(f, 0): the loss is at least f · Σ dual_weights · Var.

        dual_weights: float64[n_tables], ≥ 0 and not all 0. Both sides are linear where the order
        of the tables by x is fixed, so equality is tightest at an x that is 1 in the k tables
        that count most, and 0 elsewhere.
        """
        n_tables = len(workload)
        of_largest = np.cumsum(np.sort(dual_weights / self.table_weights(workload))[::-1])
        loss = (1 - self.share) * np.arange(1, n_tables + 1) / n_tables + self.share
        return 1 / float(np.max(of_largest / loss)), 0.0

    def expression(self, weighted: "cvxpy.Expression", counts: np.ndarray) -> "cvxpy.Expression":
        """The loss of classes of `counts` [n_classes] tables with equal weighted variances."""
        import cvxpy

        mean = (counts / np.sum(counts)) @ weighted
        return (1 - self.share) * mean + self.share * cvxpy.max(weighted)


@dataclass(frozen=True)
class TailMean(_OfWeightedVariances):
    """Mean of x over the worst share of tables (conditional value at risk), 0 < worst ≤ 1.

    With n tables and m = worst · n it is the sum of the ⌊m⌋ largest x and (m − ⌊m⌋) times the
    next one, divided by m; where m < 1, the largest x. worst = 1 is the mean.
    relative_to: "importance" or "target", as for `MaxVariance`.
    """

    worst: float = 0.1
    relative_to: str = "importance"

    def __post_init__(self) -> None:
        inside = 0 < _number(self.worst) <= 1
        _refuse_unless_number("worst", self.worst, inside, "above 0 and at most 1")
        _refuse_unknown(self.relative_to)

    @property
    def description(self) -> str:
        worst = share_in_words(float(self.worst))
        return f"the average over the worst {worst} of variances {self._which}"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return f"small errors on average in the worst {share_in_words(float(self.worst))} of tables"

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these mean cell variances [n_tables]."""
        largest_first = np.sort(self.table_weights(workload) * variances)[::-1]
        tail = self.tail(len(workload))
        counted = np.clip(tail - np.arange(len(largest_first)), 0, 1)
        return float(np.sum(counted * largest_first) / tail)

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """(f, 0): the loss is at least f · Σ dual_weights · Var.

        dual_weights: float64[n_tables], ≥ 0 and not all 0. The loss is the largest Σ y · x with
        Σ y = 1 and y ≤ 1/m, so 1/f is what brings the dual weights of x within both.
        """
        dual = dual_weights / self.table_weights(workload)
        return 1 / max(float(np.sum(dual)), float(np.max(dual)) * self.tail(len(dual))), 0.0

    def expression(self, weighted: "cvxpy.Expression", counts: np.ndarray) -> "cvxpy.Expression":
        """The loss of classes of `counts` [n_classes] tables with equal weighted variances.

        It is the least over t of t + Σ (x − t)₊ / m (Rockafellar and Uryasev 2000).
        """
        import cvxpy

        threshold = cvxpy.Variable()
        tail = self.tail(float(np.sum(counts)))
        return threshold + (counts / tail) @ cvxpy.pos(weighted - threshold)

    def tail(self, n_tables: float) -> float:
        """m: how many tables the worst share is, a fraction, not fewer than one."""
        return max(float(self.worst) * n_tables, 1.0)


@dataclass(frozen=True)
class SquaredExcess(_OfWeightedVariances):
    """Squared excess over the targets: mean of (x − 1)₊² + κ · mean of x, x = Var/target².

    κ = `INSIDE_TARGET` = 0.001: tables that meet their targets still count a little, so that they
    are as accurate as the others allow and the best plan is a single one. Every table must have a
    target. Not homogeneous: the best noise depends on the budget in more than scale.
    """

    relative_to: ClassVar[str] = "target"  # pyright: ignore[reportIncompatibleVariableOverride]
    is_homogeneous: ClassVar[bool] = False

    @property
    def description(self) -> str:
        return "the squared excess of variances over their targets"

    @property
    def aim(self) -> str:
        """What a plan with this loss is for."""
        return "targets missed by little, on average"

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        """The loss of a plan whose tables have these mean cell variances [n_tables]."""
        relative = self.table_weights(workload) * variances
        return float(np.mean(np.maximum(relative - 1, 0) ** 2 + INSIDE_TARGET * relative))

    def minorant(self, dual_weights: np.ndarray, workload: Workload) -> tuple[float, float]:
        """(f, o): the loss is at least f · Σ dual_weights · Var − o, for any variances > 0.

        dual_weights: float64[n_tables], ≥ 0 and not all 0. o is the conjugate of the loss at
        f · dual_weights. f is chosen so that the bound is best where Σ dual_weights · Var = 1;
        anywhere else it still is a bound.
        """
        dual = dual_weights / self.table_weights(workload)
        factor = _best_factor(len(dual) * dual)
        # sup over x ≥ 0 of (b + κ) x − (x − 1)₊² − κ x is b₊ + b₊²/4.
        above = np.maximum(factor * len(dual) * dual - INSIDE_TARGET, 0)
        return factor, float(np.mean(above + above**2 / 4))

    def expression(self, weighted: "cvxpy.Expression", counts: np.ndarray) -> "cvxpy.Expression":
        """The loss of classes of `counts` [n_classes] tables with equal weighted variances."""
        import cvxpy

        terms = cvxpy.square(cvxpy.pos(weighted - 1)) + INSIDE_TARGET * weighted
        return (counts / np.sum(counts)) @ terms


SymmetricLoss = PNorm | MeanAndMax | TailMean | SquaredExcess


def _best_factor(dual: np.ndarray) -> float:
    """The f maximising f − mean(b₊ + b₊²/4) for b = f · dual − κ; dual float64[n] ≥ 0, not all 0.

    Concave in f. Where the k largest b are positive its slope is
    1 − Σ_k dual · (1 + b/2) / n, which falls linearly up to the f at which one more joins them.
    """
    largest_first = np.sort(dual[dual > 0])[::-1]
    joins = INSIDE_TARGET / largest_first
    once = (1 - INSIDE_TARGET / 2) * np.cumsum(largest_first) / len(dual)
    twice = np.cumsum(largest_first**2) / (2 * len(dual))
    rising = int(np.count_nonzero(once + joins * twice < 1))
    if rising == 0:
        return float(joins[0])
    top = (1 - once[rising - 1]) / twice[rising - 1]
    return float(min(top, joins[rising]) if rising < len(joins) else top)


def _number(value: object) -> float:
    """The value as a float, NaN if it is no number."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if is_number else float("nan")  # pyright: ignore[reportArgumentType]


def _refuse_unless_number(name: str, value: object, usable: bool, words: str) -> None:
    if not usable:
        raise WorkloadError(f"{name} must be a number {words}, got {value!r}.")


def _refuse_unknown(relative_to: str) -> None:
    if relative_to not in tuple(_RELATIVE):
        raise WorkloadError(f"relative_to must be 'importance' or 'target', got {relative_to!r}.")


def _norm(values: np.ndarray, p: float) -> float:
    """(Σ values^p)^(1/p) for values ≥ 0 and 1 ≤ p ≤ ∞, without overflow."""
    largest = float(np.max(values))
    if largest == 0 or np.isinf(p):
        return largest
    return largest * float(np.sum((values / largest) ** p) ** (1 / p))
