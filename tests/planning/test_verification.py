"""Verification: honest plans pass, and every tampered claim is found."""

import warnings
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.numbers import exact_text
from rpexplore.errors import PlanError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.planning.verification import Verification
from tests.support.made import Made
from tests.support.plan_texts import content_of, laid_out
from tests.support.strategies import budgets, domains, losses, workloads, workloads_with_bases


def check_honest(plan: TablePlan) -> list[Verification]:
    """The verifications of a plan and of its file, which must hold."""
    verifications = [rp.verify(held) for held in (plan, TablePlan.parse(plan.text))]
    for verification in verifications:
        assert verification.holds, str(verification)
    return verifications


@given(
    workloads(weights=st.floats(1e-6, 1e6)) | workloads(domains(max_size=10**6)),
    losses(),
    budgets(least=1e-6),
)
@settings(deadline=None, max_examples=80)
def test_honest_plans_hold(workload, loss, budget):
    for verification in check_honest(plan_tables(workload, loss=loss, budget=budget)):
        assert len(verification.checks) == 4 + (budget.stated_epsilon is not None)
        assert budget.unit in verification.guarantee


def make_plan(loss):
    domain = rp.Domain.from_sizes({"a": 7, "b": 3, "c": 2})
    workload = rp.Workload.of(
        domain,
        [("a", "b"), ("b", "c"), ("a",), ()],
        weights=[1, 3, 2, 1],
        targets=[3, 4, 5, 6],
    )
    return plan_tables(workload, loss=loss, budget=rp.Budget(rho=1, max_records_per_person=2))


PLANS = Made(
    {
        type(loss).__name__ + getattr(loss, "relative_to", ""): partial(make_plan, loss)
        for loss in (rp.SumOfVariances("cells"), rp.MaxVariance(), rp.MaxVariance("target"))
    }
)


@pytest.fixture(params=PLANS)
def plan(request):
    return PLANS[request.param]


def failed(content) -> set[str] | None:
    """Names of the checks a plan file's content fails; None if reading already refuses it."""
    try:
        plan = TablePlan.parse(laid_out(content), canonical=False)
    except PlanError:
        return None
    verification = rp.verify(plan)
    assert verification.holds == all(check.holds for check in verification.checks)
    assert verification.holds or "does not hold what it claims" in str(verification)
    return {check.name for check in verification.checks if not check.holds}


def scaled(content, factor, *path):
    *above, last = path
    for key in above:
        content = content[key]
    content[last] *= factor


def scaled_variances(content, factor, table):
    """Of a marginal: its cells have one variance."""
    for name in ("variance", "largest_variance", "smallest_variance"):
        content["tables"][table][name] *= factor


def change_sigma_squared(content, index, factor):
    row = content["residuals"][index]
    row["sigma_squared"] = exact_text(Fraction(row["sigma_squared"]) * factor)


def claim(content, **factors):
    """Scale parts of the certificate, and keep its gap consistent with them."""
    stated = content["certificate"]
    for name, factor in factors.items():
        stated[name] *= factor
    stated["gap"] = max(stated["loss"] / stated["lower_bound"] - 1, 0.0)


def change_exact(content, factor, *path):
    *above, last = path
    for key in above:
        content = content[key]
    content[last] = exact_text(Fraction(content[last]) * factor)


def test_untouched_content_holds(plan):
    assert failed(content_of(plan.text)) == set()


