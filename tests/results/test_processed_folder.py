"""The folder of processed tables: what is in it, and the label that nobody can miss."""

import hashlib
import json
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import rpexplore as rp
from rpexplore.cli.after import postprocess as postprocess_verb
from rpexplore.cli.commands import command
from rpexplore.cli.console import Verbs
from rpexplore.domain.readings import READINGS
from rpexplore.domain.result_schema import IMPOSSIBLE_NOTE, PROCESSED, SMOOTH, Schema, frame_of
from rpexplore.errors import ReleaseError
from rpexplore.estimation.whole_numbers import nearest_margins
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import combine, write_combined
from rpexplore.results.estimates.shrinkage import smooth
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.unbiased import Estimates
from rpexplore.workload.bases import CustomBasis, Prefix, Ranges
from tests.support.generalised import basis_matrix
from tests.support.results import names_of

DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 5)),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("value_is", rp.Categories(("a", "b", "c"))),
        rp.Attribute("one", rp.Categories(("only",))),
    )
)
PURE = rp.Workload.all_up_to(DOMAIN, 2)
WITH_BASES = (
    rp.Workload.of(DOMAIN, [(), ["age"], ["age", "sex"], ["sex", "value_is"], ["one", "age"]])
    .with_bases({"age": Prefix(), "value_is": CustomBasis(((1, 0, 0), (0.5, 1, 0), (1, 1, 1)))})
    .with_bases({"age": Ranges()}, tables=[["age"]])
)
WAYS = [("nonnegative", False), (None, True), ("nonnegative", True), ("smooth", False)]


def made(folder, workload, rho) -> TableRelease:
    rng = np.random.default_rng(0)
    rows = {
        "age": rng.binomial(5, 0.1, 60),
        "sex": rng.choice(["f", "m"], 60),
        "value_is": rng.choice(list("abc"), 60, p=[0.9, 0.09, 0.01]),
        "one": ["only"] * 60,
    }
    pd.DataFrame(rows).to_csv(folder / "records.csv", index=False)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))
    output = folder / f"release-{rho}".replace("/", "-")
    release(plan, folder / "records.csv", output)
    return TableRelease.load(output)


@pytest.fixture(scope="module")
def pure(tmp_path_factory) -> TableRelease:
    return made(tmp_path_factory.mktemp("pure"), PURE, "1/10")


@pytest.fixture(scope="module")
def with_bases(tmp_path_factory) -> TableRelease:
    return made(tmp_path_factory.mktemp("with_bases"), WITH_BASES, "1/10")


def test_one_way_tables_are_rounded_so_that_pairs_are_nearest(tmp_path):
    """Of twenty values each, so that each rounded by itself is another one."""
    domain = rp.Domain.from_sizes({"a": 20, "b": 20})
    plan = plan_tables(
        rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/10")
    )
    (tmp_path / "records.csv").write_text("a,b\n" + "3,4\n" * 90)
    release(plan, tmp_path / "records.csv", tmp_path / "out")
    unbiased = TableRelease.load(tmp_path / "out")
    whole = postprocess(unbiased, tmp_path / "whole", rounded=True)
    both = unbiased.table("a", "b")["value"].to_numpy().reshape(20, 20)
    nearest = nearest_margins(
        float(whole.table()["value"].iloc[0]),
        {axis: both.sum(axis=1 - axis) for axis in (0, 1)},
        {(0, 1): (both, np.ones(both.shape, bool))},
    )
    assert nearest is not None
    for axis, name in enumerate("ab"):
        assert whole.table(name)["value"].tolist() == nearest[axis].tolist()


def tables_of(folder, manifest):
    """{attributes: rows} of a processed folder."""
    return {
        tuple(entry["attributes"]): frame_of(pq.read_table(folder / entry["path"]))
        for entry in manifest["files"]
        if "attributes" in entry and entry["path"].endswith(".parquet")
    }


def counts(rows, table):
    shape = [DOMAIN[name].size for name in table]
    return rows["value"].to_numpy().reshape(shape)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("method", "rounded"), WAYS)
