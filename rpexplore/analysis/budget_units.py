"""One budget in every unit people state it in."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from rpexplore.common.numbers import exact_text
from rpexplore.common.text import rounded, singular_noun, with_article, with_decimal_point
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import BudgetError
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy import conversions as privacy
from rpexplore.privacy.budget import REPLACE, Budget
from rpexplore.privacy.discrete_noise import gaussian_epsilon

if TYPE_CHECKING:
    import pandas as pd

UNITS = ("rho", "epsilon", "mu")
DELTAS = privacy.USUAL_DELTAS[:2]  # beside each headline
USUAL_DELTA = DELTAS[0]

# Beyond these a budget is hardly a promise any more.
HIGH_EPSILON = 10
_HIGH_DELTA = Fraction(1, 10**4)

# Slider stops, equal steps on a log scale: 1, 2, 5 in every decade.
_DECADES = {"rho": (-4, 1), "epsilon": (-2, 1), "mu": (-2, 1)}


def stated_unit(budget: Budget) -> str:
    """The unit a budget was given in; one given as privacy cost is shown as ρ."""
    name = budget.stated[0][0]
    return name if name in UNITS else "rho"


def stated_delta(budget: Budget) -> str:
    """The δ a budget was given with, as typed, or the usual one."""
    delta = dict(budget.stated).get("delta")
    return USUAL_DELTA if delta is None else typed_text(delta)


def text_in_unit(budget: Budget, unit: str, delta: str = USUAL_DELTA) -> str:
    """The budget as a number of that unit: exactly as stated where it was stated so.

    Otherwise four digits, rounded down, so that adopting the number never spends more.
    """
    stated = dict(budget.stated)
    if unit in stated and (unit != "epsilon" or stated_delta(budget) == delta):
        return typed_text(stated[unit])
    if unit == "rho":
        exact = typed_text(budget.rho)
        return exact if len(exact) <= 10 else _rounded_down(budget.rho)
    if unit == "mu":
        return _rounded_down(privacy.mu_from_privacy_cost(budget.privacy_cost))
    # That of continuous noise: at this ε no noise can have more ρ.
    return _rounded_down(gaussian_epsilon(budget.privacy_cost, delta))


def stated_text(budget: Budget) -> str:
    """The budget as it was stated, without its δ: "ε = 0.8", "ρ = 0.1"."""
    unit = stated_unit(budget)
    symbol = {"rho": "ρ", "epsilon": "ε", "mu": "μ"}[unit]
    return f"{symbol} = {text_in_unit(budget, unit, stated_delta(budget))}"


def privacy_as_stated(plan: Plan | PartPlan) -> tuple[str, str]:
    """What a plan costs in the unit that its budget is stated in, and the same in others.

    "ε = 1 at δ = 1e-6" and "ρ = 0.0281; ε = 1.29 at δ = 1e-9" of an ε; of others ρ first.
    """
    rho, epsilons = privacy.rho_text(plan.rho, 3), plan.epsilon_texts[:2]
    if stated_unit(plan.budget) == "epsilon":
        return epsilons[0], "; ".join([rho, *epsilons[1:]])
    return rho, "; ".join(epsilons)


def with_value(budget: Budget, unit: str, value: str, delta: str = USUAL_DELTA) -> Budget:
    """The budget with this value in that unit, for the same privacy unit.

    Raises `BudgetError` for a value that is not one.
    """
    stated = {unit: value} | ({"delta": delta} if unit == "epsilon" else {})
    stated = {name: with_decimal_point(text).strip() for name, text in stated.items()}
    return budget.of_unit(**stated)


def with_privacy_unit(
    budget: Budget, max_records_per_person: int | None, neighbours: str | None = None
) -> Budget:
    """The same numbers as a promise to another privacy unit, or about other neighbours."""
    neighbours = neighbours or budget.neighbours
    keeps = neighbours == REPLACE and max_records_per_person in (None, 1)
    is_distinct = neighbours != REPLACE and max_records_per_person == 1
    in_panel = max_records_per_person is not None and neighbours == budget.neighbours
    return budget.of_unit(
        max_records_per_person=max_records_per_person,
        neighbours=neighbours,
        period=budget.period if in_panel else None,
        exact=budget.exact if keeps else (),
        distinct=budget.distinct if is_distinct else None,
        **dict(budget.stated),
    )


def with_noun(budget: Budget, noun: str | None) -> Budget:
    """The same promise, with this word for who is protected, or its plural; None: the usual."""
    noun = None if noun is None else singular_noun(noun)
    return budget.of_unit(unit_noun=noun, **dict(budget.stated))


def with_distinct(budget: Budget, column: str | None) -> Budget:
    """The same numbers for distinct values of this column; None: for records.

    Raises `BudgetError` where the budget says more of records, or no word for what is counted.
    """
    stated: dict[str, Any] = dict(budget.stated)
    if column is None:
        return Budget(unit_noun=budget.unit_noun, **stated)
    return budget.of_unit(distinct=column, **stated)


def in_panel(budget: Budget, period: str | None) -> Budget:
    """The same numbers for people with one record a period, or (None) with any records."""
    stated: dict[str, Any] = dict(budget.stated)
    most, noun = budget.max_records_per_person, budget.unit_noun
    return Budget(max_records_per_person=most, period=period, unit_noun=noun, **stated)


def with_exact_totals(budget: Budget, exact: Sequence[Sequence[str]]) -> Budget:
    """The same numbers with these totals released as they are; none: for replaced records."""
    stated: dict[str, Any] = dict(budget.stated)
    return Budget(neighbours=REPLACE, exact=exact, unit_noun=budget.unit_noun, **stated)


def limit_in_rho(typed: str, unit: str, delta: str) -> Fraction:
    """A typed budget limit, "rho" or "epsilon" at this δ, as ρ: exact, or rounded down.

    Raises `BudgetError` for one that is not positive.
    """
    limit = privacy.exact_fraction(with_decimal_point(typed), "The budget limit")
    if limit <= 0:
        raise BudgetError(f"The budget limit must be positive, got {typed}.")
    return limit if unit == "rho" else privacy.rho_from_epsilon_delta(limit, delta)


def limit_for(rho: Fraction, unit: str, delta: str) -> str:
    """The number to type for a budget limit with room for this ρ and hardly more."""
    if unit == "rho":
        return rounded(rho, 4, "up").replace(",", "")
    return rounded(privacy.epsilon_from_rho(rho, delta), 5, "up").replace(",", "")


def restated_limit(typed: str, before: str, unit: str, delta: str) -> str:
    """A typed budget limit in another unit, rounded down, by less than `limit_for` rounds up.

    Raises `BudgetError` for one that is none.
    """
    rho = limit_in_rho(typed, before, delta)
    amount = rho if unit == "rho" else privacy.epsilon_from_rho(rho, delta)
    return rounded(amount, 8, "down").replace(",", "")


def budget_warnings(budget: Budget, expected: ExpectedCounts | None = None) -> list[str]:
    """Warnings about an unusual budget, in sentences; nothing of it is refused."""
    sentences = []
    epsilon = privacy.epsilon_from_rho(budget.rho, USUAL_DELTA)
    if epsilon > HIGH_EPSILON:
        sentences.append(
            f"ε is {rounded(epsilon, 3, 'up')} at δ = {USUAL_DELTA}: ε above {HIGH_EPSILON} "
            "promises little."
        )
    if warning := delta_warning(budget, expected):
        sentences.append(warning)
    return sentences


def delta_warning(budget: Budget, expected: ExpectedCounts | None = None) -> str | None:
    """That the stated δ is too large for the expected number of records; None if it is not.

    Without an expected number: that it is large for any.
    """
    delta = budget.stated_delta
    if delta is None:
        return None
    if expected is None:
        too_large = delta > _HIGH_DELTA
        return "δ should be far below one in the number of records." if too_large else None
    records = Fraction(expected.total)
    if delta * records < 1:
        return None
    published = min(delta, Fraction(1)) * records
    return (
        f"δ = {typed_text(delta)} is not below 1/{rounded(records, 4)}, one over the expected "
        f"number of records: publishing {rounded(published, 3, 'down')} of them as they are, drawn "
        "at random, would keep such a promise. Choose a δ far below that."
    )


def slider_stops(unit: str, value: str) -> list[str]:
    """The values a slider offers, ascending, with the current one among them."""
    stops = {**_usual_stops(unit), privacy.exact_fraction(value, unit): value}
    return [stops[stop] for stop in sorted(stops)]


@cache
def _usual_stops(unit: str) -> dict[Fraction, str]:
    """The stops of a unit, and how they are typed."""
    low, high = _DECADES[unit]
    exponents = range(low, high + 1)
    stops = [Fraction(step) * Fraction(10) ** e for e in exponents for step in (1, 2, 5)]
    return {stop: typed_text(stop) for stop in stops}


def describe_guess(budget: Budget, plan: Plan | PartPlan | None = None) -> str:
    """The budget, and how often a guess who is in the data is right, in short (Markdown).

    plan: of the budget, where it is known: its noise may prove more than its ρ does
    """
    rho, epsilon = privacy.rho_text(budget.rho, 4), budget.epsilon_text(budget.rho)
    if plan is not None:
        rho, epsilon = privacy.rho_text(plan.rho, 4), plan.epsilon_text
    elif budget.stated_epsilon is not None:
        # What the plan costs is known when its noise is.
        rho = f"{rho} to {rounded(budget.largest.rho, 4, 'up')}, as the noise of the plan allows"
    guessed = "which of two records somebody has" if budget.replaces else "who is in the data"
    unit = "" if budget.max_records_per_person is None else f", for {budget.unit}"
    return (
        f"{epsilon}, {rho}{unit}. A guess at {guessed} is right at most "
        f"**{_right(budget, plan)}\u00a0%** of the time (50\u00a0% by chance)."
    )


def right_guesses(budget: Budget, plan: Plan | PartPlan | None = None) -> str:
    """How often an attacker who guesses who is in the data is right, in a sentence.

    plan: as of `describe_guess`
    """
    whom = with_article(budget.noun)
    guessed = f"whether {whom} is in the data, where half are,"
    if budget.replaces:
        guessed = f"which of two equally likely things {whom} holds"
    return (
        f"Somebody who guesses {guessed} is right at most {_right(budget, plan)} % of the time "
        "(50 % without the release)."
    )


def _right(budget: Budget, plan: Plan | PartPlan | None) -> str:
    """The share of guesses that are right, in per cent, rounded up: half, and half of δ(0)."""
    if plan is None or plan.noise is None:
        rho = budget.largest.rho if plan is None else plan.rho
        share = privacy.max_correct_guesses(rho)
    else:
        share = (1 + plan.noise.delta(0)) / 2
    return rounded(100 * share, 2, "up")


def equivalents(budget: Budget) -> "pd.DataFrame":
    """The budget in every unit: columns measure, value. ε and μ are rounded up.

    Of an (ε, δ) for the largest ρ that a plan for it can have, whatever its noise.
    """
    import pandas as pd  # the command line needs the sentences alone

    most = budget.largest
    rho = rounded(most.rho, 4, "up") if most is not budget else text_in_unit(budget, "rho")
    rows = [("ρ", f"up to {rho}" if most is not budget else rho)]
    for delta in dict.fromkeys([stated_delta(budget), *privacy.USUAL_DELTAS]):
        epsilon = privacy.epsilon_from_rho(most.rho, delta)
        if delta == stated_delta(budget) and budget.stated_epsilon is not None:
            epsilon = budget.stated_epsilon
        rows.append((f"ε at δ = {delta}", rounded(epsilon, 4, "up")))
    rows.append(("μ", rounded(privacy.mu_from_privacy_cost(most.privacy_cost), 4, "up")))
    return pd.DataFrame(rows, columns=["measure", "value"])


def typed_text(value: Fraction) -> str:
    """An exact number as people type it: "0.1", "1e-9", "1/3"."""
    text = exact_text(value)
    digits = text.replace(".", "").lstrip("0")
    if "/" in text or value == 0 or value >= Fraction(1, 10**4):
        return text
    exponent = -(len(text) - 2 - len(digits) + 1)
    return f"{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}e{exponent}"


def _rounded_down(value: float | Fraction) -> str:
    return rounded(value, 4, "down").replace(",", "")
