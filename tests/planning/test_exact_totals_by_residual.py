"""Exact totals of tables with levels, aggregations and amounts: never charged too little."""

import itertools
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.data.source import Counts
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.planner import with_neighbours
from rpexplore.releases.measurement import exact_residual
from tests.planning.test_levels import random_family
from tests.support.generalised import any_strategies

AGES = {
    "name": "age",
    "constraints": {"minimum": 0, "maximum": 7},
    "levels": {"four": [*"aabbccdd"], "two": [*"xxxxyyyy"]},
}
OTHERS = [{"name": name, "constraints": {"minimum": 0, "maximum": 1}} for name in ("sex", "owner")]
DOMAIN = rp.Domain.from_schema({"fields": [AGES, *OTHERS]}).with_levels
LEVELS = rp.Workload.of(
    DOMAIN, [("age@two", "sex"), ("age@four", "sex", "owner"), ("age",), ("sex",), ("age@two",)]
)
INCOME = rp.Amounts("0", "100", decimals=0, unit="EUR")


def random_tables(number: int) -> rp.Workload:
    """Families of levels, or tables some of whose attributes have an aggregation."""
    if number % 2:
        return random_family(number)
    rng = np.random.default_rng(number)
    sizes = {f"a{index}": int(rng.integers(2, 4)) for index in range(int(rng.integers(2, 4)))}
    basis = [rp.Prefix(), rp.Ranges(), rp.Windows(2)][number % 3]
    bases = {name: basis for name in sizes if name == "a0" or (name != "a1" and rng.random() < 0.7)}
    return rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), 2).with_bases(bases)


def random_totals(workload: rp.Workload, number: int) -> list[list[str]]:
    """One or two totals of one attribute, or one of two, at the levels that tables have."""
    rng, domain = np.random.default_rng(number), workload.domain
    names = [domain.names[index] for index, basis in workload.attribute_bases if basis.is_identity]
    chosen = rng.permutation(names)[:2].tolist()
    of_two = len({domain[name].of or name for name in chosen}) == 2
    return [chosen] if of_two and number % 3 == 1 else [[name] for name in chosen]


def dearest_change(
    closure: Closure, sigma_squared: np.ndarray, workload: rp.Workload, exact
) -> float:
    """The largest cost of all changes, by every pair of records and what they can exchange.

    Of those that keep the totals; what is public must not move at all.
    """
    domain, plan = workload.domain, cast("Any", SimpleNamespace(closure=closure))
    columns = sorted(set(closure.columns[closure.members[closure.members >= 0]].tolist()))
    records = list(itertools.product(*(range(int(domain.sizes[column])) for column in columns)))
    gammas, own = np.sqrt(sigma_squared * closure.squared_scales), np.arange(len(closure))
    means: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
    for record in records:
        counts = np.zeros([int(domain.sizes[column]) for column in columns], dtype=np.int64)
        counts[record] = 1
        held: Any = Counts({tuple(columns): counts}, 1)
        public, noisy = [], []
        for residual in own.tolist():
            numbers = exact_residual(plan, residual, held).ravel()
            if closure.is_public[residual]:
                public.append(numbers)
            else:
                noisy.append(numbers / gammas[residual])
        means[record] = np.concatenate(public), np.concatenate(noisy)

    def column_of(name: str) -> int:
        return columns.index(domain.position(domain[name].of or name))

    def value(record: tuple[int, ...], name: str) -> int:
        own, attribute = record[column_of(name)], domain[name]
        return attribute.index_of_values[own] if attribute.of else own

    def totals(held: list[tuple[int, ...]]) -> list:
        return [
            sorted(tuple(value(one, name) for name in total) for one in held) for total in exact
        ]

    largest, together = 0.0, [{column_of(name) for name in total} for total in exact]

    def add(gone: list, new: list) -> float:
        public, noisy = (
            np.sum([means[one][part] for one in new], axis=0)
            - np.sum([means[one][part] for one in gone], axis=0)
            for part in (0, 1)
        )
        assert np.max(np.abs(public)) == 0
        return float(noisy @ noisy)

    sides = [set(side) for k in range(1, len(columns))
             for side in itertools.combinations(range(len(columns)), k)]  # fmt: skip
    for one, two in itertools.combinations(records, 2):
        if totals([one]) == totals([two]):
            largest = max(largest, add([one], [two]))
        for side in sides:
            if all(total <= side or not total & side for total in together):
                new = [
                    tuple(ours[k] if k in side else theirs[k] for k in range(len(columns)))
                    for ours, theirs in ((one, two), (two, one))
                ]
                largest = max(largest, add([one, two], new))
    return largest