def test_the_unbiased_answers_stand_beside(pure, tmp_path, method, rounded):
    manifest = postprocess(pure, tmp_path / "out", method=method, rounded=rounded).manifest
    frames = tables_of(tmp_path / "out", manifest)
    assert set(frames) == set(PURE.tables)
    for table, rows in frames.items():
        unbiased = pure.table(table)
        n_labels = len(Schema.of(unbiased).labels)
        labels = rows.columns[:n_labels].tolist()
        assert [name.removesuffix(" (attribute)") for name in labels] == unbiased.columns[
            :n_labels
        ].tolist()
        for name, original in zip(labels, unbiased.columns, strict=False):
            assert rows[name].tolist() == unbiased[original].tolist()
        assert Schema.of(rows).figures == (SMOOTH if method == "smooth" else PROCESSED)
        assert rows.columns[n_labels:].tolist() == names_of(Schema.of(rows).figures)
        assert rows["unbiased_value"].equals(unbiased["value"])
        for name in ("standard_error", "lower_95", "upper_95"):
            assert rows[name].equals(unbiased[name])


IMPOSSIBLE = rp.Domain(
    DOMAIN.attributes,
    [{"age": "0..1", "sex": "f"}, {"sex": "m", "value_is": ["b", "c"]}],  # so never age ≤ 1, not a
)


@pytest.fixture(scope="module")
def with_zeros(tmp_path_factory) -> TableRelease:
    """At a noise of several records a cell, of sixty."""
    folder = tmp_path_factory.mktemp("with_zeros")
    rng = np.random.default_rng(0)
    ages = rng.binomial(5, 0.4, 60)
    sexes = np.where((ages < 2) | (rng.random(60) < 0.5), "m", "f")
    values = np.where(sexes == "m", "a", rng.choice(list("abc"), 60))
    rows = {"age": ages, "sex": sexes, "value_is": values, "one": "only"}
    pd.DataFrame(rows).to_csv(folder / "records.csv", index=False)
    workload = rp.Workload.all_up_to(IMPOSSIBLE, 2, only=["age", "sex", "value_is"])
    workload = workload.with_bases({"age": Prefix()}, tables=[["age", "sex"]])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/10"))
    release(plan, folder / "records.csv", folder / "out")
    return TableRelease.load(folder / "out")


def possible(ages, sexes, values):
    """Whether some record has one of each."""
    return any(
        not (age < 2 and sex == "f") and not (sex == "m" and value != "a")
        for age in ages
        for sex in sexes
        for value in values
    )


IMPOSSIBLE_ROWS = {
    ("age", "sex"): [possible(range(up + 1), sex, "abc") for up in range(6) for sex in "fm"],
    ("sex", "value_is"): [possible(range(6), sex, one) for sex in "fm" for one in "abc"],
    ("age", "value_is"): [possible([age], "fm", one) for age in range(6) for one in "abc"],
}


