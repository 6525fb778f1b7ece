"""The privacy label of a workbook: what is promised, and how to read its numbers."""

from collections.abc import Sequence

from rpexplore.common.formatting import capitalised
from rpexplore.domain.result_schema import Column, Role, Schema
from rpexplore.postprocessing.publication import (
    CV_MEANING,
    SMOOTH_CV_MEANING,
    SMOOTHING_GAINS_MEANING,
    Publication,
)
from rpexplore.postprocessing.results import AnyResults
from rpexplore.releases.adaptive.bound_texts import BOUND, BOUND_MEANING

SMOOTHING_GAINS = "Smoothing gains"

_UNBIASED = "Noisy counts. Not rounded; may be negative."
_PROCESSED = (
    "The counts after post-processing; beside them the unbiased noisy counts, with their own "
    "standard error and interval."
)
_ESTIMATED = "Estimates by a model, from measurements that were selected while they were made."
# What columns of these roles are called in the label, in this order.
_TERMS: dict[Role, str] = {
    "model_error": "Model error",
    "error": "Standard error",
    "upper": "95 % interval",
    "margin": "95 % margin",
    "target": "Target",
}


def label_of_workbook(
    results: AnyResults,
    columns: Sequence[Column],
    publication: Publication,
    n_publishable: int,
    n_cells: int,
) -> list[tuple[str, str]]:
    """Terms and what there is to say of them.

    columns: all that are on some sheet, but those of labels
    """
    schema = Schema(tuple(columns))
    reading = _PROCESSED if schema.has_unbiased else _ESTIMATED if schema.is_smooth else _UNBIASED
    meanings = {column.role: column.meaning for column in columns}
    terms = [(_TERMS[role], meanings[role]) for role in _TERMS if role in meanings]
    if schema.is_smooth and schema.has_unbiased:
        terms.insert(1, (SMOOTHING_GAINS, SMOOTHING_GAINS_MEANING))
    if any(item.bound for item in results.items):
        terms.append((BOUND, BOUND_MEANING))
    smooth = schema.is_smooth
    return [
        ("Guarantee", results.guarantee),
        ("Values", f"{reading} {capitalised(results.label)}."),
        ("CV", SMOOTH_CV_MEANING if smooth else CV_MEANING),
        (
            "Publishable",
            f"{publication.rule(smooth=smooth)}. {publication.describe(n_publishable, n_cells)}",
        ),
        *terms,
        ("Adding up", results.adding_up),
    ]