# What is done to the content: (how, the check that must fail, or None: any, or refused on reading)
TAMPERED = {
    "σ² of the total halved": (
        lambda c: change_sigma_squared(c, 0, Fraction(1, 2)),
        "privacy cost",
    ),
    "last σ² halved": (lambda c: change_sigma_squared(c, -1, Fraction(1, 2)), "privacy cost"),
    "σ² of the total at 1e-40": (
        lambda c: change_sigma_squared(c, 0, Fraction(1, 10**40)),
        "privacy cost",
    ),
    "σ² lower in the 10th digit": (
        lambda c: change_sigma_squared(c, 1, Fraction(10**10 - 1, 10**10)),
        "privacy cost",
    ),
    "σ² doubled": (lambda c: change_sigma_squared(c, 1, 2), "variances"),
    "σ² higher in the 11th digit": (
        lambda c: change_sigma_squared(c, 1, Fraction(10**11 + 1, 10**11)),
        "variances",
    ),
    "σ² below floats": (
        lambda c: c["residuals"][0].update(sigma_squared="0." + "0" * 400 + "1"),
        None,
    ),
    "σ² far below floats": (
        lambda c: c["residuals"][0].update(sigma_squared="0." + "0" * 4000 + "1"),
        None,
    ),
    "σ² above floats": (lambda c: c["residuals"][0].update(sigma_squared="1" + "0" * 400), None),
    "cost halved": (lambda c: change_exact(c, Fraction(1, 2), "privacy_cost"), "privacy cost"),
    "cost lower in the 15th digit": (
        lambda c: change_exact(c, 1 - Fraction(1, 10**14), "privacy_cost"),
        "privacy cost",
    ),
    "cost above the budget": (
        lambda c: change_exact(c, 1 + Fraction(1, 10**6), "privacy_cost"),
        "privacy cost",
    ),
    "variance higher in the 11th digit": (
        lambda c: scaled_variances(c, 1 + 1e-10, 0),
        "variances",
    ),
    "variance lower in the 11th digit": (
        lambda c: scaled_variances(c, 1 - 1e-10, 3),
        "variances",
    ),
    "variance zero": (lambda c: scaled_variances(c, 0, 2), "variances"),
    "loss lower in the 11th digit": (lambda c: claim(c, loss=1 - 1e-10), "loss"),
    "loss higher in the 11th digit": (lambda c: claim(c, loss=1 + 1e-10), "loss"),
    "bound higher in the 11th digit": (
        lambda c: claim(c, lower_bound=1 + 1e-10),
        "optimality",
    ),
    "bound doubled": (lambda c: claim(c, lower_bound=2), "optimality"),
    "gap of one half": (lambda c: c["certificate"].update(gap=0.5), None),
    "gap below zero": (lambda c: c["certificate"].update(gap=-1), None),
    "budget halved": (lambda c: c["budget"]["stated"].update(rho="0.5"), None),
    "budget's cost lower": (lambda c: c["budget"].update(privacy_cost="1"), None),
    "budget's cost higher": (lambda c: c["budget"].update(privacy_cost="3"), None),
    "more records a person": (
        lambda c: c["budget"].update(max_records_per_person=3),
        "privacy cost",
    ),
    "fewer records a person": (lambda c: c["budget"].update(max_records_per_person=1), None),
    "one shadow price": (lambda c: c["tables"][1].update(shadow_price=0.9), None),
    "one huge shadow price": (lambda c: c["tables"][1].update(shadow_price=1e300), None),
    "no shadow prices": (lambda c: [row.update(shadow_price=0) for row in c["tables"]], None),
    "a key nobody knows": (lambda c: c.update(note="approved"), None),
    "a larger attribute": (
        lambda c: c["domain"]["fields"][0]["constraints"].update(maximum=7),
        "privacy cost",
    ),
}


@pytest.mark.parametrize(("tamper", "check"), TAMPERED.values(), ids=TAMPERED)
def test_tampered_claims_are_found(plan, tamper, check):
    content = content_of(plan.text)
    tamper(content)
    broken = failed(content)
    assert broken is None or broken, "accepted"
    if check is not None:
        assert broken is None or check in broken


@pytest.mark.parametrize("name", ["SumOfVariances", "MaxVarianceweight"])
def test_another_weight_makes_another_loss(name):
    for factor in (5, 1e308):
        content = content_of(PLANS[name].text)
        scaled(content, factor, "tables", 0, "weight")
        with warnings.catch_warnings(action="error"):
            assert "loss" in failed(content)


def test_a_claim_made_more_modest_is_still_true(plan):
    """A bound that is too low, or a cost stated higher within the budget, deceives nobody."""
    content = content_of(plan.text)
    claim(content, lower_bound=0.5)
    content["privacy_cost"] = content["budget"]["privacy_cost"]
    assert failed(content) == set()


def test_plan_that_wastes_its_budget_is_within_it_but_says_so():
    plan = PLANS["SumOfVariances"]
    content = content_of(plan.text)
    for index in range(len(content["residuals"])):
        change_sigma_squared(content, index, 2)
    for table in range(len(content["tables"])):
        scaled_variances(content, 2, table)
    claim(content, loss=2)
    verification = rp.verify(TablePlan.parse(laid_out(content), canonical=False))
    assert verification.holds
    assert "within 1.1 (relative)" in str(verification)


