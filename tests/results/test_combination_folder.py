"""The folder of combined tables: back as it was, combined further, and refused when changed."""

import csv
import hashlib
import json
import os
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results import combination
from rpexplore.results.combination import combine, load_combined, load_unbiased, write_combined
from rpexplore.results.noisy_marginal import NoisyMarginal
from rpexplore.results.unbiased import Estimates
from tests.results import dense
from tests.results.test_estimates import CSV, DOMAIN
from tests.support.generalised import any_plan
from tests.support.sealed import DAMAGES, damage, edit_manifest, reseal

TABLES = {
    "first": [["sex", "age"], ["age", "one", "size"]],
    "second": [["age"], ["size", "sex"]],
    "third": [["sex", "age"], ["one"]],
}


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, TableRelease]:
    folder = tmp_path_factory.mktemp("releases")
    (folder / "records.csv").write_text(CSV)
    made = {}
    for number, (name, tables) in enumerate(TABLES.items(), start=1):
        budget = rp.Budget(rho=Fraction(number, 7))
        plan = plan_tables(rp.Workload.of(DOMAIN, tables), loss=rp.SumOfVariances(), budget=budget)
        made[name] = release(plan, folder / "records.csv", folder / name).part("tables")
    return made


@pytest.fixture(scope="module")
def marginal() -> NoisyMarginal:
    return NoisyMarginal.of(
        DOMAIN,
        ["size"],
        [
            1.5,
            0.25,
            -1,
        ],
        "2.25",
        name="census, 1 %",
    )


@pytest.fixture(scope="module")
def combined(releases, marginal) -> Estimates:
    return combine(*releases.values(), noisy=[marginal])


