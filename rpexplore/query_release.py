"""Release of queries: a query plan and records in, noisy answers out; spends the budget once."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rpexplore.charge import Charge, Progress, refuse_broken
from rpexplore.data.files import read_records
from rpexplore.data.records import Records
from rpexplore.errors import ReleaseError
from rpexplore.exact import Exact
from rpexplore.new_folder import check_new, check_room
from rpexplore.queries.plan import QueryPlan
from rpexplore.queries.verification import verify_queries
from rpexplore.query_release_folder import QueryRelease, write_query_release
from rpexplore.sampling import discrete_gaussian

__all__ = ["QueryRelease", "release_queries"]

# Share of the whole run's time after which it is booked, for the progress bar: the rest is quick.
BOOKED = 0.9
_MOST_MEASURED = 2**61


def release_queries(
    plan: QueryPlan,
    data: str | Path,
    output: str | Path,
    *,
    other: Mapping[str, str] | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    progress: Progress = lambda doing, share: None,
) -> QueryRelease:
    """Run a query plan on records and write the release folder `output`, which must not exist yet.

    Arguments, promises and errors are those of `release.release`: what can be refused is refused
    before the run is booked, it is booked before any noise is drawn, and a run that stops after
    that stays charged. Only the attributes that the queries are about are read.
    """
    data, output = Path(data), Path(output)
    progress("Checking the plan", 0.0)
    refuse_broken(verify_queries(plan))
    check_new(output)
    check_room(3.0 * len(plan.text), output)  # the plan is in it; nothing else is larger
    charge = Charge(plan, data, output, ledger, cap_rho)

    progress("Reading the records", 0.0)
    domain = plan.queries.domain
    records = read_records(
        data,
        domain,
        range(len(domain)),
        other=other,
        progress=lambda share: progress("Reading the records", BOOKED * share),
    )
    _check_countable(plan, records)

    with charge.folder() as folder:
        progress("Booking the run in the ledger", BOOKED)
        charge.book()
        progress("Measuring with noise", BOOKED)
        measured = _measured(plan, records)
        answers = _decoded(plan, measured)
        manifest = write_query_release(folder, plan, measured, answers, other or {})
    progress("Finished", 1.0)
    return QueryRelease(output, plan, manifest)


def _measured(plan: QueryPlan, records: Records) -> np.ndarray:
    """R x + noise: int64[k], x the exact counts of the cells, the last attribute fastest.

    The noise is independent discrete Gaussian of variance parameter γ², which costs
    ρ = max_j Σ_i R_ij² / (2γ²): a record is in one cell j, and moves R x by column j.
    """
    exact = _counted(plan, records)
    return exact + discrete_gaussian(len(exact), plan.gamma_squared)


def _counted(plan: QueryPlan, records: Records) -> np.ndarray:
    """R x, exact: int64[k]."""
    counts = records.counts(range(len(plan.queries.domain))).ravel()
    return plan.strategy.integers @ counts


def _decoded(plan: QueryPlan, measured: np.ndarray) -> np.ndarray:
    """The noisy answers D (R x + noise) = W x + D·noise: float64[n_queries]."""
    return plan.strategy.decoding @ measured


def _check_countable(plan: QueryPlan, records: Records) -> None:
    """Raise `ReleaseError` if R x, or a sum on the way to it, could leave 64-bit integers.

    All of them are at most max |R_ij| · records; noise is below 2^55.
    """
    largest = int(np.max(np.abs(plan.strategy.integers)))
    if largest * max(records.n_records, 1) >= _MOST_MEASURED:
        raise ReleaseError(
            "There are too many records to measure these queries in 64-bit integers; split the "
            "records, or use queries whose coefficients have fewer digits."
        )
