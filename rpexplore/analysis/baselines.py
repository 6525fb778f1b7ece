"""A plan beside plainer mechanisms at the same privacy cost, and beside what none can go below."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import least_accurate_first
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import capitalised, describe_count, joined, rounded
from rpexplore.errors import PlanError
from rpexplore.planning.baselines.baselines import Baseline, LogVariances, UnsuitableError, power_of
from rpexplore.planning.baselines.gaussian_bound import LITTLE_WORK, gaussian_bound
from rpexplore.planning.baselines.plan_bound import has_mixed_bases, plan_bound
from rpexplore.planning.baselines.products import BOUND_TOLERANCE, SingularValues
from rpexplore.planning.baselines.registry import BASELINES, LAPLACE_BASELINES
from rpexplore.planning.losses.losses import p_norm
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import record_cost
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import titles

PLAN = "this plan"
# Columns of `Comparison.frame` that are shown, with their headings.
BASELINE_HEADINGS = {
    "baseline": "mechanism",
    "source": "known as",
    "budget_text": "privacy cost for the same errors",
}
_SAME = 1.005  # budgets that differ by no more than this factor are the same
_LARGEST = 1e15  # factors beyond it are told as powers of ten


@dataclass(frozen=True, eq=False)
class BaselineError:
    """How a baseline compares with a plan.

    variances  at the plan's budget; None if there is no such mechanism for its tables
    log_times  natural logarithm of the factor by which the privacy cost would have to be larger
               for the plan's loss; NaN if there is no such mechanism
    reason     why there is none; "" if there is one
    """

    baseline: Baseline
    variances: LogVariances | None
    log_times: float
    reason: str = ""

    @property
    def times_budget(self) -> float:
        """How many times the budget it would need for the plan's loss; inf beyond 10^308."""
        return math.exp(self.log_times) if self.log_times < 700 else math.inf * (self.log_times > 0)

    @property
    def budget_text(self) -> str:
        """ "72 times", "about 10^23 times"; "" if there is no such mechanism."""
        if self.variances is None:
            return ""
        return describe_times(self.log_times)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A plan beside the mechanisms that people use or know.

    rows     with Gaussian noise, in the order of the registry
    laplace  with Laplace noise at ε = 1
    """

    plan: TablePlan
    rows: tuple[BaselineError, ...]
    laplace: tuple[BaselineError, ...]

    # ---- Gaussian noise

    @property
    def there(self) -> list[BaselineError]:
        """Those that there are for the plan's tables, the most expensive first."""
        found = [row for row in self.rows if row.variances is not None]
        return sorted(found, key=lambda row: -row.log_times)

    @property
    def missing(self) -> list[BaselineError]:
        """Those that there are not."""
        return [row for row in self.rows if row.variances is None]

    def frame(self, *, missing: bool = True) -> pd.DataFrame:
        """One row a baseline, the most expensive first; then, if wanted, those that there are not.

        Columns: name, baseline, source, times_budget (what it would need for the plan's loss: inf
        beyond 10^308, NaN if there is no such mechanism), budget_text (the same in words) and
        reason.
        """
        rows = [*self.there, *(self.missing if missing else ())]
        return pd.DataFrame(
            {
                "name": [row.baseline.name for row in rows],
                "baseline": [row.baseline.title for row in rows],
                "source": [row.baseline.source for row in rows],
                "times_budget": [row.times_budget for row in rows],
                "budget_text": [row.budget_text for row in rows],
                "reason": [row.reason for row in rows],
            }
        )

    def of_tables(self, tables: Sequence[int] | np.ndarray | None = None) -> pd.DataFrame:
        """Standard errors at the plan's budget, root mean square of a table's cells.

        tables: their positions; None: all, the least accurate first

        Columns: table, "this plan", and the title of each baseline that there is.
        """
        if tables is None:
            tables = least_accurate_first(self.plan)
        tables = np.asarray(tables, dtype=np.int64)
        columns: dict[str, object] = {"table": titles(self.plan.workload, tables)}
        columns[PLAN] = self.plan.standard_errors[tables]
        for row in self.there:
            assert row.variances is not None
            with np.errstate(over="ignore"):
                errors = np.exp(row.variances.mean[tables] / 2)
                columns[row.baseline.title] = errors * self.plan.workload.units[tables]
        return pd.DataFrame(columns)

    @property
    def sentences(self) -> list[str]:
        """What it means: noise in every cell, the nearest plainer one, bounds, Laplace noise."""
        said = []
        there = {row.baseline.name: row for row in self.there}
        cells = there["cells"]
        said.append(self._sentence(cells))
        nearest = self.there[-1]
        if nearest is not cells:
            said.append("Of the others, the nearest is " + self._nearest(nearest))
        said.append(self.bound_sentence)
        if self.laplace_sentence:
            said.append(self.laplace_sentence)
        return said

    def _sentence(self, row: BaselineError) -> str:
        title = capitalised(row.baseline.title)
        if row.log_times < math.log(_SAME):
            return f"{title} would do as well as this plan, by its objective."
        return (
            f"{title} would need {row.budget_text} the privacy cost (ρ) for what this plan reaches "
            "by its objective."
        )

    def _nearest(self, row: BaselineError) -> str:
        title, source = row.baseline.title, row.baseline.source
        if row.log_times < math.log(_SAME):
            return f"{title} ({source}), which does as well here."
        return f"{title} ({source}), at {row.budget_text} the privacy cost."

    # ---- what no mechanism can go below

    @cached_property
    def least_share(self) -> float:
        """No Gaussian mechanism reaches the plan's loss with a smaller share of its budget.

        NaN where the objective is no norm of the variances, of which no such share follows.
        """
        plan = self.plan
        if not _is_norm(plan):
            return math.nan
        if plan.workload.is_marginals:
            return min(plan.certificate.lower_bound / plan.loss_value, 1.0)
        of_tables = _at_budget(_BOUND, plan).times_budget
        return min(max(of_tables, self._share_of_all or 0.0), 1.0)

    @cached_property
    def _share_of_all(self) -> float | None:
        """The same by the bound for all tables together; None where it would take long."""
        plan, certificate = self.plan, self.plan.certificate
        weights = plan.loss.table_weights(plan.workload)
        power = power_of(plan.loss)
        if np.isinf(power):
            # A largest variance is at least any mean of the tables' mean variances.
            slopes = certificate.shadow_prices
        else:  # of the norm: Σ slope · weighted variance is at most the norm, for any variances
            weighted = weights * plan.mean_variances
            slopes = (weighted / p_norm(weighted, power)) ** (power - 1)
        weights = weights * slopes
        root = partial(gaussian_bound, plan.workload, plan.closure, weights)
        by_plan = partial(
            plan_bound, plan.workload, plan.closure, plan.sigma_squared.floats, weights
        )
        in_turn = [root, by_plan]
        if has_mixed_bases(plan.workload, plan.closure):
            # There the plan's is nearly as high, and much sooner found where the root takes long.
            in_turn = [partial(root, most_work=LITTLE_WORK), by_plan, root]
        bound = next((bound for ask in in_turn if (bound := ask()) is not None), None)
        if bound is None:
            return None
        return bound / record_cost(plan.budget) / plan.loss_value

    @property
    def bound_sentence(self) -> str:
        """How near the plan is to what no Gaussian mechanism can go below."""
        share = self.least_share
        if math.isnan(share):
            return self.plan.proven
        if share > 1 / _SAME:
            return "No Gaussian mechanism, whatever it measures, does better by more than 0.5 %."
        less = f"{rounded(100 * (1 - share), 2, 'up')} %"
        if len(self.plan.workload) == 1 or self.plan.workload.is_marginals or self._share_of_all:
            return (
                f"No Gaussian mechanism, whatever it measures, could save more than {less} of the "
                "privacy cost."
            )
        return (
            "For several tables of ranges, prefix sums or groups together only a weak bound is "
            f"known for all Gaussian mechanisms: none could save more than {less} of the privacy "
            f"cost. {self.plan.proven}"
        )

    # ---- Laplace noise

    @cached_property
    def laplace_epsilon(self) -> float:
        """ε at which the best of those with Laplace noise reaches the plan's loss, as pure ε-DP."""
        best = min(row.log_times for row in self.laplace if row.variances is not None)
        return math.exp(best / 2) if best < 1400 else math.inf

    @property
    def laplace_sentence(self) -> str:
        """The cost under pure differential privacy; "" where it is beyond all numbers."""
        if not math.isfinite(self.laplace_epsilon):
            return ""
        rows = [row for row in self.laplace if row.variances is not None]
        best = min(rows, key=lambda row: row.log_times)
        return (
            "With Laplace noise, which gives pure ε-differential privacy, "
            f"{best.baseline.title} ({best.baseline.source}) would need "
            f"ε = {rounded(self.laplace_epsilon, 3, 'up')} for the same."
        )


