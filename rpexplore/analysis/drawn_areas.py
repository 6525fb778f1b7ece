"""Drawn areas: what tables in areas may count, in populations spread over a tree of areas.

The people of a population (`populations`) live in areas. What is not public of these is drawn too
(docs/mathematics.md §19): how large the parts of an area are, how the classes of people are mixed
in each, and how each attribute differs beyond that. Known totals of areas are kept. Of levels with
many areas some are looked at, larger ones more likely, each with the number of areas that it stands
for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rpexplore.analysis.drawn_counts import columns_not_drawn, rows_of_cells
from rpexplore.analysis.populations import Population, counts_about, parts_of, without_noise
from rpexplore.analysis.ranges import FEWEST_DRAWS
from rpexplore.common.numbers import shown
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.common.text import plural
from rpexplore.domain.area_tree import AreaRange, AreaTree
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.public_tables import PublicTables, cells_of
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_workload import AreaWorkload

# Populations, and the most cells of a table that are gone through; of more, as many people. The
# first with which enough areas can be looked at is taken.
_GRAINS = ((48, 400), (24, 128), (FEWEST_DRAWS, 48), (FEWEST_DRAWS, 24))
_MOST_NUMBERS = 12_000_000  # kept of all areas, tables and populations: 50 to 100 MB
MOST_AREAS, _ENOUGH_AREAS, _FEWEST_AREAS = 300, 60, 12  # looked at, of a level
MOST_TABLES = 300  # of a level; of more, evenly chosen ones
_MOST_SIBLINGS = 4_000  # whose sizes are drawn
_MOST_ADDED_UP = 2_000  # cells of a table of other bases than single values
_MOST_CELLS = 10**15  # that are told apart

# What the areas of populations differ in: standard deviations of the logarithm of an area's people
# over its number of leaves, and of a class's share over that in the area around it. Drawn for a
# population, evenly in its logarithm, and once more for each level. Chosen on nine trees, tried
# on others (docs/mathematics-forecast.md, "Areas tried").
_SIZES_DIFFER, _MIXES_DIFFER = (0.1, 3.5), (0.03, 3.0)
_LEVELS_DIFFER = 0.7  # in the logarithm of these
# The values of an attribute differ between areas as classes do, times a factor of the attribute.
_TILTS_DIFFER = 0.5  # in the logarithm of that factor
_MOST_TILT = 6.0  # with which nearly all people of an area have one value
_MOST_BLOCKS = 100  # of neighbouring values of an attribute that are tilted alike
_NEXT_TO_NOTHING = 1e-300  # to divide by
_RAKED = 10  # rounds


class CountsInAreas(NamedTuple):
    """What a table counts in the areas of a level that are looked at, in every population.

    level, table  numbers: of the level from the top, and of the table among all of the workload
    rows          of the areas in `DrawnAreas.areas`, int64[m]
    counts        float32[n_populations, m, n]: of all cells, or of the cells that n people are in
    people        float32, shaped alike: how many of the area's people each of these stands for, in
                  proportion; None: counts are of all cells
    """

    level: int
    table: int
    rows: np.ndarray
    counts: np.ndarray
    people: np.ndarray | None


@dataclass(frozen=True, eq=False, repr=False)
class DrawnAreas:
    """Counts of tables in areas, in populations: whatever the noise, and drawn once.

    workload     what is asked
    public       what populations agree with, of the other attributes
    totals       known totals of areas
    areas        int64[n]: those that are looked at and those around them, by their numbers
    stands_for   float64[n]: for how many areas of its level each stands; 0: only around others
    sizes        float64[n_populations, n]: how many people live in each
    counts       by level, from the top, and table
    n_chosen, n_tables, n_asked
                 of each level: tables that are looked at, that can be, and that are asked for in
                 some area, int64[n_levels]
    """

    workload: AreaWorkload
    public: PublicTables
    totals: Mapping[int, float] | None
    areas: np.ndarray
    stands_for: np.ndarray
    sizes: np.ndarray
    counts: tuple[CountsInAreas, ...]
    n_chosen: np.ndarray
    n_tables: np.ndarray
    n_asked: np.ndarray

    @classmethod
    def of(
        cls,
        workload: AreaWorkload,
        public: PublicTables,
        totals: Mapping[int, float] | None = None,
        on_progress: Progress = no_progress,
    ) -> "DrawnAreas":
        """Populations over the areas of a workload, and what its tables count.

        totals: known totals of areas, by their numbers; of areas that do not overlap, and together
        are the whole. What populations count in all, `public` says.

        Raises `WorkloadError` for totals that cannot be used, and if no table can be drawn.
        """
        tree, tables = workload.tree, workload.tables
        expected = shares_of_areas(tree, totals)
        is_known = np.zeros(tree.n_areas, dtype=bool)
        is_known[[0, *(totals or ())]] = True
        known = public.domain.with_levels
        to_known = [known.position(name) for name in workload.domain.names]
        attributes = [
            tuple(to_known[index] for index in tables.attribute_indices(row))
            for row in range(len(tables))
        ]
        parts = parts_of(public, attributes)
        undrawn = columns_not_drawn(parts)
        # Of other bases than single values all cells are needed, to add them up.
        identity = np.array([*(basis.is_identity for _, basis in tables.attribute_bases), True])
        is_plain = np.all(identity[tables.attribute_basis_index], axis=1)
        cells = np.minimum(tables.counted_cells, _MOST_CELLS).astype(np.int64)
        drawn = is_plain | (tables.counted_cells <= _MOST_ADDED_UP)
        drawn &= ~tables.has_amounts  # what is summed is not known beforehand
        for row, own in enumerate(attributes):
            drawn[row] &= undrawn.isdisjoint(known.columns[list(own)].tolist())
        parts = tuple(of for of in parts if undrawn.isdisjoint(of.columns))
        asked = _tables_by_level(workload)
        n_asked = np.array([len(of_level) for of_level in asked])
        asked = [of_level[drawn[of_level]] for of_level in asked]
        if not any(len(of_level) for of_level in asked):
            raise WorkloadError(
                "None of the tables in areas can be forecast: they have sums of amounts, weighted "
                "counts, or attributes of too many values together."
            )
        chosen = [_evenly(of_level, MOST_TABLES) for of_level in asked]
        n_populations, most_cells, n_areas = _grain(
            [np.where(is_plain[rows], cells[rows], -cells[rows]) for rows in chosen]
        )
        areas, stands_for = _sampled(workload, expected, n_areas)
        rows = _rows_by_table(workload, areas, stands_for, chosen)
        found = []
        for (level, table), own in rows.items():
            whole = cells[table] <= most_cells or not is_plain[table]
            shape = (n_populations, len(own), cells[table] if whole else most_cells)
            people = None if whole else np.empty(shape, dtype=np.float32)
            found.append(
                CountsInAreas(level, table, own, np.empty(shape, dtype=np.float32), people)
            )
        used = sorted({index for one in found for index in attributes[one.table]})
        sizes = np.empty((n_populations, len(areas)))
        families = _families(tree, areas, expected)
        for number in range(n_populations):
            on_progress("Drawing areas", number / n_populations)
            numbers = SeededNumbers(b"areas %d" % number)
            exact, of_number = without_noise(public, parts, number)
            population = Population.drawn(public, of_number, most_cells, b"population %d" % number)
            shares = _drawn_shares(areas, families, expected, is_known, numbers)
            deviations = _deviations(_MIXES_DIFFER, len(tree.levels) - 1, numbers)
            mixes = _drawn_mixes(
                tree, areas, shares * stands_for, population.weights, deviations, numbers
            )
            sizes[number] = exact.n_records * shares
            seed = SeededNumbers(b"tilts %d" % number)
            people = shares * stands_for
            tilts = _drawn_tilts(tree, areas, people, mixes, population, used, deviations, seed)
            for one in found:
                table = attributes[one.table]
                _fill(one, number, population, table, sizes[number], mixes, tilts, numbers)
        on_progress("Drawing areas", 1.0)
        return cls(
            workload,
            public,
            totals,
            areas,
            stands_for,
            sizes,
            tuple(_with_rows(workload, one) for one in found),
            np.array([len(of_level) for of_level in chosen]),
            np.array([len(of_level) for of_level in asked]),
            n_asked,
        )

    @property
    def is_sample(self) -> bool:
        """Whether not all areas that tables are asked for are looked at."""
        return int(np.count_nonzero(self.stands_for)) < int(np.sum(self.workload.kinds >= 0))

    @property
    def text(self) -> str:
        """What all this rests on, for a sentence."""
        if self.totals is None:
            return f"{self.public.text}; the sizes of areas are not known"
        return f"{self.public.text}; {plural(len(self.totals), 'known total')} of areas"

    @property
    def sample_text(self) -> str:
        """What is looked at, in a sentence; "" for all areas and tables."""
        said = []
        if self.is_sample:
            n = int(np.count_nonzero(self.stands_for))
            said.append(
                f"{n:,} of {int(np.sum(self.workload.kinds >= 0)):,} areas are looked at, larger "
                "ones more likely; each stands for others of its level."
            )
        if np.any(self.n_chosen < self.n_tables):
            said.append(f"Of each level, {MOST_TABLES} tables at most are looked at.")
        if n_left := int(np.sum(self.n_asked - self.n_tables)):
            why = "too many cells"
            if np.any(self.workload.tables.has_amounts):
                why = f"{self.workload.tables.sums_noun}, or {why}"
            said.append(f"{plural(n_left, 'table')} of levels left out: {why}.")
        return " ".join(said)


def shares_of_areas(tree: AreaTree, totals: Mapping[int, float] | None = None) -> np.ndarray:
    """The part of all records that each area is expected to hold, float64[n_areas].

    totals: known ones, within which records are spread evenly over areas without parts; of areas
    that do not overlap, and together are the whole. Raises `WorkloadError` for others.
    """
    given = np.zeros(tree.n_areas)
    covered = np.zeros(tree.n_areas, dtype=np.int64)
    undivided = (tree.n_parts == 0).astype(float)
    every = AreaRange.within(tree, 0, 0, 1, len(tree.levels) - 1)
    within = undivided.copy()
    every.add_parts(within)
    for area, total in ({0: 1.0} if totals is None else totals).items():
        if not 0 <= area < tree.n_areas:
            raise WorkloadError(
                f"A total is given of an area {shown(area)}; the areas of this tree have the "
                f"numbers 0 to {tree.n_areas - 1:,}."
            )
        if not (math.isfinite(total) and total >= 0):
            raise WorkloadError(
                f"The total of the area {' > '.join(tree.path(area)) or tree.levels[0]} is "
                f"{shown(total)}; give a number of records, 0 or more."
            )
        given[area] = total / within[area]
        covered[area] = 1
    for areas in every.slices[1:]:  # what was given goes down to all within
        above = tree.parents[areas]
        given[areas] += given[above]
        covered[areas] += covered[above]
    if np.any(covered[tree.n_parts == 0] != 1):
        area = int(np.argmax((covered != 1) & (tree.n_parts == 0)))
        times = "in none" if covered[area] == 0 else "in several"
        raise WorkloadError(
            f"The area {' > '.join(tree.path(area))} lies {times} of the areas whose totals are "
            "given; give totals of areas that together are the whole, such as all of one level."
        )
    shares = given * undivided
    every.add_parts(shares)
    if shares[0] <= 0:
        raise WorkloadError("The totals of areas must not all be 0.")
    return shares / shares[0]


# ---- Which tables and areas are looked at.


def _tables_by_level(workload: AreaWorkload) -> list[np.ndarray]:
    """The rows of the tables that are asked for in some area of each level, int64[n] each."""
    tree, found = workload.tree, []
    for level in range(len(tree.levels)):
        kinds = np.unique(workload.kinds[tree.level_slice(level)])
        rows = [workload.rows[kind] for kind in kinds.tolist() if kind >= 0]
        found.append(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *rows])))
    return found


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


def _grain(cells: Sequence[np.ndarray]) -> tuple[int, int, int]:
    """How many populations, cells or people of a table, and areas of a level are looked at.

    cells: of the tables of each level; below 0: all of these are gone through
    """
    n_populations = most_cells = n_areas = 0
    for n_populations, most_cells in _GRAINS:
        # Of people two numbers are kept.
        widths = [np.where(own <= most_cells, np.abs(own), 2 * most_cells).sum() for own in cells]
        n_areas = int(_MOST_NUMBERS / (n_populations * max(sum(widths), 1)))
        if n_areas >= _ENOUGH_AREAS:
            break
    return n_populations, most_cells, min(max(n_areas, _FEWEST_AREAS), MOST_AREAS)


def _sampled(
    workload: AreaWorkload, expected: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Areas to look at, with all around them, and for how many of its level each stands.

    Of a level of more than `most`: half as likely by itself, half by the people it is expected to
    hold, one in every equal part of these chances added up.
    """
    tree, stands_for = workload.tree, {}
    for level in range(len(tree.levels)):
        start = int(tree.starts[level])
        asked = start + np.flatnonzero(workload.kinds[tree.level_slice(level)] >= 0)
        if len(asked) <= most:
            stands_for.update(dict.fromkeys(asked.tolist(), 1.0))
            continue
        people = expected[asked]
        chances = 0.5 / len(asked) + 0.5 * people / max(float(np.sum(people)), 1e-300)
        ends = np.cumsum(chances)
        places = np.searchsorted(ends, ends[-1] * (np.arange(most) + 0.5) / most)
        places, hits = np.unique(places, return_counts=True)
        stand = hits / chances[places]
        stand *= len(asked) / np.sum(stand)
        stands_for.update(zip(asked[places].tolist(), stand.tolist(), strict=True))
    areas = np.array(sorted(stands_for), dtype=np.int64)
    around = areas
    while np.any(around > 0):
        around = np.unique(tree.parents[around[around > 0]])
        areas = np.union1d(areas, around)
    return areas, np.array([stands_for.get(area, 0.0) for area in areas.tolist()])


