"""The privacy label of a workbook: what is promised, and how to read its numbers."""

from rpexplore.common.formatting import capitalised
from rpexplore.postprocessing.publication import (
    CV_MEANING,
    INTERVAL_MEANING,
    MODEL_ERROR_MEANING,
    SMOOTH_CV_MEANING,
    SMOOTHING_GAINS_MEANING,
    STANDARD_ERROR_MEANING,
    Publication,
)
from rpexplore.postprocessing.results import Results, guarantee_of, is_biased, is_smooth


def label_of_workbook(
    results: Results, publication: Publication, n_publishable: int, n_cells: int
) -> list[tuple[str, str]]:
    """Terms and what there is to say of them."""
    smooth = is_smooth(results)
    reading = (
        "The counts after post-processing; beside them the unbiased noisy counts, with their own "
        "standard error and interval."
        if is_biased(results)
        else "Noisy counts. Not rounded; may be negative."
    )
    label = [
        ("Guarantee", guarantee_of(results)),
        ("Values", f"{reading} {capitalised(results.label)}."),
    ]
    if smooth:
        label.append(("Model error", MODEL_ERROR_MEANING))
        label.append(("Smoothing gains", SMOOTHING_GAINS_MEANING))
    return [
        *label,
        ("CV", SMOOTH_CV_MEANING if smooth else CV_MEANING),
        (
            "Publishable",
            f"{publication.rule(smooth=smooth)}. {publication.describe(n_publishable, n_cells)}",
        ),
        ("Standard error", STANDARD_ERROR_MEANING),
        ("95 % interval", INTERVAL_MEANING),
        (
            "Adding up",
            "The errors of different cells go together, so a sum of cells has another standard "
            "error than theirs suggest; where there is a smaller table, use its cell.",
        ),
    ]
