"""Counting in engines: exact, of one state, by people's rules, and nothing else ever comes back."""

import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.data.databases import counting as engine_counting
from rpexplore.data.databases import duckdb_session
from rpexplore.data.databases import session as engine_session
from rpexplore.data.databases.connections import Connection
from rpexplore.data.databases.source import DatabaseSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError, DomainError
from tests.data.databases.servers import Server, in_duckdb, in_spark, running_postgres

SEX = ("m", "f", "ünïcode, x")
DOMAIN = Domain(
    (
        Attribute("sex", Categories(SEX)),
        Attribute("age", Integers(0, 99, 7)),
        Attribute("pay", Bins((0, 0.5, 10, 100))),
        Attribute("place", Categories(tuple(f"p{number}" for number in range(30)))),
        Attribute("one", Integers(4, 4)),
    )
)
TABLES = [(0, 1, 2), (1, 3), (0, 1), (2, 3, 4), (4,), ()]


def people(n: int = 3001) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "note": pa.array([f"private {number}" for number in range(n)]),
            "sex": pa.array(rng.choice(SEX, n).tolist(), pa.string()),
            "age": pa.array(rng.integers(0, 100, n)),
            "pay": pa.array(rng.choice([0.0, 0.5, 10.0, 99.999, 100.0], n)),
            "place": pa.array([f"p{number}" for number in rng.integers(0, 30, n)], pa.string()),
            "one": pa.array([4] * n, pa.int64()),
            "who": pa.array([f"person {number}" for number in rng.integers(0, n // 2, n)]),
            "turn": pa.array(rng.permutation(n)),
        }
    )


def expected(records: pa.Table, indices: tuple[int, ...]) -> np.ndarray:
    """The marginal, record by record."""
    code = {
        "sex": SEX.index,
        "age": lambda age: age // 7,
        "pay": lambda pay: 0 if pay < 0.5 else 1 if pay < 10 else 2,
        "place": lambda index: int(index[1:]),
        "one": lambda one: 0,
    }
    counts = np.zeros([int(DOMAIN.sizes[index]) for index in indices], dtype=np.int64)
    for row in records.to_pylist():
        names = [DOMAIN.names[index] for index in indices]
        counts[tuple(code[name](row[name]) for name in names)] += 1
    return counts


def check(source: DatabaseSource, records: pa.Table) -> None:
    counts = source.count(DOMAIN, TABLES)
    assert sorted(counts.tables) == [(0, 1, 2), (1, 3), (2, 3, 4)]  # no set in another
    assert counts.n_records == len(records)
    for table in TABLES:
        assert np.array_equal(counts.counts(table), expected(records, table)), table


@pytest.fixture(params=["duckdb", "postgresql"])
def store(request, tmp_path):
    """Stores a table in an engine: called with the table, it gives the source."""
    if request.param == "duckdb":
        return lambda records: in_duckdb(records, tmp_path / "records.duckdb")
    server = request.getfixturevalue("postgres")
    return lambda records: server.source(records, "people")


# --- counts


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


def test_counts_above_four_thousand_million(monkeypatch):
    """Cells are held in 32 bits until one needs more."""
    tally = engine_counting.Tally([(0,)], [3])
    rows = [(-1, 0, 2**33 + 1), (0, 1, 1), (0, 2, 2**33)]
    for part, cell, n in rows:
        tally.add(pa.record_batch({"part": [part], "cell": [cell], "n": [n]}))
    counts = tally.counts(Domain.from_sizes({"a": 3}), None, "x")
    assert counts.counts((0,)).tolist() == [0, 1, 2**33]


# --- what comes back


def test_nothing_but_places_and_counts_comes_back(store, monkeypatch):
    records = people()
    source, came = store(records), []
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
    n_checks = 1 + 2 * len(DOMAIN) + 2  # whether somebody's, and the most of one person
    assert sum(piece.num_rows for piece in came) == n_cells + n_checks


def test_rows_come_in_pieces(store, monkeypatch):
    for module in (engine_session, duckdb_session):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    records = people(200)
    check(store(records), records)


@pytest.mark.parametrize("value", ["s3cr3t", None, ""])
def test_what_is_not_in_the_codebook_is_told_apart_and_never_shown(value, store):
    records = people(50)
    at = records.column_names.index("sex")
    column = pa.array([value, *records["sex"].to_pylist()[1:]], pa.string())
    source = store(records.set_column(at, "sex", column))
    what = "a missing value" if value is None else "a value that is not in the codebook"
    with pytest.raises(DataError, match=f"'sex' holds {what}") as caught:
        source.count(DOMAIN, TABLES)
    assert "s3cr3t" not in caught.value.on_screen()
    counts = source.count(DOMAIN, TABLES, unknown_values={"sex": "f"})
    assert counts.n_records == 50
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
        tally = engine_counting.Tally([(0, 1), (1, 2)], [2, 2, 2])
        for part, cell, n in rows:
            tally.add(pa.record_batch({"part": [part], "cell": [cell], "n": [n]}))
        with pytest.raises(DataError, match="changed while they were counted"):
            tally.counts(Domain.from_sizes({"a": 2, "b": 2, "c": 2}), None, "x")


def test_more_cells_than_memory_holds_are_refused(store):
    domain = Domain.from_sizes(dict.fromkeys("abc", 1000))
    with pytest.raises(DataError, match="1,000,000,000 cells"):
        store(people(5)).count(domain, [(0, 1, 2)])


# --- persons


def kept(records: pa.Table, most: int) -> pa.Table:
    """The first so many records of each person, by turn."""
    rows, seen = [], Counter()
    for row in sorted(records.to_pylist(), key=lambda row: row["turn"]):
        seen[row["who"]] += 1
        if seen[row["who"]] <= most:
            rows.append(row)
    return pa.Table.from_pylist(rows, records.schema)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_first_records_of_each_person(most, store):
    records = people(400)
    rule = PersonRule("who", most, "keep first", "turn")
    counts = store(records).count(DOMAIN, TABLES, person_rule=rule)
    wanted = kept(records, most)
    assert counts.n_records == len(wanted)
    for table in TABLES:
        assert np.array_equal(counts.counts(table), expected(wanted, table))


def test_the_first_records_of_each_person_in_spark(spark, tmp_path):
    records = people(100)
    rule = PersonRule("who", 1, "keep first", "turn")
    counts = in_spark(spark, records, tmp_path, "persons").count(DOMAIN, [(0, 1)], person_rule=rule)
    assert np.array_equal(counts.counts((0, 1)), expected(kept(records, 1), (0, 1)))


def test_too_many_records_of_a_person_are_refused(store):
    records = people(400)
    most = max(Counter(records["who"].to_pylist()).values())
    source = store(records)
    assert source.count(DOMAIN, TABLES, person_rule=PersonRule("who", most)).n_records == 400
    with pytest.raises(DataError, match=f"more records than the {most - 1} that") as caught:
        source.count(DOMAIN, TABLES, person_rule=PersonRule("who", most - 1))
    assert not re.search(r"person \d", caught.value.on_screen())


@pytest.mark.parametrize("nobody", [None, ""])
def test_records_of_nobody_are_refused(nobody, store):
    records = people(9)
    at = records.column_names.index("who")
    records = records.set_column(at, "who", pa.array([nobody, *"bcdefghi"], pa.string()))
    for rule in (PersonRule("who", 9), PersonRule("who", 1, "keep first", "turn")):
        with pytest.raises(DataError, match="nobody knows whose"):
            store(records).count(DOMAIN, TABLES, person_rule=rule)


def test_persons_are_told_apart_letter_by_letter(store):
    records = people(4)
    at = records.column_names.index("who")
    source = store(records.set_column(at, "who", pa.array(["a", "A", "a ", " a"])))
    assert source.count(DOMAIN, TABLES, person_rule=PersonRule("who", 1)).n_records == 4


def test_rules_that_cannot_be_followed_are_refused(store):
    source = store(people(5))
    with pytest.raises(DataError, match="have no order"):
        source.count(DOMAIN, TABLES, person_rule=PersonRule("who", 1, "keep first"))
    with pytest.raises(DataError, match="no column 'whose'"):
        source.count(DOMAIN, TABLES, person_rule=PersonRule("whose", 1))


# --- what a ledger knows the records by


def test_one_duckdb_file_is_one_dataset(tmp_path, monkeypatch):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.duckdb").symlink_to("records.duckdb")
    for url in ("duckdb://records.duckdb", f"duckdb://{tmp_path}/link.duckdb"):
        for table in ("records", "main.records", "Records"):
            other = DatabaseSource(Connection("OTHER", url), table)
            assert other.names(tmp_path)[0] == "duckdb:records.duckdb/main.records"
            assert other.fingerprint() == source.fingerprint()
            assert other.home == tmp_path
    assert source.names(Path("/elsewhere"))[0] == f"duckdb:{tmp_path}/records.duckdb/main.records"


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


# --- refusals


def refusal(source: DatabaseSource, domain: Domain = DOMAIN) -> DataError:
    with pytest.raises(DataError) as caught:
        source.count(domain, [(0,)])
    return caught.value


@pytest.mark.parametrize("name", ["nothing", "nowhere.people"])
def test_a_table_that_is_not_there(name, store):
    source = store(people(5))
    error = refusal(DatabaseSource(source.connection, name))
    assert f"there is no table {name!r}" in str(error)


def test_names_of_postgresql_are_taken_letter_by_letter(postgres):
    source = DatabaseSource(postgres.source(people(5), "people").connection, "People")
    assert "there is no table 'People'" in str(refusal(source))


def test_a_table_that_is_not_there_in_spark(spark):
    error = refusal(DatabaseSource(Connection("CLUSTER", "spark://"), "nothing"))
    assert "there is no table 'nothing'" in str(error)


@pytest.mark.parametrize("name", ["", "a.b.c", "a.", ".a"])
def test_what_names_no_table(name):
    with pytest.raises(DataError, match=r"schema\.table"):
        DatabaseSource(Connection("X", "duckdb:///x"), name)


def test_a_column_that_is_not_there(store):
    error = refusal(store(people(5)), Domain.from_sizes({"sex2": 2}))
    assert "have no column 'sex2'" in str(error)
    assert "note" not in str(error)


def test_a_table_that_may_not_be_read(postgres):
    postgres.source(people(5), "people")
    postgres.run("DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN PASSWORD 's3cr3t'")
    url = postgres.url.replace("keeper@", "guest:s3cr3t@")
    error = refusal(DatabaseSource(Connection("GUEST", url), "people"))
    assert "may not read the table 'people'" in str(error)
    assert "s3cr3t" not in error.on_screen()


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgresql://ann:s3cr3t@127.0.0.1:1/survey", "no server answers"),
        ("postgresql://ann:s3cr3t@/x?host=/nowhere", "no server answers"),
        ("postgresql://ann:s3cr3t@[::1/x", "write postgresql://user:password@host"),
        ("postgresql://ann:s3cr3t@localhost:99999/x", "host and port"),
        ("postgresql://ann:s3cr3t@nowhere.invalid/x", "host and port"),
        ("postgresql://ann:s3cr3t@localhost/x?nonsense=s3cr3t", "write postgresql://user:password"),
    ],
)
def test_a_server_that_cannot_be_reached(url, remedy):
    error = refusal(DatabaseSource(Connection("AWAY", url), "people"))
    assert "'AWAY'" in str(error)
    assert remedy in str(error)
    assert "ann" not in str(error)
    assert "s3cr3t" not in error.on_screen()


