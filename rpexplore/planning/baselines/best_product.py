"""Best product: of all mechanisms that measure all combinations of attributes' queries the best.

With the strategies of the plan, attribute i has its total and its residual measured, at variances
1 and s_i. All combinations cost ∏ (1 + β_i/s_i) at a variance of 1, and a table A has there the
variance ∏_{i∈A} (η_i + τ_i s_i). Logarithms of both are convex in log s, so that the search finds
the best.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rpexplore.planning.baselines.base import Baseline, LogVariances, power_of
from rpexplore.planning.baselines.tables import beta_of, moments_of
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Moments
from rpexplore.workload.workload import Workload

# Powers whose norms stand in, one after another, for the largest variance.
_POWERS = (1.0, 8.0, 64.0, 512.0)


@dataclass(frozen=True)
class BestProduct(Baseline):
    """HDMM's product strategy, in the family of the plan: the best of that form."""

    def variances(self, workload: Workload, closure: Closure, loss: Loss) -> LogVariances:
        from scipy.optimize import minimize  # heavy

        search, norm = _Search(workload, closure, loss), power_of(loss)
        start = search.start
        powers = _POWERS if np.isinf(norm) else (norm,)
        if start.size == 0:  # nothing to search, which SciPy 1.14 refuses
            powers = ()
        for power in powers:
            found = minimize(search.value, start, args=(power,), jac=True, method="L-BFGS-B")
            start = found.x
        mean = search.variances(start, largest=False)[0]
        return LogVariances(mean, np.maximum(mean, search.variances(start, largest=True)[0]))


class _Search:
    """log s of the attributes that are used and have several values, float64[n]."""

    def __init__(self, workload: Workload, closure: Closure, loss: Loss) -> None:
        self._largest = loss.looks_at_least_accurate_cells
        with np.errstate(divide="ignore"):
            self._log_weights = np.log(loss.table_weights(workload))
        self._attributes = [index for index in workload.used if closure.sizes[index] > 1]
        self._betas = np.array([beta_of(closure, index) for index in self._attributes])
        position = {attribute: row for row, attribute in enumerate(self._attributes)}
        self._moments: Sequence[Moments] = [
            moments_of(workload, closure, index) for index in range(len(workload.attribute_bases))
        ]
        # Of each basis the place of its attribute; behind, and for single values, one more.
        places = [position.get(index, len(position)) for index, _ in workload.attribute_bases]
        self._places = np.array([*places, len(position)])
        self._columns = workload.attribute_basis_index

    @property
    def start(self) -> np.ndarray:
        return np.zeros(len(self._attributes))

    def value(self, log_s: np.ndarray, power: float) -> tuple[float, np.ndarray]:
        """Logarithm of the power's norm of weighted variances at cost 1, and its gradient."""
        logs, slopes = self.variances(log_s, largest=self._largest)
        weighted = power * (self._log_weights + logs)
        highest = np.max(weighted)
        shares = np.exp(weighted - highest)
        total = float(np.sum(shares))
        value = float((highest + np.log(total)) / power)
        # d log(norm) / d log s: by the tables' shares of it, through each basis that they use; and
        # the cost's part, log(1 + β / s).
        in_bases = np.zeros(len(slopes))
        np.add.at(
            in_bases, self._columns, np.broadcast_to((shares / total)[:, None], self._columns.shape)
        )
        of_places = np.bincount(self._places, in_bases * slopes, len(log_s) + 1)[: len(log_s)]
        ratio = self._betas * np.exp(-log_s)
        return value, of_places - ratio / (1 + ratio)

    def variances(self, log_s: np.ndarray, *, largest: bool) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of the tables' variances at cost 1, and the slopes of those of the bases."""
        s = np.exp(np.append(log_s, -np.inf))[self._places[:-1]]
        logs, slopes = np.zeros(len(s) + 1), np.zeros(len(s) + 1)
        for index, moments in enumerate(self._moments):
            if largest:
                rows = moments.least_accurate_rows
                of_rows = moments.total[rows] + moments.spread[rows] * s[index]
                row = rows[int(np.argmax(of_rows))]
                eta, tau = moments.total[row], moments.spread[row]
            else:
                n_rows = len(moments.total)
                eta, tau = moments.total_sum / n_rows, moments.spread_sum / n_rows
            logs[index] = np.log(eta + tau * s[index])
            slopes[index] = tau * s[index] / (eta + tau * s[index])
        cost = float(np.sum(np.log1p(self._betas * np.exp(-log_s))))
        return cost + np.sum(logs[self._columns], axis=1), slopes