def test_released_tables_mark_rows_that_no_record_can_be_in(with_zeros):
    for table in with_zeros.table_names:
        rows = with_zeros.table(*table)
        notes = Schema.of(rows).names("note")
        if table not in IMPOSSIBLE_ROWS:
            assert notes == []
            continue
        assert not Schema.of(rows).is_processed
        assert notes == ["note"]
        expected = [
            "" if is_possible else IMPOSSIBLE_NOTE for is_possible in IMPOSSIBLE_ROWS[table]
        ]
        assert expected.count(IMPOSSIBLE_NOTE) > 0
        assert rows["note"].tolist() == expected
        assert (rows["standard_error"] > 0).all()
    by_single_values = with_zeros.counts("age", "sex")
    assert by_single_values["note"].tolist() == [
        "" if i not in (0, 2) else IMPOSSIBLE_NOTE for i in range(12)
    ]
    readme = (with_zeros.folder / "README.md").read_text()
    assert "age=0..1 sex=f; sex=m value_is=b,c" in " ".join(readme.split())


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("method", "rounded"), WAYS)
def test_rows_that_no_record_can_be_in_are_0_and_tables_agree(
    with_zeros, tmp_path, method, rounded
):
    processed = postprocess(with_zeros, tmp_path / "out", method=method, rounded=rounded)
    for table, are_possible in IMPOSSIBLE_ROWS.items():
        rows = processed.table(*table)
        assert np.all(rows["value"][~np.array(are_possible)] == 0)
        assert rows["note"].eq(IMPOSSIBLE_NOTE).tolist() == [not one for one in are_possible]
        assert rows["value_is"].eq(processed.label).all()
        if method == "smooth":
            assert np.all(rows["model_error"].fillna(0)[~np.array(are_possible)] == 0)
    if not rounded:
        single = processed.table("age", "value_is")["value"].to_numpy().reshape(6, 3)
        assert single.sum(axis=1) == pytest.approx(processed.table("age")["value"].to_numpy())
        assert single.sum(axis=0) == pytest.approx(processed.table("value_is")["value"].to_numpy())
    readme = " ".join((processed.folder / "README.md").read_text().split())
    assert "Rows that no record can be in are 0" in readme
    assert "2 impossible combinations: age=0..1 sex=f; sex=m value_is=b,c." in readme


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("method", "rounded"), WAYS)
def test_values_are_what_the_label_says(pure, tmp_path, method, rounded):
    manifest = postprocess(pure, tmp_path / "out", method=method, rounded=rounded).manifest
    frames = tables_of(tmp_path / "out", manifest)
    assert min(rows["unbiased_value"].min() for rows in frames.values()) < 0
    total = pure.table([])["value"][0]
    for table, rows in frames.items():
        values = counts(rows, table)
        if method:
            assert values.min() >= 0
        if rounded:
            np.testing.assert_array_equal(values, np.rint(values))
        assert values.sum() == pytest.approx(np.rint(total) if rounded else total, abs=1e-9)
        # The totals of a table's first attributes; where nothing was rounded, all totals.
        for axis in range(len(table)):
            left = table[:axis] + table[axis + 1 :]
            if not rounded or axis == len(table) - 1:
                expected = counts(frames[left], left)
                np.testing.assert_allclose(values.sum(axis=axis), expected, rtol=0, atol=1e-9)
    assert not frames["age",]["value"].equals(frames["age",]["unbiased_value"])


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("method", "rounded"), WAYS)
def test_answers_are_those_of_the_processed_counts(with_bases, tmp_path, method, rounded):
    manifest = postprocess(with_bases, tmp_path / "out", method=method, rounded=rounded).manifest
    frames = tables_of(tmp_path / "out", manifest)
    assert set(frames) == set(WITH_BASES.tables)
    ages = np.diff(frames["age", "one"]["value"].to_numpy(), prepend=0)  # cumulative
    matrix = basis_matrix(Ranges(), DOMAIN["age"])
    np.testing.assert_allclose(frames["age",]["value"], matrix @ ages, atol=1e-9)
    if method:
        assert ages.min() >= -1e-9
        assert all(rows["value"].min() >= 0 for rows in frames.values())
    if rounded:
        np.testing.assert_array_equal(ages, np.rint(ages))
    by_sex = frames["age", "sex"]["value"].to_numpy().reshape(6, 2)
    if not rounded:
        np.testing.assert_allclose(np.diff(by_sex.sum(axis=1), prepend=0), ages, atol=1e-9)
    np.testing.assert_allclose(frames["age",]["unbiased_value"], with_bases.table("age")["value"])


def test_smooth_tables_have_the_error_of_the_model_and_what_was_kept(pure, with_bases, tmp_path):
    tables = postprocess(pure, tmp_path / "pure", method="smooth")
    model = smooth(Estimates.of(pure))
    for table in PURE.tables:
        expected = model.standard_errors(DOMAIN.positions(table)).ravel()
        np.testing.assert_array_equal(tables.table(table)["model_error"], expected)
    shrinkage = tables.shrinkage
    columns = (shrinkage[name] for name in ("attributes", "order", "cells", "share_kept"))
    kept = {
        DOMAIN.positions(attributes): facts for attributes, *facts in zip(*columns, strict=True)
    }
    sizes = DOMAIN.sizes
    assert kept == {
        residual: [len(residual), np.prod(sizes[list(residual)]), share]
        for residual, share in model.kept.items()
        if residual
    }
    written = pd.read_csv(tmp_path / "pure" / "shrinkage.csv", dtype={"attribute_2": str})
    n_pairs = sum(len(residual) == 2 for residual in kept)
    assert len(written["attribute_2"].dropna()) == n_pairs
    assert written["share_kept"].tolist() == shrinkage["share_kept"].tolist()
    for attributes, *errors, gain in shrinkage[
        ["attributes", "standard_error", "model_error", "smoothing_gains"]
    ].itertuples(index=False):
        squares = tables.table(attributes)[["standard_error", "model_error"]] ** 2
        assert errors == pytest.approx(squares.mean().tolist() ** np.array(0.5))
        assert gain == ("yes" if errors[1] < 0.95 * errors[0] else "no")
    # Of ranges and groups no error is known.
    summed = postprocess(with_bases, tmp_path / "bases", method="smooth")
    assert np.all(np.isnan(summed.table("age")["model_error"]))
    assert not np.any(np.isnan(summed.table([])["model_error"]))
    gains = summed.shrinkage.set_index("attributes")["smoothing_gains"]
    assert gains.isna().all()


