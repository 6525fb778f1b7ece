"""Populations: what records may be like, drawn so that they agree with what is public of them.

What no public table says is not assumed, but drawn again and again (docs/mathematics.md §19): how
skewed an attribute is, and how attributes depend on each other. A population is a mixture of
latent classes: within a class attributes are independent, classes differ in their shares of values,
and all classes together have the shares of the public tables.

Of a table it tells how many people are in a cell as large as theirs. Small tables are gone through
cell by cell, of others people are drawn. The draws follow from a seed, so that the same plan has
the same forecast, and a slider moves standard errors alone.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rpexplore.analysis.ranges import FEWEST_DRAWS
from rpexplore.common.numbers import read_only
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.domain.public_tables import Connected, PublicTables, cells_of

N_POPULATIONS = 48
_FEWEST_POPULATIONS = FEWEST_DRAWS  # for very many tables, or attributes of very many values
MOST_PEOPLE, _FEWEST_PEOPLE = 800, 15  # drawn of a population
_ENOUGH_PEOPLE = 96  # with fewer there are fewer populations instead
_MOST_NUMBERS = 40_000_000  # kept of all tables, populations and people
# Cells of all parts: 48 populations of so many take 90 MB and are kept, those of more do not.
_MOST_KEPT = 20_000
_LAST_TABLES = 4  # whose cells are kept, of at most 4 MB each
_NOBODY = 1e-30  # people, where there are none, to divide by
_BLOCK = 32  # ascending counts that are looked at together
_NUMBERS_AT_ONCE = 250_000  # counts that are compared together: 1 MB
MOST_CELLS = 400_000  # of all parts that are drawn: 20 s, and 0.5 GB while a population is drawn

# What populations differ in, calibrated on some data sets and tried on others (docs/mathematics.md
# §19): how many classes; how much these differ (the standard deviation of a share's logarithm), a
# little more often by little; how skewed attributes are of which nothing is known (the shape of a
# gamma law: of the population, and how much it differs between attributes).
_CLASSES = (3, 6, 12, 24)
_DIFFERENCES, _OFTEN_SMALL = (0.05, 6.0), 1.25
_SHAPES, _SHAPES_DIFFER = (0.1, 5.0), 0.7
_LEAST_SHARE = 1e-7  # of the largest, of a value of which nothing is known
_RAKED = 30  # rounds


def parts_of(public: PublicTables, tables: Iterable[AttributeIndices]) -> tuple[Connected, ...]:
    """The columns that tables are of: those that public tables connect together, others alone.

    Of what is in no table nothing is drawn. `DrawnCounts` leaves tables out whose parts would have
    more than `MOST_CELLS` cells.

    tables: the attributes of each, indices in the public tables' domain with its levels
    """
    domain = public.domain.with_levels
    columns = {int(domain.columns[index]) for table in tables for index in table}
    connected = tuple(of for of in public.connected if columns & set(of.columns))
    alone = columns.difference(*(of.columns for of in connected))
    single = (Connected((column,), (int(domain.sizes[column]),), ()) for column in sorted(alone))
    return (*connected, *single)


@dataclass(frozen=True, eq=False)
class Population:
    """One population: latent classes over what public tables connect.

    weights  float64[k], sum 1: of the classes
    parts    see `parts_of`, with the shares of their cells in each class, float64[k, n_cells]
    people   the cell of each person in each part, int64[n_parts, n_people]
    """

    domain: Domain
    weights: np.ndarray
    parts: tuple[tuple[Connected, np.ndarray], ...]
    people: np.ndarray

    @classmethod
    def drawn(
        cls, public: PublicTables, of_parts: Sequence[Connected], n_people: int, seed: bytes
    ) -> "Population":
        """A population that agrees with all public tables on these parts, see `parts_of`."""
        domain, numbers = public.domain.with_levels, SeededNumbers(seed)
        own = [numbers.uniforms(1).item() for _ in range(3)]
        k = _CLASSES[int(own[0] * len(_CLASSES))]
        difference = _DIFFERENCES[0] + own[1] ** _OFTEN_SMALL * (_DIFFERENCES[1] - _DIFFERENCES[0])
        shape = _SHAPES[0] * (_SHAPES[1] / _SHAPES[0]) ** own[2]
        weights = -np.log1p(-numbers.uniforms(k).astype(float))
        weights /= np.sum(weights)
        parts = []
        for of in of_parts:
            start = np.ones(1)
            tilts = np.zeros((k, 1))
            for size in of.sizes:
                start = np.multiply.outer(start, _skewed(size, shape, numbers)).ravel()
                tilts = (tilts[:, :, None] + _tilts(k, size, numbers)[:, None, :]).reshape(k, -1)
            shares = of.fitted(np.maximum(start, np.max(start) * _LEAST_SHARE))
            parts.append((of, _raked(shares, difference * tilts, weights)))
        people = np.empty((len(of_parts), n_people), dtype=np.int64)
        classes = np.searchsorted(np.cumsum(weights)[:-1], numbers.systematic(n_people))
        for number, (_, of_classes) in enumerate(parts):
            at = numbers.uniforms(n_people).astype(float)
            for one in range(k):
                inside = np.flatnonzero(classes == one)
                ends = np.cumsum(of_classes[one])[:-1]
                people[number, inside] = np.searchsorted(ends, at[inside], side="right")
        return cls(domain, weights, tuple(parts), people)

    @cached_property
    def _part_of(self) -> dict[int, int]:
        return {
            column: number for number, (of, _) in enumerate(self.parts) for column in of.columns
        }

    def by_part(self, attributes: AttributeIndices) -> dict[int, AttributeIndices]:
        """These attributes by the part that their columns are in."""
        found: dict[int, AttributeIndices] = {}
        for index in attributes:
            part = self._part_of[int(self.domain.columns[index])]
            found[part] = (*found.get(part, ()), index)
        return found

    def cells(self, part: int, attributes: AttributeIndices) -> tuple[np.ndarray, int]:
        """The cell of a table by these attributes that each cell of a part is in; how many."""
        of, _ = self.parts[part]
        n_cells = math.prod(int(self.domain.sizes[index]) for index in attributes)
        return cells_of(self.domain, attributes, of.columns, of.sizes), n_cells

    def shares(self, attributes: AttributeIndices) -> np.ndarray:
        """The share of all in each cell of a table, one axis an attribute."""
        product, order = self._products(self.weights, attributes)
        shares = product.sum(axis=0).reshape([int(self.domain.sizes[i]) for i in order])
        return np.transpose(shares, [order.index(index) for index in attributes])

    def shares_by_class(self, attributes: AttributeIndices) -> np.ndarray:
        """In each class the share in each cell of a table, row-major: float64[k, n_cells]."""
        product, order = self._products(np.ones(len(self.weights)), attributes)
        shares = product.reshape(-1, *(int(self.domain.sizes[i]) for i in order))
        axes = [0, *(1 + order.index(index) for index in attributes)]
        return np.transpose(shares, axes).reshape(len(self.weights), -1)

    def _products(
        self, of_classes: np.ndarray, attributes: AttributeIndices
    ) -> tuple[np.ndarray, AttributeIndices]:
        """Of each class a number times the shares of a table's cells: [k, n_cells]; their axes."""
        product, order = of_classes[:, None], ()
        for part, own in self.by_part(attributes).items():
            product = product[:, :, None] * self._of_part(part, own)[:, None, :]
            product = product.reshape(len(of_classes), -1)
            order += own
        return product, order

    def public_shares(self, attributes: AttributeIndices) -> np.ndarray | None:
        """The shares of a table that public tables say, float64[n_cells]; None if it is drawn."""
        parts = self.by_part(attributes)
        if not parts:
            return np.ones(1)
        if len(parts) > 1:
            return None
        ((part, own),) = parts.items()
        cells, n_cells = self.cells(part, own)
        return self.parts[part][0].holds((n_cells,), cells)

    def shares_of_people(self, attribute: int) -> np.ndarray:
        """In each class the share of the value that each person has: float64[k, n_people]."""
        ((part, own),) = self.by_part((attribute,)).items()
        cells, _ = self.cells(part, own)
        return self._of_part(part, own)[:, cells[self.people[part]]]

    def _of_part(self, part: int, attributes: AttributeIndices) -> np.ndarray:
        """In each class the shares of the cells of a table within a part: float64[k, n_cells]."""
        cells, n_cells = self.cells(part, attributes)
        of_classes = self.parts[part][1]
        if np.array_equal(cells, np.arange(of_classes.shape[1])):
            return of_classes
        return np.stack([np.bincount(cells, row, n_cells) for row in of_classes])

    def people_by_class(self, attributes: AttributeIndices) -> np.ndarray:
        """In each class the share of the cell of a table that each person is in: [k, n_people]."""
        product = self.weights[:, None] * np.ones(self.people.shape[1])
        for part, own in self.by_part(attributes).items():
            cells, _ = self.cells(part, own)
            product = product * self._of_part(part, own)[:, cells[self.people[part]]]
        return product

    def values_of_people(self, attribute: int) -> np.ndarray:
        """Which value of an attribute each person has: int64[n_people]."""
        ((part, own),) = self.by_part((attribute,)).items()
        return self.cells(part, own)[0][self.people[part]]


