"""Reading records: exact against pandas, refusals that leak nothing, each record on its own."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rpexplore import Bins, Categories, Integers
from rpexplore.errors import DataError, DomainError
from tests.data.coded_records import read_records
from tests.data.files.written_records import (
    LETTERS,
    SECRET,
    codes,
    domain_of,
    refusal,
    stored,
    written,
)

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
        # As other programs write whole numbers.
        (
            Categories(("3", " 3")),
            {"3": 0, "3.0": 0, "3.00": 0, "03": 0, "+3": 0, " 3": 1},
            ["3.1", "3 ", "3e0", "٣"],
        ),
        (Categories(("3.0", "a.0")), {"3": 0, "3.0": 0, "3.": 0, "a.0": 1}, ["a", ".3"]),
        (Categories(("3.0", "3")), {"3.0": 0, "3": 1}, ["3.00"]),
        (Categories(("\u00e9",)), {"\u00e9": 0, "e\u0301": 0}, ["e"]),
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
    monkeypatch.setattr("pyarrow.csv.ReadOptions", lambda block_size, **_: options(block_size=64))
    rows = "".join(
        f'"{"x" * (i % 23)}{newline}y, ""z""",{"ab"[i % 2]}{newline}' for i in range(200)
    )
    path = written(tmp_path, f"d,c{newline}{rows}")
    assert codes(path, LETTERS) == [[0, 1] * 100]


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
    monkeypatch.setattr("pyarrow.csv.ReadOptions", lambda block_size, **_: options(block_size=256))
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


# --- "other"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_other_takes_what_is_unlisted_or_missing_and_drops_nobody(ending, tmp_path):
    domain = domain_of(
        c=Categories(("a", "rest"), ("A", "the rest")),
        n=Integers(0, 9, 5, (("-1", "none"),)),
        x=Bins((0, 1, 2), (("", "none"),)),
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
    other = {"c": "rest", "n": "none", "x": "none"}
    records = read_records(path, domain, [0, 1, 2], others=other)
    assert records.codes[0].tolist() == [0, 1, 1, 1, 1]
    assert records.codes[1].tolist() == [1, 2, 2, 2, 0]
    assert records.codes[2].tolist() == [0, 2, 2, 1, 2]
    for indices in ([], [0], [0, 1], [0, 1, 2]):
        assert records.counts(indices).sum() == 5


def test_other_helps_its_own_attribute_only(tmp_path):
    domain = domain_of(c=Categories(("a", "rest")), d=Categories(("a", "rest")))
    path = written(tmp_path, f"c,d\na,{SECRET}\n")
    error = refusal(path, domain, SECRET, others={"c": "rest"})
    assert "'d'" in str(error)


@pytest.mark.parametrize("indices", [[0], []])
def test_an_unknown_other_is_refused(indices, tmp_path):
    path = written(tmp_path, "c\na\n")
    with pytest.raises((DataError, DomainError), match="'nobody'"):
        read_records(path, LETTERS, indices, others={"nobody": "a"})
    with pytest.raises(DataError, match="'nonsense'"):
        read_records(path, LETTERS, indices, others={"c": "nonsense"})


@pytest.mark.parametrize("text", ["c\na\n\nb\n", "c\na\n\n", 'c\na\n""\nb\n'])
def test_an_empty_line_of_a_single_column_is_a_missing_value(text, tmp_path):
    """Skipping it would silently drop a record."""
    path = written(tmp_path, text)
    assert "missing value" in str(refusal(path, LETTERS))
