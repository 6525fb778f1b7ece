"""The measures of accuracy: how values are written, and what a plan is in each of them."""

import pytest

import rpexplore as rp
from rpexplore.analysis import distributions, fairness
from rpexplore.analysis.budget_curves import (
    budget_for_value,
    describe_curves,
    half_value,
    quantile_curves,
)
from rpexplore.analysis.measures import STANDARD_ERROR, VARIANCE
from rpexplore.planning.planner import optimum
from tests.analysis.schemes import accuracy_of

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7})
WORKLOAD = rp.Workload.all_up_to(DOMAIN, 2)


def test_values_have_their_units():
    assert STANDARD_ERROR.stated(12.34, "people") == "12.3 people"
    assert VARIANCE.stated(152.3, "people") == "152 people²"
    assert VARIANCE.label("people", "log scale") == "variance of a cell (people², log scale)"
    assert STANDARD_ERROR.to_type(1234567) == 1235000  # rounded up


def test_variances_are_squares_in_every_analysis():
    errors = accuracy_of(WORKLOAD)
    variances = errors.in_measure(VARIANCE)
    assert variances.values.tolist() == (errors.standard_errors**2).tolist()
    for field in ("smallest", "largest"):
        assert fairness.measures_of(variances)[field] == fairness.measures_of(errors)[field] ** 2
    frame = fairness.ranking(variances)
    assert frame["variance"].tolist() == (frame["standard_error"] ** 2).tolist()
    assert fairness.side_by_side(fairness.measures([variances]), VARIANCE)["measure"][0] == (
        "Smallest σ²"
    )
    by_order = distributions.curves(distributions.errors_by_order(variances), VARIANCE)
    assert by_order["variance"].max() == variances.values.max()
    assert "variance of " in fairness.describe_unevenness(variances, "people")
    assert " people²" in fairness.describe(fairness.by_attribute(variances), variances, "people")


def test_curves_against_the_budget():
    solved, budget = optimum(WORKLOAD, loss=rp.SumOfVariances()), rp.Budget(rho="0.1")
    plan = solved.at(budget)
    (high, _, _) = quantile_curves(solved)
    # Half of the variance takes twice the budget, and four times as much a quarter.
    rho, value = half_value(high, budget, VARIANCE)
    assert (rho, value) == pytest.approx((0.2, plan.standard_errors.max() ** 2 / 2))
    sentence = describe_curves([high], budget, "people", VARIANCE)
    assert "To halve it takes twice the budget" in sentence
    quarter = budget_for_value(high, plan.standard_errors.max() ** 2 / 4, budget, VARIANCE)
    assert quarter.times == pytest.approx(4)
