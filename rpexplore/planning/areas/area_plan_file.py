"""Tables in areas in a plan file, and the two Parquet files that it names. Beside it lie

    areas-….parquet       the tree, one row an area (`domain.area_tree_file`)
    precisions-….parquet  what is measured of groups of areas that are alike, and what proves the
                          bound (`group_file`)

with the beginnings of their SHA-256 in their names, so that plans can lie beside each other and
share a tree; the plan file holds the whole of them, so that any changed byte is noticed.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.formatting import joined
from rpexplore.common.json_fields import (
    check_keys,
    columns,
    dumps,
    indices,
    indices_by_first_use,
    lists,
    object_text,
    positive_exact,
    sha256_of,
    text_of,
)
from rpexplore.domain.area_tree_file import parquet_of_tree, tree_of_parquet
from rpexplore.domain.domain import Domain
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.areas.area_cells import LossRows
from rpexplore.planning.areas.area_fields import FIELDS
from rpexplore.planning.areas.area_loss import AREA_LOSSES
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.exact_precisions import FACTOR_BITS
from rpexplore.planning.areas.group_file import fields_of_groups, parquet_of_groups
from rpexplore.planning.certificate import certificate_from_json
from rpexplore.planning.loss_serialization import loss_from_json
from rpexplore.planning.losses.base import Loss, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.plan_fields import keys
from rpexplore.planning.strategy_serialization import (
    bases_from_json,
    basis_lines,
    strategies_from_json,
    strategy_lines,
)
from rpexplore.planning.tables_in_json import tables_from_json, tables_to_json
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    from rpexplore.planning.areas.area_plan import AreaPlan

_KEYS, _CERTIFICATE_KEYS = keys(FIELDS), keys(FIELDS, "certificate")
_ROLES = keys(FIELDS, "files")
_NAME_DIGITS = 16  # of a SHA-256 in the name of a file


@dataclass(frozen=True)
class AreaFiles:
    """The content of the Parquet files beside a plan file."""

    areas: bytes
    precisions: bytes

    @property
    def sha256(self) -> dict[str, str]:
        """SHA-256 of each, in hexadecimal."""
        return {role: hashlib.sha256(getattr(self, role)).hexdigest() for role in _ROLES}

    @property
    def by_name(self) -> dict[str, bytes]:
        """The files by their names."""
        return {name_of_file(role, sha): getattr(self, role) for role, sha in self.sha256.items()}


def name_of_file(role: str, sha256: str) -> str:
    """The name of the file of a role, "areas" or "precisions", beside the plan file."""
    return f"{role}-{sha256[:_NAME_DIGITS]}.parquet"


# ---- writing


def files_of_plan(plan: "AreaPlan") -> AreaFiles:
    """The Parquet files of a plan."""
    return AreaFiles(parquet_of_tree(plan.workload.tree), parquet_of_groups(plan))


def text_of_plan(plan: "AreaPlan") -> str:
    """The object of a plan file that is this part."""
    tree, certificate = plan.workload.tree, plan.certificate
    loss = plan.loss.to_json().items()
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        "loss": {key: value if isinstance(value, str) else float(value) for key, value in loss},
        "uniform_levels": plan.uniform,
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "certificate": {
            "loss": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
        },
        "files": plan.files.sha256,
        "unit": exact_text(plan.unit),
    }
    sizes = np.diff(tree.starts).tolist()
    residuals = zip(plan.of_residual.tolist(), plan.factors.tolist(), strict=True)
    tables = plan.workload.tables
    sections = {
        "bases": basis_lines(tables),
        "strategies": strategy_lines(tables, plan.closure),
        "levels": [
            dumps({"name": name, "areas": size})
            for name, size in zip(tree.levels, sizes, strict=True)
        ],
        "workloads": [
            dumps({"areas": areas, "tables": tables_to_json(workload, tables.basis_index[rows])})
            for workload, rows, areas in zip(
                plan.workload.workloads,
                plan.workload.rows,
                plan.workload.areas_asked.tolist(),
                strict=True,
            )
        ],
        "cells": _cell_lines(plan),
        "residuals": [
            dumps({"profile": profile, "factor": factor}) for profile, factor in residuals
        ],
    }
    return object_text(head, sections)


def _cell_lines(plan: "AreaPlan") -> list[str]:
    """The cells that the loss looks at one by one; of single values there are none."""
    tables, rows = plan.workload.tables, plan.loss_rows
    if tables.is_marginals:
        return []
    orders = tables.orders[rows.tables].tolist()
    cells = zip(rows.tables.tolist(), rows.cells.tolist(), orders, rows.single, strict=True)
    return [
        dumps({"table": table, "rows": cell[:order]})
        for table, cell, order, is_single in cells
        if is_single
    ]


# ---- reading


def fields_of_plan(content: dict[str, Any], version: str, folder: Path | None) -> dict[str, Any]:
    """The fields of the plan that a file holds, with the files beside it in the folder.

    Raises what `refusing` takes for what is unusable, and `OSError` for a file that cannot be read.
    Cost and certificate are taken as stated: `area_verification` checks them.
    """
    check_keys(content, _KEYS, "the tables in areas")
    check_keys(content["certificate"], _CERTIFICATE_KEYS, "the certificate")
    files = _files(content["files"], folder)
    loss = loss_of_areas(content["loss"])
    if type(content["uniform_levels"]) is not bool:
        raise PlanError("uniform_levels must be true or false.")
    levels = columns(content, "levels", ("name", "areas"))
    names = [text_of({"name": name}, "name") for name in levels["name"]]
    sizes = indices(levels["areas"], 2**31, "number of areas of a level").tolist()
    tree = tree_of_parquet(files.areas, names, sizes)
    domain = Domain.from_schema(content["domain"])
    stated = columns(content, "workloads", ("areas", "tables"))
    bases = bases_from_json(content, domain)
    workloads = [
        tables_from_json(tables, domain, bases) for tables in lists(stated["tables"], "workload")
    ]
    nowhere = AreaWorkload(tree, tuple(workloads), np.full(tree.n_areas, -1))
    if nowhere.tables.bases != bases:
        raise PlanError(
            "the bases must be those that some table uses, each once, single values first."
        )
    closure = Closure.of(nowhere.tables)
    strategies = strategies_from_json(content, nowhere.tables)
    closure = closure.with_strategies(nowhere.tables, strategies)
    residuals = columns(content, "residuals", ("profile", "factor"))
    n_profiles = 1 + max(indices(residuals["profile"], 2**31, "profile"), default=-1)
    of_residual = indices_by_first_use(residuals["profile"], n_profiles, "profile of a residual")
    factors = indices(residuals["factor"], 2**FACTOR_BITS + 1, "factor")
    if len(of_residual) != len(closure) or not np.all(factors > 0):
        raise PlanError(
            "the residuals must be all subsets of the tables (without single-valued attributes), "
            "by number of attributes and then in domain order, each with a factor above 0; there "
            f"must be {len(closure):,} residuals, got {len(of_residual):,}."
        )
    rows = _loss_rows(content, nowhere.tables, closure, loss)
    n_table_prices = 0 if isinstance(loss, SumOfVariances) else len(rows)
    of_groups = fields_of_groups(files.precisions, tree, len(workloads), n_profiles, n_table_prices)
    groups = of_groups["groups"]
    workload = AreaWorkload(tree, tuple(workloads), groups.kinds[groups.of_area])
    if stated["areas"] != workload.areas_asked.tolist():
        raise PlanError(
            "the numbers of areas that workloads are asked for must be "
            f"{workload.areas_asked.tolist()}, got {stated['areas']!r:.100}."
        )
    return {
        "workload": workload,
        "loss": loss,
        "budget": Budget.from_json(content["budget"]),
        "uniform": content["uniform_levels"],
        "closure": closure,
        "loss_rows": rows,
        "of_residual": of_residual,
        "factors": factors,
        "unit": positive_exact(content, "unit"),
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "certificate": certificate_from_json(content["certificate"], "loss", np.empty(0)),
        "version": version,
        "given_files": files,
        **of_groups,
    }


def _loss_rows(content: dict[str, Any], tables: Workload, closure: Closure, loss: Loss) -> LossRows:
    """The rows that the loss looks at, with the stated cells."""
    listed = columns(content, "cells", ("table", "rows"))
    own = indices(listed["table"], len(tables), "table of a cell")
    cells = np.zeros((len(own), tables.members.shape[1]), dtype=np.int64)
    n_queries = np.array([*tables.n_queries, 1])[tables.attribute_basis_index]
    for cell, table, rows in zip(cells, own.tolist(), lists(listed["rows"], "rows"), strict=True):
        ends = n_queries[table, : int(tables.orders[table])].tolist()
        if len(rows) != len(ends) or not all(
            type(row) is int and 0 <= row < end for row, end in zip(rows, ends, strict=True)
        ):
            raise PlanError("the rows of a cell must each be one of the basis of its attribute.")
        cell[: len(rows)] = rows
    needed = not isinstance(loss, SumOfVariances) and not tables.is_marginals
    if needed != (len(own) > 0):
        raise PlanError("cells must be named where the loss looks at single ones, and only there.")
    return LossRows.of(tables, closure, loss, (own, cells))


def _files(stated: Any, folder: Path | None) -> AreaFiles:
    """The files beside the plan file, which must be those that it names."""
    check_keys(stated, _ROLES, "files")
    if folder is None:
        raise PlanError("a plan for areas has files beside it; read it from its folder.")
    contents = {}
    for role in _ROLES:
        sha256 = sha256_of(stated, role)
        name = name_of_file(role, sha256)
        contents[role] = (folder / name).read_bytes()
        if hashlib.sha256(contents[role]).hexdigest() != sha256:
            raise ContradictionError(f"the file {name} beside it was changed since it was written.")
    return AreaFiles(**contents)


def loss_of_areas(content: Any) -> Loss:
    """The loss that an object states; raises what `refusing` takes if none for areas."""
    loss = loss_from_json(content)
    if not isinstance(loss, AREA_LOSSES):
        kinds = joined([known.kind for known in AREA_LOSSES], " or ")
        raise PlanError(f"the loss of a plan for areas must be {kinds}, got {loss.kind}.")
    return loss
