"""Plans of tables and plans of queries: what the verbs that take either need to know of each."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import Verification
from rpexplore.queries import plan_file as query_plan_file
from rpexplore.queries.plan import QueryPlan
from rpexplore.releases.ledger import AnyPlan

_FORMAT = re.compile(r'\s*\{\s*"format"\s*:\s*"([^"]*)"')


def load_plan(path: Path) -> AnyPlan:
    """The plan of a file, of the kind that it says it is; `PlanError` if it is neither."""
    return (QueryPlan if says_queries(path) else Plan).load(path)


def says_queries(path: Path) -> bool:
    """Whether a file says that it is a plan of queries; not if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        found = _FORMAT.match(text)  # where the library writes it, ahead of all the rest
        said = json.loads(text).get("format") if found is None else found[1]
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
    return said == query_plan_file.FORMAT


def domain_of(plan: AnyPlan) -> Domain:
    return plan.queries.domain if isinstance(plan, QueryPlan) else plan.workload.domain


def verification_of(plan: AnyPlan) -> Verification:
    from rpexplore.planning.verification import verify
    from rpexplore.queries.verification import verify_queries

    return verify_queries(plan) if isinstance(plan, QueryPlan) else verify(plan)


def run_of(plan: AnyPlan) -> Callable[..., Any]:
    """What releases by the plan: a function (data, output, **options)."""
    from rpexplore.releases import query_release
    from rpexplore.releases import table_release as release

    if isinstance(plan, QueryPlan):
        return lambda *where, **more: query_release.release_queries(plan, *where, **more)
    return lambda *where, **more: release.release(plan, *where, **more)


def dry_run_of(plan: AnyPlan) -> Callable[..., Any]:
    """What does the same up to the booking: a function (data, output, **options)."""
    from rpexplore.releases import query_release
    from rpexplore.releases import table_release as release

    if isinstance(plan, QueryPlan):
        return lambda *where, **more: query_release.dry_run_queries(plan, *where, **more)
    return lambda *where, **more: release.dry_run(plan, *where, **more)


def contents_facts(plan: AnyPlan) -> dict[str, int]:
    """How much a release by the plan holds, in plain values."""
    if isinstance(plan, QueryPlan):
        return {"query_count": len(plan.queries)}
    return {"table_count": len(plan.workload)}


def contents_in_words(plan: AnyPlan) -> str:
    """ "7 noisy tables are", "1 noisy answer is"."""
    if isinstance(plan, QueryPlan):
        count, noun = len(plan.queries), "noisy answer"
    else:
        count, noun = len(plan.workload), "noisy table"
    return f"{plural(count, noun)} {'is' if count == 1 else 'are'}"
