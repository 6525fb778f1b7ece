"""Own counts by other attributes: one for each combination of their values, or of their levels.

Behind its condition a count may name attributes, as in `age >= 18 by sex, region@groups`. It stands
for a count of each combination of their values that any cell of the condition has, with the name
"adults, sex = Female" and the one target.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from rpexplore.domain.attribute import Attribute
from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import AT
from rpexplore.errors import DomainError, WorkloadError
from rpexplore.workload.condition_atoms import ConditionAtoms
from rpexplore.workload.conditions import (
    NAME,
    TOTAL,
    attributes_of_condition,
    condition_of_values,
    tokens_of,
)
from rpexplore.workload.own_sums import split_definition
from rpexplore.workload.query_list import check_list_size

# Texts in quotation marks and names in backquotes may hold the word, or a comma.
_QUOTED = r""" "[^"]*" | '[^']*' | `(?:[^`]|``)*` | [“„][^“”„]*[“”] | ‘[^‘’]*’ """
_BY = re.compile(rf"{_QUOTED} | (?P<by> (?:^|(?<=[\s)])) by (?=[\s`]) )", re.VERBOSE)
_ITEM = re.compile(rf"(?: {_QUOTED} | [^,] )+", re.VERBOSE)


@dataclass(frozen=True)
class By:
    """An attribute that counts are made by, with the groups of its values.

    attribute       of the domain
    name            as people name it: "age@five-year"
    labels          of its values, or of those of the level
    group_of        for each value of the attribute which of these it is in, int64[size]
    """

    attribute: Attribute
    name: str
    labels: list[str]
    group_of: np.ndarray

    @classmethod
    def of(cls, domain: Domain, text: str) -> "By":
        """Of a name such as sex or age@five-year; raises `DomainError` for what is none."""
        if text not in domain and AT in text:
            name, _, level_name = text.rpartition(AT)
            attribute = domain[_without_backquotes(name)]
            made = attribute.at_level(attribute.level(_without_backquotes(level_name)))
            return cls(attribute, made.name, made.labels(), np.array(made.index_of_values))
        attribute = domain[text]
        labels = attribute.labels()
        if len(set(labels)) < len(labels):
            labels = attribute.stored_values()
        return cls(attribute, attribute.name, labels, np.arange(attribute.size))

    def condition(self, *groups: int) -> str:
        """The condition that it is in one of these groups; "" where there is no other."""
        return condition_of_values(self.attribute, np.isin(self.group_of, groups))


def text_by(condition: str, names: Sequence[str]) -> str:
    """A condition by attributes or levels: "age >= 18 by `sex`, `age@five-year`"."""
    quoted = ", ".join(f"`{name.replace('`', '``')}`" for name in names)
    return f"{condition or TOTAL} by {quoted}" if names else condition


def split_by(domain: Domain, text: str) -> tuple[str, list[By]]:
    """A condition without the attributes behind the word by, and these.

    Raises `WorkloadError` for what stands behind the word and is no attribute, unless one is called
    so itself.
    """
    words = [match for match in _BY.finditer(text) if match["by"] is not None]
    for match in reversed(words):
        condition = text[: match.start()].strip()
        names = [item.strip() for item in _ITEM.findall(text[match.end() :])]
        try:
            attributes = [By.of(domain, _without_backquotes(name)) for name in names]
        except DomainError as error:
            if "by" in domain:
                continue
            raise WorkloadError(
                f"Behind the word by there must be attributes, as in by sex, age@five-year: {error}"
            ) from None
        of_attributes = [each.attribute.name for each in attributes]
        for name in of_attributes:
            if of_attributes.count(name) > 1:
                raise WorkloadError(
                    f"Behind the word by the attribute {name!r} is named twice; keep one of them."
                )
        return condition, attributes
    return text, []


def names_in_condition(text: str, domain: Domain) -> set[str]:
    """The names of attributes in a condition, those behind the word by among them; maybe others."""
    measured: set[str] = set()
    try:
        definition, attributes = split_by(domain, text)
        measure, condition = split_definition(definition)
        measured |= set(() if measure is None else measure.names)
        behind = {each.attribute.name for each in attributes}
    except WorkloadError:  # which reading the count says
        last = [match for match in _BY.finditer(text) if match["by"] is not None][-1]
        condition = text[: last.start()]
        items = _ITEM.findall(text[last.end() :])
        behind = {_without_backquotes(item.partition(AT)[0]) for item in items}
    named = {str(token.meaning) for token in tokens_of(condition) if token.kind == NAME}
    of_levels = {name.rpartition(AT)[0] for name in named if AT in name}
    return behind | measured | named | of_levels


def counts_by(domain: Domain, name: str, text: str) -> Iterator[tuple[str, str]]:
    """The name and the condition of each count that one stands for; itself without the word by.

    Combinations that no cell of the condition has are left out.
    """
    definition, attributes = split_by(domain, text)
    if not attributes:
        yield name, text
        return
    measure, condition = split_definition(definition)
    check_list_size(prod(len(each.labels) for each in attributes), 1)
    of_all = not condition or (condition.lower() == TOTAL and TOTAL not in domain)
    name = name if name.strip() else definition or TOTAL
    within = "" if of_all else condition
    if re.search(r"\||\bor\b", within, re.IGNORECASE):
        within = f"({within})"
    made: list[tuple[str, str]] = []
    for groups in product(*(range(len(each.labels)) for each in attributes)):
        pairs = list(zip(attributes, groups, strict=True))
        parts = [within, *(each.condition(group) for each, group in pairs)]
        labels = [f"{each.name} = {each.labels[group]}" for each, group in pairs]
        own = " & ".join(filter(None, parts)) or (TOTAL if TOTAL not in domain else "")
        own = own if measure is None else measure.definition(own)
        made.append((", ".join([name, *labels]), own))
    named = set() if of_all else set(attributes_of_condition(domain, condition))
    if named.isdisjoint(each.attribute.name for each in attributes):
        yield from made
        return
    atoms = ConditionAtoms(domain)
    for _, own in made:
        atoms.add(split_definition(own)[1])
    _, holds = atoms.made([own_name for own_name, _ in made])
    if not holds.any():  # which the first one says
        yield made[0]
    yield from (each for each, row in zip(made, holds, strict=True) if row.any())


def name_by_labels(domain: Domain, name: str) -> str:
    """The name that counts by attributes have for one with codes: "adults, sex = F".

    What is no label is read as a stored value; all else stays as it is.
    """
    title, *rest = re.split(r",\s*([^,=]+?)\s*=\s*", name)
    parts = [title]
    for attribute, value in zip(rest[::2], rest[1::2], strict=True):
        with suppress(DomainError):  # of what is no attribute
            by = By.of(domain, attribute)
            codes = dict(zip(by.attribute.stored_values(), by.labels, strict=False))
            if value not in by.labels and by.name == by.attribute.name:
                value = codes.get(value, value)
        parts.append(f"{attribute} = {value}")
    return ", ".join(parts)


def _without_backquotes(name: str) -> str:
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == "`":
        return name[1:-1].replace("``", "`")
    return name