@pytest.fixture(scope="module")
def written(combined, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("combined") / "out"
    write_combined(combined, output)
    return output


@pytest.fixture
def copy(written, tmp_path) -> Path:
    shutil.copytree(written, tmp_path / "copy")
    return tmp_path / "copy"


def assert_same(one: Estimates, two: Estimates) -> None:
    assert one.domain == two.domain
    assert one.tables == two.tables
    assert one.variances == two.variances
    assert one.sources == two.sources
    assert one.contributions.keys() == two.contributions.keys()
    for subset, values in one.contributions.items():
        assert np.array_equal(two.contributions[subset], values)
    assert one.strategies.keys() == two.strategies.keys()
    for attribute_index, strategy in one.strategies.items():
        assert np.array_equal(two.strategies[attribute_index].integers, strategy.integers)
        assert two.strategies[attribute_index].bits == strategy.bits


# ---- what is in it


def test_the_tables_are_the_union_s_and_as_the_estimates_say(combined, written):
    wanted = {frozenset(names) for listed in TABLES.values() for names in listed} | {
        frozenset(["size"])
    }
    names = sorted(path.stem for path in (written / "tables").glob("*.csv"))
    assert len(names) == len(wanted) == len(combined.tables) == 6
    assert names[0] == "0000_age"
    assert names[-1] == "0005_age_one_size"
    for position, table in enumerate(combined.tables):
        attributes = [DOMAIN.names[attribute_index] for attribute_index in table]
        assert frozenset(attributes) in wanted
        (path,) = (written / "tables").glob(f"{position:04d}_*.parquet")
        expected = combined.table(attributes)
        pd.testing.assert_frame_equal(pq.read_table(path).to_pandas(), expected)
        with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
            header, *rows = list(csv.reader(file))
        assert header == expected.columns.tolist()
        half = 0.501e-6 * expected["standard_error"].min()
        values = [float(row[header.index("value")]) for row in rows]
        assert np.allclose(values, expected["value"], rtol=0, atol=half)


def test_it_is_more_accurate_than_each_release(combined, releases):
    for name, tables in TABLES.items():
        for table in tables:
            alone = releases[name].counts(table)["standard_error"]
            assert (combined.table(table)["standard_error"] <= alone * (1 + 1e-12)).all()
    alone = releases["first"].counts(["sex", "age"])["standard_error"]
    assert (combined.table(["sex", "age"])["standard_error"] < 0.9 * alone).all()


def test_the_manifest_lists_every_other_file_with_its_hash(combined, written):
    manifest = json.loads((written / "manifest.json").read_text("utf-8"))
    files = [path for path in written.rglob("*") if path.is_file() and path.name != "manifest.json"]
    listed = {entry["path"]: entry for entry in manifest["files"]}
    assert set(listed) == {str(path.relative_to(written)) for path in files}
    for path in files:
        entry = listed[str(path.relative_to(written))]
        assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert entry["bytes"] == path.stat().st_size
    assert (manifest["format"], manifest["format_version"]) == ("rpexplore-combined", 2)
    assert manifest["label"] == combined.label
    assert "combined by inverse variance from 3 releases and 1 noisy marginal" in combined.label


def test_manifest_and_readme_say_what_was_spent(combined, written, releases):
    manifest = json.loads((written / "manifest.json").read_text("utf-8"))
    total = sum(done.plan.rho for done in releases.values())
    assert Fraction(manifest["rho"]) == combined.spent.rho == total
    assert manifest["rho_is_known"] is False
    assert manifest["privacy_unit"] == "one record"
    by_name = {source["name"]: source for source in manifest["sources"]}
    assert list(by_name) == ["first", "second", "third", "census, 1 %"]
    for name, done in releases.items():
        assert by_name[name]["plan_sha256"] == done.plan.sha256
        assert Fraction(by_name[name]["rho"]) == done.plan.rho
    assert by_name["census, 1 %"]["rho"] is None
    text = (written / "README.md").read_text("utf-8")
    assert manifest["guarantee"] == combined.guarantee
    assert combined.guarantee in text
    assert combined.label in text
    assert "- `census, 1 %`: noisy marginal, ρ not stated" in text
    assert f"- `second`: release by the plan {releases['second'].plan.sha256}, ρ = 0.2857" in text
    assert "variance of a noisy marginal is what whoever" in text
    assert str(releases["first"].folder.parent) not in text + json.dumps(manifest)


# ---- opened again


def test_it_comes_back_as_it_was(combined, written):
    assert_same(combined, load_combined(written))


@given(dense.worlds(), st.integers(0, 3))
@settings(max_examples=15)
def test_any_estimates_come_back_as_they_were(tmp_path_factory, world, first):
    parts = [*world.releases, *(marginal.estimates() for marginal in world.noisy)]
    made = combine(*parts[: first + 1])
    output = tmp_path_factory.mktemp("any") / "out"
    write_combined(made, output)
    assert_same(made, load_combined(output))


def test_an_attribute_with_a_strategy_comes_back(tmp_path):
    workload = rp.Workload.of(DOMAIN, TABLES["first"]).with_bases({"age": rp.Prefix()})
    (tmp_path / "records.csv").write_text(CSV)
    made = []
    for number, rho in enumerate(("1/2", "1/5")):
        plan = any_plan(workload, 4, rho=rho)
        made.append(release(plan, tmp_path / "records.csv", tmp_path / f"out{number}"))
    both = combine(*made)
    assert both.spent.rho == sum(done.plan.rho for done in made)
    write_combined(both, tmp_path / "both")
    assert_same(both, load_combined(tmp_path / "both"))


def test_combined_further_it_is_everything_combined_at_once(combined, releases, marginal, tmp_path):
    write_combined(combine(releases["third"], releases["first"]), tmp_path / "two")
    further = combine(load_unbiased(tmp_path / "two"), releases["second"], noisy=[marginal])
    assert further.variances == combined.variances
    assert further.tables == combined.tables
    for subset, values in combined.contributions.items():
        np.testing.assert_allclose(further.contributions[subset], values, rtol=1e-12, atol=1e-10)
    with pytest.raises(ReleaseError, match="'first' holds the same measurements"):
        combine(load_unbiased(tmp_path / "two"), releases["first"])


def test_runs_that_drew_the_same_are_combined_and_one_run_is_not_counted_twice(
    releases, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "rpexplore.releases.measurement.discrete_gaussian", lambda size, _: np.zeros(size, int)
    )
    (tmp_path / "records.csv").write_text(CSV)
    plan = releases["first"].plan
    made: list[TableRelease] = []
    for name in ("one", "two"):
        release(plan, tmp_path / "records.csv", tmp_path / name)
        made.append(TableRelease.load(tmp_path / name))
    tables = [done.counts("sex", "age")["value"].tolist() for done in made]
    assert tables[0] == tables[1]
    assert combine(*made).spent.rho == 2 * plan.rho
    # Noise of variance 9 makes three whole numbers these with a chance of up to 0.2 %.
    counts, own = np.rint(made[0].counts("size")["value"]), Estimates.of(made[0])
    assert combine(own, noisy=[NoisyMarginal.of(DOMAIN, "size", counts, 9)])
    variance = round(own.marginal_variances("size")[0], 3)
    with pytest.raises(ReleaseError, match="would count twice"):
        combine(own, noisy=[NoisyMarginal.of(DOMAIN, "size", counts, variance)])
    shutil.copytree(tmp_path / "one", tmp_path / "again")
    with pytest.raises(ReleaseError, match="'again' holds the same measurements as 'one'"):
        combine(made[0], TableRelease.load(tmp_path / "again"))


def test_the_manifest_says_what_a_folder_holds(written, releases, tmp_path):
    assert isinstance(load_unbiased(written), Estimates)
    assert isinstance(load_unbiased(releases["first"].folder), TableRelease)
    with pytest.raises(ReleaseError, match="not hold a release that can be read here"):
        load_unbiased(foreign(tmp_path, {"format": "x", "format_version": 1, "files": []}))
    with pytest.raises(ReleaseError, match=r"no readable manifest\.json"):
        load_unbiased(tmp_path / "nowhere")


def foreign(folder: Path, manifest) -> Path:
    (folder / "manifest.json").write_text(json.dumps({**manifest, "plan_sha256": ""}))
    return folder


@pytest.mark.nightly
def test_more_than_100_small_tables_are_in_one_file(tmp_path, monkeypatch):
    domain = rp.Domain.from_sizes({f"a{index}": 2 + index % 2 for index in range(14)})
    workload = rp.Workload.all_up_to(domain, 2)
    lines = [domain.names, *(["0"] * 14, ["1"] * 14, ["1"] * 14)]
    (tmp_path / "records.csv").write_text("\n".join(map(",".join, lines)), "utf-8")
    released = []
    for number, rho in enumerate(("1", "2")):
        plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))
        released.append(rp.release(plan, tmp_path / "records.csv", tmp_path / f"out{number}"))
    both, room = combine(*released), []
    monkeypatch.setattr(combination, "check_room", lambda needed, _: room.append(needed))
    write_combined(both, tmp_path / "both")
    files = {path.name for path in (tmp_path / "both").iterdir()}
    assert files == {
        *("tables.parquet", "estimates.json", "contributions.parquet", "manifest.json"),
        "README.md",
    }
    loaded = load_combined(tmp_path / "both")
    stored = pq.read_table(tmp_path / "both" / "tables.parquet").to_pandas()
    assert stored["table"].nunique() == len(workload)
    for position, names in enumerate(loaded.table_names):
        rows, own = loaded.table(names), stored.loc[stored["table"] == position]
        assert set(own["attributes"]) == {" × ".join(names) or "total"}
        for axis, name in enumerate(names, start=1):
            assert own[f"category_{axis}"].tolist() == rows[name].astype(str).tolist()
        assert own["value"].to_numpy() == pytest.approx(rows["value"].to_numpy())
        assert own["standard_error"].to_numpy() == pytest.approx(rows["standard_error"].to_numpy())
    items = loaded.items
    assert {(item.file, item.number) for item in items} == {
        ("tables", n) for n in range(len(items))
    }
    damage(tmp_path / "both" / "tables.parquet", DAMAGES[0])
    with pytest.raises(ReleaseError, match=re.escape("tables.parquet")):
        load_combined(tmp_path / "both")
    write_combined(both, tmp_path / "single", file_per_table=True)
    assert not load_combined(tmp_path / "single").packed
    assert len([*(tmp_path / "single" / "tables").iterdir()]) == 2 * len(workload)
    assert room[0] < room[1] / 5


