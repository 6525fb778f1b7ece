"""Workload: the tables a curator asks for, each with an importance weight and maybe a target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from rpexplore.common.exact_numbers import shown, whole_number
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.attribute_sets import AttributeSet, attribute_sets, padded, refuse_too_many
from rpexplore.workload.bases import Basis
from rpexplore.workload.targets import Target
from rpexplore.workload.workload_arrays import Bases, canonical_bases

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """Weighted attribute sets in canonical order: by number of attributes, then lexicographically.

    members  int32[n_tables, max_order]: places of a table's attributes in the domain, ascending,
             padded at the end with −1
    weights  float64[n_tables]: importance, positive
    targets  float64[n_tables]: wanted standard error of a cell, positive; NaN where there is none
    bases    for each attribute of the domain, the ways in which tables ask it; () if none does
    basis_index int32[n_tables, max_order]: which of its attribute's bases a table asks, from 0; −1
             behind. Without these two all attributes are asked by their single values
    required bool[n_tables]: whether a plan has to meet the target, rather than as well as the other
             targets allow; empty where none has to

    Use the builders (`all_of_order`, `all_up_to`, `all_with_at_most`, `of`, `|`); the constructor
    sorts, and raises `WorkloadError` for a set twice (naming it), no tables, rows that are not
    ascending attribute places, a bad weight or target, or a must without a target.
    """

    domain: Domain
    members: np.ndarray
    weights: np.ndarray
    targets: np.ndarray
    bases: Bases = ()
    basis_index: np.ndarray = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    required: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))

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
        arrays["required"] = self._canonical_required(len(members))[order]
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        self._refuse_repeated()
        basis_index = np.asarray(self.basis_index, dtype=np.int32)
        if basis_index.shape == members.shape:  # there may be none; any other shape is refused
            basis_index = basis_index[order]
        bases, basis_index = canonical_bases(
            self.domain, arrays["members"], self.bases, basis_index
        )
        basis_index.setflags(write=False)
        object.__setattr__(self, "bases", bases)
        object.__setattr__(self, "basis_index", basis_index)
        self._refuse_unusable("weights", "importance weight", allow_nan=False)
        self._refuse_unusable("targets", "target standard error", allow_nan=True)
        if np.any(aimless := self.required & np.isnan(self.targets)):
            raise WorkloadError(
                f"The table {self.describe(int(np.argmax(aimless)))} must meet its target but has "
                "none; give it one, or do not make it a must."
            )

    def _canonical_required(self, count: int) -> np.ndarray:
        """Whether targets are required, as bool[count]; none where they are left out."""
        required = np.asarray(self.required)
        if required.shape == (0,):
            return np.zeros(count, dtype=bool)
        if required.shape != (count,) or required.dtype != bool:
            raise WorkloadError(
                f"The required marks of {count} tables must be {count} times true or false, got "
                f"{required.dtype} in the shape {required.shape}."
            )
        return required

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
        targets: Sequence[Target | float | None] | None = None,
        required: Sequence[bool] | None = None,
    ) -> "Workload":
        """The listed tables, each a collection of attribute names; () is the total.

        A name by itself is a one-way table, so ("age", "sex") lists two of them, and
        [("age", "sex")] one two-way table.

        `weights`, `targets` and `required`, where given, go along with `tables` one by one. A
        target
        that is a number is a standard error; whether one is a must it says itself, unless
        `required`
        does.
        """
        sets = [domain.positions(table) for table in tables]
        refuse_too_many(len(sets))
        for name, given in (("weights", weights), ("targets", targets), ("required", required)):
            if given is not None and len(given) != len(sets):
                raise WorkloadError(f"There are {len(sets)} tables but {len(given)} {name}.")
        return cls(
            domain,
            padded(sets),
            np.ones(len(sets)) if weights is None else _numbers(weights, "weights"),
            np.full(len(sets), np.nan) if targets is None else _errors(targets),
            required=_truths(
                [isinstance(each, Target) and each.required for each in _listed(targets)]
                if required is None
                else required
            ),
        )

    def __or__(self, other: "Workload") -> "Workload":
        """The union; a table in both is refused, since its importance would be ambiguous."""
        if self.domain != other.domain:
            raise WorkloadError("Only workloads over one domain can be united; these have two.")
        width = max(self.members.shape[1], other.members.shape[1])
        members = np.full((len(self) + len(other), width), -1, dtype=np.int32)
        members[: len(self), : self.members.shape[1]] = self.members
        members[len(self) :, : other.members.shape[1]] = other.members
        basis_index = np.full(members.shape, -1, dtype=np.int32)
        basis_index[: len(self), : self.members.shape[1]] = self.basis_index
        others = basis_index[len(self) :, : other.members.shape[1]]
        others[:] = other.basis_index
        before = np.array([*map(len, self.bases), 0])[other.members]
        others[other.members >= 0] += before[other.members >= 0]
        return Workload(
            self.domain,
            members,
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.targets, other.targets]),
            tuple(mine + theirs for mine, theirs in zip(self.bases, other.bases, strict=True)),
            basis_index,
            np.concatenate([self.required, other.required]),
        )

    def with_bases(
        self, bases: Mapping[str, Basis], *, tables: Iterable[AttributeSet] | None = None
    ) -> "Workload":
        """A copy that asks attributes in other ways: cumulatively, in ranges, in groups, …

        bases: attribute name -> how it is asked; attributes left out stay as they are
        tables: those in which they are asked so (each of them must hold all these attributes);
        None: all that have the attribute
        """
        basis_index, listed = self.basis_index.copy(), list(self.bases)
        rows = None if tables is None else [self.position(table) for table in tables]
        for name, basis in bases.items():
            place = self.domain.position(name)
            if not isinstance(basis, Basis):
                raise WorkloadError(
                    f"The basis of {name!r} must be one of the library's, such as Prefix(), got "
                    f"{type(basis).__name__}."
                )
            where = self.members == place
            if rows is not None:
                chosen = np.zeros(len(self), dtype=bool)
                chosen[rows] = True
                lacking = chosen & ~np.any(where, axis=1)
                if np.any(lacking):
                    raise WorkloadError(
                        f"The table {self.describe(int(np.argmax(lacking)))} does not have the "
                        f"attribute {name!r}; name it for tables that do."
                    )
                where &= chosen[:, None]
            basis_index[where] = len(listed[place])
            listed[place] = (*listed[place], basis)
        return replace(self, bases=tuple(listed), basis_index=basis_index)

    def with_weights(self, weights: Mapping[AttributeSet, float]) -> "Workload":
        """A copy in which the named tables have these importance weights."""
        rows, values = self._changes(weights, "weights")
        return replace(self, weights=_with(self.weights, rows, _numbers(values, "weights")))

    def with_targets(self, targets: Mapping[AttributeSet, Target | float | None]) -> "Workload":
        """A copy in which the named tables have these targets.

        A number is a standard error, and leaves it as it was whether the target is a must. None is
        no target, so no must either.
        """
        rows, values = self._changes(targets, "targets")
        required = [
            value.required
            if isinstance(value, Target)
            else value is not None and bool(self.required[row])
            for row, value in zip(rows, values, strict=True)
        ]
        return replace(
            self,
            targets=_with(self.targets, rows, _errors(values)),
            required=_with(self.required, rows, _truths(required)),
        )

    def with_required(self, required: Mapping[AttributeSet, bool]) -> "Workload":
        """A copy in which the targets of the named tables have to be met, or need not be."""
        rows, values = self._changes(required, "required")
        return replace(self, required=_with(self.required, rows, _truths(values)))

    def _changes(self, changes: Mapping[AttributeSet, T], noun: str) -> tuple[list[int], list[T]]:
        """The rows of the named tables, and their new values; noun: what is refused twice."""
        rows = [self.position(table) for table in changes]
        if len(set(rows)) < len(rows):
            twice = next(row for row in rows if rows.count(row) > 1)
            raise WorkloadError(
                f"The table {self.describe(twice)} is given two {noun}; give it one."
            )
        return rows, list(changes.values())

    # ---- what it holds

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def orders(self) -> np.ndarray:
        """Number of attributes of each table, int64[n_tables]."""
        return np.count_nonzero(self.members >= 0, axis=1)

    @property
    def is_marginals(self) -> bool:
        """Whether all attributes are asked by their single values: tables are marginals."""
        return all(basis.is_identity for listed in self.bases for basis in listed)

    @cached_property
    def attribute_bases(self) -> tuple[tuple[int, Basis], ...]:
        """Every (place of an attribute, way in which some table asks it), by place."""
        return tuple((place, basis) for place, listed in enumerate(self.bases) for basis in listed)

    @cached_property
    def attribute_basis_index(self) -> np.ndarray:
        """What each table asks: positions in `attribute_bases`, int32[n_tables, max_order]; −1
        behind."""
        first = np.cumsum([0, *map(len, self.bases)], dtype=np.int32)
        return np.where(self.members < 0, -1, first[self.members] + self.basis_index)

    @cached_property
    def n_queries(self) -> list[int]:
        """Number of queries of each of `attribute_bases`."""
        return [
            basis.n_rows(self.domain.attributes[place]) for place, basis in self.attribute_bases
        ]

    def basis_of(self, position: int, place: int) -> Basis:
        """How a table asks one of its attributes."""
        column = self.attribute_indices(position).index(place)
        return self.bases[place][self.basis_index[position, column]]

    @cached_property
    def cells(self) -> np.ndarray:
        """Number of cells (answers) of each table, float64[n_tables] (exact below 2^53)."""
        rows = np.array([*self.n_queries, 1], dtype=float)  # the −1 of the padding
        return np.prod(rows[self.attribute_basis_index], axis=1)

    @cached_property
    def exact_cells(self) -> np.ndarray:
        """Number of cells of each table in Python integers, object[n_tables]."""
        return np.multiply.reduce(
            np.array([*self.n_queries, 1], dtype=object)[self.attribute_basis_index], 1
        )

    @cached_property
    def counted_cells(self) -> np.ndarray:
        """Number of cells of the marginal that each table is computed from, float64[n_tables]."""
        sizes = np.append(self.domain.sizes.astype(float), 1.0)
        return np.prod(sizes[self.members], axis=1)

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
        return (
            np.array_equal(sizes, others)
            and np.array_equal(self.members, other.members)
            and self.bases == other.bases
            and np.array_equal(self.basis_index, other.basis_index)
            and all(
                mine.groups == theirs.groups
                for mine, theirs, listed in zip(self.domain, other.domain, self.bases, strict=True)
                if not all(basis.is_identity for basis in listed)
            )
        )

    def attribute_indices(self, position: int) -> tuple[int, ...]:
        """The places of a table's attributes in the domain, ascending."""
        return tuple(place for place in self.members[position].tolist() if place >= 0)

    def describe(self, position: int) -> str:
        """A table's attributes for a sentence: "(age, sex)", or "(total)"."""
        return self.domain.describe(self.attribute_indices(position))

    def __repr__(self) -> str:
        return f"<Workload of {len(self):,} tables over {len(self.domain)} attributes>"


