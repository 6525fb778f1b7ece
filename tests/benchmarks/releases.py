"""Whole releases: the domain of Adult, one of 2·10^8 cells, and one of 10^9."""

import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import rpexplore as rp
from rpexplore.common.processes import no_progress
from rpexplore.data.files.source import source_of
from rpexplore.data.source import Counts
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.measurement import measure_part, measured_cells, parts_of
from rpexplore.releases.measurement_file import Draft, Measured, MeasuredFile, MeasurementNote
from rpexplore.releases.release import dry_run, release
from rpexplore.releases.release_steps import PlanSteps
from rpexplore.releases.table_cells import CsvWriter, csv_decimals, label_columns, table_of_cells
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import write_combined
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.workbook import write_workbook
from tests.benchmarks.measure import Row, once, peak_gigabytes, process_seconds
from tests.published import figures


def release_of_adult() -> list[Row]:
    """All tables of at most 3 attributes of published/README.md's Adult: 21 million cells."""
    workload = figures.workload("Adult", "<=3")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", workload.domain, 100_000)
        plan = plan_tables(workload, loss=rp.SumOfVariances("cells"), budget=rp.Budget(rho=1))
        counting, _ = once(lambda: dry_run(plan, data, folder / "out"))
        start = time.process_time()
        seconds, _ = once(lambda: release(plan, data, folder / "out"))
        processor_seconds = time.process_time() - start
    cells = float(np.sum(workload.cells)) / 1e6
    return [
        (f"release Adult's ≤3-way tables, {cells:.0f} million cells, s", seconds, "<=", 25),
        ("  processor time, s", processor_seconds, "<=", 9),
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
        plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
        seconds, _ = once(lambda: release(plan, data, folder / "out"))
    return [
        ("release of 2·10^8 cells: process peak, GB", peak_gigabytes(), "<=", 3),
        ("  s", seconds, "<=", 600),
    ]


def release_of_a_billion_cells() -> list[Row]:
    """10^9 cells in tables of a million each, as Parquet; takes 40 GB of disk on the way."""
    domain = rp.Domain.from_sizes({f"a{i}": 100 for i in range(20)})
    workload = rp.Workload.of(domain, islice(combinations(domain.names, 3), 1_000))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", domain, 1_000_000)
        plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
        start = time.process_time()
        seconds, _ = once(lambda: release(plan, data, folder / "out", parquet_only=True))
        processor_seconds = time.process_time() - start
    return [
        ("release of 10^9 cells: process peak, GB", peak_gigabytes(), "<=", 2),
        ("  s", seconds, "<=", 1_200),
        ("  processor time, s", processor_seconds, "<=", 600),
    ]


def release_of_one_large_table() -> list[Row]:
    """One table of 1.2·10^8 cells, slice by slice; takes 5 GB of disk on the way."""
    domain = rp.Domain.from_sizes({"a": 480, "b": 500, "c": 500})
    workload = rp.Workload.of(domain, [domain.names])
    cells = float(np.sum(workload.cells))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", domain, 1_000_000)
        plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
        seconds, done = once(lambda: release(plan, data, folder / "out"), time.process_time)
        peak = peak_gigabytes()
        part = done.part("tables")
        answering, _ = once(
            lambda: part.answer(*domain.names, where={"a": "0..9"}), time.process_time
        )
    return [
        (
            "one table of 1.2·10^8 cells, ns of processor time a cell",
            1e9 * seconds / cells,
            "<=",
            600,
        ),
        ("  process peak, GB", peak, "<=", 2),
        ("  an answer from all its cells, ns a cell", 1e9 * answering / cells, "<=", 200),
    ]


def release_of_166_751_tables() -> list[Row]:
    """All tables of at most three of 100 attributes of size 10, of 50,000 records."""
    plan = small_tables([10] * 100)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", plan.domain, 50_000)
        counting, _ = once(lambda: dry_run(plan, data, folder / "out"), time.process_time)
        seconds, done = once(lambda: release(plan, data, folder / "out"), time.process_time)
        n_files = sum(path.is_file() for path in done.folder.rglob("*"))
        opening, _ = once(lambda: rp.Release.load(done.folder), time.process_time)
        peak = peak_gigabytes()
        shutil.rmtree(done.folder)
        measure_mock_records(plan, folder)
        floor, _ = once(lambda: write_bare_values(plan, folder), time.process_time)
    return [
        (f"release of {len(plan.workload):,} tables, s of processor time", seconds, "<=", 60),
        ("  of it checks and counting (a dry run), s", counting, "<=", 25),
        (
            "  the rest, times its answers and their values as Parquet",
            (seconds - counting) / floor,
            "<=",
            5,
        ),
        ("  opened, with the checksums of its files, s", opening, "<=", 4),
        ("  files", n_files, "<=", 10),
        ("  process peak, GB", peak, "<=", 1.5),
    ]


def parquet_of_many_cells() -> list[Row]:
    """One table of 10⁷ cells from its measurements, as Parquet only."""
    domain = rp.Domain.from_sizes({"a": 215, "b": 216, "c": 216})
    workload = rp.Workload.of(domain, [("a", "b", "c")])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    (steps,) = PlanSteps.of(plan).parts
    note = MeasurementNote(
        "run", 1, "", plan.sha256, {}, "", "", escape_formulas=False, parquet_only=True
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_mock_records(plan, folder)

        def write() -> None:
            shutil.rmtree(folder / "out", ignore_errors=True)
            (folder / "out").mkdir()
            steps.write(folder / "out", Measured(folder), note, no_progress)

        def bare() -> None:
            contributions = Contributions(plan, MeasuredFile(Measured(folder), plan.closure))
            values = pa.table({"value": contributions.answers(0).ravel()})
            pyarrow.parquet.write_table(values, folder / "bare", use_dictionary=False)

        floor, seconds = process_seconds(bare), process_seconds(write)
    cells = float(np.sum(workload.cells))
    return [
        (
            "a table of 10⁷ cells written, ns of processor time a cell",
            1e9 * seconds / cells,
            "<=",
            250,
        ),
        ("  times its answers, and the values alone as Parquet", seconds / floor, "<=", 8),
    ]


def measuring_of_many_small_tables() -> list[Row]:
    """All tables of at most 3 of 30 attributes of size 10: exact residuals and their noise."""
    domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(30)})
    workload = rp.Workload.all_up_to(domain, 3)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    ones = np.ones((10, 10, 10), dtype=np.uint32)
    counts = Counts(dict.fromkeys(combinations(range(30), 3), ones), ones.size)
    cells = int(measured_cells(plan.closure).sum())
    (part,) = parts_of(plan)
    seconds = process_seconds(lambda: sum(n.size for n in measure_part(plan, part, counts)))
    return [
        ("measuring small tables, ns of processor time a cell", 1e9 * seconds / cells, "<=", 40),
        ("  microseconds a table", 1e6 * seconds / len(workload), "<=", 40),
    ]


