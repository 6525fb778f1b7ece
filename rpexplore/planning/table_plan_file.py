"""Tables in a plan file: each table and each residual on a line of its own.

What tables have beside their attributes is listed once, as a class of tables, and so is each noise
scale.
"""

import math
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.concurrency import collection_paused
from rpexplore.common.exact_numbers import Decimals, exact_text
from rpexplore.common.json_fields import (
    check_keys,
    columns,
    dumps,
    floats,
    indices,
    indices_by_first_use,
    list_of,
    lists,
    not_negative,
    object_text,
    positive,
    positive_exact,
)
from rpexplore.common.numerics import distinct_rows
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.certificate import Certificate, certificate_from_json
from rpexplore.planning.loss_serialization import loss_from_json
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.plan_fields import keys
from rpexplore.planning.solvers.solution import CellPrices
from rpexplore.planning.strategy_serialization import (
    bases_from_json,
    basis_lines,
    strategies_from_json,
    strategy_lines,
)
from rpexplore.planning.table_fields import CELL, CLASS, FIELDS
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload, padded

if TYPE_CHECKING:
    from rpexplore.planning.table_plan import TablePlan

_KEYS, _CERTIFICATE_KEYS = keys(FIELDS), keys(FIELDS, "certificate")
_CLASS_KEYS, _CELL_KEYS = keys(CLASS), keys(CELL)
_VARIANCE_KEYS = ("variance", "largest_variance", "smallest_variance")


# ---- writing


@collection_paused()
def text_of_plan(plan: "TablePlan") -> str:
    """The object of a plan file that is this part."""
    workload, certificate = plan.workload, plan.certificate
    loss = plan.loss.to_json().items()
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        "loss": {key: value if isinstance(value, str) else float(value) for key, value in loss},
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "certificate": {
            "loss": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            "limit": certificate.limit,
        },
    }
    classes, class_index = _class_lines(workload, plan.table_variances, certificate)
    scales = plan.sigma_squared
    first_scales, scale_index = distinct_rows((scales.digits, scales.exponents))
    sections = {
        "bases": basis_lines(workload),
        "strategies": strategy_lines(workload, plan.closure),
        "classes": classes,
        "tables": _table_lines(workload, class_index),
        "cells": _cell_lines(workload, certificate.cells),
        "noise_scales": [f'"{text}"' for text in scales[first_scales].texts()],
        "residuals": list(map(str, scale_index.tolist())),
    }
    return object_text(head, sections)


def _class_lines(
    workload: Workload, variances: TableVariances, certificate: Certificate
) -> tuple[list[str], np.ndarray]:
    """The distinct rows of what tables have beside their attributes, and the row of each table."""
    dual_weights = certificate.dual_weights
    columns = (
        workload.weights, workload.targets, workload.required,
        variances.mean, variances.largest, variances.smallest, certificate.shadow_prices,
        np.full(len(workload), math.nan) if dual_weights is None else dual_weights,
    )  # fmt: skip
    first, class_index = distinct_rows((*workload.basis_index.T, *columns))
    bases = [[index for index in row if index >= 0] for row in workload.basis_index[first].tolist()]
    numbers = (column[first] for column in columns)
    or_null = (np.where(np.isnan(column), np.array(None), column) for column in numbers)
    rows = zip(bases, *or_null, strict=True)
    return [dumps(dict(zip(_CLASS_KEYS, row, strict=True))) for row in rows], class_index


def _table_lines(workload: Workload, class_index: np.ndarray) -> list[str]:
    digits = [str(attribute) for attribute in range(len(workload.domain))]
    rows = zip(workload.members.tolist(), class_index.tolist(), strict=True)
    return [
        f"[[{','.join([digits[index] for index in row if index >= 0])}],{number}]"
        for row, number in rows
    ]


def _cell_lines(workload: Workload, cells: CellPrices | None) -> list[str]:
    if cells is None:
        return []
    rows = zip(cells.tables.tolist(), cells.rows.tolist(), cells.prices.tolist(), strict=True)
    return [
        dumps({"table": table, "rows": cell[: workload.orders[table]], "shadow_price": price})
        for table, cell, price in rows
    ]


# ---- reading


