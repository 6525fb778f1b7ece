"""Proposals: changes of a table, planned anew and forecast, the best first; and how they read."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from math import exp, log
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.ranges import Range
from rpexplore.analysis.sufficient_budgets import sufficient_budget
from rpexplore.common.text import describe_share, rounded
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.pilot import share_of_pilot, with_pilot
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import optimum
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.scenarios.table_changes import BUDGET, LEFT_OUT, WEIGHT, TableChange
from rpexplore.workload.table_text import Table
from rpexplore.workload.workload import Workload

_LEAST_TOLD = 0.0005  # of people in other tables
_LEAST_SHOWN = 0.05  # per cent, points
_FACTORS = (2, 4, 8, 16, 32, 64)  # of weights
_USUAL_FACTOR = 8  # where none of them is enough
_MOST_TIMES = 1e6  # of a budget
_COMPARED = 10  # times the present budget, up to which they are told
_PRECISION = 1e-3  # of the logarithm of a budget
_ROUNDING = 1e-9  # of shares


@dataclass(frozen=True, eq=False, repr=False)
class Proposal:
    """A change of a table, planned anew and forecast.

    change           what is done
    workload         all tables after it
    budget           of these
    table            the title of the table that is there then; "" if it is left out
    cells            of that table
    standard_error   and the root mean square of their standard errors
    people           share of people in good cells of that table; None if it is left out
    gained           its median less that of the table as it is now
    meets            "yes", "no" or "open" as of `Forecast.tables`; "" if it is left out
    others_variance  by how much the variances of the other tables change: the median, a share
    others_largest   and the largest change
    others_people    by how much their share of people in good cells changes, mean over tables
    others_meeting   by how many more or fewer of them meet the rule
    """

    change: TableChange
    workload: Workload
    budget: Budget
    table: str
    cells: float
    standard_error: float
    people: Range | None
    gained: float
    meets: str
    others_variance: float
    others_largest: float
    others_people: float
    others_meeting: float

    @property
    def is_enough(self) -> bool:
        """Whether the table surely meets the rule at the same budget."""
        return self.meets == "yes" and self.change.budget is None

    @property
    def rank(self) -> tuple[float, ...]:
        """Smaller is better: see `TableSuggestions.proposals`."""
        if self.change.action == LEFT_OUT:
            return (3,)
        if self.change.budget is not None:
            return (1,)
        if self.meets == "no":
            return (2, -round(self.gained, 2), -self.cells)
        missing, points = -round(self.others_meeting), -round(100 * self.others_people)
        return (0, max(missing, 0), max(points, 0), self.meets == "open", -self.cells)

    def text(self, record_noun: str) -> str:
        """The proposal with what it gains and costs, in a sentence or two."""
        sentences = [f"{self.change.text}."]
        if self.people is not None:
            people = self.people.text(describe_share)
            sentences[0] = f"{self.change.text}: {people} of the {record_noun} in good cells."
        return " ".join([*sentences, self.text_of_others(record_noun)])

    def text_of_others(self, record_noun: str) -> str:
        """What the proposal costs the other tables, in a sentence."""
        if abs(self.others_people) < _LEAST_TOLD and not round(self.others_meeting):
            return "Other tables stay as good."
        meeting = f"{signed(round(self.others_meeting), '')} tables good enough"
        people = f"{signed(100 * self.others_people, ' points')} of {record_noun}"
        return f"Other tables: {people} in good cells, {meeting}."

    def apply(self, plan: Plan | PartPlan) -> Plan:
        """The plan after the change: at the same budget, unless it is more budget.

        A pilot, what the rest behind it is planned for, and rules about tables that are still
        there stay.

        plan: the one that suggestions were made for; its other parts stay as they are

        Raises:
            PlanError: For the plan of a rest, which is for the tables of its first plan.
        """
        whole = Plan.of(plan)
        old = whole.part("tables")
        if old.first is not None:
            raise PlanError(
                "This is the plan of a rest, whose tables and budget are those that its first plan "
                "has booked; apply changes to another first plan, before its run."
            )
        find, positions = self.workload.find, self.workload.domain.with_levels.positions
        rules = tuple(
            rule
            for rule in old.rules
            if set(chain(*rule.tables)) <= set(self.workload.domain.with_levels.names)
            and all(find(positions(table)) is not None for table in rule.tables)
        )
        new = optimum(
            self.workload,
            loss=old.loss,
            budget=self.budget,
            uniform_reference=old.has_uniform_reference,
        ).at(self.budget, rules)
        made = self._in_place_of(old, new, whole)
        share = share_of_pilot(old, whole)
        return made if share is None else with_pilot(made, share, then=old.then)

    def _in_place_of(self, old: PartPlan, new: PartPlan, whole: Plan) -> Plan:
        """A plan with another part in place of one; whole: as it was."""
        budget = whole.budget
        if self.change.budget is not None:
            budget = self.budget
            if len(whole.parts) > 1:
                more = self.budget.privacy_cost - old.budget.privacy_cost
                budget = whole.budget.of_unit(privacy_cost=whole.budget.privacy_cost + more)
        return Plan(
            tuple(new if part is old else part for part in whole.parts),
            budget,
            new.version,
            universe=whole.universe,
        )


@dataclass(frozen=True, eq=False, repr=False)
class AreaProposal(Proposal):
    """A change of a table on a level of areas, planned anew and forecast; as of `Proposal`.

    areas  all tables in areas after it; `workload` has each of them once
    cells  of that table in all areas of the level
    """

    areas: AreaWorkload

    def apply(self, plan: Plan | PartPlan) -> Plan:
        """The plan after the change: at the same budget, unless it is more budget.

        plan: the one that suggestions were made for; its other parts stay as they are
        """
        whole = Plan.of(plan)
        old = whole.part("areas")
        new = plan_areas(self.areas, loss=old.loss, budget=self.budget, uniform_levels=old.uniform)
        return self._in_place_of(old, new, whole)


@dataclass(frozen=True, eq=False, repr=False)
class TableSuggestions:
    """What would make one table good enough.

    table      its attributes
    title      of the table
    people     share of its people in good cells now
    proposals  the best first: those with which it meets the rule at the same budget, and of these
               the ones that make fewest other tables miss it, that cost these the fewest points of
               people, that surely meet it, that keep most cells; then more budget; then what helps
               and is not enough; leaving it out at last
    whom       the word for those whom the table counts
    """

    table: Table
    title: str
    people: Range
    proposals: tuple[Proposal, ...]
    whom: str = "people"

    def frame(self) -> pd.DataFrame:
        """One row a proposal, the best first; index: its number, from 1.

        Columns: action, proposal, table, cells, standard_error, people_low, people_median,
        people_high, gained, meets, others_variance, others_variance_largest, others_people,
        others_meeting: shares, and changes of shares; others_meeting is a number of tables.
        """
        rows = [
            {
                "action": one.change.action,
                "proposal": one.change.text,
                "table": one.table,
                "cells": one.cells,
                "standard_error": one.standard_error,
                **{
                    f"people_{end}": getattr(one.people, end, np.nan)
                    for end in ("low", "median", "high")
                },
                "gained": one.gained,
                "meets": one.meets,
                "others_variance": one.others_variance,
                "others_variance_largest": one.others_largest,
                "others_people": one.others_people,
                "others_meeting": one.others_meeting,
            }
            for one in self.proposals
        ]
        return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="number"))

    def columns(self) -> pd.DataFrame:
        """The frame for reading: figures as texts."""
        frame = self.frame()
        people = [
            "" if one.people is None else one.people.text(describe_share) for one in self.proposals
        ]
        return pd.DataFrame(
            {
                "": [str(number) for number in frame.index],
                "proposal": frame["proposal"].tolist(),
                f"{self.whom} in good cells": people,
                "meets": frame["meets"].tolist(),
                "variance of others": [signed(100 * v, " %") for v in frame["others_variance"]],
                f"their {self.whom}": [signed(100 * v, " points") for v in frame["others_people"]],
                "of them meet": [signed(round(v), "") for v in frame["others_meeting"]],
            }
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        rows = self.frame().reset_index().to_dict("records")
        plain = [
            {str(k): None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()}
            for row in rows
        ]
        return {
            "table": list(self.table),
            "people": self.people._asdict(),
            "proposals": plain,
        }

    def __str__(self) -> str:
        return f"{self.title}: {self.people.text(describe_share)} of {self.whom} in good cells"


def signed(value: float, unit: str) -> str:
    """A change as text: "+1.2 points", "−3 %", "±0"."""
    text = rounded(abs(value), 2)
    if abs(value) < _LEAST_SHOWN:
        return f"±0{unit}"
    return f"{'+' if value > 0 else '−'}{text}{unit}"


# ---- What tables and tables in areas are tried with alike.


def meets_rule(people: Range, share: float) -> str:
    """Whether a share of a table's people are in good cells, as `Proposal.meets` says it."""
    least = share - _ROUNDING
    return "yes" if people.low >= least else "open" if people.median >= least else "no"


