from fractions import Fraction

import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_rounds import PrivacyFilter

LEAST = Fraction(1, 10**30)


def test_exactly_the_total_may_be_spent_and_not_the_least_more():
    remaining = PrivacyFilter(Fraction(1, 3))
    for _ in range(7):
        remaining.spend(Fraction(1, 21))
    assert remaining.spent == Fraction(1, 3)
    assert remaining.remaining == 0
    with pytest.raises(ReleaseError, match="of which 0 remains; nothing was drawn"):
        remaining.spend(LEAST)


def test_a_refused_cost_is_not_counted():
    remaining = PrivacyFilter(Fraction(1, 2))
    remaining.spend(Fraction(1, 4))
    with pytest.raises(ReleaseError, match=r"would exceed the run's rho = 0\.5"):
        remaining.spend(Fraction(1, 4) + LEAST)
    assert remaining.remaining == Fraction(1, 4)
    remaining.spend(Fraction(1, 4))
    assert remaining.remaining == 0


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (0.1, "must be a Fraction, so that the privacy cost is exact, got float; .* upwards"),
        (Fraction(0), "must be above 0, got 0"),
        (Fraction(-1, 2), "must be above 0, got -1/2"),
    ],
)
def test_refuses_costs_that_are_no_costs(cost, message):
    with pytest.raises(ReleaseError, match=f"rho of a draw {message}"):
        PrivacyFilter(Fraction(1)).spend(cost)
    with pytest.raises(ReleaseError, match="rho of a run must be"):
        PrivacyFilter(cost)
