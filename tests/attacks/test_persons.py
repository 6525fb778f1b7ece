"""One person written in two ways, nobody, and records twice: counted as one, or refused."""

import datetime
import gzip
import os
import uuid
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rpexplore import Attribute, Categories, Domain
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.data.persons import person_keys
from rpexplore.data.source import OF_NOBODY, UNCLEAR, PersonRule, Source
from rpexplore.domain.record_layout import Place, RecordLayout
from rpexplore.errors import DataError
from tests.data.engines.servers import in_duckdb

DOMAIN = Domain((Attribute("sex", Categories(("f", "m"))),))
WHO_IS_WHO, WHOSE = "leave open who is who", "does not say of every record whose"

UUID = "550e8400-e29b-41d4-a716-44665544000a"
# Two ids as texts, and what becomes of them: how many persons they are, or why they are refused.
WAYS = [
    (("7", "7.0"), 1),
    (("7", " 7"), 1),
    (("-7", "-7.00 "), 1),
    (("a b", "\u3000a b\n"), 1),
    (("\u00e9", "e\u0301"), 1),
    (("\u00e9", "e\u034f\u0301"), 1),
    (("\uac007", "\u1100\u200b\u11617"), 1),
    (("ab1", "\ufeffa\u200bb1\u00ad"), 1),
    (("7", "\u200e7.0"), 1),
    # Directions, variants, fillers, tags, controls: what programs put around texts unasked.
    (("A7", "\u202aA7\u202c"), 1),
    (("A7", "A\u034f7\u061c\u180e\ufe0f\u2069"), 1),
    (("A7", "A7\u115f\u2800\u3164\U000e0041\x08\x7f"), 1),
    (("#1a", "#1b"), 2),
    (("\uac00", "\u1100\u1161"), 1),
    (("2026-11-28", " 2026-11-28"), 1),
    # Digests and other ids that differ by capital and small letters alone.
    (("a", "A"), WHO_IS_WHO),
    *((("ab12" * n, "AB12" * n), WHO_IS_WHO) for n in (1, 10, 16)),
    (("Ab12", "aB12"), WHO_IS_WHO),
    (("Ab12", "Ab12 "), 1),
    (("Ab12", "Ab13"), 2),
    (("AB12", "AB12\u200b"), 1),
    (("AB12", "ab12."), WHO_IS_WHO),
    (("Smith", "SMITH"), WHO_IS_WHO),
    (("M\u00fcller 7", "M\u00dcLLER 7"), WHO_IS_WHO),
    (("M\u00fcller 7", "Muller 7"), 2),
    (("\u03c3\u03b17", "\u03c2\u03b17"), WHO_IS_WHO),
    (("\u00b57", "\u03bc7"), WHO_IS_WHO),
    (("\u01f07", "J\u030c7"), WHO_IS_WHO),
    (("ID7", "\u0131d7"), WHO_IS_WHO),
    (("\u0130d7", "i\u0307D7"), WHO_IS_WHO),
    (("\U00010400-7", "\U00010428-7"), WHO_IS_WHO),
    (("urn:uuid:" + UUID, "URN:UUID:" + UUID), WHO_IS_WHO),
    (("7", "70"), 2),
    (("1.1", "1.10x"), 2),
    (("12e5", "12e6"), 2),
    (("007", "008"), 2),
    (("007", "007 "), 1),
    (("12-3", "12-03"), 2),
    (("550e8400-e29b", "550e8400-E29b"), WHO_IS_WHO),
    (("0x1f", " 0x1f"), 1),
    ((UUID, f" {UUID}"), 1),
    ((UUID.upper(), f"{UUID.upper()}\n"), 1),
    ((UUID.upper(), UUID.upper().replace("A", "B")), 2),
    ((UUID, UUID.upper()), WHO_IS_WHO),
    ((f" {UUID.upper()}", UUID.replace("e", "E")), WHO_IS_WHO),
    (("0", "000"), WHO_IS_WHO),
    (("9" * 30, "9" * 29 + "8"), 2),
    (("7", "07"), WHO_IS_WHO),
    (("+7", "7"), WHO_IS_WHO),
    (("7", "\uff17"), WHO_IS_WHO),
    (("12", "\u0661\u0662"), WHO_IS_WHO),
    (("-7", "\u22127"), WHO_IS_WHO),
    (("12-34", "12\u201334"), WHO_IS_WHO),
    (("1000000", "1,000,000"), WHO_IS_WHO),
    (("1000", "1\u202f000"), WHO_IS_WHO),
    (("1.5", "1,50"), WHO_IS_WHO),
    (("A7 B", "A7\u00a0 B"), WHO_IS_WHO),
    (("A 7", "A  7"), WHO_IS_WHO),
    (("A 7", "A\u20027"), WHO_IS_WHO),
    (("A 7", "A 8"), 2),
    # What is put behind an id, or between ids; in front of it a dash is a minus sign.
    *((("7", f"7{sign}"), WHO_IS_WHO) for sign in ".!?/|~_-\\\u2013"),
    *((("A7", f"A7{sign}"), WHO_IS_WHO) for sign in ".,;:!?/|~_-"),
    *((("A7", f"{sign}A7"), WHO_IS_WHO) for sign in "/|~_"),
    (("Smith", "Smith."), WHO_IS_WHO),
    (("7", "-7"), 2),
    (("A7-", "A8-"), 2),
    # Signs that stand for others, whichever else there are.
    *((("A7", sign), WHO_IS_WHO) for sign in ("\uff21\uff17", "\uff217", "\U0001d4007", "A\u00b2")),
    *((("fi7", sign), WHO_IS_WHO) for sign in ("\ufb017", "\u2466", "7\u20e3", "\u2163", "\u00bd")),
    *((("a7", sign), WHO_IS_WHO) for sign in ("\u00aa7", "\u02b07", "\u1d437", "\U0001f1307")),
    *((("A7/1", sign), WHO_IS_WHO) for sign in ("A7\uff0f1", "A7\uff3f1", "A7\uff061", "\uff767")),
    *((("kg7", sign), WHO_IS_WHO) for sign in ("\u338f7", "\u21217", "\u01c67", "\u017f7")),
    *((("A7", f"A7{sign}"), WHO_IS_WHO) for sign in "\u2026\u3002\uff61\u060c\u0964\u00b7\u2022"),
    # Letters that nobody writes in another way.
    (("\u0e04\u0e331", "\u0e04\u0e332"), 2),
    (("\u3131-1", "\u3131-2"), 2),
    # A word in front of a number is part of the id.
    (("7", "No. 7"), 2),
    (("12-34", "12\u204334"), WHO_IS_WHO),
    (("12-34", "12\u2e3a34"), WHO_IS_WHO),
    (("A7", '="A7"'), WHO_IS_WHO),
    ((f"{{{UUID}}}", f"{{{UUID.upper()}}}"), WHO_IS_WHO),
    ((UUID.upper(), f"{{{UUID}}}"), WHO_IS_WHO),
    (("7", '="7"'), WHO_IS_WHO),
    (("1,001", "1,002"), 2),
    # A comma in front of three digits is a decimal one where 7 is written 7,000 as well.
    (("7", "7,000"), WHO_IS_WHO),
    (("1.23", "1,230"), WHO_IS_WHO),
    (("1,000", "1,001"), WHO_IS_WHO),
    (("1234", "1.234,00"), WHO_IS_WHO),
    (("1234", "1.234,000"), WHO_IS_WHO),
    (("1234567", "1.234.567,0"), WHO_IS_WHO),
    (("1234", "1234,000"), WHO_IS_WHO),
    (("1234", "1 234,000"), WHO_IS_WHO),
    (("0.5", "0,500"), WHO_IS_WHO),
    (("1.234,00", "1.235,00"), 2),
    (("\u0661", "\u0662"), 2),
    (("-0", "0"), WHO_IS_WHO),
    (("007", "7.0"), WHO_IS_WHO),
    (("1.5", "1.50"), WHO_IS_WHO),
    (("0" + "9" * 30, "9" * 30), WHO_IS_WHO),
    (("2026-11-28", "2026-11-28 00:00:00"), WHO_IS_WHO),
    (("2026-11-28T10:00:00Z", "2026-11-28 11:00:00+01:00"), WHO_IS_WHO),
    (("1e+16", "10000000000000000"), WHO_IS_WHO),
    (("1.0E5", "100000"), WHO_IS_WHO),
    (("12e5", "1200000"), WHO_IS_WHO),
    (("7E00", "7"), WHO_IS_WHO),
    (("7.e0", "8"), WHO_IS_WHO),
    ((".5", "0.5"), WHO_IS_WHO),
    (("2026-11-28T1015Z", "a"), WHO_IS_WHO),
    (("a", ""), WHOSE),
    (("a", " \t"), WHOSE),
    (("a", "NA"), WHOSE),
    (("a", "nan"), WHOSE),
    (("a", r"\N"), WHOSE),
    (("a", "#N/A"), WHOSE),
    (("a", "n/a "), WHOSE),
    (("a", "NaT"), WHOSE),
    (("a", "NONE"), WHOSE),
    *((("a", nobody), WHOSE) for nobody in ("\u200b", "\ufeff ", "<NULL>", "[null]", "-1.#IND")),
    *((("a", f"#{error}"), WHOSE) for error in ("VALUE!", "REF!", "NAME?", "DIV/0!", "NUM!")),
    # Thousands as in Germany and India; 7.000 may be seven or seven thousand.
    (("1234567", "1.234.567"), WHO_IS_WHO),
    (("1234567890", "1.234.567.890"), WHO_IS_WHO),
    (("1.234.567", "1.234.568"), 2),
    (("1234567", "12,34,567"), WHO_IS_WHO),
    (("7", "7.000"), WHO_IS_WHO),
    # One number or another, by what the point is: one canonical form, or none.
    (("1000", "1.000"), WHO_IS_WHO),
    (("1234", "1.234"), WHO_IS_WHO),
    (("1,234", "1.234"), WHO_IS_WHO),
    (("1230", "1.230"), WHO_IS_WHO),
    (("1.23", "1.230"), WHO_IS_WHO),
    (("1.234", "1.2340"), WHO_IS_WHO),
    (("101.001", "101.002"), 2),
    (("101.001", " 101.001"), 1),
    (("7.000", " 7.000"), WHO_IS_WHO),
    # Marks of other scripts, and exponents of Fortran.
    (("1000", "1\u066c000"), WHO_IS_WHO),
    (("1000", "\u0661\u066c\u0660\u0660\u0660"), WHO_IS_WHO),
    (("1.5", "1\u066b5"), WHO_IS_WHO),
    (("1.5", "1\uff0e5"), WHO_IS_WHO),
    (("1.2D+17", "a"), WHO_IS_WHO),
    ((".5d17", "a"), WHO_IS_WHO),
    (("1D+17", "a"), WHO_IS_WHO),
    (("12d5", "1200000"), WHO_IS_WHO),
    (("12D-3", "12D-4"), 2),
    (("12D", "12D "), 1),
    # UUIDs without dashes, and named as such.
    ((UUID, UUID.replace("-", "")), WHO_IS_WHO),
    ((UUID.replace("-", ""), UUID.replace("-", "").upper()), WHO_IS_WHO),
    ((UUID.replace("-", ""), f" {UUID.replace('-', '')}"), 1),
    ((UUID.replace("-", ""), UUID.replace("-", "").replace("a", "b")), 2),
    ((UUID, f"urn:uuid:{UUID}"), WHO_IS_WHO),
    ((UUID, f"{{{UUID.replace('-', '')}}}"), WHO_IS_WHO),
    (("1" * 32, "1" * 31 + "2"), 2),
    (("0" + "1" * 31, "1" * 31), WHO_IS_WHO),
    (("1234", "1234.000"), 1),
    (("7", "7.000000"), 1),
    # Rounded with a decimal comma, and errors of spreadsheets in other languages and versions.
    (("1,23457E+12", "a"), WHO_IS_WHO),
    *(
        (("a", f"#{error}"), WHOSE)
        for error in ("NV", "N/D", "WERT!", "SPILL!", "\u00a1VALOR!", "##")
    ),
    *(
        (("a", nobody), WHOSE)
        for nobody in (".a", "Err:502", "missing", "n.a.", "-nan(ind)", "inf")
    ),
    # Quotation marks, brackets and number signs around an id, and what separates ids behind it.
    *((("7", around), WHO_IS_WHO) for around in ("'7", '"7"', "#7", "(7)", "[ 7 ]", "*7", "7;")),
    *((("A7", around), WHO_IS_WHO) for around in ("'A7", "\u201eA7\u201c", "<A7>", "`A7`", "A7,")),
    (("\u21167", "7"), WHO_IS_WHO),
    ((f"({UUID})", UUID.upper()), WHO_IS_WHO),
    (("#7", "#8"), 2),
    (("#7", "#7 "), 1),
    (("(1)(2)", "(1)(3)"), 2),
    *((("a", nobody), WHOSE) for nobody in ('""', "'NULL'", "(NA)", "[]", '"#NV"')),
    # Signs that stand for no answer, alone and around a word for that.
    *(
        (("a", nobody), WHOSE)
        for nobody in (
            "-",
            "?",
            "--",
            "*",
            "%",
            "\u2013",
            "\u2205",
            "\ufffd",
            "*NULL*",
            "-NA-",
            "NULL;",
        )
    ),
    *(
        (("a", nobody), WHOSE)
        for nobody in ("(blank)", "NA_character_", "__HIVE_DEFAULT_PARTITION__", "#\u041d/\u0414")
    ),
    (("-a", "\u3007"), 2),
    (("NA-1", "NA-2"), 2),
    (("NAN A", "nan b"), 2),
    (("blank", "empty"), 2),
]


