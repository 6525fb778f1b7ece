"""One-way tables of a release as public tables, with their errors: what a pilot is made for.

Noisy counts of a pilot are estimates, negative ones among them. As public tables they are the
posterior means of docs/mathematics.md §13.1, with the standard deviations that are left: what a
forecast draws its populations by.
"""

import math
from pathlib import Path

import numpy as np

from rpexplore.domain.domain import Domain
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.errors import ReleaseError
from rpexplore.estimation.one_way import one_way
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.planning.plan import Plan, load_plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.atomic_folder import unfinished_folder
from rpexplore.releases.finished_release import Release
from rpexplore.releases.measurement_file import PLAN
from rpexplore.releases.pilot import pilot_folder
from rpexplore.results.unbiased import Estimates

# Of the prior of §13.1, others than for smooth tables (docs/mathematics.md §21). Smaller ones are
# learned from large counts, and put small counts nearer to 0 than those of records are.
_SHAPES = (0.4, 0.6, 1.0, 1.6, 3.0, 8.0)
_LEAST_ERROR = 1e-9  # in records; of a count that is certain


def pilot_tables(folder: str | Path) -> tuple[PublicTable, ...]:
    """The one-way tables of a release, as public tables with errors.

    Args:
        folder: Of a release of tables: a pilot's, or a whole one.

    Returns:
        A table of the total, and one for each attribute with several values; counts are above 0 and
        sum to the released total in whole records. Errors are standard errors in records, those
        of attributes given the total.

    Raises:
        ReleaseError: If there is no release of tables, or a file of it was changed.
    """
    folder = Path(folder)
    estimates = Estimates.of(Release.load(folder))
    domain, name = estimates.domain, folder.resolve().name
    one_way_only = {
        subset: np.asarray(values)
        for subset, values in estimates.contributions.items()
        if len(subset) <= 1
    }
    variances = {subset: float(estimates.variances[subset]) for subset in one_way_only}
    return public_tables(
        MeasuredResiduals(one_way_only, variances, domain.sizes, estimates.strategies), domain, name
    )


def public_tables(
    measured: MeasuredResiduals, domain: Domain, name: str
) -> tuple[PublicTable, ...]:
    """`pilot_tables` of what a release of this name has measured for its one-way tables."""
    total = float(round(measured.total))
    of_total = PublicTable(
        ExpectedCounts.of_total(total),
        f"{name} in all",
        errors=ExpectedCounts.of_total(math.sqrt(measured.variances[()])),
    )
    if not measured.of_order(1):
        return (of_total,)
    found = one_way(measured, _SHAPES)
    of_attributes = (
        PublicTable(
            _counts(domain, attribute, found.tables[attribute] * (total / measured.total)),
            f"{name} by {domain.names[attribute]}",
            errors=_counts(
                domain,
                attribute,
                np.sqrt(np.maximum(found.variances[attribute], _LEAST_ERROR**2)),
            ),
        )
        for attribute in found.tables
    )
    return (of_total, *of_attributes)


def pilot_known(plan: TablePlan, folder: str | Path) -> PublicTables:
    """What the pilot of a plan, released in a folder, tells of the records: `pilot_tables`."""
    return PublicTables(plan.domain.of_records, pilot_tables(folder))


def planned_run(path: str | Path) -> tuple[Plan, Path]:
    """The plan of a run, and the release whose figures there are of it so far.

    Args:
        path: The folder of a run whose pilot is released, of this release, or of a whole one.

    Raises:
        ReleaseError: If there is none, or the whole plan is not beside its pilot.
    """
    path = Path(path)
    if not path.exists() and pilot_folder(path).is_dir():
        path = pilot_folder(path)
    plan = Release.load(path).plan
    tables = plan.part("tables")
    if tables is None or not tables.pilot_of:
        return plan, path
    output = path.with_name(path.name.removesuffix("-pilot"))
    for folder in (output, unfinished_folder(output)):
        if folder != path and (folder / PLAN).is_file():
            whole = load_plan(folder / PLAN)
            if whole.booked_sha256 == tables.pilot_of:
                return whole, path
    raise ReleaseError(
        f"The plan that {str(path)!r} is the pilot of is not beside it; name the plan, with this "
        f"folder as a public table: rpexplore forecast PLAN --public {path}."
    )


def _counts(domain: Domain, attribute: int, values: np.ndarray) -> ExpectedCounts:
    own = domain.attributes[attribute]
    return ExpectedCounts(
        (own.name,), (tuple(own.stored_values(own.size)),), tuple(values.tolist())
    )
