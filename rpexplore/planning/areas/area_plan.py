"""Area plan: exact precisions for the tables of every area, and what follows from them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.common.text import plural
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.areas.area_groups import Profiles
from rpexplore.planning.areas.area_loss import (
    LossRows,
    area_problem,
    extreme_variances,
    loss_of_variances,
    mean_variances,
    profiles_of,
    row_caps,
    table_weights,
)
from rpexplore.planning.areas.area_plan_file import (
    FACTOR_BITS,
    PRECISION_BITS,
    AreaFiles,
    fields_of_plan,
    files_of_plan,
    largest_record_cost,
    profile_costs,
    rounded_down,
    text_of_plan,
    whole_multiples,
)
from rpexplore.planning.areas.area_sums import AreaLists, accuracy_of_sums
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.solvers import AreaProblem, AreaState
from rpexplore.planning.areas.tree_passes import NO_ERROR
from rpexplore.planning.losses.constrained import WithinTargets
from rpexplore.planning.losses.losses import Loss, WeightedSum
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.kept_totals import KeptInAreas
from rpexplore.planning.part_plan import (
    Certificate,
    CertifiedPlan,
    item_columns,
    refuse_fine_steps,
)
from rpexplore.planning.table_plan import MOST_LISTED, sum_and_count_errors, targets_lines
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.table_text import titles

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.verification import Check


@dataclass(frozen=True, eq=False, repr=False)
class AreaPlan(AreaDesign, CertifiedPlan):
    """Noise for the residuals of the tables in every area of a tree. No records.

    In one area of group v, residual S of the closure is measured with independent discrete Gaussian
    noise of precision t = unit · factor_S · multiple_{k(S), v}, exactly (σ̄² = 1/t), or not at all
    where that is 0.

    Beside what a design has:

    loss          what is minimised: a sum, where areas asked for the same count by their mean, or
                  the largest over all areas, of all tables or of those without a required target
    budget        the most that the plan may cost
    uniform       whether all areas of a level have one precision
    loss_rows     what the loss looks at of each table
    prices, table_prices   as of `AreaState`; with the multiples they prove the bound
    exact_privacy_cost     of the privacy unit, exact, ≤ the budget's
    certificate   has no shadow prices: those of levels are in `tables`
    version       of the library that made the plan
    given_files   the Parquet files that it was read from

    Make one with `rpexplore.plan`, as the part "areas" of a plan.
    """

    kind = "areas"
    noun = "plan for areas"
    item, released_item = "table", "noisy table"
    accuracy_statement = (
        "Every table's answers are unbiased, in every area, with the standard errors the plan "
        "states."
    )

    loss: Loss
    budget: Budget
    uniform: bool
    loss_rows: LossRows
    prices: np.ndarray
    table_prices: np.ndarray | None
    exact_privacy_cost: Fraction
    certificate: Certificate
    version: str
    given_files: AreaFiles | None = None

    def __post_init__(self) -> None:
        arrays = self.of_residual, self.factors, self.multiples, self.exact_levels, self.prices
        for array in arrays:
            read_only(array)

    # ---- what it is about

    @property
    def bare(self) -> Self:
        return replace(self, given_files=None)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*super().columns, *self.workload.tree.levels[1:])

    @property
    def asked(self) -> str:
        return f"{super().asked} in areas"

    @property
    def full_contents(self) -> str:
        n_areas = self.workload.tree.n_areas
        return f"{plural(self.n_items, self.released_item)} of {plural(n_areas, 'area')}"

    # ---- what it guarantees

    @cached_property
    def exact_record_cost(self) -> Fraction:
        """Privacy cost of one record, the largest over areas, computed from the multiples."""
        costs = profile_costs(self.closure, self.of_residual, self.factors)
        return self.unit * largest_record_cost(self.groups, self.multiples, costs)

    @cached_property
    def noise(self) -> DiscreteNoise:
        # A record is in one area of each level, and a person in as many as he has records. Of each
        # residual and level: the largest precision of any area, as if the areas it is in had it.
        most = self.budget.max_records_per_person or 1
        if self.budget.replaces:  # each of them in another area, before and after
            most *= 2
        precisions, numbers = [], []
        for start, stop in pairwise(self.groups.starts.tolist()):
            largest = np.max(self.multiples[:, start:stop], axis=1)[self.of_residual]
            precisions.append(largest.astype(float) * self.scales)
            areas = min(most, float(np.sum(self.groups.multiplicity[start:stop])))
            numbers.append(self.closure.measured_numbers * areas)
        precision = np.concatenate(precisions)
        measured, n_levels = precision > 0, len(precisions)
        squared_scales = np.tile(self.closure.squared_scales, n_levels)
        costs = np.tile(self.closure.full_cost_factor, n_levels) * precision
        return DiscreteNoise.of(
            self.exact_privacy_cost,
            gamma_squared=squared_scales[measured] / precision[measured],
            numbers=np.concatenate(numbers)[measured],
            costs=costs[measured] * self.budget.records_factor,
        )

    # ---- what it is worth

    @property
    def gap(self) -> float:
        """How far the plan's loss can be above the smallest possible one, relative, ≥ 0."""
        return self.certificate.gap

    @property
    def _noise(self) -> str:
        """The noise of the plans that the bound is about."""
        levels = " and one precision a level" if self.uniform else ""
        as_here = ", attributes measured as here" if self.closure.strategies else ""
        return f"independent noise on every area{levels}{as_here}"

    @property
    def restriction(self) -> str:
        return f"tables in areas with {self._noise}"

    @property
    def proven(self) -> str:
        return self.certificate.sentence(f"with {self._noise}")

    # ---- noise and accuracy

    def exact_variance(self, residual: int, group: int) -> Fraction | None:
        """σ̄² of a residual's noise in an area of a group; None where it has none."""
        multiple = int(self.multiples[self.of_residual[residual], group])
        return 1 / (self.unit * int(self.factors[residual]) * multiple) if multiple else None

    def table_variances(self, kind: int) -> np.ndarray:
        """Mean variance of the cells of each table of a workload in the groups asked for it.

        float64[n_tables, n_groups of this kind], the groups ascending
        """
        variances = self.residual_variances[:, self.groups.kinds == kind]
        return mean_variances(self.workload, self.closure, kind, variances)

    def accuracy_of_sums(
        self,
        lists: AreaLists,
        tables: Iterable[Sequence[str]] | None = None,
    ) -> "pd.DataFrame":
        """How accurate the sums over lists of areas are, exactly, before anything is released.

        A list may be no area of the tree: a school district, as the blocks that are in it.

        Args:
            lists: Name -> areas that do not overlap, on any mix of levels: each as its number in
                the tree, as its codes from below the top, or as its own code where no other
                has it. A single area may stand in place of all this.
            tables: Attribute sets of tables of the plan; all of its tables if left out.

        Returns:
            One row a list and table, the least accurate first: list, attributes, areas (in the
            list), standard_error (of a cell of the sum of the areas' unbiased tables, the root
            mean square where cells differ; NaN where one of them has no answer), note (why there
            is none).

        Raises:
            DomainError: For an area that is not there, or that a list counts twice.
            WorkloadError: For a table that is asked for nowhere.
        """
        return accuracy_of_sums(self, lists, tables)

    @property
    def has_targets(self) -> bool:
        return any(not np.all(np.isnan(asked.targets)) for asked in self.workload.workloads)

    def accuracy_columns(self) -> dict[str, Any]:
        """How accurate every table is, one entry a table and level from the top.

        See `item_columns`. The shadow price is by how many per cent the smallest possible loss
        grows when the weights of the table in these areas grow by one per cent; with required
        targets, its share of all that the plan's proof weighs.
        """
        return area_accuracy(self)

    def __str__(self) -> str:
        return area_summary(self)

    # ---- files

    @cached_property
    def files(self) -> AreaFiles:
        """The Parquet files beside the plan file: its areas, and their precisions and prices."""
        return self.given_files or files_of_plan(self)

    @property
    def companions(self) -> Mapping[str, bytes]:
        return self.files.by_name

    def to_text(self) -> str:
        return text_of_plan(self)

    @classmethod
    def of_content(cls, content: Any, version: str, folder: Path | None) -> Self:
        return cls(**fields_of_plan(content, version, folder))

    def checks(self, *, strategies: bool) -> "tuple[Check, ...]":
        from rpexplore.planning.verification import area_checks

        return area_checks(self, strategies=strategies)


