"""Reading records: exact against pandas, refusals that leak nothing, each record on its own."""

import math
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.errors import DataError, DomainError
from tests.data.coded_records import read_records

SECRET = "s3cr3t-value"


def domain_of(**values) -> Domain:
    return Domain(tuple(Attribute(name, of) for name, of in values.items()))


LETTERS = domain_of(c=Categories(("a", "b", "rest")))
DIGITS = domain_of(c=Integers(0, 9))
NUMBERED = domain_of(c=Categories(("0", "1", "2", "rest")))


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "records.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def stored(folder: Path, **columns) -> Path:
    path = folder / "records.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def codes(path: Path, domain: Domain, indices=None, **options) -> list[list[int]]:
    indices = range(len(domain)) if indices is None else indices
    records = read_records(path, domain, indices, **options)
    assert sorted(records.codes) == list(indices)
    assert all(len(column) == records.n_records for column in records.codes.values())
    return [records.codes[index].tolist() for index in indices]


def refusal(path: Path, domain: Domain, *secrets: str, **options) -> DataError:
    """The `DataError`; fails if a message or a printed traceback holds one of the secrets."""
    with pytest.raises(DataError) as caught:
        read_records(path, domain, range(len(domain)), **options)
    error = caught.value
    printed = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
    for secret in secrets:
        assert secret not in str(error)
        assert secret not in printed
    return error


# --- counts are exact


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 3001
    return pd.DataFrame(
        {
            "notes": ['line\nbreak, "quoted"'] * n,
            "sex": rng.choice(["f", "m", "ünïcode, x"], n),
            "age": rng.integers(0, 100, n),
            "pay": rng.choice([0.0, 0.5, 10.0, 99.999, 100.0], n),
            "one": ["k"] * n,
        }
    )


SURVEY = domain_of(
    age=Integers(0, 99, 7),
    sex=Categories(("m", "f", "ünïcode, x")),
    pay=Bins((0, 0.5, 10, 100)),
    one=Categories(("k",)),
)


@pytest.mark.parametrize("ending", ["csv", "CSV", "parquet", "pq", "crlf.csv"])
def test_counts_are_those_of_pandas(frame, ending, tmp_path):
    path = tmp_path / f"records.{ending}"
    if ending.lower().endswith("csv"):
        frame.to_csv(path, index=False, lineterminator="\r\n" if "crlf" in ending else "\n")
    else:
        frame.to_parquet(path, row_group_size=1000)
    records = read_records(path, SURVEY, range(4))
    assert records.n_records == len(frame)
    expected = pd.crosstab(
        frame["age"] // 7,
        [
            pd.Categorical(frame["sex"], ["m", "f", "ünïcode, x"]),
            pd.cut(frame["pay"], [0, 0.5, 10, 100.1], right=False),
        ],
        dropna=False,
    ).to_numpy()
    assert np.array_equal(records.counts([0, 1, 2]).reshape(15, 9), expected)
    assert np.array_equal(records.counts([0, 1, 2, 3])[..., 0], records.counts([0, 1, 2]))


@pytest.mark.parametrize(
    ("values", "inside", "outside"),
    [
        # Left closed, the last one also right closed.
        (Bins((0, 1, 2.5)), {"0": 0, "0.999": 0, "1": 1, "2.5": 1}, ["-0.001", "2.5001", "nan"]),
        (Integers(-3, 9, 5), {"-3": 0, "1": 0, "2": 1, "7": 2, "9": 2}, ["-4", "10", "0.5"]),
        (Integers(4, 4), {"4": 0, "4.0": 0, " 4": 0, "+4": 0, "4e0": 0, "004": 0}, ["3", "5"]),
        (Integers(-2, 2), {"-0": 2, "-2": 0}, ["inf", "-inf", "nan", "1e400", "0x1", "1_0", "١"]),
        (Categories(("3", " 3")), {"3": 0, " 3": 1}, ["3.0", "3 ", "03", "+3"]),
        (Categories(("NA", "null")), {"NA": 0, "null": 1}, ["na", "NULL", "nan"]),
    ],
)
def test_which_texts_stand_for_which_values(values, inside, outside, tmp_path):
    domain = domain_of(c=values)
    rows = "".join(f'"{text}",\n' for text in inside)
    assert codes(written(tmp_path, f"c,d\n{rows}"), domain) == [list(inside.values())]
    for text in outside:
        path = written(tmp_path, f'c,d\n"{next(iter(inside))}",\n"{text}",\n')
        assert f"{text}" in refusal(path, domain).on_screen()


