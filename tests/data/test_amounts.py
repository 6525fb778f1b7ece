"""Amounts: every source sums them exactly, as Python's decimals do."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from math import floor, gcd
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.data import amounts, counting
from rpexplore.data.coding import Takers
from rpexplore.data.engines import spark_worker
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.packing import Layout
from rpexplore.data.engines.session import Request, agree
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.data.source import PersonRule, Source
from rpexplore.domain.amounts import Amounts
from rpexplore.errors import DataError
from tests.data.engines.servers import WITH_SPARK, in_duckdb, in_spark

TEXTS = [
    "0", "-0", "1", "+5", " 7 ", "1e3", "1E-2", ".5", "5.", "0.5", "1.5", "2.5", "-0.5", "-1.5",
    "0.125", "0.135", "0.145", "0.375", "-0.125", "-0.135", "0.1250000000000000000000001", "0.005",
    "0.12499999999999999999999999", "2.4999999999999999999999", "2.50000000000000000000000", "12.5",
    "0.0000005", "0.0000015", "0.0000025", "-0.0000025", "0.00000250000000000000000000001", "1e-9",
    "999999.4999999999999999999", "1e300", "-1e300", "1e-400", "1e400", "9" * 60, "-9", "-9.0",
    "-90e-1", "9007199254740993", "549755813887.5", "549755813886.5", "-549755813887.5", "10.255",
    "200000", "200000.4", "200001", "-10.255", "", " ", "ref", "Ref", "nan", "inf", "-Infinity",
    "abc", "1,000", "0x1", "1_0", "١", "2024-01-31", "--1", "1e", ".",
    "3" + "0" * 30 + "e-30", None,
]  # fmt: skip
FLOATS = [
    0.0, -0.0, 1.0, 0.5, 1.5, 2.5, -0.5, -2.5, 0.125, 0.135, 0.145, 0.375, 0.35, 0.15, 0.25, 0.45,
    -0.125, 1.005, 2.675, 1e-7, 5e-7, 1.5e-6, 2.5e-6, -2.5e-6, 5e-324, 0.49999999999999994, 1e300,
    -1e300, 549755813887.5, 549755813886.5, 2.0**53 + 2, -(2.0**62), -9.0, 199999.99999999997,
    200000.4, 999.9949999, 999.995, 1000.495, 8.545, 8.555, 0.049999999999999996, np.inf, -np.inf,
    -0.049999999999999996, np.nan, None,
]  # fmt: skip
WHOLE = [0, 1, -1, 7, -9, -10, -11, 200_000, 200_001, 2**39, 2**53 + 1, 2**63 - 1, -(2**63), None]
CENTS = ["0.00", "0.12", "0.50", "1.50", "2.50", "-2.50", "-9.00", "-10.25", "99999999.99", None]
LONG = ["0.125000000", "0.135000000", "0.134999999", "1" + "0" * 28, "-0.000002500", "7.5", None]
N_ROWS = len(TEXTS)
COLUMNS = {
    "text": pa.array(TEXTS, pa.string()),
    "double": pa.array(FLOATS, pa.float64()),
    "single": pa.array(FLOATS, pa.float64()).cast(pa.float32(), safe=False),
    "whole": pa.array(WHOLE, pa.int64()),
    "cents": pa.array(CENTS).cast(pa.decimal128(10, 2)),
    "long": pa.array(LONG).cast(pa.decimal128(38, 9)),
    "flag": pa.array([True, False, None]),
    "day": pa.array([0, 19_000, None], pa.date32()),
}
REST = ("rest", "rest")
AMOUNTS = {
    "units": Amounts(0, 200_000, missing=(("-9", "refused"), REST)),
    "cents": Amounts("-10.25", "1000.5", 2, missing=(("", "empty"), ("ref", "refused"), REST)),
    "tenths": Amounts(-100, 100, 1, missing=(REST,)),
    "fine": Amounts("-0.000002", "0.000003", 6, missing=(REST,)),
    "wide": Amounts(-(2**39), 2**39, missing=(("7", "seven"), ("0.35", "some"), REST)),
    "below": Amounts(-20, -3, missing=(REST,)),
    # Products of up to 2^40 · 40,000 steps, in units of 1,000 or 8, with halves.
    "weight": Amounts("0.5", "40.5", 3, missing=(REST,), are_weights=True),
}


def table(names=tuple(COLUMNS)) -> pa.Table:
    """Every column once for each way to read it, with the number of the row and a group."""
    columns: dict[str, pa.Array] = {
        "row": pa.array(range(N_ROWS)),
        "group": pa.array(["a", "b"] * (N_ROWS // 2) + ["a"] * (N_ROWS % 2)),
    }
    for name in names:
        filled = pa.concat_arrays(
            [COLUMNS[name], pa.nulls(N_ROWS - len(COLUMNS[name]), COLUMNS[name].type)]
        )
        columns |= {f"{name}_{way}": filled for way in AMOUNTS if way != "weight"}
    columns["by_weight"] = pa.array([None, *(row * 0.375 for row in range(N_ROWS - 1))])
    return pa.table(columns)


def domain_of(records: pa.Table) -> Domain:
    attributes = [
        Attribute("row", Integers(0, N_ROWS - 1)),
        Attribute("group", Categories(("a", "b"))),
    ]
    attributes += [
        Attribute(name, AMOUNTS[name.partition("_")[2]]) for name in records.column_names[2:]
    ]
    return Domain(tuple(attributes))


def takers(domain: Domain) -> dict[str, dict[str, str]]:
    return {option: {"*": "rest"} for option in ("unknown_values", "missing_values")}


def expected_cells(value: object, amounts: Amounts, is_single: bool) -> list[int]:
    """How often one record counts in each cell, by decimals."""
    cells = [0] * amounts.size
    rest = amounts.missing_codes["rest"]
    number = None
    code = rest
    if value is None or (isinstance(value, float) and value != value):
        code = amounts.missing_codes.get("", rest)
    elif isinstance(value, str):
        text = value.strip(" ")
        code = amounts.missing_codes.get(text, rest)
        pattern = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
        if re.fullmatch(pattern, text) and abs(float(text)) < np.inf:
            number = Decimal(text)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        number = Decimal(value) if abs(value) < np.inf else None
    if number is not None:
        for listed, cell in amounts.missing_codes.items():
            if re.fullmatch(r"[-0-9.e]+", listed):
                stored = float(np.float32(listed)) if is_single else listed
                if float(number) == float(stored):
                    cells[cell] = amounts.range_in_steps
                    return cells
        with localcontext() as context:
            context.prec = 1000
            place = Decimal(1).scaleb(-amounts.decimals)
            steps = int(number.quantize(place, ROUND_HALF_EVEN).scaleb(amounts.decimals))
        steps = min(max(steps, amounts.lowest), amounts.highest)
        cells[0], cells[1] = amounts.highest - steps, steps - amounts.lowest
        return cells
    cells[code] = amounts.range_in_steps
    return cells


def rounded_products(of_amounts: list[int], of_weights: list[int], amounts: Amounts) -> np.ndarray:
    """How often one record counts in cells of both, of which there are four and missing ones."""
    unit = amounts.product_unit(AMOUNTS["weight"])
    exact = [[Fraction(one * other, unit) for other in of_weights] for one in of_amounts]
    both = floor(exact[1][1] + Fraction(1, 2))  # high and high, halves up
    shift = both - exact[1][1]
    exact[1][1], exact[0][0] = exact[1][1] + shift, exact[0][0] + shift
    exact[0][1], exact[1][0] = exact[0][1] - shift, exact[1][0] - shift
    assert all(one.denominator == 1 and one >= 0 for row in exact for one in row)
    return np.array(exact, dtype=np.int64)


def check(source: Source, records: pa.Table) -> None:
    domain = domain_of(records)
    indices = range(2, len(domain))
    tables = [*((0, index) for index in indices), *((1, index) for index in indices), (0, 1)]
    weight = len(domain) - 1
    weighted = [index for index in indices if domain.names[index].endswith(("_units", "_wide"))]
    tables += [(0, index, weight) for index in weighted]
    counts = source.count(domain, tables, **takers(domain))
    assert counts.n_records == N_ROWS
    wrong = []
    for index in indices:
        name, amounts = domain.names[index], domain.attributes[index].values
        assert isinstance(amounts, Amounts)
        is_single = records[name].type == pa.float32()
        values = records[name].to_pylist()
        expected = [expected_cells(value, amounts, is_single) for value in values]
        found = counts.counts((0, index))
        wrong += [
            f"{name}: {value!r} is {is_} and not {should}"
            for value, is_, should in zip(values, found.tolist(), expected, strict=True)
            if is_ != should
        ]
        groups = [np.sum(expected[group::2], axis=0, dtype=np.int64) for group in (0, 1)]
        assert wrong or np.array_equal(counts.counts((1, index)), groups)
        # What holds no amount is counted as ever, though it follows from tables that do.
        assert counts.counts((1,)).tolist() == [(N_ROWS + 1) // 2, N_ROWS // 2]
        assert counts.counts((0,)).tolist() == [1] * N_ROWS
        if index in weighted:  # both, by all products of their shares
            of_weights = counts.counts((0, weight)).tolist()
            products = [
                rounded_products(*pair, amounts) for pair in zip(expected, of_weights, strict=True)
            ]
            assert np.array_equal(counts.counts((0, index, weight)), products), name
    assert wrong == []


def plain_text(value: object) -> str | None:
    """A value as a CSV file has it: floats by all their digits."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and abs(value) < np.inf:
        return f"{Decimal(value):f}"
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Kind:
    """store: a source of these records. columns: those that it can hold."""

    store: Callable[[pa.Table, Path, pytest.FixtureRequest], Source]
    columns: tuple[str, ...] = tuple(COLUMNS)


