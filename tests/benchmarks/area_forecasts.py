"""Forecasts of areas against the truth, by what is known of them: cases of `run`.

Trees made of attributes of Adult, the municipal register, and the real areas of `data_of_r`. What
populations differ in was chosen on `CALIBRATED` and `REAL_CALIBRATED`; the others were only tried.
"""

from functools import cache

import numpy as np
import pandas as pd

import rpexplore as rp
from tests.benchmarks import data_of_r
from tests.benchmarks.measure import Row, best_of_three
from tests.benchmarks.planning import DATA
from tests.support.samples import FOLDER

# The attributes that are levels of areas, the others, and ρ.
TREES = {
    "municipal": ((), (), ("0.1", "1", "10")),
    "country": (("native-country",), ("sex", "race", "age", "education"), ("0.01", "0.1")),
    "class of work": (
        ("workclass", "occupation"), ("sex", "race", "age", "education"), ("0.01", "0.1"),
    ),
    "education": (("education", "occupation"), ("sex", "race", "age"), ("0.01", "0.1")),
    "family": (("marital-status", "relationship"), ("sex", "age", "education"), ("0.01", "0.1")),
}  # fmt: skip
TREES |= dict.fromkeys(data_of_r.TREES, ((), (), ("0.01", "0.1", "1")))
CALIBRATED = ("municipal", "country", "class of work")
OTHERS = ("education", "family")
REAL_CALIBRATED = ("stops", "provinces", "chile", "regions of cps1988", "exam", "wvs")
REAL_OTHERS = tuple(name for name in data_of_r.TREES if name not in REAL_CALIBRATED)
LIMIT, SHARE = 0.2, 0.9


@cache
def records_of(name: str) -> tuple[rp.AreaTree, rp.Domain, np.ndarray, np.ndarray]:
    """The tree, the other attributes, the area and the codes of each record."""
    levels, others, _ = TREES[name]
    if name in data_of_r.TREES:
        return data_of_r.areas_of(name)
    if not levels:
        book = rp.AreaCodebook.load(FOLDER / "municipal-register.json")
        frame = pd.read_csv(FOLDER / "municipal-register.csv.gz", dtype=str)
        numbers = {code: area for area, code in enumerate(book.tree.codes.to_pylist())}
        codes = [
            frame[attribute.name].map({str(v): i for i, v in enumerate(attribute.stored_values())})
            for attribute in book.domain
        ]
        return book.tree, book.domain, frame[book.name].map(numbers).to_numpy(), np.array(codes).T
    frame = pd.read_csv(DATA / "adult.csv")
    sizes = pd.read_json(DATA / "adult-domain.json", typ="series")
    names = list(levels)
    there = frame[names].drop_duplicates().sort_values(names)
    tree = rp.AreaTree.from_columns({level: [f"{x:02}" for x in there[level]] for level in names})
    numbers = {row: tree.find([f"{x:02}" for x in row]) for row in there.itertuples(False, None)}
    areas = np.array([numbers[row] for row in frame[names].itertuples(False, None)])
    domain = rp.Domain.from_sizes({other: int(sizes[other]) for other in others})
    return tree, domain, areas, frame[list(others)].to_numpy(np.int64)


def one_way_margins(domain: rp.Domain, codes: np.ndarray) -> list[rp.ExpectedCounts]:
    """The counts of each attribute by itself."""
    return [
        rp.ExpectedCounts(
            (attribute.name,),
            (tuple(attribute.stored_values()),),
            tuple(np.bincount(codes[:, index], minlength=attribute.size).tolist()),
        )
        for index, attribute in enumerate(domain)
    ]


def by_level(tree: rp.AreaTree, areas: np.ndarray) -> list[np.ndarray]:
    """For each level the area of each record, −1 where its branch ends above."""
    found, around = [], areas
    for level in reversed(range(len(tree.levels))):
        own = tree.level_of[around] == level
        found.append(np.where(own, around, -1))
        around = np.where(own, np.maximum(tree.parents[around], 0), around)
    return found[::-1]


