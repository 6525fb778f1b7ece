"""Amounts: sums and counts are planned as an attribute of two values, and best possible."""

from typing import Any

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning import optimal_strategies
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.measurement import largest_sums
from tests.support.explicit_optimum import dense_queries, lower_bound

NOT_STATED = (("", "not stated"),)


def domain(minimum: float = 0, maximum: float = 200_000, missing=(), **more: Any):
    income = rp.Amounts(minimum, maximum, missing=missing, **more)
    return rp.Domain(
        (
            rp.Attribute("region", rp.Integers(0, 2)),
            rp.Attribute("sex", rp.Integers(0, 1)),
            rp.Attribute("income", income),
        )
    )


@pytest.mark.parametrize("limits", [(0, 100), (-100, 0), (-30, 100), (50, 100), (90, 100)])
@pytest.mark.parametrize(
    ("tables", "missing", "factor"),
    [
        # One table has everything, or those beside it lie within: nothing is better.
        ([("income",)], (), 1 + 1e-6),
        ([("region", "income")], (), 1 + 1e-6),
        ([("region", "income"), ("region",)], (), 1 + 1e-6),
        ([("region", "income"), ("region",)], NOT_STATED, 1.0002),
        # Of tables beside each other it is as with any other attribute.
        ([("region", "income"), ("sex", "income"), ("region", "sex"), ()], (), 1.001),
    ],
)
def test_plans_of_sums_are_as_good_as_any_mechanism(limits, tables, missing, factor):
    workload = rp.Workload.of(domain(*limits, missing), tables)
    loss = rp.SumOfVariances("cells")
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=1))
    queries, _ = dense_queries(workload)
    exact = lower_bound(queries.T @ queries, 1e-7)
    assert 1 - 1e-6 <= plan.loss_value / exact <= factor
    # The cost of a record is convex in the amount, so no amount costs more than a limit.
    assert plan.exact_privacy_cost <= 1


def test_noise_that_steps_are_too_fine_for_is_refused_before_there_is_a_plan():
    weights = rp.Attribute("w", rp.Amounts(0, 40, 3, are_weights=True))
    of = rp.Domain((rp.Attribute("income", rp.Amounts(0, 200_000, 2)), weights))
    workload = rp.Workload.of(of, [("income",)]).weighted_by("w")
    optimum = rp.optimum(workload, loss=rp.SumOfVariances())
    # 2·10^7 cents times 4·10^4 thousandths, in cents, below 2^52 with the noise.
    at_1 = float(optimum.at(rp.Budget(rho="1")).sigma_squared.floats.max())
    least = at_1 * (2e7 * 40) ** 2 / 2.0**104
    optimum.at(rp.Budget(rho=repr(1.001 * least)))
    with pytest.raises(PlanError, match=r"on \(income × w\) is too large .* fewer decimals"):
        optimum.at(rp.Budget(rho=repr(0.999 * least)))


@pytest.mark.parametrize(
    ("loss", "basis"),
    [
        (rp.SumOfVariances("cells"), None),
        pytest.param(rp.MaxVariance(), None, marks=pytest.mark.nightly),
        (rp.SumOfVariances(), "prefix"),
    ],
)
def test_amounts_in_cents_are_measured_in_few_bits_at_hardly_any_loss(loss, basis, monkeypatch):
    # Groups of 4, 2 and 6 regions: what is measured of them is no whole number by itself.
    region = {"name": "region", "constraints": {"minimum": 0, "maximum": 11}}
    if basis is None:
        region["levels"] = {"part": "0-3, 4-5, 6-11"}
    cents = {"name": "income", "type": "number", "bounds": [0, 200_000], "decimals": 2}
    cents["missingValues"] = [{"value": "", "label": "not stated"}]
    tenure = {"name": "tenure", "constraints": {"minimum": 0, "maximum": 3}}
    of = rp.Domain.from_schema({"fields": [region, tenure, cents]})
    tables = [("region", "tenure", "income"), ("tenure",)]
    if basis is None:
        tables.append(("region@part", "tenure", "income"))
    workload = rp.Workload.of(of, tables)
    if basis == "prefix":
        workload = workload.with_bases({"region": rp.Prefix()})
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(rho="1000"))
    assert all(check.holds for check in plan.checks(strategies=True))
    records = 2**61 / np.max(largest_sums(plan.closure))
    assert records > 300_000
    for name in ("_BITS_OF_AMOUNTS", "_BITS_BESIDE_AMOUNTS"):
        monkeypatch.setattr(optimal_strategies, name, 20.0)
    monkeypatch.setattr(optimal_strategies, "_BITS_OF_BLOCKS", ())
    monkeypatch.setattr(optimal_strategies, "user_cache", NoCache)
    in_all_bits = plan_tables(workload, loss=loss, budget=rp.Budget(rho="1000"))
    assert plan.closure.squared_scales.max() < in_all_bits.closure.squared_scales.max() / 2**12
    assert plan.loss_value <= in_all_bits.loss_value * 1.0001


