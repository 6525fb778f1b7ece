"""Which value a record has: values at the limits of their column's type are counted, or refused."""

import datetime
import io
import zipfile

import duckdb
import pandas
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore import Amounts, Attribute, Bins, Categories, Dates, Domain, Integers
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.data.source import PersonRule
from rpexplore.domain.domain import difference_of_cells
from rpexplore.errors import DataError, ReleaseError, WorkloadError
from rpexplore.workload.universe import universe_of
from tests.data.engines.servers import in_duckdb

YEARS = Dates("1900", "2599", "year", missing=(("", "not stated"), ("x", "other")))


def years_of(source) -> list[int | str]:
    """The years in which records of this source are counted, or the labels of missing values."""
    domain = Domain((Attribute("c", YEARS),))
    counts = source.count(domain, [(0,)], unknown_values={"c": "other"}).counts((0,))
    return [
        int(label) if label.isdigit() else label
        for label, n in zip(domain["c"].labels(), counts.tolist(), strict=True)
        for _ in range(n)
    ]


def test_times_finer_and_farther_than_an_engine_rounds_to(tmp_path):
    """A fraction of a second is no missing value, and no fraction rounds a day up."""
    import duckdb

    path = tmp_path / "records.duckdb"
    columns = {
        "fraction": "timestamp '2026-01-31 12:00:00.5'",
        "fine": "timestamp_ns '2025-12-31 23:59:59.999999999'",
        "before": "timestamp_ns '1969-12-31 23:59:59.999999999'",
        "seconds": "timestamp_s '2500-01-01'",
        "thousandths": "timestamp_ms '2500-01-01 10:00:00.5'",
        "zoned": "timestamptz '2026-01-31 12:00:00.5+00'",
        "nothing": "NULL::timestamp",
    }
    with duckdb.connect(path) as database:
        for name, value in columns.items():
            database.execute(f'CREATE TABLE "{name}" AS SELECT {value} AS c')
    connection = Connection("FILE", f"duckdb://{path}")
    found = {name: years_of(DatabaseSource(connection, name)) for name in columns}
    expected = {"fraction": [2026], "fine": [2025], "before": [1969], "seconds": [2500]}
    expected |= {"thousandths": [2500], "zoned": ["other"], "nothing": ["not stated"]}
    assert found == expected


def test_old_times_of_parquet_hold_more_years_than_nanoseconds(tmp_path):
    days = [datetime.date(2500, 1, 1), datetime.date(1600, 1, 1), None]
    records = pa.table({"c": pa.array(days).cast(pa.timestamp("us"))})
    pq.write_table(records, tmp_path / "records.parquet", use_deprecated_int96_timestamps=True)
    assert years_of(FileSource(tmp_path / "records.parquet")) == [2500, "not stated", "other"]


@pytest.mark.parametrize(
    "kind", [pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval()]
)
def test_durations_are_numbers_of_no_unit_and_refused(kind, tmp_path):
    nothing = (0, 0, 0) if pa.types.is_interval(kind) else 1
    records = pa.table({"c": pa.array([nothing], kind)})
    sources: list[FrameSource | FileSource] = [FrameSource(records, name="survey")]
    if not pa.types.is_interval(kind):
        sources.append(FrameSource(records.to_pandas(), name="survey"))
        listed = pa.table({"c": pa.DictionaryArray.from_arrays([0], records["c"].combine_chunks())})
        sources.append(FrameSource(listed, name="survey"))
        for name, table in (("records", records), ("listed", listed)):
            pq.write_table(table, tmp_path / f"{name}.parquet")
            sources.append(FileSource(tmp_path / f"{name}.parquet"))
    for source in sources:
        for values in (Amounts(0, 365), Integers(0, 9), Bins((0, 5, 10))):
            with pytest.raises(DataError, match=r"'c' of .* is of a kind .* cannot be counted"):
                source.count(Domain((Attribute("c", values),)), [(0,)])


