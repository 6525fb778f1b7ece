"""A charged run: everything is refused before it is booked, and it is booked before any noise.

    charge = Charge(plan, data, output, ledger, cap_rho)    # refuses what it can
    ...                                                     # read the records, refuse what is left
    with charge.folder() as folder:
        charge.book()                                       # on disk from here on
        ...                                                 # draw noise, write

What stops a run after it was booked leaves no folder, and the charge stays.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from rpexplore.errors import DataError, LedgerError, PlanError, ReleaseError
from rpexplore.exact import Exact, exact_fraction
from rpexplore.ledger import AnyPlan, Ledger
from rpexplore.new_folder import new_folder
from rpexplore.verification import Verification

Progress = Callable[[str, float], None]
"""What a run tells: what is being done, and which share of everything is done."""


def refuse_broken(verification: Verification) -> None:
    """Raise `PlanError` for a plan that does not hold what it claims."""
    if not verification.holds:
        broken = next(check for check in verification.checks if not check.holds)
        raise PlanError(
            f"The plan does not hold what it claims ({broken.name}: {broken.finding}); make it "
            "again."
        )


class Charge:
    """What one run of a verified plan costs the records, from the first check to the last note.

    Raises `DataError` if there is no data file, `LedgerError` for what the ledger would refuse.
    """

    def __init__(
        self,
        plan: AnyPlan,
        data: Path,
        output: Path,
        ledger: str | Path | None,
        cap_rho: Exact | None,
    ) -> None:
        if not data.is_file():
            raise DataError(f"There are no records at {str(data)!r}; check the path.")
        self._plan, self._data, self._output = plan, data, output
        self._book = Ledger(ledger) if ledger is not None else Ledger.beside(data)
        self._cap = None if cap_rho is None else _record_cap(plan, cap_rho)
        self._run: int | None = None
        self._book.check(data, plan, plan.record_rho, self._cap)

    def book(self) -> None:
        """Enter the run in the ledger; it stays charged from here on, whatever happens."""
        self._run = self._book.book(
            self._data, self._plan, self._plan.record_rho, self._output, self._cap
        )

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder of the release, complete when the block ends well, not there otherwise.

        The ledger then notes that the run has finished. Raises `ReleaseError` for what cannot be
        written, which says whether the run is charged.
        """
        try:
            with new_folder(self._output) as folder:
                yield folder
                if self._run is None:
                    raise AssertionError("a release was written, but its run was not booked")
                run = self._run
        except OSError as error:
            booked = self._run is not None
            charge = "was booked before and stays charged" if booked else "was not booked"
            raise ReleaseError(
                f"The release could not be written to {str(self._output)!r} "
                f"({error.strerror or error}) and nothing of it was left; the run {charge}. Make "
                "room, or choose another folder."
            ) from None
        try:
            self._book.finish(run)
        except LedgerError as error:
            raise LedgerError(
                f"The release is complete at {str(self._output)!r} and charged; only the note that "
                f"it finished could not be made. {error}"
            ) from None


def _record_cap(plan: AnyPlan, cap_rho: Exact) -> Fraction:
    """The cap, given for the plan's privacy unit, for one record."""
    cap = exact_fraction(cap_rho, "cap_rho")
    if cap <= 0:
        raise LedgerError(f"The cap must be a positive ρ, got {cap_rho}.")
    return cap / plan.budget.records_factor
