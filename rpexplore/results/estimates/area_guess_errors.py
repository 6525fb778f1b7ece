"""Expected errors of best guesses for areas, level by level, before any record is read.

What best guesses gain depends on how much areas differ from the areas around them, and nobody knows
that before the run: every figure is given for areas that differ by chance alone and for areas whose
shares differ by half as well. The truth may be outside, but never above the unbiased error by much:
how areas differ is estimated from what was measured (docs/mathematics.md §15.11).
"""

from collections.abc import Mapping
from functools import cache
from itertools import compress

import numpy as np
import pandas as pd
from scipy.special import betainc, gammainc

from rpexplore.domain.area_tree import AreaRange, AreaTree
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.plan import Plan
from rpexplore.results.estimates.area_cells import cells_of
from rpexplore.results.estimates.area_families import SIZES, CellNoise, Family
from rpexplore.results.estimates.area_guesses import BestGuesses, tables_with_errors
from rpexplore.results.estimates.whole_areas import known_totals

_DIFFERING = 0.5  # CV between areas of the share that a cell has of them
_PEOPLE = (0.1, 0.3, 0.5, 0.7, 0.9)  # of all live in areas that are smaller than the judged ones


def guess_errors_of(
    plan: Plan,
    expected: ExpectedCounts | None,
    cv_limit: float = CV_LIMIT,
    totals: Mapping[int, float] | None = None,
) -> pd.DataFrame | None:
    """`guess_errors_by_level` of a plan; None without expected counts, or where there are none."""
    part = plan.part("areas")
    if expected is None or part is None:
        return None
    try:
        return guess_errors_by_level(part, expected, cv_limit=cv_limit, totals=totals)
    except (ReleaseError, WorkloadError):  # such as of other bases, or counts that do not fit
        return None


def guess_errors_by_level(
    plan: AreaDesign,
    expected: ExpectedCounts,
    *,
    cv_limit: float = CV_LIMIT,
    totals: Mapping[int, float] | None = None,
) -> pd.DataFrame:
    """One row a level with tables: root mean square errors of its typical area.

    Records are spread evenly over the areas without parts within each area with a stated total, and
    over those within none. Typical is, of the areas with tables
    that are of the median size, the one with the median variance of the total.

    Args:
        expected: How many records each cell of the other attributes is expected to hold in all
            areas together, from public sources.
        cv_limit: The largest coefficient of variation of a good cell.
        totals: How many records areas hold, by their numbers; in place of the total of `expected`
            where they say it.

    Returns:
        Columns: level, size (records of the area); unbiased, alike, differing: errors over the
        cells of the tables asked for there, of unbiased counts and of best guesses where areas
        differ by chance alone, and where their shares have a coefficient of variation of 50 % as
        well; people_… of the same three: the share of records in good cells, mean over the tables
        of five areas: a tenth, three tenths … of the records lie in smaller ones.

    Raises:
        ReleaseError: If no best guesses can be made of the plan's tables.
        WorkloadError: If the counts do not fit the plan's codebook, or the limit is none.
    """
    checked_cv_limit(cv_limit)
    expected, tree, cells = expected.fitted(plan.domain), plan.workload.tree, cells_of(plan)
    sizes = _sizes(tree, expected.total, totals or {})

    def counts(level: int) -> np.ndarray:
        """How many of all records are expected in each cell of a level: float64[n_cells]."""
        axes = cells.attributes[level]
        plain, at_levels = cells.plain(axes), cells.levels_in(axes)
        indices = [*plain, *(levels.tree.column for levels, _ in at_levels)]
        own = expected.counts_of([plan.domain.attributes[index] for index in indices])
        for axis, (levels, depth) in enumerate(at_levels, start=len(plain)):
            own = levels.summed(own, axis, depth, plan.closure.blocks)
        return np.ravel(own) / expected.total

    # τ m = m by chance alone; + (CV · m)² where shares differ as well.
    by_chance = np.ones(len(SIZES) + 1)
    spreads = {"alike": by_chance, "differing": by_chance + _DIFFERING**2 * np.append(0, SIZES)}
    tables = tables_with_errors(plan, cells)
    guesses = BestGuesses(tree, cells, _no_answers, known_totals(tree, {}), plan, tables, {}, {})
    noises = [CellNoise.of_plan(plan, cells, level) for level in range(len(cells.attributes))]

    @cache
    def squared(name: str, area: int) -> np.ndarray:
        """Of the cells of an area's tables, given those of the area that it lies in."""
        level, parent = int(tree.level_of[area]), int(tree.parents[area])
        if not level:
            return guesses.measured_top_errors[0].astype(float)
        above, of_parent = squared(name, parent), counts(level) * sizes[parent]
        first = int(tree.first_parts[parent])
        parts = np.arange(first, first + int(tree.n_parts[parent]))
        shares, groups, own = sizes[parts] / sizes[parent], plan.groups.of_area[parts], area - first
        noise, group = noises[level], int(groups[own])
        family = Family.of(noise, group, of_parent, spreads[name], len(parts))
        alphas = np.mean(noise.below[:, [group]] / noise.below[:, groups], axis=0)
        # Errors depend on what is measured by the totals alone: answers as they are expected.
        answers = shares[:, None] * of_parent
        with np.errstate(divide="ignore"):  # an area that is stated to have nobody varies by 0
            _, variances = family.posterior(answers, answers, shares, alphas)
        found = guesses.variances_of_parts(level, family, variances, above, shares)[own]
        if len(parts) > 1:
            alone = noise.below[noise.of[()], groups]
            _, variance = family.totals(answers, alphas, sizes[parts], alone)
            gain = variance[own] / variance.sum()
            found[0] = variance[own] * (1 - gain) + gain**2 * above[0]
        return found

    def judged(area: int) -> tuple[dict[str, float], dict[str, float]]:
        """Mean squared errors over the tables of an area, and shares of records in good cells."""
        level, group = int(tree.level_of[area]), int(plan.groups.of_area[area])
        # A table that is asked for on other levels alone has no unbiased counts here.
        own_tables = plan.workload.workloads[int(plan.workload.kinds[area])]
        asked = {
            tuple(i for i in own_tables.attribute_indices(row) if cells.sizes[i] > 1)
            for row in np.flatnonzero(~own_tables.has_amounts).tolist()
        }
        is_judged = [each in asked for each in tables[level]]
        of_cells = counts(level)[None]
        of_tables = [cells.margin_on(of_cells, level, each)[0] for each in tables[level]]
        ends = np.cumsum([len(own) for own in of_tables])[:-1]
        variances = {
            "unbiased": [noises[level].table_variances(each, group) for each in tables[level]],
            **{name: np.split(squared(name, area), ends) for name in spreads},
        }
        means, good = {}, {}
        for name, found in variances.items():
            pairs = list(compress(zip(of_tables, found, strict=True), is_judged))
            means[name] = float(np.mean([np.mean(errors) for _, errors in pairs]))
            shares = [
                own @ _good_shares(errors, own * sizes[area], cv_limit, name, level)
                for own, errors in pairs
            ]
            good[name] = float(np.mean(shares))
        return means, good

    rows = []
    for level, noise in enumerate(noises):
        areas = tree.level_slice(level)
        asked = areas.start + np.flatnonzero(plan.workload.kinds[areas] >= 0)
        asked = asked[sizes[asked] > 0]
        if not len(asked):
            continue
        of_totals = noise.variances[noise.of[()], plan.groups.of_area[asked]]
        median = int(asked[_area_at(0.5, np.ones(len(asked)), sizes[asked], of_totals)])
        means, _ = judged(median)
        row = {"level": tree.levels[level], "size": sizes[median]}
        row |= {name: float(np.sqrt(mean)) for name, mean in means.items()}
        # Most people live in areas that are larger than the median.
        places = [_area_at(share, sizes[asked], sizes[asked], of_totals) for share in _PEOPLE]
        good = [judged(area)[1] for area in asked[places].tolist()]
        row |= {f"people_{name}": float(np.mean([own[name] for own in good])) for name in means}
        rows.append(row)
    columns = ["unbiased", *spreads, *(f"people_{name}" for name in ("unbiased", *spreads))]
    return pd.DataFrame(rows, columns=pd.Index(["level", "size", *columns]))


