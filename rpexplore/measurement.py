"""Measurement: a residual's exact counts with discrete Gaussian noise (math.md §3, RP+ §5)."""

from fractions import Fraction
from math import prod

import numpy as np

from rpexplore.data.records import Records
from rpexplore.errors import ReleaseError
from rpexplore.plan import Plan
from rpexplore.sampling import LARGEST_GAMMA, discrete_gaussian

MAX_TABLE_CELLS = 50_000_000
MAX_CELLS = 400_000_000


def measured(plan: Plan, residual: int, records: Records) -> np.ndarray:
    """Ξ x + noise for one residual: int64, one axis an attribute of the residual.

    Ξ = ⊗ (n_i I − 11ᵀ) on the exact marginal; independent discrete Gaussian noise of variance
    parameter σ² ∏ n_i². Costs ρ = p_A / (2σ²), the same as continuous noise of the plan would.
    """
    places = plan.closure.attributes(residual)
    answers = records.counts(places)
    for axis, size in enumerate(answers.shape):
        answers = answers * size - answers.sum(axis=axis, keepdims=True)
    noise = discrete_gaussian(answers.size, _gamma_squared(plan, residual))
    return answers + noise.reshape(answers.shape)


def check_measurable(plan: Plan) -> None:
    """Raise `ReleaseError` if a table or a noise scale is too large to be measured."""
    cells = plan.workload.cells
    largest = int(np.argmax(cells))
    if cells[largest] > MAX_TABLE_CELLS:
        raise ReleaseError(
            f"The table {plan.workload.describe(largest)} has {cells[largest]:,.0f} cells, and a "
            f"table of a release can have {MAX_TABLE_CELLS:,}; plan without it, or group its "
            "attributes into fewer values."
        )
    closure = plan.closure
    total = float(np.sum(closure.residual_cells))
    if total > MAX_CELLS:
        raise ReleaseError(
            f"The release would measure {total:,.0f} cells in all, and at most {MAX_CELLS:,} fit "
            "into memory; release fewer or smaller tables."
        )
    gamma = np.sqrt(plan.sigma_squared.floats) * closure.residual_cells
    place = int(np.argmax(gamma))
    if gamma[place] >= LARGEST_GAMMA * (1 - 1e-9):
        raise ReleaseError(
            f"The noise that the budget asks for on {_name(plan, place)} is too large for 64-bit "
            f"integers (scale {gamma[place]:.3g}, at most {LARGEST_GAMMA:.3g}); use a larger "
            "budget or smaller tables."
        )


def check_countable(plan: Plan, records: Records) -> None:
    """Raise `ReleaseError` if Ξ x could leave 64-bit integers: |Ξ x| ≤ ∏(n_i − 1) · records."""
    largest = int(np.argmax(plan.closure.residual_cells))
    if plan.closure.residual_cells[largest] * max(records.n_records, 1) >= 2.0**61:
        raise ReleaseError(
            f"There are too many records to count {_name(plan, largest)} in 64-bit integers; "
            "group its attributes into fewer values."
        )


def _gamma_squared(plan: Plan, residual: int) -> Fraction:
    sizes = [int(plan.closure.sizes[place]) for place in plan.closure.attributes(residual)]
    return plan.sigma_squared.fraction(residual) * prod(sizes) ** 2


def _name(plan: Plan, residual: int) -> str:
    return plan.workload.domain.describe(plan.closure.attributes(residual))