def _rows_by_table(
    workload: AreaWorkload, areas: np.ndarray, stands_for: np.ndarray, chosen: list[np.ndarray]
) -> dict[tuple[int, int], np.ndarray]:
    """By level and table the areas that are looked at and asked for it, by their rows."""
    kinds, levels = workload.kinds[areas], workload.tree.level_of[areas]
    asked = np.zeros((len(workload.workloads) + 1, len(workload.tables)), dtype=bool)
    for kind, rows in enumerate(workload.rows):
        asked[kind, rows] = True
    found = {}
    for level, tables in enumerate(chosen):
        of_level = np.flatnonzero((levels == level) & (stands_for > 0))
        for table in tables.tolist():
            rows = of_level[asked[kinds[of_level], table]]
            if len(rows):
                found[level, table] = rows
    return found


# ---- What is drawn.


class _Family(NamedTuple):
    """Parts of one level whose sizes are drawn: those of each area around one that is looked at.

    rows      of the areas that are looked at or around others, by their rows; ascending
    owners    of each its row's parent, by its place among the families
    places    where each stands among the siblings
    first     where the siblings of each family begin, int64[n_families]
    expected  share of each sibling, float64[n_siblings]
    scale     float64[n_families]: all expected shares over those of the siblings here
    parents   the row of each family's parent, int64[n_families]
    """

    rows: np.ndarray
    owners: np.ndarray
    places: np.ndarray
    first: np.ndarray
    expected: np.ndarray
    scale: np.ndarray
    parents: np.ndarray


