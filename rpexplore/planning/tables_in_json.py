"""Tables of a workload as rows of a JSON file, and back."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from rpexplore.common.json_fields import columns, floats, indices, lists
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.workload.bases import Basis
from rpexplore.workload.workload import Workload

_TABLE_KEYS = ("attributes", "weight", "target", "required")


def tables_to_json(
    workload: Workload, basis_index: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """Attributes, by their numbers in the domain, weight and target of each table.

    basis_index: int[n_tables, max_order], of the attributes of each table, −1 behind; None where
        all are single values, of which nothing is said
    """
    columns = (
        map(list, map(workload.attribute_indices, range(len(workload)))),
        workload.weights.tolist(),
        [None if math.isnan(target) else target for target in workload.targets.tolist()],
        workload.required.tolist(),
    )
    rows: list[dict[str, Any]] = [
        dict(zip(_TABLE_KEYS, row, strict=True)) for row in zip(*columns, strict=True)
    ]
    if basis_index is not None:
        for row, own in zip(rows, basis_index.tolist(), strict=True):
            row["basis_index"] = [index for index in own if index >= 0]
    return rows


def tables_from_json(
    listed: list[Any], domain: Domain, bases: tuple[tuple[Basis, ...], ...] | None = None
) -> Workload:
    """The tables that `tables_to_json` wrote; raises what `refusing` takes.

    bases: of each attribute of the domain, by whose numbers tables name theirs; None: all are
        single values
    """
    keys = _TABLE_KEYS if bases is None else (*_TABLE_KEYS, "basis_index")
    rows = columns({"tables": listed}, "tables", keys)
    tables = [
        tuple(indices(table, len(domain), "attribute of a table").tolist())
        for table in lists(rows["attributes"], "table's attributes")
    ]
    targets = [math.nan if target is None else target for target in rows["target"]]
    if not all(type(required) is bool for required in rows["required"]):
        raise PlanError("whether a target is required must be true or false.")
    workload = Workload.of(
        domain,
        [tuple(domain.names[index] for index in table) for table in tables],
        weights=floats(rows["weight"], "weight").tolist(),
        targets=[None if math.isnan(target) else target for target in floats(targets, "target")],
        required=rows["required"],
    )
    if tables != [tuple(workload.attribute_indices(row)) for row in range(len(workload))]:
        raise PlanError(
            "the tables of a workload must each be listed once, by number of attributes and then "
            "in domain order."
        )
    return workload if bases is None else _in_bases(workload, bases, rows["basis_index"])


def _in_bases(
    workload: Workload, bases: tuple[tuple[Basis, ...], ...], stated: list[Any]
) -> Workload:
    """Tables of single values in the bases that are stated for them instead."""
    index = np.full(workload.members.shape, -1)
    for row, own in enumerate(lists(stated, "basis_index")):
        attributes = workload.attribute_indices(row)
        fits = len(own) == len(attributes) and all(
            type(number) is int and 0 <= number < len(bases[attribute])
            for number, attribute in zip(own, attributes, strict=True)
        )
        if not fits:
            raise PlanError("each table must have one basis_index for each of its attributes.")
        index[row, : len(own)] = own
    return replace(workload, bases=bases, basis_index=index)
