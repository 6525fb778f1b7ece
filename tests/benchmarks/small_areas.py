"""Best guesses for small areas beside whole counts and a TopDown-like yardstick; their records.

The yardstick is what others do: nonnegative least squares from level to level downwards (Abowd et
al. 2022), each from what was measured on that level alone, with the budget shared by hand: every
level and every table the same. Cases of `tests.benchmarks.run`.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from pyarrow import parquet

import rpexplore as rp
from rpexplore.common.installation import sample_data_folder
from rpexplore.domain.domain import subsets
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.releases.area_measurement import AreaAnswers
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.measurement import residual_answers
from rpexplore.results.estimates.area_cells import PartCells, cells_of
from rpexplore.results.estimates.area_counts import area_guesses
from rpexplore.results.estimates.area_families import mean_noise
from rpexplore.results.estimates.area_guesses import (
    BestGuesses,
    find_spreads,
    tables_with_errors,
)
from rpexplore.results.estimates.whole_areas import WholeCounts, known_totals
from rpexplore.results.synthetic.area_records import synthesize_areas
from tests.benchmarks import made_up_state
from tests.benchmarks.measure import Row, in_own_process, once, peak_gigabytes

RELEASES = 10  # of which errors are means
SIZES = (0, 5, 20, 100, np.inf)  # true counts at which the groups of coverage begin


def sample_country() -> tuple[AreaPlan, np.ndarray]:
    """All tables of up to two attributes on all levels, ρ = 1; and the true cells of all areas."""
    folder = sample_data_folder()
    book = rp.AreaCodebook.load(folder / "municipal-register.json")
    tree, domain = book.tree, book.domain
    rows = pyarrow.csv.read_csv(folder / "municipal-register.csv.gz").to_pandas().astype(str)
    lowest = {tree.path(area)[-1]: area for area in np.flatnonzero(tree.n_parts == 0).tolist()}
    codes = [rows["district"].map(lowest).to_numpy()]
    for attribute in domain.attributes:
        order = {value: code for code, value in enumerate(attribute.values.values)}  # pyright: ignore[reportAttributeAccessIssue]
        codes.append(rows[attribute.name].map(order).to_numpy())
    counts = np.zeros((tree.n_areas, *domain.sizes.tolist()), dtype=np.int32)
    np.add.at(counts, tuple(codes), 1)
    for level in range(len(tree.levels) - 1, 0, -1):
        below = tree.level_slice(level)
        np.add.at(counts, tree.parents[below], counts[below])
    return _planned(tree, rp.Workload.all_up_to(domain, 2), "1"), counts


def made_up(share: int) -> tuple[AreaPlan, np.ndarray]:
    """All tables of the made-up state on all levels, ρ = 2.56; and the true cells."""
    tree = made_up_state.state(share)
    counts = made_up_state.counts_in_areas(tree, made_up_state.PEOPLE // share)
    tables = rp.Workload.all_up_to(made_up_state.DOMAIN, 3)
    return _planned(tree, tables, "2.56"), counts.reshape(-1, *tables.domain.sizes.tolist())


def _planned(tree: rp.AreaTree, tables: rp.Workload, rho: str) -> AreaPlan:
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    return plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))


@dataclass(frozen=True, eq=False)
class DrawnAnswers(AreaAnswers):
    """The answers of a release as it could be, of true cells; with normal noise, rounded."""

    counts: np.ndarray
    seed: int

    def numbers(self, part: int, profile: int) -> np.ndarray:
        parts, plan = self.parts, self.parts.plan
        generator = np.random.default_rng([self.seed, part, profile])
        areas = parts.of_profile(part, profile)
        assert areas is not None
        numbers = areas.areas[parts.measured_rows(profile, areas)]
        multiples = plan.multiples[profile, plan.groups.of_area[numbers]].astype(float)
        found = np.empty((len(numbers), int(parts.widths[profile])))
        for columns in parts.columns[profile]:
            for residual in columns.residuals:
                own = plan.closure.attributes(residual)
                marginals = np.ascontiguousarray(_margin(self.counts[numbers], own))
                exact = residual_answers(marginals, own, plan.closure)
                found[:, parts.of_residuals[residual][1]] = exact.reshape(len(numbers), -1)
            variances = columns.scale_squared / (float(plan.unit) * columns.factor * multiples)
            shape = len(numbers), columns.within.stop - columns.within.start
            noise = generator.normal(size=shape) * np.sqrt(variances)[:, None]
            found[:, columns.within] += np.round(noise)
        return found.ravel()


def _margin(counts: np.ndarray, attributes: tuple[int, ...]) -> np.ndarray:
    others = tuple(axis + 1 for axis in range(counts.ndim - 1) if axis not in attributes)
    return counts.sum(axis=others, dtype=np.int64)


def released_cells(plan: AreaPlan, answers: AreaAnswers) -> Callable[[int, slice], np.ndarray]:
    """The unbiased answers to all cells, whatever part they are in."""
    parts, cells = answers.parts, cells_of(plan)
    top = PartCells(cells, answers.of_top, 0)
    below = [
        (areas, PartCells(cells, answers.of_part(part), parts.level))
        for part, areas in enumerate(parts.areas)
        if part or not parts.level
    ]

    def of(level: int, areas: slice) -> np.ndarray:
        if level < parts.level:
            return top(level, areas)
        found = []
        for own, part_cells in below:
            within = own.slices[level - parts.level]
            start, stop = max(within.start, areas.start), min(within.stop, areas.stop)
            if start < stop:
                found.append(part_cells(level, slice(start, stop)))
        return np.concatenate(found)

    return of


def by_hand(plan: AreaPlan, counts: np.ndarray, seed: int) -> Callable[[int, slice], np.ndarray]:
    """Answers to cells from one level's tables each, with the same budget for all of them."""
    generator, tables = np.random.default_rng([seed, 1]), plan.workload.tables
    sizes, n_levels = plan.domain.sizes.tolist(), len(plan.workload.tree.levels)
    everything = tuple(range(len(sizes)))
    asked = [tables.attribute_indices(table) for table in range(len(tables))]
    # A record changes one cell of each table by 1: ρ = Σ 1/(2 σ²) over levels and tables.
    variance = n_levels * len(asked) / (2 * float(plan.budget.rho))
    found = counts.reshape(len(counts), -1).astype(float)
    for residual in subsets(everything):
        precision = sum(
            1 / (variance * prod(sizes[index] for index in table if index not in residual))
            for table in asked
            if set(residual) <= set(table)
        )
        if not precision:
            continue
        shape = [sizes[index] if index in residual else 1 for index in everything]
        noise = generator.normal(size=(len(counts), *shape)) / np.sqrt(precision)
        for axis, index in enumerate(everything, start=1):
            if index in residual:
                noise -= noise.mean(axis=axis, keepdims=True)
        noise /= prod(sizes[index] for index in everything if index not in residual)
        found += np.broadcast_to(noise, counts.shape).reshape(len(counts), -1)
    return lambda _, areas: found[areas]


