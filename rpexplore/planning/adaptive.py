"""Adaptive plan: what is measured first, and how tables are selected later. A frozen value."""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rpexplore.common.json_fields import (
    check_keys,
    dumps,
    list_of,
    loads,
    object_text,
    positive_exact,
    refusing,
)
from rpexplore.common.numbers import exact_text, shown_value, whole_number
from rpexplore.common.text import plural, rounded
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.errors import ContradictionError, PlanError, WorkloadError
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.part_plan import WorkloadPlan, item_columns
from rpexplore.planning.plan_fields import (
    ATTRIBUTES,
    BUDGET,
    above_0,
    const,
    domain,
    exact,
    keys,
    of_type,
    record,
    ref,
    rows,
)
from rpexplore.planning.planner import plan_tables, refuse_type
from rpexplore.planning.serialization import tables_from_json, tables_to_json
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.table_text import all_titles
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    from rpexplore.planning.verification import Check


# ---- The schedule of an adaptive release: how much of the budget each round has, and for what.
#
# Fixed beforehand, in exact rationals, from public numbers alone: ρ, how many candidates the
# workload has, and how many records are expected.


# Of ρ, for the first plan: the less, the more of the tables is told from noise, by N √ρ.
LEAST_FIRST_SHARE, MOST_FIRST_SHARE = Fraction(2, 5), Fraction(4, 5)
_OF_ONE_RECORD, _OF_TENFOLD = 1.36, 0.2  # share where N √ρ is 1; how much less for ten times that
_SHARE_STEP = 20  # of these a share is a whole number, so that it can be read
ROUNDS = 4  # six came out a little farther from the truth, of many tables at ε = 1
GROWTH = Fraction(3, 2)  # of ρ from one round to the next, as later selections know more
SELECTION_SHARE = Fraction(1, 10)  # of a round's ρ
MOST_TABLES = 24  # in a round; more would be selected by the same estimate
LEAST_CANDIDATES = 10  # for each table that is selected in a round
LEAST_RESOLUTION = 50
"""Scores 2/ε apart are told apart in most selections: at most so many-th part of all records."""
_LARGEST_WEIGHT = 1000  # of a candidate, where tables have different weights
_DOWN = Context(prec=12, rounding=ROUND_FLOOR)  # of parts of ρ, so that they can be read in a file


@dataclass(frozen=True)
class Round:
    """One round: how many tables it selects, and ρ for one record and one selected table.

    In a panel ρ is that of a person, over m².

    n_tables         how many different candidates are selected, each by a draw of its own
    selection_rho    of the exponential mechanism, for each draw
    measurement_rho  of the discrete Gaussian noise on the residual of each selected table
    """

    n_tables: int
    selection_rho: Fraction
    measurement_rho: Fraction

    @property
    def rho(self) -> Fraction:
        """The round's privacy cost for one record."""
        return self.n_tables * (self.selection_rho + self.measurement_rho)


@dataclass(frozen=True)
class Schedule:
    """first_rho: of the first plan, for one record; rounds: what follows it."""

    first_rho: Fraction
    rounds: tuple[Round, ...]

    @property
    def rho(self) -> Fraction:
        """The privacy cost of all rounds for one record."""
        return self.first_rho + sum((step.rho for step in self.rounds), Fraction())


