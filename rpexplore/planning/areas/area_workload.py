"""Area workload: which tables are asked for in which areas, and presets by level."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.domain import AttributeSet, Domain
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_sums import AreaName, area_numbers
from rpexplore.workload.workload import Workload

_NOTHING = -1


@dataclass(frozen=True, eq=False, repr=False)
class AreaWorkload:
    """Tables of the other attributes for each area of a tree.

    tree       the areas
    workloads  what is asked, each for at least one area; all of one domain, in which the areas are
               no attribute
    kinds      int64[n_areas]: which of the workloads is asked for each area; −1 for none

    Use `of_levels` and `with_areas`.

    Example:
        >>> tree = AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})
        >>> sexes = Workload.all_up_to(Domain.from_sizes({"sex": 2}), 1)
        >>> AreaWorkload.of_levels(tree, {"region": sexes}).n_tables
        4
    """

    tree: AreaTree
    workloads: tuple[Workload, ...]
    kinds: np.ndarray

    def __post_init__(self) -> None:
        if not self.workloads:
            raise WorkloadError("No table is asked for in any area; ask for one on some level.")
        known = max((one.domain for one in self.workloads), key=len)
        if any(len(one.domain) < len(known) for one in self.workloads):
            # Of one codebook, with and without the levels of its attributes.
            workloads = [
                one.with_levels() if one.domain.with_levels == known else one
                for one in self.workloads
            ]
            object.__setattr__(self, "workloads", tuple(workloads))
        if shared := set(self.tree.levels[1:]) & set(self.domain.names):
            raise WorkloadError(
                f"An attribute and a level of areas are both called {min(shared)!r}, and records "
                "have one column for both; rename one of them."
            )
        for workload in self.workloads[1:]:
            if workload.domain != self.domain:
                raise WorkloadError(
                    "The tables of all levels must be of the same attributes, got "
                    f"{', '.join(self.domain.names)} and {', '.join(workload.domain.names)}."
                )
        object.__setattr__(self, "kinds", read_only(np.asarray(self.kinds, dtype=np.int64)))

    @classmethod
    def of_levels(cls, tree: AreaTree, workloads: Mapping[str, Workload]) -> "AreaWorkload":
        """The tables of each level; none on levels that are left out.

        Raises:
            WorkloadError: For a level that the tree does not have, or no tables at all.
        """
        kinds = np.full(tree.n_areas, _NOTHING)
        for kind, level in enumerate(workloads):
            if level not in tree.levels:
                raise WorkloadError(
                    f"The areas have no level {level!r}; they have {', '.join(tree.levels)}."
                )
            kinds[tree.level_slice(tree.levels.index(level))] = kind
        return cls(tree, tuple(workloads.values()), kinds)

    def with_areas(
        self, areas: Iterable[AreaName] | str, workload: Workload | None
    ) -> "AreaWorkload":
        """The same with other tables, or none, in some areas; not in those that lie within them.

        A sum of errors counts these areas together like a level of their own.

        Args:
            areas: Each as its number in the tree, as its codes from below the top, or as its own
                code where no other has it.
            workload: What is asked there in place of the tables of their levels; None: nothing.

        Raises:
            DomainError: For no areas, and one that is not there.
            WorkloadError: If no tables are left.
        """
        kinds, numbers = self.kinds.copy(), area_numbers(self.tree, areas)
        kinds[numbers] = _NOTHING if workload is None else len(self.workloads)
        workloads = self.workloads if workload is None else (*self.workloads, workload)
        used, moved = np.unique(kinds, return_inverse=True)
        kept = [workloads[kind] for kind in used.tolist() if kind >= 0]
        return AreaWorkload(self.tree, tuple(kept), moved - int(used[0] == _NOTHING))

    def weighted_by(self, name: str, *, unweighted: Iterable[AttributeSet] = ()) -> "AreaWorkload":
        """The same tables weighted, in all areas, as by `Workload.weighted_by`.

        unweighted: tables that stay counts of records, wherever they are asked for

        Raises:
            WorkloadError: For an attribute without weights, or a table that is asked for nowhere.

        Example:
            >>> import rpexplore as rp
            >>> weight = rp.Attribute("w", rp.Amounts(0, 40, are_weights=True))
            >>> domain = rp.Domain((rp.Attribute("sex", rp.Integers(0, 1)), weight))
            >>> tables = rp.Workload.of(domain, [("sex",)])
            >>> tree = rp.AreaTree.from_columns({"region": ["N", "S"]})
            >>> AreaWorkload.of_levels(tree, {"region": tables}).weighted_by("w").tables.tables
            [('sex', 'w')]
        """
        stay = [self.tables.position(table) for table in unweighted]
        weighted = []
        for tables, rows in zip(self.workloads, self.rows, strict=True):
            own = [self.tables.tables[position] for position in stay if position in rows]
            weighted.append(tables.weighted_by(name, unweighted=own))
        return replace(self, workloads=tuple(weighted))

    @property
    def domain(self) -> Domain:
        """The other attributes."""
        return self.workloads[0].domain

    @cached_property
    def areas_asked(self) -> np.ndarray:
        """For how many areas each of the workloads is asked, int64[n_workloads]."""
        asked = self.kinds[self.kinds >= 0]
        return read_only(np.bincount(asked, minlength=len(self.workloads)))

    @property
    def n_tables(self) -> int:
        """How many tables there are in all areas together."""
        sizes = np.array([len(workload) for workload in self.workloads])
        return int(np.sum(sizes * self.areas_asked))

    @cached_property
    def tables(self) -> Workload:
        """All tables that are asked for anywhere, once each, with weights of 1 and no targets.

        Raises `WorkloadError` if levels ask for an attribute of a table in different bases.
        """
        together = _plain(self.workloads[0], np.arange(len(self.workloads[0])))
        for workload in self.workloads[1:]:
            found = [together.find(workload.attribute_indices(row)) for row in range(len(workload))]
            new = np.flatnonzero([position is None for position in found])
            if len(new):
                together = together | _plain(workload, new)
        for workload in self.workloads:
            _refuse_other_bases(workload, together)
        return together

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """For each of the workloads the rows of its tables in `tables`, int64[n] each."""
        found = [
            [self.tables.find(workload.attribute_indices(row)) for row in range(len(workload))]
            for workload in self.workloads
        ]
        return [np.array(rows, dtype=np.int64) for rows in found]

    def __repr__(self) -> str:
        return f"<AreaWorkload of {self.n_tables:,} tables in {self.tree.n_areas:,} areas>"


def _plain(workload: Workload, rows: np.ndarray) -> Workload:
    """Some tables of a workload, with weights of 1 and no targets."""
    return Workload(
        workload.domain,
        workload.members[rows],
        np.ones(len(rows)),
        np.full(len(rows), np.nan),
        workload.bases,
        workload.basis_index[rows],
    )


def _refuse_other_bases(workload: Workload, together: Workload) -> None:
    for row in range(len(workload)):
        attributes = workload.attribute_indices(row)
        position = together.position([workload.domain.names[index] for index in attributes])
        for index in attributes:
            if workload.basis_of(row, index) != together.basis_of(position, index):
                raise WorkloadError(
                    f"The table {workload.describe(row)} has {workload.domain.names[index]!r} in "
                    "one basis on one level and in another on another; ask for it in the same one."
                )


# ---- Level tables: which tables of the other attributes each level of a tree is asked for.
#
# Presets and changes to them, as {level: tables}, which `AreaWorkload.of_levels` takes.


LevelTables = Mapping[str, Workload]


def same_tables(tree: AreaTree, tables: Workload) -> dict[str, Workload]:
    """The same tables on every level."""
    return dict.fromkeys(tree.levels, tables)


def shrinking_detail(tree: AreaTree, tables: Workload) -> dict[str, Workload]:
    """Tables of fewer attributes the lower the level is.

    All at the top, those of at most one attribute on the lowest level, and between them of at most
    as many as lie on a straight line, rounded up.

    Raises:
        WorkloadError: If a level is left without tables.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2, "b": 2, "c": 2}), 3)
        >>> {level: len(some) for level, some in shrinking_detail(tree, tables).items()}
        {'all': 8, 'region': 7, 'town': 4}
    """
    most, last = int(np.max(tables.orders)), max(len(tree.levels) - 1, 1)
    return {
        level: up_to(tables, most - math.floor((most - 1) * number / last) if most else 0, level)
        for number, level in enumerate(tree.levels)
    }


def totals(tree: AreaTree, tables: Workload) -> dict[str, Workload]:
    """The number of records in every area, and nothing else: a spine for other tables."""
    return dict.fromkeys(tree.levels, Workload.of(tables.domain, [()]))


# By what they are called on the command line.
PRESETS: Mapping[str, Callable[[AreaTree, Workload], dict[str, Workload]]] = MappingProxyType(
    {"same": same_tables, "shrinking": shrinking_detail, "totals": totals}
)


def up_to(tables: Workload, order: int, level: str) -> Workload:
    """Those of some tables that have at most so many attributes; `WorkloadError` if none has.

    level: or list of areas that gets them, for errors
    """
    kept = np.flatnonzero(tables.orders <= order)
    if not len(kept):
        raise WorkloadError(
            f"{level!r} gets tables of at most {order} attributes, and none is as small; "
            "ask for smaller ones too, as for all tables up to some order."
        )
    rows = ("members", "weights", "targets", "basis_index", "required")
    return replace(tables, **{name: getattr(tables, name)[kept] for name in rows})


def redistricting_tables(
    domain: Domain, race: str, hispanic: str, voting_age: str, quarters: str | None = None
) -> Workload:
    """Tables P1 to P4 of the redistricting data of the United States (Public Law 94-171), 2020.

    Everybody, and people by race, by race and Hispanic origin, and both by voting age; with
    `quarters` also P5, people by kind of group quarters.

    Args:
        race, hispanic, voting_age, quarters: The names of these attributes.
    """
    tables = [(), (race,), (hispanic, race), (race, voting_age), (hispanic, race, voting_age)]
    return Workload.of(domain, [*tables, (quarters,)] if quarters else tables)


def with_weight(tables: Workload, factor: float) -> Workload:
    """The same tables with weights so many times theirs."""
    return replace(tables, weights=tables.weights * factor)
