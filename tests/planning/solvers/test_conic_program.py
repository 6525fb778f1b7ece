"""Custom losses by the conic solver: certificates, brute force, symmetry, what is refused."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers import conic_program
from rpexplore.planning.solvers.conic_program import minimise_conic, single_classes
from rpexplore.planning.solvers.largest_variance import minimise_maximum
from rpexplore.planning.solvers.solution import minimise_sum
from tests.support.generalised import any_strategies
from tests.support.oracles import (
    check_dual_certificate,
    random_workload,
    smallest_loss_by_brute_force,
)
from tests.support.strategies import domains, workloads, workloads_with_bases

EXPRESSIONS = {
    "norm": lambda V: cp.norm(V, 3),
    "largest": cp.max,
    "log-sum-exp": cp.log_sum_exp,
    "squares": cp.sum_squares,
    "excess": lambda V: cp.sum_squares(cp.pos(V - 0.01)) + 1e-3 * cp.sum(V),
    "mixture": lambda V: 0.1 * cp.sum(V) + cp.max(V),
    "worst two": lambda V: cp.sum_largest(V, min(2, V.size)),
}
LOSSES = [CustomLoss(expression, name) for name, expression in EXPRESSIONS.items()]
# Others have no values that the solver can tell apart where variances are far from 1.
SCALE_FREE = [loss for loss in LOSSES if loss.name in ("norm", "largest", "mixture", "worst two")]
COST = 0.3


def squared_excess(workload):
    """Mean over tables of (Var/target² − 1)₊² and a little of Var/target²: not homogeneous."""
    relative = 1 / workload.targets**2 / len(workload)

    def expression(variances):
        ratios = cp.multiply(relative * len(workload), variances)
        return cp.sum_squares(cp.pos(ratios - 1)) / len(workload) + 1e-3 * (relative @ variances)

    return CustomLoss(expression, "squared excess")


@given(workloads(with_targets=True, max_tables=8), st.sampled_from(LOSSES))
@settings(deadline=None, max_examples=16)
def test_plans_are_certified(workload, loss):
    closure = Closure.of(workload)
    solution = minimise_conic(closure, workload, loss, COST)
    check_dual_certificate(solution, loss, workload, closure, COST)


@given(workloads_with_bases(workloads()), st.sampled_from(SCALE_FREE), st.integers(0, 3))
@settings(deadline=None, max_examples=10)
def test_plans_are_certified_for_any_query_basis(workload, loss, seed):
    closure = Closure.of(workload).with_strategies(workload, any_strategies(workload, seed))
    solution = minimise_conic(closure, workload, loss, COST)
    check_dual_certificate(solution, loss, workload, closure, COST)


@pytest.mark.parametrize(
    "loss",
    [*LOSSES[:2], *(pytest.param(loss, marks=pytest.mark.nightly) for loss in LOSSES[2:])],
    ids=lambda loss: loss.name,
)
def test_no_plan_found_by_brute_force_is_better(loss):
    domain = rp.Domain.from_sizes({"a": 2, "b": 4})
    workload = rp.Workload.of(domain, [(), "a", ("a", "b")])
    closure = Closure.of(workload)
    least = smallest_loss_by_brute_force(loss, workload, COST)
    solution = minimise_conic(closure, workload, loss, COST)
    value = loss.value(closure.variances(solution.sigma_squared), workload)
    assert solution.lower_bound <= least
    assert value <= least * (1 + 1e-6)
    assert least <= solution.lower_bound * (1 + 1e-3), "brute force comes near"


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(8))
def test_known_cases_come_out(seed):
    workload = random_workload(seed)
    closure, weights, n_tables = Closure.of(workload), workload.weights, len(workload)

    def conic(expression):
        return minimise_conic(closure, workload, CustomLoss(expression, "mine"), COST).lower_bound

    total = minimise_sum(closure, weights, COST).lower_bound
    largest = minimise_maximum(closure, weights, COST).lower_bound
    assert conic(lambda V: weights @ V) == pytest.approx(total, rel=1e-6)
    assert conic(lambda V: cp.max(cp.multiply(weights, V))) == pytest.approx(largest, rel=1e-6)
    for share in (0.001, 0.4, 0.999):
        in_mean = (1 - share) / n_tables * weights
        fixed = closure.residual_weights(in_mean)
        between = minimise_maximum(closure, share * weights, COST, fixed_weights=fixed)
        mixture = conic(
            lambda V, share=share, in_mean=in_mean: (
                in_mean @ V + share * cp.max(cp.multiply(weights, V))
            )
        )
        assert mixture == pytest.approx(between.lower_bound, rel=1e-6)


merging = workloads(domains(max_size=3), weights=st.just(1.0), max_tables=12)


@given(merging, st.sampled_from(LOSSES))
@settings(deadline=None, max_examples=14)
def test_merged_is_as_good_as_unmerged(workload, loss):
    closure = Closure.of(workload)
    merged = minimise_conic(closure, workload, loss, COST)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            conic_program,
            "symmetric_classes",
            lambda closure, weights, apart: single_classes(closure, weights),
        )
        single = minimise_conic(closure, workload, loss, COST)
    values = [loss.value(closure.variances(s.sigma_squared), workload) for s in (merged, single)]
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
    alike = CustomLoss(lambda V: cp.norm(V, 3), "alike")
    solution = minimise_conic(closure, workload, alike, COST)
    check_dual_certificate(solution, alike, workload, closure, COST)
    assert seen == [3]
    ramp = 1 + np.arange(len(workload))
    unlike = CustomLoss(lambda V: cp.norm(cp.multiply(ramp, V), 3), "unlike")
    solution = minimise_conic(closure, workload, unlike, COST)
    check_dual_certificate(solution, unlike, workload, closure, COST)
    assert seen == [3, len(closure)]
    seen.clear()
    # Symmetric as far as the swaps that are tried can tell, for want of trying.
    monkeypatch.setattr(conic_program, "is_same_when_swapped", lambda *_: True)
    solution = minimise_conic(closure, workload, unlike, COST)
    check_dual_certificate(solution, unlike, workload, closure, COST)
    assert seen[0] == 3
    assert seen[-1] == len(closure), "the certificate shows what merging missed"


def test_a_loss_that_leaves_a_table_out_is_refused():
    workload = random_workload(1)
    left_out = workload.describe(len(workload) - 1)
    loss = CustomLoss(lambda V: cp.norm(V[:-1]), "most")
    with pytest.raises(PlanError) as raised:
        minimise_conic(Closure.of(workload), workload, loss, COST)
    assert "takes no notice" in str(raised.value)
    assert left_out in str(raised.value)


def test_a_loss_that_can_be_nothing_is_refused():
    workload = random_workload(1)
    loss = CustomLoss(lambda V: cp.sum_squares(cp.pos(V - 1e9)), "excess")
    with pytest.raises(PlanError, match=r"is 0 at this budget .* 1e-3 \* cvxpy\.sum\(V\)"):
        minimise_conic(Closure.of(workload), workload, loss, COST)


def test_a_solver_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(conic_program, "smallest_value", lambda problem, within: None)
    workload = random_workload(1)
    with pytest.raises(PlanError, match="No plan could be proven good for the loss “squares”"):
        minimise_conic(Closure.of(workload), workload, LOSSES[3], COST)


def test_a_bound_above_a_loss_that_is_reached_is_not_believed(monkeypatch):
    monkeypatch.setattr(CustomLoss, "minorant", lambda self, dual, workload, near: (1e6, 0.0))
    workload = random_workload(1)
    with pytest.raises(PlanError, match="No plan could be proven good"):
        minimise_conic(Closure.of(workload), workload, LOSSES[3], COST)


@pytest.mark.parametrize("cost", [1e-4, 1e-2, 1, 1e2, 1e4])
@pytest.mark.parametrize("seed", range(4))
def test_squared_excess_at_any_budget(seed, cost):
    """From all targets far out of reach to all of them met."""
    workload = random_workload(seed)
    closure, loss = Closure.of(workload), squared_excess(workload)
    solution = minimise_conic(closure, workload, loss, cost)
    check_dual_certificate(solution, loss, workload, closure, cost)


def test_progress_is_reported():
    workload, shares = random_workload(2), []
    minimise_conic(
        Closure.of(workload),
        workload,
        LOSSES[0],
        COST,
        1e-9,
        on_progress=lambda _, share: shares.append(share),
    )
    assert shares