def schedule(budget: Budget, n_candidates: int, expected_records: int) -> Schedule:
    """The schedule within a budget, which it uses up to 11 digits.

    A round selects as many tables as it can tell apart from others: its draws have
    2/ε ≤ records / 50, with ε = √(8 ρ) of a draw. Where not even one table can be told apart in
    the first round, there are fewer rounds, with more for each; the last one left selects one.
    """
    rho = budget.record_privacy_cost / 2
    first_rho = _rounded_down(rho * first_share(rho, expected_records))
    # 2/√(8 ρ) ≤ N/50 where ρ is at least this.
    least_rho = Fraction(LEAST_RESOLUTION**2, 2 * expected_records**2)
    most = min(max(n_candidates // LEAST_CANDIDATES, 1), MOST_TABLES)
    in_rounds = SELECTION_SHARE * (rho - first_rho) / least_rho  # how many tables can be told apart
    n_rounds = next((n for n in range(ROUNDS, 1, -1) if in_rounds * _shares(n)[0] >= 1), 1)
    rounds = tuple(
        _round((rho - first_rho) * share, min(max(int(in_rounds * share), 1), most))
        for share in _shares(n_rounds)
    )
    return Schedule(first_rho, rounds)


def _shares(n_rounds: int) -> list[Fraction]:
    """The share of each round in what rounds have together."""
    amounts = [GROWTH**number for number in range(n_rounds)]
    return [amount / sum(amounts) for amount in amounts]


def first_share(record_rho: Fraction, expected_records: int) -> Fraction:
    """The share of ρ that the first plan has, in steps of 1/20."""
    precision = expected_records * math.sqrt(record_rho)
    share = _OF_ONE_RECORD - _OF_TENFOLD * math.log10(precision)
    steps = Fraction(round(_SHARE_STEP * share), _SHARE_STEP)
    return min(max(steps, LEAST_FIRST_SHARE), MOST_FIRST_SHARE)


def _round(rho: Fraction, n_tables: int) -> Round:
    of_table = rho / n_tables
    selection = _rounded_down(of_table * SELECTION_SHARE)
    return Round(n_tables, selection, _rounded_down(of_table - selection))


def _rounded_down(value: Fraction) -> Fraction:
    """A positive number down to 12 significant digits."""
    return Fraction(_DOWN.divide(Decimal(value.numerator), Decimal(value.denominator)))


# ---- Adaptive plan: what is measured first, and how tables are selected later. A frozen value.


MOST_RECORDS = 10**12  # that can be expected


@dataclass(frozen=True, eq=False, repr=False)
class AdaptivePlan(WorkloadPlan):
    """The schedule of an adaptive release; it guarantees privacy, and no accuracy.

    A run measures the first plan. Then, in each round, it fits all tables to what is measured so
    far, selects the candidates that the fit gets most wrong, and measures their residuals.

    workload            the tables that are estimated: of single values and one weight, no targets
    first               what is measured beforehand: all residuals of 1 and 2 attributes within
                        tables, weighted for smooth tables
    rounds              what follows; their ρ is for one record, as everywhere a person with m
                        records costs m² times that. In a panel, where measuring a residual by the
                        period costs a person less, it is what a person costs, over m²
    expected_records    how many records are expected: a public number, by which the budget is
                        divided into rounds
    exact_privacy_cost  of the privacy unit, all rounds and the first plan together
    version             of the library that made the plan

    Make one with `rpexplore.plan`, as the part "rounds" of a plan.
    """

    kind = "rounds"
    noun = "adaptive plan"
    released_item = "estimated table"
    drawn_as = (
        "Tables are selected by the exponential mechanism, whose probabilities are exact, and the "
        "noise is discrete Gaussian, so these hold for what is drawn"
    )
    accuracy_statement = (
        "The tables are adaptive estimates, which are biased. Nothing is promised of their "
        "accuracy beforehand: the release states a bound on the error of a table where one is "
        "known."
    )
    has_labels_in_csv = True

    workload: Workload
    budget: Budget
    first: TablePlan
    rounds: tuple[Round, ...]
    expected_records: int
    exact_privacy_cost: Fraction
    version: str

    def __post_init__(self) -> None:
        refuse_unsuitable(self.workload)
        checked_records(self.expected_records)
        if self.first.domain != self.domain:
            raise PlanError("its first plan is for another codebook.")
        if (self.first.budget.unit, self.first.budget.period) != (
            self.budget.unit,
            self.budget.period,
        ):
            raise PlanError(
                f"its first plan protects {self.first.budget.unit}, and it {self.budget.unit}."
            )
        most = len(self.candidates)
        for number, step in enumerate(self.rounds, 1):
            if not 1 <= step.n_tables <= most:
                raise PlanError(
                    f"round {number} must select 1 to {most:,} tables, got {step.n_tables:,}."
                )

    @property
    def asked(self) -> str:
        return plural(self.n_items, "adaptive table")

    # ---- its part of the file

    def to_text(self) -> str:
        return text_of_plan(self)

    @classmethod
    def of_content(cls, content: Any, version: str, folder: Path | None) -> Self:
        return cls(**fields_of_plan(content, version))

    def checks(self, *, strategies: bool) -> "tuple[Check, ...]":
        from rpexplore.planning.verification import adaptive_checks

        return adaptive_checks(self, strategies=strategies)

    # ---- what it guarantees

    @property
    def record_rho(self) -> Fraction:
        """ρ for one record; in a panel of the dearest residuals that rounds could measure."""
        if self.budget.period is None:
            return super().record_rho
        # One record may cost more than a person's share of m²: (n − 1)/n for 1/m, by the period.
        sizes = self.domain.sizes.tolist()
        dearest = max(
            prod((Fraction(sizes[index] - 1, sizes[index]) for index in subset), start=Fraction(1))
            / self.moved_share(subset)
            for subset in self.candidates
        )
        of_rounds = (
            step.n_tables * (step.selection_rho + step.measurement_rho * dearest)
            for step in self.rounds
        )
        return self.first.record_rho + sum(of_rounds, Fraction())

    def moved_share(self, subset: AttributeIndices) -> Fraction:
        """The most that the residual of a candidate costs the unit at σ² = 1, over m²: exact.

        ∏ (n − 1)/n; in a panel 1/m of the period, as records of a person are in different ones
        (docs/guarantees.md, "Panels").
        """
        shares = {index: Fraction(n - 1, n) for index, n in enumerate(self.domain.sizes.tolist())}
        if self.budget.period is not None:
            period = self.domain.position(self.budget.period)
            shares[period] = Fraction(1, self.budget.max_records_per_person or 1)
        return prod((shares[index] for index in subset), start=Fraction(1))

    # ---- what is selected

    @cached_property
    def candidates(self) -> tuple[AttributeIndices, ...]:
        """The candidates of rounds, as ascending attribute indices: pairs, and triples if they fit.

        In canonical order: by number of attributes, then lexicographically.
        """
        return candidates_of(self.workload)

    @property
    def candidate_weights(self) -> tuple[int, ...]:
        """How much each candidate's error counts in a selection: positive whole numbers.

        1 where all tables have one weight. Else, as in AIM, the sum over tables of weight times how
        many attributes a table has in common with the candidate, 1,000 for the largest.
        """
        weights = [Fraction(weight) for weight in self.workload.weights.tolist()]
        if len(set(weights)) == 1:
            return (1,) * len(self.candidates)
        # Σ_s w_s |r ∩ s| = Σ_{i ∈ r} Σ_{s ∋ i} w_s
        of_attribute: dict[int, Fraction] = {}
        for table, weight in enumerate(weights):
            for index in self.workload.attribute_indices(table):
                of_attribute[index] = of_attribute.get(index, Fraction(0)) + weight
        sums = [sum(of_attribute[index] for index in subset) for subset in self.candidates]
        largest = max(sums)
        return tuple(max(round(_LARGEST_WEIGHT * each / largest), 1) for each in sums)

    def accuracy_columns(self) -> dict[str, Any]:
        """The tables that are estimated, whose accuracy is not known: see `item_columns`."""
        return item_columns(
            self.kind,
            all_titles(self.workload),
            attributes=self.workload.tables,
            cells=self.workload.cells.astype(np.int64),
            weight=self.workload.weights,
        )

    @property
    def n_selected(self) -> int:
        """How many residuals the rounds measure."""
        return sum(step.n_tables for step in self.rounds)

    def __str__(self) -> str:
        """The plan in a few lines, for a terminal."""
        factor = self.budget.records_factor
        total = self.rho / factor
        lines = [
            f"Adaptive plan for {plural(len(self.workload), 'table')} over "
            f"{plural(len(self.domain), 'attribute')} "
            f"({plural(len(self.candidates), 'candidate')})",
            *self.privacy_lines,
            "  Accuracy   biased estimates; known only from the release, nothing is promised of it",
            f"  Expects    {plural(self.expected_records, 'record')}",
            f"  Measures   {'':<8} {'residuals':>9} {'share of ρ':>11} {'of it to select':>16}",
            f"    {'first':<17} {len(self.first.closure):>9,} "
            f"{_percent(self.first.rho / factor / total):>11} {'–':>16}",
        ]
        for number, step in enumerate(self.rounds, 1):
            selection = step.n_tables * step.selection_rho / step.rho
            lines.append(
                f"    {f'round {number}':<17} {step.n_tables:>9,} "
                f"{_percent(step.rho / total):>11} {_percent(selection):>16}"
            )
        return "\n".join(lines)


def checked_records(value: object) -> int:
    """The expected number of records; raises `PlanError` if it is none."""
    number = whole_number(value)
    if number is None or not 1 <= number <= MOST_RECORDS:
        raise PlanError(
            "The expected number of records must be a whole number from 1 to "
            f"{MOST_RECORDS:,}, got {shown_value(value)}; say about how many there will be."
        )
    return number


def _percent(share: Fraction) -> str:
    return f"{rounded(100 * share, 3)} %"


# ---- What an adaptive release can select: the pairs and triples of attributes within its tables.


MOST_CELLS = 40_000_000
"""Of all triples together, for triples to be candidates: every round estimates all candidates."""
MOST_TABLE_CELLS = 50_000_000  # in one table of a release, which is estimated as a whole


def subsets_within(workload: Workload, order: int) -> np.ndarray:
    """The sets of `order` attributes within tables, lexicographic, int32[n, order].

    Of attributes with more than one value, as others have nothing that can be measured. Raises
    `PlanError` if tables have too many subsets to list.
    """
    members = Closure.of(workload).members
    orders = np.count_nonzero(members >= 0, axis=1)
    return members[orders == order, :order]


def candidates_of(workload: Workload) -> tuple[AttributeIndices, ...]:
    """The candidates of a workload: its pairs, and its triples where they can be estimated.

    Pairs first, then triples, lexicographic. From the workload and the domain alone.
    """
    sizes = workload.domain.sizes.astype(float)
    pairs, triples = (subsets_within(workload, order) for order in (2, 3))
    rows = pairs.tolist()
    if np.sum(np.prod(sizes[triples], axis=1)) <= MOST_CELLS:
        rows += triples.tolist()
    return tuple(map(tuple, rows))


def refuse_unsuitable(workload: Workload) -> None:
    """Raise `WorkloadError` unless an adaptive release can estimate these tables."""
    if np.any(workload.is_weighted):
        raise WorkloadError(
            f"The table {workload.describe(int(np.argmax(workload.is_weighted)))} is weighted, and "
            "an adaptive release estimates counts of records; ask for it in a plan that is not "
            "adaptive."
        )
    if np.any(workload.has_amounts):
        table = workload.describe(int(np.argmax(workload.has_amounts)))
        raise WorkloadError(
            f"The table {table} has amounts, which an adaptive release cannot estimate; ask for "
            "it in a plan that is not adaptive."
        )
    if not workload.is_marginals:
        raise WorkloadError(
            "An adaptive release estimates the counts of single values; leave cumulative sums, "
            "ranges and other aggregations out, and add up the released counts instead."
        )
    if workload.uses_levels:
        raise WorkloadError(
            "An adaptive release estimates tables of the attributes themselves; leave levels of "
            "attributes out, and add up the released counts instead."
        )
    if not np.all(np.isnan(workload.targets)):
        table = int(np.argmax(~np.isnan(workload.targets)))
        raise WorkloadError(
            f"The table {workload.describe(table)} has a target, and an adaptive release promises "
            "nothing of its accuracy beforehand; leave targets out, or make a plan that is not "
            "adaptive."
        )
    largest = int(np.argmax(workload.cells))
    if workload.cells[largest] > MOST_TABLE_CELLS:
        raise WorkloadError(
            f"The table {workload.describe(largest)} has {workload.cells[largest]:,.0f} cells; an "
            f"adaptive release can estimate at most {MOST_TABLE_CELLS:,} in one table; leave it "
            "out, or ask for it with fewer attributes."
        )
    several = np.append(workload.domain.sizes > 1, False)[workload.members]
    if np.max(np.count_nonzero(several, axis=1), initial=0) < 2:
        tables = plural(len(workload), "table")
        raise WorkloadError(
            f"No table of the {tables} has two attributes with more than one value, so nothing "
            "could be selected; ask for tables of two attributes or more, or make a plan that is "
            "not adaptive."
        )


# ---- The fields of adaptive tables in a plan file.


ROUND = record(
    tables=of_type("integer", "How many different sets are selected.", minimum=1),
    selection_rho=exact(
        "rho of zCDP for one record, of the exponential mechanism that selects one of them."
    ),
    measurement_rho=exact(
        "rho of zCDP for one record, of the noise on the residual of each of them; in a panel for "
        "a person, over the square of max_records_per_person."
    ),
)
_TABLE = record(
    attributes=ATTRIBUTES,
    weight=above_0("How much the table counts, relative to others."),
    target={
        "description": "There are no targets: nothing is promised of accuracy.",
        "type": "null",
    },
    required={
        "description": "Whether a target is required.",
        "const": False,
    },
)
FIELDS = record(
    kind=const("rounds"),
    domain=domain("The attributes, as a Frictionless Table Schema."),
    budget=BUDGET,
    privacy_cost=exact(
        "Privacy cost for the privacy unit: at least the first plan's, and for each round "
        "the number of tables times twice the sum of selection_rho and measurement_rho, "
        "times the square of max_records_per_person; at most the budget's."
    ),
    expected_records=of_type(
        "integer",
        "How many records are expected: a public number, by which the budget was divided.",
        minimum=1,
        maximum=1000000000000,
    ),
    first_plan=ref(
        "tables",
        "What is measured first, a part with tables of its own: all sets of 1 and 2 "
        "attributes within the tables, of attributes with more than one value.",
    ),
    rounds=rows(
        ROUND,
        "The rounds, in their order. In each, tables are selected among all sets of 2 and 3"
        " attributes within the tables, of attributes with more than one value (2 alone if "
        "those of 3 have more than 40 million cells together); then their residuals are "
        "measured.",
        minItems=1,
        maxItems=1000,
    ),
    tables=rows(
        _TABLE,
        "The tables that are estimated, each once, by number of attributes and then in the "
        "order of the domain.",
        minItems=1,
    ),
)

# ---- Adaptive rounds in a plan file; the plan of what is measured first is in it, on one line.


_KEYS, _ROUND_KEYS = keys(FIELDS), keys(ROUND)
_MOST_ROUNDS = 1000  # nobody plans as many; each is a fit of all tables


def text_of_plan(plan: "AdaptivePlan") -> str:
    """The object of a plan file that is this part."""
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "expected_records": plan.expected_records,
        "first_plan": loads(plan.first.to_text()),
    }
    rounds = [
        (step.n_tables, exact_text(step.selection_rho), exact_text(step.measurement_rho))
        for step in plan.rounds
    ]
    sections = {
        "rounds": [dumps(dict(zip(_ROUND_KEYS, row, strict=True))) for row in rounds],
        "tables": list(map(dumps, tables_to_json(plan.workload))),
    }
    return object_text(head, sections)


def fields_of_plan(content: dict[str, Any], version: str) -> dict[str, Any]:
    """The fields of the plan that a file holds; raises `RpexploreError` for unusable parts.

    The privacy cost is taken as stated: `verification` holds it against a recomputation.
    """
    check_keys(content, _KEYS, "the adaptive rounds")
    domain = Domain.from_schema(content["domain"])
    rounds = list_of(content, "rounds")
    if not 1 <= len(rounds) <= _MOST_ROUNDS:
        raise PlanError(f"there must be 1 to {_MOST_ROUNDS:,} rounds, got {len(rounds):,}.")
    return {
        "workload": tables_from_json(list_of(content, "tables"), domain),
        "budget": Budget.from_json(content["budget"]),
        "first": _first_plan(content["first_plan"], version),
        "rounds": tuple(map(_plan_round, rounds)),
        "expected_records": content["expected_records"],
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "version": version,
    }


def _first_plan(content: Any, version: str) -> TablePlan:
    with refusing(ContradictionError, "its first plan cannot be used"):
        first = TablePlan.of_content(content, version, None)
        if content["kind"] != TablePlan.kind:
            raise PlanError(
                f"its kind must be {TablePlan.kind}, got {shown_value(content['kind'])}."
            )
        return first


def _plan_round(row: Any) -> Round:
    check_keys(row, _ROUND_KEYS, "each of the rounds")
    if type(row["tables"]) is not int:
        raise PlanError("the tables of a round must be a whole number.")
    return Round(
        row["tables"], positive_exact(row, "selection_rho"), positive_exact(row, "measurement_rho")
    )


# ---- Adaptive planner: (workload, budget, expected records) → adaptive plan. Never sees a record.


def adaptive_plan(workload: Workload, *, budget: Budget, expected_records: int) -> AdaptivePlan:
    """A plan whose release selects, while it runs, which tables are measured more accurately.

    Its tables are biased estimates, of whose accuracy nothing is promised beforehand. Consider it
    where the budget is too small for the unbiased tables of `plan`; smooth tables of a release by
    such a plan are biased as well, are often as accurate, and the release has the unbiased ones
    beside them.

    Args:
        workload: The tables that are estimated: of single values, of one weight, without targets.
            At least one must have two attributes with more than one value.
        budget: The most that the first plan and all rounds cost together. An (ε, δ) is kept by ρ
            alone, at less cost than by the noise of a fixed plan.
        expected_records: About how many records there will be, a public number. How the budget is
            divided depends on it, and on no record.

    Returns:
        The plan. Its guarantee holds whatever is selected, and whatever number of records there is.

    Raises:
        WorkloadError: If an adaptive release cannot estimate such tables.
        PlanError: If the tables are too many to plan, the number of records is none, or no table
            is by the period of a panel.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain.from_sizes({"age": 100, "sex": 2, "region": 16})
        >>> tables = rp.Workload.all_of_order(domain, 3)
        >>> planned = adaptive_plan(tables, budget=rp.Budget(rho="0.1"), expected_records=50_000)
        >>> planned.rho <= planned.budget.rho, rp.verify(planned).holds
        (True, True)
    """
    refuse_type(workload, {Workload}, "workload", "Workload.all_of_order(domain, 3)")
    refuse_type(budget, {Budget}, "budget", "Budget(rho=0.5)")
    records = checked_records(expected_records)
    refuse_unsuitable(workload)
    # What is measured depends on noise, so an (ε, δ) follows from ρ alone, also where the budget is
    # that of a fixed plan, whose noise proves more.
    budget = budget.with_cost(budget.least_cost)
    steps = schedule(budget, len(candidates_of(workload)), records)
    # The first round measures all residuals of up to two attributes, which smooth tables need.
    names = workload.domain.names
    sets = [row for order in (1, 2) for row in subsets_within(workload, order).tolist()]
    tables = Workload.of(workload.domain, [tuple(names[index] for index in row) for row in sets])
    weights = SmoothWeights(float(steps.first_rho), records)
    own_budget = budget.of_unit(rho=steps.first_rho * budget.records_factor)
    first = plan_tables(weights.weighted(tables), loss=SumOfVariances(), budget=own_budget)
    rounds_rho = steps.rho - steps.first_rho
    return AdaptivePlan(
        workload=workload,
        budget=budget,
        first=first,
        rounds=steps.rounds,
        expected_records=records,
        exact_privacy_cost=first.exact_privacy_cost + 2 * budget.records_factor * rounds_rho,
        version=version("rpexplore"),
    )
