"""Tables from the worst off to the best off."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import rankings
from tests.analysis.schemes import forecast_of
from tests.published import figures


@pytest.fixture(scope="module")
def adult():
    return forecast_of(figures.workload("Adult", "<=3"), rp.SumOfVariances("cells"))


def test_ten_worst_and_ten_best(adult):
    worst, best = rankings.worst_and_best(adult)
    errors = np.sort(adult.standard_errors)
    assert worst["standard_error"].tolist() == errors[::-1][:10].tolist()
    assert best["standard_error"].tolist() == errors[:10].tolist()
    assert worst["table"].tolist()[0] == "(total)"
    assert worst["times_median"].tolist()[0] == errors[-1] / np.median(errors)


def test_all_tables(adult):
    frame = rankings.ranking(adult, rankings.all_titles(adult.workload))
    assert len(frame) == 470
    assert np.all(np.diff(frame["standard_error"]) <= 0)
    row = frame.set_index("table").loc["a0 × a13"]
    place = adult.workload.position(("a0", "a13"))
    assert row["standard_error"] == adult.standard_errors[place]
    assert row["cells"] == 200
    assert row["margin_95"] == pytest.approx(1.959964 * row["standard_error"], rel=1e-6)


@pytest.mark.parametrize("tables", [1, 2, 5, 20, 21])
def test_no_table_is_both_worst_and_best(tables):
    domain = rp.Domain.from_sizes({f"a{i}": i + 2 for i in range(tables)})
    worst, best = rankings.worst_and_best(forecast_of(rp.Workload.all_of_order(domain, 1)))
    assert not set(worst["table"]) & set(best["table"])
    assert len(worst) + len(best) == min(tables, 20)
    assert len(worst) >= len(best)
