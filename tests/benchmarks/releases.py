"""Whole releases: the domain of Adult, and one of 2·10^8 cells."""

import tempfile
from collections.abc import Callable
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import rpexplore as rp
from rpexplore.data.counts import Counts
from rpexplore.releases.measurement import measure_all, measured_cells
from rpexplore.releases.release import dry_run, release
from tests.benchmarks.measure import Row, once, peak_gigabytes, process_seconds
from tests.published import figures


def release_of_adult() -> list[Row]:
    """All tables of at most 3 attributes of published/README.md's Adult: 21 million cells."""
    workload = figures.workload("Adult", "<=3")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", workload.domain, 100_000)
        plan = rp.plan(workload, loss=rp.SumOfVariances("cells"), budget=rp.Budget(rho=1))
        counting, _ = once(lambda: dry_run(plan, data, folder / "out"))
        seconds, _ = once(lambda: release(plan, data, folder / "out"))
    cells = float(np.sum(workload.cells)) / 1e6
    return [
        (f"release Adult's ≤3-way tables, {cells:.0f} million cells, s", seconds, "<=", 25),
        ("  of it checks and counting (a dry run), s", counting, "<=", 25),
        ("  process peak, GB", peak_gigabytes(), "<=", 3),
    ]


def release_of_many_cells() -> list[Row]:
    """2·10^8 cells in tables of about a million each."""
    domain = rp.Domain.from_sizes({f"a{i}": 100 for i in range(12)})
    workload = rp.Workload.of(domain, _triples(200))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", domain, 1_000_000)
        plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
        seconds, _ = once(lambda: release(plan, data, folder / "out"))
    return [
        ("release of 2·10^8 cells: process peak, GB", peak_gigabytes(), "<=", 3),
        ("  s", seconds, "<=", 600),
    ]


def measuring_of_many_small_tables() -> list[Row]:
    """All tables of at most 3 of 30 attributes of size 10: exact residuals and their noise."""
    domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(30)})
    workload = rp.Workload.all_up_to(domain, 3)
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    ones = np.ones((10, 10, 10), dtype=np.uint32)
    counts = Counts(dict.fromkeys(combinations(range(30), 3), ones), ones.size)
    cells = int(measured_cells(plan.closure).sum())
    seconds = process_seconds(lambda: sum(part.size for part in measure_all(plan, counts)))
    return [
        ("measuring small tables, ns of processor time a cell", 1e9 * seconds / cells, "<=", 40),
        ("  microseconds a table", 1e6 * seconds / len(workload), "<=", 40),
    ]


def mock_records(path: Path, domain: rp.Domain, n_records: int) -> Path:
    """Records of independent values, the small ones more often, as a Parquet file."""
    rng = np.random.default_rng(0)
    columns = {
        name: (rng.random(n_records) ** 2 * size).astype(np.int16)
        for name, size in zip(domain.names, domain.sizes.tolist(), strict=True)
    }
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def _triples(count: int) -> list[tuple[str, str, str]]:
    every = combinations([f"a{i}" for i in range(12)], 3)
    return list(islice(every, count))


CASES: list[Callable[[], list[Row]]] = [
    measuring_of_many_small_tables,
    release_of_adult,
    release_of_many_cells,
]