_BOUND = SingularValues("bound", "what no Gaussian mechanism can go below", "Li, Miklau 2013")


def compare(plan: Plan | PartPlan, *, on_progress: Progress = no_progress) -> Comparison:
    """Compare a plan's errors with those of plainer mechanisms. Reads no record.

    All from formulas, at the plan's privacy cost and by its objective: noise in every cell, the
    tables themselves, hierarchies, wavelets, Fourier coefficients, chosen marginals, and the best
    strategies of HDMM (docs/mathematics.md §16).

    Args:
        plan: A plan with tables.
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the comparison.

    Raises:
        PlanError: For a plan of another kind, or one whose loss cannot be computed.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> best = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> compared = rp.compare(best).frame().set_index("name")
        >>> round(float(compared["times_budget"]["cells"]), 1)
        29.2
    """
    tables: TablePlan | None = plan.part("tables")
    if tables is None:
        raise PlanError(
            "What is compared with plainer mechanisms is the accuracy of a plan of tables, which "
            f"is known beforehand; got {plan.kind_text}. Give a plan of `rpexplore plan` that is "
            "not adaptive."
        )
    if not tables.loss.is_available:
        raise PlanError(
            "The plan's objective is an expression that this file does not hold; make the plan "
            "again to compare it."
        )
    if tables.closure.has_own_costs:
        raise PlanError(
            "Plainer mechanisms are compared where neighbours add or remove records of any kind, "
            "whose cost is known for all of them; plan for such neighbours to compare."
        )
    n_all = len(BASELINES) + len(LAPLACE_BASELINES)
    rows = []
    for done, baseline in enumerate((*BASELINES, *LAPLACE_BASELINES)):
        on_progress(f"Comparing with {baseline.title}", done / n_all)
        at_one = baseline in LAPLACE_BASELINES
        rows.append(_at_budget(baseline, tables, at_one=at_one))
    return Comparison(tables, tuple(rows[: len(BASELINES)]), tuple(rows[len(BASELINES) :]))


