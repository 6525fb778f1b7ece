"""Expected errors of best guesses for areas, level by level, before any record is read.

What best guesses gain depends on how much areas differ from the areas around them, and nobody knows
that before the run: every figure is given for areas that differ by chance alone and for areas whose
shares differ by half as well. The truth may be outside, but never above the unbiased error by much:
how areas differ is estimated from what was measured (docs/mathematics.md §15.11).
"""

from collections.abc import Mapping
from itertools import compress

import numpy as np
import pandas as pd

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
        well; people_… of the same three: the share of records in good cells, mean over the tables.

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

    rows = []
    for level, noise in enumerate(noises):
        areas = tree.level_slice(level)
        asked = areas.start + np.flatnonzero(plan.workload.kinds[areas] >= 0)
        asked = asked[sizes[asked] > 0]
        if not len(asked):
            continue
        of_totals = noise.variances[noise.of[()], plan.groups.of_area[asked]]
        area = int(asked[_median_of(sizes[asked], of_totals)])
        group, kind = int(plan.groups.of_area[area]), int(plan.workload.kinds[area])
        # A table that is asked for on other levels alone has no unbiased counts here.
        own_tables = plan.workload.workloads[kind]
        judged = {
            tuple(i for i in own_tables.attribute_indices(row) if cells.sizes[i] > 1)
            for row in np.flatnonzero(~own_tables.has_amounts).tolist()
        }
        is_judged = [each in judged for each in tables[level]]
        of_cells = counts(level)[None]
        of_tables = [cells.margin_on(of_cells, level, each)[0] for each in tables[level]]
        ends = np.cumsum([len(own) for own in of_tables])[:-1]
        unbiased = [noise.table_variances(each, group) for each in tables[level]]
        variances = {
            name: list(compress(found, is_judged))
            for name, found in (
                ("unbiased", unbiased),
                *((name, np.split(squared(name, area), ends)) for name in spreads),
            )
        }
        of_tables = list(compress(of_tables, is_judged))
        row = {"level": tree.levels[level], "size": sizes[area]}
        for name, found in variances.items():
            row[name] = float(np.sqrt(np.mean([np.mean(own) for own in found])))
            good = [
                np.sum(own[np.sqrt(errors) <= cv_limit * own * sizes[area]])
                for own, errors in zip(of_tables, found, strict=True)
            ]
            row[f"people_{name}"] = float(np.mean(good))
        rows.append(row)
    columns = ["unbiased", *spreads, *(f"people_{name}" for name in ("unbiased", *spreads))]
    return pd.DataFrame(rows, columns=pd.Index(["level", "size", *columns]))


def _median_of(sizes: np.ndarray, variances: np.ndarray) -> int:
    """The row of the median size and, of the rows of this size, of the median variance."""
    size = sizes[np.argsort(sizes, kind="stable")[len(sizes) // 2]]
    same = np.flatnonzero(sizes == size)
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
