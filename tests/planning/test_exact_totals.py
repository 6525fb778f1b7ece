"""Exact totals: what moves of records that keep them cost, against all pairs of data sets."""

import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.errors import BudgetError, PlanError
from rpexplore.planning.mechanism import replacement
from rpexplore.planning.mechanism.accounting import cost_of_difference, replacement_cost
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.exact_totals import exact_totals, refuse_unprotected
from rpexplore.planning.mechanism.replacement import (
    Replacement,
    chosen_groups,
    dearest_replacement,
)

LOSSES = (rp.SumOfVariances(), rp.MaxVariance(), rp.PNorm(p=3), rp.SumWithBoundedMax(slack=0.1))


def marginal(attributes: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """The matrix that sums cells over all other attributes."""
    product = np.ones((1, 1))
    for index, n in enumerate(sizes):
        product = np.kron(product, np.eye(n) if index in attributes else np.ones((1, n)))
    return product


def moves(sizes: tuple[int, ...], exact: list[tuple[int, ...]]) -> np.ndarray:
    """All changes of counts by one record, or by an exchange of values, that keep exact totals.

    From their definition: every pair of records, every new record, every set E that is exchanged;
    what changes an exact total is left out where one record changes, and must not be there else.
    """
    every = list(itertools.product(*map(range, sizes)))
    place = {record: number for number, record in enumerate(every)}
    in_totals, n = set(itertools.chain(*exact)), len(sizes)
    found = set()

    def add(gone: list[tuple[int, ...]], new: list[tuple[int, ...]]) -> None:
        change = np.zeros(len(every), dtype=np.int8)
        np.add.at(change, [place[record] for record in new], 1)
        np.add.at(change, [place[record] for record in gone], -1)
        found.add(change.tobytes())

    sides = [
        set(side)
        for k in range(1, n)
        for side in itertools.combinations(range(n), k)
        if 0 in side  # of E and the others, which are exchanged alike
        and all(set(total) <= set(side) or set(total).isdisjoint(side) for total in exact)
    ]
    for one, two in itertools.combinations(every, 2):
        if all(one[index] == two[index] for index in in_totals):
            add([one], [two])
        for side in sides:
            new = [
                tuple(own[k] if k in side else other[k] for k in range(n))
                for own, other in ((one, two), (two, one))
            ]
            add([one, two], new)
    return np.array([np.frombuffer(change, dtype=np.int8) for change in found], dtype=float)


def dearest_move(closure: Closure, sigma_squared: Decimals, changes: np.ndarray) -> float:
    """The largest Σ ‖residual of a move‖² / σ², without what is exact: no formula."""
    sizes = tuple(map(int, closure.sizes))
    costs = np.zeros(len(changes))
    for row, scale, public in zip(
        closure.members.tolist(), sigma_squared.floats, closure.is_public, strict=True
    ):
        own = [index for index in row if index >= 0]
        centred = np.ones((1, 1))
        for index, n in enumerate(sizes):
            factor = np.eye(n) - 1 / n if index in own else np.ones((1, n))
            centred = np.kron(centred, factor)
        moved = np.sum((changes @ centred.T) ** 2, axis=1)
        if public:
            assert np.max(moved, initial=0.0) < 1e-20  # of what is exact nothing moves
        else:
            costs += moved / scale
    return float(np.max(costs))


def random_problem(
    rng: np.random.Generator, sizes: tuple[int, ...]
) -> tuple[rp.Workload, list[tuple[str, ...]]]:
    """Tables of a random domain with random weights, and totals that can be exact."""
    while True:
        names = {f"a{i}": int(rng.choice(sizes)) for i in range(int(rng.integers(2, 5)))}
        domain, every = rp.Domain.from_sizes(names), list(names)
        sets = [own for k in (1, 2, 3) for own in itertools.combinations(every, k)]
        chosen = rng.choice(len(sets), size=min(len(sets), int(rng.integers(1, 7))), replace=False)
        tables = [sets[index] for index in sorted(chosen.tolist())]
        weights = np.exp(rng.normal(size=len(tables))).tolist()
        workload = rp.Workload.of(domain, tables, weights=weights)
        margins = [
            own for own in sets if len(own) < 3 and any(set(own) <= set(table) for table in tables)
        ]
        n = min(len(margins), int(rng.integers(1, 4)))
        exact = [margins[index] for index in rng.choice(len(margins), size=n, replace=False)]
        budget = rp.Budget(rho="0.5", exact=exact)
        try:
            refuse_unprotected(Closure.of(workload), workload, exact_totals(workload, budget))
        except PlanError:
            continue
        return workload, exact


def indices_of(workload: rp.Workload, exact: list[tuple[str, ...]]) -> list[tuple[int, ...]]:
    return [tuple(workload.domain.names.index(name) for name in total) for total in exact]


def test_the_cost_is_that_of_the_dearest_move_that_keeps_the_totals():
    rng = np.random.default_rng(1)
    kinds = set()
    for _ in range(24):
        workload, exact = random_problem(rng, (2, 2, 3))
        totals = exact_totals(workload, rp.Budget(rho=1, exact=exact))
        closure = Closure.of(workload)
        closure = closure.replacing(Replacement.of_all(closure, totals))
        sigma_squared = Decimals.rounded_up(np.exp(rng.normal(size=len(closure))))
        groups = chosen_groups(closure, sigma_squared.floats)
        closure = closure.replacing(Replacement.of_groups(closure, groups))
        changes = moves(tuple(map(int, workload.domain.sizes)), indices_of(workload, exact))
        brute = dearest_move(closure, sigma_squared, changes)
        most, found = replacement_cost(closure, sigma_squared)
        assert float(found) == pytest.approx(brute, rel=1e-11)
        assert found <= most <= found * (1 + Fraction(1, 10**10))
        dearest = dearest_replacement(closure, groups, sigma_squared.floats)
        kinds.add(bool(dearest.others_changed))
        # Groups of attributes that are not alike, and each residual by itself: from above.
        by_size = Replacement.of_all(closure).groups
        raised = dearest_replacement(closure, by_size, sigma_squared.floats).bound
        assert raised >= brute * (1 - 1e-13)
        each = np.sum(closure.largest_cost_factor / sigma_squared.floats)
        assert each >= brute * (1 - 1e-13)
    assert kinds == {False, True}


def test_where_not_all_exchanges_can_be_tried_the_bound_holds(monkeypatch):
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2, "b": 3, "c": 4, "d": 5}), 3)
    closure = Closure.of(workload)
    closure = closure.replacing(Replacement.of_all(closure, ((0,), (2, 3))))
    scales, groups = np.ones(len(closure)), tuple((index,) for index in range(4))
    tried = dearest_replacement(closure, groups, scales)
    monkeypatch.setattr(replacement, "MOST_EXCHANGES", 1)
    bounded = dearest_replacement(closure, groups, scales)
    assert bounded.found == pytest.approx(tried.found)
    assert tried.found < bounded.bound < 4 * tried.found