def check(source: Source, expected: int | str) -> None:
    """That two records, "f" and then "m", are of so many persons, or are refused."""
    by_day = PersonRule("id", 1, "keep first", "day")
    if isinstance(expected, str):
        for rule in (by_day, PersonRule("id", 1), PersonRule("id", 9)):
            with pytest.raises(DataError, match=expected):
                source.count(DOMAIN, [(0,)], person_rule=rule)
        return
    counts = source.count(DOMAIN, [(0,)], person_rule=by_day)
    assert counts.counts((0,)).tolist() == ([1, 0] if expected == 1 else [1, 1])
    if expected == 1:
        with pytest.raises(DataError, match="more records than the 1"):
            source.count(DOMAIN, [(0,)], person_rule=PersonRule("id", 1))


def records(ids: pa.Array) -> pa.Table:
    return pa.table({"id": ids, "sex": ["f", "m"], "day": [1, 2]})


def parts(folder: Path, *tables: pa.Table) -> FileSource:
    """Each of these tables as a Parquet file of a folder."""
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return FileSource(folder)


def written(kind: str, table: pa.Table, folder: Path, request) -> Source:
    match kind:
        case "csv":
            folder.mkdir()
            for number in range(2):
                pyarrow.csv.write_csv(table.slice(number, 1), folder / f"{number}.csv")
            return FileSource(folder)
        case "parquet":
            return parts(folder, table.slice(0, 1), table.slice(1))
        case "arrow":
            return FrameSource(table, name="x")
        case "pandas":
            return FrameSource(table.to_pandas(), name="x")
        case "polars":
            return FrameSource(pl.from_arrow(table), name="x")  # pyright: ignore[reportArgumentType]
        case "duckdb":
            return in_duckdb(table, folder.with_suffix(".duckdb"))
        case "sas":
            import pyreadstat

            path = folder.with_suffix(".xpt")
            pyreadstat.write_xport(table.to_pandas(), path, file_format_version=8)
            return FileSource(path)
        case "fixed width":
            rows = table.to_pylist()
            folder.with_suffix(".dat").write_text(
                "".join(f"{row['id']:<80}{row['sex']}{row['day']}\n" for row in rows)
            )
            places = (Place(0, 80), Place(80, 81), Place(81, 82))
            layout = RecordLayout(("id", "sex", "day"), places, 82)
            return FileSource(folder.with_suffix(".dat"), layout=layout)
    return request.getfixturevalue("postgres").source(table, "two")