def test_guarantee_in_words():
    verification = rp.verify(PLANS["SumOfVariances"])
    assert "ρ = 1 for one person with at most 2 records" in verification.guarantee
    assert "δ = 1e-6" in verification.guarantee
    assert str(verification).count("ok  ") == 4
    assert verification.guarantee in str(verification)


@pytest.mark.parametrize("cost", ["0.1", "0.002718281828", "1234567.89", "1e-9", "0.001"])
def test_figures_in_words_never_understate_the_loss_of_privacy(cost):
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 3, "b": 2}), 2)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(privacy_cost=cost))
    parts = rp.verify(plan).guarantee.replace(",", "").split()
    assert Fraction(parts[parts.index("ρ", 8) + 2]) >= plan.rho
    for at, word in enumerate(parts):
        if word == "ε" and parts[at + 1] == "=":
            delta = parts[at + 6].rstrip(".,")
            assert Fraction(parts[at + 2]) >= Fraction(plan.epsilon(delta))


@pytest.mark.parametrize("cost", ["1e-15", "1e-13", "1e-100", "1e29", "1e99"])
def test_extreme_budgets(cost):
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 3, "b": 2}), 2)
    plan = plan_tables(workload, loss=rp.MaxVariance(), budget=rp.Budget(privacy_cost=cost))
    assert rp.verify(plan).holds


def test_a_long_sum_of_equal_terms_does_not_prove_too_much():
    """166,750 tables that all come down to the total: sequential float sums drift by 1e-12."""
    sizes = {"a": 2} | {f"one{index}": 1 for index in range(100)}
    domain = rp.Domain.from_sizes(sizes)
    workload = rp.Workload.all_up_to(domain, 3)
    weights = rp.Workload(domain, workload.members, np.full(len(workload), 0.1), workload.targets)
    plan = plan_tables(weights, loss=rp.SumOfVariances(), budget=rp.Budget(privacy_cost=1))
    with_a = sum("a" in table for table in workload.tables)
    v_total = Fraction(len(workload) - with_a) + Fraction(with_a, 4)  # coefficients of σ²
    v_a = Fraction(with_a, 2)
    optimum = (mpmath.sqrt(0.1) * (mpmath.sqrt(v_total) + mpmath.sqrt(v_a / 2))) ** 2
    assert plan.certificate.lower_bound <= optimum
    assert plan.certificate.lower_bound >= optimum * (1 - 1e-9)
    assert rp.verify(plan).holds


def test_a_bound_above_what_is_proven_is_found(plan):
    """Even by a hair: nothing is allowed in the plan's favour."""
    content = content_of(plan.text)
    certificate = content["certificate"]
    certificate["lower_bound"] = certificate["loss"] * (1 + 1e-12)
    certificate["gap"] = 0.0
    assert failed(content) == {"optimality"}


# ---- plans that ask attributes other than by single values


def make_asked(loss) -> TablePlan:
    domain = rp.Domain.from_sizes({"a": 5, "b": 3})
    workload = rp.Workload.of(domain, [("a", "b"), ("b",), ("a",), ()], targets=[4, 3, 2, 6])
    workload = workload.with_bases({"a": rp.Prefix(), "b": rp.Hierarchy((2,))})
    workload = workload.with_bases({"a": rp.Identity()}, tables=["a"])
    return plan_tables(workload, loss=loss, budget=rp.Budget(rho=1))


ASKED = Made(
    {
        "sum": lambda: make_asked(rp.SumOfVariances()),
        "max": lambda: make_asked(rp.MaxVariance("target")),
    }
)


@pytest.fixture(params=ASKED)
def based(request) -> TablePlan:
    return ASKED[request.param]


@given(
    workloads_with_bases(workloads(domains(max_attributes=3, max_size=4), max_tables=3)),
    losses(),
    budgets(least=1e-6),
)
@settings(deadline=None, max_examples=25)
def test_honest_plans_hold_in_whatever_bases(workload, loss, budget):
    check_honest(plan_tables(workload, loss=loss, budget=budget))


def change_entry(content, by):
    """Change the largest entry of a strategy."""
    matrix = content["strategies"][0]["matrix"]
    largest = max((abs(entry), r, c) for r, row in enumerate(matrix) for c, entry in enumerate(row))
    matrix[largest[1]][largest[2]] *= by


