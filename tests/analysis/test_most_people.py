"""Weights for most people in good cells: against the forecasts of many other weights."""

from itertools import product

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.most_people import MostPeople
from tests.domain.test_public_tables import DOMAIN, table

PUBLIC = (table("age", [300, 200, 60, 40, 20, 10]), table("job", [400, 200, 30]))
TABLES = rp.Workload.of(DOMAIN, [("age",), ("sex",), ("age", "job")])
BUDGET = rp.Budget(rho="0.004")


def forecast(weights: np.ndarray, found: MostPeople) -> rp.Forecast:
    named = dict(zip(TABLES.tables, weights, strict=True))
    plan = rp.plan(TABLES.with_weights(named), loss=rp.SumOfVariances(), budget=BUDGET)
    return rp.Forecast(plan, drawn=found.counts, limit=found.limit, survey=found.survey)


@pytest.mark.parametrize(
    ("certainty", "survey"), [("median", None), ("surely", rp.SurveyDesign(1.5))]
)
def test_no_other_weights_have_more_people_in_good_cells(certainty, survey):
    """Beside 64 others, each 2.5 times the one before; and what is said of those found."""
    found = MostPeople(TABLES, BUDGET, public=PUBLIC, certainty=certainty, survey=survey)
    end = {"median": "median", "surely": "low"}[certainty]
    reached = forecast(found.workload.weights, found)
    assert found.people == pytest.approx(reached.people, abs=1e-6)
    assert found.before == pytest.approx(forecast(np.ones(3), found).people, abs=1e-6)
    others = product(2.5 ** np.arange(-4, 4), repeat=2)
    best = max(getattr(forecast(np.array([1.0, *pair]), found).people, end) for pair in others)
    assert getattr(found.people, end) >= best - 0.006
    assert getattr(found.people, end) > getattr(found.before, end) + 0.01
