"""What is known of each table of an adaptive release, in words (docs/mathematics.md §17.3)."""

import math
from collections.abc import Collection

import numpy as np

from rpexplore.common.formatting import rounded
from rpexplore.releases.adaptive.adaptive_release import AdaptiveRelease

BOUND = "All errors together, 95 %"
NO_GUARANTEE = "no guarantee"
BOUND_MEANING = (
    "How far all estimates of a table together are from the true counts at most: the sum of all "
    "cells' errors, without their signs. It holds for each table by itself with a probability of "
    "at least 95 %, whether the model does or not. Shares are of the estimated number of records."
)


def describe_bounds(release: AdaptiveRelease, record_noun: str = "records") -> list[str]:
    """The bound of each table, in its order: "at most 1,240 people, 2.5 % of all", NO_GUARANTEE."""
    total = _estimated_records(release)
    return [
        NO_GUARANTEE if math.isnan(bound) else _at_most(bound, total, record_noun)
        for bound in release.bounds["error_bound_95"].tolist()
    ]


def describe_bound(
    release: AdaptiveRelease, attributes: Collection[str], record_noun: str = "records"
) -> str:
    """The bound of the table with these attributes, as a sentence."""
    position = [set(table) for table in release.table_names].index(set(attributes))
    return sentences_on_bounds(release, record_noun)[position]


def sentences_on_bounds(release: AdaptiveRelease, record_noun: str = "records") -> list[str]:
    """The bound of each table as a sentence, in its order."""
    return [
        "No guarantee of how far this table is from the true counts."
        if text == NO_GUARANTEE
        else f"All errors of this table together are {text}, with 95 %."
        for text in describe_bounds(release, record_noun)
    ]


def _estimated_records(release: AdaptiveRelease) -> float:
    """The cells of any table add up to it; taken from the one with the fewest."""
    smallest = int(np.argmin(release.plan.workload.cells))
    return float(release.table(release.table_names[smallest])["value"].to_numpy().sum())


def _at_most(bound: float, total: float, record_noun: str) -> str:
    text = f"at most {rounded(math.ceil(bound), 3, 'up')} {record_noun}"
    return f"{text}, {rounded(100 * bound / total, 2, 'up')} % of all" if total > 0 else text
