"""What reports have to know of the kind of a plan, in one place."""

from dataclasses import dataclass
from typing import TypeAlias

from rpexplore.analysis.accuracy import Headline, headline
from rpexplore.analysis.areas.distributions import area_headline, n_tables_below
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.table_plan import TablePlan

ReportedPlan: TypeAlias = TablePlan | AreaPlan | AdaptivePlan

# Where the standard error is below this, the noise's whole steps show in its quantiles.
COARSE = 2.0


@dataclass(frozen=True)
class KindOfPlan:
    """A kind of plan, for sentences that differ between kinds.

    mechanism     its name
    bound_of      what the bound of the certificate holds for
    is_marginals  whether all attributes have their single values
    n_coarse      how many tables have a cell whose noise shows its whole steps
    cells_differ  whether some table's cells differ noticeably in accuracy
    top           the accuracy in a few numbers; None where none is known
    """

    mechanism: str
    is_marginals: bool
    bound_of: str = ""
    n_coarse: int = 0
    cells_differ: bool = False
    top: Headline | None = None
    is_of_areas: bool = False
    is_adaptive: bool = False


def kind_of(plan: ReportedPlan) -> KindOfPlan:
    """The kind of a plan."""
    if isinstance(plan, AdaptivePlan):
        return KindOfPlan("ResidualPlanner in adaptive rounds", True, is_adaptive=True)
    if isinstance(plan, AreaPlan):
        is_marginals = plan.workload.tables.is_marginals
        shared = ", the same in all areas of a level" if plan.uniform else ""
        return KindOfPlan(
            f"ResidualPlanner{_plus(is_marginals)} in every area of a tree",
            is_marginals,
            "every choice of independent Gaussian noise on the residuals of every area"
            f"{shared}{_measured_as_here(is_marginals)}",
            n_tables_below(plan, COARSE),
            not is_marginals,
            area_headline(plan),
            is_of_areas=True,
        )
    is_marginals = plan.workload.is_marginals
    return KindOfPlan(
        f"ResidualPlanner{_plus(is_marginals)}",
        is_marginals,
        f"every choice of Gaussian noise on the residuals{_measured_as_here(is_marginals)}",
        int((plan.table_variances.standard_errors("smallest") < COARSE).sum()),
        cells_differ(plan.table_variances),
        headline(plan),
    )


def _plus(is_marginals: bool) -> str:
    return "" if is_marginals else "+"


def _measured_as_here(is_marginals: bool) -> str:
    return "" if is_marginals else ", with attributes measured as they are here"
