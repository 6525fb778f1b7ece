"""Measures of evenness against their definitions, and what RP+ reports of the four schemes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import fairness
from rpexplore.analysis.measures import SCHEMES
from tests.analysis.schemes import accuracy_of, of_schemes, with_errors
from tests.published import figures

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7})
EQUAL, SQRT, CELLS, LARGEST = SCHEMES


@pytest.fixture(scope="module")
def schemes():
    return of_schemes(rp.Workload.all_up_to(DOMAIN, 2))


def one_way(*errors):
    """The accuracy of a plan whose tables (of one attribute each) have these standard errors."""
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(len(errors))})
    workload = rp.Workload.all_of_order(domain, 1)
    return with_errors(workload, errors)


errors_of_tables = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


@settings(deadline=None, max_examples=50)
@given(errors_of_tables)
def test_gini_is_half_the_relative_mean_difference(errors):
    errors = np.array(errors)
    differences = np.abs(errors[:, None] - errors[None, :])
    assert fairness.gini(errors) == pytest.approx(
        differences.mean() / (2 * errors.mean()), abs=1e-12
    )


@pytest.mark.parametrize(
    ("errors", "gini"), [([3.0], 0), ([5.0] * 4, 0), ([1, 3], 0.25), ([1e-9] * 99 + [1], 0.99)]
)
def test_gini_of_known_cases(errors, gini):
    assert fairness.gini(np.array(errors)) == pytest.approx(gini, abs=1e-6)


@settings(deadline=None, max_examples=50)
@given(errors_of_tables)
def test_measures_of_a_plan(errors):
    accuracy = one_way(*errors)
    measures = fairness.measures_of(accuracy)
    assert measures["smallest"] == min(errors)
    assert measures["largest"] == max(errors)
    assert measures["ratio"] == max(errors) / min(errors)
    assert measures["within_twice"] == np.mean([error <= 2 * min(errors) for error in errors])
    # The mean of two may be rounded in two ways.
    assert measures["median"] == pytest.approx(np.median(errors), rel=1e-14)
    if not fairness.is_even(accuracy):
        text = fairness.describe_unevenness(accuracy, "people")
        assert f"The least accurate table is a{errors.index(max(errors))}: " in text
        assert f"the most accurate, a{errors.index(min(errors))}, at " in text


def test_measures_of_each_plan(schemes):
    frame = fairness.measures(schemes)
    assert frame["plan"].tolist() == list(SCHEMES)
    assert set(frame.columns) == {"plan", *fairness.MEASURES}
    for row, accuracy in zip(frame.to_dict("records"), schemes, strict=True):
        errors = np.sort(accuracy.standard_errors)
        assert row["smallest"] == errors[0]
        assert row["largest"] == errors[-1]
        assert row["lower_tenth"] == pytest.approx(errors[0] * 0.4 + errors[1] * 0.6)
        assert row["upper_tenth"] == pytest.approx(errors[-1] * 0.4 + errors[-2] * 0.6)
        assert row["tenths_ratio"] == pytest.approx(row["upper_tenth"] / row["lower_tenth"])
        assert row["gini"] == pytest.approx(fairness.gini(errors))


def test_the_budget_changes_errors_only():
    workload = rp.Workload.all_up_to(DOMAIN, 3)
    small, large = (fairness.measures(of_schemes(workload, rho)) for rho in ("0.1", "0.9"))
    for name in ("ratio", "tenths_ratio", "gini", "within_twice"):
        assert small[name].tolist() == pytest.approx(large[name].tolist(), rel=1e-9)
    for name in ("smallest", "lower_tenth", "median", "upper_tenth", "largest"):
        assert small[name].tolist() == pytest.approx((3 * large[name]).tolist(), rel=1e-9)


def test_side_by_side_has_a_column_for_each_plan(schemes):
    frame = fairness.side_by_side(fairness.measures(schemes))
    assert frame.columns.tolist() == ["measure", *SCHEMES, "meaning"]
    rows = frame.set_index("measure")
    assert rows.loc["Largest ÷ smallest σ", LARGEST] == "1.00"
    assert rows.loc["Within twice the smallest", LARGEST] == "100 %"
    assert rows.loc["Gini index of σ", LARGEST] == "0.000"
    assert all(rows["meaning"])


# ---- words


def test_words_for_an_uneven_plan():
    sentence = fairness.describe_unevenness(one_way(3, 12, 4), "people")
    assert sentence == (
        "The least accurate table is a1: its standard error of 12 people is 4 times that of the "
        "most accurate, a0, at 3. 67 % of the tables are within twice the smallest."
    )


@pytest.mark.parametrize(
    ("errors", "sentence"),
    [
        (
            (3, 3.01),
            "All 2 tables are equally accurate: the standard error of a cell is 3 people; small "
            "counts still have the larger relative errors.",
        ),
        ((3,), "There is one table, a0: the standard error of a cell is 3 people."),
    ],
)
def test_words_where_nobody_is_worse_off(errors, sentence):
    assert fairness.describe_unevenness(one_way(*errors), "people") == sentence


def test_nearly_all_tables_are_not_all():
    accuracy = one_way(*[1.0] * 285, 9.0)
    assert "99.7 % of the tables are within" in fairness.describe_unevenness(accuracy, "people")
    frame = fairness.side_by_side(fairness.measures([accuracy]))
    assert "99.7 %" in frame.iloc[:, 1].tolist()


def test_words_for_the_measures(schemes):
    frame = fairness.measures(schemes)
    sentence = fairness.describe_measures(frame, "people")
    assert f"The most even plan is “{LARGEST}” (largest 1.00 times the smallest)" in sentence
    assert f"the least even “{CELLS}”" in sentence
    assert frame.loc[frame["median"].idxmin(), "plan"] in sentence.rpartition(" comes with ")[2]


def test_words_where_all_plans_are_even():
    frame = fairness.measures(of_schemes(rp.Workload.all_up_to(DOMAIN, 0)))
    assert fairness.describe_measures(frame, "people").startswith("All plans make all tables")


# ---- RP+ §6.2, Figures 1 to 3: the schemes at the same budget


@pytest.fixture(scope="module", params=["Adult", "CPS", "Loans"])
def published(request):
    workload = figures.workload(request.param, "<=3")
    accuracies = of_schemes(workload)
    return workload, {each.name: each.standard_errors**2 for each in accuracies}


def test_each_scheme_is_best_at_its_own_loss(published):
    workload, variances = published
    losses = {
        EQUAL: lambda v: np.sum(v),
        SQRT: lambda v: np.sum(np.sqrt(workload.cells) * v),
        CELLS: lambda v: np.sum(workload.cells * v),
        LARGEST: lambda v: np.max(v),
    }
    for scheme, loss in losses.items():
        values = {name: loss(v) for name, v in variances.items()}
        others = [value for name, value in values.items() if name != scheme]
        assert values[scheme] < min(others) * 0.999


def test_the_largest_variance_is_that_of_nearly_all_tables(published):
    """The max-variance plan lifts every table to the maximum where that is possible."""
    _, variances = published
    result = variances[LARGEST]
    assert np.median(result) > 0.999 * result.max()


def test_schemes_that_favour_cells_leave_small_tables_behind(published):
    workload, variances = published
    log_cells = np.log(workload.cells)
    trends = {name: np.corrcoef(log_cells, np.log(variances[name]))[0, 1] for name in (SQRT, CELLS)}
    assert max(trends.values()) < -0.9
    ratios = {name: v.max() / v.min() for name, v in variances.items()}
    assert ratios[LARGEST] < ratios[EQUAL] < ratios[SQRT] < ratios[CELLS]
    # The smallest table of all is the least accurate.
    assert np.argmax(variances[CELLS]) == np.argmin(workload.cells)


def test_own_weight_moves_accuracy_to_where_it_is_wanted():
    plain = rp.Workload.all_up_to(DOMAIN, 2)
    wanted = plain.with_weights({("sex",): 10.0})
    place = plain.position(("sex",))
    before, after = accuracy_of(plain), accuracy_of(wanted)
    assert after.standard_errors[place] < before.standard_errors[place]
    assert after.standard_errors.sum() > before.standard_errors.sum()


# ---- the most and the least accurate tables


@pytest.fixture(scope="module")
def adult():
    return accuracy_of(figures.workload("Adult", "<=3"), rp.SumOfVariances("cells"))


def test_the_ten_least_and_the_ten_most_accurate(adult):
    least, most = fairness.least_and_most_accurate(adult)
    errors = np.sort(adult.standard_errors)
    assert least["standard_error"].tolist() == errors[::-1][:10].tolist()
    assert most["standard_error"].tolist() == errors[:10].tolist()
    assert least["table"].tolist()[0] == "(total)"
    assert least["times_median"].tolist()[0] == errors[-1] / np.median(errors)


def test_all_tables(adult):
    frame = fairness.ranking(adult)
    assert len(frame) == 470
    assert np.all(np.diff(frame["standard_error"]) <= 0)
    row = frame.set_index("table").loc["a0 × a13"]
    place = adult.workload.position(("a0", "a13"))
    assert row["standard_error"] == adult.standard_errors[place]
    assert row["cells"] == 200
    assert row["margin_95"] == pytest.approx(1.959964 * row["standard_error"], rel=1e-6)


@pytest.mark.parametrize("tables", [1, 2, 5, 20, 21])
def test_no_table_is_both_least_and_most_accurate(tables):
    domain = rp.Domain.from_sizes({f"a{i}": i + 2 for i in range(tables)})
    least, most = fairness.least_and_most_accurate(accuracy_of(rp.Workload.all_of_order(domain, 1)))
    assert not set(least["table"]) & set(most["table"])
    assert len(least) + len(most) == min(tables, 20)
    assert len(least) >= len(most)
