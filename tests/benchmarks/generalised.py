"""Speed where attributes have ranges and cumulative counts, against what must be reached.

Cases of `tests.benchmarks.run`. What depends on the noise alone is measured with strategies that
have nothing to do with the queries: finding the best ones is a case of its own.
"""

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.reconstruction import (
    answers,
    contribution,
    marginal,
    query_matrices,
)
from rpexplore.planning.mechanism.variances import CellVariances, TableVariances
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.planning.solvers.strategy_matrix import best_matrix
from rpexplore.planning.strategies import user_cache
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.table_text import query_matrix
from tests.benchmarks.measure import Row, best_of_three, once, peak_gigabytes
from tests.published import figures
from tests.support.generalised import any_strategies

_LOSSES = {"sum": rp.SumOfVariances(), "largest": rp.MaxVariance()}


def tables(count: int, size: int, basis: rp.Prefix | rp.Ranges) -> rp.Workload:
    """All tables of up to three of so many attributes, all of the same bases."""
    domain = rp.Domain.from_sizes({f"a{i}": size for i in range(count)})
    workload = rp.Workload.all_up_to(domain, 3)
    return workload.with_bases(dict.fromkeys(domain.names, basis))


def reconstruction_of_ranges() -> list[Row]:
    workload = tables(20, 10, rp.Ranges())
    closure = Closure.of(workload).with_strategies(workload, any_strategies(workload, 1))
    rng = np.random.default_rng(0)
    attributes = [closure.attributes(residual) for residual in range(len(closure))]
    measured = [rng.integers(-(10**6), 10**6, [9] * len(each)) for each in attributes]
    sigma_squared = rng.uniform(1, 5, len(closure))

    def reconstruct(_: None) -> int:
        contributions = {
            each: contribution(drawn, each, closure.strategies)
            for each, drawn in zip(attributes, measured, strict=True)
        }
        cells, matrices, count = CellVariances(workload, closure), query_matrices(workload), 0
        for position in range(len(workload)):
            of_table = workload.attribute_indices(position)
            within = {
                attributes[residual]: contributions[attributes[residual]]
                for residual in closure.subsets(position).tolist()
            }
            values = marginal(of_table, closure.sizes, within, closure.strategies)
            axes = [
                matrices[basis]
                for basis in workload.attribute_basis_index[position, : len(of_table)]
            ]
            errors = np.sqrt(cells.variances_of(position, sigma_squared))
            count += min(answers(values, axes).size, errors.size)
        return count

    seconds, count = best_of_three(reconstruct)
    assert count == int(np.sum(workload.cells))
    return [
        (f"{count / 1e6:.0f} million ranges and their errors, s", seconds, "<=", 10),
        ("  process peak, GB", peak_gigabytes(), "<", 1.0),
    ]


def extreme_cells() -> list[Row]:
    workload = tables(100, 10, rp.Ranges())
    plain, strategies = Closure.of(workload), any_strategies(workload, 1)
    measuring, closure = best_of_three(lambda _: plain.with_strategies(workload, strategies))
    sigma_squared = np.random.default_rng(0).uniform(1, 5, len(closure))
    largest, _ = best_of_three(
        lambda _: CellVariances(workload, closure).least_accurate(sigma_squared)
    )
    best, _ = best_of_three(lambda _: CellVariances(workload, closure).most_accurate(sigma_squared))
    all_three, _ = best_of_three(lambda _: TableVariances.of(workload, closure, sigma_squared))
    return [
        ("166,751 tables of ranges: measured by strategies, s", measuring, "<=", 0.5),
        ("  least and most accurate cells, s", largest + best, "<=", 1.0),
        ("  mean and extreme variances, s", all_three, "<=", 1.2),
    ]


def selection(count: int, limit: float) -> list[Row]:
    workload = tables(count, 10, rp.Ranges())
    # As the best strategies are: one for all attributes of the same basis.
    strategy = any_strategies(workload, 1)[0]
    strategies = dict.fromkeys(range(count), strategy)
    rows: list[Row] = []
    for name, loss in _LOSSES.items():

        def select(closure: Closure, loss: rp.SumOfVariances | rp.MaxVariance = loss) -> TablePlan:
            solution = optimum(workload, loss=loss, strategies=strategies, closure=closure)
            return solution.at(rp.Budget(privacy_cost=1))

        seconds, plan = best_of_three(select, lambda: Closure.of(workload))
        rows += [
            (
                f"{len(workload):,} tables of ranges, noise, {name}, s",
                seconds,
                "<=",
                limit,
            ),
            ("  gap", plan.certificate.gap, "<=", 1e-6),
        ]
    return rows


def selection_of_fifty() -> list[Row]:
    return selection(50, 1)


def selection_of_a_hundred() -> list[Row]:
    return selection(100, 3)


