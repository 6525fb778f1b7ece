"""Presets: well-known lists of queries to start from, each over a domain of its own.

Their targets are starting points, in people, for areas of some thousand inhabitants.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from rpexplore.common.exact_numbers import whole_number
from rpexplore.domain.attribute import Attribute, Categories, Integers
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.queries.builders import query_list, table_queries
from rpexplore.queries.query_list import MAX_CELLS, QueryList
from rpexplore.workload.bases import Hierarchy, Identity, Prefix

# The six categories of race of the Office of Management and Budget (1997).
RACES = (
    "White",
    "Black or African American",
    "American Indian and Alaska Native",
    "Asian",
    "Native Hawaiian and Other Pacific Islander",
    "Some Other Race",
)
OLDEST = 115  # this age stands for all from it on, as in the census of the United States

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_COARSE, _FINE = 5.0, 10.0  # standard errors of the redistricting tables


@dataclass(frozen=True)
class Preset:
    """A list of queries to start from: its title on screen, one sentence, and what makes it."""

    title: str
    explanation: str
    queries: Callable[[], QueryList]


def race_combinations() -> tuple[str, ...]:
    """The 63 ways to be of one or more of the six races, by how many they are, [63]."""
    alone = [f"{race} alone" for race in RACES]
    several = (combinations(RACES, count) for count in range(2, len(RACES) + 1))
    return (*alone, *map("; ".join, chain.from_iterable(several)))


def redistricting() -> QueryList:
    """Tables P1 to P4 of the redistricting data of the United States (Public Law 94-171), 2020.

    P1 race; P2 Hispanic or Latino, and not by race; P3 and P4 the same for adults. Each with the
    subtotals that are printed; a line that repeats another one is left out: of 288 lines 282.
    """
    domain = Domain(
        (
            Attribute("voting_age", Categories(("Under 18 years", "18 years and over"))),
            Attribute("hispanic", Categories(("Hispanic or Latino", "Not Hispanic or Latino"))),
            Attribute("race", Categories(race_combinations())),
        )
    )
    return query_list(domain, _redistricting_lines())


def _redistricting_lines() -> Iterator[tuple[str, np.ndarray, float]]:
    """Name, coefficients and target of each line of the four tables."""
    everybody, adults = [1, 1], [0, 1]
    hispanic, not_hispanic = [1, 0], [0, 1]
    lines = list(_race_lines())
    total, every_race, _ = lines[0]
    for ages, by_race, by_origin in ((everybody, "P1", "P2"), (adults, "P3", "P4")):
        for name, races, target in lines:
            yield f"{by_race} {name}", np.kron(ages, np.kron(everybody, races)), target
        of_hispanic = np.kron(ages, np.kron(hispanic, every_race))
        yield f"{by_origin} Hispanic or Latino", of_hispanic, _COARSE
        for name, races, target in lines:
            race = "" if name == total else f": {name}"
            row = np.kron(ages, np.kron(not_hispanic, races))
            yield f"{by_origin} Not Hispanic or Latino{race}", row, target


def _race_lines() -> Iterator[tuple[str, np.ndarray, float]]:
    """Name, races float64[63] and target of each line of a table by race, as it is printed."""
    names = race_combinations()
    counts = np.array([1] * len(RACES) + [name.count("; ") + 1 for name in names[len(RACES) :]])
    yield "Total", np.ones(len(names)), _COARSE
    for count in range(1, len(RACES) + 1):
        of_count = counts == count
        if count == 2:
            yield "Population of two or more races", (counts >= 2).astype(float), _COARSE
        target = _COARSE if count == 1 else _FINE
        noun = "race" if count == 1 else "races"
        yield f"Population of {_NUMBERS[count]} {noun}", of_count.astype(float), target
        for index in np.flatnonzero(of_count).tolist():
            yield names[index], np.eye(1, len(names), index)[0], target


def age_pyramid() -> QueryList:
    """Single years of age and groups of five, by sex and together, with all totals."""
    by_age = {"age": Hierarchy((5,))}
    return table_queries(_sexes_and_ages(), [{"sex": Identity(), **by_age}, by_age])


def cumulative_ages() -> QueryList:
    """Single years of age by sex, and all people up to each age, by sex and together."""
    sex = {"sex": Identity()}
    tables = [{**sex, "age": Identity()}, {**sex, "age": Prefix()}, {"age": Prefix()}]
    return table_queries(_sexes_and_ages(), tables)


def identity_plus_sum(n: int = 64) -> QueryList:
    """Each of n values, and their sum, all to a standard error of 1.

    The smallest privacy cost is 2n/(n + 1) (docs/mathematics.md §8). Raises `WorkloadError` for
    another number of values than 1 to `MAX_CELLS`.
    """
    size = whole_number(n)
    if size is None or not 1 <= size <= MAX_CELLS:
        raise WorkloadError(f"There must be 1 to {MAX_CELLS:,} values, got {n!r}.")
    domain = Domain((Attribute("value", Integers(1, size)),))
    return table_queries(domain, [{"value": Identity()}, {}], target=1.0)


def _sexes_and_ages() -> Domain:
    return Domain(
        (
            Attribute("sex", Categories(("Female", "Male"))),
            Attribute("age", Integers(0, OLDEST), f"Age ({OLDEST} and over as {OLDEST})"),
        )
    )


PRESETS = (
    Preset(
        "Redistricting data (PL 94-171)",
        "Tables P1 to P4 of the United States' redistricting data: people and adults by race and "
        "by Hispanic origin, with every subtotal that is printed.",
        redistricting,
    ),
    Preset(
        "Age pyramid",
        f"Women and men by single years of age from 0 to {OLDEST}, in groups of five years, and in "
        "total, each also for both sexes together.",
        age_pyramid,
    ),
    Preset(
        "Cumulative ages",
        f"Women and men by single years of age from 0 to {OLDEST}, and how many are of each age or "
        "younger, by sex and together.",
        cumulative_ages,
    ),
    Preset(
        "Values and their sum",
        "Each of 64 values and the sum of them all, the smallest example in which the noise of "
        "different answers should depend on each other.",
        identity_plus_sum,
    ),
)
