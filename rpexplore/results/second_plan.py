"""Weights of a second plan from what a first release shows: public figures, nothing is spent.

docs/mathematics.md §6.10. Pairs that the smooth tables of the first release show to depend get
more of the second plan's budget. Both plans are ordinary ones, and what they spend adds up.
"""

from pathlib import Path

import numpy as np

from rpexplore.common.processes import Progress, no_progress
from rpexplore.domain.domain import Domain, difference_of_cells, subsets
from rpexplore.errors import WorkloadError
from rpexplore.estimation.smooth_tables import smooth_residuals
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.privacy.budget import Budget
from rpexplore.releases.items import PartReader
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import load_unbiased
from rpexplore.results.estimates.shrinkage import measured_residuals
from rpexplore.results.unbiased import Estimates
from rpexplore.workload.smooth_weights import PairDependence, SmoothWeights


def weights_from_release(
    release: PartReader | str | Path,
    domain: Domain,
    budget: Budget,
    *,
    on_progress: Progress = no_progress,
) -> SmoothWeights:
    """Weights of a second plan for smooth tables, from what a first release shows.

    Those of `SmoothWeights` for the released number of records, pairs of attributes times how far
    they are from independence. Looks at no record and spends nothing; the second release spends its
    own budget, and both add up.

    Args:
        release: The first release or combined tables, or their folder.
        domain: The codebook of the second plan, which must be that of the release.
        budget: Of the second plan.

    Raises:
        ReleaseError: If the folder holds neither a release of tables nor combined ones.
        WorkloadError: If the codebook is another one, or the release has no pair of attributes.

    Example:
        weights = weights_from_release("first", domain, budget)
        workload = weights.weighted(rp.Workload.all_up_to(domain, 3))
        second = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)
    """
    if isinstance(release, str | Path):
        on_progress("Reading the release", 0.0)
        release = load_unbiased(release)
    tables: TableRelease | Estimates = release.unbiased_tables()
    if difference := difference_of_cells(tables.domain, domain):
        raise WorkloadError(
            f"The release and the codebook {difference}; plan with the codebook of the release, "
            "as only then both releases can be combined."
        )
    estimates = Estimates.of(tables)
    # Pairs and what they are made of: larger tables change them next to nothing.
    measured = measured_residuals(estimates, largest_order=2)
    pairs = PairDependence(
        tuple(source.sha256 for source in estimates.sources),
        domain.names,
        tuple(
            (first, second, float(f"{distance:.3g}"))
            for (first, second), distance in pair_distances(measured, on_progress).items()
            if second < estimates.domain.n_columns  # the codebook's attributes, not their levels
        ),
    )
    records = max(round(measured.total), 1)
    return SmoothWeights(float(budget.record_privacy_cost) / 2, records, pairs)


def pair_distances(
    measured: MeasuredResiduals, on_progress: Progress = no_progress
) -> dict[tuple[int, int], float]:
    """The L1 distance of each smooth pair from the product of its margins, a share of records."""
    smooth = smooth_residuals(measured, on_progress=on_progress).contributions
    distances = {}
    for first, second in measured.of_order(2):
        within = {subset: smooth[subset] for subset in subsets((first, second))}
        table = marginal((first, second), measured.sizes, within, measured.strategies)
        independent = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        distances[first, second] = float(np.abs(table - independent).sum() / table.sum())
    return distances
