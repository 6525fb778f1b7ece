"""Part of a plan: what every kind of part has in common. No records."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from rpexplore.common.json_fields import not_negative, positive
from rpexplore.common.numbers import Exact, exact_fraction, float_at_least, read_only
from rpexplore.common.text import describe_count, plural, rounded
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import SAME, CellVariances
from rpexplore.planning.solvers.solution import CellPrices, dual_bound
from rpexplore.privacy import conversions
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.table_text import titles_column
from rpexplore.workload.targets import MET_FACTOR
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.planning.plan import Plan
    from rpexplore.planning.verification import Check


TITLES = {
    "tables": "Tables",
    "areas": "Tables in areas",
    "counts": "Own counts",
    "rounds": "Adaptive tables",
}
"""What the kinds of parts are called, in the order in which a plan has them."""

# ---- Certificate: the proof that a plan is as good as it says (docs/mathematics.md §6.9).


# Gaps below these are too small to be read as per cent.
_SMALL_PARTS = (
    (1e-5, "one part in 100,000"),
    (1e-6, "one part in a million"),
    (1e-9, "one part in a billion"),
)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Loss of a plan, and a bound that no plan within the same budget can go below.

    The bound is the Lagrangian dual (Σ √(p · Bᵀy))² / c at the table weights y that the shadow
    prices give, so anybody can recompute it from the plan file. Arrays are float64[n_tables]:

    shadow_prices  sum 1; by how many per cent the smallest possible loss grows when a table's
                   weight grows by one per cent
    cells, dual_weights, limit   as of `Solution`
    """

    loss_value: float
    lower_bound: float
    shadow_prices: np.ndarray
    cells: CellPrices | None = None
    dual_weights: np.ndarray | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        for array in (self.shadow_prices, self.dual_weights):
            if array is not None:
                read_only(array)

    @property
    def gap(self) -> float:
        """How far the plan's loss can be above the smallest possible one, relative, ≥ 0."""
        return max(self.loss_value / self.lower_bound - 1, 0.0)

    def sentence(self, compared: str = "", *, split: str = "") -> str:
        """The bound in words.

        compared: the plans that it is about ("with …", "that …"); "": all
        split: what is said of the budget, where it is divided
        """
        share = f"{rounded(100 * Fraction(self.gap), 2, 'up')} %"
        for part, text in _SMALL_PARTS:
            if self.gap < part:
                share = text
        text = f"The objective is at most {share} above the smallest possible within this budget"
        return f"{text}{split}." + (
            f" The comparison is with plans {compared}." if compared else ""
        )


def certificate_from_json(
    content: dict[str, Any],
    loss_key: str,
    shadow_prices: np.ndarray,
    *,
    cells: CellPrices | None = None,
    dual_weights: np.ndarray | None = None,
) -> Certificate:
    """The certificate whose loss stands under `loss_key`; `PlanError` where it cannot be right."""

    def number(key: str, check: Callable[[list[Any], str], np.ndarray] = positive) -> float:
        return float(check([content[key]], key)[0])

    loss, lower_bound, gap = number(loss_key), number("lower_bound"), number("gap", not_negative)
    limit = None if content.get("limit") is None else number("limit")
    certificate = Certificate(loss, lower_bound, shadow_prices, cells, dual_weights, limit)
    if certificate.gap != gap:
        raise PlanError(
            f"the certificate's gap does not follow from its {loss_key} and lower_bound: it must "
            f"be {certificate.gap!r}, got {gap!r}."
        )
    return certificate


def smallest_weighted_sum(
    workload: Workload,
    closure: Closure,
    loss: Loss,
    dual_weights: np.ndarray,
    cells: CellPrices | None,
    cost: float,
) -> float:
    """Up to rounding, no plan's Σ dual_weights · Var is below it at this privacy cost.

    It is RP+ Lemma 2, and a loss bounds itself from below by such a sum (`Loss.minorant`). cells:
    how the part on least accurate cells is spread over them; what is stated of no cell counts for
    the table's mean.
    """
    on_means = loss.weights_on_means(workload, dual_weights)
    prices = dual_weights - on_means
    if workload.is_marginals or cells is None:
        residual_weights = closure.residual_weights(dual_weights)
    else:
        of_tables = np.bincount(cells.tables, cells.prices, len(workload))
        on_mean = on_means + np.where(of_tables > 0, 0.0, prices)
        spread = cells.prices * (prices / np.where(of_tables > 0, of_tables, 1.0))[cells.tables]
        of_cells = CellVariances(workload, closure).map(cells.tables, cells.rows)
        residual_weights = of_cells.residual_weights(spread) + closure.residual_weights(on_mean)
    return dual_bound(closure.privacy_cost_factor, residual_weights, cost)


