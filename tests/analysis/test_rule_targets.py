"""Rules as targets: the smallest budget at which tables meet them, against counts gone through."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import populations, rule_targets
from rpexplore.analysis.populations import CountsOfTables
from rpexplore.analysis.rule_targets import (
    RuleTargets,
    budget_range,
    budget_with_objective,
    least_counts,
)
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning import planner
from tests.domain.test_public_tables import DOMAIN, table

JOINT = np.random.default_rng(5).integers(0, 90, (6, 2, 3)).astype(float)
PUBLIC = (
    table("age,sex", JOINT.sum(2)),
    table("sex,job", JOINT.sum(0)),
    table("age,job", JOINT.sum(1)),
)
TABLES = rp.Workload.of(DOMAIN, [("age",), ("age", "sex"), ("sex", "job"), ("age", "job")])
RULES = [
    "CV<=20% for 90% of people in each table",
    "CV<=30% for 80% of cells in age and in age,job",
]


@pytest.mark.parametrize("of", ["people", "cells"])
@pytest.mark.parametrize("of_cells", [True, False])
@pytest.mark.parametrize("at_once", [1, 300, 10**6])
def test_the_least_count_is_the_largest_at_which_enough_are_good(
    of, of_cells, at_once, monkeypatch
):
    """By the other function that judges counts: the share of what is at least so large."""
    monkeypatch.setattr(rule_targets, "_MOST_AT_ONCE", at_once)
    monkeypatch.setattr(populations, "_NUMBERS_AT_ONCE", at_once)
    rng = np.random.default_rng(1)
    counts = rng.integers(0 if of_cells else 1, 12, (5, 4, 30)).astype(np.float32)
    group, n_cells = CountsOfTables(np.arange(5), counts, of_cells), np.full(5, 30.0)
    n_records = np.array([70.0, 80.0, 90.0, 100.0])  # of each population
    for share in (0.05, 0.3, 0.5, 0.9, 1.0):
        found = least_counts(group, share, of, n_records, n_cells)
        for count in range(1, 13):
            least = np.full(5, float(count))
            good = group.good(least, n_records, n_cells)[of == "cells"]
            np.testing.assert_array_equal(found >= count, good >= share - 1e-6)


def meets(workload: rp.Workload, errors: np.ndarray) -> list[bool]:
    """By the counts, table by table, whether those with these standard errors meet both rules."""
    found = []
    for names, error in zip(workload.tables, errors, strict=True):
        axes = tuple(axis for axis, one in enumerate(DOMAIN.names) if one not in names)
        counts = JOINT.sum(axis=axes).ravel()
        is_met = counts[counts >= error / 0.2].sum() >= 0.9 * counts.sum() - 1e-9
        if names in (("age",), ("age", "job")):
            is_met &= np.mean(counts >= error / 0.3) >= 0.8
        found.append(bool(is_met))
    return found


def test_where_all_is_public_the_smallest_budget_just_meets_the_rules():
    workload = RuleTargets(TABLES, RULES, public=PUBLIC).workload
    needed = rp.minimum_budget(workload)

    def planned(budget: rp.Budget) -> rp.Plan:
        asked = rp.Request(
            tables=workload, loss=rp.MaxVariance("target"), budget=budget, require=RULES
        )
        return rp.plan(asked)

    plan = planned(needed.budget)
    errors = plan.part("tables").standard_errors
    # A public table's counts are known up to the fitting of three tables that overlap.
    assert all(meets(workload, errors * (1 - 1e-6)))
    forecast = rp.Forecast(plan, public=PUBLIC)
    assert forecast.n_meeting("surely") == 4
    assert forecast.meeting == (4, 4, 4)
    # With less, the best plan for the targets misses them by as much.
    less = planned(rp.Budget(rho=float(needed.budget.rho) * 0.98))
    assert not all(meets(workload, less.part("tables").standard_errors))
    assert rp.Forecast(less, public=PUBLIC).meeting.median < 4
    np.testing.assert_allclose(np.sum(needed.shares), 1)


def test_with_a_design_the_total_error_meets_the_rule_and_noise_gets_what_sampling_leaves():
    """Cell by cell: the largest σ at which √(σ² + D c (1 − c/n)) ≤ 20 % c for 90 % of people."""
    design = rp.SurveyDesign(1.5, ((("age", "job"), 2.0),), sampling_fraction=0.1)
    found = RuleTargets(TABLES, RULES[:1], public=PUBLIC, survey=design)
    n = JOINT.sum()
    for names, target in zip(TABLES.tables, found.workload.targets, strict=True):
        axes = tuple(axis for axis, one in enumerate(DOMAIN.names) if one not in names)
        counts = JOINT.sum(axis=axes).ravel()
        factor = 0.9 * (2.0 if names == ("age", "job") else 1.5)
        for times, is_met in ((1 - 1e-6, True), (1 + 1e-6, False)):
            total = np.sqrt((times * target) ** 2 + factor * counts * (1 - counts / n))
            good = counts[total <= 0.2 * counts].sum()
            assert (good >= 0.9 * n) == is_met
    plan = rp.plan(
        found.workload,
        loss=rp.MaxVariance("target"),
        budget=rp.minimum_budget(found.workload).budget,
    )
    forecast = rp.Forecast(plan, public=PUBLIC, survey=design, require=RULES[:1])
    assert forecast.meeting == (4, 4, 4)


def test_no_budget_reaches_a_rule_that_the_surveys_own_error_breaks():
    """By hand: CV 20 % needs 0.04 c ≥ 4 (1 − c/200), so c ≥ 400/6 = 66.7: 140 of 200 people."""
    public = (table("age", [70, 70, 20, 20, 10, 10]),)
    tables, design = rp.Workload.of(DOMAIN, [("age",)]), rp.SurveyDesign(4.0)
    found = RuleTargets(
        tables, ["CV<=20% for 80% of people in each table"], public=public, survey=design
    )
    assert "without any noise, the survey's own error (design effect 4) leaves 70 %" in found.reason
    with pytest.raises(rp.errors.RpexploreError, match="No budget reaches the rule"):
        _ = found.workload
    less = RuleTargets(
        tables, ["CV<=20% for 70% of people in each table"], public=public, survey=design
    )
    # σ² = 0.04 · 70² − 4 · 70 · (1 − 70/200) = 196 − 182.
    np.testing.assert_allclose(less.workload.targets, [14**0.5])
    with pytest.raises(rp.errors.RpexploreError, match="is of no table of the plan"):
        RuleTargets(
            tables, RULES[:1], public=public, survey=rp.SurveyDesign(1.0, ((("sex",), 2.0),))
        )


def test_the_range_of_the_smallest_budget_is_that_of_the_budgets_of_the_populations():
    """Planned for each population by itself, and by hand for one table and a scaled plan."""
    ruled = RuleTargets(TABLES, RULES[:1], public=PUBLIC[:1])
    now = rp.Budget(rho=1)
    found = budget_range(ruled, now, rp.minimum_budget(ruled.workload).closure)
    ((_, errors),) = ruled.errors_of_rules
    named = [dict(zip(TABLES.tables, column, strict=True)) for column in errors.T]
    needed = sorted(rp.minimum_budget(TABLES.with_targets(targets)).rho for targets in named)
    # The truth is one more beside 48: 0.05 · 49 = 2.45, so the second from either end.
    wanted = [needed[1], needed[23], needed[46]]
    np.testing.assert_allclose(
        [found.low.needed, found.median.needed, found.high.needed], wanted, rtol=0.011
    )
    optimum = rp.optimum(ruled.workload, loss=rp.SumOfVariances())
    scaled = budget_range(ruled, now, optimum)
    at_1 = optimum.standard_errors(now, "largest")
    by_hand = np.sort(np.max((at_1[:, None] / errors) ** 2, axis=0))[[1, 23, 46]]
    np.testing.assert_allclose(
        [scaled.low.needed, scaled.median.needed, scaled.high.needed], by_hand
    )
    cells = RuleTargets(TABLES, ["CV<=20% for 70% of cells in each table"], expected=40)
    none = budget_range(cells, now, optimum)
    assert none.high is None
    assert none.text.endswith("to no budget at all") or none.low is None


def test_surely_takes_a_larger_budget_and_stricter_targets_of_tables_stay():
    """What is not public differs between the populations, and its lower end is smaller."""
    known = {"public": PUBLIC[:1]}
    median = RuleTargets(TABLES, RULES[:1], **known).workload.targets
    surely = RuleTargets(TABLES, RULES[:1], certainty="surely", **known).workload.targets
    assert np.all(surely <= median)
    assert np.any(surely < median)
    strict = TABLES.with_targets({"age": 0.5, ("age", "job"): 1e6})
    kept = RuleTargets(strict, RULES[:1], **known).workload.targets
    np.testing.assert_array_equal(kept, np.where(strict.targets == 0.5, 0.5, median))


def test_no_budget_reaches_cells_that_hold_nobody():
    public = (table("age", [10, 0, 0, 10, 10, 10]),)
    tables = rp.Workload.of(DOMAIN, [("age",), ("sex",)])
    found = RuleTargets(tables, ["CV<=20% for 90% of cells in each table"], public=public)
    assert "67 % of the cells of age hold anybody" in found.reason
    with pytest.raises(rp.errors.RpexploreError, match="No budget reaches the rule"):
        _ = found.workload
    fewer = RuleTargets(tables, ["CV<=20% for 60% of cells in age"], public=public)
    assert fewer.reason == ""
    np.testing.assert_allclose(fewer.workload.targets, [2, np.nan])


def test_impossible_combinations_are_cells_that_hold_nobody():
    ruled_out = rp.Domain(DOMAIN.attributes, [{"age": "0..2", "sex": "f"}])  # pyright: ignore[reportArgumentType]
    tables = rp.Workload.of(ruled_out, [("age", "sex")])
    for share, is_reached in ((75, True), (76, False)):
        rule = f"CV<=20% for {share}% of cells in each table"
        found = RuleTargets(tables, [rule], expected=1e9)
        assert (found.reason == "") == is_reached


def test_a_rule_about_a_table_that_cannot_be_forecast_is_refused():
    wage = rp.Attribute("wage", rp.Amounts(0, 9, 0, "EUR"))
    domain = rp.Domain((*DOMAIN.attributes, wage))
    tables = rp.Workload.of(domain, [("sex",), ("sex", "wage")])
    with pytest.raises(rp.errors.RpexploreError, match="cannot be forecast: of sums of amounts"):
        RuleTargets(tables, ["CV<=20% for 90% of people in sex,wage"], expected=100)
    each = RuleTargets(tables, ["CV<=20% for 90% of people in each table"], expected=100)
    assert np.isnan(each.workload.targets).tolist() == [False, True]


def test_a_budget_as_epsilon_is_enough_where_rho_alone_proves_it():
    """Of a rest that is planned behind a pilot: at the budget of one plan it misses the rule."""
    ruled = RuleTargets(TABLES, RULES[:1], public=PUBLIC)
    optimum, budget = (
        planner.optimum(TABLES, loss=rp.SumOfVariances()),
        rp.Budget(epsilon=1, delta="1e-6"),
    )
    by_noise, by_rho = (
        budget_with_objective(ruled, optimum, budget, by_rho=alone) for alone in (False, True)
    )
    assert by_noise is not None
    assert by_rho is not None
    for enough, n_meeting in ((by_rho, len(TABLES)), (by_noise, len(TABLES) - 1)):
        planned = rp.plan(
            TABLES,
            loss=rp.SumOfVariances(),
            budget=rp.Budget(epsilon=enough.budget.stated_epsilon, delta="1e-6"),
            pilot="2%",
            then=rp.RestObjective(),
        )
        assert rp.Forecast(planned, public=PUBLIC, require=RULES[:1]).n_meeting() == n_meeting


def test_a_survey_s_own_error_takes_its_part_of_the_rule():
    """σ² + d (1 − f) c (1 − c/n) ≤ (CV c)², with the least count c of the share."""
    design = SurveyDesign(0.3, sampling_fraction=0.2)
    ruled = RuleTargets(TABLES, RULES[:1], public=PUBLIC, survey=design)
    optimum = planner.optimum(TABLES, loss=rp.SumOfVariances())
    budget = rp.Budget(rho=1)
    for certainty in ("", "surely"):
        enough = budget_with_objective(ruled, optimum, budget, certainty)
        assert enough is not None
        for factor, n_meeting in ((1, len(TABLES)), (0.98, len(TABLES) - 1)):
            plan = optimum.at(rp.Budget(rho=factor * float(enough.rho)))
            made = rp.Forecast(plan, public=PUBLIC, require=RULES[:1], survey=design)
            assert made.n_meeting() == n_meeting
    alone = budget_with_objective(RuleTargets(TABLES, RULES[:1], public=PUBLIC), optimum, budget)
    assert alone is not None
    assert float(alone.rho) < float(enough.rho)
    strict = RuleTargets(
        TABLES, ["CV<=3% for 90% of people in each table"], public=PUBLIC, survey=design
    )
    assert "No budget reaches the rule" in strict.reason
    assert budget_with_objective(strict, optimum, budget) is None
