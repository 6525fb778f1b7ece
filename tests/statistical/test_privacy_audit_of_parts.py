"""Sampled audit of whole plans: levels, aggregations, areas, own counts and pilots, also together.

As in `test_privacy_audit`, but all that a release would count and measure is counted and measured,
by the steps of its parts. With a sampler that draws nothing, that is the mean of every number;
with one that tells its calls apart, it is the γ² of every number. What is measured is linear in
the records, so that each record by itself shows which two are the dearest. Their numbers are then
drawn many times by the sampler of releases. For replaced records some plans are charged an upper
bound: then the test refutes a promise that is smaller by as much more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from operator import itemgetter

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.frames import FrameSource
from rpexplore.planning.rest import on_top_of_pilot
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from rpexplore.releases.release_steps import PartCounts, PlanSteps, RunOptions
from tests.statistical.test_privacy_audit import DELTAS, refuted

MODULES = [f"rpexplore.releases.{name}" for name in ("measurement", "area_measurement")]
SAMPLERS = [f"{name}.discrete_gaussian" for name in (*MODULES, "rpexplore.releases.query_release")]
AGES = {
    "name": "age",
    "constraints": {"minimum": 0, "maximum": 3},
    "levels": {"old": ["no", "no", "no", "yes"]},
}
SEXES = {"name": "sex", "constraints": {"minimum": 0, "maximum": 1}}
DOMAIN = rp.Domain.from_sizes({"age": 4, "sex": 2})
WITH_LEVELS = rp.Domain.from_schema({"fields": [AGES, SEXES]}).with_levels
TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": ["1", "2", "3"]})

TABLES = rp.Workload.all_up_to(DOMAIN, 2)
LEVELS = rp.Workload.of(WITH_LEVELS, [("age@old", "sex"), ("age",), ("sex",)])
CUMULATIVE = TABLES.with_bases({"age": rp.Prefix()})
AREAS = rp.AreaWorkload.of_levels(
    TREE,
    {
        "all": TABLES,
        "region": rp.Workload.of(DOMAIN, [("age",), ("sex",)]),
        "town": rp.Workload.of(DOMAIN, [("sex",)]),
    },
)
TOWNS = [("N", "1"), ("N", "2"), ("S", "3")]
RECORDS = list(product(range(4), range(2), TOWNS))
COUNTS = rp.QueryList(
    DOMAIN,
    np.array([[1, 1, 1, 1, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1, 0, 0], [1] * 8]),
    ("young", "women", "all"),
    np.array([3, 2, 4]),
)

REPLACED = rp.Budget(rho="0.4", neighbours="replace")
REQUESTS: dict[str, Callable[[rp.Budget], rp.Request]] = {
    "levels": lambda budget: rp.Request(tables=LEVELS, budget=budget),
    "aggregations": lambda budget: rp.Request(tables=CUMULATIVE, budget=budget),
    "areas": lambda budget: rp.Request(areas=AREAS, budget=budget),
    "counts": lambda budget: rp.Request(counts=COUNTS, budget=budget),
    "pilot": lambda budget: rp.Request(tables=TABLES, budget=budget, pilot="20%"),
    "tables and counts": lambda budget: rp.Request(tables=TABLES, counts=COUNTS, budget=budget),
    "everything": lambda budget: rp.Request(
        tables=TABLES, areas=AREAS, counts=COUNTS, budget=budget
    ),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """What the steps of a plan measure of each record, and the noise that they add to it.

    means           of each record that there can be: float64[n_records, n_numbers]
    gamma_squared   of each number: Fractions, [n_numbers]
    """

    means: np.ndarray
    gamma_squared: np.ndarray

    @classmethod
    def of(cls, plan: rp.Plan) -> "Measured":
        in_areas = "areas" in {part.kind for part in plan.parts}
        towns = TOWNS if in_areas else [()]
        records = [
            pd.DataFrame(
                [{"age": age, "sex": sex, **dict(zip(TREE.levels[1:], town, strict=False))}]
            )
            for age, sex, town in product(range(4), range(2), towns)
        ]
        calls: list[Fraction] = []

        def silent(size: int, gamma_squared: Fraction) -> np.ndarray:
            return np.zeros(size, dtype=np.int64)

        def numbered(size: int, gamma_squared: Fraction) -> np.ndarray:
            calls.append(gamma_squared)
            return np.full(size, len(calls) - 1, dtype=np.int64)

        means = np.array([_numbers(plan, record, silent) for record in records])
        of_calls = _numbers(plan, records[0], numbered) - means[0]
        return cls(means.astype(float), np.array(calls, dtype=object)[of_calls])

    def dearest_of_changes(self, exact: Sequence[Sequence[str]]) -> np.ndarray:
        """The dearest shift of one changed record or two that exchange values, as `RECORDS`.

        Of those that keep the exact totals.
        """
        place = {record: number for number, record in enumerate(RECORDS)}
        values = {
            "age": itemgetter(0),
            "sex": itemgetter(1),
            "area@region": lambda record: record[2][0],
            "area@town": itemgetter(2),
        }

        def totals(records: Iterable[tuple]) -> list:
            return [sorted(tuple(values[name](one) for name in total) for one in records)
                    for total in exact]  # fmt: skip

        shifts = []
        for one, other in product(RECORDS, repeat=2):
            changes: list[tuple[tuple, tuple]] = [((one,), (other,))]
            for side in ((0,), (1,), (2,)):  # and the others, which are exchanged alike
                new = [
                    tuple(own[k] if k in side else beside[k] for k in range(3))
                    for own, beside in ((one, other), (other, one))
                ]
                changes.append(((one, other), tuple(new)))
            shifts += [
                sum(self.means[place[record]] for record in new)
                - sum(self.means[place[record]] for record in gone)
                for gone, new in changes
                if totals(gone) == totals(new)
            ]
        costs = np.sum(np.array(shifts) ** 2 / self.gamma_squared.astype(float), axis=1)
        return shifts[int(np.argmax(costs))]

    def shifts(self, *, replaces: bool) -> np.ndarray:
        """How far the numbers of the dearest two neighbours are apart, float64[n_numbers]."""
        pairs = self.means[:, None] - self.means if replaces else self.means[None]
        pairs = pairs.reshape(-1, self.means.shape[1])
        costs = np.sum(pairs**2 / self.gamma_squared.astype(float), axis=1)
        return pairs[int(np.argmax(costs))]


def _numbers(plan: rp.Plan, records: pd.DataFrame, sampler: Callable) -> np.ndarray:
    """All that is measured in a release of some records, with another sampler: int64[n_numbers]."""
    source, pieces = FrameSource(records, name="records"), []
    with pytest.MonkeyPatch.context() as patch:
        for name in SAMPLERS:
            patch.setattr(name, sampler)
        for steps in PlanSteps.of(plan).parts:
            counts = PartCounts(source, RunOptions(), steps, source.fingerprint())
            counts.first(lambda *_: None)
            for measured in counts.measured(steps.parts, lambda *_: None):
                pieces += list(measured)
    return np.concatenate([piece.ravel() for piece in pieces])


def audit(kind: str, budget: rp.Budget, runs: int, *, refutes: float) -> None:
    plan = rp.plan(REQUESTS[kind](budget))
    measured, records = Measured.of(plan), budget.max_records_per_person or 1
    if budget.exact:
        shifts = measured.dearest_of_changes(budget.exact)
    else:
        shifts = records * measured.shifts(replaces=budget.replaces)
    at = np.zeros((2, runs))
    for gamma_squared in set(measured.gamma_squared[shifts != 0].tolist()):
        moved = shifts[(shifts != 0) & (measured.gamma_squared == gamma_squared)]
        noise = discrete_gaussian(2 * runs * len(moved), gamma_squared).reshape(2, runs, -1)
        halves = np.sum(moved**2) / 2
        at += (noise @ moved + np.array([[halves], [-halves]])) / float(gamma_squared)
    costs = shifts**2 / measured.gamma_squared.astype(float)
    dearest, charged = float(np.sum(costs)), float(plan.exact_privacy_cost)
    assert (0.4 if budget.exact else 0.6) * charged < dearest <= charged * (1 + 1e-9)
    error = 5 * np.sqrt(dearest / runs)
    assert np.mean(at, axis=1) == pytest.approx([dearest / 2, -dearest / 2], abs=error)
    claims = [(plan.epsilon(delta), float(delta)) for delta in DELTAS]
    assert not any(refuted(at[0], at[1], *claim) for claim in claims)
    assert not any(refuted(-at[1], -at[0], *claim) for claim in claims)
    smaller = refutes * np.sqrt(dearest / charged)
    assert any(refuted(at[0], at[1], smaller * epsilon, delta) for epsilon, delta in claims)


def test_ten_thousand_runs_of_levels_refute_no_promise():
    audit("levels", REPLACED, 10_000, refutes=0.5)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_pilot_and_the_rest_of_any_plan_cost_no_pair_more_than_is_booked(neighbours):
    budget, then = rp.Budget(rho="0.4", neighbours=neighbours), rp.RestObjective()
    first = rp.plan(rp.Request(tables=TABLES, budget=budget, pilot="20%", then=then))
    pilot = Measured.of(first).gamma_squared[:7]  # the total, age, sex
    for weights in ([1, 1, 1, 1], [1, 100, 1, 1], [1, 1, 1e4, 1e-4], [9, 1, 1, 1e3]):
        tables = replace(TABLES, weights=np.array(weights, dtype=float))
        best = rp.plan(tables, loss=rp.SumOfVariances(), budget=budget).part("tables")
        measured = Measured.of(on_top_of_pilot(first, best, 64 * "0"))
        assert measured.gamma_squared[:7].tolist() == pilot.tolist()
        for shift in _shifts(measured, replaces=budget.replaces):
            exact = sum(
                Fraction(int(moved)) ** 2 / gamma_squared
                for moved, gamma_squared in zip(shift, measured.gamma_squared, strict=True)
            )
            assert exact <= first.exact_privacy_cost


def _shifts(measured: Measured, *, replaces: bool) -> np.ndarray:
    pairs = measured.means[:, None] - measured.means if replaces else measured.means[None]
    return pairs.reshape(-1, measured.means.shape[1])


@pytest.mark.nightly
@pytest.mark.parametrize("exact", [["area@region"], ["area@region", ("age", "sex")]])
def test_many_runs_around_exact_totals_in_areas_refute_no_promise(exact):
    audit("areas", rp.Budget(rho="0.4", exact=exact), 100_000, refutes=0.75)


def test_no_change_around_exact_totals_costs_more_in_all_parts_than_is_charged():
    for exact in (["area@region", "sex"], ["age"]):
        budget = rp.Budget(rho="0.4", exact=exact)
        plan = rp.plan(REQUESTS["everything"](budget))
        measured = Measured.of(plan)
        shifts = measured.dearest_of_changes(budget.exact)
        dearest = np.sum(shifts**2 / measured.gamma_squared.astype(float))
        assert 0.4 < dearest / float(plan.exact_privacy_cost) <= 1


@pytest.mark.nightly
@pytest.mark.parametrize("exact", [["area@region", "sex"], ["age"]])
def test_many_runs_around_exact_totals_of_all_parts_refute_no_promise(exact):
    audit("everything", rp.Budget(rho="0.4", exact=exact), 100_000, refutes=0.75)


@pytest.mark.nightly
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", [kind for kind in REQUESTS if kind != "everything"])
def test_many_runs_of_every_kind_of_part_refute_no_promise(kind, neighbours):
    audit(kind, rp.Budget(rho="0.4", neighbours=neighbours), 100_000, refutes=0.75)
