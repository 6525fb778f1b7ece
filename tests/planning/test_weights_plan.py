"""Survey weights: weighted counts are planned as counts are, and nothing else is weighted."""

import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.areas.area_workload import AreaWorkload, same_tables
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.part_plan import or_fewer_steps
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.request import Rounds
from rpexplore.releases.measurement import check_measurable, largest_sums
from rpexplore.workload.query_definitions import stated_from_text
from tests.planning.test_amounts_plan import NOT_STATED, dense_covariance
from tests.support.explicit_optimum import dense_queries, lower_bound
from tests.support.plan_texts import laid_out_compact

REGION, SEX = rp.Attribute("region", rp.Integers(0, 2)), rp.Attribute("sex", rp.Integers(0, 1))
INCOME = rp.Attribute("income", rp.Amounts(0, 1000))


def weight(minimum=0, maximum=40, missing=(), decimals=1):
    weights = rp.Amounts(minimum, maximum, decimals, missing=missing, are_weights=True)
    return rp.Attribute("w", weights)


def domain(*limits, **more):
    return rp.Domain((REGION, weight(*limits, **more), SEX))


@pytest.mark.parametrize("loss", [rp.SumOfVariances(), rp.MaxVariance()])
def test_a_weighted_count_is_as_accurate_as_a_count_times_the_largest_weight(loss):
    counts = rp.Workload.all_up_to(rp.Domain((REGION, SEX)), 2)
    weighted = rp.Workload.all_up_to(domain(), 2).weighted_by("w")
    assert weighted.tables == [("w",), ("region", "w"), ("w", "sex"), ("region", "w", "sex")]
    assert weighted.exact_cells.tolist() == [1, 3, 2, 6]
    budget = rp.Budget(privacy_cost=1)
    of_counts = plan_tables(counts, loss=loss, budget=budget)
    plan = plan_tables(weighted, loss=loss, budget=budget)
    np.testing.assert_allclose(plan.standard_errors, 40 * of_counts.standard_errors, rtol=1e-6)
    assert plan.loss_value == pytest.approx(of_counts.loss_value, rel=1e-6)


@pytest.mark.parametrize("missing", [(), NOT_STATED])
@pytest.mark.parametrize("limits", [(0, 40), (10, 40)])
@pytest.mark.parametrize(("unweighted", "factor"), [([], 1.0001), ([("region",)], 1.09)])
def test_plans_of_weighted_counts_are_near_the_best_mechanism(limits, missing, unweighted, factor):
    workload = rp.Workload.of(domain(*limits, missing), [("region", "sex"), ("region",)])
    workload = workload.weighted_by("w", unweighted=unweighted)
    loss = rp.SumOfVariances("cells")
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=1))
    queries, _ = dense_queries(workload)
    exact = lower_bound(queries.T @ queries, 1e-7)
    assert 1 - 1e-6 <= plan.loss_value / exact <= factor
    assert plan.exact_privacy_cost <= 1


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(20))
def test_variances_of_weighted_counts_are_those_of_dense_matrices(seed):
    rng = np.random.default_rng(seed)
    low = int(rng.integers(0, 10))
    missing = NOT_STATED if rng.random() < 0.5 else ()
    of = domain(low, low + int(rng.integers(1, 100)), missing, decimals=int(rng.integers(0, 4)))
    workload = rp.Workload.all_up_to(of, 2)
    workload = rp.Workload.of(of, workload.tables, weights=rng.uniform(0.2, 5, 4).tolist())
    if rng.random() < 0.5:
        workload = workload.with_bases({"region": rp.Prefix()})
    workload = workload.weighted_by("w", unweighted=[("sex",)] if rng.random() < 0.5 else [])
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    cells = CellVariances(plan.workload, plan.closure)
    for table in np.flatnonzero(workload.is_weighted).tolist():
        errors = cells.standard_errors_of(table, plan.sigma_squared.floats)
        dense = np.diag(dense_covariance(plan, table))
        np.testing.assert_allclose(errors.ravel() ** 2, dense, rtol=1e-9)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(12))
def test_errors_of_weighted_sums_and_means_are_those_of_dense_matrices(seed):
    rng = np.random.default_rng(seed)
    low, missing = int(rng.integers(-50, 50)), NOT_STATED if seed % 2 else ()
    income = rp.Amounts(low, low + int(rng.integers(1, 1000)), missing=missing)
    of = rp.Domain((*domain(rng.integers(0, 9), 40, missing), rp.Attribute("income", income)))
    tables = [("region", "income"), ("income",), ("region", "sex"), ("sex", "income")]
    workload = rp.Workload.of(of, tables, weights=rng.uniform(0.2, 5, 4).tolist())
    workload = workload.weighted_by("w", unweighted=[("sex", "income")] if seed % 3 else [])
    loss = [rp.SumOfVariances(), rp.MaxVariance()][seed % 2]
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(rho="0.1"))
    cells = CellVariances(plan.workload, plan.closure)
    for table in np.flatnonzero(workload.has_means).tolist():
        dense = dense_covariance(plan, table)
        errors = cells.standard_errors_of(table, plan.sigma_squared.floats)
        np.testing.assert_allclose(errors.ravel() ** 2, np.diag(dense), rtol=1e-9)
        covariances = cells.sum_covariances_of(table, plan.sigma_squared.floats).ravel()
        # The amounts are the last attribute: of a group, the sum and the count are neighbours.
        places = np.arange(0, len(dense), errors.shape[-1])
        np.testing.assert_allclose(covariances, dense[places, places + 1], rtol=1e-9)
    # No record costs more than is booked: it is a mean of those at the ends of both.
    assert plan.exact_privacy_cost <= plan.budget.privacy_cost