# ---- changed, or something else


FILES = ("tables/0000_age.csv", "estimates.json", "contributions.parquet", "README.md")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", DAMAGES)
def test_a_changed_file_is_found(name, how, copy):
    damage(copy / name, how)
    with pytest.raises(ReleaseError, match=re.escape(repr(name))):
        load_combined(copy)


def forged(copy: Path, name: str, change) -> None:
    """Change a JSON file, and its hash in the manifest with it."""
    if name == "manifest.json":
        edit_manifest(copy, change)
        return
    content = json.loads((copy / name).read_text("utf-8"))
    change(content)
    (copy / name).write_text(json.dumps(content), "utf-8")
    reseal(copy, name)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("manifest.json", lambda m: m.update(format="rpexplore-release")),
        ("manifest.json", lambda m: m.update(format_version=3)),
        ("manifest.json", lambda m: m.pop("files")),
        ("manifest.json", lambda m: m.update(files=[])),
        ("manifest.json", lambda m: m.update(files=[1])),
        ("manifest.json", lambda m: m.pop("sources")),
        ("manifest.json", lambda m: m.update(sources=[])),
        ("manifest.json", lambda m: m["sources"][0].update(rho="-1")),
        ("manifest.json", lambda m: m["sources"][0].pop("sha256")),
        ("manifest.json", lambda m: m["sources"][0].update(name=3)),
        ("manifest.json", lambda m: m["sources"][0].update(rho="1/100")),
        ("manifest.json", lambda m: m.update(rho="1/100")),
        ("manifest.json", lambda m: m.update(rho_is_known=True)),
        ("manifest.json", lambda m: m.update(max_records_per_person=7)),
        ("estimates.json", lambda e: e.pop("tables")),
        ("estimates.json", lambda e: e["tables"].append(["sex", "age", "size"])),
        ("estimates.json", lambda e: e["tables"].append(["nothing"])),
        ("estimates.json", lambda e: e["residuals"].pop()),
        ("estimates.json", lambda e: e["residuals"][1].update(sigma_squared="0")),
        ("estimates.json", lambda e: e["residuals"][1].update(sigma_squared="many")),
        ("estimates.json", lambda e: e["residuals"][1].update(attributes=["sex", "sex"])),
        ("estimates.json", lambda e: e["domain"]["fields"].pop()),
        ("estimates.json", lambda e: e["strategies"].append({"attribute": "age"})),
    ],
)
def test_what_does_not_belong_together_is_refused(name, change, copy):
    forged(copy, name, change)
    with pytest.raises(ReleaseError):
        load_combined(copy)


