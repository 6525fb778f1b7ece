"""The plan file: one JSON text, canonical, so that its SHA-256 is the plan's name.

Described in `schemas/plan-1.json`: UTF-8 with the keys in its order, no spaces, and each table and
residual on a line of its own, so that files can be compared by line. Exact numbers are texts
("12.5", "1/3"); floats are the shortest decimals that give them back. A text with the same content
in another layout is read only to be written anew.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.exact_numbers import Decimals, exact_text
from rpexplore.common.json_fields import (
    canonical_text,
    check_keys,
    columns,
    dumps,
    floats,
    lists,
    not_negative,
    positive_exact,
    text_of,
)
from rpexplore.domain import codebook
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.certificate import Certificate, certificate_from_json
from rpexplore.planning.loss_serialization import loss_from_json
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.solvers.solution import CellPrices
from rpexplore.privacy.budget import Budget
from rpexplore.workload.bases import Basis, from_json, to_json
from rpexplore.workload.workload import Workload, padded

if TYPE_CHECKING:
    from rpexplore.planning.plan import Plan

_KEYS = (
    "format", "format_version", "library_version", "domain", "loss", "budget", "privacy_cost",
    "certificate", "bases", "strategies", "tables", "cells", "residuals",
)  # fmt: skip
_TABLE_KEYS = (
    "attributes", "basis_index", "weight", "target", "required",
    "variance", "largest_variance", "smallest_variance", "shadow_price", "dual_weight",
)  # fmt: skip


# ---- writing


def text_of_plan(plan: "Plan") -> str:
    """The canonical text of a plan."""
    workload, certificate = plan.workload, plan.certificate
    loss = plan.loss.to_json().items()
    head = {
        **plan.file_head,
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
    residuals = zip(
        _attribute_names(workload, plan.closure.members), plan.sigma_squared.texts(), strict=True
    )
    sections = {
        "bases": [
            dumps({"attribute": name, "bases": [to_json(basis) for basis in bases]})
            for name, bases in zip(workload.domain.names, workload.bases, strict=True)
            if bases
        ],
        "strategies": _strategy_lines(workload, plan.closure),
        "tables": _table_lines(workload, plan.table_variances, certificate),
        "cells": _cell_lines(workload, certificate.cells),
        "residuals": [
            f'{{"attributes":[{names}],"sigma_squared":"{sigma_squared}"}}'
            for names, sigma_squared in residuals
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
        variances.largest.tolist(),
        variances.smallest.tolist(),
        certificate.shadow_prices.tolist(),
        [math.nan] * len(workload) if weights is None else weights.tolist(),
        strict=True,
    )
    return [
        f'{{"attributes":[{names}],"basis_index":[{bases}],"weight":{weight!r},'
        f'"target":{_or_null(target)},"required":{"true" if required else "false"},'
        f'"variance":{mean!r},"largest_variance":{largest!r},"smallest_variance":{smallest!r},'
        f'"shadow_price":{price!r},"dual_weight":{_or_null(dual_weight)}}}'
        for (
            names,
            bases,
            weight,
            target,
            required,
            mean,
            largest,
            smallest,
            price,
            dual_weight,
        ) in rows
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


# ---- reading


def fields_of_plan(content: dict[str, Any]) -> dict[str, Any]:
    """The fields of the plan that a file holds; raises what `refusing` takes for what is unusable.

    Noise scales, variances, cost and certificate are taken as stated: `verification` checks them.
    """
    check_keys(content, _KEYS, "the plan")
    check_keys(content["certificate"], ("loss", "lower_bound", "gap", "limit"), "the certificate")
    tables = columns(content, "tables", _TABLE_KEYS)
    residuals = columns(content, "residuals", ("attributes", "sigma_squared"))
    library_version = text_of(content, "library_version")
    privacy_cost = positive_exact(content, "privacy_cost")
    domain = Domain(tuple(codebook.attributes_from_schema(content["domain"])))
    workload = _workload(content, domain, tables)
    closure = Closure.of(workload)
    members = _members(domain, residuals["attributes"])
    if not np.array_equal(members, closure.members):
        raise PlanError(
            "the residuals must be all subsets of the tables (without single-valued attributes), "
            "each listed once, by number of attributes and then in domain order; there must be "
            f"{len(closure):,} residuals, got {len(members):,}."
        )
    closure = closure.with_strategies(workload, _strategies(content, workload))
    loss = loss_from_json(content["loss"])
    dual_weights = None
    if any(weight is not None for weight in tables["dual_weight"]):
        dual_weights = not_negative(tables["dual_weight"], "dual_weight")
    certificate = certificate_from_json(
        content["certificate"],
        "loss",
        not_negative(tables["shadow_price"], "shadow_price"),
        cells=_cells(content, workload),
        dual_weights=dual_weights,
    )
    variances = TableVariances(
        *(
            not_negative(tables[key], key)
            for key in ("variance", "largest_variance", "smallest_variance")
        )
    )
    _refuse_unused(workload, loss, certificate, variances)
    return {
        "workload": workload,
        "loss": loss,
        "budget": Budget.from_json(content["budget"]),
        "closure": closure,
        "sigma_squared": Decimals.parse(residuals["sigma_squared"]),
        "table_variances": variances,
        "exact_privacy_cost": privacy_cost,
        "certificate": certificate,
        "version": library_version,
    }


def _workload(content: dict[str, Any], domain: Domain, tables: dict[str, list[Any]]) -> Workload:
    members = _members(domain, tables["attributes"])
    listed = columns(content, "bases", ("attribute", "bases"))
    bases: list[tuple[Basis, ...]] = [()] * len(domain)
    contents = lists(listed["bases"], "bases")
    for name, of_attribute in zip(listed["attribute"], contents, strict=True):
        bases[domain.position(name)] = tuple(from_json(basis) for basis in of_attribute)
    indices = lists(tables["basis_index"], "basis_index")
    if not {type(index) for row in indices for index in row} <= {int}:
        raise PlanError("every basis_index must be a list of whole numbers.")
    if list(map(len, indices)) != list(map(len, tables["attributes"])):
        raise PlanError("each table must have one basis_index for each of its attributes.")
    if not all(type(required) is bool for required in tables["required"]):
        raise PlanError("whether a target is required must be true or false.")
    workload = Workload(
        domain,
        members,
        floats(tables["weight"], "weight"),
        floats([math.nan if target is None else target for target in tables["target"]], "target"),
        tuple(bases),
        padded(indices),
        np.array(tables["required"], dtype=bool),
    )
    if not np.array_equal(members, workload.members):
        raise PlanError(
            "the tables must each be listed once, by number of attributes and then in domain order."
        )
    in_order = [domain.names[index] for index, used in enumerate(workload.bases) if used]
    if (
        tuple(bases) != workload.bases
        or listed["attribute"] != in_order
        or not np.array_equal(padded(indices), workload.basis_index)
    ):
        raise PlanError(
            "the bases must be those that some table uses, each once, single values first, and "
            "their attributes in the order of the domain."
        )
    return workload


def _members(domain: Domain, rows: list[Any]) -> np.ndarray:
    """Lists of attribute names as indices in the domain, as `padded` gives them."""
    indices = domain.indices
    rows = lists(rows, "attributes")
    try:
        return padded([[indices[name] for name in names] for names in rows])
    except (KeyError, TypeError):
        for names in rows:
            domain.positions(names)  # names the attribute that is not there
        raise


def _strategies(content: dict[str, Any], workload: Workload) -> dict[int, Strategy]:
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


def _cells(content: dict[str, Any], workload: Workload) -> CellPrices | None:
    listed = columns(content, "cells", ("table", "rows", "shadow_price"))
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