def test_a_server_that_lets_nobody_in(postgres):
    """Access as it is set up where passwords count; the fixture's server trusts everybody."""
    rules = postgres.folder / "data" / "pg_hba.conf"
    trusting = rules.read_text()
    postgres.run("DROP ROLE IF EXISTS ann", "CREATE ROLE ann LOGIN PASSWORD 's3cr3t'")
    loaded = "SELECT pg_conf_load_time()"
    before = postgres.run(loaded)
    rules.write_text(f"local all ann scram-sha-256\n{trusting}")
    postgres.run("SELECT pg_reload_conf()")
    try:
        while postgres.run(loaded) == before:
            time.sleep(0.05)
        for at, remedy in {
            "ann:wr0ng@/postgres": "refuses the user or the password",
            "ann@/postgres": "refuses the user or the password",
            "nobody:wr0ng@/postgres": "refuses the user or the password",
            "ann:s3cr3t@/wr0ng": "has no such database",
        }.items():
            url = postgres.url.replace("keeper@/postgres", at)
            error = refusal(DatabaseSource(Connection("DOOR", url), "people"))
            assert f"At the connection 'DOOR' the server {remedy}" in str(error), at
            assert "wr0ng" not in str(error)
            assert "s3cr3t" not in error.on_screen()
    finally:
        rules.write_text(trusting)
        postgres.run("SELECT pg_reload_conf()")


