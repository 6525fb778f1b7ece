"""Budget: how much privacy loss a release may cause, and to whom the promise is made."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unicodedata import normalize

from rpexplore.common.json_fields import check_keys, refusing, text_of
from rpexplore.common.numbers import Exact, exact_fraction, exact_text, shown, whole_number
from rpexplore.common.text import joined, plural, plural_noun, with_article
from rpexplore.errors import BudgetError
from rpexplore.privacy import conversions
from rpexplore.privacy.discrete_noise import DiscreteNoise, gaussian_cost, proven_epsilon

_UNITS = ("privacy_cost", "rho", "mu", "epsilon", "delta")
_OPTIONAL = ("neighbours", "period", "exact", "unit_noun", "distinct")  # in a file
ADD_REMOVE, REPLACE = "add-remove", "replace"
NEIGHBOURS = (ADD_REMOVE, REPLACE)
"""How two data sets differ that a release must hardly tell apart: by one unit of privacy more, or
by what the records of one unit hold, where the number of records is public."""
_NOUN = re.compile(r"[^\W\d_](?:[^\W\d_]|[ '’-](?=[^\W\d_])){0,39}")
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

    Neighbours differ by the unit being there ("add-remove"), or by what its records hold
    ("replace"): then the number of records is public, and tables have it as it is.

    period: the name of the attribute, such as a quarter, of which a person has at most one record
    for each value; then m is the number of periods, and costs less than m² times a record.

    exact: the attributes of each total that is released as it is: a name, or several names. Then
    neighbours replace what records hold only in ways that keep these totals ("replace"), and the
    privacy unit is one record.

    unit_noun: the word for who is protected, in the singular, such as "household" or "patient"; a
    person, where that is left out, and a record, where each is protected by itself. It changes no
    number.

    distinct: the column whose distinct values are counted in the place of records, such as the
    number of a household: one record of each is, so that each is protected, however many records it
    has. Without a unit_noun the column must be called as one of them is, "household".

    Example:
        >>> Budget(rho="0.5", max_records_per_person=2).record_privacy_cost
        Fraction(1, 4)
    """

    privacy_cost: Fraction
    stated: tuple[tuple[str, Fraction], ...]
    max_records_per_person: int | None
    neighbours: str
    period: str | None
    exact: tuple[tuple[str, ...], ...]
    unit_noun: str | None
    distinct: str | None

    def __init__(
        self,
        *,
        privacy_cost: Exact | None = None,
        rho: Exact | None = None,
        mu: Exact | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        max_records_per_person: int | None = None,
        neighbours: str = ADD_REMOVE,
        period: str | None = None,
        exact: Sequence[str | Sequence[str]] = (),
        unit_noun: str | None = None,
        distinct: str | None = None,
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
                f"The number of records a {unit_noun or 'person'} may have must be a whole number "
                f"of at least 1, got {max_records_per_person!r}."
            )
        if distinct is not None:
            is_usual = neighbours == ADD_REMOVE and period is None and not exact
            if not distinct or records not in (None, 1) or not is_usual:
                raise BudgetError(
                    f"Distinct values of {shown(str(distinct))} are counted with neighbours that "
                    "add or remove one of them, however many records it has; leave out the number "
                    "of records, the period, exact totals and other neighbours."
                )
            distinct, records = normalize("NFC", distinct), 1
        object.__setattr__(self, "distinct", distinct)
        object.__setattr__(self, "unit_noun", _checked_noun(unit_noun, records, distinct))
        object.__setattr__(self, "privacy_cost", _cost(given))
        object.__setattr__(self, "stated", tuple(stated.items()))
        object.__setattr__(self, "max_records_per_person", records)
        if neighbours not in NEIGHBOURS:
            raise BudgetError(
                f"Neighbours must be {' or '.join(NEIGHBOURS)}, got {shown(str(neighbours))}: data "
                "sets with one record more, or with one record replaced."
            )
        totals = _exact_totals(exact)
        if totals and (period is not None or (records or 1) > 1):
            raise BudgetError(
                f"Exact totals such as {' × '.join(totals[0])} go with one record as the privacy "
                f"unit: it is not known what they leave of the promise to {self.nouns} with "
                f"several records. Leave out the number of records {with_article(self.holder)} may "
                "have, or the exact totals."
            )
        object.__setattr__(self, "exact", totals)
        object.__setattr__(self, "neighbours", REPLACE if totals else neighbours)
        if period is not None and (records is None or self.replaces):
            raise BudgetError(
                f"The period {shown(str(period))} goes with the number of periods that "
                f"{with_article(self.holder)} can have records in (--max-periods, "
                "max_records_per_person in Python), and with neighbours that add or remove the "
                f"{self.holder}."
            )
        object.__setattr__(self, "period", period)
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
        budget = self.of_unit(**stated)
        if privacy_cost != budget.privacy_cost:
            if self.stated_epsilon is None:
                raise BudgetError(
                    f"Only the privacy cost of an (ε, δ) can be chosen, and it is "
                    f"{shown(budget.privacy_cost)} here; state another budget."
                )
            object.__setattr__(budget, "privacy_cost", privacy_cost)
        return budget

    def of_unit(self, **stated: Any) -> "Budget":
        """Another amount, stated as for `Budget`, for the same privacy unit and neighbours.

        What is stated of these is changed.
        """
        own = {
            "max_records_per_person": self.max_records_per_person,
            "neighbours": self.neighbours,
            "period": self.period,
            "exact": self.exact,
            "unit_noun": self.unit_noun,
            "distinct": self.distinct,
        }
        return Budget(**(own | stated))

    @property
    def noun(self) -> str:
        """The word for who is protected, in the singular: "record", "person", "household"."""
        return self.unit_noun or _usual_noun(self.max_records_per_person, self.distinct)

    @property
    def nouns(self) -> str:
        """The same in the plural: "records", "people", "households"."""
        return "people" if self.noun == "person" else plural_noun(self.noun)

    @property
    def counted(self) -> str:
        """The word for those whom tables count, in the plural: "people" unless one is given."""
        return self.nouns if self.unit_noun or self.distinct else "people"

    def counted_as(self, record_noun: str) -> str:
        """The same where it may be stated what a record stands for: "records" states nothing."""
        return self.counted if record_noun == "records" else record_noun

    @property
    def holder(self) -> str:
        """The word for whoever can have several records: "person", "household"."""
        return self.unit_noun or self.distinct or "person"

    @property
    def replaces(self) -> bool:
        """Whether neighbours replace records, so that their number is public."""
        return self.neighbours == REPLACE

    @property
    def change(self) -> str:
        """What of the unit is protected: what follows "for one record:" in a sentence."""
        return change_of(self.neighbours, self.max_records_per_person, self.exact)

    @property
    def exact_text(self) -> str:
        """The exact totals, in words: "state × sex, and age"; "" for none."""
        return exact_totals_text(self.exact)

    @property
    def full_unit(self) -> str:
        """The privacy unit in a list, with the neighbours where these are not the usual ones."""
        if self.exact:
            return f"{self.unit}, changed so that the totals of {self.exact_text} stay"
        return f"{self.unit}, replaced" if self.replaces else self.unit

    @property
    def neighbours_text(self) -> str:
        """What neighbours do, in a few words: "neighbours add or remove it"."""
        if not self.replaces:
            return "neighbours add or remove it"
        if self.exact:
            return f"neighbours keep the totals of {self.exact_text}, which are exact"
        what = "it" if self.max_records_per_person is None else "any of their records"
        return f"neighbours replace {what}; the number of records is public"

    @property
    def public_text(self) -> str:
        """What is released as it is, as a sentence behind a blank; "" for nothing."""
        if not self.replaces:
            return ""
        if self.exact:
            return (
                f" The totals of {self.exact_text} are released as they are, without noise, and so "
                "is the number of records. Whatever these totals tell, by themselves or together "
                "with what somebody knows already, is not protected: a total of one record tells "
                "of that record, and that somebody is counted is not protected, either."
            )
        return (
            " The number of records is public, and no noise need hide it: whether somebody is "
            "among those that are counted is not protected, only what their records hold."
        )

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
        if self.distinct is not None:
            return (
                f"one {self.noun}, counted once by the column {self.distinct!r}, however many "
                "records it has"
            )
        if self.max_records_per_person is None:
            return f"one {self.noun}, which is one record" if self.unit_noun else "one record"
        if self.period is not None:
            return (
                f"one {self.noun} with at most one record in each {self.period!r} and records in "
                f"at most {self.max_records_per_person}"
            )
        return f"one {self.noun} with at most {plural(self.max_records_per_person, 'record')}"

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
            **({"neighbours": self.neighbours} if self.replaces else {}),
            **({} if self.period is None else {"period": self.period}),
            **({"exact": [list(total) for total in self.exact]} if self.exact else {}),
            **({} if self.unit_noun is None else {"unit_noun": self.unit_noun}),
            **({} if self.distinct is None else {"distinct": self.distinct}),
        }

    @classmethod
    def from_json(cls, content: Any) -> "Budget":
        """The budget of a plan file; raises `BudgetError` if it is not what `to_json` writes."""
        with refusing(BudgetError, "The budget cannot be used"):
            known = ["stated", "privacy_cost", "max_records_per_person"]
            if isinstance(content, dict):
                known += [key for key in _OPTIONAL if key in content]
                if content.get("neighbours", REPLACE) != REPLACE:
                    raise BudgetError(
                        f"its neighbours must be {REPLACE}, or be left out where they add or "
                        "remove the unit."
                    )
                for key in ("period", "unit_noun", "distinct"):
                    if key in content:
                        text_of(content, key)
            check_keys(content, known, "it")
            stated, written = content["stated"], text_of(content, "privacy_cost")
            if not set(stated) <= set(_UNITS):
                raise BudgetError(f"what is stated must be among {', '.join(_UNITS)}.")
            exact = {name: text_of(stated, name) for name in stated}
            budget = cls(
                **exact,
                max_records_per_person=content["max_records_per_person"],
                neighbours=content.get("neighbours", ADD_REMOVE),
                period=content.get("period"),
                exact=content.get("exact", ()),
                unit_noun=content.get("unit_noun"),
                distinct=content.get("distinct"),
            )
            if budget.to_json()["max_records_per_person"] != content["max_records_per_person"]:
                raise BudgetError("its max_records_per_person must be 1 beside distinct values.")
            if budget.unit_noun != content.get("unit_noun"):
                raise BudgetError("its unit_noun must be left out where it is the usual word.")
            if "exact" in content and (
                not content["exact"]
                or budget.to_json().get("exact") != content["exact"]
                or "neighbours" not in content
            ):
                raise BudgetError(
                    "its exact totals must be lists of names in alphabetical order, none inside "
                    f"of another, beside the neighbours {REPLACE}."
                )
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


