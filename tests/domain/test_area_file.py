"""Files of areas: three forms give one tree, from CSV and Parquet; errors say where."""

import gzip
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.domain.area_file import tree_of_file
from rpexplore.errors import DomainError
from tests.domain.test_area_tree import PATHS


def csv_of(rows, header) -> str:
    return "\n".join([",".join(header), *(",".join(row) for row in rows)]) + "\n"


@given(PATHS, st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_forms_give_the_same_tree(tmp_path, paths, data):
    leaves = [p for p in paths if not any(q[: len(p)] == p and q != p for q in paths)]
    leaves = data.draw(st.permutations(leaves))
    depth = max(map(len, leaves))
    levels = [f"level {k + 1}" for k in range(depth)]
    inner = {path[:k]: path[: k - 1] for path in leaves for k in range(1, len(path) + 1)}
    whole = ["".join(path) for path in leaves]

    # Whole codes, as all forms can have them: "abc" within "ab" within "a".
    rows = [
        ["".join(path[: k + 1]) if k < len(path) else "" for k in range(depth)] for path in leaves
    ]
    parents = [["".join(path), "".join(above)] for path, above in inner.items()]
    files = {
        "columns.csv": (csv_of(rows, levels), {}),
        "lengths.csv": (csv_of(([code] for code in whole), ["code"]), {"lengths": [1] * 3}),
        "parents.csv": (csv_of(parents, ["code", "parent"]), {}),
    }
    trees = []
    for name, (text, options) in files.items():
        (tmp_path / name).write_text(text, "utf-8")
        trees.append(rp.AreaTree.from_file(tmp_path / name, **options))
    columns = dict(zip(levels, map(list, zip(*rows, strict=True)), strict=True))
    trees.append(rp.AreaTree.from_columns(columns))
    pq.write_table(pa.table(columns), tmp_path / "columns.parquet")
    trees.append(rp.AreaTree.from_file(tmp_path / "columns.parquet"))
    assert len({tree.sha256 for tree in trees}) == 1

    (tmp_path / "codes.csv").write_text(csv_of((["|".join(path)] for path in leaves), ["area"]))
    by_separator = rp.AreaTree.from_file(tmp_path / "codes.csv", separator="|", levels=levels)
    assert by_separator.levels == trees[0].levels
    assert list(by_separator.parents) == list(trees[0].parents)
    assert [code.replace("|", "") for code in by_separator.codes.to_pylist()] == (
        trees[0].codes.to_pylist()
    )


NAMED = (
    "state,state_name,county,county_name\n12,Florida,086,Dade\n12,Florida,087,\n06,Süd,001,A b\n"
)


def test_names_are_kept(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(NAMED.encode()))
    tree = rp.AreaTree.from_file(tmp_path / "a.csv.gz")
    assert tree.levels == ("all", "state", "county")
    assert tree.codes.to_pylist() == ["", "06", "12", "001", "086", "087"]
    assert tree.names.to_pylist() == ["", "Süd", "Florida", "A b", "Dade", ""]
    (tmp_path / "b.csv").write_text(NAMED.replace(",", ";"), "utf-8")
    only = rp.AreaTree.from_file(tmp_path / "b.csv", levels=["county"])
    assert (only.n_areas, only.names.to_pylist()[1:]) == (4, ["A b", "Dade", ""])
    (tmp_path / "c.csv").write_text("code,name\nA1,One\nB,Two\nA2,\n", "utf-8")
    whole = rp.AreaTree.from_file(tmp_path / "c.csv", lengths=[1, 1], levels=["section", "class"])
    assert whole.codes.to_pylist() == ["", "A", "B", "A1", "A2"]
    assert whole.names.to_pylist() == ["", "", "Two", "One", ""]
    (tmp_path / "d.csv").write_text("code,parent,name\nA,,Farms\nA1,A,Crops\n", "utf-8")
    assert rp.AreaTree.from_file(tmp_path / "d.csv").names.to_pylist() == ["Farms", "Crops"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n1,3,4\n", {}, "Line 3 of areas.csv has 3 values for 2 columns; put"),
        ("a,b\n1,2\n,3\n", {}, "Line 3 of areas.csv has no code on the level a; an area"),
        ("a,b\n1,2\n\n3,4\n", {}, "Line 3 of areas.csv has 1 values|Line 3 .* has no code"),
        ("a,b\n1,2\n3,4\n1,2\n", {}, "Line 4 of areas.csv is the same area as line 2 of areas"),
        ("a,b\n1,2\n1,\n", {}, "Line 3 of areas.csv ends on the level a, where others"),
        (NAMED + "12,FL,9,\n", {}, "Line 5 .* calls the area of the level state 'FL', and line 2"),
        ("a,a\n1,2\n", {}, "2 columns 'a'; give each"),
        ("a\n1\n", {"levels": ["b"]}, "no column 'b' for a level; it has a"),
        ("", {}, "no usable CSV"),
        ("a\n", {}, "at least one row"),
        (b"a\n\xff\n", {}, "no usable CSV file in UTF-8"),
        ("x\n12|3\n12||4\n", {"separator": "|"}, "Line 3 .* has no code on the level level 2"),
        ("x\n123\n12\n", {"lengths": [1, 2]}, "Line 3 .* the code '12' of 2 signs; .* 1 or 3"),
        ("x\n1\n", {"lengths": [0]}, "whole numbers"),
        ("x\n1\n", {"lengths": [1], "separator": "|"}, "separator of whole codes or the lengths"),
        ("x\n1\n", {"separator": ""}, "one sign or more"),
        ("x\n1|2\n", {"separator": "|", "levels": ["a"]}, "have 2 levels, but 1 names"),
        ("code,parent\nA,\nB,C\n", {}, "parent 'C' of the area 'B' is not in the list"),
        ("code,parent\nA,\nB,A\nA,\n", {}, "Line 4 of areas.csv has the code 'A', as another"),
        ("code,parent\nA,\n,A\n", {}, "Line 3 of areas.csv has no code"),
        ("code,parent\nA,\nB,C\nC,D\nD,B\n", {}, "B lies within itself: B > D > C > B; mend"),
    ],
)  # fmt: skip
def test_errors_say_where(tmp_path, text, options, message):
    path = tmp_path / "areas.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DomainError, match=message):
        rp.AreaTree.from_file(path, **options)


