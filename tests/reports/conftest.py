"""Every scenario of `scenarios` in turn."""

import pytest

from rpexplore.analysis import drawn_areas, populations
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from tests.reports.reports import plan_of
from tests.reports.scenarios import SCENARIOS


@pytest.fixture(autouse=True)
def few_populations(monkeypatch):
    """Each forecast draws 48, which takes 0.1 s; how ranges hold is tried in `tests/analysis`."""
    monkeypatch.setattr(populations, "N_POPULATIONS", 6)
    monkeypatch.setattr(drawn_areas, "_GRAINS", ((6, 24),))


@pytest.fixture(params=SCENARIOS, ids=str)
def name(request) -> str:
    return request.param


@pytest.fixture
def scenario(name) -> Scenario:
    return SCENARIOS[name]


@pytest.fixture
def plan(name) -> TablePlan:
    return plan_of(name)
