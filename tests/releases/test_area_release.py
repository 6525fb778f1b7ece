"""Releases of tables in areas: booked, then drawn; killed, and run again; opened."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.data.files.source import FileSource
from rpexplore.domain.result_schema import RELEASED
from rpexplore.errors import DataError, ReleaseError, WorkloadError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.releases import area_measurement, area_parts
from rpexplore.releases.area_release import AreaRelease
from rpexplore.results.area_results import AreaResults
from rpexplore.results.estimates.area_counts import whole_area_counts
from tests.releases.area_plans import OTHERS, PLANS, RECORDS, TREE
from tests.releases.table_plan import entries, runs
from tests.support.results import names_of
from tests.support.stopped_runs import killed, killed_at_line, lines_of

PLAN = PLANS["less further down"]
SMALL = {"PART_NUMBERS": 8, "PART_CELLS": 1}
MODULES = "rpexplore.releases"


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    pd.DataFrame(RECORDS).to_csv(path, index=False)
    PLAN.save(tmp_path / "plan.json")
    return path


@pytest.fixture
def in_parts(monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(area_parts, name, value)


def measurements(folder: Path) -> np.ndarray:
    paths = sorted((folder / "areas" / "residuals").iterdir())
    return np.concatenate([pq.read_table(path)["measured"].to_numpy() for path in paths])


def contents(folder: Path) -> dict[str, bytes]:
    """All files of tables and measurements."""
    paths = [path for path in folder.rglob("*.parquet") if path.parent != folder]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.usefixtures("in_parts")
def test_every_table_is_there_with_the_accuracy_that_was_planned(data, output, monkeypatch):
    draw, seen = area_measurement.discrete_gaussian, []

    def spy(size, gamma_squared):
        seen.append([run.state for run in runs(data)])
        return draw(size, gamma_squared)

    monkeypatch.setattr(area_measurement, "discrete_gaussian", spy)
    release = rp.release(PLAN, data, output).part("areas")
    assert len(seen) > 10
    assert all(states == ["started"] for states in seen)  # booked before any noise
    (run,) = runs(data)
    assert (run.state, run.record_rho, run.plan_sha256) == ("finished", PLAN.rho, PLAN.sha256)

    opened = AreaRelease.load(output)
    assert opened.plan.sha256 == PLAN.sha256
    assert rp.verify(opened.plan).holds
    for level, kind in (("all", 0), ("region", 1), ("town", 2), ("block", 3)):
        areas = TREE.level_slice(TREE.levels.index(level))
        groups = PLAN.groups.of_area[areas] - np.flatnonzero(PLAN.groups.kinds == kind)[0]
        for name, variances in zip(
            PLAN.workload.workloads[kind].tables, PLAN.table_variances(kind), strict=True
        ):
            rows = opened.table(level, *name)
            errors = rows["standard_error"].to_numpy().reshape(len(groups), -1)
            expected = np.sqrt(variances[groups])[:, None]
            np.testing.assert_allclose(errors, np.broadcast_to(expected, errors.shape))
    held = "holds 26 noisy tables in areas, and unbiased tables are needed"
    with pytest.raises(ReleaseError, match=held):
        rp.load_results(output)
    rows = release.table("town", "sex")
    assert rows.columns.tolist() == [
        "region", "town", "town label", "sex", *names_of(RELEASED),
    ]  # fmt: skip
    texts = rows[["region", "town", "town label", "sex"]].astype(str).agg("/".join, axis=1)
    towns = ("N/1/Town N1", "N/2/Town N2", "S/1/Town S1", "S/2/Town S2")
    assert texts.tolist() == [f"{town}/{sex}" for town in towns for sex in (0, 1)]
    with pytest.raises(ReleaseError, match="which is above it; give fewer codes"):
        opened.table("region", "sex", within=("N", "1"))


@pytest.mark.usefixtures("in_parts")
def test_tables_of_areas_add_up_and_lie_within_their_errors(data, output):
    release = rp.release(PLAN, data, output).part("areas")
    towns, blocks = release.table("town"), release.table("block", within=("N", "1"))
    assert np.isclose(blocks["value"].sum(), towns["value"][0])
    assert release.table("block", within="c").equals(
        blocks[blocks["block"] == "c"].reset_index(drop=True)
    )
    assert release.table("block", within="all").equals(release.table("block"))
    by_sex = release.table("town", "sex").groupby(["region", "town"], observed=True)["value"].sum()
    np.testing.assert_allclose(by_sex, towns["value"])
    frame = pd.DataFrame(RECORDS)
    exact = frame[frame["region"] == "N"].groupby("town").size()
    assert abs(towns["value"][0] - exact["1"]) < 6 * towns["standard_error"][0]


@pytest.mark.usefixtures("in_parts")
def test_tables_in_other_bases_are_released_and_added_up(data, output):
    plan = PLANS["in bases"]
    release = rp.release(plan, data, output).part("areas")
    blocks = release.table("block", "sex", "age")
    assert blocks["age"].unique().tolist() == ["≤ 0", "≤ 1", "≤ 2"]
    assert len(set(np.round(blocks["standard_error"][:6], 9))) > 1  # cells differ
    lists = {"two": [("N", "1", "a"), ("N", "1", "c")], "north": ["N"]}
    sums = release.sums_of_areas(lists, "sex", "age")
    values = blocks["value"].to_numpy().reshape(-1, 6)
    np.testing.assert_allclose(sums["value"][:6], values[0] + values[2])
    of_north = release.table("region", "sex", "age", within="N")
    np.testing.assert_allclose(sums["standard_error"][6:], of_north["standard_error"])
    means = np.sqrt((sums["standard_error"] ** 2).groupby(sums["list"]).mean())
    planned = plan.accuracy_of_sums(lists, [("sex", "age")]).set_index("list")["standard_error"]
    np.testing.assert_allclose(means[planned.index], planned)
    with pytest.raises(ReleaseError, match="in other bases; plan and release tables of single"):
        whole_area_counts(release, output.with_name("whole"))
    (north,) = [area for area in range(TREE.n_areas) if TREE.path(area) == ("N",)]
    tables = AreaResults(release).of_area(north)
    assert tables.domain is None
    assert not tables.has(["age"])
    assert tables.table("sex", "age")["value"].tolist() == of_north["value"].tolist()


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("function", "nth", "is_drawn"),
    [
        (f"{MODULES}.area_measurement.discrete_gaussian", 9, False),
        (f"{MODULES}.area_release.measure_areas", 3, False),
        ("rpexplore.data.counting.counts_of", 3, False),
        ("rpexplore.releases.measurement_file.Draft.add", 2, False),
        ("rpexplore.releases.measurement_file.Draft.note", 2, False),
        ("rpexplore.releases.release.write_note", 1, False),
        (f"{MODULES}.area_release.write_table", 4, True),
        (f"{MODULES}.area_release.write_residuals", 2, True),
        ("rpexplore.releases.release_steps.write_manifest", 1, True),
    ],
)
def test_a_killed_run_goes_on_without_a_second_noise(
    function, nth, is_drawn, data, output, in_parts, monkeypatch
):
    constants = {f"{MODULES}.area_parts.{name}": value for name, value in SMALL.items()}
    killed(function, nth, data.parent.parent / "plan.json", data, output, constants=constants)
    left, kept = output.parent / ".release.unfinished" / "run", 0
    if is_drawn:
        kept = len(np.fromfile(left / "measured.int64", "<i8"))
    elif (left / "draft.json").exists():
        kept = json.loads((left / "draft.json").read_text())["n_measured"]
    before = np.fromfile(left / "measured.int64", "<i8")[:kept]
    draw, n_drawn = area_measurement.discrete_gaussian, []

    def counted(size, gamma_squared):
        n_drawn.append(size)
        return draw(size, gamma_squared)

    monkeypatch.setattr(area_measurement, "discrete_gaussian", counted)
    assert [run.state for run in runs(data)] == ["started"]
    if is_drawn:
        with pytest.raises(ReleaseError, match="finish it"):
            rp.release(PLAN, data, output)
        rp.resume(output)
    else:
        rp.release(PLAN, data, output)
    numbers = measurements(output)
    np.testing.assert_array_equal(numbers[:kept], before)
    assert sum(n_drawn) == len(numbers) - kept
    assert [run.state for run in runs(data)] == ["finished"]
    assert entries(output.parent) == ["release"]
    assert AreaRelease.load(output).table("all", "sex", "age").shape == (6, 6)


@pytest.mark.nightly
def test_a_run_that_is_killed_at_any_line_goes_on_without_a_second_noise(data, tmp_path):
    plan, drawn = tmp_path / "plan.json", []

    def fresh(name: str) -> tuple[Path, Path]:
        """Records without a ledger, whose length changes how many lines are run."""
        folder = tmp_path / name
        folder.mkdir()
        return Path(shutil.copy(data, folder)), folder / "release"

    n_lines = lines_of(plan, *fresh("whole"))
    for nth in range(1, n_lines, n_lines // 40):
        records, output = fresh(str(nth))
        killed_at_line(nth, plan, records, output)
        numbers = output.parent / ".release.unfinished/run/measured.int64"
        if numbers.with_name("drawn.json").exists():
            drawn.append(np.fromfile(numbers, "<i8"))
            rp.resume(output)
            np.testing.assert_array_equal(measurements(output), drawn[-1])
        elif not output.exists():
            rp.release(PLAN, records, output)
        assert AreaRelease.load(output).plan.sha256 == PLAN.sha256
        assert len(runs(records)) == 1
    assert len(drawn) > 3


@pytest.mark.usefixtures("in_parts")
def test_finishing_a_run_makes_the_files_that_it_would_have_made(data, output, monkeypatch):
    def stop(doing, share):
        if doing == "Writing the release" and share > 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rp.release(PLAN, data, output, on_progress=stop)
    numbers = (output.parent / ".release.unfinished/run/measured.int64").read_bytes()
    rp.resume(output)
    finished = contents(output)
    drawn = iter(np.frombuffer(numbers, "<i8").tolist())
    monkeypatch.setattr(
        "rpexplore.releases.area_release.measure_areas",
        lambda parts, part, counts: (
            np.array([next(drawn)]) for _ in range(parts.parts[part].n_measured)
        ),
    )
    rp.release(PLAN, data, output.with_name("again"))
    assert contents(output.with_name("again")) == finished


def test_a_record_outside_of_the_tree_is_refused_for_nothing(data, output):
    frame = pd.DataFrame([*RECORDS, RECORDS[0] | {"region": "X"}])
    frame.to_csv(data, index=False)
    with pytest.raises(DataError, match="'region' is not in the tree; correct the records"):
        rp.release(PLAN, data, output)
    assert runs(data) == ()
    assert entries(output.parent) == []


@pytest.mark.usefixtures("in_parts")
def test_a_record_that_moves_between_two_passes_is_refused(data, output, monkeypatch):
    rows = [*RECORDS]
    moved = rows.index(RECORDS[0] | {"region": "N", "town": "1", "block": "a"})
    rows[moved] = rows[moved] | {"town": "2", "block": None}  # where the next pass counts
    after, count, called = data.with_name("after.csv"), FileSource.count, []
    pd.DataFrame(rows).to_csv(after, index=False)

    def counting(self, *arguments, **options):
        called.append(arguments)
        return count(self if len(called) < 2 else FileSource(after), *arguments, **options)

    monkeypatch.setattr(FileSource, "count", counting)
    with pytest.raises(DataError, match="have changed while they were counted"):
        rp.release(PLAN, data, output)
    assert len(called) == 2


def test_persons_have_their_first_records_counted(output, tmp_path):
    budget = rp.Budget(rho="0.5", max_records_per_person=1)
    plan = plan_areas(PLAN.workload, loss=rp.SumOfVariances(), budget=budget)
    frame = pd.DataFrame([record | {"who": 1} for record in RECORDS])
    release = rp.release(
        plan,
        frame,
        output,
        name="persons",
        ledger=tmp_path / "ledger.sqlite",
        person_rule=rp.PersonRule("who", most=1, excess="keep first"),
    )
    total = release.table("one", level="all")
    assert abs(total["value"][0] - 1) < 6 * total["standard_error"][0]


def test_a_level_and_an_attribute_may_not_share_a_column():
    tree = rp.AreaTree.from_columns({"sex": ["a", "b"]})
    workload = rp.Workload.of(OTHERS, [("sex",)])
    with pytest.raises(WorkloadError, match="both called 'sex'"):
        rp.AreaWorkload.of_levels(tree, {"sex": workload})


@pytest.mark.parametrize(
    "name", [pytest.param("less further down", marks=pytest.mark.nightly), "in bases"]
)
def test_answers_have_the_variance_and_their_intervals_the_coverage_that_is_stated(
    name, output, tmp_path
):
    """No records at all: what is released is noise, of 10,000 regions that are alike."""
    n = 10_000
    towns = ["1", "1", "2", "3"] * n
    blocks = ["a", "b", None, "a"] * n
    regions = np.repeat([f"{number:05}" for number in range(n)], 4).tolist()
    tree = rp.AreaTree.from_columns({"region": regions, "town": towns, "block": blocks})
    plan = plan_areas(
        rp.AreaWorkload.of_levels(
            tree, dict.fromkeys(tree.levels, PLANS[name].workload.workloads[0])
        ),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.02"),
    )
    frame = pd.DataFrame({name: pd.Series(dtype=str) for name in tree.levels[1:]})
    frame = frame.assign(**{name: pd.Series(dtype=int) for name in OTHERS.names})
    release = rp.release(
        plan, frame, output, name="nobody", ledger=tmp_path / "ledger", may_be_empty=True
    )
    for level in tree.levels[1:]:
        rows = release.table("sex", "age", level=level)
        scaled = (rows["value"] / rows["standard_error"]).to_numpy()
        covered = ((rows["lower_95"] <= 0) & (rows["upper_95"] >= 0)).to_numpy()
        for cell in range(6):  # which have standard errors of their own in other bases
            # One cell of one area of each region: independent but for what is above the regions.
            some = scaled[cell :: len(scaled) // n]
            # Variance of a mean of n squares: 2/n; of a share: 0.95 · 0.05/n; 5 of these roots.
            assert abs(np.mean(some**2) - 1) < 5 * np.sqrt(2 / n)
            assert abs(np.mean(some)) < 5 / np.sqrt(n)
            share = np.mean(covered[cell :: len(scaled) // n])
            assert abs(share - 0.95) < 5 * np.sqrt(0.95 * 0.05 / n)