def _families(tree: AreaTree, areas: np.ndarray, expected: np.ndarray) -> list[_Family]:
    """From the second level down; of a very large family evenly chosen siblings."""
    found, levels = [], tree.level_of[areas]
    for level in range(1, len(tree.levels)):
        rows = np.flatnonzero(levels == level)
        if not len(rows):
            break
        above = tree.parents[areas[rows]]
        parents, owners = np.unique(above, return_inverse=True)
        siblings, first, scale, places = [], [], [], np.zeros(len(rows), dtype=np.int64)
        start = 0
        for number, parent in enumerate(parents.tolist()):
            begin, count = int(tree.first_parts[parent]), int(tree.n_parts[parent])
            own = np.flatnonzero(owners == number)
            members = np.arange(begin, begin + count)
            if count > _MOST_SIBLINGS:
                members = np.union1d(_evenly(members, _MOST_SIBLINGS), areas[rows[own]])
            places[own] = start + np.searchsorted(members, areas[rows[own]])
            siblings.append(expected[members])
            whole = float(np.sum(expected[begin : begin + count]))
            scale.append(whole / max(float(np.sum(siblings[-1])), 1e-300))
            first.append(start)
            start += len(members)
        found.append(
            _Family(
                rows,
                owners,
                places,
                np.array(first),
                np.concatenate(siblings),
                np.array(scale),
                np.searchsorted(areas, parents),
            )
        )
    return found


