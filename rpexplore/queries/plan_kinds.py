"""The kinds of plans there are: every plan file names one, and each has its own checks."""

import re
from collections.abc import Callable
from pathlib import Path

from rpexplore.common.formatting import joined
from rpexplore.common.json_fields import FieldError, loads, refusing
from rpexplore.errors import PlanError
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.adaptive.adaptive_verification import adaptive_checks
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_verification import area_checks
from rpexplore.planning.release_plan import ReleasePlan, plan_text
from rpexplore.planning.table_plan import TablePlan
from rpexplore.planning.verification import Check, Verification, table_checks
from rpexplore.queries.plan import QueryPlan
from rpexplore.queries.verification import query_checks

# All kinds, and how the claims of one are checked: a new kind needs a line here.
PLAN_KINDS: dict[type[ReleasePlan], Callable[..., tuple[Check, ...]]] = {
    TablePlan: table_checks,
    QueryPlan: query_checks,
    AreaPlan: area_checks,
    AdaptivePlan: adaptive_checks,
}

# The format stands ahead of all the rest where the library wrote the file.
_FORMAT_AT_START = re.compile(r'\s*\{\s*"format"\s*:\s*"([^"]*)"')
_FORMAT_OF_PLANS = re.compile(
    rb'"format"\s*:\s*"(%s)"' % "|".join(kind.file_format for kind in PLAN_KINDS).encode()
)


def load_plan(path: str | Path, *, canonical: bool = True) -> ReleasePlan:
    """The plan of a file, of the kind that the file names.

    canonical: whether to refuse a file that is not byte for byte what `save` writes

    Raises `PlanError` if it is missing or not a usable plan of any kind.
    """
    text, name = plan_text(path), Path(path).name
    if match := _FORMAT_AT_START.match(text):
        file_format = match[1]
    else:
        with refusing(PlanError, f"{name} is not a plan file"):
            content = loads(text)
        file_format = content.get("format") if isinstance(content, dict) else None
    for kind in PLAN_KINDS:
        if kind.file_format == file_format:
            return kind.parse(text, name, canonical=canonical, folder=Path(path).parent)
    formats = joined([f'"{kind.file_format}"' for kind in PLAN_KINDS], " or ")
    raise PlanError(f'{name} is not a plan file: "format" must be {formats}.')


def is_plan_file(path: str | Path) -> bool:
    """Whether a file is a plan of any kind, or names itself one and is broken JSON.

    Raises `OSError` if it cannot be read.
    """
    content = Path(path).read_bytes()
    try:
        fields = loads(content.decode())
    except (FieldError, UnicodeDecodeError):
        return _FORMAT_OF_PLANS.search(content) is not None
    formats = [kind.file_format for kind in PLAN_KINDS]
    return isinstance(fields, dict) and fields.get("format") in formats


def verify(plan: ReleasePlan, *, strategies: bool = True) -> Verification:
    """Recompute privacy cost, every variance and the certificate of a plan of whatever kind.

    Costs are recomputed in exact arithmetic. In floating point are compared: variances that depend
    on the inverse of a matrix (to 8 digits), and the certificate's bound, lowered by more than its
    rounding error.

    Args:
        strategies: Bound what other matrices could gain as well, where attributes of tables are
            measured through matrices. It takes as long as the plan did, and nothing of the
            guarantee depends on it.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_of_order(rp.Domain.from_sizes({"age": 100, "sex": 2}), 1)
        >>> verify(rp.plan(tables, loss=rp.PNorm(p=2), budget=rp.Budget(rho="0.5"))).holds
        True
    """
    return Verification(PLAN_KINDS[type(plan)](plan, strategies=strategies), plan.guarantee)
