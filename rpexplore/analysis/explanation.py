"""Why the standard error of a table is as large as it is: what is measured, and each part of it.

What is measured are residuals: the total, the differences by each attribute, the interactions of
several. The variance of a cell is a sum with one part for each residual within its table, the noise
scale σ² of the residual times a number that follows from the table alone (docs/mathematics.md §3.2,
§4.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import standard_error_alone
from rpexplore.analysis.binding_targets import describe_loss
from rpexplore.analysis.targets_met import describe_now, describe_outcome, is_met, wanted_targets
from rpexplore.common.text import capitalised, describe_share, joined, rounded
from rpexplore.planning.losses.losses import WEIGHTINGS, WeightedSum
from rpexplore.planning.mechanism.variances import CellVariances, is_negligible_difference
from rpexplore.planning.part_plan import Z_95
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import query_matrix, title_of, titles

_MOST_PARTS = 4  # in a sentence
_LEAST_PART = 0.005  # of the variance; smaller ones are told together
_NO_PART = 1e-12  # of the variance: rounding
_NO_PRICE = 1e-6  # of a table that does not bind
_AS_MUCH = 1.005  # weights that differ by no more count alike


@dataclass(frozen=True, eq=False)
class Explanation:
    """The parts that make up the accuracy of one table of a plan.

    table      its index in the workload
    cell       whose variance it is, of `table_variances.CELLS`; "mean" is the mean of all cells
    label      what that cell is called; "" for the mean
    residuals  int64[m]: indices of the residuals within the table, the largest part first
    parts      float64[m]: of the variance, which is their sum, in the unit of the table
    """

    plan: TablePlan
    table: int
    cell: str
    label: str
    residuals: np.ndarray
    parts: np.ndarray

    @property
    def variance(self) -> float:
        return float(np.sum(self.parts))

    @property
    def standard_error(self) -> float:
        return float(np.sqrt(self.variance))

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of each part in the variance, float64[m], sum 1."""
        return self.parts / self.variance

    @cached_property
    def budget_shares(self) -> np.ndarray:
        """Share of the privacy cost that each residual takes, float64[m]."""
        costs = self.plan.closure.privacy_cost_factor / self.plan.sigma_squared.floats
        return costs[self.residuals] / float(np.sum(costs))

    @cached_property
    def tables(self) -> list[np.ndarray]:
        """For each residual the indices of all tables that are computed from it, ascending."""
        return [
            self.plan.workload.containing(self._names(residual))
            for residual in self.residuals.tolist()
        ]

    def frame(self) -> pd.DataFrame:
        """One row a residual, the largest part first.

        Columns: measured ("total", "age", "age × sex"), order, sigma (of its noise), part (of the
        variance), share (of the variance), tables (computed from it), budget_share.
        """
        names = [self._names(residual) for residual in self.residuals.tolist()]
        return pd.DataFrame(
            {
                "measured": [" × ".join(of_residual) or "total" for of_residual in names],
                "order": [len(of_residual) for of_residual in names],
                "sigma": np.sqrt(self.plan.sigma_squared.floats[self.residuals]),
                "part": self.parts,
                "share": self.shares,
                "tables": [len(tables) for tables in self.tables],
                "budget_share": self.budget_shares,
            }
        )

    def describe(
        self,
        record_noun: str,
        request: WorkloadRequest | None = None,
        former: TablePlan | None = None,
    ) -> list[str]:
        """How large it is, of which parts, and what made it so, a sentence each.

        request: what the plan was made from, for targets as they were typed
        former: the plan before the last change, of the same tables
        """
        sentences = [
            self._size(record_noun),
            describe_former(self.plan, former, self.table),
            self._composition(),
            self._largest_part(),
            self._objective(),
            self._target(request),
            self._alone(),
        ]
        return [sentence for sentence in sentences if sentence]

    # ---- sentences

    def _size(self, record_noun: str) -> str:
        title = title_of(self.plan.workload, self.table)
        variances = self.plan.table_variances
        whose = {
            "mean": f"The cells of {title} have a root mean square error",
            "largest": f"The least accurate cell of {title}, “{self.label}”, has a standard error",
            "smallest": f"The most accurate cell of {title}, “{self.label}”, has a standard error",
        }[self.cell]
        spread = variances.smallest[self.table], variances.largest[self.table]
        if self.plan.workload.orders[self.table] == 0:
            whose = "The total has a standard error"
        elif is_negligible_difference(*np.sqrt(spread).tolist()):
            whose = f"A cell of {title} has a standard error"
        error = self.standard_error
        record_noun = self.plan.workload.unit_of(self.table, record_noun)
        return (
            f"{whose} of {f'{rounded(error, 3)} {record_noun}'.strip()} (95 % margin of error "
            f"±{rounded(error * Z_95, 3)})."
        )

    def _composition(self) -> str:
        count = int(np.count_nonzero(self.shares > _NO_PART))
        if count == 1:
            return f"It is the noise on {self._effect(int(self.residuals[0]))} alone."
        shown = min(int(np.count_nonzero(self.shares >= _LEAST_PART)), _MOST_PARTS)
        if count - shown == 1:
            shown = count
        parts = [
            f"{describe_share(share)} from {self._effect(residual)}"
            for share, residual in zip(
                self.shares[:shown].tolist(), self.residuals[:shown].tolist(), strict=True
            )
        ]
        if rest := count - shown:
            share = describe_share(float(np.sum(self.shares[shown:])))
            parts.append(f"{share} from {rest:,} others")
        return (
            f"Its variance is the sum of {count:,} parts, the noise on what is measured: "
            f"{joined(parts)}."
        )

    def _largest_part(self) -> str:
        """Of the residual with the largest part: its budget, and whom it serves."""
        workload, residual = self.plan.workload, int(self.residuals[0])
        if len(workload) == 1:
            return ""
        effect, share = self._effect(residual), describe_share(float(self.budget_shares[0]))
        s = "" if len(self._names(residual)) == 1 else "s"  # differences are several
        others = self.tables[0][self.tables[0] != self.table]
        if not len(others):
            return f"Only this table needs {effect}, which take{s} {share} of the privacy budget."
        such = titles(workload, others[[np.argmax(workload.orders[others] > 0)]])[0]
        named = such if len(others) == 1 else f"{len(others):,} others, such as {such}"
        return (
            f"{capitalised(effect)} take{s} {share} of the privacy budget, and serve{s} this table "
            f"and {named}."
        )

    def _objective(self) -> str:
        """How much the objective counts the table, and which share of the loss it has."""
        plan = self.plan
        loss, workload = plan.loss, plan.workload
        if len(workload) == 1:
            return ""
        if loss.meets_required_targets and loss.table_weights(workload)[self.table] == 0:
            return "The objective does not count the table, as its target is required."
        loss_text = describe_loss(loss, workload)
        price = float(plan.certificate.shadow_prices[self.table])
        if price < _NO_PRICE:
            return (
                f"It does not bind: if it counted a little less, {loss_text} would hardly change."
            )
        share = (
            f"has {describe_share(price)} of {loss_text} (an equal share would be "
            f"{describe_share(1 / len(workload))})"
        )
        counted = self._counted()
        return f"{counted}; the table {share}." if counted else f"The table {share}."

    def _counted(self) -> str:
        """How much its variance counts beside those of others; "" where all count alike."""
        loss, workload = self.plan.loss, self.plan.workload
        if not loss.is_available:
            return ""
        weights = loss.table_weights(workload)
        own, counted = float(weights[self.table]), weights[weights > 0]
        if is_negligible_difference(float(counted.min()), float(counted.max())):
            return ""
        reasons = []
        if loss.compares_with_targets:
            reasons.append("by its target")
        elif np.any(workload.weights != 1):
            reasons.append(f"weight {workload.weights[self.table]:g}")
        if isinstance(loss, WeightedSum) and loss.weighting != "equal":
            reasons.append(WEIGHTINGS[loss.weighting])
        times = own / float(np.median(counted))
        much = "as much as" if 1 / _AS_MUCH <= times <= _AS_MUCH else f"{rounded(times, 3)} times"
        because = f" ({', '.join(reasons)})" if reasons else ""
        return f"Its variance counts {much} that of the median table{because}"

    def _target(self, request: WorkloadRequest | None) -> str:
        """Whether its target is met, and whether that decides."""
        plan = self.plan
        if np.isnan(plan.workload.targets[self.table]):
            return ""
        (target,) = wanted_targets(plan.workload, np.array([self.table]), request)
        error = float(plan.largest_standard_errors[self.table])
        its = f"Its {'required ' if target.required else ''}target, {target.description}, is"
        if not is_met(target, error):
            return f"{its} missed: {describe_outcome(target, error)}."
        decides = plan.loss.meets_required_targets and target.required
        if decides and is_negligible_difference(error, target.standard_error):
            return f"{its} just met: it decides how accurate the table is."
        return f"{its} met, at {describe_now(target, error)}."

    def _alone(self) -> str:
        """The table's error if it were the only one; known for single values."""
        plan, workload = self.plan, self.plan.workload
        indices = workload.attribute_indices(self.table)
        if len(workload) == 1 or not all(
            workload.basis_of(self.table, index).is_identity for index in indices
        ):
            return ""
        alone = standard_error_alone(plan.budget)
        times, count = self.standard_error / alone, len(workload) - 1
        others = "the other table makes" if count == 1 else f"the other {count:,} tables make"
        return (
            f"With the whole budget for itself, the table would have a standard error of "
            f"{rounded(alone, 3)}; {others} it {rounded(times, 3)} times as large."
        )

    # ---- inside

    def _names(self, residual: int) -> tuple[str, ...]:
        names = self.plan.domain.names
        return tuple(names[index] for index in self.plan.closure.attributes(residual))

    def _effect(self, residual: int) -> str:
        """ "the total", "the differences by age", "the interaction of age and sex"."""
        names = self._names(residual)
        if not names:
            return "the total"
        if len(names) == 1:
            return f"the differences by {names[0]}"
        return f"the interaction of {joined(names)}"


