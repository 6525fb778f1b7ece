"""Adaptive plans: what they hold, their files, refusals, and claims that are false."""

import json
from fractions import Fraction

import pytest

import rpexplore as rp
from rpexplore.common.numbers import exact_text
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.adaptive import AdaptivePlan, adaptive_plan
from rpexplore.planning.planner import plan_tables
from tests.support.plan_schemas import PLAN_SCHEMA, PLAN_VALIDATOR
from tests.support.plan_texts import flat, laid_out_compact, nested, other_layouts, replaced

DOMAIN = rp.Domain.from_sizes({"a": 3, "one": 1, "b": 2, "c": 4})
WORKLOAD = rp.Workload.of(DOMAIN, [("a", "one", "b"), ("a", "b", "c")])
BUDGET = rp.Budget(rho="1/3", max_records_per_person=2)
PLAN = adaptive_plan(WORKLOAD, budget=BUDGET, expected_records=10_000)
CONTENT = flat(json.loads(PLAN.text))


def tampered(*path, value) -> str:
    """The text of the plan with another value at a path; all seals fit again."""
    return laid_out_compact(replaced(flat(json.loads(PLAN.text)), path, value))


def failed(text: str) -> list[str]:
    """The checks that the plan of a text fails."""
    checks = rp.verify(AdaptivePlan.parse(text)).checks
    return [check.name for check in checks if not check.holds]


def test_the_first_plan_measures_one_and_two_attributes_and_rounds_the_rest_of_the_budget():
    first = PLAN.first
    assert [tuple(row[row >= 0]) for row in first.closure.members] == [
        (), (0,), (2,), (3,), (0, 2), (0, 3), (2, 3),
    ]  # fmt: skip
    # 13/20 of 1/12 for one record, to 12 digits, by 1.36 - 0.2 log10(records √ρ).
    assert first.budget.rho == 4 * Fraction("0.0541666666666")
    spent = first.rho + 4 * sum(step.rho for step in PLAN.rounds)
    assert PLAN.rho == spent <= BUDGET.rho
    assert float(PLAN.rho) == pytest.approx(1 / 3, rel=1e-10)
    assert rp.verify(PLAN).holds


def test_an_epsilon_is_kept_by_rho_alone_also_at_the_budget_of_a_fixed_plan():
    stated = rp.Budget(epsilon=1, delta="1e-6")
    fixed = plan_tables(WORKLOAD, loss=rp.SumOfVariances(), budget=stated)
    assert fixed.budget.rho > stated.rho  # which its noise proves
    made = adaptive_plan(WORKLOAD, budget=fixed.budget, expected_records=10_000)
    assert made.budget == stated
    assert rp.verify(made).holds


def test_a_file_gives_back_the_plan_and_its_first_plan(tmp_path):
    PLAN_VALIDATOR.validate(json.loads(PLAN.text))
    (part,) = json.loads(PLAN.text)["parts"]
    assert list(part) == PLAN_SCHEMA["$defs"]["rounds"]["required"]
    PLAN.save(tmp_path / "plan.json")
    loaded = AdaptivePlan.load(tmp_path / "plan.json")
    assert (loaded.text, loaded.sha256) == (PLAN.text, PLAN.sha256)
    assert (loaded.first.text, loaded.first.sha256) == (PLAN.first.text, PLAN.first.sha256)
    assert (loaded.rounds, loaded.candidates) == (PLAN.rounds, PLAN.candidates)
    assert loaded.record_rho == PLAN.record_rho


def test_other_layouts_and_changed_bytes_are_refused():
    for name, text in other_layouts(PLAN.text).items():
        with pytest.raises(PlanError):
            AdaptivePlan.parse(text, name)
    assert AdaptivePlan.parse(json.dumps(nested(CONTENT)), canonical=False).sha256 == PLAN.sha256
    for position in range(2, len(PLAN.text), 97):
        text = PLAN.text[:position] + chr(ord(PLAN.text[position]) ^ 1) + PLAN.text[position + 1 :]
        with pytest.raises(PlanError):
            AdaptivePlan.parse(text)


ROUND = CONTENT["rounds"][0]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("rounds",), [], "1 to 1,000 rounds"),
        (("rounds", 0, "tables"), 0, "select 1 to 4 tables, got 0"),
        (("rounds", 0, "tables"), 5, "select 1 to 4 tables, got 5"),
        (("rounds", 0, "tables"), 1.0, "whole number"),
        (("rounds", 0, "selection_rho"), "0", "must be positive"),
        (("rounds", 0, "measurement_rho"), "-1", "must be positive"),
        (("rounds", 0), ROUND | {"more": 1}, "exactly tables"),
        (("expected_records",), 0, "expected number of records"),
        (("expected_records",), True, "expected number of records"),
        (("tables", 0, "target"), 3.0, "has a target"),
        (("budget", "max_records_per_person"), 1, "first plan protects"),
        (("first_plan", "budget", "max_records_per_person"), None, "first plan protects"),
        (
            ("first_plan", "kind"),
            "counts",
            "its first plan .* its kind must be tables",
        ),
        (("first_plan", "loss"), ..., "its first plan cannot be used: the tables must hold"),
        (("first_plan",), None, "the tables must hold exactly kind"),
        (("domain", "fields", 0, "name"), "z", "another codebook"),
        (("privacy_cost",), "0", "must be positive"),
    ],
)
def test_unusable_parts_are_refused(path, value, message):
    text = tampered(*path, value=value)
    with pytest.raises(PlanError, match=message):
        AdaptivePlan.parse(text, "p.json")


