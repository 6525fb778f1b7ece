"""Plan of tables: exact noise scales of all residuals, and what follows from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rpexplore.common.json_fields import check_keys, positive_exact, sha256_of, text_of
from rpexplore.common.numbers import (
    Decimals,
    Exact,
    exact_fraction,
    exact_text,
    normal_quantile,
    read_only,
    whole_number,
)
from rpexplore.common.text import plural, rounded
from rpexplore.domain.domain import AttributeIndices, AttributeSet
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.asked_levels import least_noisy_query
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.reconstruction import (
    MarginalNoise,
    Where,
    query_attributes,
    residuals_within,
)
from rpexplore.planning.mechanism.variances import CellVariances, TableVariances
from rpexplore.planning.part_plan import Certificate, CertifiedPlan, WorkloadPlan, item_columns
from rpexplore.planning.table_plan_file import fields_of_plan, text_of_plan
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.rules import CERTAINTIES, MEDIAN, SURELY, Rule
from rpexplore.workload.table_text import all_titles, title_of
from rpexplore.workload.targets import MET_FACTOR
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.plan import Plan
    from rpexplore.planning.verification import Check


_ROUNDING = 1e-12  # relative, of a variance that should be 0
PILOT_STEPS = 1000
"""Of the precision: what a pilot has of it is a whole number of these, to be read in a file."""


def noise_of_residuals(
    closure: Closure,
    residuals: np.ndarray,
    sigma_squared: np.ndarray,
    privacy_cost: Fraction,
    records_factor: int,
) -> DiscreteNoise:
    """The noise of measured residuals, for (ε, δ).

    residuals: int64[n], of the closure; sigma_squared: float64[n], the σ² of each;
    privacy_cost: of the privacy unit; records_factor: how many times that of a record it is
    """
    if closure.replaces:  # exact totals are the same for all neighbours
        moved = ~closure.is_public[residuals]
        residuals, sigma_squared = residuals[moved], sigma_squared[moved]
    return DiscreteNoise.of(
        privacy_cost,
        gamma_squared=sigma_squared * closure.squared_scales[residuals],
        numbers=closure.measured_numbers[residuals],
        costs=closure.largest_cost_factor[residuals] / sigma_squared * records_factor,
    )


@dataclass(frozen=True, init=False)
class RestObjective:
    """What is planned for behind a pilot, from its figures: most people in good cells.

    limit      the largest CV of the noise of a good cell: 0.2 is 20 %
    certainty  "median": most people by the median of the forecast; "surely": by its lower end
    """

    limit: Fraction
    certainty: str

    def __init__(self, limit: Exact = "0.2", certainty: str = MEDIAN) -> None:
        object.__setattr__(self, "limit", exact_fraction(limit, "The CV of good cells"))
        object.__setattr__(self, "certainty", certainty)
        if not 0 < self.limit <= 1 or self.certainty not in CERTAINTIES:
            raise PlanError(
                "The rest of a plan must be for a CV above 0 % and at most 100 %, and for the "
                f"{MEDIAN} or {SURELY}, got {100 * float(self.limit):g} % and {self.certainty!r}."
            )

    def to_json(self) -> dict[str, Any]:
        return {"limit": exact_text(self.limit), "certainty": self.certainty}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        check_keys(content, ("limit", "certainty"), "what the rest is planned for")
        return cls(positive_exact(content, "limit"), text_of(content, "certainty"))

    @property
    def text(self) -> str:
        by = "median" if self.certainty == MEDIAN else "lower end"
        return (
            f"as many people as can be are in cells with a CV of at most "
            f"{100 * float(self.limit):g} %, by the {by} of a forecast from the pilot's figures"
        )


# ---- Plan: the boundary between planning and release. A frozen value, one JSON file.


@dataclass(frozen=True, eq=False, repr=False)
class TablePlan(WorkloadPlan, CertifiedPlan):
    """Noise scales for every residual of a workload, and what follows from them. No records.

    closure             with the strategies of attributes in other bases than single values
    sigma_squared       exact σ² of each residual, in the order of `closure`
    table_variances     of each table: mean over its cells, worst and best cell
    exact_privacy_cost  of the privacy unit, an upper bound in exact arithmetic, ≤ the budget's
    version             of the library that made the plan
    pilot               share of the precision of every residual of at most one attribute that is
                        measured before the rest (`planning/pilot.py`); None without a pilot
    pilot_of            of the plan of a pilot alone: SHA-256 of the plan that it is the first part
                        of; "" for others
    rules               that its tables were planned for, or are to be judged by
    then                with a pilot: what the rest is planned for when the pilot is measured; None:
                        the rest is that of this plan
    first               of a plan of such a rest: the whole plan whose pilot is measured, and whose
                        booking this one is in (`planning/rest.py`); None for others
    pilot_sha256        of a plan of such a rest: SHA-256 of the pilot's figures that it was made
                        from, as the ledger has it; "" for others, and where it is not stated, by
                        which no run begins

    Make one with `rpexplore.plan` or `Plan.load`.
    """

    kind = "tables"
    released_item = "noisy table"
    accuracy_statement = (
        "Every table's answers are unbiased, with the standard errors the plan states."
    )
    has_labels_in_csv = True

    workload: Workload
    loss: Loss
    budget: Budget
    closure: Closure
    sigma_squared: Decimals
    table_variances: TableVariances
    exact_privacy_cost: Fraction
    certificate: Certificate
    version: str
    pilot: Fraction | None = None
    pilot_of: str = ""
    rules: tuple[Rule, ...] = ()
    then: RestObjective | None = None
    first: "Plan | None" = None
    pilot_sha256: str = ""

    def __post_init__(self) -> None:
        if self.then is not None and self.pilot is None:
            raise PlanError("what the rest is planned for goes with a pilot, and it has none.")
        if self.first is not None:
            from rpexplore.planning.rest import refuse_other_first  # which knows this class

            refuse_other_first(self)
        elif self.pilot_sha256:
            raise PlanError("figures of a pilot are stated by the plan of a rest alone.")
        if self.pilot is not None:
            if not 0 < self.pilot < 1 or (PILOT_STEPS * self.pilot).denominator > 1:
                raise PlanError(
                    f"its pilot must be a share of 1 to {PILOT_STEPS - 1} thousandths, got "
                    f"{self.pilot}."
                )
            refuse_unsuitable_for_pilot(self.workload)

    # ---- its part of the file

    def to_text(self) -> str:
        return text_of_plan(self)

    @classmethod
    def of_content(cls, content: Any, version: str, folder: Path | None) -> Self:
        from rpexplore.planning.rest import first_plan_of  # which knows this class

        fields = fields_of_plan(content, version)
        if "then" in content:
            fields["then"] = RestObjective.from_json(content["then"])
        if "first_plan" in content:
            fields["first"] = first_plan_of(text_of(content, "first_plan"), folder)
        if "pilot_sha256" in content:
            fields["pilot_sha256"] = sha256_of(content, "pilot_sha256")
        return cls(**fields)

    @property
    def companions(self) -> Mapping[str, bytes]:
        from rpexplore.planning.rest import name_of_first  # which knows this class

        if self.first is None:
            return {}
        return {name_of_first(self.first.sha256): self.first.text.encode()}

    def checks(self, *, strategies: bool) -> "tuple[Check, ...]":
        from rpexplore.planning.verification import table_checks

        return table_checks(self, strategies=strategies)

    @property
    def note(self) -> str:
        if self.pilot_of:
            return (
                "These tables are the pilot of the plan with the SHA-256 "
                f"{self.pilot_of[:12]}…, whose whole cost is booked with it; they cost their part."
            )
        if self.first is not None:
            measured = (
                "The one-way tables were measured first, by the pilot of the plan with the SHA-256 "
                f"{self.first.sha256[:12]}…, in whose booking and approvals this plan is"
            )
            nearly = "estimates are unbiased, and intervals hold, nearly and not exactly."
            if not self.pilot_sha256:
                return (
                    f"{measured}; which figures the rest is planned from, this plan does not "
                    f"state. Where they are the pilot's, {nearly}"
                )
            then = self.first.part("tables").then
            return (
                f"{measured}; the rest is planned so that {then.text} (SHA-256 "
                f"{self.pilot_sha256[:12]}…). As the rest depends on these, {nearly}"
            )
        if self.pilot is None:
            return ""
        measures = (
            f"A pilot measures the one-way tables first, by {rounded(100 * self.pilot_share, 3)} % "
            "of the cost of the tables; "
        )
        if self.then is not None:
            return (
                f"{measures}the rest is then planned anew, for the same tables and within the same "
                f"cost, so that {self.then.text}. The standard errors stated here are those of "
                "going on with the present weights; the plan of the rest states its own."
            )
        return (
            f"{measures}what follows adds to it, and all tables are as accurate as without a pilot."
        )

    @property
    def has_pilot(self) -> bool:
        """Whether its one-way tables are measured twice: by a pilot, and after it."""
        return self.pilot is not None or self.first is not None

    @property
    def pilot_share(self) -> Fraction:
        """The share that the pilot has in the cost of the tables, as near as floats are; 0: none"""
        closure, scales = self.closure, self.sigma_squared.floats
        costs = closure.privacy_cost_factor / scales
        of_one_way = np.sum(costs[: n_pilot_residuals(closure)])
        share = float(of_one_way / np.sum(costs))
        if closure.classes is not None:
            share = one_way_cost(closure, scales) / closure.largest_cost(scales)
        return (self.pilot or 0) * Fraction(share)

    # ---- what it guarantees

    @property
    def record_rho(self) -> Fraction:
        if self.closure.panel is None:
            return super().record_rho
        # In a panel a person costs less than m² times a record.
        return privacy_cost_upper_bound(self.closure.in_panel(None), self.sigma_squared) / 2

    @cached_property
    def noise(self) -> DiscreteNoise | None:
        if self.then is not None or self.first is not None:
            return None  # of two plans, the second by what the first drew: zCDP alone is proven
        from rpexplore.planning.pilot import pilot_scales, rest_scales  # which know this class

        residuals, sigma_squared = np.arange(len(self.closure)), self.sigma_squared.floats
        if self.pilot is not None:  # then these residuals are measured twice
            first = pilot_scales(self).floats
            residuals = np.append(residuals, np.arange(len(first)))
            sigma_squared = np.append(rest_scales(self).floats, first)
        factor = self.budget.records_factor
        return noise_of_residuals(
            self.closure, residuals, sigma_squared, self.exact_privacy_cost, factor
        )

    # ---- what it is worth

    @property
    def mean_variances(self) -> np.ndarray:
        """Mean variance of the cells of each table, float64[n_tables].

        In a marginal all cells have this one; elsewhere see `table_variances`.
        """
        return self.table_variances.mean

    @property
    def proven(self) -> str:
        if not self.loss.is_available:
            return (
                f"Whether {self.loss.description} can be smaller is known to the script that made "
                "the plan; this file cannot prove it."
            )
        as_here = "that measure the attributes as this one does"
        if self._is_charged_more:
            as_here = "that are charged as this one is"
        return self.certificate.sentence(as_here if self.restriction else "")

    @property
    def _is_charged_more(self) -> bool:
        """Whether a bound is charged that no change of records is known to reach."""
        return self.closure.panel is not None or self.closure.by_residual

    @property
    def restriction(self) -> str:
        if self._is_charged_more:
            return "tables that are charged as here"
        return "tables with their attributes measured as here" if self.closure.strategies else ""

    @property
    def has_uniform_reference(self) -> bool:
        """Whether every strategy spreads totals evenly; not where there are no strategies."""
        strategies = self.closure.strategies.values()
        return bool(strategies) and not any(
            np.any(strategy.integers.sum(axis=1)) for strategy in strategies
        )

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Root of the mean variance of each table's cells, float64[n_tables].

        Of tables with amounts in the unit of these, of sums and counts together: the error of a
        count is taken as that of so many largest amounts.
        """
        return self.variances_in_units.standard_errors("mean")

    @cached_property
    def largest_standard_errors(self) -> np.ndarray:
        """Standard error of the least accurate cell of each table, float64[n_tables]."""
        return self.variances_in_units.standard_errors("largest")

    @cached_property
    def variances_in_units(self) -> TableVariances:
        """The variances of tables in the units of their cells: those with amounts in these.

        0 of the most accurate cell where that is public, as the end of cumulative counts may be.
        """
        own = self.table_variances
        if not self.workload.is_marginals and np.any(self.closure.is_public):
            cells = CellVariances(self.workload, self.closure)
            smallest = cells.most_accurate(self.stated_scales).variances
            is_zero = smallest < _ROUNDING * own.mean  # what is left of 0 in floats
            own = TableVariances(own.mean, own.largest, np.where(is_zero, 0.0, own.smallest))
        return own.in_units(self.workload.units)

    @cached_property
    def stated_scales(self) -> np.ndarray:
        """σ² of each residual as errors are stated by it: float64[n_residuals], read-only.

        0 of those that are public: what they are measured with is so small that it is never seen.
        """
        return read_only(np.where(self.closure.is_public, 0.0, self.sigma_squared.floats))

    @cached_property
    def is_exact(self) -> np.ndarray:
        """Which tables are public, so that they are released without noise: bool[n_tables]."""
        if self.closure.by_residual and self.closure.kept is None:
            return self.workload.orders == 0
        return np.asarray((self.closure.incidence != 0) @ ~self.closure.is_public) == 0

    def cell_standard_errors(self, table: AttributeSet) -> np.ndarray:
        """Standard error of every cell of a table of the workload, one axis an attribute."""
        cells = CellVariances(self.workload, self.closure)
        position = self.workload.position(table)
        return cells.standard_errors_of(position, self.stated_scales)

    def accuracy_columns(self) -> dict[str, Any]:
        """How accurate every table is, one entry a table: see `item_columns`."""
        cells = self.workload.exact_cells

        def extremes(cell: str) -> np.ndarray:
            return np.where(self.is_exact, 0.0, self.variances_in_units.standard_errors(cell))

        return item_columns(
            self.kind,
            all_titles(self.workload),
            attributes=self.workload.tables,
            cells=cells.astype(np.int64) if max(cells) < 2**63 else self.workload.cells,
            standard_error=extremes("mean"),
            smallest_standard_error=extremes("smallest"),
            largest_standard_error=extremes("largest"),
            target=self.workload.targets,
            required=self.workload.required,
            weight=self.workload.weights,
            shadow_price=np.where(self.is_exact, 0.0, self.certificate.shadow_prices),
        )

    @property
    def tables(self) -> "pd.DataFrame":
        """What `accuracy` gives."""
        return self.accuracy()

    def largest_variance(self, table: AttributeSet) -> float:
        """Variance of a cell of any marginal that some table of the workload contains.

        Of its least accurate single value, whichever bases the workload's tables have.
        """
        noise = self.marginal_noise(self.domain.positions(table))
        if any(attribute in self.closure.strategies for attribute in noise.attributes):
            return float(np.max(noise.variances))
        # Any cell: all are equally accurate.
        sizes = self.domain.sizes
        cell = {attribute: np.eye(1, sizes[attribute])[0] for attribute in noise.attributes}
        return noise.covariance(cell, cell)

    def marginal_noise(self, attributes: AttributeIndices) -> MarginalNoise:
        """The noise of a marginal within some table; raises `WorkloadError` for any other."""
        scales, residuals = self.stated_scales, residuals_within(self.closure, attributes)
        noise = {subset: float(scales[residual]) for subset, residual in residuals.items()}
        closure = self.closure
        return MarginalNoise(self.domain, attributes, closure.strategies, noise, closure.trees)

    def margin_of_error(
        self, *attributes: AttributeSet, where: Where | None = None, confidence: float = 0.95
    ) -> float:
        """Half the width of a confidence interval for a cell, or for a query.

        By normal quantiles (approximate for standard errors below about 2), for the privacy noise
        only, not for errors that were in the records before.

        Args:
            attributes: Names of the attributes of a table, whose least accurate cell is meant.
            where: A query instead of a cell, as in `query_variance`.
            confidence: How often the true value is within it, above 0 and below 1.
        """
        if where is not None:
            error = float(np.sqrt(self.query_variance(*attributes, where=where)))
        else:
            indices = query_attributes(self.domain, attributes)
            position = self.workload.find(indices)
            if position is not None:
                error = float(self.largest_standard_errors[position] * ~self.is_exact[position])
            else:
                names = [self.domain.names[index] for index in indices]
                error = float(np.sqrt(self.largest_variance(names)))
        return normal_quantile(confidence) * error

    def covariance(
        self, table: AttributeSet, first_cell: Mapping[str, int], second_cell: Mapping[str, int]
    ) -> float:
        """Covariance of the noise of two cells of a table.

        A cell is named by the index (from 0) of its category for each attribute of the table.
        """
        attributes = self.domain.positions(table)
        left, right = (self._cell_vectors(attributes, cell) for cell in (first_cell, second_cell))
        return self.marginal_noise(attributes).covariance(left, right)

    def query_variance(self, *attributes: AttributeSet, where: Where | None = None) -> float:
        """Variance of the answer to a product query, as in `Release.answer`: a subtotal, a range.

        Args:
            attributes: Names of the attributes of a table; those of `where` if none is named.
            where: Attribute name -> its values as a text ("18..24"), or a number for each of its
                values. What it leaves out is summed over.

        Raises:
            WorkloadError: If no table has these attributes together, or numbers do not fit.
            DomainError: For an unknown attribute, or a text that names no values.
        """
        if not attributes:
            tables, noise_of = self.workload.tables, self.marginal_noise
            where = least_noisy_query(self.domain, where or {}, tables, noise_of)
        noise = self.marginal_noise(query_attributes(self.domain, attributes, where))
        vectors = noise.vectors(where or {})
        return noise.covariance(vectors, vectors)

    def _cell_vectors(
        self, attributes: AttributeIndices, cell: Mapping[str, int]
    ) -> dict[int, np.ndarray]:
        """Unit vectors that pick a cell, by attribute index."""
        vectors = {}
        for name, index in cell.items():
            attribute = self.domain.position(name)
            if attribute not in attributes:
                raise WorkloadError(f"The attribute {name!r} is not in the table; add it there.")
            size, position = int(self.closure.sizes[attribute]), whole_number(index)
            if position is None or not 0 <= position < size:
                raise WorkloadError(
                    f"The index of {name!r} must be a whole number from 0 to {size - 1}, got "
                    f"{index!r}."
                )
            vectors[attribute] = np.zeros(size)
            vectors[attribute][position] = 1.0
        missing = [attribute for attribute in attributes if attribute not in vectors]
        if missing:
            name = self.domain.names[missing[0]]
            raise WorkloadError(f"The cell does not say which value of {name!r}; give its index.")
        return vectors

    def __str__(self) -> str:
        return plan_summary(self)


