"""What is known of each table of an adaptive release, in words (docs/mathematics.md §17.3)."""

import math
from collections.abc import Collection

from rpexplore.common.formatting import rounded
from rpexplore.releases.adaptive.adaptive_release import AdaptiveRelease

BOUND = "All errors together, 95 %"
NO_GUARANTEE = "no guarantee"
BOUND_MEANING = (
    "How far all estimates of a table together are from the true counts at most: the sum of all "
    "cells' errors, without their signs. It holds for each table by itself with a probability of "
    "at least 95 %, whether the model does or not."
)


def describe_bounds(release: AdaptiveRelease, record_noun: str = "records") -> list[str]:
    """The bound of each table, in its order: "at most 1,240 people", "no guarantee"."""
    bounds = release.bounds["error_bound_95"].tolist()
    return [NO_GUARANTEE if math.isnan(bound) else _at_most(bound, record_noun) for bound in bounds]


def describe_bound(
    release: AdaptiveRelease, attributes: Collection[str], record_noun: str = "records"
) -> str:
    """The bound of the table with these attributes, as a sentence."""
    position = [set(table) for table in release.table_names].index(set(attributes))
    bound = release.bounds["error_bound_95"].tolist()[position]
    if math.isnan(bound):
        return "95 %: no guarantee of how far this table is from the true counts."
    return f"95 %: all errors of this table together are {_at_most(bound, record_noun)}."


def _at_most(bound: float, record_noun: str) -> str:
    return f"at most {rounded(math.ceil(bound), 3, 'up')} {record_noun}"
