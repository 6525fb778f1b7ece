"""What schemes are compared on, and which of them a plan is."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.forecast import SCHEMES, plain, scheme_of
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest

TABLES = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10, "sex": 2}), 2)
GROUP, SINGLE = GroupSetting((), weight=4.0, target=3.0), TableSetting(("age",), 2.0, 5.0)


@pytest.mark.parametrize(
    "request_", [WorkloadRequest(groups=(GROUP,)), WorkloadRequest(settings=(SINGLE,))]
)
def test_plain_tables_have_no_importance_however_it_was_given(request_):
    weighted = request_.workload(TABLES.domain)
    assert np.any(weighted.weights != 1)
    bare = plain(weighted)
    assert np.all(bare.weights == 1)
    assert np.isnan(bare.targets).all()
    assert bare.has_tables_of(weighted)
    for loss in SCHEMES.values():
        assert scheme_of(loss, weighted) == ""


def test_plain_tables_stay_the_same_object():
    assert plain(TABLES) is TABLES  # so that what was solved for them is found again


def test_the_scheme_of_a_plan():
    assert [scheme_of(loss, TABLES) for loss in SCHEMES.values()] == list(SCHEMES)
    assert scheme_of(rp.MaxVariance(relative_to="target"), TABLES) == ""
