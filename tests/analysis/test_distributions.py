"""Distribution functions against their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import distributions
from rpexplore.analysis.distributions import errors_by_order, errors_by_plan, quantiles
from rpexplore.analysis.measures import SCHEMES
from tests.analysis.schemes import accuracy_of, of_schemes, with_errors

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7})


def one_way(errors):
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(len(errors))})
    workload = rp.Workload.all_of_order(domain, 1)
    return with_errors(workload, errors)


def share_at_most(errors, value):
    return float(np.mean(np.array(errors) <= value))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0]) | st.floats(1, 100), min_size=1))
def test_a_short_curve_is_the_distribution_function(errors):
    frame = distributions.curves(errors_by_order(one_way(errors)))
    assert frame["share"].iloc[0] == 0
    assert frame["share"].iloc[-1] == 1
    for error in set(errors):
        last = frame.loc[frame["standard_error"] == error, "share"].max()
        assert last == pytest.approx(share_at_most(errors, error))


@settings(deadline=None, max_examples=50)
@given(st.integers(201, 1500), st.integers(0, 2**32 - 1))
def test_a_long_curve_has_few_points_and_all_lie_on_the_function(count, seed):
    errors = np.random.default_rng(seed).lognormal(0, 2, count)
    frame = distributions.curves(errors_by_order(one_way(errors)))
    assert len(frame) <= distributions.MOST_STEPS + 1
    assert np.all(np.diff(frame["standard_error"]) >= 0)
    assert np.all(frame["share"] >= np.arange(201) / 200 - 1e-12)
    assert np.all(frame["share"] < np.arange(201) / 200 + 1 / count)
    for row in frame[1:].to_dict("records"):
        assert row["share"] == pytest.approx(share_at_most(errors, row["standard_error"]))


def test_curves_by_order_are_of_the_tables_of_that_order():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2))
    frame = distributions.curves(errors_by_order(accuracy))
    assert frame["series"].unique().tolist() == ["total", "1 attribute", "2 attributes"]
    for group in (0, 1, 2):
        errors = np.sort(accuracy.standard_errors[accuracy.workload.orders == group])
        drawn = frame.loc[frame["group"] == group, "standard_error"].tolist()
        assert drawn == [errors[0], *errors]


def test_high_orders_share_a_curve():
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(7)})
    frame = distributions.curves(errors_by_order(accuracy_of(rp.Workload.all_up_to(domain, 7))))
    assert frame["series"].unique().tolist()[-1] == "5 attributes or more"
    assert frame["group"].max() == 5
    five = distributions.curves(errors_by_order(accuracy_of(rp.Workload.all_up_to(domain, 5))))
    assert five["series"].unique().tolist()[-1] == "5 attributes"


def test_curves_by_plan():
    schemes = of_schemes(rp.Workload.all_up_to(DOMAIN, 2))
    frame = distributions.curves(errors_by_plan(schemes))
    assert frame["series"].unique().tolist() == list(SCHEMES)
    for number, accuracy in enumerate(schemes):
        drawn = frame.loc[frame["group"] == number, "standard_error"]
        assert drawn.max() == accuracy.standard_errors.max()


def test_quantiles():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2))
    frame = quantiles(errors_by_order(accuracy)).set_index("series")
    assert frame.index.tolist() == ["total", "1 attribute", "2 attributes"]
    assert frame["tables"].tolist() == [1, 3, 3]
    ones = accuracy.standard_errors[1:4]
    drawn = frame.loc["1 attribute", ["smallest", "lower_quartile", "upper_tenth", "largest"]]
    assert drawn.tolist() == pytest.approx(np.quantile(ones, [0, 0.25, 0.9, 1]).tolist())


def test_sentence_by_order():
    accuracy = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2), rp.SumOfVariances("cells"))
    frame = quantiles(errors_by_order(accuracy))
    sentence = distributions.describe_by_order(frame, "people")
    assert sentence.startswith("Median standard errors range from ")
    assert " for tables of 2 attributes to " in sentence
    assert sentence.endswith(" for the total.")


def test_sentence_where_orders_do_not_differ():
    even = accuracy_of(rp.Workload.all_up_to(DOMAIN, 2), rp.MaxVariance())
    sentence = distributions.describe_by_order(quantiles(errors_by_order(even)), "people")
    assert "at every number of attributes" in sentence
    single = accuracy_of(rp.Workload.all_of_order(DOMAIN, 1))
    sentence = distributions.describe_by_order(quantiles(errors_by_order(single)), "people")
    assert sentence.startswith("The median standard error is ")
    assert "at every number" not in sentence


def test_sentence_by_plan():
    schemes = of_schemes(rp.Workload.all_up_to(DOMAIN, 2))
    frame = quantiles(errors_by_plan(schemes))
    sentence = distributions.describe_by_plan(frame, "people")
    assert sentence.startswith(
        f"“{frame.loc[frame['median'].idxmin(), 'series']}” has the smallest"
    )
    assert frame.loc[frame["upper_tenth"].idxmin(), "series"] in sentence
    same = frame.assign(median=3.0, upper_tenth=4.0)
    assert distributions.describe_by_plan(same, "people").startswith("Under every plan half")
    one = frame.assign(upper_tenth=frame["median"])
    assert "nine in ten at most" in distributions.describe_by_plan(one, "people")