@pytest.mark.parametrize(
    "text",
    [
        "c,d\na,1\nb,2\n",
        "\ufeffc,d\na,1\nb,2\n",
        '\ufeff"c","d"\n"a",1\n"b",2',
        "c,d\r\na,1\r\n\r\nb,2\r\n\r\n",
        "d,c\n1,a\n2,b",
        'd,c\n"x\ny, ""z""\r\n",a\n,b\n',
        "c,d,d\na,1,1\nb,2,2\n",
        "c,d\n\n\na,1\n\nb,2\n\n\n",
    ],
)
def test_spellings_of_the_same_csv(text, tmp_path):
    assert codes(written(tmp_path, text), LETTERS) == [[0, 1]]


@pytest.mark.parametrize("text", ["c,d\n", "c,d", "\ufeffc,d\r\n", "c,d\n\n\n"])
def test_no_records_are_records_too(text, tmp_path):
    """An empty file is a neighbour of a file with one record, so it must be as good."""
    records = read_records(written(tmp_path, text), LETTERS, [0])
    assert records.n_records == 0
    assert records.counts([0]).tolist() == [0, 0, 0]


def test_an_empty_parquet_file_is_read(tmp_path):
    path = stored(tmp_path, c=pa.array([], pa.string()))
    assert codes(path, LETTERS) == [[]]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_quoted_newlines_across_blocks(newline, tmp_path, monkeypatch):
    options = pyarrow.csv.ReadOptions
    monkeypatch.setattr("pyarrow.csv.ReadOptions", lambda block_size: options(block_size=64))
    rows = "".join(
        f'"{"x" * (i % 23)}{newline}y, ""z""",{"ab"[i % 2]}{newline}' for i in range(200)
    )
    path = written(tmp_path, f"d,c{newline}{rows}")
    assert codes(path, LETTERS) == [[0, 1] * 100]


# --- types of Parquet columns

TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]
NUMBER_TYPES = [
    pa.int8(),
    pa.int64(),
    pa.uint8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(10, 2),
]


def text_array(texts: list[str | None], type_: pa.DataType) -> pa.Array:
    if type_ == pa.string_view():
        return pa.array(texts, type_)
    return pa.array(texts, pa.string()).cast(type_)


def number_array(numbers: list[int | None], type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(type_):
        return pa.array(numbers, pa.decimal128(30, 0)).cast(type_)
    return pa.array(numbers, pa.float64()).cast(type_)


@pytest.mark.parametrize("type_", TEXT_TYPES, ids=str)
def test_texts_of_every_type(type_, tmp_path):
    path = stored(tmp_path, c=text_array(["1", "0", "1"], type_))
    assert codes(path, NUMBERED) == [[1, 0, 1]]
    assert codes(path, DIGITS) == [[1, 0, 1]]
    assert codes(path, domain_of(c=Bins((0, 1, 2)))) == [[1, 0, 1]]


@pytest.mark.parametrize("type_", NUMBER_TYPES, ids=str)
def test_numbers_of_every_type(type_, tmp_path):
    path = stored(tmp_path, c=number_array([1, 0, 1], type_))
    assert codes(path, DIGITS) == [[1, 0, 1]]
    assert codes(path, domain_of(c=Bins((0, 1, 2)))) == [[1, 0, 1]]
    if not pa.types.is_decimal(type_):  # its text is "1.00"
        assert codes(path, NUMBERED) == [[1, 0, 1]]


def test_other_types(tmp_path):
    encoded = pa.array([1, 0, 1]).dictionary_encode()
    assert codes(stored(tmp_path, c=encoded), DIGITS) == [[1, 0, 1]]
    assert codes(stored(tmp_path, c=encoded), NUMBERED) == [[1, 0, 1]]
    flags = stored(tmp_path, c=pa.array([True, False]))
    assert codes(flags, DIGITS) == [[1, 0]]
    assert codes(flags, domain_of(c=Categories(("false", "true")))) == [[1, 0]]


@pytest.mark.parametrize("type_", TEXT_TYPES, ids=str)
def test_strange_texts_of_every_type_are_told_and_mapped(type_, tmp_path):
    path = stored(tmp_path, c=text_array(["1", SECRET, None], type_))
    for domain, other, codes_then in ((NUMBERED, "rest", [1, 3, 3]), (DIGITS, "9", [1, 9, 9])):
        assert codes(path, domain, unknown_values={"c": other}) == [codes_then]
        error = refusal(path, domain, SECRET)
        assert "'c'" in str(error)
        assert "not in the codebook" in str(error)
        assert SECRET in error.on_screen()


@pytest.mark.parametrize("type_", [*TEXT_TYPES, *NUMBER_TYPES, pa.null(), pa.bool_()], ids=str)
@pytest.mark.parametrize("domain", [NUMBERED, DIGITS, domain_of(c=Bins((0, 1, 2)))])
def test_a_null_of_every_type_is_refused_or_mapped(type_, domain, tmp_path):
    path = stored(tmp_path, c=pa.nulls(2, type_))
    assert "missing value" in str(refusal(path, domain))
    label = domain["c"].labels()[0]
    assert codes(path, domain, unknown_values={"c": label}) == [[0, 0]]


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 2.5, 1e300, -1.0])
@pytest.mark.parametrize("domain", [NUMBERED, DIGITS])
def test_floats_that_are_no_value(strange, domain, tmp_path):
    path = stored(tmp_path, c=[1.0, strange])
    assert "not in the codebook" in str(refusal(path, domain))
    assert codes(path, domain, unknown_values={"c": domain["c"].labels()[2]}) == [[1, 2]]


