"""Own counts in a plan file: each count, and each row of the strategy, on a line of its own."""

from typing import TYPE_CHECKING, Any

import numpy as np

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
from rpexplore.common.numbers import exact_text, read_only, shown_value
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.counts_moves import KeptByCounts
from rpexplore.planning.counts_objectives import (
    LARGEST,
    OBJECTIVES,
    TARGETS_THEN_SUM,
    counts_objective,
)
from rpexplore.planning.counts_strategy import QueryStrategy
from rpexplore.planning.part_plan import certificate_from_json
from rpexplore.planning.plan_fields import (
    BUDGET,
    above_0,
    at_least_0,
    certificate,
    const,
    domain,
    exact,
    index,
    keys,
    name,
    of_type,
    record,
    rows,
)
from rpexplore.planning.replaced_counts import MOST_KINDS
from rpexplore.planning.solvers.query_rounding import MOST_ROWS
from rpexplore.privacy.budget import Budget
from rpexplore.workload.query_list import (
    MAX_ATOMS,
    MAX_CELLS,
    QueryList,
    check_list_size,
    checked_n_cells,
    row_from_terms,
    terms_from_row,
)

if TYPE_CHECKING:
    from rpexplore.planning.counts import QueryPlan

QUERY = record(
    name=name("All different."),
    target=above_0("Wanted standard error of the answer, in the unit of the query."),
    terms=rows(
        {
            "type": "array",
            "prefixItems": [
                of_type("integer", minimum=0, maximum=MAX_ATOMS - 1),
                of_type("integer", minimum=0, maximum=MAX_ATOMS - 1),
                of_type("number", minimum=-1_000_000_000, maximum=1_000_000_000),
            ],
            "minItems": 3,
            "maxItems": 3,
        },
        "Runs of cells, or of atoms, with one coefficient other than 0, ascending: the first, "
        "the last (included), coefficient, a decimal of at most 6 places; within 1000000 "
        "where the domain has no amounts. Of sums the limits of amounts, at low and high.",
        minItems=1,
    ),
    variance=at_least_0(
        "Variance of the noise of the answer, in that unit squared; 0 of multiples of the number "
        "of records where neighbours replace a record, and nowhere else."
    ),
    shadow_price=at_least_0(
        "Weight of the query's ratio in the proof; they sum to 1. Where the largest ratio is the "
        "objective, by how many per cent the smallest possible one falls when the squared target "
        "grows by one per cent."
    ),
)
ATOMS = record(
    "Groups of cells that no query tells apart, where there are too many cells to have numbers of "
    "their own: a record's groups of values are read, an attribute after the other, from state 0 "
    "on, and the state after the last attribute is its atom.",
    groups=rows(
        rows(
            rows(
                {
                    "type": "array",
                    "prefixItems": [index(), index()],
                    "minItems": 2,
                    "maxItems": 2,
                },
                "Runs of values, numbered from 0: the first, the last (included).",
                minItems=1,
            ),
            minItems=1,
        ),
        "For each attribute of the domain the groups of its values, by their first values; every "
        "value is in one.",
        minItems=1,
    ),
    steps=rows(
        rows(rows(index(), minItems=1), minItems=1),
        "For each attribute a row for each state in which it is read: for each group of the "
        "attribute the state that follows. States are numbered from 0, and all are reached.",
        minItems=1,
    ),
)
_BOUND_OF_WEIGHTS = (
    "No mechanism with Gaussian noise and this budget has a sum of shadow price times ratio below "
    "the square of the sum of the singular values of the queries, with rows multiplied by the root "
    "of the shadow price over the target and columns by the root of the cell weight, divided by "
    "the privacy cost of one record; a ratio is that of a query's variance to its squared target. "
    "With b that bound, m the number of queries and p their shadow prices, lower_bound is b for "
    "largest_ratio; for mean_ratio b / (m max p) with the objective sum, and "
    "1 - (1 - b) / (m min p) with targets-then-sum, where no ratio may be above 1."
)
FIELDS = record(
    kind=const("counts"),
    domain=domain(
        "The attributes, as a Frictionless Table Schema; without atoms they have at most "
        f"{MAX_CELLS} cells together."
    ),
    atoms=ATOMS,
    objective={
        "description": "What is minimised; without it the largest ratio, as with any budget.",
        "enum": [option for option in OBJECTIVES if option != LARGEST.option],
    },
    free=record(
        "Counts that take only what others leave of the budget, where there are any: without the "
        "rows that are measured for them alone the plan costs the same.",
        counts=rows(
            index(), "Their numbers in the list, from 0, ascending; not all of it.", minItems=1
        ),
        rows=of_type(
            "integer",
            "How many of the last rows of the strategy are measured for them alone.",
            minimum=0,
            maximum=MOST_ROWS - 1,
        ),
    ),
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost of the plan for the privacy unit: at least the largest sum of squares"
        " of a column of the strategy, divided by gamma_squared, times the square of "
        "max_records_per_person; at most the budget's."
    ),
    gamma_squared=exact(
        "Variance parameter of the noise on every number that is measured; below 2 to the "
        "power of 92. Where the domain has amounts, what is measured is multiplied by their ranges "
        "in smallest steps, and the parameter by their squares."
    ),
    certificate=certificate(
        "largest_ratio",
        above_0(
            "The largest ratio of a query's variance to its squared target in this plan, where "
            "that is the objective; all targets are met where it is at most 1."
        ),
        _BOUND_OF_WEIGHTS,
        mean_ratio=above_0("The mean of these ratios, with any other objective."),
        cell_pairs=rows(
            rows(
                index(),
                "Two cells, or atoms, ascending; around exact totals four: two from which records "
                "go, and two that they go to (one cell on both sides where one record changes).",
                minItems=2,
                maxItems=4,
            ),
            "Where neighbours replace a record, and only there: the pairs that cell_weights are "
            "of, with the difference of their columns of the queries in the place of a column.",
            minItems=1,
            maxItems=MOST_KINDS**2,
        ),
        cell_weights=rows(
            at_least_0(),
            "One for each cell, or atom; they sum to 1.",
            minItems=1,
            maxItems=MAX_ATOMS,
        ),
    ),
    queries=rows(QUERY, "What is released.", minItems=1, maxItems=10000),
    strategy=rows(
        rows(
            of_type("integer", minimum=-67108864, maximum=67108864),
            minItems=1,
            maxItems=MAX_ATOMS,
        ),
        "R, what is measured: rows of whole numbers, one for each cell, or atom.",
        minItems=1,
        maxItems=MOST_ROWS,
    ),
)
for _key in ("atoms", "objective", "free"):  # which lists of few cells, and older plans, do without
    FIELDS["required"].remove(_key)