def test_smooth_tables_say_how_far_each_group_was_shrunk(with_bases, tmp_path):
    tables = postprocess(with_bases, tmp_path / "out", method="smooth")
    groups = tables.shrinkage_by_group
    rows = tables.table("age", "sex")
    women = rows[rows["sex"] == "f"]
    (group,) = groups.query("group == 'female'").to_dict("records")
    assert group["cells"] == 6 + 3  # with age, and with value_is
    own = tables.table("sex", "value_is").query("sex == 'f'")
    distance = pd.concat(
        (each["value"] - each["unbiased_value"]) / each["standard_error"] for each in (women, own)
    )
    assert group["distance"] == pytest.approx((distance**2).mean() ** 0.5)
    (ages,) = groups.query("group == '0 to 2'").to_dict("records")  # a range of the table of age
    (of_age,) = tables.table("age").query("age == '0 to 2'").to_dict("records")
    counts = ["value", "unbiased_value", "standard_error"]
    assert [ages[name] for name in counts] == [of_age[name] for name in counts]
    written = pd.read_csv(tmp_path / "out" / "shrinkage_by_group.csv", keep_default_na=False)
    assert written["group"].tolist() == groups["group"].tolist()


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("method", "rounded"), WAYS)
def test_the_label_is_everywhere(pure, tmp_path, method, rounded):
    manifest = postprocess(pure, tmp_path / "out", method=method, rounded=rounded).manifest
    label = manifest["label"]
    assert label.endswith("; intervals are those of the unbiased answers")
    assert "; biased" in label
    assert ("biased, small groups most;" in label) == (method == "smooth")
    assert ("nonnegative and consistent" in label) == (method == "nonnegative")
    assert ("whole numbers" in label) == rounded
    readme = (tmp_path / "out" / "README.md").read_text()
    assert readme.startswith(f"# Processed tables: {label}\n")
    assert "biased" in readme.splitlines()[2]
    assert ("No cell is negative" in readme) == (method is not None)
    assert ("What was assumed" in readme) == (method == "smooth")
    assert ("Cells are whole numbers" in readme) == rounded
    assert pure.plan.sha256 in readme
    assert all(reading.use in " ".join(readme.split()) for reading in READINGS.values())
    written = [line for line in readme.splitlines()[1:] if "zCDP" not in line]
    assert all(len(line) <= 100 for line in written if pure.plan.sha256 not in line)
    for entry in manifest["files"]:
        path = tmp_path / "out" / entry["path"]
        if "attributes" not in entry:
            continue
        if path.suffix == ".parquet":
            assert pq.read_schema(path).metadata[b"rpexplore"].decode() == label
            assert set(pq.read_table(path)["value_is"].to_pylist()) == {label}
        elif path.suffix == ".csv":
            rows = pd.read_csv(path)
            assert set(rows["value_is"]) == {label}
            read = pq.read_table(path.with_suffix(".parquet")).to_pandas()
            half = 0.501e-6 * read["standard_error"].min()
            assert np.allclose(rows["value"], read["value"], rtol=0, atol=half)
            whole = [cell.lstrip("-").isdigit() for cell in pd.read_csv(path, dtype=str)["value"]]
            assert all(whole) or not rounded


