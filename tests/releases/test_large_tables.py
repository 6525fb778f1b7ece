"""Tables that are measured, written and read slice by slice: the same numbers as of the whole."""

from dataclasses import replace
from textwrap import dedent

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Attribute, Budget, Domain, Integers, SumOfVariances, Workload
from rpexplore.data.files.source import source_of
from rpexplore.data.source import SparseTable
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.feasibility import Fit
from rpexplore.releases.large_tables import MAX_TABLE_CELLS
from rpexplore.releases.measurement import check_measurable
from rpexplore.releases.packed_tables import bytes_of_tables
from rpexplore.releases.release import release, resume
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.unbiased import Estimates
from rpexplore.workload.bases import Prefix
from tests.data.engines.servers import in_duckdb

DOMAIN = Domain.from_sizes({"one": 1, "a": 13, "b": 5, "c": 4, "d": 3, "e": 6})
WORKLOAD = Workload.of(
    DOMAIN, [("one", "a", "b", "c", "d"), ("a", "e"), ("b", "e"), ("a", "b", "c")]
)
PLAN = plan_tables(WORKLOAD, loss=SumOfVariances(), budget=Budget(rho="1/2"))
LARGE = 3  # its place in the workload


@pytest.fixture
def data(tmp_path):
    codes = np.random.default_rng(3).integers(0, DOMAIN.sizes, (500, len(DOMAIN)))
    lines = [",".join(DOMAIN.names), *(",".join(map(str, row)) for row in codes)]
    path = tmp_path / "records.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def noise(monkeypatch):
    """Noise that is the same for the same measurements, however they are divided."""

    def again():
        streams: dict = {}

        def drawn(size, gamma_squared):
            seed = gamma_squared.as_integer_ratio()  # other noise for another scale
            stream = streams.setdefault(gamma_squared, np.random.default_rng(seed))
            return stream.integers(-50, 50, size)

        monkeypatch.setattr("rpexplore.releases.measurement.discrete_gaussian", drawn)

    monkeypatch.setattr(
        "rpexplore.releases.measurement.in_order", lambda work, items: (yield from map(work, items))
    )
    return again


def slice_by_slice(patch, *, slice_cells=70):
    """Only the table of four attributes, and two of its residuals, are large."""
    patch.setattr("rpexplore.releases.large_tables.MAX_TABLE_CELLS", 270)
    patch.setattr("rpexplore.releases.large_tables.MAX_CELLS_OF_VALUE", 120)
    patch.setattr("rpexplore.releases.large_tables._SLICE", slice_cells)
    patch.setattr("rpexplore.releases.large_tables._WHOLE", 60)
    patch.setattr("rpexplore.data.source.MOST_DENSE", 300)
    patch.setattr("rpexplore.data.counting._BLOCK_CELLS", 100)


@pytest.mark.parametrize("slice_cells", [20, 130])
def test_slices_are_those_of_the_whole_bit_by_bit(data, tmp_path, monkeypatch, noise, slice_cells):
    assert WORKLOAD.exact_cells[LARGE] == max(WORKLOAD.exact_cells) == 780
    noise()
    whole = release(PLAN, data, tmp_path / "whole").part("tables")
    noise()
    with monkeypatch.context() as patch:
        slice_by_slice(patch, slice_cells=slice_cells)
        sliced = release(PLAN, data, tmp_path / "sliced").part("tables")
        large = f"tables/{LARGE:04d}_one_a_b_c_d"
        assert (
            pq.read_table(sliced.folder / f"{large}.parquet")
            .to_pandas()
            .equals(pq.read_table(whole.folder / f"{large}.parquet").to_pandas())
        )
        assert not (sliced.folder / f"{large}.csv").exists()
        for name in ("residuals.parquet", "tables/0002_a_b_c.csv"):
            assert (sliced.folder / name).read_bytes() == (whole.folder / name).read_bytes()
        where = {"a": "3..9", "c": [1.0, 0, -1, 0.5], "d": "2"}
        answer = TableRelease.load(sliced.folder).answer("a", "b", "c", "d", where=where)
        assert answer.value == pytest.approx(whole.answer("a", "b", "c", "d", where=where).value)
        assert answer.standard_error == whole.answer("a", "b", "c", "d", where=where).standard_error
        assert sliced.counts("b", "d").equals(whole.counts("b", "d"))
        for read in (
            lambda: sliced.table("one", "a", "b", "c", "d"),
            lambda: sliced.counts("a", "b", "c", "d"),
            lambda: sliced.measured(range(len(PLAN.closure))),
            lambda: Estimates.of_tables(sliced),
        ):
            with pytest.raises(ReleaseError, match="780 cells, and at most 270 can be read"):
                read()


