"""The folder of synthetic records: what is in it, its label, and what it says of the tables."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.main import cli
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError, ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.manifest import file_entry
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import combine, load_unbiased, write_combined
from rpexplore.results.duration import records_seconds
from rpexplore.results.measurement_source import MeasurementSource
from rpexplore.results.synthetic import population, records, records_folder
from rpexplore.results.synthetic import targets as smooth_targets
from rpexplore.results.synthetic.comparison import (
    NO_DIFFERENCE,
    RECORDS,
    RELEASED,
    UNKNOWN,
    SmoothCounts,
    compare,
)
from rpexplore.results.synthetic.records import FILES, SyntheticRecords, describe_few, describe_use
from rpexplore.results.synthetic.records_folder import synthesize
from rpexplore.results.unbiased import Estimates
from tests.support.sealed import edit_manifest

DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 5)),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("synthetic_record", rp.Categories(("=a", "b", "c"))),
        rp.Attribute("one", rp.Categories(("only",))),
        rp.Attribute("in no table", rp.Categories(("x", "y"))),
    ),
    [{"age": 4, "sex": "female"}, {"age": "3", "in no table": "y"}],
)
TABLES = [["age"], ["age", "sex"], ["sex", "synthetic_record"], ["one", "age"]]
NEVER = {"age": "0..1", "synthetic_record": "c"}


@pytest.fixture(scope="module", autouse=True)
def quick():
    """How well records fit is not what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(population, "_ROUNDS_OF_PART", 5)
        patch.setattr(population, "_FEWEST", 500)
        yield


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> TableRelease:
    folder = tmp_path_factory.mktemp("released")
    rng = np.random.default_rng(0)
    age = rng.binomial(5, 0.3, 300)
    rows = {
        "age": age,
        "sex": np.where(age < 2, "f", "m"),
        "synthetic_record": rng.choice(["=a", "b", "c"], 300),
        "one": "only",
        "in no table": "x",
    }
    pd.DataFrame(rows).to_csv(folder / "records.csv", index=False)
    workload = rp.Workload.of(DOMAIN, TABLES).with_bases({"age": rp.Ranges()}, tables=[["age"]])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=2))
    result = release(plan, folder / "records.csv", folder / "release").part("tables")
    assert isinstance(result, TableRelease)
    return result


@pytest.fixture(scope="module")
def made(released, tmp_path_factory) -> SyntheticRecords:
    folder = tmp_path_factory.mktemp("made") / "synthetic"
    return synthesize(released, folder, never=[NEVER, {"sex": ["f"], "age": 5}])


def test_as_many_records_as_were_counted(made):
    records = made.records()
    assert abs(len(records) - 300) < 20
    assert made.n_records == len(records)
    assert records["synthetic_record"].tolist() == list(range(1, len(records) + 1))
    assert made.attributes == ("age", "sex", "synthetic_record", "one")
    as_csv = pd.read_csv(made.folder / "synthetic_records.csv", dtype=str)
    assert as_csv.to_numpy().tolist() == records.astype(str).to_numpy().tolist()
    assert list(as_csv) == list(records)


def test_codes_and_labels_of_possible_values(made):
    records = made.records()
    columns = ["synthetic_record", "age", "sex", "sex label", "synthetic_record (attribute)", "one"]
    assert list(records) == columns
    assert set(zip(records["sex"], records["sex label"], strict=True)) == {
        ("f", "female"), ("m", "male"),
    }  # fmt: skip
    young, old = records["age"].isin(["0", "1"]), records["age"] == "5"
    assert not (young & (records["synthetic_record (attribute)"] == "c")).any()
    assert not (old & (records["sex"] == "f")).any()
    assert not ((records["age"] == "4") & (records["sex"] == "f")).any()
    assert young.any()


def test_everything_says_what_the_records_are(made):
    readme = (made.folder / "README.md").read_text()
    assert readme.startswith("# Synthetic records: no row is a person")
    for text in (made.manifest["guarantee"], "ρ = 2 for one record", "far too short"):
        assert text in readme
    assert (
        "`age=4` with `sex=female`; `age=0..1` with `synthetic_record=c`; `sex=f` with `age=5`."
        in readme
    )
    metadata = pq.read_schema(made.folder / "synthetic_records.parquet").metadata
    assert "tables: age=3 in no table=y, which the codebook" in " ".join(readme.split())
    stated = json.loads(metadata[b"rpexplore"])
    assert "no row is a person" in stated["label"]
    assert stated["guarantee"] == made.manifest["guarantee"]