class NoCache:
    def get(self, key):
        return None

    def put(self, key, value):
        pass


def random_design(seed):
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.integers(-1000, 1000, 2).tolist())
    missing = NOT_STATED if rng.random() < 0.5 else ()
    decimals = int(rng.integers(0, 3))
    of = domain(low, high + 1, missing, decimals=decimals)
    tables = [("region", "income"), ("sex", "income"), ("region", "sex"), ("income",), ("sex",)]
    chosen = [table for table in tables if rng.random() < 0.6] or tables[:1]
    if rng.random() < 0.5:
        chosen.append(("region", "sex", "income"))
    workload = rp.Workload.of(of, chosen, weights=rng.uniform(0.2, 5, len(chosen)).tolist())
    if rng.random() < 0.5 and any("region" in table for table in chosen):
        workload = workload.with_bases({"region": rp.Prefix()})
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))


def dense_covariance(plan, table):
    """Of all cells of a table, by least squares on everything that is measured within it."""
    sizes = plan.domain.sizes.tolist()
    attributes = plan.workload.attribute_indices(table)
    information = np.zeros([int(np.prod([sizes[i] for i in attributes]))] * 2)
    for residual in plan.closure.subsets(table):
        measured = np.ones((1, 1))
        for i in attributes:
            factor = np.ones((1, sizes[i]))
            if i in plan.closure.attributes(residual):
                factor = np.eye(sizes[i]) - 1 / sizes[i]
                if i in plan.closure.strategies:
                    factor = plan.closure.strategies[i].matrix
            measured = np.kron(measured, factor)
        information += measured.T @ measured / plan.sigma_squared.floats[residual]
    queries = np.ones((1, 1))
    for i in attributes:
        basis, attribute = plan.workload.basis_of(table, i), plan.domain.attributes[i]
        # By hand, in the unit of the amounts, so that nothing is taken from what is tested.
        rows = np.eye(sizes[i])
        if isinstance(attribute.values, rp.Amounts):
            rows[0, :2] = float(attribute.values.minimum), float(attribute.values.maximum)
            rows[1, :2] = 1, 1
            if attribute.values.are_weights:
                rows = rows[:1]
        elif isinstance(basis, rp.Prefix):
            rows = np.tril(np.ones((sizes[i], sizes[i])))
        queries = np.kron(queries, rows)
    return queries @ np.linalg.inv(information) @ queries.T


@pytest.mark.by_day(5)
@pytest.mark.parametrize("seed", range(40))
def test_variances_and_covariances_of_sums_and_counts_are_those_of_dense_matrices(seed):
    plan = random_design(seed)
    cells, sigma_squared = CellVariances(plan.workload, plan.closure), plan.sigma_squared.floats
    for table in np.flatnonzero(plan.workload.has_amounts).tolist():
        dense = dense_covariance(plan, table)
        errors = cells.standard_errors_of(table, sigma_squared)
        np.testing.assert_allclose(errors.ravel() ** 2, np.diag(dense), rtol=1e-9)
        # The amounts are the last attribute: of a group, the sum and the count are neighbours.
        n_rows = errors.shape[-1]
        sums = np.arange(0, errors.size, n_rows)
        covariances = cells.sum_covariances_of(table, sigma_squared).ravel()
        scale = np.sqrt(dense[sums, sums] * dense[sums + 1, sums + 1])
        np.testing.assert_allclose(
            covariances / scale, dense[sums, sums + 1] / scale, rtol=0, atol=1e-9
        )


