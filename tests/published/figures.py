"""The published tables in this folder, and the plans that must reach them.

rp_rmse.csv and rp_maxvar.csv hold rows of printed tables (column source; RP+ is He, Xiao, Toksoz,
Ding, Zhang, Kifer: ResidualPlanner+, VLDB Journal), all at privacy cost 1: `published` as printed,
`ceiling`, where there is one, what the algorithm gave when it was first tried. k is the order of
the tables ("<=3": the total and all tables of 1, 2 and 3 attributes). domains.csv: the sizes, and
how many attributes, from the first on, are numerical: those are counted in prefix sums in
rpplus_prefix_rmse.csv (columns published: RP+, published_hdmm; ceiling: even totals) and
prefix_maxvar_bounds.csv (bound: below it is no Gaussian mechanism). In rpplus_crossover.csv all
attributes have one size and are counted in prefix sums.
"""

import csv
from pathlib import Path

import numpy as np

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan

FOLDER = Path(__file__).parent


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def domain(dataset: str) -> rp.Domain:
    sizes = {row["dataset"]: row["sizes"] for row in rows("domains.csv")}[dataset]
    return rp.Domain.from_sizes({f"a{i}": int(size) for i, size in enumerate(sizes.split())})


def workload(dataset: str, k: str) -> rp.Workload:
    if k.startswith("<="):
        return rp.Workload.all_up_to(domain(dataset), int(k[2:]))
    return rp.Workload.all_of_order(domain(dataset), int(k))


def prefix_workload(dataset: str, k: str) -> rp.Workload:
    """The numerical attributes counted in prefix sums."""
    numerical = {row["dataset"]: row["numerical"] for row in rows("domains.csv")}[dataset]
    bases = {f"a{i}": rp.Prefix() for i in range(int(numerical))}
    return workload(dataset, k).with_bases(bases)


def crossover_workload(row: dict[str, str]) -> rp.Workload:
    names = [f"a{i}" for i in range(int(row["attributes"]))]
    domain = rp.Domain.from_sizes(dict.fromkeys(names, int(row["size"])))
    tables = rp.Workload.all_of_order(domain, int(row["k"]))
    assert len(tables) == int(row["tables"])
    return tables.with_bases(dict.fromkeys(names, rp.Prefix()))


def smallest_error(
    tables: rp.Workload, *, uniform_reference: bool = False
) -> tuple[float, TablePlan]:
    """√(sum of the variances of all cells / number of cells), as small as it can be."""
    plan = plan_tables(
        tables,
        loss=rp.SumOfVariances(weighting="cells"),
        budget=rp.Budget(privacy_cost=1),
        uniform_reference=uniform_reference,
    )
    return float(np.sqrt(tables.cells @ plan.mean_variances / np.sum(tables.cells))), plan


def root_mean_squared_error(row: dict[str, str]) -> tuple[float, TablePlan]:
    """√(sum of the variances of all cells / number of cells), as small as it can be."""
    return smallest_error(workload(row["dataset"], row["k"]))


def largest_variance(row: dict[str, str]) -> tuple[float, TablePlan]:
    """The largest cell variance, as small as it can be."""
    tables = workload(row["dataset"], row["k"])
    plan = plan_tables(tables, loss=rp.MaxVariance(), budget=rp.Budget(privacy_cost=1))
    return float(np.max(plan.mean_variances)), plan


FIGURES = {"rp_rmse.csv": root_mean_squared_error, "rp_maxvar.csv": largest_variance}