@pytest.mark.parametrize("sentence", ["guarantee", "label", "privacy_unit"])
def test_sentences_may_be_worded_otherwise(sentence, copy):
    """By another version: what they promise follows from numbers, which are compared."""
    own = load_combined(copy).guarantee
    forged(copy, "manifest.json", lambda manifest: manifest.update({sentence: "In other words."}))
    assert load_combined(copy).guarantee == own


@pytest.mark.parametrize("text", ["", "[]", '"text"', "null", "{", "\xff"])
def test_what_is_no_manifest_is_refused(text, copy):
    (copy / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(ReleaseError, match=r"no readable manifest\.json"):
        load_combined(copy)


# ---- writing


def test_an_existing_folder_is_kept(combined, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    with pytest.raises(ReleaseError, match="nothing is ever overwritten"):
        write_combined(combined, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["precious"]


@pytest.mark.parametrize("stop_at", ["Writing what", "Writing the tables"])
def test_stopped_it_leaves_nothing(stop_at, combined, tmp_path):
    def stop(doing, share):
        if doing.startswith(stop_at):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_combined(combined, tmp_path / "out", on_progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_progress_says_what_is_done(combined, tmp_path):
    reports: list[tuple[str, float]] = []
    write_combined(combined, tmp_path / "out", on_progress=lambda *each: reports.append(each))
    assert reports[-1] == ("Finished", 1.0)
    assert [share for _, share in reports] == sorted(share for _, share in reports)


def test_a_full_disk_leaves_nothing(combined, tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rpexplore.results.combination.write_arrays", full)
    with pytest.raises(ReleaseError, match=r"No space left on device.*nothing of them was left"):
        write_combined(combined, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_names_cannot_leave_the_folder(tmp_path):
    domain = rp.Domain((rp.Attribute("../../x", rp.Categories(("a", "b"))),))
    marginal = NoisyMarginal.of(domain, ["../../x"], [1, 2], 1)
    write_combined(combine(noisy=[marginal]), tmp_path / "in" / "out")
    assert os.listdir(tmp_path) == ["in"]
    assert sorted(os.listdir(tmp_path / "in" / "out" / "tables")) == [
        "0000_x.csv",
        "0000_x.parquet",
    ]


def test_a_total_alone_has_a_name(combined, tmp_path):
    total = replace(combined, tables=((),))
    write_combined(total, tmp_path / "out")
    assert (tmp_path / "out" / "tables" / "0000_total.csv").is_file()
