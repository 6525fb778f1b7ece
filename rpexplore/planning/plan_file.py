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
from collections.abc import Mapping
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import Decimals, exact_fraction, exact_text
from rpexplore.common.json_fields import check_keys, columns, dumps, floats, not_negative
from rpexplore.domain import codebook
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.planning.certificate import Certificate
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.losses.serialization import loss_from_json
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.plan_file_asked import (
    bases_and_ways,
    cells_of,
    lines_of_bases,
    lines_of_cells,
    lines_of_strategies,
    strategies_of,
)
from rpexplore.planning.solvers.solution import CellPrices
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload, padded

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
        "required",
        "variance",
        "worst_variance",
        "best_variance",
        "shadow_price",
        "dual_weight",
    ),
}
_RESIDUAL_KEYS = ("attributes", "sigma_squared")


def text_from_fields(fields: Mapping[str, Any]) -> str:
    """The canonical text of a plan, from its fields by name."""
    workload: Workload = fields["workload"]
    certificate: Certificate = fields["certificate"]
    version = PURE if workload.is_marginals else GENERAL
    if np.any(workload.required) or certificate.dual_weights is not None:
        version = DUAL
    head = {
        "format": FORMAT,
        "format_version": version,
        "library_version": fields["version"],
        "domain": codebook.schema_from_attributes(workload.domain.attributes),
        "loss": fields["loss"].to_json(),
        "budget": fields["budget"].to_json(),
        "privacy_cost": exact_text(fields["exact_privacy_cost"]),
        "certificate": {
            "loss": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            **({"limit": certificate.limit} if version == DUAL else {}),
        },
    }
    lines = [f"{dumps(key)}:{dumps(value)}" for key, value in head.items()]
    quoted = [dumps(name) for name in workload.domain.names]
    variances: TableVariances = fields["table_variances"]
    ways = extremes = required = duals = [""] * len(workload)
    if version != PURE:
        ways = [
            f'"ways":{dumps([way for way in row if way >= 0])},'
            for row in workload.basis_index.tolist()
        ]
        extremes = [
            f'"worst_variance":{worst!r},"best_variance":{best!r},'
            for worst, best in zip(variances.worst.tolist(), variances.best.tolist(), strict=True)
        ]
    if version == DUAL:
        required = [f'"required":{dumps(must)},' for must in workload.required.tolist()]
        weights = certificate.dual_weights
        held = [None] * len(workload) if weights is None else weights.tolist()
        duals = [f',"dual_weight":{dumps(weight)}' for weight in held]
    tables = [
        f'{{"attributes":[{names}],{asked}"weight":{weight!r},"target":{_or_null(target)},{must}'
        f'"variance":{variance!r},{extreme}"shadow_price":{price!r}{dual}}}'
        for names, asked, weight, target, must, variance, extreme, price, dual in zip(
            _joined(workload.members, quoted),
            ways,
            workload.weights.tolist(),
            workload.targets.tolist(),
            required,
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
            "bases": lines_of_bases(workload),
            "strategies": lines_of_strategies(workload, fields["closure"]),
            "tables": tables,
            "cells": lines_of_cells(workload, certificate.cells),
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


def _fields(content: dict[str, Any]) -> dict[str, Any]:
    version = content["format_version"]
    check_keys(content, _KEYS[version], "the plan")
    check_keys(content["certificate"], _CERTIFICATE_KEYS[version], "the certificate")
    tables = columns(content, "tables", _TABLE_KEYS[version])
    residuals = columns(content, "residuals", _RESIDUAL_KEYS)
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
        bases, ways = bases_and_ways(content, domain, members, tables)
    workload = Workload(
        domain,
        members,
        floats(tables["weight"], "weight"),
        floats([math.nan if t is None else t for t in tables["target"]], "target"),
        bases,
        ways,
        _required(tables),
    )
    if (bases and bases != workload.bases) or (version == GENERAL and workload.is_marginals):
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
        closure = closure.with_strategies(workload, strategies_of(content, workload))
    loss = loss_from_json(content["loss"])
    certificate = _certificate(
        content["certificate"],
        not_negative(tables["shadow_price"], "shadow_price"),
        cells_of(content, workload) if version != PURE else None,
        _dual_weights(tables),
    )
    variances = _variances(tables)
    if version == DUAL:
        _refuse_idle(workload, loss, certificate, variances)
    elif not loss.is_proven_by_shadow_prices:
        raise PlanError(f"with the loss {content['loss']['kind']} the format version is {DUAL}.")
    return {
        "workload": workload,
        "loss": loss,
        "budget": Budget.from_json(content["budget"]),
        "closure": closure,
        "sigma_squared": Decimals.parse(residuals["sigma_squared"]),
        "table_variances": variances,
        "exact_privacy_cost": privacy_cost,
        "certificate": certificate,
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
    loss, lower_bound, gap = not_negative(values, "certificate").tolist()
    if lower_bound == 0:
        raise PlanError("the certificate's lower_bound must be above 0.")
    limit = content.get("limit")
    if limit is not None and float(not_negative([limit], "limit")[0]) == 0:
        raise PlanError("the certificate's limit must be above 0, or null.")
    certificate = Certificate(loss, lower_bound, shadow_prices, cells, dual_weights, limit)
    if certificate.gap != gap:
        raise PlanError(
            f"the certificate's gap does not follow from its loss and lower_bound: it must be "
            f"{certificate.gap!r}, got {gap!r}."
        )
    return certificate


def _required(tables: dict[str, list[Any]]) -> np.ndarray:
    listed = tables.get("required", [])
    if not all(type(must) is bool for must in listed):
        raise PlanError("whether a target must be met has to be true or false.")
    return np.array(listed, dtype=bool)


def _dual_weights(tables: dict[str, list[Any]]) -> np.ndarray | None:
    listed = tables.get("dual_weight", [])
    if all(weight is None for weight in listed):
        return None
    return not_negative(listed, "dual_weight")


def _refuse_idle(
    workload: Workload, loss: Loss, certificate: Certificate, variances: TableVariances
) -> None:
    """Raise `PlanError` for parts of version 3 that nobody would check, or that are missing."""
    proven_by_prices = loss.is_proven_by_shadow_prices
    if proven_by_prices and not np.any(workload.required):
        other = PURE if workload.is_marginals else GENERAL
        raise PlanError(f"where no target must be met the format version is {other}.")
    if proven_by_prices != (certificate.dual_weights is None):
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
        or not np.array_equal(variances.worst, variances.mean)
        or not np.array_equal(variances.best, variances.mean)
    ):
        raise PlanError(
            "where tables ask all attributes by their single values, all their cells have one "
            "variance, and none of them a shadow price of its own."
        )


def _variances(tables: dict[str, list[Any]]) -> TableVariances:
    mean = not_negative(tables["variance"], "variance")
    if "worst_variance" not in tables:
        return TableVariances(mean, mean, mean)
    worst, best = (not_negative(tables[f"{each}_variance"], each) for each in ("worst", "best"))
    return TableVariances(mean, worst, best)


def _joined(members: np.ndarray, quoted: list[str]) -> list[str]:
    """The quoted names of each row's attributes, joined by commas."""
    return [",".join([quoted[place] for place in row if place >= 0]) for row in members.tolist()]


def _or_null(value: float) -> str:
    return "null" if math.isnan(value) else repr(value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number JSON knows")
