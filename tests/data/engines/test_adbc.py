"""Records by ADBC: of SQLite's files, and of servers, which they have to leave."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from rpexplore import Attribute, Categories, Domain
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError
from tests.data.engines.people import DOMAIN, check, expected, people

CODES = Domain((Attribute('od"d', Categories(("a", "A", "1"))),))


@pytest.fixture
def in_sqlite(tmp_path) -> Callable[..., DatabaseSource]:
    """Stores a table in a SQLite file, after which more statements run there."""
    pytest.importorskip("adbc_driver_sqlite")

    def stored(records: pa.Table, *statements: str) -> DatabaseSource:
        path = tmp_path / "records ?#%.db"
        path.unlink(missing_ok=True)
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in records.column_names)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"CREATE TABLE records ({names})")
            marks = ", ".join("?" * records.num_columns)
            rows = (tuple(row.values()) for row in records.to_pylist())
            database.executemany(f"INSERT INTO records VALUES ({marks})", rows)
            for statement in statements:
                database.execute(statement)
        return DatabaseSource(Connection("FILE", f"sqlite://{path}"), "records")

    return stored


@pytest.mark.parametrize("n_records", [0, 3001])
def test_counts_of_sqlite_are_exact(n_records, in_sqlite, tmp_path):
    records = people().slice(0, n_records)
    source = in_sqlite(records)
    check(source, records)
    assert source.columns() == tuple(records.column_names)
    assert source.home == tmp_path
    assert source.names(tmp_path)[0] == "sqlite:records ?#%.db/main.records"


def test_texts_of_a_server_are_the_same_by_adbc(postgres):
    """char(n) fills them up with blanks, and the driver knows citext as bytes."""
    pytest.importorskip("adbc_driver_postgresql")
    has_citext = postgres.run("SELECT 1 FROM pg_available_extensions WHERE name = 'citext'")
    if has_citext:
        postgres.run("CREATE EXTENSION IF NOT EXISTS citext")
    kinds = ["char(3)", "varchar(3)", *(["citext"] if has_citext else [])]
    domain = Domain(tuple(Attribute(name, Categories(("F", "M"))) for name in "abc"[: len(kinds)]))
    columns = ", ".join(f"{name} {kind}" for name, kind in zip("abc", kinds, strict=False))
    rows = ", ".join(f"({', '.join([repr(text)] * len(kinds))})" for text in "FMF")
    postgres.run(
        "DROP TABLE IF EXISTS texts",
        f"CREATE TABLE texts ({columns})",
        f"INSERT INTO texts VALUES {rows}",
    )
    for scheme in ("", "adbc+"):
        connection = Connection("SERVER", f"{scheme}{postgres.url}")
        source = DatabaseSource(connection, "texts", stream=bool(scheme))
        tables = [(index,) for index in range(len(kinds))]
        counts = source.count(domain, tables).tables
        assert [counts[table].tolist() for table in tables] == [[2, 1]] * len(kinds)
    postgres.run("DROP TABLE texts")


def test_counts_by_adbc_of_a_server_are_exact_and_have_its_account(postgres):
    pytest.importorskip("adbc_driver_postgresql")
    records = people(500)
    own = postgres.source(records, "people")
    connection = Connection("SERVER", f"adbc+{postgres.url}")
    with pytest.raises(DataError, match="leave their server; allow that"):
        DatabaseSource(connection, "people")
    source = DatabaseSource(connection, "people", stream=True)
    check(source, records)
    assert source.names(Path("/"))[0] == own.names(Path("/"))[0]
    assert "leave their server: as they are" in source.remarks()[0]
    assert "left their server to be counted: as they are" in source.streaming_note
    assert own.streaming_note == ""
    with pytest.raises(DataError, match="there is no table 'nowhere'"):
        DatabaseSource(connection, "nowhere", stream=True).columns()


def test_values_of_sqlite_are_those_of_the_codebook_alone(in_sqlite):
    source = in_sqlite(pa.table({'od"d': ["a", "A", "1", "a"]}))
    assert source.count(CODES, [(0,)]).counts((0,)).tolist() == [2, 1, 1]
    for value, said in (("s3cr3t", "not in the codebook"), (None, "a missing value")):
        with pytest.raises(DataError, match=said) as caught:
            in_sqlite(pa.table({'od"d': ["a", value]})).count(CODES, [(0,)])
        assert "s3cr3t" not in f"{caught.value} {caught.value.private}"


@pytest.mark.parametrize("value", ["1", "0.5", "x'61'"])
def test_values_of_sqlite_do_not_depend_on_others(value, in_sqlite):
    """Its driver makes texts of numbers where texts come first, and another text of 0.5."""
    source = in_sqlite(pa.table({'od"d': ["a"]}), f"INSERT INTO records VALUES ({value})")
    with pytest.raises(DataError, match="holds values of the types"):
        source.count(CODES, [(0,)])


def test_a_column_that_begins_empty_is_never_read_as_another_type(in_sqlite):
    source = in_sqlite(pa.table({'od"d': [None] * 100_001 + ["a"]}))
    with pytest.raises(DataError, match="nobody can tell its type"):
        source.count(CODES, [(0,)], missing_values={'od"d': "A"})


def test_views_of_sqlite_share_the_account_of_their_tables(in_sqlite):
    source = in_sqlite(
        people(5),
        "CREATE VIEW one AS SELECT * FROM records",
        'CREATE VIEW "Two" AS SELECT * FROM One',
    )
    of_view = DatabaseSource(source.connection, "two")
    assert set(source.names(Path("/"))) < set(of_view.names(Path("/")))
    before = source.fingerprint()
    with closing(sqlite3.connect(source.connection.location)) as database, database:
        database.execute("INSERT INTO records SELECT * FROM records")
    assert source.fingerprint() != before


def test_persons_in_sqlite(in_sqlite):
    records = people(40)
    source = in_sqlite(records)
    most = records["who"].value_counts().field("counts").to_numpy().max()
    counts = source.count(DOMAIN, [(0, 1)], person_rule=PersonRule("who", int(most)))
    assert (counts.counts((0, 1)) == expected(records, (0, 1))).all()
    with pytest.raises(DataError, match="more records than"):
        source.count(DOMAIN, [(0, 1)], person_rule=PersonRule("who", int(most) - 1))
    for nobody in ("", " ", None):
        ids = pa.array([nobody, *map(str, range(len(records) - 1))])
        source = in_sqlite(records.set_column(records.column_names.index("who"), "who", ids))
        with pytest.raises(DataError, match="of every record whose"):
            source.count(DOMAIN, [(0, 1)], person_rule=PersonRule("who", 1))
    with pytest.raises(DataError, match="no record of a person can be left out"):
        source.count(DOMAIN, [(0, 1)], person_rule=PersonRule("who", 1, "keep first", "turn"))


def test_a_file_that_is_none_or_not_there(in_sqlite, tmp_path):
    (tmp_path / "bad.db").write_bytes(b"x" * 5000)
    with pytest.raises(DataError, match="damaged, or of another kind"):
        DatabaseSource(Connection("FILE", f"sqlite://{tmp_path}/bad.db"), "t").columns()
    with pytest.raises(DataError, match="not there"):
        DatabaseSource(Connection("FILE", f"sqlite://{tmp_path}/none.db"), "t").columns()
    assert not (tmp_path / "none.db").exists()


def test_a_driver_that_is_not_installed():
    pytest.importorskip("adbc_driver_manager")
    connection = Connection("STORE", "adbc+snowflake://ann:s3cr3t@account/survey")
    source = DatabaseSource(connection, "people", stream=True)
    with pytest.raises(DataError, match="pip install adbc-driver-snowflake"):
        source.columns()
