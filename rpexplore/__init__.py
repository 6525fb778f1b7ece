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
    from rpexplore.releases.query_folder import QueryRelease as QueryRelease
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

# The module of every public name: the imports above, for those who run the program.
_MODULES = {
    "Answer": "releases.marginal_estimate",
    "Attribute": "domain.attribute",
    "Bins": "domain.attribute",
    "Budget": "privacy.budget",
    "Categories": "domain.attribute",
    "Certificate": "planning.certificate",
    "CustomBasis": "workload.bases",
    "CustomLoss": "planning.losses.custom",
    "DatabaseSource": "data.databases.source",
    "Domain": "domain.domain",
    "Estimates": "postprocessing.estimates",
    "FrameSource": "data.frames",
    "Hierarchy": "workload.bases",
    "Identity": "workload.bases",
    "Integers": "domain.attribute",
    "Ledger": "releases.ledger",
    "MaxVariance": "planning.losses.base",
    "MaxWithinTargets": "planning.losses.constrained",
    "MinimumBudget": "planning.minimum_budget",
    "Optimum": "planning.optimum",
    "PNorm": "planning.losses.p_norm",
    "PersonRule": "data.source",
    "Plan": "planning.plan",
    "Prefix": "workload.bases",
    "ProcessedTables": "postprocessing.processed_tables",
    "QueryList": "queries.query_list",
    "QueryPlan": "queries.plan",
    "QueryRelease": "releases.query_folder",
    "Ranges": "workload.bases",
    "Release": "releases.table_folder",
    "RpexploreError": "errors",
    "Scenario": "scenarios.scenario",
    "SumOfVariances": "planning.losses.base",
    "SumWithBoundedMax": "planning.losses.constrained",
    "SumWithinTargets": "planning.losses.constrained",
    "Target": "workload.targets",
    "Verification": "planning.verification",
    "Windows": "workload.bases",
    "Workload": "workload.workload",
    "bundle": "export.bundle",
    "combine": "postprocessing.combination",
    "dry_run": "releases.release",
    "load_plan": "queries.plan_kinds",
    "load_results": "postprocessing.results",
    "minimum_budget": "planning.minimum_budget",
    "optimum": "planning.planner",
    "parse_target": "workload.targets",
    "plan": "planning.planner",
    "postprocess": "postprocessing.processed_folder",
    "query_optimum": "queries.planner",
    "query_plan": "queries.planner",
    "read_custom_basis": "workload.custom_basis_file",
    "release": "releases.release",
    "report": "export.report.report",
    "resume": "releases.release",
    "verify": "planning.verification",
}

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
