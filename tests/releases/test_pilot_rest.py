"""Behind a pilot another plan, made of its figures: one booking, and nothing drawn by two plans."""

import hashlib
import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.most_people import plan_of_rest
from rpexplore.domain.result_schema import PLANNED_ANEW, RELEASED, Schema
from rpexplore.errors import ApprovalError, ReleaseError
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.planning.pilot import pilot_scales
from rpexplore.planning.plan import Plan
from rpexplore.planning.rest import on_top_of_pilot
from rpexplore.releases.approvals import load_approvals
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.measurement_file import MeasuredFile
from rpexplore.releases.pilot import figures_sha256, plan_behind_pilot
from rpexplore.releases.release import release, resume
from rpexplore.releases.residual_files import measurements_of
from rpexplore.releases.table_release import TableSteps
from rpexplore.results.pilot_tables import pilot_tables, public_tables
from tests.releases.table_plan import CSV, DOMAIN, QUERIES, draw_by, no_noise, runs
from tests.releases.test_pilot_release import Drawn, drawn, measured_in, pilot_of, unfinished
from tests.releases.test_several_parts import keep_what_was_drawn
from tests.statistical.linear_release import LinearRelease
from tests.support.exact_counts import counts_of
from tests.support.ssh_keys import public, requires_ssh_keygen, with_keys
from tests.support.stopped_runs import killed, killed_at_line, lines_of

TABLES = rp.Workload.all_up_to(DOMAIN, 2)
FIRST = rp.plan(
    rp.Request(
        tables=TABLES,
        counts=QUERIES,
        budget=rp.Budget(rho="1/2"),
        pilot="5%",
        then=rp.RestObjective(),
    )
)


SMALL = rp.plan(
    rp.Request(
        tables=rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 4, "b": 3}), 2),
        budget=rp.Budget(rho="1/50"),
        pilot="5%",
        then=rp.RestObjective(),
    )
)


def rest_of(first: Plan, weights) -> Plan:
    workload = replace(TABLES, weights=np.array(weights, dtype=float))
    budget = first.part("tables").budget
    best = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget).part("tables")
    return on_top_of_pilot(first, best, 64 * "0")


REST = rest_of(FIRST, [1, 9, 1, 1, 4, 1, 1])
OTHER = rest_of(FIRST, [1, 1, 9, 1, 1, 1, 1])


def behind(output: Path, rest: Plan) -> Plan:
    """A plan of a rest as if it were made from the pilot of the run into `output`."""
    return stating(rest, figures_sha256(Release.load(pilot_of(output))))


def stating(rest: Plan, pilot_sha256: str) -> Plan:
    tables, *others = rest.parts
    return replace(rest, parts=(replace(tables, pilot_sha256=pilot_sha256), *others))


def test_the_rest_is_measured_by_the_plan_that_is_made_of_the_pilot(data, output):
    pilot = release(FIRST, data, output, pilot_only=True)
    first = drawn(unfinished(output))
    plan = plan_of_rest(FIRST, pilot_tables(pilot.folder))
    done = release(plan, data, output)
    (run,) = runs(data)
    assert (run.state, run.plan_sha256) == ("finished", FIRST.sha256)
    assert plan.part("tables").pilot_sha256 == run.pilot_sha256
    assert run.record_rho == FIRST.record_rho >= plan.record_rho
    again = Release.load(output)
    assert again.plan.sha256 == done.plan.sha256 == plan.sha256
    assert again.plan.booked_sha256 == FIRST.sha256
    own = measured_in(output / "pilot.parquet")
    assert own == first[: len(own)] == measured_in(pilot.folder / "residuals.parquet")
    assert run.pilot_sha256 == hashlib.sha256(struct.pack(f"<{len(own)}q", *own)).hexdigest()
    tables = plan.part("tables")
    sex = again.part("tables").table("sex")
    assert np.allclose(sex["standard_error"], np.sqrt(tables.mean_variances[1]))
    said = (output / "README.md").read_text()
    assert f"by the pilot of the plan with the SHA-256 {FIRST.sha256[:12]}" in said
    assert f"from the pilot's figures (SHA-256 {run.pilot_sha256[:12]}…)" in said
    for folder, meaning in ((output, PLANNED_ANEW), (pilot.folder, RELEASED)):
        part = Release.load(folder).part("tables")
        columns = Schema.of(part.cells(part.workload.tables.index(("sex",))).schema).columns
        stored = {one.role: one.meaning for one in meaning}
        figures = [one for one in columns if one.role in stored]
        assert figures
        assert all(one.meaning == stored[one.role] for one in figures)


def test_without_noise_tables_are_the_counts(data, output, monkeypatch):
    draw_by(monkeypatch, no_noise)
    release(FIRST, data, output, pilot_only=True)
    done = release(behind(output, REST), data, output).part("tables")
    assert done.table("sex")["value"].tolist() == pytest.approx([3, 2])
    assert done.answer("age", where={"age": [1, 1, 0]}).value == pytest.approx(4)