def turn_entry(content):
    """Swap two entries of a column: the cost stays, what is decoded does not."""
    matrix = content["strategies"][0]["matrix"]
    column = next(c for c in range(len(matrix[0])) if matrix[0][c] != matrix[1][c])
    matrix[0][column], matrix[1][column] = matrix[1][column], matrix[0][column]


# What is done to the content: (how, the checks of which one must fail, of a sum, of a maximum)
TAMPERED_ASKED = {
    "a strategy's largest entry up": (lambda c: change_entry(c, 1.0625), {"privacy cost"}),
    "a strategy's largest entry down": (
        lambda c: change_entry(c, 0.9375),
        {"privacy cost", "variances"},
    ),
    "two entries of a strategy swapped": (turn_entry, {"variances"}),
    "a strategy of twice the size": (
        lambda c: c["strategies"][0].update(bits=c["strategies"][0]["bits"] - 1),
        {"privacy cost"},
    ),
    "a strategy of half the size": (
        lambda c: c["strategies"][0].update(bits=c["strategies"][0]["bits"] + 1),
        {"variances"},
    ),
    "mean variance higher": (lambda c: scaled(c, 1 + 1e-7, "tables", 1, "variance"), {"variances"}),
    "worst variance lower": (
        lambda c: scaled(c, 1 - 1e-7, "tables", 1, "largest_variance"),
        {"variances"},
    ),
    "worst variance higher": (
        lambda c: scaled(c, 2, "tables", 3, "largest_variance"),
        {"variances"},
    ),
    "best variance lower": (
        lambda c: scaled(c, 1 - 1e-7, "tables", 2, "smallest_variance"),
        {"variances"},
    ),
    "worst and best exchanged": (
        lambda c: c["tables"][3].update(
            largest_variance=c["tables"][3]["smallest_variance"],
            smallest_variance=c["tables"][3]["largest_variance"],
        ),
        {"variances"},
    ),
    "σ² of a residual halved": (
        lambda c: change_sigma_squared(c, -1, Fraction(1, 2)),
        {"privacy cost"},
    ),
    "σ² of a residual doubled": (lambda c: change_sigma_squared(c, -1, 2), {"variances"}),
    "lower bound raised": (lambda c: claim(c, lower_bound=1 + 1e-6), {"optimality"}),
    "loss lower": (lambda c: claim(c, loss=1 - 1e-7), {"loss"}),
    "another basis": (
        lambda c: c["bases"][0]["bases"].__setitem__(1, {"kind": "windows", "width": 2}),
        {"variances"},
    ),
    "a table in the other basis": (
        lambda c: c["tables"][3].update(basis_index=[0, 0]),
        {"variances"},
    ),
}


@pytest.mark.by_day(1)
def test_honest_claims_about_strategies_are_found_right(based):
    assert failed(content_of(based.text)) == set()


@pytest.mark.by_day(4)
@pytest.mark.parametrize(("tamper", "checks"), TAMPERED_ASKED.values(), ids=TAMPERED_ASKED)
def test_tampered_claims_about_strategies_are_found(based, tamper, checks):
    content = content_of(based.text)
    tamper(content)
    for strategy in content["strategies"]:
        strategy["matrix"] = [[round(entry) for entry in row] for row in strategy["matrix"]]
    broken = failed(content)
    assert broken is None or broken, "accepted"
    assert broken is None or broken & checks


def test_cells_that_prove_the_bound_are_looked_at():
    content = content_of(ASKED["max"].text)
    assert content["cells"]
    scaled(content, 0.5, "cells", 0, "shadow_price")
    assert failed(content) == {"optimality"}
    content = content_of(ASKED["max"].text)
    content["cells"] = []
    assert failed(content) == {"optimality"}
    content = content_of(ASKED["max"].text)
    most = max(content["cells"], key=lambda cell: cell["shadow_price"])
    most["rows"] = [0] * len(most["rows"])
    assert failed(content) == {"optimality"}


def test_a_table_claims_no_more_with_its_cells_than_with_itself():
    """A table's price is what its cells' prices add up to."""
    content = content_of(ASKED["max"].text)
    tables = content["tables"]
    dear = max(range(4), key=lambda row: tables[row]["shadow_price"])
    other = (dear + 1) % 4
    tables[other]["shadow_price"] += tables[dear]["shadow_price"]
    tables[dear]["shadow_price"] = 0.0
    assert failed(content) == {"optimality"}