def in_file(write: Callable[[pa.Table, Path], object], ending: str):
    def store(records: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Source:
        write(records, folder / f"records.{ending}")
        return FileSource(folder / f"records.{ending}")

    return store


def finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


def in_frame(convert: Callable[[pa.Table], object]):
    return lambda records, folder, request: FrameSource(convert(records), name="survey")


def in_postgres(stream: bool):
    def store(records: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Source:
        server = request.getfixturevalue("postgres")
        return replace(server.source(records, "amounts"), stream=stream)

    return store


def by_adbc(records: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Source:
    pytest.importorskip("adbc_driver_postgresql")
    server = request.getfixturevalue("postgres")
    server.source(records, "amounts")
    return DatabaseSource(Connection("SERVER", f"adbc+{server.url}"), "amounts", stream=True)


FEW = ("text", "single", "long")  # what servers of one dialect may read differently; all by night
KINDS = {
    "Parquet": Kind(in_file(pq.write_table, "parquet")),
    "Parquet by row groups": Kind(
        in_file(lambda records, path: pq.write_table(records, path, row_group_size=5), "parquet")
    ),
    "Stata": Kind(
        in_file(lambda records, path: records.to_pandas().to_stata(path, write_index=False), "dta"),
        ("double", "single"),
    ),
    "Arrow": Kind(in_frame(lambda records: records)),
    "pandas": Kind(in_frame(pa.Table.to_pandas), ("text", "double", "single", "cents", "long")),
    "polars": Kind(in_frame(pl.from_arrow)),
    "DuckDB": Kind(lambda records, folder, request: in_duckdb(records, folder / "records.duckdb")),
    "PostgreSQL": Kind(in_postgres(False), FEW),
    "PostgreSQL, streamed": Kind(in_postgres(True), FEW),
    "ADBC": Kind(by_adbc, FEW),
    "PostgreSQL, all": Kind(in_postgres(False)),
    "PostgreSQL, all, streamed": Kind(in_postgres(True)),
    "ADBC, all": Kind(by_adbc),
    "Spark": Kind(
        lambda records, folder, request: in_spark(
            request.getfixturevalue("spark"), records, folder, "amounts"
        )
    ),
}


def kind_of_source(kind: str):
    """As a parameter: by night where a cluster is begun, or a grid is tried as a whole."""
    # How a server sums is tried as ADBC and streams have it; by itself it is in every other test.
    is_long = kind == "PostgreSQL, streamed" or ", all" in kind
    is_long = is_long or (kind == "Spark" and not WITH_SPARK)
    return pytest.param(kind, marks=pytest.mark.nightly if is_long else ())


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("kind", map(kind_of_source, KINDS))
def test_amounts_are_summed_as_decimals_are(kind, tmp_path, request):
    records = table(KINDS[kind].columns)
    if kind == "Stata":  # it knows nothing infinite
        records = pa.table(
            {
                name: finite(column)
                for name, column in zip(records.column_names, records.columns, strict=True)
            }
        )
    check(KINDS[kind].store(records, tmp_path, request), records)


def test_amounts_of_csv_files_are_decimals(tmp_path):
    records = table(("text", "double", "whole", "cents", "long"))
    texts = pa.table(
        {
            name: [plain_text(value) for value in records[name].to_pylist()]
            for name in records.column_names
        }
    )
    pyarrow.csv.write_csv(texts, tmp_path / "records.csv")
    source = FileSource(tmp_path / "records.csv")
    check(source, texts)


# --- how they are counted


@pytest.mark.parametrize("range_in_steps", [1, 1000, 2**40])
@pytest.mark.parametrize("limits", [(1 << 17, 1 << 17, 1 << 21), (60, 3, 50), (1, 7, 1)])
def test_blocks_and_batches_sum_as_one_record_after_another(range_in_steps, limits, monkeypatch):
    """Blocks in the cache and larger ones; alone, beside tables without amounts, and with others.

    Attributes 1 and 3 are amounts, one with a cell for missing ones.
    """
    for name, limit in zip(("_BLOCK_CELLS", "_PIECE", "_MOST_GATHERED"), limits, strict=True):
        monkeypatch.setattr(counting, name, limit)
    monkeypatch.setattr(counting, "_RECORDS_PER_CELL", 1)
    sizes, ranges = [3, 3, 4, 2, 2], amounts.Ranges({1: range_in_steps, 3: 5})
    rng = np.random.default_rng(0)
    n_records = 700
    codes = {index: rng.integers(0, sizes[index], n_records) for index in (0, 2, 4)}
    steps = {index: rng.integers(0, most + 1, n_records) for index, most in ranges.items()}
    steps[1][:9], steps[3][:9] = range_in_steps, 0
    is_missing = rng.random(n_records) < 0.2
    coded = {**codes, 1: np.where(is_missing, 2, 3 + steps[1]), 3: 2 + steps[3]}
    coded = {index: column.astype(np.uint64) for index, column in coded.items()}
    tables = [(0, 1, 2), (1, 2, 4), (1,), (0, 3), (2, 3, 4), (0, 2), (0, 2, 4)]
    tables += [(0, 1, 3, 4), (1, 2, 3)]  # amounts and weights: every product of their shares
    batches = [
        (
            {index: column[start:end] for index, column in coded.items()},
            end - start,
            end / n_records,
        )
        for start, end in ((0, 100), (100, 103), (103, 700))
    ]
    counts = counting.counts_of(
        batches, tables, sizes, ranges=ranges, on_progress=lambda doing, share: None
    )
    for table in [*tables, (0, 4), (2,), (1, 2), (3,), (1, 3)]:
        expected = np.zeros([sizes[index] for index in table], dtype=object)
        for record in range(n_records):
            cells: list[tuple[list[int], int]] = [([], 1)]  # and how often
            for index in table:
                own = [(int(codes[index][record]), 1)] if index in codes else []
                if index in ranges:
                    most, high = ranges[index], int(steps[index][record])
                    own = [(0, most - high), (1, high)]
                if index == 1 and is_missing[record]:
                    own = [(2, most)]
                cells = [([*cell, code], n * m) for cell, n in cells for code, m in own]
            for cell, times in cells:
                expected[tuple(cell)] += times
        assert np.array_equal(counts.counts(table), expected), table


@pytest.mark.parametrize("most_kept", [1 << 20, 40, 3])
@pytest.mark.parametrize("chunk", [1 << 16, 64])
def test_parts_that_a_cluster_counts_add_up(most_kept, chunk, monkeypatch):
    """All tables of a part at once, a few at a time, and each by itself, in small chunks."""
    monkeypatch.setattr(spark_worker, "CHUNK_CELLS", chunk)
    records = table(("text",))
    domain = domain_of(records)
    tables = ((0, 2), (0, 5), (1, 2), (1, 3))
    takes = takers(domain)
    request = Request("survey", domain, tables, Takers.of(domain, **takes), None, None)
    raw = records.select(list(domain.names)).rename_columns([f"v{i}" for i in range(len(domain))])
    counted = [
        piece
        for part in (raw.slice(0, 20), raw.slice(20, 1), raw.slice(21))
        for piece in spark_worker.counts_of_part(
            part.to_batches(), request, Layout((), tuple(request.attribute_indices)), most_kept
        )
    ]
    added = [row for piece in spark_worker.added_counts(counted) for row in piece.to_pylist()]
    counts = spark_worker.counts_of_chunks(added, request)
    of_frame = FrameSource(records, name="survey").count(domain, tables, **takes)
    for each in [*tables, (0,), (1,), (2,)]:
        assert np.array_equal(counts.counts(each), of_frame.counts(each))
    wrong = dict(counts.tables)
    wrong[1, 2] = wrong[1, 2] + np.eye(1, wrong[1, 2].size, dtype=np.int64).reshape(2, -1)
    assert agree(counts)
    assert not agree(replace(counts, tables=wrong))


ENGINES = ("DuckDB", "PostgreSQL", "PostgreSQL, streamed", "Spark")


@pytest.mark.by_day(2)
@pytest.mark.parametrize("kind", map(kind_of_source, ["Parquet", *ENGINES]))
def test_the_first_amounts_of_each_person_count(kind, tmp_path, request):
    rng = np.random.default_rng(2)
    incomes = [f"{cents / 100}" for cents in rng.integers(0, 100_000, 60)]
    people = pl.DataFrame(
        {
            "who": rng.integers(0, 20, 60),
            "turn": rng.permutation(60),
            "region": rng.choice(["n", "s"], 60).tolist(),
            "income": incomes,
        }
    )
    rule = PersonRule("who", 2, "keep first", "turn")
    source = KINDS[kind].store(people.to_arrow().cast(PEOPLE), tmp_path, request)
    first = people.sort("turn").group_by("who").head(2).to_arrow()
    expected = FrameSource(first, name="survey").count(INCOME, [(0, 1)]).counts((0, 1))
    counts = source.count(INCOME, [(0, 1)], person_rule=rule)
    assert np.array_equal(counts.counts((0, 1)), expected)
    assert counts.n_records == len(first)


@pytest.mark.parametrize("kind", map(kind_of_source, ENGINES))
@pytest.mark.parametrize("type_", [pa.string(), pa.float64()])
def test_which_amounts_of_a_person_are_first_does_not_depend_on_others(
    kind, type_, tmp_path, request
):
    """Of records with one turn the engine would choose; what is counted has to tell them apart."""
    incomes = pa.array([str(income) for income in range(40)]).cast(type_)
    people = pa.table(
        {"who": [1, 2] * 20, "turn": [7] * 40, "region": ["n"] * 40, "income": incomes}
    )
    rule = PersonRule("who", 3, "keep first", "turn")
    seen = set()
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        order = np.random.default_rng(number).permutation(40)
        source = KINDS[kind].store(people.take(order), tmp_path / str(number), request)
        counts = source.count(INCOME, [(0, 1)], person_rule=rule)
        seen.add(counts.counts((1,)).tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("numeric", "'NaN', '0.05', 'Infinity', '-Infinity', 1e200", [3, "0.0", "1000"]),
        ("smallint", "'-7', 12, NULL, NULL, 999", [2, "0", "12", "999"]),
        ("char(9)", "'12', ' 3 ', 'x', 'y', '1e1'", [2, "12", "3", "10"]),
        ("real", "0.05, 0.25, 'NaN', 'Infinity', 0.75", [2, "0.1", "0.2", "0.8"]),
    ],
)
def test_types_of_postgresql(kind, values, expected, postgres):
    rows = ", ".join(f"({value})" for value in values.split(", "))
    postgres.run(
        "DROP TABLE IF EXISTS people CASCADE",
        f"CREATE TABLE people AS SELECT column1::{kind} AS income FROM (VALUES {rows}) AS given",
    )
    check_sums(DatabaseSource(postgres.connection, "people"), expected)
    check_sums(DatabaseSource(postgres.connection, "people", stream=True), expected)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("HUGEINT", "-(2::HUGEINT^100)::HUGEINT, 7, NULL, 2::HUGEINT^90", [1, "0", "7", "1000"]),
        ("UBIGINT", "18446744073709551615, 7", [0, "1000", "7"]),
        ("DECIMAL(38, 30)", "0.05, 0.050000000000000000000000000001", [0, "0.0", "0.1"]),
        ("VARCHAR", "'0.05', '0.050000000000000000000000000000000000000000001'", [0, "0.1", "0"]),
        ("ENUM ('3', 'x')", "'3', 'x', NULL", [2, "3"]),
    ],
)
def test_types_of_duckdb(kind, values, expected, tmp_path):
    import duckdb

    rows = ", ".join(f"(({value})::{kind})" for value in values.split(", "))
    with duckdb.connect(tmp_path / "people.duckdb") as database:
        database.execute(f"CREATE TABLE people AS FROM (VALUES {rows}) AS given (income)")
    check_sums(
        DatabaseSource(Connection("FILE", f"duckdb://{tmp_path / 'people.duckdb'}"), "people"),
        expected,
    )