def test_a_duckdb_file_that_is_not_there_or_is_none(tmp_path):
    path = tmp_path / "records.duckdb"
    source = DatabaseSource(Connection("FILE", f"duckdb://{path}"), "records")
    assert "not there" in str(refusal(source))
    for content in (b"nonsense" * 1000, b"", b"SQLite format 3\x00" + bytes(4096)):
        path.write_bytes(content)
        assert "damaged, or no DuckDB file" in str(refusal(source))
    path.unlink()
    path.mkdir()
    assert "is a folder" in str(refusal(source))


def test_a_duckdb_file_that_another_program_writes_to(tmp_path):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    location = source.connection.location
    writing = f"import duckdb; c = duckdb.connect({location!r}); print(flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{writing}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert "close it there, and run again" in str(refusal(source))
        process.communicate(b"\n")
    assert source.count(DOMAIN, [()]).n_records == 5


def test_a_view_whose_table_is_gone(tmp_path):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    with duckdb.connect(source.connection.location) as database:
        database.execute("CREATE VIEW left_over AS FROM records")
        database.execute("DROP TABLE records")
    error = refusal(DatabaseSource(source.connection, "left_over"))
    assert "'left_over' (or, of a view, none that it reads)" in str(error)


@pytest.mark.parametrize(("package", "extra"), [("ibis", "duckdb"), ("duckdb", "duckdb")])
def test_a_missing_package_tells_what_to_install(package, extra, tmp_path, monkeypatch):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    monkeypatch.setattr(
        engine_session, "find_spec", lambda name: None if name == package else object()
    )
    assert f"rpexplore[{extra}]" in str(refusal(source))