def fields_of_plan(content: dict[str, Any], version: str) -> dict[str, Any]:
    """The fields of the plan that a file holds; raises what `refusing` takes for what is unusable.

    Noise scales, variances, cost and certificate are taken as stated: `verification` checks them.
    """
    check_keys(content, _KEYS, "the tables")
    check_keys(content["certificate"], _CERTIFICATE_KEYS, "the certificate")
    domain = Domain.from_schema(content["domain"])
    classes = columns(content, "classes", _CLASS_KEYS)
    workload, class_index = _workload(content, domain, classes)
    closure = Closure.of(workload)
    scales = Decimals.parse(list_of(content, "noise_scales"))
    residuals = list_of(content, "residuals")
    scale_index = indices_by_first_use(residuals, len(scales), "noise scale of a residual")
    if len(scale_index) != len(closure):
        raise PlanError(
            "the residuals must be all subsets of the tables (without single-valued attributes), "
            "by number of attributes and then in domain order, and each have a noise scale; there "
            f"must be {len(closure):,} residuals, got {len(scale_index):,}."
        )
    closure = closure.with_strategies(workload, strategies_from_json(content, workload))
    loss = loss_from_json(content["loss"])

    def of_tables(key: str, check: Callable[..., np.ndarray] = not_negative) -> np.ndarray:
        return check(classes[key], key)[class_index]

    has_dual_weights = any(weight is not None for weight in classes["dual_weight"])
    certificate = certificate_from_json(
        content["certificate"],
        "loss",
        of_tables("shadow_price"),
        cells=_cells(content, workload),
        dual_weights=of_tables("dual_weight") if has_dual_weights else None,
    )
    variances = TableVariances(*(of_tables(key, positive) for key in _VARIANCE_KEYS))
    _refuse_unused(workload, loss, certificate, variances)
    return {
        "workload": workload,
        "loss": loss,
        "budget": Budget.from_json(content["budget"]),
        "closure": closure,
        "sigma_squared": scales[scale_index],
        "table_variances": variances,
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "certificate": certificate,
        "version": version,
    }


def _tables(content: dict[str, Any], domain: Domain, n_classes: int) -> tuple[np.ndarray, ...]:
    """The attributes of each table as `padded` gives them, and its class."""
    rows = lists(list_of(content, "tables"), "table")
    if any(len(row) != 2 for row in rows):
        raise PlanError("every table must be a list of two: of its attributes, and its class.")
    members = lists([row[0] for row in rows], "table's attributes")
    indices(list(chain.from_iterable(members)), len(domain), "attribute of a table")
    classes = [row[1] for row in rows]
    return padded(members), indices_by_first_use(classes, n_classes, "class of a table")


def _workload(
    content: dict[str, Any], domain: Domain, classes: dict[str, list[Any]]
) -> tuple[Workload, np.ndarray]:
    """The workload, and the class of each of its tables."""
    members, class_index = _tables(content, domain, len(classes["weight"]))
    bases = bases_from_json(content, domain)
    rows = lists(classes["basis_index"], "basis_index")
    if not {type(index) for row in rows for index in row} <= {int}:
        raise PlanError("every basis_index must be a list of whole numbers.")
    orders = np.count_nonzero(members >= 0, axis=1)
    if not np.array_equal(np.array(list(map(len, rows)))[class_index], orders):
        raise PlanError("each table must have one basis_index for each of its attributes.")
    basis_index = padded(rows)[class_index]
    if not all(type(required) is bool for required in classes["required"]):
        raise PlanError("whether a target is required must be true or false.")
    targets = [math.nan if target is None else target for target in classes["target"]]
    workload = Workload(
        domain,
        members,
        floats(classes["weight"], "weight")[class_index],
        floats(targets, "target")[class_index],
        bases,
        basis_index,
        np.array(classes["required"], dtype=bool)[class_index],
    )
    if not np.array_equal(members, workload.members):
        raise PlanError(
            "the tables must each be listed once, by number of attributes and then in domain order."
        )
    if bases != workload.bases or not np.array_equal(basis_index, workload.basis_index):
        raise PlanError(
            "the bases must be those that some table uses, each once, single values first."
        )
    return workload, class_index


def _cells(content: dict[str, Any], workload: Workload) -> CellPrices | None:
    listed = columns(content, "cells", _CELL_KEYS)
    if not listed["table"]:
        return None
    rows = np.zeros((len(listed["table"]), workload.members.shape[1]), dtype=np.int64)
    n_queries = np.array([*workload.n_queries, 1])
    for row, table, cell in zip(rows, listed["table"], lists(listed["rows"], "rows"), strict=True):
        if type(table) is not int or not 0 <= table < len(workload):
            raise PlanError(f"there is no table {table!r} for a cell with a shadow price.")
        ends = n_queries[workload.attribute_basis_index[table, : int(workload.orders[table])]]
        if len(cell) != len(ends) or not all(
            type(row) is int and 0 <= row < end for row, end in zip(cell, ends, strict=True)
        ):
            raise PlanError(f"the table {workload.describe(table)} has no cell {cell!r:.100}.")
        row[: len(cell)] = cell
    prices = not_negative(listed["shadow_price"], "shadow_price")
    return CellPrices(np.array(listed["table"], dtype=np.int64), rows, prices)


def _refuse_unused(
    workload: Workload, loss: Loss, certificate: Certificate, variances: TableVariances
) -> None:
    """Raise `PlanError` for parts that nobody would check, or that are missing."""
    if loss.is_proven_by_shadow_prices != (certificate.dual_weights is None):
        raise PlanError(
            "each table must have a dual_weight, but none with sums and largest variances: there "
            "it is null."
        )
    if loss.has_limit != (certificate.limit is not None):
        raise PlanError(
            "the certificate must have a limit with a bounded average, and null with other losses."
        )
    if workload.is_marginals and (
        certificate.cells is not None
        or not np.array_equal(variances.largest, variances.mean)
        or not np.array_equal(variances.smallest, variances.mean)
    ):
        raise PlanError(
            "where all tables are of single values, all cells of a table have one variance, and "
            "none of them a shadow price of its own."
        )
