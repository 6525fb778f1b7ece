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
    meanings: dict[Role, str] = {}
    for column in columns:  # parts of a release may mean something else by a role
        if column.meaning not in meanings.setdefault(column.role, ""):
            meanings[column.role] = f"{meanings[column.role]} {column.meaning}".strip()
    terms = [(_TERMS[role], meanings[role]) for role in _TERMS if role in meanings]
    if schema.is_smooth and schema.has_unbiased:
        terms.insert(1, (SMOOTHING_GAINS, SMOOTHING_GAINS_MEANING))
    if any(item.bound for item in results.items):
        terms.append((BOUND, BOUND_MEANING))
    values = dict.fromkeys(f"{_reading(one)} {capitalised(one.label)}." for one in results.readers)
    smooth = dict.fromkeys(one.is_smooth for one in results.readers)
    cvs = [SMOOTH_CV_MEANING if one else CV_MEANING for one in smooth]
    rules = [f"{publication.rule(smooth=one)}." for one in smooth]
    return [
        ("Guarantee", results.guarantee),
        ("Values", " ".join(values)),
        ("CV", " ".join(cvs)),
        ("Publishable", " ".join([*rules, publication.describe(n_publishable, n_cells)])),
        *terms,
        ("Adding up", results.adding_up),
    ]


def _reading(part: AnyResults) -> str:
    if part.has_unbiased:
        return _PROCESSED
    return _ESTIMATED if part.is_smooth else _UNBIASED