def _numbers(values: Sequence[float | None], noun: str) -> np.ndarray:
    """Values as float64[len(values)], None as NaN."""
    try:
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    except (TypeError, ValueError) as error:
        raise WorkloadError(f"The {noun} of tables must be numbers ({error}).") from None


def _errors(targets: Sequence[Target | float | None]) -> np.ndarray:
    """Targets as standard errors, float64[len(targets)], None as NaN."""
    errors = [each.standard_error if isinstance(each, Target) else each for each in targets]
    return _numbers(errors, "targets")


def _listed(given: Sequence[Any] | None) -> Sequence[Any]:
    return () if given is None else given


def _truths(values: Sequence[bool]) -> np.ndarray:
    """Musts as bool[len(values)]."""
    for value in values:
        if not isinstance(value, bool | np.bool_):
            raise WorkloadError(
                f"The required marks of tables must be true or false, got {shown(value)}."
            )
    return np.array(values, dtype=bool)


def _with(values: np.ndarray, rows: list[int], new: np.ndarray) -> np.ndarray:
    """A copy with other values in these rows."""
    changed = values.copy()
    changed[rows] = new
    return changed


def _check_order(domain: Domain, order: int) -> None:
    if not 0 <= (-1 if (whole := whole_number(order)) is None else whole) <= len(domain):
        raise WorkloadError(
            f"The order must be a whole number from 0 to {len(domain)} (the attributes there "
            f"are), got {order!r}."
        )
