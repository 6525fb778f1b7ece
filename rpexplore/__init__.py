"""Plan, inspect and run the release of noisy tables under differential privacy."""

from importlib.metadata import version

from rpexplore.domain.attribute import Attribute, Bins, Categories, Integers
from rpexplore.domain.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.planning.losses.base import MaxVariance, SumOfVariances
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
)
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.losses.p_norm import PNorm
from rpexplore.planning.minimum_budget import MinimumBudget, minimum_budget
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import plan
from rpexplore.planning.verification import verify
from rpexplore.privacy.budget import Budget
from rpexplore.queries.plan import QueryPlan
from rpexplore.queries.planner import query_optimum, query_plan
from rpexplore.queries.query_list import QueryList
from rpexplore.workload.bases import Hierarchy, Identity, Prefix, Ranges, Windows
from rpexplore.workload.custom_basis import CustomBasis
from rpexplore.workload.custom_basis_file import read_custom_basis
from rpexplore.workload.targets import Target, parse_target
from rpexplore.workload.workload import Workload

__version__ = version("rpexplore")

__all__ = [
    "Attribute",
    "Bins",
    "Budget",
    "Categories",
    "CustomBasis",
    "CustomLoss",
    "Domain",
    "Hierarchy",
    "Identity",
    "Integers",
    "MaxVariance",
    "MaxWithinTargets",
    "MinimumBudget",
    "PNorm",
    "Plan",
    "Prefix",
    "QueryList",
    "QueryPlan",
    "Ranges",
    "RpexploreError",
    "SumOfVariances",
    "SumWithBoundedMax",
    "SumWithinTargets",
    "Target",
    "Windows",
    "Workload",
    "minimum_budget",
    "parse_target",
    "plan",
    "query_optimum",
    "query_plan",
    "read_custom_basis",
    "verify",
]