def _usual_noun(records: int | None, distinct: str | None) -> str:
    """The word for who is protected where none is stated."""
    return distinct or ("record" if records is None else "person")


def _checked_noun(noun: str | None, records: int | None, distinct: str | None) -> str | None:
    """The word for who is protected; None for the usual one. Raises `BudgetError`."""
    if noun is None and distinct is not None and not re.fullmatch("[a-z]{3,40}", distinct):
        raise BudgetError(
            f"The column {shown(distinct)!r} does not say what is counted; give the word for one "
            "of them, such as household (--unit, in Python unit_noun)."
        )
    if noun is None or noun == _usual_noun(records, distinct):
        return None
    if not (isinstance(noun, str) and _NOUN.fullmatch(noun)):
        raise BudgetError(
            "The word for who is protected must be a noun in the singular, such as household, of "
            f"at most 40 letters, got {shown(str(noun))}."
        )
    return noun


def change_of(
    neighbours: str,
    max_records_per_person: int | None,
    exact: Sequence[Sequence[str]] = (),
) -> str:
    """What neighbours do to the unit of privacy, to begin a clause: "adding or removing it"."""
    if exact:
        return (
            "changing what it holds outside of the exact totals, or exchanging values with another "
            "record (of each exact total all or none)"
        )
    if neighbours != REPLACE:
        return "adding or removing it"
    return "replacing it by any other" if max_records_per_person is None else (
        "replacing any of their records by others"
    )  # fmt: skip


