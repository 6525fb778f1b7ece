"""An adaptive release: its tables, and that nothing of it is drawn twice or charged twice."""

import shutil
from fractions import Fraction
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import normal_quantile
from rpexplore.domain.result_schema import IMPOSSIBLE_NOTE
from rpexplore.errors import ReleaseError
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.planning.adaptive import adaptive_plan
from rpexplore.releases import packed_tables
from rpexplore.releases.adaptive_release import AdaptiveRelease
from rpexplore.releases.adaptive_rounds import downward_closed, read_outcomes, tables_of
from rpexplore.releases.release import can_be_resumed, release, resume
from rpexplore.releases.residual_files import StoredResiduals
from tests.releases.adaptive_run import DOMAIN, PLAN, write_records
from tests.releases.table_plan import entries, runs
from tests.support.stopped_runs import killed, killed_at_line, lines_of

ROUNDS = "rpexplore.releases.adaptive_rounds"
N_SELECTED = len(PLAN.rounds)  # one each


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    write_records(path)
    return path


@pytest.fixture(params=["a file for each table", "one file"])
def in_one_file(request, monkeypatch) -> bool:
    if request.param == "one file":
        monkeypatch.setattr(packed_tables, "MOST_FILES", 1)
    return request.param == "one file"


def test_rows_that_no_record_can_be_in_are_0_without_error(data, tmp_path, in_one_file):
    """No one of sex m is 3 to 5 years old: in the table of three attributes, too."""
    domain = rp.Domain(DOMAIN.attributes, ({"sex": "m", "age": "3..5"},))
    workload = rp.Workload.of(domain, [("sex", "age", "region"), ("sex", "age")])
    plan = adaptive_plan(workload, budget=rp.Budget(rho="1/2"), expected_records=5_000)
    done = release(plan, data, tmp_path / "out", count_impossible=True).part("rounds")
    small = done.table("sex", "age").to_numpy()
    assert list(small[4, :2]) == ["m", "3 to 5"]
    assert (small[4, 2:6] == 0).all()
    table = done.table("sex", "age", "region")
    assert (table.loc[16:19, ["value", "model_error"]].to_numpy() == 0).all()
    assert list(np.flatnonzero(table["note"] == IMPOSSIBLE_NOTE)) == [16, 17, 18, 19]
    sums = table["value"].to_numpy().reshape(2, 3, 4).sum(axis=2).ravel()
    assert sums == pytest.approx(small[:, 2].astype(float))


def measured_numbers(output: Path) -> bytes:
    """What stands on the disk of a run that was stopped, as far as it is noted."""
    folder = output.with_name(f".{output.name}.unfinished") / "run"
    note = (folder / "draft.json").read_text()
    n_measured = int(note.split('"n_measured": ')[1].split(",")[0])
    return (folder / "measured.int64").read_bytes()[: 8 * n_measured]


def test_tables_are_the_fit_of_what_was_measured(data, output, in_one_file):
    release(PLAN, data, output)
    loaded = AdaptiveRelease.load(output)
    assert (output / "rounds" / "tables.parquet").exists() == in_one_file
    assert (output / "rounds" / "tables").exists() != in_one_file
    assert {item.number for item in loaded.items} == ({0, 1, 2} if in_one_file else {None})
    assert len(loaded.selections) == N_SELECTED
    fit = loaded.measured.fit(downward_closed(tables_of(PLAN)))
    for names in loaded.table_names:
        indices = DOMAIN.positions(names)
        table = loaded.table(*names)
        assert np.array_equal(table["value"], fit.table(indices).ravel())
        assert np.all(table["value"] >= 0)
        assert np.all(table["value_is"] == loaded.label)
        errors = fit.standard_errors(indices).ravel()
        np.testing.assert_allclose(table["model_error"], errors, rtol=1e-15)
        margin = normal_quantile(0.95) * errors
        np.testing.assert_allclose(table["upper_95"], table["value"] + margin)
    total = loaded.table("region")["value"].sum()
    for names in loaded.table_names:  # they agree
        assert loaded.table(*names)["value"].sum() == pytest.approx(total)
    bounds = loaded.bounds
    assert list(bounds["attributes"]) == list(loaded.table_names)
    for names, is_measured in zip(bounds["attributes"], bounds["measured"], strict=True):
        indices = tuple(i for i in DOMAIN.positions(names) if DOMAIN.sizes[i] > 1)
        assert is_measured == (indices in loaded.measured.variances)
    assert runs(data)[0].record_rho == PLAN.record_rho
    assert "biased" in loaded.manifest["postprocessing"]


