"""The command line: adaptive plans, made, shown, and refused where accuracy must be known."""

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.analysis.adaptive import TRIED, measured_when
from rpexplore.planning.adaptive import AdaptivePlan, adaptive_plan
from rpexplore.planning.planner import plan_tables
from rpexplore.results import smooth_choice
from rpexplore.results.rehearsal import POPULATIONS
from rpexplore.results.smooth_choice import SmoothChoice
from rpexplore.workload.smooth_weights import SmoothWeights

MADE = ("plan", "codebook.csv", "--of-order", "2", "--adaptive", "--rho", "0.1", "--out", "p.json")
COUNT = ("--expected-count", "900")


def test_a_plan_says_when_to_choose_it_and_what_unbiased_tables_would_be_worth(run):
    text = run.done(*MADE, *COUNT)
    plan = AdaptivePlan.load("p.json")
    expected = adaptive_plan(
        rp.Workload.all_of_order(plan.domain, 2), budget=rp.Budget(rho="0.1"), expected_records=900
    )
    assert plan.sha256 == expected.sha256
    assert all(part in text for part in (str(plan), plan.sha256, TRIED, "Adaptive, biased"))
    fixed = plan_tables(plan.workload, loss=rp.SumOfVariances(), budget=plan.budget)
    useful = rp.Forecast(fixed, expected=900)
    assert f"Unbiased tables at the same budget: {useful.describe()}" in text
    for facts in (run.json(*MADE, *COUNT, "--force"), run.json("show", "p.json", *COUNT)):
        assert "publishable" not in facts
        assert facts["forecast_if_unbiased"]["people"] == useful.people._asdict()
        first = facts["forecast_if_unbiased"]["first_step"]["people"]
        assert first == rp.Forecast(plan.first, expected=900).people._asdict()
        assert facts["candidate_count"] == 3
        assert facts["first_plan"]["sha256"] == plan.first.sha256
    made = run.json("forecast", "p.json", *COUNT)["forecast_if_unbiased"]
    assert made["people"] == useful.people._asdict()
    assert "biased" in run.done("show", "p.json")
    assert "rounds select" in run.done("verify", "p.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "goes with --expected-count N or --expected FILE"),
        ((*COUNT, "--loss", "max"), "--loss does not go with --adaptive"),
        ((*COUNT, "--target", "20"), "--target does not go with --adaptive"),
        ((*COUNT, "--basis", "age=prefix"), "--basis does not go with --adaptive"),
        ((*COUNT, "--smooth-weights"), "--smooth-weights does not go with --adaptive"),
    ],
)
def test_options_that_promise_accuracy_are_refused(run, options, message):
    assert message in run.refused(*MADE, *options)


@pytest.mark.parametrize("loses_less", [True, False])
def test_smooth_weights_that_lose_more_give_way_to_an_adaptive_plan_where_allowed(
    loses_less, run, monkeypatch
):
    """Which plan loses less is tried in `tests/results`: here a simulation that says so."""
    shares = dict.fromkeys(POPULATIONS, 0.1 if loses_less else 0.2)
    frame = pd.DataFrame([{"share": 0.5, **dict.fromkeys(POPULATIONS, 0.15)}])
    choice = SmoothChoice(SmoothWeights(0.1, 900, by_cell=0.2), 0.5, frame, shares)
    monkeypatch.setattr(smooth_choice, "choose_smooth_weights", lambda *_, **__: choice)
    options = (*(option for option in MADE if option != "--adaptive"), *COUNT, "--smooth-weights")
    text = run.done(*options)
    assert rp.Plan.load("p.json").part("tables") is not None
    assert ("Add --allow-adaptive" in text) == loses_less
    run.done(*options, "--allow-adaptive", "--force")
    made = rp.Plan.load("p.json")
    if loses_less:
        run.done(*MADE, *COUNT, "--out", "adaptive.json")
        assert made.sha256 == rp.Plan.load("adaptive.json").sha256
    else:
        assert made.part("rounds") is None
    alone = ("plan", "codebook.csv", "--of-order", "2", "--rho", "0.1", "--out", "q.json")
    assert "give --smooth-weights as well" in run.refused(*alone, *COUNT, "--allow-adaptive")
    refusal = run.refused(*options, "--force", "--allow-adaptive", "--target", "20")
    assert "--target does not go with --allow-adaptive" in refusal
    refusal = run.refused(*options, "--force", "--allow-adaptive", "--pilot", "5%")
    assert "--pilot does not go with --allow-adaptive" in refusal  # whatever simulations say


def test_it_is_rehearsed_beside_a_fixed_plan_and_compared_with_nothing_else(run):
    run.done(*MADE, *COUNT)
    errors = run.json("simulate", "p.json", *COUNT)["errors"]
    assert [(row["order"], row["tables"]) for row in errors] == [(2, 3)]
    # (900 records in tables of 4 to 6 cells, at ρ = 0.1: some records, far from all.)
    assert all(0 < row[name] < 0.5 for row in errors for name in ("adaptive", "fixed"))
    assert "need expected counts" in run.refused("simulate", "p.json")
    assert "an adaptive plan" in run.refused("compare", "p.json")


def test_the_steps_of_a_plan_add_up_to_its_budget():
    domain = rp.Domain.from_sizes({"a": 3, "b": 2, "c": 4})
    budget = rp.Budget(rho="0.4", max_records_per_person=2)
    plan = adaptive_plan(rp.Workload.all_of_order(domain, 3), budget=budget, expected_records=10**5)
    steps = measured_when(plan)
    assert steps["share"].sum() == pytest.approx(1)
    # For a person with two records: four times ρ of a record. A tenth of a round is to select.
    assert steps["measurement_rho"][0] == pytest.approx(4 * float(plan.first.record_rho))
    assert (steps["selection_rho"] + steps["measurement_rho"]).sum() == pytest.approx(0.4)
    assert steps["selection_rho"][1:].sum() == pytest.approx(steps["measurement_rho"][1:].sum() / 9)