def exact_totals_text(exact: Sequence[Sequence[str]]) -> str:
    """Exact totals in words: "state × sex, and age"; "" for none."""
    return joined([" × ".join(total) for total in exact])


def _exact_totals(exact: Sequence[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Names of attributes, sorted, of each total; without those that are inside of another."""
    if isinstance(exact, str) or not isinstance(exact, Sequence):
        raise BudgetError(
            f"The exact totals must be a list of attributes, or of lists of them, got "
            f"{shown(str(exact))}; write exact=[{shown(str(exact))}]."
        )
    totals = {frozenset([total] if isinstance(total, str) else total) for total in exact}
    for total in totals:
        if not total or not all(isinstance(name, str) and name for name in total):
            raise BudgetError(
                "Every exact total must have the name of at least one attribute; the number of "
                "records alone is public with neighbours='replace'."
            )
    largest = [one for one in totals if not any(one < other for other in totals)]
    return tuple(sorted(tuple(sorted(total)) for total in largest))


def _cost(given: dict[str, Any]) -> Fraction:
    if given["mu"] is not None:
        return conversions.privacy_cost_from_mu(given["mu"])
    rho = given["rho"]
    if given["privacy_cost"] is not None:
        rho = exact_fraction(given["privacy_cost"], "privacy_cost") / 2
    elif rho is None:
        rho = conversions.rho_from_epsilon_delta(given["epsilon"], given["delta"])
    return conversions.privacy_cost_from_rho(rho)
