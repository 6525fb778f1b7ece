"""Lower bound: the error that no Gaussian mechanism can go below, whatever it measures."""

from dataclasses import dataclass

import numpy as np

from rpexplore.planning.baselines.base import Baseline, LogVariances
from rpexplore.planning.baselines.products import product_variances
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload


@dataclass(frozen=True)
class SingularValues(Baseline):
    """The bound of each table by itself: (Σ singular values)² / values / rows (Li, Miklau 2013).

    Holds for all Gaussian mechanisms, as none can have a table more accurate than one that is made
    for it alone. For several tables it is far below what can be reached.
    """

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        logs = np.zeros((2, len(workload.attribute_bases) + 1))
        for index, (attribute, basis) in enumerate(workload.attribute_bases):
            if not basis.is_identity:
                queries = query_matrix(basis, workload.domain.attributes[attribute]).operator
                squares = np.linalg.eigvalsh(queries.gram)
                singular = np.sum(np.sqrt(np.maximum(squares, 0.0)))
                variance = singular**2 / queries.n_values / queries.n_rows
                logs[:, index] = np.log(variance * (1 - 1e-9))  # rounding
        return product_variances(workload, np.zeros(len(workload.domain) + 1), logs)