def test_they_are_the_same_when_made_again_and_loaded(released, made, tmp_path):
    again = synthesize(
        released,
        tmp_path / "again",
        never=["age=0..1 synthetic_record=c", {"sex": ["f"], "age": 5}],
    )
    for name in FILES:
        assert (again.folder / name).read_bytes() == (made.folder / name).read_bytes()
    loaded = rp.load_results(again.folder)
    assert isinstance(loaded, SyntheticRecords)
    assert loaded.comparison.equals(made.comparison)
    assert loaded.worst_cells.equals(made.worst_cells)


def test_the_comparison_against_counting_the_records(released, made, tmp_path):
    """Every figure of the table of age and sex, against the smooth table that they were fitted to.

    That is without zeros: what impossible combinations take away has to be told.
    """
    records, comparison = made.records(), made.comparison.set_index("table")
    fitted = smooth_targets.smooth_tables(Estimates.of(released))
    smooth = {
        "value": fitted.table((0, 1)).ravel(),
        "model_error": fitted.standard_errors((0, 1)).ravel(),
    }
    rows = released.table("age", "sex")
    scale = smooth["value"].sum() / len(records)
    counts = records.groupby(["age", "sex"]).size()
    values = scale * np.array([counts.get((row.age, row.sex), 0) for row in rows.itertuples()])

    def size(numbers):
        return np.sqrt(np.mean(np.square(numbers)))

    row = comparison.loc["age × sex"]
    assert row["released_error"] == pytest.approx(size(rows["standard_error"]))
    assert row["smooth_error"] == pytest.approx(size(smooth["model_error"]))
    assert row["from_smooth"] == pytest.approx(size(values - smooth["value"]))
    assert row["records_error"] == pytest.approx(np.hypot(row["smooth_error"], row["from_smooth"]))
    assert row["ratio"] == pytest.approx(row["records_error"] / row["released_error"])
    away = np.abs(values - rows["value"]) / rows["standard_error"]
    assert row["cells_outside_interval"] == np.count_nonzero(away > 1.959964)
    # Ranges of age have no model-based error.
    assert comparison.loc["age", "cells"] == len(released.table("age"))
    assert comparison.loc["age", "nearer"] == "unknown"
    assert np.isnan(comparison.loc["age", "records_error"])
    assert (comparison["records_error"].drop("age") > 0).all()
    assert made.worst_cells["standard_errors_away"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("model_error", "nearer"),  # ratios 0.89, 0.92, 1.08, 1.12: √(16 + 2²) = 4.47 of 5, and so on
    [
        (2.0, "records, if the model holds"),
        (2.3, "no clear difference"),
        (3.6, "no clear difference"),
        (3.9, "released table"),
    ],
)
def test_the_error_of_records_by_hand(model_error, nearer):
    """Counts (6, 2) of 4 records scaled to 8; smooth (10, -2) is 4 away; released ±5 each."""
    domain = Domain.from_sizes({"a": 2})
    variances = {(): Fraction(50), (0,): Fraction(25)}  # of a cell: 50/4 + 25/2 = 25
    contributions = {(): np.array(8.0), (0,): np.array([1.0, -1.0])}  # released: (5, 3)
    source = MeasurementSource("made up", "", Fraction(1))
    estimates = Estimates(domain, ((0,),), contributions, variances, {}, (source,))
    smooth = SmoothCounts(np.array([10.0, -2.0]), np.full(2, model_error))
    codes = np.array([[0], [0], [0], [1]], dtype=np.int16)
    row = compare(estimates, lambda _: smooth, (0,), codes, 8.0, lambda *_: None).tables.iloc[0]
    assert (row["released_error"], row["smooth_error"]) == (5.0, model_error)
    assert (row["from_smooth"], row["cells_outside_interval"]) == (4.0, 0)
    assert row["records_error"] == pytest.approx(np.sqrt(16 + model_error**2))
    assert row["nearer"] == nearer


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("unmet", [["age", "4", 0.5, 0.1]], "its manifest has not what it must have"),
        ("is_adaptive", True, "its manifest has not what it must have"),
        ("left_out", [], "its manifest has not what it must have"),
        ("rows", 3, r"'rows' in its manifest.json is not what follows"),
        ("more.csv", None, "its manifest.json lists other files"),
    ],
)
def test_a_manifest_that_says_otherwise_is_refused(name, value, reason, made, tmp_path):
    """Even if somebody has made its checksum anew."""
    copy = shutil.copytree(made.folder, tmp_path / "copy")

    def change(manifest):
        if value is None:
            (copy / name).write_text("age\n1\n")
            manifest["files"].append(file_entry(copy, name))
        else:
            assert manifest.get(name) != value
            manifest[name] = value

    edit_manifest(copy, change)
    with pytest.raises(ReleaseError, match=reason):
        SyntheticRecords.load(copy)


