"""Release of queries: a query plan and records in, noisy answers out; spends the budget once."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rpexplore.common.exact_numbers import Exact
from rpexplore.data.counts import Counts
from rpexplore.data.files.source import AnySource, source_of
from rpexplore.data.source import Fingerprint, PersonRule
from rpexplore.errors import ReleaseError
from rpexplore.planning.verification import verify
from rpexplore.queries.plan import QueryPlan
from rpexplore.releases.atomic_folder import check_new, check_room
from rpexplore.releases.charged_run import ChargedRun, DryRun, Progress, refuse_broken
from rpexplore.releases.discrete_gaussian import discrete_gaussian
from rpexplore.releases.query_folder import QueryRelease, write_query_release

__all__ = ["QueryRelease", "dry_run_queries", "release_queries"]

# Share of the whole run's time after which it is booked, for the progress bar: the rest is quick.
BOOKED = 0.9
_MOST_MEASURED = 2**61


def release_queries(
    plan: QueryPlan,
    data: AnySource,
    output: str | Path,
    *,
    other: Mapping[str, str] | None = None,
    persons: PersonRule | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    checked: Fingerprint | None = None,
    progress: Progress = lambda doing, share: None,
) -> QueryRelease:
    """Run a query plan on records and write the release folder `output`, which must not exist yet.

    Arguments, promises and errors are those of `release.release`: what can be refused is refused
    before the run is booked, it is booked before any noise is drawn, and a run that stops after
    that stays charged; what there is to write is written too quickly to be finished later. Only
    the attributes that the queries are about are read.
    """
    output, other = Path(output), other or {}
    charge = _charge(plan, data, output, ledger, cap_rho, progress)
    counts = _all_counted(plan, charge, other, persons, checked, progress)
    with charge.folder() as folder:
        progress("Booking the run in the ledger", BOOKED)
        charge.book()
        progress("Measuring with noise", BOOKED)
        measured = _measured(plan, counts)
        answers = _decoded(plan, measured)
        words = persons.words if persons else ""
        manifest = write_query_release(folder, plan, measured, answers, other, words)
    progress("Finished", 1.0)
    return QueryRelease(output, plan, manifest)


def dry_run_queries(
    plan: QueryPlan,
    data: AnySource,
    output: str | Path,
    *,
    other: Mapping[str, str] | None = None,
    persons: PersonRule | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    progress: Progress = lambda doing, share: None,
) -> DryRun:
    """Do everything that `release_queries` does up to the booking: check and count, spend nothing.

    Arguments and errors are those of `release_queries`. The counts are thrown away.
    """
    charge = _charge(plan, data, Path(output), ledger, cap_rho, progress)
    _all_counted(plan, charge, other or {}, persons, None, progress)
    progress("Finished", 1.0)
    return charge.dry_run(_room(plan), other or {}, persons)


def _charge(
    plan: QueryPlan,
    data: AnySource,
    output: Path,
    ledger: str | Path | None,
    cap_rho: Exact | None,
    progress: Progress,
) -> ChargedRun:
    """The charge of a run, when all is checked but the records."""
    progress("Checking the plan", 0.0)
    refuse_broken(verify(plan))
    check_new(output)
    check_room(_room(plan), output)
    return ChargedRun(plan, source_of(data), output, ledger, cap_rho)


def _all_counted(
    plan: QueryPlan,
    charge: ChargedRun,
    other: Mapping[str, str],
    persons: PersonRule | None,
    checked: Fingerprint | None,
    progress: Progress,
) -> Counts:
    """The table of all attributes together."""
    progress("Counting the records", 0.0)
    domain = plan.queries.domain
    counts = charge.counted(
        domain,
        [range(len(domain))],
        other=other,
        persons=persons,
        checked=checked,
        progress=lambda share: progress("Counting the records", BOOKED * share),
    )
    _check_countable(plan, counts)
    return counts


def _room(plan: QueryPlan) -> float:
    return 3.0 * len(plan.text)  # bytes: the plan is in the folder, and nothing else is larger


def _measured(plan: QueryPlan, counts: Counts) -> np.ndarray:
    """R x + noise: int64[k], x the exact counts of the cells, the last attribute fastest.

    The noise is independent discrete Gaussian of variance parameter γ², which costs
    ρ = max_j Σ_i R_ij² / (2γ²): a record is in one cell j, and moves R x by column j.
    """
    exact = _counted(plan, counts)
    return exact + discrete_gaussian(len(exact), plan.gamma_squared)


def _counted(plan: QueryPlan, counts: Counts) -> np.ndarray:
    """R x, exact: int64[k]."""
    cells = counts.counts(range(len(plan.queries.domain))).ravel()
    return plan.strategy.integers @ cells


def _decoded(plan: QueryPlan, measured: np.ndarray) -> np.ndarray:
    """The noisy answers D (R x + noise) = W x + D·noise: float64[n_queries]."""
    return plan.strategy.decoding @ measured


def _check_countable(plan: QueryPlan, counts: Counts) -> None:
    """Raise `ReleaseError` if R x, or a sum on the way to it, could leave 64-bit integers.

    All of them are at most max |R_ij| · records; noise is below 2^55.
    """
    largest = int(np.max(np.abs(plan.strategy.integers)))
    if largest * max(counts.n_records, 1) >= _MOST_MEASURED:
        raise ReleaseError(
            "There are too many records to measure these queries in 64-bit integers; split the "
            "records, or use queries whose coefficients have fewer digits."
        )
