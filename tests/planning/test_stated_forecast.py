"""The forecast that a plan file keeps: written, read, and refused where it cannot be."""

import json
from dataclasses import replace

import jsonschema
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.plan import Plan
from rpexplore.planning.schema import plan_schema
from rpexplore.planning.stated_forecast import StatedForecast


@pytest.fixture(scope="module")
def plan() -> Plan:
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 9, "sex": 2}), 2)
    made = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.05"))
    survey = rp.SurveyDesign(1.5, ((("sex",), 2.0),), 0.1)
    return rp.Forecast(made, expected=5000, survey=survey).in_plan()


def test_a_plan_with_its_forecast_is_read_as_it_was_written(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    read = Plan.load(tmp_path / "plan.json")
    assert read.forecast == plan.forecast
    assert read.sha256 == plan.sha256 != replace(plan, forecast=None).sha256
    assert rp.verify(read).holds
    jsonschema.validate(json.loads(plan.text), plan_schema())


def test_a_forecast_that_was_changed_afterwards_is_noticed(plan):
    text = plan.text.replace('"n_records":5000', '"n_records":9000')
    assert text != plan.text
    with pytest.raises(rp.errors.RpexploreError, match="was changed since it was written"):
        Plan.parse(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limit", 0),
        ("limit", "0.2"),
        ("share", 1.5),
        ("n_records", 0),
        ("n_records", True),
        ("rests_on", 7),
        ("survey", {}),
        ("tables", [[0.1, 0.2, 0.3]]),
        ("tables", [[0.3, 0.2, 0.4], None, None, None]),
        ("groups", []),
        ("all", {"attributes": -1}),
    ],
)
def test_what_cannot_have_been_forecast_is_refused(plan, key, value):
    content = {**plan.forecast.to_json(), key: value}
    with pytest.raises(rp.errors.RpexploreError):
        replace(plan, forecast=StatedForecast.from_json(content))


def test_a_forecast_of_tables_that_the_plan_does_not_have_is_refused(plan):
    other = rp.plan(
        rp.Workload.all_of_order(rp.Domain.from_sizes({"age": 9, "sex": 2}), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.05"),
    )
    with pytest.raises(PlanError, match="of the tables of the plan"):
        replace(other, forecast=plan.forecast)