def test_targets_and_errors_of_sums_are_in_the_unit_of_the_amounts():
    # M is the limit of larger size, in the unit and not in its smallest steps.
    tables = [("region", "income"), ("region",)]
    workload = rp.Workload.of(domain(-50, 300, decimals=2), tables, targets=[600, 2])
    loss = rp.MaxVariance(relative_to="target")
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(rho=1))
    own = workload.position(("region", "income"))
    assert workload.units[own] == 300
    assert workload.planned_targets[own] == 2
    # Both targets are off by the same factor.
    ratios = plan.largest_standard_errors / plan.workload.targets
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-3)
    at_smallest = rp.minimum_budget(workload).budget
    met = plan_tables(workload, loss=loss, budget=at_smallest).accuracy()
    assert met["met"].tolist() == [True, True]
    assert met["item"].tolist() == ["region", "sum of income by region"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda of: rp.Workload.of(of, [("income", "wealth")]), "ask for a table of each"),
        (
            lambda of: rp.Workload.of(of, [("income",)]).with_bases({"income": rp.Identity()}),
            "has amounts, and tables have its sums and counts, got the basis identity",
        ),
        (
            lambda of: rp.Workload.of(of, [("region",)]).with_bases({"region": rp.Sums(0, 1)}),
            "is for amounts, and the values of 'region' are none",
        ),
        (
            lambda of: rp.QueryList(rp.Domain(of.attributes[2:]), [[1] * 4], ("a",), [1]),
            "can add up one attribute of amounts, got 'income' and 'wealth'",
        ),
        (
            lambda of: rp.Rounds(rp.Workload.of(of, [("region", "sex", "income")]), 100),
            "an adaptive release cannot estimate",
        ),
        (
            lambda of: rp.Domain(of.attributes, ({"income": "0", "sex": "1"},)),
            "'income' has amounts, whose values cannot be told apart",
        ),
    ],
)
def test_what_amounts_cannot_be_asked_for_is_refused(asked, words):
    of = domain()
    of = rp.Domain((*of.attributes, rp.Attribute("wealth", rp.Amounts(0, 1))))
    with pytest.raises(rp.errors.RpexploreError, match=words):
        rp.plan(asked(of), budget=rp.Budget(rho=1))


def test_amounts_are_in_tables_that_name_them_only():
    of = domain()
    assert rp.Workload.all_up_to(of, 3).tables[-1] == ("region", "sex")
    named = rp.Workload.all_up_to(of, 2, containing=["income"]).tables
    assert named == [("income",), ("region", "income"), ("sex", "income")]


def test_a_plan_file_keeps_amounts(tmp_path):
    made = rp.plan(
        rp.Workload.of(domain(0.5, 9, unit="EUR", decimals=1), [("sex", "income")]),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho=1),
    )
    made.save(tmp_path / "plan.json")
    loaded = rp.Plan.load(tmp_path / "plan.json")
    assert loaded.sha256 == made.sha256
    part = loaded.part("tables")
    assert part.domain["income"].values == rp.Amounts("0.5", "9.0", 1, "EUR")
    assert part.closure.strategies[2].range_in_steps == 85
    assert all(check.holds for check in part.checks(strategies=True))


def test_tables_with_amounts_can_be_at_levels():
    ages = {"name": "age", "constraints": {"minimum": 0, "maximum": 5}, "levels": {"two": 2}}
    ages["levels"] |= {"old": "0-3, 4+"}
    income = {"name": "income", "type": "number", "bounds": [-5, 40]}
    of = rp.Domain.from_schema({"fields": [ages, income]})
    tables = [("age@two", "income"), ("age@old", "income"), ("age@old",)]
    workload = rp.Workload.of(of, tables)
    plan = plan_tables(workload, loss=rp.SumOfVariances("cells"), budget=rp.Budget(privacy_cost=1))
    queries, _ = dense_queries(workload)
    assert 1 - 1e-6 <= plan.loss_value / lower_bound(queries.T @ queries, 1e-7) <= 1.02
    cells = CellVariances(plan.workload, plan.closure)
    amounts, ones = np.array([-5.0, 40]), np.ones(2)
    for names in tables[:2]:
        table = workload.position(names)
        errors = cells.standard_errors_of(table, plan.sigma_squared.floats)
        covariances = cells.sum_covariances_of(table, plan.sigma_squared.floats)
        noise = plan.marginal_noise(workload.attribute_indices(table))
        level, income_index = workload.domain.position(names[0]), workload.domain.position("income")
        for group in range(covariances.size):
            unit = np.eye(covariances.size)[group]
            of_sum = {level: unit, income_index: amounts}
            of_count = {level: unit, income_index: ones}
            assert errors[0, group] ** 2 == pytest.approx(noise.covariance(of_sum, of_sum))
            assert errors[1, group] ** 2 == pytest.approx(noise.covariance(of_count, of_count))
            assert covariances[0, group] == pytest.approx(noise.covariance(of_sum, of_count))
