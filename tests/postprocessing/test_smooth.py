"""Smooth tables against quadrature, dense linear algebra and simulation."""

from itertools import chain

import numpy as np
import pytest

from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.postprocessing.smooth.measured_residuals import MeasuredResiduals
from rpexplore.postprocessing.smooth.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.postprocessing.table_map import TableMap, subsets
from tests.support.generalised import any_strategy


def closed(*tables):
    return sorted(
        set(chain.from_iterable(subsets(table) for table in tables)), key=lambda s: (len(s), s)
    )


def release_of(counts, family, sigma_squared, seed, strategies=None) -> MeasuredResiduals:
    """Contributions of exact counts with noise of the same σ² on every residual."""
    rng = np.random.default_rng(seed)
    sizes, strategies = np.array(counts.shape), strategies or {}
    tables = TableMap(family, sizes, strategies)
    contributions = {}
    for subset in family:
        noise = rng.normal(0, np.sqrt(sigma_squared), sizes[list(subset)])
        for axis, index in enumerate(subset):
            if index in strategies:
                decoding = strategies[index].decoding
                short = np.take(noise, range(sizes[index] - 1), axis)
                noise = np.moveaxis(np.tensordot(decoding, short, (1, axis)), 0, axis)
            else:
                noise = noise - noise.mean(axis=axis, keepdims=True)
        missing = tuple(i for i in range(len(sizes)) if i not in subset)
        contributions[subset] = tables.decomposed(subset, counts.sum(axis=missing)) + noise
    variances = dict.fromkeys(family, float(sigma_squared))
    return MeasuredResiduals(contributions, variances, sizes, strategies)


def table_of(smooth: SmoothTables, measured: MeasuredResiduals, subset) -> np.ndarray:
    within = {part: smooth.contributions[part] for part in subsets(subset)}
    return marginal(subset, measured.sizes, within, measured.strategies)


ODD = {
    "only the total": ((3, 2), [()], {}),
    "one attribute": ((5,), [(0,)], {}),
    "no pairs": ((3, 4, 2), [(0,), (1,), (2,)], {}),
    "some pairs": ((3, 4, 2, 5), [(0, 1), (1, 2), (3,)], {}),
    "a triple and a pair": ((3, 4, 2, 5), [(0, 1, 2), (2, 3)], {}),
    "two values each": ((2, 2, 2), [(0, 1, 2)], {}),
    "four attributes": ((3, 2, 4, 9), [(0, 1, 2, 3)], {}),
    "a strategy": ((4, 5, 3), [(0, 1, 2)], {1}),
}


@pytest.mark.parametrize("records", [-30, 4000])
@pytest.mark.parametrize("case", ODD)
def test_tables_of_any_closure_agree_and_are_nonnegative(case, records):
    sizes, tables, generalised = ODD[case]
    rng = np.random.default_rng(1)
    counts = rng.multinomial(max(records, 0), rng.dirichlet(np.full(np.prod(sizes), 0.3)))
    counts = counts.reshape(sizes).astype(float)
    strategies = {index: any_strategy(sizes[index], 7) for index in generalised}
    measured = release_of(counts, closed(*tables), 25.0, 1, strategies)
    if records < 0:
        measured = MeasuredResiduals(
            {**measured.contributions, (): np.array(float(records))},
            measured.variances, measured.sizes, strategies,
        )  # fmt: skip
    smooth = smooth_residuals(measured)
    assert list(smooth.contributions) == measured.map.family
    assert smooth.contributions[()] == max(float(measured.contributions[()]), 1.0)
    for table in measured.map.tables:
        values = table_of(smooth, measured, table)
        assert values.min() >= 0
        for axis in range(len(table)):
            part = table_of(smooth, measured, table[:axis] + table[axis + 1 :])
            np.testing.assert_allclose(values.sum(axis=axis), part, atol=1e-9 * values.sum())
        errors = smooth.standard_errors(table)
        assert errors.shape == values.shape
        assert np.all(errors > 0)
        assert np.all(np.isfinite(errors))
    assert set(smooth.kept) == set(smooth.contributions)
    assert all(0 <= share <= 1 for share in smooth.kept.values())
