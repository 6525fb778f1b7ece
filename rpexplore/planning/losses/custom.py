"""Custom losses: any convex, nondecreasing expression of the tables' variances, for CVXPY.

An expression f is convex and never falls where its arguments rise if f(z²) is convex by CVXPY's
rules of disciplined convex programming, because that is what they require of the outer function
when the inner one is convex and not affine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from scipy import sparse

from rpexplore.common.installation import require
from rpexplore.common.numbers import smallest_value
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.losses import Loss
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import cvxpy

# How well the solver is trusted to know the bound of a loss, relative. It must come ten times as
# near by its own word, and is asked for a thousand times.
SOLVER_ALLOWANCE = 3e-8
_ACCURACY = 3e-9
_MOST_UNITS = 8  # that a bound is looked for in
_GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples, without their whole parts, all differ
_REMEDY = (
    "build it from functions that CVXPY knows to be convex and nondecreasing, such as cvxpy.sum, "
    "max, norm, sum_largest, exp or square, with weights that are not negative; what is measured "
    "from a target goes into cvxpy.pos: sum_squares(pos(V - t)), not sum_squares(V - t)"
)


class NamedLoss(Loss):
    """A loss of which files hold the name only: what it is, is a piece of program."""

    name: str

    kind: ClassVar[str] = "custom"
    is_homogeneous: ClassVar[bool] = False  # not known

    @classmethod
    def choices(cls) -> tuple[Loss, ...]:
        return ()

    @property
    def objective(self) -> str:
        return f"minimise “{self.name}”"

    @property
    def description(self) -> str:
        return f"the loss “{self.name}”"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}


@dataclass(frozen=True)
class CustomLoss(NamedLoss):
    """A convex, nondecreasing loss L(Var), from a CVXPY expression.

    expression_of: takes the mean cell variances of the tables as a CVXPY expression [n_tables] in
    the workload's order, and returns the loss, a scalar: `lambda V: cvxpy.norm(V, 3)`. Weights and
    targets count only as far as the expression uses them.
    name: what it is called in reports.

    Raises `WorkloadError` when planned unless CVXPY's rules prove it convex and nondecreasing, and
    it is not negative. Where it is flat, or leaves tables out, adding a little of the sum
    (`+ 1e-3 * cvxpy.sum(V)`) is the remedy.

    Example:
        >>> import cvxpy
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10, "sex": 2}), 2)
        >>> loss = rp.CustomLoss(lambda variances: cvxpy.norm(variances, 4), name="4-norm")
        >>> rp.plan(tables, loss=loss, budget=rp.Budget(rho="0.5")).certificate.gap < 1e-6
        True
    """

    expression_of: Callable[["cvxpy.Expression"], "cvxpy.Expression"]
    name: str

    bound_allowance: ClassVar[float] = SOLVER_ALLOWANCE

    def __post_init__(self) -> None:
        if not callable(self.expression_of):
            raise WorkloadError(
                "The loss must be a function from variances to a CVXPY expression, got "
                f"{self.expression_of!r}; give a lambda, such as lambda V: cvxpy.norm(V, 3)."
            )
        if not isinstance(self.name, str) or not self.name.strip():
            raise WorkloadError(f"A custom loss needs a name for reports, got {self.name!r}.")
        require("cvxpy", "custom", f"{self.description} of your own")

    def table_weights(self, workload: Workload) -> np.ndarray:
        """1 for each table, float64[n_tables]: the expression sees the variances as they are.

        Raises `WorkloadError` if the loss cannot be used with this workload.
        """
        import cvxpy

        n_tables = len(workload)
        if not self.expression(cvxpy.square(cvxpy.Variable(n_tables))).is_convex():
            raise WorkloadError(
                f"The loss “{self.name}” must be convex and never fall when a variance rises, and "
                f"CVXPY's rules do not show that; {_REMEDY}."
            )
        loss = self.function(n_tables)
        values = {variance: loss(np.full(n_tables, variance)) for variance in (0, 1)}
        for variance, value in values.items():
            if not np.isfinite(value):
                raise WorkloadError(
                    f"The loss “{self.name}” must be a finite number for any variances, got "
                    f"{value} where all are {variance}; check its weights and targets."
                )
        if values[0] < 0:
            raise WorkloadError(
                f"The loss “{self.name}” must not be negative, got {values[0]:.6g} where all "
                "variances are 0; add a constant to it."
            )
        return np.ones(n_tables)

    def value(self, variances: np.ndarray, workload: Workload) -> float:
        return self.function(len(variances))(variances)

    def minorant(
        self, dual_weights: np.ndarray, workload: Workload, *, near: np.ndarray | None = None
    ) -> tuple[float, float]:
        """(f, o): the loss is at least f · Σ dual_weights · Var − o, for any variances ≥ 0.

        Where Σ dual_weights · Var = 1, CVXPY finds the smallest loss m and its multiplier f: the
        loss is at least m + f · (Σ dual_weights · Var − 1); o raised by `SOLVER_ALLOWANCE`. near:
        variances near those with the smallest loss, as units; there a tangent may do without a
        solver, which else is asked in the units it found until it confirms a loss that was seen.

        Raises `PlanError` if the solver finds no such bound.
        """
        at = near
        if at is None:
            at = np.divide(1.0, dual_weights, where=dual_weights > 0, out=np.zeros(len(workload)))
        value = self.function(len(at))
        for turn in range(1, _MOST_UNITS + 1):
            at = at / np.sum(dual_weights * at)
            seen = value(at)  # so the smallest is no larger
            tangent = self._tangent(dual_weights, at, seen)
            if tangent is not None:
                return tangent
            smallest = self._smallest(dual_weights, at, seen)
            if smallest is None:  # it lost its way; from a little elsewhere it may not
                at = at * (1 + scattered(len(at), turn) / 2)
                continue
            least, factor, where = smallest
            if seen * (1 - 1e-6) <= least <= seen * (1 + SOLVER_ALLOWANCE):
                least = min(least, seen)
                return factor, factor - least + SOLVER_ALLOWANCE * (least + factor)
            at = np.maximum(where, 1e-3 * at)
        raise PlanError(
            f"The solver could not bound the loss “{self.name}” from below; scale it so that its "
            "values are near 1, or use a plainer expression."
        )

    def minorant_of_plan(
        self, dual_weights: np.ndarray, workload: Workload, limit: float | None, near: np.ndarray
    ) -> tuple[float, float]:
        return self.minorant(dual_weights, workload, near=near)

    def gradient(self, variances: np.ndarray) -> np.ndarray | None:
        """A subgradient at these variances, float64[n_tables] ≥ 0; None if CVXPY knows none."""
        import cvxpy

        variable = cvxpy.Variable(len(variances), nonneg=True)
        variable.value = variances
        gradient: Any = self.expression(variable).grad.get(variable)
        if gradient is None:
            return None
        gradient = np.asarray(gradient.todense() if sparse.issparse(gradient) else gradient).ravel()
        return np.maximum(gradient, 0.0) if np.all(np.isfinite(gradient)) else None

    def _tangent(
        self, dual_weights: np.ndarray, at: np.ndarray, value: float
    ) -> tuple[float, float] | None:
        """(f, o) by the tangent where Σ dual_weights · at = 1; None if it bounds worse there.

        value: the loss at these variances
        """
        gradient = self.gradient(at)
        if gradient is None:
            return None
        counted = dual_weights > 0
        factor = float(np.min(gradient[counted] / dual_weights[counted]))
        offset = float(np.sum(gradient * at)) - value
        offset += len(at) * 2.0**-50 * (abs(value) + float(np.sum(gradient * at)))  # rounding
        return (factor, offset) if factor - offset >= value * (1 - SOLVER_ALLOWANCE) else None

    def _smallest(
        self, dual_weights: np.ndarray, unit: np.ndarray, scale: float
    ) -> tuple[float, float, np.ndarray] | None:
        """The smallest loss where Σ dual_weights · Var ≥ 1, its multiplier, and where it is."""
        import cvxpy

        variances = cvxpy.Variable(len(unit), nonneg=True)
        enough: Any = (dual_weights * unit) @ variances >= 1
        loss = self.expression(cvxpy.multiply(unit, variances)) / scale
        problem = cvxpy.Problem(cvxpy.Minimize(loss), [enough])
        least = smallest_value(problem, within=_ACCURACY)
        if least is None:
            return None
        where = unit * np.maximum(np.asarray(variances.value), 0)
        return scale * least, scale * max(float(enough.dual_value), 0.0), where

    def left_out(self, variances: np.ndarray, tables: np.ndarray) -> int | None:
        """The first of these tables whose variance, even a billion times as large, changes nothing.

        variances: float64[n_tables], what the others have meanwhile
        """
        value = self.function(len(variances))
        present = value(variances)
        for table in tables.tolist():
            raised = variances.copy()
            raised[table] *= 1e9
            if value(raised) <= present:
                return table
        return None

    def function(self, n_tables: int) -> Callable[[np.ndarray], float]:
        """The loss as a function of variances [n_tables], built once for many calls."""
        import cvxpy

        variances = cvxpy.Variable(n_tables, nonneg=True)
        loss = self.expression(variances)

        def value(at: np.ndarray) -> float:
            variances.value = at
            number: Any = loss.value
            return float("nan") if number is None else float(np.sum(number))

        return value

    def expression(self, variances: "cvxpy.Expression") -> "cvxpy.Expression":
        """The loss of these variances [n_tables], checked to be one real number."""
        import cvxpy

        try:
            loss = self.expression_of(variances)
        except Exception as error:
            raise WorkloadError(
                f"The loss “{self.name}” could not be applied to the variances of "
                f"{variances.size:,} tables ({error}); check the number of its weights and targets."
            ) from error
        if not isinstance(loss, cvxpy.Expression) or not loss.is_scalar() or not loss.is_real():
            shape = f" of shape {loss.shape}" if isinstance(loss, cvxpy.Expression) else ""
            raise WorkloadError(
                f"The loss “{self.name}” must give one real number as a CVXPY expression, got "
                f"{type(loss).__name__}{shape}; add cvxpy.sum or cvxpy.max."
            )
        return loss


@dataclass(frozen=True)
class UnavailableLoss(NamedLoss):
    """A `CustomLoss` of which a file knows the name only. Nothing can be planned with it.

    Its plan can be verified as far as privacy and accuracy go, and released.
    """

    name: str

    is_available: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise PlanError(f"A custom loss must be named by a text, got {self.name!r}.")

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise PlanError(
            f"A plan file holds the name of the loss “{self.name}”, and not what it is; give the "
            "CustomLoss of the script that made the plan."
        )

    table_weights = value = minorant = _refuse


def scattered(count: int, turn: int) -> np.ndarray:
    """Numbers between 0 and 1 that all differ, float64[count]; others at another turn."""
    return np.modf(np.arange(1, count + 1) * turn * _GOLDEN)[0]
