# The public names, and where they are: read by type checkers, and by __init__.py as it runs.

from rpexplore import errors as errors
from rpexplore.analysis.usefulness import publishable as publishable
from rpexplore.data.databases.source import DatabaseSource as DatabaseSource
from rpexplore.data.frames import FrameSource as FrameSource
from rpexplore.data.source import PersonRule as PersonRule
from rpexplore.domain.area_codebook import AreaCodebook as AreaCodebook
from rpexplore.domain.area_tree import AreaTree as AreaTree
from rpexplore.domain.attribute import Attribute as Attribute
from rpexplore.domain.attribute import Bins as Bins
from rpexplore.domain.attribute import Categories as Categories
from rpexplore.domain.attribute import Integers as Integers
from rpexplore.domain.domain import Domain as Domain
from rpexplore.domain.expected_counts import ExpectedCounts as ExpectedCounts
from rpexplore.domain.smooth_rehearsal import SmoothRehearsal as SmoothRehearsal
from rpexplore.errors import RpexploreError as RpexploreError
from rpexplore.export.bundle import bundle as bundle
from rpexplore.export.report.report import report as report
from rpexplore.planning.areas.area_minimum_budget import minimum_area_budget as minimum_area_budget
from rpexplore.planning.areas.area_plan import AreaPlan as AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas as plan_areas
from rpexplore.planning.areas.area_workload import AreaWorkload as AreaWorkload
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
from rpexplore.postprocessing.combination import combine as combine
from rpexplore.postprocessing.estimates import Estimates as Estimates
from rpexplore.postprocessing.processed_folder import postprocess as postprocess
from rpexplore.postprocessing.processed_tables import ProcessedTables as ProcessedTables
from rpexplore.postprocessing.rehearsal.smooth_rehearsal import (
    rehearse_smooth_tables as rehearse_smooth_tables,
)
from rpexplore.postprocessing.results import load_results as load_results
from rpexplore.postprocessing.synthetic.records import SyntheticRecords as SyntheticRecords
from rpexplore.postprocessing.synthetic.records_folder import synthesize as synthesize
from rpexplore.privacy.budget import Budget as Budget
from rpexplore.queries.plan import QueryPlan as QueryPlan
from rpexplore.queries.plan_kinds import load_plan as load_plan
from rpexplore.queries.plan_kinds import verify as verify
from rpexplore.queries.planner import query_optimum as query_optimum
from rpexplore.queries.planner import query_plan as query_plan
from rpexplore.queries.query_list import QueryList as QueryList
from rpexplore.releases.areas.area_release import AreaRelease as AreaRelease
from rpexplore.releases.ledger import Ledger as Ledger
from rpexplore.releases.marginal_estimate import Answer as Answer
from rpexplore.releases.query_release import QueryRelease as QueryRelease
from rpexplore.releases.release import dry_run as dry_run
from rpexplore.releases.release import release as release
from rpexplore.releases.release import resume as resume
from rpexplore.releases.table_release import Release as Release
from rpexplore.scenarios.board_notes import BoardNotes as BoardNotes
from rpexplore.scenarios.scenario import Scenario as Scenario
from rpexplore.workload.bases import CustomBasis as CustomBasis
from rpexplore.workload.bases import Hierarchy as Hierarchy
from rpexplore.workload.bases import Identity as Identity
from rpexplore.workload.bases import Prefix as Prefix
from rpexplore.workload.bases import Ranges as Ranges
from rpexplore.workload.bases import Windows as Windows
from rpexplore.workload.custom_basis_file import read_custom_basis as read_custom_basis
from rpexplore.workload.smooth_weights import SmoothWeights as SmoothWeights
from rpexplore.workload.targets import Target as Target
from rpexplore.workload.targets import parse_target as parse_target
from rpexplore.workload.workload import Workload as Workload

__version__: str
