"""Roles: what a preset asks by, such as race, and which attribute of a codebook has which role.

A role either names categories, of which each value of the attribute stands for one or several, or
is asked by each value, whatever the values are. Which attribute and which category is which is
guessed from names and sizes; what is guessed is for a curator to correct.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np

from rpexplore.common.numbers import shown, shown_few
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.errors import WorkloadError
from rpexplore.workload.query_list import MAX_CELLS
from rpexplore.workload.value_comparisons import ages_of

IN_TOTALS = "in totals only"  # what a value stands for that is none of a role's categories

# Words that tell no categories apart, and those that turn one into its opposite.
_FILLERS = frozenset(
    ["a", "alone", "and", "in", "kind", "living", "of", "only", "or", "people", "persons", "the"]
)
_NOT = {"no", "non", "none"}
_MOST_COMPARED = 100  # values of an attribute, with the names of categories
_FEWEST_IN_A_RUN = 4  # values that follow each other and stand for the same, told as one
_LEAST_ALIKE = 0.5  # of the words of a value and a category, to be taken for the same


@dataclass(frozen=True)
class Role:
    """A kind of attribute that a preset asks by.

    key          names it on the command line: "race"
    title        "Race"
    words        stand in names of attributes that have the role; (): any attribute may
    categories   that the preset names; (): it asks by each value
    unions       names of several categories together, as indices; with values that stand for some
                 of these alone, such a name stands for the others
    aliases      other names of categories and unions
    ages         the first and the last age of each category, where ages tell them apart
    usual_size   how many values such attributes often have; None: any number
    is_required  whether every query of the preset is asked by it
    """

    key: str
    title: str
    words: tuple[str, ...]
    categories: tuple[str, ...] = ()
    unions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ages: tuple[tuple[int, float], ...] = ()
    usual_size: int | None = None
    is_required: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """What a value can stand for, `IN_TOTALS` last; () where each value is asked."""
        return (*self.categories, *self.unions, IN_TOTALS) if self.categories else ()

    def categories_of(self, option: str) -> frozenset[int]:
        """The categories that an option stands for, as indices."""
        if option in self.unions:
            return self.unions[option]
        return frozenset({self.categories.index(option)} if option != IN_TOTALS else ())

    @cached_property
    def names_by_word(self) -> dict[str, list[tuple[frozenset[str], int]]]:
        """By each word the names of options that have it: (its words, index of the option)."""
        names: dict[str, list[tuple[frozenset[str], int]]] = {}
        for index, option in enumerate(self.options[:-1]):
            for name in (option, *self.aliases.get(option, ())):
                words = _words(name)
                for word in words:
                    names.setdefault(word, []).append((words, index))
        return names


@dataclass(frozen=True)
class RoleMatch:
    """The attribute that has a role, and the option that each of its values stands for.

    options  one for each value; () for a role that is asked by each value
    """

    attribute: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class FittedRole:
    """A role with its attribute; `sets` are the categories that each value stands for."""

    role: Role
    attribute: Attribute
    sets: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, role: Role, match: RoleMatch, domain: Domain) -> "FittedRole":
        """Raises `WorkloadError` or `DomainError` for a match that cannot be."""
        attribute = domain[match.attribute]
        if not role.categories:
            return cls(role, attribute, ())
        if len(match.options) != attribute.size:
            raise WorkloadError(
                f"{role.title}: {attribute.name!r} has {attribute.size:,} values, got what "
                f"{len(match.options):,} stand for; say it of each."
            )
        for option in match.options:
            if option not in role.options:
                raise WorkloadError(
                    f"{role.title} has no category {shown(option)!r}; it has "
                    f"{shown_few(role.options)}."
                )
        sets = [role.categories_of(option) for option in match.options]
        if not any(sets):
            raise WorkloadError(
                f"{role.title}: no value of {attribute.name!r} stands for one of its categories; "
                "say which does, or choose another attribute."
            )
        _check_ages(role, attribute, match.options)
        return cls(
            role, attribute, tuple(one.difference(*(s for s in sets if s < one)) for one in sets)
        )

    def row(self, wanted: Collection[int]) -> np.ndarray | None:
        """1 for each value that these categories are made of, float64[size].

        None where no values make up exactly these categories.
        """
        asked = frozenset(wanted)
        inside = [bool(one) and one <= asked for one in self.sets]
        covered: frozenset[int] = frozenset()
        for one, is_inside in zip(self.sets, inside, strict=True):
            if is_inside:
                covered |= one
            elif one & asked:
                return None
        return np.array(inside, dtype=np.float64) if covered == asked else None

    def name_at_groups(self, group_of: Sequence[int]) -> str:
        """What tables call the attribute by groups of the categories: "age@five-year".

        Raises `WorkloadError` where it has no such level.
        """
        attribute = self.attribute
        of_values = [frozenset(group_of[category] for category in one) for one in self.sets]
        numbers = {groups: number for number, groups in enumerate(dict.fromkeys(of_values))}
        wanted = [numbers[groups] for groups in of_values]
        if all(len(groups) == 1 for groups in of_values):
            if len(numbers) == attribute.size:
                return attribute.name
            for level in attribute.all_levels:
                made = attribute.at_level(level)
                if list(made.index_of_values) == wanted:
                    return made.name
        first: dict[int, float] = {}
        last: dict[int, float] = {}
        for (low, high), group in zip(self.role.ages, group_of, strict=True):
            first[group], last[group] = min(low, first.get(group, low)), high
        bands = [f"{low}-{last[group]}".replace("-inf", "+") for group, low in first.items()]
        raise WorkloadError(
            f"{self.role.title}: tables of this preset need {attribute.name!r} by the groups "
            f"{', '.join(bands)}, and no level has these; add such a level to the codebook, or add "
            "the preset as own counts."
        )


# ---- guesses


def guessed_matches(
    roles: Iterable[Role], domain: Domain, most_cells: float = MAX_CELLS
) -> dict[str, RoleMatch]:
    """The attribute of each role, by key, as far as names and sizes tell.

    No attribute has two roles. Roles that are not required are left out, the last ones first, where
    there would be more than `most_cells`; there may be as many in a list of queries.
    """
    roles = list(roles)
    pairs = [
        (_likeness(role, attribute), -place, role, attribute)
        for place, role in enumerate(roles)
        for attribute in domain
    ]
    pairs = sorted((pair for pair in pairs if pair[0] > 0), key=lambda pair: pair[:2], reverse=True)
    attributes: dict[str, Attribute] = {}
    for _, _, role, attribute in pairs:
        if role.key not in attributes and attribute not in attributes.values():
            attributes[role.key] = attribute
    for role in reversed(roles):
        if math.prod(attribute.size for attribute in attributes.values()) <= most_cells:
            break
        if not role.is_required:
            attributes.pop(role.key, None)
    return {
        role.key: guessed_match(role, attributes[role.key])
        for role in roles
        if role.key in attributes
    }


def guessed_match(role: Role, attribute: Attribute) -> RoleMatch:
    """The meaning of an attribute's values in a role, as far as their names tell."""
    if not role.categories:
        return RoleMatch(attribute.name)
    values = zip(attribute.labels(), attribute.stored_values(), strict=True)
    return RoleMatch(attribute.name, tuple(_guessed_option(role, names) for names in values))


