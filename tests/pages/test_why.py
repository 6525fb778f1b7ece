"""Why this budget: what the targets take, in the Plan page's own panel."""

import pytest

import rpexplore as rp
from rpexplore.scenarios.workload_request import TableSetting
from rpexplore.workload.targets import Target


def plain(texts):
    return " ".join(texts).replace("\\", "")


@pytest.fixture
def demanding(small):
    """A required target that the current budget cannot meet, for plans that meet it first."""
    required = Target("0.5", "margin", required=True)
    changed = small.with_settings([TableSetting(small.workload.tables[-1], target=required)])
    return changed.replaced(loss=rp.SumWithinTargets())


def test_required_targets_out_of_reach_are_said_with_what_would_do(app, demanding):
    session = app("plan", demanding)
    assert "cannot all be met at this budget" in plain(session.texts("error"))
    told = plain(session.texts("markdown"))
    assert "The required target takes ρ =" in told
    assert "With 10 % more" in told
    held = session.dataframe[-1].value
    assert held["wanted"].tolist() == ["±0.5 at 95 %"]
    assert held["share"].tolist() == [1.0]
    session.button(key="use advised budget").click().run()
    assert not session.error
    planned = session.planned
    required = planned.workload.required
    assert (
        planned.worst_standard_errors[required] <= planned.workload.targets[required] * 1.000001
    ).all()
    assert session.button(key="use advised budget").disabled


def test_the_panel_is_there_where_there_are_targets(app, small):
    tables = small.workload.tables
    session = app("plan", small)
    assert "use advised budget" not in [button.key for button in session.button]
    wanted = [TableSetting(table, target=20.0) for table in tables]
    session = app("plan", small.with_settings(wanted))
    told = plain(session.texts("markdown"))
    assert f"The {len(tables)} targets take ρ =" in told
    session.button(key="use advised budget").click().run()
    assert not session.error


def test_targets_are_told_without_traffic_lights(app, small):
    wanted = [TableSetting(table, target=20.0) for table in small.workload.tables]
    session = app("plan", small.with_settings(wanted))
    assert "Targets." in plain(session.texts("markdown"))
    assert not session.success
    assert not session.warning


def test_by_an_aim_that_passes_targets_over_the_panel_is_about_one_that_does_not(app, small):
    required = Target("3", required=True)
    changed = small.with_settings([TableSetting(small.workload.tables[-1], target=required)])
    session = app("plan", changed)
    assert "The current objective ignores targets" in plain(session.texts("markdown"))
    session.button(key="use advised budget").click().run()
    assert session.scenario.loss == rp.SumWithinTargets()
    assert "required: 1 of 1" in plain(session.texts("markdown"))


def test_targets_of_some_tables_that_are_no_musts(app, small):
    changed = small.with_settings([TableSetting(small.workload.tables[-1], target=3.0)])
    session = app("plan", changed)
    assert "Some tables have a target and others have none" in plain(session.texts("markdown"))
