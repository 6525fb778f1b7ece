"""Exact totals in areas: what changes of records that keep them cost, and what is then known."""

import itertools
import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.dearest_in_areas import dearest_in_areas
from rpexplore.planning.losses.losses import Loss
from tests.planning.areas.test_area_bases import gram_of
from tests.planning.areas.test_area_plan_file import tampered
from tests.planning.areas.test_replaced_in_areas import random_areas
from tests.support.area_trees import incidence
from tests.support.explicit_optimum import dense_queries
from tests.support.plan_schemas import PLAN_VALIDATOR

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


@pytest.mark.parametrize("seeds", [(3,), pytest.param(range(24), marks=pytest.mark.nightly)])
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
    assert len(ratios) >= 4
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 2.5


def test_variances_and_loss_are_those_of_everything_that_is_known():
    workload, exact = random_areas(3), ["area@region"]
    plan = planned(workload, exact)
    within, sizes = incidence(workload.tree), plan.domain.sizes.tolist()
    known = np.kron(within[: workload.tree.level_slice(1).stop], np.ones((1, int(np.prod(sizes)))))
    gram = gram_of(plan)
    # What is known exactly leaves the directions in which it is 0.
    kept = np.linalg.svd(known)[2][np.linalg.matrix_rank(known) :].T
    covariance = kept @ np.linalg.pinv(kept.T @ gram @ kept, hermitian=True) @ kept.T
    total = 0.0
    for area, kind in enumerate(workload.kinds.tolist()):
        asked = workload.workloads[kind]
        queries, tables = dense_queries(asked)
        queries = np.kron(within[area], queries)
        variances = np.einsum("qi,ij,qj->q", queries, covariance, queries)
        means = plan.table_variances(kind)
        group = plan.groups.of_area[area]
        column = np.searchsorted(np.flatnonzero(plan.groups.kinds == kind), group)
        for row in range(len(asked)):
            mean = float(np.mean(variances[tables == row]))
            assert means[row, column] == pytest.approx(mean, abs=1e-9)
            total += mean * asked.weights[row] / workload.areas_asked[kind]
    assert plan.loss_value == pytest.approx(total)


@pytest.mark.parametrize(
    "loss", [rp.SumOfVariances(), rp.MaxVariance()], ids=["the sum", "the largest"]
)
def test_a_plan_is_saved_and_holds_and_is_refused_with_noise_in_an_exact_total(loss, tmp_path):
    plan = planned(random_areas(3), ["area@region"], loss)
    plan.save(tmp_path / "plan.json")
    loaded = AreaPlan.load(tmp_path / "plan.json")
    assert loaded.exact_levels.tolist() == plan.exact_levels.tolist()
    assert rp.verify(loaded).holds
    assert "a change that keeps the exact totals costs in it" in str(rp.verify(loaded))
    PLAN_VALIDATOR.validate(json.loads(plan.text))
    errors = plan.accuracy()
    is_exact = (errors["item"] == "(total)") & (errors["level"] != "town")
    assert np.all((errors["largest_standard_error"] == 0) == is_exact)

    def noisy(columns):
        columns["multiple_0"][0] = 1

    path = tampered(tmp_path, None, noisy)
    with pytest.raises(PlanError, match="must have no noise"):
        AreaPlan.load(path)


@pytest.mark.parametrize(
    ("exact", "message"),
    [
        (["area@village"], "there is no level village; the levels are all, region and town"),
        (["income"], "areas are written as area@all, area@region or area@town"),
        ([("area@region", "sex")], "but no table of other areas; leave the attributes or"),
        (["area@town", ("sex", "age")], "no table of the level all has it; ask for that table"),
        (["area@town", "sex", "age"], "so are exact totals; nothing else is asked for"),
    ],
)
def test_what_is_not_known_is_refused_in_a_sentence(exact, message):
    tree = rp.AreaTree.from_columns({"region": [*"NS"], "town": [*"12"]})
    tables = rp.Workload.of(rp.Domain.from_sizes({"sex": 2, "age": 5}), [("sex",), ("age",)])
    totals = rp.Workload.of(tables.domain, [()])
    asked = rp.AreaWorkload.of_levels(tree, {"all": tables, "region": totals, "town": totals})
    with pytest.raises(PlanError, match=message):
        rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5", exact=exact))


def test_totals_that_share_attributes_leave_nothing_unprotected_unsaid():
    tree = rp.AreaTree.from_columns({"region": [*"NS"]})
    domain = rp.Domain.from_sizes({"a": 2, "b": 2, "c": 2})
    asked = rp.AreaWorkload.of_levels(tree, {"all": rp.Workload.all_up_to(domain, 2)})
    with pytest.raises(PlanError, match="changes a × c of the level all, which would not be"):
        planned(asked, [("a", "b"), ("b", "c")])


def test_totals_of_areas_alone_are_planned():
    """Of two towns of a region, σ² = 4 for their difference: a move of one record changes it by 2.

    So that ρ = 4 / (2 σ²) = 1/2, and each town, half the region plus half the difference, has 1.
    """
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"123"]})
    totals = rp.Workload.of(rp.Domain.from_sizes({"sex": 2}), [()])
    asked = rp.AreaWorkload.of_levels(tree, {"region": totals, "town": totals})
    errors = planned(asked, ["area@region"]).accuracy().set_index("level")["largest_standard_error"]
    assert errors["region"] == 0
    assert errors["town"] == pytest.approx(1)
    assert planned(asked, []).accuracy()["largest_standard_error"].min() > 1
