"""Columns: names without records, values only where asked for, and never how often they occur."""

import datetime
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore import Attribute, Categories, Domain
from rpexplore.common.installation import sample_data_folder
from rpexplore.data.files import columns as module
from rpexplore.data.files.columns import (
    MOST_LETTERS,
    MOST_NUMBERS,
    MOST_VALUES,
    Column,
    read_column_values,
    read_header,
)
from rpexplore.data.files.source import FileSource
from rpexplore.errors import DataError
from tests.data.coded_records import read_records
from tests.data.files.written_records import SECRET, codes, domain_of, stored, written

# ---- names


def test_names_of_a_csv_file(tmp_path):
    path = written(tmp_path, f'age,"name, first",Größe\n5,{SECRET},x\n')
    assert read_header(path) == module.Header(
        (Column("age"), Column("name, first"), Column("Größe"))
    )


def test_names_and_declared_types_of_a_parquet_file(tmp_path):
    path = stored(
        tmp_path,
        whole=[1],
        real=[1.5],
        text=[SECRET],
        yes=[True],
        day=[datetime.date(2020, 1, 1)],
        coded=pa.array([SECRET]).dictionary_encode(),
        nested=[[1, 2]],
    )
    header = read_header(path)
    assert {column.name: column.declared for column in header.columns} == {
        "whole": "whole numbers",
        "real": "numbers",
        "text": "text",
        "yes": "yes or no",
        "day": "dates",
        "coded": "categories",
    }
    assert header.left_out == 1
    assert [column.values for column in header.columns if column.values] == [("true", "false")]
    assert SECRET not in repr(header)


def test_the_values_of_yes_or_no_are_those_that_records_are_read_by(tmp_path):
    path = stored(tmp_path, yes=[True, False])
    (column,) = read_header(path).columns
    domain = Domain((Attribute("yes", Categories(column.values)),))
    assert read_records(path, domain, [0]).codes[0].tolist() == [0, 1]


def test_only_the_head_of_a_file_is_looked_at(tmp_path, monkeypatch):
    """What comes after it may be broken, and readers of records are not asked."""

    def refuse(*_):
        raise AssertionError("records were read")

    monkeypatch.setattr(FileSource, "batches", refuse)
    path = written(tmp_path, b'age,sex\n5,"F\n\xff\xfe,,,\n')
    assert [column.name for column in read_header(path).columns] == ["age", "sex"]
    assert read_header(stored(tmp_path, age=[1])).columns[0].name == "age"


