"""Suggestions against the truth: what the best proposal for a table promises, and what comes of it.

Tables that miss are drawn at random, of all that miss; the best proposal is applied, and the people
in good cells are counted among the records.
"""

import time

import numpy as np
import pandas as pd

import rpexplore as rp
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.suggestions import Proposal, suggestions
from rpexplore.domain.public_tables import PublicTable, PublicTables
from tests.benchmarks.app import hundred
from tests.benchmarks.forecasts import OTHERS, margins_of, records_of
from tests.benchmarks.measure import Row, best_of_three, once

_WITHIN = 0.1  # of people: how near the truth is to what was promised
_N_TABLES = 25  # of a data set


def people_in_good_cells(plan: rp.Plan, table: tuple[str, ...], codes: np.ndarray) -> float:
    """The share of the records in cells whose error is at most a fifth of their count."""
    part = plan.part("tables")
    domain = part.workload.domain
    cells = np.zeros(len(codes), dtype=np.int64)
    for name in domain.in_order(table):
        attribute, column = domain[name], int(domain.columns[domain.position(name)])
        own = np.array(attribute.index_of_values or range(attribute.size))
        cells = cells * attribute.size + own[codes[:, column]]
    errors = part.cell_standard_errors(table).ravel()
    counts = np.bincount(cells, minlength=len(errors))
    return float(counts[errors <= 0.2 * counts].sum() / len(codes))


def promises(
    name: str, *, margins: bool, order: int = 3, n_tables: int = _N_TABLES, epsilon: float = 1
) -> pd.DataFrame:
    """One row a table that misses: action, proposal, low, median, high, now, truth."""
    domain, codes = records_of(name)
    workload = rp.Workload.all_up_to(domain, order)
    budget = rp.Budget(epsilon=epsilon, delta=1e-6)
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)
    public = margins_of(domain, codes) if margins else ()
    known = PublicTables(domain, tuple(PublicTable(one) for one in public), float(len(codes)))
    drawn, part = DrawnCounts.of(workload, known), plan.part("tables")
    missing = rp.Forecast(plan, drawn=drawn).tables().query("people_median < 0.9").index.to_numpy()
    chosen = np.random.default_rng(7).permutation(missing)[:n_tables]
    tables = [workload.tables[place] for place in chosen]
    rows = []
    for made in suggestions(part, drawn, 0.2, 0.9, tables):
        best: Proposal = made.proposals[0]
        if best.people is None:
            continue
        after = best.change.replacement or best.change.table
        now = people_in_good_cells(plan, made.table, codes)
        truth = people_in_good_cells(best.apply(plan), after, codes)
        rows.append(
            (name, made.title, best.change.action, best.change.text, *best.people, now, truth)
        )
    columns = ["name", "table", "action", "proposal", "low", "median", "high", "now", "truth"]
    return pd.DataFrame(rows, columns=columns)


def shared_promises(name: str, *, margins: bool, order: int = 3, most: int = 2) -> pd.DataFrame:
    """One row a table that a change of several at once promises to mend, of the best changes."""
    domain, codes = records_of(name)
    workload = rp.Workload.all_up_to(domain, order)
    budget = rp.Budget(epsilon=1, delta=1e-6)
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)
    public = margins_of(domain, codes) if margins else ()
    forecast = rp.Forecast(plan, public=public, expected=len(codes))
    rows = []
    for made in forecast.suggest_together().proposals[:most]:
        applied = made.apply(plan)
        for row in made.frame().itertuples(index=False):
            now = people_in_good_cells(plan, row.table, codes)
            truth = people_in_good_cells(applied, row.then, codes)
            ends = row.people_low, row.people_median, row.people_high
            rows.append((name, made.change.text, row.then, *ends, now, truth))
    columns = ["name", "proposal", "table", "low", "median", "high", "now", "truth"]
    return pd.DataFrame(rows, columns=columns)


def _rows(names: tuple[str, ...], known: str, *, margins: bool, made=promises) -> list[Row]:
    found = pd.concat([made(name, margins=margins) for name in names])
    is_near = np.abs(found["truth"] - found["median"]) <= _WITHIN
    return [
        (
            f"{len(found)} tables, {known} known: truth within 10 points",
            float(np.mean(is_near)),
            ">=",
            0.8,
        ),
        (
            "  truth at least what was promised less 10 points",
            float(np.mean(found["truth"] >= found["median"] - _WITHIN)),
            ">=",
            0.8,
        ),
    ]


def promises_of_adult() -> list[Row]:
    return _rows(("adult",), "one-way margins", margins=True)


def promises_of_samples() -> list[Row]:
    return _rows(("household", *OTHERS), "one-way margins", margins=True)


def promises_from_the_number_alone() -> list[Row]:
    return _rows(("adult", "household", *OTHERS), "the number", margins=False)


def promises_of_several_at_once() -> list[Row]:
    names = ("adult", "household", *OTHERS)
    return [
        *_rows(names, "several at once, one-way margins", margins=True, made=shared_promises),
        *_rows(names, "several at once, the number", margins=False, made=shared_promises),
    ]


def suggestions_for_adult() -> list[Row]:
    domain, codes = records_of("adult")
    tables = rp.Workload.all_up_to(domain, 3)
    plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(epsilon=1, delta=1e-6))
    forecast = rp.Forecast(plan, public=margins_of(domain, codes))
    _ = forecast.people
    table = [("education", "fnlwgt", "occupation")]
    seconds, _ = best_of_three(lambda _: forecast.suggest(table))
    return [("suggestions for a table of Adult up to 3-way, s", seconds, "<=", 5.0)]


def suggestions_for_many() -> list[Row]:
    """For one of 166,751 tables, of whose proposals some plan all tables anew."""
    plan = rp.plan(hundred().workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=0.3))
    forecast = rp.Forecast(plan, expected=50_000)
    _ = forecast.people
    seconds, _ = once(lambda: forecast.suggest([("a18", "a19", "a39")]), time.process_time)
    return [("suggestions for one of 166,751 tables, processor s", seconds, "<=", 5.0)]


CASES = (
    promises_of_adult,
    promises_of_samples,
    promises_from_the_number_alone,
    promises_of_several_at_once,
    suggestions_for_adult,
    suggestions_for_many,
)