def more_weight(table: Table, weight: float, is_enough: Callable[[int], bool]) -> TableChange:
    """The smallest multiple of the weight of a table that is enough; a usual one if none is.

    is_enough: of a multiple
    """
    number = bisect_left(_FACTORS, True, key=is_enough)
    factor = _FACTORS[number] if number < len(_FACTORS) else _USUAL_FACTOR
    return TableChange(WEIGHT, f"{factor} times the weight", table, weight=factor * weight)


def more_budget(
    table: Table, budget: Budget, noise: DiscreteNoise | None, is_enough: Callable[[float], bool]
) -> TableChange | None:
    """The smallest budget that is enough for a table; None if that of now is, or none within reach.

    budget, noise: of the plan, as of `sufficient_budget`; is_enough: of a multiple of this budget
    """
    low, high = 0.0, log(_MOST_TIMES)
    if not is_enough(_MOST_TIMES):
        return None
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(exp(middle)) else (middle, high)
    if high <= _PRECISION:  # it meets the rule already
        return None
    enough = sufficient_budget(exp(high) * float(budget.rho), budget, noise=noise)
    # A budget far above the present one is another one: how many times it is says little.
    text = f"A budget of {enough.short_text}"
    if enough.times <= _COMPARED:
        text += f", {enough.compared}"
    return TableChange(BUDGET, text, table, budget=enough.budget)