def _skewed(size: int, shape: float, numbers: SeededNumbers) -> np.ndarray:
    """Shares of values of which nothing is known: float64[size], sum 1."""
    from scipy.special import gammaincinv  # slow to import

    own = shape * np.exp(_SHAPES_DIFFER * numbers.normals(1).item())
    sizes = gammaincinv(own, np.clip(numbers.uniforms(size).astype(float), 1e-7, 1 - 1e-7))
    sizes = np.maximum(sizes, max(float(np.max(sizes)), 1e-300) * _LEAST_SHARE)
    return sizes / np.sum(sizes)


def _tilts(k: int, size: int, numbers: SeededNumbers) -> np.ndarray:
    """How classes differ in the logarithm of each value, of deviation about 1: float64[k, size].

    Half of the attributes in a way that is smooth in the order of their values.
    """
    is_smooth = numbers.uniforms(1).item() < 0.5 and size > 2
    if not is_smooth:
        return numbers.normals(k * size).reshape(k, size)
    x, normals = np.linspace(-1, 1, size), numbers.normals(3 * k).reshape(3, k, 1)
    bends = normals[0] * 1.2 * x + normals[1] * (1.5 * x * x - 0.5) + normals[2] * np.sin(np.pi * x)
    return bends / math.sqrt(1.5)


