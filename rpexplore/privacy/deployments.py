"""A budget in context: published releases under differential privacy and what they state.

The facts are those of the deployments registry of OpenDP, in `deployments.csv`: of each release
what was published, by whom and when, its privacy unit, its neighbours where they are stated, and
its parameters as they stand there. Releases of statistics, data sets and synthetic data are in it;
trained models and interactive systems are not.

Three kinds of parameters are put beside a ρ. Another ρ is compared as it is. A pure ε implies
ρ = ε²/2 (Bun, Steinke: Concentrated Differential Privacy, TCC 2016, Prop. 1.4). Of (ε, δ) the
largest ρ is taken that implies it: with that ρ a plan here could make the same claim; what the
release itself would have in ρ is not known.
"""

import csv
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import log
from typing import Any

import pandas as pd

from rpexplore.common.text import plural, rounded, small
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_from_epsilon_delta

SOURCE = "OpenDP deployments registry (deployments-registry-data 3e9c812, July 2026)"
NOT_STATED, AS_STATED = "not stated", "as stated"

_SHOWN = 6  # releases beside a budget
_NAMED = 2  # of these in a sentence
_TEXTS = ("product", "curators", "year", "kind", "variant", "privacy_unit", "neighbours")


def deployments_near(budget: Budget, most: int | None = _SHOWN) -> pd.DataFrame:
    """The published releases whose ρ is nearest to a budget's (None: all), in ascending order of ρ.

    product, curators, year, kind, variant, privacy_unit, neighbours ("not stated" where nothing is
    known), stated (its parameters as text), rho (what is put beside a ρ), derivation (how that
    follows), source, ratio (their ρ over the budget's).
    """
    nearest = _by_nearness(budget)[:most]
    return pd.DataFrame(sorted(nearest, key=lambda row: row["rho"]))


def deployments_beside(budget: Budget, most: int = _SHOWN) -> list[tuple[str, str]]:
    """The nearest published releases with the budget among them, the smallest ρ first.

    What each is called, and its facts: by whom and when, its parameters, privacy unit, neighbours.
    """
    rows = [(row["rho"], row["product"], _facts(row)) for row in _by_nearness(budget)[:most]]
    does = "replace one" if budget.replaces else "add or remove one"
    if budget.exact:
        does = "change one within exact totals"
    own = f"ρ = {rounded(budget.rho, 3)} for {budget.unit}, neighbours: {does}"
    rows.append((float(budget.rho), "This plan", own))
    return [(name, facts) for _, name, facts in sorted(rows)]


def describe_context(budget: Budget) -> list[str]:
    """How a budget lies among published ones, and what of that can be compared, in sentences."""
    nearest = _by_nearness(budget)
    below = sum(row["ratio"] < 1 for row in nearest)
    named = [
        f"{row['product']} ({row['curators']}, {row['year']}) with {row['stated']} for "
        f"{row['privacy_unit']}"
        for row in nearest[:_NAMED]
    ]
    return [
        f"Of {plural(len(nearest), 'published release')}, {below:,} lie below ρ = "
        f"{rounded(budget.rho, 3)}. Nearest to it: {'; '.join(named)}.",
        *describe_comparability(budget),
    ]


def describe_comparability(budget: Budget) -> list[str]:
    """The published budgets that can be compared with this one, in sentences."""
    return [
        "Numbers compare only for the same privacy unit and the same neighbours. This plan "
        f"protects {budget.unit}, by {budget.change}. A promise per day or per event is "
        "weaker than one for a user or a person with the same number: it is spent again for each "
        "day or event.",
        _on_other_neighbours(budget),
        "A ρ is compared as it is. A pure ε is put at ρ = ε²/2, which it implies. An ε with a δ "
        "is put at the largest ρ that implies it, with which a plan here could claim the same.",
        f"Source: {SOURCE}.",
    ]


def _on_other_neighbours(budget: Budget) -> str:
    """What the budget says for neighbours of the other kind, as a sentence."""
    if budget.exact:
        return (
            "It says nothing where neighbours change the exact totals, as in most releases: these "
            f"({budget.exact_text}) are taken to be public. The 2020 Census redistricting data, "
            "where one record is changed, has exact totals, too, such as the people of each state."
        )
    if budget.replaces:
        return (
            "It says nothing where neighbours differ by one record more, as in most releases of "
            "private companies: the number of records is taken to be public. It compares with the "
            "2020 Census redistricting data, where one record is changed."
        )
    return (
        "Where neighbours differ by changing one record instead, as in the 2020 Census "
        "redistricting data, the same number promises something else: this plan's ρ for a change "
        f"of {budget.unit} is at most four times its ρ, {rounded(4 * budget.rho, 3)}."
    )


def _by_nearness(budget: Budget) -> list[dict[str, Any]]:
    """The rows of `deployments` with their ratio to a budget's ρ, the nearest first."""
    rows = [row | {"ratio": row["rho"] / float(budget.rho)} for row in _rows()]
    return sorted(rows, key=lambda row: abs(log(row["ratio"])))


def _facts(row: dict[str, Any]) -> str:
    """ "Apple, 2017: ε = 8 for a user (put at ρ = 32), neighbours: not stated"."""
    put_at = "" if row["derivation"] == AS_STATED else f" (put at ρ = {rounded(row['rho'], 3)})"
    return (
        f"{row['curators']}, {row['year']}: {row['stated']} for {row['privacy_unit']}{put_at}, "
        f"neighbours: {row['neighbours']}"
    )


@cache
def _rows() -> list[dict[str, Any]]:
    """The rows of `deployments`, from the file, whose parameters are exact texts."""
    text = (files("rpexplore.privacy") / "deployments.csv").read_text(encoding="utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        parameters = row["rho"], row["epsilon"], row["delta"]
        rho, derivation = _rho_beside(*parameters)
        rows.append(
            {name: row[name] or NOT_STATED for name in _TEXTS}
            | {
                "year": int(row["year"]),
                "stated": _stated(*parameters),
                "rho": float(rho),
                "derivation": derivation,
                "source": f"{SOURCE}: {row['entry']}",
            }
        )
    return rows


def _rho_beside(rho: str, epsilon: str, delta: str) -> tuple[Fraction, str]:
    """The number to compare with a ρ, and how it follows from the stated parameters."""
    if rho:
        return Fraction(rho), AS_STATED
    if delta:
        return rho_from_epsilon_delta(epsilon, delta), "the largest ρ that implies it"
    return Fraction(epsilon) ** 2 / 2, "ε²/2, which it implies"


def _stated(rho: str, epsilon: str, delta: str) -> str:
    """The parameters as text: "ρ = 2.56", "ε = 8", "ε = 2.19 at δ = 1e-5"."""
    if rho:
        return f"ρ = {rho}"
    at = f" at δ = {small(Fraction(delta))}" if delta else ""
    return f"ε = {rounded(Fraction(epsilon), 6)}{at}"
