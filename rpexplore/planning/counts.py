"""Query plan: how a list of linear queries is released. A frozen value, one JSON file."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

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
from rpexplore.common.numbers import exact_text, normal_quantile, read_only
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.text import plural, rounded
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import Loss, p_norm
from rpexplore.planning.part_plan import (
    Certificate,
    CertifiedPlan,
    accuracy_frame,
    certificate_from_json,
)
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
from rpexplore.planning.planner import refuse_type
from rpexplore.planning.solvers.queries import (
    MOST_ENTRY_BITS,
    MOST_ROWS,
    TOLERANCE,
    decoding,
    fitness_for_use,
    integer_measurement,
)
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
    import pandas as pd

    from rpexplore.planning.verification import Check


# ---- Query strategy: what is measured for a query list (docs/mathematics.md §7.5, §8).
#
# Measured is R x, x the counts of the cells and R an integer matrix, with independent noise of one
# variance γ². The answers are W x = D (R x), so that query i has the variance γ² ‖D_i‖².


# D R may be off W by so much, relative to the largest coefficient of a query; answers are then
# unbiased to as many digits.
DECODING_TOLERANCE = 1e-9
# … and by no more than this share of any coefficient: none may be left out as if it were rounding.
_OF_EACH = 1e-3
# Cells that use less than this share of the budget have some to spare; above it is rounding.
_SPARE_BELOW = 0.999


@dataclass(frozen=True, eq=False)
class QueryStrategy:
    """R for a list of queries: integers, int64[k, n_cells], k the rank of the queries.

    Where the list is about atoms, these are the cells here.

    Raises `PlanError` unless R determines all answers, and well enough to compute with.
    """

    queries: QueryList
    integers: np.ndarray

    def __post_init__(self) -> None:
        given, n_cells = np.asarray(self.integers), self.queries.n_cells
        most_rows = min(n_cells, MOST_ROWS)
        if given.ndim != 2 or given.shape[1] != n_cells or not 1 <= len(given) <= most_rows:
            raise PlanError(
                f"A strategy for {n_cells:,} cells must have 1 to {most_rows:,} rows of "
                f"{n_cells:,} numbers, got the shape {given.shape}."
            )
        most = 2**MOST_ENTRY_BITS
        if not np.issubdtype(given.dtype, np.integer) or np.any((given < -most) | (given > most)):
            raise PlanError(
                f"A strategy's numbers must be integers within ±2^{MOST_ENTRY_BITS}, got "
                "something else; make the plan again."
            )
        object.__setattr__(self, "integers", read_only(np.ascontiguousarray(given, dtype=np.int64)))
        _ = self.decoding

    @cached_property
    def column_squares(self) -> np.ndarray:
        """Squared norm of each column of R, exact: int64[n_cells], read-only."""
        return read_only(np.sum(self.integers * self.integers, axis=0))

    @property
    def squared_sensitivity(self) -> int:
        """The largest change of R x by one record, as a squared norm: exact."""
        return int(np.max(self.column_squares))

    @cached_property
    def decoding(self) -> np.ndarray:
        """D, float64[n_queries, k], read-only."""
        matrix, coefficients = self.integers.astype(float), self.queries.coefficients
        try:
            with np.errstate(all="ignore"), one_thread():
                decoded = decoding(matrix, coefficients)
                difference = np.abs(decoded @ matrix - coefficients)
                left_out = difference > _OF_EACH * np.abs(coefficients)
                dropped = np.any(left_out & (coefficients != 0), axis=1)
                off = np.where(dropped, np.inf, np.max(difference, axis=1))
        except np.linalg.LinAlgError:
            decoded, off = coefficients, np.full(len(self.queries), np.inf)
        largest = np.max(np.abs(coefficients), axis=1)
        if not np.all(off <= DECODING_TOLERANCE * largest):  # NaN is not
            query = self.queries.names[int(np.argmax(np.nan_to_num(off / largest, nan=np.inf)))]
            raise PlanError(
                f"A strategy must determine all own counts, but does not determine {query!r} well "
                "enough to compute with; make the plan again, or bring the sizes of the "
                "coefficients closer together."
            )
        return read_only(decoded)

    @cached_property
    def variance_factors(self) -> np.ndarray:
        """‖D_i‖²: variance of each query's answer over γ², float64[n_queries], read-only."""
        return read_only(np.sum(self.decoding**2, axis=1))

    @cached_property
    def profile(self) -> np.ndarray:
        """Share of the privacy cost that records of each cell use, float64[n_cells], read-only."""
        return read_only(self.column_squares / self.squared_sensitivity)

    @cached_property
    def spare(self) -> np.ndarray:
        """Whether records of the cell leave some of the budget unused, bool[n_cells], read-only."""
        return read_only(self.profile < _SPARE_BELOW)


