"""The normal distribution: how many standard errors an interval reaches to either side."""

from scipy.special import ndtri

from rpexplore.errors import WorkloadError


def normal_quantile(confidence: float) -> float:
    """z with P(|N(0,1)| ≤ z) = confidence; `WorkloadError` unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise WorkloadError(
            f"The confidence must lie between 0 and 1, got {confidence}; 0.95 is usual."
        )
    return float(-ndtri((1 - confidence) / 2))
