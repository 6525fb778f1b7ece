"""Accuracy: what a plan's noise does to cells, pairs of cells and queries on a marginal.

The formulas of docs/mathematics.md §3.2; all for the exact noise scales of a plan, without any
records.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from rpexplore.common.numerics import (
    normal_quantile as normal_quantile,  # for whoever asks for it here
)
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.closure import Closure


def residuals_within(closure: Closure, attributes: Sequence[int]) -> dict[tuple[int, ...], int]:
    """Place of the residual of every subset of these ascending attribute places.

    Raises `WorkloadError` if no table of the plan holds them together.
    """
    kept = [place for place in attributes if closure.sizes[place] > 1]
    if closure.find(kept) is None:
        raise WorkloadError(
            "The plan holds no table with these attributes together, so it says nothing about "
            "them; add such a table to the workload."
        )
    subsets = [subset for order in range(len(kept) + 1) for subset in combinations(kept, order)]
    found = {subset: closure.find(subset) for subset in subsets}
    return {subset: place for subset, place in found.items() if place is not None}


def query_covariance(
    closure: Closure,
    sigma_squared: np.ndarray,
    attributes: Sequence[int],
    left: Mapping[int, np.ndarray],
    right: Mapping[int, np.ndarray],
) -> float:
    """Covariance of two product queries ⊗_{i∈A} q_i on the marginal on `attributes`.

    left, right: a vector q_i float64[n_i] for each attribute place of A. With l, r the two
    vectors of attribute i, a residual A' contributes
        σ²_{A'} ∏_{i∈A'} (l·r − (1ᵀl)(1ᵀr)/n_i) ∏_{j∈A∖A'} (1ᵀl)(1ᵀr)/n_j²,
    the last row of docs/mathematics.md §3.2 (cells: q_i a unit vector). For an
    attribute with a strategy the factors are (lᵀD)·(rᵀD) and (lᵀz)(rᵀz), §4.2 there.
    """
    inside, outside = {}, {}
    for place in attributes:
        strategy = closure.strategies.get(place)
        if strategy is not None:
            decoding = strategy.decoding  # and not D Dᵀ: a variance must not round to below 0
            inside[place] = float((left[place] @ decoding) @ (right[place] @ decoding))
            reference = strategy.reference
            outside[place] = float(left[place] @ reference) * float(right[place] @ reference)
            continue
        size = int(closure.sizes[place])
        totals = float(np.sum(left[place])) * float(np.sum(right[place]))
        inside[place] = float(np.dot(left[place], right[place])) - totals / size
        outside[place] = totals / size**2
    covariance = 0.0
    for subset, residual in residuals_within(closure, attributes).items():
        factor = sigma_squared[residual]
        for place in attributes:
            factor *= inside[place] if place in subset else outside[place]
        covariance += factor
    return float(covariance)