@pytest.mark.parametrize("freq", ["Y", "Q", "D"])
def test_periods_are_numbers_since_1970_and_refused(freq, tmp_path):
    """Also where nothing is known of their type but its name, as without pandas."""
    frame = pandas.DataFrame({"c": pandas.PeriodIndex(["2026-05-01"], freq=freq)})
    frame.to_parquet(tmp_path / "records.parquet")
    table = pa.table(frame)
    stored = table["c"].combine_chunks().storage
    named = pa.field("c", stored.type, metadata={"ARROW:extension:name": "other.period"})
    unknown = pa.table([stored], schema=pa.schema([named]))
    file = FileSource(tmp_path / "records.parquet")
    for source in (file, *(FrameSource(one, name="survey") for one in (frame, table, unknown))):
        for values in (Amounts(0, 365), Integers(0, 99_999), Bins((0, 5, 99_999))):
            with pytest.raises(DataError, match=r"of a kind \(.*\.period\) that cannot be count"):
                source.count(Domain((Attribute("c", values),)), [(0,)])


@pytest.mark.usefixtures("in_this_process")
def test_times_of_spss_and_sas_are_numbers_of_seconds_and_refused(tmp_path):
    import pyreadstat

    frame = pandas.DataFrame({"t": [1.0, 3600.0], "sex": ["f", "m"]})
    for number, shown_as in enumerate(("TIME8", "DTIME10.2", "MTIME5")):
        path = tmp_path / f"{number}.sav"
        pyreadstat.write_sav(frame, path, variable_format={"t": shown_as})
        refuse_times(FileSource(path))
    for number, shown_as in enumerate(("TIME8.", "HHMM5.", "TOD8.")):
        path = tmp_path / f"{number}.xpt"
        pyreadstat.write_xport(frame, path, file_format_version=8, variable_format={"t": shown_as})
        refuse_times(FileSource(path))


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("ending", "shown_as", "stored", "step", "label"),
    [
        ("sav", "QYR8", 13_992_912_000.0, "quarter", "2026-Q1"),  # seconds since 1582-10-14
        ("sav", "MOYR8", 13_992_912_000.0, "month", "2026-03"),
        ("sav", "WKYR10", 13_992_912_000.0, "week", "2026-W11"),
        ("dta", "%tm", 794.0, "month", "2026-03"),
        ("dta", "%-tmCCYY-NN", -1.0, "month", "1959-12"),
        ("dta", "%tq", 264.0, "quarter", "2026-Q1"),
        ("xpt", "MONYY7.", 24_180.0, "month", "2026-03"),
        ("xpt", "YYQ6.", 24_180.0, "quarter", "2026-Q1"),
        ("xpt", "YEAR4.", 24_180.0, "year", "2026"),
        ("xpt", "DTDATE9.", 24_180.0 * 86_400, "month", "2026-03"),
    ],
)
def test_dates_that_are_shown_by_month_or_quarter_are_dates(
    ending, shown_as, stored, step, label, tmp_path
):
    """They are kept as seconds, days or months, which no number of a codebook means."""
    source = in_statistics_file(tmp_path, ending, shown_as, stored)
    year = label[:4]
    days = Attribute("t", Dates(f"{int(year) - 9}-01-01", f"{year}-12-31", step))
    counts = source.count(Domain((days,)), [(0,)]).counts((0,))
    assert [days.values.label(i) for i in range(days.size) if counts[i]] == [label]
    with pytest.raises(DataError, match="not in the codebook"):
        source.count(Domain((Attribute("t", Bins((-1e3, 0, 1e15))),)), [(0,)])


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("ending", "shown_as"),
    [("dta", "%tw"), ("dta", "%th"), ("dta", "%tC"), ("dta", "%tbnyse"), ("xpt", "E8601DX25.")],
)
def test_dates_in_units_of_their_own_are_refused(ending, shown_as, tmp_path):
    source = in_statistics_file(tmp_path, ending, shown_as, 3_442.0)
    for values in (Dates("2020-01-01", "2026-12-31", "week"), Integers(0, 4000)):
        with pytest.raises(DataError, match=r"'t' .* counted otherwise .* make it a text"):
            source.count(Domain((Attribute("t", values),)), [(0,)])


def in_statistics_file(folder, ending: str, shown_as: str, stored: float) -> FileSource:
    import pyreadstat

    path = folder / f"records.{ending}"
    write = {"sav": "write_sav", "dta": "write_dta", "xpt": "write_xport"}[ending]
    options = {"file_format_version": 8} if ending == "xpt" else {}
    frame = pandas.DataFrame({"t": [stored, stored]})
    getattr(pyreadstat, write)(frame, path, variable_format={"t": shown_as}, **options)
    return FileSource(path)


BOTH = Domain((Attribute("sex", Categories(("f", "m"))),))


