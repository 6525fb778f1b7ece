"""Best guesses for areas: whole counts near what areas share with what they lie in, and errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from scipy.optimize import nnls

from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.releases.area_measurement import AreaAnswers
from rpexplore.releases.area_parts import AreaParts
from rpexplore.results.estimates.area_cells import AreaCells, PartCells
from rpexplore.results.estimates.area_families import (
    MOST_TOGETHER,
    SIZES,
    CellNoise,
    Family,
    size_classes,
)
from rpexplore.results.estimates.count_laws import CountLaws, power_law
from rpexplore.results.estimates.family_tables import nearest_whole_parts
from rpexplore.results.estimates.whole_areas import UNKNOWN, WholeCounts, whole_top

# A part of an area is expected to have the area's cells in the proportion of its total, and to
# deviate from them by more than chance: a priori with mean m and variance τ m in each cell, τ by
# level and size of m. What was measured in the part says how far it does. All parts of an area
# together, given the area's own counts, have their posterior mean and variance in closed form, and
# one step beyond it with laws of counts (docs/mathematics.md §15.11); whole numbers with all sums
# are the nearest to that. The total of a part comes first, and from all that was measured in it: as
# most of its records are in few cells, the answers to these say more of it than the answer to the
# total alone.

_SPREADS = np.exp(np.linspace(np.log(1e-3), np.log(1e4), 64))  # that τ is chosen from
_FAMILIES = 400  # of a level in a part, whose evidence is taken
_PARTS = 4  # of a release, likewise
_ROUNDS_OF_TOP = 6  # in which sites of its cells are found, which have none to begin with


@dataclass(frozen=True, eq=False)
class BestGuesses(WholeCounts):
    """Whole counts near the posterior means of a hierarchical model.

    Errors are squared, float32[n_areas, n]: of the cells of `tables[level]`, one after another.

    plan     of the release
    tables   of each level the sets of attributes whose tables get errors
    spreads  τ: of each level float64[len(SIZES) + 1]; where it is missing, it is found
    curves   what was found: the logarithmic likelihood of each of `_SPREADS`, by level and class
    """

    plan: AreaDesign
    tables: Sequence[Sequence[AttributeIndices]]
    spreads: dict[int, np.ndarray]
    curves: dict[int, np.ndarray]

    def of_top(self) -> np.ndarray:
        """Counts of the top, int64[1, n_cells]: near their means, given the tables of the stages.

        Tables of the stages before the last are the nearest to their own answers. The law of a cell
        is then a power of the count (`count_laws.power_law`), as most kinds are rare. Where answers
        to some residuals are missing, the cells are the likeliest ≥ 0, with the least Σ_S |Π_S (x −
        y)|²/λ_S: with other weights the many small cells that may not be negative would move large
        ones whose sums are precise.
        """
        answers, stages = self.answers(0, slice(0, 1))[0], self.cells.stages[0]
        first = self.first_of_top(answers)
        if not self._is_top_estimated:
            return whole_top(self.cells, answers, first, stages)
        counts = whole_top(self.cells, answers, first, stages[:-1])[0]
        if not self.cells.has_unknown(0):
            means, _ = self._posterior_of_top(counts)
            return whole_top(self.cells, means, first, stages)
        n_cells, possible = len(answers), np.flatnonzero(self.cells.possible)
        own = self.cells.in_stages(answers[None], 0).reshape(len(counts), -1)
        shares = self.cells.in_stages(self.cells.shares(0)[None], 0).reshape(own.shape)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        own = own + (counts - own.sum(axis=1))[:, None] * shares
        answers = self.cells.from_stages(own.reshape(1, -1), 0)[0]
        noise = self._noise(0)
        given = frozenset(self.cells.orders[0][: len(stages) - 2])
        information = noise.entries(
            noise.information(0, given), np.arange(n_cells), np.arange(n_cells)
        )
        own = information[np.ix_(possible, possible)]
        ridge = 1e-9 * np.trace(own) / len(own)  # for residuals without an answer
        factor = np.linalg.cholesky(own + ridge * np.eye(len(own)))
        wanted = np.linalg.solve(factor, information[possible] @ answers)
        cells = np.zeros(n_cells)
        cells[possible], _ = nnls(factor.T, wanted, maxiter=100 * len(own))
        cells = self.cells.with_least_structure(cells)
        return whole_top(self.cells, cells, first, stages)

    @property
    def _is_top_estimated(self) -> bool:
        """Whether the cells of the top are few enough, and not those of an exact table."""
        is_exact = self.cells.is_exact(self.cells.attributes[0])
        n_possible = np.count_nonzero(self.cells.possible)
        few = bool(0 < n_possible <= 2 * MOST_TOGETHER)
        return few and len(self.cells.stages[0]) >= 2 and not is_exact

    def _posterior_of_top(self, sums: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Means of the cells of the top, float64[n_cells], and the covariance of the possible ones.

        sums: int64[n]: of the cells in the order of stages, those after another; None: unknown
        """
        answers, noise = self.answers(0, slice(0, 1))[0], self._noise(0)
        n_cells, possible = len(answers), np.flatnonzero(self.cells.possible)
        rows = noise.entries(noise.information(0), possible, np.arange(n_cells))
        heard, information = rows @ answers, rows[:, possible]
        of_sums = np.zeros((0, len(possible)))
        if sums is not None:
            order = self.cells.in_stages(np.arange(n_cells)[None], 0).reshape(len(sums), -1)
            of_sums = np.stack([np.isin(possible, own).astype(float) for own in order])
            is_some = np.any(of_sums, axis=1)
            of_sums, sums = of_sums[is_some], sums[is_some]
        variances = noise.cell_variances(0, possible)
        logs = power_law(answers[possible], variances, self.top_total(answers))
        precisions = linear = np.zeros(len(possible))
        laws = CountLaws(np.tile(logs, (len(possible), 1)), precisions, linear)

        def solution(precisions: np.ndarray, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            covariance = np.linalg.inv(information + np.diag(precisions))
            means = covariance @ (heard + linear)
            if sums is None:
                return means, covariance
            gains = covariance @ of_sums.T @ np.linalg.inv(of_sums @ covariance @ of_sums.T)
            return means + gains @ (
                sums - of_sums @ means
            ), covariance - gains @ of_sums @ covariance

        means, covariance = solution(precisions, linear)
        for _ in range(_ROUNDS_OF_TOP):
            precisions, linear = laws.next_sites(precisions, linear, means, np.diag(covariance))
            means, covariance = solution(precisions, linear)
        found = np.zeros(n_cells)
        found[possible] = means
        return found, covariance

    @cached_property
    def _noises(self) -> dict[int, CellNoise]:
        return {}

    def _noise(self, level: int) -> CellNoise:
        if level not in self._noises:
            self._noises[level] = CellNoise.of_plan(self.plan, self.cells, level)
        return self._noises[level]

    @property
    def measured_top_errors(self) -> np.ndarray:
        """Of the answers to the top, in place of `top_errors` before there are any."""
        noise = self._noise(0)
        of_tables = [noise.table_variances(each, 0) for each in self.tables[0]]
        return np.concatenate(of_tables).astype(np.float32)[None]

    @cached_property
    def top_errors(self) -> np.ndarray:
        """Of the top, whose counts are taken to be as accurate as its answers without a law."""
        if not self._is_top_estimated or self.cells.has_unknown(0):
            return self.measured_top_errors
        # Sums of stages are as uncertain as they were measured; a known total is not.
        known = None if self.totals[0] == UNKNOWN else self.totals[:1]
        means, covariance = self._posterior_of_top(known)
        counts, possible, found = self.of_top(), np.flatnonzero(self.cells.possible), []
        for attributes in self.tables[0]:
            off = self.cells.margin_on(counts - means, 0, attributes)[0]
            places = self._places(0, possible, attributes)
            own = (covariance * (places[:, None] == places)).sum(axis=1)
            found.append(np.bincount(places, own, len(off)) + off**2)
        return np.maximum(np.concatenate(found), 0.0).astype(np.float32)[None]

    def _n_cells(self, attributes: AttributeIndices) -> int:
        return prod(self.cells.sizes[index] for index in attributes)

    def counts_of_parts(
        self,
        level: int,
        areas: np.ndarray,
        n_parts: np.ndarray,
        above: np.ndarray,
        answers: np.ndarray,
        errors: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        totals = self.totals_of_parts(areas, n_parts, above, answers)
        groups, noise = self.plan.groups.of_area[areas], self._noise(level)
        if level not in self.spreads:
            self._find_spreads(level, groups, n_parts, above, answers, totals)
        is_known = self.totals[areas] != UNKNOWN
        of_totals = np.where(is_known, 0.0, noise.variances[noise.of[()], groups])
        means, spread = np.zeros_like(answers), self.spreads[level]
        columns, even = self.columns(level), self.cells.shares(level)
        squared = None if errors is None else np.zeros((len(areas), columns[-1][2].stop))
        stops = np.cumsum(n_parts)
        for number, stop in enumerate(stops.tolist()):
            own = np.arange(stop - n_parts[number], stop)
            held = int(np.count_nonzero(totals[own]))
            if not held:
                continue
            family = Family.of(noise, int(groups[own[0]]), above[number], spread, held)
            alphas = np.mean(noise.below[:, groups[own[:1]]] / noise.below[:, groups[own]], axis=0)
            if len(own) > 1 and not np.any(is_known[own]):
                alone = noise.below[noise.of[()], groups[own]]
                found, variance = family.totals(answers[own], alphas, totals[own], alone)
                gains, whole = variance / variance.sum(), above[number].sum()
                found = found + gains * (whole - found.sum())
                totals[own] = nearest_whole_parts(found, np.array([0]), np.array([whole]))
                of_totals[own] = variance * (1 - gains) + (found - totals[own]) ** 2
                if errors is not None:
                    of_totals[own] += gains**2 * errors[number, 0]
            # Answers are moved to have these totals, so that their means have them too. The errors
            # are still those of totals that are measured: what is given is not known.
            moved = answers[own] + (totals[own] - answers[own].sum(axis=1))[:, None] * even
            some = totals[own] > 0
            own, moved, alphas = own[some], moved[some], alphas[some]
            shares = totals[own] / totals[own].sum()
            expected = shares[:, None] * above[number]
            found, variances = family.posterior_of_counts(moved, expected, shares, alphas)
            means[np.ix_(own, family.support)] = found
            if squared is not None and errors is not None:
                squared[own] = self.variances_of_parts(
                    level, family, variances, errors[number], shares
                )
        counts = self.in_whole_numbers(level, n_parts, above, totals, means)
        if squared is None:
            return counts, None
        nobody = np.flatnonzero(totals == 0)
        for attributes, _, within in columns:
            if not attributes:
                squared[:, within] = of_totals[:, None]
                continue
            mean = self.cells.margin_on(means, level, attributes)
            squared[:, within] += (self.cells.margin_on(counts, level, attributes) - mean) ** 2
            # An area whose total is taken for 0 may have some all the same.
            squared[nobody, within] += of_totals[nobody, None] / mean.shape[1]
        return counts, squared.astype(np.float32)

    def columns(self, level: int) -> list[tuple[AttributeIndices, slice, slice]]:
        """Each table with errors on a level: its columns in those of the level above, and here."""
        above: dict[AttributeIndices, slice] = {}
        start = 0
        for attributes in self.tables[max(level - 1, 0)]:
            above[attributes] = slice(start, start + self._n_cells(attributes))
            start = above[attributes].stop
        found, start = [], 0
        for attributes in self.tables[level]:
            stop = start + self._n_cells(attributes)
            found.append((attributes, above[attributes], slice(start, stop)))
            start = stop
        return found

    def variances_of_parts(
        self,
        level: int,
        family: Family,
        variances: np.ndarray,
        above: np.ndarray,
        shares: np.ndarray,
    ) -> np.ndarray:
        """Of the posterior of a family's tables, float64[n_parts, n], given the totals.

        variances: of z; above: squared errors of the area's tables
        """
        together = variances.sum(axis=0)
        within = variances * (1 - variances / together)
        found = []
        for attributes, columns, _ in self.columns(level):
            n_cells = self._n_cells(attributes)
            places = self._places(level, family.support, attributes)
            squares = family.squares(places, n_cells)
            # The area's own error goes to its parts as what they have too much together does;
            # where nobody is, as records would.
            of_parts, of_all = variances @ squares.T, squares @ together
            gains = np.divide(
                of_parts, of_all, np.broadcast_to(shares[:, None], of_parts.shape).copy(),
                where=of_all > 0,
            )  # fmt: skip
            gains = np.where(of_all > 0, gains**2, gains)
            found.append(within @ squares.T + gains * above[columns])
        return np.concatenate(found, axis=1)

    def _places(self, level: int, codes: np.ndarray, attributes: AttributeIndices) -> np.ndarray:
        """The cell of a table that each of some cells of a level is in, int64[n]."""
        places = np.zeros(len(codes), dtype=np.int64)
        values = self.cells.values_of(level, codes, attributes)
        for index, own in zip(attributes, values, strict=True):
            places = places * self.cells.sizes[index] + own
        return places

    def _find_spreads(
        self,
        level: int,
        groups: np.ndarray,
        n_parts: np.ndarray,
        above: np.ndarray,
        answers: np.ndarray,
        totals: np.ndarray,
    ) -> None:
        """Find τ of a level by the likelihood of cells, each class of sizes by itself."""
        curves, noise = np.zeros((len(SIZES) + 1, len(_SPREADS))), self._noise(level)
        answers = answers + (totals - answers.sum(axis=1))[:, None] * self.cells.shares(level)
        stops = np.cumsum(n_parts)
        for number, stop in enumerate(stops.tolist()):
            own = np.arange(stop - n_parts[number], stop)
            own = own[totals[own] > 0]
            if len(own) < 2:
                continue
            support = np.flatnonzero(above[number])[: MOST_TOGETHER * 4]
            shares = totals[own] / totals[own].sum()
            expected = shares[:, None] * above[number, support]
            # As the parts add up, of n alike each varies by (n − 1)/n of what it would.
            squares = (answers[np.ix_(own, support)] - expected) ** 2
            squares /= 1 - shares[:, None] * (1 - 1e-3)
            classes = size_classes(above[number, support] / len(own))
            variances = noise.cell_variances(int(groups[own[0]]), support)
            for place in np.unique(classes):
                some = classes == place
                by_noise = np.tile(variances[some], len(own))
                all_of = by_noise + _SPREADS[:, None] * expected[:, some].ravel()
                curves[place] -= np.sum(np.log(all_of) + squares[:, some].ravel() / all_of, 1) / 2
        self.curves[level] = curves
        self.spreads[level] = spreads_of(curves)


def spreads_of(curves: np.ndarray) -> np.ndarray:
    """The likeliest τ of each class; of a class without evidence that of the nearest with some."""
    known = np.flatnonzero(np.any(curves, axis=1))
    if not len(known):
        return np.ones(len(curves))
    nearest = known[np.argmin(np.abs(np.arange(len(curves))[:, None] - known), axis=1)]
    return _SPREADS[np.argmax(curves, axis=1)][nearest]


def tables_with_errors(plan: AreaDesign, cells: AreaCells) -> list[list[AttributeIndices]]:
    """Of each level the sets of attributes of tables asked for anywhere that its cells have."""
    tables = plan.workload.tables
    asked: set[AttributeIndices] = {()}
    for table in np.unique(np.concatenate([list(rows) for rows in plan.workload.rows])).tolist():
        own = tables.attribute_indices(table)
        if tables.has_amounts[table]:
            continue
        asked.add(tuple(index for index in own if cells.sizes[index] > 1))
    in_order = sorted(asked, key=lambda each: (len(each), each))
    return [
        [each for each in in_order if cells.has(level, each)]
        for level in range(len(cells.attributes))
    ]


def find_spreads(
    guesses: Callable[..., BestGuesses], parts: AreaParts, answers: AreaAnswers, cells: AreaCells
) -> dict[int, np.ndarray]:
    """τ of each level, from some areas of each that are spread evenly over the tree.

    guesses: makes `BestGuesses` of answers, spreads and curves
    """
    last = len(cells.attributes) - 1
    level = min(parts.level, last)
    top_answers = PartCells(cells, answers.of_top, 0)
    above = guesses(top_answers, {}, {})
    numbers, counts = _descended(above, 0, np.array([0]), above.of_top(), level)
    pooled = dict(above.curves)
    first = 1 if parts.level else 0
    some = np.unique(np.linspace(first, len(parts.areas) - 1, _PARTS).astype(int)).tolist()
    others = [part for part in range(first, len(parts.areas)) if part not in some]
    for part in [*some, *others] if level < last else ():
        if part not in some and pooled.keys() >= {*range(1, last + 1)}:
            break  # of no level more is needed, where no part of some has areas
        within = parts.areas[part].slices[0]
        own = (numbers >= within.start) & (numbers < within.stop)
        if not np.any(own):
            continue
        part_answers = PartCells(cells, answers.of_part(part), parts.level)
        here = guesses(part_answers, {}, {})
        _descended(here, level, numbers[own], counts[own], last)
        for below, curves in here.curves.items():
            pooled[below] = pooled.get(below, 0.0) + curves
    found = {own: spreads_of(curves) for own, curves in pooled.items()}
    for below in range(1, last + 1):  # the same for all subtrees, wherever they are estimated
        found.setdefault(below, found.get(below - 1, np.ones(len(SIZES) + 1)))
    return found


def _descended(
    guesses: BestGuesses, level: int, areas: np.ndarray, counts: np.ndarray, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Areas within some areas on a lower level, by their numbers, and their counts.

    Of some of the areas only on each level where these are many.
    """
    tree = guesses.tree
    for below in range(level + 1, last + 1):
        divided = np.flatnonzero(tree.n_parts[areas])
        if not len(divided):
            return areas[:0], counts[:0]
        places = np.linspace(0, len(divided) - 1, min(len(divided), _FAMILIES)).astype(int)
        chosen = divided[places]
        margins = guesses.cells.margins(counts[chosen], below - 1)
        firsts, n_parts = tree.first_parts[areas[chosen]], tree.n_parts[areas[chosen]]
        ranges = [
            slice(int(start), int(start + count))
            for start, count in zip(firsts, n_parts, strict=True)
        ]
        answers = np.concatenate([guesses.answers(below, own) for own in ranges])
        areas = np.concatenate([np.arange(own.start, own.stop) for own in ranges])
        counts, _ = guesses.counts_of_parts(
            below, areas, n_parts.astype(np.int64), margins, answers
        )
    return areas, counts
