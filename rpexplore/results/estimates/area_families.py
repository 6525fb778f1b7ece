"""The prior of the parts of an area, which is like the area, and how answers to them err."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.mechanism.reconstruction import MarginalNoise
from rpexplore.results.estimates.area_cells import AreaCells
from rpexplore.results.estimates.count_laws import MOST, CountLaws, negative_binomial
from rpexplore.results.estimates.level_axes import LevelAxes

SIZES = np.array([0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0])
"""Expected counts at which the classes of τ begin; the first begins at 0."""

MOST_TOGETHER = 600  # cells of an area above 0 that are estimated together; cubes of it are time
_MOST_ENTRIES = 20_000_000  # of a matrix, 8 bytes each
_MOST_OF_LAWS = 4_000_000  # parts × cells × counts or cells, 8 bytes each
_LEAST_RATIO = 0.5  # of variance to mean, from which on counts are taken to be drawn by chance
_GIVEN_VARIANCE = 1e-3  # of what is given, in records²: next to nothing, but not singular
_CONTRADICTION = 3.0  # standard errors from which on a part is taken to be unlike the area


@dataclass(frozen=True, eq=False)
class CellNoise:
    """How the unbiased answers to cells of a level's areas err, given those of what they lie in.

    Of residual S of an area's cells x, R_S x is measured with the variance σ²_S, so that the
    inverse covariance of the answers is Σ_S R_Sᵀ R_S / σ²_S. R_S is a product over attributes, and
    of most of these an entry of R_Sᵀ R_S depends only on whether its two cells agree: numbers by
    such patterns are all of it. Of an attribute at several levels each pair of cells is a pattern.

    cells      of the areas
    level      of theirs
    below      float64[n_residuals, n_groups]: variances of residuals from within the areas
    variances  float64[n_residuals, n_groups]: of the least-squares answers
    of         the row of each residual that is known on the level
    plan       of the areas
    """

    cells: AreaCells
    level: int
    below: np.ndarray
    variances: np.ndarray
    of: dict[AttributeIndices, int]
    plan: AreaDesign

    @classmethod
    def of_plan(cls, plan: AreaDesign, cells: AreaCells, level: int) -> "CellNoise":
        """Of a level of a plan's areas."""
        known = cells.known[level]
        own = [each for each in cells.residuals_of(cells.attributes[level]) if each in known]
        rows = {each: row for each in own if (row := plan.closure.find(each)) is not None}
        below = np.stack(
            [
                plan.estimations[plan.of_residual[row]].below / plan.scales[row]
                for row in rows.values()
            ]
        )
        variances = plan.residual_variances[list(rows.values())]
        return cls(cells, level, below, variances, {each: at for at, each in enumerate(rows)}, plan)

    @cached_property
    def _plain(self) -> list[int]:
        return self.cells.plain(self.cells.attributes[self.level])

    @cached_property
    def _at_levels(self) -> list[tuple[LevelAxes, int]]:
        return self.cells.levels_in(self.cells.attributes[self.level])

    def _by_choice(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers for residuals with an axis for each attribute: 0 without it, then its blocks."""
        choices = [(index,) for index in self._plain]
        choices += [tuple(levels.numbers_within(depth)) for levels, depth in self._at_levels]
        found = np.zeros([1 + len(own) for own in choices])
        for residual, at in self.of.items():
            place = [
                next((1 + own.index(index) for index in residual if index in own), 0)
                for own in choices
            ]
            found[tuple(place)] = numbers[at]
        return found

    def information(self, group: int, given: frozenset[int] | None = None) -> np.ndarray:
        """The inverse covariance by pattern; given: axes whose table is known exactly."""
        # Of what is known exactly no less, or nothing else would be left of the numbers.
        own = np.maximum(self.below[:, group], _GIVEN_VARIANCE)
        if given is not None:
            for residual in self.cells.residuals_of(tuple(sorted(given))):
                if residual in self.of:
                    own[self.of[residual]] = min(own[self.of[residual]], _GIVEN_VARIANCE)
        found = self._by_choice(1 / own)
        for index in self._plain:
            n = self.cells.sizes[index]
            found = np.tensordot(found, [[1.0, 1.0], [-1 / n, 1 - 1 / n]], (0, 0))
        for levels, depth in self._at_levels:
            by_pair = 0.0
            for own, (_, rows, _) in zip(found, levels.directions(depth), strict=True):
                by_pair = by_pair + np.multiply.outer(own, (rows.T @ rows).ravel())
            found = np.asarray(by_pair)
        return found

    def entries(self, by_pattern: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Entries of a matrix by pattern between cells, float64[n_rows, n_columns]."""
        patterns = np.zeros((len(rows), len(columns)), dtype=np.int64)
        of_rows, of_columns = (self.cells.values(self.level, each) for each in (rows, columns))
        for index in self._plain:
            patterns = 2 * patterns + (of_rows[index][:, None] == of_columns[index])
        for levels, depth in self._at_levels:
            n_cells = levels.n_cells(depth)
            own, others = (levels.places(depth, each) for each in (of_rows, of_columns))
            patterns = n_cells**2 * patterns + n_cells * own[:, None] + others
        return by_pattern.ravel()[patterns]

    def cell_variances(self, group: int, codes: np.ndarray) -> np.ndarray:
        """Of the answers to some cells, given the total: float64[n]."""
        own = self.below[:, group].copy()
        own[self.of[()]] = 0.0
        found = self._by_choice(own)
        for index in self._plain:
            n = self.cells.sizes[index]
            found = np.tensordot(found, [1 / n**2, 1 - 1 / n], (0, 0))
        for levels, depth in self._at_levels:
            squares = [np.sum(each**2, axis=1) for _, _, each in levels.directions(depth)]
            found = np.tensordot(found, squares, (0, 0))
        values = self.cells.values(self.level, codes)
        places = tuple(levels.places(depth, values) for levels, depth in self._at_levels)
        return np.broadcast_to(found[places], codes.shape)

    def table_variances(self, attributes: AttributeIndices, group: int) -> np.ndarray:
        """Of the least-squares answers to the cells of a table; of what is known of it.

        float64[n_cells]; attributes: of tables, ascending
        """
        closure, axes = self.plan.closure, tuple(sorted(self.cells.axes_of(attributes)))
        of_residuals = {
            residual: float(self.variances[self.of[residual], group])
            for residual in self.cells.residuals_of(axes)
            if residual in self.of
        }
        noise = MarginalNoise(
            self.plan.domain, attributes, closure.strategies, of_residuals, closure.trees
        )
        return noise.variances.ravel()


def mean_noise(plan: AreaDesign, cells: AreaCells) -> list[float]:
    """Of each level the mean variance of an answer to a cell of an area, the middle one of them."""
    found = []
    for level, axes in enumerate(cells.attributes):
        areas = plan.workload.tree.level_slice(level)
        group = int(plan.groups.of_area[(areas.start + areas.stop) // 2])
        codes = np.arange(prod(cells.sizes[index] for index in axes))
        variances = CellNoise.of_plan(plan, cells, level).cell_variances(group, codes)
        found.append(float(np.mean(variances)))
    return found


@dataclass(frozen=True, eq=False)
class Family:
    """The joint prior of the parts of an area, and what was measured in them, on independent axes.

    The deviations of part c from what is expected are scale · basis · z_c, with z_c a priori of
    variance s_c on every axis, and measured there with precision α_c · precisions.

    support     int64[k]: cells in which the area has records
    counts      float64[k]: how many
    scale       float64[k]: √(τ · count) of each
    rows        float64[k, n_cells]: the inverse covariance of answers; None: cells one by one
    precisions  float64[k]
    basis       float64[k, k], orthogonal; None: the identity
    """

    support: np.ndarray
    counts: np.ndarray
    scale: np.ndarray
    rows: np.ndarray | None
    precisions: np.ndarray
    basis: np.ndarray | None

    @classmethod
    def of(
        cls, noise: CellNoise, group: int, counts: np.ndarray, spreads: np.ndarray, n_parts: int
    ) -> "Family":
        """Of an area with these counts, int64[n_cells]; n_parts: that hold somebody."""
        support = np.flatnonzero(counts)
        own = counts[support].astype(float)
        scale = np.sqrt(own * spreads[size_classes(own / n_parts)])
        k, n_cells = len(support), len(counts)
        if k > MOST_TOGETHER or k * n_cells > _MOST_ENTRIES:
            precisions = scale**2 / np.maximum(noise.cell_variances(group, support), 1e-12)
            return cls(support, own, scale, None, precisions, None)
        rows = noise.entries(noise.information(group), support, np.arange(n_cells))
        precisions, basis = np.linalg.eigh(scale[:, None] * rows[:, support] * scale)
        return cls(support, own, scale, rows, np.maximum(precisions, 0.0), basis)

    def posterior(
        self, answers: np.ndarray, expected: np.ndarray, shares: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means of the cells above 0, and variances of z before the parts have to add up.

        Args:
            answers: float64[n_parts, n_cells], with the totals that are taken as given.
            expected: float64[n_parts, n_cells].
            shares: float64[n_parts], s_c above 0.
            alphas: float64[n_parts].

        Returns:
            float64[n_parts, k] each.
        """
        deviations = answers - expected
        if self.rows is None or self.basis is None:
            measured = self.precisions / self.scale * deviations[:, self.support]
        else:
            measured = (deviations @ self.rows.T * self.scale) @ self.basis
        variances = 1 / (1 / shares[:, None] + alphas[:, None] * self.precisions)
        z = variances * alphas[:, None] * measured
        # What the parts have too much together is taken from each in proportion to its variance.
        z -= variances / variances.sum(axis=0) * z.sum(axis=0)
        if self.basis is not None:
            z = z @ self.basis.T
        return expected[:, self.support] + z * self.scale, variances

    def posterior_of_counts(
        self, answers: np.ndarray, expected: np.ndarray, shares: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `posterior`, with means of counts that are negative binomial a priori.

        By one round of expectation propagation: in more, all parts of an area hear from each other
        again that counts are whole, and means are farther off where these are two or three. The
        variances are those of normal laws, which are larger. Where parts and cells are too many, or
        chance makes no difference, means are those of `posterior` as well.
        """
        means, variances = self.posterior(answers, expected, shares, alphas)
        (n_parts, k), most = means.shape, min(int(self.counts.max()), MOST)
        ratios, prior = self.scale**2 / self.counts, expected[:, self.support]
        is_law = (ratios >= _LEAST_RATIO) & (prior.min(axis=0) < MOST)
        is_one = n_parts == 1 or not np.any(is_law)
        if self.rows is None or is_one or n_parts * k * max(k, most + 1) > _MOST_OF_LAWS:
            return means, variances
        logs = negative_binomial(prior[:, is_law], ratios[is_law], most)
        logs[:, np.arange(most + 1) > self.counts[is_law][:, None]] = -np.inf  # the area has fewer
        precisions, linear = 1 / (ratios * prior), np.broadcast_to(1 / ratios, prior.shape).copy()
        within = variances * (1 - variances / variances.sum(axis=0))
        within = within @ self.squares(np.arange(k), k).T
        precisions[:, is_law], linear[:, is_law] = CountLaws(
            logs, precisions[:, is_law], linear[:, is_law]
        ).next_sites(precisions[:, is_law], linear[:, is_law], means[:, is_law], within[:, is_law])
        covariances = alphas[:, None, None] * self.rows[:, self.support]
        covariances[:, np.arange(k), np.arange(k)] += precisions
        covariances = np.linalg.inv(covariances)
        linear += alphas[:, None] * (answers @ self.rows.T)
        means = np.einsum("cij,cj->ci", covariances, linear)
        # What the parts have too much together is taken from each in proportion to its covariance.
        missing = np.linalg.solve(covariances.sum(axis=0), self.counts - means.sum(axis=0))
        return means + covariances @ missing, variances

    def totals(
        self, answers: np.ndarray, alphas: np.ndarray, measured: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means of totals, of which nothing is known a priori, and their variances.

        Each part by itself, before the parts have to add up; a total that contradicts what was
        measured of it alone, as where a part is unlike the area, is left as it was measured.

        Args:
            answers: float64[n_parts, n_cells].
            alphas: float64[n_parts].
            measured: float64[n_parts]: the least-squares totals ≥ 0.
            variance: float64[n_parts], of what was measured of the total within each part.

        Returns:
            float64[n_parts] each.
        """
        if self.rows is None or self.basis is None:
            return measured, variance
        whole = self.counts.sum()
        # The shares of the area, a record in each cell, and the answers, on the axes of z.
        shares = (self.counts / whole / self.scale) @ self.basis
        ones, alphas = self.scale @ self.basis, alphas[:, None]
        heard = alphas * ((answers @ self.rows.T * self.scale) @ self.basis)
        totals, found = measured, variance
        for _ in range(2):  # the prior variance is in proportion to the total itself
            prior = np.maximum(totals, 1.0)[:, None] / whole
            variances = 1 / (1 / prior + alphas * self.precisions)
            left = variances / prior  # of a deviation, once the answers are known
            # With x = T · shares + deviations and T of any size, (D + J⁻¹)⁻¹ weighs the answers.
            of_size = 1 / np.sum(left * alphas * self.precisions * shares**2, axis=1)
            sizes = of_size * np.sum(left * shares * heard, axis=1)
            z = variances * (heard - sizes[:, None] * alphas * self.precisions * shares)
            totals = sizes + z @ ones
            found = variances @ ones**2 + np.sum(left * ones * shares, axis=1) ** 2 * of_size
        # Under the model the two differ by the difference of their variances (Hausman 1978).
        apart = (totals - measured) ** 2 > _CONTRADICTION**2 * np.maximum(variance - found, 0.0)
        apart |= found >= variance
        return np.where(apart, measured, totals), np.where(apart, variance, found)

    def squares(self, places: np.ndarray, n_cells: int) -> np.ndarray:
        """What a variance of each axis adds to that of each cell of a table, float64[n_cells, k].

        places: int64[k]: the cell of the table that each of `support` is in
        """
        if self.basis is None:
            found = np.zeros((n_cells, len(places)))
            found[places, np.arange(len(places))] = self.scale**2
            return found
        found = np.zeros((n_cells, len(places)))
        np.add.at(found, places, self.scale[:, None] * self.basis)
        return np.square(found, out=found)


def size_classes(expected: np.ndarray) -> np.ndarray:
    """The class of `SIZES` of each expected count."""
    return np.searchsorted(SIZES, expected, side="right")
