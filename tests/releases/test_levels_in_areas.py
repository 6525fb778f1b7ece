"""Tables of an attribute's level in areas: planned like an attribute of so many values."""

import json

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.releases import area_measurement, area_parts

FIELDS = [
    {"name": "sex", "constraints": {"enum": ["F", "M"]}},
    {
        "name": "age",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 29},
        "levels": {"ten-year": 10, "adult": "0-17, 18+"},
    },
    {"name": "work", "constraints": {"enum": ["no", "part", "full"]}},
]
DOMAIN = rp.Domain.parse(json.dumps({"fields": FIELDS}), "codebook.json")
TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
rng = np.random.default_rng(3)
PLACES = rng.integers(0, 3, 400)
RECORDS = pd.DataFrame(
    {
        "region": np.array([*"NNS"])[PLACES],
        "town": np.array([*"121"])[PLACES],
        "sex": np.array(["F", "M"])[rng.integers(0, 2, 400)],
        "age": rng.integers(0, 30, 400),
        "work": np.array(["no", "part", "full"])[rng.integers(0, 3, 400)],
    }
)
# The level comes behind all attributes in the domain, its attribute before the last in the records.
OF_TOWNS = rp.Workload.of(DOMAIN, [("sex", "age@ten-year"), ("work", "age@ten-year")])
ASKED = rp.AreaWorkload.of_levels(
    TREE, {"all": OF_TOWNS, "region": rp.Workload.of(DOMAIN, [("sex",)]), "town": OF_TOWNS}
)
BUDGET, SUM = rp.Budget(rho="0.5"), rp.SumOfVariances()


@pytest.mark.parametrize("budget", [BUDGET, rp.Budget(rho="0.5", neighbours="replace")])
def test_a_level_is_planned_as_an_attribute_of_as_many_values(budget):
    plan = plan_areas(ASKED, loss=SUM, budget=budget)
    domain = rp.Domain.from_sizes({"sex": 2, "work": 3, "age": 3})
    tables = rp.Workload.of(domain, [("sex", "age"), ("work", "age")])
    levels = {"all": tables, "region": rp.Workload.of(domain, [("sex",)]), "town": tables}
    same = plan_areas(rp.AreaWorkload.of_levels(TREE, levels), loss=SUM, budget=budget)
    assert plan.loss_value == pytest.approx(same.loss_value, rel=1e-12)
    assert plan.exact_privacy_cost == same.exact_privacy_cost
    errors = [sorted(each.accuracy()["standard_error"]) for each in (plan, same)]
    np.testing.assert_allclose(*errors, rtol=1e-12)


def test_counts_of_levels_are_those_of_their_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(
        area_measurement, "discrete_gaussian", lambda size, _: np.zeros(size, dtype=np.int64)
    )
    monkeypatch.setattr(area_parts, "PART_NUMBERS", 8)
    monkeypatch.setattr(area_parts, "PART_CELLS", 1)
    others = rp.Workload.of(DOMAIN, [("age", "sex")])
    plan = rp.plan(rp.Request(areas=ASKED, tables=others, budget=BUDGET))
    plan.save(tmp_path / "plan.json")
    opened = rp.Plan.load(tmp_path / "plan.json")
    assert rp.verify(opened).holds
    made = rp.release(opened, RECORDS, tmp_path / "out", name="made", ledger=tmp_path / "ledger")
    areas, decades = made.part("areas"), RECORDS["age"] // 10
    table = areas.table("town", "sex", "age@ten-year")
    assert table["age@ten-year"].unique().tolist() == ["0 to 9", "10 to 19", "20 to 29"]
    wanted = RECORDS.groupby(["region", "town", "sex", decades]).size()
    np.testing.assert_allclose(table["value"], wanted, atol=1e-9)
    by_work = areas.table("all", "work", "age@ten-year").groupby("work", observed=True)["value"]
    assert by_work.sum().round(6).to_dict() == RECORDS["work"].value_counts().to_dict()
    whole = rp.whole_area_counts(areas, tmp_path / "whole")
    np.testing.assert_array_equal(whole.table("town", "sex", "age@ten-year")["value"], wanted)
    guesses = rp.area_guesses(areas, tmp_path / "guesses")
    assert guesses.table("town", "work", "age@ten-year")["value"].sum() == 400


def test_an_attribute_at_two_levels_is_refused():
    for other in ("age", "age@adult"):
        two = {"region": rp.Workload.of(DOMAIN, [(other,)]), "town": OF_TOWNS}
        with pytest.raises(WorkloadError, match="at two levels, and can have it at one; ask for"):
            rp.AreaWorkload.of_levels(TREE, two)
    with pytest.raises(WorkloadError, match="must be of the same attributes"):
        rp.AreaWorkload.of_levels(
            TREE,
            {"region": rp.Workload.of(rp.Domain.from_sizes({"x": 2}), [("x",)]), "town": OF_TOWNS},
        )