def test_a_weighted_sum_is_planned_near_the_best_mechanism():
    of = rp.Domain((REGION, weight(0, 40), INCOME))
    workload = rp.Workload.of(of, [("region", "income"), ("region",)]).weighted_by("w")
    plan = plan_tables(workload, loss=rp.SumOfVariances("cells"), budget=rp.Budget(privacy_cost=1))
    queries, _ = dense_queries(workload)
    exact = lower_bound(queries.T @ queries, 1e-7)
    assert 1 - 1e-6 <= plan.loss_value / exact <= 1.01


def test_sums_of_incomes_times_weights_have_noise_that_is_drawn_in_64_bits():
    """200,000 · 40,000 steps a record: integers of few bits in R, at next to no cost."""
    income = rp.Attribute("income", rp.Amounts(0, 200_000, missing=NOT_STATED))
    of = rp.Domain((rp.Attribute("region", rp.Integers(0, 11)), SEX, weight(decimals=3), income))
    tables = [("region", "income"), ("sex", "income"), ("region", "sex"), ("region",), ()]
    workload = rp.Workload.of(of, tables).weighted_by("w")
    budget = rp.Budget(rho="0.1")
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=budget)
    check_measurable(plan)
    unweighted = plan_tables(rp.Workload.of(of, tables), loss=rp.SumOfVariances(), budget=budget)
    assert plan.loss_value <= unweighted.loss_value * 1.0005


@pytest.mark.parametrize(("largest", "unit"), [("200000", 1000), ("199999.95", 5)])
def test_cents_times_weights_of_three_decimals_are_summed_in_cents(largest, unit):
    """Where limits are multiples of 1,000 steps apart; 19,999,995 is one of 5."""
    income = rp.Amounts(0, largest, 2, missing=NOT_STATED)
    of = rp.Domain((REGION, weight(decimals=3), rp.Attribute("income", income)))
    workload = rp.Workload.of(of, [("region", "income"), ("region",)]).weighted_by("w")
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1000"))
    assert plan.product_units == [{"amounts": "income", "weights": "w", "unit": unit}]
    part = plan.part("tables")
    # 36: the largest whole numbers by which regions and amounts are measured, 3 and 12.
    steps = income.range_in_steps * 40_000 / unit
    assert np.max(largest_sums(part.closure)) == pytest.approx(36 * steps, rel=1e-12)
    residual = len(part.closure) - 1
    assert or_fewer_steps(part.closure, of, residual).endswith("1,000 smallest steps apart") == (
        unit < 1000
    )


def test_a_plan_from_before_products_were_rounded_is_refused(tmp_path):
    of = rp.Domain((weight(), INCOME))
    workload = rp.Workload.of(of, [("income",)]).weighted_by("w")
    made = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    assert rp.Plan.parse(made.text).sha256 == made.sha256
    content = json.loads(made.text)
    content["product_units"][0]["unit"] = 5
    with pytest.raises(rp.errors.PlanError, match="product_units must be those"):
        rp.Plan.parse(laid_out_compact(content))
    del content["product_units"]
    with pytest.raises(rp.errors.PlanError, match=r"were not rounded record by record.*plan anew"):
        rp.Plan.parse(laid_out_compact(content))


def test_weights_and_targets_stay_those_of_the_tables():
    of = domain()
    workload = rp.Workload.of(of, [("region",), ("sex",)], weights=[2, 3], targets=[5, None])
    workload = workload.with_bases({"region": rp.Prefix()})
    weighted = workload.weighted_by("w", unweighted=["sex"])
    assert weighted.tables == [("sex",), ("region", "w")]
    assert weighted.weights.tolist() == [3, 2]
    assert weighted.targets[1] == 5
    assert weighted.planned_targets[1] == 5 / 40
    assert weighted.basis_of(1, of.position("region")) == rp.Prefix()
    largest = rp.Workload.of(of, [("region", "sex"), ("sex",)])
    mixed = largest.weighted_by("w", unweighted=[("region", "sex")])
    assert mixed.has_tables_of(rp.Workload.of(of, [("region", "sex"), ("w", "sex")]))
    assert mixed.weighted_by("w", unweighted=[("region", "sex")]).has_tables_of(mixed)


