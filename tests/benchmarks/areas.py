"""Plans and releases for the areas of a large made-up country. Cases of `tests.benchmarks.run`.

The numbers of areas are those of the United States; how many parts each area has is made up.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

import rpexplore as rp
from rpexplore.analysis.area_levels import beside_shares_by_level
from rpexplore.common.installation import sample_data_folder
from rpexplore.errors import OutOfReachError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.area_workload import shrinking_detail
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.plan import load_plan
from rpexplore.results.estimates.area_counts import whole_area_counts
from tests.benchmarks.measure import REPEATS, Row, in_own_process, once, peak_gigabytes

_LEVELS = {"state": 51, "county": 3_142, "tract": 85_143, "group": 240_089, "block": 8_185_075}
_OTHERS = rp.Domain.from_sizes({"voting_age": 2, "hispanic": 2, "race": 63})


def country(share: int = 1) -> rp.AreaTree:
    """Every area has a part at least; the others fall to areas by shares that differ.

    share: 50 for a fiftieth of it
    """
    sizes = [1, *(max(count // share, 1) for count in _LEVELS.values())]
    parents = [np.array([-1])]
    for start, (above, count) in zip(np.cumsum([0, *sizes]), pairwise(sizes), strict=False):
        # Shares from about 0.1 to 5, without chance.
        shares = -np.log(1 - np.arange(1, above + 1) * 0.6180339887 % 1 * 0.99) + 0.1
        ends = np.floor(np.cumsum(shares) / np.sum(shares) * (count - above))
        counts = 1 + np.diff(ends, prepend=0).astype(int)
        counts[-1] += count - np.sum(counts)
        parents.append(start + np.repeat(np.arange(above), counts))
    parents = np.concatenate(parents).astype(np.int32)
    within = np.arange(len(parents)) - np.searchsorted(parents, parents)
    codes = [f"{number:05}" for number in range(int(np.max(within)) + 1)]
    return rp.AreaTree(
        ("country", *_LEVELS),
        np.cumsum([0, *sizes]),
        parents,
        pa.array(codes).take(pa.array(within)),
    )


def areas_of_a_country() -> list[Row]:
    """All tables of voting age, Hispanic origin and race on all levels, every level alike."""
    with tempfile.TemporaryDirectory() as folder:
        average = rp.SumOfVariances()
        seconds, best, planning = in_own_process(_plan_country, average, folder)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        checking, verifying = in_own_process(_verify, folder)
    _, by_level, _ = in_own_process(_plan_country, average, None)
    return [
        (f"{best.n_areas:,} areas, 8 tables each: plan, s", seconds, "<=", 30),
        ("  gap", best.gap, "<=", 1.01e-4),
        ("  peak of planning, GB", planning, "<=", 1.0),
        ("  save, s", best.saving, "<=", 10),
        ("  files, MB", size / 1e6, "<=", 20),
        ("  load and verify, s", checking, "<=", 60),
        ("  peak of verifying, GB", verifying, "<=", 1.0),
        (
            "  loss, beside that of the best precision a level",
            best.loss / by_level.loss,
            "<=",
            0.96,
        ),
    ]


def largest_error_in_a_country() -> list[Row]:
    """The same tables on all levels, for the largest of all variances."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, best, planning = in_own_process(_plan_country, rp.MaxVariance(), folder)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        checking, verifying = in_own_process(_verify, folder)
    return [
        (f"{best.n_areas:,} areas, 8 tables each, largest error: plan, s", seconds, "<=", 300),
        ("  processor time, s", best.processor, "<=", 120),
        ("  gap", best.gap, "<=", 3.01e-3),
        ("  peak of planning, GB", planning, "<=", 1.0),
        ("  files, MB", size / 1e6, "<=", 100),
        ("  load and verify, s", checking, "<=", 60),
        ("  peak of verifying, GB", verifying, "<=", 1.0),
    ]


class Planned(NamedTuple):
    """What a plan for the country is like: seconds of processor time, and of saving it."""

    n_areas: int
    loss: float
    gap: float
    processor: float
    saving: float


def _plan_country(loss: Loss, folder: str | None) -> tuple[float, Planned, float]:
    """Seconds, the plan and the peak in GB of planning it into a folder.

    folder: None for one precision a level, which is not saved
    """
    tree = country()
    tables = rp.Workload.all_up_to(_OTHERS, 3)
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    given = {"loss": loss, "budget": rp.Budget(rho="2.56"), "uniform_levels": folder is None}
    start = time.process_time()
    seconds, best = once(partial(plan_areas, asked, **given))
    processor, saving = time.process_time() - start, 0.0
    if folder is not None:
        saving, _ = once(partial(best.save, Path(folder) / "plan.json"))
    planned = Planned(tree.n_areas, best.loss_value, best.gap, processor, saving)
    return seconds, planned, peak_gigabytes()