@pytest.mark.parametrize("column", [[[1]], [{"x": 1}]], ids=["list", "struct"])
def test_nested_columns_are_refused(column, tmp_path):
    for domain in (NUMBERED, DIGITS):
        refusal(stored(tmp_path, c=column), domain)


# --- each record on its own

FLOATS = [-0.0, 0.0, 1.0, 2.5, 1e15, 1e16, 2.0**53, 9e15, 1e19, 1e300, math.nan, math.inf, None]
VALUE_SETS = [
    Categories(("0", "1", "1000000000000000", "9007199254740992", "rest")),
    Integers(0, 2**53, 10**15),
    Bins((-1, 1, 1e16, 1e17)),
]


@given(st.lists(st.sampled_from(FLOATS), min_size=1, max_size=4), st.sampled_from(VALUE_SETS))
def test_how_a_record_is_coded_does_not_depend_on_the_others(tmp_path_factory, floats, values):
    """Otherwise adding one record would change more than one count by more than one."""
    folder, domain = tmp_path_factory.mktemp("records"), domain_of(c=values)
    other = {"c": domain["c"].labels()[-1]}

    def coded(column):
        path = stored(folder, c=pa.array(column, pa.float64()))
        return codes(path, domain, unknown_values=other)[0]

    assert coded(floats) == [coded([value])[0] for value in floats]


# --- only the columns that are needed


def test_csv_reads_the_needed_columns_only(tmp_path, monkeypatch):
    path = written(tmp_path, "x,c,y\n1,a,2\n2,b,3\n")
    columns = []
    open_csv = pyarrow.csv.open_csv

    def spy(*args, convert_options, **options):
        columns.append(convert_options.include_columns)
        reader = open_csv(*args, convert_options=convert_options, **options)
        assert len(reader.schema.names) == 1
        return reader

    monkeypatch.setattr("pyarrow.csv.open_csv", spy)
    assert codes(path, LETTERS) == [[0, 1]]
    assert columns == [["c"]]
    assert read_records(path, LETTERS, []).n_records == 2  # no list of columns means: all of them


def test_ignored_csv_columns_may_hold_anything(tmp_path, monkeypatch):
    options = pyarrow.csv.ReadOptions
    monkeypatch.setattr("pyarrow.csv.ReadOptions", lambda block_size: options(block_size=256))
    rows = b"".join(b"1,%c\n" % b"ab"[i % 2] for i in range(4000)) + b"text,a\n\xff\xfe,b\n,a\n"
    path = written(tmp_path, b"d,c\n" + rows)
    for indices in ([0], []):
        assert read_records(path, LETTERS, indices).n_records == 4003


def test_an_ignored_column_may_be_of_another_encoding_from_the_first_row(tmp_path):
    path = written(tmp_path, b"c,d\na,\xe9t\xe9\nb,x\n")
    assert codes(path, LETTERS) == [[0, 1]]


def test_an_ignored_value_may_be_long(tmp_path):
    """Python's csv module stops at 131,072 characters unless told otherwise."""
    path = written(tmp_path, f'c,d\na,"{"x" * 200_000}"\nb,"y"\n')
    assert codes(path, LETTERS) == [[0, 1]]


