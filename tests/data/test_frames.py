"""FrameSource: the same counts and refusals as the same records in a file."""

import traceback
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rpexplore import Attribute, Bins, Categories, Domain, Integers
from rpexplore.data.files.source import FileSource, source_of
from rpexplore.data.frames import FrameSource
from rpexplore.data.source import Counts, PersonRule, Source
from rpexplore.errors import DataError
from tests.data import awkward
from tests.data.engines import people

SECRET = "s3cr3t-value"
DOMAIN = Domain(
    (
        Attribute("sex", Categories(("f", "m", "other"))),
        Attribute("age", Integers(0, 99, 50)),
        Attribute("pay", Bins((0, 10, 100))),
    )
)
ALL = [table for order in range(4) for table in combinations(range(3), order)]
KINDS = {
    "arrow": lambda table: table,
    "chunked": lambda table: pa.concat_tables([table.slice(0, 3), table.slice(3)]),
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow types": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars by category": lambda table: pl.from_arrow(table).with_columns(
        pl.col(pl.String).cast(pl.Categorical)
    ),
    "pandas by category": lambda table: table.to_pandas(strings_to_categorical=True),
}


def records(n: int = 200) -> pa.Table:
    rng = np.random.default_rng(n)
    return pa.table(
        {
            "who": rng.integers(0, n // 4, n),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(0, 100, n),
            "pay": rng.integers(0, 1000, n) / 10,
            "day": rng.choice(["2024-01-02", "2024-01-10", "2023-12-31"], n),
        }
    )


def same(counts: Counts, other: Counts) -> bool:
    return counts.n_records == other.n_records and all(
        np.array_equal(counts.counts(table), other.counts(table)) for table in ALL
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rule",
    [None, PersonRule("who", 3, "keep first"), PersonRule("who", 2, "keep first", "day")],
    ids=["all", "first", "by day"],
)
def test_a_frame_is_counted_as_the_same_records_in_a_file(kind, rule, tmp_path):
    table = records()
    pyarrow.csv.write_csv(table, tmp_path / "records.csv")
    of_file = FileSource(tmp_path / "records.csv").count(DOMAIN, ALL, person_rule=rule)
    source: Source = FrameSource(KINDS[kind](table), name="survey")
    assert same(source.count(DOMAIN, ALL, person_rule=rule), of_file)


@pytest.mark.parametrize("ways", awkward.SOME_OR_ALL)
@pytest.mark.parametrize("kind", ["arrow", "pandas of Arrow types", "polars", "polars by category"])
def test_awkward_values_mean_what_they_mean_in_a_file(kind, ways, tmp_path):
    table, domain, tables = awkward.table(ways), awkward.domain(ways), awkward.tables(ways)
    pq.write_table(table, tmp_path / "records.parquet")
    options = awkward.takers(ways)
    of_file = FileSource(tmp_path / "records.parquet").count(domain, tables, **options)
    source = FrameSource(KINDS[kind](table), name="awkward")
    of_frame = source.count(domain, tables, **options)
    for each in tables:
        assert np.array_equal(of_frame.counts(each), of_file.counts(each)), domain.names[each[1]]


def test_missing_values_of_pandas_are_missing():
    frame = pd.DataFrame({"sex": ["f", None], "age": [1, np.nan], "pay": [2.0, np.nan]})
    for column in DOMAIN.names:
        with pytest.raises(DataError, match=f"'{column}' holds a missing value"):
            FrameSource(frame, name="survey").count(DOMAIN, [DOMAIN.positions([column])])
    counts = FrameSource(frame, name="survey").count(
        DOMAIN, [(0,)], missing_values={"sex": "other"}
    )
    assert counts.counts((0,)).tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_counted_where_no_column_is_used(kind):
    frame = KINDS[kind](records(40))
    for columns in (None, [], ["sex"]):
        source = FrameSource(frame, name="survey", columns=columns)
        assert source.count(DOMAIN, [()]).n_records == 40
    assert FrameSource(KINDS[kind](records(8).slice(0, 0)), name="none").count(
        DOMAIN, ALL
    ).n_records == 0  # fmt: skip


def test_columns_that_are_not_used_may_hold_anything():
    frame = records().to_pandas().assign(notes=[object()] * 200)
    frame.columns = [*frame.columns[:-1], 7]
    assert FrameSource(frame, name="survey", columns=DOMAIN.names).columns() == DOMAIN.names
    odd = frame.assign(sparse=pd.arrays.SparseArray([0] * 200), serial=[2**64, *range(199)])
    odd = pd.concat([odd, odd[["day", "day"]]], axis=1)
    for each in (odd, pa.table([*records().columns, *records().columns[4:] * 2],
                               names=[*records().column_names, "day", "day"])):  # fmt: skip
        source = FrameSource(each, name="survey")
        source.fingerprint()
        assert source.count(DOMAIN, ALL).n_records == 200
        with pytest.raises(DataError, match="3 columns 'day'"):
            source.count(DOMAIN, ALL, person_rule=PersonRule("who", 9, "keep first", "day"))
    day = Domain((Attribute("7", Categories(("a",))),))
    with pytest.raises(DataError, match="column '7' of 'survey' cannot be read"):
        FrameSource(frame, name="survey").count(day, [(0,)])
    sparse = Domain((Attribute("sparse", Categories(("0",))),))
    assert FrameSource(odd, name="survey").count(sparse, [(0,)]).n_records == 200
    lists = records().append_column("lists", pa.array([[1]] * 200))
    assert FrameSource(lists, name="survey").count(DOMAIN, ALL).n_records == 200


def test_a_column_of_a_type_that_arrow_does_not_have_matters_only_where_it_is_used():
    wide = pl.DataFrame({"a": ["x", "y"], "wide": pl.Series([1, 2], dtype=pl.Int128)})
    source = FrameSource(wide, name="survey")
    used, wide_one = (Domain((Attribute(name, Categories(("x", "y"))),)) for name in ("a", "wide"))
    assert source.count(used, [(0,)]).n_records == 2
    with pytest.raises(DataError, match="column 'wide' of 'survey' cannot be read"):
        source.count(wide_one, [(0,)])


def test_bytes_that_are_no_text_are_refused_on_screen_only():
    table = records(8).set_column(1, "sex", pa.array([b"\xff" + SECRET.encode()] * 8))
    with pytest.raises(DataError, match="every column that is used") as caught:
        FrameSource(table, name="survey").count(DOMAIN, ALL)
    printed = "".join(traceback.format_exception(caught.value))
    assert SECRET not in printed


# --- the dataset and its fingerprint


def test_the_name_is_the_dataset_and_no_ledger_lies_beside_it(tmp_path):
    source = FrameSource(records(), name="survey 2026")
    assert source.names(tmp_path)[0] == source.name == "survey 2026"
    assert source.home is None
    assert repr(source) == "FrameSource('survey 2026')"


def test_the_fingerprint_is_of_what_the_used_columns_hold():
    table = records()
    fingerprint = FrameSource(table, name="a", columns=["sex", "age"]).fingerprint()

    def detail(other: pa.Table) -> str:
        return FrameSource(other, name="b", columns=["sex", "age"]).fingerprint().detail

    age = table["age"].to_numpy().copy()
    age[[0, 1]] = age[[1, 0]] + [0, 1]
    assert detail(table.drop_columns(["pay"])) == fingerprint.detail
    assert detail(KINDS["chunked"](table)) == fingerprint.detail
    assert detail(table.slice(1)) != fingerprint.detail
    assert detail(table.take(np.arange(200)[::-1])) != fingerprint.detail
    assert detail(table.set_column(2, "age", pa.array(age))) != fingerprint.detail
    nobody = pa.array([None, *table["sex"].to_pylist()[1:]])
    empty = pa.array(["", *table["sex"].to_pylist()[1:]])
    details = {detail(table.set_column(1, "sex", column)) for column in (nobody, empty)}
    assert len(details | {fingerprint.detail}) == 3


def test_a_text_that_moves_to_the_next_record_is_another_content():
    one, other = pa.table({"c": ["ab", "c"]}), pa.table({"c": ["a", "bc"]})
    assert FrameSource(one, name="a").fingerprint() != FrameSource(other, name="a").fingerprint()


def test_a_frame_that_changes_while_it_is_counted_is_refused():
    age = np.arange(100)
    frame = pa.table({"age": pa.array(age)})  # shares the memory of `age`

    def change(doing: str, share: float) -> None:
        age[0] = 99

    with pytest.raises(DataError, match="'survey' changed while they were counted"):
        FrameSource(frame, name="survey").count(DOMAIN, [(1,)], on_progress=change)


# --- refusals


@pytest.mark.parametrize("kind", KINDS)
def test_a_strange_value_is_told_on_screen_only(kind):
    table = records(8)
    table = table.set_column(1, "sex", pa.array([SECRET] + ["f"] * 7))
    with pytest.raises(
        DataError, match="'sex' holds a value that is not in the codebook"
    ) as caught:
        FrameSource(KINDS[kind](table), name="survey").count(DOMAIN, ALL)
    printed = "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)
    assert SECRET not in printed
    assert SECRET in caught.value.on_screen()


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_with_too_many_records_is_refused(kind):
    source = FrameSource(KINDS[kind](records()), name="survey")
    with pytest.raises(DataError, match="more records than the 1 that"):
        source.count(DOMAIN, ALL, person_rule=PersonRule("who", 1))


def test_a_missing_or_doubled_or_nested_column_is_refused():
    table = records(8)
    for frame, message in (
        (table.drop_columns(["age"]), "'survey' have no column 'age'"),
        (table.append_column("age", table["pay"]), "'survey' have 2 columns 'age'"),
        (table.set_column(2, "age", pa.array([[1]] * 8)), "'age' of 'survey' holds lists"),
    ):
        with pytest.raises(DataError, match=message):
            FrameSource(frame, name="survey").count(DOMAIN, ALL)


@pytest.mark.parametrize("name", ["", "  ", "a\nb"])
def test_a_frame_without_a_name_is_refused(name):
    with pytest.raises(DataError, match=r"must have a name.*name=\.\.\."):
        FrameSource(records(), name=name)


def test_what_can_be_read_only_once_is_refused():
    for stream in (records().to_reader(), iter([])):
        with pytest.raises(DataError, match="table that can be read again"):
            FrameSource(stream, name="survey")


# --- any source


def test_a_path_a_frame_and_a_source_are_sources(tmp_path):
    assert source_of(tmp_path / "a.csv") == FileSource(tmp_path / "a.csv")
    assert source_of(str(tmp_path)) == FileSource(tmp_path)
    source = source_of(pl.from_arrow(records()), name="survey", columns=["sex"])
    assert isinstance(source, FrameSource)
    assert source.columns() == ("sex",)
    assert source_of(source) is source


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(DataError, match="must have a name"):
        source_of(records())
    with pytest.raises(DataError, match="A name is for records in memory"):
        source_of(tmp_path, name="survey")
    with pytest.raises(DataError, match="got a dict"):
        source_of({"sex": ["f"]})


def test_groups_of_cells_are_counted_as_the_sums_of_their_cells():
    table = people.people(400)
    people.check_atoms(FrameSource(table, name="survey"), table)