def proven_bound(plan: AreaPlan) -> float:
    """The bound on all plans by a plan's precisions and prices; not above 0 where there is none."""
    rows = plan.loss_rows
    exact_levels = plan.exact_levels[plan.of_residual]
    profiles = profiles_of(plan.workload, plan.closure, plan.loss, rows, exact_levels)
    cost = float(plan.budget.record_privacy_cost)
    problem = area_problem(
        plan.workload, plan.groups, plan.loss, rows, profiles, plan.uniform, cost
    )
    state = AreaState(plan.precisions, plan.prices, plan.table_prices)
    with np.errstate(divide="ignore", invalid="ignore"):  # a price of 0 proves nothing
        return float(problem.proven(state))


def area_loss(plan: AreaPlan) -> float:
    """The loss of a plan, from its variances."""
    variances = plan.residual_variances
    return loss_of_variances(plan.workload, plan.groups, plan.closure, plan.loss, variances)


def exact_plan(
    workload: AreaWorkload,
    loss: Loss,
    budget: Budget,
    problem: AreaProblem,
    closure: Closure,
    rows: LossRows,
    profiles: Profiles,
    state: AreaState,
) -> AreaPlan:
    """The plan of a state: precisions as whole multiples of a unit that uses up the budget."""
    multiples = whole_multiples(state.precisions, PRECISION_BITS)
    factors = whole_multiples(profiles.factors, FACTOR_BITS)
    costs = profile_costs(closure, profiles.of_residual, factors)
    at_one = largest_record_cost(problem.groups, multiples, costs)
    unit = rounded_down(budget.record_privacy_cost / at_one)
    unproven = AreaPlan(
        workload=workload,
        loss=loss,
        budget=budget,
        uniform=problem.uniform,
        groups=problem.groups,
        closure=closure,
        loss_rows=rows,
        of_residual=profiles.of_residual,
        factors=factors,
        multiples=multiples,
        exact_levels=profiles.exact_levels,
        unit=unit,
        prices=state.prices,
        table_prices=state.table_prices,
        exact_privacy_cost=unit * at_one * budget.records_factor,
        certificate=Certificate(np.inf, 0.0, np.empty(0)),
        version=version("rpexplore"),
    )
    return _proven(unproven)


