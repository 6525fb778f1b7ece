"""Any convex loss: special solvers, the conic one and brute force agree; nothing is overspent."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.losses.custom import ConvexLoss
from rpexplore.planning.losses.p_norm import MeanAndMax, PNorm, SquaredExcess, TailMean
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers import conic_program
from rpexplore.planning.solvers.conic_program import minimise_conic
from rpexplore.planning.solvers.convex import minimise_convex
from rpexplore.planning.solvers.max_variance import minimise_maximum
from rpexplore.planning.solvers.solution import dual_bound
from rpexplore.planning.solvers.symmetry import single_classes
from rpexplore.planning.solvers.weighted_sum import minimise_sum
from tests.support.generalised import any_strategies
from tests.support.oracles import random_workload, variance_matrix
from tests.support.strategies import asked_workloads, domains, workloads

LOSSES = [
    PNorm(1),
    PNorm(2),
    PNorm(3.3, "target"),
    PNorm(20),
    MeanAndMax(0.01),
    MeanAndMax(0.3, "target"),
    MeanAndMax(0.99),
    TailMean(0.05),
    TailMean(0.37),
    TailMean(0.5, "target"),
    TailMean(1),
    SquaredExcess(),
]
OWN = {
    "norm": lambda V: cp.norm(V, 3),
    "largest": cp.max,
    "log-sum-exp": cp.log_sum_exp,
    "squares": cp.sum_squares,
    "excess": lambda V: cp.sum_squares(cp.pos(V - 0.01)) + 1e-3 * cp.sum(V),
    "mixture": lambda V: 0.1 * cp.sum(V) + cp.max(V),
}
COST = 0.3


def value_of(loss, workload, closure, found):
    return loss.value(closure.variances(found.sigma_squared), workload)


def check(found, loss, workload, closure, cost=COST, gap=1e-6):
    """The certificate is that of the dual weights, the gap is closed, nothing is overspent."""
    value = value_of(loss, workload, closure, found)
    assert 0 < found.lower_bound <= value <= found.lower_bound * (1 + gap)
    spent = np.sum(closure.privacy_cost_factor / found.sigma_squared)
    assert spent == pytest.approx(cost, rel=1e-12)
    variances = closure.variances(found.sigma_squared)
    np.testing.assert_allclose(found.shadow_prices, found.dual_weights * variances, atol=1e-12)
    assert np.sum(found.shadow_prices) == pytest.approx(1, rel=1e-12)
    factor, offset = loss.minorant(found.dual_weights, workload)
    in_sum = closure.residual_weights(found.dual_weights)
    bound = factor * dual_bound(closure.privacy_cost_factor, in_sum, cost) - offset
    assert found.lower_bound == pytest.approx(bound, rel=5e-7)


@given(workloads(with_targets=True, max_tables=10), st.sampled_from(LOSSES))
@settings(deadline=None, max_examples=28)
def test_special_solvers_agree_with_the_conic_one(workload, loss):
    closure = Closure.of(workload)
    special = minimise_convex(closure, workload, loss, COST)
    conic = minimise_conic(closure, workload, loss, COST)
    check(special, loss, workload, closure)
    check(conic, loss, workload, closure)
    values = [value_of(loss, workload, closure, each) for each in (special, conic)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@given(asked_workloads(workloads(with_targets=True)), st.sampled_from(LOSSES), st.integers(0, 3))
@settings(deadline=None, max_examples=10)
def test_it_holds_for_attributes_asked_in_any_way(workload, loss, seed):
    closure = Closure.of(workload).measured_by(workload, any_strategies(workload, seed))
    check(minimise_convex(closure, workload, loss, COST), loss, workload, closure)


@pytest.mark.parametrize("seed", range(8))
def test_known_cases_come_out(seed):
    workload = random_workload(seed)
    closure, weights, n_tables = Closure.of(workload), workload.weights, len(workload)

    def conic(loss):
        return minimise_conic(closure, workload, loss, COST).lower_bound

    total = minimise_sum(closure, weights, COST).lower_bound
    largest = minimise_maximum(closure, weights, COST).lower_bound
    assert conic(PNorm(1)) == pytest.approx(total, rel=1e-6)
    assert conic(TailMean(1)) == pytest.approx(total / n_tables, rel=1e-6)
    assert conic(TailMean(1 / n_tables)) == pytest.approx(largest, rel=1e-6)
    high = conic(PNorm(30))
    assert largest * (1 - 1e-6) <= high <= largest * n_tables ** (1 / 30)
    for share in (0.001, 0.4, 0.999):
        fixed = closure.residual_weights((1 - share) / n_tables * weights)
        between = minimise_maximum(closure, share * weights, COST, fixed_weights=fixed)
        assert conic(MeanAndMax(share)) == pytest.approx(between.lower_bound, rel=1e-6)


@pytest.mark.parametrize(
    "loss",
    [*LOSSES, *(ConvexLoss(OWN[name], name) for name in OWN)],
    ids=lambda loss: getattr(loss, "name", repr(loss)),
)
def test_no_plan_found_by_brute_force_is_better(loss):
    domain = rp.Domain.from_sizes({"a": 2, "b": 4})
    workload = rp.Workload.of(
        domain, [(), "a", ("a", "b")], weights=[1, 3, 0.5], targets=[0.5, 2, 1]
    )
    closure = Closure.of(workload)
    b, p = variance_matrix(workload)

    def loss_at(logs):
        sigma_squared = np.exp(logs)
        sigma_squared *= np.sum(p / sigma_squared) / COST
        return loss.value(b @ sigma_squared, workload)

    rng = np.random.default_rng(0)
    tries = [
        minimize(
            loss_at,
            rng.normal(0, 1, 4),
            method="Nelder-Mead",
            options={"maxiter": 4000, "maxfev": 4000, "xatol": 1e-10, "fatol": 1e-14},
        )
        for _ in range(3)
    ]
    least = min(each.fun for each in tries)
    found = minimise_convex(closure, workload, loss, COST)
    assert found.lower_bound <= least
    assert value_of(loss, workload, closure, found) <= least * (1 + 1e-6)
    assert least <= found.lower_bound * (1 + 1e-3), "brute force comes near"


@given(workloads(with_targets=True, max_tables=8), st.sampled_from(sorted(OWN)))
@settings(deadline=None, max_examples=14)
def test_own_losses_have_certified_plans(workload, name):
    closure, loss = Closure.of(workload), ConvexLoss(OWN[name], name)
    check(minimise_convex(closure, workload, loss, COST), loss, workload, closure)


@pytest.mark.parametrize("seed", range(4))
def test_own_expressions_of_ready_made_losses_agree_with_them(seed):
    workload = random_workload(seed)
    closure, weights, n = Closure.of(workload), workload.weights, len(workload)
    pairs = [
        (PNorm(2), lambda V: cp.norm(cp.multiply(weights, V), 2)),
        (
            MeanAndMax(0.5),
            lambda V: 0.5 / n * (weights @ V) + 0.5 * cp.max(cp.multiply(weights, V)),
        ),
        (TailMean(2 / n), lambda V: cp.sum_largest(cp.multiply(weights, V), 2) / 2),
    ]
    for loss, expression in pairs:
        own = ConvexLoss(expression, "mine")
        found = minimise_convex(closure, workload, own, COST)
        ready = minimise_convex(closure, workload, loss, COST)
        assert found.lower_bound == pytest.approx(ready.lower_bound, rel=1e-6)


merging = workloads(domains(max_size=3), weights=st.just(1.0), max_tables=12, with_targets=True)


@given(merging, st.sampled_from([loss for loss in LOSSES if "target" not in repr(loss)]))
@settings(deadline=None, max_examples=14)
def test_merged_is_as_good_as_unmerged(workload, loss):
    closure = Closure.of(workload)
    merged = minimise_conic(closure, workload, loss, COST)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            conic_program,
            "symmetric_classes",
            lambda closure, weights: single_classes(closure, weights),
        )
        single = minimise_conic(closure, workload, loss, COST)
    values = [value_of(loss, workload, closure, each) for each in (merged, single)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_an_own_loss_is_merged_only_where_it_is_symmetric(monkeypatch):
    domain = rp.Domain.from_sizes({f"a{i}": 4 for i in range(5)})
    workload = rp.Workload.all_up_to(domain, 2)
    closure = Closure.of(workload)
    seen = []
    solved = conic_program._Problem._proposal
    monkeypatch.setattr(
        conic_program._Problem,
        "_proposal",
        lambda self, classes, unit: seen.append(len(classes.costs)) or solved(self, classes, unit),
    )
    alike = ConvexLoss(lambda V: cp.norm(V, 3), "alike")
    check(minimise_convex(closure, workload, alike, COST), alike, workload, closure)
    assert seen == [3]
    ramp = 1 + np.arange(len(workload))
    unlike = ConvexLoss(lambda V: cp.norm(cp.multiply(ramp, V), 3), "unlike")
    check(minimise_convex(closure, workload, unlike, COST), unlike, workload, closure)
    assert seen == [3, len(closure)]
    seen.clear()
    # Symmetric as far as the swaps that are tried can tell, for want of trying.
    monkeypatch.setattr(ConvexLoss, "is_same_when_swapped", lambda self, variances, classes: True)
    check(minimise_convex(closure, workload, unlike, COST), unlike, workload, closure)
    assert seen[0] == 3
    assert seen[-1] == len(closure), "the certificate shows what merging missed"


def test_a_loss_that_leaves_a_table_out_is_refused():
    workload = random_workload(1)
    left_out = workload.describe(len(workload) - 1)
    loss = ConvexLoss(lambda V: cp.norm(V[:-1]), "most")
    with pytest.raises(PlanError) as raised:
        minimise_convex(Closure.of(workload), workload, loss, COST)
    assert "takes no notice" in str(raised.value)
    assert left_out in str(raised.value)


def test_a_loss_that_can_be_nothing_is_refused():
    workload = random_workload(1)
    loss = ConvexLoss(lambda V: cp.sum_squares(cp.pos(V - 1e9)), "excess")
    with pytest.raises(PlanError, match=r"is 0 at this budget .* 1e-3 \* cvxpy\.sum\(V\)"):
        minimise_convex(Closure.of(workload), workload, loss, COST)


def test_a_solver_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(conic_program, "smallest_value", lambda problem, within: None)
    workload = random_workload(1)
    with pytest.raises(PlanError, match="No plan could be proven good for the squared excess"):
        minimise_convex(Closure.of(workload), workload, SquaredExcess(), COST)


def test_a_bound_above_a_loss_that_is_reached_is_not_believed(monkeypatch):
    monkeypatch.setattr(SquaredExcess, "minorant", lambda self, dual, workload: (1e6, 0.0))
    workload = random_workload(1)
    with pytest.raises(PlanError, match="No plan could be proven good"):
        minimise_convex(Closure.of(workload), workload, SquaredExcess(), COST)


@pytest.mark.parametrize("cost", [1e-4, 1e-2, 1, 1e2, 1e4])
@pytest.mark.parametrize("seed", range(4))
def test_squared_excess_at_any_budget(seed, cost):
    """From all targets far out of reach to all of them met."""
    workload, loss = random_workload(seed), SquaredExcess()
    closure = Closure.of(workload)
    check(minimise_convex(closure, workload, loss, cost), loss, workload, closure, cost)


def test_progress_is_told():
    workload, told = random_workload(2), []
    for loss in (TailMean(0.4), MeanAndMax(0.9), PNorm(30), SquaredExcess()):
        before = len(told)
        minimise_convex(Closure.of(workload), workload, loss, COST, 1e-9, note=told.append)
        assert len(told) > before
