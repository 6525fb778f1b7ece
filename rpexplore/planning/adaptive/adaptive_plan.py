"""Adaptive plan: what is measured first, and how tables are selected later. A frozen value."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rpexplore.common.exact_numbers import shown_value, whole_number
from rpexplore.common.formatting import plural, rounded
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import PlanError
from rpexplore.planning.accuracy_frame import accuracy_frame
from rpexplore.planning.adaptive.adaptive_plan_file import fields_of_plan, text_of_plan
from rpexplore.planning.adaptive.candidates import candidates_of, refuse_unsuitable
from rpexplore.planning.adaptive.schedule import Round
from rpexplore.planning.part_plan import WorkloadPlan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import all_titles
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.verification import Check

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
                        records costs m² times that
    expected_records    how many records are expected: a public number, by which the budget is
                        divided into rounds
    exact_privacy_cost  of the privacy unit, all rounds and the first plan together
    version             of the library that made the plan

    Make one with `rpexplore.adaptive_plan` or `AdaptivePlan.load`.
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
        if self.first.budget.max_records_per_person != self.budget.max_records_per_person:
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
        from rpexplore.planning.adaptive.adaptive_verification import adaptive_checks

        return adaptive_checks(self, strategies=strategies)

    # ---- what is selected

    @cached_property
    def candidates(self) -> tuple[AttributeIndices, ...]:
        """The candidates of rounds, as ascending attribute indices: pairs, and triples if they fit.

        In canonical order: by number of attributes, then lexicographically.
        """
        return candidates_of(self.workload)

    @property
    def candidate_weights(self) -> tuple[int, ...]:
        """How much each candidate's error counts in a selection: positive whole numbers."""
        return (1,) * len(self.candidates)

    def accuracy(self) -> "pd.DataFrame":
        """The tables that are estimated, whose accuracy is not known: see `accuracy_frame`."""
        return accuracy_frame(
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
        total = self.record_rho
        lines = [
            f"Adaptive plan for {plural(len(self.workload), 'table')} over "
            f"{plural(len(self.domain), 'attribute')} "
            f"({plural(len(self.candidates), 'candidate')})",
            *self.privacy_lines,
            "  Accuracy   biased estimates; known only from the release, nothing is promised of it",
            f"  Expects    {plural(self.expected_records, 'record')}",
            f"  Measures   {'':<8} {'residuals':>9} {'share of ρ':>11} {'of it to select':>16}",
            f"    {'first':<17} {len(self.first.closure):>9,} "
            f"{_percent(self.first.record_rho / total):>11} {'–':>16}",
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