def _raked(shares: np.ndarray, tilts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Shares in each class that are these together: float64[k, n]."""
    with np.errstate(divide="ignore"):
        logs = np.log(shares) + tilts
    of_classes = np.exp(logs - np.max(logs, axis=1, keepdims=True))
    of_classes /= np.sum(of_classes, axis=1, keepdims=True)
    for _ in range(_RAKED):
        together = weights @ of_classes
        of_classes = of_classes * (shares / np.where(together > 0, together, 1.0))
        of_classes /= np.sum(of_classes, axis=1, keepdims=True)
    return of_classes


# ---- How many people are in cells as large as theirs, table by table.


@dataclass(frozen=True, eq=False)
class CountsOfTables:
    """The counts in some tables of as many cells or people each, in every population.

    tables   int64[n]: their places
    counts   float32[n, n_populations, m]: of cells, or of the cells that people are in, ascending
    of_cells whether they are those of all cells of the tables
    ascend   whether those of cells ascend as well; −1 then fills up tables of fewer cells
    """

    tables: np.ndarray
    counts: np.ndarray
    of_cells: bool
    ascend: bool = False

    def good(
        self, least: np.ndarray, n_records: np.ndarray, n_cells: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Shares of people, and of cells, with a count of at least so much.

        least: float64[n], or [n, m] where the cells of a table differ in it; n_records:
        float64[n_populations]; n_cells: float64[n].
        Returns float64[n, n_populations] each.
        """
        if not self.of_cells or self.ascend:
            return self._looked_up(least.astype(np.float32), n_records, n_cells)
        limits = least[:, None, None] if least.ndim == 1 else least[:, None, :]
        limits = limits.astype(np.float32)
        people, cells = np.empty(self.counts.shape[:2]), np.empty(self.counts.shape[:2])
        # Some tables at a time: what is in between then stays in the processor's own memory.
        n_at_once = max(_NUMBERS_AT_ONCE // self.counts[0].size, 1)
        for first in range(0, len(self.counts), n_at_once):
            own = slice(first, first + n_at_once)
            counts = self.counts[own]
            good = counts >= limits[own]
            # Not count_nonzero or mean: along so short an axis these take twice the time.
            n_good = np.einsum("abc->ab", good.view(np.uint8), dtype=np.int32)
            cells[own] = n_good / n_cells[own, None]
            people[own] = np.einsum("abc,abc->ab", counts, good, dtype=float) / self._totals[own]
        return people, cells

    def _looked_up(
        self, least: np.ndarray, n_records: np.ndarray, n_cells: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`good` of counts that ascend: float32[n] least."""
        m, width, limits = self.counts.shape[2], self._width, least[:, None, None]
        if m == width and not self.of_cells:
            return self._compared(limits, n_records, n_cells)
        # Whole blocks with no good count, then the numbers from the next block on, one by one.
        block = np.einsum("abc->ab", (self._ends < limits).view(np.uint8), dtype=int)
        start = np.minimum(block * width, m - width)
        rows, columns = np.ogrid[: len(least), : self.counts.shape[1]]
        # By one number each: half the time of three.
        first = (rows * self.counts.shape[1] + columns) * m + start
        numbers = sliding_window_view(self.counts.reshape(-1), width)[first]
        good = numbers >= limits
        n_good = np.einsum("abc->ab", good.view(np.uint8), dtype=int) + m - width - start
        beyond = self._sums_from[rows, columns, block + 1]
        if self.of_cells:
            in_good = np.einsum("abc,abc->ab", numbers, good, dtype=float) + beyond
            # Of all cells exactly 1, in whatever order they are added up.
            in_good = np.where(n_good == n_cells[:, None], self._totals, in_good)
            in_good = np.where(self._totals > _NOBODY, in_good, 0.0)
            return in_good / self._totals, n_good / n_cells[:, None]
        # Of m people in a cell of a count, one stands for n_records / m / count cells.
        n_cells_good = np.einsum("abc->ab", good / numbers, dtype=float) + beyond
        n_cells_good *= n_records / m
        return n_good / m, np.minimum(n_cells_good / n_cells[:, None], 1.0)

    def _compared(
        self, limits: np.ndarray, n_records: np.ndarray, n_cells: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`good` of so few people that all are compared: float32[n, 1, 1] limits."""
        m, shape = self.counts.shape[2], self.counts.shape[:2]
        people, cells = np.empty(shape), np.empty(shape)
        n_at_once = max(_NUMBERS_AT_ONCE // self.counts[0].size, 1)
        for first in range(0, len(self.counts), n_at_once):
            own = slice(first, first + n_at_once)
            counts = self.counts[own]
            good = counts >= limits[own]
            people[own] = np.einsum("abc->ab", good.view(np.uint8), dtype=np.int32) / m
            of_cells = np.einsum("abc->ab", good / counts, dtype=float)
            cells[own] = np.minimum(of_cells * (n_records / m) / n_cells[own, None], 1.0)
        return people, cells

    @property
    def _width(self) -> int:
        return min(_BLOCK, self.counts.shape[2])

    @cached_property
    def _ends(self) -> np.ndarray:
        """The largest of each whole block of ascending counts: float32[n, n_populations, b]."""
        return np.ascontiguousarray(self.counts[:, :, self._width - 1 :: self._width])

    @cached_property
    def _sums_from(self) -> np.ndarray:
        """From the beginning of each block on, then 0 twice: float64[n, n_populations, blocks + 2].

        Of the counts of cells; of those that people are in, of one over each.
        """
        starts = np.arange(0, self.counts.shape[2], self._width)
        sums = np.zeros((*self.counts.shape[:2], len(starts) + 2))
        for place, counts in enumerate(self.counts):
            added = np.maximum(counts, 0) if self.of_cells else 1 / counts
            of_blocks = np.add.reduceat(added, starts, axis=1, dtype=float)
            sums[place, :, : len(starts)] = np.cumsum(of_blocks[:, ::-1], axis=1)[:, ::-1]
        return sums

    @cached_property
    def _totals(self) -> np.ndarray:
        """The sums of all cells, never 0: float64[n, n_populations]."""
        return np.maximum(np.maximum(self.counts, 0).sum(axis=2, dtype=float), _NOBODY)


@dataclass(frozen=True, eq=False)
class Populations:
    """Populations that agree with public tables, and the counts that tables have in them.

    tables  the attributes of each, indices in the public tables' domain with its levels
    counts  of all tables, in groups
    n_records
            float64[n_populations]: how many people each has
    kept    the populations, or () if they are too large to be kept
    """

    public: PublicTables
    tables: tuple[AttributeIndices, ...]
    counts: tuple[CountsOfTables, ...]
    n_records: np.ndarray
    n_people: int
    kept: tuple[Population, ...]

    @classmethod
    def of(
        cls,
        public: PublicTables,
        tables: Sequence[AttributeIndices],
        by_cell: Sequence[int] = (),
        on_progress: Progress = no_progress,
    ) -> "Populations":
        """Populations, and the counts of these tables.

        by_cell: places of tables that are gone through cell by cell, however large
        """
        domain = public.domain.with_levels
        sizes = np.array([math.prod(int(domain.sizes[i]) for i in table) for table in tables])
        parts = parts_of(public, tables)
        is_kept = sum(math.prod(of.sizes) for of in parts) <= _MOST_KEPT
        n_populations = N_POPULATIONS
        if len(tables) * n_populations * _ENOUGH_PEOPLE > _MOST_NUMBERS or not is_kept:
            n_populations = _FEWEST_POPULATIONS
        n_people = _MOST_NUMBERS // max(len(tables) * n_populations, 1)
        n_people = min(max(n_people, _FEWEST_PEOPLE), MOST_PEOPLE)
        whole = sizes <= n_people
        whole[list(by_cell)] = True
        groups = [np.flatnonzero(~whole)] if not np.all(whole) else []
        groups += [np.flatnonzero(whole & (sizes == n)) for n in np.unique(sizes[whole]).tolist()]
        counts = [
            _empty(len(of), n_populations, int(sizes[of[0]]) if whole[of[0]] else n_people)
            for of in groups
        ]
        kept, n_records = [], np.empty(n_populations)
        for number in range(n_populations):
            on_progress("Drawing populations", number / n_populations)
            exact, own = without_noise(public, parts, number)
            n_records[number] = exact.n_records
            population = Population.drawn(public, own, n_people, _seed(number))
            noise = SeededNumbers(b"counts %d" % number)
            for of, into in zip(groups, counts, strict=True):
                chosen = [tables[place] for place in of.tolist()]
                if whole[of[0]]:
                    _fill_cells(population, chosen, into[:, number], exact.n_records, noise)
                else:
                    _fill_people(population, chosen, into[:, number], exact.n_records, noise)
                    into[:, number].sort(axis=1)
            if is_kept:
                kept.append(population)
        on_progress("Drawing populations", 1.0)
        return cls(
            public,
            tuple(tables),
            tuple(
                CountsOfTables(of, into, bool(whole[of[0]]))
                for of, into in zip(groups, counts, strict=True)
            ),
            n_records,
            n_people,
            tuple(kept),
        )

    @property
    def n_populations(self) -> int:
        return len(self.n_records)

    def drawn(self) -> Iterator[Population]:
        """The populations one by one, those that are not kept drawn again."""
        if self.kept:
            yield from self.kept
            return
        parts = parts_of(self.public, self.tables)
        for number in range(self.n_populations):
            _, own = without_noise(self.public, parts, number)
            yield Population.drawn(self.public, own, self.n_people, _seed(number))

    def cells_of(self, table: AttributeIndices) -> np.ndarray:
        """The counts of all cells of one of the tables, float32[n_populations, n_cells].

        Of populations that are kept. Of a table with no more cells than people are drawn the
        counts are there already, in `counts`. Those of the last tables are kept: a page asks for
        the same one at each step of the budget.
        """
        if table in self._last_cells:
            return self._last_cells[table]
        sizes = self.public.domain.with_levels.sizes
        n_cells = math.prod(int(sizes[index]) for index in table)
        counts = np.empty((1, self.n_populations, n_cells), dtype=np.float32)
        for number, population in enumerate(self.kept):
            noise = SeededNumbers(b"cells %d" % number)
            _fill_cells(population, [table], counts[:, number], self.n_records[number], noise)
        if len(self._last_cells) >= _LAST_TABLES:
            self._last_cells.clear()
        self._last_cells[table] = read_only(counts[0])
        return counts[0]

    @cached_property
    def _last_cells(self) -> dict[AttributeIndices, np.ndarray]:
        return {}

    def counts_of(
        self, table: AttributeIndices, known: Domain, factors: "Factors | None" = None
    ) -> CountsOfTables:
        """The counts of one more table in the same populations, under the place 0.

        Args:
            table: Its attributes, indices in `known`.
            known: The domain with all levels, which may have more of them than the public tables'.
            factors: What was looked up for earlier tables, and is kept there for later ones.

        Of columns that other tables have, and populations that are kept.
        """
        factors = {} if factors is None else factors
        n_cells = math.prod(int(known.sizes[index]) for index in table)
        whole = n_cells <= MOST_PEOPLE
        size = n_cells if whole else self.n_people
        counts = np.empty((1, self.n_populations, size), dtype=np.float32)
        for number, population in enumerate(self.kept):
            own, noise = replace(population, domain=known), SeededNumbers(b"more %d" % number)
            if whole:
                _fill_cells(own, [table], counts[:, number], self.n_records[number], noise)
            else:

                def factor(index: int, of: Population = own, number: int = number) -> np.ndarray:
                    attribute = known.attributes[index]
                    key = number, int(known.columns[index]), attribute.index_of_values
                    if key not in factors:
                        factors[key] = of.shares_of_people(index).astype(np.float32)
                    return factors[key]

                _fill_people(own, [table], counts[:, number], self.n_records[number], noise, factor)
                counts[:, number].sort(axis=1)
        return CountsOfTables(np.zeros(1, dtype=np.int64), counts, whole)


Factors: TypeAlias = dict[tuple[int, int, tuple[int, ...]], np.ndarray]
"""`shares_of_people` by the number of the population, the column, and the level's groups."""


def _empty(n_tables: int, n_populations: int, m: int) -> np.ndarray:
    """Room for counts, float32[n_tables, n_populations, m], those of the longer axis together.

    Of very many tables with few numbers each these are compared and added up faster across tables.
    """
    if n_tables > m:
        return np.empty((m, n_populations, n_tables), dtype=np.float32).transpose(2, 1, 0)
    return np.empty((n_tables, n_populations, m), dtype=np.float32)


def _seed(number: int) -> bytes:
    return b"population %d" % number


def without_noise(
    public: PublicTables, parts: tuple[Connected, ...], number: int
) -> tuple[PublicTables, tuple[Connected, ...]]:
    """Public tables of a population, those with errors as they may be without; and its parts."""
    drawn = public.drawn(b"public %d" % number)
    if drawn is public:
        return public, parts
    connected = {of.columns: of for of in drawn.connected}
    return drawn, tuple(connected.get(of.columns, of) for of in parts)


def _fill_cells(
    population: Population,
    tables: Sequence[AttributeIndices],
    into: np.ndarray,
    n_records: float,
    noise: SeededNumbers,
) -> None:
    """The counts of all cells of tables of one size; those that are public as they are."""
    for place, table in enumerate(tables):
        known = population.public_shares(table)
        if known is not None:
            into[place] = n_records * known
            continue
        expected = n_records * population.shares(table).ravel()
        into[place] = counts_about(expected, noise)


def _fill_people(
    population: Population,
    tables: Sequence[AttributeIndices],
    into: np.ndarray,
    n_records: float,
    noise: SeededNumbers,
    factor: Callable[[int], np.ndarray] | None = None,
) -> None:
    """The counts of the cells that people are in, themselves among them.

    factor: `shares_of_people`, where some of them are known
    """
    factor = factor or population.shares_of_people
    used = sorted({index for table in tables for index in table})
    row = {index: place for place, index in enumerate(used)}
    # Of each attribute, in each class, the share of the value of each person; 1 behind the last.
    factors = np.ones((len(used) + 1, len(population.weights), into.shape[1]), dtype=np.float32)
    part_of = np.arange(len(used) + 1)
    for place, index in enumerate(used):
        (part,) = population.by_part((index,))
        factors[place] = factor(index)
        part_of[place] = -1 - part
    width = max(map(len, tables))
    rows = np.full((len(tables), width), len(used))
    for place, table in enumerate(tables):
        rows[place, : len(table)] = [row[index] for index in table]
    weights = population.weights.astype(np.float32)
    in_order = np.sort(np.where(rows == len(used), np.arange(width), part_of[rows]), axis=1)
    is_apart = np.all(np.diff(in_order, axis=1) != 0, axis=1)  # no two attributes are in one part
    n_at_once = max(_NUMBERS_AT_ONCE // factors[0].size, 1)
    for first in range(0, len(tables), n_at_once):
        own = slice(first, first + n_at_once)
        product = factors[rows[own, 0]]
        for column in range(1, width):
            product *= factors[rows[own, column]]
        shares = np.matmul(weights, product)
        for place in np.flatnonzero(~is_apart[own]).tolist():
            shares[place] = population.people_by_class(tables[first + place]).sum(axis=0)
        expected = (n_records - 1) * shares.astype(float)
        into[own] = 1 + counts_about(expected.ravel(), noise).reshape(expected.shape)


def counts_about(expected: np.ndarray, noise: SeededNumbers) -> np.ndarray:
    """Whole numbers about as Poisson's law has them, float64."""
    from scipy.special import ndtri  # slow to import

    normals = ndtri(np.clip(noise.uniforms(len(expected)).astype(float), 1e-7, 1 - 1e-7))
    return np.maximum(np.rint(expected + np.sqrt(expected) * normals), 0.0)