def test_contributions_measured_twice_are_averaged_by_their_precision(data, output):
    done = release(PLAN, data, output).part("rounds")
    measured = done.measured
    times = {}
    for outcome in done.outcomes:
        for index in outcome.selected:
            times.setdefault(PLAN.candidates[index], []).append(outcome.number)
    for subset, numbers in times.items():
        precision = sum(
            2 * PLAN.rounds[number].measurement_rho / share_of(subset) for number in numbers
        )
        residual = PLAN.first.closure.find(subset)
        if residual is not None:
            precision += 1 / PLAN.first.sigma_squared.fraction(residual)
        assert 1 / measured.variances[subset] == precision


def share_of(subset) -> Fraction:
    return prod((1 - Fraction(1, int(DOMAIN.sizes[i])) for i in subset), start=Fraction(1))


@pytest.mark.by_day(1)
@pytest.mark.parametrize("function", ["select", "measure", "fitted_candidates"])
@pytest.mark.parametrize("nth", [1, 4, N_SELECTED])
def test_a_run_killed_in_a_round_goes_on_and_draws_nothing_twice(function, nth, data, output):
    path = data.parent.parent / "plan.json"
    PLAN.save(path)
    killed(f"{ROUNDS}.{function}", nth, path, data, output)
    before = measured_numbers(output)
    assert [run.state for run in runs(data)] == ["started"]
    release(PLAN, data, output)
    done = AdaptiveRelease.load(output)
    assert [run.state for run in runs(data)] == ["finished"]
    assert runs(data)[0].record_rho == PLAN.record_rho
    lost = 0 if function == "fitted_candidates" else 1
    assert len(done.outcomes) == len(PLAN.rounds) - lost
    # What was on disk is in the release as it was: the first plan's numbers, and rounds'.
    first = first_numbers(done)
    numbers = np.frombuffer(before, dtype="<i8")
    assert np.array_equal(numbers[: len(first)], first)
    kept = [each for each in read_outcomes(PLAN, numbers[len(first) :]) if each.measured]
    assert len(kept) == nth - 1  # a table each
    for old, new in zip(kept, done.outcomes, strict=False):
        assert (old.number, old.selected) == (new.number, new.selected)
        assert all(map(np.array_equal, old.measured, new.measured))
    if lost:
        assert "Of 1 round nothing is there" in (output / "README.md").read_text()