def _verify(folder: str) -> tuple[float, float]:
    """Seconds and peak in GB of reading the plan of a folder and verifying it."""
    seconds, checked = once(lambda: rp.verify(load_plan(Path(folder) / "plan.json")))
    assert checked.holds
    return seconds, peak_gigabytes()


def required_targets_in_areas() -> list[Row]:
    """A fiftieth of the country: totals and voting age within targets, the other tables' average.

    The targets take 70 % of the budget.
    """
    tree, budget = country(50), rp.Budget(rho="2.56")
    every = rp.Workload.all_up_to(_OTHERS, 3).tables

    def plan(scale: float) -> AreaPlan:
        targets = {(): scale, ("voting_age",): 1.5 * scale}
        tables = rp.Workload.of(
            _OTHERS,
            every,
            targets=[targets.get(table) for table in every],
            required=[table in targets for table in every],
        )
        asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
        return plan_areas(asked, loss=rp.SumWithinTargets(), budget=budget)

    try:
        plan(0.01)
        raise AssertionError("Targets of 0.01 cannot be met.")
    except OutOfReachError as error:
        scale = 0.01 * (error.needed / 0.7) ** 0.5
    start = time.process_time()
    _, best = once(partial(plan, scale))
    return [
        (
            f"{tree.n_areas:,} areas, 8 tables, 2 of them within targets: plan, processor time, s",
            time.process_time() - start,
            "<=",
            30,
        ),
        ("  gap", best.gap, "<=", 3.01e-3),
        ("  process peak, GB", peak_gigabytes(), "<=", 1.0),
    ]


def files_of_a_country() -> list[Row]:
    """The blocks as CSV with a column a level, and as whole codes in another order."""
    tree = country()
    area, columns = np.flatnonzero(tree.n_parts == 0), {}
    for level in reversed(tree.levels[1:]):
        columns[level] = tree.codes.take(pa.array(area))
        area = tree.parents[area]
    columns = dict(reversed(columns.items()))
    whole = pc.binary_join_element_wise(*columns.values(), "")
    scattered = pa.array(np.argsort(np.arange(len(whole)) * 0.6180339887 % 1))
    with tempfile.TemporaryDirectory() as folder:
        by_levels, by_codes = Path(folder) / "levels.csv", Path(folder) / "codes.parquet"
        csv.write_csv(pa.table(columns), by_levels)
        parquet.write_table(pa.table({"code": whole.take(scattered)}), by_codes)
        reading, n_areas, peak = in_own_process(_read, by_levels, [])
        sorting, n_same, peak_sorting = in_own_process(_read, by_codes, [5] * 5)
    assert n_areas == n_same == tree.n_areas
    return [
        (f"{len(whole):,} areas without parts, a column a level, CSV: read, s", reading, "<=", 30),
        ("  peak, GB", peak, "<=", 1.5),
        ("  whole codes in another order, Parquet: read, s", sorting, "<=", 60),
        ("  peak of that, GB", peak_sorting, "<=", 2.2),
    ]


def _read(path: Path, lengths: list[int]) -> tuple[float, int, float]:
    """Seconds, areas and peak in GB of reading a file of areas."""
    seconds, tree = once(partial(rp.AreaTree.from_file, path, lengths=lengths))
    return seconds, tree.n_areas, peak_gigabytes()


def shares_by_level() -> list[Row]:
    """The made-up country of the sample data, beside shares of the budget by level."""
    book = rp.AreaCodebook.load(sample_data_folder() / "municipal-register.json")
    tables = rp.Workload.all_up_to(book.domain, 3)
    asked = rp.AreaWorkload.of_levels(book.tree, dict.fromkeys(book.tree.levels, tables))
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    best, equal = beside_shares_by_level(plan)["ratio"]
    shrinking = rp.AreaWorkload.of_levels(book.tree, shrinking_detail(book.tree, tables))
    largest = partial(plan_areas, shrinking, loss=rp.MaxVariance(), budget=rp.Budget(rho=1))
    seconds, _ = once(largest)
    return [
        (f"{book.tree.n_areas:,} areas: loss beside best shares by level", best, "<=", 0.945),
        ("  beside equal shares", equal, "<=", 0.935),
        ("  largest error, tables that differ by level: plan, s", seconds, "<=", 30),
    ]