def _at_budget(baseline: Baseline, plan: TablePlan, *, at_one: bool = False) -> BaselineError:
    """A baseline at the plan's budget; or, with Laplace noise, at ε = 1.

    None is stated outside its bounds, whatever went wrong in computing it: no mechanism has a table
    more accurate than the singular values allow, Laplace noise least of all.
    """
    try:
        found = baseline.variances(plan.workload, plan.closure, plan.loss)
    except UnsuitableError as error:
        return BaselineError(baseline, None, math.nan, str(error))
    least = _BOUND.variances(plan.workload, plan.closure, plan.loss).mean - BOUND_TOLERANCE
    # NaN is not within bounds either.
    if not (np.all(found.mean >= least) and np.all(found.largest >= least)):
        return BaselineError(baseline, None, math.nan, "only where its errors can be computed.")
    # Laplace noise of scale 1 has the variance 2.
    shift = math.log(2) if at_one else -math.log(record_cost(plan.budget))
    variances = LogVariances(found.mean + shift, found.largest + shift)
    return BaselineError(
        baseline,
        variances,
        variances.ratio(
            plan.loss,
            plan.workload,
            plan.loss_value,
            plan.loss.caps(plan.workload, plan.certificate.limit),
        ),
    )


def _is_norm(plan: TablePlan) -> bool:
    """Whether the plan's loss is inversely proportional to the privacy cost."""
    try:
        power_of(plan.loss)
    except UnsuitableError:
        return False
    return True


def describe_times(log_times: float) -> str:
    """A factor by its natural logarithm: "1.5 times", "about 10^23 times"."""
    if log_times < math.log(_LARGEST):
        times = math.exp(log_times)
        if times < 1000:
            return f"{rounded(times, 3)} times"
        return f"{describe_count(round(times))} times"
    return f"about 10^{math.floor(log_times / math.log(10))} times"


def describe_missing(comparison: Comparison) -> str:
    """Which baselines there are not, and why, for below a table; "" if there are all."""
    by_reason: dict[str, list[str]] = {}
    for row in comparison.missing:
        by_reason.setdefault(row.reason, []).append(row.baseline.title)
    return " ".join(
        f"{capitalised(joined(given))}: {reason}" for reason, given in by_reason.items()
    )
