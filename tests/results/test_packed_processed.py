"""Processed small tables in one Parquet file: as in files of their own, refused if changed."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases import packed_tables
from rpexplore.releases.packed_tables import PACKED
from rpexplore.releases.release import release
from rpexplore.results import processed_folder, processed_tables
from rpexplore.results.combination import combine
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import LAYOUT, ProcessedTables
from tests.support.sealed import reseal

DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("income", rp.Amounts(0, 100)),
        rp.Attribute("age", rp.Integers(0, 8, 3)),
        rp.Attribute("value", rp.Categories(("f", "m"))),
    ),
    ({"sex": "f", "age": "0..2"},),
)
# The table of sums is in between, so that places of tables differ from those of the workload.
WORKLOAD = rp.Workload.of(
    DOMAIN,
    [
        *((), ["sex"], ["age"], ["value"], ["sex", "income"], ["sex", "age"], ["age", "value"]),
        ["sex", "age", "value"],
    ],
).with_bases({"age": rp.Prefix()}, tables=[["age"], ["age", "value"]])
WAYS = [{"method": "nonnegative"}, {"method": "smooth", "rounded": 5}, {"rounded": True}]


@pytest.fixture(scope="module", autouse=True)
def few_files():
    """As of a hundred times as many tables, in several row groups, and one too large for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_tables, "MOST_FILES", 3)
        patch.setattr(packed_tables, "_ROWS", 8)
        for module in (packed_tables, processed_tables):
            patch.setattr(module, "MOST_CELLS", 11)
        yield


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    rows = [("m", age * 9, age, value) for age in range(9) for value in "ffm"]
    pd.DataFrame(rows, columns=list(DOMAIN.names)).to_csv(folder / "records.csv", index=False)
    plan = rp.plan(WORKLOAD, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
    return release(plan, folder / "records.csv", folder / "out")


@pytest.fixture(scope="module")
def nonnegative(released, tmp_path_factory):
    folder = tmp_path_factory.mktemp("processed") / "out"
    return postprocess(released, folder, method="nonnegative").folder


@pytest.mark.by_day(2)
@pytest.mark.parametrize("way", WAYS)
def test_tables_are_those_of_single_files(released, tmp_path, way):
    for name, apart in (("packed", False), ("apart", True)):
        postprocess(released, tmp_path / name, file_per_table=apart, **way)
    packed, apart = (ProcessedTables.load(tmp_path / name) for name in ("packed", "apart"))
    assert pq.read_metadata(packed.folder / PACKED).num_row_groups > 1
    files = sorted(path.name for path in (packed.folder / "tables").iterdir())
    assert files == ["0006_sex_age_value.csv", "0006_sex_age_value.parquet"]
    assert not (apart.folder / PACKED).exists()
    assert packed.label == apart.label
    assert packed.table_names == apart.table_names
    for one, other in zip(packed.items, apart.items, strict=True):
        assert (one.name, one.n_rows, one.attributes) == (
            other.name,
            other.n_rows,
            other.attributes,
        )
        read, expected = one.read(), other.read()
        assert read.schema.equals(expected.schema, check_metadata=True)
        pd.testing.assert_frame_equal(read.to_pandas(), expected.to_pandas(), rtol=1e-14)
    if way.get("method") == "smooth":
        for name in ("shrinkage", "shrinkage_by_group"):
            own, theirs = (getattr(done, name) for done in (packed, apart))
            pd.testing.assert_frame_equal(own, theirs, rtol=1e-12)


def test_combined_tables_are_packed_as_well(released, tmp_path):
    both = combine(released, release(released.plan, *again(released, tmp_path)))
    done = postprocess(both, tmp_path / "packed", rounded=True)
    apart = postprocess(both, tmp_path / "apart", rounded=True, file_per_table=True)
    assert done.items[2].number == 2
    pd.testing.assert_frame_equal(done.table("age"), apart.table("age"), rtol=1e-14)


def again(released, folder):
    return released.folder.parent / "records.csv", folder / "second"


def test_other_programs_read_it_by_its_columns(nonnegative):
    done = ProcessedTables.load(nonnegative)
    rows = pd.read_parquet(nonnegative / PACKED, filters=[("table", "==", 5)])
    cells = done.table("age", "value")
    assert set(rows["attributes"]) == {"age × value"}
    for column, name in (("category_1", "age"), ("category_2", "value (attribute)")):
        assert rows[column].tolist() == cells[name].tolist()
    for name in ("value", "unbiased_value", "standard_error"):
        assert rows[name].tolist() == cells[name].tolist()
    readme = " ".join((nonnegative / "README.md").read_text("utf-8").split())
    assert "`tables.parquet` holds 6 tables" in readme


def fewer_rows(folder):
    pq.write_table(pq.read_table(folder / PACKED).slice(1), folder / PACKED)


def another_table(folder):
    stated = json.loads((folder / LAYOUT).read_text("utf-8"))
    stated["tables"][3] = [99]
    (folder / LAYOUT).write_text(json.dumps(stated), "utf-8")


def other_values(folder):
    stated = json.loads((folder / LAYOUT).read_text("utf-8"))
    stated["labels"][0][0]["texts"].append("x")
    (folder / LAYOUT).write_text(json.dumps(stated), "utf-8")


def edited(folder, edit):
    stated = json.loads((folder / LAYOUT).read_text("utf-8"))
    edit(stated)
    (folder / LAYOUT).write_text(json.dumps(stated), "utf-8")


def a_value_twice(folder):
    def edit(stated):
        texts = next(one[0]["texts"] for one in stated["labels"] if len(one) == 1)
        texts[1] = texts[0]

    edited(folder, edit)


def an_attribute_twice(folder):
    edited(folder, lambda stated: stated["tables"].append([0, 0]))


def a_role_of_figures(folder):
    edited(folder, lambda stated: stated["labels"][0][0].update(role="value"))


def a_surplus_key(folder):
    edited(folder, lambda stated: stated.update(more=1))


def no_text(folder):
    edited(folder, lambda stated: stated["labels"][0][0]["texts"].__setitem__(0, None))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (fewer_rows, "must have .* rows, and has"),
        (another_table, r"has not what it must have \(there is no number of labels 99"),
        (other_values, "must have the same number|be as long"),
        (a_value_twice, "has '.*' twice"),
        (an_attribute_twice, r"a table of \(sex, sex\) has an attribute twice"),
        (a_role_of_figures, "as a code or a label"),
        (a_surplus_key, "must hold exactly labels, tables"),
        (no_text, "must have texts"),
    ],
)
def test_a_changed_folder_is_refused(nonnegative, tmp_path, change, reason):
    folder = shutil.copytree(nonnegative, tmp_path / "out")
    change(folder)
    with pytest.raises(ReleaseError, match="missing or was changed"):
        ProcessedTables.load(folder)
    reseal(folder, LAYOUT if change is not fewer_rows else PACKED)
    with pytest.raises(ReleaseError, match=reason):
        [item.read() for item in ProcessedTables.load(folder).items]


def test_whole_tables_of_three_keep_totals_when_they_are_too_many_to_search(
    released, tmp_path, monkeypatch
):
    monkeypatch.setattr(processed_folder, "_MOST_SEARCHED_IN_ALL", 0)
    done = postprocess(released, tmp_path / "out", rounded=True)
    counts = {names: done.table(*names) for names in (("sex", "age", "value"), ("sex", "age"))}
    shapes = {("sex", "age", "value"): (2, 3, 2), ("sex", "age"): (2, 3)}
    large, small = (counts[names]["value"].to_numpy().reshape(shapes[names]) for names in counts)
    assert np.array_equal(large.sum(axis=2), small)
