"""Neighbours that replace a record: what that costs, against all pairs of records."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.accounting import (
    cost_of_difference,
    privacy_cost_upper_bound,
    replacement_cost,
)
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.replacement import (
    Replacement,
    chosen_groups,
    dearest_replacement,
)
from rpexplore.planning.pilot import pilot_plan, pilot_scales, rest_scales, with_pilot
from rpexplore.planning.table_plan import TablePlan

BUDGET = rp.Budget(rho="0.5", neighbours="replace")
LOSSES = (rp.SumOfVariances(), rp.MaxVariance(), rp.PNorm(p=3), rp.SumWithBoundedMax(slack=0.1))


def gram(closure: Closure, sigma_squared: Decimals) -> np.ndarray:
    """Σ 1/σ² ⊗ (I − 11ᵀ/n, or 11ᵀ), without the total: what all records tell of each other."""
    sizes = closure.sizes.tolist()
    total = np.zeros((math.prod(sizes), math.prod(sizes)))
    for row, scale in zip(closure.members.tolist(), sigma_squared.floats, strict=True):
        if not any(index >= 0 for index in row):
            continue
        product = np.ones((1, 1))
        for index, n in enumerate(sizes):
            own = np.eye(n) - 1 / n if index in row else np.ones((n, n))
            product = np.kron(product, own)
        total += product / scale
    return total


def dearest_pair(closure: Closure, sigma_squared: Decimals) -> float:
    """The largest cost of telling any two records apart: no formula, all pairs."""
    matrix = gram(closure, sigma_squared)
    diagonal = np.diag(matrix)
    return float(np.max(diagonal[:, None] + diagonal[None, :] - 2 * matrix))


def random_tables(rng: np.random.Generator, sizes: tuple[int, ...]) -> rp.Workload:
    """Some tables of a random domain, with random weights."""
    names = {f"a{i}": int(rng.choice(sizes)) for i in range(int(rng.integers(1, 5)))}
    names["b"] = 2  # so that there is something to protect
    sets = [
        table for k in range(len(names) + 1) for table in itertools.combinations(names, k) if table
    ]
    chosen = rng.choice(len(sets), size=min(len(sets), int(rng.integers(1, 8))), replace=False)
    tables = [sets[index] for index in sorted(chosen.tolist())]
    weights = np.exp(rng.normal(size=len(tables))).tolist()
    return rp.Workload.of(rp.Domain.from_sizes(names), tables, weights=weights)


def with_groups(closure: Closure, sigma_squared: Decimals) -> Closure:
    groups = chosen_groups(closure, sigma_squared.floats)
    return closure.replacing(Replacement.of_groups(closure, groups))


def test_the_cost_is_that_of_the_dearest_pair_of_records():
    rng = np.random.default_rng(1)
    for _ in range(60):
        closure = Closure.of(random_tables(rng, (1, 2, 3, 4)))
        sigma_squared = Decimals.rounded_up(np.exp(rng.normal(size=len(closure))))
        most, found = replacement_cost(with_groups(closure, sigma_squared), sigma_squared)
        brute = dearest_pair(closure, sigma_squared)
        assert float(found) == pytest.approx(brute, rel=1e-12)
        assert found <= most <= found * (1 + Fraction(1, 10**11))


def test_the_exact_cost_of_a_difference():
    # a × b of 2 and 3 values, σ² = 1: with a and b different
    # 2 (1/2 (1 + 1) + 2/3 (1 + 1/2) + 1/2 · 2/3 (1 − 1 · 1/2)) = 2 + 2 + 1/3
    closure = Closure.of(rp.Workload.of(rp.Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")]))
    ones = Decimals.rounded_up(np.ones(4))
    assert cost_of_difference(closure, (0, 1), ones) - Fraction(13, 3) < Fraction(1, 10**25)
    assert cost_of_difference(closure, (0, 1), ones) >= Fraction(13, 3)
    # a alone: 2 (1/2 (1 + 1) + 1/2 · 2/3 (1 + 1)) = 2 + 4/3
    assert float(cost_of_difference(closure, (0,), ones)) == pytest.approx(10 / 3)


def test_groups_of_attributes_that_are_not_alike_bound_the_cost_from_above():
    rng = np.random.default_rng(2)
    for _ in range(40):
        closure = Closure.of(random_tables(rng, (2, 2, 3)))
        sigma_squared = Decimals.rounded_up(np.exp(rng.normal(size=len(closure))))
        by_size = Replacement.of_all(closure).groups
        dearest = dearest_replacement(closure, by_size, sigma_squared.floats)
        assert dearest.bound >= dearest_pair(closure, sigma_squared) * (1 - 1e-13)


def test_the_dearest_of_many_alike_attributes_is_found_and_proven():
    domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(30)})
    closure = Closure.of(rp.Workload.all_up_to(domain, 3))
    sigma_squared = np.ones(len(closure))
    dearest = dearest_replacement(closure, Replacement.of_all(closure).groups, sigma_squared)
    # 2 Σ_k C(30, k) (0.9^k − (−0.1)^k)
    expected = 2 * sum(math.comb(30, k) * (0.9**k - (-0.1) ** k) for k in (1, 2, 3))
    assert dearest.found == pytest.approx(expected)
    assert 0 <= dearest.gap < 1e-9
    assert len(dearest.changed) == 30


def test_where_not_all_differences_can_be_tried_the_bound_holds():
    sizes = {f"a{i}": 2 + i for i in range(24)}  # 2^24 differences
    closure = Closure.of(rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), 2))
    groups = Replacement.of_all(closure).groups
    dearest = dearest_replacement(closure, groups, np.ones(len(closure)))
    assert dearest.counts == tuple(int(index in dearest.changed) for index in range(24))
    assert dearest.found < dearest.bound < 1.5 * dearest.found


@pytest.mark.by_day(2)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_plans_are_within_the_budget_for_every_pair_and_proven_near_the_best(loss):
    rng = np.random.default_rng(3)
    for _ in range(3):
        plan = rp.plan(random_tables(rng, (2, 2, 3, 4)), loss=loss, budget=BUDGET)
        tables = plan.part("tables")
        assert rp.verify(plan).holds
        assert plan.certificate is not None
        assert plan.certificate.gap < 2e-6
        brute = dearest_pair(tables.closure, tables.sigma_squared)
        assert brute * (1 - 1e-12) <= float(plan.exact_privacy_cost) <= 1
        assert brute == pytest.approx(float(plan.exact_privacy_cost), rel=1e-5)


def test_the_certificate_holds_for_plans_made_otherwise():
    # Any noise, scaled to the budget for the dearest pair, has a loss above the bound.
    rng = np.random.default_rng(4)
    for _ in range(10):
        workload = random_tables(rng, (2, 3))
        loss = rp.SumOfVariances()
        plan = rp.plan(workload, loss=loss, budget=BUDGET)
        closure = plan.part("tables").closure
        best = plan.part("tables").sigma_squared.floats
        for spread in (0.0, 0.01, 0.3, 1.0):
            scales = best * np.exp(spread * rng.normal(size=len(best)))
            scales = scales * dearest_pair(closure, Decimals.rounded_up(scales))
            scales[0] = 1e-12
            value = loss.value(closure.variances(scales), workload)
            assert plan.certificate is not None
            assert value >= plan.certificate.lower_bound * (1 - 1e-9)


def test_the_number_of_records_is_free():
    domain = rp.Domain.from_sizes({"sex": 2, "age": 5})
    plan = rp.plan(rp.Workload.all_up_to(domain, 2), loss=rp.MaxVariance(), budget=BUDGET)
    assert plan.part("tables").standard_errors[0] < 1e-4
    tables = plan.part("tables")
    closure = tables.closure
    costs = [
        cost_of_difference(closure, changed, tables.sigma_squared)
        for k in (1, 2)
        for changed in itertools.combinations((0, 1), k)
    ]
    assert max(costs) <= plan.exact_privacy_cost


def test_a_replaced_record_costs_about_twice_a_record():
    # Of the noise that is best for added and removed records; people with two records: 4.
    sizes = {"age": 100, "marital": 7, "race": 7, "sex": 2, "region": 4, "rel": 13, "work": 9}
    for order in (2, 3):
        workload = rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), order)
        plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        tables = plan.part("tables")
        ratio = replaced(tables)[0] / privacy_cost_upper_bound(tables.closure, tables.sigma_squared)
        assert 1.9 < float(ratio) <= 2.10


def replaced(tables: TablePlan) -> tuple[Fraction, Fraction]:
    closure = with_groups(tables.closure, tables.sigma_squared)
    return replacement_cost(closure, tables.sigma_squared)


def test_a_plan_is_saved_and_changed_claims_are_noticed():
    domain = rp.Domain.from_sizes({"sex": 2, "age": 5, "region": 4})
    plan = rp.plan(rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=BUDGET)
    again = rp.Plan.parse(plan.text)
    assert again.sha256 == plan.sha256
    assert again.budget.neighbours == "replace"
    assert "replacing it by any other" in again.guarantee
    as_added = plan.text.replace(',"neighbours":"replace"', "")
    with pytest.raises(PlanError, match="replaced_groups and differences must be there where"):
        rp.Plan.parse(_without_seal_trouble(as_added))
    # A smaller noise scale costs more than is stated.
    scale = plan.part("tables").sigma_squared.texts()[-1]
    cheaper = plan.text.replace(f'"{scale}"', f'"{scale[:-1]}1"' if scale[-1] > "1" else '"1"')
    forged = rp.Plan.parse(_without_seal_trouble(cheaper))
    assert not rp.verify(forged).holds


def _without_seal_trouble(text: str) -> str:
    """A plan that somebody changed and sealed again."""
    import hashlib

    body, _, _ = text.rpartition(',\n"sha256"')
    seal = hashlib.sha256(f"{body}\n}}\n".encode()).hexdigest()
    return f'{body},\n"sha256":"{seal}"\n}}\n'


def test_what_is_not_known_is_refused():
    domain = rp.Domain.from_sizes({"sex": 2, "age": 5})
    with pytest.raises(PlanError, match="nothing else is asked for"):
        rp.plan(rp.Workload.of(domain, [()]), loss=rp.SumOfVariances(), budget=BUDGET)


def test_a_pilot_and_what_follows_cost_no_pair_more_than_the_plan():
    domain = rp.Domain.from_sizes({"sex": 2, "age": 5, "region": 4})
    plan = rp.plan(rp.Workload.all_up_to(domain, 2), loss=rp.SumOfVariances(), budget=BUDGET)
    piloted = rp.Plan.parse(with_pilot(plan, "5%").text)
    assert rp.verify(piloted).holds
    assert piloted.exact_privacy_cost == plan.exact_privacy_cost
    tables = piloted.part("tables")
    closure, first = tables.closure, pilot_scales(tables)
    alone = Closure.of(rp.Workload.all_up_to(domain, 1))
    both = gram(closure, rest_scales(tables)) + gram(alone, first)
    diagonal = np.diag(both)
    dearest = np.max(diagonal[:, None] + diagonal[None, :] - 2 * both)
    assert dearest == pytest.approx(float(plan.exact_privacy_cost), rel=1e-6)
    assert dearest_pair(alone, first) <= 0.05
    # What the pilot measures, as a plan by itself.
    one_way = pilot_plan(tables, piloted.sha256)
    assert rp.verify(one_way).holds
    assert float(one_way.exact_privacy_cost) == pytest.approx(dearest_pair(alone, first), rel=1e-6)
    exact = rp.Budget(rho="0.5", exact=["sex"])
    with pytest.raises(PlanError, match="does not go with a panel or with exact totals"):
        with_pilot(rp.plan(plan.part("tables").workload, loss=rp.SumOfVariances(), budget=exact))


def test_the_smallest_budget_is_one_at_which_targets_are_met():
    domain = rp.Domain.from_sizes({"sex": 2, "age": 5, "region": 4})
    workload = rp.Workload.of(
        domain, [("sex",), ("age", "region")], targets=[2, 5], required=[True, True]
    )
    smallest = rp.minimum_budget(workload, neighbours="replace")
    assert smallest.budget.neighbours == "replace"
    loss = rp.MaxVariance(relative_to="target")
    plan = rp.plan(workload, loss=loss, budget=smallest.budget)
    assert np.all(np.array(plan.accuracy()["met"]))
    less = rp.Budget(rho=smallest.budget.rho * Fraction(999, 1000), neighbours="replace")
    missed = rp.plan(workload, loss=loss, budget=less).accuracy()["met"]
    assert not np.all(np.array(missed))
    within = rp.plan(workload, loss=rp.SumWithinTargets(), budget=smallest.budget)
    assert rp.verify(within).holds


def test_an_optimum_for_added_records_plans_for_replaced_ones():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2, "age": 5}), 2)
    optimum = rp.optimum(workload, loss=rp.SumOfVariances())
    plan = optimum.at(BUDGET)
    assert plan.sha256 == rp.plan(workload, loss=rp.SumOfVariances(), budget=BUDGET).sha256
    errors = optimum.standard_errors(BUDGET)
    assert errors[1:] == pytest.approx(plan.standard_errors[1:])


def test_the_dearest_of_attributes_of_five_sizes_is_proven():
    sizes = {f"a{i}": (2, 3, 5, 10, 20)[i % 5] for i in range(60)}
    closure = Closure.of(rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), 2))
    dearest = dearest_replacement(
        closure, Replacement.of_all(closure).groups, np.ones(len(closure))
    )
    assert 0 <= dearest.gap < 1e-9