def refuse_times(source) -> None:
    """Other columns of the file are counted."""
    times = Domain((Attribute("t", Integers(0, 4000)),))
    assert source.count(BOTH, [(0,)]).n_records == 2
    with pytest.raises(DataError, match=r"'t' .* cannot be counted"):
        source.count(times, [(0,)])


def test_bits_are_no_digits_and_refused(tmp_path):
    source = in_duckdb(pa.table({"b": ["0101", "101"], "sex": ["f", "m"]}), tmp_path / "x.duckdb")
    with duckdb.connect(tmp_path / "x.duckdb") as database:
        (name,) = database.execute("SELECT table_name FROM duckdb_tables()").fetchone()  # pyright: ignore[reportGeneralTypeIssues]
        database.execute(f'ALTER TABLE "{name}" ALTER b TYPE BIT')
    bits = Domain((Attribute("b", Categories(("0101", "101"))),))
    with pytest.raises(DataError, match=r"'b' is of a kind \(BIT\)"):
        source.count(bits, [(0,)])
    with pytest.raises(DataError, match=r"'b' is of a kind \(BIT\)"):
        source.count(BOTH, [(0,)], person_rule=PersonRule("b", 1))


@pytest.mark.parametrize(
    ("kind", "value", "minimum", "maximum"),
    [("tinyint", 100, -50, 120), ("smallint", 32_000, -32_000, 32_767), ("uhugeint", 5, 0, 9)],
)
def test_small_and_large_kinds_of_whole_numbers(kind, value, minimum, maximum, tmp_path):
    import duckdb

    path = tmp_path / "records.duckdb"
    with duckdb.connect(path) as database:
        database.execute(f"CREATE TABLE records AS SELECT {value}::{kind} AS c")
    domain = Domain((Attribute("c", Integers(minimum, maximum)),))
    counts = DatabaseSource(Connection("FILE", f"duckdb://{path}"), "records").count(domain, [(0,)])
    assert counts.counts((0,)).argmax() == value - minimum


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked as UTF-8"])
def test_a_quote_that_swallows_records_is_noticed_in_the_first_value_too(mark, tmp_path):
    (tmp_path / "records.csv").write_bytes(mark + b'"id,c\n1,2000\n2,2000\n"x",c\n3,2001\n')
    with pytest.raises(DataError, match="quotation mark that is not closed"):
        years_of(FileSource(tmp_path / "records.csv"))


ONLY_SEX = Domain((Attribute("sex", Categories(("f",))),))


def n_within(source, text: str, domain: Domain = ONLY_SEX) -> int:
    """How many records of a source are in a universe."""
    return source.count(domain, [()], universe=universe_of(text, domain)).n_records


def test_the_last_day_there_is_fulfils_what_it_should(tmp_path):
    """9999-12-31 stands for an open end, and has no next day from which it could be told."""
    days = pa.array(["2020-01-01", "9999-12-31", "9999-12-30", None])
    records = pa.table({"sex": ["f"] * 4, "d": days})
    of_days = records.set_column(1, "d", days.cast(pa.date32()))
    pyarrow.csv.write_csv(records, tmp_path / "records.csv")
    pq.write_table(of_days, tmp_path / "records.parquet")
    in_codebook = Domain((*ONLY_SEX, Attribute("d", Dates("2000", "9999", "year"))))
    conditions = {'d >= "9999-12-31"': 1, 'd > "9999-12-30"': 1, 'd < "9999-12-31"': 2}
    conditions |= {'d <= "9999-12-31"': 3, 'd = "9999-12-31"': 1, 'd != "9999-12-31"': 3}
    for source in (
        FileSource(tmp_path / "records.csv"),
        FileSource(tmp_path / "records.parquet"),
        in_duckdb(of_days, tmp_path / "records.duckdb"),
    ):
        found = {text: n_within(source, text, in_codebook) for text in conditions}
        assert found == conditions


def test_universes_compare_what_they_say_and_nothing_near(tmp_path):
    large = pa.table({"sex": ["f"] * 2, "x": [2**53, 2**53 + 1]})
    source = FrameSource(large, name="survey")
    assert n_within(source, "x >= 9007199254740994") == 0
    for operator in ("=", ">", "<=", "!="):
        with pytest.raises(WorkloadError, match=r"2\^53 and more can be compared by < and >="):
            n_within(source, f"x {operator} 9007199254740992")
    blanks = pa.table({"sex": ["f"] * 2, "r": ["A  B", "A B"]})
    source = FrameSource(blanks.slice(1), name="survey")
    assert n_within(source, 'r  =\n"A B"') == 1
    assert n_within(source, 'r = "A  B"') == 0
    assert universe_of('r  =\n"A  B"', ONLY_SEX).text == 'r = "A  B"'


