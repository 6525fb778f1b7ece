"""A scenario whose plan is to be smoothed: what it asks for, in every form."""

from dataclasses import replace

import pytest

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.reports.recipe import Recipe
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_changes import (
    budget_of_tables,
    describe_added,
    for_smooth_tables,
    weights_are_outdated,
)
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.smooth_weights import PairDependence, SmoothWeights

DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 5, "c": 4, "d": 3})
# ρ for one record: 0.9 / 3².
WEIGHTS = SmoothWeights(rho=0.1, records=5000)


def scenario(request, **more):
    budget = rp.Budget(rho="0.9", max_records_per_person=3)
    expected = rp.ExpectedCounts.of_total(5000)
    return Scenario(DOMAIN, request, budget=budget, expected=expected, **more)


@pytest.mark.parametrize(
    ("request_", "kind", "added"),
    [
        (WorkloadRequest("up_to", order=3), "up_to", ""),
        # The total, 4 and 6 tables.
        (WorkloadRequest("of_order", order=3), "up_to", "11 smaller tables are added."),
        (WorkloadRequest("of_order", order=3, containing=("a",)), "listed", "10 smaller"),
        (WorkloadRequest("listed", listed=(("a", "b", "c"), ("d",))), "listed", "6 smaller"),
    ],
)
def test_weights_are_those_of_all_tables_and_small_ones_are_added(request_, kind, added):
    before = scenario(request_, loss=SumWithinTargets("cells"))
    after = for_smooth_tables(before)
    assert after.request.kind == kind
    assert after.loss == SumOfVariances()
    assert after.workload.weights == pytest.approx(WEIGHTS.weights(after.workload))
    assert describe_added(before.workload, after.workload).startswith(added)
    again = Scenario.parse(after.text())
    assert again == after
    assert list(again.workload.weights) == list(after.workload.weights)


def test_weights_are_set_at_what_the_noise_of_tables_costs_and_alone_at_a_stated_cost():
    planned = scenario(WorkloadRequest()).replaced(budget=rp.Budget(rho="0.4")).table_plan()
    exact, stated = rp.Budget(rho="0.9"), rp.Budget(epsilon="1", delta="1e-9")
    assert budget_of_tables(exact, lambda: None, are_alone=True) == exact
    for whole, are_alone in ((exact, False), (stated, True)):
        assert budget_of_tables(whole, lambda: planned, are_alone=are_alone) == planned.budget
        assert budget_of_tables(whole, lambda: None, are_alone=are_alone) is None


def test_weights_of_groups_and_tables_go_and_later_ones_come_on_top():
    group = GroupSetting(("a",), factor=2.0, target=rp.Target(7.0))
    table = TableSetting(("a", "b"), weight=9.0)
    before = scenario(WorkloadRequest(groups=(group,), settings=(table,)))
    after = for_smooth_tables(before)
    assert after.request.groups == (GroupSetting(("a",), target=rp.Target(7.0)),)
    assert after.request.settings == ()
    row = after.workload.position(("b",))
    smooth = after.workload.weights[row]
    # A weight of 1 is another one than the table has.
    typed = after.with_settings([TableSetting(("b",), weight=1.0)])
    assert typed.workload.weights[row] == 1
    assert typed.with_group(GroupSetting((), factor=3.0)).workload.weights[row] == 3
    assert after.with_group(GroupSetting((), factor=3.0)).workload.weights[row] == 3 * smooth
    back = after.with_request(smooth_weights=None)
    assert set(back.workload.weights.tolist()) == {1.0}


def test_without_expected_counts_there_are_none():
    with pytest.raises(WorkloadError, match="type an expected number"):
        for_smooth_tables(Scenario(DOMAIN))


def test_tables_at_several_levels_have_none_and_get_none_later():
    ten = Level("ten", tuple(str(age // 10) for age in range(100)))
    age = rp.Attribute("age", rp.Integers(0, 99), levels=(ten,))
    domain = rp.Domain((age, *DOMAIN))
    request = WorkloadRequest("listed", listed=(("age@ten", "a", "b"),))
    both = replace(request, listed=(*request.listed, ("age", "c")))
    expected = rp.ExpectedCounts.of_total(5000)
    with pytest.raises(WorkloadError, match="'age' is in tables at several levels"):
        for_smooth_tables(Scenario(domain, both, expected=expected))
    after = for_smooth_tables(Scenario(domain, request, expected=expected))
    with pytest.raises(WorkloadError, match="'age' is in tables at several levels"):
        after.with_request(listed=(*after.request.listed, ("age", "c")))


def test_a_recipe_has_the_weights_themselves():
    after = for_smooth_tables(scenario(WorkloadRequest("of_order", order=2)))
    plan = after.table_plan()
    request = Recipe.of(plan, after).request
    assert request.smooth_weights is None
    assert list(request.workload(DOMAIN).weights) == list(plan.workload.weights)


def test_what_a_release_shows_stays_with_its_codebook():
    pairs = PairDependence(("1a2b",), DOMAIN.names, ((0, 1, 0.3), (0, 2, 0.1)))
    weights = replace(WEIGHTS, pairs=pairs)
    # The number of records is the released one: none has to be expected.
    before = scenario(WorkloadRequest(order=2)).replaced(expected=None)
    after = for_smooth_tables(before, weights)
    assert after.workload.weights == pytest.approx(weights.weights(after.workload))
    again = Scenario.parse(after.text())
    assert again == after
    assert list(again.workload.weights) == list(after.workload.weights)
    assert not weights_are_outdated(after)
    assert weights_are_outdated(after.replaced(budget=rp.Budget(rho="0.9")))
    same, notes = after.with_domain(rp.Domain.from_sizes({"a": 2, "b": 5, "c": 4, "d": 3}))
    assert (same.request, notes) == (after.request, [])
    other, notes = after.with_domain(rp.Domain.from_sizes({"a": 2, "b": 6, "c": 4, "d": 3}))
    assert other.request.smooth_weights == WEIGHTS
    assert (
        f"have different values of 'b', so that their cells do not count the same: {pairs.text}."
        in notes[0]
    )
