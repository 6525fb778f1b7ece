"""Random plans of every kind of part and budget: none costs a neighbour more than it is charged.

What the steps of a release measure is linear in the records, so that the numbers of each possible
record alone, and their γ², tell the exact cost of all neighbours. Values between two limits of
amounts, beyond them and missing are records as well. The generator knows nothing of how plans are
charged; plans that are refused are passed over.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.frames import FrameSource
from rpexplore.errors import RpexploreError
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.releases.ledger.spent import Spent
from rpexplore.releases.release_steps import PartCounts, PlanSteps, RunOptions

SAMPLERS = [
    f"rpexplore.releases.{module}.discrete_gaussian"
    for module in ("measurement", "area_measurement", "query_release")
]
KINDS = [
    *[("tables",)] * 4,
    *[("areas",)] * 3,
    *[("counts",)] * 2,
    *[("tables", "counts")] * 2,
    ("tables", "areas"),
    ("areas", "counts"),
    ("tables", "areas", "counts"),
]
AMOUNTS = [{"rho": "1/7"}, {"rho": 3}, {"epsilon": "0.3", "delta": "1e-6"}, {"mu": 1}]
MOST_RECORDS, MOST_EXCHANGED, MOST_PATTERNS = 100, 40, 500
SLACK = 1 + Fraction(1, 10**12)

Record = tuple[Any, ...]  # its values, and behind them its area: one code a level


@dataclass
class Asked:
    """What one seed asks for.

    values  of each attribute, those that records may hold
    leaves  the areas that records may lie in; [()] without areas
    promise to whom: for exact totals and panels, tables have single values
    """

    chance: random.Random
    values: dict[str, list[Any]] = field(default_factory=dict)
    fields: list[dict[str, Any]] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    leaves: list[tuple[str, ...]] = field(default_factory=lambda: [()])
    tree: rp.AreaTree | None = None
    promise: str = ""

    def request(self) -> rp.Request:
        """Raises `RpexploreError` for what cannot be asked."""
        chance = self.chance
        self.promise = chance.choice(["added", "added", "replaced", "replaced", "exact", "panel"])
        for name in "abc"[: chance.randint(1, 3)]:
            self._add_attribute(name)
        domain = rp.Domain.from_schema({"fields": self.fields})
        alone = {"exact": [("tables",), ("areas",)], "panel": [("tables",)]}
        kinds, parts = chance.choice(alone.get(self.promise, KINDS)), {}
        if "tables" in kinds:
            parts["tables"] = self._tables(domain)
        if "areas" in kinds:
            parts["areas"] = self._areas(domain)
        if "counts" in kinds:
            parts["counts"] = self._counts(domain)
        more: dict[str, Any] = {"loss": rp.PNorm(4)} if chance.random() < 0.3 else {}
        if kinds[0] == "tables" and chance.random() < 0.2:
            more["pilot"] = "20%"
        if chance.random() < 0.2:
            more["uniform_reference"] = True
        return rp.Request(**parts, **more, budget=self._budget(domain))

    def _add_attribute(self, name: str) -> None:
        chance = self.chance
        kind = chance.choice(["whole", "whole", "list", "list", "bins", "amounts", "weights"])
        if self.promise in ("exact", "panel"):
            kind = "list"
        if kind in ("amounts", "weights") and kind in self.kinds.values():
            kind = "list"
        n, facts = chance.randint(2, 4), dict[str, Any]()
        values: list[Any] = list(range(n))
        if kind == "whole":
            facts = {"type": "integer", "constraints": {"minimum": 0, "maximum": n - 1}}
            if chance.random() < 0.4:
                facts["missingValues"], values = ["-9"], [*values, -9]
        elif kind == "list":
            values = [f"v{value}" for value in values]
            facts["constraints"] = {"enum": values}
        elif kind == "bins":
            facts, values = {"type": "number", "bins": [0, 1.5, 3, 10]}, [0.5, 2, 5]
        else:
            low, wide = chance.choice([0, 0, -5, 2] if kind == "amounts" else [0, 1]), 7
            facts = {"type": "number", "bounds": [low, low + wide], "decimals": 1}
            facts |= {"weights": True} if kind == "weights" else {}
            values = [low, low + wide, low + 3.5, low + 2 * wide]
        if kind == "whole" and n > 2 and len(values) == n and chance.random() < 0.5:
            facts["levels"] = {"half": ["x", *"yx"[: n - 2], "y"][:n]}
        self.fields.append({"name": name, **facts})
        self.values[name], self.kinds[name] = values, kind

    def _tables(self, domain: rp.Domain) -> rp.Workload:
        chance, at_levels = self.chance, self.chance.random() < 0.5
        known = domain.with_levels if at_levels else domain
        names = [name for name in known.names if self.kinds.get(name) != "weights"]
        listed: list[tuple[str, ...]] = [(chance.choice(names),) if names else ()]
        for _ in range(chance.randint(0, 4)):
            table = tuple(sorted(chance.sample(names, chance.randint(0, min(3, len(names))))))
            if len({name.split("@")[0] for name in table}) == len(table):
                listed.append(table)
        tables = rp.Workload.of(known, sorted(set(listed)))
        used = {name for table in tables.tables for name in table}
        bases = {name: self._basis(known[name]) for name in sorted(used) if name in self.kinds}
        countable = ("whole", "list", "bins")
        bases = {
            name: basis
            for name, basis in bases.items()
            if self.kinds[name] in countable
            and chance.random() < 0.3
            and self.promise not in ("exact", "panel")
        }
        tables = tables.with_bases(bases) if bases else tables
        weights = [name for name, kind in self.kinds.items() if kind == "weights"]
        return tables.weighted_by(weights[0]) if weights else tables

    def _basis(self, attribute: rp.Attribute) -> Any:
        chance = self.chance
        rows = [[chance.choice([0, 1, 1, 2, -1, 0.5]) for _ in range(attribute.size)]] * 2
        own = rp.CustomBasis(((1.0,) * attribute.size, *[tuple(map(float, row)) for row in rows]))
        bases = [rp.Prefix(), rp.Ranges(), rp.Windows(2), rp.Hierarchy((2,)), own]
        return chance.choice(bases if any(rows[0]) else bases[:-1])

    def _areas(self, domain: rp.Domain) -> rp.AreaWorkload:
        chance = self.chance
        towns = {
            f"R{number}": [f"T{number}{town}" for town in range(chance.randint(1, 3))]
            for number in range(chance.randint(1, 3))
        }
        self.leaves = [(region, town) for region, inside in towns.items() for town in inside]
        columns = list(zip(*self.leaves, strict=True))
        self.tree = rp.AreaTree.from_columns({"region": columns[0], "town": columns[1]})
        levels = [level for level in self.tree.levels if chance.random() < 0.75] or ["town"]
        asked = {level: self._tables(domain) for level in levels}
        return rp.AreaWorkload.of_levels(self.tree, asked)

    def _counts(self, domain: rp.Domain) -> rp.QueryList:
        chance = self.chance
        listed = [one for one in domain if self.kinds[one.name] not in ("amounts", "weights")]
        about = rp.Domain(tuple(listed[: chance.randint(1, 2)]))
        cells = range(about.n_cells)
        rows = [[chance.choice([0, 1, 1, 0, -1, 2, 0.5]) for _ in cells] for _ in range(3)]
        rows = [row for row in rows if any(row)]
        names = tuple(f"q{number}" for number in range(len(rows)))
        return rp.QueryList(about, np.array(rows, float), names, np.array([2.0] * len(rows)))

    def _budget(self, domain: rp.Domain) -> rp.Budget:
        chance = self.chance
        countable = [name for name in domain.names if self.kinds[name] in ("whole", "list")]
        more: dict[str, Any] = {"max_records_per_person": chance.choice([None, 1, 2, 3])}
        if self.promise == "replaced":
            more["neighbours"] = "replace"
        if self.promise == "exact":
            levels = [] if self.tree is None else ["area@region", "area@town"]
            more = {"exact": [chance.choice([*levels, *countable, countable[:2]])]}
        if self.promise == "panel":
            period = chance.choice(countable)
            more = {"period": period, "max_records_per_person": chance.randint(1, 3)}
        return rp.Budget(**chance.choice(AMOUNTS), **more)

    def records(self) -> list[Record]:
        """All that there can be, or some of them."""
        found = [(*values, area) for *values, area in product(*self.values.values(), self.leaves)]
        return self.chance.sample(found, MOST_RECORDS) if len(found) > MOST_RECORDS else found

    def frame(self, records: list[Record]) -> pd.DataFrame:
        columns = dict(zip(self.values, zip(*records, strict=True), strict=False))
        levels = () if self.tree is None else self.tree.levels[1:]
        columns |= {level: [one[-1][n] for one in records] for n, level in enumerate(levels)}
        return pd.DataFrame(columns)

    def changes(self, budget: rp.Budget, records: list[Record]) -> Iterator[tuple[list, list]]:
        """What may become what around exact totals: docs/guarantees.md, "Exact totals"."""
        names, levels = list(self.values), ["area@region", "area@town"]
        n_kept = max(
            (levels.index(one) + 1 for (one, *_) in budget.exact if one in levels), default=0
        )
        totals = [
            {names.index(name) for name in total}
            for total in budget.exact
            if total[0] not in levels
        ]
        kept = sorted(set().union(*totals))
        places = range(len(names) + (self.tree is not None))
        sides = [
            set(side)
            for size in range(1, len(places))
            for side in combinations(places, size)
            if all(total <= set(side) or not total & set(side) for total in totals)
        ]
        for one, other in combinations(records, 2):
            same = all(one[place] == other[place] for place in kept)
            if same and one[-1][:n_kept] == other[-1][:n_kept]:
                yield [one], [other]
            for side in sides:
                pair = [
                    tuple((there if place in side else here)[place] for place in range(len(one)))
                    for here, there in ((one, other), (other, one))
                ]
                yield [one, other], pair


def measured(plan: rp.Plan, records: pd.DataFrame, sampler: Callable) -> np.ndarray:
    """All numbers that a release of the records measures, with another sampler: int64[n]."""
    source, pieces = FrameSource(records, name="records"), []
    with pytest.MonkeyPatch.context() as patch:
        for name in SAMPLERS:
            patch.setattr(name, sampler)
        for steps in PlanSteps.of(plan).parts:
            counts = PartCounts(source, RunOptions(), steps, source.fingerprint())
            counts.first(lambda *_: None)
            for numbers in counts.measured(steps.parts, lambda *_: None):
                pieces += list(numbers)
    return np.concatenate([piece.ravel() for piece in pieces])


def dearest(asked: Asked, budget: rp.Budget, moves: dict[Record, np.ndarray], gammas: list) -> list:
    """How the numbers move between the dearest neighbours that were found, and others of them."""
    scale = np.sqrt(1 / np.array(gammas, dtype=float))
    records, most = list(moves), budget.max_records_per_person or 1
    if budget.exact:
        some = records[:MOST_EXCHANGED]
        found = [
            sum(moves[one] for one in new) - sum(moves[one] for one in old)
            for old, new in asked.changes(budget, some)
            if all(one in moves for one in new)
        ]
    elif budget.period is not None:
        place, by_period = list(asked.values).index(budget.period), defaultdict(list)
        for one in records:
            by_period[one[place]].append(one)
        found = []
        for periods in combinations(by_period, min(most, len(by_period))):
            for _ in range(MOST_PATTERNS):
                found.append(sum(moves[asked.chance.choice(by_period[one])] for one in periods))
    else:
        found = [most * moves[one] for one in records]
        if budget.replaces:
            found = [most * (moves[one] - moves[other]) for one, other in combinations(records, 2)]
        for _ in range(10):  # persons with records of several kinds, who move more numbers
            of_person = np.zeros_like(moves[records[0]])
            for _ in range(most):
                of_person += moves[asked.chance.choice(records)]
                if budget.replaces:
                    of_person -= moves[asked.chance.choice(records)]
            found.append(of_person)
    found.sort(key=lambda moved: -float(np.sum((moved * scale) ** 2)))
    return [*found[:1], *sorted(found, key=np.count_nonzero)[-2:]]


def audited(seed: int) -> bool:
    """Audit the plan of a seed; False if it is refused."""
    asked = Asked(random.Random(seed))
    try:
        plan = rp.plan(asked.request())
        records = asked.records()
        silent = lambda size, _: np.zeros(size, dtype=np.int64)  # noqa: E731
        moves = {one: measured(plan, asked.frame([one]), silent) for one in records}
    except (RpexploreError, IndexError):  # IndexError: nothing of that kind can be chosen
        return False
    calls, lock = [], Lock()

    def numbered(size: int, gamma_squared: Fraction) -> np.ndarray:
        with lock:
            calls.append(gamma_squared)
            return np.full(size, len(calls) - 1, dtype=np.int64)

    of_calls = measured(plan, asked.frame(records[:1]), numbered) - moves[records[0]]
    gammas = [calls[call] for call in of_calls]
    together = measured(plan, asked.frame(records), silent)
    assert np.array_equal(together, sum(moves.values()))

    budget = plan.budget
    for moved in dearest(asked, budget, moves, gammas):
        numbers, costs = Counter[Fraction](), defaultdict[Fraction, Fraction](Fraction)
        for change, gamma_squared in zip(moved.tolist(), gammas, strict=True):
            if change:
                numbers[gamma_squared] += 1
                costs[gamma_squared] += change**2 / gamma_squared
        cost = sum(costs.values(), Fraction())
        assert cost <= plan.exact_privacy_cost * SLACK
        if numbers and plan.noise is not None:
            own = DiscreteNoise(
                cost,
                np.array(list(map(float, numbers))),
                np.array([float(numbers[one]) for one in numbers]),
                np.array([float(costs[one]) for one in numbers]),
            )
            for delta in ("1e-3", "1e-9"):
                assert own.epsilon(delta) * (1 - 1e-6) <= plan.epsilon(delta)
    assert plan.exact_privacy_cost <= budget.largest.privacy_cost * SLACK
    if not budget.replaces:  # what the ledger adds up
        scale = 1 / np.array(gammas, dtype=float)
        of_record = max(float(np.sum(moved**2 * scale)) for moved in moves.values())
        assert of_record <= 2 * float(Spent.by(plan).record_rho) * (1 + 1e-9)
    return True


@pytest.mark.parametrize("seed", [13, 20, 25, 33, 35, 67, 96])
def test_no_random_plan_costs_more_than_it_is_charged(seed):
    """Tables, areas, own counts; amounts, weights; replaced, exact, a panel, three records."""
    assert audited(seed)


@pytest.mark.nightly
def test_none_of_many_random_plans_costs_more_than_it_is_charged():
    assert sum(map(audited, range(200))) > 70
