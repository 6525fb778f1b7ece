"""The published tables in this folder, and the plans that must reach them.

rp_rmse.csv and rp_maxvar.csv hold rows of printed tables (column source; RP+ is He, Xiao, Toksoz,
Ding, Zhang, Kifer: ResidualPlanner+, VLDB Journal), all at privacy cost 1: `published` as printed,
`ceiling`, where there is one, what the algorithm gave when it was first tried. k is the order of
the tables ("<=3": the total and all tables of 1, 2 and 3 attributes). domains.csv: the sizes.
"""

import csv
from pathlib import Path

import numpy as np

import rpexplore as rp

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


def root_mean_squared_error(row: dict[str, str]) -> tuple[float, rp.Plan]:
    """√(sum of the variances of all cells / number of cells), as small as it can be."""
    asked = workload(row["dataset"], row["k"])
    loss, budget = rp.SumOfVariances(weighting="cells"), rp.Budget(privacy_cost=1)
    plan = rp.plan(asked, loss=loss, budget=budget)
    return float(np.sqrt(asked.cells @ plan.variances / np.sum(asked.cells))), plan


def largest_variance(row: dict[str, str]) -> tuple[float, rp.Plan]:
    """The largest cell variance, as small as it can be."""
    asked = workload(row["dataset"], row["k"])
    plan = rp.plan(asked, loss=rp.MaxVariance(), budget=rp.Budget(privacy_cost=1))
    return float(np.max(plan.variances)), plan


FIGURES = {"rp_rmse.csv": root_mean_squared_error, "rp_maxvar.csv": largest_variance}
