"""Everything this package refuses, as one small family of exceptions.

A message names the thing, the value it has, what it must be, and what to do about it. A message
never holds anything read from records: those go into `DataError.private`, which only `on_screen`
shows, so that a log or a traceback that reaches a file stays free of them.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import ParamSpec


class RpexploreError(Exception):
    """Base of all errors a user can cause and mend."""

    says_charge = False
    """Whether the message says if the run is charged."""

    def on_screen(self) -> str:
        """The message for the person in front of the screen (may hold private values)."""
        return str(self)


class ArgumentError(RpexploreError, TypeError):
    """A function of the library is called with an argument of another kind than it takes."""


class DomainError(RpexploreError):
    """The codebook is not usable: an attribute, a category, a bin or a codebook file."""


class WorkloadError(RpexploreError):
    """The collection of tables is not usable: unknown attribute, table twice, weight, target."""


class BudgetError(RpexploreError):
    """A budget or privacy parameter is out of range."""


class PlanError(RpexploreError):
    """A plan cannot be made, read, or does not hold what it claims."""


class ContradictionError(PlanError):
    """What a plan file says of a plan does not go together, so that there is no such plan."""


class OutOfReachError(PlanError):
    """Targets that must be met cannot all be, within the budget.

    needed: the budget at which they can, over the current one; a little more leaves some for others
    """

    def __init__(self, message: str, *, needed: float) -> None:
        super().__init__(message)
        self.needed = needed


class DataError(RpexploreError):
    """The records do not fit the plan's domain.

    `private` holds what was read from the records (a value, say); it is shown on the curator's
    screen by `on_screen` and is not part of `str(error)`.
    """

    def __init__(self, message: str, *, private: str = "") -> None:
        super().__init__(message)
        self.private = private

    def on_screen(self) -> str:
        return f"{self} {self.private}".rstrip()


class LedgerError(RpexploreError):
    """The ledger refuses a run or cannot be read."""


class ApprovalError(RpexploreError):
    """An approval cannot be made or read, or is not what a run of the plan needs."""


class ReleaseError(RpexploreError):
    """A release cannot be run, written or read."""


class ExportError(RpexploreError):
    """A report, script or bundle cannot be made."""


class LimitError(RpexploreError):
    """A shared server is asked for more than it has for one session or account.

    limit: which of `rpexplore.common.server.Limits`
    """

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class MissingExtraError(RpexploreError):
    """Something needs a package of an optional extra that is not installed."""


_Arguments = ParamSpec("_Arguments")


def without_causes(
    manager: Callable[_Arguments, AbstractContextManager[None]],
) -> Callable[_Arguments, AbstractContextManager[None]]:
    """Decorate a context manager whose errors let go of those that they are raised for.

    Readers quote records, and `raise … from None` only keeps that out of a traceback: a logger may
    look further.
    """

    @wraps(manager)
    @contextmanager
    def without(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Iterator[None]:
        try:
            with manager(*args, **kwargs):
                yield
        except RpexploreError as error:
            error.__context__ = error.__cause__ = None
            raise

    return without
