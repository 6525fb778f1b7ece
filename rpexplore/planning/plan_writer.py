"""The canonical text of a plan: what a plan file holds, byte for byte.

UTF-8 with the keys in the order of `schemas/plan-1.json`, no spaces, and each table and residual on
a line of its own, so that files can be compared by line. Exact numbers are texts ("12.5", "1/3");
floats are the shortest decimals that give them back.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.json_fields import canonical_text, dumps
from rpexplore.domain import codebook
from rpexplore.planning.certificate import Certificate
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.solvers.solution import CellPrices
from rpexplore.workload.bases import to_json
from rpexplore.workload.workload import Workload

FORMAT, VERSION = "rpexplore-plan", 1


def text_from_fields(fields: Mapping[str, Any]) -> str:
    """The canonical text of a plan, from its fields by name."""
    workload: Workload = fields["workload"]
    closure: Closure = fields["closure"]
    certificate: Certificate = fields["certificate"]
    head = {
        "format": FORMAT,
        "format_version": VERSION,
        "library_version": fields["version"],
        "domain": codebook.schema_from_attributes(workload.domain.attributes),
        "loss": {
            key: option if isinstance(option, str) else float(option)
            for key, option in fields["loss"].to_json().items()
        },
        "budget": fields["budget"].to_json(),
        "privacy_cost": exact_text(fields["exact_privacy_cost"]),
        "certificate": {
            "loss": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            "limit": certificate.limit,
        },
    }
    sections = {
        "bases": [
            dumps({"attribute": name, "bases": [to_json(basis) for basis in bases]})
            for name, bases in zip(workload.domain.names, workload.bases, strict=True)
            if bases
        ],
        "strategies": _strategy_lines(workload, closure),
        "tables": _table_lines(workload, fields["table_variances"], certificate),
        "cells": _cell_lines(workload, certificate.cells),
        "residuals": [
            f'{{"attributes":[{names}],"sigma_squared":"{sigma_squared}"}}'
            for names, sigma_squared in zip(
                _attribute_names(workload, closure.members),
                fields["sigma_squared"].texts(),
                strict=True,
            )
        ],
    }
    return canonical_text(head, sections)


def _strategy_lines(workload: Workload, closure: Closure) -> list[str]:
    """One row of a matrix a line."""
    return [
        f'{{"attribute":{dumps(workload.domain.names[attribute])},"bits":{strategy.bits},'
        '"matrix":[\n' + ",\n".join(dumps(row) for row in strategy.integers.tolist()) + "\n]}"
        for attribute, strategy in sorted(closure.strategies.items())
    ]


def _table_lines(
    workload: Workload, variances: TableVariances, certificate: Certificate
) -> list[str]:
    numbers = [str(number) for number in range(int(workload.basis_index.max(initial=0)) + 1)]
    weights = certificate.dual_weights
    rows = zip(
        _attribute_names(workload, workload.members),
        _joined(workload.basis_index, numbers),
        workload.weights.tolist(),
        workload.targets.tolist(),
        workload.required.tolist(),
        variances.mean.tolist(),
        variances.worst.tolist(),
        variances.best.tolist(),
        certificate.shadow_prices.tolist(),
        [math.nan] * len(workload) if weights is None else weights.tolist(),
        strict=True,
    )
    return [
        f'{{"attributes":[{names}],"basis_index":[{bases}],"weight":{weight!r},'
        f'"target":{_or_null(target)},"required":{"true" if required else "false"},'
        f'"variance":{mean!r},"worst_variance":{worst!r},"best_variance":{best!r},'
        f'"shadow_price":{price!r},"dual_weight":{_or_null(dual_weight)}}}'
        for names, bases, weight, target, required, mean, worst, best, price, dual_weight in rows
    ]


def _cell_lines(workload: Workload, cells: CellPrices | None) -> list[str]:
    if cells is None:
        return []
    rows = zip(cells.tables.tolist(), cells.rows.tolist(), cells.prices.tolist(), strict=True)
    return [
        dumps({"table": table, "rows": cell[: workload.orders[table]], "shadow_price": price})
        for table, cell, price in rows
    ]


def _attribute_names(workload: Workload, members: np.ndarray) -> list[str]:
    """The quoted names of each row's attributes, joined by commas."""
    return _joined(members, [dumps(name) for name in workload.domain.names])


def _joined(rows: np.ndarray, texts: list[str]) -> list[str]:
    """The texts with the numbers in each row, up to its padding with −1, joined by commas."""
    return [",".join([texts[index] for index in row if index >= 0]) for row in rows.tolist()]


def _or_null(value: float) -> str:
    return "null" if math.isnan(value) else repr(value)