# ---- Query plan: how a list of linear queries is released. A frozen value, one JSON file.


LARGEST_GAMMA_SQUARED = Fraction(2**92)
"""The noise scale γ² must be below this, so that noise can be drawn in 64-bit integers."""


@dataclass(frozen=True, eq=False, repr=False)
class QueryPlan(CertifiedPlan):
    """The measurement for a list of queries, its noise, and the accuracy that follows.

    strategy            R: measured is R x with independent discrete Gaussian noise
    gamma_squared       exact variance parameter of that noise
    variances           of each query's answer, float64[n_queries], read-only
    exact_privacy_cost  of the privacy unit: the largest squared column norm of R over γ², times m²
                        for persons with at most m records; ≤ the budget's
    certificate         of the largest ratio of a variance to the squared target; its shadow prices
                        are those of the queries
    cell_weights        float64[n_cells], sum 1: with the shadow prices they prove the bound
    version             of the library that made the plan

    Make one with `query_plan` or `QueryPlan.load`. Raises `PlanError` for noise that is too large
    to be drawn.
    """

    kind = "counts"
    noun = "plan of own counts"
    item, released_item = "own count", "noisy own count"
    accuracy_statement = "Every own count is unbiased, with the standard error the plan states."

    strategy: QueryStrategy
    budget: Budget
    gamma_squared: Fraction
    variances: np.ndarray
    exact_privacy_cost: Fraction
    certificate: Certificate
    cell_weights: np.ndarray
    version: str

    def __post_init__(self) -> None:
        check_scale(self.gamma_squared)

    # ---- what it is about

    @property
    def domain(self) -> Domain:
        return self.queries.domain

    @property
    def attribute_indices(self) -> tuple[int, ...]:
        return tuple(range(len(self.domain)))

    @property
    def n_items(self) -> int:
        return len(self.queries)

    # ---- its part of the file

    def to_text(self) -> str:
        return text_of_plan(self)

    @classmethod
    def of_content(cls, content: Any, version: str, folder: Path | None) -> Self:
        return cls(**fields_of_plan(content, version))

    def checks(self, *, strategies: bool) -> "tuple[Check, ...]":
        from rpexplore.planning.verification import query_checks

        return query_checks(self, strategies=strategies)

    # ---- what it is worth

    @property
    def restriction(self) -> str:
        return "own counts measured as here, for their targets"

    def worth(self, loss: Loss) -> tuple[float, float] | None:
        """Each count is one more table of one cell to the objective of the whole.

        Its weight is 1 for the smallest target t, and (t/target)² for others: whoever asks less
        of a count does not thereby give it more of the budget.
        What is measured is chosen for the targets, whatever the objective: the bound is of plans
        that measure the counts as this one does.
        """
        if loss.power is None:
            return None
        scales = (
            1.0 if loss.compares_with_targets else np.min(self.targets) ** 2
        ) / self.targets**2
        value = p_norm(self.variances * scales, loss.power)
        # At the whole budget, of which rounding leaves a little unused.
        return value, value * float(self.exact_privacy_cost / self.budget.privacy_cost)

    @property
    def queries(self) -> QueryList:
        return self.strategy.queries

    @property
    def profile(self) -> np.ndarray:
        """Share of the privacy cost that records of each cell use, float64[n_cells]."""
        return self.strategy.profile

    @property
    def targets(self) -> np.ndarray:
        """Wanted standard error of each query, float64[n_queries]."""
        return self.queries.targets

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Of each query's answer, float64[n_queries], read-only."""
        return read_only(np.sqrt(self.variances))

    @property
    def variance_ratios(self) -> np.ndarray:
        """Variance of each query over its squared target, float64[n_queries]; at most 1: met."""
        return self.variances / self.targets**2

    @property
    def ratio(self) -> float:
        """The largest of the variance ratios; `certificate` bounds the smallest possible one."""
        return self.certificate.loss_value

    @property
    def met(self) -> np.ndarray:
        """Whether each query is as accurate as wanted, bool[n_queries]."""
        return self.standard_errors <= self.targets

    def margins_of_error(self, confidence: float = 0.95) -> np.ndarray:
        """Half the width of each answer's confidence interval, float64[n_queries].

        It covers the privacy noise only, not errors that were in the records before.
        """
        return normal_quantile(confidence) * self.standard_errors

    def accuracy(self) -> "pd.DataFrame":
        """How accurate every count is, one row a count: see `accuracy_frame`."""
        return accuracy_frame(
            self.kind,
            self.queries.names,
            standard_error=self.standard_errors,
            smallest_standard_error=self.standard_errors,
            largest_standard_error=self.standard_errors,
            target=self.targets,
            shadow_price=self.certificate.shadow_prices,
        )

    def __str__(self) -> str:
        """The plan in a few lines, for a terminal."""
        queries, errors = self.queries, self.standard_errors
        measured = plural(len(self.strategy.integers), "number")
        furthest = int(np.argmax(self.variance_ratios))
        which = "tightest" if np.all(self.met) else "furthest off"
        n_spare = np.count_nonzero(self.strategy.spare)
        noun, of_cells = ("cell", "") if queries.atoms is None else ("group", " of cells")
        lines = [
            f"Plan for {plural(len(queries), 'own count')} over {queries.cells_text} "
            f"({measured} to measure)",
            *self.privacy_lines,
            f"  Targets    {np.count_nonzero(self.met):,} of {len(queries):,} met; {which}: "
            f"{queries.names[furthest]}, {errors[furthest]:.4g} for a target of "
            f"{self.targets[furthest]:.4g}",
            f"  Proven     {self.proven}",
            f"  Accuracy   standard errors {errors.min():.4g} to {errors.max():.4g}, median "
            f"{np.median(errors):.4g}",
            f"  Profile    {plural(int(n_spare), noun)}{of_cells} with unused budget",
        ]
        return "\n".join(lines)


