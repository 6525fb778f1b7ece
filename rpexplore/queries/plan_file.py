"""The query plan file: one JSON text, canonical, so that its SHA-256 is the plan's name.

The published description is `schemas/query-plan-1.json` (JSON Schema). Exact numbers are texts
("12.5", "1/3"): the text is the number. The canonical form is UTF-8 with the keys in the order
below, no spaces, and each query and each row of the strategy on a line of its own, so that files
can be compared by line and `sha256sum` gives the hash that the ledger and the manifest name.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.json_fields import (
    canonical_text,
    check_format,
    check_keys,
    columns,
    dumps,
    list_of,
    loads,
    not_negative,
    positive_exact,
    refusing,
    text_of,
)
from rpexplore.common.numerics import read_only
from rpexplore.domain import codebook
from rpexplore.errors import PlanError
from rpexplore.planning.certificate import Certificate
from rpexplore.planning.plan_file import certificate_from_json
from rpexplore.privacy.budget import Budget
from rpexplore.queries.query_list import QueryList
from rpexplore.queries.strategy import QueryStrategy

FORMAT, VERSION = "rpexplore-query-plan", 1

_KEYS = (
    "format", "format_version", "library_version", "domain", "budget", "privacy_cost",
    "gamma_squared", "certificate", "queries", "strategy",
)  # fmt: skip
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
    sections = {
        "queries": [dumps(query) for query in queries],
        "strategy": [dumps(row) for row in strategy.integers.tolist()],
    }
    return canonical_text(head, sections)


def fields_from_text(text: str, source: str) -> dict[str, Any]:
    """The fields of the query plan that a text holds; `source` is named in errors.

    Variances, cost and certificate are taken as stated: `verification` holds them against a
    recomputation.

    Raises `PlanError` naming the part that cannot be used.
    """
    with refusing(PlanError, f"{source} is not a query plan file"):
        content = loads(text.removeprefix("\ufeff"))
        check_format(content, FORMAT, VERSION, "query plan")
    with refusing(PlanError, f"{source} cannot be used"):
        return _fields(content)


def _fields(content: dict[str, Any]) -> dict[str, Any]:
    check_keys(content, _KEYS, "the query plan")
    certificate = content["certificate"]
    check_keys(certificate, _CERTIFICATE_KEYS, "the certificate")
    rows = columns(content, "queries", _QUERY_KEYS)
    keys = ("name", "target", "terms")
    definitions = [{key: query[key] for key in keys} for query in content["queries"]]
    queries = QueryList.from_json({"domain": content["domain"], "queries": definitions})
    cell_weights = not_negative(list_of(certificate, "cell_weights"), "cell_weight")
    if len(cell_weights) != queries.n_cells:
        raise PlanError(
            f"there must be a cell_weight for each of the {queries.n_cells:,} cells, got "
            f"{len(cell_weights):,}."
        )
    return {
        "strategy": QueryStrategy(queries, _integers(content["strategy"])),
        "budget": Budget.from_json(content["budget"]),
        "gamma_squared": positive_exact(content, "gamma_squared"),
        "variances": read_only(not_negative(rows["variance"], "variance")),
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "certificate": certificate_from_json(
            certificate, "largest_ratio", not_negative(rows["shadow_price"], "shadow_price")
        ),
        "cell_weights": read_only(cell_weights),
        "version": text_of(content, "library_version"),
    }


def _integers(rows: Any) -> np.ndarray:
    """The matrix of the strategy, int64[k, n_cells]."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise PlanError("the strategy must be a list of rows of whole numbers.")
    if len({len(row) for row in rows}) != 1:
        raise PlanError("the rows of the strategy must be of one length, and at least one.")
    if not all(type(entry) is int and abs(entry) < 2**62 for row in rows for entry in row):
        raise PlanError("the strategy must hold whole numbers of at most 62 bits.")
    return np.array(rows, dtype=np.int64)