@dataclass(frozen=True, eq=False)
class Errors:
    """Mean Σ |error| per area by level and table, and hits of 95 % intervals, of several releases.

    whole, guesses, yardstick  (level, attributes) -> float64[n_releases]
    coverage                   (level, size) -> cells within their interval, and cells
    """

    whole: dict[tuple[int, tuple[int, ...]], list[float]]
    guesses: dict[tuple[int, tuple[int, ...]], list[float]]
    yardstick: dict[tuple[int, tuple[int, ...]], list[float]]
    coverage: dict[tuple[int, int], np.ndarray]

    def mean(self, way: str, level: int, attributes: tuple[int, ...]) -> float:
        return float(np.mean(getattr(self, way)[level, attributes]))

    def ratios(self, way: str) -> dict[tuple[int, tuple[int, ...]], float]:
        """The error of best guesses over that of another way, by level and table."""
        return {
            key: float(np.mean(self.guesses[key]) / max(np.mean(own), 1e-9))
            for key, own in getattr(self, way).items()
            if np.mean(own) > 0
        }

    @property
    def shares_covered(self) -> np.ndarray:
        """Of each level and size of cells that hold 5 and more."""
        return np.array([hits / n for (_, size), (hits, n) in self.coverage.items() if size])


def errors_of(plan: AreaPlan, counts: np.ndarray, n_releases: int = RELEASES) -> Errors:
    """Whole counts, best guesses and the yardstick of some releases beside the truth."""
    tree, cells, parts = plan.workload.tree, cells_of(plan), AreaParts(plan)
    tables, totals = tables_with_errors(plan, cells), known_totals(tree, {})
    last = len(cells.attributes) - 1
    errors = Errors({}, {}, {}, {})
    for seed in range(n_releases):
        answers = DrawnAnswers(parts, counts, seed)
        unbiased = released_cells(plan, answers)
        noise = mean_noise(plan, cells)
        by_level = by_hand(plan, counts, seed)
        yardstick = WholeCounts(tree, cells, by_level, totals, noise=noise)
        whole = WholeCounts(tree, cells, unbiased, totals, noise=noise)
        make = partial(BestGuesses, tree, cells)

        def guesses_of(own, spreads, curves, make=make):
            return make(own, totals, plan, tables, spreads, curves)

        spreads = find_spreads(guesses_of, parts, answers, cells)
        guesses = guesses_of(unbiased, spreads, {})
        for way, counted in (
            ("whole", whole), ("guesses", guesses), ("yardstick", yardstick),
        ):  # fmt: skip
            squared = guesses.top_errors if way == "guesses" else None
            sums: dict[tuple[int, tuple[int, ...]], float] = {}
            walk = counted.downwards(0, slice(0, 1), counted.of_top(), last, squared)
            for level, areas, found, own in walk:
                for attributes, _, columns in guesses.columns(level):
                    values = cells.margin_on(found, level, attributes)
                    truth = _margin(counts[areas], attributes).reshape(values.shape)
                    off = np.abs(values - truth)
                    sums[level, attributes] = sums.get((level, attributes), 0.0) + off.sum()
                    if own is not None:
                        _cover(errors, level, off, np.sqrt(own[:, columns]), truth)
            for (level, attributes), total in sums.items():
                n_areas = len(tree.level_of[tree.level_slice(level)])
                kept = getattr(errors, way).setdefault((level, attributes), [])
                kept.append(total / n_areas)
    return errors


