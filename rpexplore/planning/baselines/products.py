"""Product baselines: the same queries of an attribute, whichever tables it is in.

All combinations of the attributes' queries are measured, with independent noise, and all tables are
computed from them by least squares. So all there is to know of an attribute is the variance of its
total and of its queries, and those of a table are their products.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import one_thread
from rpexplore.planning.baselines.attribute_strategies import Measure, single_values
from rpexplore.planning.baselines.base import Baseline, LogVariances, UnsuitableError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.bases import Basis
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload

MOST_VALUES = 4096  # of an attribute: its matrix is inverted


@dataclass(frozen=True)
class Product(Baseline):
    """Some queries of each attribute, and their combinations.

    measure     what is measured of an attribute that some table has in other than single values
    norm        2 for Gaussian noise, 1 for Laplace noise
    is_general  whether it is of use for tables of single values only
    """

    measure: Measure
    norm: int = 2
    is_general: bool = False

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        """As at privacy cost 1; with Laplace noise as if its variance were 1 at ε = 1."""
        if workload.is_marginals and not self.is_general:
            raise UnsuitableError("only for attributes in ranges, prefix sums or groups.")
        sizes, moments = workload.domain.sizes, _Moments(workload, self)
        totals = np.log(np.append(sizes.astype(float), 1.0))
        logs = np.zeros((2, len(workload.attribute_bases) + 1))
        for index, (attribute, basis) in enumerate(workload.attribute_bases):
            if not basis.is_identity or not moments.is_plain(attribute):
                totals[attribute], logs[:, index] = moments.of(attribute, basis)
        return product_variances(workload, totals, logs)


def product_variances(workload: Workload, totals: np.ndarray, logs: np.ndarray) -> LogVariances:
    """From logarithms of the variance of each attribute's total and queries.

    totals  float64[d + 1], 0 at the end
    logs    float64[2, n_attribute_bases + 1], of the mean of the queries of each of
            `workload.attribute_bases` and of the least accurate one; 0 at the end
    """
    total = float(np.sum(totals[list(workload.used)]))
    without = total - np.sum(totals[workload.members], axis=1)
    mean, largest = (without + np.sum(of[workload.attribute_basis_index], axis=1) for of in logs)
    return LogVariances(mean, largest)


class _Moments:
    """Variances of attributes' totals and queries; attributes that are alike share them."""

    def __init__(self, workload: Workload, product: Product) -> None:
        self._workload, self._product = workload, product
        self._covariances: dict[tuple, np.ndarray] = {}
        self._known: dict[tuple, tuple[float, tuple[float, float]]] = {}

    def is_plain(self, attribute: int) -> bool:
        """Whether all tables have its single values, each of which is measured."""
        return all(basis.is_identity for basis in self._workload.bases[attribute])

    def of(self, attribute: int, basis: Basis) -> tuple[float, tuple[float, float]]:
        """Logarithms of the variance of the total, of the mean query and the least accurate."""
        groups = self._workload.domain.attributes[attribute].groups
        size = int(self._workload.domain.sizes[attribute])
        key = (size, groups, tuple(self._workload.bases[attribute]))
        if size > MOST_VALUES:
            raise UnsuitableError(f"only for attributes of at most {MOST_VALUES:,} values.")
        if (*key, basis) not in self._known:
            if key not in self._covariances:
                self._covariances[key] = self._covariance(attribute)
            covariance = self._covariances[key]
            rows = self._queries(attribute, basis).row_quadratics(covariance)
            variances = np.sum(covariance), np.mean(rows), np.max(rows)
            total, mean, largest = np.log(np.maximum(variances, 1e-300)).tolist()
            self._known[(*key, basis)] = total, (mean, largest)
        return self._known[(*key, basis)]

    def _queries(self, attribute: int, basis: Basis):
        return query_matrix(basis, self._workload.domain.attributes[attribute]).operator

    @one_thread()
    def _covariance(self, attribute: int) -> np.ndarray:
        queries = [self._queries(attribute, basis) for basis in self._workload.bases[attribute]]
        gram = sum((each.gram / each.n_rows for each in queries), np.zeros(()))
        size = int(self._workload.domain.sizes[attribute])
        measure = self._product.measure if size > 1 else single_values
        strategy = measure(size, gram)
        return strategy.covariance(self._product.norm)
