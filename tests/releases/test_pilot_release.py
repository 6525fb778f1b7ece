"""Runs with a pilot: released by itself, then gone on with; one booking, nothing drawn twice."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.finished_release import Release
from rpexplore.releases.measurement_file import Measured
from rpexplore.releases.release import release
from rpexplore.releases.residual_files import measurements_of
from rpexplore.releases.table_release import TableSteps
from tests.cli.program import Program
from tests.releases.table_plan import CSV, DOMAIN, QUERIES, draw_by, no_noise, runs
from tests.statistical.linear_release import LinearRelease
from tests.support.exact_counts import counts_of
from tests.support.stopped_runs import killed

PILOTED = rp.plan(
    rp.Request(
        tables=rp.Workload.all_up_to(DOMAIN, 2),
        counts=QUERIES,
        budget=rp.Budget(rho="1/2"),
        pilot="5%",
    )
)
NOTE = "rpexplore.releases.measurement_file.Draft.note"


def pilot_of(output: Path) -> Path:
    return output.with_name(f"{output.name}-pilot")


def unfinished(output: Path) -> Path:
    return output.with_name(f".{output.name}.unfinished")


def drawn(folder: Path) -> list[int]:
    return np.fromfile(folder / "run" / "measured.int64", dtype="<i8").tolist()


def measured_in(path: Path) -> list[int]:
    return pq.read_table(path)["measured"].to_pylist()


def test_a_pilot_is_released_and_the_rest_follows_at_no_cost(data, output):
    pilot = release(PILOTED, data, output, pilot_only=True)
    assert pilot.folder == pilot_of(output)
    assert Release.load(pilot.folder).plan.part("tables").pilot_of == PILOTED.sha256
    assert "pilot of the plan with the SHA-256" in (pilot.folder / "README.md").read_text()
    assert not output.exists()
    assert [run.state for run in runs(data)] == ["started"]
    first = drawn(unfinished(output))
    done = release(PILOTED, data, output)
    (run,) = runs(data)
    assert (run.state, run.record_rho) == ("finished", PILOTED.record_rho)
    own = measured_in(output / "pilot.parquet")
    assert own == measured_in(pilot.folder / "residuals.parquet") == first[: len(own)]
    assert len(own) == 1 + 2 + 3  # total, sex, age
    assert measured_in(output / "residuals.parquet")[: len(own)] != own
    table, names = Release.load(output).table("sex"), done.plan.part("tables")
    assert np.allclose(table["standard_error"], np.sqrt(names.mean_variances[1]))


def test_a_pilot_that_is_there_is_not_drawn_again(data, output, monkeypatch):
    first = release(PILOTED, data, output, pilot_only=True)
    figures = first.table("age")
    draw_by(monkeypatch, None)  # would fail
    again = release(PILOTED, data, output, pilot_only=True).table("age")
    assert bool(again.equals(figures))
    assert len(runs(data)) == 1


# The first note is the pilot's: before it nothing was shown, and it is drawn anew.
@pytest.mark.parametrize(("nth", "is_kept"), [(1, False), (2, True)])
def test_a_run_that_is_killed_behind_its_pilot_goes_on(data, output, tmp_path, nth, is_kept):
    PILOTED.save(tmp_path / "plan.json")
    killed(NOTE, nth, tmp_path / "plan.json", data, output)
    before = drawn(unfinished(output))[:6]
    assert len(runs(data)) == 1
    release(PILOTED, data, output)
    assert [(run.state, run.record_rho) for run in runs(data)] == [("finished", PILOTED.record_rho)]
    assert (measured_in(output / "pilot.parquet") == before) == is_kept


@pytest.mark.parametrize("is_of_another_run", [False, True])
def test_what_a_pilot_left_that_was_killed_as_it_was_written_goes_in_the_end(
    data, output, is_of_another_run
):
    pilot = release(PILOTED, data, output, pilot_only=True)
    left = pilot.folder.rename(unfinished(pilot.folder))
    left.chmod(0o700)
    if is_of_another_run:  # into the folder of this name, which may be charged
        (left / "run").mkdir()
        (left / "run" / "booked.json").touch()
    release(PILOTED, data, output)
    assert left.exists() == is_of_another_run


def test_a_pilot_is_not_drawn_again_of_other_records(data, output, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release(PILOTED, data, output, pilot_only=True)
    data.write_text(CSV + "f,8,k,x\n")
    PILOTED.save(tmp_path / "plan.json")
    said = Program(tmp_path)(
        "release", "plan.json", str(data), "--out", str(output), "--yes"
    ).output
    assert "is not drawn again. That run stays charged: go on with it" in said
    assert "into another folder, which is charged as a further run" in said
    assert "into the same folder" not in said  # where it is refused again


def test_without_noise_tables_are_the_counts(data, output, monkeypatch):
    draw_by(monkeypatch, no_noise)
    done = release(PILOTED, data, output)
    assert done.table("sex")["value"].tolist() == pytest.approx([3, 2])
    assert done.counts("sex", "age")["value"].sum() == pytest.approx(5)
    assert done.answer("age", where={"age": [1, 1, 0]}).value == pytest.approx(4)


def test_the_pilot_of_another_run_is_not_taken_for_this_ones(data, output):
    release(PILOTED, data, output, pilot_only=True)
    release(PILOTED, data, output)
    output.rename(output.with_name("first"))
    with pytest.raises(ReleaseError, match="There is already something at"):
        release(PILOTED, data, output, pilot_only=True)
    assert len(runs(data)) == 1


def test_pilot_and_whole_release_are_not_combined(data, output):
    pilot = release(PILOTED, data, output, pilot_only=True)
    done = release(PILOTED, data, output)
    with pytest.raises(ReleaseError, match="counting them twice"):
        rp.combine(pilot.part("tables"), done.part("tables"))


def test_a_plan_without_a_pilot_releases_none(data, output):
    plan = rp.plan(
        rp.Workload.all_up_to(DOMAIN, 1), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    with pytest.raises(ReleaseError, match="has no pilot, and so none can be released by itself"):
        release(plan, data, output, pilot_only=True)
    assert not runs(data)


@dataclass(frozen=True)
class Drawn(Measured):
    """In the place of the file: the measurements of one release."""

    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def read(self, start: int, stop: int | None = None) -> np.ndarray:
        return self.numbers[self.start + start : None if stop is None else self.start + stop]


SMALL = rp.plan(
    rp.Request(
        tables=rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 4, "b": 3}), 2),
        budget=rp.Budget(rho="1/500"),
        pilot="5%",
    )
).part("tables")


@pytest.fixture(scope="module")
def small_counts():
    rng = np.random.default_rng(1)
    return counts_of({0: rng.integers(0, 4, 500), 1: rng.integers(0, 3, 500)}, 500, [4, 3])


def cells_of_a_release(counts) -> np.ndarray:
    """All 20 cells of the tables, by the measuring and writing code of a run."""
    steps = TableSteps(SMALL)
    numbers = np.concatenate([p for part in steps.parts for p in steps.measure(part, counts)])
    contributions = Contributions(SMALL, measurements_of(SMALL, Drawn(Path(), 0, numbers)))
    return np.concatenate([contributions.answers(table).ravel() for table in range(4)])


STATED = np.repeat(SMALL.standard_errors, [1, 4, 3, 12])


def test_every_cell_has_exactly_the_standard_error_that_the_plan_states(small_counts):
    release = LinearRelease.of(
        lambda: cells_of_a_release(small_counts), "rpexplore.releases.measurement.discrete_gaussian"
    )
    assert [size for size, _ in release.calls] == [1, 4, 3, 1, 4, 3, 12]
    variances = release.matrix**2 @ release.variances
    assert np.allclose(np.sqrt(variances), STATED, rtol=1e-6)
    exact = [small_counts.counts(table) for table in ((), (0,), (1,), (0, 1))]
    truth = np.concatenate([np.ravel(table) for table in exact])
    assert np.allclose(release.without_noise, truth, rtol=1e-9)


@pytest.mark.nightly
def test_intervals_hold_in_2000_runs(small_counts):
    exact = [small_counts.counts(table) for table in ((), (0,), (1,), (0, 1))]
    truth = np.concatenate([np.ravel(table) for table in exact])
    errors = np.stack([cells_of_a_release(small_counts) - truth for _ in range(2000)])
    coverage = np.mean(np.abs(errors) <= 1.959964 * STATED)
    assert 0.94 < coverage < 0.96
