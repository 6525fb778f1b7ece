"""Workload: the tables a curator asks for, each with an importance weight and maybe a target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rpexplore.attribute_sets import AttributeSet, attribute_sets, padded, refuse_too_many
from rpexplore.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.exact import whole_number


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """Weighted attribute sets in canonical order: by number of attributes, then lexicographically.

    members  int32[n_tables, max_order]: places of a table's attributes in the domain, ascending,
             padded at the end with −1
    weights  float64[n_tables]: importance, positive
    targets  float64[n_tables]: wanted standard error of a cell, positive; NaN where there is none

    Use the builders (`all_of_order`, `all_up_to`, `all_with_at_most`, `of`, `|`); the constructor
    sorts, and raises `WorkloadError` for a set twice (naming it), no tables, rows that are not
    ascending attribute places, or a bad weight.
    """

    domain: Domain
    members: np.ndarray
    weights: np.ndarray
    targets: np.ndarray

    def __post_init__(self) -> None:
        members = np.asarray(self.members, dtype=np.int32)
        if len(members) == 0:
            raise WorkloadError("A workload needs at least one table, got none.")
        shapes = {np.shape(self.weights), np.shape(self.targets)}
        if members.ndim != 2 or shapes != {(len(members),)}:
            raise WorkloadError(
                "A workload needs a weight and a target for each row of members, got the shapes "
                f"{np.shape(self.weights)}, {np.shape(self.targets)} and {members.shape}."
            )
        padded_last = np.where(members < 0, np.iinfo(np.int32).max, members)
        self._refuse_misplaced(members, padded_last)
        order = np.lexsort((*padded_last.T[::-1], np.count_nonzero(members >= 0, axis=1)))
        arrays = {"members": np.ascontiguousarray(members[order])}
        for name in ("weights", "targets"):
            arrays[name] = np.asarray(getattr(self, name), dtype=float)[order]
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        self._refuse_repeated()
        self._refuse_unusable("weights", "importance weight", allow_nan=False)
        self._refuse_unusable("targets", "target standard error", allow_nan=True)

    def _refuse_misplaced(self, members: np.ndarray, padded_last: np.ndarray) -> None:
        """Raise unless rows are ascending attribute places, followed by −1."""
        if np.any(members >= len(self.domain)) or np.any(members < -1):
            raise WorkloadError(
                f"The places of attributes must be 0 … {len(self.domain) - 1}, with −1 behind them."
            )
        ascending = (padded_last[:, 1:] > padded_last[:, :-1]) | (members[:, 1:] < 0)
        if not np.all(ascending):
            row, column = np.argwhere(~ascending)[0]
            left, right = (int(place) for place in members[row, column : column + 2])
            name = self.domain.names[right]
            raise WorkloadError(
                f"The attribute {name!r} is named twice in a table; name it once."
                if left == right
                else f"The attribute {name!r} must stand where the domain's order has it, without "
                "gaps before it."
            )

    def _refuse_repeated(self) -> None:
        same = np.all(self.members[1:] == self.members[:-1], axis=1)
        if np.any(same):
            raise WorkloadError(
                f"The table {self.describe(int(np.argmax(same)))} is in the workload twice; keep "
                "one of them, and give it more weight if it is important."
            )

    def _refuse_unusable(self, field: str, noun: str, *, allow_nan: bool) -> None:
        values = getattr(self, field)
        usable = np.isfinite(values) & (values > 0)
        if allow_nan:
            usable |= np.isnan(values)
        if not np.all(usable):
            place = int(np.argmin(usable))
            raise WorkloadError(
                f"The {noun} of table {self.describe(place)} must be a positive number, "
                f"got {values[place]}; leave it out if it is not wanted."
            )

    # ---- builders

    @classmethod
    def all_of_order(
        cls,
        domain: Domain,
        order: int,
        *,
        only: AttributeSet | None = None,
        containing: AttributeSet = (),
        cells: int | None = None,
    ) -> "Workload":
        """All tables of exactly `order` attributes ("k-way").

        only: the attributes that a table may have (None: any). containing: those that every table
        has. cells: the most cells that a table may have (None: any number).
        """
        _check_order(domain, order)
        return cls._all(domain, range(order, order + 1), only, containing, cells)

    @classmethod
    def all_up_to(
        cls,
        domain: Domain,
        order: int,
        *,
        only: AttributeSet | None = None,
        containing: AttributeSet = (),
        cells: int | None = None,
    ) -> "Workload":
        """The total and all tables of at most `order` attributes ("≤k-way").

        Narrowed as by `all_of_order`.
        """
        _check_order(domain, order)
        return cls._all(domain, range(order + 1), only, containing, cells)

    @classmethod
    def all_with_at_most(
        cls,
        domain: Domain,
        *,
        cells: int,
        only: AttributeSet | None = None,
        containing: AttributeSet = (),
    ) -> "Workload":
        """All tables, of any order, with at most `cells` cells (the total among them).

        Narrowed as by `all_of_order`.
        """
        return cls._all(domain, range(len(domain) + 1), only, containing, cells)

    @classmethod
    def _all(
        cls,
        domain: Domain,
        orders: range,
        only: AttributeSet | None,
        containing: AttributeSet,
        cells: int | None,
    ) -> "Workload":
        members = attribute_sets(domain, orders, only=only, containing=containing, cells=cells)
        return cls(domain, members, np.ones(len(members)), np.full(len(members), np.nan))

    @classmethod
    def of(
        cls,
        domain: Domain,
        tables: Iterable[AttributeSet],
        *,
        weights: Sequence[float] | None = None,
        targets: Sequence[float | None] | None = None,
    ) -> "Workload":
        """The listed tables, each a collection of attribute names; () is the total.

        A name by itself is a one-way table, so ("age", "sex") lists two of them, and
        [("age", "sex")] one two-way table.

        `weights` and `targets`, where given, go along with `tables` one by one.
        """
        sets = [domain.positions(table) for table in tables]
        refuse_too_many(len(sets))
        for name, given in (("weights", weights), ("targets", targets)):
            if given is not None and len(given) != len(sets):
                raise WorkloadError(f"There are {len(sets)} tables but {len(given)} {name}.")
        return cls(
            domain,
            padded(sets),
            np.ones(len(sets)) if weights is None else _numbers(weights, "weights"),
            np.full(len(sets), np.nan) if targets is None else _numbers(targets, "targets"),
        )

    def __or__(self, other: "Workload") -> "Workload":
        """The union; a table in both is refused, since its importance would be ambiguous."""
        if self.domain != other.domain:
            raise WorkloadError("Only workloads over one domain can be united; these have two.")
        width = max(self.members.shape[1], other.members.shape[1])
        members = np.full((len(self) + len(other), width), -1, dtype=np.int32)
        members[: len(self), : self.members.shape[1]] = self.members
        members[len(self) :, : other.members.shape[1]] = other.members
        return Workload(
            self.domain,
            members,
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.targets, other.targets]),
        )

    def with_weights(self, weights: Mapping[AttributeSet, float]) -> "Workload":
        """A copy in which the named tables have these importance weights."""
        return replace(self, weights=self._changed(self.weights, weights, "weights"))

    def with_targets(self, targets: Mapping[AttributeSet, float | None]) -> "Workload":
        """A copy in which the named tables have these target standard errors (None: none)."""
        return replace(self, targets=self._changed(self.targets, targets, "targets"))

    def _changed(
        self, values: np.ndarray, changes: Mapping[AttributeSet, float | None], noun: str
    ) -> np.ndarray:
        positions = [self.position(table) for table in changes]
        if len(set(positions)) < len(positions):
            twice = next(place for place in positions if positions.count(place) > 1)
            raise WorkloadError(
                f"The table {self.describe(twice)} is given two {noun}; give it one."
            )
        changed = values.copy()
        changed[positions] = _numbers(list(changes.values()), noun)
        return changed

    # ---- what it holds

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def orders(self) -> np.ndarray:
        """Number of attributes of each table, int64[n_tables]."""
        return np.count_nonzero(self.members >= 0, axis=1)

    @cached_property
    def cells(self) -> np.ndarray:
        """Number of cells of each table, float64[n_tables] (exact below 2^53)."""
        sizes = np.append(self.domain.sizes.astype(float), 1.0)  # the −1 of the padding
        return np.prod(sizes[self.members], axis=1)

    @cached_property
    def exact_cells(self) -> np.ndarray:
        """Number of cells of each table in Python integers, object[n_tables]."""
        sizes = np.array([*self.domain.sizes.tolist(), 1], dtype=object)
        return np.multiply.reduce(sizes[self.members], axis=1)

    @cached_property
    def tables(self) -> list[tuple[str, ...]]:
        """The attribute names of each table, in domain order."""
        names = (*self.domain.names, None)
        return [
            tuple(names[place] for place in row[:order])
            for row, order in zip(self.members.tolist(), self.orders.tolist(), strict=True)
        ]

    @cached_property
    def _columns(self) -> list[np.ndarray]:
        """The orders and then the columns of members: what rows are sorted by, one by one."""
        return [self.orders, *np.ascontiguousarray(self.members.T, dtype=np.int64)]

    def find(self, places: Sequence[int]) -> int | None:
        """The row of the table on these ascending attribute places; None if it is not there."""
        start, stop = 0, len(self)
        for column, wanted in zip(self._columns, (len(places), *places), strict=False):
            ends = np.searchsorted(column[start:stop], (wanted, wanted + 1))
            start, stop = start + int(ends[0]), start + int(ends[1])
        return start if start < stop else None

    def position(self, table: AttributeSet) -> int:
        """The row of a table; `WorkloadError` if the workload does not hold it."""
        places = self.domain.positions(table)
        position = self.find(places)
        if position is None:
            raise WorkloadError(
                f"The table {self.domain.describe(places)} is not in the workload; add it."
            )
        return position

    def containing(self, attributes: AttributeSet) -> np.ndarray:
        """The rows of the tables that have all of these attributes, ascending, int64[n]."""
        has_all = np.ones(len(self), dtype=bool)
        for place in self.domain.positions(attributes):
            has_all &= np.any(self.members == place, axis=1)
        return np.flatnonzero(has_all)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The places of the attributes that some table has, ascending."""
        places = np.unique(self.members)
        return tuple(places[places >= 0].tolist())

    def has_tables_of(self, other: "Workload") -> bool:
        """Whether the other workload has the same tables, of the same sizes, in the same places."""
        sizes, others = self.domain.sizes, other.domain.sizes
        return np.array_equal(sizes, others) and np.array_equal(self.members, other.members)

    def places(self, position: int) -> tuple[int, ...]:
        """The places of a table's attributes in the domain, ascending."""
        return tuple(place for place in self.members[position].tolist() if place >= 0)

    def describe(self, position: int) -> str:
        """A table's attributes for a sentence: "(age, sex)", or "(total)"."""
        return self.domain.describe(self.places(position))

    def __repr__(self) -> str:
        return f"<Workload of {len(self):,} tables over {len(self.domain)} attributes>"


def _numbers(values: Sequence[float | None], noun: str) -> np.ndarray:
    """Values as float64[len(values)], None as NaN."""
    try:
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    except (TypeError, ValueError) as error:
        raise WorkloadError(f"The {noun} of tables must be numbers ({error}).") from None


def _check_order(domain: Domain, order: int) -> None:
    if not 0 <= (-1 if (whole := whole_number(order)) is None else whole) <= len(domain):
        raise WorkloadError(
            f"The order must be a whole number from 0 to {len(domain)} (the attributes there "
            f"are), got {order!r}."
        )