# ---- Part of a plan: what every kind of part has in common. No records.
#
# A plan has parts of up to four kinds: tables, tables in areas, own counts, adaptive rounds. Each
# is planned by itself, within its share of the budget; whatever is promised of all of them together
# is `plan.Plan`'s.


class PartPlan(ABC):
    """One part of a plan: a frozen value, an object in the plan file.

    A kind of part is a subclass, listed in `plan.PARTS`. By itself a part is a plan of one part,
    `alone`, and what is said here of guarantee and file is that plan's.

    kind                "tables", "areas", "counts" (own counts) or "rounds" (adaptive)
    noun                what people call a plan of this part alone: "plan", "plan of own counts"
    item                what it plans many of: "table", "own count"
    released_item       what a release holds for each: "noisy table", "noisy own count"
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
    def products(self) -> Sequence[tuple[int, int]]:
        """The amounts and weights that it multiplies, as pairs of attributes of its domain."""
        return ()

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
        """How many tables, or own counts, it plans."""

    @property
    def kind_text(self) -> str:
        """What kind of plan it is by itself, for a sentence: "a plan", "an adaptive plan"."""
        return self.alone.kind_text

    @property
    def asked(self) -> str:
        """What it plans: "7 tables", "1 own count"."""
        return plural(self.n_items, self.item)

    @property
    def contents(self) -> str:
        """What a release by it holds: "7 noisy tables", "1 noisy own count"."""
        return plural(self.n_items, self.released_item)

    @property
    def full_contents(self) -> str:
        """`contents` with how much there is in them: "7 noisy tables with 480 cells"."""
        return self.contents

    @property
    def note(self) -> str:
        """What must be said of it beside its guarantee, in sentences; "" for nothing."""
        return ""

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

    @cached_property
    def noise(self) -> DiscreteNoise | None:
        """Its noise, for (ε, δ); None where not all that it draws is noise of stated scales."""
        return None

    # ---- what it is worth

    @property
    def restriction(self) -> str:
        """What holds of all plans that its bound is about, in words; "" where it is about any."""
        return ""

    def restriction_for(self, loss: "Loss | None") -> str:
        """`restriction` where the bound is about the objective of the whole plan (`worth`)."""
        return self.restriction

    def worth(self, loss: "Loss") -> tuple[float, float] | None:
        """Its loss by the objective of the whole plan, and what no plan of it can be below.

        None for a part that promises no accuracy.
        """
        return None

    @property
    def has_targets(self) -> bool:
        """Whether some item has a target."""
        return True

    @abstractmethod
    def accuracy_columns(self) -> dict[str, Any]:
        """How accurate each of its items will be; see `item_columns`."""

    def accuracy(self) -> "pd.DataFrame":
        """How accurate each of its items will be, one row an item; see `item_columns`."""
        import pandas as pd  # half of the time that importing this package would take

        return pd.DataFrame(self.accuracy_columns() | self._made_columns())

    def _made_columns(self) -> "dict[str, pd.Series]":
        """Columns of `accuracy` that were made before."""
        return {}

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
    def booked_sha256(self) -> str:
        """SHA-256 of the plan by which a run of `alone` is booked and approved."""
        return self.alone.booked_sha256

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

    @property
    def epsilon_text(self) -> str:
        """The (ε, δ) of this part alone, as text; see `Plan.epsilon_text`."""
        return self.alone.epsilon_text

    @property
    def amount_text(self) -> str:
        """What this part costs; see `Plan.amount_text`."""
        return self.alone.amount_text

    def epsilon(self, delta: Exact) -> float:
        """The smallest proven ε of this part alone for this δ, rounded up."""
        return self.alone.epsilon(delta)

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
        part: Any = plan.part(cls.kind)
        if part is None:
            raise PlanError(
                f"{source} plans {plan.contents}; a plan of {TITLES[cls.kind].lower()} is "
                "needed here; use another."
            )
        return part

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self.asked}, {rho_text(self.rho)}>"


_DOWN = Context(prec=15, rounding=ROUND_FLOOR)
_TRIES = 5  # at noise that proves (ε, δ); a loss that scales with the budget needs one or two

Planned = TypeVar("Planned", bound="PartPlan | Plan")


def keeping(budget: Budget, at: Callable[[Budget], Planned], *, by_rho: bool = False) -> Planned:
    """The plan with the least noise that is proven to keep a budget, also if that is an (ε, δ).

    Then its cost is found here: the largest at which the noise of the plan proves it, or that of
    zCDP. at: the plan at a cost, first at `budget.largest`; by_rho: whether an (ε, δ) must follow
    from ρ alone, as where what is measured depends on noise
    """
    epsilon, delta = budget.stated_epsilon, budget.stated_delta
    if by_rho or epsilon is None or delta is None:
        return at(budget)
    by_zcdp = budget.with_cost(budget.least_cost)
    plan = at(budget.largest)
    for _ in range(_TRIES):
        if plan.noise is None:
            break
        # Down to 15 digits, which is less than the noise scales are rounded up by.
        cost = plan.noise.privacy_cost * plan.noise.factor_within(epsilon, delta)
        cost = Fraction(_DOWN.divide(Decimal(cost.numerator), Decimal(cost.denominator)))
        if cost <= budget.least_cost:
            break
        plan = at(budget.with_cost(min(cost, budget.largest.privacy_cost)))
        if exact_fraction(plan.epsilon(delta), "ε") <= epsilon:
            return plan
    return at(by_zcdp)


class Solution(Protocol):
    """What makes the plan of a budget, such as an `Optimum`."""

    def at(self, budget: Budget) -> PartPlan: ...


Solved = TypeVar("Solved", bound=Solution)


def solution_keeping(budget: Budget, solve: Callable[[Budget], Solved]) -> Solved:
    """The solution whose plan is that of `keeping`, of losses that are solved for one budget."""
    last: list[Solved] = []

    def at(within: Budget) -> PartPlan:
        last[:] = [solve(within)]
        return last[0].at(within)

    keeping(budget, at)
    return last[0]


class WorkloadPlan(PartPlan):
    """A part that is about the tables of a workload."""

    item = "table"

    workload: Workload

    @property
    def domain(self) -> Domain:
        return self.workload.domain

    @property
    def products(self) -> Sequence[tuple[int, int]]:
        return self.workload.products

    @property
    def attribute_indices(self) -> tuple[int, ...]:
        workload = self.workload
        return tuple(np.unique(workload.domain.columns[list(workload.used)]).tolist())

    @property
    def n_items(self) -> int:
        return len(self.workload)

    @property
    def has_targets(self) -> bool:
        return not np.all(np.isnan(self.workload.targets))

    @property
    def full_contents(self) -> str:
        return f"{self.contents} with {describe_count(self.workload.n_cells)} cells"

    def _made_columns(self) -> "dict[str, pd.Series]":
        return {"item": titles_column(self.workload)}


class CertifiedPlan(PartPlan):
    """A part whose accuracy is known beforehand, and proven to be near the best."""

    certificate: Certificate
    loss: Loss  # of tables and areas; own counts state what they are worth themselves

    def worth(self, loss: Loss) -> tuple[float, float] | None:
        if loss != self.loss:
            return None
        return self.certificate.loss_value, self.certificate.lower_bound

    @property
    def loss_value(self) -> float:
        """The plan's loss; `certificate` bounds how far it is from the smallest possible."""
        return self.certificate.loss_value

    @property
    def proven(self) -> str:
        """How good the plan is proven to be, as a sentence."""
        return self.certificate.sentence()


