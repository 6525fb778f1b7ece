# The public names, and where they are: read by type checkers, and by __init__.py as it runs.

from rpexplore import errors as errors
from rpexplore.analysis.baselines import compare as compare
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
from rpexplore.errors import RpexploreError as RpexploreError
from rpexplore.export.bundle import bundle as bundle
from rpexplore.export.report.report import report as report
from rpexplore.planning.approval import Approval as Approval
from rpexplore.planning.approving import approve as approve
from rpexplore.planning.areas.area_workload import AreaWorkload as AreaWorkload
from rpexplore.planning.certificate import Certificate as Certificate
from rpexplore.planning.losses.base import MaxVariance as MaxVariance
from rpexplore.planning.losses.base import SumOfVariances as SumOfVariances
from rpexplore.planning.losses.constrained import MaxWithinTargets as MaxWithinTargets
from rpexplore.planning.losses.constrained import SumWithBoundedMax as SumWithBoundedMax
from rpexplore.planning.losses.constrained import SumWithinTargets as SumWithinTargets
from rpexplore.planning.losses.custom import CustomLoss as CustomLoss
from rpexplore.planning.losses.p_norm import PNorm as PNorm
from rpexplore.planning.minimum_budget import minimum_budget as minimum_budget
from rpexplore.planning.plan import Plan as Plan
from rpexplore.planning.planner import optimum as optimum
from rpexplore.planning.request import Request as Request
from rpexplore.planning.request import Rounds as Rounds
from rpexplore.planning.request import plan as plan
from rpexplore.planning.verification import verify as verify
from rpexplore.postprocessing.areas.area_counts import whole_area_counts as whole_area_counts
from rpexplore.postprocessing.areas.released_sums import sums_of_areas as sums_of_areas
from rpexplore.postprocessing.combination import combine as combine
from rpexplore.postprocessing.dependence import weights_from_release as weights_from_release
from rpexplore.postprocessing.formats.export import Imprint as Imprint
from rpexplore.postprocessing.formats.publishing import publish as publish
from rpexplore.postprocessing.processed_folder import postprocess as postprocess
from rpexplore.postprocessing.rehearsal.smooth_rehearsal import (
    rehearse_smooth_tables as rehearse_smooth_tables,
)
from rpexplore.postprocessing.results import load_results as load_results
from rpexplore.postprocessing.synthetic.records import SyntheticRecords as SyntheticRecords
from rpexplore.postprocessing.synthetic.records_folder import synthesize as synthesize
from rpexplore.privacy.budget import Budget as Budget
from rpexplore.queries.query_list import QueryList as QueryList
from rpexplore.releases.approval import ApprovalDemand as ApprovalDemand
from rpexplore.releases.finished_release import Release as Release
from rpexplore.releases.ledger.ledger import Ledger as Ledger
from rpexplore.releases.release import dry_run as dry_run
from rpexplore.releases.release import release as release
from rpexplore.releases.release import resume as resume
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
