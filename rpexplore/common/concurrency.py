"""Linear algebra in one thread: the same numbers whatever else the computer does.

Libraries of linear algebra share a sum among threads, and how many these are changes its last
digits, from which the rounding of a strategy makes another plan. On the matrices of a plan several
threads are also slower, by far where other programs run beside.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


def one_thread() -> AbstractContextManager:
    """A block in which linear algebra uses one thread."""
    return _controller().limit(limits=1, user_api="blas")


def in_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function with its linear algebra in one thread."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with one_thread():
            return function(*args, **kwargs)

    return wrapped


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