def test_two_texts_are_of_one_person_or_two_or_refused():
    """All ways at once, as a query for each takes a tenth of a second."""
    keys = person_keys(pa.array([text for texts, _ in WAYS for text in texts], pa.string()))
    assert keys.high is not None
    assert keys.writing is not None
    ids = zip(zip(keys.low, keys.high, strict=True), keys.writing, keys.state, strict=True)
    found = []
    for (one, writing, state), (other, other_writing, other_state) in zip(ids, ids, strict=True):
        states = {state, other_state}
        if OF_NOBODY in states:
            found.append(WHOSE)
        elif UNCLEAR in states or (one == other and writing != other_writing):
            found.append(WHO_IS_WHO)
        else:
            found.append(1 if one == other else 2)
    texts = [texts for texts, _ in WAYS]
    assert list(zip(texts, found, strict=True)) == WAYS


nightly = partial(pytest.param, marks=pytest.mark.nightly)
IN_ASCII = [way for way in WAYS if all(" " <= sign <= "~" for sign in "".join(way[0]))]
LATER = ("arrow", "csv", "parquet", "pandas", "polars", "duckdb", "postgresql")


@pytest.mark.parametrize(
    ("kind", "ways"),
    [
        # All but engines have the function above decide, so that by day some ways are enough.
        ("arrow", WAYS[::10]),
        ("csv", WAYS[4::18]),
        ("parquet", WAYS[1::24]),
        ("pandas", WAYS[2::24]),
        ("polars", WAYS[3::24]),
        ("duckdb", WAYS[::48]),
        ("postgresql", WAYS[27::48]),
        ("fixed width", IN_ASCII[::24]),
        *(nightly(kind, WAYS) for kind in LATER),
        nightly("fixed width", IN_ASCII),
        nightly("sas", WAYS[::6]),
    ],
)
def test_a_person_is_one_however_written_or_refused(kind, ways, tmp_path, request):
    for number, (ids, expected) in enumerate(ways):
        table = records(pa.array(ids, pa.string()))
        check(written(kind, table, tmp_path / str(number), request), expected)