@pytest.mark.parametrize(
    "text",
    ["age != -9", "age = -9.0", "-9 <= age", "age in (-9, 3)", 'd != "9999-12-31"', "pay <= 99"],
)
def test_a_universe_takes_no_missing_value_for_a_number(text):
    """-9 fulfils no comparison, so that `age != -9` would hold for every record."""
    domain = Domain(
        (
            Attribute("age", Integers(0, 99, missing=(("-9", "refused"),))),
            Attribute("d", Dates("2000", "2020", "year", missing=(("9999-12-31", "open"),))),
            Attribute("pay", Bins((0, 50, 98), (("99", "none"),))),
        )
    )
    with pytest.raises(WorkloadError, match=r"as a missing value of .* leaves it out"):
        universe_of(text, domain)
    for other in ("age > -9", 'd < "9999-12-31"', "pay < 99", "age != 100"):
        assert universe_of(other, domain).text == other


def test_files_of_a_folder_agree_on_what_a_comma_is(tmp_path):
    (tmp_path / "a.csv").write_text("sex;x\nf;3,5\nf;1,5\n")
    (tmp_path / "b.csv").write_text("sex,x\nf,2.25\n")
    with pytest.raises(DataError, match="nobody can say what 3,5 is"):
        n_within(FileSource(tmp_path), "x >= 2")


def test_the_separator_of_the_header_tells_whether_there_are_records(tmp_path):
    (tmp_path / "records.csv").write_text('sex,x,c|"d\nf,1,2\n')
    assert n_within(FileSource(tmp_path / "records.csv"), "x >= 0") == 1


@pytest.mark.parametrize("encoding", ["rot13", "base64", "hex", "undefined", "none such"])
def test_what_is_no_encoding_of_texts_is_refused(encoding, tmp_path):
    with pytest.raises(DataError, match="There is no encoding"):
        FileSource(tmp_path / "records.csv", encoding)


def test_money_is_no_number_of_cents(postgres):
    """Drivers hand over cents, as which 1.00 would be a hundred."""
    pytest.importorskip("adbc_driver_postgresql")
    postgres.run("DROP TABLE IF EXISTS paid", "CREATE TABLE paid (c money)")
    postgres.run("INSERT INTO paid VALUES ('1.00')")
    domain = Domain((Attribute("c", Integers(0, 200)),))
    for scheme in ("", "adbc+"):
        connection = Connection("SERVER", f"{scheme}{postgres.url}")
        with pytest.raises(DataError, match="'c' holds a value that is not in the codebook"):
            DatabaseSource(connection, "paid", stream=True).count(domain, [(0,)])


def test_a_type_that_names_things_of_the_server_is_refused_by_name(postgres):
    postgres.run("DROP TABLE IF EXISTS things", "CREATE TABLE things (a int, c regclass)")
    with pytest.raises(DataError, match="'things' has a column of a kind that cannot be read"):
        DatabaseSource(postgres.connection, "things").count(Domain.from_sizes({"a": 2}), [(0,)])


def test_universes_of_short_floats(tmp_path, postgres):
    """A number of 32 bits is the number that it was stored for; statistics packages write such."""
    records = pa.table({"c": pa.array([0.7, 16, 16.000002, -1, None], pa.float32()), "a": [0] * 5})
    pq.write_table(records, tmp_path / "records.parquet")
    domain = Domain.from_sizes({"a": 2})
    n_records = {
        "c = 0.7": 1,
        "c != 0.7": 4,
        "c <= 16": 3,
        "c > 16": 1,
        "0.7 < c <= 16.000002": 2,
        "c in (0.7, 16)": 2,
        "c < 1e300 & c != 1e-300": 4,
    }
    for source in (
        FileSource(tmp_path / "records.parquet"),
        in_duckdb(records, tmp_path / "records.duckdb"),
        postgres.source(records, "short"),
    ):
        for condition, n in n_records.items():
            universe = universe_of(condition, domain)
            assert source.count(domain, [(0,)], universe=universe).n_records == n, condition


