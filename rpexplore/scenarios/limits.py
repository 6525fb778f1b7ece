"""What a scenario may ask of a shared server."""

from rpexplore.common.formatting import describe_count
from rpexplore.common.limits import Limits
from rpexplore.errors import LimitError, WorkloadError
from rpexplore.scenarios.scenario import Scenario

_FEWER_TABLES = "ask for tables of fewer attributes, or for fewer of them"
_ASKED = {  # what is counted, and what to do where it is too much, by the names of the limits
    "attributes": ("attributes in the codebook", "leave some out"),
    "categories": (
        "categories of all attributes together",
        "group the values of the largest attributes",
    ),
    "areas": ("areas", "leave out the lowest level"),
    "tables": ("tables", _FEWER_TABLES),
    "cells": ("cells of all tables together", _FEWER_TABLES),
}


def check_limits(scenario: Scenario, limits: Limits) -> None:
    """Raise `LimitError` for a scenario that is too large for a server with these limits.

    Tables that cannot be listed are refused where they are planned.
    """
    domain = scenario.domain
    counts = {"attributes": len(domain), "categories": int(domain.sizes.sum())}
    if scenario.areas is not None:
        counts["areas"] = scenario.areas.areas.n_areas
    _check(counts, limits)  # before the tables of a huge codebook are listed
    if len(domain):
        try:
            workload = scenario.workload
        except WorkloadError:
            return
        _check({"tables": len(workload), "cells": int(workload.cells.sum())}, limits)


def _check(counts: dict[str, int], limits: Limits) -> None:
    for limit, count in counts.items():
        most = getattr(limits, limit)
        what, remedy = _ASKED[limit]
        if count > most:
            raise LimitError(
                f"There would be {describe_count(count)} {what}, and this server plans for at most "
                f"{describe_count(most)}; {remedy}, or plan with your own app (rpexplore app).",
                limit=limit,
            )