def reconstruction_of_many_small_tables() -> list[Row]:
    """All tables of at most 3 attributes of size 10, from the records to the answers; no file."""
    rows: list[Row] = []
    for n_attributes, limit in ((10, 0.008), (50, 0.5), (100, 4)):
        domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(n_attributes)})
        workload = rp.Workload.all_up_to(domain, 3)
        plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            measure_mock_records(plan, folder)
            seconds = process_seconds(lambda folder=folder, plan=plan: all_answers(plan, folder))
        rows.append((f"tables of {n_attributes} attributes put together, s", seconds, "<=", limit))
    return [*rows, ("  counted and measured before: process peak, GB", peak_gigabytes(), "<=", 2)]


SMALL_SIZES = (74, 9, 16, 16, 7, 15, 6, 5, 2, 30, 30, 40, 42, 2, 10)
"""Of 15 attributes, whose 576 tables of at most three have 3.2 million cells."""


def small_tables(sizes: Sequence[int]) -> TablePlan:
    """The plan of all tables of at most three attributes of these sizes."""
    domain = rp.Domain.from_sizes({f"a{i}": size for i, size in enumerate(sizes)})
    workload = rp.Workload.all_up_to(domain, 3)
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))


def writing_of_small_tables() -> list[Row]:
    """From the measurements to all files, beside the answers and nothing but their values."""
    plan = small_tables(SMALL_SIZES)
    (steps,) = PlanSteps.of(plan).parts
    note = MeasurementNote("run", 1, "", plan.sha256, {}, "", "", escape_formulas=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_mock_records(plan, folder)

        def write() -> None:
            shutil.rmtree(folder / "out", ignore_errors=True)
            (folder / "out").mkdir()
            steps.write(folder / "out", Measured(folder), note, no_progress)

        floor = process_seconds(lambda: write_bare_values(plan, folder))
        seconds = process_seconds(write)
        n_files = sum(path.is_file() for path in (folder / "out").rglob("*"))
    return [
        (f"{len(plan.workload)} small tables written, s of processor time", seconds, "<=", 0.8),
        ("  times their answers, and the values alone as Parquet", seconds / floor, "<=", 2.5),
        ("  files", n_files, "<=", 2),
    ]


def combining_of_small_tables() -> list[Row]:
    """Two releases of 4,526 tables of at most three of 30 attributes of size 5, into one folder."""
    plan = small_tables([5] * 30)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", plan.domain, 5_000)
        releases = [release(plan, data, folder / out) for out in ("one", "two")]
        start = time.process_time()
        write_combined(rp.combine(*releases), folder / "both")
        seconds = time.process_time() - start
        n_files = sum(path.is_file() for path in (folder / "both").rglob("*"))
    return [
        ("combining small tables, ms of processor time a table", 1e3 * seconds / 4526, "<=", 0.7),
        ("  files", n_files, "<=", 5),
    ]


def postprocessing_of_small_tables() -> list[Row]:
    """Whole numbers for 4,526 tables of at most three of 30 attributes of size 10."""
    plan = small_tables([10] * 30)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", plan.domain, 50_000)
        done = release(plan, data, folder / "out")
        floor, _ = once(lambda: [item.read() for item in done.items], time.process_time)
        start = time.process_time()
        postprocess(done, folder / "whole", rounded=True)
        seconds = time.process_time() - start
        n_files = sum(path.is_file() for path in (folder / "whole").rglob("*"))
    return [
        ("small tables in whole numbers, ms of processor time a table", seconds / 4.526, "<=", 1.2),
        ("  times reading them", seconds / floor, "<=", 5),
        ("  files", n_files, "<=", 4),
    ]


def answers_of_releases() -> list[Row]:
    """Answers by three attributes from a release of 576 tables, and one of 4,526."""
    seconds = []
    for sizes in (SMALL_SIZES, [10] * 30):
        plan = small_tables(sizes)
        with tempfile.TemporaryDirectory() as name:
            data = mock_records(Path(name) / "records.parquet", plan.domain, 10_000)
            done = release(plan, data, Path(name) / "out").part("tables")
            queries = [dict.fromkeys(names, "1") for names in islice(_triples_of(plan), 100)]

            def ask(done: TableRelease = done, queries: list[dict[str, str]] = queries) -> None:
                for query in queries:
                    done.answer(where=query)

            seconds.append(process_seconds(ask) / len(queries))
    return [
        ("an answer from 576 tables, ms of processor time", 1000 * seconds[0], "<=", 3),
        ("  from 4,526 tables, times as long", seconds[1] / seconds[0], "<=", 1.3),
    ]


def _triples_of(plan: TablePlan) -> Iterator[tuple[str, ...]]:
    return (names for names in plan.workload.tables if len(names) == 3)


def workbook_of_small_tables() -> list[Row]:
    """A sheet for each of the 576 tables, beside the compression of what is in them."""
    plan = small_tables([min(size, 24) for size in SMALL_SIZES])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = mock_records(folder / "records.parquet", plan.domain, 100_000)
        done = release(plan, data, folder / "out")
        start = time.process_time()
        write_workbook(done, folder / "tables.xlsx")
        seconds = time.process_time() - start
        with zipfile.ZipFile(folder / "tables.xlsx") as book:
            sheets = [book.read(sheet) for sheet in book.namelist()]
        floor, _ = once(lambda: [zlib.compress(one, 1) for one in sheets], time.process_time)
    n_rows = float(np.sum(plan.workload.cells))
    return [
        ("workbook of 576 tables, µs of processor time a row", 1e6 * seconds / n_rows, "<=", 6),
        ("  times the compression of its sheets", seconds / floor, "<=", 5),
    ]


def measure_mock_records(plan: TablePlan, folder: Path) -> None:
    """Write the measurements of 100,000 mock records into a folder, as a release does."""
    (steps,) = PlanSteps.of(plan).parts
    data = mock_records(folder / "records.parquet", plan.domain, 100_000)
    (part,) = steps.parts
    draft = Draft(folder, plan.alone, [part.n_measured], None)
    draft.add(steps.measure(part, source_of(data).count(plan.domain, part.tables)))


def write_bare_values(plan: TablePlan, folder: Path) -> None:
    """Write the answers of all tables, from the measurements in a folder, and nothing else."""
    contributions = Contributions(plan, MeasuredFile(Measured(folder), plan.closure))
    schema = pa.schema({"value": pa.float64()})
    with pyarrow.parquet.ParquetWriter(folder / "bare", schema, use_dictionary=False) as file:
        for table in range(len(plan.workload)):
            values = contributions.answers(table).ravel()
            file.write_batch(pa.record_batch([pa.array(values)], schema=schema))


def all_answers(plan: TablePlan, folder: Path) -> int:
    """The answers of all tables, from the measurements in a folder, one after another; counted."""
    contributions = Contributions(plan, MeasuredFile(Measured(folder), plan.closure))
    return sum(contributions.answers(table).size for table in range(len(plan.workload)))


def csv_of_tables() -> list[Row]:
    """A table of 360,000 cells, as a release has it."""
    domain = rp.Domain.from_sizes({"a": 100, "b": 85, "c": 42})
    values = np.random.default_rng(0).normal(500, 300, domain.sizes)
    labels = [label_columns(attribute) for attribute in domain.attributes]
    rows = table_of_cells(labels, values, np.broadcast_to(2659.1, values.shape))

    def write() -> None:
        with tempfile.TemporaryFile() as file:
            names = rows.column_names
            CsvWriter(file, names, csv_decimals(51.6, 2_000), escape_formulas=False).write(rows)

    seconds = process_seconds(write)
    return [("CSV of tables, ns of processor time a cell", 1e9 * seconds / values.size, "<=", 130)]


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
    reconstruction_of_many_small_tables,
    csv_of_tables,
    writing_of_small_tables,
    combining_of_small_tables,
    postprocessing_of_small_tables,
    answers_of_releases,
    workbook_of_small_tables,
    parquet_of_many_cells,
    release_of_166_751_tables,
    release_of_adult,
    release_of_many_cells,
    release_of_a_billion_cells,
    release_of_one_large_table,
]