def test_which_tables_not_to_make_stands_first(made):
    everything = [RELEASED, RELEASED, NO_DIFFERENCE, RECORDS, UNKNOWN]
    assert describe_use(everything) == (
        "Do not make 2 of 4 tables from these records: the released ones are estimated to be "
        "nearer to the true counts. Of the others, there is no clear difference in 1 and the "
        "records are nearer in 1, if the model holds. 1 table cannot be compared: use what was "
        "released."
    )
    assert describe_use([RECORDS]).startswith("None of 1 released table is estimated")
    assert describe_use([UNKNOWN]) == "1 table cannot be compared: use what was released."
    use = describe_use(made.comparison["nearer"].tolist())
    assert made.summary.startswith(use)
    assert use in " ".join((made.folder / "README.md").read_text().split())


def test_groups_that_could_not_be_kept_are_named(released, tmp_path):
    """Never a synthetic_record for those of 1 to 5, most of the records, which no table tells."""
    assert records.UNMET not in synthesize(released, tmp_path / "all").manifest
    never = {"age": "1..5", "synthetic_record": ["=a", "b", "c"]}
    found = synthesize(released, tmp_path / "s", never=[never])
    assert found.manifest[records.UNMET][0][:3] == ["age", "0", 1.0]
    sentence = records.describe_unmet(found.manifest)
    assert sentence.startswith("The tables could not be met under the impossible combinations. ")
    assert "age=0 (100 % of the records, " in sentence
    assert sentence in SyntheticRecords.load(found.folder).facts
    readme = (found.folder / "README.md").read_text()
    assert sentence in " ".join(readme.replace("**", "").split())


def test_few_records_say_that_their_number_is_the_reason(released, made, tmp_path, monkeypatch):
    # By chance, 40 records of some releases are farther off than the rule allows for.
    monkeypatch.setattr(records, "_MORE_BY_CHANCE", 5.0)
    few = synthesize(released, tmp_path / "few", rows=40)
    assert few.manifest["misfit"] > few.manifest["misfit_of_noise"] > 0
    for text in (few.summary, " ".join((few.folder / "README.md").read_text().split())):
        assert "too few to be nearer" in text
    monkeypatch.undo()
    # Of what is impossible, tables are farther off than chance alone makes them.
    assert made.manifest["misfit"] > made.manifest["misfit_of_number"]
    for text in (made.summary, (made.folder / "README.md").read_text()):
        assert "too few" not in text


@pytest.mark.parametrize(
    ("misfit", "of_number", "of_noise", "is_said"),
    [(0.1, 0.12, 0.05, True), (0.04, 0.12, 0.05, False), (0.1, 0.07, 0.05, False)],
)
def test_the_number_is_the_reason_where_it_explains_more_than_noise(
    misfit, of_number, of_noise, is_said
):
    made = {"misfit": misfit, "misfit_of_number": of_number, "misfit_of_noise": of_noise}
    assert bool(describe_few(made)) == is_said


