"""Verification of limits and dual bounds: honest plans pass, and every tampered claim is found."""

from fractions import Fraction

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.losses.custom import UnavailableLoss
from rpexplore.planning.table_plan import TablePlan
from tests.planning.test_plan_file_duals import LOSS_OF, LOSSES, OWN, PLANS
from tests.planning.test_verification import change_sigma_squared, claim, failed, scaled
from tests.support.plan_texts import content_of, laid_out

DUAL = [
    name
    for name, loss in LOSS_OF.items()
    if not isinstance(loss, rp.SumOfVariances | rp.MaxVariance)
]
KNOWN = [name for name in DUAL if LOSS_OF[name] != OWN]
LIMITED = [
    name
    for name in DUAL
    if isinstance(LOSS_OF[name], rp.SumWithinTargets | rp.MaxWithinTargets | rp.SumWithBoundedMax)
]


@pytest.fixture
def plan(request) -> TablePlan:
    return PLANS[request.param]


@pytest.mark.by_day(5)
@pytest.mark.parametrize("plan", DUAL, indirect=True)
def test_honest_plans_hold(plan):
    for held in (plan, TablePlan.parse(plan.text)):
        verification = rp.verify(held)
        assert verification.holds, str(verification)
        names = [check.name for check in verification.checks]
        limited = plan in [PLANS[name] for name in LIMITED]
        first = "limit" if isinstance(plan.loss, rp.SumWithBoundedMax) else "required"
        assert names == [
            "privacy cost",
            "variances",
            "loss",
            *([first] if limited else []),
            "optimality",
        ]


def test_all_losses_are_tried():
    assert len(DUAL) == 2 * (len(LOSSES) - 2)
    assert len(LIMITED) == 6


def with_duals(content, change):
    weights = [row["dual_weight"] for row in content["tables"]]
    for row, weight in zip(content["tables"], change(weights), strict=True):
        row["dual_weight"] = weight


# What is done to the content, and the check that must fail (None: any, or refused on reading).
TAMPERED = {
    "bound higher in the 7th digit": (lambda c: claim(c, lower_bound=1 + 1e-6), "optimality"),
    "bound of a better plan": (lambda c: claim(c, lower_bound=2), "optimality"),
    "loss lower": (lambda c: claim(c, loss=1 - 1e-6), "loss"),
    "σ² of the total halved": (
        lambda c: change_sigma_squared(c, 0, Fraction(1, 2)),
        "privacy cost",
    ),
    "σ² doubled": (lambda c: change_sigma_squared(c, -1, 2), "variances"),
    "variance lower": (lambda c: scaled(c, 1 - 1e-6, "tables", 0, "variance"), None),
    "worst variance lower": (lambda c: scaled(c, 1 - 1e-6, "tables", 3, "largest_variance"), None),
    "best variance lower": (lambda c: scaled(c, 1 - 1e-6, "tables", 3, "smallest_variance"), None),
    "other dual weights": (lambda c: with_duals(c, lambda w: w[::-1]), "optimality"),
    "no dual weight above 0": (lambda c: with_duals(c, lambda w: [0.0] * len(w)), "optimality"),
    "dual weights of one table": (
        lambda c: with_duals(c, lambda w: [w[0], *[0.0] * (len(w) - 1)]),
        "optimality",
    ),
    "dual weights left out": (lambda c: with_duals(c, lambda w: [None] * len(w)), None),
    "budget's cost lower": (lambda c: c["budget"].update(privacy_cost="1"), None),
}


@pytest.mark.parametrize(("tamper", "check"), TAMPERED.values(), ids=TAMPERED)
@pytest.mark.parametrize("plan", KNOWN, indirect=True)
def test_tampered_claims_are_found(plan, tamper, check):
    content = content_of(plan.text)
    tamper(content)
    broken = failed(content)
    assert broken is None or broken, "accepted"
    if check is not None:
        assert broken is not None
        assert check in broken


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("plan", LIMITED, indirect=True)
def test_any_dual_weights_prove_no_more_than_is_true(plan, factor):
    """Of a loss with limits, dual weights other than the best ones prove a smaller bound."""
    for table in range(len(plan.workload)):
        if plan.certificate.shadow_prices[table] > 1e-3:
            content = content_of(plan.text)
            scaled(content, factor, "tables", table, "dual_weight")
            assert failed(content) == {"optimality"}