def test_columns_without_a_name_of_their_own_are_left_out(tmp_path):
    header = read_header(written(tmp_path, ",age,sex,age, ,a\x07b\n"))
    assert [column.name for column in header.columns] == ["sex"]
    assert header.left_out == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"5,{SECRET}\n6,x\n", "may be a record"),
        ("2020-01-01,17,M\n", "may be a record"),
        ("", "names no columns"),
        (" \n", "names no columns"),
        (b"\xff\xfe,x\n", "names no columns"),
        (b"\xe9,x\n", "in UTF-8"),
        ("age,age\n", "names no columns"),
    ],
)
def test_a_first_line_that_may_be_a_record_is_not_shown(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as error:
        read_header(written(tmp_path, text))
    assert SECRET not in error.value.on_screen()
    assert SECRET not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("header", ["age,y2020,2021", "a,b,1", "Q1,Q2"])
def test_names_may_hold_digits(tmp_path, header):
    columns = read_header(written(tmp_path, f"{header}\n1,2,3\n")).columns
    assert [column.name for column in columns] == header.split(",")


@pytest.mark.parametrize("name", ["missing.csv", "data.xlsx", "broken.parquet"])
def test_files_that_cannot_be_read(tmp_path, name):
    if name != "missing.csv":
        written(tmp_path, "age\n1\n", name)
    with pytest.raises(DataError, match=name):
        read_header(tmp_path / name)


# ---- values


def test_values_are_sorted_whatever_the_order_of_the_records(tmp_path):
    path = written(tmp_path, "code,word\n10,b\n9,a\n-1,b\n10,\n ,ä\n")
    columns = read_column_values(path, ["word", "code"])
    assert columns.values == {"word": ("a", "b", "ä"), "code": ("-1", "9", "10")}
    assert columns.refused == {}


def test_values_read_the_records_they_were_found_in(tmp_path):
    """Against pandas on the sample: the categories found are those that a release would need."""
    path = sample_data_folder() / "household.csv"
    columns = read_column_values(path, ["sex", "occupation", "tenure"])
    frame = pd.read_csv(path, dtype=str)
    for name, values in columns.values.items():
        assert values == tuple(sorted(frame[name].unique()))
    domain = Domain(tuple(Attribute(name, Categories(v)) for name, v in columns.values.items()))
    assert read_records(path, domain, range(3)).n_records == len(frame)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet")
    assert (
        read_column_values(tmp_path / "data.parquet", list(columns.values)).values == columns.values
    )


def test_values_in_two_unicode_forms_are_one(tmp_path):
    text = "town\n\u00c9vry\nE\u0301vry\nLens\n"
    records = (written(tmp_path, text), stored(tmp_path, town=text.split()[1:]))
    for path in records:
        found = read_column_values(path, ["town"]).values["town"]
        assert found == ("Lens", "\u00c9vry")
        assert codes(path, domain_of(town=Categories(found))) == [[1, 1, 0]]


def test_numbers_booleans_and_codes_read_as_a_release_reads_them(tmp_path):
    path = stored(
        tmp_path,
        real=[1.0, 2.5, np.nan, np.inf],
        yes=[True, False, None, True],
        coded=pa.array(["x", "y", None, "x"]).dictionary_encode(),
    )
    assert read_column_values(path, ["real", "yes", "coded"]).values == {
        "real": ("1", "2.5"),
        "yes": ("false", "true"),
        "coded": ("x", "y"),
    }


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"id{i}" for i in range(MOST_VALUES + 1)], f"more than {MOST_VALUES} different values"),
        ([str(i) for i in range(MOST_NUMBERS + 1)], "more than 20 different whole numbers"),
        (["x" * (MOST_LETTERS + 1)], "texts of more than 100 characters"),
        ([None, None], "no values"),
    ],
)
def test_columns_that_are_no_categories_are_refused_without_showing_them(tmp_path, values, reason):
    path = stored(tmp_path, c=pa.array(values, pa.string()), other=["a"] * len(values))
    columns = read_column_values(path, ["c", "other"])
    assert columns.refused == {"c": reason}
    assert columns.values == {"other": ("a",)}


@pytest.mark.parametrize(
    "values",
    [[f"id{i:03}" for i in range(MOST_VALUES)], [str(i) for i in range(MOST_NUMBERS)]],
)
def test_the_limits_themselves_are_allowed(tmp_path, values):
    columns = read_column_values(stored(tmp_path, c=values[::-1]), ["c"])
    assert columns.values["c"] == tuple(values)


def test_nothing_tells_how_many_records_there_are(tmp_path):
    few = read_column_values(written(tmp_path, "c\na\nb\n"), ["c"])
    many = read_column_values(written(tmp_path, "c\n" + "a\n" * 1000 + "b\n"), ["c"])
    assert (few.values, few.refused) == (many.values, many.refused)
    assert "('a', 'b')" not in repr(many)


def test_files_are_read_in_blocks_with_progress(tmp_path):
    shares = []
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"c": ["a", "b", "c", "d"]}), path, row_group_size=1)
    columns = read_column_values(path, ["c"], on_progress=lambda _, share: shares.append(share))
    assert columns.values == {"c": ("a", "b", "c", "d")}
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_a_broken_file_is_told_without_its_content(tmp_path):
    path = written(tmp_path, f"c,d\n{SECRET},x\n{SECRET}\n")
    with pytest.raises(DataError) as error:
        read_column_values(path, ["c"])
    assert SECRET not in str(error.value)