def describe_match(role: Role, match: RoleMatch | None, domain: Domain) -> str:
    """ "Race: eth, W = White alone, …", for a curator to check; "0 … 4" of a run."""
    if match is None:
        return f"{role.title}: left out"
    values = domain[match.attribute].stored_values(len(match.options))
    parts = [f"{role.title}: {match.attribute}"]
    for option, of_option in groupby(zip(match.options, values, strict=True), lambda pair: pair[0]):
        alike = [value for _, value in of_option]
        alike = alike if len(alike) < _FEWEST_IN_A_RUN else [f"{alike[0]} … {alike[-1]}"]
        parts += [f"{value} = {option}" for value in alike]
    return ", ".join(parts)


def _guessed_option(role: Role, names: Iterable[str]) -> str:
    """The option that is most like any of these names of a value."""
    names = dict.fromkeys(names)
    for name in names:
        lowest, highest = ages_of(name) if role.ages else (0, -1)
        for category, (first, last) in zip(role.categories, role.ages, strict=False):
            if first <= lowest <= highest <= last:
                return category
    most, best = _LEAST_ALIKE, -1  # the last option: in totals only
    for words in map(_words, names):
        for known, index in {pair for word in words for pair in role.names_by_word.get(word, ())}:
            likeness = _alike(words, known)
            if likeness > most or (likeness == most and not 0 <= best < index):
                most, best = likeness, index
    return role.options[best]


def _likeness(role: Role, attribute: Attribute) -> float:
    """How much an attribute looks like having a role; 0: not at all."""
    words = _words(attribute.name) | _words(attribute.title)
    score = 0.0 if role.words else 1.0
    if words & set(role.words):
        score += 2
    has_texts = bool(role.ages) or isinstance(attribute.values, Categories)
    if role.categories and has_texts and attribute.size <= _MOST_COMPARED:
        options = guessed_match(role, attribute).options
        known = sum(option != IN_TOTALS for option in options) / len(options)
        # Values may be alike by chance; most of a list are not, unless they are numbers.
        score += known if score or (known > 0.7 and not role.ages) else 0
    if score and role.usual_size:
        score += 0.5 * min(role.usual_size, attribute.size) / max(role.usual_size, attribute.size)
    return score


def _check_ages(role: Role, attribute: Attribute, options: Iterable[str]) -> None:
    """Raise `WorkloadError` for a value whose ages are those of two categories."""
    for label, option in zip(attribute.labels(), options, strict=True):
        first, last = ages_of(label) if role.ages and option == IN_TOTALS else (0, -1)
        for _, (_, oldest) in zip(role.categories[:-1], role.ages, strict=False):
            if first <= oldest < last:
                raise WorkloadError(
                    f"{role.title}: the value {shown(label)!r} of {attribute.name!r} holds ages up "
                    f"to {oldest:g} and above; choose an attribute that is divided there, or leave "
                    "this role out."
                )


@lru_cache(maxsize=20_000)  # each text is compared in several roles
def _words(text: str) -> frozenset[str]:
    """The words of a text that tell it from others; a text without any is one word."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold()
    words = {"not" if word in _NOT else word for word in re.findall(r"[^\W_]+", split)}
    return frozenset(words - _FILLERS) or frozenset({split.strip()})


def _alike(some: frozenset[str], others: frozenset[str]) -> float:
    """The share of the words that both have; 0 where one denies what the other says."""
    if ("not" in some) != ("not" in others):
        return 0.0
    return len(some & others) / len(some | others)