def test_parquet_reads_the_needed_columns_only(tmp_path):
    """The pages of the other columns are overwritten: whoever reads them fails."""
    path = stored(tmp_path, c=["a", "b"] * 50, x=[SECRET] * 100, **{"c.d": ["z"] * 100})
    content = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(0)
    for index in (1, 2):
        chunk = group.column(index)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    with pytest.raises((OSError, pa.ArrowException)):
        pq.read_table(path, columns=["x"])
    assert codes(path, LETTERS) == [[0, 1] * 50]
    assert read_records(path, LETTERS, []).n_records == 100


def test_only_the_attributes_asked_for_need_a_column(tmp_path):
    domain = domain_of(c=Categories(("a", "b")), absent=Integers(0, 1))
    assert codes(written(tmp_path, "c\na\nb\n"), domain, [0]) == [[0, 1]]


@pytest.mark.parametrize("indices", [[0], [0, 1], []])
def test_progress_grows_to_one(indices, tmp_path):
    domain = domain_of(c=Integers(0, 1), d=Integers(0, 1))
    for path in (written(tmp_path, "c,d\n0,1\n"), stored(tmp_path, c=[0, 1], d=[1, 1])):
        shares = []
        read_records(path, domain, indices, on_progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


# --- refusals


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        f"{SECRET}\n1\n",
        f"{SECRET},b\n1,2\n",
        f"c;{SECRET}\na;1\n",
        f"c,c,{SECRET}\na,b,1\n",
        f"C,{SECRET}\na,1\n",
        f"a,{SECRET}\nb,1\n",
    ],
)
def test_a_header_without_the_column_once(text, tmp_path):
    error = refusal(written(tmp_path, text), LETTERS, SECRET)
    assert "'c'" in str(error)
    if SECRET in text:
        assert SECRET in error.on_screen()


@pytest.mark.parametrize("text", ["", "\n", "\nc,d\na,1\n"])
def test_a_header_is_needed_even_where_no_column_is(text, tmp_path):
    """A file that was never written is not a dataset without records."""
    with pytest.raises(DataError):
        read_records(written(tmp_path, text), LETTERS, [])


def test_a_parquet_file_without_the_column(tmp_path):
    error = refusal(stored(tmp_path, **{SECRET: ["a"]}), LETTERS, SECRET)
    assert "no column 'c'" in str(error)
    assert SECRET in error.on_screen()
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["c", "c"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    assert "2 columns 'c'" in str(refusal(tmp_path / "twice.parquet", LETTERS))


@pytest.mark.parametrize(
    "row", [f"a,1,{SECRET}", SECRET, f'"{SECRET}"', f"   {SECRET}  "], ids=repr
)
def test_ragged_rows_are_refused(row, tmp_path):
    error = refusal(written(tmp_path, f"c,d\na,1\n{row}\nb,1\n"), LETTERS, SECRET)
    assert "columns in every row" in str(error)


@pytest.mark.parametrize(
    "rows",
    [
        'a,ok\nb,"never closed\na,ok\nb,ok\n',
        'a,ok\nb,"never closed',
        'a,ok\nb,"closed by another\na,ok\nb,"next" one\na,ok\n',
        '"a",ok\nb,"closed by another\na,"next one\n"b",ok\n',
    ],
)
def test_a_quote_that_swallows_records_is_refused(rows, tmp_path):
    """Otherwise one record's text would silently drop the records after it."""
    refusal(written(tmp_path, f"c,d\n{rows}"), LETTERS, "never closed", "closed by")


def test_what_is_not_utf8_is_refused(tmp_path):
    for text in ("c,d\na,1\n".encode("utf-16"), b"d,c\n" + b"1,a\n" * 5000 + b"1,s3cr3t\xe9\n"):
        refusal(written(tmp_path, text), LETTERS, "s3cr3t")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 rubbish PAR1", b"c\na\n"])
def test_a_corrupt_parquet_file_is_refused(content, tmp_path):
    path = tmp_path / "records.parquet"
    path.write_bytes(content)
    assert "cannot be read" in str(refusal(path, LETTERS))


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = stored(tmp_path, c=[f"{SECRET}-{i}" for i in range(1000)])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refusal(path, LETTERS, SECRET)


def test_a_damaged_page_is_refused(tmp_path):
    path = stored(tmp_path, c=[f"{SECRET}-{i}" for i in range(1000)])
    content = bytearray(path.read_bytes())
    content[100:3000] = b"\xaa" * 2900
    path.write_bytes(content)
    refusal(path, LETTERS, SECRET)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "folder.csv", "folder.parquet"])