def _cover(
    errors: Errors, level: int, off: np.ndarray, error: np.ndarray, truth: np.ndarray
) -> None:
    inside = off <= 1.96 * error
    for size, (low, high) in enumerate(pairwise(SIZES)):
        some = (truth >= low) & (truth < high)
        if np.any(some):
            own = np.array([inside[some].sum(), some.sum()])
            errors.coverage[level, size] = errors.coverage.get((level, size), 0) + own


def guesses_in_the_sample_country() -> list[Row]:
    """Beside whole counts, on all levels: age by birthplace and sex by age of a district."""
    plan, counts = sample_country()
    return _rows("sample country", errors_of(plan, counts), 0.92, {(1, 2): 7.2, (0, 1): 8.2})


def guesses_in_a_state() -> list[Row]:
    """A tenth of the made-up state: race by Hispanic origin and all cells of a block."""
    plan, counts = made_up(10)
    return _rows(
        "a tenth of a state", errors_of(plan, counts, 3), 0.85, {(1, 2): 3.6, (0, 1, 2): 4.35}
    )


def _rows(
    name: str, errors: Errors, mean_limit: float, limits: dict[tuple[int, ...], float]
) -> list[Row]:
    """mean_limit: of the mean ratio; limits: of the error of lowest areas, by tables."""
    last = max(level for level, _ in errors.whole)
    ratios, shares = list(errors.ratios("whole").values()), errors.shares_covered
    yardstick = errors.ratios("yardstick")
    tables = [
        (f"  lowest areas, Σ |error|, attributes {attributes}",
         errors.mean("guesses", last, attributes), "<=", limit)
        for attributes, limit in limits.items()
    ]  # fmt: skip
    lowest = [yardstick[last, attributes] for attributes in limits]
    return [
        (f"{name}: error of best guesses beside whole counts, mean", float(np.mean(ratios)),
         "<=", mean_limit),
        ("  largest, on any level in any table", max(ratios), "<=", 1.05),
        *tables,
        ("  beside the yardstick, lowest areas", max(lowest), "<=", 0.95),
        ("  beside the yardstick, mean", float(np.mean(list(yardstick.values()))), "<=", 0.95),
        ("  coverage of cells of 5 and more, least", float(shares.min()), ">=", 0.88),
        ("  coverage, mean", float(shares.mean()), ">=", 0.93),
    ]  # fmt: skip


def write_people(path: Path, tree: rp.AreaTree, counts: np.ndarray) -> None:
    """A record for each person in areas without parts, level by level."""
    lowest = np.flatnonzero(tree.n_parts == 0)
    cells = counts.reshape(len(counts), -1)
    rows, columns = np.nonzero(cells[lowest])
    times = cells[lowest[rows], columns]
    area = np.repeat(lowest[rows], times)
    values = np.unravel_index(np.repeat(columns, times), counts.shape[1:])
    found: dict[str, pa.Array] = {}
    for level in reversed(tree.levels[1:]):
        found[level] = tree.codes.take(pa.array(area)).dictionary_encode()
        area = tree.parents[area]
    names = made_up_state.DOMAIN.names
    found |= {name: pa.array(own.astype(np.int8)) for name, own in zip(names, values, strict=True)}
    parquet.write_table(pa.table(found), path)


def records_of_a_state() -> list[Row]:
    """Best guesses and records of the whole state: time, memory, and every count again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan, counts = made_up(1)
        n_areas = plan.workload.tree.n_areas
        write_people(folder / "people.parquet", plan.workload.tree, counts)
        del counts
        rp.release(plan, folder / "people.parquet", folder / "out")
        guessing, peak = in_own_process(_guess, folder)
        making, n_records, peak_of_records = in_own_process(_synthesize, folder)
    return [
        (f"best guesses of 8 tables in {n_areas:,} areas, processor time, s", guessing, "<=", 150),
        ("  peak, GB", peak, "<=", 2.0),
        (f"{n_records:,} records of them, processor time, s", making, "<=", 300),
        ("  peak, GB", peak_of_records, "<=", 2.0),
    ]


def _guess(folder: Path) -> tuple[float, float]:
    release = rp.Release.load(folder / "out")
    start = time.process_time()
    once(partial(area_guesses, release, folder / "guesses"))
    return time.process_time() - start, peak_gigabytes()


def _synthesize(folder: Path) -> tuple[float, int, float]:
    from rpexplore.results.results import load_area_results

    guesses = load_area_results(folder / "guesses")
    start = time.process_time()
    records = synthesize_areas(guesses, folder / "records")
    return time.process_time() - start, records.n_records, peak_gigabytes()


CASES = (guesses_in_the_sample_country, guesses_in_a_state, records_of_a_state)
