"""What a release gives away about who was in the data, against tests that can be computed."""

import pytest
from scipy.stats import norm

from rpexplore.privacy import conversions as privacy
from rpexplore.privacy.detection import most_detected


@pytest.mark.parametrize("rho", ["0.0001", "0.01", "0.1", "0.5", "2"])
@pytest.mark.parametrize("false_alarms", [0.001, 0.05, 0.3])
def test_no_test_of_continuous_noise_does_better(rho, false_alarms):
    """Continuous Gaussian noise is ρ-zCDP: the best test against it keeps within the bound."""
    mu = privacy.mu_from_privacy_cost(privacy.privacy_cost_from_rho(rho))
    best_test = norm.cdf(norm.ppf(false_alarms) + mu)
    bound = most_detected(rho, false_alarms)
    assert best_test <= bound <= 1
    # The conversion from ρ is not tight, but far from empty while there is privacy left.
    assert bound <= max(2.5 * best_test, 1.5 * false_alarms)


def test_without_privacy_loss_guessing_is_all():
    assert most_detected("1e-12", 0.05) == pytest.approx(0.05, rel=1e-3)


def test_more_budget_can_only_give_away_more():
    bounds = [most_detected(rho, 0.05) for rho in ("0.001", "0.01", "0.1", "1", "10", "100")]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(1)
