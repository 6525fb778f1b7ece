"""Shares: how the parts of a plan split one budget, and what that proves of the whole.

Each part's loss is inversely proportional to its privacy cost c_i: L_i / c_i. The losses of parts
combine as those of tables within a part do: they are added (p = 1), the largest counts (p = ∞), or
in between as a p-norm. Minimising ‖(L_i / c_i)‖_p subject to Σ c_i = c gives, by Lagrange,

    c_i ∝ L_i^{p/(p+1)}:  c_i ∝ √L_i for sums, c_i ∝ L_i for the largest error,
    and the value (Σ L_i^{p/(p+1)})^{(p+1)/p} / c.                 (docs/mathematics.md §18)

With lower bounds of the parts in place of their losses the same value bounds every plan that
measures the parts by themselves, however it splits the budget.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from rpexplore.common.exact_numbers import Exact, exact_fraction, exact_text
from rpexplore.common.formatting import joined
from rpexplore.errors import PlanError
from rpexplore.planning.certificate import Certificate
from rpexplore.planning.losses.base import Loss, p_norm
from rpexplore.planning.part_plan import PartPlan
from rpexplore.privacy.budget import Budget

# Shares are whole multiples of this: exact, and short in files.
_UNIT = 10**12


def objective_of(parts: Sequence[PartPlan]) -> Loss | None:
    """The loss that the parts are planned for together; None if none of them has one."""
    losses = (getattr(part, "loss", None) for part in parts)
    return next(filter(None, losses), None)


def certificate_of_parts(parts: Sequence[PartPlan], budget: Budget) -> Certificate | None:
    """Loss of all parts together, and what no split of the budget can go below.

    budget: of the whole plan; the parts may have less together

    None where a part promises no accuracy, or the objective does not say how parts compare.
    """
    if len(parts) == 1:
        return getattr(parts[0], "certificate", None)
    loss = objective_of(parts)
    if loss is None or loss.power is None:
        return None
    worth = [part.worth(loss) for part in parts]
    values, bounds = [], []
    for part, found in zip(parts, worth, strict=True):
        if found is None:
            return None
        values.append(found[0])
        bounds.append(found[1] * float(part.budget.privacy_cost))  # at a privacy cost of 1
    return Certificate(
        p_norm(np.array(values), loss.power),
        _best(np.array(bounds), loss.power) / float(budget.privacy_cost),
        np.empty(0),
    )


def refuse_unsplittable(kinds: Sequence[str], loss: Loss) -> None:
    """Raise `PlanError` for parts of which the objective does not say how to split a budget."""
    if len(kinds) == 1 or (loss.power is not None and "rounds" not in kinds):
        return
    reason = (
        "adaptive tables promise no accuracy that could be compared"
        if "rounds" in kinds
        else "this objective does not say how the parts compare"
    )
    raise PlanError(
        f"The budget must be split between {joined(list(kinds))} by you, as {reason}: state the "
        f"shares, for example {' '.join(f'--share {kind}=1/{len(kinds)}' for kind in kinds)}."
    )


def best_shares(parts: Sequence[PartPlan], loss: Loss) -> dict[str, Fraction]:
    """Kind -> the part's share of the budget, exact, the best for the objective; their sum is 1.

    parts: each planned for this loss, at one and the same budget

    Raises `PlanError` where the objective does not say how to split it.
    """
    refuse_unsplittable([part.kind for part in parts], loss)
    if len(parts) == 1:
        return {parts[0].kind: Fraction(1)}
    assert loss.power is not None
    wanted = np.array([value for value, _ in filter(None, (part.worth(loss) for part in parts))])
    weights = (wanted / np.max(wanted)) ** _exponent(loss.power)  # of which none can overflow
    units = np.maximum(np.floor(weights / np.sum(weights) * _UNIT), 1.0).astype(int)
    units[np.argmax(units)] += _UNIT - int(np.sum(units))
    return {
        part.kind: Fraction(unit, _UNIT) for part, unit in zip(parts, units.tolist(), strict=True)
    }


def stated_shares(shares: Mapping[str, Exact], kinds: Sequence[str]) -> dict[str, Fraction]:
    """Shares as somebody has stated them, exact. Raises `PlanError` unless they are usable."""
    exact = {kind: exact_fraction(share, f"The share of {kind}") for kind, share in shares.items()}
    if set(exact) != set(kinds):
        raise PlanError(
            f"Shares must be stated for {joined(list(kinds))}, each once, got "
            f"{joined(list(exact)) or 'none'}."
        )
    if any(share <= 0 for share in exact.values()) or sum(exact.values()) != 1:
        listed = ", ".join(f"{kind} {exact_text(share)}" for kind, share in exact.items())
        raise PlanError(f"Shares must be above 0 and sum to exactly 1, got {listed}.")
    return {kind: exact[kind] for kind in kinds}


def _best(values: np.ndarray, power: float) -> float:
    """The smallest norm of values / c_i for shares c_i that sum to 1."""
    return p_norm(values, _exponent(power))


def _exponent(power: float) -> float:
    return 1.0 if np.isinf(power) else power / (power + 1)
