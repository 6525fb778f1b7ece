"""Releases by plans with strategies by residual: exact without noise, and read back as made."""

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.domain.domain import subsets
from rpexplore.errors import ReleaseError
from rpexplore.estimation.nonnegative import GAP, nonnegative
from rpexplore.estimation.standard_errors import normal_noise
from rpexplore.estimation.table_map import MeasuredResiduals, TableMap
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.results.combination import combine, load_combined, load_unbiased, write_combined
from tests.planning.test_residual_strategies import SIZES, measured, mixed, planned
from tests.releases.table_plan import no_noise
from tests.support.explicit_optimum import dense_queries


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    rng = np.random.default_rng(7)
    codes = {name: rng.integers(0, n, 200) for name, n in zip("abc", SIZES, strict=True)}
    path = tmp_path_factory.mktemp("records") / "records.csv"
    pd.DataFrame(codes).to_csv(path, index=False)
    counts = np.zeros(SIZES)
    np.add.at(counts, tuple(codes.values()), 1)
    return path, counts


def test_without_noise_every_table_is_exact(records, tmp_path, monkeypatch):
    path, counts = records
    plan, tables = planned(), mixed()
    assert plan.closure.residuals_with_own_matrices
    monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", no_noise)
    done = release(plan, path, tmp_path / "out")
    queries, of_tables = dense_queries(tables)
    answers = queries @ counts.ravel()
    for position, table in enumerate(tables.tables):
        cells = done.table(table)
        assert cells["value"].to_numpy() == pytest.approx(answers[of_tables == position], abs=1e-7)
    assert done.counts(["a", "b", "c"])["value"].to_numpy() == pytest.approx(counts.ravel())


@pytest.mark.nightly
def test_combined_releases_keep_them(records, tmp_path):
    """Twice the same plan: half the variance, also when it is read again; another plan: refused."""
    path, _ = records
    plan = planned()
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder in folders[:2]:
        release(plan, path, folder)
    both = combine(*map(load_unbiased, folders[:2]))
    write_combined(both, tmp_path / "both")
    for estimates in (both, load_combined(tmp_path / "both")):
        noise = plan.marginal_noise((0, 1, 2))
        assert estimates.marginal_variances(["a", "b", "c"]) == pytest.approx(
            noise.variances / 2, rel=1e-9
        )
    other = mixed().with_weights({("a",): 9.0})
    release(plan_tables(other, loss=rp.SumOfVariances(), budget=plan.budget), path, folders[2])
    with pytest.raises(ReleaseError, match="measured by different strategies"):
        combine(*map(load_unbiased, folders[1:]))


def test_nonnegative_tables_come_as_near_as_others():
    """The gap closes: lengths of sums of contributions are bounded as the search needs them."""
    plan, rng = planned(), np.random.default_rng(5)
    strategies, sizes = plan.closure.strategies, plan.domain.sizes
    family = [*subsets((0, 1, 2))]
    residuals = {plan.closure.attributes(one): one for one in range(len(plan.closure))}
    drawn = {
        subset: normal_noise(SeededNumbers(repr(subset).encode()), subset, shape, 4.0, strategies)
        for subset in family
        for shape in [tuple(sizes[list(subset)].tolist())]
    }
    tables = TableMap(family, sizes, strategies)
    assert set(residuals) >= set(family)
    for _ in range(20):
        some = {subset: part * rng.normal() for subset, part in drawn.items()}
        square = np.sum(tables.table((0, 1, 2), some) ** 2)
        bounds = [
            tables.bound((0, 1, 2), one) * tables.squared_length(one, some[one]) for one in family
        ]
        assert square <= sum(bounds)
    drawn[()] = np.array(60.0)
    found = nonnegative(drawn, sizes, strategies)
    for table in tables.tables:
        assert tables.table(table, found.contributions).min() >= 0
    assert found.gap <= GAP


def test_models_are_told_the_noise_of_each_residual():
    """Variances, distances and simulated noise of contributions, beside dense matrices."""
    plan, strategies = planned(), planned().closure.strategies
    sizes, numbers = plan.domain.sizes, SeededNumbers(b"any")
    family = [*subsets((0, 1, 2))]
    residuals = {plan.closure.attributes(one): one for one in range(len(plan.closure))}
    contributions = {subset: np.zeros(sizes[list(subset)]) for subset in family}
    known = MeasuredResiduals(contributions, dict.fromkeys(family, 2.0), sizes, strategies)
    for subset in family[1:]:
        shape = tuple(sizes[list(subset)].tolist())
        # Of cells that differ in the residual's attributes alone.
        others = tuple(slice(None) if axis in subset else 0 for axis in range(3))
        matrix = measured(plan, residuals[subset])
        inside = matrix[:, np.arange(np.prod(SIZES)).reshape(SIZES)[others].ravel()]
        contrast = np.linalg.pinv(inside)
        for axis, attribute in enumerate(subset):
            z = known.map.shares(attribute)
            centre = np.eye(len(z)) - np.outer(z, np.ones(len(z)))
            turned = np.moveaxis(contrast.reshape(*shape, -1), axis, 0)
            turned = np.tensordot(centre, turned, axes=1)
            contrast = np.moveaxis(turned, 0, axis).reshape(len(contrast), -1)
        covariance = contrast @ contrast.T
        variance = np.broadcast_to(known.cell_variance(subset), shape)
        assert variance.ravel() == pytest.approx(2 * np.diag(covariance), rel=1e-9)
        values = numbers.normals(len(contrast))
        decoded = known.map.shaped(subset, values.reshape(shape))
        assert decoded.ravel() == pytest.approx(covariance @ values, rel=1e-9, abs=1e-9)
        squared = float(values @ covariance @ values)
        assert known.map.squared_length(subset, decoded) == pytest.approx(squared, rel=1e-9)
        drawn = normal_noise(numbers, subset, shape, 2.0, strategies)
        assert known.map.decomposed(subset, drawn) == pytest.approx(drawn, abs=1e-9)