def test_the_exact_cost_of_an_exchange():
    # a × b of 2 and 3 values, σ² = 1: 4 · 1/2 · 2/3 · (1 + 1)(1 + 1/2) = 4
    closure = Closure.of(rp.Workload.of(rp.Domain.from_sizes({"a": 2, "b": 3}), [("a", "b")]))
    cost = cost_of_difference(closure, (0,), Decimals.rounded_up(np.ones(4)), (1,))
    assert 0 <= cost - 4 < Fraction(1, 10**25)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_plans_are_within_the_budget_for_every_move_and_proven_near_the_best(loss):
    rng = np.random.default_rng(3)
    for _ in range(5):
        workload, exact = random_problem(rng, (2, 3))
        budget = rp.Budget(rho="0.5", exact=exact)
        plan = rp.plan(workload, loss=loss, budget=budget)
        tables = plan.part("tables")
        assert rp.verify(plan).holds
        assert plan.certificate is not None
        assert plan.certificate.gap < 2e-6
        assert not tables.accuracy()["shadow_price"][tables.is_exact].any()
        changes = moves(tuple(map(int, workload.domain.sizes)), indices_of(workload, exact))
        brute = dearest_move(tables.closure, tables.sigma_squared, changes)
        assert brute * (1 - 1e-11) <= float(plan.exact_privacy_cost) <= 1
        again = rp.Plan.parse(plan.text)
        assert (again.sha256, again.budget) == (plan.sha256, plan.budget)


def test_totals_that_leave_something_unprotected_without_saying_so_are_refused():
    domain = rp.Domain.from_sizes({"a": 2, "b": 3, "c": 2})
    tables = rp.Workload.all_up_to(domain, 2)
    with pytest.raises(PlanError, match="changes a × c, which would not be protected"):
        rp.plan(tables, loss=LOSSES[0], budget=rp.Budget(rho=1, exact=[("a", "b"), ("b", "c")]))
    only = rp.Workload.of(domain, [("a", "b")])
    with pytest.raises(PlanError, match="nothing is left to protect"):
        rp.plan(only, loss=LOSSES[0], budget=rp.Budget(rho=1, exact=[("a", "b")]))
    with pytest.raises(PlanError, match="there is no attribute 'd'; ask"):
        rp.plan(tables, loss=LOSSES[0], budget=rp.Budget(rho=1, exact=["d"]))
    with pytest.raises(BudgetError, match="must have the name of at least one attribute"):
        rp.Budget(rho=1, exact=[()])
    # Those inside of others say nothing more; the order does not matter.
    budget = rp.Budget(rho=1, exact=[("b", "a"), "a", "c"])
    assert budget.exact == (("a", "b"), ("c",))


def test_a_plan_whose_claims_are_changed_is_refused():
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2, "b": 3, "c": 2}), 2)
    text = rp.plan(tables, loss=LOSSES[0], budget=rp.Budget(rho=1, exact=["a"])).text
    hidden = sealed(text.replace(',"exact":[["a"]]', ""))
    with pytest.raises(PlanError):
        rp.Plan.parse(hidden)
    with pytest.raises(PlanError, match="there is no attribute 'd'; ask"):
        rp.Plan.parse(sealed(text.replace('"exact":[["a"]]', '"exact":[["a"],["d"]]')))
    # Of a × b as exact, differences that are priced would change it.
    with pytest.raises(PlanError, match=r"would change an exact total|alike in the exact totals"):
        rp.Plan.parse(sealed(text.replace('"exact":[["a"]]', '"exact":[["a","b"]]')))


def sealed(text: str) -> str:
    body, _, _ = text.rpartition(',\n"sha256"')
    seal = hashlib.sha256(f"{body}\n}}\n".encode()).hexdigest()
    return f'{body},\n"sha256":"{seal}"\n}}\n'
