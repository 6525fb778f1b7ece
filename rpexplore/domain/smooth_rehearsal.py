"""What a rehearsal of smooth tables found: the errors of each reading, on made-up records."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.common.text import describe_share, plural
from rpexplore.domain.expected_counts import ExpectedCounts

SAME_NOISE = (
    "Every simulation has the same noise, as large as the plan makes it: the same plan has the "
    "same figures."
)
WITHOUT_SIGNS = "added up without their signs"
IN_TRIALS = "0.4 to 1.5 times"
"""Errors of real smooth tables over rehearsed ones, up to 3-way (docs/mathematics.md §13.8)."""


@dataclass(frozen=True, eq=False, repr=False)
class SmoothRehearsal:
    """The errors of unbiased, nonnegative and smooth tables of one made-up release.

    plan_sha256  of the plan that was rehearsed
    frame      one row a number of attributes: order, tables, and unbiased, nonnegative and smooth:
               the errors of all cells of a table, added up without their signs, over the number of
               records, mean over tables; nonnegative is NaN where it was left out for time. Of
               single values, and without the total unless there is nothing else
    n_records  that were made up
    expected   what they were made from
    """

    plan_sha256: str
    frame: pd.DataFrame
    n_records: int
    expected: ExpectedCounts

    @property
    def has_nonnegative(self) -> bool:
        """Whether nonnegative tables were not left out."""
        return not np.isnan(self.frame["nonnegative"].to_numpy(dtype=float)).any()

    def describe(self, record_noun: str) -> str:
        """The errors of the largest tables, in a sentence."""
        row = self.frame.iloc[-1]
        order = int(row["order"])
        table = f"table of {plural(order, 'attribute')}" if order else "total"
        others = [f"an unbiased one by {describe_share(row['unbiased'])}"]
        if self.has_nonnegative:
            others.insert(0, f"a nonnegative one by {describe_share(row['nonnegative'])}")
        in_trials = f"; in trials {IN_TRIALS} that" if 1 <= order <= 3 else ""
        return (
            f"Simulated on made-up {record_noun} ({self.n_records:,}): a smooth {table} is off by "
            f"{describe_share(row['smooth'])} of the {record_noun} (errors of all its cells, "
            f"{WITHOUT_SIGNS}{in_trials}), {', '.join(others)}."
        )

    def __repr__(self) -> str:
        return f"<SmoothRehearsal. {self.describe('records')}>"

    @property
    def caution(self) -> str:
        """What the figures rest on, in sentences."""
        known = "Their number is as expected; everything else about them is invented"
        if self.expected.attributes:
            names = " × ".join(self.expected.attributes)
            known = f"They follow the expected counts by {names}; everything else is invented"
        return (
            f"{known}, about as skewed and as dependent as in surveys. In trials with two data "
            "sets, of which only the number of records was known, the errors in smooth tables of 1 "
            f"to 3 attributes were {IN_TRIALS} as large as simulated. Compare plans by these "
            f"figures, and promise none of them. {SAME_NOISE}"
        )