def test_a_run_that_is_stopped_while_it_writes_a_large_table_is_finished(
    data, tmp_path, monkeypatch
):
    slice_by_slice(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.large_tables.spread_sum", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release(PLAN, data, tmp_path / "out")
    finished = resume(tmp_path / "out").part("tables")
    rows = pq.read_table(finished.folder / f"tables/{LARGE:04d}_one_a_b_c_d.parquet")
    assert len(rows) == 780
    assert rows["value"].to_numpy().sum() == pytest.approx(finished.answer("a", where={}).value)


def test_where_all_tables_are_large_the_readme_reads_a_part(data, tmp_path, monkeypatch, capsys):
    slice_by_slice(monkeypatch)
    workload = Workload.of(DOMAIN, [("one", "a", "b", "c", "d")])
    plan = plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho="1/2"))
    folder = release(plan, data, tmp_path / "out").part("tables").folder
    readme = (folder / "README.md").read_text()
    assert "Tables of more than 270 cells are Parquet only; read them in parts" in readme
    assert "read_parquet(" not in readme
    python = readme.partition("Python:")[2].partition("R:")[0]
    monkeypatch.chdir(folder)
    exec(dedent(python), {})  # noqa: S102
    assert "publishable" in capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(110, 110, 110), (11, 110_000)])
def test_the_disk_that_a_large_table_takes_is_what_is_asked_for(tmp_path, monkeypatch, sizes):
    monkeypatch.setattr("rpexplore.releases.large_tables.MAX_TABLE_CELLS", 1_000_000)
    plan = planned(*sizes)
    path = tmp_path / "records.csv"
    path.write_text("\n".join([",".join(plan.domain.names), ",".join("0" * len(sizes))]) + "\n")
    folder = release(plan, path, tmp_path / "out").part("tables").folder
    n_bytes = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    asked = float(bytes_of_tables(plan.workload).sum())
    assert 0.75 * asked < n_bytes < asked


def test_an_engine_counts_a_large_table_sparsely(data, tmp_path, monkeypatch):
    monkeypatch.setattr("rpexplore.data.source.MOST_DENSE", 300)
    monkeypatch.setattr("rpexplore.data.counting._BLOCK_CELLS", 100)
    records = pyarrow.csv.read_csv(data).cast(
        pa.schema([(name, "string") for name in DOMAIN.names])
    )
    whole = tuple(range(len(DOMAIN)))
    counts = in_duckdb(records, tmp_path / "records.duckdb").count(DOMAIN, [whole[:5], whole[4:]])
    assert isinstance(counts.tables[whole[:5]], SparseTable)
    of_file = source_of(data).count(DOMAIN, [whole])
    for table in (whole[:5], (1, 3), (4,), (4, 5)):
        assert np.array_equal(counts.counts(table), of_file.counts(table))


def planned(*sizes, **of_domain):
    domain = Domain.from_sizes({f"a{place}": size for place, size in enumerate(sizes)})
    workload = Workload.of(replace(domain, **of_domain), [domain.names])
    return plan_tables(workload, loss=SumOfVariances(), budget=Budget(rho=1))


def test_what_cannot_be_sliced_is_refused_before_anything_is_counted():
    check_measurable(planned(1000, 1000, 1000))
    check_measurable(planned(4000, 25_000))
    with pytest.raises(ReleaseError, match="can have 1,000,000,000; plan without it"):
        check_measurable(planned(1001, 1000, 1000))
    with pytest.raises(ReleaseError, match="for each value of its first attribute"):
        check_measurable(planned(2, 5000, 5001))
    values = (Attribute("a", Integers(0, 59)), Attribute("b", Integers(0, 999_999)))
    workload = Workload.of(Domain(values), [("a", "b"), ("a",)])
    in_sums = workload.with_bases({"a": Prefix()}, tables=[("a",)])
    with pytest.raises(ReleaseError, match="by single values, and 'a' is not"):
        check_measurable(plan_tables(in_sums, loss=SumOfVariances(), budget=Budget(rho=1)))
    assert Fit.of(workload, free_disk=1e15, memory=1e15).obstacles == ()
    (obstacle,) = Fit.of(in_sums, free_disk=1e15, memory=1e15).obstacles
    assert "by single values, and 'a' is not" in obstacle
    assert MAX_TABLE_CELLS < 60_000_000


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(1, 40), max_size=6),
    st.integers(0, 2**32),
)
def test_sparse_counts_are_those_of_dense_ones(shape, pieces, seed):
    generator = np.random.default_rng(seed)
    sparse, dense = SparseTable(shape), np.zeros(shape, dtype=np.int64)
    for n_records in pieces:
        cells, times = np.unique(generator.integers(0, dense.size, n_records), return_counts=True)
        sparse.add(cells, times)
        dense.reshape(-1)[cells] += times
    assert sparse.size == dense.size
    assert np.array_equal(sparse.astype(np.int64), dense)
    left = tuple(np.flatnonzero(generator.integers(0, 2, len(shape))).tolist())
    assert np.array_equal(sparse.sum(left), dense.sum(axis=left))
    assert sparse.sum() == dense.sum()
    first = next((axis for axis, size in enumerate(shape) if size > 1), 0)
    rows = range(*sorted(generator.integers(0, shape[first] + 1, 2).tolist()))
    others = tuple(axis for axis in left if axis != first)
    expected = dense.take(rows, axis=first).sum(axis=others)
    assert np.array_equal(sparse.sum(others, rows=rows), expected)