def n_pilot_residuals(closure: Closure) -> int:
    """How many residuals have at most one attribute, or block: the first ones of the closure."""
    return int(np.count_nonzero(np.count_nonzero(closure.members >= 0, axis=1) <= 1))


def one_way_cost(closure: Closure, sigma_squared: np.ndarray) -> float:
    """Privacy cost of the residuals of at most one attribute, of the record that it is largest for.

    Where records are replaced, at least what the dearest replacement costs in them.

    sigma_squared: float64[n_residuals]
    """
    first = n_pilot_residuals(closure)
    costs = closure.largest_cost_factor[:first] / sigma_squared[:first]
    if closure.classes is None:
        return float(np.sum(costs))
    return float(np.max(closure.classes[:, :first] @ costs))


def refuse_unsuitable_for_pilot(workload: Workload) -> None:
    """Raise `PlanError` unless the one-way tables of a workload can be measured first."""
    if not workload.has_values_alone or np.any(workload.has_amounts):
        raise PlanError(
            "A pilot measures one-way tables of single values or levels first; leave it out where "
            "tables have amounts, cumulative sums, ranges or other aggregations."
        )
    if not np.any(workload.domain.sizes[list(workload.used)] > 1):
        raise PlanError(
            "A pilot measures one-way tables first, and no attribute of the tables has more than "
            "one value; leave the pilot out."
        )


