"""Custom losses: what CVXPY's rules allow, bounds, and what a file keeps of them."""

import csv

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.custom import CustomLoss, UnavailableLoss
from rpexplore.planning.losses.losses import PNorm
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.release import release

TARGETS = np.array([1.0, 2.0, 0.5, 3.0])
GOOD = {
    "sum": cp.sum,
    "largest": cp.max,
    "weighted": lambda V: TARGETS @ V,
    "norm": lambda V: cp.norm(V, 3),
    "squares": cp.sum_squares,
    "power": lambda V: cp.sum(cp.power(V, 1.5)),
    "excess": lambda V: cp.sum_squares(cp.pos(V - TARGETS)) + 1e-3 * cp.sum(V),
    "exponential": lambda V: cp.sum(cp.exp(V / 10)),
    "log-sum-exp": cp.log_sum_exp,
    "worst two": lambda V: cp.sum_largest(V, 2),
    "form": lambda V: cp.quad_form(V, np.diag(TARGETS)),
    "mixture": lambda V: cp.max(V) + cp.norm(V, 2) + 3,
}


@pytest.fixture(scope="module")
def workload():
    domain = rp.Domain.from_sizes({"a": 4, "b": 9})
    return rp.Workload.of(domain, [(), "a", "b", ("a", "b")], targets=TARGETS.tolist())


@pytest.mark.parametrize("name", GOOD)
def test_convex_nondecreasing_expressions_are_taken(workload, name):
    loss = CustomLoss(GOOD[name], name)
    np.testing.assert_array_equal(loss.table_weights(workload), np.ones(4))
    variances = np.array([2.0, 1.0, 4.0, 3.0])
    assert loss.value(variances, workload) == pytest.approx(
        GOOD[name](cp.Constant(variances)).value
    )


@pytest.mark.parametrize(
    "expression",
    [
        lambda V: cp.sum_squares(V - TARGETS),
        lambda V: cp.norm1(V - TARGETS),
        lambda V: -cp.sum(V),
        lambda V: V[0] - V[1],
        lambda V: cp.sum(cp.inv_pos(V)),
        lambda V: cp.sum(cp.sqrt(V)),
        lambda V: cp.min(V),
        lambda V: cp.sum(cp.multiply(V, V)) - cp.max(V),
    ],
)
def test_others_are_refused_with_a_remedy(workload, expression):
    with pytest.raises(WorkloadError, match=r"“mine” must be convex and never fall.*cvxpy\.pos"):
        CustomLoss(expression, "mine").table_weights(workload)


@pytest.mark.parametrize(
    ("expression", "messages"),
    [
        (lambda V: np.ones(3) @ V, r"applied to the variances of 4 tables .*number of its weights"),
        (lambda V: 2 * V, r"must give one real number .* of shape \(4,\); add cvxpy\.sum"),
        (lambda V: 3.0, r"must give one real number .* got float; add"),
        (lambda V: cp.sum(cp.pos(V - np.nan)), r"must be a finite .* got nan where all are 0"),
        (lambda V: cp.sum(cp.exp(1e4 * V)), r"must be a finite .* got inf where all are 1"),
        (lambda V: cp.sum(V) - 1, r"must not be negative, got -1 where all variances are 0"),
    ],
)
def test_unusable_values_are_refused(workload, expression, messages):
    with pytest.raises(WorkloadError, match=messages):
        CustomLoss(expression, "mine").table_weights(workload)


def test_it_needs_a_function_and_a_name():
    with pytest.raises(WorkloadError, match=r"must be a function .* got 'cp\.max'"):
        CustomLoss("cp.max", "mine")  # pyright: ignore[reportArgumentType]
    for name in ("", "  ", None):
        with pytest.raises(WorkloadError, match="needs a name"):
            CustomLoss(cp.max, name)  # pyright: ignore[reportArgumentType]


def test_its_name_is_in_its_words():
    loss = CustomLoss(cp.max, "worst case")
    assert "worst case" in loss.description
    assert "worst case" in loss.title


numbers = st.floats(-1, 1).map(lambda power: 10**power)
fours = st.lists(numbers, min_size=4, max_size=4).map(np.array)


@given(st.sampled_from(sorted(GOOD)), fours, st.lists(fours, min_size=5, max_size=5))
@settings(deadline=None, max_examples=14)
def test_minorants_hold_at_any_variances(workload, name, dual, others):
    loss = CustomLoss(GOOD[name], name)
    factor, offset = loss.minorant(dual, workload)
    for variances in (*others, np.zeros(4), 1e-9 * others[0], 1 / dual, 0.25 / dual):
        weighted = factor * np.sum(dual * variances)
        value = loss.value(variances, workload)
        assert weighted - offset <= value + 1e-12 * (value + weighted)


SMOOTH = ["sum", "weighted", "norm", "squares", "power", "excess", "exponential", "log-sum-exp"]