def _drawn_shares(
    areas: np.ndarray,
    families: Sequence[_Family],
    expected: np.ndarray,
    is_known: np.ndarray,
    numbers: SeededNumbers,
) -> np.ndarray:
    """The share of all people in each area, float64[n]; what is known as it is."""
    shares = expected[areas].copy()
    # Known: areas with totals, and those around them, whose totals follow.
    known = is_known[areas]
    for family in reversed(families):
        known[family.parents] |= np.bincount(
            family.owners, known[family.rows], len(family.parents)
        ).astype(bool)
    deviations = _deviations(_SIZES_DIFFER, len(families), numbers)
    for family, deviation in zip(families, deviations, strict=True):
        factors = family.expected * np.exp(deviation * numbers.normals(len(family.expected)))
        wholes = np.add.reduceat(factors, family.first) * family.scale
        parts = factors[family.places] / np.maximum(wholes[family.owners], 1e-300)
        drawn = shares[family.parents][family.owners] * parts
        shares[family.rows] = np.where(known[family.rows], shares[family.rows], drawn)
    return shares


def _deviations(ends: tuple[float, float], n_levels: int, numbers: SeededNumbers) -> list[float]:
    low, high = ends
    of_population = low * (high / low) ** numbers.uniforms(1).item()
    return (of_population * np.exp(_LEVELS_DIFFER * numbers.normals(n_levels))).tolist()


