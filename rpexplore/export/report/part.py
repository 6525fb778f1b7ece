"""What a report is given beside a plan, and what it tells of one part of the plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts
from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
from rpexplore.export.report.section import Section
from rpexplore.scenarios.workload_request import WorkloadRequest

FrontRow = tuple[str, ...]  # a term of the first page, and what there is to say of it


@dataclass(frozen=True)
class Given:
    """What a report is given beside the plan; fields as of `report`."""

    record_noun: str = "records"
    expected: ExpectedCounts | None = None
    cv_limit: float = CV_LIMIT
    request: WorkloadRequest | None = None
    rehearsal: SmoothRehearsal | None = None
    area_totals: Mapping[int, float] | None = None


@dataclass(frozen=True)
class PartReport:
    """What a report tells of a part of a plan.

    of_kind   behind what is released, in the subtitle: " of 341 areas"
    front     terms of the first page, without privacy, which is that of the plan
    sections  about the part alone
    """

    front: Sequence[FrontRow]
    sections: Sequence[Section]
    of_kind: str = ""