@pytest.mark.nightly
def test_a_run_that_is_killed_at_any_line_keeps_all_that_it_had_drawn(data, tmp_path):
    plan, came = tmp_path / "plan.json", set()
    PLAN.save(plan)

    def fresh(name: str) -> tuple[Path, Path]:
        folder = tmp_path / name
        folder.mkdir()
        return Path(shutil.copy(data, folder)), folder / "release"

    n_lines = lines_of(plan, *fresh("whole"))
    # Not up to the last line: noise takes another number of lines in each run.
    for nth in range(1, n_lines * 9 // 10, n_lines // 40):
        records, output = fresh(str(nth))
        killed_at_line(nth, plan, records, output)
        run = output.with_name(".release.unfinished") / "run"
        kept = measured_numbers(output) if (run / "draft.json").exists() else b""
        if can_be_resumed(output):
            resume(output)
            came.add("drawn")
        elif not output.exists():
            release(PLAN, records, output)
            came.add("kept" if kept else "begun")
        done = AdaptiveRelease.load(output)
        assert [entry.state for entry in runs(records)] == ["finished"]
        assert runs(records)[0].record_rho == PLAN.record_rho
        lost = len(PLAN.rounds) - len(done.outcomes)
        assert lost <= (1 if kept else 0)
        first = first_numbers(done)
        numbers = np.frombuffer(kept, dtype="<i8")
        assert np.array_equal(numbers[: len(first)], first[: len(numbers)])
        for old in read_outcomes(PLAN, numbers[len(first) :]) if kept else ():
            (same,) = [new for new in done.outcomes if new.number == old.number] or [None]
            assert (same is None) == (old.measured == ())
            if same is not None:
                assert same.selected == old.selected
                assert all(map(np.array_equal, old.measured, same.measured))
    assert came == {"begun", "kept", "drawn"}


def first_numbers(done: AdaptiveRelease) -> np.ndarray:
    """What the first plan measured, in its order."""
    closure = PLAN.first.closure
    stored = StoredResiduals(done.folder, closure).measured(range(len(closure)))
    return np.concatenate([array.ravel() for array in stored.values()])


@pytest.mark.by_day(2)
@pytest.mark.parametrize("what", ["changed", "shorter", "gone", "without its note"])
def test_what_was_drawn_and_changed_since_is_not_drawn_again(what, data, output):
    path = data.parent.parent / "plan.json"
    PLAN.save(path)
    killed(f"{ROUNDS}.select", 3, path, data, output)
    file = output.with_name(".release.unfinished") / "run" / "measured.int64"
    content = file.read_bytes()
    if what == "changed":
        file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif what == "shorter":
        file.write_bytes(content[:8])
    elif what == "gone":
        file.unlink()
    else:
        file.with_name("draft.json").unlink()
    for _ in range(2):
        with pytest.raises(ReleaseError, match="not drawn again"):
            release(PLAN, data, output)
    assert entries(output.parent) == [".release.unfinished"]
    assert len(runs(data)) == 1


def test_records_that_have_changed_between_are_refused(data, output):
    path = data.parent.parent / "plan.json"
    PLAN.save(path)
    killed(f"{ROUNDS}.select", 3, path, data, output)
    write_records(data, 400)
    with pytest.raises(ReleaseError, match="other records"):
        release(PLAN, data, output)


def test_a_run_killed_while_it_writes_is_finished_without_records(data, output):
    path = data.parent.parent / "plan.json"
    PLAN.save(path)
    killed("rpexplore.releases.adaptive_release.write_table", 2, path, data, output)
    data.unlink()
    done = resume(output).part("rounds")
    assert len(done.outcomes) == len(PLAN.rounds)
    assert set(combinations((0, 1, 3), 2)) <= set(done.measured.variances)


def test_attributes_may_be_called_like_columns(tmp_path):
    names = ("model_error", "value_is", "value")
    domain = rp.Domain.from_sizes(dict.fromkeys(names, 2))
    records = tmp_path / "records.csv"
    records.write_text(",".join(names) + "\n" + "0,1,0\n1,0,0\n" * 50)
    plan = adaptive_plan(
        rp.Workload.of(domain, [names]), budget=rp.Budget(rho=1), expected_records=100
    )
    table = release(plan, records, tmp_path / "out").table(*names)
    assert list(table.columns) == [
        *(f"{name} (attribute)" for name in names),
        *("value", "model_error", "lower_95", "upper_95", "value_is"),
    ]


def test_a_cell_that_the_model_is_sure_of_is_written(data, output, monkeypatch):
    """A run that is charged must come to its end, whatever the model says of errors."""
    monkeypatch.setattr(SmoothTables, "standard_errors", lambda self, table: 0 * self.table(table))
    done = release(PLAN, data, output)
    assert np.all(done.table("region")["model_error"] == 0)