# ---- The accuracy frame: how accurate each item of a plan will be, in the same columns for all
# kinds.
#
# An item is a table, a table on a level of areas, or a count of one's own. Command line, pages,
# report and summaries read this frame, so that none of them has to know kinds of plans.


# Standard errors to either side of a 95 % interval: `normal_quantile(0.95)`, which loads SciPy.
Z_95 = 1.959963984540054
EXTREMES = ["smallest_standard_error", "largest_standard_error"]
COLUMNS = [
    "part", "level", "item", "attributes", "cells", "areas", "standard_error", *EXTREMES,
    "margin_95", "target", "required", "met", "weight", "shadow_price",
]  # fmt: skip


LARGEST_GAMMA_SQUARED = Fraction(2**104)
"""The noise scale γ² must be below this, so that noise can be drawn in 64-bit integers."""


def noise_too_large(closure: Closure, domain: Domain, gamma_squared: np.ndarray) -> str:
    """What to say of noise scales that are too large to be drawn; "" if none is.

    gamma_squared: variance parameter of each residual's whole numbers, float64[n_residuals]
    """
    residual = int(np.argmax(gamma_squared))
    if gamma_squared[residual] < float(LARGEST_GAMMA_SQUARED) * (1 - 1e-9):
        return ""
    scale, most = np.sqrt(gamma_squared[residual]), float(LARGEST_GAMMA_SQUARED) ** 0.5
    return (
        f"The noise that the budget needs on {domain.describe(closure.columns_of(residual))} is "
        f"too large for 64-bit integers (scale {scale:.3g}, at most {most:.3g}); use a larger "
        f"budget or smaller tables{or_fewer_steps(closure, domain, residual)}."
    )