def recoded(text: str, to: str) -> Domain:
    values = Categories(("a", "b"), spellings=((text,) * (to == "a"), (text,) * (to == "b")))
    return Domain((Attribute("v", values), *Domain.from_sizes({"w": 2})))


@pytest.mark.parametrize(
    ("first", "second", "taker"),
    [
        (recoded("c", "a"), recoded("c", "b"), None),
        (recoded("c", "a"), recoded("d", "a"), "b"),
        (recoded("d", "b"), recoded("c", "a"), "b"),
    ],
)
def test_releases_that_count_one_text_as_two_values_are_not_combined(
    first, second, taker, tmp_path
):
    """By recodes that disagree, or one that disagrees with what takes unknown values."""
    (tmp_path / "records.csv").write_text("v,w\na,0\nb,1\nc,0\n")
    done = []
    for name, domain in (("one", first), ("two", second)):
        tables, budget = rp.Workload.all_up_to(domain, 2), rp.Budget(rho=1)
        plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=budget)
        reads_c = "c" in domain["v"].values.readings
        takers = {} if reads_c or taker is None else {"v": taker}
        folder, data = tmp_path / name, tmp_path / "records.csv"
        done.append(rp.release(plan, data, folder, unknown_values=takers))
    with pytest.raises(ReleaseError, match=r"'c' was counted as '[ab]' of 'v' in '(one|two)'"):
        rp.combine(*done)


def test_releases_whose_takers_have_one_label_and_other_values_are_not_combined(tmp_path):
    """What was in no category became "refused" in both, which was 1 in one and 2 in the other."""
    data, releases = tmp_path / "people.csv", []
    data.write_text("code\n0\n1\n9\n9\n")
    for labels in (("no", "refused", "gone"), ("no", "gone", "refused")):
        domain = Domain((Attribute("code", Categories(tuple("012"), labels)),))
        plan = rp.plan(
            rp.Workload.all_up_to(domain, 1),
            loss=rp.SumOfVariances(),
            budget=rp.Budget(rho="0.001"),
        )
        for taker in ("refused", "1"):
            folder, takers = tmp_path / f"{len(releases)}", {"code": taker}
            releases.append(rp.release(plan, data, folder, unknown_values=takers))
    with pytest.raises(ReleaseError, match="counted as '1' in '0' and as '2' in '2'"):
        rp.combine(releases[0], releases[2])
    rp.combine(*releases[:2])


def test_releases_whose_condition_names_labels_of_other_values_are_not_combined(tmp_path):
    data, releases = tmp_path / "people.csv", []
    data.write_text("code,a\n0,1\n1,0\n2,0\n")
    for labels in (("no", "yes", "gone"), ("no", "gone", "yes"), ("no", "yes", "lost")):
        code = Attribute("code", Categories(tuple("012"), labels))
        tables = rp.Workload.of(Domain((code, Attribute("a", Integers(0, 1)))), [("a",)])
        plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.001"))
        plan = plan.within("code = 'yes'")
        releases.append(rp.release(plan, data, tmp_path / labels[2]))
    with pytest.raises(ReleaseError, match="names other values in the codebook of 'gone'"):
        rp.combine(*releases[:2])
    rp.combine(rp.combine(releases[0], releases[2]))


def test_a_codebook_that_counts_a_text_as_another_value_is_no_codebook_of_a_release():
    assert "count c in the records as different values of 'v'" in difference_of_cells(
        recoded("c", "a"), recoded("c", "b")
    )
    assert not difference_of_cells(recoded("c", "a"), recoded("d", "b"))
    days = [
        Domain((Attribute("day", Dates("2026-01-01", "2026-12-31", format=form)),))
        for form in ("%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d", "")
    ]
    assert "count 01/02/2003 in the records" in difference_of_cells(days[0], days[1])
    assert not difference_of_cells(days[0], days[2]) + difference_of_cells(days[2], days[3])


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_of_parquet_stored_by_differences(tmp_path, encoding):
    table = pa.table({"sex": ["f", "m", None, "f"]})
    options = {"use_dictionary": False, "column_encoding": {"sex": encoding}}
    pq.write_table(table, tmp_path / "records.parquet", **options)
    source = FileSource(tmp_path / "records.parquet")
    counts = source.count(BOTH, [(0,)], missing_values={"sex": "m"})
    assert counts.counts((0,)).tolist() == [2, 2]


