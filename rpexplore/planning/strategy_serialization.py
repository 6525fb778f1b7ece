"""Bases of attributes, and the strategies that they are measured by, in plan files."""

from typing import Any

import numpy as np

from rpexplore.common.json_fields import columns, dumps, lists
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.workload.bases import Basis, from_json, to_json
from rpexplore.workload.workload import Workload


def basis_lines(workload: Workload) -> list[str]:
    """The bases in which tables have each attribute."""
    return [
        dumps({"attribute": name, "bases": [to_json(basis) for basis in bases]})
        for name, bases in zip(workload.domain.names, workload.bases, strict=True)
        if bases
    ]


def strategy_lines(workload: Workload, closure: Closure) -> list[str]:
    """One row of a matrix a line."""
    return [
        f'{{"attribute":{dumps(workload.domain.names[attribute])},"bits":{strategy.bits},'
        '"matrix":[\n' + ",\n".join(dumps(row) for row in strategy.integers.tolist()) + "\n]}"
        for attribute, strategy in sorted(closure.strategies.items())
    ]


def bases_from_json(content: dict[str, Any], domain: Domain) -> tuple[tuple[Basis, ...], ...]:
    """The bases of each attribute of the domain."""
    listed = columns(content, "bases", ("attribute", "bases"))
    bases: list[tuple[Basis, ...]] = [()] * len(domain)
    contents = lists(listed["bases"], "bases")
    for name, of_attribute in zip(listed["attribute"], contents, strict=True):
        bases[domain.position(name)] = tuple(from_json(basis) for basis in of_attribute)
    if listed["attribute"] != [domain.names[index] for index, own in enumerate(bases) if own]:
        raise PlanError(
            "the bases must be those that some table uses, in the order of the domain, each once."
        )
    return tuple(bases)


def strategies_from_json(content: dict[str, Any], workload: Workload) -> dict[int, Strategy]:
    listed = columns(content, "strategies", ("attribute", "bits", "matrix"))
    attributes = [workload.domain.position(name) for name in listed["attribute"]]
    if attributes != measured_attributes(workload):
        raise PlanError(
            "there must be one strategy for each attribute with another basis than single values, "
            "in the order of the domain."
        )
    strategies = {}
    for attribute, bits, rows in zip(attributes, listed["bits"], listed["matrix"], strict=True):
        size = int(workload.domain.sizes[attribute])
        entries = [entry for row in lists(rows, "row of a strategy") for entry in row]
        whole = all(type(entry) is int and abs(entry) < 2**62 for entry in [bits, *entries])
        if not whole or [len(row) for row in rows] != [size] * (size - 1):
            raise PlanError(
                f"the strategy of {workload.domain.names[attribute]!r} must be {size - 1} rows of "
                f"{size} whole numbers, over a power of two."
            )
        strategies[attribute] = Strategy(np.array(entries, dtype=np.int64).reshape(-1, size), bits)
    return strategies
