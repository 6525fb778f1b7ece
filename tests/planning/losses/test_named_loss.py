"""Own losses in plan files: their names are kept, what they are is not."""

import csv

import cvxpy
import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.losses.named_loss import UnavailableLoss
from rpexplore.planning.planner import optimum
from rpexplore.releases.table_release import release


@pytest.fixture(scope="module")
def made():
    domain = rp.Domain.from_sizes({"a": 3, "b": 2})
    workload = rp.Workload.all_up_to(domain, 2)
    loss = rp.CustomLoss(lambda variances: cvxpy.norm(variances, 3), "3-norm")
    return rp.plan(workload, loss=loss, budget=rp.Budget(rho=0.5))


def test_its_words():
    loss = UnavailableLoss("my own")
    assert loss.description == "the loss “my own”"
    assert "my own" in loss.aim


@pytest.mark.parametrize("name", ["", " \n", None, 3])
def test_it_has_a_name(name):
    with pytest.raises(PlanError, match="must be named by a text, got"):
        UnavailableLoss(name)


def test_nothing_can_be_computed_or_planned_with_it(made):
    loss, workload = UnavailableLoss("my own"), made.workload
    message = r"holds the name of the loss “my own”, .*give the CustomLoss of the script"
    variances = np.ones(len(workload))
    for call in (
        lambda: loss.table_weights(workload),
        lambda: loss.value(variances, workload),
        lambda: loss.minorant(variances, workload),
        lambda: rp.plan(workload, loss=loss, budget=rp.Budget(rho=1)),
        lambda: optimum(workload, loss=loss),
    ):
        with pytest.raises(PlanError, match=message):
            call()


def test_a_plan_is_saved_read_and_verified_by_the_name_alone(made, tmp_path):
    made.save(tmp_path / "plan.json")
    again = rp.Plan.load(tmp_path / "plan.json")
    assert again.loss == UnavailableLoss("3-norm")
    assert again.text == made.text
    assert again.sha256 == made.sha256
    for plan in (made, again):
        assert rp.verify(plan).holds
    words = str(rp.verify(again))
    assert "stands in the script that made the plan, so it is not checked" in words
    assert "weighted sum of variances" in words
    assert "is not checked" not in str(rp.verify(made))
    assert "3-norm" in str(again)


def test_it_can_be_released(made, tmp_path):
    plan = rp.Plan.parse(made.text)
    data = tmp_path / "records.csv"
    with data.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b"])
        rows.writerows([place % 3, place % 2] for place in range(60))
    released = release(plan, data, tmp_path / "release")
    assert released.plan.sha256 == made.sha256
    found = released.table(("a", "b"))
    assert len(found) == 6
