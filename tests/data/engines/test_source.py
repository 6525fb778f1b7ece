"""Counting in engines: exact, of one state, and nothing but counts ever comes back."""

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.data.coding import Takers
from rpexplore.data.engines import counting as engine_counting
from rpexplore.data.engines import duckdb_session, postgres_session
from rpexplore.data.engines import session as engine_session
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.session import Request
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.source import Counts, PersonRule, SparseTable
from rpexplore.errors import DataError, DomainError
from tests.data.engines.conftest import two_stores
from tests.data.engines.people import DOMAIN, TABLES, check, expected, people
from tests.data.engines.servers import in_duckdb, in_spark


def test_counts_are_exact(store):
    records = people()
    source = store(records)
    check(source, records)
    assert source.columns() == tuple(records.column_names)


def test_counts_are_exact_in_spark(spark, tmp_path):
    records = people(500)
    source = in_spark(spark, records, tmp_path)
    check(source, records)
    assert source.columns() == tuple(records.column_names)
    assert source.names(tmp_path)[0] == "spark:/default.records"
    assert source.fingerprint() == source.fingerprint()


@two_stores
def test_no_records_are_records_too(store):
    records = people().slice(0, 0)
    check(store(records), records)


@settings(max_examples=15)
@given(st.data())
def test_any_tables_of_any_records(tmp_path_factory, data):
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 30]), min_size=1, max_size=5))
    domain = Domain(
        tuple(
            Attribute(f"a{index}", data.draw(st.sampled_from([Categories(texts), Integers(0, n)])))
            for index, n in ((index, size - 1) for index, size in enumerate(sizes))
            for texts in [tuple(map(str, range(n + 1)))]
        )
    )
    indices = st.sets(st.sampled_from(range(len(sizes)))).map(lambda subset: tuple(sorted(subset)))
    tables = data.draw(st.lists(indices, min_size=1, max_size=6))
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in sizes)), max_size=12))
    columns = {
        f"a{index}": pa.array([str(row[index]) for row in rows], pa.string())
        for index in range(len(sizes))
    }
    path = tmp_path_factory.mktemp("any") / "records.duckdb"
    counts = in_duckdb(pa.table(columns), path).count(domain, tables)
    assert counts.n_records == len(rows)
    for table in tables:
        marginal = counts.counts(table)
        tallied = Counter(tuple(row[index] for index in table) for row in rows)
        assert marginal.sum() == len(rows)
        assert all(marginal[cell] == n for cell, n in tallied.items())


def tally_of(tables, sizes, rows) -> Counts:
    """What these rows (part, cell, n) are the counts of, where nothing is wrong with records."""
    request = Request("x", Domain.from_sizes(sizes), tables, Takers(), None)
    tally = engine_counting.Tally(request)
    checks = [(-1, cell, 0) for cell in range(1, 1 + request.n_checks)]
    for part, cell, n in [*checks, *rows]:
        tally.add(pa.record_batch({"part": [part], "cell": [cell], "n": [n]}))
    return tally.counts()


def test_counts_above_four_thousand_million():
    """Cells are held in 32 bits until one needs more."""
    counts = tally_of(((0,),), {"a": 3}, [(-1, 0, 2**33 + 1), (0, 1, 1), (0, 2, 2**33)])
    assert counts.counts((0,)).tolist() == [0, 1, 2**33]


def test_cells_of_a_large_table_are_kept_sparsely(monkeypatch):
    rows = [(-1, 0, 2**33 + 3), (0, 5, 2**33), (0, 2, 1), (0, 0, 2)]
    dense = tally_of(((0, 1),), {"a": 2, "b": 3}, rows)
    monkeypatch.setattr("rpexplore.data.source.MOST_DENSE", 5)
    sparse = tally_of(((0, 1),), {"a": 2, "b": 3}, rows)
    assert isinstance(sparse.tables[0, 1], SparseTable)
    for table in ((0, 1), (0,), (1,)):
        assert np.array_equal(sparse.counts(table), dense.counts(table))


