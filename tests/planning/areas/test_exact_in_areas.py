"""Exact totals in areas: what changes of records that keep them cost, and what is then known."""

import itertools

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.dearest_in_areas import dearest_in_areas
from rpexplore.planning.losses.losses import Loss
from tests.planning.areas.test_area_bases import gram_of
from tests.planning.areas.test_replaced_in_areas import random_areas
from tests.support.area_trees import incidence

KINDS = (["area@region"], ["area@town"], ["sex"], ["area@region", ("sex", "age")], ["sex", "age"])


def planned(workload: rp.AreaWorkload, exact: list, loss: Loss | None = None) -> AreaPlan:
    budget = rp.Budget(rho="0.5", neighbours="replace", exact=exact)
    return plan_areas(workload, loss=loss or rp.SumOfVariances(), budget=budget)


def changes(workload: rp.AreaWorkload, exact: list) -> np.ndarray:
    """All changes of counts, over areas without parts × cells, that keep the exact totals.

    From their definition: every pair of records, every new record, every set that is exchanged.
    What does not keep a total is left out, by the totals themselves.
    """
    within, sizes = incidence(workload.tree), workload.domain.sizes.tolist()
    shape = (within.shape[1], *sizes)
    every = list(itertools.product(*map(range, shape)))
    place = {record: number for number, record in enumerate(every)}
    totals = [np.kron(within[:1], np.ones((1, int(np.prod(sizes)))))]
    for total in exact:
        names = [total] if isinstance(total, str) else list(total)
        rows, marginal = within[:1], np.ones((1, 1))
        if names[0].startswith("area@"):
            level = workload.tree.levels.index(names[0].removeprefix("area@"))
            rows = within[: workload.tree.level_slice(level).stop]
            names = []
        for name, n in zip(workload.domain.names, sizes, strict=True):
            marginal = np.kron(marginal, np.eye(n) if name in names else np.ones((1, n)))
        totals.append(np.kron(rows, marginal))
    together, found = np.vstack(totals), set()

    def add(gone: list[tuple[int, ...]], new: list[tuple[int, ...]]) -> None:
        change = np.zeros(len(every), dtype=np.int8)
        np.add.at(change, [place[record] for record in new], 1)
        np.add.at(change, [place[record] for record in gone], -1)
        found.add(change.tobytes())

    sides = [
        side for k in range(1, len(shape)) for side in itertools.combinations(range(len(shape)), k)
    ]
    for one, two in itertools.combinations(every, 2):
        add([one], [two])
        for side in sides:
            new = [
                tuple(own[k] if k in side else other[k] for k in range(len(shape)))
                for own, other in ((one, two), (two, one))
            ]
            add([one, two], new)
    every_change = np.array([np.frombuffer(change, dtype=np.int8) for change in found], dtype=float)
    return every_change[~np.any(every_change @ together.T, axis=1)]


@pytest.mark.parametrize("seeds", [(3, 9), pytest.param(range(24), marks=pytest.mark.nightly)])
def test_no_change_that_keeps_the_totals_costs_more_than_is_charged(seeds):
    ratios = []
    for seed, exact in itertools.product(seeds, KINDS):
        workload = random_areas(seed)
        try:
            plan = planned(workload, exact)
        except PlanError:  # no table of these has the totals
            continue
        gram, moved = gram_of(plan), changes(workload, exact)
        dearest = float(np.max(np.sum((moved @ gram) * moved, axis=1)))
        assert float(dearest_in_areas(plan)) == pytest.approx(dearest, rel=1e-9)
        ratios.append(float(plan.exact_privacy_cost) / dearest)
        assert plan.gap < 1.1e-4
    assert len(ratios) >= 8
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 2.5
