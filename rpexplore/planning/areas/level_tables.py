"""Level tables: which tables of the other attributes each level of a tree is asked for.

Presets and changes to them, as {level: tables}, which `AreaWorkload.of_levels` takes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.workload import Workload

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