DAY, NOON = datetime.date(2026, 11, 28), datetime.datetime(2026, 11, 28, 12)  # noqa: DTZ001 - Arrow gives it a zone
TYPES = [
    ((7, pa.int64()), (7.0, pa.float64()), 1),
    ((7, pa.uint8()), (7.0, pa.float32()), 1),
    ((7, pa.int64()), ("7.0", pa.string()), 1),
    ((7, pa.int64()), (Decimal("7.00"), pa.decimal128(10, 2)), 1),
    ((7, pa.int64()), (Decimal("7.000"), pa.decimal128(10, 3)), 1),
    ((Decimal("7"), pa.decimal128(10, 0)), (7.0, pa.float16()), 1),
    ((2**63, pa.uint64()), (str(2**63), pa.string()), 1),
    ((DAY, pa.date32()), ("2026-11-28", pa.large_string()), 1),
    ((DAY, pa.date32()), (DAY, pa.date64()), 1),
    (("e\u0301", pa.string()), ("\u00e9", pa.dictionary(pa.int32(), pa.string())), 1),
    ((uuid.UUID(UUID), pa.uuid()), (UUID, pa.string()), 1),
    ((uuid.UUID(UUID), pa.uuid()), (UUID.upper(), pa.string()), WHO_IS_WHO),
    ((7, pa.int64()), (8.0, pa.float64()), 2),
    ((Decimal("7.5"), pa.decimal128(10, 1)), (Decimal("7.50"), pa.decimal128(10, 2)), WHO_IS_WHO),
    (("07", pa.string()), (7, pa.int64()), WHO_IS_WHO),
    ((DAY, pa.date32()), (NOON, pa.timestamp("s")), WHO_IS_WHO),
    ((NOON, pa.timestamp("us", "Europe/Paris")), (NOON, pa.timestamp("ns")), WHO_IS_WHO),
    ((NOON.time(), pa.time64("us")), (NOON.time(), pa.time64("us")), WHO_IS_WHO),
    ((2**53, pa.int64()), (2.0**53, pa.float64()), WHO_IS_WHO),
    ((2**24, pa.int64()), (2.0**24, pa.float32()), WHO_IS_WHO),
    ((1.5, pa.float64()), ("1.5", pa.string()), WHO_IS_WHO),
    ((1, pa.int64()), (float("inf"), pa.float64()), WHO_IS_WHO),
    ((1, pa.int64()), (True, pa.bool_()), WHO_IS_WHO),
    (("true", pa.string()), (True, pa.bool_()), WHO_IS_WHO),
    ((1, pa.int64()), (None, pa.bool_()), WHOSE),
    ((1, pa.int64()), (float("nan"), pa.float64()), WHOSE),
    ((1, pa.int64()), (None, pa.timestamp("s")), WHOSE),
]