@pytest.mark.by_day(3)
# Noted are the pilot, the tables behind it, and all; the marker of the rest is before these.
@pytest.mark.parametrize(
    ("function", "nth", "is_begun"),
    [
        ("rpexplore.releases.measurement_file.Draft.__init__", 1, False),
        ("rpexplore.releases.charged_run.note_rest", 1, False),
        ("rpexplore.releases.measurement_file.Draft.add", 1, True),
        ("rpexplore.releases.measurement_file.Draft.note", 1, True),
        ("rpexplore.releases.measurement_file.Draft.end", 1, True),
    ],
)
def test_a_rest_that_is_killed_goes_on_with_its_plan_alone(
    data, output, tmp_path, function, nth, is_begun
):
    release(FIRST, data, output, pilot_only=True)
    rest, other = (behind(output, plan) for plan in (REST, OTHER))
    pilot = drawn(unfinished(output))[:6]
    rest.save(tmp_path / "rest.json")
    killed(function, nth, tmp_path / "rest.json", data, output)
    if is_begun:
        with pytest.raises(ReleaseError, match="is being measured by another plan"):
            release(other, data, output)
        with pytest.raises(ReleaseError, match="its rest is being measured by the plan"):
            release(FIRST, data, output, pilot_only=True)
        assert plan_behind_pilot(output).sha256 == rest.sha256  # not written over
        used = rest
    else:  # nothing of the rest is drawn: another plan may still be made
        used = other
    done = release(used, data, output)
    assert done.plan.sha256 == used.sha256
    assert measured_in(output / "pilot.parquet") == pilot
    assert [(run.state, run.record_rho) for run in runs(data)] == [("finished", FIRST.record_rho)]


@pytest.mark.nightly
def test_a_rest_killed_at_any_line_keeps_what_it_had_drawn(data, tmp_path, monkeypatch):
    plan, came = tmp_path / "rest.json", set()
    keep_what_was_drawn(monkeypatch)

    def fresh(name: str) -> tuple[Path, Path]:
        folder = tmp_path / name
        folder.mkdir()
        path, output = Path(shutil.copy(data, folder)), folder / "release"
        release(FIRST, path, output, pilot_only=True)
        behind(output, REST).save(plan)
        return path, output

    n_lines = lines_of(plan, *fresh("whole"))
    for nth in range(1, n_lines * 9 // 10, n_lines // 40):
        path, output = fresh(str(nth))
        pilot = drawn(unfinished(output))[:6]
        killed_at_line(nth, plan, path, output)
        run = unfinished(output) / "run"
        kept = pilot
        if (run / "draft.json").exists():
            note = json.loads((run / "draft.json").read_text())
            kept = drawn(unfinished(output))[: note["n_measured"]]
        if not output.exists():
            is_begun = (run / "rest").exists() and (run / "rest").stat().st_size == 64
            came.add("begun" if is_begun else "not begun")
            if is_begun:
                with pytest.raises(ReleaseError):
                    release(behind(output, OTHER), path, output)
        if (run / "drawn.json").exists():
            came.add("drawn")
            kept = drawn(unfinished(output))
            resume(output)
        elif not output.exists():
            release(Plan.load(plan), path, output)
        assert drawn(output)[: len(kept)] == kept
        assert measured_in(output / "pilot.parquet") == pilot
        assert [(run.state, run.record_rho) for run in runs(path)] == [
            ("finished", FIRST.record_rho)
        ]
        assert Release.load(output).plan.sha256 == Plan.load(plan).sha256
    assert came == {"begun", "not begun", "drawn"}


def test_a_run_that_has_drawn_all_is_finished_without_records(data, output, tmp_path):
    release(FIRST, data, output, pilot_only=True)
    rest = behind(output, REST)
    rest.save(tmp_path / "rest.json")
    killed(
        "rpexplore.releases.release_steps.PlanSteps.write", 1, tmp_path / "rest.json", data, output
    )
    before = drawn(unfinished(output))
    data.unlink()
    assert resume(output).plan.sha256 == rest.sha256
    n = len(measured_in(output / "pilot.parquet"))
    assert measured_in(output / "residuals.parquet")[:3] == before[n : n + 3]


def test_a_plan_of_a_rest_is_no_run_of_its_own(data, output):
    with pytest.raises(ReleaseError, match=r"of which none into .* is under way"):
        release(REST, data, output)
    with pytest.raises(ReleaseError, match=r"the rest is planned from the pilot's figures.*--rest"):
        release(FIRST, data, output)
    assert not runs(data)


def test_the_plan_of_another_first_plan_does_not_go_on(data, output):
    release(FIRST, data, output, pilot_only=True)
    other = rest_of(replace(FIRST, version="0"), [1] * 7)
    with pytest.raises(ReleaseError, match="was booked and stopped; run the same plan"):
        release(other, data, output)
    assert len(runs(data)) == 1


@requires_ssh_keygen
def test_the_approvals_are_of_the_first_plan_and_stay_with_the_release(data, output, tmp_path):
    with_keys(tmp_path, "alice@x")
    demand = rp.ApprovalDemand(1, f"alice@x {public(tmp_path / 'alice')}\n")
    Ledger.beside(data).require_approvals(data, demand)
    of_first, of_rest = (rp.approve(plan, tmp_path / "alice") for plan in (FIRST, REST))
    with pytest.raises(ApprovalError, match="there is none"):
        release(FIRST, data, output, pilot_only=True)
    release(FIRST, data, output, pilot_only=True, approvals=[of_first])
    with pytest.raises(ApprovalError, match="booked already, with the approvals of alice"):
        release(behind(output, REST), data, output, approvals=[of_rest])
    release(behind(output, REST), data, output)
    assert "alice@x" in (output / "README.md").read_text()
    (again,) = load_approvals(sorted((output / "approvals").iterdir()))
    assert again.plan_sha256 == FIRST.sha256


def test_the_ledger_knows_of_which_records_a_release_is(data, output, tmp_path):
    release(FIRST, data, output, pilot_only=True)
    done = release(behind(output, REST), data, output)
    other = tmp_path / "data" / "others.csv"
    other.write_text(CSV + "f,1,k,x\n")
    ledger = Ledger.beside(data).path
    beside = release(
        rp.plan(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)),
        other,
        tmp_path / "beside",
    )
    with pytest.raises(ReleaseError, match="are of different records"):
        rp.combine(done.part("tables"), beside.part("tables"), ledger=ledger)