def test_tables_at_levels_are_weighted():
    ages = {"name": "age", "constraints": {"minimum": 0, "maximum": 5}, "levels": {"two": 2}}
    ages["levels"] |= {"old": "0-3, 4+"}
    of = rp.Domain.from_schema({"fields": [ages]}).with_weights("w", 40)
    levels = rp.Workload.of(of, ["age@two", "age@old"])
    weighted = levels.weighted_by("w", unweighted=["age@old"])
    assert weighted.tables == [("age@old",), ("w", "age@two")]
    budget, loss = rp.Budget(privacy_cost=1), rp.SumOfVariances()
    counts = plan_tables(levels, loss=loss, budget=budget)
    plan = plan_tables(levels.weighted_by("w"), loss=loss, budget=budget)
    np.testing.assert_allclose(plan.standard_errors, 40 * counts.standard_errors, rtol=1e-5)


def test_a_plan_file_keeps_weights(tmp_path):
    workload = rp.Workload.all_up_to(domain(missing=NOT_STATED), 1).weighted_by("w")
    made = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    made.save(tmp_path / "plan.json")
    loaded = rp.Plan.load(tmp_path / "plan.json")
    assert loaded.sha256 == made.sha256
    part = loaded.part("tables")
    assert part.domain["w"] == weight(missing=NOT_STATED)
    assert all(check.holds for check in part.checks(strategies=True))
    # As amounts, the same numbers would be another plan.
    text = (tmp_path / "plan.json").read_text().replace('"weights":true', '"unit":"kg"')
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(rp.errors.RpexploreError):
        rp.Plan.load(tmp_path / "plan.json")


def requested(**parts):
    weighted = rp.Workload.all_up_to(domain(), 1).weighted_by("w")
    return lambda: rp.Request(tables=weighted, budget=rp.Budget(rho=1), **parts)


def test_own_counts_that_add_up_the_weights_go_beside_weighted_tables():
    asked = stated_from_text(domain(), "women: sum(w) where sex == 1 ± 90\nall: sum(w) ± 80")
    made = rp.plan(requested(counts=asked.queries, loss=rp.SumOfVariances())())
    assert rp.verify(made).holds
    mixed = stated_from_text(domain(), "women: sum(w) where sex == 1 ± 90\nall: total ± 80")
    with pytest.raises(rp.errors.WorkloadError, match="add up the weights in all of them"):
        requested(counts=mixed.queries)()


def tables_in_areas(workload):
    tree = rp.AreaTree.from_columns({"county": ["N", "S"]})
    return AreaWorkload.of_levels(tree, same_tables(tree, workload))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        # Parts that know nothing of weights, and would be counts of records beside weighted ones.
        (
            requested(
                counts=rp.QueryList(
                    rp.Domain((SEX,)), np.array([[0, 1]]), ("women",), np.array([5])
                )
            ),
            "Own counts of this plan count records, and its tables are weighted, by 'w'",
        ),
        (
            requested(rounds=Rounds(rp.Workload.all_up_to(rp.Domain((SEX,)), 1), 100)),
            "Adaptive tables cannot be weighted",
        ),
        (
            requested(areas=tables_in_areas(rp.Workload.all_up_to(rp.Domain((SEX,)), 1))),
            "Tables in areas are not weighted, and tables of this plan are, by 'w'; weight both",
        ),
        (
            lambda: rp.QueryList(
                rp.Domain((weight(), rp.Attribute("v", weight().values))),
                np.ones((1, 4)),
                ("x",),
                np.array([5]),
            ),
            "can add up one attribute of weights, got 'w' and 'v'",
        ),
        (
            lambda: rp.plan(
                Rounds(rp.Workload.all_up_to(domain(), 1).weighted_by("w"), 100),
                budget=rp.Budget(rho=1),
            ),
            "is weighted, and an adaptive release estimates counts of records",
        ),
        (lambda: rp.Workload.all_up_to(domain(), 1).weighted_by("sex"), "has no weights"),
        (
            lambda: rp.Workload.of(
                rp.Domain((weight(), rp.Attribute("v", weight().values))), [("v",)]
            ).weighted_by("w"),
            "has the weights 'w' and 'v', and adds up one of them",
        ),
        (
            lambda: rp.Workload.all_up_to(domain(), 1).weighted_by("w", unweighted=[["age"]]),
            "'age'",
        ),
        (
            lambda: rp.Workload.of(domain(), [("sex", "w")]).with_bases({"w": rp.Sums(0, 40)}),
            "has weights; leave the basis out",
        ),
        (lambda: weight(minimum=-1), "minimum of weights must be at least 0"),
        (lambda: rp.Amounts(0, 9, unit="kg", are_weights=True), "Weights have no unit"),
    ],
)
def test_what_cannot_be_weighted_is_refused_and_not_left_unweighted(asked, words):
    with pytest.raises(rp.errors.RpexploreError, match=words):
        asked()