@pytest.mark.parametrize("kind", ["SumWithinTargets", "MaxWithinTargets"])
@pytest.mark.parametrize("suffix", ["", " with bases"])
def test_required_that_are_added_or_taken_away_are_found(kind, suffix):
    plan = PLANS[kind + suffix]
    for table, is_required in enumerate(plan.workload.required.tolist()):
        content = content_of(plan.text)
        content["tables"][table]["required"] = not is_required
        assert failed(content), "accepted"


@pytest.mark.parametrize("suffix", ["", " with bases"])
def test_required_that_are_not_met_are_found(suffix):
    plan = PLANS["SumWithinTargets" + suffix]
    content = content_of(plan.text)
    table = int(np.argmax(np.where(plan.workload.required, plan.certificate.shadow_prices, 0)))
    target = content["tables"][table]["target"]
    # Sharper than is met, even by a hair; the claimed bound may then stand or fall.
    content["tables"][table]["target"] = target * (1 - (1e-5 if suffix else 1e-10))
    broken = failed(content)
    assert broken is not None
    assert "required" in broken
    text = str(rp.verify(TablePlan.parse(laid_out(content), canonical=False)))
    assert "1 of 2 tables are above their largest allowed variance; the first is" in text


@pytest.mark.parametrize("suffix", ["", " with bases"])
@pytest.mark.parametrize("factor", [1 / 2, 1 - 1e-6, 1 + 1e-3, 2.0])
def test_another_limit_is_found(suffix, factor):
    content = content_of(PLANS["SumWithBoundedMax" + suffix].text)
    scaled(content, factor, "certificate", "limit")
    assert failed(content) in ({"limit"}, {"limit", "optimality"})


@pytest.mark.parametrize("suffix", ["", " with bases"])
@pytest.mark.parametrize("slack", [0.1, 0.15])
def test_a_limit_of_another_slack_is_found(suffix, slack):
    content = content_of(PLANS["SumWithBoundedMax" + suffix].text)
    content["loss"]["slack"] = slack
    assert failed(content) in ({"limit"}, {"limit", "optimality"})


OTHERS = [
    {"kind": "sum_within_targets", "weighting": "equal"},
    {"kind": "max_within_targets"},
    {"kind": "p_norm", "p": 2, "relative_to": "weight"},
    {"kind": "p_norm", "p": 3, "relative_to": "weight"},
    {"kind": "sum_of_variances", "weighting": "sqrt"},
    {"kind": "sum_with_bounded_max", "weighting": "sqrt", "slack": 0.5},
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda loss: loss["kind"])
@pytest.mark.parametrize("plan", KNOWN, indirect=True)
def test_a_plan_is_not_that_of_another_loss(plan, other):
    content = content_of(plan.text)
    if content["loss"] != other:
        content["loss"] = other
        assert failed(content) != set(), "accepted"


def test_cells_that_prove_the_bound_are_looked_at():
    for name in ("SumWithinTargets with bases", "MaxWithinTargets with bases"):
        content = content_of(PLANS[name].text)
        assert content["cells"]
        of_age = [cell for cell in content["cells"] if content["tables"][cell["table"]]["required"]]
        most = max(of_age, key=lambda cell: cell["shadow_price"])
        assert most["rows"] != [0]
        most["rows"] = [0]
        assert failed(content) == {"optimality"}
        content = content_of(PLANS[name].text)
        content["cells"] = []
        assert failed(content) == {"optimality"}


def test_of_an_own_loss_what_can_be_checked_is():
    for name in ("CustomLoss", "CustomLoss with bases"):
        content = content_of(PLANS[name].text)
        assert isinstance(TablePlan.parse(laid_out(content), canonical=False).loss, UnavailableLoss)
        change_sigma_squared(content, 0, Fraction(1, 2))
        assert "privacy cost" in (failed(content) or set())
        content = content_of(PLANS[name].text)
        scaled(content, 1 + 1e-6, "tables", 1, "variance")
        assert failed(content) in (None, {"variances"})
        content = content_of(PLANS[name].text)
        with_duals(content, lambda weights: [None] * len(weights))
        assert failed(content) is None


def test_a_claim_made_more_modest_is_still_true():
    for name in KNOWN:
        content = content_of(PLANS[name].text)
        claim(content, lower_bound=0.5)
        assert failed(content) == set()
