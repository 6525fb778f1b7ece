"""Own counts in a plan file: each count, and each row of the strategy, on a line of its own."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.json_fields import (
    check_keys,
    columns,
    dumps,
    list_of,
    not_negative,
    object_text,
    positive,
    positive_exact,
)
from rpexplore.common.numerics import read_only
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.certificate import certificate_from_json
from rpexplore.planning.counts.query_fields import FIELDS, QUERY
from rpexplore.planning.counts.query_strategy import QueryStrategy
from rpexplore.planning.plan_fields import keys
from rpexplore.privacy.budget import Budget
from rpexplore.queries.query_list import (
    QueryList,
    check_list_size,
    checked_n_cells,
    row_from_terms,
    terms_from_row,
)

if TYPE_CHECKING:
    from rpexplore.planning.counts.query_plan import QueryPlan

_KEYS, _CERTIFICATE_KEYS = keys(FIELDS), keys(FIELDS, "certificate")
_QUERY_KEYS = keys(QUERY)


def text_of_plan(plan: "QueryPlan") -> str:
    """The object of a plan file that is this part."""
    certificate, queries = plan.certificate, plan.queries
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "gamma_squared": exact_text(plan.gamma_squared),
        "certificate": {
            "largest_ratio": certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            "cell_weights": plan.cell_weights.tolist(),
        },
    }
    columns_of_queries = (
        queries.names,
        queries.targets.tolist(),
        map(terms_from_row, queries.coefficients),
        plan.variances.tolist(),
        certificate.shadow_prices.tolist(),
    )
    rows = zip(*columns_of_queries, strict=True)
    sections = {
        "queries": [dumps(dict(zip(_QUERY_KEYS, row, strict=True))) for row in rows],
        "strategy": [dumps(row) for row in plan.strategy.integers.tolist()],
    }
    return object_text(head, sections)


def fields_of_plan(content: dict[str, Any], version: str) -> dict[str, Any]:
    """The fields of the query plan that a file holds; raises `RpexploreError` for unusable parts.

    Variances, cost and certificate are taken as stated: `verification` holds them against a
    recomputation.
    """
    check_keys(content, _KEYS, "the own counts")
    certificate = content["certificate"]
    check_keys(certificate, _CERTIFICATE_KEYS, "the certificate")
    rows = columns(content, "queries", _QUERY_KEYS)
    domain = Domain.from_schema(content["domain"])
    n_cells = checked_n_cells(domain)
    check_list_size(len(rows["name"]), n_cells)
    definitions = zip(rows["terms"], rows["name"], strict=True)
    coefficients = [row_from_terms(terms, n_cells, name) for terms, name in definitions]
    targets: Any = rows["target"]
    queries = QueryList(domain, np.array(coefficients), tuple(rows["name"]), targets)
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
        "variances": read_only(positive(rows["variance"], "variance")),
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "certificate": certificate_from_json(
            certificate, "largest_ratio", not_negative(rows["shadow_price"], "shadow_price")
        ),
        "cell_weights": read_only(cell_weights),
        "version": version,
    }


def _integers(rows: Any) -> np.ndarray:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise PlanError("the strategy must be a list of rows of whole numbers.")
    if len({len(row) for row in rows}) != 1:
        raise PlanError("the rows of the strategy must be of one length, and at least one.")
    if not all(type(entry) is int and abs(entry) < 2**62 for row in rows for entry in row):
        raise PlanError("the strategy must hold whole numbers of at most 62 bits.")
    return np.array(rows, dtype=np.int64)