def check_sums(source: Source, expected: list) -> None:
    """expected: how many records have no amount, and the amounts of the others."""
    n_none, *amounts_ = expected
    tenths = [int(Decimal(amount) * 10) for amount in amounts_]
    takes = {"income": "none"}
    counts = source.count(INCOME, [(1,)], unknown_values=takes, missing_values=takes)
    assert counts.counts((1,)).tolist() == [
        10_000 * len(tenths) - sum(tenths), sum(tenths), 10_000 * n_none
    ]  # fmt: skip


def test_columns_of_no_plain_kind_are_refused(tmp_path):
    import duckdb

    with duckdb.connect(tmp_path / "people.duckdb") as database:
        database.execute("CREATE TABLE people AS SELECT INTERVAL 3 DAYS AS income")
    source = DatabaseSource(Connection("FILE", f"duckdb://{tmp_path / 'people.duckdb'}"), "people")
    with pytest.raises(DataError, match="'income' is of a kind"):
        source.count(INCOME, [(1,)])


PEOPLE = pa.schema(
    [("who", pa.int64()), ("turn", pa.int64()), ("region", pa.string()), ("income", pa.string())]
)
INCOME = Domain(
    (
        Attribute("region", Categories(("n", "s"))),
        Attribute("income", Amounts(0, 1000, 1, missing=(("", "none"),))),
        Attribute("wealth", Amounts(-10, 10)),
    )
)