@pytest.mark.parametrize(("one", "other", "expected"), TYPES)
def test_a_person_is_one_whatever_the_types_of_parts(one, other, expected, tmp_path):
    tables = [records(pa.array([value] * 2, kind)) for value, kind in (one, other)]
    check(parts(tmp_path / "parts", tables[0].slice(0, 1), tables[1].slice(1)), expected)


@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_a_boolean_is_no_id_to_an_engine(kind, tmp_path, request):
    table = records(pa.array([True, False]))
    check(written(kind, table, tmp_path / "booleans", request), WHO_IS_WHO)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "duckdb"])
def test_ids_with_nul_and_uuids_in_bytes_are_as_their_texts(kind, tmp_path, request):
    """Also where a column begins later in memory. A text of PostgreSQL holds no NUL."""
    ids = [None, uuid.UUID(UUID), uuid.UUID(UUID.replace("55", "56"))]
    for number, (column, expected) in enumerate(
        [
            (pa.array(["A7", "A\0007\0"]), 1),
            (pa.array(["7", "\0007"]), 1),
            (pa.array(ids, pa.uuid()).slice(1), 2),
            (pa.array(ids[:2], pa.uuid()), WHOSE),
        ]
    ):
        check(written(kind, records(column), tmp_path / str(number), request), expected)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([7.0, 8.0], 2),
        ([1.5, 2.5], WHO_IS_WHO),
        ([7.0, float("nan")], WHOSE),
        ([2.0**53, 1.0], WHO_IS_WHO),
        ([float("-inf"), 1.0], WHO_IS_WHO),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "duckdb", "postgresql"])
