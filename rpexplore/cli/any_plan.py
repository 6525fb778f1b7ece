"""Which release a plan of tables, or of queries, is run by."""

from collections.abc import Callable
from typing import Any

from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.queries.plan import QueryPlan
from rpexplore.releases import query_release, table_release


def run_of(plan: ReleasePlan) -> Callable[..., Any]:
    """What releases by the plan: a function (data, output, **options)."""
    if isinstance(plan, QueryPlan):
        return lambda *where, **more: query_release.release_queries(plan, *where, **more)
    assert isinstance(plan, Plan)
    return lambda *where, **more: table_release.release(plan, *where, **more)


def dry_run_of(plan: ReleasePlan) -> Callable[..., Any]:
    """What does the same up to the booking: a function (data, output, **options)."""
    if isinstance(plan, QueryPlan):
        return lambda *where, **more: query_release.dry_run_queries(plan, *where, **more)
    assert isinstance(plan, Plan)
    return lambda *where, **more: table_release.dry_run(plan, *where, **more)