def test_records_are_in_random_order(released, tmp_path, monkeypatch):
    """Of an engine that leaves them sorted: those of age 0 are spread over the file."""

    def sorted_records(targets, n_records, *_):
        codes = np.zeros((n_records, 4), dtype=np.int16)
        codes[n_records // 2 :, 0] = 3
        return codes

    monkeypatch.setitem(records_folder._ENGINES, "population", sorted_records)
    records = synthesize(released, tmp_path / "out", rows=2000).records()
    first = (records["age"].iloc[:500] == "0").mean()
    assert abs(first - 0.5) < 5 * 0.5 / np.sqrt(500)
    assert records["age"].tolist().count("0") == 1000


def test_of_combined_tables(released, tmp_path):
    write_combined(combine(released), tmp_path / "combined")
    estimates = rp.load_results(tmp_path / "combined")
    assert isinstance(estimates, Estimates)
    records = synthesize(estimates, tmp_path / "out", rows=7, escape_formulas=True)
    assert len(records.records(3)) == 3
    text = (records.folder / "synthetic_records.csv").read_text()
    assert "=a" not in text.replace("'=a", "")
    assert "apostrophe" in (records.folder / "README.md").read_text()


def targets_of(estimates):
    contributions = smooth_targets.smooth_tables(estimates).contributions
    return smooth_targets.smooth_targets(estimates, contributions, (0, 1, 2, 3))


def test_of_many_tables_only_pairs_are_made_smooth(released, monkeypatch):
    estimates = Estimates.of(released)
    monkeypatch.setattr(smooth_targets, "MOST_RESIDUALS", 3)
    targets, total = targets_of(estimates)
    monkeypatch.undo()
    expected, expected_total = targets_of(estimates)
    assert total == pytest.approx(expected_total)
    assert list(targets.pairs) == list(expected.pairs) == [(0, 1), (1, 2)]
    for pair, shares in expected.pairs.items():
        assert targets.pairs[pair] == pytest.approx(shares, abs=1e-9)


def test_how_long_it_takes_is_told(released):
    estimates = Estimates.of(released)
    few, many = (records_seconds(estimates, rows) for rows in (None, 10**6))
    assert 0 < few < 1 < many
    assert records_seconds(released, None) == pytest.approx(few, rel=0.5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rows": 0}, ReleaseError, "whole number from 1"),
        ({"rows": 2.5}, ReleaseError, "whole number from 1"),
        ({"engine": "none"}, ReleaseError, "must be one of population, graphical_model"),
        ({"never": [{"in no table": "x"}]}, ReleaseError, "in no table of the release"),
        ({"never": [{"age": "9"}]}, DomainError, "must be named by"),
        ({"never": [{"sex": "f,m"}]}, ReleaseError, "Every record is in one"),
    ],
)
def test_what_is_refused(released, tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        synthesize(released, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_stop_leaves_nothing(released, tmp_path):
    shares: list[float] = []
    synthesize(
        released, tmp_path / "done", rows=5, on_progress=lambda _, share: shares.append(share)
    )
    assert shares == sorted(shares)
    for stopped_at in (0, 20, len(shares) - 2):
        left = iter(range(stopped_at, -1, -1))

        def stop(doing, share, left=left):
            if next(left) == 0:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            synthesize(released, tmp_path / "out", rows=5, on_progress=stop)
        assert [path.name for path in tmp_path.iterdir()] == ["done"]


def test_the_verb(released, tmp_path):
    out = tmp_path / "out"
    arguments = ["synthesize", str(released.folder), "--out", str(out), "--rows", "50"]
    never = ["--never", "age=0..1 synthetic_record=c", "--never", "sex=f age=5"]
    result = CliRunner().invoke(cli, [*arguments, *never, "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["rows"], facts["engine"]) == (50, "population")
    assert facts["never"][:2] == [{"age": "4", "sex": "female"}, NEVER]
    assert facts["left_out"] == [{"age": "3", "in no table": "y"}]
    assert SyntheticRecords.load(out).n_records == 50


def test_they_are_no_tables_to_ask(made):
    with pytest.raises(ReleaseError, match=r"holds synthetic records, .* made of \(release\)"):
        load_unbiased(made.folder)


def test_the_verb_says_what_they_are_and_refuses(released, tmp_path):
    arguments = ["synthesize", str(released.folder), "--out", str(tmp_path / "out"), "--rows", "5"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert "no row is a person" in result.stdout
    assert "age=3 in no table=y, which the codebook states to be impossible" in result.stdout
    never = ["--never", "sex=f", "--never", "age=5 one=only"]
    result = CliRunner().invoke(
        cli, [*arguments[:3], str(tmp_path / "none f"), *never, "--ignore-codebook"]
    )
    assert "of the smooth counts it takes away sex=f (" in result.stdout
    assert "age=5" not in result.stdout
    assert "codebook" not in result.stdout
    assert SyntheticRecords.load(tmp_path / "none f").never == ["sex=f", "age=5 one=only"]
    result = CliRunner().invoke(cli, [*arguments[:-3], str(tmp_path / "more"), "--never", "age"])
    assert "ATTRIBUTE=VALUES" in result.stderr


def test_what_cannot_be_made_is_refused_before_tables_are_made_smooth(
    released, tmp_path, monkeypatch
):
    monkeypatch.setattr(records_folder, "smooth_tables", None)  # calling it is an error
    folder = tmp_path / "synthetic"
    with pytest.raises(ReleaseError, match="Every record is in one of the impossible"):
        synthesize(released, folder, never=[{"sex": ["f", "m"]}])
    with monkeypatch.context() as patched:
        patched.setattr(records_folder, "_BYTES_PER_VALUE", 1e15)
        with pytest.raises(ReleaseError, match="the disk of"):
            synthesize(released, folder, rows=1000)
    monkeypatch.setattr(smooth_targets, "MOST_VALUES", 11)
    with pytest.raises(ReleaseError, match="12 values together"):  # 6 + 2 + 3 + 1
        synthesize(released, folder)
