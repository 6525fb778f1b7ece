"""What a scenario may ask of a shared server."""

from rpexplore.common.formatting import describe_count
from rpexplore.common.limits import Limits
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario


def check_limits(scenario: Scenario, limits: Limits) -> None:
    """Raise `WorkloadError` for a scenario that is too large for a server with these limits.

    Tables that cannot be listed are refused where they are planned.
    """
    domain = scenario.domain
    _check("attributes in the codebook", len(domain), limits.attributes, "leave some out")
    _check(
        "categories of all attributes together",
        int(domain.sizes.sum()),
        limits.categories,
        "group the values of the largest attributes",
    )
    if scenario.areas is not None:
        _check("areas", scenario.areas.areas.n_areas, limits.areas, "leave out the lowest level")
    if len(domain) == 0:
        return
    try:
        workload = scenario.workload
    except WorkloadError:
        return
    remedy = "ask for tables of fewer attributes, or for fewer of them"
    _check("tables", len(workload), limits.tables, remedy)
    _check("cells of all tables together", int(sum(workload.exact_cells)), limits.cells, remedy)


def _check(what: str, count: int, most: int, remedy: str) -> None:
    if count > most:
        raise WorkloadError(
            f"There would be {describe_count(count)} {what}, and this server plans for at most "
            f"{describe_count(most)}; {remedy}, or plan with your own app (rpexplore app)."
        )
