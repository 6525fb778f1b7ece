"""Synthetic records against the records whose release they were made from: mean L1 error.

Cases of `tests.benchmarks.run`. Errors are shares of the records: Σ|share − share| of a table,
averaged over all tables of two and of three attributes. Releases are measured with exact noise,
with the weights for smooth tables.
"""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import rpexplore as rp
from rpexplore.data.counts import Counts
from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.postprocessing.measurement_source import MeasurementSource
from rpexplore.postprocessing.synthetic.impossible import Impossible
from rpexplore.postprocessing.synthetic.population_engine import population_records
from rpexplore.postprocessing.synthetic.smooth_targets import smooth_tables, smooth_targets
from rpexplore.postprocessing.synthetic.targets import PairTargets
from rpexplore.releases.measurement import measure_residual
from rpexplore.workload.smooth_weights import SmoothWeights
from tests.benchmarks.measure import Row, once, peak_gigabytes

_DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
_DELTA = "1e-9"
# Largest mean L1 error of tables of two and of three attributes, by ε.
_LIMITS = {"0.1": (0.18, 0.31), "1": (0.054, 0.115), "10": (0.022, 0.062)}
_RELEASES = 3  # of each budget: single ones differ by up to a tenth at ε = 0.1
_MANY = 1_000_000


def _table(codes: np.ndarray, sizes: np.ndarray, table: AttributeIndices) -> np.ndarray:
    shape = tuple(sizes[list(table)].tolist())
    cells = np.ravel_multi_index(tuple(codes[:, list(table)].astype(np.int64).T), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def _error(
    codes: np.ndarray, records: np.ndarray, sizes: np.ndarray, order: int, step: int = 1
) -> float:
    """The mean L1 error of the tables of so many attributes, of every `step`-th of them."""
    return float(
        np.mean(
            [
                np.abs(
                    _table(codes, sizes, table) / len(codes)
                    - _table(records, sizes, table) / len(records)
                ).sum()
                for table in list(combinations(range(len(sizes)), order))[::step]
            ]
        )
    )


def _released(domain: rp.Domain, records: np.ndarray, epsilon: str) -> rp.Estimates:
    """What is measured of all tables of up to three attributes."""
    budget = rp.Budget(epsilon=epsilon, delta=_DELTA)
    workload = SmoothWeights(float(budget.rho), len(records)).weighted(
        rp.Workload.all_up_to(domain, 3)
    )
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)
    tables = combinations(range(len(domain)), 3)
    counts = Counts({t: _table(records, domain.sizes, t) for t in tables}, len(records))
    contributions, variances = {}, {}
    for residual in range(len(plan.closure)):
        subset = plan.closure.attributes(residual)
        measurement = measure_residual(plan, residual, counts)
        contributions[subset] = contribution(measurement, subset, {})
        variances[subset] = plan.sigma_squared.fraction(residual)
    source = MeasurementSource("benchmark", "", plan.rho)
    tables = tuple(combinations(range(len(domain)), 3))
    return rp.Estimates(domain, tables, contributions, variances, {}, (source,))


def _made(targets: PairTargets, n_records: int) -> np.ndarray:
    return population_records(targets, n_records, b"benchmark", Impossible(targets.sizes, ()))


def synthetic_adult() -> list[Row]:
    """As many records as adult.csv has, of all its attributes, from all tables up to three-way."""
    sizes = json.loads((_DATA / "adult-domain.json").read_text(encoding="utf-8"))
    frame = pd.read_csv(_DATA / "adult.csv")
    domain = rp.Domain.from_sizes({name: sizes[name] for name in frame.columns})
    records = frame.to_numpy()

    def fitted_to(epsilon: str) -> PairTargets:
        estimates = _released(domain, records, epsilon)
        contributions = smooth_tables(estimates).contributions
        return smooth_targets(estimates, contributions, tuple(range(len(domain))))[0]

    def rows() -> Iterator[Row]:
        for epsilon, limits in _LIMITS.items():
            made = []
            for _ in range(_RELEASES):
                targets = fitted_to(epsilon)
                made.append(once(lambda targets=targets: _made(targets, len(records))))
            seconds = max(seconds for seconds, _ in made)
            yield f"{len(records):,} records, ε = {epsilon}, s", seconds, "<=", 50
            for order, limit in zip((2, 3), limits, strict=True):
                errors = [_error(codes, records, domain.sizes, order) for _, codes in made]
                mean = float(np.mean(errors))
                yield f"  mean L1 error, {order}-way, {_RELEASES} releases", mean, "<=", limit
        targets = fitted_to("10")
        seconds, codes = once(lambda: _made(targets, _MANY))
        yield f"{_MANY:,} records, s", seconds, "<=", 120
        yield "  mean L1 error, 3-way", _error(codes, records, domain.sizes, 3), "<=", 0.062
        yield "  process peak, GB", peak_gigabytes(), "<=", 3

    return list(rows())


def synthetic_hundred() -> list[Row]:
    """10⁵ records of 100 attributes of size 10 that depend on six latent normal variables."""
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(50_000, 6))
    records = np.empty((len(latent), 100), dtype=np.int16)
    for attribute in range(records.shape[1]):
        loadings = rng.normal(size=6) * (rng.random(6) < 0.4)
        values = latent @ loadings + 0.7 * rng.normal(size=len(latent))
        cuts = np.sort(rng.normal(size=9)) * values.std()
        records[:, attribute] = np.searchsorted(cuts, values)
    sizes = np.full(100, 10)
    targets = PairTargets(
        tuple(_table(records, sizes, (i,)) / len(records) for i in range(100)),
        {
            (i, j): _table(records, sizes, (i, j)) / len(records)
            for i, j in combinations(range(100), 2)
        },
    )
    seconds, codes = once(lambda: _made(targets, 100_000))
    return [
        ("100,000 records of 100 attributes, s", seconds, "<=", 600),
        ("  mean L1 error, 2-way", _error(codes, records, sizes, 2, 7), "<=", 0.03),
        ("  mean L1 error, 3-way", _error(codes, records, sizes, 3, 800), "<=", 0.12),
        ("  process peak, GB", peak_gigabytes(), "<=", 3),
    ]


CASES = (synthetic_adult, synthetic_hundred)