def one_attribute() -> list[Row]:
    """The best matrices, and the plan of all ranges; processor time."""
    os.environ["RPEXPLORE_NO_CACHE"] = "1"
    prefix, ranges = rp.Prefix(), rp.Ranges()
    rows: list[Row] = []
    for basis, n, limit, largest_gap in (
        (prefix, 1_000, 2, 1e-6),
        (ranges, 1_000, 2, 1e-6),
        (prefix, 4_000, 60, 2e-5),  # what rounding leaves of the bound
    ):
        gram = query_matrix(basis, rp.Attribute("a", rp.Integers(0, n - 1))).operator.gram
        seconds, solution = once(lambda gram=gram: best_matrix(gram), time.process_time)
        gap = solution.root / solution.lower_bound - 1
        rows += [
            (f"best matrix of {basis.kind}, {n:,} values, processor s", seconds, "<=", limit),
            ("  gap", gap, "<=", largest_gap),
        ]
    domain = rp.Domain.from_sizes({"a": 1_024})
    workload = rp.Workload.all_up_to(domain, 1).with_bases({"a": ranges})
    seconds, _ = once(lambda: optimum(workload, loss=rp.SumOfVariances()), time.process_time)
    return [*rows, ("all ranges of 1,024 values, solved, processor s", seconds, "<=", 10)]


def plans_of_prefixes() -> list[Row]:
    """Whole plans of cumulative counts, processor time, nothing known from an earlier search."""
    os.environ["RPEXPLORE_NO_CACHE"] = "1"

    def seconds(make: Callable[[], rp.Workload], *, uniform: bool = False) -> float:
        def fresh() -> rp.Workload:
            user_cache.cache_clear()
            return make()

        def plan(workload: rp.Workload) -> TablePlan:
            budget = rp.Budget(privacy_cost=1)
            loss = rp.SumOfVariances()
            return plan_tables(workload, loss=loss, budget=budget, uniform_reference=uniform)

        plan(fresh())  # what is imported at first use is not counted
        return best_of_three(plan, fresh, time.process_time)[0]

    def prefixes(count: int) -> rp.Workload:
        return tables(count, 10, rp.Prefix())

    limits = {5: 0.02, 10: 0.025, 20: 0.05, 30: 0.06}
    return [
        *(
            (
                f"plan of prefixes, {count} attributes, processor s",
                seconds(partial(prefixes, count)),
                "<=",
                limit,
            )
            for count, limit in limits.items()
        ),
        (
            "  uniform reference, 30, processor s",
            seconds(partial(prefixes, 30), uniform=True),
            "<=",
            0.1,
        ),
        (
            "plan of Adult up to 3-way, prefixes, processor s",
            seconds(partial(figures.prefix_workload, "Adult", "<=3")),
            "<=",
            0.2,
        ),
    ]


def plans_of_very_many_values() -> list[Row]:
    """Cumulative counts of an attribute by one of two values, and the tables of both alone."""
    os.environ["RPEXPLORE_NO_CACHE"] = "1"
    budget = rp.Budget(privacy_cost=1)
    rows: list[Row] = []
    for n, limit in ((1_024, 4.0), (2_048, 15.0), (4_096, 90.0)):
        user_cache.cache_clear()
        domain = rp.Domain.from_sizes({"a": n, "b": 2})
        workload = rp.Workload.all_up_to(domain, 2).with_bases({"a": rp.Prefix()})
        seconds, _ = once(
            lambda made=workload: plan_tables(made, loss=rp.SumOfVariances(), budget=budget),
            time.process_time,
        )
        rows.append((f"plan of prefixes of {n:,} × 2 values, processor s", seconds, "<=", limit))
    return rows


def largest_of_prefixes() -> list[Row]:
    os.environ["RPEXPLORE_NO_CACHE"] = "1"
    domain = rp.Domain.from_sizes({f"a{i}": 10 for i in range(20)})
    workload = rp.Workload.all_of_order(domain, 6)
    workload = workload.with_bases(dict.fromkeys(domain.names, rp.Prefix()))
    budget = rp.Budget(privacy_cost=1)
    seconds, plan = once(
        lambda: plan_tables(workload, loss=rp.MaxVariance(), budget=budget), time.process_time
    )
    return [
        (f"{len(workload):,} tables of prefixes, largest, processor s", seconds, "<=", 90),
        ("  gap", plan.certificate.gap, "<=", 1e-6),
    ]


def five_attributes() -> list[Row]:
    workload = tables(5, 100, rp.Prefix())
    closure, weights = Closure.of(workload), rp.SumOfVariances().table_weights(workload)
    seconds, _ = once(lambda: with_best_strategies(workload, closure, weights))
    return [("reference distributions, five attributes of size 100, s", seconds, "<=", 60)]


CASES = (
    reconstruction_of_ranges,
    extreme_cells,
    selection_of_fifty,
    selection_of_a_hundred,
    one_attribute,
    plans_of_prefixes,
    plans_of_very_many_values,
    largest_of_prefixes,
    five_attributes,
)
