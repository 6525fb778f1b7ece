"""Structural zeros: which cells of tables can have records, by the impossible combinations."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rpexplore.domain.values import selection_mask
from rpexplore.errors import DomainError

if TYPE_CHECKING:
    from rpexplore.domain.domain import Domain

# When one possible record is searched for: partial records, and these times the conditions.
_MOST_TRIED, _MOST_WORK = 100_000, 200_000_000
_MOST_CELLS = 1 << 21  # of a table of kinds of values, 8 bytes each
_TOO_MANY = (
    "Too many impossible combinations hang together, by attributes that they have in common; state "
    "fewer of them."
)

_Factor: TypeAlias = tuple[tuple[int, ...], np.ndarray]  # attributes, ascending, and their table


@dataclass(frozen=True, eq=False)
class StructuralZeros:
    """The records that impossible combinations leave possible.

    sizes       number of values of each attribute
    conditions  of each combination the values of each attribute that it names: bool[size], by the
                attribute's index
    levels      of each attribute that is a level of another one: that one's index, and the group of
                each of its values, int64[its size]
    """

    sizes: tuple[int, ...]
    conditions: tuple[Mapping[int, np.ndarray], ...]
    levels: Mapping[int, tuple[int, np.ndarray]] = field(default_factory=dict)
    _shares: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of_domain(cls, domain: "Domain") -> "StructuralZeros":
        """Those of a codebook."""
        conditions = [
            {
                domain.position(name): selection_mask(domain[name], [text])
                for name, text in one.selections
            }
            for one in domain.impossible
        ]
        levels = {
            index: (domain.position(attribute.of), np.array(attribute.index_of_values))
            for index, attribute in enumerate(domain)
            if attribute.of
        }
        return cls(tuple(domain.sizes.tolist()), tuple(conditions), levels)

    def possible(self, attributes: Sequence[int]) -> np.ndarray | None:
        """Where a table can have records: bool, one axis an attribute; None where everywhere.

        A cell is impossible if each record in it has an impossible combination, also where it takes
        several of them together; a cell of a level, if all values of its group are. Of combinations
        that hang together in too many ways, only those within the table are looked at.

        attributes: ascending; of an attribute and its levels one at most
        """
        named = self._named(attributes)
        try:
            possible = self._kind_shares(named) > 0
        except DomainError:
            within = [each for each in self._factors if set(each[0]) <= set(named)]
            possible = self._product([(named, np.ones(self._n_kinds(named))), *within], named) > 0
        if possible.all() or (table := self._by_value(possible, attributes)).all():
            return None
        return np.broadcast_to(table, [self.sizes[index] for index in attributes])

    def even_shares(self, attributes: Sequence[int]) -> np.ndarray:
        """A table of all possible records, each counted alike, that adds up to 1: float64.

        All tables agree with each other; the impossible cells are 0, and no others.

        Raises `DomainError` where too many combinations hang together.
        """
        named = self._named(attributes)
        shares = self._kind_shares(named)
        for axis, index in enumerate(named):
            counts = np.bincount(self.kinds[index])
            shares = shares / counts.reshape([-1, *(1,) * (len(named) - axis - 1)])
        sizes = [self.sizes[index] for index in attributes]
        table = np.broadcast_to(self._by_value(shares, attributes), sizes)
        return table / table.sum()

    def possible_record(self) -> np.ndarray | None:
        """Some record that is possible, int64[d], found by search; None if it would take too long.

        Raises `DomainError` if there is none.
        """
        named = sorted(self.kinds)
        record = np.zeros(len(self.sizes), dtype=np.int64)
        # Values that no condition tells apart are alike: one of each kind is enough.
        first = self._first_of_kinds
        # Of each attribute the conditions that name it, which of its values are in each, and
        # whether it is the last one that they name, by which they are decided.
        naming: dict[int, list[int]] = {index: [] for index in named}
        for number, one in enumerate(self.conditions):
            for index in one:
                naming[index].append(number)
        members = {
            index: np.array([self.conditions[number][index] for number in numbers]).T[first[index]]
            for index, numbers in naming.items()
        }
        decides = {
            index: np.array([max(self.conditions[number]) == index for number in numbers])
            for index, numbers in naming.items()
        }
        tried, work = 0, 0

        def completed(depth: int, holds: np.ndarray) -> bool:
            """holds: bool[n_conditions], of the values that are chosen."""
            nonlocal tried, work
            if depth == len(named):
                return True
            index = named[depth]
            for value, of_value in zip(first[index], members[index], strict=True):
                tried, work = tried + 1, work + len(holds)
                if tried > _MOST_TRIED or work > _MOST_WORK:
                    return True
                record[index] = value
                still = holds[naming[index]] & of_value
                if np.any(still & decides[index]):
                    continue
                after = holds.copy()
                after[naming[index]] = still
                if completed(depth + 1, after):
                    return True
            return False

        if not completed(0, np.ones(len(self.conditions), dtype=bool)):
            raise DomainError(
                "Every record is in one of the impossible combinations, so there can be no "
                "records; leave out one of them."
            )
        return record if tried <= _MOST_TRIED and work <= _MOST_WORK else None

    @cached_property
    def connected(self) -> list[tuple[tuple[int, ...], np.ndarray]]:
        """Attributes that conditions connect, and the kinds of values that go together.

        Of each such group its attributes, ascending, and the possible combinations of the `kinds`
        of their values: int64[n, attributes]. Groups of too many combinations are left out.
        """
        left, groups = list(self._factors), []
        while left:
            reached, size = set(left[0][0]), 0
            while len(reached) > size:
                size = len(reached)
                reached.update(*(each[0] for each in left if reached.intersection(each[0])))
            named = tuple(sorted(reached))
            with suppress(DomainError):
                groups.append((named, np.argwhere(self._kind_shares(named) > 0)))
            left = [each for each in left if not reached.intersection(each[0])]
        return groups

    @cached_property
    def kinds(self) -> dict[int, np.ndarray]:
        """Of each named attribute the kind of each value, int64[size].

        Values are of one kind if no condition tells them apart.
        """
        named = sorted({index for condition in self.conditions for index in condition})
        kinds = {}
        for index in named:
            members = [condition[index] for condition in self.conditions if index in condition]
            # Rows of bits as bytes, which are compared at once and sort like the bits.
            rows = np.packbits(np.stack(members, axis=1), axis=1)
            whole_rows = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").reshape(-1)
            _, kinds[index] = np.unique(whole_rows, return_inverse=True)
        return kinds

    @cached_property
    def _first_of_kinds(self) -> dict[int, np.ndarray]:
        """Of each named attribute the first value of each kind, int64[kinds]."""
        return {
            index: np.unique(kinds, return_index=True)[1] for index, kinds in self.kinds.items()
        }

    def _n_kinds(self, attributes: Collection[int]) -> list[int]:
        return [int(self.kinds[index].max()) + 1 for index in attributes]

    @cached_property
    def _factors(self) -> list[_Factor]:
        """For all conditions of the same attributes a table of kinds: 0 where one is met, or 1.

        Without those of so many attributes that the table would be too large: `_too_large`.
        """
        factors: dict[tuple[int, ...], np.ndarray] = {}
        for condition in self.conditions:
            named = tuple(sorted(condition))
            if prod(self._n_kinds(named)) > _MOST_CELLS:
                continue
            met = np.ones((1,) * len(named), dtype=bool)
            for axis, index in enumerate(named):
                members = condition[index][self._first_of_kinds[index]]
                met = met & members.reshape([-1, *(1,) * (len(named) - axis - 1)])
            factors[named] = factors.get(named, 1.0) * ~met
        return list(factors.items())

    @cached_property
    def _too_large(self) -> list[set[int]]:
        """The attributes of each condition that has too many combinations for a table of them."""
        return [set(one) for one in self.conditions if prod(self._n_kinds(one)) > _MOST_CELLS]

    def _kind_shares(self, named: tuple[int, ...]) -> np.ndarray:
        """The possible records by the kinds of some named attributes, up to a factor: float64.

        The other attributes are summed over one after another, that of the smallest table first.
        """
        if named in self._shares:
            return self._shares[named]
        # Combinations that no chain of others connects with these attributes change nothing.
        reached, left, factors = set(named), list(self._factors), list[_Factor]()
        while connected := [each for each in left if reached.intersection(each[0])]:
            left = [each for each in left if not reached.intersection(each[0])]
            factors += connected
            reached.update(*(each[0] for each in connected))
        if any(reached.intersection(each) for each in self._too_large):
            raise DomainError(_TOO_MANY)
        for index in sorted(reached):
            factors.append(((index,), np.bincount(self.kinds[index]) / self.sizes[index]))
        others = reached.difference(named)
        while others:
            around = {
                index: sorted(set().union(*(each[0] for each in factors if index in each[0])))
                for index in others
            }
            index = min(sorted(others), key=lambda one: prod(self._n_kinds(around[one])))
            table = self._product([each for each in factors if index in each[0]], around[index])
            table = table.sum(axis=around[index].index(index))
            factors = [each for each in factors if index not in each[0]]
            kept = tuple(one for one in around[index] if one != index)
            factors.append((kept, table / (table.max() or 1.0)))
            others.remove(index)
        self._shares[named] = self._product(factors, named)
        return self._shares[named]

    def _product(self, factors: Sequence[_Factor], attributes: Sequence[int]) -> np.ndarray:
        """The product of tables of kinds of some of these attributes."""
        shape = self._n_kinds(attributes)
        if prod(shape) > _MOST_CELLS:
            raise DomainError(_TOO_MANY)
        table = np.ones(shape)
        for named, values in factors:
            own = iter(np.shape(values))
            table *= values.reshape([next(own) if one in named else 1 for one in attributes])
        return table

    def _by_value(self, by_kind: np.ndarray, attributes: Sequence[int]) -> np.ndarray:
        """A table of kinds with all values of named attributes, and an axis of 1 for each other.

        Where an attribute is at a level, the values of each group are added up.
        """
        at_level = {self._column(index): index for index in attributes}
        named = self._named(attributes)
        for axis, column in enumerate(named):
            kinds, index = self.kinds[column], at_level[column]
            if index == column:
                by_kind = np.take(by_kind, kinds, axis=axis)
                continue
            members = np.zeros((self.sizes[index], int(kinds.max()) + 1))
            np.add.at(members, (self.levels[index][1], kinds), 1)
            added = np.moveaxis(np.tensordot(members, by_kind, (1, axis)), 0, axis)
            by_kind = added > 0 if by_kind.dtype == bool else added
        # Columns are in another order than their levels.
        by_kind = by_kind.transpose(np.argsort([at_level[column] for column in named]))
        own = iter(by_kind.shape)
        return by_kind.reshape(
            [next(own) if self._column(index) in named else 1 for index in attributes]
        )

    def _column(self, index: int) -> int:
        """The attribute that an attribute is a level of, or itself."""
        return self.levels[index][0] if index in self.levels else index

    def _named(self, attributes: Sequence[int]) -> tuple[int, ...]:
        """Those of some attributes, or what they are levels of, that conditions name; ascending."""
        return tuple(sorted({self._column(index) for index in attributes} & self.kinds.keys()))