@given(st.sampled_from(SMOOTH), st.lists(fours, min_size=3, max_size=3))
@settings(deadline=None, max_examples=21)
def test_gradients_touch_the_loss_without_asking_a_solver(workload, name, points):
    """The gradient is that of finite differences, and the bound it makes is exact where it is."""
    loss, (near, *others) = CustomLoss(GOOD[name], name), points
    gradient = loss.gradient(near)
    assert gradient is not None
    if name != "excess" or np.all(np.abs(near - TARGETS) > 1e-3):
        steps = 1e-6 * near
        for table, step in enumerate(steps):
            moved = [
                loss.value(near + sign * step * np.eye(4)[table], workload) for sign in (1, -1)
            ]
            slope = (moved[0] - moved[1]) / (2 * step)
            assert gradient[table] == pytest.approx(slope, rel=1e-4, abs=1e-7)
    dual = gradient / np.sum(gradient * near)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "rpexplore.planning.losses.custom.smallest_value", None
        )  # calling it would fail
        factor, offset = loss.minorant(dual, workload, near=near)
    assert factor - offset == pytest.approx(loss.value(near, workload), rel=1e-12)
    for other in others:
        bound = factor * np.sum(dual * other) - offset
        assert bound <= loss.value(other, workload) * (1 + 1e-12)


@given(st.sampled_from([1.0, 2.0, 3.0, 5.0]), fours)
@settings(deadline=None, max_examples=10)
def test_minorants_are_those_of_closed_forms(workload, p, dual):
    known, _ = PNorm(p).minorant(dual, workload)
    factor, offset = CustomLoss(lambda V: cp.norm(V, p), "norm").minorant(dual, workload)
    assert factor - offset == pytest.approx(known, rel=1e-6)
    assert factor - offset < known * (1 + 1e-9), "the allowance is taken off, not put on"


def test_minorants_do_not_depend_on_where_they_are_looked_for(workload):
    loss = CustomLoss(GOOD["excess"], "excess")
    dual = np.array([1.0, 0.1, 0.0, 3.0])
    bounds = [
        np.subtract(*loss.minorant(dual, workload, near=near))
        for near in (None, np.ones(4), np.array([0.1, 1.0, 10.0, 3.0]))
    ]
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-6)


def test_a_bound_that_the_solver_cannot_find_is_an_error(workload, monkeypatch):
    monkeypatch.setattr(
        "rpexplore.planning.losses.custom.smallest_value", lambda problem, within: None
    )
    with pytest.raises(PlanError, match="could not bound the loss “mine” from below"):
        CustomLoss(cp.max, "mine").minorant(np.ones(4), workload)


def test_tables_that_are_left_out_are_named():
    three = CustomLoss(lambda V: cp.max(V[:3]) + cp.max(V[4:]), "mine")
    variances = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert three.left_out(variances, np.arange(5)) == 3
    assert three.left_out(variances, np.array([0, 1, 2, 4])) is None


# ---- in files


@pytest.fixture(scope="module")
def custom_plan():
    domain = rp.Domain.from_sizes({"a": 3, "b": 2})
    workload = rp.Workload.all_up_to(domain, 2)
    loss = rp.CustomLoss(lambda variances: cp.norm(variances, 3), "3-norm")
    return plan_tables(workload, loss=loss, budget=rp.Budget(rho=0.5))


def test_a_loss_read_from_a_file_is_called_by_its_name():
    loss = UnavailableLoss("my own")
    assert loss.description == "the loss “my own”"
    assert "my own" in loss.title


@pytest.mark.parametrize("name", ["", " \n", None, 3])
def test_a_loss_read_from_a_file_has_a_name(name):
    with pytest.raises(PlanError, match="must be named by a text, got"):
        UnavailableLoss(name)


def test_nothing_can_be_computed_or_planned_by_name_alone(custom_plan):
    loss, workload = UnavailableLoss("my own"), custom_plan.workload
    message = r"holds the name of the loss “my own”, .*give the CustomLoss of the script"
    variances = np.ones(len(workload))
    for call in (
        lambda: loss.table_weights(workload),
        lambda: loss.value(variances, workload),
        lambda: loss.minorant(variances, workload),
        lambda: plan_tables(workload, loss=loss, budget=rp.Budget(rho=1)),
        lambda: optimum(workload, loss=loss),
    ):
        with pytest.raises(PlanError, match=message):
            call()


def test_a_plan_is_saved_read_and_verified_by_the_name_alone(custom_plan, tmp_path):
    custom_plan.save(tmp_path / "plan.json")
    again = TablePlan.load(tmp_path / "plan.json")
    assert again.loss == UnavailableLoss("3-norm")
    assert again.text == custom_plan.text
    assert again.sha256 == custom_plan.sha256
    for plan in (custom_plan, again):
        assert rp.verify(plan).holds
    text = str(rp.verify(again))
    assert "stands in the script that made the plan, and is not checked" in text
    assert "weighted sum of variances" in text
    assert "is not checked" not in str(rp.verify(custom_plan))
    assert "3-norm" in str(again)


def test_a_plan_read_by_name_alone_can_be_released(custom_plan, tmp_path):
    plan = TablePlan.parse(custom_plan.text)
    data = tmp_path / "records.csv"
    with data.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b"])
        rows.writerows([row % 3, row % 2] for row in range(60))
    released = release(plan, data, tmp_path / "release")
    assert released.plan.sha256 == custom_plan.sha256
    assert len(released.table(("a", "b"))) == 6