def test_floats_are_ids_where_they_are_whole_numbers(kind, ids, expected, tmp_path, request):
    check(written(kind, records(pa.array(ids)), tmp_path / "of", request), expected)


@pytest.mark.parametrize("kind", ["duckdb", "postgresql", nightly("parquet"), nightly("arrow")])
@pytest.mark.parametrize("number", [0.1, nightly(1e300), nightly(2.0**53), nightly(float("inf"))])
def test_numbers_that_are_no_ids_do_not_hide_behind_person_0(kind, number, tmp_path, request):
    """A number of the engine's own stands for each, and the first record is that of a person."""
    for ids in (pa.array([0.0, number]), pa.array([0.0, number], pa.float32())):
        check(written(kind, records(ids), tmp_path / str(ids.type), request), WHO_IS_WHO)


@pytest.mark.parametrize("kind", ["duckdb", "a view", "postgresql", "ADBC"])
def test_two_ids_that_are_one_to_the_database_are_refused(kind, tmp_path, request):
    """To us they are two, and not by their capitals alone."""
    table = records(pa.array(["jose 7", "jos\u00e9 7"]))
    if kind in ("duckdb", "a view"):
        source = in_duckdb(table, tmp_path / "x.duckdb")
        check(source, 2)
        with duckdb.connect(tmp_path / "x.duckdb") as database:
            database.execute("CREATE TABLE noted AS SELECT * FROM records")
            database.execute("ALTER TABLE noted ALTER id TYPE text COLLATE noaccent")
            database.execute("CREATE VIEW seen AS FROM noted")
        source = DatabaseSource(source.connection, "seen" if kind == "a view" else "noted")
    else:
        postgres = request.getfixturevalue("postgres")
        source = postgres.source(table, "noted")
        postgres.run(
            "DROP COLLATION IF EXISTS any_accent",
            "CREATE COLLATION any_accent (provider = icu, locale = 'und-u-ks-level1', "
            "deterministic = false)",
            "ALTER TABLE noted ALTER id TYPE text COLLATE any_accent",
        )
        if kind == "ADBC":
            pytest.importorskip("adbc_driver_postgresql")
            connection = Connection("SERVER", f"adbc+{postgres.url}")
            source = DatabaseSource(connection, "noted", stream=True)
    for rule in (PersonRule("id", 1), PersonRule("id", 9)):
        with pytest.raises(DataError, match=WHO_IS_WHO):
            source.count(DOMAIN, [(0,)], person_rule=rule)


def test_days_before_the_first_year_and_bits_of_postgresql(postgres):
    """It writes both years as 0044, and bits with a length of their type are bits as well."""
    postgres.run(
        "DROP TABLE IF EXISTS days, bits, varying",
        "CREATE TABLE days AS SELECT * FROM (VALUES (date '0044-03-15 BC', 'f', 1), "
        "(date '0044-03-15', 'm', 2)) AS given (id, sex, day)",
        "CREATE TABLE bits AS SELECT id::bit(3), sex, day FROM "
        "(VALUES ('001', 'f', 1), ('011', 'm', 2)) AS given (id, sex, day)",
        "CREATE TABLE varying AS SELECT id::varbit(3), sex, day FROM bits",
    )
    check(DatabaseSource(postgres.connection, "days"), 2)
    for table in ("bits", "varying"):
        check(DatabaseSource(postgres.connection, table), "cannot be counted")


