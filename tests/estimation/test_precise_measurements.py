"""However precise the measurements are, there is a fit: a charged run cannot go on without one."""

from itertools import combinations

import numpy as np
import pytest

from rpexplore.estimation.smooth_tables import smooth_residuals
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.planning.mechanism.reconstruction import contribution

SIZES = np.array([5, 3, 12, 12])


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(4))
def test_many_records_measured_with_little_noise_are_fitted(seed):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(10**9, rng.dirichlet([0.05] * SIZES.prod())).reshape(SIZES)
    contributions, variances = {}, {}
    for order in range(3):
        for subset in combinations(range(4), order):
            axes = tuple(axis for axis in range(4) if axis not in subset)
            residual = counts.sum(axis=axes).astype(np.int64)
            for axis, index in enumerate(subset):
                sums = residual.sum(axis=axis, keepdims=True)
                residual = residual * SIZES[index] - sums
            contributions[subset] = contribution(residual, subset, {})
            variances[subset] = 1e-3
    fit = smooth_residuals(MeasuredResiduals(contributions, variances, SIZES, {}))
    for pair in combinations(range(4), 2):
        axes = tuple(axis for axis in range(4) if axis not in pair)
        np.testing.assert_allclose(fit.table(pair), counts.sum(axis=axes), atol=1e3)
