"""Budget: how much privacy loss a release may cause, and to whom the promise is made."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rpexplore.common.json_fields import check_keys, refusing, text_of
from rpexplore.common.numbers import Exact, exact_fraction, exact_text, shown, whole_number
from rpexplore.common.text import plural
from rpexplore.errors import BudgetError
from rpexplore.privacy import conversions
from rpexplore.privacy.discrete_noise import DiscreteNoise, gaussian_cost, proven_epsilon

_UNITS = ("privacy_cost", "rho", "mu", "epsilon", "delta")
_LEAST_COST = Fraction(1, 10**100)  # for a record; noise scales of less leave what floats hold


@dataclass(frozen=True, init=False)
class Budget:
    """A bound on the privacy cost of one release, exact. The privacy cost is 2ρ, and μ².

    Give exactly one of: privacy_cost, rho (zero-concentrated DP), mu (Gaussian DP), or epsilon
    together with delta. These are turned into the largest ρ whose optimal conversion gives at most
    that (CKS Prop. 7); a plan whose own noise proves them at a larger one has that in its budget
    (`with_cost`). Numbers may be int, float (read as the decimal it prints as), str ("0.1", "1/3"),
    Decimal or Fraction. The privacy unit is one record, or one person who has at most
    max_records_per_person = m records; a release then runs at privacy cost / m² for records.

    Example:
        >>> Budget(rho="0.5", max_records_per_person=2).record_privacy_cost
        Fraction(1, 4)
    """

    privacy_cost: Fraction
    stated: tuple[tuple[str, Fraction], ...]
    max_records_per_person: int | None

    def __init__(
        self,
        *,
        privacy_cost: Exact | None = None,
        rho: Exact | None = None,
        mu: Exact | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        max_records_per_person: int | None = None,
    ) -> None:
        values = (privacy_cost, rho, mu, epsilon, delta)
        given: dict[str, Any] = dict(zip(_UNITS, values, strict=True))
        stated = {
            name: exact_fraction(value, name) for name, value in given.items() if value is not None
        }
        if set(stated) not in ({"privacy_cost"}, {"rho"}, {"mu"}, {"epsilon", "delta"}):
            raise BudgetError(
                "A budget is given as privacy_cost, or rho, or mu, or epsilon and delta; got "
                f"{' and '.join(stated) or 'nothing'}."
            )
        for name, value in stated.items():
            if value <= 0 and name == "delta":
                raise BudgetError(
                    f"The budget's delta must be above 0, got {given[name]}: no Gaussian noise "
                    "holds what a delta of 0 would promise; take 1e-9, or another small one."
                )
            if value <= 0:
                raise BudgetError(
                    f"The budget's {name} must be positive, got {given[name]}; smaller is more "
                    "private, and 0 would release nothing."
                )
        records = whole_number(max_records_per_person)
        if max_records_per_person is not None and (records or 0) < 1:
            raise BudgetError(
                "The number of records a person may have must be a whole number of at least 1, "
                f"got {max_records_per_person!r}."
            )
        object.__setattr__(self, "privacy_cost", _cost(given))
        object.__setattr__(self, "stated", tuple(stated.items()))
        object.__setattr__(self, "max_records_per_person", records)
        if self.record_privacy_cost < _LEAST_COST:
            amount = " and ".join(f"{name} = {shown(given[name])}" for name in stated)
            raise BudgetError(
                f"The budget {amount} is a privacy cost below 1e-100 for one record, a number that "
                "cannot be planned with; use a larger budget."
            )

    @property
    def rho(self) -> Fraction:
        """zCDP parameter of the privacy unit, exact."""
        return conversions.rho_from_privacy_cost(self.privacy_cost)

    @property
    def stated_delta(self) -> Fraction | None:
        """The δ of a budget stated as (ε, δ)."""
        return dict(self.stated).get("delta")

    @property
    def stated_epsilon(self) -> Fraction | None:
        """The ε of a budget stated as (ε, δ)."""
        return dict(self.stated).get("epsilon")

    @property
    def least_cost(self) -> Fraction:
        """The privacy cost at which what is stated follows from ρ alone, whatever the noise."""
        stated: dict[str, Any] = dict(self.stated)
        return Budget(**stated).privacy_cost

    @property
    def largest(self) -> "Budget":
        """The same at the most that any Gaussian noise that keeps it can cost.

        Of (ε, δ) that is the cost of continuous noise, which discrete noise comes near to.
        """
        epsilon, delta = self.stated_epsilon, self.stated_delta
        if epsilon is None or delta is None:
            return self
        return self.with_cost(gaussian_cost(epsilon, delta))

    def with_cost(self, privacy_cost: Fraction) -> "Budget":
        """The same (ε, δ) at the privacy cost at which some noise proves them."""
        stated: dict[str, Any] = dict(self.stated)
        budget = Budget(max_records_per_person=self.max_records_per_person, **stated)
        if privacy_cost != budget.privacy_cost:
            if self.stated_epsilon is None:
                raise BudgetError(
                    f"Only the privacy cost of an (ε, δ) can be chosen, and it is "
                    f"{shown(budget.privacy_cost)} here; state another budget."
                )
            object.__setattr__(budget, "privacy_cost", privacy_cost)
        return budget

    @property
    def records_factor(self) -> int:
        """m²: the privacy cost of the unit over that of one record."""
        return (self.max_records_per_person or 1) ** 2

    @property
    def record_privacy_cost(self) -> Fraction:
        """Privacy cost that residuals, which are measured on records, may use in total."""
        return self.privacy_cost / self.records_factor

    @property
    def unit(self) -> str:
        """The privacy unit, for a sentence."""
        if self.max_records_per_person is None:
            return "one record"
        return f"one person with at most {plural(self.max_records_per_person, 'record')}"

    def epsilon_text(
        self, rho: Fraction, mode: str = "up", noise: DiscreteNoise | None = None
    ) -> str:
        """The ε of an amount of ρ, at the stated δ or the usual one; "" for nothing, and for more
        than any budget.

        mode: "up" for what is spent, "down" for what may be spent, whatever the noise
        noise: by which it is spent, at any scale, where that is known
        """
        if not 0 < rho < conversions.MOST_RHO:
            return ""
        delta = self.stated_delta or Fraction(conversions.USUAL_DELTAS[0])
        if noise is None:
            return conversions.epsilon_text(rho, delta, mode)
        return conversions.epsilon_at_delta(proven_epsilon(rho, delta, noise), delta)

    def amount_text(self, rho: Fraction, mode: str = "up", digits: int = 4) -> str:
        """An amount of ρ for the privacy unit with its ε: "ρ = 0.1 (ε = 2.15 at δ = 1e-6)"."""
        epsilon = self.epsilon_text(rho, mode)
        text = conversions.rho_text(rho, digits, mode)
        return f"{text} ({epsilon})" if epsilon else text

    def to_json(self) -> dict[str, Any]:
        """Plain values for a plan file; `from_json` undoes it exactly."""
        return {
            "stated": {name: exact_text(value) for name, value in self.stated},
            "privacy_cost": exact_text(self.privacy_cost),
            "max_records_per_person": self.max_records_per_person,
        }

    @classmethod
    def from_json(cls, content: Any) -> "Budget":
        """The budget of a plan file; raises `BudgetError` if it is not what `to_json` writes."""
        with refusing(BudgetError, "The budget cannot be used"):
            check_keys(content, ("stated", "privacy_cost", "max_records_per_person"), "it")
            stated, written = content["stated"], text_of(content, "privacy_cost")
            if not set(stated) <= set(_UNITS):
                raise BudgetError(f"what is stated must be among {', '.join(_UNITS)}.")
            exact = {name: text_of(stated, name) for name in stated}
            budget = cls(**exact, max_records_per_person=content["max_records_per_person"])
        cost, full = exact_fraction(written, "privacy_cost"), budget.privacy_cost
        least = most = full
        if "epsilon" in stated:
            # From what zCDP allows to what no noise can: which of it the noise of the plan proves
            # is for `verify` to say. How these are rounded may differ between versions.
            least, most = (
                bound * (1 + Fraction(sign, 10**9))
                for bound, sign in ((full, -1), (budget.largest.privacy_cost, 1))
            )
        if not least <= cost <= most:
            raise BudgetError(
                f"The budget's privacy_cost does not follow from what is stated beside it: it must "
                f"be {exact_text(full)}, got {written}."
            )
        object.__setattr__(budget, "privacy_cost", cost)
        return budget


def _cost(given: dict[str, Any]) -> Fraction:
    if given["mu"] is not None:
        return conversions.privacy_cost_from_mu(given["mu"])
    rho = given["rho"]
    if given["privacy_cost"] is not None:
        rho = exact_fraction(given["privacy_cost"], "privacy_cost") / 2
    elif rho is None:
        rho = conversions.rho_from_epsilon_delta(given["epsilon"], given["delta"])
    return conversions.privacy_cost_from_rho(rho)
