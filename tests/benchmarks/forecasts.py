"""Forecasts against the truth, by data set and by what is known; and their speed: cases of `run`.

`CALIBRATED`, and those of `data_of_r`, were used to choose what populations differ in; the others
were not.
"""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import rpexplore as rp
from rpexplore.analysis.most_people import MostPeople, plan_of_rest
from rpexplore.planning.pilot import with_pilot
from rpexplore.results.pilot_tables import pilot_tables
from tests.benchmarks import data_of_r
from tests.benchmarks.measure import Row, best_of_three
from tests.benchmarks.planning import DATA
from tests.support.samples import FOLDER, coded

CALIBRATED = ("adult", "household")
OTHERS = ("hospital-stays", "labour-force", "redistricting")


@cache
def records_of(name: str) -> tuple[rp.Domain, np.ndarray]:
    if name in data_of_r.SETS:
        return data_of_r.records_of(name)
    if name != "adult":
        return coded(name)
    frame = pd.read_csv(DATA / "adult.csv")
    sizes = pd.read_json(DATA / "adult-domain.json", typ="series")
    domain = rp.Domain.from_sizes({str(name): int(size) for name, size in sizes.items()})
    return domain, frame[list(domain.names)].to_numpy(np.int64)


def margins_of(domain: rp.Domain, codes: np.ndarray) -> tuple[rp.ExpectedCounts, ...]:
    return tuple(
        rp.ExpectedCounts(
            (attribute.name,),
            (tuple(attribute.stored_values()),),
            tuple(np.bincount(codes[:, index], minlength=attribute.size).tolist()),
        )
        for index, attribute in enumerate(domain)
    )


def truth(plan: rp.Plan, codes: np.ndarray, limit: float) -> pd.DataFrame:
    """By number of attributes: shares of people and of cells that are good, tables meeting."""
    part = plan.part("tables")
    rows = []
    for place in range(len(part.workload)):
        attributes = part.workload.attribute_indices(place)
        sizes = [int(part.workload.domain.sizes[index]) for index in attributes]
        counts = np.array([len(codes)])
        if attributes:
            counts = np.bincount(np.ravel_multi_index(codes[:, attributes].T, sizes))
        good = counts >= np.sqrt(part.mean_variances[place]) / limit
        people = counts[good].sum() / len(codes)
        rows.append((len(sizes), people, good.sum(), np.prod(sizes, dtype=float), people >= 0.9))
    frame = pd.DataFrame(rows, columns=["order", "people", "good", "size", "meeting"])
    by_order = frame.groupby("order").agg(
        {"people": "mean", "good": "sum", "size": "sum", "meeting": "sum"}
    )
    return by_order.assign(cells=by_order["good"] / by_order["size"])


KNOWN = {"number": 0.25, "one-way margins": 0.10, "a pilot of 5 %": 0.10}
"""What is known of the records, and the largest median width of a range of people."""


def released_pilot(name: str, plan: rp.Plan) -> tuple[rp.PublicTable, ...]:
    """The one-way tables of a pilot of a plan, drawn from the records of a data set."""
    with TemporaryDirectory() as place:
        if name in data_of_r.SETS:
            domain, codes = records_of(name)
            records = Path(place) / "records.csv"
            pd.DataFrame(codes, columns=list(domain.names)).to_csv(records, index=False)
        else:
            folder = DATA if name == "adult" else FOLDER
            (path,) = folder.glob(f"{name}.csv*")
            records = Path(shutil.copy(path, place))
        output, ledger = records.parent / "out", records.parent / "ledger.sqlite"
        made = rp.release(plan, records, output, pilot_only=True, ledger=ledger)
        return pilot_tables(made.folder)


