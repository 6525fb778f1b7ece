"""--minimum-budget: the smallest budget that meets targets, from the command line."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.table_plan import TablePlan
from rpexplore.planning.verification import verify
from tests.cli.program import Program

EACH = ("--table", "age", "--table", "sex,region")
BOTH = ("--target", "age=±20", "--target", "sex,region=12")


def planned(run: Program, *options: str) -> TablePlan:
    run.done("plan", "codebook.csv", *options, "--out", "plan.json", "--force")
    loaded = TablePlan.load("plan.json")
    assert verify(loaded).holds
    return loaded


def largest_ratio(plan: TablePlan, required: bool = False) -> float:
    """Largest standard error of a table over its target, of those that must be met or all."""
    ratios = plan.largest_standard_errors / plan.workload.targets
    return float(np.nanmax(ratios[plan.workload.required] if required else ratios))


UNIT = ["--delta", "1e-9"]
PERSONS = ["--records-per-person", "2"]
BASES = ["--basis", "region=ranges", "--basis", "age=prefix"]
BY_DAY = [([], [], BASES), (UNIT, PERSONS, [])]
BY_NIGHT = [each for each in product([[], UNIT], [[], PERSONS], [[], BASES]) if each not in BY_DAY]


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("unit", "persons", "arguments"),
    [*BY_DAY, *(pytest.param(*each, marks=pytest.mark.nightly) for each in BY_NIGHT)],
)
def test_where_every_table_has_a_target_all_are_just_met(run, unit, persons, arguments):
    more = [*EACH, *BOTH, *arguments, *persons]
    plan = planned(run, *more, "--minimum-budget", "targets", *unit)
    assert plan.loss == rp.MaxVariance(relative_to="target")
    assert set(dict(plan.budget.stated)) == ({"epsilon", "delta"} if unit else {"rho"})
    assert plan.budget.max_records_per_person == (2 if persons else None)
    assert 0.9999 < largest_ratio(plan) <= 1
    # The best plan of a budget that is smaller by a thousandth misses one of them.
    less = str(plan.budget.rho * Fraction(999, 1000))
    loss = ["--loss", "max", "--relative-to", "target", "--rho", less]
    assert largest_ratio(planned(run, *more, *loss)) > 1


def test_tables_without_a_target_get_a_tenth_more(run):
    plan = planned(run, "--up-to", "2", *BOTH, "--minimum-budget", "targets")
    assert plan.loss == rp.SumWithinTargets()
    # All targets have to be met, so that the average of the others cannot go before them.
    np.testing.assert_array_equal(plan.workload.required, ~np.isnan(plan.workload.targets))
    assert largest_ratio(plan) <= 1 + 1e-9
    needed = rp.minimum_budget(plan.workload).record_privacy_cost
    assert float(plan.budget.privacy_cost) == pytest.approx(1.1 * needed, rel=1e-4)
    assert np.all(np.isfinite(plan.mean_variances))


def test_for_required_the_other_targets_are_met_in_proportion(run):
    targets = ["--target", "age=±20 required", "--target", "sex,region=0.01"]
    plan = planned(run, *EACH, *targets, "--minimum-budget", "required", "--weighting", "cells")
    assert plan.loss == rp.SumWithinTargets("cells")
    assert plan.workload.required.tolist() == [True, False]
    assert largest_ratio(plan, required=True) <= 1 + 1e-9
    assert largest_ratio(plan) > 1
    needed = rp.minimum_budget(plan.workload, required_only=True).record_privacy_cost
    assert float(plan.budget.privacy_cost) == pytest.approx(1.1 * needed, rel=1e-4)


@pytest.mark.parametrize("loss", ["required", "required-then-targets"])
@pytest.mark.parametrize("arguments", [[], ["--basis", "region=ranges"]])
def test_losses_that_put_required_first_can_be_chosen(run, loss, arguments):
    targets = ["--target", "age=±20 required", "--target", "sex,region=50"]
    plan = planned(run, *EACH, *targets, *arguments, "--minimum-budget", "required", "--loss", loss)
    assert largest_ratio(plan, required=True) <= 1 + 1e-9


def test_it_says_why_it_is_that_budget(run):
    arguments = [
        "plan",
        "codebook.csv",
        *EACH,
        *BOTH,
        "--minimum-budget",
        "targets",
        "--out",
        "plan.json",
    ]
    text = run.done(*arguments)
    rho = TablePlan.load("plan.json").budget.rho
    assert text.startswith("The 2 targets take ρ = ")
    assert f"{float(rho):.4g}"[:6] in text.partition(".\n")[0]
    assert "binding: " in text
    assert "they get something" not in text
    facts = run.json(*arguments, "--force")
    assert facts["why"] == text.partition("\n")[0]
    with_others = ["plan", "codebook.csv", "--up-to", "1", "--target", "age=±20"]
    text = run.done(*with_others, "--minimum-budget", "targets", "--out", "others.json")
    assert "nothing is left for tables without a target" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minimum-budget", "targets", "--rho", "1"], "--minimum-budget finds the budget"),
        (["--minimum-budget", "targets", "--epsilon", "1"], "leave --epsilon out"),
        (["--minimum-budget", "required"], "No target is marked required"),
        (["--minimum-budget", "targets", "--loss", "sum"], "leave --loss out"),
        (
            ["--minimum-budget", "required", "--loss", "max"],
            "(required, required-then-targets), got max",
        ),
        (
            ["--minimum-budget", "targets", "--loss", "max", "--relative-to", "weight"],
            "sees to it that they are met",
        ),
        (["--minimum-budget", "targets", "--weighting", "cells"], "--weighting belongs to"),
        (
            ["--minimum-budget", "required", "--count", "old: age = 'old' @ 9"],
            "say --minimum-budget targets",
        ),
        (["--minimum-budget", "all"], "see rpexplore plan --help."),
    ],
)
def test_what_does_not_go_together_is_refused(run, options, message):
    result = run.refused("plan", "codebook.csv", *EACH, *BOTH, *options, "--out", "plan.json")
    assert message in result
    assert "plan.json" not in run.files()


def test_without_targets_there_is_no_smallest_budget(run):
    arguments = ["plan", "codebook.csv", *EACH, "--minimum-budget", "targets", "--out", "plan.json"]
    assert "No table has a target" in run.refused(*arguments)


def test_required_out_of_reach_tell_what_would_do(run):
    targets = ["--target", "age=±20 required", "--loss", "required", "--rho", "0.0001"]
    message = run.refused("plan", "codebook.csv", *EACH, *targets, "--out", "plan.json")
    assert "cannot all be met at this budget" in message
    assert "times the budget and a little more" in message
