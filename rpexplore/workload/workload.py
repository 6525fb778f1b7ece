"""Workload: the tables a curator asks for, each with a weight and maybe a target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from rpexplore.common.numbers import whole_number
from rpexplore.common.text import joined
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.attribute_sets import (
    attribute_sets,
    check_order,
    padded,
    refuse_too_many,
    stacked,
)
from rpexplore.workload.bases import Basis
from rpexplore.workload.bases.base import leave_values_open
from rpexplore.workload.bases.sums import default_basis
from rpexplore.workload.targets import Target
from rpexplore.workload.workload_arrays import (
    Bases,
    canonical_arrays,
    changed_bases,
    numbers,
    required_marks,
    setting_arrays,
    standard_errors,
)

_MOST_NAMED = 3  # tables in an error


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """Weighted attribute sets in canonical order: by number of attributes, then lexicographically.

    members      int32[n_tables, max_order]: indices of a table's attributes in the domain,
                 ascending, padded at the end with −1
    weights      float64[n_tables], positive
    targets      float64[n_tables]: wanted standard error of a cell, positive; NaN: none. Of tables
                 with amounts in the unit of these, and for their sums
    bases        for each attribute of the domain, the bases that some table has it in
    basis_index  int32[n_tables, max_order]: which of its attribute's bases a table has, from 0; −1
                 behind. Without these two all attributes have their single values, or their sums
    required     bool[n_tables]: whether a plan has to meet the target, rather than as well as the
                 other targets allow; empty where none has to

    Use the builders (`all_of_order`, `all_up_to`, `all_with_at_most`, `of`, `|`); the constructor
    sorts, and raises `WorkloadError` for a set twice (naming it), no tables, rows that are not
    ascending attribute indices, a bad weight or target, or a required target that is missing.

    Example:
        >>> domain = Domain.from_sizes({"age": 100, "sex": 2})
        >>> (Workload.all_of_order(domain, 1) | Workload.of(domain, [("age", "sex")])).tables
        [('age',), ('sex',), ('age', 'sex')]
    """

    domain: Domain
    members: np.ndarray
    weights: np.ndarray
    targets: np.ndarray
    bases: Bases = ()
    basis_index: np.ndarray = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    required: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))

    def __post_init__(self) -> None:
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        for name, value in canonical_arrays(**given).items():
            object.__setattr__(self, name, value)

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

        Args:
            only: The attributes that a table may have; None: any.
            containing: Those that every table has.
            cells: The most cells that a table may have; None: any number.
        """
        check_order(domain, order)
        domain, orders = _knowing(domain, only, containing), range(order, order + 1)
        sets = attribute_sets(domain, orders, only=only, containing=containing, cells=cells)
        return cls(domain, sets, **setting_arrays(len(sets)))

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
        """The total and all tables up to `order`-way, narrowed as by `all_of_order`.

        An order above the number of attributes is that number.
        """
        if (whole_number(order) or 0) > domain.n_columns:
            order = domain.n_columns
        check_order(domain, order)
        domain, orders = _knowing(domain, only, containing), range(order + 1)
        sets = attribute_sets(domain, orders, only=only, containing=containing, cells=cells)
        return cls(domain, sets, **setting_arrays(len(sets)))

    @classmethod
    def all_with_at_most(
        cls,
        domain: Domain,
        *,
        cells: int,
        only: AttributeSet | None = None,
        containing: AttributeSet = (),
    ) -> "Workload":
        """All tables of at most `cells` cells, the total among them; narrowed as `all_of_order`."""
        orders, domain = range(domain.n_columns + 1), _knowing(domain, only, containing)
        sets = attribute_sets(domain, orders, only=only, containing=containing, cells=cells)
        return cls(domain, sets, **setting_arrays(len(sets)))

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

        A name by itself is a one-way table: ("age", "sex") lists two of them. `weights`, `targets`
        and `required` go along with `tables`. A target that is a number is a standard error; if
        one is required it says itself, unless `required` does. That of a table with amounts is one
        of its sums, in the unit of the amounts.
        """
        tables = [[table] if isinstance(table, str) else list(table) for table in tables]
        domain = _knowing(domain, *tables)
        sets = [domain.positions(table) for table in tables]
        refuse_too_many(len(sets))
        return cls(domain, padded(sets), **setting_arrays(len(sets), weights, targets, required))

    def __or__(self, workload: "Workload") -> "Workload":
        """The union; a table in both is refused, since its weight would be ambiguous."""
        if len(self.domain) != len(workload.domain):  # of one codebook, with and without levels
            return self.with_levels() | workload.with_levels()
        if self.domain != workload.domain:
            raise WorkloadError("Only workloads over one domain can be united; these have two.")
        # Bases of the second come behind those of the first in their attributes' lists.
        before = np.array([*map(len, self.bases), 0])[workload.members]
        moved = np.where(workload.members < 0, -1, workload.basis_index + before)
        return Workload(
            self.domain,
            stacked([self.members, workload.members]),
            np.concatenate([self.weights, workload.weights]),
            np.concatenate([self.targets, workload.targets]),
            tuple(a + b for a, b in zip(self.bases, workload.bases, strict=True)),
            stacked([self.basis_index, moved]),
            np.concatenate([self.required, workload.required]),
        )

    def with_levels(self) -> "Workload":
        """The same tables in the domain that has all levels; `WorkloadError` if it has none.

        Workloads know levels only where a table is at one.
        """
        known = self.domain.with_levels
        if known == self.domain and self.domain.n_columns == len(known):
            raise WorkloadError("Only workloads over one domain can be united; these have two.")
        more = ((),) * (len(known) - len(self.domain))
        return replace(self, domain=known, bases=(*self.bases, *more))

    def with_bases(
        self, bases: Mapping[str, Basis], *, tables: Iterable[AttributeSet] | None = None
    ) -> "Workload":
        """A copy in which attributes have other bases; attributes left out stay as they are.

        tables: those in which they have it (each must hold all these attributes); None: all.
        """
        return replace(self, **changed_bases(self, bases, tables))

    def weighted_by(self, name: str, *, unweighted: Iterable[AttributeSet] = ()) -> "Workload":
        """The same tables weighted: counts are sums of this attribute, which has survey weights.

        Sums of amounts are sums of amounts times weights, and means the quotients of these.

        unweighted: tables that stay counts of records, or sums of amounts; those that have the
            weights stay as they are

        Weights, targets and bases stay those of the tables; targets are then of weighted counts.
        Raises `WorkloadError` for an attribute that has no weights.

        Example:
            >>> import rpexplore as rp
            >>> weight = rp.Attribute("w", rp.Amounts(0, 40, are_weights=True))
            >>> domain = rp.Domain((rp.Attribute("sex", rp.Integers(0, 1)), weight))
            >>> Workload.all_up_to(domain, 1).weighted_by("w", unweighted=[()]).tables
            [(), ('sex', 'w')]
        """
        index, attribute = self.domain.position(name), self.domain[name]
        if not (isinstance(attribute.values, Amounts) and attribute.values.are_weights):
            raise WorkloadError(
                f"The attribute {name!r} cannot weight tables, as it has no weights; give it "
                '"weights": true and bounds in the codebook.'
            )
        is_weighted = ~np.any(self.members == index, axis=1)  # those that have it stay as they are
        is_weighted[[self.position(table) for table in unweighted]] = False
        last = np.iinfo(np.int32).max  # behind all attributes
        members = np.where(self.members < 0, last, self.members)
        added = np.where(is_weighted, index, last).astype(np.int32)[:, None]
        basis_index = np.hstack([self.basis_index, np.where(is_weighted, 0, -1)[:, None]])
        members = np.hstack([members, added])
        order = np.argsort(members, axis=1, kind="stable")
        members = np.take_along_axis(members, order, 1)
        width = int(np.max(np.sum(members != last, axis=1)))  # the largest tables may be unweighted
        members, order = members[:, :width], order[:, :width]
        bases = [*self.bases]
        bases[index] = (default_basis(attribute),)
        return replace(
            self,
            members=np.where(members == last, -1, members),
            bases=tuple(bases),
            basis_index=np.take_along_axis(basis_index, order, 1),
        )

    def with_weights(self, weights: Mapping[AttributeSet, float]) -> "Workload":
        """A copy in which the named tables have these weights."""
        return self._with_rows(weights, weights=numbers([*weights.values()], "weights"))

    def with_targets(self, targets: Mapping[AttributeSet, Target | float | None]) -> "Workload":
        """A copy in which the named tables have these targets; a number is a standard error.

        With a number a required target stays required; None is no target, so not required either.
        """
        required = [
            target.required
            if isinstance(target, Target)
            else target is not None and self.required[self.position(table)]
            for table, target in targets.items()
        ]
        errors = standard_errors([*targets.values()])
        return self._with_rows(targets, targets=errors, required=np.array(required, dtype=bool))

    def with_required(self, required: Mapping[AttributeSet, bool]) -> "Workload":
        """A copy in which the targets of the named tables have to be met, or need not be."""
        return self._with_rows(required, required=required_marks([*required.values()]))

    def _with_rows(self, tables: Iterable[AttributeSet], **new: np.ndarray) -> "Workload":
        """A copy in which the named tables have other values in these fields, [n_tables named]."""
        rows = [self.position(table) for table in tables]
        if len(set(rows)) < len(rows):
            twice = self.describe(next(row for row in rows if rows.count(row) > 1))
            raise WorkloadError(f"The table {twice} is given two {next(iter(new))}; give it one.")
        changed = {name: getattr(self, name).copy() for name in new}
        for name, values in new.items():
            changed[name][rows] = values
        return replace(self, **changed)

    # ---- what it holds

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def orders(self) -> np.ndarray:
        """Number of attributes of each table, int64[n_tables]."""
        return np.count_nonzero(self.members >= 0, axis=1)

    @property
    def is_marginals(self) -> bool:
        """Whether all attributes have their single values, and none has two levels.

        Tables are then marginals of one domain, in each of which all cells are alike.
        """
        return not self.has_levels and self.has_values_alone

    @property
    def has_values_alone(self) -> bool:
        """Whether all attributes have their single values, or the groups of a level: no sums."""
        return all(basis.is_identity for _, basis in self.attribute_bases)

    @property
    def uses_levels(self) -> bool:
        """Whether some table has an attribute at one of its levels, by groups of its values."""
        return max(self.used, default=0) >= self.domain.n_columns

    @property
    def has_levels(self) -> bool:
        """Whether some attribute is in tables at several levels."""
        return len(self.at_several_levels) > 0

    @cached_property
    def at_several_levels(self) -> frozenset[int]:
        """The indices of the levels of attributes that tables have at several of them."""
        if self.domain.n_columns == len(self.domain):
            return frozenset()
        used = np.array([index for index in self.used if self.domain.sizes[index] > 1], dtype=int)
        columns = self.domain.columns[used]
        return frozenset(used[np.bincount(columns)[columns] > 1].tolist())

    @cached_property
    def units(self) -> np.ndarray:
        """What one of the planner's standard errors of each table is in the unit of its cells.

        The largest amount where a table has amounts, times the largest weight where it has weights,
        else 1: float64[n_tables]. The planner knows sums in these, so that they compare with
        counts.
        """
        units = np.ones(len(self))
        for index in self.domain.amounts:
            values = self.domain.attributes[index].values
            assert isinstance(values, Amounts)
            units[np.any(self.members == index, axis=1)] *= float(values.largest)
        return units

    @cached_property
    def planned_targets(self) -> np.ndarray:
        """The targets as the planner knows errors: those of sums in largest amounts."""
        return self.targets / self.units

    @property
    def comparable(self) -> np.ndarray:
        """The tables whose errors are told together, as they are in one unit: bool[n_tables].

        Those of counts if there are any, else those of weighted counts, else all.
        """
        for of_one_unit in (~self.has_amounts, self.is_weighted & ~self.has_means):
            if np.any(of_one_unit):
                return of_one_unit
        return np.full(len(self), True)

    @property
    def amounts(self) -> tuple[int, ...]:
        """The attributes of amounts that some table has, ascending indices."""
        return tuple(index for index in self.domain.amounts if self.bases[index])

    @cached_property
    def has_amounts(self) -> np.ndarray:
        """Whether each table has an attribute of amounts, bool[n_tables]."""
        if not self.domain.amounts:  # most often, and there may be a million tables
            return np.zeros(len(self), dtype=bool)
        return np.any(np.isin(self.members, self.domain.amounts), axis=1)

    @cached_property
    def is_weighted(self) -> np.ndarray:
        """Whether each table has weighted counts, bool[n_tables]."""
        if not self.domain.weights:
            return np.zeros(len(self), dtype=bool)
        return np.any(np.isin(self.members, self.domain.weights), axis=1)

    @cached_property
    def has_means(self) -> np.ndarray:
        """Whether each table has sums of amounts beside counts, and so means, bool[n_tables]."""
        of_amounts = set(self.domain.amounts) - set(self.domain.weights)
        if not of_amounts:
            return np.zeros(len(self), dtype=bool)
        return np.any(np.isin(self.members, list(of_amounts)), axis=1)

    def unit_of(self, position: int, counted: str) -> str:
        """The unit of a table's figures: "EUR", "weighted people", or what is counted."""
        if self.has_means[position]:
            held = (self.domain.attributes[i].values for i in self.attribute_indices(position))
            return next(v.unit for v in held if isinstance(v, Amounts) and not v.are_weights)
        return f"weighted {counted}" if self.is_weighted[position] else counted

    @cached_property
    def products(self) -> tuple[tuple[int, int], ...]:
        """Which amounts and which weights some table has together, as pairs of indices."""
        both = self.members[self.has_means & self.is_weighted].tolist()
        weights = set(self.domain.weights)
        amounts = set(self.domain.amounts) - weights
        pairs = {(one, other) for row in both for one in row for other in row}
        return tuple(sorted(p for p in pairs if p[0] in amounts and p[1] in weights))

    @property
    def sums_noun(self) -> str:
        """What tables with amounts have: "sums of amounts", "weighted counts", …; "" none."""
        return self.sums_noun_of(self.has_amounts)

    def sums_noun_of(self, tables: np.ndarray) -> str:
        """The same of some tables, bool[n_tables]."""
        nouns = (
            ("sums of amounts", self.has_means & ~self.is_weighted),
            ("weighted sums of amounts", self.has_means & self.is_weighted),
            ("weighted counts", self.is_weighted & ~self.has_means),
        )
        return joined([noun for noun, having in nouns if np.any(having & tables)])

    @cached_property
    def attribute_bases(self) -> tuple[tuple[int, Basis], ...]:
        """Every (attribute index, basis that some table has it in), by attribute."""
        return tuple((index, basis) for index, listed in enumerate(self.bases) for basis in listed)

    def places_of_bases(self, attribute: int) -> range:
        """Where the bases of an attribute are in `attribute_bases`."""
        first = sum(map(len, self.bases[:attribute]))
        return range(first, first + len(self.bases[attribute]))

    @cached_property
    def attribute_basis_index(self) -> np.ndarray:
        """The bases of each table in `attribute_bases`, int32[n_tables, max_order]; −1 behind."""
        first = np.cumsum([0, *map(len, self.bases)], dtype=np.int32)
        return np.where(self.members < 0, -1, first[self.members] + self.basis_index)

    @cached_property
    def n_queries(self) -> list[int]:
        """Number of queries of each of `attribute_bases`."""
        attributes = self.domain.attributes
        return [basis.n_rows(attributes[index]) for index, basis in self.attribute_bases]

    def basis_of(self, position: int, attribute_index: int) -> Basis:
        """The basis of one of a table's attributes."""
        column = self.attribute_indices(position).index(attribute_index)
        return self.bases[attribute_index][self.basis_index[position, column]]

    @cached_property
    def cells(self) -> np.ndarray:
        """Number of cells (answers) of each table, float64[n_tables] (exact below 2^53)."""
        return self._products(float)

    @cached_property
    def exact_cells(self) -> np.ndarray:
        """Number of cells of each table in Python integers, object[n_tables]."""
        return self._products(object)

    @property
    def n_cells(self) -> int:
        """Number of cells of all tables together."""
        return sum(self.exact_cells.tolist())

    def _products(self, dtype: type) -> np.ndarray:
        n_queries = np.array([*self.n_queries, 1], dtype)  # 1 for the −1 of the padding
        return np.prod(n_queries[self.attribute_basis_index], axis=1)

    @cached_property
    def counted_cells(self) -> np.ndarray:
        """Number of cells of the marginal that each table is computed from, float64[n_tables]."""
        sizes = np.append(self.domain.sizes.astype(float), 1.0)
        return np.prod(sizes[self.members], axis=1)

    @cached_property
    def tables(self) -> list[tuple[str, ...]]:
        """The attribute names of each table, in domain order."""
        names = self.domain.names
        return [tuple(names[i] for i in row if i >= 0) for row in self.members.tolist()]

    @cached_property
    def _columns(self) -> list[np.ndarray]:
        """The orders and then the columns of members: what rows are sorted by, one by one."""
        return [self.orders, *np.ascontiguousarray(self.members.T, dtype=np.int64)]

    def find(self, indices: Sequence[int]) -> int | None:
        """The row of the table on these ascending attribute indices; None if it is not there."""
        start, stop = 0, len(self)
        for column, wanted in zip(self._columns, (len(indices), *indices), strict=False):
            ends = np.searchsorted(column[start:stop], (wanted, wanted + 1))
            start, stop = start + int(ends[0]), start + int(ends[1])
        return start if start < stop else None

    def position(self, table: AttributeSet) -> int:
        """The row of a table; `WorkloadError` if the workload does not hold it."""
        indices = self.domain.positions(table)
        position = self.find(indices)
        if position is None:
            those = [*self.containing(table).tolist(), *range(min(len(self), _MOST_NAMED))]
            few = list(dict.fromkeys(those))[:_MOST_NAMED]
            named = joined([self.domain.describe(self.members[row]) for row in few])
            more = ", among others" if len(self) > _MOST_NAMED else ""
            raise WorkloadError(
                f"The table {self.domain.describe(indices)} is not in the workload, which has "
                f"{named}{more}; name one that it has, or plan with this one added."
            )
        return position

    def containing(self, attributes: AttributeSet) -> np.ndarray:
        """The rows of the tables that have all of these attributes, ascending, int64[n]."""
        indices = self.domain.positions(attributes)
        return np.flatnonzero(np.isin(self.members, indices).sum(axis=1) == len(indices))

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The indices of the attributes that some table has, ascending."""
        return tuple(np.setdiff1d(self.members, [-1]).tolist())

    @cached_property
    def open_attributes(self) -> tuple[int, ...]:
        """The indices of attributes whose own matrices leave open how many have each value.

        Not of amounts, of which there are no counts of values.
        """
        return tuple(
            index
            for index, bases in enumerate(self.bases)
            if bases
            and index not in self.domain.amounts
            and leave_values_open(bases, self.domain.attributes[index])
        )

    def has_tables_of(self, workload: "Workload") -> bool:
        """Whether both have the same tables, of the same sizes and bases, in the same rows."""
        return (
            np.array_equal(self.domain.sizes, workload.domain.sizes)
            and np.array_equal(self.members, workload.members)
            and self.bases == workload.bases
            and np.array_equal(self.basis_index, workload.basis_index)
            and all(
                self.domain.attributes[index].groups == workload.domain.attributes[index].groups
                for index, basis in self.attribute_bases
                if not basis.is_identity
            )
        )

    def attribute_indices(self, position: int) -> tuple[int, ...]:
        """The indices of a table's attributes in the domain, ascending."""
        return tuple(index for index in self.members[position].tolist() if index >= 0)

    def describe(self, position: int) -> str:
        """A table's attributes for a sentence: "(age, sex)", or "(total)"."""
        return self.domain.describe(self.members[position])

    def __repr__(self) -> str:
        return f"<Workload of {len(self):,} tables over {len(self.domain)} attributes>"


def _knowing(domain: Domain, *names: AttributeSet | None) -> Domain:
    """The domain, with the levels of its attributes if some of these names are of levels."""
    stated = {one for own in names for one in ([own] if isinstance(own, str) else own or ())}
    return domain if all(name in domain for name in stated) else domain.with_levels