def release_of_areas() -> list[Row]:
    """A fiftieth of the country with 6.6 million people: all tables on all levels."""
    seconds, tree, processor = _released(50)
    smaller, processor_of_smaller = min(
        (_released(500)[1:] for _ in range(REPEATS)), key=lambda released: released[1]
    )
    per_area = processor / tree.n_areas / (processor_of_smaller / smaller.n_areas)
    return [
        (f"release of 8 tables in {tree.n_areas:,} areas, s", seconds, "<=", 240),
        ("  processor time, s", processor, "<=", 60),
        ("  per area, beside that of a tenth of it", per_area, "<=", 1.2),
        ("  process peak, GB", peak_gigabytes(), "<=", 2.0),
    ]


def whole_counts_of_areas() -> list[Row]:
    """Consistent whole counts of that release; docs/mathematics.md §15.10 has their mean error."""
    plan = plan_of(50)
    tree = plan.workload.tree
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "people.parquet"
        mock_people(data, tree, 330_000_000 // 50)
        release = rp.release(plan, data, Path(name) / "out")
        start = time.process_time()
        seconds, _ = once(partial(whole_area_counts, release, Path(name) / "whole"))
        processor = time.process_time() - start
    return [
        (f"whole counts of 8 tables in {tree.n_areas:,} areas, s", seconds, "<=", 300),
        ("  processor time, s", processor, "<=", 60),
        ("  process peak, GB", peak_gigabytes(), "<=", 2.0),
    ]


def sums_over_areas() -> list[Row]:
    """How accurate sums over lists of blocks of the whole country are, before release."""
    plan = plan_of(1)
    blocks = plan.workload.tree.level_slice(5)
    starts = np.linspace(blocks.start, blocks.stop - 3_000, 300).astype(int).tolist()
    lists = {str(start): np.arange(start, start + 3_000) for start in starts}
    scattered = {"scattered": np.linspace(blocks.start, blocks.stop - 1, 5_000).astype(int)}
    one, _ = once(lambda: plan.accuracy_of_sums(scattered))
    many, _ = once(lambda: plan.accuracy_of_sums(lists))
    return [
        ("8 tables of a sum of 5,000 of 8.2 million blocks, s", one, "<=", 1),
        ("  of 300 sums of 3,000 blocks, s", many, "<=", 1.5),
    ]


def plan_of(share: int) -> AreaPlan:
    tree = country(share)
    tables = rp.Workload.all_up_to(_OTHERS, 3)
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    return plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="2.56"))


def _released(share: int) -> tuple[float, rp.AreaTree, float]:
    """Time and processor time of a release, in seconds, and its areas."""
    plan = plan_of(share)
    tree = plan.workload.tree
    with tempfile.TemporaryDirectory() as name:
        data, output = Path(name) / "people.parquet", Path(name) / "out"
        mock_people(data, tree, 330_000_000 // share)
        start = time.process_time()
        seconds, release = once(lambda: rp.release(plan, data, output))
        processor_seconds = time.process_time() - start
        assert len(release.table("block")) == _LEVELS["block"] // share
        return seconds, tree, processor_seconds


def mock_people(path: Path, tree: rp.AreaTree, count: int) -> None:
    """Records in no order, in blocks of different sizes, some of them without anybody."""
    generator = np.random.default_rng(0)
    blocks = np.flatnonzero(tree.n_parts == 0)
    ends = np.cumsum(generator.gamma(0.5, 1, len(blocks)))
    codes, writer = tree.codes.dictionary_encode(), None
    for start in range(0, count, 1 << 20):
        n = min(1 << 20, count - start)
        areas = blocks[np.searchsorted(ends, generator.random(n) * ends[-1])]
        columns = {}
        for level in reversed(tree.levels[1:]):
            indices = pa.array(codes.indices.to_numpy()[areas])
            columns[level] = pa.DictionaryArray.from_arrays(indices, codes.dictionary)
            areas = tree.parents[areas]
        race = np.minimum(generator.geometric(0.35, n) - 1, 62)
        columns |= {
            "voting_age": (generator.random(n) < 0.78).astype(np.int8),
            "hispanic": (generator.random(n) < 0.19).astype(np.int8),
            "race": race.astype(np.int8),
        }
        people = pa.table(columns)
        if writer is None:
            writer = parquet.ParquetWriter(path, people.schema)
        writer.write_table(people)
    assert writer is not None
    writer.close()


CASES = (
    shares_by_level,
    files_of_a_country,
    areas_of_a_country,
    largest_error_in_a_country,
    required_targets_in_areas,
    release_of_areas,
    sums_over_areas,
    whole_counts_of_areas,
)