# ---- The summary of a plan of tables: a few lines, for a terminal.


MOST_LISTED = 10
"""Tables with amounts in a summary."""


def plan_summary(plan: "TablePlan") -> str:
    """Its size, guarantee, proof, targets and accuracy by order."""
    workload, domain = plan.workload, plan.workload.domain
    rows = [
        f"Plan for {plural(len(workload), 'table')} over {plural(domain.n_columns, 'attribute')} "
        f"({plural(len(plan.closure), 'residual')} to measure)",
        *plan.privacy_lines,
        f"  Objective  {plan.loss.description}: {plan.loss_value:.6g}",
        f"  Proven     {plan.proven}",
        *([f"  Pilot      {plan.note}"] if plan.note else []),
        *(f"  Rule       {rule.text}" for rule in plan.rules),
        *targets_lines(
            plan.largest_standard_errors, workload.targets, workload.required, workload.describe
        ),
    ]
    best, typical, worst = (
        np.where(plan.is_exact, 0.0, plan.variances_in_units.standard_errors(cell))
        for cell in ("smallest", "mean", "largest")
    )
    attributes = workload.orders - workload.is_weighted  # that tables are by
    of_counts = workload.is_weighted & ~workload.has_means
    for of, counted in (("cell", ~workload.has_amounts), ("weighted count", of_counts)):
        if np.any(counted):
            rows += [
                f"  Accuracy   standard error of a {of}",
                f"    {'attributes':>10} {'tables':>9} {'smallest':>10} {'median':>10} "
                f"{'largest':>10}",
            ]
        for order in np.unique(attributes[counted]):
            tables = (attributes == order) & counted
            rows.append(
                f"    {order:>10} {np.count_nonzero(tables):>9,} {best[tables].min():>10.4g} "
                f"{np.median(typical[tables]):>10.4g} "
                f"{worst[tables].max():>10.4g}"
            )
    return "\n".join([*rows, *_lines_of_sums(plan)])