def test_pilot_and_whole_release_are_not_combined(data, output):
    pilot = release(FIRST, data, output, pilot_only=True)
    done = release(behind(output, REST), data, output)
    with pytest.raises(ReleaseError, match="counting them twice"):
        rp.combine(pilot.part("tables"), done.part("tables"))


def cells_of(plan, pilot: np.ndarray, counts) -> np.ndarray:
    """All 20 cells of the tables: of what a pilot drew, and the rest as a run measures it."""
    steps = TableSteps(plan)
    rest = [p for part in steps.parts[1:] for p in steps.measure(part, counts)]
    numbers = Drawn(Path(), 0, np.concatenate([pilot, *rest]))
    contributions = Contributions(plan, measurements_of(plan, numbers))
    return np.concatenate([contributions.answers(table).ravel() for table in range(4)])


def drawn_pilot(counts) -> np.ndarray:
    steps = TableSteps(SMALL.part("tables"))
    return np.concatenate(list(steps.measure(steps.parts[0], counts)))


def planned_from(pilot: np.ndarray):
    """The tables of the plan that is made of a pilot's figures."""
    first = SMALL.part("tables")
    measured = MeasuredFile(Drawn(Path(), 0, pilot), first.closure)
    residuals = {
        subset: contribution(measured.measured(one), subset, first.closure.strategies)
        for one, subset in enumerate([(), (0,), (1,)])
    }
    variances = dict(zip(residuals, pilot_scales(first).floats.tolist(), strict=True))
    figures = MeasuredResiduals(residuals, variances, first.domain.sizes, {})
    public_ones = [
        replace(table, pilot_sha256=64 * "0")
        for table in public_tables(figures, first.domain, "pilot")
    ]
    return plan_of_rest(SMALL, public_ones).part("tables")


@pytest.fixture(scope="module")
def small_counts():
    rng = np.random.default_rng(1)
    values = {0: rng.choice(4, 500, p=[0.7, 0.2, 0.07, 0.03]), 1: rng.integers(0, 3, 500)}
    return counts_of(values, 500, [4, 3])


def truth_of(counts) -> np.ndarray:
    return np.concatenate([np.ravel(counts.counts(table)) for table in ((), (0,), (1,), (0, 1))])


def test_given_its_plan_every_cell_has_the_standard_error_that_it_states(small_counts):
    plan = planned_from(drawn_pilot(small_counts))
    assert not np.allclose(plan.workload.weights, 1)
    release = LinearRelease.of(
        lambda: cells_of(plan, drawn_pilot(small_counts), small_counts),
        "rpexplore.releases.measurement.discrete_gaussian",
    )
    assert [size for size, _ in release.calls] == [1, 4, 3, 1, 4, 3, 12]
    variances = release.matrix**2 @ release.variances
    stated = np.repeat(plan.standard_errors, [1, 4, 3, 12])
    assert np.allclose(np.sqrt(variances), stated, rtol=1e-6)
    assert np.allclose(release.without_noise, truth_of(small_counts), rtol=1e-9)


@pytest.mark.nightly
def test_intervals_hold_nearly_in_2000_runs(small_counts):
    # The plan is made anew of every pilot, as a run does it.
    errors = []
    for _ in range(2000):
        pilot = drawn_pilot(small_counts)
        plan = planned_from(pilot)
        found = cells_of(plan, pilot, small_counts) - truth_of(small_counts)
        errors.append(found / np.repeat(plan.standard_errors, [1, 4, 3, 12]))
    covered = np.mean(np.abs(errors) <= 1.959964, axis=0)
    assert 0.94 < np.mean(covered) < 0.96
    assert np.all(covered > 0.93)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 0.1)