def _drawn_mixes(
    tree: AreaTree,
    areas: np.ndarray,
    people: np.ndarray,
    weights: np.ndarray,
    deviations: Sequence[float],
    numbers: SeededNumbers,
) -> np.ndarray:
    """The shares of the classes in each area, float64[n, k]; those of a level together as in all.

    people: that each area stands for
    """
    mixes = np.tile(weights, (len(areas), 1))
    levels = tree.level_of[areas]
    for level, deviation in enumerate(deviations, 1):
        rows = np.flatnonzero(levels == level)
        if not len(rows):
            break
        normals = numbers.normals(len(rows) * len(weights)).reshape(len(rows), -1)
        around = np.searchsorted(areas, tree.parents[areas[rows]])
        own = mixes[around] * np.exp(deviation * normals)
        own /= np.sum(own, axis=1, keepdims=True)
        whole = float(np.sum(people[rows]))
        for _ in range(_RAKED if whole > 0 else 0):
            together = people[rows] @ own / whole
            own = own * (weights / np.maximum(together, 1e-300))
            own /= np.sum(own, axis=1, keepdims=True)
        mixes[rows] = own
    return mixes


class _Tilt(NamedTuple):
    """How much more or less frequent the values of an attribute are in each area than in classes.

    factors  float64[n_areas, n_values]
    wholes   float64[n_areas, k]: the shares of each class, multiplied by these, add up to so much
    """

    factors: np.ndarray
    wholes: np.ndarray


def _drawn_tilts(
    tree: AreaTree,
    areas: np.ndarray,
    people: np.ndarray,
    mixes: np.ndarray,
    population: Population,
    attributes: Sequence[int],
    deviations: Sequence[float],
    numbers: SeededNumbers,
) -> dict[int, _Tilt]:
    """The tilt of each attribute, by its index; areas of a level together have about its shares.

    people: that each area stands for; deviations: of the classes' mixes, by level
    """
    domain, found = population.domain, dict[int, _Tilt]()
    columns = sorted({int(domain.columns[index]) for index in attributes})
    by_column = {
        column: _factors_of_areas(
            tree,
            areas,
            people,
            mixes @ population.shares_by_class((column,)),
            population.shares((column,)),
            np.array(deviations) * np.exp(_TILTS_DIFFER * numbers.normals(1).item()),
            numbers,
        )
        for column in columns
    }
    for index in attributes:
        column = int(domain.columns[index])
        factors, of_classes = by_column[column], population.shares_by_class((index,))
        if index != column:  # a coarser level: the means of its values
            cells = cells_of(domain, (index,), (column,), (int(domain.sizes[column]),))
            shares, n_cells = population.shares((column,)), of_classes.shape[1]
            sums = np.array([np.bincount(cells, shares * own, n_cells) for own in factors])
            factors = sums / np.maximum(np.bincount(cells, shares, n_cells), _NEXT_TO_NOTHING)
        found[index] = _Tilt(factors, factors @ of_classes.T)
    return found


