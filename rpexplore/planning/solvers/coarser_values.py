"""Where to look for what is best of many values: told by searches with half and a quarter of them.

What is best follows the order of the values: at the ends by how many values lie beyond, in between
by the share of them that does. Values with one label, -1 … 1, correspond to each other in problems
of all sizes: log(i / (n − i)) / log(2n) with i values before them. By halves of the number of
values λ (its logarithm) and z change there about evenly, so that two problems foretell the next.
"""

from collections.abc import Sequence

import numpy as np

# From so many values on it is done, with coarser problems down to so few that they take no time.
MANY, COARSEST = 1000, 300


def halved(gram: np.ndarray) -> np.ndarray:
    """The gram of every second value: the mean of what begins at the first and at the last."""
    m = len(gram) // 2
    return (gram[: 2 * m : 2, : 2 * m : 2] + gram[-2 * m + 1 :: 2, -2 * m + 1 :: 2]) / 2


def extrapolated(
    coarser: tuple[np.ndarray, np.ndarray], coarse: tuple[np.ndarray, np.ndarray], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """(λ, z) of n values, float64[n] each of sum 1, from those of about n/4 and n/2 of them."""
    (first, first_reference), (second, second_reference) = coarser, coarse
    logs = _foretold([np.log(len(of_values) * of_values) for of_values in (first, second)], n)
    weights = np.exp(logs - np.max(logs))
    reference = _foretold(
        [len(of_values) * of_values for of_values in (first_reference, second_reference)], n
    )
    return weights / np.sum(weights), reference / np.sum(reference)


def _foretold(numbers: Sequence[np.ndarray], n: int) -> np.ndarray:
    """What follows if from the second to the third it goes on as from the first to the second."""
    before, present = (np.interp(_labels(n), _labels(len(one)), one) for one in numbers)
    return 2 * present - before


def _labels(n: int) -> np.ndarray:
    """Those of n values, float64[n]."""
    middles = np.arange(n) + 0.5
    return np.log(middles / (n - middles)) / np.log(2 * n)