def test_nothing_is_ever_written(postgres):
    """Not even by what stands in a view."""
    postgres.run(
        "DROP VIEW IF EXISTS sly",
        "CREATE TABLE IF NOT EXISTS written (x int)",
        "CREATE OR REPLACE FUNCTION writes() RETURNS text VOLATILE LANGUAGE sql AS "
        "$$ INSERT INTO written VALUES (1); SELECT 'm' $$",
        "CREATE VIEW sly AS SELECT writes() AS sex FROM generate_series(1, 3)",
    )
    error = refusal(DatabaseSource(postgres.connection, "sly"))
    assert "read-only" in error.private
    assert postgres.run("SELECT count(*) FROM written") == [(0,)]


# --- stopped on the way


class Cancel(Exception):
    """What the caller raises to stop."""


def stopping(error: BaseException):
    started = time.monotonic()

    def progress(doing: str, share: float) -> None:
        if time.monotonic() - started > 1:
            raise error

    return progress


SLOW = Domain((Attribute("c", Categories(("0", "1"))),))


@pytest.mark.parametrize("error", [Cancel, KeyboardInterrupt])
def test_the_caller_stops_a_server(error, postgres):
    postgres.run(
        "CREATE OR REPLACE VIEW slow AS SELECT '1' AS c FROM generate_series(1, 10000) "
        "WHERE pg_sleep(0.1)::text = ''"
    )
    with pytest.raises(error):
        DatabaseSource(postgres.connection, "slow").count(
            SLOW, [(0,)], on_progress=stopping(error())
        )
    waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rpexplore'"
    deadline = time.monotonic() + 5
    while postgres.run(waiting) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert postgres.run(waiting) == []


def test_the_caller_stops_duckdb(tmp_path):
    source = in_duckdb(pa.table({"c": ["1"]}), tmp_path / "records.duckdb")
    with duckdb.connect(source.connection.location) as database:
        database.execute(
            "CREATE OR REPLACE VIEW slow AS "
            "SELECT (range % 2)::varchar AS c FROM range(1000000000000)"
        )
    started = time.monotonic()
    with pytest.raises(Cancel):
        DatabaseSource(source.connection, "slow").count(
            SLOW, [(0,)], on_progress=stopping(Cancel())
        )
    assert time.monotonic() - started < 20


def test_the_caller_stops_spark(spark):
    spark.range(10**12).selectExpr("cast(id % 2 as string) as c").createOrReplaceTempView("slow")
    source = DatabaseSource(Connection("CLUSTER", "spark://"), "slow")
    started = time.monotonic()
    with pytest.raises(Cancel):
        source.count(SLOW, [(0,)], on_progress=stopping(Cancel()))
    assert time.monotonic() - started < 60
    assert spark.range(3).count() == 3  # the session itself goes on


def test_a_server_that_dies_on_the_way():
    with running_postgres() as server:
        server.run(
            "CREATE VIEW slow AS SELECT '1' AS c FROM generate_series(1, 10000) "
            "WHERE pg_sleep(0.1)::text = ''"
        )
        killed: list[Server] = []

        def progress(doing: str, share: float) -> None:
            if not killed:
                killed.append(server)
                time.sleep(1)  # until the statement runs
                server.stop()

        with pytest.raises(DataError, match="connection was lost") as caught:
            DatabaseSource(server.connection, "slow").count(SLOW, [(0,)], on_progress=progress)
        assert str(server.folder) not in str(caught.value)


def test_ties_in_the_order_are_broken_by_what_is_counted(tmp_path):
    """One person more changes the counts by that person's records alone, however many are tied."""
    rng = np.random.default_rng(3)
    who, sex = rng.integers(0, 3000, 20_000), rng.integers(0, 2, 20_000)
    domain = Domain((Attribute("sex", Categories(("0", "1"))),))
    rule = PersonRule("who", 1, "keep first", "year")

    def counted(name: str, more: int, order: np.ndarray) -> np.ndarray:
        records = pa.table(
            {
                "who": np.append(who[order], [9999] * more),
                "sex": np.append(sex[order], [1] * more),
                "year": np.full(20_000 + more, 2020),
            }
        )
        source = in_duckdb(records, tmp_path / name)
        return source.count(domain, [(0,)], person_rule=rule).counts((0,))

    as_they_are = np.arange(20_000)
    first = counted("first.duckdb", 0, as_they_are)
    assert counted("shuffled.duckdb", 0, rng.permutation(20_000)).tolist() == first.tolist()
    assert np.abs(counted("more.duckdb", 1, as_they_are) - first).tolist() == [0, 1]
