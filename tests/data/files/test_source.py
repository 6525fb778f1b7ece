"""FileSource: exact counts of files and folders; fingerprints; what is refused."""

import gzip
import io
import os
import threading
import traceback
import zipfile
from collections import Counter
from functools import partial
from itertools import combinations, product
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
from rpexplore.data.files import source as file_source
from rpexplore.data.files import source as files
from rpexplore.data.files.columns import read_column_values, read_header
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Counts, PersonRule, Source
from rpexplore.errors import DataError

SECRET = "s3cr3t-value"
DOMAIN = Domain(
    (
        Attribute("sex", Categories(("f", "m", "other"))),
        Attribute("age", Integers(0, 99, 50)),
        Attribute("pay", Bins((0, 10, 100))),
        Attribute("region", Categories(("07", "8", "rest"))),
    )
)
OTHER = {"sex": "other", "region": "rest"}
# What a record may hold, and which category of its attribute that is.
MEANT = [
    {"f": 0, "m": 1, "other": 2, "unheard of": 2, None: 2},
    {0: 0, 49: 0, 50: 1, 99: 1},
    {0.0: 0, 9.5: 0, 10.0: 1, 100.0: 1},
    {"07": 0, "8": 1, "rest": 2, "7": 0, "70": 2, None: 2},
]
RECORDS = st.lists(st.tuples(*(st.sampled_from(list(meant)) for meant in MEANT)), max_size=25)
ALL = [indices for k in range(5) for indices in combinations(range(4), k)]


def table_of(records: list[tuple]) -> pa.Table:
    types = (pa.string(), pa.int64(), pa.float64(), pa.string())
    columns = zip(*records, strict=True) if records else ((), (), (), ())
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(DOMAIN.names))


def check(counts: Counts, records: list[tuple]) -> None:
    """All marginals, against a counter of the records."""
    codes = [
        tuple(meant[value] for meant, value in zip(MEANT, each, strict=True)) for each in records
    ]
    assert counts.n_records == len(records)
    for indices in ALL:
        times = Counter(tuple(record[index] for index in indices) for record in codes)
        marginal = counts.counts(indices)
        assert marginal.shape == tuple(DOMAIN.sizes[list(indices)])
        for cell in product(*(range(size) for size in marginal.shape)):
            assert marginal[cell] == times[cell]