def _good_shares(
    errors: np.ndarray, expected: np.ndarray, cv_limit: float, name: str, level: int
) -> np.ndarray:
    """Of the records of each cell the share that lies in cells that are good: float64[n_cells].

    errors: squared; expected: the count of an area that is like all others

    Below the top, counts have the laws that best guesses take for granted: Poisson's, or of areas
    that differ the negative binomial. Records are where there are more of them: the count of a
    record's cell is 1 more than a count of the same law, negative binomial with 1 success more.
    """
    least = np.ceil(np.sqrt(errors) / cv_limit * (1 - 1e-9))  # from which on a cell is good
    if level == 0:
        return (expected >= least).astype(float)
    others = np.maximum(least - 1, 1)
    if name == "differing":
        sizes = 1 / _DIFFERING**2
        found = betainc(others, sizes + 1, expected / (sizes + expected))
    else:
        found = gammainc(others, expected)
    return np.where(least > 1, found, 1.0)


def _area_at(share: float, weights: np.ndarray, sizes: np.ndarray, variances: np.ndarray) -> int:
    """The row of a size, below which are areas with this share of all weights.

    Of the rows of this size the one of the median variance.
    """
    order = np.argsort(sizes, kind="stable")
    ends = np.cumsum(weights[order])
    place = min(int(np.searchsorted(ends, share * ends[-1], side="right")), len(order) - 1)
    same = np.flatnonzero(sizes == sizes[order[place]])
    return int(same[np.argsort(variances[same], kind="stable")[len(same) // 2]])


def _no_answers(level: int, areas: slice) -> np.ndarray:
    raise AssertionError("Nothing is measured before the run.")


def _sizes(tree: AreaTree, total: float, totals: Mapping[int, float]) -> np.ndarray:
    """Records of each area, float64[n_areas]: as stated, and even over leaves within what is."""
    leaves = (tree.n_parts == 0).astype(float)
    whole = AreaRange.within(tree, 0, 0, 1, len(tree.levels) - 1)
    within = leaves.copy()  # the leaves in each area
    whole.add_parts(within)
    per_leaf = np.full(tree.n_areas, totals.get(0, total) / within[0])
    known = np.array(sorted(totals.keys() - {0}), dtype=np.int64)
    stated = np.array([totals[area] for area in known.tolist()])
    for level in range(1, len(tree.levels)):
        areas = tree.level_slice(level)
        parents = np.asarray(tree.parents[areas])
        own = (known >= areas.start) & (known < areas.stop)
        # What an area has left goes to those of its parts of which nothing is stated.
        left, left_leaves = per_leaf * within, within.copy()
        np.subtract.at(left, tree.parents[known[own]], stated[own])
        np.subtract.at(left_leaves, tree.parents[known[own]], within[known[own]])
        rest = np.maximum(left, 0) / np.maximum(left_leaves, 1)
        per_leaf[areas] = rest[parents]
        per_leaf[known[own]] = stated[own] / within[known[own]]
    sizes = leaves * per_leaf
    whole.add_parts(sizes)
    return sizes