def _lines_of_sums(plan: TablePlan) -> list[str]:
    """How accurate the sums of tables with amounts are, and the counts beside them."""
    tables = np.flatnonzero(plan.workload.has_means).tolist()
    if not tables:
        return []
    lines = ["  Sums       standard error of a sum, and of a count beside it (root mean square)"]
    for table in tables[:MOST_LISTED]:
        errors = sum_and_count_errors(plan.workload, plan.closure, table, plan.sigma_squared.floats)
        lines.append(
            f"    {title_of(plan.workload, table)}: {errors[0]:,.4g}, and {errors[1]:,.4g}"
        )
    more = len(tables) - MOST_LISTED
    return [*lines, f"    and {more:,} more"] if more > 0 else lines


def sum_and_count_errors(
    workload: Workload, closure: Closure, table: int, sigma_squared: np.ndarray
) -> tuple[float, float]:
    """Standard errors of the sums of a table with amounts, and of its counts: root mean squares.

    sigma_squared: of residuals, float64[n_residuals]
    """
    indices, of_amounts = workload.attribute_indices(table), set(workload.domain.amounts)
    of_amounts -= set(workload.domain.weights)
    axis = next(axis for axis, index in enumerate(indices) if index in of_amounts)
    squares = CellVariances(workload, closure).standard_errors_of(table, sigma_squared) ** 2
    means = squares.mean(axis=tuple(other for other in range(squares.ndim) if other != axis))
    return float(np.sqrt(means[0])), float(np.sqrt(means[1]))


def targets_lines(
    errors: np.ndarray, targets: np.ndarray, required: np.ndarray, describe: Callable[[int], str]
) -> list[str]:
    """Which targets are met, where there are any.

    errors    float64[n]: standard errors of the least accurate cells, with which targets are met
    targets   float64[n]: NaN where there is none
    required  bool[n]
    describe  the text of the table at a position
    """
    ratios = errors / targets
    wanted = np.count_nonzero(~np.isnan(ratios))
    if wanted == 0:
        return []
    furthest, met = int(np.nanargmax(ratios)), ratios <= MET_FACTOR
    which = "tightest" if np.count_nonzero(met) == wanted else "furthest off"
    lines = [
        f"  Targets    {np.count_nonzero(met):,} of {wanted:,} met; {which}: "
        f"{describe(furthest)}, {errors[furthest]:.4g} for a target of {targets[furthest]:.4g}"
    ]
    if np.any(required):
        missed = np.count_nonzero(required & ~met)
        note = "; this objective does not require them, --loss required does" if missed else ""
        count = np.count_nonzero(required)
        lines.append(f"  Required   {count - missed:,} of {count:,} met{note}")
    return lines
