"""Suggestions for tables in areas: planned and forecast again, they give what they promise."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.area_suggestions import changed_areas
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.table_changes import TableChange

TREE = rp.AreaTree.from_columns(
    {"county": list("AAAABBBB"), "town": ["1", "1", "2", "2"] * 2, "block": list("12121212")}
)
DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 39)),
        rp.Attribute("sex", rp.Categories(("f", "m"))),
    )
)
TABLE = ("age", "sex")
TOTALS = dict.fromkeys(range(3, 7), 500.0)  # of the towns


def planned(asked: rp.AreaWorkload) -> rp.Plan:
    return rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.3"))


def forecast_of(plan: rp.Plan) -> rp.AreaForecast:
    return rp.AreaForecast(plan, expected=2_000, totals=TOTALS)


@pytest.fixture(scope="module")
def plan() -> rp.Plan:
    tables = rp.Workload.all_up_to(DOMAIN, 2)
    asked = rp.AreaWorkload.of_levels(TREE, {"county": tables, "town": tables})
    return planned(asked)


@pytest.fixture(scope="module")
def made(plan):
    (found,) = forecast_of(plan).suggest([("town", TABLE)])
    return {one.change.action: one for one in found.proposals}


@pytest.mark.parametrize("action", ["bands", "weight", "areas", "budget"])
def test_an_applied_proposal_is_forecast_as_it_promised(plan, made, action):
    proposal = made[action]
    applied = proposal.apply(plan)
    assert rp.verify(applied).holds
    assert (applied.budget == plan.budget) == (action != "budget")
    level, table = proposal.table.split(": ")
    frame = forecast_of(applied).tables().set_index(["level", "table"])
    row = frame.loc[level, table]
    # The populations are the same, and their areas drawn again.
    assert row.people_median == pytest.approx(proposal.people.median, abs=0.05)
    errors = applied.part("areas").accuracy().set_index(["level", "item"])["standard_error"]
    assert errors[level, table] == pytest.approx(proposal.standard_error, rel=5e-3)
    if action == "areas":
        assert ("town", "age × sex") not in frame.index


def test_a_table_that_is_on_no_level_above_is_moved_there():
    asked = rp.AreaWorkload.of_levels(TREE, {"block": rp.Workload.of(DOMAIN, [TABLE, ("sex",)])})
    asked = asked.with_areas([7], rp.Workload.of(DOMAIN, [("sex",)]))  # which is left as it is
    change = TableChange("areas", "", TABLE, TABLE)
    moved = changed_areas(asked, 3, change, onto=1)
    assert [len(own) for own in moved.workloads] == [1, 1, 1]
    counties, blocks = (moved.kinds[moved.tree.level_slice(level)] for level in (1, 3))
    assert {moved.workloads[kind].tables[0] for kind in counties} == {TABLE}
    assert {moved.workloads[kind].tables[0] for kind in blocks} == {("sex",)}
    assert np.all(moved.kinds[moved.tree.level_slice(2)] == -1)


def test_what_cannot_be_looked_at_is_refused(plan):
    with pytest.raises(WorkloadError, match="no level 'village'; they have all, county"):
        forecast_of(plan).suggest([("village", TABLE)])
    with pytest.raises(WorkloadError, match="on the level 'block' is not in the plan"):
        forecast_of(plan).suggest([("block", TABLE)])
    domain = rp.Domain((*DOMAIN, rp.Attribute("income", rp.Amounts(0, 9))))
    tables = rp.Workload.of(domain, [("sex",), ("sex", "income")])
    forecast = forecast_of(planned(rp.AreaWorkload.of_levels(TREE, {"town": tables})))
    with pytest.raises(WorkloadError, match="name a table without amounts"):
        forecast.suggest([("town", ("sex", "income"))])
