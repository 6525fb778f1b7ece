"""Replaced records in areas: charged at least what any pair of records and areas costs."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.areas.area_planner import minimum_area_budget, plan_areas
from rpexplore.planning.areas.dearest_in_areas import dearest_in_areas
from rpexplore.planning.mechanism.kept_totals import KeptInAreas
from tests.planning.areas.test_area_bases import BASES, TREE, asked_in, gram_of

BUDGET = rp.Budget(rho="0.5", neighbours="replace")


def dearest_pair(gram: np.ndarray) -> float:
    diagonal = np.diag(gram)
    return float(np.max(diagonal[:, None] + diagonal[None, :] - 2 * gram))


@pytest.mark.parametrize("basis", [rp.Identity(), *BASES], ids=lambda basis: type(basis).__name__)
def test_no_pair_costs_more_than_is_charged(basis):
    plan = plan_areas(asked_in(basis), loss=rp.SumOfVariances(), budget=BUDGET)
    dearest = dearest_pair(gram_of(plan))
    assert dearest <= (1 + 1e-9) * float(plan.exact_privacy_cost)
    assert float(dearest_in_areas(plan)) == pytest.approx(dearest, rel=1e-9)
    assert float(plan.exact_privacy_cost) <= 1
    assert plan.gap < 2e-4
    # People with two records are charged four times a record's cost.
    persons = plan_areas(
        asked_in(basis),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.5", max_records_per_person=2),
    )
    assert plan.loss_value < 0.8 * persons.loss_value
    assert dearest > 0.6


def random_areas(seed: int) -> rp.AreaWorkload:
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, 3, (int(rng.integers(2, 7)), 2)), axis=0).astype(str)
    columns = {"region": pairs[:, 0].tolist(), "town": pairs[:, 1].tolist()}
    tree = rp.AreaTree.from_columns(columns)
    domain = rp.Domain.from_sizes({"sex": 2, "age": 5})
    tables = [(), ("sex",), ("age",), ("sex", "age")]
    chosen = {
        level: [table for table in tables if rng.random() < 0.6] or [("age",)]
        for level in tree.levels
    }
    asked = {
        level: rp.Workload.of(domain, own, weights=np.exp(rng.normal(size=len(own))).tolist())
        for level, own in chosen.items()
    }
    return rp.AreaWorkload.of_levels(tree, asked)


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 50), marks=pytest.mark.nightly)])
def test_random_areas_are_charged_enough(seeds):
    ratios = []
    for seed in seeds:
        plan = plan_areas(random_areas(seed), loss=rp.SumOfVariances(), budget=BUDGET)
        dearest = dearest_pair(gram_of(plan))
        assert float(dearest_in_areas(plan)) == pytest.approx(dearest, rel=1e-9)
        ratios.append(float(plan.exact_privacy_cost) / dearest)
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 1.6


def test_a_plan_is_saved_and_verified_and_the_smallest_budget_found(tmp_path):
    plan = rp.Plan.of(plan_areas(asked_in(rp.Prefix()), loss=rp.MaxVariance(), budget=BUDGET))
    plan.save(tmp_path / "plan.json")
    again = rp.Plan.load(tmp_path / "plan.json")
    assert again.budget == BUDGET
    assert rp.verify(again).holds
    assert "and the dearest that was found costs 0." in str(rp.verify(again))
    tables = rp.Workload.of(rp.Domain.from_sizes({"sex": 2}), [("sex",)], targets=[20])
    everywhere = rp.AreaWorkload.of_levels(TREE, dict.fromkeys(TREE.levels, tables))
    rhos = [
        minimum_area_budget(everywhere, neighbours=kind).budget.rho
        for kind in ("add-remove", "replace")
    ]
    assert rhos[0] < rhos[1] < 4 * rhos[0] * 1.01


def test_the_number_of_all_records_has_no_noise_and_plans_that_gave_it_some_still_hold(
    tmp_path, monkeypatch
):
    def of_total(plan: rp.Plan) -> list[float]:
        rows = plan.accuracy()
        return rows["standard_error"][rows["attributes"] == ()].tolist()

    totals = rp.Workload.of(rp.Domain.from_sizes({"sex": 2}), [("sex",), ()])
    asked = rp.AreaWorkload.of_levels(TREE, {"all": totals, "region": totals})
    plan = rp.Plan.of(plan_areas(asked, loss=rp.SumOfVariances(), budget=BUDGET))
    assert of_total(plan)[0] == 0 < of_total(plan)[1]
    monkeypatch.setattr(
        KeptInAreas, "levels_of", lambda _, closure: np.zeros(len(closure), dtype=np.int64)
    )
    before = rp.Plan.of(plan_areas(asked, loss=rp.SumOfVariances(), budget=BUDGET))
    before.save(tmp_path / "plan.json")
    monkeypatch.undo()
    loaded = rp.Plan.load(tmp_path / "plan.json")
    assert of_total(loaded) == of_total(before)
    assert min(of_total(loaded)) > 1
    assert rp.verify(loaded).holds
    assert plan.part("areas").loss_value < loaded.part("areas").loss_value