def check_scale(gamma_squared: Fraction) -> None:
    """Raise `PlanError` for noise that is too large to be drawn."""
    if gamma_squared >= LARGEST_GAMMA_SQUARED:
        raise PlanError(
            "The noise at this budget is too large for 64-bit integers (scale "
            f"{rounded(math.isqrt(int(gamma_squared)), 3)}, at most "
            f"{rounded(math.isqrt(int(LARGEST_GAMMA_SQUARED)), 3)}); use a larger budget."
        )


# ---- The fields of own counts in a plan file.


QUERY = record(
    name=name("All different."),
    target=above_0("Wanted standard error of the answer, in the unit of the query."),
    terms=rows(
        {
            "type": "array",
            "prefixItems": [
                of_type("integer", minimum=0, maximum=MAX_ATOMS - 1),
                of_type("integer", minimum=0, maximum=MAX_ATOMS - 1),
                of_type("number", minimum=-1000000, maximum=1000000),
            ],
            "minItems": 3,
            "maxItems": 3,
        },
        (
            "Runs of cells, or of atoms, with one coefficient other than 0, ascending: the first, "
            "the last (included), coefficient, a decimal of at most 6 places."
        ),
        minItems=1,
    ),
    variance=above_0("Variance of the noise of the answer, in that unit squared."),
    shadow_price=at_least_0(
        "By how many per cent the smallest possible largest ratio falls when the squared "
        "target grows by one per cent; they sum to 1."
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
FIELDS = record(
    kind=const("counts"),
    domain=domain(
        "The attributes, as a Frictionless Table Schema; without atoms they have at most "
        f"{MAX_CELLS} cells together."
    ),
    atoms=ATOMS,
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost of the plan for the privacy unit: at least the largest sum of squares"
        " of a column of the strategy, divided by gamma_squared, times the square of "
        "max_records_per_person; at most the budget's."
    ),
    gamma_squared=exact(
        "Variance parameter of the noise on every number that is measured; below 2 to the "
        "power of 92."
    ),
    certificate=certificate(
        "largest_ratio",
        above_0(
            "The largest ratio of a query's variance to its squared target in this plan; all "
            "targets are met where it is at most 1."
        ),
        (
            "No mechanism with Gaussian noise and this budget has a largest ratio of a query's "
            "variance to its squared target below lower_bound: that is the square of the sum of"
            " the singular values of the queries, with rows multiplied by the root of the "
            "shadow price over the target and columns by the root of the cell weight, divided "
            "by the privacy cost of one record."
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
FIELDS["required"].remove("atoms")  # which lists of few cells do without

# ---- Own counts in a plan file: each count, and each row of the strategy, on a line of its own.


_ATOMS = "atoms"
_KEYS, _CERTIFICATE_KEYS = keys(FIELDS), keys(FIELDS, "certificate")
_QUERY_KEYS = keys(QUERY)


def text_of_plan(plan: "QueryPlan") -> str:
    """The object of a plan file that is this part."""
    certificate, queries = plan.certificate, plan.queries
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        **({} if queries.atoms is None else {_ATOMS: queries.atoms.to_json()}),
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
    has_atoms = isinstance(content, dict) and _ATOMS in content
    check_keys(content, [key for key in _KEYS if has_atoms or key != _ATOMS], "the own counts")
    certificate = content["certificate"]
    check_keys(certificate, _CERTIFICATE_KEYS, "the certificate")
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
    if len(cell_weights) != queries.n_cells:
        raise PlanError(
            f"there must be a cell_weight for each of the {queries.cells_text}, got "
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


# ---- Query planner: (queries with targets, budget) → query plan. Never sees a record.


TOLERANCE_LEAST = 1e-6

_DIGITS = 12  # of the noise scale


def query_plan(queries: QueryList, *, budget: Budget, tolerance: float = TOLERANCE) -> QueryPlan:
    """The plan within the budget whose largest ratio of variance to squared target is smallest.

    Args:
        queries: The queries, each with its target.
        budget: At one that is too small or more than enough, all queries miss or beat their
            targets by one common factor.
        tolerance: How far (relative) the largest ratio may be from the smallest possible one, at
            least 1e-6; the certificate says how far it is.

    Returns:
        The plan, with its certificate.

    Raises:
        PlanError: If integers cannot measure the queries, or the budget is so small that its noise
            cannot be drawn.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain.from_sizes({"sex": 2})
        >>> queries = rp.QueryList(domain, [[1, 1], [0, 1]], ("everybody", "women"), [5, 3])
        >>> rp.verify(query_plan(queries, budget=rp.Budget(rho="0.5"))).holds
        True
    """
    refuse_type(budget, {Budget}, "budget", "Budget(rho=0.5)")
    return query_optimum(queries, tolerance=tolerance).at(budget)


def query_optimum(
    queries: QueryList,
    *,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> "QueryOptimum":
    """The best measurement for a list of queries; `.at(budget)` makes the plan of a budget.

    Args:
        queries: The queries, each with its target.
        tolerance: As of `query_plan`.
        on_progress: Called after every step; what it raises ends the search.

    Raises:
        PlanError: If integers cannot measure the queries.
    """
    if type(queries) is not QueryList:
        raise PlanError(
            f"A plan of own counts is made for a QueryList, got {type(queries).__name__}."
        )
    if not TOLERANCE_LEAST <= tolerance < 1:
        raise PlanError(f"The tolerance must be {TOLERANCE_LEAST} to 1, got {tolerance}.")
    solution = fitness_for_use(
        queries.coefficients, queries.targets, tolerance, on_progress=on_progress
    )
    with one_thread():
        integers = integer_measurement(
            solution.matrix, queries.coefficients, queries.integers, queries.targets
        )
    if integers is None:
        raise PlanError(
            "These counts cannot be measured in whole numbers without losing accuracy: some are "
            "nearly, but not quite, sums of others. Use coefficients with fewer decimals and of "
            "more similar size."
        )
    return QueryOptimum(
        strategy=QueryStrategy(queries, integers),
        lower_bound=solution.lower_bound,
        shadow_prices=solution.shadow_prices,
        cell_weights=solution.cell_weights,
    )


@dataclass(frozen=True, eq=False, repr=False)
class QueryOptimum:
    """The best measurement for a list of queries, whatever the budget (docs/mathematics.md §6.2).

    lower_bound    of the privacy cost of one record at which any mechanism meets all targets
    shadow_prices  float64[n_queries]; cell_weights: float64[n_cells]; both sum to 1
    """

    strategy: QueryStrategy
    lower_bound: float
    shadow_prices: np.ndarray
    cell_weights: np.ndarray

    @property
    def queries(self) -> QueryList:
        return self.strategy.queries

    @property
    def variances(self) -> np.ndarray:
        """Of each query's answer at privacy cost 1, float64[n_queries]; at c: over c."""
        return self.strategy.variance_factors * self.strategy.squared_sensitivity

    @property
    def needed_costs(self) -> np.ndarray:
        """Privacy cost of one record at which each query meets its target, float64[n_queries]."""
        return self.variances / self.queries.targets**2

    @property
    def cost(self) -> float:
        """Privacy cost of one record at which all queries meet their targets."""
        return float(np.max(self.needed_costs))

    def at(self, budget: Budget) -> QueryPlan:
        """The plan with the smallest largest ratio within the budget, exact and certified.

        Raises `PlanError` for a budget so small that its noise cannot be drawn.
        """
        allowed = budget.record_privacy_cost
        squared = self.strategy.squared_sensitivity
        # Rounded up to a decimal of `_DIGITS` digits, so that the cost stays within the budget.
        value = squared / allowed
        context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
        gamma_squared = Fraction(
            context.divide(Decimal(value.numerator), Decimal(value.denominator))
        )
        check_scale(gamma_squared)
        variances = self.strategy.variance_factors * float(gamma_squared)
        return QueryPlan(
            strategy=self.strategy,
            budget=budget,
            gamma_squared=gamma_squared,
            variances=read_only(variances),
            exact_privacy_cost=squared / gamma_squared * budget.records_factor,
            certificate=Certificate(
                loss_value=float(np.max(variances / self.queries.targets**2)),
                lower_bound=self.lower_bound / float(allowed),
                shadow_prices=self.shadow_prices,
            ),
            cell_weights=read_only(self.cell_weights),
            version=version("rpexplore"),
        )