def _factors_of_areas(
    tree: AreaTree,
    areas: np.ndarray,
    people: np.ndarray,
    of_areas: np.ndarray,
    shares: np.ndarray,
    deviations: np.ndarray,
    numbers: SeededNumbers,
) -> np.ndarray:
    """By how much each value is more frequent in each area: float64[n_areas, n_values].

    of_areas: shares of values by the mixes of classes, shaped alike; shares: of all areas together
    """
    levels = tree.level_of[areas]
    around = np.searchsorted(areas, np.maximum(tree.parents[areas], 0))
    n_values = len(shares)
    n_blocks = min(n_values, _MOST_BLOCKS)
    blocks = np.arange(n_values) * n_blocks // n_values
    logs = np.zeros((len(areas), n_values))
    for level, deviation in enumerate(deviations, 1):
        rows = np.flatnonzero(levels == level)
        if not len(rows):
            break
        normals = numbers.normals(len(rows) * n_blocks).reshape(len(rows), -1)
        own = logs[around[rows]] + min(deviation, _MOST_TILT) * normals[:, blocks]
        tilted = of_areas[rows] * np.exp(own - np.max(own, axis=1, keepdims=True))
        tilted /= np.maximum(np.sum(tilted, axis=1, keepdims=True), _NEXT_TO_NOTHING)
        whole = float(np.sum(people[rows]))
        for _ in range(_RAKED if whole > 0 else 0):
            together = people[rows] @ tilted / whole
            tilted = tilted * (shares / np.maximum(together, _NEXT_TO_NOTHING))
            tilted /= np.maximum(np.sum(tilted, axis=1, keepdims=True), _NEXT_TO_NOTHING)
        logs[rows] = np.log(
            np.maximum(tilted, _NEXT_TO_NOTHING) / np.maximum(of_areas[rows], _NEXT_TO_NOTHING)
        )
    return np.exp(logs)


def _fill(
    one: CountsInAreas,
    number: int,
    population: Population,
    table: AttributeIndices,
    sizes: np.ndarray,
    mixes: np.ndarray,
    tilts: dict[int, _Tilt],
    numbers: SeededNumbers,
) -> None:
    """What a table counts in the areas of a level, in one population."""
    n_people, own = sizes[one.rows][:, None], mixes[one.rows]
    for index in table:
        own = own / np.maximum(tilts[index].wholes[one.rows], _NEXT_TO_NOTHING)
    if one.people is not None:
        # The same people stand for each area, by how likely they are there.
        of_classes = population.people_by_class(table) / population.weights[:, None]
        likely = own @ of_classes
        for index in table:
            likely *= tilts[index].factors[np.ix_(one.rows, population.values_of_people(index))]
        around = np.maximum(population.weights @ of_classes, 1e-300)
        one.people[number] = likely / around
        expected = np.maximum(n_people - 1, 0) * likely
        one.counts[number] = 1 + counts_about(expected.ravel(), numbers).reshape(expected.shape)
        return
    known = population.public_shares(table)
    if one.level == 0 and known is not None:
        one.counts[number] = n_people * known
        return
    expected = own @ population.shares_by_class(table)
    factors = np.ones((len(own), 1))
    for index in table:
        of_index = tilts[index].factors[one.rows]
        factors = (factors[:, :, None] * of_index[:, None, :]).reshape(len(own), -1)
    expected *= factors
    expected *= n_people / np.maximum(np.sum(expected, axis=1, keepdims=True), _NEXT_TO_NOTHING)
    one.counts[number] = counts_about(expected.ravel(), numbers).reshape(expected.shape)


def _with_rows(workload: AreaWorkload, one: CountsInAreas) -> CountsInAreas:
    """Counts of what the table asks for, where that is not single values alone."""
    tables = workload.tables
    if tables.is_marginals or one.people is not None:
        return one
    shape = one.counts.shape
    rows = rows_of_cells(tables, one.table, one.counts.reshape(-1, shape[-1]))
    return one._replace(counts=rows.reshape(*shape[:2], -1))