def test_bad_parquet_is_refused(tmp_path):
    path = tmp_path / "areas.parquet"
    pq.write_table(pa.table({"region": [1.5, 2.5]}), path)
    with pytest.raises(DomainError, match="codes of the level 'region' must be texts"):
        rp.AreaTree.from_file(path)
    pq.write_table(pa.table({"region": [1, 1]}), path)
    with pytest.raises(DomainError, match=r"Row 2 of areas\.parquet is the same area as row 1"):
        rp.AreaTree.from_file(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(DomainError, match="no Parquet file"):
        rp.AreaTree.from_file(path)
    with pytest.raises(DomainError, match="cannot be read"):
        rp.AreaTree.from_file(tmp_path / "none.csv")


def test_files_that_become_too_large_are_refused_before_they_do(monkeypatch):
    monkeypatch.setattr("rpexplore.domain.area_file.MOST_BYTES", 10_000)
    packed = gzip.compress(b"region\n" + b"N\n" * 100_000)
    with pytest.raises(DomainError, match=r"areas\.csv\.gz becomes larger than 10 kB"):
        tree_of_file(packed, "areas.csv.gz")
    monkeypatch.setattr("rpexplore.domain.area_file.MAX_AREAS", 99)
    file = io.BytesIO()
    pq.write_table(pa.table({"region": ["N"] * 100}), file)
    with pytest.raises(DomainError, match="has 100 rows, and a tree can have 99 areas at most"):
        tree_of_file(file.getvalue(), "areas.parquet")


def test_a_hundred_levels_are_the_most(tmp_path):
    path = tmp_path / "areas.csv"
    chain = [[f"{k:03}", f"{k - 1:03}" if k else ""] for k in range(101)]
    path.write_text(csv_of(chain[:100], ["code", "parent"]))
    assert len(rp.AreaTree.from_file(path).levels) == 100
    path.write_text(csv_of(chain, ["code", "parent"]))
    with pytest.raises(DomainError, match="100 levels at most"):
        rp.AreaTree.from_file(path)