def refuse_fine_steps(closure: Closure, domain: Domain, gamma_squared: np.ndarray) -> None:
    """Raise `PlanError` where the noise of amounts is too large to be drawn in their steps.

    Other tables can be planned, and looked at, where no release can draw their noise.
    """
    has_amounts = np.any(np.isin(closure.members, domain.amounts), axis=1)
    if reason := noise_too_large(closure, domain, np.where(has_amounts, gamma_squared, 0.0)):
        raise PlanError(reason)


def or_fewer_steps(closure: Closure, domain: Domain, residual: int) -> str:
    """What else can be done where the attributes of a residual have amounts; "" where none has."""
    amounts = set(closure.columns_of(residual)) & set(domain.amounts)
    if not amounts:
        return ""
    rounder = domain.or_rounder_limits(amounts)
    return f", or give its amounts fewer decimals or narrower limits{rounder}"


def item_columns(part: str, items: Sequence[str], **columns: Any) -> dict[str, Any]:
    """The accuracy of a part of a plan: arrays or lists of one entry an item, as the plan has them.

    columns: those of these that the kind of plan has; all others are empty (NaN or None)

    part                     the kind of the part
    level                    of areas, on which the table is released
    item                     what to call it: "age × sex", "adults in the north"
    attributes               names of a table's attributes
    cells                    of a table, in one area
    areas                    how many have the table on this level
    standard_error           root mean square over cells (and areas)
    smallest_standard_error, largest_standard_error
                             of the most and the least accurate cell (in any area)
    margin_95                half a 95 % interval, from standard_error
    target                   wanted standard error of the least accurate cell
    required                 whether the plan has to meet the target
    met                      True, False; None without a target
    weight                   in the objective
    shadow_price             share that the item has in what the plan's proof weighs
    """
    known = {"part": [part] * len(items), "item": items, **columns}
    if "standard_error" in columns:
        known["margin_95"] = columns["standard_error"] * Z_95
    if "target" in columns:
        targets = columns["target"]
        met = columns["largest_standard_error"] <= targets * MET_FACTOR
        known["met"] = np.where(np.isnan(targets), None, met)
    texts = ("level", "attributes", "required", "met")
    none, nan = [None] * len(items), np.full(len(items), np.nan)
    return {name: known.get(name, none if name in texts else nan) for name in COLUMNS}


def cells_differ(columns: "Mapping[str, Any] | pd.DataFrame") -> bool:
    """Whether the cells of some item differ noticeably in accuracy."""
    smallest, largest = (np.asarray(columns[name], dtype=float) for name in EXTREMES)
    return bool(np.any(largest > smallest * SAME))


def names_for_reading(columns: "Mapping[str, Any] | pd.DataFrame") -> list[str]:
    """The columns in which something is known of some item; all where there is no item.

    Without the extremes of cells where all cells of an item are equally accurate.
    """
    names = list(columns)
    if not len(columns[names[0]]):
        return names
    names = [name for name in names if not _is_unknown(columns[name])]
    if EXTREMES[0] in names and not cells_differ(columns):
        return [name for name in names if name not in EXTREMES]
    return names


def _is_unknown(column: Any) -> bool:
    """Whether all of a column is None or NaN."""
    if getattr(column, "dtype", None) == np.float64:
        return bool(np.all(np.isnan(column)))
    return all(value is None or value != value for value in column)


def for_reading(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The `names_for_reading` of a frame."""
    return frame.loc[:, names_for_reading(frame)]


def worst_first_order(columns: "Mapping[str, Any] | pd.DataFrame") -> np.ndarray:
    """The positions of the items of each part, the least accurate first, int64[n].

    Own counts, which have targets in place of weights, are compared by these: the furthest off
    first. Where nothing is known of the accuracy, the order stays.
    """
    errors, weights, targets = (
        np.asarray(columns[name], dtype=float)
        for name in ("largest_standard_error", "weight", "target")
    )
    keys = np.where(np.isnan(weights), errors / targets, errors)
    order = np.argsort(-np.where(np.isnan(keys), 0.0, keys), kind="stable")
    parts = np.asarray(columns["part"])
    rows = [order[parts[order] == part] for part in dict.fromkeys(parts.tolist())]
    return np.concatenate([order[:0], *rows])


def worst_first(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A frame in the `worst_first_order`; the index says where its rows were."""
    return frame.iloc[worst_first_order(frame)]
