"""Part of a plan: what every kind of part has in common. No records.

A plan has parts of up to four kinds: tables, tables in areas, own counts, adaptive rounds. Each is
planned by itself, within its share of the budget; whatever is promised of all of them together is
`plan.Plan`'s.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rpexplore.common.exact_numbers import Exact, float_at_least
from rpexplore.common.formatting import describe_count, plural
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.certificate import Certificate
from rpexplore.privacy import conversions
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.losses.base import Loss
    from rpexplore.planning.plan import Plan
    from rpexplore.planning.verification import Check


class PartPlan(ABC):
    """One part of a plan: a frozen value, an object in the plan file.

    A kind of part is a subclass, listed in `plan.PARTS`. By itself a part is a plan of one part,
    `alone`, and what is said here of guarantee and file is that plan's.

    kind                "tables", "areas", "counts" (own counts) or "rounds" (adaptive)
    noun                what people call a plan of this part alone: "plan", "query plan"
    item                what it plans many of: "table", "query"
    released_item       what a release holds for each: "noisy table", "noisy answer"
    drawn_as            how a release is drawn, and that costs hold for that, to begin a sentence
    accuracy_statement  what a release promises of its accuracy, as a sentence
    has_labels_in_csv   whether a release may have CSV files with labels of the codebook
    """

    kind: ClassVar[str]
    noun: ClassVar[str] = "plan"
    item: ClassVar[str]
    released_item: ClassVar[str]
    drawn_as: ClassVar[str] = (
        "The noise is discrete Gaussian, so these hold for the numbers as they are drawn"
    )
    accuracy_statement: ClassVar[str]
    has_labels_in_csv: ClassVar[bool] = False

    budget: Budget  # the part's share of the plan's
    exact_privacy_cost: Fraction  # of the privacy unit, at most the budget's
    version: str

    # ---- what it is about

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The attributes, all of them, and their values."""

    @property
    @abstractmethod
    def attribute_indices(self) -> tuple[int, ...]:
        """Which attributes the records must have as columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that records must have for it."""
        return tuple(self.domain.names[index] for index in self.attribute_indices)

    @property
    @abstractmethod
    def n_items(self) -> int:
        """How many tables, or queries, it plans."""

    @property
    def kind_text(self) -> str:
        """What kind of plan it is by itself, for a sentence: "a query plan", "an adaptive plan"."""
        return self.alone.kind_text

    @property
    def asked(self) -> str:
        """What it plans: "7 tables", "1 query"."""
        return plural(self.n_items, self.item)

    @property
    def contents(self) -> str:
        """What a release by it holds: "7 noisy tables", "1 noisy answer"."""
        return plural(self.n_items, self.released_item)

    @property
    def full_contents(self) -> str:
        """`contents` with how much there is in them: "7 noisy tables with 480 cells"."""
        return self.contents

    # ---- what it costs

    @property
    def rho(self) -> Fraction:
        """ρ of the part for the privacy unit, exact."""
        return conversions.rho_from_privacy_cost(self.exact_privacy_cost)

    @property
    def privacy_cost(self) -> float:
        """Privacy cost of the privacy unit (2ρ), rounded up."""
        return float_at_least(self.exact_privacy_cost)

    @property
    def record_rho(self) -> Fraction:
        """ρ for one record: ρ of the unit over m²."""
        return self.rho / self.budget.records_factor

    # ---- what it is worth

    @property
    def restriction(self) -> str:
        """What holds of all plans that its bound is about, in words; "" where it is about any."""
        return ""

    def worth(self, loss: "Loss") -> tuple[float, float] | None:
        """Its loss by the objective of the whole plan, and what no plan of it can be below.

        None for a part that promises no accuracy.
        """
        return None

    @abstractmethod
    def accuracy(self) -> "pd.DataFrame":
        """How accurate each of its items will be; see `accuracy_frame`."""

    # ---- its part of the file

    @abstractmethod
    def to_text(self) -> str:
        """The canonical JSON object that the plan file has for it (docs/plan-files.md)."""

    @classmethod
    @abstractmethod
    def of_content(cls, content: Any, version: str, folder: Path | None) -> Self:
        """The part that an object of a plan file holds.

        Raises what `refusing` takes, and `OSError` for a file beside the plan file (in the folder)
        that cannot be read.
        """

    @property
    def companions(self) -> Mapping[str, bytes]:
        """The files that its text names, which lie beside the plan file: name -> contents."""
        return {}

    @abstractmethod
    def checks(self, *, strategies: bool) -> "tuple[Check, ...]":
        """Its claims, recomputed. strategies: whether to bound what other matrices could gain."""

    # ---- as a plan of this part alone

    @cached_property
    def alone(self) -> "Plan":
        """The plan that has this part only, and all of whose budget is this part's."""
        from rpexplore.planning.plan import Plan  # it knows the kinds of parts

        return Plan((self,), self.budget, self.version)

    @property
    def parts(self) -> "tuple[PartPlan, ...]":
        """The parts of `alone`: this one."""
        return (self,)

    def part(self, kind: str) -> Any:
        """The part of this kind of `alone`; None if it is of another."""
        return self if self.kind == kind else None

    @property
    def text(self) -> str:
        """The plan file of `alone`."""
        return self.alone.text

    @property
    def sha256(self) -> str:
        """SHA-256 of the plan file of `alone`, in hexadecimal."""
        return self.alone.sha256

    @property
    def guarantee(self) -> str:
        """What a release of this part alone guarantees, in sentences."""
        return self.alone.guarantee

    @property
    def privacy_lines(self) -> list[str]:
        """Whom the part protects and how much, as two lines of its summary."""
        return self.alone.privacy_lines

    @property
    def epsilon_texts(self) -> list[str]:
        """The (ε, δ) that follow for this part alone, as text; see `Plan.epsilon_texts`."""
        return self.alone.epsilon_texts

    def epsilon(self, delta: Exact) -> float:
        """The smallest proven ε of this part alone for this δ, rounded up (CKS Prop. 7)."""
        return conversions.epsilon_from_rho(self.rho, delta)

    def save(self, path: str | Path) -> None:
        """Write the plan file of this part alone; complete or not at all."""
        self.alone.save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The part of this kind of a plan file. Raises `PlanError` if it has none."""
        from rpexplore.planning.plan import Plan

        return cls.part_of(Plan.load(path), Path(path).name)

    @classmethod
    def parse(cls, text: str, source: str = "The text", *, canonical: bool = True) -> Self:
        """The part of this kind of the plan that a text holds; see `Plan.parse`."""
        from rpexplore.planning.plan import Plan

        return cls.part_of(Plan.parse(text, source, canonical=canonical), source)

    @classmethod
    def part_of(cls, plan: "Plan | PartPlan", source: str = "The plan") -> Self:
        """The part of this kind of a plan. Raises `PlanError` if it has none."""
        from rpexplore.planning.plan import TITLES

        part: Any = plan.part(cls.kind)
        if part is None:
            raise PlanError(
                f"{source} plans {plan.contents}; a plan of {TITLES[cls.kind].lower()} is "
                "needed here; use another."
            )
        return part

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self.asked}, {rho_text(self.rho)}>"


class WorkloadPlan(PartPlan):
    """A part that is about the tables of a workload."""

    item = "table"

    workload: Workload

    @property
    def domain(self) -> Domain:
        return self.workload.domain

    @property
    def attribute_indices(self) -> tuple[int, ...]:
        return self.workload.used

    @property
    def n_items(self) -> int:
        return len(self.workload)

    @property
    def full_contents(self) -> str:
        return f"{self.contents} with {describe_count(self.workload.n_cells)} cells"


class CertifiedPlan(PartPlan):
    """A part whose accuracy is known beforehand, and proven to be near the best."""

    certificate: Certificate

    @property
    def proven(self) -> str:
        """How good the plan is proven to be, as a sentence."""
        return self.certificate.sentence()
