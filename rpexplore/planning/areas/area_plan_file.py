"""Tables in areas in a plan file, and the two Parquet files that it names. Beside it lie

    areas-….parquet       the tree, one row an area (`domain.area_tree_file`)
    precisions-….parquet  what is measured of groups of areas that are alike, and what proves the
                          bound

with the beginnings of their SHA-256 in their names, so that plans can lie beside each other and
share a tree; the plan file holds the whole of them, so that any changed byte is noticed.
"""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.files import MOST_BYTES
from rpexplore.common.json_fields import (
    check_keys,
    columns,
    dumps,
    indices,
    indices_by_first_use,
    list_of,
    lists,
    object_text,
    positive_exact,
    sha256_of,
    text_of,
)
from rpexplore.common.numbers import exact_text, read_only
from rpexplore.common.parquet_bytes import parquet_bytes, table_of_parquet
from rpexplore.common.text import joined
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.area_tree_file import parquet_of_tree, tree_of_parquet
from rpexplore.domain.domain import Domain
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.areas.area_fields import FIELDS
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_loss import AREA_LOSSES, LossRows
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.exact_in_areas import kept_in_areas
from rpexplore.planning.losses.losses import Loss, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.part_plan import certificate_from_json
from rpexplore.planning.plan_fields import keys
from rpexplore.planning.serialization import (
    bases_from_json,
    basis_lines,
    block_strategies_from_json,
    block_strategy_lines,
    cells_from_json,
    loss_from_json,
    strategies_from_json,
    strategy_lines,
    tables_from_json,
    tables_to_json,
)
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
    if tables.has_levels:
        sections["block_strategies"] = block_strategy_lines(tables, plan.closure)
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
    Cost and certificate are taken as stated: `verification` checks them.
    """
    has_levels = "block_strategies" in content
    stated_keys = [key for key in _KEYS if has_levels or key != "block_strategies"]
    check_keys(content, stated_keys, "the tables in areas")
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
    if _names_levels(content, domain):
        domain = domain.with_levels
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
    if has_levels != nowhere.tables.has_levels:
        raise PlanError(
            "block_strategies must be there where an attribute is in tables at several levels, and "
            "nowhere else."
        )
    if has_levels:
        strategies |= block_strategies_from_json(content, closure)
    closure = closure.with_strategies(nowhere.tables, strategies)
    budget = Budget.from_json(content["budget"])
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
    n_kinds = max(closure.n_kinds, 1)
    of_groups = fields_of_groups(
        files.precisions, tree, len(workloads), n_profiles, n_table_prices, n_kinds
    )
    groups = of_groups["groups"]
    workload = AreaWorkload(tree, tuple(workloads), groups.kinds[groups.of_area])
    if stated["areas"] != workload.areas_asked.tolist():
        raise PlanError(
            "the numbers of areas that workloads are asked for must be "
            f"{workload.areas_asked.tolist()}, got {stated['areas']!r:.100}."
        )
    if (kept := kept_in_areas(workload, budget)) is not None:
        closure = closure.replacing_by_residual(replaces=True, in_areas=kept)
    return {
        "workload": workload,
        "exact_levels": _exact_levels(closure, budget, of_residual, of_groups),
        "loss": loss,
        "budget": budget,
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


def _exact_levels(
    closure: Closure, budget: Budget, of_residual: np.ndarray, of_groups: dict[str, Any]
) -> np.ndarray:
    """On how many levels, from the top on, each profile is known exactly: int64[n_profiles].

    It has no noise there. Plans of earlier versions measured the number of all records with noise,
    as it is measured where neighbours add and remove records.
    """
    groups, multiples = of_groups["groups"], of_groups["multiples"]
    levels = np.full(len(multiples), np.iinfo(np.int64).max)
    np.minimum.at(levels, of_residual, closure.exact_levels)
    for profile, n_levels in enumerate(levels.tolist()):
        if np.any(multiples[profile, groups.above(n_levels)]):
            levels[profile] = 0
    if budget.exact and not np.array_equal(levels[of_residual], closure.exact_levels):
        raise PlanError(f"what the exact totals ({budget.exact_text}) tell must have no noise.")
    return levels


def _names_levels(content: dict[str, Any], domain: Domain) -> bool:
    """Whether some table has a level of an attribute: then bases name attributes and levels."""
    listed = [one.get("attribute") for one in list_of(content, "bases") if isinstance(one, dict)]
    known = set(domain.names)
    return any(isinstance(name, str) and name not in known for name in listed)


def _loss_rows(content: dict[str, Any], tables: Workload, closure: Closure, loss: Loss) -> LossRows:
    """The rows that the loss looks at, with the stated cells."""
    listed = columns(content, "cells", ("table", "rows"))
    own, cells = cells_from_json(listed["table"], listed["rows"], tables)
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
        with (folder / name).open("rb") as file:
            contents[role] = file.read(MOST_BYTES + 1)
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


# ---- Group file: what a plan measures in areas, and its prices, as Parquet.
#
# One row a group of areas that are alike, in the order of the areas: how many `areas` it stands
# for, which `workload` they are asked for (−1: none), for each profile of residuals the precision
# of an area as the whole number `multiple_k` of units (0: not measured), and what proves the bound:
# the `price` of the privacy of an area's records (`price_k` of each kind where these are several)
# and, with a largest variance, the `table_price_a` of each table.


def parquet_of_groups(plan: "AreaPlan") -> bytes:
    """The file of a plan."""
    import pyarrow as pa

    groups = plan.groups
    columns = {
        "areas": pa.array(groups.multiplicity.astype(np.int32)),
        "workload": pa.array(groups.kinds.astype(np.int32)),
    }
    columns |= {f"multiple_{k}": pa.array(row) for k, row in enumerate(plan.multiples)}
    prices = zip(_names_of_prices(len(plan.prices)), plan.prices, strict=True)
    columns |= {name: pa.array(row) for name, row in prices}
    if plan.table_prices is not None:
        columns |= {f"table_price_{a}": pa.array(row) for a, row in enumerate(plan.table_prices)}
    return parquet_bytes(columns)


def _names_of_prices(n_kinds: int) -> list[str]:
    """The columns of the prices of records, one for each kind of these."""
    return ["price"] if n_kinds == 1 else [f"price_{kind}" for kind in range(n_kinds)]


def fields_of_groups(
    content: bytes, tree: AreaTree, n_workloads: int, n_profiles: int, n_tables: int, n_kinds: int
) -> dict[str, Any]:
    """The groups, multiples and prices of a plan, from its file.

    n_tables: how many have prices; 0 for a loss that is a sum
    n_kinds: of records, that cost different things

    Raises:
        PlanError: For content that is no such file.
    """
    import pyarrow as pa

    kinds = {"areas": pa.int32(), "workload": pa.int32()}
    kinds |= {f"multiple_{k}": pa.int64() for k in range(n_profiles)}
    names = _names_of_prices(n_kinds)
    kinds |= dict.fromkeys([*names, *(f"table_price_{a}" for a in range(n_tables))], pa.float64())
    table = table_of_parquet(content, kinds, PlanError)
    columns = {name: column.to_numpy() for name, column in table.items()}
    groups = _groups(tree, columns["areas"], columns["workload"], n_workloads)
    multiples = np.stack([columns[f"multiple_{k}"] for k in range(n_profiles)])
    if np.any(multiples < 0) or np.max(multiples) != 2**PRECISION_BITS:
        raise PlanError(
            f"the multiples in its file of precisions must be from 0 to 2^{PRECISION_BITS}, and "
            "the largest of them be that."
        )
    prices = np.stack([_not_negative(columns[name], "price") for name in names])
    divided = np.ones(len(groups), dtype=bool)
    divided[groups.undivided] = False
    if np.any(prices[:, divided]):
        raise PlanError("the prices of areas that are divided must be 0.")
    return {
        "groups": groups,
        "multiples": multiples,
        "prices": prices,
        "table_prices": _table_prices(columns, n_tables),
    }


def _groups(tree: AreaTree, sizes: np.ndarray, kinds: np.ndarray, n_workloads: int) -> AreaGroups:
    """The groups of the tree, which must be those that are stated."""
    fits = np.all(sizes > 0) and np.sum(sizes, dtype=np.int64) == tree.n_areas
    if not fits or np.any((kinds < -1) | (kinds >= n_workloads)):
        raise PlanError(
            "the groups in its file of precisions must have one area or more, all those of the "
            "tree together, and a workload of the plan each (−1 for none)."
        )
    groups = AreaGroups.of(tree, np.repeat(kinds, sizes))
    if not np.array_equal(groups.multiplicity, sizes) or not np.array_equal(groups.kinds, kinds):
        raise PlanError(
            "each group in its file of precisions must stand for all neighbouring areas of one "
            "parent that are not divided and asked for the same."
        )
    return groups


def _table_prices(columns: dict[str, np.ndarray], n_tables: int) -> np.ndarray | None:
    if not n_tables:
        return None
    rows = [columns[f"table_price_{table}"] for table in range(n_tables)]
    return np.stack([_not_negative(row, "table_price") for row in rows])


def _not_negative(values: np.ndarray, noun: str) -> np.ndarray:
    """The values of a column; raises `PlanError` for one that is not finite or below 0."""
    if not np.all(np.isfinite(values) & (values >= 0)):
        raise PlanError(f"every {noun} in its file of precisions must be finite and at least 0.")
    return values


# ---- Exact precisions: whole multiples of rational units, and what they cost.
#
# See docs/mathematics.md §15.6.


# Precisions are whole multiples of a unit: the largest has so many bits.
PRECISION_BITS, FACTOR_BITS, _UNIT_BITS = 40, 20, 40


def whole_multiples(values: np.ndarray, bits: int) -> np.ndarray:
    """Values over the largest as whole numbers of so many bits, rounded down; above 0 at least 1.

    An area's own measurement may say next to nothing where it is known as the rest of another.
    """
    whole = np.floor(values / np.max(values) * 2.0**bits).astype(np.int64)
    return read_only(np.where(values > 0, np.maximum(whole, 1), 0))


def profile_costs(
    closure: Closure, of_residual: np.ndarray, factors: np.ndarray
) -> list[list[Fraction]]:
    """Σ p_S factor_S over the residuals of each profile, exact: a row for each kind of record."""
    # p_S is a product over the attributes of S: (n−1)/n of single values, or the strategy's own
    # (§4.2).
    factors_of_attributes = [Fraction(n - 1, n) for n in closure.sizes.tolist()]
    for attribute, strategy in closure.strategies.items():
        factors_of_attributes[attribute] = strategy.cost_factor
    of_residuals = closure.exact_product(factors_of_attributes, np.arange(len(closure)))
    if closure.by_residual:
        of_residuals = of_residuals * 2 * closure.replaced_shares
    # Residuals of a profile that cost records of all kinds alike are added up once.
    kinds = np.ones((1, len(closure))) if closure.classes is None else closure.classes.toarray()
    relative, alike = np.unique(kinds, axis=1, return_inverse=True)
    sums: dict[tuple[int, int], Fraction] = {}
    for residual, place in enumerate(zip(of_residual.tolist(), alike.tolist(), strict=True)):
        cost = of_residuals[residual] * int(factors[residual])
        sums[place] = sums.get(place, Fraction(0)) + cost
    costs = [[Fraction(0)] * (int(np.max(of_residual)) + 1) for _ in relative]
    for (profile, column), cost in sums.items():
        for of_kind, part in zip(costs, relative[:, column].tolist(), strict=True):
            of_kind[profile] += cost * Fraction(part)  # of a power of two: exact
    return costs


def largest_record_cost(
    groups: AreaGroups, multiples: np.ndarray, costs: list[list[Fraction]]
) -> Fraction:
    """The largest sum of multiples times costs on the way down to an area, exact, of any kind."""
    sums = np.stack([groups.summed_downwards(row)[groups.undivided] for row in multiples])
    # Fractions for millions of areas would be slow: floats choose the few candidates.
    largest = [float(np.max(_rough(of_kind, sums))) for of_kind in costs]
    found = Fraction(0)
    for of_kind, of_floats in zip(costs, largest, strict=True):
        # A float sum of a few positive terms is within some units in the last place of what it is.
        least = max(largest) * (1 - 1e-12)
        if of_floats < least:
            continue
        candidates = np.flatnonzero(_rough(of_kind, sums) >= least)
        for column in {tuple(column) for column in sums[:, candidates].T.tolist()}:
            parts = (cost * n for cost, n in zip(of_kind, column, strict=True))
            found = max(found, sum(parts, Fraction(0)))
    return found


def _rough(costs: list[Fraction], sums: np.ndarray) -> np.ndarray:
    return np.array([float(cost) for cost in costs]) @ sums


def rounded_down(value: Fraction) -> Fraction:
    """The largest number of few bits that is not above a value."""
    # So that value · 2^exponent has about `_UNIT_BITS` bits before the point.
    exponent = value.denominator.bit_length() - value.numerator.bit_length() + _UNIT_BITS
    scale = Fraction(2) ** exponent
    return Fraction(int(value * scale)) / scale
