"""Standard errors that nobody would tell apart."""

import pytest

from rpexplore.planning.mechanism.variances import is_negligible_difference


@pytest.mark.parametrize(("high", "same"), [(2.0, True), (2.009, True), (2.02, False)])
def test_the_same_as_far_as_anybody_would_notice(high, same):
    assert is_negligible_difference(2.0, high) == same
