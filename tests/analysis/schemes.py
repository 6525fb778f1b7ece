"""Accuracy of the four schemes, for the tests of what compares them."""

import numpy as np

import rpexplore as rp
from rpexplore.analysis.measures import SCHEMES, Accuracy
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances, TableVariances
from rpexplore.planning.planner import optimum


def of_schemes(workload: rp.Workload, rho: str = "0.1") -> list[Accuracy]:
    """What each scheme would give for these tables."""
    return [
        Accuracy.of_optimum(name, optimum(workload, loss=loss), rp.Budget(rho=rho))
        for name, loss in SCHEMES.items()
    ]


def accuracy_of(workload: rp.Workload, loss=None, rho: str = "0.1") -> Accuracy:
    """What one loss would give."""
    solution = optimum(workload, loss=loss or rp.SumOfVariances())
    return Accuracy.of_optimum("this", solution, rp.Budget(rho=rho))


def with_errors(workload: rp.Workload, errors, prices=None) -> Accuracy:
    """Tables with these standard errors and shadow prices, whatever noise would give them."""
    closure, variances = Closure.of(workload), np.square(errors, dtype=float)
    return Accuracy(
        "this",
        CellVariances(workload, closure),
        np.ones(len(closure)),
        TableVariances(variances, variances, variances),
        np.asarray(variances if prices is None else prices, dtype=float),
    )
