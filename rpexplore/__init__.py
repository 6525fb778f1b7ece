"""Plan, inspect and run the release of noisy tables under differential privacy.

From a codebook to published tables through this module alone: `import rpexplore as rp`. Names are
loaded when they are first used (PEP 562), so that planning loads no code that reads records.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rpexplore import errors as errors
    from rpexplore.data.databases.source import DatabaseSource as DatabaseSource
    from rpexplore.data.frames import FrameSource as FrameSource
    from rpexplore.data.source import PersonRule as PersonRule
    from rpexplore.domain.attribute import Attribute as Attribute
    from rpexplore.domain.attribute import Bins as Bins
    from rpexplore.domain.attribute import Categories as Categories
    from rpexplore.domain.attribute import Integers as Integers
    from rpexplore.domain.domain import Domain as Domain
    from rpexplore.errors import RpexploreError as RpexploreError
    from rpexplore.export.bundle import bundle as bundle
    from rpexplore.export.report.report import report as report
    from rpexplore.planning.certificate import Certificate as Certificate
    from rpexplore.planning.losses.base import MaxVariance as MaxVariance
    from rpexplore.planning.losses.base import SumOfVariances as SumOfVariances
    from rpexplore.planning.losses.constrained import MaxWithinTargets as MaxWithinTargets
    from rpexplore.planning.losses.constrained import SumWithBoundedMax as SumWithBoundedMax
    from rpexplore.planning.losses.constrained import SumWithinTargets as SumWithinTargets
    from rpexplore.planning.losses.custom import CustomLoss as CustomLoss
    from rpexplore.planning.losses.p_norm import PNorm as PNorm
    from rpexplore.planning.minimum_budget import MinimumBudget as MinimumBudget
    from rpexplore.planning.minimum_budget import minimum_budget as minimum_budget
    from rpexplore.planning.optimum import Optimum as Optimum
    from rpexplore.planning.plan import Plan as Plan
    from rpexplore.planning.planner import optimum as optimum
    from rpexplore.planning.planner import plan as plan
    from rpexplore.planning.verification import Verification as Verification
    from rpexplore.planning.verification import verify as verify
    from rpexplore.postprocessing.combination import combine as combine
    from rpexplore.postprocessing.estimates import Estimates as Estimates
    from rpexplore.postprocessing.processed_folder import postprocess as postprocess
    from rpexplore.postprocessing.processed_tables import ProcessedTables as ProcessedTables
    from rpexplore.postprocessing.results import load_results as load_results
    from rpexplore.privacy.budget import Budget as Budget
    from rpexplore.queries.plan import QueryPlan as QueryPlan
    from rpexplore.queries.plan_kinds import load_plan as load_plan
    from rpexplore.queries.planner import query_optimum as query_optimum
    from rpexplore.queries.planner import query_plan as query_plan
    from rpexplore.queries.query_list import QueryList as QueryList
    from rpexplore.releases.ledger import Ledger as Ledger
    from rpexplore.releases.marginal_estimate import Answer as Answer
    from rpexplore.releases.query_release import QueryRelease as QueryRelease
    from rpexplore.releases.release import dry_run as dry_run
    from rpexplore.releases.release import release as release
    from rpexplore.releases.release import resume as resume
    from rpexplore.releases.table_folder import Release as Release
    from rpexplore.scenarios.scenario import Scenario as Scenario
    from rpexplore.workload.bases import CustomBasis as CustomBasis
    from rpexplore.workload.bases import Hierarchy as Hierarchy
    from rpexplore.workload.bases import Identity as Identity
    from rpexplore.workload.bases import Prefix as Prefix
    from rpexplore.workload.bases import Ranges as Ranges
    from rpexplore.workload.bases import Windows as Windows
    from rpexplore.workload.custom_basis_file import read_custom_basis as read_custom_basis
    from rpexplore.workload.targets import Target as Target
    from rpexplore.workload.targets import parse_target as parse_target
    from rpexplore.workload.workload import Workload as Workload

    __version__: str

# Module -> its public names: the imports above, for those who run the program.
_NAMES = {
    "data.databases.source": "DatabaseSource",
    "data.frames": "FrameSource",
    "data.source": "PersonRule",
    "domain.attribute": "Attribute Bins Categories Integers",
    "domain.domain": "Domain",
    "errors": "RpexploreError",
    "export.bundle": "bundle",
    "export.report.report": "report",
    "planning.certificate": "Certificate",
    "planning.losses.base": "MaxVariance SumOfVariances",
    "planning.losses.constrained": "MaxWithinTargets SumWithBoundedMax SumWithinTargets",
    "planning.losses.custom": "CustomLoss",
    "planning.losses.p_norm": "PNorm",
    "planning.minimum_budget": "MinimumBudget minimum_budget",
    "planning.optimum": "Optimum",
    "planning.plan": "Plan",
    "planning.planner": "optimum plan",
    "planning.verification": "Verification verify",
    "postprocessing.combination": "combine",
    "postprocessing.estimates": "Estimates",
    "postprocessing.processed_folder": "postprocess",
    "postprocessing.processed_tables": "ProcessedTables",
    "postprocessing.results": "load_results",
    "privacy.budget": "Budget",
    "queries.plan": "QueryPlan",
    "queries.plan_kinds": "load_plan",
    "queries.planner": "query_optimum query_plan",
    "queries.query_list": "QueryList",
    "releases.ledger": "Ledger",
    "releases.marginal_estimate": "Answer",
    "releases.query_release": "QueryRelease",
    "releases.release": "dry_run release resume",
    "releases.table_folder": "Release",
    "scenarios.scenario": "Scenario",
    "workload.bases": "CustomBasis Hierarchy Identity Prefix Ranges Windows",
    "workload.custom_basis_file": "read_custom_basis",
    "workload.targets": "Target parse_target",
    "workload.workload": "Workload",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", "errors", *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value = version("rpexplore")
    elif name == "errors":
        value = import_module("rpexplore.errors")
    elif name in _MODULES:
        value = getattr(import_module(f"rpexplore.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module 'rpexplore' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