# --- what comes back


def test_nothing_but_places_and_counts_comes_back_from_a_server(postgres, monkeypatch):
    records = people()
    source, came = postgres.source(records, "people"), []
    add = engine_counting.Tally.add
    monkeypatch.setattr(
        engine_counting.Tally, "add", lambda self, piece: (came.append(piece), add(self, piece))
    )
    source.count(DOMAIN, TABLES, person_rule=PersonRule("who", 3001))
    n_cells = sum(np.count_nonzero(expected(records, table)) for table in TABLES[:2])
    n_cells += np.count_nonzero(expected(records, (2, 3, 4)))
    assert {piece.schema.names[0] for piece in came} == {"part"}
    for piece in came:
        assert piece.schema.names == ["part", "cell", "n"]
        assert all(pa.types.is_integer(kind) for kind in piece.schema.types)
    n_checks = 1 + 2 * len(DOMAIN) + 3  # nobody's, unclear, and beyond those allowed
    assert sum(piece.num_rows for piece in came) == n_cells + n_checks


def test_nothing_but_codes_comes_of_a_server_that_streams(postgres, monkeypatch):
    records, came, streamed = people(50), [], psycopg.Cursor.stream

    def kept(cursor, *arguments, **options):
        for row in streamed(cursor, *arguments, **options):
            came.append([(column.type_code, column.internal_size) for column in cursor.description])
            yield row

    monkeypatch.setattr(psycopg.Cursor, "stream", kept)
    source = replace(postgres.source(records, "people"), stream=True)
    assert source.count(DOMAIN, TABLES, person_rule=PersonRule("who", 50)).n_records == 50
    # One number of eight bytes a record.
    assert came == 50 * [[(psycopg.adapters.types["int8"].oid, 8)]]


def test_streaming_is_for_servers_alone(tmp_path):
    for source in (
        in_duckdb(people(5), tmp_path / "records.duckdb"),
        DatabaseSource(Connection("CLUSTER", "spark://"), "people"),
    ):
        with pytest.raises(DataError, match="cannot be told to stream: "):
            replace(source, stream=True)


@two_stores
def test_rows_come_in_pieces(store, monkeypatch):
    for module in (engine_session, duckdb_session, postgres_session):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    records = people(200)
    check(store(records), records)


@pytest.mark.parametrize("value", ["s3cr3t", None, pytest.param("", marks=pytest.mark.nightly)])
def test_what_is_not_in_the_codebook_is_told_apart_and_never_shown(value, store):
    records = people(50)
    at = records.column_names.index("sex")
    column = pa.array([value, *records["sex"].to_pylist()[1:]], pa.string())
    source = store(records.set_column(at, "sex", column))
    what = "a missing value" if value is None else "a value that is not in the codebook"
    with pytest.raises(DataError, match=f"'sex' holds {what}") as caught:
        source.count(DOMAIN, TABLES)
    assert "s3cr3t" not in caught.value.on_screen()
    option = "missing_values" if value is None else "unknown_values"
    counts = source.count(DOMAIN, TABLES, **{option: {"sex": "f"}})
    assert counts.n_records == 50
    what = "missing" if value is None else "not in the codebook"
    assert counts.taken == (("sex", what, 1, "f"),)
    source.count(DOMAIN, [(1,)])  # of no concern there


def test_an_unknown_other_is_refused(store):
    source = store(people(5))
    with pytest.raises(DomainError, match="'nobody'"):
        source.count(DOMAIN, TABLES, unknown_values={"nobody": "f"})
    with pytest.raises(DataError, match="'nonsense'"):
        source.count(DOMAIN, TABLES, unknown_values={"sex": "nonsense"})