def test_two_people_that_may_be_one_are_refused_and_not_taken_for_one(tmp_path):
    """Taken for one, who leaves would make room for the other: a change of two records."""
    ids = pa.array(["1.1", "1.10"])  # the first and the tenth of a household
    check(parts(tmp_path / "parts", records(ids)), WHO_IS_WHO)


# ---- Records twice.


PEOPLE = "sex\nf\nm\nm\n"


def gz(text: str) -> bytes:
    return gzip.compress(text.encode())


@pytest.mark.parametrize(
    "files",
    [
        {"people.csv": PEOPLE, "people.csv.gz": gz(PEOPLE)},
        {"people.csv": PEOPLE, "people.csv.gz": gz("sex\nf\n")},
        {"people.csv": PEOPLE, "people.CSV": "sex\nm\n"},
        {"a.csv": PEOPLE, "b.csv.gz": gz(PEOPLE)},
        {"people.csv": PEOPLE, "people (1).csv": PEOPLE},
        {"people.csv": PEOPLE, "old/people.csv": PEOPLE},
        {"year=1/people.csv": PEOPLE, "year=1/old/people.csv": PEOPLE},
        {"a.csv": PEOPLE + "f\n" * 99_999, "b.csv": PEOPLE + "f\n" * 99_999},
    ],
)
def test_records_twice_in_a_folder_are_refused_by_name(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="the same records twice") as caught:
        FileSource(tmp_path).count(DOMAIN, [(0,)])
    told = f"{caught.value} {caught.value.private}"  # a value in a folder's name is private
    assert all(name in told for name in files)


def test_other_names_of_a_file_are_the_same_records(tmp_path):
    for folder, link in (("hard", os.link), ("soft", os.symlink)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text(PEOPLE)
        link(tmp_path / folder / "a.csv", tmp_path / folder / "b.csv")
        with pytest.raises(DataError, match=r"twice|neither a file nor"):
            FileSource(tmp_path / folder).count(DOMAIN, [(0,)])


def test_the_same_records_in_parquet_are_refused(tmp_path):
    frame = pd.DataFrame({"sex": ["f", "m"]})
    for name in ("a.parquet", "b.pq"):
        frame.to_parquet(tmp_path / name)
    with pytest.raises(DataError, match=r"twice, in 'a.parquet' and 'b.pq'"):
        FileSource(tmp_path).count(DOMAIN, [(0,)])
    (tmp_path / "b.pq").unlink()
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match="records of two kinds"):
        FileSource(tmp_path).count(DOMAIN, [(0,)])


