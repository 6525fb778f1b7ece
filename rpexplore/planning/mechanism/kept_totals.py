"""What neighbours keep around exact totals.

Of tables with levels, amounts or aggregations neighbours are as in `replacement`, with one more:
where all totals have an attribute at levels alone, a record may change in it within a group of the
finest of these. An exchange of two records u and v moves a residual by (A_u − A_v) ⊗ (B_u − B_v), a
product over the attributes of either side of the exchange. By the bound of a replaced record for
each of the two, that costs at most 4 p δ δ', with the two largest δ of the residual's attributes,
each at least 1 (docs/guarantees.md, "Exact totals of levels, amounts and aggregations").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.planning.mechanism.replacement import Totals, is_exact, parts_of_totals

if TYPE_CHECKING:
    from rpexplore.planning.mechanism.closure import Closure


@dataclass(frozen=True)
class KeptTotals:
    """Exact totals of a closure whose residuals are charged one by one.

    numbers  of each total the attributes and blocks, by their numbers, whose residuals it tells
    columns  of each total the attributes of the records that it has, at whichever level
    """

    numbers: tuple[frozenset[int], ...]
    columns: tuple[tuple[int, ...], ...]

    def tells(self, members: Sequence[int]) -> bool:
        """Whether an exact total tells the residual of these numbers."""
        return not members or any(own.issuperset(members) for own in self.numbers)

    def is_unmoved(self, closure: "Closure", members: Sequence[int]) -> bool:
        """Whether no neighbour moves a residual though no exact total tells it."""
        return not self.tells(members) and self._share(closure, members, None) == 0

    def shares(self, closure: "Closure", of_numbers: Sequence[Fraction]) -> list[Fraction]:
        """The most that a neighbour costs in each residual, over 2 p: exact or above.

        of_numbers: δ of each attribute and block
        """
        rows = ([index for index in row if index >= 0] for row in closure.members.tolist())
        return [self._share(closure, row, of_numbers) for row in rows]

    def _share(
        self, closure: "Closure", members: Sequence[int], of_numbers: Sequence[Fraction] | None
    ) -> Fraction:
        """of_numbers: None for 1 of each, where only what moves is asked for"""
        one = Fraction(1)
        if self.tells(members):
            return Fraction(0)
        deltas = [one if of_numbers is None else of_numbers[number] for number in members]
        sides = {self._parts.get(int(closure.columns[number]), -1) for number in members}
        if len(members) > 1 and (len(sides) > 1 or min(sides) < 0):
            first, second = sorted((max(delta, one) for delta in deltas), reverse=True)[:2]
            return 2 * first * second
        # One record changes: in an attribute of no total, or within a group of a level.
        changes = [
            n for n in members if n not in self._told or int(closure.columns[n]) not in self._kept
        ]
        if not changes:
            return Fraction(0)
        return deltas[0] if len(deltas) == 1 else max(*deltas, one)

    # Asked for each of very many residuals.

    @cached_property
    def _parts(self) -> dict[int, int]:
        return parts_of_totals(self.columns)

    @cached_property
    def _told(self) -> frozenset[int]:
        return frozenset().union(*self.numbers)

    @cached_property
    def _kept(self) -> frozenset[int]:
        return frozenset(column for total in self.columns for column in total)


# ---- What neighbours keep in areas: how many records areas have, and totals of the top area.
#
# The number of records of each area on some levels is kept, from the top on, and so are totals of
# other attributes in the top area (docs/guarantees.md, "Exact totals in areas"). Neighbours are
#
# - one record that changes in attributes of no such total, and moves to another area within the
#   same area of the last of these levels; or
# - two records that exchange their values of a set of attributes, the area perhaps among them,
#   where every total of the top area has all of its attributes among them, or none.


@dataclass(frozen=True)
class KeptInAreas:
    """What neighbours keep in areas.

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