def test_sums_beyond_64_bits_are_refused(monkeypatch):
    frame = pl.DataFrame({"region": ["n", "s"] * 2, "income": [1.5, 2000, None, -1]})
    source = FrameSource(frame, name="survey")
    monkeypatch.setattr(amounts, "_MOST_COUNTED", 4 * 10_000 + 1)
    assert source.count(INCOME, [(0, 1)]).counts((1,)).tolist() == [19985, 10015, 10000]
    monkeypatch.setattr(amounts, "_MOST_COUNTED", 4 * 10_000)
    with pytest.raises(DataError, match="'income' are 10,000 of its smallest steps apart") as error:
        source.count(INCOME, [(0, 1)])
    assert "4" not in str(error.value)
    assert source.count(INCOME, [(0,)]).n_records == 4


@pytest.mark.parametrize(("income", "weight"), [(12, 18), (36, 6), (10, 4), (7, 9)])
def test_rounded_products_leave_records_shares_of_the_ends(income, weight):
    """Of all records, and of all pairs, by which their cost is bounded (docs/guarantees.md).

    Two records that exchange weights are four products. They are shares of what exchanges at the
    ends are if and only if they meet the inequality of Clauser and Horne (Fine 1982).
    """
    unit = gcd(income, weight)
    ranges = amounts.Ranges({0: income, 1: weight}, {(0, 1): unit})
    steps = [column.ravel() for column in np.indices((income + 1, weight + 1))]
    sums = {(): np.ones_like(steps[0]), (0,): steps[0], (1,): steps[1]}
    sums[0, 1] = amounts.product_of_steps(steps, unit)
    shares = amounts.counts_of_amounts(sums, ranges)
    assert min(int(share.min()) for share in shares.values()) == 0
    assert set(sum(shares.values()).tolist()) == {income * weight // unit}
    both = shares[0, 1]
    assert np.max(np.abs(both * unit - steps[0] * steps[1])) * 2 <= unit
    # Sums without weights, and weighted counts, are as they were.
    assert np.array_equal((shares[0,] + both) * unit, steps[0] * weight)
    assert np.array_equal((shares[1,] + both) * unit, steps[1] * income)
    both = both.reshape(income + 1, weight + 1)
    crossed = both[:, None, :, None] + both[:, None, None, :]
    crossed = crossed + both[None, :, :, None] - both[None, :, None, :]
    crossed -= both[:, -1][:, None, None, None] + both[-1][None, None, :, None]
    assert (crossed.min(), crossed.max()) == (-income * weight // unit, 0)


def test_products_of_amounts_and_weights_beyond_64_bits_are_refused():
    values = Amounts(0, 2**30), Amounts(0, 2**32, are_weights=True)
    domain = Domain(tuple(map(Attribute, ("income", "w"), values)))
    frame = pl.DataFrame({"income": [1], "w": [2]})
    assert FrameSource(frame, name="survey").count(domain, [(0,), (1,)]).n_records == 1
    with pytest.raises(DataError, match="'income' and 'w' are 4,611,686,018,427,387,904 of their"):
        FrameSource(frame, name="survey").count(domain, [(0, 1)])


def test_tables_of_two_amounts_are_refused():
    frame = pl.DataFrame({"region": ["n"], "income": [1], "wealth": [2]})
    with pytest.raises(DataError, match="got 'income' and 'wealth'; make a table for each"):
        FrameSource(frame, name="survey").count(INCOME, [(0, 1, 2)])


def test_what_is_no_amount_is_refused_and_what_is_too_large_is_not():
    def refusal(values: list) -> str:
        frame = pl.DataFrame({"wealth": values}, strict=False)
        with pytest.raises(DataError) as error:
            FrameSource(frame, name="survey").count(INCOME, [(2,)])
        return str(error.value)

    assert "'wealth' holds a missing value" in refusal([1.0, None])
    assert "'wealth' holds a missing value" in refusal([1.0, float("nan")])
    assert "'wealth' holds a value that is not in the codebook" in refusal([1.0, float("inf")])
    assert "'wealth' holds a value that is not in the codebook" in refusal(["1", "x"])
    frame = pl.DataFrame({"wealth": [1e300, -1e300, 11]})
    counts = FrameSource(frame, name="survey").count(INCOME, [(2,)])
    assert counts.counts((2,)).tolist() == [20, 40]
    assert counts.taken == ()
