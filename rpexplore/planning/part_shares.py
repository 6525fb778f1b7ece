"""How the parts of a plan split one budget, what that proves, and which go together."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from rpexplore.common.numbers import Exact, exact_fraction
from rpexplore.common.text import joined
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.counts_objectives import LARGEST, CountsObjective
from rpexplore.planning.losses.losses import Loss, p_norm
from rpexplore.planning.part_plan import TITLES, Certificate, PartPlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.query_list import QueryList
from rpexplore.workload.workload import Workload

# Each part's loss is inversely proportional to its privacy cost c_i: L_i / c_i. The losses of parts
# combine as those of tables within a part do: they are added (p = 1), the largest counts (p = ∞),
# or in between as a p-norm. Minimising ‖(L_i / c_i)‖_p subject to Σ c_i = c gives, by Lagrange,
#
#     c_i ∝ L_i^{p/(p+1)}:  c_i ∝ √L_i for sums, c_i ∝ L_i for the largest error,
#     and the value (Σ L_i^{p/(p+1)})^{(p+1)/p} / c.                 (docs/mathematics.md §18)
#
# With lower bounds of the parts in place of their losses the same value bounds every plan that
# measures the parts by themselves, however it splits the budget.


# Shares are whole multiples of this: exact, and short in files.
SHARE_UNIT = 10**12


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
        # The smallest norm of bounds / c_i for shares c_i that sum to 1.
        p_norm(np.array(bounds), _exponent(loss.power)) / float(budget.privacy_cost),
        np.empty(0),
    )


def refuse_unweighted(
    tables: Workload | None,
    in_areas: Workload | None,
    counts: QueryList | None,
    kinds: Sequence[str],
) -> None:
    """Raise `WorkloadError` for parts beside weighted tables: nobody would see what they count.

    Own counts that all add up the same weights say so themselves.

    tables, in_areas, counts: those of the parts "tables", "areas" and "counts"
    """
    given = {"tables": tables, "areas": in_areas}
    parts = {kind: one for kind, one in given.items() if one is not None}
    weighted = [kind for kind in parts if parts[kind].is_weighted.any()]
    if not weighted:
        return
    domain = parts[weighted[0]].domain
    weights = domain.names[domain.weights[0]]
    if counts is not None and not counts.adds_up_weights(weights):
        raise WorkloadError(
            f"Own counts of this plan count records, and its tables are weighted, by {weights!r}; "
            f"add up the weights in all of them, as in sum({weights}) where age >= 18, or make a "
            "plan of each."
        )
    if others := [kind for kind in kinds if kind not in (*parts, "counts")]:
        raise WorkloadError(
            f"{TITLES[others[0]]} cannot be weighted, and tables of this plan are, by {weights!r}; "
            "make a plan of each."
        )
    if unweighted := [kind for kind in parts if kind not in weighted]:
        raise WorkloadError(
            f"{TITLES[unweighted[0]]} are not weighted, and {TITLES[weighted[0]].lower()} of this "
            f"plan are, by {weights!r}; weight both, or make a plan of each."
        )


def refuse_indistinct(budget: Budget, domain: Domain, columns: Sequence[str]) -> None:
    """Raise `PlanError` for what cannot be of distinct values of a column."""
    if budget.distinct is None:
        return
    amounts = [domain.names[index] for index in domain.amounts if domain.names[index] in columns]
    if amounts:
        raise PlanError(
            f"Distinct values of {budget.distinct!r} are counted in tables, areas and own counts, "
            f"and not in sums of {amounts[0]!r}; leave these out, or count records."
        )


def refuse_unreplaced(budget: Budget, kinds: Sequence[str]) -> None:
    """Raise `PlanError` for parts of which it is not known what replacing a record costs."""
    if budget.exact and "rounds" in kinds:
        raise PlanError(
            f"Exact totals ({budget.exact_text}) do not go with adaptive tables: how much their "
            "selections tell of an exchange of values between two records is not known here. Leave "
            "the exact totals out, or ask for fixed tables."
        )
    others = [TITLES[kind].lower() for kind in kinds if kind == "rounds"]
    if budget.replaces and others:
        raise PlanError(
            f"Neighbours that replace a record do not go with {joined(others)}: how much their "
            "selections tell of a replaced record is not known here. Plan for people with 2 "
            "records (--records-per-person 2), which protects against a replaced record as well, "
            "at four times a record's cost."
        )


def refuse_without_panel(budget: Budget, kinds: Sequence[str]) -> None:
    """Raise `PlanError` for a panel without tables that cost less for it."""
    others = [TITLES[kind].lower() for kind in kinds if kind not in ("tables", "rounds")]
    if budget.period is not None and len(others) == len(kinds):
        raise PlanError(
            f"A panel by {budget.period!r} goes with tables by it, adaptive ones too, and with "
            f"tables in areas and own counts beside them, and not with {joined(others)} alone, "
            "which cost as much as for people with any records; plan for these "
            f"(--records-per-person {budget.max_records_per_person})."
        )


def refuse_unsplittable(
    kinds: Sequence[str], loss: Loss, of_counts: CountsObjective = LARGEST
) -> None:
    """Raise `PlanError` for parts of which the objective does not say how to split a budget.

    of_counts: the objective of own counts
    """
    depends_on_budget = "counts" in kinds and not of_counts.is_homogeneous
    if len(kinds) == 1:
        return
    if loss.power is not None and "rounds" not in kinds and not depends_on_budget:
        return
    reason = "this objective does not say how the parts compare"
    if "rounds" in kinds:
        reason = "adaptive tables promise no accuracy that could be compared"
    elif depends_on_budget:
        reason = "own counts whose targets come first depend on how much they get"
    raise PlanError(
        f"The budget must be split between {joined(list(kinds))} by you, as {reason}: state the "
        f"shares, for example {' '.join(f'--share {kind}=1/{len(kinds)}' for kind in kinds)}."
    )


def best_shares(parts: Sequence[PartPlan], loss: Loss) -> dict[str, Fraction]:
    """Kind -> the part's share of the budget, exact, the best for the objective; their sum is 1.

    parts: each planned for this loss, at one and the same budget

    Raises `PlanError` where the objective does not say how to split it.
    """
    kinds = [part.kind for part in parts]
    refuse_unsplittable(kinds, loss)
    if len(parts) == 1:
        return {kinds[0]: Fraction(1)}
    assert loss.power is not None
    wanted = np.array([value for value, _ in filter(None, (part.worth(loss) for part in parts))])
    weights = (wanted / np.max(wanted)) ** _exponent(loss.power)  # of which none can overflow
    units = np.maximum(np.floor(weights / np.sum(weights) * SHARE_UNIT), 1.0).astype(int)
    units[np.argmax(units)] += SHARE_UNIT - int(np.sum(units))
    return {
        part.kind: Fraction(unit, SHARE_UNIT)
        for part, unit in zip(parts, units.tolist(), strict=True)
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
        listed = ", ".join(f"{kind}={share}" for kind, share in exact.items())
        total, *_, last = sum(exact.values()), *exact
        left = 1 - total + exact[last]
        remedy = "state them so that they do, as fractions if decimals do not"
        if left > 0 and all(share > 0 for share in exact.values()):
            remedy = f"with {last}={left} they do"
        raise PlanError(
            f"Shares must be above 0 and sum to exactly 1, got {listed}, in all {total}; {remedy}."
        )
    return {kind: exact[kind] for kind in kinds}


def _exponent(power: float) -> float:
    return 1.0 if np.isinf(power) else power / (power + 1)
