"""Every scenario of `scenarios` in turn."""

import pytest

from rpexplore.scenarios.scenario import Scenario
from tests.export.scenarios import SCENARIOS


@pytest.fixture(params=SCENARIOS, ids=str)
def scenario(request) -> Scenario:
    return SCENARIOS[request.param]
