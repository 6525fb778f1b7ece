"""`plan_bound` where attributes have several bases: the best that its argument proves.

The bound (tr V Y)³ / tr (V Y Λ⁻¹ Y V Y) holds for any Y (docs/mathematics-baselines.md §16). Here
Y = Σ_S σ² ⊗ Y_i^S over residuals S, with Y_i^S = D Dᵀ for the attributes of S, z zᵀ for others, so
that both traces are sums of products of one number an attribute, over pairs of tables A, B and
triples of residuals: R within A, S within B, T within both. It starts from a plan and is raised by
L-BFGS. No plan needs to belong to Y: D and z are free in every residual, but for 1ᵀD = 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rpexplore.planning.baselines.residual_axis import ResidualAxis, ResidualTable
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.workload import Workload

_MOST_STEPS = 150
_LEAST_STEPS = 10  # fewer are not worth while
_STILL = 3e-5  # a step that raises the logarithm by less is the last one
_KEPT = 20  # steps that L-BFGS remembers
_MOST_WORK = 1.5e10  # numbers that are multiplied in all steps: about fifteen seconds
_MOST_TERMS = 2e7  # times attributes
_MOST_NUMBERS = 2e7  # in all products of matrices of an attribute
_WORK_OF_A_TERM = 30  # and attribute
_WORK_OF_A_NUMBER = 3  # of a product of matrices, with its slopes: times a column
# Of all terms, and of the bound: far more than sums of such products are off by.
_ROUNDING_OF_TERMS = 1e-11
_ROUNDING = 1e-8


def residual_bound(
    workload: Workload, closure: Closure, sigma_squared: np.ndarray, table_weights: np.ndarray
) -> float | None:
    """No Gaussian mechanism of privacy cost 1 has a smaller Σ weight · mean variance of a table.

    Args:
        sigma_squared: Of a plan, float64[n_residuals]; in any unit.
        table_weights: float64[n_tables], at least 0.

    Returns:
        None where it would take long.
    """
    weighted = np.flatnonzero(table_weights > 0).tolist()
    tables = [ResidualTable.of(workload, closure, table, table_weights) for table in weighted]
    used = sorted({attribute for table in tables for attribute in table.bases})
    n_terms = sum(
        float(len(one.parts) * len(other.parts) * 2 ** len(one.bases.keys() & other.bases.keys()))
        for one in tables
        for other in tables
    )
    if n_terms / 2 * len(used) > _MOST_TERMS:
        return None
    residuals = np.unique(np.concatenate([table.parts for table in tables]))
    of_tables = [np.searchsorted(residuals, table.parts) for table in tables]
    insides = [closure.attributes(residual) for residual in residuals.tolist()]
    logs = np.log(sigma_squared[residuals])
    axes = [
        ResidualAxis.of(workload, closure, attribute, insides, tables, of_tables)
        for attribute in used
    ]
    traces = _Traces.of(tables, of_tables, axes, len(residuals))
    n_steps = min(_MOST_STEPS, int(_MOST_WORK / traces.work))
    if n_steps < _LEAST_STEPS or any(axis.n_numbers > _MOST_NUMBERS for axis in axes):
        return None
    return traces.highest(logs, n_steps)


class _Point(NamedTuple):
    """Logarithms of σ², and of each attribute W by residual, and λ."""

    logs: np.ndarray
    factors: list[list[np.ndarray]]
    weights: list[np.ndarray]


@dataclass(frozen=True, eq=False)
class _Traces:
    """Both traces, tr V Y and tr V Y Λ⁻¹ Y V Y, and their slopes.

    terms    R, S, T of the second one, int64[3, n_terms]
    times    product of both tables' weights; twice for two tables, float64[n_terms]
    indices  of each attribute, int64[n_terms]: its number among `ResidualAxis.scalars`
    """

    tables: Sequence[ResidualTable]
    of_tables: Sequence[np.ndarray]
    axes: Sequence[ResidualAxis]
    terms: np.ndarray
    times: np.ndarray
    indices: list[np.ndarray]

    @classmethod
    def of(
        cls,
        tables: Sequence[ResidualTable],
        of_tables: Sequence[np.ndarray],
        axes: Sequence[ResidualAxis],
        n_residuals: int,
    ) -> "_Traces":
        found, pairs = [], []
        for one, of_one in enumerate(of_tables):
            for other, of_other in enumerate(of_tables[: one + 1]):
                both = np.intersect1d(of_one, of_other)
                found.append(np.stack(np.meshgrid(of_one, of_other, both)).reshape(3, -1))
                pairs.append(np.tile([[one], [other]], found[-1].shape[1]))
        terms, of_pairs = np.hstack(found), np.hstack(pairs)
        weights = np.array([table.weight for table in tables])
        times = weights[of_pairs[0]] * weights[of_pairs[1]]
        times = np.where(of_pairs[0] == of_pairs[1], times, 2 * times)
        (r, s, t), indices = terms, []
        # 1ᵀD = 0: no residual with an attribute counts in a table without it, and none is there.
        for axis in axes:
            starts, n_rows = np.zeros((2, n_residuals), np.int64)
            for group in axis.groups:
                starts[group.part], n_rows[group.part] = group.start, group.n_rows
            left = axis.places[t, axis.bases[of_pairs[0]], r]
            right = axis.places[t, axis.bases[of_pairs[1]], s]
            indices.append(starts[t] + left * n_rows[t] + right)
        return cls(tables, of_tables, axes, terms, times, indices)

    @property
    def work(self) -> float:
        """Of the value with its slopes."""
        of_axes = sum(axis.n_numbers * max(w.shape[1] for w in axis.factors) for axis in self.axes)
        return _WORK_OF_A_NUMBER * of_axes + _WORK_OF_A_TERM * len(self.times) * len(self.axes)

    def highest(self, logs: np.ndarray, n_steps: int) -> float:
        """The bound after so many steps from the axes' Y and λ, at these logarithms of σ²."""
        from scipy.optimize import minimize  # heavy

        along, reached = self.along(logs), self._at_start(logs)
        sizes = [
            len(logs),
            *(
                m.shape[1] * w.shape[1]
                for axis, of_axis in zip(self.axes, along, strict=True)
                for m, w in zip(of_axis, axis.factors, strict=True)
            ),
            *(len(axis.weights) for axis in self.axes),
        ]
        ends = np.cumsum(sizes)[:-1]
        still = np.zeros(sum(sizes))
        start = best = self.log_bound(reached)[0]

        def falling(moves: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best, reached
            point = self._moved_by(logs, along, np.split(moves, ends))
            value, slopes = self.log_bound(point)
            if value > best:
                best, reached = value, point
            of_factors = [
                (move.T @ slope).ravel()
                for of_axis, of_slopes in zip(along, slopes.factors, strict=True)
                for move, slope in zip(of_axis, of_slopes, strict=True)
            ]
            of_weights = [
                (slope - weights / np.sum(weights) * np.sum(slope)) * (not axis.is_even)
                for axis, slope, weights in zip(
                    self.axes, slopes.weights, point.weights, strict=True
                )
            ]
            return start - value, -np.concatenate([slopes.logs, *of_factors, *of_weights])

        options = {"maxiter": n_steps, "maxfun": n_steps, "maxcor": _KEPT, "ftol": _STILL}
        minimize(falling, still, jac=True, method="L-BFGS-B", options=options)
        return self.bound(reached)

    def _at_start(self, logs: np.ndarray) -> _Point:
        return _Point(logs, [a.factors for a in self.axes], [a.weights for a in self.axes])

    def along(self, logs: np.ndarray) -> list[list[np.ndarray]]:
        """What W of each attribute and residual moves along, at these logarithms of σ²."""
        slopes = self._first(self._at_start(logs))[1]
        return [axis.moves(logs, own) for axis, own in zip(self.axes, slopes, strict=True)]

    def _moved_by(
        self, logs: np.ndarray, along: list[list[np.ndarray]], moves: list[np.ndarray]
    ) -> _Point:
        """From the start: σ² and λ by factors, W by multiples of what each moves along."""
        rest = iter(moves)
        logs = logs + next(rest)
        factors = [
            [
                w + m @ next(rest).reshape(m.shape[1], w.shape[1])
                for m, w in zip(of_axis, axis.factors, strict=True)
            ]
            for axis, of_axis in zip(self.axes, along, strict=True)
        ]
        weights = [axis.weights * np.exp(next(rest)) for axis in self.axes]
        scaled = [
            w * (np.sum(axis.weights) / np.sum(w))
            for axis, w in zip(self.axes, weights, strict=True)
        ]
        return _Point(logs, factors, scaled)

    def bound(self, point: _Point) -> float:
        """(tr V Y)³ / tr (V Y Λ⁻¹ Y V Y), less what rounding can have added."""
        first = float(np.sum(self._first(point)[0]))
        norms, value = self._scales(point), self._scales(point)
        for axis, at, factors, weights in zip(
            self.axes, self.indices, point.factors, point.weights, strict=True
        ):
            scalars, _ = axis.scalars(factors, weights)
            value = value * scalars[at]
            largest = np.empty(len(scalars))
            for group in axis.groups:
                square = scalars[group.start : group.start + group.n_rows**2]
                norm = np.sqrt(square[:: group.n_rows + 1])
                largest[group.start : group.start + group.n_rows**2] = np.outer(norm, norm).ravel()
            norms = norms * largest[at]
        second = float(np.sum(value) + _ROUNDING_OF_TERMS * np.sum(norms))
        return first**3 / second * (1 - _ROUNDING)

    def _scales(self, point: _Point) -> np.ndarray:
        return self.times * np.exp(np.sum(point.logs[self.terms], axis=0))

    def _first(self, point: _Point) -> tuple[np.ndarray, list[np.ndarray]]:
        """tr V Y by residual, and its slopes in each attribute's `traces`."""
        by_residual = np.zeros(len(point.logs))
        traces = [a.traces(w) for a, w in zip(self.axes, point.factors, strict=True)]
        slopes = [np.zeros(of_axis.shape) for of_axis in traces]
        for number, (table, parts) in enumerate(zip(self.tables, self.of_tables, strict=True)):
            scales = table.weight * np.exp(point.logs[parts])
            bases = [int(axis.bases[number]) for axis in self.axes]
            of_axes = np.array([t[b, parts] for t, b in zip(traces, bases, strict=True)])
            by_residual[parts] += scales * np.prod(of_axes, axis=0)
            for place, (slope, basis) in enumerate(zip(slopes, bases, strict=True)):
                slope[basis, parts] += scales * np.prod(np.delete(of_axes, place, axis=0), axis=0)
        return by_residual, slopes

    def log_bound(self, point: _Point) -> tuple[float, _Point]:
        """3 log tr V Y − log tr V Y Λ⁻¹ Y V Y, and its slopes in logs, W and log λ."""
        by_residual, of_traces = self._first(point)
        first = float(np.sum(by_residual))
        scalars, kept = [], []
        before = [self._scales(point)]  # products over the attributes before each one
        for axis, at, factors, weights in zip(
            self.axes, self.indices, point.factors, point.weights, strict=True
        ):
            of_axis, products = axis.scalars(factors, weights)
            scalars.append(of_axis[at])
            kept.append(products)
            before.append(before[-1] * scalars[-1])
        terms = before.pop()
        second = float(np.sum(terms))
        of_logs = 3 * by_residual / first
        for residuals in self.terms:
            of_logs -= np.bincount(residuals, terms, len(of_logs)) / second
        slopes, after = [], np.ones(len(terms))
        for place in reversed(range(len(self.axes))):
            axis = self.axes[place]
            of_scalars = np.bincount(self.indices[place], before[place] * after, axis.n_scalars)
            after = after * scalars[place]
            slopes.append(
                axis.slopes(
                    point.factors[place],
                    point.weights[place],
                    kept[place],
                    -of_scalars / second,
                    3 * of_traces[place] / first,
                )
            )
        of_factors, of_weights = map(list, zip(*reversed(slopes), strict=True))
        return 3 * math.log(first) - math.log(second), _Point(of_logs, of_factors, of_weights)
