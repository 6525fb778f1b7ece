"""The measures of accuracy: how values are written, and what a plan is in each of them."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import distributions, fairness
from rpexplore.analysis.budget_curves import (
    budget_for_value,
    describe_curves,
    half_value,
    quantile_curves,
    variances_in,
)
from rpexplore.analysis.expected_cells import ExpectedCells, in_measure
from rpexplore.analysis.measures import COEFFICIENT_OF_VARIATION, STANDARD_ERROR, VARIANCE
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.planner import optimum
from tests.analysis.schemes import accuracy_of

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7})
WORKLOAD = rp.Workload.all_up_to(DOMAIN, 2)


@pytest.fixture(scope="module")
def cells():
    """Nobody lives in four of the seven regions."""
    counts = (600.0, 0.0, 0.0, 200.0, 0.0, 0.0, 200.0)
    regions = tuple(str(region) for region in range(7))
    expected = ExpectedCounts(("region",), (regions,), counts)
    return ExpectedCells.of(expected, WORKLOAD)


def test_values_have_their_units():
    assert STANDARD_ERROR.stated(12.34, "people") == "12.3 people"
    assert VARIANCE.stated(152.3, "people") == "152 people²"
    assert COEFFICIENT_OF_VARIATION.stated(0.0412, "people") == "4.12 %"
    assert VARIANCE.label("people", "log scale") == "variance of a cell (people², log scale)"
    assert COEFFICIENT_OF_VARIATION.label("people") == "coefficient of variation of a cell"
    assert COEFFICIENT_OF_VARIATION.from_typed(5) == 0.05
    assert COEFFICIENT_OF_VARIATION.to_type(0.123456) == 12.35  # rounded up
    assert STANDARD_ERROR.to_type(1234567) == 1235000


def test_variances_are_squares_in_every_analysis():
    errors = accuracy_of(WORKLOAD)
    variances = in_measure(errors, VARIANCE, None)
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


def test_a_table_has_the_coefficient_of_variation_of_its_median_cell(cells):
    errors = accuracy_of(WORKLOAD)
    accuracy = in_measure(errors, COEFFICIENT_OF_VARIATION, cells)
    values = dict(zip(WORKLOAD.tables, accuracy.values, strict=True))
    error = dict(zip(WORKLOAD.tables, errors.standard_errors, strict=True))
    # 1,000 people: 500 of each sex.
    assert values["sex",] == pytest.approx(error["sex",] / 500)
    # Most regions are empty: their tables have no such cell.
    assert np.isnan(values["region",])
    assert accuracy.cell_text == (
        "Of each table, its median cell is shown. 3 tables whose median cell has no expected count "
        "are left out."
    )
    assert set(fairness.by_attribute(accuracy)["attribute"]) == {"age", "sex"}
    assert len(distributions.points([accuracy])) == 4
    assert distributions.bins([accuracy])["tables"].sum() == 4
    assert fairness.measures_of(accuracy)["largest"] == pytest.approx(values["age", "sex"])
    assert fairness.ranking(accuracy)["table"].tolist()[0] == "age × sex"
    least, most = fairness.least_and_most_accurate(accuracy)
    assert {*least["table"], *most["table"]} == {"(total)", "age", "sex", "age × sex"}
    assert " %" in fairness.describe_unevenness(accuracy, "people")


def test_curves_against_the_budget(cells):
    solved, budget = optimum(WORKLOAD, loss=rp.SumOfVariances()), rp.Budget(rho="0.1")
    plan = solved.at(budget)
    (high, _, _) = quantile_curves(solved)
    # Half of the variance takes twice the budget, and four times as much a quarter.
    rho, value = half_value(high, budget, VARIANCE)
    assert (rho, value) == pytest.approx((0.2, plan.standard_errors.max() ** 2 / 2))
    sentence = describe_curves([high], budget, "people", VARIANCE)
    assert "Half of it takes twice the budget" in sentence
    quarter = budget_for_value(high, plan.standard_errors.max() ** 2 / 4, budget, VARIANCE)
    assert quarter.times == pytest.approx(4)
    relative = variances_in(solved, COEFFICIENT_OF_VARIATION, cells)
    least, *_ = quantile_curves(solved, relative)
    assert least.table == "age × sex"
    error = plan.standard_errors[WORKLOAD.position(("age", "sex"))]
    assert least.value(0.1, budget, COEFFICIENT_OF_VARIATION) == pytest.approx(error * 60 / 1000)
