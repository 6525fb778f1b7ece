"""Suggestions for tables in areas against the truth: what is promised, and what comes of it.

Of trees made of attributes of Adult, all one-way margins known: the tables with fewest people in
good cells, and for each the best proposal at the same budget.
"""

import numpy as np
import pandas as pd

import rpexplore as rp
from tests.benchmarks.area_forecasts import LIMIT, by_level, one_way_margins, records_of
from tests.benchmarks.measure import Row

_TREES = ("country", "education", "family")
_N_TABLES = 6  # of a tree
_WITHIN = 0.1  # of people: how near the truth is to what was promised


def people_in_good_cells(name: str, plan: rp.Plan, level: int, table: tuple[str, ...]) -> float:
    """The share of the people of a level who are in good cells of a table, by the records."""
    tree, _, areas, codes = records_of(name)
    part = plan.part("areas")
    domain, row = part.workload.tables.domain, part.workload.tables.position(table)
    of_level, numbers = by_level(tree, areas)[level], tree.level_slice(level)
    cells, n_cells = np.zeros(len(areas), dtype=np.int64), 1
    for index in part.workload.tables.attribute_indices(row):
        attribute, column = domain.attributes[index], int(domain.columns[index])
        own = np.array(attribute.index_of_values or range(attribute.size))
        cells = cells * attribute.size + own[codes[:, column]]
        n_cells *= attribute.size
    there, n_areas = of_level >= 0, numbers.stop - numbers.start
    at = (of_level[there] - numbers.start) * n_cells + cells[there]
    counts = np.bincount(at, minlength=n_areas * n_cells).reshape(n_areas, n_cells)
    residuals = part.residual_variances[:, part.groups.of_area[numbers]]
    errors = np.sqrt(part.closure.variance_matrix[[row]] @ residuals).reshape(-1, 1)
    return float((counts * (counts >= errors / LIMIT)).sum() / counts.sum())


def promises(name: str, *, totals: bool, rho: str = "0.1") -> pd.DataFrame:
    """One row a table that misses: tree, table, proposal, low, median, high, truth."""
    tree, domain, areas, codes = records_of(name)
    tables = rp.Workload.all_up_to(domain, 2)
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))
    margins = one_way_margins(domain, codes)
    first = by_level(tree, areas)[1]
    counts = np.bincount(first[first >= 0], minlength=tree.n_areas)
    ends = (*tree.starts.tolist(), tree.n_areas)
    known = {area: float(counts[area]) for area in range(1, ends[2])} if totals else None
    forecast = rp.AreaForecast(plan, margins, len(areas), totals=known)
    rows = []
    for made in forecast.suggest(most=_N_TABLES):
        best = next(one for one in made.proposals if one.change.budget is None)
        if best.people is None:
            continue
        level = tree.levels.index(best.table.partition(": ")[0])
        after = best.change.replacement or best.change.table
        truth = people_in_good_cells(name, best.apply(plan), level, after)
        rows.append((name, made.title, best.change.text, *best.people, truth))
    columns = ["tree", "table", "proposal", "low", "median", "high", "truth"]
    return pd.DataFrame(rows, columns=columns)


def promises_in_areas() -> list[Row]:
    rows = []
    for totals in (False, True):
        found = pd.concat([promises(name, totals=totals) for name in _TREES])
        near = np.abs(found["truth"] - found["median"]) <= _WITHIN
        known = "margins and totals" if totals else "margins"
        title = f"{len(found)} tables in areas, {known} known: truth within 10 points"
        rows.append((title, float(np.mean(near)), ">=", 0.8))
    return rows


CASES = (promises_in_areas,)
