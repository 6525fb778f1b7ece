"""Nonnegative tables against what is done without them: mean L1 error of all 3-way tables.

Cases of `tests.benchmarks.run`. Errors are shares of the records: Σ|value − count| of a table over
the number of records, averaged over the tables; 2 is what a table of other people would have. Times
are processor time.
"""

import json
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import rpexplore as rp
from rpexplore.data.source import Counts
from rpexplore.domain.domain import subsets
from rpexplore.estimation.nonnegative import GAP, Nonnegative, nonnegative
from rpexplore.estimation.table_map import ContributionArrays
from rpexplore.planning.mechanism.reconstruction import contribution, marginal
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.measurement import measure_residual
from tests.benchmarks.measure import Row, once, peak_gigabytes

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
_SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
_EPSILONS, _DELTA = ("0.1", "1", "10"), "1e-9"
# The first eight of adult.csv that are no sampling weight and not said twice (education-num).
EIGHT = (
    *("age", "workclass", "education", "marital-status"),
    *("occupation", "relationship", "race", "sex"),
)
# Like the passengers of the Titanic: few records for their values, so that most cells are empty.
_SPARSE_SIZES, _SPARSE_RECORDS = (2, 2, 2, 4, 7, 8, 17, 24, 91), 1304


def exact_counts(domain: rp.Domain, codes: np.ndarray) -> Counts:
    """The exact counts of all 3-way tables; codes: indices of the values, int64[n_records, d]."""
    tables = {}
    for table in combinations(range(len(domain)), 3):
        shape = tuple(domain.sizes[list(table)].tolist())
        cells = np.ravel_multi_index(tuple(codes[:, list(table)].T), shape)
        tables[table] = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
    return Counts(tables, len(codes))


def _noisy(workload: rp.Workload, records: Counts, epsilon: str) -> ContributionArrays:
    budget = rp.Budget(epsilon=epsilon, delta=_DELTA)
    plan = plan_tables(workload, loss=rp.SumOfVariances("cells"), budget=budget)
    contributions = {}
    for residual in range(len(plan.closure)):
        subset = plan.closure.attributes(residual)
        measurement = measure_residual(plan, residual, records)
        contributions[subset] = contribution(measurement, subset, {})
    return contributions


def _errors(
    workload: rp.Workload, records: Counts, noisy: ContributionArrays, projection: Nonnegative
) -> dict[str, float]:
    """The mean L1 error of each way to treat the tables."""
    sizes, total = workload.domain.sizes, max(float(noisy[()]), 0.0)
    errors: dict[str, list[float]] = {}
    for position in range(len(workload)):
        table = workload.attribute_indices(position)
        exact = records.counts(table)
        unbiased, nearest = (
            marginal(table, sizes, {subset: arrays[subset] for subset in subsets(table)}, {})
            for arrays in (noisy, projection.contributions)
        )
        truncated = np.maximum(unbiased, 0)
        ways = {
            "unbiased": unbiased,
            "truncated at 0": truncated,
            "truncated, scaled to the total": truncated * (total / max(truncated.sum(), 1e-300)),
            "nonnegative": nearest,
        }
        for way, values in ways.items():
            errors.setdefault(way, []).append(float(np.abs(values - exact).sum()))
    return {way: float(np.mean(values)) / records.n_records for way, values in errors.items()}


def _rows(
    name: str,
    workload: rp.Workload,
    records: Counts,
    limit: float,
    epsilons: Sequence[str] = _EPSILONS,
) -> Iterator[Row]:
    for epsilon in epsilons:
        noisy = _noisy(workload, records, epsilon)
        seconds, projection = once(
            lambda noisy=noisy: nonnegative(noisy, workload.domain.sizes, {}), time.process_time
        )
        errors = _errors(workload, records, noisy, projection)
        ours = errors.pop("nonnegative")
        yield f"{name}, ε = {epsilon}: nonnegative, processor s", seconds, "<=", limit
        yield f"  gap ({projection.rounds} rounds)", projection.gap, "<=", GAP
        for way, error in errors.items():
            yield f"  mean L1 error, {way}", error, ">=", ours
        least = min(errors.values())
        yield "  mean L1 error, nonnegative", ours, "<", least


def adult_records(names: Sequence[str] = ()) -> tuple[rp.Domain, Counts]:
    """names: of the attributes; all if left out"""
    sizes = json.loads((DATA / "adult-domain.json").read_text(encoding="utf-8"))
    frame = pd.read_csv(DATA / "adult.csv")
    names = list(names) or frame.columns.tolist()
    domain = rp.Domain.from_sizes({name: sizes[name] for name in names})
    return domain, exact_counts(domain, frame[names].to_numpy())


def household_records() -> tuple[rp.Domain, Counts]:
    domain = rp.Domain.load(_SAMPLE / "household.json")
    frame = pd.read_csv(_SAMPLE / "household.csv", dtype=str, keep_default_na=False)
    codes = [_codes(attribute, np.asarray(frame[attribute.name])) for attribute in domain]
    return domain, exact_counts(domain, np.column_stack(codes))


def _codes(attribute: rp.Attribute, texts: np.ndarray) -> np.ndarray:
    values = attribute.values
    if isinstance(values, rp.Categories):
        return pd.Index(values.values).get_indexer(pd.Index(texts))
    numbers = texts.astype(float)
    if isinstance(values, rp.Integers):
        return ((numbers - values.minimum) // values.step).astype(np.int64)
    edges = np.array(values.edges)
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, attribute.size - 1)


def nonnegative_adult() -> list[Row]:
    """All 3-way tables of all attributes of adult.csv."""
    domain, records = adult_records()
    workload = rp.Workload.all_of_order(domain, 3)
    return [
        *_rows(f"{len(workload)} tables of adult.csv", workload, records, 45),
        ("  process peak, GB", peak_gigabytes(), "<", 2.0),
    ]


def nonnegative_eight() -> list[Row]:
    """All tables of at most three of eight attributes of adult.csv: named ones, and the largest."""
    sizes = json.loads((DATA / "adult-domain.json").read_text(encoding="utf-8"))
    largest = sorted(sizes, key=lambda name: -sizes[name])[:8]
    rows: list[Row] = []
    for what, names in (("adult.csv, 8 attributes", EIGHT), ("the 8 largest", largest)):
        domain, records = adult_records(names)
        rows += _rows(what, rp.Workload.all_up_to(domain, 3), records, 20)
    return rows


def nonnegative_household() -> list[Row]:
    """All 3-way tables of the sample data."""
    domain, records = household_records()
    workload = rp.Workload.all_of_order(domain, 3)
    return list(_rows(f"{len(workload)} tables of household.csv", workload, records, 5))


def nonnegative_sparse() -> list[Row]:
    """All 3-way tables of a few records: 84 of them, 173,703 cells, nearly all of them empty."""
    domain = rp.Domain.from_sizes({f"a{size}-{i}": size for i, size in enumerate(_SPARSE_SIZES)})
    random = np.random.default_rng(0)
    groups = random.integers(0, 6, _SPARSE_RECORDS)
    columns = []
    for size in _SPARSE_SIZES:
        shares = random.dirichlet(1 / np.arange(1, size + 1), size=6)
        columns.append(np.array([random.choice(size, p=shares[group]) for group in groups]))
    records = exact_counts(domain, np.column_stack(columns))
    workload = rp.Workload.all_of_order(domain, 3)
    # With a smaller ε the total may come out below 0: then there is nothing to search for.
    return list(_rows("84 sparse tables", workload, records, 4, ("1", "10")))


CASES = (nonnegative_adult, nonnegative_eight, nonnegative_household, nonnegative_sparse)
