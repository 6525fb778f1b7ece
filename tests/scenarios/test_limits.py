"""What a scenario may ask of a shared server."""

import pytest

import rpexplore as rp
from rpexplore.common.server import Limits
from rpexplore.errors import LimitError
from rpexplore.scenarios.examples import sample_project
from rpexplore.scenarios.project import check_limits
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest

# 3 + 2 + 5 categories; 1 + 3 + 3 + 1 tables of 1 + 10 + 31 + 30 cells.
SCENARIO = Scenario(
    rp.Domain.from_sizes({"age": 3, "sex": 2, "region": 5}), WorkloadRequest(order=3)
)
EXACT = {"attributes": 3, "categories": 10, "tables": 8, "cells": 72}


@pytest.mark.parametrize("limit", EXACT)
def test_what_is_above_a_limit_is_refused_with_its_number(limit):
    check_limits(SCENARIO, Limits(**EXACT))
    with pytest.raises(LimitError, match=f"There would be {EXACT[limit]} ") as refused:
        check_limits(SCENARIO, Limits(**{**EXACT, limit: EXACT[limit] - 1}))
    assert f"at most {EXACT[limit] - 1};" in str(refused.value)


def test_areas_have_a_limit_of_their_own():
    scenario = sample_project().current
    check_limits(scenario, Limits(areas=24_939))
    with pytest.raises(LimitError, match="24,939 areas"):
        check_limits(scenario, Limits(areas=24_938))


def test_a_codebook_without_attributes_is_within_all_limits():
    check_limits(Scenario(rp.Domain(())), Limits(attributes=0, tables=0))