def write_folder(folder: Path, records: list[tuple], form: str) -> Path:
    """The records in one of the ways that a file or a folder of them can be."""
    table = table_of(records)
    halves = [table.slice(0, len(records) // 3), table.slice(len(records) // 3)]
    folder.mkdir()
    match form:
        case "parquet":
            pq.write_table(table, folder / "all.parquet", row_group_size=4)
            return folder / "all.parquet"
        case "csv":
            pa.csv.write_csv(table, folder / "all.csv")
            return folder / "all.csv"
        case "csv.gz":
            with gzip.open(folder / "all.csv.gz", "wb") as file:
                pa.csv.write_csv(table, file)
            return folder / "all.csv.gz"
        case "tsv":
            options = pa.csv.WriteOptions(delimiter="\t")
            pa.csv.write_csv(table, folder / "all.tab", write_options=options)
            return folder / "all.tab"
        case "zip":
            text = io.BytesIO()
            pa.csv.write_csv(table, text, write_options=pa.csv.WriteOptions(delimiter=";"))
            with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as file:
                file.writestr("data/all.tsv", text.getvalue())
                file.writestr("data/readme.pdf", "of no matter")
            return folder / "all.zip"
        case "flat":
            for index, half in enumerate(halves):
                pq.write_table(half, folder / f"part-{index}.parquet")
        case "texts":  # every file may have types of its own
            for index, half in enumerate(halves):
                texts = half.cast(pa.schema([(name, pa.string()) for name in half.column_names]))
                pq.write_table(texts if index else half, folder / f"part-{index}.parquet")
        case "csv folder":
            pa.csv.write_csv(halves[0], folder / "0.csv")
            with gzip.open(folder / "1.csv.gz", "wb") as file:
                pa.csv.write_csv(halves[1], file)
        case "hive" | "hive csv":
            pq.write_to_dataset(table, folder, partition_cols=["region", "sex"])
            if not records:
                (folder / "region=8" / "sex=f").mkdir(parents=True)
                pq.write_table(
                    table.drop_columns(["region", "sex"]), folder / "region=8/sex=f/0.parquet"
                )
            for path in list(folder.rglob("*.parquet")) if form == "hive csv" else []:
                with pq.ParquetFile(path) as file:
                    pa.csv.write_csv(file.read(), path.with_suffix(".csv"))
                path.unlink()
    return folder


FORMS = [
    "parquet",
    "csv",
    "csv.gz",
    "tsv",
    "zip",
    "flat",
    "texts",
    "csv folder",
    "hive",
    "hive csv",
]


@given(RECORDS, st.sampled_from(FORMS), st.sampled_from([1, 3, 1 << 18]))
def test_counts_are_those_of_a_counter(tmp_path_factory, records, form, rows):
    path = write_folder(tmp_path_factory.mktemp("records") / "data", records, form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_LEAST_ROWS", rows)
        patch.setattr(files, "_MOST_ROWS", rows)
        check(
            FileSource(path).count(DOMAIN, ALL, unknown_values=OTHER, missing_values=OTHER), records
        )


@given(
    st.lists(st.sampled_from(["a", "b", "17"]), max_size=12),
    RECORDS,
    st.integers(1, 3),
    st.sampled_from([None, "age"]),
    st.booleans(),
)
def test_of_each_person_the_first_are_counted(tmp_path_factory, ids, records, most, order, as_csv):
    """Against a loop; what is beyond is not even looked at."""
    n = min(len(ids), len(records))
    ids, records = ids[:n], records[:n]
    kept = set()
    for person in set(ids):
        own = [index for index in range(n) if ids[index] == person]
        own.sort(key=lambda index: records[index][1] if order else 0)
        kept |= set(own[:most])
    table = table_of(records).append_column("id", pa.array(ids, pa.string()))
    fine = [each if index in kept else None for index, each in enumerate(table["age"].to_pylist())]
    if order is None:  # a missing age would be refused
        table = table.set_column(1, "age", pa.array(fine, pa.int64()))
    path = tmp_path_factory.mktemp("records") / ("data.csv" if as_csv else "data.parquet")
    pa.csv.write_csv(table, path) if as_csv else pq.write_table(table, path, row_group_size=5)
    rule = PersonRule("id", most, "keep first", order)
    counts = FileSource(path).count(
        DOMAIN, ALL, unknown_values=OTHER, missing_values=OTHER, person_rule=rule
    )
    check(counts, [each for index, each in enumerate(records) if index in kept])
    strict = PersonRule("id", most)
    if len(kept) == n:
        check(
            FileSource(path).count(
                DOMAIN, ALL, unknown_values=OTHER, missing_values=OTHER, person_rule=strict
            ),
            records,
        )
    else:
        with pytest.raises(DataError, match=f"than the {most} that"):
            FileSource(path).count(
                DOMAIN, ALL, unknown_values=OTHER, missing_values=OTHER, person_rule=strict
            )


def test_the_first_records_are_found_across_batches(tmp_path):
    """Person b has one record in the first row group, two in the second, one in a second file."""
    ids = ["a", "b", "c", "b", "b", "d"]
    records = [("f", age, pay, "8") for age, pay in product((0, 50), (0.0, 10.0, 100.0))]
    table = table_of(records).append_column("id", pa.array(ids))
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "0.parquet", row_group_size=3)
    pq.write_table(table.slice(4), tmp_path / "data" / "1.parquet")
    for most, kept in ((1, [0, 1, 2, 5]), (2, [0, 1, 2, 3, 5, 5])):
        rule = PersonRule("id", most, "keep first")
        counts = FileSource(tmp_path / "data").count(DOMAIN, ALL, person_rule=rule)
        check(counts, [records[index] for index in kept])


SOME = [("f", 49, 9.5, "8"), ("m", 50, 10.0, "07"), ("m", 99, 100.0, "8")]


@pytest.mark.parametrize("form", FORMS)
def test_columns_and_values_of_every_form(form, tmp_path):
    path = write_folder(tmp_path / "data", SOME, form)
    source: Source = FileSource(path)
    assert sorted(source.columns()) == sorted(DOMAIN.names)
    assert {column.name for column in read_header(path).columns} == set(DOMAIN.names)
    values = read_column_values(path, list(DOMAIN.names)).values
    assert values["sex"] == ("f", "m")
    assert values["region"] in (("07", "8"), ("8", "07"))


def note_progress(progress: list[tuple[str, float]], doing: str, share: float) -> None:
    progress.append((doing, share))


@pytest.mark.by_day(4)
@pytest.mark.parametrize("form", FORMS)
def test_progress_grows_to_one(form, tmp_path):
    path = write_folder(tmp_path / "data", SOME * 5, form)
    for persons in (None, PersonRule("age", 5)):
        progress: list[tuple[str, float]] = []
        FileSource(path).count(
            DOMAIN, ALL, person_rule=persons, on_progress=partial(note_progress, progress)
        )
        assert {doing for doing, _ in progress} == {"Counting the records"}
        shares = [share for _, share in progress]
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert len(shares) >= (3 if persons is None else 4)


def test_only_the_columns_of_the_tables_are_needed(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("sex,x\nf,1\nm,2\nf,\n")
    counts = FileSource(path).count(DOMAIN, [(0,)])
    assert counts.counts((0,)).tolist() == [2, 1, 0]
    assert FileSource(path).count(DOMAIN, []).n_records == 3
    assert FileSource(path).count(DOMAIN, [()]).counts(()) == 3
    with pytest.raises(DataError, match="no column 'age'"):
        FileSource(path).count(DOMAIN, [(0, 1)])


# --- the dataset and its fingerprint


def test_a_dataset_is_a_path_as_seen_from_the_ledger(tmp_path):
    inside, outside = tmp_path / "in" / "data.csv", tmp_path / "data"
    inside.parent.mkdir()
    outside.mkdir()
    folder = inside.parent.resolve()
    assert FileSource(inside).names(folder)[0] == "data.csv"
    assert FileSource(outside).names(folder)[0] == str(outside.resolve())
    assert FileSource(outside).home == tmp_path.resolve()
    link = tmp_path / "link.csv"
    link.symlink_to(inside)
    assert FileSource(link).names(folder)[0] == "data.csv"
    assert FileSource(str(inside)).name == str(inside)


def test_a_link_is_followed_once_and_its_own_ending_counts_for_nothing(tmp_path):
    first, second, link = tmp_path / "first.csv", tmp_path / "second.csv", tmp_path / "link.csv"
    first.write_text("sex\nf\n")
    second.write_text("sex\nm\nm\n")
    link.symlink_to(first)
    source = FileSource(link)
    seen, names = source.fingerprint(), source.names(tmp_path.resolve())
    link.unlink()
    link.symlink_to(second)
    assert source.count(DOMAIN, [(0,)]).n_records == 1
    assert (source.fingerprint(), source.names(tmp_path.resolve())) == (seen, names)
    second.rename(tmp_path / "passwd")
    link.unlink()
    link.symlink_to(tmp_path / "passwd")
    with pytest.raises(DataError, match=r"must be a \.csv or \.parquet file"):
        FileSource(link).columns()


@pytest.mark.parametrize("name", ["pipe.csv", "loop.csv", "nul\0.csv"])
def test_a_pipe_a_loop_or_no_name_is_refused_at_once(name, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    with pytest.raises(DataError, match=r"must be a file or a folder|check the path"):
        FileSource(tmp_path / name).fingerprint()


def test_a_fingerprint_tells_size_and_latest_change(tmp_path):
    path = write_folder(tmp_path / "data", SOME, "csv folder")
    os.utime(path / "0.csv", ns=(0, 1_500_000_000 * 10**9))
    os.utime(path / "1.csv.gz", ns=(0, 1_600_000_000 * 10**9 + 1))
    fingerprint = FileSource(path).fingerprint()
    assert fingerprint.size == sum(each.stat().st_size for each in path.iterdir())
    assert fingerprint.modified == "2020-09-13T12:26:40+00:00"
    assert FileSource(path).fingerprint() == fingerprint


def touch(path: Path) -> None:
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def replace(path: Path) -> None:
    """By another file of the same content and time."""
    other, stat = path.with_name(".other"), path.stat()
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(path)


CHANGES = {
    "touched": touch,
    "replaced": replace,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"f,1,1,8\n"),
    "renamed": lambda path: path.rename(path.with_name("renamed.csv")),
    "joined": lambda path: path.with_name("more.csv").write_bytes(path.read_bytes()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_records_that_change_while_they_are_counted_are_refused(change, tmp_path):
    path = write_folder(tmp_path / "data", SOME, "csv folder")
    (path / "1.csv.gz").unlink()
    before = FileSource(path).fingerprint()
    waiting = [change]

    def meanwhile(doing: str, share: float) -> None:
        if waiting:
            waiting.pop()(path / "0.csv")

    with pytest.raises(DataError, match="changed while they were counted") as caught:
        FileSource(path).count(DOMAIN, [(0, 1)], on_progress=meanwhile)
    assert str(path) in str(caught.value)
    assert FileSource(path).fingerprint() != before


def test_a_folder_that_changes_while_it_is_listed_is_refused(tmp_path, monkeypatch):
    path = write_folder(tmp_path / "data", SOME, "flat")
    record_files = file_source.record_files

    def changing(folder):
        files_there = record_files(folder)
        touch(folder / "part-1.parquet")
        return files_there

    monkeypatch.setattr(file_source, "record_files", changing)
    with pytest.raises(DataError, match="change while they are looked at"):
        FileSource(path).fingerprint()


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none"])
def test_what_is_not_there_is_told(name, tmp_path):
    for ask in (FileSource.fingerprint, lambda source: source.count(DOMAIN, [(0,)])):
        with pytest.raises(DataError, match=f"no records at .*{name}"):
            ask(FileSource(tmp_path / name))


# --- refusals


def refusal(path: Path, **options) -> DataError:
    """The `DataError`; fails if its message or traceback holds the secret."""
    with pytest.raises(DataError) as caught:
        FileSource(path).count(DOMAIN, ALL, **options)
    printed = "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)
    assert SECRET not in printed
    return caught.value


def test_a_file_of_a_folder_without_the_column_is_named_before_records_are_read(tmp_path):
    path = write_folder(tmp_path / "data", SOME, "flat")
    table = pq.read_table(path / "part-1.parquet").drop_columns(["age"])
    pq.write_table(table, path / "part-1.parquet")
    error = refusal(path, on_progress=lambda doing, share: pytest.fail("records were read"))
    assert "part-1.parquet" in str(error)
    assert "'age'" in str(error)


def test_a_column_both_in_the_file_and_in_the_folders_is_refused(tmp_path):
    (tmp_path / "data" / "sex=f").mkdir(parents=True)
    pq.write_table(table_of(SOME), tmp_path / "data" / "sex=f" / "0.parquet")
    error = refusal(tmp_path / "data")
    assert "2 columns 'sex'" in str(error)
    assert "sex=…" in str(error)


@pytest.mark.parametrize("form", FORMS)
def test_a_strange_value_is_told_on_screen_only(form, tmp_path):
    records = [*SOME, (SECRET, 3, 5.0, "8")]
    path = write_folder(tmp_path / "data", records, form)
    with pytest.raises(DataError) as caught:
        FileSource(path).count(DOMAIN, ALL)
    assert SECRET not in str(caught.value)
    assert SECRET in caught.value.on_screen()


@pytest.mark.parametrize(("missing", "is_empty"), [("07", False), ("f", True)])
def test_a_missing_key_is_a_missing_value(missing, is_empty, tmp_path):
    records = [tuple(None if value == missing else value for value in each) for each in SOME]
    path = write_folder(tmp_path / "data", records, "hive")
    if is_empty:
        for folder in path.rglob("*=__HIVE_DEFAULT_PARTITION__"):
            folder.rename(folder.with_name(f"{folder.name.partition('=')[0]}="))
    assert "missing value" in str(refusal(path))
    check(FileSource(path).count(DOMAIN, ALL, unknown_values=OTHER, missing_values=OTHER), records)


@pytest.mark.parametrize("broken", ["cut", "garbled", "not compressed", "quotes", "ragged"])
def test_a_broken_compressed_file_is_refused(broken, tmp_path):
    text = "sex,age,pay,region\n" + "f,3,5,8\nm,4,5,8\n" * 20_000
    text += {"quotes": 'f,"3,5,8\n', "ragged": f"{SECRET}\n"}.get(broken, "")
    content = bytearray(gzip.compress(text.encode()))
    if broken == "garbled":
        content[len(content) // 2 : len(content) // 2 + 40] = b"\xaa" * 40
    path = tmp_path / "data.csv.gz"
    path.write_bytes({"cut": content[:-20], "not compressed": text.encode()}.get(broken, content))
    assert "data.csv.gz" in str(refusal(path))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ZeroDivisionError])
def test_what_progress_raises_stops_everything(stop, tmp_path):
    path = write_folder(tmp_path / "data", SOME * 10, "csv")
    threads = threading.active_count()

    def refuse(doing: str, share: float) -> None:
        raise stop

    with pytest.raises(stop):
        FileSource(path).count(DOMAIN, ALL, on_progress=refuse)
    assert threading.active_count() == threads


def test_a_larger_file_is_counted_as_pandas_does(tmp_path):
    rng = np.random.default_rng(3)
    n, sizes = 60_000, [3, 70, 5, 40, 9]
    columns = {f"a{i}": rng.integers(0, size, n) for i, size in enumerate(sizes)}
    frame = pd.DataFrame(columns)
    frame["a1"] = frame["a1"].map("v{}".format)
    frame.to_parquet(tmp_path / "data.parquet", row_group_size=25_000)
    values = [Integers(0, size - 1) for size in sizes]
    values[1] = Categories(tuple(f"v{i}" for i in range(70)))
    domain = Domain(tuple(Attribute(f"a{i}", each) for i, each in enumerate(values)))
    tables = [indices for k in range(4) for indices in combinations(range(5), k)]
    result = FileSource(tmp_path / "data.parquet").count(domain, tables)
    for indices in tables[1:]:
        expected = (
            pd.Series(1, index=frame.index).groupby([columns[f"a{i}"] for i in indices]).sum()
        )
        counts = result.counts(indices)
        assert counts.sum() == n
        index = np.array([np.atleast_1d(cell) for cell in expected.index])
        assert np.array_equal(counts[tuple(index.T)], expected.to_numpy())
