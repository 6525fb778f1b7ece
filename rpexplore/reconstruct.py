"""Reconstruction: from measured residuals to tables, by centring and broadcast sums.

Measured is Ξ x + noise with Ξ = ⊗_{i∈A} (n_i I − 11ᵀ), in integers (math.md §3). Divided by
∏ n_i and centred along every axis it is the residual's contribution to the marginal A itself; a
marginal is the sum of the contributions of its subsets, each spread evenly over the missing axes.
No matrix is ever formed.
"""

from collections.abc import Mapping, Sequence

import numpy as np


def contribution(measured: np.ndarray) -> np.ndarray:
    """What a residual adds to its own marginal, float64 of the same shape, from its measurement."""
    centred = measured / float(np.prod(measured.shape))
    for axis in range(centred.ndim):
        centred -= centred.mean(axis=axis, keepdims=True)
    return centred


def marginal(
    places: Sequence[int],
    sizes: np.ndarray,
    contributions: Mapping[tuple[int, ...], np.ndarray],
) -> np.ndarray:
    """The unbiased marginal on ascending attribute places, float64, one axis an attribute.

    contributions: those of all subsets of `places` that have a residual (no single-valued
    attribute in them), as `contribution` returns them.
    """
    shape = tuple(int(sizes[place]) for place in places)
    total = np.zeros(shape)
    for subset, added in contributions.items():
        missing = [size for place, size in zip(places, shape, strict=True) if place not in subset]
        spread = tuple(
            size if place in subset else 1 for place, size in zip(places, shape, strict=True)
        )
        total += added.reshape(spread) / float(np.prod(missing))
    return total