def explanation(plan: TablePlan, table: int, cell: str = "mean") -> Explanation:
    """Explain the accuracy of a table.

    Args:
        table: Its index in the workload.
        cell: Whose variance is explained: "mean" for the mean of all cells, "largest" or "smallest"
            for that of the least or the most accurate one.
    """
    closure, sigma_squared, rows = plan.closure, plan.sigma_squared.floats, None
    start, stop = closure.incidence.indptr[table : table + 2]
    residuals = closure.incidence.indices[start:stop]
    if cell == "mean":
        relative = closure.incidence.data[start:stop] * closure.pairs[residuals]
        coefficients = relative / closure.cells[table] / closure.inverse_totals[table]
    else:
        cells = CellVariances(plan.workload, closure)
        extremes = cells.least_accurate if cell == "largest" else cells.most_accurate
        rows = extremes(sigma_squared).rows[table]
        matrix = cells.map(np.array([table]), rows[None]).matrix
        coefficients = matrix[[0], :].toarray()[0, residuals]
    parts = coefficients * sigma_squared[residuals] * plan.workload.units[table] ** 2
    order = np.argsort(-parts, kind="stable")
    label = "" if rows is None else _label(plan, table, rows.tolist())
    return Explanation(plan, table, cell, label, residuals[order], parts[order])


def describe_former(plan: TablePlan, former: TablePlan | None, table: int) -> str:
    """How the margin of error of a table changed since another plan of the same tables.

    "" without one, and where the two read the same.
    """
    if former is None:
        return ""
    now, then = (rounded(each.standard_errors[table] * Z_95, 3) for each in (plan, former))
    return "" if now == then else f"Margin of error ±{now}; ±{then} before the last change."


def _label(plan: TablePlan, table: int, rows: Sequence[int]) -> str:
    """The title of a cell: "≤ 44, F"."""
    workload, labels = plan.workload, []
    for index, row in zip(workload.attribute_indices(table), rows, strict=False):
        attribute = workload.domain.attributes[index]
        labels.append(query_matrix(workload.basis_of(table, index), attribute).label(row))
    return ", ".join(labels) or "total"
