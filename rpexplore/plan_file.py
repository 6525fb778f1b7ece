"""The plan file: one JSON text, canonical, so that its SHA-256 is the plan's name.

The published description is `schemas/plan-1.json` (JSON Schema) for plans whose tables ask all
attributes by their single values, `schemas/plan-2.json` for others: they hold the bases, the
strategies and the accuracy of the extreme cells as well; and `schemas/plan-3.json` for plans with
targets that must be met or another loss than a sum or a largest variance: they hold which targets
these are, and the dual weights that prove the bound. Exact numbers are texts ("12.5",
"1/3"): the text is the number. The canonical form is UTF-8 with the keys in the order below, no
spaces, and each table and residual on a line of its own, so that files can be compared by line
and `sha256sum plan.json` gives the hash the ledger and the manifest name.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rpexplore import codebook
from rpexplore.basis import Basis, from_json, to_json
from rpexplore.budget import Budget
from rpexplore.certificate import Certificate
from rpexplore.closure import Closure
from rpexplore.convex_losses import MeanAndMax, PNorm, SquaredExcess, TailMean
from rpexplore.decimals import Decimals
from rpexplore.domain import Domain
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.exact import exact_fraction, exact_text
from rpexplore.losses import Loss, MaxVariance, SumOfVariances
from rpexplore.named_loss import NamedLoss
from rpexplore.own_loss import ConvexLoss
from rpexplore.solvers.solution import CellPrices
from rpexplore.strategy import Strategy, measured_places
from rpexplore.table_variances import TableVariances
from rpexplore.target_losses import BoundedAverage, MustsThenAverage, MustsThenTargets
from rpexplore.workload import Workload, padded

FORMAT = "rpexplore-plan"
PURE, GENERAL, DUAL = 1, 2, 3  # format versions

_HEAD = (
    "format",
    "format_version",
    "library_version",
    "domain",
    "loss",
    "budget",
    "privacy_cost",
    "certificate",
)
_KEYS = {
    PURE: (*_HEAD, "tables", "residuals"),
    GENERAL: (*_HEAD, "bases", "strategies", "tables", "cells", "residuals"),
    DUAL: (*_HEAD, "bases", "strategies", "tables", "cells", "residuals"),
}
_CERTIFICATE_KEYS = {
    PURE: ("loss", "lower_bound", "gap"),
    GENERAL: ("loss", "lower_bound", "gap"),
    DUAL: ("loss", "lower_bound", "gap", "limit"),
}
_TABLE_KEYS = {
    PURE: ("attributes", "weight", "target", "variance", "shadow_price"),
    GENERAL: (
        "attributes",
        "ways",
        "weight",
        "target",
        "variance",
        "worst_variance",
        "best_variance",
        "shadow_price",
    ),
    DUAL: (
        "attributes",
        "ways",
        "weight",
        "target",
        "must",
        "variance",
        "worst_variance",
        "best_variance",
        "shadow_price",
        "dual_weight",
    ),
}
_ROW_KEYS = {
    "bases": ("attribute", "ways"),
    "strategies": ("attribute", "bits", "matrix"),
    "cells": ("table", "rows", "shadow_price"),
    "residuals": ("attributes", "sigma_squared"),
}
_LOSS_KINDS: dict[str, Any] = {
    "sum_of_variances": SumOfVariances,
    "max_variance": MaxVariance,
    "musts_then_average": MustsThenAverage,
    "musts_then_targets": MustsThenTargets,
    "bounded_average": BoundedAverage,
    "p_norm": PNorm,
    "mean_and_max": MeanAndMax,
    "tail_mean": TailMean,
    "squared_excess": SquaredExcess,
    "own": (ConvexLoss, NamedLoss),
}


def text_from_fields(fields: Mapping[str, Any]) -> str:
    """The canonical text of a plan, from its fields by name."""
    workload: Workload = fields["workload"]
    certificate: Certificate = fields["certificate"]
    version = PURE if workload.is_pure else GENERAL
    if np.any(workload.musts) or certificate.dual_weights is not None:
        version = DUAL
    head = {
        "format": FORMAT,
        "format_version": version,
        "library_version": fields["version"],
        "domain": codebook.schema_from_attributes(workload.domain.attributes),
        "loss": loss_to_json(fields["loss"]),
        "budget": fields["budget"].to_json(),
        "privacy_cost": exact_text(fields["exact_privacy_cost"]),
        "certificate": {
            "loss": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            **({"limit": certificate.limit} if version == DUAL else {}),
        },
    }
    lines = [f"{_dumps(key)}:{_dumps(value)}" for key, value in head.items()]
    quoted = [_dumps(name) for name in workload.domain.names]
    variances: TableVariances = fields["table_variances"]
    ways = extremes = musts = duals = [""] * len(workload)
    if version != PURE:
        ways = [
            f'"ways":{_dumps([way for way in row if way >= 0])},' for row in workload.ways.tolist()
        ]
        extremes = [
            f'"worst_variance":{worst!r},"best_variance":{best!r},'
            for worst, best in zip(variances.worst.tolist(), variances.best.tolist(), strict=True)
        ]
    if version == DUAL:
        musts = [f'"must":{_dumps(must)},' for must in workload.musts.tolist()]
        weights = certificate.dual_weights
        held = [None] * len(workload) if weights is None else weights.tolist()
        duals = [f',"dual_weight":{_dumps(weight)}' for weight in held]
    tables = [
        f'{{"attributes":[{names}],{asked}"weight":{weight!r},"target":{_or_null(target)},{must}'
        f'"variance":{variance!r},{extreme}"shadow_price":{price!r}{dual}}}'
        for names, asked, weight, target, must, variance, extreme, price, dual in zip(
            _joined(workload.members, quoted),
            ways,
            workload.weights.tolist(),
            workload.targets.tolist(),
            musts,
            variances.mean.tolist(),
            extremes,
            certificate.shadow_prices.tolist(),
            duals,
            strict=True,
        )
    ]
    residuals = [
        f'{{"attributes":[{names}],"sigma_squared":"{text}"}}'
        for names, text in zip(
            _joined(fields["closure"].members, quoted), fields["sigma_squared"].texts(), strict=True
        )
    ]
    sections = {"tables": tables, "residuals": residuals}
    if version != PURE:
        sections = {
            "bases": _lines_of_bases(workload),
            "strategies": _lines_of_strategies(workload, fields["closure"]),
            "tables": tables,
            "cells": _lines_of_cells(workload, certificate.cells),
            "residuals": residuals,
        }
    for key, rows in sections.items():
        lines.append(f'"{key}":[\n' + ",\n".join(rows) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def fields_from_text(text: str, source: str) -> dict[str, Any]:
    """The fields of the plan that a text holds; `source` is named in errors.

    Everything needed is rebuilt from the inputs (domain, tables); noise scales, variances, cost
    and certificate are taken as stated: `verification` holds them against an exact recomputation.

    Raises `PlanError` naming the part that cannot be used.
    """
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{source} is not a plan file: it is not valid JSON ({error}).") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PlanError(f'{source} is not a plan file: "format" must be "{FORMAT}".')
    version = content.get("format_version")
    if version not in _KEYS or type(version) is not int:
        raise PlanError(
            f"{source} has plan format version {version!r}, and this "
            f"library reads versions {PURE} to {DUAL}; use the library version "
            f"{content.get('library_version', 'it was made with')} or a newer one."
        )
    try:
        return _fields(content)
    except RpexploreError as error:
        raise PlanError(f"{source} cannot be used: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise PlanError(f"{source} cannot be used: a part is not as it must be ({what}).") from None


def loss_to_json(loss: Loss) -> dict[str, Any]:
    """A loss as plain values, for files. Of an own one only the name: it is a piece of program."""
    kind = next(kind for kind, of_kind in _LOSS_KINDS.items() if isinstance(loss, of_kind))
    if isinstance(loss, ConvexLoss | NamedLoss):
        return {"kind": kind, "name": loss.name}
    options: Any = loss  # a dataclass, as all in the table are
    return {"kind": kind, **asdict(options)}


def loss_from_json(content: Any) -> Loss:
    """The loss that `loss_to_json` wrote; raises `PlanError` for an unknown kind."""
    options = dict(content)
    kind = options.pop("kind")
    if kind not in _LOSS_KINDS:
        raise PlanError(f"the loss must be one of {', '.join(_LOSS_KINDS)}, got {kind!r}.")
    of_kind = _LOSS_KINDS[kind]
    return NamedLoss(**options) if of_kind == (ConvexLoss, NamedLoss) else of_kind(**options)


def _fields(content: dict[str, Any]) -> dict[str, Any]:
    version = content["format_version"]
    _check_keys(content, _KEYS[version], "the plan")
    _check_keys(content["certificate"], _CERTIFICATE_KEYS[version], "the certificate")
    tables = _columns(content, "tables", _TABLE_KEYS[version])
    residuals = _columns(content, "residuals", _ROW_KEYS["residuals"])
    if not isinstance(content["library_version"], str):
        raise PlanError("library_version must be a text.")
    if not isinstance(content["privacy_cost"], str):
        raise PlanError('privacy_cost must be a text such as "0.5".')

    privacy_cost = exact_fraction(content["privacy_cost"], "privacy_cost")
    if privacy_cost <= 0:
        raise PlanError(f"privacy_cost must be positive, got {content['privacy_cost']}.")
    domain = Domain(tuple(codebook.attributes_from_schema(content["domain"])))
    members = _members(domain, tables["attributes"])
    bases, ways = (), np.empty((0, 0))
    if version != PURE:
        bases, ways = _asked(content, domain, members, tables)
    workload = Workload(
        domain,
        members,
        _floats(tables["weight"], "weight"),
        _floats([math.nan if t is None else t for t in tables["target"]], "target"),
        bases,
        ways,
        _musts(tables),
    )
    if (bases and bases != workload.bases) or (version == GENERAL and workload.is_pure):
        raise PlanError(
            "the bases must be those that some table asks, each once, single values first; and "
            f"where there are only single values the format version is {PURE}, or {DUAL}."
        )
    closure = Closure.of(workload)
    listed = _members(domain, residuals["attributes"])
    if not np.array_equal(members, workload.members) or not np.array_equal(listed, closure.members):
        raise PlanError(
            "the tables, and as residuals all their subsets (without single-valued attributes), "
            "must each be listed once, by number of attributes and then in domain order; "
            f"there must be {len(closure):,} residuals, got {len(listed):,}."
        )
    if version != PURE:
        closure = closure.measured_by(workload, _strategies(content, workload))
    return {
        "workload": workload,
        "loss": loss_from_json(content["loss"]),
        "budget": Budget.from_json(content["budget"]),
        "closure": closure,
        "sigma_squared": Decimals.parse(residuals["sigma_squared"]),
        "table_variances": _variances(tables),
        "exact_privacy_cost": privacy_cost,
        "certificate": _certificate(
            content["certificate"],
            _not_negative(tables["shadow_price"], "shadow_price"),
            _cells(content, workload) if version != PURE else None,
            _dual_weights(tables),
        ),
        "version": content["library_version"],
    }


def _members(domain: Domain, rows: list[list[str]]) -> np.ndarray:
    """Rows of attribute names as places, as `padded` gives them, in the order they are listed."""
    places = domain.places
    try:
        return padded([[places[name] for name in names] for names in rows])
    except (KeyError, TypeError):
        for names in rows:
            domain.positions(names)  # names the attribute that is not there
        raise


def _certificate(
    content: dict[str, Any],
    shadow_prices: np.ndarray,
    cells: CellPrices | None,
    dual_weights: np.ndarray | None,
) -> Certificate:
    values = [content["loss"], content["lower_bound"], content["gap"]]
    loss, lower_bound, gap = _not_negative(values, "certificate").tolist()
    if lower_bound == 0:
        raise PlanError("the certificate's lower_bound must be above 0.")
    limit = content.get("limit")
    if limit is not None and float(_not_negative([limit], "limit")[0]) == 0:
        raise PlanError("the certificate's limit must be above 0, or null.")
    certificate = Certificate(loss, lower_bound, shadow_prices, cells, dual_weights, limit)
    if certificate.gap != gap:
        raise PlanError(
            f"the certificate's gap does not follow from its loss and lower_bound: it must be "
            f"{certificate.gap!r}, got {gap!r}."
        )
    return certificate


def _musts(tables: dict[str, list[Any]]) -> np.ndarray:
    listed = tables.get("must", [])
    if not all(type(must) is bool for must in listed):
        raise PlanError("whether a target must be met has to be true or false.")
    return np.array(listed, dtype=bool)


def _dual_weights(tables: dict[str, list[Any]]) -> np.ndarray | None:
    listed = tables.get("dual_weight", [])
    if all(weight is None for weight in listed):
        return None
    return _not_negative(listed, "dual_weight")


def _variances(tables: dict[str, list[Any]]) -> TableVariances:
    mean = _not_negative(tables["variance"], "variance")
    if "worst_variance" not in tables:
        return TableVariances(mean, mean, mean)
    worst, best = (_not_negative(tables[f"{each}_variance"], each) for each in ("worst", "best"))
    return TableVariances(mean, worst, best)


# ---- what only plans hold whose tables ask attributes in other ways than by single values


def _lines_of_bases(workload: Workload) -> list[str]:
    return [
        _dumps({"attribute": name, "ways": [to_json(basis) for basis in listed]})
        for name, listed in zip(workload.domain.names, workload.bases, strict=True)
        if listed
    ]


def _lines_of_strategies(workload: Workload, closure: Closure) -> list[str]:
    """One row of a matrix a line."""
    return [
        f'{{"attribute":{_dumps(workload.domain.names[place])},"bits":{strategy.bits},"matrix":[\n'
        + ",\n".join(_dumps(row) for row in strategy.integers.tolist())
        + "\n]}"
        for place, strategy in sorted(closure.strategies.items())
    ]


def _lines_of_cells(workload: Workload, cells: CellPrices | None) -> list[str]:
    if cells is None:
        return []
    orders = workload.orders[cells.tables].tolist()
    listed = zip(
        cells.tables.tolist(), cells.rows.tolist(), orders, cells.prices.tolist(), strict=True
    )
    return [
        f'{{"table":{table},"rows":{_dumps(rows[:order])},"shadow_price":{price!r}}}'
        for table, rows, order, price in listed
    ]


def _asked(
    content: dict[str, Any], domain: Domain, members: np.ndarray, tables: dict[str, list[Any]]
) -> tuple[tuple[tuple[Basis, ...], ...], np.ndarray]:
    """The bases of each attribute, and which of them each table asks."""
    listed = _columns(content, "bases", _ROW_KEYS["bases"])
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


def _strategies(content: dict[str, Any], workload: Workload) -> dict[int, Strategy]:
    listed = _columns(content, "strategies", _ROW_KEYS["strategies"])
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


def _cells(content: dict[str, Any], workload: Workload) -> CellPrices | None:
    listed = _columns(content, "cells", _ROW_KEYS["cells"])
    if not listed["table"]:
        return None
    rows = np.zeros((len(listed["table"]), workload.members.shape[1]), dtype=np.int64)
    limits = np.array([*workload.question_rows, 1])
    for place, (table, cell) in enumerate(zip(listed["table"], listed["rows"], strict=True)):
        if type(table) is not int or not 0 <= table < len(workload):
            raise PlanError(f"there is no table {table!r} for a cell with a shadow price.")
        most = limits[workload.asks[table, : int(workload.orders[table])]].tolist()
        if len(cell) != len(most) or not all(
            type(row) is int and 0 <= row < end for row, end in zip(cell, most, strict=True)
        ):
            raise PlanError(f"the table {workload.describe(table)} has no cell {cell!r:.100}.")
        rows[place, : len(cell)] = cell
    prices = _not_negative(listed["shadow_price"], "shadow_price")
    return CellPrices(np.array(listed["table"], dtype=np.int64), rows, prices)


def _check_keys(content: Any, keys: Collection[str], noun: str) -> None:
    """Exactly these keys: what nobody checks has no place in a plan."""
    if not isinstance(content, dict) or content.keys() != set(keys):
        found = ", ".join(content) if isinstance(content, dict) else repr(content)
        raise PlanError(f"{noun} must hold exactly {', '.join(keys)}, got {found:.200}.")


def _columns(content: dict[str, Any], key: str, keys: Sequence[str]) -> dict[str, list[Any]]:
    """The rows under a key, turned into one list for each of their keys."""
    rows = content[key]
    if not isinstance(rows, list):
        raise PlanError(f"{key} must be a list.")
    wanted = set(keys)
    for row in rows:
        if not isinstance(row, dict) or row.keys() != wanted:
            _check_keys(row, keys, f"each of the {key}")
    columns = {name: [row[name] for row in rows] for name in keys}
    if not all(type(names) is list for names in columns.get("attributes", [])):
        raise PlanError(f"the attributes of each of the {key} must be a list of names.")
    return columns


def _floats(values: list[Any], noun: str) -> np.ndarray:
    if not {type(value) for value in values} <= {int, float}:
        wrong = next(value for value in values if type(value) not in (int, float))
        raise PlanError(f"every {noun} must be a number, got {wrong!r}.")
    return np.array(values, dtype=float)


def _not_negative(values: list[Any], noun: str) -> np.ndarray:
    numbers = _floats(values, noun)
    if not np.all(np.isfinite(numbers) & (numbers >= 0)):
        raise PlanError(f"every {noun} must be a finite number of at least 0.")
    return numbers


def _joined(members: np.ndarray, quoted: list[str]) -> list[str]:
    """The quoted names of each row's attributes, joined by commas."""
    return [",".join([quoted[place] for place in row if place >= 0]) for row in members.tolist()]


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _or_null(value: float) -> str:
    return "null" if math.isnan(value) else repr(value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number JSON knows")
