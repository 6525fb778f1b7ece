"""Smooth tables: how near to the truth, in what time, and how often their intervals hold it.

Cases of `tests.benchmarks.run`. Releases have exact discrete noise; errors are shares of the
records, as in `nonnegative`, means over tables and releases.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import rpexplore as rp
from rpexplore.common.numbers import normal_quantile
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.estimation.nonnegative import nonnegative
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.estimation.table_map import ContributionArrays, MeasuredResiduals, TableMap
from rpexplore.planning.mechanism.reconstruction import contribution, marginal
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.atomic_folder import MANIFEST
from rpexplore.releases.measurement import measure_residual, measured_cells
from rpexplore.releases.measurement_file import Draft, Measured
from rpexplore.releases.table_release import TableRelease, TableWriter
from rpexplore.results.estimates.shrinkage import smooth as smooth_tables
from rpexplore.results.unbiased import Estimates
from rpexplore.workload.smooth_weights import SmoothWeights
from tests.benchmarks.measure import Row, once, peak_gigabytes
from tests.benchmarks.nonnegative import DATA, adult_records, exact_counts, household_records
from tests.benchmarks.synthetic import hundred_records, table_of

_EPSILONS, _DELTA = ("0.1", "1", "10"), "1e-9"
_RELEASES = 10  # of each budget: single ones differ by up to a tenth at ε = 0.1
_FEWEST_COUNTS = 20  # of a cell whose interval is looked at
_STEP = 4  # every so manyth 3-way table, in coverage: more tell the same
_PLANTED = {(0, 1, 2): 0.8, (3, 4, 9): 0.5, (5, 6, 10): 0.3}


def smooth_adult() -> list[Row]:
    """All 3-way tables of adult.csv, 15 attributes."""
    domain, records = adult_records(adult_names())
    by_cell = {"0.1": 0.85, "1": 0.235, "10": 0.067}
    own = {"0.1": 0.29, "1": 0.102, "10": 0.047}
    return [
        *_rows("adult.csv", domain, records, "weights by cell", by_cell, 40),
        *_rows("adult.csv", domain, records, "own weights", own, 40),
        ("  process peak, GB", peak_gigabytes(), "<=", 1.0),
    ]


def smooth_eight() -> list[Row]:
    """All 3-way tables of the first eight attributes of adult.csv."""
    domain, records = adult_records(adult_names()[:8])
    return [
        *_rows("adult.csv, first 8", domain, records, "own weights", {"1": 0.138}, 5),
        *_against_nonnegative("adult.csv, first 8", domain, records),
    ]


def smooth_household() -> list[Row]:
    """All 3-way tables of the sample data, and all 2-way tables with little noise."""
    domain, records = household_records()
    return [
        *_against_nonnegative("household.csv", domain, records),
        *_against_unbiased("household.csv, all 2-way, ρ = 0.1", domain, records),
    ]


def smooth_coverage() -> list[Row]:
    """95 % model-based intervals on real records, and on made-up ones that the model fits."""
    return [
        row
        for name, (domain, records) in {
            "adult.csv": adult_records(adult_names()),
            "adult.csv, first 8": adult_records(adult_names()[:8]),
            "household.csv": household_records(),
            "latent classes": _latent_classes({}),
        }.items()
        for row in (*_coverage(name, domain, records), *_longest(name, domain, records))
    ]


def smooth_wrong_model() -> list[Row]:
    """A few triples of attributes depend in a way that no pair of them shows."""
    domain, records = _latent_classes(_PLANTED)
    tables = list(combinations(range(len(domain)), 3))
    rows: list[Row] = []
    for weighting in ("weights by cell", "own weights"):
        for epsilon in _EPSILONS:
            ours, theirs = _smooth_and_nonnegative(domain, records, weighting, epsilon, tables)
            rows.append(
                (
                    f"planted triples, {weighting}, ε = {epsilon}: mean L1 error, beside "
                    "nonnegative tables'",
                    float(ours.mean()),
                    "<=",
                    1.05 * float(theirs.mean()),
                )
            )
            for table in _PLANTED:
                ratio = ours[tables.index(table)] / theirs[tables.index(table)]
                rows.append((f"  planted table {table}, ratio", float(ratio), "<=", 1.05))
    return rows


def smooth_hundred() -> list[Row]:
    """All tables up to 3-way of 100 attributes of size 10."""
    records, domain = hundred_records(), rp.Domain.from_sizes({f"a{i}": 10 for i in range(100)})
    budget = rp.Budget(epsilon="1", delta=_DELTA)
    weights = SmoothWeights(float(budget.rho), len(records))
    workload = weights.weighted(rp.Workload.all_up_to(domain, 3))
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=budget)
    with tempfile.TemporaryDirectory() as name:
        release = _residuals_released(Path(name), plan, records)
        seconds, smooth = once(lambda: smooth_tables(Estimates.of(release)), time.process_time)
    tables = TableMap(smooth.contributions, domain.sizes, {})
    rows: list[Row] = [
        (
            f"{len(workload):,} smooth tables of 100 attributes, from a release, s",
            seconds,
            "<=",
            300,
        ),
        ("  process peak, with its plan, GB", peak_gigabytes(), "<=", 1.5),
    ]
    for order, step, limit in ((2, 1, 0.12), (3, 800, 0.21)):
        errors = []
        for table in list(combinations(range(100), order))[::step]:
            values = tables.table(table, smooth.contributions)
            errors.append(np.abs(values - table_of(records, domain.sizes, table)).sum())
        error = float(np.mean(errors)) / len(records)
        rows.append((f"  mean L1 error, {order}-way", error, "<=", limit))
    return rows


def _residuals_released(folder: Path, plan: TablePlan, records: np.ndarray) -> TableRelease:
    """A release of which there is only what was measured, without its tables."""
    sizes, closure = plan.workload.domain.sizes, plan.closure

    def measured(residual: int) -> np.ndarray:
        # Not all counts at once, which would take more memory than what is measured here.
        subset = closure.attributes(residual)
        counts = Counts({subset: table_of(records, sizes, subset)}, len(records))
        return measure_residual(plan, residual, counts)

    draft = Draft(folder, plan.alone, [int(measured_cells(closure).sum())], None)
    draft.add(map(measured, range(len(closure))))
    TableWriter(folder, plan, Measured(folder), escape_formulas=False).residuals()
    (folder / MANIFEST).touch()
    facts = {"unknown_values": {}, "records_per_person": "", "run": ""}
    return TableRelease(folder, plan, facts, folder)


def adult_names() -> list[str]:
    return pd.read_csv(DATA / "adult.csv", nrows=0).columns.tolist()


def _latent_classes(planted: Mapping[AttributeIndices, float]) -> tuple[rp.Domain, Counts]:
    """30,000 records of three classes; in some, one attribute is the sum of two others.

    planted: the attributes, and the share of the records in which the third is that sum
    """
    rng, n_records = np.random.default_rng(5), 30_000
    sizes = (4, 4, 4, 5, 5, 6, 6, 8, 8, 3, 3, 2)
    classes = rng.integers(0, 3, n_records)
    codes = np.empty((n_records, len(sizes)), dtype=np.int64)
    for column, size in enumerate(sizes):
        ends = rng.dirichlet(np.ones(size), 3).cumsum(axis=1)
        drawn = (rng.random(n_records)[:, None] > ends[classes]).sum(axis=1)
        codes[:, column] = np.minimum(drawn, size - 1)
    for (first, second, third), share in planted.items():
        chosen = rng.random(n_records) < share
        codes[chosen, third] = (codes[chosen, first] + codes[chosen, second]) % sizes[third]
    domain = rp.Domain.from_sizes({f"a{column}": size for column, size in enumerate(sizes)})
    return domain, exact_counts(domain, codes)


def _measured(
    domain: rp.Domain, records: Counts, weighting: str, epsilon: str
) -> MeasuredResiduals:
    budget = rp.Budget(epsilon=epsilon, delta=_DELTA)
    if weighting == "own weights":
        workload = rp.Workload.all_up_to(domain, 3)
        workload = SmoothWeights(float(budget.rho), records.n_records).weighted(workload)
        return _noisy(plan_tables(workload, loss=rp.SumOfVariances(), budget=budget), records)
    workload = rp.Workload.all_of_order(domain, 3)
    return _noisy(plan_tables(workload, loss=rp.SumOfVariances("cells"), budget=budget), records)


def _noisy(plan: TablePlan, records: Counts) -> MeasuredResiduals:
    contributions, variances = {}, {}
    for residual in range(len(plan.closure)):
        subset = plan.closure.attributes(residual)
        contributions[subset] = contribution(measure_residual(plan, residual, records), subset, {})
        variances[subset] = float(plan.sigma_squared.fraction(residual))
    return MeasuredResiduals(contributions, variances, plan.workload.domain.sizes, {})


def table_errors(
    contributions: ContributionArrays,
    sizes: np.ndarray,
    records: Counts,
    tables: Sequence[AttributeIndices],
) -> np.ndarray:
    """Of each table: Σ|value − count| over the number of records."""
    errors = []
    for table in tables:
        exact = records.counts(table)
        within = {subset: contributions[subset] for subset in subsets(table)}
        values = marginal(table, sizes, within, {})
        errors.append(float(np.abs(values - exact).sum()) / records.n_records)
    return np.array(errors)


def _rows(
    name: str,
    domain: rp.Domain,
    records: Counts,
    weighting: str,
    limits: Mapping[str, float],
    most_seconds: float,
) -> Iterator[Row]:
    """The mean L1 error of all 3-way tables for some ε, against a limit each."""
    tables = list(combinations(range(len(domain)), 3))
    for epsilon, limit in limits.items():
        errors, seconds, raised = [], [], []
        for _ in range(_RELEASES):
            measured = _measured(domain, records, weighting, epsilon)
            start = time.process_time()
            smooth = smooth_residuals(measured)
            seconds.append(time.process_time() - start)
            raised.append(smooth.raised)
            errors.append(table_errors(smooth.contributions, domain.sizes, records, tables).mean())
        of_case = f"{name}, {weighting}, ε = {epsilon}"
        yield f"{of_case}: mean L1 error", float(np.mean(errors)), "<=", limit
        yield "  processor time, s", max(seconds), "<=", most_seconds
        # By cell at ε = 0.1 hardly anything but noise is measured, and nothing is promised of what
        # is added (docs/mathematics.md §13.5).
        if (weighting, epsilon) != ("weights by cell", "0.1"):
            yield "  records added to raise cells, share", max(raised), "<=", 0.05


def _smooth_and_nonnegative(
    domain: rp.Domain,
    records: Counts,
    weighting: str,
    epsilon: str,
    tables: Sequence[AttributeIndices],
) -> np.ndarray:
    """The mean errors of each table, smooth and nonnegative: float64[2, len(tables)]."""
    errors = []
    for _ in range(_RELEASES):
        measured = _measured(domain, records, weighting, epsilon)
        smooth = smooth_residuals(measured).contributions
        nearest = nonnegative(measured.contributions, domain.sizes, {}).contributions
        errors.append(
            [table_errors(each, domain.sizes, records, tables) for each in (smooth, nearest)]
        )
    return np.mean(errors, axis=0)


def _against_nonnegative(name: str, domain: rp.Domain, records: Counts) -> Iterator[Row]:
    tables = list(combinations(range(len(domain)), 3))
    for epsilon in _EPSILONS:
        ours, theirs = _smooth_and_nonnegative(domain, records, "weights by cell", epsilon, tables)
        what = f"{name}, weights by cell, ε = {epsilon}: mean L1 error, beside nonnegative tables'"
        yield what, float(ours.mean()), "<", float(theirs.mean())


def _against_unbiased(name: str, domain: rp.Domain, records: Counts) -> Iterator[Row]:
    workload = rp.Workload.all_of_order(domain, 2)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    tables, errors = list(combinations(range(len(domain)), 2)), []
    for _ in range(_RELEASES):
        measured = _noisy(plan, records)
        smooth = smooth_residuals(measured).contributions
        errors.append(
            [
                table_errors(each, domain.sizes, records, tables)
                for each in (smooth, measured.contributions)
            ]
        )
    ours, unbiased = np.mean(errors, axis=0)
    farther = int(np.sum(ours > 1.05 * unbiased))
    yield f"{name}: tables farther than unbiased ones by 5 %", farther, "<=", 2
    yield "  the farthest, ratio", float(np.max(ours / unbiased)), "<=", 1.2
    yield "  mean L1 error, beside unbiased tables'", ours.mean(), "<", float(unbiased.mean())


def _coverage(name: str, domain: rp.Domain, records: Counts) -> Iterator[Row]:
    """The least and the largest share of cells within their interval, by number of attributes."""
    for weighting in ("weights by cell", "own weights"):
        for epsilon in _EPSILONS:
            covered: dict[int, list[np.ndarray]] = {order: [] for order in (1, 2, 3)}
            for _ in range(_RELEASES):
                smooth = smooth_residuals(_measured(domain, records, weighting, epsilon))
                for order, cells in covered.items():
                    cells.append(_within(smooth, domain, records, order))
            shares = [float(np.concatenate(cells).mean()) for cells in covered.values()]
            of_case = f"{name}, {weighting}, ε = {epsilon}"
            yield f"{of_case}: coverage of 1-, 2- or 3-way tables, least", min(shares), ">=", 0.90
            yield "  largest", max(shares), "<=", 0.99


def _longest(name: str, domain: rp.Domain, records: Counts) -> Iterator[Row]:
    """How much longer than it had to be the longest interval of a release is, where noise is most.

    The apt interval of a release is the one that holds 95 % of its cells.
    """
    ratios = []
    for _ in range(_RELEASES):
        smooth = smooth_residuals(_measured(domain, records, "own weights", "0.1"))
        off = np.quantile(_deviations(smooth, domain, records, 3), 0.95)
        ratios.append(normal_quantile(0.95) / float(off))
    of_case = f"{name}, own weights, ε = 0.1: 3-way intervals over apt ones"
    yield f"{of_case}, longest of {_RELEASES} releases", max(ratios), "<=", 2.5


def _within(smooth: SmoothTables, domain: rp.Domain, records: Counts, order: int) -> np.ndarray:
    return _deviations(smooth, domain, records, order) <= normal_quantile(0.95)


def _deviations(smooth: SmoothTables, domain: rp.Domain, records: Counts, order: int) -> np.ndarray:
    """|error| over the standard error of cells that are estimated to be large enough."""
    deviations = []
    for table in list(combinations(range(len(domain)), order))[:: _STEP if order == 3 else 1]:
        parts = {subset: smooth.contributions[subset] for subset in subsets(table)}
        values = marginal(table, domain.sizes, parts, {})
        off = np.abs(values - records.counts(table)) / smooth.standard_errors(table)
        deviations.append(off[values >= _FEWEST_COUNTS])
    return np.concatenate(deviations)


CASES = (
    smooth_adult,
    smooth_eight,
    smooth_household,
    smooth_hundred,
    smooth_coverage,
    smooth_wrong_model,
)
