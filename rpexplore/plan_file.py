"""The plan file: one JSON text, canonical, so that its SHA-256 is the plan's name.

The published description is `schemas/plan-1.json` (JSON Schema). Exact numbers are texts ("12.5",
"1/3"): the text is the number. The canonical form is UTF-8 with the keys in the order below, no
spaces, and each table and residual on a line of its own, so that files can be compared by line
and `sha256sum plan.json` gives the hash the ledger and the manifest name.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rpexplore import codebook, losses
from rpexplore.budget import Budget
from rpexplore.certificate import Certificate
from rpexplore.closure import Closure
from rpexplore.decimals import Decimals
from rpexplore.domain import Domain
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.exact import exact_fraction, exact_text
from rpexplore.workload import Workload, padded

FORMAT = "rpexplore-plan"
FORMAT_VERSION = 1

_KEYS = (
    "format",
    "format_version",
    "library_version",
    "domain",
    "loss",
    "budget",
    "privacy_cost",
    "certificate",
    "tables",
    "residuals",
)
_ROW_KEYS = {
    "tables": ("attributes", "weight", "target", "variance", "shadow_price"),
    "residuals": ("attributes", "sigma_squared"),
}
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
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{source} is not a plan file: it is not valid JSON ({error}).") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PlanError(f'{source} is not a plan file: "format" must be "{FORMAT}".')
    if content.get("format_version") != FORMAT_VERSION or content["format_version"] is True:
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
    _check_keys(content, _KEYS, "the plan")
    _check_keys(content["certificate"], ("loss", "lower_bound", "gap"), "the certificate")
    tables = _columns(content, "tables")
    residuals = _columns(content, "residuals")
    if not isinstance(content["library_version"], str):
        raise PlanError("library_version must be a text.")
    if not isinstance(content["privacy_cost"], str):
        raise PlanError('privacy_cost must be a text such as "0.5".')

    privacy_cost = exact_fraction(content["privacy_cost"], "privacy_cost")
    if privacy_cost <= 0:
        raise PlanError(f"privacy_cost must be positive, got {content['privacy_cost']}.")
    domain = Domain(tuple(codebook.attributes_from_schema(content["domain"])))
    members = _members(domain, tables["attributes"])
    workload = Workload(
        domain,
        members,
        _floats(tables["weight"], "weight"),
        _floats([math.nan if t is None else t for t in tables["target"]], "target"),
    )
    closure = Closure.of(workload)
    listed = _members(domain, residuals["attributes"])
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
        "sigma_squared": Decimals.parse(residuals["sigma_squared"]),
        "variances": _not_negative(tables["variance"], "variance"),
        "exact_privacy_cost": privacy_cost,
        "certificate": _certificate(
            content["certificate"], _not_negative(tables["shadow_price"], "shadow_price")
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


def _certificate(content: dict[str, Any], shadow_prices: np.ndarray) -> Certificate:
    values = [content["loss"], content["lower_bound"], content["gap"]]
    loss, lower_bound, gap = _not_negative(values, "certificate").tolist()
    if lower_bound == 0:
        raise PlanError("the certificate's lower_bound must be above 0.")
    certificate = Certificate(loss, lower_bound, shadow_prices)
    if certificate.gap != gap:
        raise PlanError(
            f"the certificate's gap does not follow from its loss and lower_bound: it must be "
            f"{certificate.gap!r}, got {gap!r}."
        )
    return certificate


def _check_keys(content: Any, keys: Collection[str], noun: str) -> None:
    """Exactly these keys: what nobody checks has no place in a plan."""
    if not isinstance(content, dict) or content.keys() != set(keys):
        found = ", ".join(content) if isinstance(content, dict) else repr(content)
        raise PlanError(f"{noun} must hold exactly {', '.join(keys)}, got {found:.200}.")


def _columns(content: dict[str, Any], key: str) -> dict[str, list[Any]]:
    """The rows under a key, turned into one list for each of their keys."""
    rows, keys = content[key], _ROW_KEYS[key]
    if not isinstance(rows, list):
        raise PlanError(f"{key} must be a list.")
    wanted = set(keys)
    for row in rows:
        if not isinstance(row, dict) or row.keys() != wanted:
            _check_keys(row, keys, f"each of the {key}")
    columns = {name: [row[name] for row in rows] for name in keys}
    if not all(type(names) is list for names in columns["attributes"]):
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
