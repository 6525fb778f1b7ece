"""The three readings of a release, each for which use, and which cells are publishable."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

# App, command line, documents and the files of a release say it in these words.


@dataclass(frozen=True)
class Reading:
    """Counts as they can be read from what was measured; texts for the middle of a sentence.

    name   "Smooth"
    what   what the counts are
    trust  how far they can be trusted
    use    what to publish them for, after "publish them"
    """

    name: str
    what: str
    trust: str
    use: str


READINGS: Mapping[str, Reading] = MappingProxyType(
    {
        "unbiased": Reading(
            "Unbiased",
            "the counts as they were released",
            "right on average, maybe negative, with intervals that hold whatever the records are",
            "to add up, to compare groups, to test, to analyse further; for what is said of a "
            "small group",
        ),
        "nonnegative": Reading(
            "Nonnegative",
            "the nearest tables without a negative count that agree with each other",
            "biased: counts near 0 are too large on average, large ones too small; no error of "
            "their own is known",
            "where a table has to be possible as a table of counts, near what was measured",
        ),
        "smooth": Reading(
            "Smooth",
            "best guesses: what all measurements together suggest, and what was measured of a "
            "table beyond that, as far as it is more than noise; none is negative, all tables "
            "agree",
            "biased, small groups most: their differences are shrunk first; a model-based error "
            "beside each, which nothing guarantees",
            "to read single cells, to show tables of many small cells, maps and shares, to plan",
        ),
    }
)
"""By name: unbiased, nonnegative, smooth."""

WARNINGS: Mapping[str, str] = MappingProxyType(
    {
        "synthetic": "**Synthetic records: no row is a person.** They are drawn from a model of "
        "the release. For any figure that is published or decided on, use the released tables.",
        "area records": "**Synthetic records of areas: no row is a person.** Counted again, they "
        "have every count of the best guesses, and so their bias. For any figure that is "
        "published or decided on, use the released tables.",
        "whole areas": "**Whole counts of areas:** never negative, and areas add up to the area "
        "that they are parts of; biased. The 95 % intervals are those of the unbiased counts. To "
        "add up or compare counts, use the unbiased ones.",
        "best guesses": "**Best guesses for areas:** whole, and areas add up to the area that "
        "they are parts of; biased. ± is model-based, and nothing guarantees it: where a small "
        "group of an area differs from what is usual around it, a guess may hide it. The 95 % "
        "intervals are those of the unbiased counts. To add up or compare counts, use the "
        "unbiased ones.",
    }
)
"""What stands above results that are easily taken for something else, as Markdown."""

SMOOTH_COVERAGE = (
    "In trials with nine data sets (ε = 1, weights that are half by cell), 94 to 99 % of the cells "
    "that truly hold 20 and more were within their model-based 95 % interval (mean over the tables "
    "of three attributes), and 86 % at the least in a single table."
)
"""How far the intervals of smooth counts hold (docs/mathematics.md §13.10)."""

# ---- Publishable cells: those whose noise is small enough beside their count.


def coefficients_of_variation(standard_errors: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Standard error over the size of the count, shaped as both; ∞ where that is 0."""
    errors, sizes = np.broadcast_arrays(standard_errors, np.abs(counts))
    return np.divide(errors, sizes, out=np.full(sizes.shape, np.inf), where=sizes > 0)


def are_publishable(standard_errors: np.ndarray, counts: np.ndarray, cv_limit: float) -> np.ndarray:
    """Whether cells have a coefficient of variation of at most `cv_limit`, bool."""
    return coefficients_of_variation(standard_errors, counts) <= cv_limit


def are_publishable_as_estimated(
    standard_errors: np.ndarray, estimates: np.ndarray, cv_limit: float
) -> np.ndarray:
    """The same by noisy counts, of which those above 0 can be publishable."""
    return (estimates > 0) & are_publishable(standard_errors, estimates, cv_limit)


FLAGS = (("A", 0.05), ("B", 0.10), ("C", 0.20), ("D", 0.33))
"""Quality flags by the coefficient of variation; above the last one it is E."""


def quality_flags(coefficients: np.ndarray) -> np.ndarray:
    """The flag of each coefficient of variation, texts shaped as these; "" where it is NaN."""
    letters = np.array([*(letter for letter, _ in FLAGS), "E"], dtype=object)
    flags = letters[np.searchsorted([limit for _, limit in FLAGS], coefficients)]
    return np.where(np.isnan(coefficients), "", flags)
