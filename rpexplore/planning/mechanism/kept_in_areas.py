"""What neighbours keep in areas: how many records areas have, and totals of the top area.

The number of records of each area on some levels is kept, from the top on, and so are totals of
other attributes in the top area (docs/guarantees.md, "Exact totals in areas"). Neighbours are

- one record that changes in attributes of no such total, and moves to another area within the same
  area of the last of these levels; or
- two records that exchange their values of a set of attributes, the area perhaps among them, where
  every total of the top area has all of its attributes among them, or none.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.planning.mechanism.replacement import Totals, is_exact, parts_of_totals

if TYPE_CHECKING:
    from rpexplore.planning.mechanism.closure import Closure


@dataclass(frozen=True)
class KeptInAreas:
    """What neighbours keep.

    n_levels   on so many levels, from the top on, the number of records of each area; at least 1
    totals     of the top area
    exchanges  whether neighbours exchange values of two records, beside replacing one
    """

    n_levels: int = 1
    totals: Totals = ()
    exchanges: bool = False

    def levels_of(self, closure: "Closure") -> np.ndarray:
        """On how many levels from the top on each residual is kept: int64[n_residuals]."""
        is_total = np.count_nonzero(closure.members >= 0, axis=1) == 0
        return np.where(is_total, self.n_levels, is_exact(closure, self.totals).astype(np.int64))

    def exchanged_shares(self, closure: "Closure") -> list[Fraction]:
        """The most that a move costs in each residual of any area, over 2 p: exact or above.

        With δ = n/(n − 1) of each attribute of single values: two records in different areas change
        by 2 p δ each, and in an area that holds both by 4 p δ δ', where the attributes of δ and δ'
        may be on different sides of an exchange.
        """
        parts, found = parts_of_totals(self.totals), []
        for row in closure.members.tolist():
            inside = [index for index in row if index >= 0]
            largest = sorted(
                (Fraction(int(n), int(n) - 1) for n in closure.sizes[inside]), reverse=True
            )
            sides = {parts.get(index, -1) for index in inside}
            apart = len(inside) > 1 and (len(sides) > 1 or min(sides) < 0)
            if not largest:
                found.append(Fraction(1))
            else:
                found.append(2 * largest[0] * (largest[1] if apart else 1))
        return found
