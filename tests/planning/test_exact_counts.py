"""Own counts around exact totals: the cost is that of all changes, by their definition."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning import counts_moves, replaced_counts
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.counts_strategy import QueryStrategy
from tests.support.query_lists import query_plan

DOMAIN = rp.Domain.from_sizes({"sex": 2, "age": 3, "region": 2})


def random_list(rng: np.random.Generator) -> tuple[rp.QueryList, list[tuple[str, ...]]]:
    """One to six counts over two to four attributes, and one or two exact totals."""
    sizes = rng.integers(2, 4, rng.integers(2, 5)).tolist()
    domain = rp.Domain.from_sizes({f"a{index}": size for index, size in enumerate(sizes)})
    rows = []
    for _ in range(int(rng.integers(1, 7))):
        row = np.ones((1, 1), dtype=int)
        for size in sizes:
            chosen = rng.integers(0, 2, size) if rng.random() < 0.6 else np.ones(size, dtype=int)
            row = np.kron(row, chosen)
        rows.append(rng.integers(0, 4, row.shape) if rng.random() < 0.2 else row)
    rows = np.unique(np.vstack(rows), axis=0)
    rows = rows[rows.any(axis=1)] if rows.any() else np.eye(1, rows.shape[1], dtype=int)
    targets = np.exp(rng.normal(size=len(rows))).round(3) + 0.1
    names = tuple(f"q{row}" for row in range(len(rows)))
    sets = [own for k in (1, 2) for own in itertools.combinations(domain.names, k)]
    chosen = rng.choice(len(sets), size=int(rng.integers(1, 3)), replace=False)
    return rp.QueryList(domain, rows, names, targets), [sets[index] for index in chosen]


def dearest_change(strategy: QueryStrategy, exact: list[tuple[str, ...]]) -> int:
    """The largest ‖R (change)‖² of all changes, by every pair of records and every set E.

    What changes an exact total is left out; rows without noise must not move.
    """
    domain = strategy.queries.domain
    every = list(itertools.product(*map(range, domain.sizes)))
    place = {record: number for number, record in enumerate(every)}
    columns, public = strategy.integers.astype(object).T, strategy.is_same
    totals = [{domain.names.index(name) for name in total} for total in exact]
    n, largest = len(domain), 0

    def cost(gone: list[tuple[int, ...]], new: list[tuple[int, ...]]) -> int:
        moved = [columns[place[one]] for one in gone] + [-columns[place[one]] for one in new]
        change = np.sum(moved, axis=0)
        assert not np.any(change[public])
        return int(np.sum(change[~public] ** 2))

    for one, two in itertools.combinations(every, 2):
        if all(one[index] == two[index] for index in set().union(*totals)):
            largest = max(largest, cost([one], [two]))
        for side in (set(own) for k in range(1, n) for own in itertools.combinations(range(n), k)):
            if all(total <= side or not total & side for total in totals):
                new = [
                    tuple(own[k] if k in side else other[k] for k in range(n))
                    for own, other in ((one, two), (two, one))
                ]
                largest = max(largest, cost([one, two], new))
    return largest


def moving(queries: rp.QueryList) -> list[tuple[str, ...]]:
    """Of each count the sets of attributes whose interaction it has: what its value depends on."""
    domain, found = queries.domain, set()
    for row in queries.coefficients:
        grid = row.reshape(domain.sizes)
        for axis in range(grid.ndim):  # the first value, and differences from it
            start = np.take(grid, [0], axis=axis)
            grid = np.concatenate([start, np.delete(grid, 0, axis=axis) - start], axis=axis)
        places = np.argwhere(np.abs(grid) > 1e-12)
        found |= {tuple(np.array(domain.names)[place > 0].tolist()) for place in places}
    return sorted(found)


@pytest.mark.parametrize("n_plans", [15, pytest.param(100, marks=pytest.mark.nightly)])
def test_the_cost_is_that_of_the_dearest_change_that_keeps_the_totals(n_plans):
    rng, n_public, done = np.random.default_rng(1), 0, 0
    while done < n_plans:
        queries, exact = random_list(rng)
        objective = ("largest", "sum")[done % 2]
        budget = rp.Budget(rho="0.5", exact=exact)
        try:
            plan = query_plan(queries, budget=budget, objective=objective)
        except PlanError as error:
            share = len(exact) == 2 and bool(set(exact[0]) & set(exact[1]))
            told = all(any(set(own) <= set(one) for one in exact) for own in moving(queries))
            text = str(error)
            assert ("share attributes" in text and share) or ("tell all own" in text and told)
            continue
        done += 1
        plan = QueryPlan.of_content(json.loads(plan.to_text()), "1", None)
        assert rp.verify(plan).holds
        dearest = dearest_change(plan.strategy, exact)
        assert plan.exact_privacy_cost == dearest / plan.gamma_squared <= 1
        assert plan.certificate.gap < 2e-3
        n_public += np.count_nonzero(plan.variances == 0)
    assert n_public


def test_changes_are_added_until_none_costs_more(monkeypatch):
    rng = np.random.default_rng(5)
    rows = np.unique(rng.integers(0, 2, (9, 24)), axis=0)
    domain = rp.Domain.from_sizes({"a": 2, "b": 3, "c": 4})
    names, budget = tuple(map(str, range(len(rows)))), rp.Budget(rho="0.5", exact=["a"])
    queries = rp.QueryList(domain, rows, names, np.ones(len(rows)))
    at_once = query_plan(queries, budget=budget)
    monkeypatch.setattr(replaced_counts, "_FIRST_CHANGES", 1)
    monkeypatch.setattr(replaced_counts, "_MORE_CHANGES", 10)
    some = query_plan(queries, budget=budget)
    assert some.certificate.gap < 1e-3
    assert some.certificate.loss_value == pytest.approx(at_once.certificate.loss_value, rel=1e-3)
    assert some.exact_privacy_cost == dearest_change(some.strategy, [("a",)]) / some.gamma_squared


def counts(*rows: np.ndarray) -> rp.QueryList:
    names = tuple(f"q{row}" for row in range(len(rows)))
    coefficients = np.array([row.ravel() for row in rows])
    return rp.QueryList(DOMAIN, coefficients, names, np.full(len(rows), 3))


def cells(sex: slice = slice(None), age: slice = slice(None), region: slice = slice(None)):
    row = np.zeros(DOMAIN.sizes, dtype=int)
    row[sex, age, region] = 1
    return row


def test_what_the_totals_tell_has_no_noise_also_together():
    women_north, women_south = (cells(sex=slice(1), region=slice(k, k + 1)) for k in (0, 1))
    old_women = cells(sex=slice(1), age=slice(2, 3))
    plan = query_plan(
        counts(women_north, women_south, old_women), budget=rp.Budget(rho="0.5", exact=["sex"])
    )
    assert plan.strategy.is_same.sum() == 1  # all women
    one, other, _ = plan.strategy.decoding[:, ~plan.strategy.is_same]
    assert one == pytest.approx(-other)  # whose noise is the other's
    assert np.all(plan.variances > 0)
    total = query_plan(
        counts(women_north + women_south, women_north), budget=rp.Budget(rho="0.5", exact=["sex"])
    )
    assert total.variances[0] == 0
    measured = np.rint(total.strategy.integers @ np.arange(12)).astype(np.int64)
    assert total.strategy.public_answers(measured) == {0: float(np.arange(6).sum())}


def test_levels_of_groups_of_cells_are_those_of_cells():
    """Where counts are of atoms, as those of more than 1,024 cells."""
    domain = rp.Domain.from_sizes({"age": 100, "sex": 2, "region": 8})
    row = np.zeros(domain.sizes, dtype=int)
    row[40:, 1, :3] = 1
    women = np.zeros(domain.sizes, dtype=int)
    women[:, 1] = 1
    of_atoms = rp.QueryList.of_cells(
        domain, np.stack([row.ravel(), women.ravel()]), ("some", "women"), [2, 2]
    )
    assert of_atoms.atoms is not None
    small = rp.Domain.from_sizes({"age": 2, "sex": 2, "region": 2})
    rows = np.zeros((2, 2, 2, 2), dtype=int)
    rows[0, 1, 1, 0], rows[1, :, 1] = 1, 1
    of_cells = rp.QueryList(small, rows.reshape(2, 8), ("some", "women"), np.array([2, 2]))
    budget = rp.Budget(rho="0.5", exact=["sex"])
    plans = [query_plan(queries, budget=budget) for queries in (of_atoms, of_cells)]
    assert plans[0].variances == pytest.approx(plans[1].variances)
    assert plans[0].variances[1] == 0


def test_what_cannot_be_planned_is_refused(monkeypatch):
    budget = rp.Budget(rho="0.5", exact=[("sex", "region")])
    with pytest.raises(PlanError, match="tell all own counts"):
        query_plan(counts(cells(sex=slice(1))), budget=budget)
    chain = rp.Budget(rho="0.5", exact=[("sex", "age"), ("age", "region")])
    with pytest.raises(PlanError, match="share attributes"):
        query_plan(counts(cells(slice(1), slice(1), slice(1))), budget=chain)
    monkeypatch.setattr(counts_moves, "MOST_COMBINATIONS", 3)
    with pytest.raises(PlanError, match="at most 3 combinations of values"):
        query_plan(
            counts(cells(sex=slice(1), age=slice(2))), budget=rp.Budget(rho=1, exact=["age"])
        )


def test_an_optimum_plans_for_the_totals_of_a_budget_and_tampering_is_noticed():
    queries = counts(cells(sex=slice(1), age=slice(2)), cells(region=slice(1)))
    budget = rp.Budget(rho="0.5", exact=["sex"])
    plan = query_plan(queries, budget=budget)
    assert query_optimum(queries).at(budget).to_text() == plan.to_text()
    assert not rp.verify(replace(plan, gamma_squared=plan.gamma_squared / 2)).holds
    assert plan.cell_pairs is not None
    two_alike = plan.cell_pairs[:, [0, 0, 3, 3]]  # which no exchange does
    assert not rp.verify(replace(plan, cell_pairs=two_alike)).holds