def test_the_manifest(pure, tmp_path):
    reports = []
    manifest = postprocess(
        pure,
        tmp_path / "out",
        method="nonnegative",
        gap=1e-5,
        on_progress=lambda *each: reports.append(each),
    ).manifest
    assert json.loads((tmp_path / "out" / "manifest.json").read_text()) == manifest
    assert (manifest["format"], manifest["format_version"]) == ("rpexplore-processed", 2)
    assert 0 <= manifest["gap"] <= 1e-5
    assert manifest["rounds"] > 0
    assert [source["plan_sha256"] for source in manifest["sources"]] == [pure.plan.sha256]
    listed = {entry["path"] for entry in manifest["files"]}
    there = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {str(path.relative_to(tmp_path / "out")) for path in there} == listed | {"manifest.json"}
    for entry in manifest["files"]:
        content = (tmp_path / "out" / entry["path"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    shares = [share for _, share in reports]
    assert shares == sorted(shares)
    assert reports[-1] == ("Finished", 1.0)


def test_the_same_tables_every_time(pure, tmp_path):
    for name in ("first", "second"):
        postprocess(pure, tmp_path / name, method="nonnegative", rounded=True)
    files = sorted((tmp_path / "first" / "tables").iterdir())
    assert len(files) == 2 * len(PURE)
    for file in files:
        assert file.read_bytes() == (tmp_path / "second" / "tables" / file.name).read_bytes()


def test_of_combined_tables(pure, tmp_path):
    other_plan = made(tmp_path, PURE, "1/5")
    estimates = combine(pure, other_plan)
    manifest = postprocess(estimates, tmp_path / "out", method="nonnegative").manifest
    assert [each["plan_sha256"] for each in manifest["sources"]] == [
        pure.plan.sha256,
        other_plan.plan.sha256,
    ]
    frames = tables_of(tmp_path / "out", manifest)
    for table, rows in frames.items():
        assert rows["value"].min() >= 0
        assert rows["unbiased_value"].equals(estimates.table(table)["value"])


def test_of_a_release_as_estimates_it_is_the_same(pure, tmp_path):
    for name, source in (("release", pure), ("estimates", Estimates.of(pure))):
        manifest = postprocess(source, tmp_path / name, method="nonnegative", rounded=True).manifest
    first, second = (tables_of(tmp_path / name, manifest) for name in ("release", "estimates"))
    for table, rows in first.items():
        assert rows["value"].equals(second[table]["value"])


def test_what_is_refused(pure, tmp_path):
    with pytest.raises(ReleaseError, match="ask for nonnegative or smooth tables"):
        postprocess(pure, tmp_path / "out")
    with pytest.raises(ReleaseError, match=r"method must be one of nonnegative.*, got 'exact'"):
        postprocess(pure, tmp_path / "out", method=cast(Any, "exact"))
    with pytest.raises(ReleaseError, match="gap goes with nonnegative tables alone"):
        postprocess(pure, tmp_path / "out", rounded=True, gap=0.1)
    with pytest.raises(ReleaseError, match="gap must be above 0"):
        postprocess(pure, tmp_path / "out", method="nonnegative", gap=0.0)
    with pytest.raises(ReleaseError, match="already something"):
        postprocess(pure, tmp_path, method="nonnegative")
    assert list(tmp_path.iterdir()) == []


def test_nonnegative_tables_beyond_the_memory_are_refused_beforehand(pure, tmp_path, monkeypatch):
    # 50 bytes a cell
    n_cells = pure.n_cells
    memory = "rpexplore.results.processed_folder.computer_memory"
    monkeypatch.setattr(memory, lambda: 50 * n_cells - 1)
    with pytest.raises(ReleaseError, match=rf"Nonnegative tables of {n_cells:,.0f} cells need"):
        postprocess(pure, tmp_path / "out", method="nonnegative")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(memory, lambda: 50 * n_cells)
    postprocess(pure, tmp_path / "out", method="nonnegative")


@pytest.mark.parametrize("stopped_at", [2, 4, 6])
def test_a_stop_leaves_nothing(pure, tmp_path, stopped_at):
    reports = []

    def stop(doing, share):
        reports.append(doing)
        if len(reports) == stopped_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        postprocess(pure, tmp_path / "out", method="nonnegative", on_progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_stop_is_heard_while_errors_are_rehearsed(pure, tmp_path):
    reports = []
    postprocess(
        pure, tmp_path / "done", method="smooth", on_progress=lambda *each: reports.append(each)
    )
    shares = [share for _, share in reports]
    assert shares == sorted(shares)
    rehearsing = {share for doing, share in reports if doing.startswith("Simulating the errors")}
    assert len(rehearsing) > 10
    assert max(rehearsing) - min(rehearsing) > 0.3  # of 0.35

    def stop(doing, share):
        if doing.startswith("Simulating the errors") and share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        postprocess(pure, tmp_path / "out", method="smooth", on_progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


# ---- the verb


def run(*arguments):
    program = Verbs(commands=[command(postprocess_verb)])
    return CliRunner().invoke(program, ["postprocess", *map(str, arguments)])


def test_the_verb(pure, tmp_path):
    out = tmp_path / "out"
    result = run(pure.folder, "--out", out, "--nonnegative", "--round", "--gap", "1e-4")
    assert result.exit_code == 0, result.output
    assert "Nonnegative and consistent, then rounded to whole numbers; biased" in result.stdout
    assert "squared distance" in result.stdout
    assert f"The {len(PURE)} tables are in {out}" in result.stdout
    assert json.loads((out / "manifest.json").read_text())["gap"] <= 1e-4


def test_the_verb_for_machines(pure, tmp_path):
    result = run(pure.folder, "--out", tmp_path / "out", "--round", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["table_count"] == len(PURE)
    assert (facts["method"], facts["rounded"], facts["gap"]) == (None, True, None)


def test_the_verb_tells_how_far_smooth_tables_were_shrunk(pure, tmp_path):
    result = run(pure.folder, "--out", tmp_path / "text", "--smooth", "--round")
    assert result.exit_code == 0, result.output
    assert "(medians). The rest was taken for noise." in result.stdout
    assert "Farthest from the unbiased counts: " in result.stdout
    result = run(pure.folder, "--out", tmp_path / "json", "--smooth", "--json")
    facts = json.loads(result.stdout)
    done = ProcessedTables.load(tmp_path / "json")
    kept, groups = done.shrinkage, done.shrinkage_by_group
    assert facts["median_share_kept"]["2"] == kept.loc[kept["order"] == 2, "share_kept"].median()
    no_gain = [list(names) for names in kept.loc[kept["smoothing_gains"] == "no", "attributes"]]
    assert facts["smoothing_gains_nothing"] == no_gain
    beyond = (groups["distance"] - groups["limit"])[groups["attribute"] != ""]
    assert facts["farthest_group"]["group"] == groups["group"][beyond.idxmax()]


def test_the_verb_takes_combined_tables(pure, tmp_path):
    write_combined(Estimates.of(pure), tmp_path / "combined")
    result = run(tmp_path / "combined", "--out", tmp_path / "out", "--nonnegative")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "ask for nonnegative or smooth tables"),
        (["--smooth", "--nonnegative"], "Give one of --nonnegative and --smooth"),
        (["--round", "--gap", "0.1"], "gap goes with nonnegative tables"),
        (["--nonnegative", "--gap", "2"], "above 0 and below 1"),
    ],
)
def test_the_verb_refuses(pure, tmp_path, options, message):
    result = run(pure.folder, "--out", tmp_path / "out", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_estimates_by_single_values_are_refused_where_own_matrices_leave_them_open(tmp_path):
    """Once combined and written, as well; unbiased tables and whole numbers are there."""
    groups = CustomBasis(((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1)))
    workload = rp.Workload.of(DOMAIN, [["age"], ["age", "sex"]]).with_bases({"age": groups})
    released = made(tmp_path, workload, "1/2")
    answers = Estimates.of(released)
    write_combined(combine(released, made(tmp_path, workload, "1/3")), tmp_path / "combined")
    for source in (released, answers, rp.load_results(tmp_path / "combined")):
        for method in ("nonnegative", "smooth"):
            with pytest.raises(ReleaseError, match="own matrices of attribute 'age' leave these"):
                postprocess(source, tmp_path / "processed", method=method)
    postprocess(released, tmp_path / "processed", rounded=True)
    table = frame_of(released.cells(0))
    assert len(table) == 2
    assert abs(table["value"].sum() - 60) < 6 * table["standard_error"].sum()


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("method", "rounded"), [(None, 5), ("nonnegative", True), ("smooth", 3)])
def test_whole_numbers_and_multiples_add_up_in_all_tables(tmp_path, method, rounded):
    released = made(tmp_path, rp.Workload.all_up_to(DOMAIN, 3), "1/2")
    processed = postprocess(released, tmp_path / "out", method=method, rounded=rounded)
    tables = tables_of(tmp_path / "out", processed.manifest)
    cells = {table: counts(rows, table) for table, rows in tables.items()}
    readme = (tmp_path / "out/README.md").read_text("utf-8")
    for table, values in cells.items():
        np.testing.assert_array_equal(values % int(rounded), 0)
        # Whole numbers of three attributes cannot have all totals of any noise: then it is said.
        named = readme.partition("by rounding:")[2].partition(".")[0]
        is_named = len(table) == 3 and " × ".join(table) in named
        for smaller, sums in cells.items():
            if set(smaller) < set(table) and not is_named:
                axes = tuple(axis for axis, name in enumerate(table) if name not in smaller)
                np.testing.assert_array_equal(values.sum(axis=axes), sums)
    words = f"multiples of {rounded}" if rounded > 1 else "whole numbers"
    assert words in processed.label
    assert words in readme
    assert ProcessedTables.load(tmp_path / "out").label == processed.label
    with pytest.raises(ReleaseError, match="multiples of a whole number from 2"):
        postprocess(released, tmp_path / "no", rounded=-5)
