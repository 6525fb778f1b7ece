"""The design of a survey: the formulas beside simulated samples, and what is refused."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.survey import (
    SurveyDesign,
    added_by_noise,
    counts_without_sampling,
    least_good_counts,
    sampling_variances,
)


def test_the_sampling_variance_is_that_of_simple_random_samples_without_replacement():
    """20,000 samples of 400 from 1,000: d = 1, f = 0.4; a cell of 250, a quarter, holds 100."""
    drawn = np.random.default_rng(1).hypergeometric(250, 750, 400, size=20_000)
    factors = SurveyDesign(sampling_fraction=0.4).factors([("age",)])
    # (1 − f) c (1 − c/n) = 0.6 · 100 · 0.75 = 45; N/(N − 1) of it is exact.
    assert sampling_variances(np.array([100.0]), 400, factors) == pytest.approx([45])
    assert np.var(drawn) == pytest.approx(45 * 1000 / 999, rel=0.03)


def test_the_sampling_variance_of_weighted_counts_has_kishs_design_effect():
    """Weights that do not depend on what is counted: d = 1 + CV², 20,000 samples of 500."""
    rng = np.random.default_rng(2)
    weights = rng.lognormal(0, 0.6, (20_000, 500))
    design = SurveyDesign.from_weights(np.std(weights) / np.mean(weights))
    inside = rng.random(weights.shape) < 0.2
    shares = (weights * inside).sum(1) / weights.sum(1)
    variance = sampling_variances(np.array([100.0]), 500, design.factors([()]))
    assert 500**2 * np.var(shares) == pytest.approx(variance[0], rel=0.04)


def test_the_smallest_good_count_has_just_the_wanted_total_error():
    errors = np.array([0.0, 3.0, 40.0, 900.0])[:, None]
    factors = np.array([0.0, 0.3, 1.0, 7.5])
    for limit, n_records in ((0.05, 1e5), (0.2, 500), (1.0, 90)):
        least = least_good_counts(errors, limit, n_records, factors)
        inside = np.where((least > 0) & (least < n_records), least, np.nan)
        total = errors**2 + factors * inside * (1 - inside / n_records)
        known = np.isfinite(inside)
        assert np.sqrt(total)[known] / inside[known] == pytest.approx(limit)
        back = counts_without_sampling(inside, limit, n_records, factors) * limit
        assert back[known] == pytest.approx(np.broadcast_to(errors, back.shape)[known], abs=1e-4)
    without = least_good_counts(errors[:, 0], 0.2, 500, np.zeros(4))
    assert without == pytest.approx(errors[:, 0] / 0.2)


def test_what_noise_adds():
    # Sampling: 2 · 100 · (1 − 0.1) = 180; √(1 + 36/180) − 1 = 0.0954.
    added = added_by_noise(np.array([6.0]), np.array([100.0]), 1000, np.array([2.0]))
    assert added == pytest.approx([0.0954], abs=1e-4)
    assert np.isinf(added_by_noise(np.array([6.0]), np.array([1000.0]), 1000, np.array([2.0])))


def test_a_design_is_read_as_it_was_written_and_others_are_refused():
    design = SurveyDesign(1.8, ((("age", "sex"), 2.1),), 0.01)
    assert SurveyDesign.from_json(design.to_json()) == design
    assert design.factors([("sex", "age"), ("age",)]) == pytest.approx([2.079, 1.782])
    assert design.text == "design effect 1.8 and 2.1 of age × sex, sampling fraction 1 %"
    for wrong in (
        {"design_effect": 0},
        {"design_effect": float("nan")},
        {"design_effect": True},
        {"sampling_fraction": 1.5},
        {"of_tables": ((("a",), 1.0), (("a",), 2.0))},
    ):
        with pytest.raises(rp.errors.RpexploreError):
            SurveyDesign(**wrong)
    with pytest.raises(rp.errors.RpexploreError, match=r"0\.6 is 60 %"):
        SurveyDesign.from_weights(60)
    for content in ({}, {**design.to_json(), "of_tables": [["age", 2]]}, 5):
        with pytest.raises(rp.errors.RpexploreError):
            SurveyDesign.from_json(content)