def test_counts_that_do_not_agree_are_refused():
    """As those of a view that is another whenever it is read."""
    for rows in (
        [(-1, 0, 2), (0, 0, 2), (1, 0, 1)],  # totals
        [(-1, 0, 2), (0, 0, 2), (1, 3, 2)],  # the marginal of what both have
        [(-1, 0, 2), (0, 0, 2), (1, 0, 2), (1, 4, 2)],  # a cell that is none
        [(0, 0, 2), (1, 0, 2)],
    ):
        with pytest.raises(DataError, match="changed while they were counted"):
            tally_of(((0, 1), (1, 2)), dict.fromkeys("abc", 2), rows)


def test_more_cells_than_memory_holds_are_refused(store):
    domain = Domain.from_sizes(dict.fromkeys("abc", 1000))
    with pytest.raises(DataError, match="1,000,000,000 cells"):
        store(people(5)).count(domain, [(0, 1, 2)])


# --- what a ledger knows the records by


def test_one_duckdb_file_is_one_dataset(tmp_path, monkeypatch):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.duckdb").symlink_to("records.duckdb")
    fingerprint, linked = source.fingerprint(), f"duckdb://{tmp_path}/link.duckdb"
    for url, table in (("duckdb://records.duckdb", "main.records"), (linked, "Records")):
        other = DatabaseSource(Connection("OTHER", url), table)
        assert other.names(tmp_path)[0] == "duckdb:records.duckdb/main.records"
        assert other.fingerprint() == fingerprint
        assert other.home == tmp_path
    assert source.names(Path("/elsewhere"))[0] == f"duckdb:{tmp_path}/records.duckdb/main.records"


def test_what_exceeds_memory_stays_beside_the_duckdb_file(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    source = in_duckdb(people(5), tmp_path / "people's.duckdb")
    before = sorted(tmp_path.rglob("*"))
    with engine_session.session_of(source.connection) as session:
        con = session.backend.con
        con.execute("SET memory_limit = '30MB'")
        rows = con.sql("SELECT hash(i) FROM range(3000000) AS t(i) ORDER BY 1").to_arrow_reader()
        next(rows)
        (made,) = {path.parent for path in tmp_path.rglob("*.tmp") if path.is_file()}
        assert made.stat().st_mode & 0o777 == 0o700
        del con, rows  # which keep the files
    assert made.parent == tmp_path
    assert sorted(tmp_path.rglob("*")) == before


def test_an_old_empty_folder_beside_a_duckdb_file_goes_unless_a_session_has_it(tmp_path):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    (left := tmp_path / ".records.duckdb.left.tmp").mkdir()
    (full := tmp_path / ".records.duckdb.full.tmp").mkdir()
    (full / "records").touch()
    with engine_session.session_of(source.connection):
        (ours,) = set(tmp_path.glob(".*.tmp")) - {left, full}
        for folder in (left, full, ours):
            os.utime(folder, (0, 0))
        source.columns()
        assert set(tmp_path.glob(".*.tmp")) == {full, ours}
    assert list(tmp_path.glob(".*.tmp")) == [full]


def test_one_table_of_a_server_is_one_dataset(postgres, tmp_path):
    postgres.source(people(5), "people")
    urls = [
        postgres.url,
        f"postgres://keeper@/?host={postgres.folder}&port=5432&dbname=postgres",
        f"postgresql:///postgres?host={postgres.folder}&user=keeper&application_name=x",
    ]
    sources = [
        DatabaseSource(Connection("X", url), name)
        for url in urls
        for name in ("people", "public.people")
    ]
    (key,) = {source.names(tmp_path)[0] for source in sources}
    assert re.fullmatch(r"postgresql:\d+/postgres/public\.people", key)
    assert len({source.fingerprint() for source in sources}) == 1
    assert {source.home for source in sources} == {None}


@two_stores
def test_groups_of_cells_of_many_runs_of_values_are_counted_by_codes(store, monkeypatch):
    records = people()
    monkeypatch.setattr(engine_counting, "_MOST_RUNS", 1)
    check(store(records), records)
