"""Listing: which files are records, what their folders say, and what is refused by name."""

from pathlib import Path

import pytest

from rpexplore.data.files.record_files import record_files
from rpexplore.errors import DataError


def laid(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def names_of(folder: Path) -> list[str]:
    return [str(file.path.relative_to(folder)) for file in record_files(folder)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("A.CSV.gz", "csv"), ("a.parquet", "parquet"), ("a.b.PQ", "parquet")],
)
def test_a_file_is_itself(name, kind, tmp_path):
    (file,) = record_files(laid(tmp_path, name) / name)
    assert (file.path, file.kind, file.size, file.keys) == (tmp_path / name, kind, len(name), {})


def test_files_come_by_name_without_hidden_ones(tmp_path):
    folder = laid(
        tmp_path,
        "b.csv",
        "a/2.csv.gz",
        "a/1.csv",
        "c.csv",
        "_SUCCESS",
        ".b.csv.crc",
        "_temporary/x.txt",
        ".git/x.csv",
        "a/_metadata",
    )
    assert names_of(folder) == ["a/1.csv", "a/2.csv.gz", "b.csv", "c.csv"]


def test_keys_of_folders_are_texts(tmp_path):
    folder = laid(
        tmp_path,
        "year=007/k=a%2Fb/1.parquet",
        "year=007/k=__HIVE_DEFAULT_PARTITION__/1.parquet",
        "k=é=1/plain/year=1.0/1.parquet",
        "year=8/_ignored.txt",
    )
    assert {str(f.path.relative_to(folder)): f.keys for f in record_files(folder)} == {
        "k=é=1/plain/year=1.0/1.parquet": {"k": "é=1", "year": "1.0"},
        "year=007/k=__HIVE_DEFAULT_PARTITION__/1.parquet": {"year": "007", "k": None},
        "year=007/k=a%2Fb/1.parquet": {"year": "007", "k": "a/b"},
    }


def test_a_key_may_begin_with_an_underscore(tmp_path):
    """Passing it over would silently drop records."""
    (file,) = record_files(laid(tmp_path, "_part=3/1.csv"))
    assert file.keys == {"_part": "3"}


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (["a.csv", "b.parquet"], ["a.csv", "b.parquet", "two kinds"]),
        (["a.csv", "README.txt"], ["README.txt", "underscore"]),
        (["a.csv", "x/b.json"], ["x/b.json"]),
        (["year=1/a.csv", "year=2/k=3/b.csv"], ["year=…/a.csv", "year=…/k=…/b.csv"]),
        (["a.csv", "year=2/b.csv"], ["a.csv", "year=…/b.csv", "key=value"]),
        (["year=1/year=2/a.csv"], ["year=…/year=…/a.csv", "twice"]),
        (["year=%FF/a.csv"], ["year=…/a.csv", "UTF-8"]),
        (["_a.txt", ".b", "rpexplore-ledger.sqlite"], ["holds no records"]),
        (["a.csv", "_b.csv"], ["_b.csv", "not clear"]),
        (["a.parquet", ".b.parquet"], [".b.parquet", "not clear"]),
        (["a.parquet", "_delta_log/0.json"], ["_delta_log", "versions"]),
    ],
)
def test_what_is_refused_is_named(names, texts, tmp_path):
    with pytest.raises(DataError) as caught:
        record_files(laid(tmp_path, *names))
    for text in [*texts, str(tmp_path)]:
        assert text in str(caught.value)


def test_a_link_to_another_folder_is_refused(tmp_path):
    laid(tmp_path, "other/a.csv", "records/b.csv")
    (tmp_path / "records" / "more").symlink_to(tmp_path / "other")
    with pytest.raises(DataError, match="'more'"):
        record_files(tmp_path / "records")
    (tmp_path / "records" / "more").unlink()
    (tmp_path / "records" / "c.csv").symlink_to(tmp_path / "other" / "a.csv")
    with pytest.raises(DataError, match=r"'c\.csv'"):
        record_files(tmp_path / "records")
