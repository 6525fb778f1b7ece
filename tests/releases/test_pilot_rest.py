"""Behind a pilot another plan, made of its figures: one booking, and nothing drawn by two plans."""

from dataclasses import replace

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.planning.rest import on_top_of_pilot
from rpexplore.releases.finished_release import Release
from rpexplore.releases.release import release, resume
from tests.releases.table_plan import DOMAIN, QUERIES, draw_by, no_noise, runs
from tests.releases.test_pilot_release import drawn, measured_in, unfinished
from tests.support.stopped_runs import killed

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


def rest_of(first: Plan, weights) -> Plan:
    workload = replace(TABLES, weights=np.array(weights, dtype=float))
    budget = first.part("tables").budget
    best = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget).part("tables")
    return on_top_of_pilot(first, best)


REST = rest_of(FIRST, [1, 9, 1, 1, 4, 1, 1])
OTHER = rest_of(FIRST, [1, 1, 9, 1, 1, 1, 1])


def test_the_rest_is_measured_by_the_plan_that_is_made_of_the_pilot(data, output):
    pilot = release(FIRST, data, output, pilot_only=True)
    first = drawn(unfinished(output))
    plan = rp.plan_of_rest(FIRST, rp.pilot_tables(pilot.folder))
    done = release(plan, data, output)
    (run,) = runs(data)
    assert (run.state, run.plan_sha256) == ("finished", FIRST.sha256)
    assert run.record_rho == FIRST.record_rho >= plan.record_rho
    again = Release.load(output)
    assert again.plan.sha256 == done.plan.sha256 == plan.sha256
    assert again.plan.booked_sha256 == FIRST.sha256
    own = measured_in(output / "pilot.parquet")
    assert own == first[: len(own)] == measured_in(pilot.folder / "residuals.parquet")
    tables = plan.part("tables")
    sex = again.part("tables").table("sex")
    assert np.allclose(sex["standard_error"], np.sqrt(tables.mean_variances[1]))
    said = (output / "README.md").read_text()
    assert f"by the pilot of the plan with the SHA-256 {FIRST.sha256[:12]}" in said


def test_without_noise_tables_are_the_counts(data, output, monkeypatch):
    draw_by(monkeypatch, no_noise)
    release(FIRST, data, output, pilot_only=True)
    done = release(REST, data, output).part("tables")
    assert done.table("sex")["value"].tolist() == pytest.approx([3, 2])
    assert done.answer("age", where={"age": [1, 1, 0]}).value == pytest.approx(4)


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
    pilot = drawn(unfinished(output))[:6]
    REST.save(tmp_path / "rest.json")
    killed(function, nth, tmp_path / "rest.json", data, output)
    if is_begun:
        with pytest.raises(ReleaseError, match="is being measured by another plan"):
            release(OTHER, data, output)
        used = REST
    else:  # nothing of the rest is drawn: another plan may still be made
        used = OTHER
    done = release(used, data, output)
    assert done.plan.sha256 == used.sha256
    assert measured_in(output / "pilot.parquet") == pilot
    assert [(run.state, run.record_rho) for run in runs(data)] == [("finished", FIRST.record_rho)]


def test_a_run_that_has_drawn_all_is_finished_without_records(data, output, tmp_path):
    release(FIRST, data, output, pilot_only=True)
    REST.save(tmp_path / "rest.json")
    killed(
        "rpexplore.releases.release_steps.PlanSteps.write", 1, tmp_path / "rest.json", data, output
    )
    before = drawn(unfinished(output))
    data.unlink()
    assert resume(output).plan.sha256 == REST.sha256
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


def test_pilot_and_whole_release_are_not_combined(data, output):
    pilot = release(FIRST, data, output, pilot_only=True)
    done = release(REST, data, output)
    with pytest.raises(ReleaseError, match="counting them twice"):
        rp.combine(pilot.part("tables"), done.part("tables"))