def test_texts_of_parquet_stored_by_differences_in_later_groups_alone(tmp_path):
    path, n = tmp_path / "records.parquet", 2048
    duckdb.sql(
        f"COPY (SELECT 'v' || greatest(i - {n}, 0) AS v FROM range({2 * n}) AS t(i)) TO '{path}' "
        f"(PARQUET_VERSION v2, ROW_GROUP_SIZE {n})"
    )
    about = pq.read_metadata(path)
    kinds = [about.row_group(group).column(0).encodings for group in range(2)]
    assert ["DELTA_LENGTH_BYTE_ARRAY" in own for own in kinds] == [False, True]
    domain = Domain((Attribute("v", Categories(tuple(f"v{i}" for i in range(n)))),))
    counts = FileSource(path).count(domain, [(0,)])
    assert counts.counts((0,)).tolist() == [n + 1] + [1] * (n - 1)


@pytest.mark.parametrize("options", [{}, {"write_page_index": True, "row_group_size": 2}])
def test_parquet_files_one_behind_the_other(tmp_path, options):
    """The directory of the last one leads into the records of the first one."""
    domain, path = Domain((Attribute("c", Categories(("a", "b"))),)), tmp_path / "c.parquet"
    contents = []
    for texts in (["a", "b", "a"], ["b", "b", "b"], ["a"] * 100 + ["b"]):
        pq.write_table(pa.table({"c": texts}), path, **options)
        contents.append(path.read_bytes())
        counts = FileSource(path).count(domain, [(0,)]).counts((0,))
        assert counts.tolist() == [texts.count("a"), texts.count("b")]
    for first in contents:
        for second in contents:
            path.write_bytes(first + second)
            with pytest.raises(DataError, match=r"more than one Parquet file|cannot be read"):
                FileSource(path).count(domain, [(0,)])


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", ["plain.sav", pytest.param("x.zsav", marks=pytest.mark.nightly)])
def test_a_file_of_spss_with_more_records_than_it_states(tmp_path, name):
    """Records behind the stated ones are not passed over in silence."""
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / name
    records = pandas.DataFrame({"c": ["a", "b", "a"]})
    pyreadstat.write_sav(records, path, compress=name.endswith(".zsav"))
    content = bytearray(path.read_bytes())
    assert content[80] == 3
    content[80] = 2
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        FileSource(path).count(Domain((Attribute("c", Categories(("a", "b"))),)), [(0,)])


def test_zip_files_one_behind_the_other_are_refused(tmp_path):
    """`cat a.zip b.zip > all.zip`: only the last directory is read, and the rest was left out."""

    def zipped(content: str) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("people.csv", content)
        return file.getvalue()

    domain = Domain((Attribute("sex", Categories(("F", "M"))),))
    first, second = zipped("sex\nF\nF\nF\n"), zipped("sex\nM\n")
    path = tmp_path / "people.csv.zip"
    for content in (first + second, first + second[:-30], b"some" + first):
        path.write_bytes(content)
        with pytest.raises(DataError, match="before or behind it, such as a second zip file"):
            FileSource(path).count(domain, [(0,)])
    path.write_bytes(first)
    assert FileSource(path).count(domain, [(0,)]).counts((0,)).tolist() == [3, 0]


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("hours", [[7.5, 8.0, 30.25], [7.5, 8.0, 30.25, "a"]])
def test_a_label_of_what_is_missing_changes_no_number_of_stata(tmp_path, hours):
    """Where nothing was missing, 7.5 was read as np.float64(7.5), which is in no codebook."""
    import pyreadstat

    missing = (("", "none"),)
    several = (Bins((0, 7.5, 20, 40), missing), Amounts(0, 40, 2, missing=missing))
    sources = []
    for name, labels in (("plain", {}), ("labelled", {"h": {"a": "refused"}})):
        path = tmp_path / f"{name}.dta"
        frame = pandas.DataFrame({"h": pandas.Series(hours)})
        pyreadstat.write_dta(
            frame, path, variable_value_labels=labels, missing_user_values={"h": ["a"]}
        )
        sources.append(FileSource(path))
    for values in several:
        domain = Domain((Attribute("h", values),))
        plain, labelled = (
            source.count(domain, [(0,)], missing_values={"h": "none"}).counts((0,)).tolist()
            for source in sources
        )
        assert plain == labelled