def with_first(workload: rp.Workload, rho=PLAN.first.budget.rho) -> str:
    """The text with an honest first plan of other tables or another budget."""
    budget = rp.Budget(rho=rho, max_records_per_person=2)
    first = plan_tables(workload, loss=rp.SumOfVariances(), budget=budget)
    content = flat(json.loads(PLAN.text)) | {"first_plan": json.loads(first.to_text())}
    return laid_out_compact(replaced(content, ("privacy_cost",), "2/3"))


def test_false_claims_fail():
    assert failed(PLAN.text) == []
    rounds = [
        {**row, "measurement_rho": exact_text(Fraction(row["measurement_rho"]) * factor)}
        for row in CONTENT["rounds"]
        for factor in [Fraction(1 + 10**9, 10**9) if row == CONTENT["rounds"][-1] else 1]
    ]
    # One round costs a billionth more; the stated cost is a little less, or more than the budget.
    assert failed(tampered("rounds", value=rounds)) == ["privacy cost"]
    less = exact_text(PLAN.exact_privacy_cost - Fraction(1, 10**15))
    assert failed(tampered("privacy_cost", value=less)) == ["privacy cost"]
    assert failed(tampered("privacy_cost", value="2/3")) == []
    assert failed(tampered("privacy_cost", value="0.67")) == ["privacy cost"]
    one_more = [*CONTENT["rounds"], ROUND]
    assert failed(tampered("rounds", value=one_more)) == ["privacy cost"]
    # The noise of the first plan is what its own checks say; what it states is what is booked.
    scales = [exact_text(Fraction(scale) / 2) for scale in CONTENT["first_plan"]["noise_scales"]]
    found = failed(tampered("first_plan", "noise_scales", value=scales))
    assert "first plan, privacy cost" in found
    assert "first plan, variances" in found
    assert "privacy cost" not in found
    all_pairs = rp.Workload.all_of_order(DOMAIN, 2)
    assert failed(with_first(all_pairs)) == []
    assert failed(with_first(all_pairs, BUDGET.rho)) == ["privacy cost"]
    for tables in (rp.Workload.all_of_order(DOMAIN, 1), WORKLOAD):
        assert failed(with_first(tables)) == ["measured"]


ALL = rp.Workload.all_of_order(DOMAIN, 2)
LARGE = rp.Domain.from_sizes({"a": 10_000, "b": 5_001, "c": 2})


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (ALL.with_bases({"c": rp.Prefix()}), "counts of single values; leave cumulative sums"),
        (ALL.with_targets({("a", "b"): 3}), r"\(a × b\) has a target"),
        (rp.Workload.all_of_order(DOMAIN, 1), "No table of the 4 tables has two"),
        (rp.Workload.of(DOMAIN, [("a", "one")]), "No table of the 1 table has two"),
        (
            rp.Workload.all_of_order(LARGE, 2),
            r"\(a × b\) has 50,010,000 cells; an",
        ),
    ],
)
def test_tables_that_cannot_be_estimated_are_refused(workload, message):
    with pytest.raises(WorkloadError, match=message):
        adaptive_plan(workload, budget=BUDGET, expected_records=10_000)


@pytest.mark.parametrize("records", [0, -1, 1.5, True, "many", 10**13])
def test_expected_records_must_be_a_number(records):
    with pytest.raises(PlanError, match="expected number of records must be a whole number"):
        adaptive_plan(ALL, budget=BUDGET, expected_records=records)


def test_tables_of_four_attributes_and_of_pairs_alone_are_planned():
    of_four = rp.Domain.from_sizes({"a": 2, "b": 2, "c": 2, "d": 2})
    for order, n_candidates in ((2, 6), (4, 10)):
        tables = rp.Workload.all_of_order(of_four, order)
        planned = adaptive_plan(tables, budget=BUDGET, expected_records=100)
        assert len(planned.candidates) == len(planned.candidate_weights) == n_candidates


def test_candidates_count_by_the_weights_of_tables_that_share_attributes():
    domain = rp.Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 2})
    tables, weights = [("a", "b"), ("b", "c", "d")], [0.5, 3.0]
    workload = rp.Workload.of(domain, tables, weights=weights)
    planned = adaptive_plan(workload, budget=BUDGET, expected_records=100)
    # AIM's Σ_s w_s |r ∩ s|: ab 0.5 · 2 + 3 · 1 = 4; bc, bd 0.5 + 6; cd 6; bcd 0.5 + 9 = 9.5.
    expected = {(0, 1): 421, (1, 2): 684, (1, 3): 684, (2, 3): 632, (1, 2, 3): 1000}
    assert dict(zip(planned.candidates, planned.candidate_weights, strict=True)) == expected
    even = rp.Workload.of(domain, tables, weights=[2.0, 2.0])
    assert set(adaptive_plan(even, budget=BUDGET, expected_records=100).candidate_weights) == {1}
    again = AdaptivePlan.parse(planned.text)
    assert again.candidate_weights == planned.candidate_weights


def test_it_says_that_nothing_is_promised_of_accuracy():
    assert "estimates, which are biased. Nothing is promised" in PLAN.guarantee
    assert PLAN.contents == "2 estimated tables"
    assert "round 4" in str(PLAN)
    assert "biased" in str(PLAN)