_VALUES = sorted({each.value_key for each in OBJECTIVES.values()})
_OF_CERTIFICATE = FIELDS["properties"]["certificate"]
_OF_CERTIFICATE["required"] = [
    key for key in _OF_CERTIFICATE["required"] if key not in (*_VALUES, "cell_pairs")
]
_OF_CERTIFICATE["oneOf"] = [{"required": [key]} for key in _VALUES]


_ATOMS, _OBJECTIVE, _FREE = "atoms", "objective", "free"
_OPTIONAL = (_ATOMS, _OBJECTIVE, _FREE)
_KEYS, _CERTIFICATE_KEYS = keys(FIELDS), tuple(_OF_CERTIFICATE["required"])
_QUERY_KEYS = keys(QUERY)


def text_of_plan(plan: "QueryPlan") -> str:
    """The object of a plan file that is this part."""
    certificate, queries, objective = plan.certificate, plan.queries, plan.objective
    free = {"counts": list(plan.strategy.free), "rows": plan.strategy.free_rows}
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        **({} if queries.atoms is None else {_ATOMS: queries.atoms.to_json()}),
        **({} if objective is LARGEST else {_OBJECTIVE: objective.option}),
        **({_FREE: free} if plan.strategy.free else {}),
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "gamma_squared": exact_text(plan.gamma_squared),
        "certificate": {
            objective.value_key: certificate.loss_value,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
            "cell_weights": plan.cell_weights.tolist(),
            **({} if plan.cell_pairs is None else {"cell_pairs": plan.cell_pairs.tolist()}),
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
    stated = content if isinstance(content, dict) else {}
    expected = [key for key in _KEYS if key in stated or key not in _OPTIONAL]
    check_keys(content, expected, "the own counts")
    has_atoms = _ATOMS in stated
    objective = LARGEST
    if _OBJECTIVE in stated:
        objective = counts_objective(content[_OBJECTIVE])
    free: tuple[int, ...] = ()
    free_rows = 0
    if _FREE in stated:
        of_free = content[_FREE]
        check_keys(of_free, ("counts", "rows"), "the free counts")
        free = tuple(_whole(number) for number in list_of(of_free, "counts"))
        free_rows = _whole(of_free["rows"])
        if not free:
            raise PlanError("there must be a free count, got none.")
    certificate, budget = content["certificate"], Budget.from_json(content["budget"])
    of_pairs = ["cell_pairs"] if budget.replaces else []
    check_keys(certificate, [objective.value_key, *_CERTIFICATE_KEYS, *of_pairs], "the certificate")
    if budget.replaces and (free or objective is TARGETS_THEN_SUM):
        raise PlanError(
            "there must be no free counts, and no targets that come first, where neighbours "
            "replace a record."
        )
    rows = columns(content, "queries", _QUERY_KEYS)
    domain = Domain.from_schema(content["domain"])
    atoms = Atoms.from_json(domain, content[_ATOMS]) if has_atoms else None
    n_cells = checked_n_cells(domain) if atoms is None else len(atoms)
    check_list_size(len(rows["name"]), n_cells)
    definitions = zip(rows["terms"], rows["name"], strict=True)
    coefficients = [row_from_terms(terms, n_cells, name) for terms, name in definitions]
    targets: Any = rows["target"]
    queries = QueryList(domain, np.array(coefficients), tuple(rows["name"]), targets, atoms)
    cell_weights = not_negative(list_of(certificate, "cell_weights"), "cell_weight")
    cell_pairs = None
    if budget.replaces:
        cell_pairs = _cell_pairs(certificate, queries, 4 if budget.exact else 2)
    kept = KeptByCounts.of(domain, budget.exact) if budget.exact else None
    if cell_pairs is not None and len(cell_weights) != len(cell_pairs):
        raise PlanError(
            f"there must be a cell_weight for each of the {len(cell_pairs):,} pairs of cells, got "
            f"{len(cell_weights):,}."
        )
    if cell_pairs is None and len(cell_weights) != queries.n_cells:
        raise PlanError(
            f"there must be a cell_weight for each of the {queries.cells_text}, got "
            f"{len(cell_weights):,}."
        )
    return {
        "strategy": QueryStrategy(queries, _integers(content["strategy"]), free, free_rows, kept),
        "budget": budget,
        "gamma_squared": positive_exact(content, "gamma_squared"),
        "variances": read_only(
            not_negative(rows["variance"], "variance")
            if budget.replaces
            else positive(rows["variance"], "variance")
        ),
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "certificate": certificate_from_json(
            certificate,
            objective.value_key,
            not_negative(rows["shadow_price"], "shadow_price"),
        ),
        "cell_weights": read_only(cell_weights),
        "cell_pairs": cell_pairs,
        "objective": objective,
        "version": version,
    }


def _cell_pairs(certificate: dict[str, Any], queries: QueryList, n_cells: int) -> np.ndarray:
    """Pairs of cells, or changes by four: int64[n, n_cells]."""
    found = list_of(certificate, "cell_pairs")
    for pair in found:
        if not isinstance(pair, list) or len(pair) != n_cells:
            raise PlanError(f"cell_pairs must be of {n_cells} numbers of cells each.")
        cells = list(map(_whole, pair))
        is_ascending = n_cells > 2 or cells[0] < cells[1]
        if max(cells) >= queries.n_cells or not is_ascending:
            raise PlanError(
                f"cell_pairs must be of the {queries.cells_text}, pairs ascending, got "
                f"{shown_value(pair)}."
            )
    if not 0 < len(found) <= MOST_KINDS**2:
        raise PlanError(f"there must be 1 to {MOST_KINDS**2:,} cell_pairs, got {len(found):,}.")
    return read_only(np.array(found, dtype=np.int64))


def _whole(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise PlanError(
            f"numbers of free counts and rows must be whole and at least 0, got "
            f"{shown_value(number)}."
        )
    return number


def _integers(rows: Any) -> np.ndarray:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise PlanError("the strategy must be a list of rows of whole numbers.")
    if len({len(row) for row in rows}) != 1:
        raise PlanError("the rows of the strategy must be of one length, and at least one.")
    if not all(type(entry) is int and abs(entry) < 2**62 for row in rows for entry in row):
        raise PlanError("the strategy must hold whole numbers of at most 62 bits.")
    return np.array(rows, dtype=np.int64)
