"""Panels: what a person with one record a period costs, against all patterns of records."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.errors import BudgetError, PlanError
from rpexplore.planning.mechanism.accounting import panel_cost, privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.panel import Panel

LOSSES = (rp.SumOfVariances(), rp.MaxVariance(), rp.PNorm(p=3), rp.SumWithBoundedMax(slack=0.1))


def dearest_pattern(closure: Closure, sigma_squared: Decimals, most: int) -> float:
    """The largest cost of up to `most` records in different periods: all patterns, no formula."""
    sizes = closure.sizes.tolist()
    matrix = np.zeros((math.prod(sizes),) * 2)
    for row, scale in zip(closure.members.tolist(), sigma_squared.floats, strict=True):
        product = np.ones((1, 1))
        for index, n in enumerate(sizes):
            product = np.kron(product, np.eye(n) - 1 / n if index in row else np.ones((n, n)))
        matrix += product / scale
    cells = np.array(list(itertools.product(*map(range, sizes))))
    by_period = [np.flatnonzero(cells[:, 0] == period) for period in range(sizes[0])]
    return max(
        float(matrix[np.ix_(records, records)].sum())
        for count in range(1, most + 1)
        for periods in itertools.combinations(by_period, count)
        for records in map(list, itertools.product(*periods))
    )


def random_tables(rng: np.random.Generator) -> rp.Workload:
    sizes = {"quarter": 3, "a": int(rng.integers(2, 4)), "b": 2}
    sets = [table for k in (1, 2, 3) for table in itertools.combinations(sizes, k)]
    chosen = sorted({4, *rng.choice(len(sets), size=2, replace=False).tolist()})
    weights = np.exp(rng.normal(size=len(chosen))).tolist()
    return rp.Workload.of(
        rp.Domain.from_sizes(sizes), [sets[index] for index in chosen], weights=weights
    )


def budget_of(most: int, rho: str = "0.5") -> rp.Budget:
    return rp.Budget(rho=rho, max_records_per_person=most, period="quarter")


def test_no_pattern_of_records_costs_more_than_is_charged():
    rng = np.random.default_rng(1)
    for _ in range(30):
        closure, most = Closure.of(random_tables(rng)), int(rng.integers(1, 4))
        closure = closure.in_panel(Panel.of(closure, 0, most))
        sigma_squared = Decimals.rounded_up(np.exp(rng.normal(size=len(closure))))
        charged = float(panel_cost(closure, sigma_squared)) * most**2
        assert charged >= dearest_pattern(closure, sigma_squared, most) * (1 - 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_a_plan_costs_what_its_dearest_pattern_does(loss):
    rng = np.random.default_rng(2)
    for most in (1, 2, 3):
        plan = rp.plan(random_tables(rng), loss=loss, budget=budget_of(most))
        tables = plan.part("tables")
        assert rp.verify(plan).holds
        assert plan.certificate is not None
        assert plan.certificate.gap < 2e-6
        brute = dearest_pattern(tables.closure, tables.sigma_squared, most)
        assert brute == pytest.approx(float(plan.exact_privacy_cost), rel=1e-5)
        assert rp.Plan.parse(plan.text).sha256 == plan.sha256


def test_eight_quarters_cost_eight_times_a_record():
    domain = rp.Domain.from_sizes({"quarter": 8, "sex": 2, "age": 20, "region": 10})
    asked = [
        ("quarter", "sex"),
        ("quarter", "age"),
        ("quarter", "region"),
        ("quarter", "sex", "age"),
    ]
    plan = rp.plan(rp.Workload.of(domain, asked), loss=rp.SumOfVariances(), budget=budget_of(8))
    assert float(plan.rho / plan.record_rho) == pytest.approx(8, rel=1e-9)
    tables = plan.part("tables")
    own = privacy_cost_upper_bound(tables.closure.in_panel(None), tables.sigma_squared)
    assert plan.record_rho == own / 2


def test_tables_without_the_period_cost_as_for_any_records():
    # A table without the period is moved by all 3 records at once: 9 times a record.
    domain = rp.Domain.from_sizes({"quarter": 4, "sex": 2})
    both = rp.Workload.of(domain, [("sex",), ("quarter",)], weights=[1e6, 1e-6])
    plan = rp.plan(both, loss=rp.SumOfVariances(), budget=budget_of(3))
    assert float(plan.rho / plan.record_rho) == pytest.approx(9, rel=1e-2)


def test_a_smaller_noise_scale_and_a_forged_price_are_noticed():
    domain = rp.Domain.from_sizes({"quarter": 4, "sex": 2})
    plan = rp.plan(
        rp.Workload.of(domain, [("quarter", "sex")]), loss=rp.SumOfVariances(), budget=budget_of(3)
    )
    with pytest.raises(PlanError, match="period_prices, at most 1"):
        rp.Plan.parse(
            _sealed(plan.text.replace('"period_prices":[\n', '"period_prices":[\n2.0,\n'))
        )
    with pytest.raises(PlanError, match="period_prices must be there in a panel"):
        rp.Plan.parse(_sealed(plan.text.replace(',"period":"quarter"', "")))
    tables = plan.part("tables")
    halved = Decimals.rounded_up(tables.sigma_squared.floats / 2)
    assert not rp.verify(replace(tables, sigma_squared=halved)).holds


def _sealed(text: str) -> str:
    import hashlib

    body, _, _ = text.rpartition(',\n"sha256"')
    seal = hashlib.sha256(f"{body}\n}}\n".encode()).hexdigest()
    return f'{body},\n"sha256":"{seal}"\n}}\n'


def test_what_is_no_panel_is_refused():
    domain = rp.Domain.from_sizes({"quarter": 4, "sex": 2, "age": 5})
    with pytest.raises(BudgetError, match="goes with the number of periods"):
        rp.Budget(rho=1, period="quarter")
    with pytest.raises(BudgetError, match="goes with the number of periods"):
        rp.Budget(rho=1, period="quarter", max_records_per_person=2, neighbours="replace")
    tables = rp.Workload.of(domain, [("quarter", "sex")])
    with pytest.raises(PlanError, match="got 4 values"):
        rp.plan(tables, loss=rp.SumOfVariances(), budget=budget_of(5))
    others = rp.Workload.of(domain, [("sex",)])
    with pytest.raises(PlanError, match="no table with it"):
        rp.plan(others, loss=rp.SumOfVariances(), budget=budget_of(2))
    sums = rp.Workload.of(domain, [("quarter", "age")]).with_bases({"age": rp.Prefix()})
    with pytest.raises(PlanError, match="goes with tables of single values"):
        rp.plan(sums, loss=rp.SumOfVariances(), budget=budget_of(2))
    women = rp.QueryList(
        rp.Domain.from_sizes({"sex": 2}), np.array([[0, 1]]), ("women",), np.array([5])
    )
    with pytest.raises(PlanError, match="not with own counts alone"):
        rp.plan(women, budget=budget_of(2))


def test_own_counts_beside_tables_of_a_panel_are_charged_for_any_records():
    domain = rp.Domain.from_sizes({"quarter": 4, "sex": 2})
    queries = rp.QueryList(
        domain, np.array([[0, 1] * 4, [1, 0] * 4]), ("women", "men"), np.array([5, 4])
    )
    tables = rp.Workload.of(domain, [("quarter", "sex")])
    plan = rp.plan(rp.Request(tables=tables, counts=queries, budget=budget_of(3)))
    assert rp.verify(plan).holds
    counts = plan.part("counts")
    rows, gamma_squared = counts.strategy.integers.astype(object), counts.gamma_squared
    # The dearest three records in different quarters, of all.
    cells = [range(2 * quarter, 2 * quarter + 2) for quarter in range(4)]
    dearest = max(
        sum(rows[:, list(own)].sum(axis=1) ** 2) / gamma_squared
        for quarters in itertools.combinations(cells, 3)
        for own in itertools.product(*quarters)
    )
    assert counts.exact_privacy_cost == dearest
    assert plan.record_rho == plan.part("tables").record_rho + counts.rho / 9