def charged_closure(closure: Closure, kept: KeptInAreas | None) -> Closure:
    """The closure of the tables of areas at the costs of neighbours.

    kept: what these keep; None where they add or remove records
    """
    if closure.in_areas == kept:
        return closure
    return closure.replacing_by_residual(replaces=kept is not None, in_areas=kept)


def with_budget(plan: AreaPlan, budget: Budget) -> AreaPlan:
    """The plan with another budget for the same neighbours: the same shares, and the same proof."""
    assert (budget.neighbours, budget.exact) == (plan.budget.neighbours, plan.budget.exact)
    at_one = plan.exact_record_cost / plan.unit
    unit = rounded_down(budget.record_privacy_cost / at_one)
    cost = unit * at_one * budget.records_factor
    return _proven(replace(plan, budget=budget, unit=unit, exact_privacy_cost=cost))


def _proven(plan: AreaPlan) -> AreaPlan:
    """The plan with the certificate that its precisions and prices give.

    Raises `PlanError` for noise that cannot be drawn in the steps of amounts.
    """
    refuse_fine_steps(plan.closure, plan.domain, plan.gamma_squared)
    bound = proven_bound(plan)  # first, as it takes the most memory, and the loss keeps some
    return replace(plan, certificate=Certificate(area_loss(plan), bound, np.empty(0)))


# ---- The accuracy of a plan for areas, by level and table; and a few lines of it, for a terminal.


def area_accuracy(plan: "AreaPlan") -> dict[str, Any]:
    """What `AreaPlan.accuracy_columns` gives."""
    rows = list(_rows(plan))
    texts = ("level", "item", "attributes")
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    columns |= {name: np.array(columns[name]) for name in columns if name not in texts}
    columns["shadow_price"] /= columns["shadow_price"].sum()
    return item_columns(plan.kind, columns.pop("item"), **columns)


def _rows(plan: "AreaPlan") -> Iterator[dict[str, Any]]:
    groups, tree = plan.groups, plan.workload.tree
    level_of = np.repeat(np.arange(len(tree.levels)), np.diff(groups.starts))
    for level, name in enumerate(tree.levels):
        for kind in np.unique(groups.kinds[level_of == level]).tolist():
            if kind < 0:
                continue
            asked = plan.workload.workloads[kind]
            of_level = (groups.kinds == kind) & (level_of == level)
            sizes, residuals = groups.multiplicity[of_level], plan.residual_variances[:, of_level]
            residuals = np.where(residuals < NO_ERROR, 0.0, residuals)
            given = plan.workload, plan.closure, kind, residuals
            smallest = largest = variances = mean_variances(*given)
            if not plan.workload.tables.is_marginals:
                smallest = extreme_variances(*given, largest=False)
                largest = extreme_variances(*given, largest=True)
            shares = _shares(plan, kind, of_level, residuals, variances)
            names = titles(asked, np.arange(len(asked)))
            for row, unit in enumerate(asked.units.tolist()):
                mean = float(variances[row] @ sizes / np.sum(sizes))
                yield {
                    "level": name,
                    "item": names[row],
                    "attributes": asked.tables[row],
                    "areas": int(np.sum(sizes)),
                    "cells": int(asked.exact_cells[row]),
                    "standard_error": unit * float(np.sqrt(mean)),
                    "largest_standard_error": unit * float(np.sqrt(np.max(largest[row]))),
                    "smallest_standard_error": unit * float(np.sqrt(np.min(smallest[row]))),
                    "weight": float(asked.weights[row]),
                    "target": float(asked.targets[row]),
                    "required": bool(asked.required[row]),
                    "shadow_price": float(shares[row] @ sizes),
                }


