"""The query plan file: one JSON text, canonical, so that its SHA-256 is the plan's name.

The published description is `schemas/query-plan-1.json` (JSON Schema). Exact numbers are texts
("12.5", "1/3"): the text is the number. The canonical form is UTF-8 with the keys in the order
below, no spaces, and each query and each row of the strategy on a line of its own, so that files
can be compared by line and `sha256sum` gives the hash that the ledger and the manifest name.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import exact_fraction, exact_text, shown
from rpexplore.domain import codebook
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.planning.certificate import Certificate
from rpexplore.privacy.budget import Budget
from rpexplore.queries.query_list import QueryList
from rpexplore.queries.strategy import QueryStrategy

FORMAT = "rpexplore-query-plan"
VERSION = 1

_KEYS = (
    "format",
    "format_version",
    "library_version",
    "domain",
    "budget",
    "privacy_cost",
    "gamma_squared",
    "certificate",
    "queries",
    "strategy",
)
_CERTIFICATE_KEYS = ("largest_ratio", "lower_bound", "gap", "cell_weights")
_QUERY_KEYS = ("name", "target", "terms", "variance", "shadow_price")


def text_from_fields(fields: Mapping[str, Any]) -> str:
    """The canonical text of a query plan, from its fields by name."""
    strategy: QueryStrategy = fields["strategy"]
    certificate: Certificate = fields["certificate"]
    head = {
        "format": FORMAT,
        "format_version": VERSION,
        "library_version": fields["version"],
        "domain": codebook.schema_from_attributes(strategy.queries.domain.attributes),
        "budget": fields["budget"].to_json(),
        "privacy_cost": exact_text(fields["exact_privacy_cost"]),
        "gamma_squared": exact_text(fields["gamma_squared"]),
        "certificate": {
            "largest_ratio": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            "cell_weights": fields["cell_weights"].tolist(),
        },
    }
    queries = [
        query | {"variance": variance, "shadow_price": price}
        for query, variance, price in zip(
            strategy.queries.to_json()["queries"],
            fields["variances"].tolist(),
            certificate.shadow_prices.tolist(),
            strict=True,
        )
    ]
    lines = [f"{_dumps(key)}:{_dumps(value)}" for key, value in head.items()]
    for key, rows in (("queries", queries), ("strategy", strategy.integers.tolist())):
        lines.append(f'"{key}":[\n' + ",\n".join(map(_dumps, rows)) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def fields_from_text(text: str, source: str) -> dict[str, Any]:
    """The fields of the query plan that a text holds; `source` is named in errors.

    Variances, cost and certificate are taken as stated: `verification` holds them against a
    recomputation.

    Raises `PlanError` naming the part that cannot be used.
    """
    try:
        content = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeats
        )
    except (ValueError, RecursionError) as error:
        raise PlanError(
            f"{source} is not a query plan file: it is not valid JSON ({error})."
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PlanError(f'{source} is not a query plan file: "format" must be "{FORMAT}".')
    version = content.get("format_version")
    if version != VERSION or type(version) is not int:
        raise PlanError(
            f"{source} has query plan format version {shown(version)}, and this library reads "
            f"version {VERSION}; use the library version "
            f"{shown(content.get('library_version', 'it was made with'))} or a newer one."
        )
    try:
        return _fields(content)
    except RpexploreError as error:
        raise PlanError(f"{source} cannot be used: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise PlanError(f"{source} cannot be used: a part is not as it must be ({what}).") from None


def _fields(content: dict[str, Any]) -> dict[str, Any]:
    _check_keys(content, _KEYS, "the query plan")
    _check_keys(content["certificate"], _CERTIFICATE_KEYS, "the certificate")
    if not isinstance(content["library_version"], str):
        raise PlanError("library_version must be a text.")
    if not isinstance(content["queries"], list):
        raise PlanError("queries must be a list.")
    for query in content["queries"]:
        _check_keys(query, _QUERY_KEYS, "each of the queries")
    asked = [
        {key: query[key] for key in ("name", "target", "terms")} for query in content["queries"]
    ]
    queries = QueryList.from_json({"domain": content["domain"], "queries": asked})
    cell_weights = _not_negative(content["certificate"]["cell_weights"], "cell_weight")
    if len(cell_weights) != queries.n_cells:
        raise PlanError(
            f"there must be a cell_weight for each of the {queries.n_cells:,} cells, got "
            f"{len(cell_weights):,}."
        )
    cell_weights.setflags(write=False)
    variances = _not_negative([query["variance"] for query in content["queries"]], "variance")
    variances.setflags(write=False)
    prices = [query["shadow_price"] for query in content["queries"]]
    return {
        "strategy": QueryStrategy(queries, _integers(content["strategy"])),
        "budget": Budget.from_json(content["budget"]),
        "gamma_squared": _positive(content, "gamma_squared"),
        "variances": variances,
        "exact_privacy_cost": _positive(content, "privacy_cost"),
        "certificate": _certificate(content["certificate"], _not_negative(prices, "shadow_price")),
        "cell_weights": cell_weights,
        "version": content["library_version"],
    }


def _certificate(content: dict[str, Any], shadow_prices: np.ndarray) -> Certificate:
    stated = [content[key] for key in _CERTIFICATE_KEYS[:3]]
    ratio, lower_bound, gap = _not_negative(stated, "number of the certificate").tolist()
    if lower_bound == 0:
        raise PlanError("the certificate's lower_bound must be above 0.")
    certificate = Certificate(ratio, lower_bound, shadow_prices)
    if certificate.gap != gap:
        raise PlanError(
            "the certificate's gap does not follow from its largest_ratio and lower_bound: it must "
            f"be {certificate.gap!r}, got {gap!r}."
        )
    return certificate


def _integers(rows: Any) -> np.ndarray:
    """The matrix of the strategy, int64[k, n_cells]."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise PlanError("the strategy must be a list of rows of whole numbers.")
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        raise PlanError("the rows of the strategy must be of one length, and at least one.")
    if not all(type(entry) is int and abs(entry) < 2**62 for row in rows for entry in row):
        raise PlanError("the strategy must hold whole numbers of at most 62 bits.")
    return np.array(rows, dtype=np.int64)


def _positive(content: dict[str, Any], key: str) -> Any:
    """An exact positive number, a Fraction."""
    if not isinstance(content[key], str):
        raise PlanError(f'{key} must be a text such as "0.5", got {shown(content[key])}.')
    value = exact_fraction(content[key], key)
    if value <= 0:
        raise PlanError(f"{key} must be positive, got {content[key]}.")
    return value


def _not_negative(values: Any, noun: str) -> np.ndarray:
    if not isinstance(values, list) or not {type(value) for value in values} <= {int, float}:
        raise PlanError(f"every {noun} must be a number.")
    numbers = np.array(values, dtype=float)
    if not np.all(np.isfinite(numbers) & (numbers >= 0)):
        raise PlanError(f"every {noun} must be a finite number of at least 0.")
    return numbers


def _check_keys(content: Any, keys: Collection[str], noun: str) -> None:
    """Exactly these keys: what nobody checks has no place in a plan."""
    if not isinstance(content, dict) or content.keys() != set(keys):
        found = ", ".join(content) if isinstance(content, dict) else repr(content)
        raise PlanError(f"{noun} must hold exactly {', '.join(keys)}, got {found:.200}.")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number JSON knows")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a file; a key that stands there twice would hide what its first value says."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found