def test_what_is_not_a_file_is_refused(name, tmp_path):
    if name.startswith("folder"):
        (tmp_path / name).mkdir()
    assert name in str(refusal(tmp_path / name, LETTERS))


@pytest.mark.parametrize("name", ["records.xlsx", "records", "records.csv.bz2", "records.json"])
def test_other_formats_are_refused(name, tmp_path):
    (tmp_path / name).write_text("c\na\n")
    assert ".csv or .parquet" in str(refusal(tmp_path / name, LETTERS))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "values", [Categories(("a", "b")), Integers(0, 9), Bins((0, 1))], ids=lambda v: type(v).__name__
)
def test_a_value_outside_is_told_on_screen_only(values, ending, tmp_path):
    domain = domain_of(c=values)
    fine = domain["c"].labels()[0] if not isinstance(values, Bins) else "0"
    neighbour, n_rows = "neighbours-value", 4321
    columns = {"c": [fine] * (n_rows - 1) + [SECRET], neighbour: [neighbour] * n_rows}
    path = tmp_path / f"records.{ending}"
    if ending == "csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    else:
        pq.write_table(pa.table(columns), path)
    error = refusal(path, domain, SECRET, neighbour)
    assert "'c'" in str(error)
    assert "a category of 'c' that takes such values" in str(error)
    assert SECRET in error.on_screen()
    for private in (neighbour, "4321", "4320", "4,321"):
        assert private not in error.on_screen().replace(str(tmp_path), "")


def test_some_values_are_shown_and_said_to_be_some(tmp_path):
    rows = "".join(f"{SECRET}{i}\n{SECRET}{i}\n" for i in range(9))
    error = refusal(written(tmp_path, f"c\n{rows}"), LETTERS, SECRET)
    assert error.private == ("It holds: " + ", ".join(f"'{SECRET}{i}'" for i in range(5)) + ", ….")


def test_nothing_is_logged_or_printed(tmp_path, caplog, capfd, recwarn):
    caplog.set_level(0)
    refusal(written(tmp_path, f"c\n{SECRET}\n"), LETTERS, SECRET)
    refusal(stored(tmp_path, c=[1.0, math.nan, 7e18]), NUMBERED)
    codes(written(tmp_path, "c\na\n"), LETTERS)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in recwarn] == []


# --- "other"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_other_takes_what_is_unlisted_or_missing_and_drops_nobody(ending, tmp_path):
    domain = domain_of(
        c=Categories(("a", "rest"), ("A", "the rest")), n=Integers(0, 9, 5), x=Bins((0, 1, 2))
    )
    frame = pd.DataFrame(
        {
            "c": ["a", "zz", None, "rest", "A"],
            "n": ["7", None, "-1", "x", "0"],
            "x": ["0.5", "2.1", None, "1", "nan"],
        }
    )
    path = tmp_path / f"records.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    other = {"c": "rest", "n": "5 to 9", "x": "0 to under 1"}
    records = read_records(path, domain, [0, 1, 2], unknown_values=other)
    assert records.codes[0].tolist() == [0, 1, 1, 1, 1]
    assert records.codes[1].tolist() == [1, 1, 1, 1, 0]
    assert records.codes[2].tolist() == [0, 0, 0, 1, 0]
    for indices in ([], [0], [0, 1], [0, 1, 2]):
        assert records.counts(indices).sum() == 5


def test_other_helps_its_own_attribute_only(tmp_path):
    domain = domain_of(c=Categories(("a", "rest")), d=Categories(("a", "rest")))
    path = written(tmp_path, f"c,d\na,{SECRET}\n")
    error = refusal(path, domain, SECRET, unknown_values={"c": "rest"})
    assert "'d'" in str(error)


@pytest.mark.parametrize("indices", [[0], []])
def test_an_unknown_other_is_refused(indices, tmp_path):
    path = written(tmp_path, "c\na\n")
    with pytest.raises((DataError, DomainError), match="'nobody'"):
        read_records(path, LETTERS, indices, unknown_values={"nobody": "a"})
    with pytest.raises(DataError, match="'nonsense'"):
        read_records(path, LETTERS, indices, unknown_values={"c": "nonsense"})


@pytest.mark.parametrize("text", ["c\na\n\nb\n", "c\na\n\n", 'c\na\n""\nb\n'])
def test_an_empty_line_of_a_single_column_is_a_missing_value(text, tmp_path):
    """Skipping it would silently drop a record."""
    path = written(tmp_path, text)
    assert "missing value" in str(refusal(path, LETTERS))
