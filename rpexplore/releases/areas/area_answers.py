"""Area answers: least-squares answers of all areas from what was measured, a part after another."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rpexplore.domain.area_range import AreaRange
from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.areas.least_squares import LeastSquares
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.marginal_noise import residuals_within
from rpexplore.planning.mechanism.reconstruction import answers, contribution, marginal
from rpexplore.releases.areas.area_parts import AreaParts
from rpexplore.releases.measurement import measured_shape
from rpexplore.releases.measurement_file import Measured


@dataclass(frozen=True, eq=False)
class PartAnswers:
    """Least-squares answers to the residuals in the areas of a part.

    areas    down to the lowest level with an answer
    answers  of each profile float64[n_rows, n_columns], of the first of the areas' rows: what each
             residual adds to its own marginal, or as measured where an attribute has a strategy;
             an area that is neither measured nor known from its parts has none
    """

    parts: AreaParts
    areas: AreaRange
    answers: list[np.ndarray]

    def marginals(self, attributes: AttributeIndices, rows: np.ndarray) -> np.ndarray:
        """Unbiased marginals of areas by their rows, of single values: float64[n_rows, …]."""
        closure = self.parts.plan.closure
        contributions = {
            subset: self.contribution(residual, rows)
            for subset, residual in residuals_within(closure, attributes).items()
        }
        return marginal(attributes, closure.sizes, contributions, closure.strategies)

    def tables(self, table: int, rows: np.ndarray) -> np.ndarray:
        """A table of `plan.workload.tables` in areas by their rows: float64[n_rows, …], unbiased.

        One axis an attribute, of the queries of its basis.
        """
        values = self.marginals(self.parts.plan.workload.tables.attribute_indices(table), rows)
        return answers(values, self.parts.queries_of(table))

    def contribution(self, residual: int, rows: np.ndarray | slice) -> np.ndarray:
        """What a residual adds to its own marginal in areas by their rows: float64[n_rows, …]."""
        closure = self.parts.plan.closure
        profile, columns = self.parts.of_residuals[residual]
        own = self.answers[profile][rows, columns]
        own = own.reshape(len(own), *measured_shape(closure, residual))
        if has_strategy(closure, residual):
            own = contribution(own, closure.attributes(residual), closure.strategies)
        return own


@dataclass(frozen=True, eq=False)
class AreaAnswers(ABC):
    """The answers in areas, from what was measured: `numbers` says where that is."""

    parts: AreaParts

    def of_part(self, part: int) -> PartAnswers:
        """Those of a part."""
        areas = self.parts.areas[part]
        if part == 0 and self.parts.level:
            found = [each[: len(areas)].copy() for each in self._above]
            for profile, own in enumerate(found):
                self._contribute(profile, own)
            return PartAnswers(self.parts, areas, found)
        found = []
        for profile, solution in enumerate(self._solutions):
            own = self.parts.of_profile(part, profile)
            if own is None:
                found.append(np.empty((0, self.parts.widths[profile])))
                continue
            estimates = self._from_within(part, profile, own)
            if self.parts.level:
                # Rows of the areas from the top on are their numbers.
                estimates[own.rows(0)] = self._above[profile][own.slices[0]]
            solution.downwards(estimates, own)
            self._contribute(profile, estimates)
            found.append(estimates)
        return PartAnswers(self.parts, areas, found)

    @cached_property
    def _solutions(self) -> list[LeastSquares]:
        """Of each profile."""
        plan = self.parts.plan
        return [
            LeastSquares.of(plan.groups, multiples.astype(float)) for multiples in plan.multiples
        ]

    @cached_property
    def _above(self) -> list[np.ndarray]:
        """The answers above the subtrees and of the highest areas in these, of each profile.

        As measured: residuals are contributed to tables when all is known.
        """
        parts, tree = self.parts, self.parts.plan.workload.tree
        found = []
        for profile, solution in enumerate(self._solutions):
            within = int(parts.depths[profile]) >= parts.level
            areas = parts.of_profile(0, profile)
            assert areas is not None
            estimates = self._measured(0, profile, areas)
            if within:
                estimates = [estimates]
                for part in range(1, len(parts.areas)):
                    own = parts.of_profile(part, profile)
                    assert own is not None
                    estimates.append(self._from_within(part, profile, own)[own.rows(0)].copy())
                estimates = np.concatenate(estimates)
                areas = AreaRange.within(tree, 0, 0, 1, parts.level)
            solution.upwards(estimates, areas)
            solution.downwards(estimates, areas)
            found.append(estimates)
        return found

    def _from_within(self, part: int, profile: int, areas: AreaRange) -> np.ndarray:
        """Estimates of a profile from what a part has measured: float64[n_rows, n_columns]."""
        estimates = self._measured(part, profile, areas)
        self._solutions[profile].upwards(estimates, areas)
        return estimates

    def _measured(self, part: int, profile: int, areas: AreaRange) -> np.ndarray:
        """What was measured of a profile, 0 where nothing was: float64[n_rows, n_columns]."""
        rows, width = self.parts.measured_rows(profile, areas), int(self.parts.widths[profile])
        numbers = self.numbers(part, profile)
        if len(rows) == len(areas):
            return numbers.reshape(-1, width).astype(float)
        found = np.zeros((len(areas), width))
        found[rows] = numbers.reshape(-1, width)
        return found

    @abstractmethod
    def numbers(self, part: int, profile: int) -> np.ndarray:
        """What was measured in a part for a profile, in the order of the file: int64[·]."""

    def _contribute(self, profile: int, estimates: np.ndarray) -> None:
        """Make estimates, float64[n_rows, n_columns], what each residual adds to its own marginal.

        Where no attribute has a strategy.
        """
        closure = self.parts.plan.closure
        for columns in self.parts.columns[profile]:
            for residual in columns.residuals:
                if has_strategy(closure, residual):
                    continue  # decoded it would have more columns, and is when it is needed
                within, shape = (
                    self.parts.of_residuals[residual][1],
                    measured_shape(closure, residual),
                )
                own = estimates[:, within].reshape(len(estimates), *shape)
                own = contribution(own, closure.attributes(residual), closure.strategies)
                estimates[:, within] = own.reshape(len(estimates), within.stop - within.start)


@dataclass(frozen=True, eq=False)
class MeasuredAnswers(AreaAnswers):
    """The answers of a release that is not finished yet."""

    measured: Measured

    def numbers(self, part: int, profile: int) -> np.ndarray:
        return self.measured.read(*self.parts.bounds(part, profile))


def has_strategy(closure: Closure, residual: int) -> bool:
    """Whether some attribute of a residual is measured by a strategy."""
    return any(attribute in closure.strategies for attribute in closure.attributes(residual))
