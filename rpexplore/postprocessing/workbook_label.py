"""The privacy label of a workbook: what is promised, and how to read its numbers."""

from rpexplore.common.formatting import capitalised
from rpexplore.postprocessing.adaptive_bounds import BOUND, BOUND_MEANING
from rpexplore.postprocessing.publication import (
    ADAPTIVE_ERROR_MEANING,
    ADAPTIVE_INTERVAL_MEANING,
    CV_MEANING,
    INTERVAL_MEANING,
    MODEL_ERROR_MEANING,
    SMOOTH_CV_MEANING,
    SMOOTHING_GAINS_MEANING,
    STANDARD_ERROR_MEANING,
    Publication,
)
from rpexplore.postprocessing.results import (
    Results,
    guarantee_of,
    is_adaptive,
    is_biased,
    is_smooth,
)

_UNBIASED = "Noisy counts. Not rounded; may be negative."
_PROCESSED = (
    "The counts after post-processing; beside them the unbiased noisy counts, with their own "
    "standard error and interval."
)
_ADAPTIVE = "Estimates by a model, from measurements that were selected while they were made."
_ERRORS = [("Standard error", STANDARD_ERROR_MEANING), ("95 % interval", INTERVAL_MEANING)]
_SMOOTH_ERRORS = [
    ("Model error", MODEL_ERROR_MEANING),
    ("Smoothing gains", SMOOTHING_GAINS_MEANING),
]
_ADAPTIVE_ERRORS = [
    ("Model error", ADAPTIVE_ERROR_MEANING),
    ("95 % interval", ADAPTIVE_INTERVAL_MEANING),
    (BOUND, BOUND_MEANING),
]


def label_of_workbook(
    results: Results, publication: Publication, n_publishable: int, n_cells: int
) -> list[tuple[str, str]]:
    """Terms and what there is to say of them."""
    if is_adaptive(results):
        reading, errors = _ADAPTIVE, _ADAPTIVE_ERRORS
    elif is_smooth(results):
        reading, errors = _PROCESSED, [*_SMOOTH_ERRORS, *_ERRORS]
    else:
        reading, errors = (_PROCESSED if is_biased(results) else _UNBIASED), _ERRORS
    smooth = is_smooth(results)
    return [
        ("Guarantee", guarantee_of(results)),
        ("Values", f"{reading} {capitalised(results.label)}."),
        ("CV", SMOOTH_CV_MEANING if smooth else CV_MEANING),
        (
            "Publishable",
            f"{publication.rule(smooth=smooth)}. {publication.describe(n_publishable, n_cells)}",
        ),
        *errors,
        (
            "Adding up",
            "The errors of different cells go together, so a sum of cells has another standard "
            "error than theirs suggest; where there is a smaller table, use its cell.",
        ),
    ]