def truth(name: str, plan: rp.Plan) -> pd.DataFrame:
    """By level: shares of people and of cells that are good, tables of areas that meet."""
    tree, domain, areas, codes = records_of(name)
    part, rows = plan.part("areas"), []
    tables = part.workload.tables
    for level, of_level in enumerate(by_level(tree, areas)):
        own, numbers = of_level >= 0, tree.level_slice(level)
        n_areas = numbers.stop - numbers.start
        groups = part.groups.of_area[numbers]
        for row in range(len(tables)):
            index = tables.attribute_indices(row)
            sizes = [int(domain.sizes[i]) for i in index]
            n_cells = int(np.prod(sizes, dtype=int))
            cells = np.ravel_multi_index(codes[:, index].T, sizes) if index else 0 * areas
            at = (of_level[own] - numbers.start) * n_cells + cells[own]
            counts = np.bincount(at, minlength=n_areas * n_cells).reshape(n_areas, n_cells)
            residuals = part.residual_variances[:, groups]
            errors = np.sqrt(part.closure.variance_matrix[[row]] @ residuals).reshape(-1, 1)
            good = counts >= errors / LIMIT
            people = (counts * good).sum(axis=1)
            meeting = np.sum((people >= SHARE * counts.sum(axis=1)) & (counts.sum(axis=1) > 0))
            share = people.sum() / counts.sum()
            rows.append((tree.levels[level], share, good.sum(), good.size, meeting))
    frame = pd.DataFrame(rows, columns=["level", "people", "good", "size", "meeting"])
    found = frame.groupby("level", sort=False).agg(
        {"people": "mean", "good": "sum", "size": "sum", "meeting": "sum"}
    )
    return found.assign(cells=found["good"] / found["size"])


def figures(names: tuple[str, ...]) -> pd.DataFrame:
    """One row a figure: name, known, level, what, truth, low, median, high, inside."""
    rows = []
    for name in names:
        tree, domain, areas, codes = records_of(name)
        tables = rp.Workload.all_up_to(domain, 2)
        asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
        margins = one_way_margins(domain, codes)
        first = by_level(tree, areas)[1]
        counts = np.bincount(first[first >= 0], minlength=tree.n_areas)
        totals = {area: float(counts[area]) for area in range(1, int(tree.starts[2]))}
        for rho in TREES[name][2]:
            plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))
            true = truth(name, plan)
            for known, public, of_areas in (
                ("number", [], None),
                ("one-way margins", margins, None),
                ("margins and totals of the first level", margins, totals),
            ):
                made = rp.AreaForecast(plan, public, len(areas), totals=of_areas)
                found = made.by_level().set_index("level")
                for level, row in true.iterrows():
                    for what in ("people", "cells", "meeting"):
                        of_level = found.loc[level]
                        ends = [of_level[f"{what}_{end}"] for end in ("low", "median", "high")]
                        inside = ends[0] - 1e-6 <= row[what] <= ends[2] + 1e-6
                        rows.append((name, known, level, what, row[what], *ends, inside))
    columns = ["name", "known", "level", "what", "truth", "low", "median", "high", "inside"]
    return pd.DataFrame(rows, columns=columns)


def _rows(names: tuple[str, ...], which: str) -> list[Row]:
    found, rows = figures(names), []
    for known, own in found.groupby("known", sort=False):
        people = own[own["what"] == "people"]
        width = float((people["high"] - people["low"]).median())
        rows += [
            (f"areas, {which}, {known} known: figures in range", own["inside"].mean(), ">=", 0.9),
            ("  median width of people", width, "<=", 0.25),
        ]
    return rows


def area_forecasts_of_calibrated() -> list[Row]:
    return _rows(CALIBRATED, "calibrated on")


def area_forecasts_of_others() -> list[Row]:
    return _rows(OTHERS, "others")


def area_forecasts_of_r_calibrated() -> list[Row]:
    return _rows(data_of_r.at_hand(REAL_CALIBRATED), "real, calibrated on")


def area_forecasts_of_r_others() -> list[Row]:
    return _rows(data_of_r.at_hand(REAL_OTHERS), "real, others")


def forecast_of_many_areas() -> list[Row]:
    """A million areas on four levels."""
    codes = [(f"{p // 10_000:03}", f"{p // 100 % 100:02}", f"{p % 100:02}") for p in range(10**6)]
    columns = dict(zip(("a", "b", "c"), zip(*codes, strict=True), strict=True))
    tree = rp.AreaTree.from_columns(columns)
    tables = rp.Workload.all_up_to(records_of("municipal")[1], 2)
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    seconds, _ = best_of_three(lambda _: rp.AreaForecast(plan, expected=10**8).people)
    return [("forecast of a million areas, s", seconds, "<=", 5.0)]


CASES = (area_forecasts_of_calibrated, area_forecasts_of_others, forecast_of_many_areas)
if data_of_r.at_hand(REAL_CALIBRATED) and data_of_r.at_hand(REAL_OTHERS):
    CASES = (*CASES, area_forecasts_of_r_calibrated, area_forecasts_of_r_others)
