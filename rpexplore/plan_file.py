"""The plan file: one JSON text, canonical, so that its SHA-256 is the plan's name.

The published description is `schemas/plan-1.json` (JSON Schema). Exact numbers are texts ("12.5",
"1/3"): the text is the number. The canonical form is UTF-8 with the keys in the order below, no
spaces, and each table and residual on a line of its own, so that files can be compared by line
and `sha256sum plan.json` gives the hash the ledger and the manifest name.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rpexplore import codebook, losses
from rpexplore.budget import Budget
from rpexplore.certificate import Certificate
from rpexplore.closure import Closure
from rpexplore.decimals import Decimals, exact_text
from rpexplore.domain import Domain
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.privacy import exact_fraction
from rpexplore.workload import Workload, padded

FORMAT = "rpexplore-plan"
FORMAT_VERSION = 1

_LOSS_KINDS = {"sum_of_variances": losses.SumOfVariances, "max_variance": losses.MaxVariance}


def text_from_fields(fields: Mapping[str, Any]) -> str:
    """The canonical text of a plan, from its fields by name."""
    workload: Workload = fields["workload"]
    certificate: Certificate = fields["certificate"]
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": fields["version"],
        "domain": codebook.schema_from_attributes(workload.domain.attributes),
        "loss": loss_to_json(fields["loss"]),
        "budget": fields["budget"].to_json(),
        "privacy_cost": exact_text(fields["exact_privacy_cost"]),
        "certificate": {
            "loss": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
        },
    }
    lines = [f"{_dumps(key)}:{_dumps(value)}" for key, value in head.items()]
    quoted = [_dumps(name) for name in workload.domain.names]
    tables = [
        f'{{"attributes":[{names}],"weight":{weight!r},"target":{_or_null(target)},'
        f'"variance":{variance!r},"shadow_price":{price!r}}}'
        for names, weight, target, variance, price in zip(
            _joined(workload.members, quoted),
            workload.weights.tolist(),
            workload.targets.tolist(),
            fields["variances"].tolist(),
            certificate.shadow_prices.tolist(),
            strict=True,
        )
    ]
    residuals = [
        f'{{"attributes":[{names}],"sigma_squared":"{text}"}}'
        for names, text in zip(
            _joined(fields["closure"].members, quoted), fields["sigma_squared"].texts(), strict=True
        )
    ]
    for key, rows in (("tables", tables), ("residuals", residuals)):
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
    except ValueError as error:
        raise PlanError(f"{source} is not a plan file: it is not valid JSON ({error}).") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PlanError(f'{source} is not a plan file: "format" must be "{FORMAT}".')
    if content.get("format_version") != FORMAT_VERSION:
        raise PlanError(
            f"{source} has plan format version {content.get('format_version')!r}, and this "
            f"library reads version {FORMAT_VERSION}; use the library version "
            f"{content.get('library_version', 'it was made with')} or a newer one."
        )
    try:
        return _fields(content)
    except RpexploreError as error:
        raise PlanError(f"{source} cannot be used: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise PlanError(f"{source} cannot be used: a part is not as it must be ({what}).") from None


def loss_to_json(loss: losses.Loss) -> dict[str, str]:
    """A loss as plain values, for files."""
    kind = next(kind for kind, of_kind in _LOSS_KINDS.items() if type(loss) is of_kind)
    return {"kind": kind, **asdict(loss)}


def loss_from_json(content: Any) -> losses.Loss:
    """The loss that `loss_to_json` wrote; raises `PlanError` for an unknown kind."""
    options = dict(content)
    kind = options.pop("kind")
    if kind not in _LOSS_KINDS:
        raise PlanError(f"the loss must be one of {', '.join(_LOSS_KINDS)}, got {kind!r}.")
    return _LOSS_KINDS[kind](**options)


def _fields(content: dict[str, Any]) -> dict[str, Any]:
    domain = Domain(tuple(codebook.attributes_from_schema(content["domain"])))
    tables, residuals, certificate = (content[k] for k in ("tables", "residuals", "certificate"))
    members = padded([domain.positions(table["attributes"]) for table in tables])
    targets = [np.nan if table["target"] is None else table["target"] for table in tables]
    workload = Workload(domain, members, _floats(tables, "weight"), np.array(targets, dtype=float))
    closure = Closure.of(workload)
    listed = padded([domain.positions(residual["attributes"]) for residual in residuals])
    if not np.array_equal(members, workload.members) or not np.array_equal(listed, closure.members):
        raise PlanError(
            "the tables, and as residuals all their subsets (without single-valued attributes), "
            "must each be listed once, by number of attributes and then in domain order; "
            f"there must be {len(closure):,} residuals, got {len(listed):,}."
        )
    return {
        "workload": workload,
        "loss": loss_from_json(content["loss"]),
        "budget": Budget.from_json(content["budget"]),
        "closure": closure,
        "sigma_squared": Decimals.parse([residual["sigma_squared"] for residual in residuals]),
        "variances": _floats(tables, "variance"),
        "exact_privacy_cost": exact_fraction(content["privacy_cost"], "privacy_cost"),
        "certificate": Certificate(
            loss_value=float(certificate["loss"]),
            lower_bound=float(certificate["lower_bound"]),
            shadow_prices=_floats(tables, "shadow_price"),
        ),
        "version": str(content["library_version"]),
    }


def _floats(rows: list[dict[str, Any]], key: str) -> np.ndarray:
    values = np.array([row[key] for row in rows], dtype=float)
    if not np.all(np.isfinite(values) & (values >= 0)):
        raise PlanError(f"every table's {key} must be a number of at least 0.")
    return values


def _joined(members: np.ndarray, quoted: list[str]) -> list[str]:
    """The quoted names of each row's attributes, joined by commas."""
    return [",".join([quoted[place] for place in row if place >= 0]) for row in members.tolist()]


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _or_null(value: float) -> str:
    return "null" if math.isnan(value) else repr(value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number JSON knows")
