"""Plans of several parts: one budget, shares that are the best or as stated, one file."""

import json
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.numbers import exact_text
from rpexplore.domain.levels import Level
from rpexplore.errors import ContradictionError, PlanError, WorkloadError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.plan import load_plan
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.request import Rounds
from tests.support.plan_schemas import PLAN_VALIDATOR
from tests.support.plan_texts import laid_out_compact, other_layouts, replaced, sealed_like
from tests.support.query_lists import query_plan

AGE, SEX = rp.Attribute("age", rp.Integers(0, 4)), rp.Attribute("sex", rp.Categories(("f", "m")))
DOMAIN = rp.Domain((AGE, SEX))
TABLES = rp.Workload.of(DOMAIN, ["age", ("age", "sex")], weights=[1, 3], targets=[2, 7])
TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": ["1", "2", "1"]})
AREAS = rp.AreaWorkload.of_levels(
    TREE,
    {
        level: rp.Workload.of(rp.Domain((SEX,)), ["sex"], targets=[4])
        for level in ("region", "town")
    },
)
COUNTS = rp.QueryList(
    rp.Domain((SEX, AGE)),
    [[1] * 5 + [0] * 5, [0, 0, 1, 1, 1] * 2, [1, -1, 0, 0, 0, 0.5, 0, 0, 0, 0]],
    ("women", "over 1", "contrast"),
    [3, 2.5, 8],
)
ROUNDS = Rounds(rp.Workload.of(DOMAIN, [("age", "sex")]), 10_000)
BUDGET = rp.Budget(epsilon=1, delta="1e-9", max_records_per_person=3)
QUARTERS = dict.fromkeys(("tables", "areas", "counts", "rounds"), "1/4")
ASKED = {"tables": TABLES, "areas": AREAS, "counts": COUNTS, "rounds": ROUNDS}
LOSSES = {
    "sum": rp.SumOfVariances(),
    "root of cells": rp.SumOfVariances("sqrt"),
    "largest": rp.MaxVariance(),
    "largest ratio": rp.MaxVariance("target"),
}


@pytest.fixture(scope="module")
def plan() -> rp.Plan:
    """All four kinds of parts."""
    return rp.plan(rp.Request(**ASKED, budget=BUDGET, shares=QUARTERS))