@pytest.mark.parametrize(
    "numbers", [range(14), pytest.param(range(14, 120), marks=pytest.mark.nightly)]
)
def test_no_change_that_keeps_the_totals_costs_more_than_is_charged(numbers):
    ratios = []
    for number in numbers:
        workload = random_tables(number)
        exact = random_totals(workload, number)
        closure = Closure.of(workload)
        if not workload.has_levels:
            strategies = any_strategies(workload, number)
            closure = closure.with_strategies(workload, strategies)
        try:
            closure = with_neighbours(closure, workload, rp.Budget(rho=1, exact=exact))
        except PlanError:  # nothing is left
            continue
        columns = set(closure.columns[closure.members[closure.members >= 0]].tolist())
        n_records = np.prod([workload.domain.sizes[column] for column in columns])
        if not closure.by_residual or n_records > 30:
            continue
        sigma_squared = np.exp(np.random.default_rng(number).normal(size=len(closure)))
        charged = privacy_cost_upper_bound(closure, Decimals.rounded_up(sigma_squared))
        ratios.append(float(charged) / dearest_change(closure, sigma_squared, workload, exact))
    assert len(ratios) >= 5
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 2


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "loss", [rp.SumOfVariances(), rp.MaxVariance()], ids=lambda loss: loss.kind
)
def test_what_a_total_at_a_level_tells_is_exact_and_the_plan_holds(loss):
    told = {
        "age@two": {("age@two",)},
        "age": {("age",), ("age@two",)},
        "sex": {("sex",)},
        "age@two,sex": {("age@two",), ("sex",), ("sex", "age@two")},
    }
    for total, tables in told.items():
        budget = rp.Budget(rho="0.5", exact=[total.split(",")])
        plan = rp.Plan.parse(rp.plan(LEVELS, loss=loss, budget=budget).text)
        own = plan.part("tables")
        names = itertools.compress(own.workload.tables, own.is_exact)
        assert set(names) == tables
        assert rp.verify(plan).holds
        assert "a change that keeps the exact totals costs in it" in str(rp.verify(plan))
        assert plan.certificate is not None
        assert plan.certificate.gap < 1e-5


def test_totals_of_aggregations_and_of_weighted_tables_are_refused_with_the_reason():
    sums = LEVELS.with_bases({"sex": rp.Prefix()})
    with pytest.raises(PlanError, match="exact totals are of single values or levels"):
        rp.plan(sums, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1, exact=["sex"]))
    only = rp.Workload.of(DOMAIN, [("age@two",), ("age@four",)])
    with pytest.raises(PlanError, match="nothing is left to protect"):
        rp.plan(only, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1, exact=["age@four"]))
    single = rp.Workload.all_up_to(rp.Domain.from_schema({"fields": [AGES, *OTHERS]}), 2)
    with pytest.raises(PlanError, match="total of age@two is to be exact, and no table has it"):
        rp.plan(rp.Request(tables=single, budget=rp.Budget(rho=1, exact=["age@two"])))
    tables = rp.Workload.of(DOMAIN, [("age@two", "sex", "owner"), ("age@four",)])
    chain = rp.Budget(rho=1, exact=[("age@two", "sex"), ("sex", "owner")])
    with pytest.raises(PlanError, match="changes age × owner, which would not be protected"):
        rp.plan(tables, loss=rp.SumOfVariances(), budget=chain)


def test_one_record_that_changes_within_a_group_costs_what_is_charged():
    """Where nothing is exchanged that tables show, that change alone decides the cost."""
    tables = rp.Workload.of(DOMAIN, [("age@two",), ("age@four",)])
    closure = with_neighbours(Closure.of(tables), tables, rp.Budget(rho=1, exact=["age@two"]))
    scales = np.full(len(closure), 2.0)
    charged = privacy_cost_upper_bound(closure, Decimals.rounded_up(scales))
    assert float(charged) == pytest.approx(dearest_change(closure, scales, tables, [["age@two"]]))
