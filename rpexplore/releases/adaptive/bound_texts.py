"""What is known of each table of an adaptive release, in words (docs/mathematics.md §17.3)."""

import math
from collections.abc import Iterable

from rpexplore.common.formatting import rounded

BOUND = "All errors together, 95 %"
NO_GUARANTEE = "no guarantee"
BOUND_MEANING = (
    "How far all estimates of a table together are from the true counts at most: the sum of all "
    "cells' errors, without their signs. It holds for each table by itself with a probability of "
    "at least 95 %, whether the model does or not. Shares are of the estimated number of records."
)


def describe_bounds(
    bounds: Iterable[float], total: float, record_noun: str = "records"
) -> list[str]:
    """Bounds in words: "at most 1,240 people, 2.5 % of all", NO_GUARANTEE for NaN.

    total: the estimated number of records
    """
    return [
        NO_GUARANTEE if math.isnan(bound) else _at_most(bound, total, record_noun)
        for bound in bounds
    ]


def bound_sentence(text: str) -> str:
    """A bound in words as a sentence on its table."""
    if text == NO_GUARANTEE:
        return "No guarantee of how far this table is from the true counts."
    return f"All errors of this table together are {text}, with 95 %."


def _at_most(bound: float, total: float, record_noun: str) -> str:
    text = f"at most {rounded(math.ceil(bound), 3, 'up')} {record_noun}"
    return f"{text}, {rounded(100 * bound / total, 2, 'up')} % of all" if total > 0 else text
