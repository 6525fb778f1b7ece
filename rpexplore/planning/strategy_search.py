"""Strategy search: what to measure for attributes that are asked other than by single values.

For fixed weights on the cells, the smallest sum of variances at privacy cost 1 is
(Σ_{A'} √(p v))² (RP+ Lemma 2) with p = ∏ β_i and v a sum over tables of products of the
attributes' τ and η (weighted by rows). In one attribute it depends on its R through √(βτ) alone,
where all tables ask it alike, and through η on the reference distribution z; so attributes are
improved in turn, each by `best_reference`, which sees the sum over residuals without the attribute
exactly (docs/mathematics.md §5.3). Every step lowers the sum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import measured_places
from rpexplore.planning.solvers.strategy_matrix import StrategySolution, best_matrix, best_reference
from rpexplore.planning.strategy_cache import best_even_matrix
from rpexplore.workload.query_matrix import query_matrix
from rpexplore.workload.workload import Workload

_LEAST_SHARE = 1e-12  # of a table in the weights that are looked for
_ALIKE = 1e-6  # attributes whose problems agree so far (relative) are solved once


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be minimised in one attribute: t(z) + total(η), η_a = zᵀ grams[a] z.

    gram   of t: the questions' weighted grams added up so that t is now the sum over residuals
           with the attribute
    grams  of each way in which it is asked
    """

    gram: np.ndarray
    grams: list[np.ndarray]
    costs: np.ndarray  # p of the residuals without the attribute that its tables contain
    rest: np.ndarray  # their v from tables without the attribute
    slopes: np.ndarray  # [n_residuals, n_ways]: what v grows by with η

    def total(self, etas: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum over the residuals without the attribute, and its gradient in η."""
        roots = np.sqrt(self.costs * (self.rest + self.slopes @ etas))
        return float(np.sum(roots)), (self.costs / roots / 2) @ self.slopes

    def worth(self, root: float, reference: np.ndarray) -> float:
        """The sum, for a root t and a reference distribution z."""
        return root + self.total(self.etas(reference))[0]

    def etas(self, reference: np.ndarray) -> np.ndarray:
        return np.array([reference @ gram @ reference for gram in self.grams])


@dataclass(eq=False)
class StrategySearch:
    """What is measured of each attribute, and what follows from it.

    table_weights    float64[n_tables]: on the mean variance of each table's cells, by row_weights
    keep_references  improve only the matrices, not the reference distributions
    measuring        by place of the attribute, what is measured of it now
    """

    workload: Workload
    closure: Closure
    table_weights: np.ndarray
    keep_references: bool
    measuring: dict[int, StrategySolution] = field(default_factory=dict)
    covariances: dict[int, np.ndarray] = field(default_factory=dict)  # of the decoded values
    _known_terms: np.ndarray | None = None
    _known_weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        workload, closure = self.workload, self.closure
        self.places = measured_places(workload)
        self.row_weights = [np.broadcast_to(1 / rows, rows) for rows in workload.n_queries]
        domain = workload.domain.attributes
        self.asked = {
            question: query_matrix(basis, domain[place])
            for question, (place, basis) in enumerate(workload.attribute_bases)
            if place in self.places or not basis.is_identity
        }
        self.of_place = {
            place: [q for q, (at, _) in enumerate(workload.attribute_bases) if at == place]
            for place in self.places
        }
        self.grams = {q: asked.operator.gram / asked.n_rows for q, asked in self.asked.items()}
        costs = (closure.sizes - 1) / closure.sizes
        costs[self.places] = 1.0  # β of a `StrategySolution`
        self.costs = np.prod(np.append(costs, 1.0)[closure.members], axis=1)
        self.spread = np.zeros(
            len(workload.attribute_bases)
        )  # τ and η of each question, by rows' weight
        self.total = np.ones(len(workload.attribute_bases))
        for question, (place, basis) in enumerate(workload.attribute_bases):
            n = int(closure.sizes[place])
            if place not in self.places:
                self.spread[question] = (n - 1) / n
                self.total[question] = 1 / n**2
            if n == 1 and not basis.is_identity:
                self.total[question] = float(self.grams[question][0, 0])
        everything = np.arange(len(workload))
        self.groups = list(closure.by_order(workload, everything))
        self.tables = np.concatenate(
            [np.repeat(chosen, columns.shape[1]) for chosen, columns, _ in self.groups]
        )
        self.columns = np.concatenate([columns.ravel() for _, columns, _ in self.groups])
        self.inside, self.outside = self._by_question()

    def _by_question(self) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """Where in `columns` the tables are that ask a question, by question, int64[m] each.

        First those of residuals with the question's attribute, then those of the others.
        """
        parts: tuple[dict[int, list[np.ndarray]], ...] = ({}, {})
        begin = 0
        for chosen, columns, axes in self.groups:
            k = axes.shape[1]
            at = begin + np.arange(columns.size).reshape(columns.shape)
            begin += columns.size
            asked = np.take_along_axis(self.workload.attribute_basis_index[chosen], axes, 1)
            subsets = np.arange(2**k)
            for axis in range(k):
                has = (subsets >> (k - 1 - axis)) & 1 == 1
                order = np.argsort(asked[:, axis], kind="stable")
                found, first = np.unique(asked[order, axis], return_index=True)
                rows_of = zip(found.tolist(), np.split(order, first[1:]), strict=True)
                for question, rows in rows_of:
                    for part, mask in zip(parts, (has, ~has), strict=True):
                        part.setdefault(question, []).append(at[rows][:, mask].ravel())
        inside, outside = (
            {question: np.concatenate(listed) for question, listed in part.items()}
            for part in parts
        )
        return inside, outside

    def start(self, references: Mapping[int, np.ndarray]) -> None:
        """Begin with the best matrices for these spreads, even ones if there are none.

        Where an attribute is asked in several ways, for all of them together.
        """
        for place in self.places:
            gram = np.sum([self.grams[q] for q in self.of_place[place]], axis=0)
            reference = references.get(place)
            even = best_even_matrix(gram) if reference is None else None
            self._take(place, even or best_matrix(gram, reference))

    def weigh_rows(self, question: int, weights: np.ndarray) -> None:
        """Give the rows of a question other weights, of sum 1."""
        self.row_weights[question] = weights
        self.grams[question] = self.asked[question].operator.weighted_gram(weights)

    def sweep(self, on_share: Callable[[float], None]) -> None:
        """Improve every attribute once; those whose problems are alike together."""
        waiting = {place: self._signature(place) for place in self.places}
        while waiting:
            place, signature = next(iter(waiting.items()))
            alike = [each for each, other in waiting.items() if other == signature]
            before = self.value()
            found = self._improved(place)
            kept = {each: self.measuring[each] for each in alike}
            for each in alike:
                self._take(each, found)
            if len(alike) > 1 and self.value() > before:
                for each in alike[1:]:
                    self._take(each, kept[each])
                alike = alike[:1]
            for each in alike:
                del waiting[each]
            on_share(1 - len(waiting) / len(self.places))

    # ---- one attribute

    def _take(self, place: int, found: StrategySolution) -> None:
        self.measuring[place], self._known_terms = found, None
        inverse = np.linalg.inv(np.vstack([np.ones(len(found.reference)), found.matrix]))
        covariance = self.covariances[place] = inverse[:, 1:] @ inverse[:, 1:].T
        for question in self.of_place[place]:
            gram = self.grams[question]
            self.spread[question] = float(np.sum(gram * covariance))
            self.total[question] = float(found.reference @ gram @ found.reference)

    def _improved(self, place: int) -> StrategySolution:
        problem, present = self.problem(place), self.measuring[place]
        # By now other weights go with the questions than when it was found.
        covariance = self.covariances[place]
        start = replace(present, root=float(np.sqrt(np.sum(problem.gram * covariance))))
        if self.keep_references:
            return best_matrix(problem.gram, start.reference, start=start)
        return best_reference(problem.gram, problem.grams, problem.total, start=start)

    def _signature(self, place: int) -> tuple:
        """Equal for attributes that are asked alike, and weigh alike."""
        attribute = self.workload.domain.attributes[place]
        problem = self.problem(place)
        total, slope = problem.total(problem.etas(self.measuring[place].reference))
        figures = np.array([*slope / total, np.trace(problem.gram) / total**2])
        weights = [self.row_weights[q] for q in self.of_place[place]]
        rows = tuple(
            None if each.strides == (0,) else np.round(each / np.max(each) / _ALIKE).tobytes()
            for each in weights
        )
        rounded = np.round(np.log(np.maximum(figures, 1e-300)) / _ALIKE)
        groups = () if attribute.groups == () else attribute.groups
        return (self.workload.bases[place], attribute.size, groups, tuple(rounded), rows)

    def problem(self, place: int) -> Problem:
        terms, weights = self._terms, self._residual_weights
        roots = np.sqrt(self.costs * weights)
        inside = np.any(self.closure.members == place, axis=1)
        n, count = int(self.closure.sizes[place]), len(self.closure)
        gram, slopes = np.zeros((n, n)), []
        for question in self.of_place[place]:
            with_it, without = self.inside[question], self.outside[question]
            columns = self.columns[with_it]
            shares = float((roots[columns] / weights[columns]) @ terms[with_it])
            gram = gram + shares / self.spread[question] * self.grams[question]
            added = np.bincount(self.columns[without], terms[without], count)
            slopes.append(added / self.total[question])
        slopes = np.stack(slopes, axis=1)
        held = np.any(slopes > 0, axis=1)
        present = np.array([self.total[question] for question in self.of_place[place]])
        rest = np.maximum(weights[held] - slopes[held] @ present, 0.0)
        gram = gram * float(np.sum(roots[inside]))
        grams = [self.grams[question] for question in self.of_place[place]]
        return Problem(gram, grams, self.costs[held], rest, slopes[held])

    # ---- all of them together

    @property
    def _terms(self) -> np.ndarray:
        """What each (table, residual within it) adds to the residual's v."""
        if self._known_terms is None:
            self._known_terms, self._known_weights = self._new_terms(), None
        return self._known_terms

    def _new_terms(self) -> np.ndarray:
        parts = []
        for chosen, _, axes in self.groups:
            asked = self.workload.attribute_basis_index[chosen]
            factors = (self.table_weights[chosen] * self._outside(asked))[:, None]
            of_axes = np.take_along_axis(asked, axes, 1)
            for axis in range(axes.shape[1]):
                each = of_axes[:, axis]
                pair = np.column_stack([self.total[each], self.spread[each]])
                factors = (factors[:, :, None] * pair[:, None, :]).reshape(len(chosen), -1)
            parts.append(factors.ravel())
        return np.concatenate(parts)

    def _outside(self, asked: np.ndarray) -> np.ndarray:
        """∏ η over the attributes with a single value."""
        places = np.array([place for place, _ in self.workload.attribute_bases] or [0])
        single = (asked >= 0) & (self.closure.sizes[places[asked]] == 1)
        return np.prod(np.where(single, self.total[asked], 1.0), axis=1)

    @property
    def _residual_weights(self) -> np.ndarray:
        terms = self._terms  # makes both known
        if self._known_weights is None:
            self._known_weights = np.bincount(self.columns, terms, len(self.closure))
        return self._known_weights

    def value(self) -> float:
        """Σ√(p v): the square root of the smallest weighted sum of variances at privacy cost 1."""
        return float(np.sum(np.sqrt(self.costs * self._residual_weights)))

    def least_value(self) -> float:
        """Below it is no `value`, whatever is measured, with these reference distributions."""
        for place in self.places:
            z = self.measuring[place].reference
            for question in self.of_place[place]:
                self.spread[question] = best_matrix(self.grams[question], z).lower_bound ** 2
        self._known_terms = None
        return self.value()

    # ---- the largest variance

    def reweigh(self, loss_weights: np.ndarray) -> None:
        """More weight where the variance is above the mean.

        loss_weights: what the largest variance is weighted with; `table_weights` is that times
        weights y on the tables, of sum 1
        """
        terms, weights = self._terms, self._residual_weights
        sigma_squared = np.sqrt(self.costs / weights) * self.value()
        shares = terms * sigma_squared[self.columns]
        of_tables = np.bincount(self.tables, shares, len(self.workload))
        total = float(np.sum(of_tables))
        moved = self.row_weights.copy()
        for place in self.places:
            covariance, reference = self.covariances[place], self.measuring[place].reference
            for question in self.of_place[place]:
                spread = float(np.sum(shares[self.inside[question]])) / self.spread[question]
                level = float(np.sum(shares[self.outside[question]])) / self.total[question]
                asked = self.asked[question]
                variances = spread * np.maximum(asked.operator.row_quadratics(covariance), 0.0)
                variances += level * asked.of(reference, 0) ** 2
                weighed = self.row_weights[question] * variances
                if np.sum(weighed) > 0:  # not if its tables no longer weigh anything
                    moved[question] = weighed / np.sum(weighed)
        for question in (q for place in self.places for q in self.of_place[place]):
            self.weigh_rows(question, moved[question])
        # None so small that nothing can be computed with it.
        shares = np.maximum(of_tables / total, _LEAST_SHARE)
        self.table_weights = shares / np.sum(shares) * loss_weights
        for place in self.places:
            self._take(place, self.measuring[place])
