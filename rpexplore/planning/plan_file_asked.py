"""What only plan files hold whose tables ask attributes in other ways than by single values.

Their bases, the strategies that attributes are measured through, and the cells that the shadow
prices are of.
"""

from typing import Any

import numpy as np

from rpexplore.common.json_fields import columns, dumps, not_negative
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_places
from rpexplore.planning.solvers.solution import CellPrices
from rpexplore.workload.bases import Basis, from_json, to_json
from rpexplore.workload.workload import Workload

_BASIS_KEYS = ("attribute", "ways")
_STRATEGY_KEYS = ("attribute", "bits", "matrix")
_CELL_KEYS = ("table", "rows", "shadow_price")


def lines_of_bases(workload: Workload) -> list[str]:
    return [
        dumps({"attribute": name, "ways": [to_json(basis) for basis in listed]})
        for name, listed in zip(workload.domain.names, workload.bases, strict=True)
        if listed
    ]


def lines_of_strategies(workload: Workload, closure: Closure) -> list[str]:
    """One row of a matrix a line."""
    return [
        f'{{"attribute":{dumps(workload.domain.names[place])},"bits":{strategy.bits},"matrix":[\n'
        + ",\n".join(dumps(row) for row in strategy.integers.tolist())
        + "\n]}"
        for place, strategy in sorted(closure.strategies.items())
    ]


def lines_of_cells(workload: Workload, cells: CellPrices | None) -> list[str]:
    if cells is None:
        return []
    orders = workload.orders[cells.tables].tolist()
    listed = zip(
        cells.tables.tolist(), cells.rows.tolist(), orders, cells.prices.tolist(), strict=True
    )
    return [
        f'{{"table":{table},"rows":{dumps(rows[:order])},"shadow_price":{price!r}}}'
        for table, rows, order, price in listed
    ]


def bases_and_ways(
    content: dict[str, Any], domain: Domain, members: np.ndarray, tables: dict[str, list[Any]]
) -> tuple[tuple[tuple[Basis, ...], ...], np.ndarray]:
    """The bases of each attribute, and which of them each table asks."""
    listed = columns(content, "bases", _BASIS_KEYS)
    bases: list[tuple[Basis, ...]] = [()] * len(domain)
    for name, ways in zip(listed["attribute"], listed["ways"], strict=True):
        bases[domain.position(name)] = tuple(from_json(each) for each in ways)
    ways = np.full(members.shape, -1, dtype=np.int32)
    for row, asked in enumerate(tables["ways"]):
        if type(asked) is not list or not all(type(way) is int for way in asked):
            raise PlanError("the ways of each table must be a list of whole numbers.")
        if len(asked) != np.count_nonzero(members[row] >= 0):
            raise PlanError("each table must have one way for each of its attributes.")
        ways[row, : len(asked)] = asked
    return tuple(bases), ways


def strategies_of(content: dict[str, Any], workload: Workload) -> dict[int, Strategy]:
    listed = columns(content, "strategies", _STRATEGY_KEYS)
    places = [workload.domain.position(name) for name in listed["attribute"]]
    if places != measured_places(workload):
        raise PlanError(
            "there must be one strategy for each attribute that some table asks other than by "
            "single values, in the order of the domain."
        )
    strategies = {}
    for place, bits, rows in zip(places, listed["bits"], listed["matrix"], strict=True):
        size = int(workload.domain.sizes[place])
        flat = [entry for row in rows for entry in row]
        whole = all(type(entry) is int and abs(entry) < 2**62 for entry in [bits, *flat])
        if not whole or [len(row) for row in rows] != [size] * (size - 1):
            raise PlanError(
                f"the strategy of {workload.domain.names[place]!r} must be {size - 1} rows of "
                f"{size} whole numbers, over a power of two."
            )
        strategies[place] = Strategy(np.array(flat, dtype=np.int64).reshape(-1, size), bits)
    return strategies


def cells_of(content: dict[str, Any], workload: Workload) -> CellPrices | None:
    listed = columns(content, "cells", _CELL_KEYS)
    if not listed["table"]:
        return None
    rows = np.zeros((len(listed["table"]), workload.members.shape[1]), dtype=np.int64)
    limits = np.array([*workload.n_queries, 1])
    for place, (table, cell) in enumerate(zip(listed["table"], listed["rows"], strict=True)):
        if type(table) is not int or not 0 <= table < len(workload):
            raise PlanError(f"there is no table {table!r} for a cell with a shadow price.")
        most = limits[workload.attribute_basis_index[table, : int(workload.orders[table])]].tolist()
        if len(cell) != len(most) or not all(
            type(row) is int and 0 <= row < end for row, end in zip(cell, most, strict=True)
        ):
            raise PlanError(f"the table {workload.describe(table)} has no cell {cell!r:.100}.")
        rows[place, : len(cell)] = cell
    prices = not_negative(listed["shadow_price"], "shadow_price")
    return CellPrices(np.array(listed["table"], dtype=np.int64), rows, prices)