def _shares(
    plan: "AreaPlan", kind: int, groups: np.ndarray, residuals: np.ndarray, means: np.ndarray
) -> np.ndarray:
    """What each table of a workload has of the sum that proves the bound, in an area of each group.

    groups: bool[n_groups]; residuals, means: variances of residuals and mean ones of the tables in
    these groups, float64[n_residuals, ·] and [n_tables, ·]
    """
    workload, prices = plan.workload, plan.table_prices
    weights, rows = table_weights(workload, plan.loss)[kind], plan.loss_rows
    shares = np.zeros_like(means)
    if isinstance(plan.loss, WeightedSum):
        shares += weights[:, None] * means / workload.areas_asked[kind]
    if prices is not None:
        on_rows = np.zeros(len(rows))
        if isinstance(plan.loss, WithinTargets):
            on_rows += 1 / row_caps(workload, plan.loss, rows)[kind]
        if not isinstance(plan.loss, WeightedSum):
            on_rows += np.where(rows.single, rows.of_tables(weights, workload.rows[kind], 0.0), 0.0)
        for row in np.flatnonzero(on_rows).tolist():
            table = np.flatnonzero(workload.rows[kind] == rows.tables[row])
            of_row = on_rows[row] * prices[row, groups] * (rows.matrix[row] @ residuals)
            shares[table] += of_row
    return shares


def area_summary(plan: "AreaPlan") -> str:
    """Its size, guarantee, proof, targets and accuracy by level; one target a table and level."""
    tree, tables = plan.workload.tree, plan.accuracy()
    names = (tables["item"] + " on the level " + tables["level"]).tolist()
    errors, targets = tables["largest_standard_error"].to_numpy(), tables["target"].to_numpy()
    rows = [
        f"Plan for {plural(plan.n_items, 'table')} in {plural(tree.n_areas, 'area')} on "
        f"{plural(len(tree.levels), 'level')}",
        *([f"  Empty      {tree.empty_text}"] if tree.empty_text else []),
        *([f"  Recoded    {tree.recodes_text}"] if tree.recodes_text else []),
        *plan.privacy_lines,
        f"  Objective  {plan.loss.description}: {plan.loss_value:.6g}",
        f"  Proven     {plan.proven}",
        *targets_lines(errors, targets, tables["required"].to_numpy(dtype=bool), names.__getitem__),
    ]
    asked = plan.workload.tables
    positions = np.array([asked.position(attributes) for attributes in tables["attributes"]])
    of_counts = asked.is_weighted & ~asked.has_means
    for of, counted in (("cell", ~asked.has_amounts), ("weighted count", of_counts)):
        if not np.any(counted):
            continue
        rows += [
            f"  Accuracy   standard error of a {of}",
            f"    {'level':<16} {'areas':>10} {'tables':>9} {'smallest':>10} {'largest':>10}",
        ]
        rows += [
            f"    {level:<16} {of_level['areas'].max():>10,} {len(of_level):>9,} "
            f"{of_level['smallest_standard_error'].min():>10.4g} "
            f"{of_level['largest_standard_error'].max():>10.4g}"
            for level, of_level in tables[counted[positions]].groupby("level", sort=False)
        ]
    return "\n".join([*rows, *_lines_of_sums(plan, tables, positions)])


def _lines_of_sums(plan: "AreaPlan", tables: "pd.DataFrame", positions: np.ndarray) -> list[str]:
    """How accurate sums of amounts are on each level, and the counts beside them.

    tables: of `accuracy`; positions: of each row in `AreaWorkload.tables`
    """
    having = np.flatnonzero(plan.workload.tables.has_means[positions])
    if not len(having):
        return []
    lines = ["  Sums       standard error of a sum, and of a count beside it (root mean square)"]
    for row in having[:MOST_LISTED].tolist():
        level, position = tables["level"].iloc[row], int(positions[row])
        variances = _mean_variances_on(plan, level, position)
        of_sums, of_counts = sum_and_count_errors(
            plan.workload.tables, plan.closure, position, variances
        )
        lines.append(
            f"    {level}: {tables['item'].iloc[row]}: {of_sums:,.4g}, and {of_counts:,.4g}"
        )
    more = len(having) - MOST_LISTED
    return [*lines, f"    and {more:,} more"] if more > 0 else lines


def _mean_variances_on(plan: "AreaPlan", level: str, table: int) -> np.ndarray:
    """The mean variances of residuals over the areas of a level that have a table: float64[n]."""
    groups, kinds = plan.groups, plan.groups.kinds
    start, stop = groups.starts[plan.workload.tree.levels.index(level) :][:2].tolist()
    has_table = np.array([*(table in rows for rows in plan.workload.rows), False])  # of none: −1
    sizes = groups.multiplicity[start:stop] * has_table[kinds[start:stop]]
    return plan.residual_variances[:, start:stop] @ (sizes / np.sum(sizes))