def figures(names: tuple[str, ...], *, known: str) -> pd.DataFrame:
    """One row a figure: name, epsilon, order, what, truth, low, median, high, inside."""
    rows = []
    for name in names:
        domain, codes = records_of(name)
        tables = rp.Workload.all_up_to(domain, 3)
        for epsilon in (3, 1, 0.2):
            budget = rp.Budget(epsilon=epsilon, delta=1e-6)
            plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=budget)
            public, expected = (), len(codes)
            if known == "one-way margins":
                public = margins_of(domain, codes)
            elif known != "number":
                plan = with_pilot(plan, "5%")
                public, expected = released_pilot(name, plan), None
            found = rp.Forecast(plan, public=public, expected=expected).by_order()
            for order, true in truth(plan, codes, 0.2).iterrows():
                for what in ("people", "cells", "meeting"):
                    ends = [
                        float(found[f"{what}_{end}"][order]) for end in ("low", "median", "high")
                    ]
                    inside = ends[0] - 1e-6 <= true[what] <= ends[2] + 1e-6
                    rows.append((name, epsilon, order, what, true[what], *ends, inside))
    columns = ["name", "epsilon", "order", "what", "truth", "low", "median", "high", "inside"]
    return pd.DataFrame(rows, columns=columns)


def _rows(names: tuple[str, ...], which: str) -> list[Row]:
    rows: list[Row] = []
    for known, widest in KNOWN.items():
        found = figures(names, known=known)
        people = found[(found["what"] == "people") & (found["order"] > 0)]
        width = float((people["high"] - people["low"]).median())
        rows += [
            (f"{which}, {known} known: figures in range", found["inside"].mean(), ">=", 0.9),
            ("  median width of people", width, "<=", widest),
        ]
    return rows


def forecasts_of_calibrated() -> list[Row]:
    return _rows(CALIBRATED, "calibrated on")


def forecasts_of_others() -> list[Row]:
    return _rows(OTHERS, "others")


def forecasts_of_r_calibrated() -> list[Row]:
    return _rows(data_of_r.at_hand(data_of_r.CALIBRATED), "real, calibrated on")


def forecasts_of_r_others() -> list[Row]:
    return _rows(data_of_r.at_hand(data_of_r.OTHERS), "real, others")


def _people(plan: rp.Plan, codes: np.ndarray) -> float:
    """The share of people in good cells, the mean over tables."""
    found, tables = truth(plan, codes, 0.2), plan.part("tables").workload
    return float(found["people"] @ np.bincount(tables.orders)[found.index]) / len(tables)


def rests_of_pilots() -> list[Row]:
    """What is gained where the rest is planned from a pilot's figures (docs/pilot.md)."""
    rows: list[Row] = []
    for name in (*CALIBRATED, *OTHERS):
        domain, codes = records_of(name)
        tables, then = rp.Workload.all_up_to(domain, 3), rp.RestObjective()
        budget = rp.Budget(rho="0.02")
        first = rp.plan(tables, loss=rp.SumOfVariances(), budget=budget, pilot="2%", then=then)
        rest = plan_of_rest(first, released_pilot(name, first))
        by_number = MostPeople(tables, budget, expected=len(codes)).plan.alone
        before, known, after = (_people(plan, codes) for plan in (first, by_number, rest))
        gap = rest.part("tables").certificate.gap
        rows += [
            (f"rest of a pilot, {name}: people gained", after - before, ">=", 0.005),
            ("  beside weights by the number of records", after - known, ">=", -0.001),
            ("  sum of variances beside the best", 1 + gap, "<=", 1.01),
        ]
    return rows


def forecast_of_adult() -> list[Row]:
    domain, codes = records_of("adult")
    tables = rp.Workload.all_up_to(domain, 3)
    plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(epsilon=1, delta=1e-6))
    margins = margins_of(domain, codes)
    seconds, _ = best_of_three(lambda _: rp.Forecast(plan, public=margins).people)
    return [("forecast of Adult up to 3-way, populations drawn, s", seconds, "<=", 5.0)]


CASES = (forecasts_of_calibrated, forecasts_of_others, forecast_of_adult, rests_of_pilots)
if data_of_r.at_hand(data_of_r.CALIBRATED) and data_of_r.at_hand(data_of_r.OTHERS):
    CASES = (*CASES, forecasts_of_r_calibrated, forecasts_of_r_others)