def test_other_records_that_look_alike_are_counted(tmp_path):
    """Parts without records, those of other keys, and those that differ at their ends alone."""
    for name, text in {
        "year=1/a.csv": "sex\n",
        "year=1/b.csv": "sex\n",
        "year=1/c.csv": PEOPLE,
        "year=2/c.csv": PEOPLE,
        "year=2/d.csv": "sex\n" + "f\n" * 50_000 + "m\n",
        "year=2/e.csv": "sex\n" + "f\n" * 50_000 + "f\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("e.parquet", "f.parquet"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        pq.write_table(pa.table({"sex": pa.array([], pa.string())}), tmp_path / "empty" / name)
    assert FileSource(tmp_path / "empty").count(DOMAIN, [(0,)]).n_records == 0
    (tmp_path / "empty" / "e.parquet").unlink()
    (tmp_path / "empty" / "f.parquet").unlink()
    (tmp_path / "empty").rmdir()
    assert FileSource(tmp_path).count(DOMAIN, [(0,)]).counts((0,)).tolist() == [100_003, 5]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("second", ["a copy", "a link", "other records", "no records", "a list"])
def test_a_view_over_files_that_hold_the_same_records_is_refused(second, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for name in "ab":
        text = "sex\n" if second == "no records" else "sex\nf\nm\n"
        (files / f"{name}.csv").write_text(text)
    if second == "a link":
        (files / "b.csv").unlink()
        (files / "b.csv").symlink_to(files / "a.csv")
    if second == "other records":
        (files / "b.csv").write_text("sex\nm\nf\n")
    source = in_duckdb(pa.table({"sex": ["f"]}), tmp_path / "x.duckdb")
    read = f"['{files}/a.csv', '{files}/b.csv']" if second == "a list" else f"'{files}/*.csv'"
    with duckdb.connect(tmp_path / "x.duckdb") as database:
        database.execute(f"CREATE VIEW v AS FROM read_csv({read}, header = true)")
    view = DatabaseSource(source.connection, "v")
    if second in ("a copy", "a link"):
        with pytest.raises(DataError, match=r"view 'v' seems to read the same records twice"):
            view.fingerprint()
    else:
        view.fingerprint()


@pytest.mark.usefixtures("in_this_process")
def test_ids_that_a_file_declares_missing_are_nobodys(tmp_path):
    import pyreadstat

    ids = {"number": [9999.0, 9999.0, 7.0], "text": ["XX", "XX", "a1"]}
    path = tmp_path / "records.sav"
    missing = {"number": [9999], "text": ["XX"]}
    pyreadstat.write_sav(
        pd.DataFrame({**ids, "sex": ["f", "m", "m"]}), path, missing_ranges=missing
    )
    for rule in (PersonRule("number", 1, "keep first"), PersonRule("text", 2)):
        with pytest.raises(DataError, match=WHOSE):
            FileSource(path).count(DOMAIN, [(0,)], person_rule=rule)


def with_short_numbers(path: Path, n_bytes: int) -> None:
    """Cut the numbers of the first of two variables of a file of SAS to so many bytes.

    https://www.loc.gov/preservation/digital/formats/fdd/fdd000466.shtml: 140 bytes a variable, its
    length at byte 4 and its place in a record at byte 84; then records of 8 + 8 bytes.
    """
    content = bytearray(path.read_bytes())
    first = content.index(b"NAMESTR HEADER") + 60
    content[first + 4 : first + 6] = n_bytes.to_bytes(2, "big")
    content[first + 140 + 84 : first + 140 + 88] = n_bytes.to_bytes(4, "big")
    start = content.index(b"OBS     HEADER") + 60
    rows = [content[at : at + 16] for at in range(start, len(content) - 15, 16)]
    short = b"".join(row[:n_bytes] + row[8:] for row in rows if row.strip())
    path.write_bytes(bytes(content[:start]) + short.ljust(-(-len(short) // 80) * 80))


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("n_bytes", "ids", "are_exact"),
    [(8, (8193, 8194), True), (3, (8190, 8191), True), (3, (8190, 65_537), False)],
)
def test_ids_that_sas_may_have_cut_off_are_refused(tmp_path, n_bytes, ids, are_exact):
    """In 3 bytes, 8193 is stored as 8192: two persons are one, and one of them is not counted."""
    import pyreadstat

    path = tmp_path / "records.xpt"
    frame = pd.DataFrame({"id": ids, "sex": [1.0, 2.0]}, dtype=float)
    pyreadstat.write_xport(frame, path, file_format_version=5)
    if n_bytes < 8:
        with_short_numbers(path, n_bytes)
    domain = Domain((Attribute("sex", Categories(("1", "2"))),))
    rule = PersonRule("id", 1, "keep first")

    def counts() -> list[int]:
        return FileSource(path).count(domain, [(0,)], person_rule=rule).counts((0,)).tolist()

    if are_exact:
        assert counts() == [1, 1]
    else:
        with pytest.raises(DataError, match=WHO_IS_WHO):
            counts()


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("ids", [(2.0**53 + 2, 7.0), (1.5, 7.0)])
def test_numbers_of_stata_are_no_exact_ids_by_a_label_of_what_is_missing(tmp_path, ids):
    """With one the column is read as texts, of which nobody knows that they were rounded."""
    import pyreadstat

    path = tmp_path / "records.dta"
    frame = pd.DataFrame({"id": ids, "sex": ["f", "m"]})
    labels = {"id": {"a": "refused"}}
    pyreadstat.write_dta(
        frame, path, variable_value_labels=labels, missing_user_values={"id": ["a"]}
    )
    with pytest.raises(DataError, match=WHO_IS_WHO):
        FileSource(path).count(DOMAIN, [(0,)], person_rule=PersonRule("id", 1, "keep first"))
