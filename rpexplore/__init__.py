"""Plan, inspect and run the release of noisy tables under differential privacy."""

from importlib.metadata import version

from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.basis import Hierarchy, Identity, Prefix, Ranges, Windows
from rpexplore.basis_file import own_from_bytes
from rpexplore.budget import Budget
from rpexplore.domain import Domain
from rpexplore.errors import RpexploreError
from rpexplore.losses import MaxVariance, SumOfVariances
from rpexplore.own_questions import Own
from rpexplore.plan import Plan
from rpexplore.planner import plan
from rpexplore.verification import verify
from rpexplore.workload import Workload

__version__ = version("rpexplore")

__all__ = [
    "Attribute",
    "Bins",
    "Budget",
    "Categories",
    "Domain",
    "Hierarchy",
    "Identity",
    "Integers",
    "MaxVariance",
    "Own",
    "Plan",
    "Prefix",
    "Ranges",
    "RpexploreError",
    "SumOfVariances",
    "Windows",
    "Workload",
    "own_from_bytes",
    "plan",
    "verify",
]