@pytest.fixture(scope="module")
def saved(plan, tmp_path_factory):
    """Its file, with the files of areas beside it."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan.save(path)
    return path


# ---- one plan, one file


def test_what_is_saved_is_what_is_loaded(plan, saved):
    loaded = load_plan(saved)
    assert (loaded.text, loaded.sha256, loaded.budget) == (plan.text, plan.sha256, plan.budget)
    assert [part.kind for part in loaded.parts] == list(QUARTERS)
    assert [type(part) for part in loaded.parts] == [type(part) for part in plan.parts]
    for ours, theirs in zip(plan.parts, loaded.parts, strict=True):
        assert ours.to_text() == theirs.to_text()
    assert loaded.part("counts").queries.names == COUNTS.names
    assert str(loaded) == str(plan)
    PLAN_VALIDATOR.validate(json.loads(plan.text))
    assert rp.verify(loaded).holds, str(rp.verify(loaded))


def test_it_is_laid_out_as_documented_and_no_other_layout_is_read(plan, saved):
    assert plan.text == laid_out_compact(json.loads(plan.text))
    for layout, text in other_layouts(plan.text).items():
        with pytest.raises(PlanError, match="byte for byte"):
            rp.Plan.parse(text, folder=saved.parent)
        again = rp.Plan.parse(text, canonical=False, folder=saved.parent)
        assert again.sha256 == plan.sha256, layout


def test_it_costs_exactly_what_its_parts_cost(plan):
    costs = [part.exact_privacy_cost for part in plan.parts]
    assert plan.exact_privacy_cost == sum(costs) <= BUDGET.privacy_cost
    assert [part.budget.privacy_cost for part in plan.parts] == [BUDGET.privacy_cost / 4] * 4
    assert plan.rho == sum(part.rho for part in plan.parts) == plan.exact_privacy_cost / 2
    assert plan.record_rho == plan.rho / 9, "a person with at most 3 records"
    assert json.loads(plan.text)["budget"]["stated"] == {"epsilon": "1", "delta": "0.000000001"}
    assert plan.shares == dict.fromkeys(plan.shares, Fraction(1, 4))
    assert plan.epsilon("1e-9") <= 1
    assert "one person with at most 3 records" in plan.guarantee


def test_it_tells_all_of_its_parts_in_words(plan):
    text = str(plan)
    for words in ("Tables, 25", "Tables in areas, 25", "Own counts, 25", "Adaptive tables, 2",
                  "one person with at most 3 records", "furthest off"):  # fmt: skip
        assert words in text
    assert plan.proven == "", "nothing is promised of adaptive tables"
    assert plan.contents == (
        "2 noisy tables, 5 noisy tables in areas, 3 noisy own counts and 1 estimated table"
    )
    assert plan.n_items == 11
    assert set(plan.columns) == {"age", "sex", "region", "town"}
    assert [attribute.name for attribute in plan.domain] == ["age", "sex"]


def test_one_part_is_its_own_plan():
    part = plan_tables(TABLES, loss=rp.SumOfVariances(), budget=BUDGET)
    alone = rp.Plan.of(part)
    assert (alone.text, alone.sha256) == (part.text, part.sha256)
    assert rp.plan(TABLES, loss=rp.SumOfVariances(), budget=BUDGET).text == part.text
    assert alone.certificate is part.certificate
    assert rp.Plan.of(alone) is alone
    with pytest.raises(PlanError, match="a plan of own counts is needed here"):
        QueryPlan.parse(part.text, "p.json")


# ---- what is no plan


def counts_at(rho, **options):
    return query_plan(COUNTS, budget=rp.Budget(rho=rho, **options))


def tables_at(rho, **options):
    return plan_tables(TABLES, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho, **options))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "got none"),
        ((tables_at(1), tables_at(1)), "each once and in this order, got tables, tables"),
        ((counts_at(1), tables_at(1)), "in this order, got counts, tables"),
        ((tables_at(1), counts_at("2.1")), "budgets of the parts are more than that of the plan"),
        ((tables_at(1, max_records_per_person=2), counts_at(1)), "with at most 2 records, and the"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(parts, message):
    with pytest.raises(PlanError, match=message) as caught:
        rp.Plan(parts, rp.Budget(rho=3), "0.2.0")
    assert str(caught.value).count(". ") == 0, "one sentence"


def test_parts_that_do_not_agree_about_an_attribute_are_refused():
    younger = rp.Domain((rp.Attribute("age", rp.Integers(0, 3)), SEX))
    other = rp.Request(
        tables=rp.Workload.of(younger, ["age"]), counts=COUNTS, budget=rp.Budget(rho=1)
    )
    with pytest.raises(PlanError, match=r"do not agree about the values of 'age'; plan them from"):
        rp.plan(other)


def test_parts_that_do_not_agree_about_a_level_are_refused():
    first, other = (
        rp.Domain((replace(AGE, levels=(Level("half", tuple(groups)),)), SEX))
        for groups in ("aabbb", "aaabb")
    )
    queries = replace(COUNTS, domain=rp.Domain((SEX, other.attributes[0])))
    asked = {"tables": rp.Workload.of(first, ["age@half"]), "budget": rp.Budget(rho=1)}
    with pytest.raises(PlanError, match=r"do not agree about the levels of 'age'; plan them from"):
        rp.plan(rp.Request(counts=queries, **asked))
    rp.plan(rp.Request(counts=COUNTS, **asked))  # from a codebook without levels


TAMPERED = [
    (("parts", 0, "kind"), "areas", "must hold exactly kind, domain, loss, uniform_levels"),
    (("parts", 0, "kind"), "table", "must be tables, areas, counts or rounds, got"),
    (("parts", 0, "kind"), ["tables"], 'the "kind" of a part must be'),
    (("parts", 0), None, 'the "kind" of a part must be'),
    (("parts",), {}, "parts must be a list"),
    (("parts",), [], "got none"),
    (("parts",), lambda parts: parts[::-1], "in this order, got counts, tables"),
    (("parts",), lambda parts: parts + parts[1:], "got tables, counts, counts"),
    (("privacy_cost",), "0.39999", "privacy_cost must be the sum of that of its parts"),
    (("privacy_cost",), lambda cost: cost + "0" * 20 + "1", "must be the sum"),
    (("parts", 1, "privacy_cost"), "0.01", "must be the sum"),
    (("budget",), rp.Budget(rho="0.19").to_json(), "more than that of the plan"),
    (("budget", "max_records_per_person"), 2, "all parts must protect the same"),
    (("parts", 0, "budget", "max_records_per_person"), 1, "all parts must protect the same"),
    (("parts", 0, "domain", "fields", 0, "constraints", "maximum"), 3, "disagree|'age'"),
    (("more",), 1, "the plan must hold exactly"),
]


@pytest.fixture(scope="module")
def two() -> rp.Plan:
    """Tables and own counts, at ρ = 0.2."""
    return rp.plan(rp.Request(tables=TABLES, counts=COUNTS, budget=rp.Budget(rho="0.2")))


@pytest.mark.parametrize(("path", "value", "message"), TAMPERED)
def test_what_does_not_go_together_in_a_file_is_refused(two, path, value, message):
    text = laid_out_compact(replaced(json.loads(two.text), path, value))
    with pytest.raises(PlanError, match=rf"^p\.json cannot be used: .*({message})"):
        rp.Plan.parse(text, "p.json")


@pytest.mark.parametrize("kind", [0, 1])
def test_a_part_that_was_changed_does_not_fit_the_seal(two, kind):
    changed = replaced(json.loads(two.text), ("parts", kind, "domain", "fields", 0, "title"), "A")
    with pytest.raises(ContradictionError, match="was changed since it was written"):
        rp.Plan.parse(sealed_like(laid_out_compact(changed), two.text))


@pytest.mark.parametrize(
    "format_name",
    ["rpexplore-plan", "rpexplore-query-plan", "rpexplore-area-plan", "rpexplore-adaptive-plan"],
)
def test_files_of_version_1_are_refused_in_one_sentence(tmp_path, format_name):
    path = tmp_path / "old.json"
    old = {"format": format_name, "format_version": 1, "library_version": "0.1.0"}
    path.write_text(json.dumps(old), "utf-8")
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert str(caught.value) == (
        "old.json is not a plan file: it has plan format version 1, which rpexplore 0.1 reads, and "
        "this library reads version 2; plan anew."
    )


# ---- what verification finds


def failed(content) -> set[str]:
    checks = rp.verify(rp.Plan.parse(laid_out_compact(content), canonical=False)).checks
    return {check.name for check in checks if not check.holds}


def test_verification_finds_what_is_false_in_which_part(two):
    assert failed(json.loads(two.text)) == set()
    content = json.loads(two.text)
    content["parts"][0]["noise_scales"] = [
        format((Decimal(scale) / 2).normalize(Context(prec=18)), "f")
        for scale in content["parts"][0]["noise_scales"]
    ]
    assert {"tables, privacy cost", "tables, variances"} <= failed(content)
    content = json.loads(two.text)
    content["parts"][1]["queries"][0]["variance"] *= 0.999
    assert "own counts, variances" in failed(content)
    assert not any(name.startswith("tables") for name in failed(content))


def test_verification_finds_costs_that_are_too_low_or_too_high(two):
    for factor, part, names in (
        (Fraction(99, 100), 0, {"tables, privacy cost"}),
        (Fraction(99, 100), 1, {"own counts, privacy cost"}),
        # More than the part's budget, and so more than the budget of the whole.
        (Fraction(2), 1, {"own counts, privacy cost", "privacy cost"}),
    ):
        content = json.loads(two.text)
        costs = [Fraction(each["privacy_cost"]) for each in content["parts"]]
        costs[part] *= factor
        content["parts"][part]["privacy_cost"] = exact_text(costs[part])
        content["privacy_cost"] = exact_text(sum(costs))
        assert failed(content) == names


# ---- shares


def losses_at_cost_1(kinds, loss) -> dict[str, float]:
    """The loss of each part if one record may cost 1, computed from variances alone."""
    found = {}
    for kind in kinds:
        part = rp.plan(ASKED[kind], loss=loss, budget=rp.Budget(privacy_cost=1)).parts[0]
        if kind != "counts":
            found[kind] = part.certificate.loss_value
            continue
        variances = part.variances
        at_smallest = variances / (COUNTS.targets / np.min(COUNTS.targets)) ** 2
        found[kind] = norm(
            variances / COUNTS.targets**2 if loss.compares_with_targets else at_smallest, loss
        )
    return found


def norm(values, loss) -> float:
    values = np.asarray(values, dtype=float)
    if isinstance(loss, rp.MaxVariance):
        return float(np.max(values))
    p = loss.p if isinstance(loss, rp.PNorm) else 1
    return float(np.sum(values**p) ** (1 / p))


def best_of_grid(values, loss, steps=2000) -> float:
    """The smallest norm of values over shares, over all shares that are multiples of 1/steps."""
    first = np.arange(1, steps) / steps
    if len(values) == 2:
        grids = np.stack([first, 1 - first])
    else:
        x, y = np.meshgrid(first[::10], first[::10])
        grids = np.stack([x, y, 1 - x - y])[:, x + y < 1 - 1e-9]
    at_shares = np.array(values)[:, None] / grids
    if isinstance(loss, rp.MaxVariance):
        return float(np.min(np.max(at_shares, axis=0)))
    p = loss.p if isinstance(loss, rp.PNorm) else 1
    return float(np.min(np.sum(at_shares**p, axis=0) ** (1 / p)))


CASES = [
    (kinds, loss)
    for name, loss in {**LOSSES, "norm": rp.PNorm(p=3), "ratios": rp.PNorm(2, "target")}.items()
    for count in (2, 3)
    for kinds in combinations(("tables", "areas", "counts"), count)
    if not (isinstance(loss, rp.PNorm) and "areas" in kinds)
]


@pytest.mark.by_day(4)
@pytest.mark.parametrize("records", [None, 2])
@pytest.mark.parametrize(("kinds", "loss"), CASES, ids=str)
def test_the_split_is_the_best_of_a_grid_and_its_bound_below_it(kinds, loss, records):
    budget = rp.Budget(rho="0.3", max_records_per_person=records)
    plan = rp.plan(rp.Request(**{kind: ASKED[kind] for kind in kinds}, loss=loss, budget=budget))
    of_record = 0.6 / (records or 1) ** 2
    values = list(losses_at_cost_1(kinds, loss).values())
    best = best_of_grid(values, loss) / of_record
    # Three parts are tried in steps of 1/200 only.
    assert best * (0.999 if len(kinds) == 2 else 0.97) <= plan.loss_value <= best * 1.001
    assert plan.loss_value == pytest.approx(
        norm(
            [
                value / of_record / plan.shares[kind]
                for kind, value in zip(kinds, values, strict=True)
            ],
            loss,
        ),
        rel=2e-3,
    )
    assert sum(plan.part(kind).budget.privacy_cost for kind in kinds) == budget.privacy_cost
    assert plan.certificate.lower_bound <= best * (1 + 1e-9)
    assert plan.certificate.lower_bound <= plan.loss_value
    assert plan.certificate.gap < 0.01
    assert "however it is split" in plan.proven


@given(
    share=st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=1000),
    loss=st.sampled_from([rp.SumOfVariances(), rp.MaxVariance("target"), rp.PNorm(p=2)]),
)
@settings(deadline=None, max_examples=20)
def test_stated_shares_are_exact_and_never_better(share, loss):
    asked = {"tables": TABLES, "counts": COUNTS, "loss": loss, "budget": rp.Budget(rho="1/3")}
    stated = rp.plan(rp.Request(**asked, shares={"counts": 1 - share, "tables": share}))
    assert stated.part("tables").budget.privacy_cost == share * Fraction(2, 3)
    assert stated.part("counts").budget.privacy_cost == (1 - share) * Fraction(2, 3)
    assert stated.loss_value >= rp.plan(rp.Request(**asked)).loss_value * (1 - 1e-6)
    assert rp.plan(rp.Request(**asked)).certificate.lower_bound == pytest.approx(
        stated.certificate.lower_bound, rel=1e-9
    ), "the bound is of all splits"


def test_the_bound_is_of_the_whole_budget_even_if_parts_have_less():
    parts = tuple(
        replace(part, budget=part.budget) for part in rp.plan(
            rp.Request(tables=TABLES, counts=COUNTS, budget=rp.Budget(rho="0.2"))
        ).parts
    )  # fmt: skip
    whole, wasteful = (rp.Plan(parts, rp.Budget(rho=rho), "0.2.0") for rho in ("0.2", "0.4"))
    assert wasteful.certificate.lower_bound == pytest.approx(whole.certificate.lower_bound / 2)
    assert wasteful.certificate.gap == pytest.approx(1, rel=1e-2)


def test_a_small_part_of_a_largest_error_gets_its_small_share():
    """Its share is below 1e-6, which rounding must hardly change."""
    tiny = rp.QueryList(rp.Domain((SEX,)), [[0.001, 0]], ("women",), [1])
    asked = {"tables": TABLES, "counts": tiny, "loss": rp.MaxVariance()}
    plan = rp.plan(rp.Request(**asked, budget=rp.Budget(rho=1)))
    assert plan.shares["counts"] < 1e-6
    assert plan.certificate.gap < 1e-5


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"tables": "1/2"}, "stated for tables and counts, each once, got tables"),
        ({"tables": "1/2", "counts": "1/2", "areas": "0"}, "each once, got"),
        (
            {"tables": "1/3", "counts": "0.6666"},
            "got tables=1/3, counts=3333/5000, in all 14999/15000; with counts=2/3 they do",
        ),
        ({"tables": "1", "counts": "0"}, "above 0"),
        ({"tables": "2", "counts": "-1"}, "above 0"),
        ({"tables": "many", "counts": "1"}, "share of tables must be"),
    ],
)
def test_shares_that_cannot_be_used_are_refused(shares, message):
    request = rp.Request(tables=TABLES, counts=COUNTS, budget=BUDGET, shares=shares)
    with pytest.raises((PlanError, WorkloadError, rp.errors.RpexploreError), match=message):
        rp.plan(request)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tables": TABLES, "rounds": ROUNDS}, "tables and rounds by you, as adaptive tables"),
        ({"counts": COUNTS, "rounds": ROUNDS}, "--share counts=1/2 --share rounds=1/2"),
        (
            {"tables": TABLES, "counts": COUNTS, "loss": rp.SumWithBoundedMax("equal", 0.1)},
            "as this objective does not say how the parts compare: state the shares",
        ),
    ],
)
def test_where_nothing_says_how_parts_compare_shares_must_be_stated(asked, message):
    with pytest.raises(PlanError, match=message):
        rp.plan(rp.Request(**asked, budget=BUDGET))
    kinds = [kind for kind in asked if kind != "loss"]
    plan = rp.plan(rp.Request(**asked, budget=BUDGET, shares=dict.fromkeys(kinds, "1/2")))
    assert plan.certificate is None
    assert plan.exact_privacy_cost <= plan.budget.privacy_cost
    assert plan.epsilon(BUDGET.stated_delta) <= 1
    assert rp.verify(plan).holds


def test_a_request_is_not_asked_for_with_another_budget():
    """It would be ignored."""
    request = rp.Request(tables=TABLES, budget=BUDGET)
    for options in ({"budget": BUDGET}, {"loss": rp.MaxVariance()}, {"tolerance": 0.1}):
        with pytest.raises(PlanError, match="has its own loss, budget, shares and options"):
            rp.plan(request, **options)


def test_required_targets_are_met_within_the_share():
    """Such a plan is not that of another budget, scaled."""
    required = rp.Workload.of(
        DOMAIN, ["age", ("age", "sex")], targets=[2, None], required=[True, False]
    )
    loss = rp.SumWithinTargets()
    shares = {"tables": "3/4", "counts": "1/4"}
    budget = rp.Budget(rho="0.8")
    plan = rp.plan(
        rp.Request(tables=required, counts=COUNTS, loss=loss, budget=budget, shares=shares)
    )
    alone = plan_tables(required, loss=loss, budget=rp.Budget(privacy_cost="1.2"))
    assert plan.part("tables").text == alone.text
    assert rp.verify(plan).holds


def test_who_asks_less_of_a_count_gives_it_no_more_of_the_budget():
    def share(target):
        counts = rp.QueryList(rp.Domain((SEX,)), [[1, 0], [0, 1]], ("men", "women"), [1, target])
        return rp.plan(rp.Request(tables=TABLES, counts=counts, budget=BUDGET)).shares["counts"]

    shares = [share(target) for target in (1, 3, 10, 100)]
    assert shares == sorted(shares, reverse=True)


def test_a_bound_of_several_parts_says_what_holds_of_each():
    plan = rp.plan(
        rp.Request(tables=TABLES, areas=AREAS, counts=COUNTS, budget=BUDGET, uniform_levels=True)
    )
    assert "independent noise on every area and one precision a level" in plan.proven
    assert "own counts measured as here" in plan.proven


def test_what_is_said_of_each_part_is_said_of_it_alone():
    plan = rp.plan(
        rp.Request(tables=TABLES, areas=AREAS, rounds=ROUNDS, budget=BUDGET,
                   shares={"tables": "1/2", "areas": "1/4", "rounds": "1/4"})
    )  # fmt: skip
    assert "Tables: every table's answers are unbiased" in plan.guarantee
    assert "Adaptive tables: the tables are adaptive estimates, which are biased" in plan.guarantee
    assert plan.guarantee.count("not only for an ideal") == 1
    assert f"{AREAS.n_tables} tables in areas" in plan.summary


def test_counts_of_another_attribute_go_with_tables_at_a_level():
    halves = (("North",), ("North",), ("South",))
    region = rp.Attribute("region", rp.Categories(tuple("abc")), groups=halves)
    domain = rp.Domain((region,)).with_levels
    jobs = rp.QueryList(rp.Domain.from_sizes({"job": 2}), [[0, 1]], ("jobs",), [5])
    tables = rp.Workload.of(domain, [domain.names[1:]])
    plan = rp.plan(rp.Request(tables=tables, counts=jobs, budget=rp.Budget(rho=1)))
    assert plan.domain.names == ("region", "job", "region@groups")
