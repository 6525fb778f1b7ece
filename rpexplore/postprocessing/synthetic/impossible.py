"""Combinations of values that no record may have, as a codebook or common knowledge states them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rpexplore.domain.domain import Domain
from rpexplore.domain.value_selection import Selection, product_query
from rpexplore.errors import DomainError, ReleaseError

_MOST_TRIED = 100_000  # partial records, when one possible record is searched for

Never = Mapping[str, Selection]
"""A product condition, as the `where` of an answer: {"age": "0..14", "sex": "F"}."""


@dataclass(frozen=True, eq=False)
class Impossible:
    """Product conditions that no record may meet.

    sizes       numbers of values of the records' attributes
    conditions  of each condition the values of each attribute that it names: bool[size], by the
                attribute's position among those of the records
    """

    sizes: tuple[int, ...]
    conditions: tuple[Mapping[int, np.ndarray], ...]

    @classmethod
    def of(cls, domain: Domain, attributes: Sequence[int], never: Sequence[Never]) -> "Impossible":
        """From selections as texts.

        Raises `DomainError` for a text that selects nothing, `ReleaseError` for a condition that
        names nothing or an attribute that is in no table.
        """
        conditions = []
        for selections in never:
            if not selections:
                raise ReleaseError(
                    "An impossible combination must name the values of an attribute at least; got "
                    f"none. Name some, such as {example_of(domain)}."
                )
            members = {}
            for name, selected in product_query(domain, selections).items():
                index = domain.position(name)
                if index not in attributes:
                    raise ReleaseError(
                        f"The attribute {name!r} is in no table of the release, so records do not "
                        "have it; leave it out of the impossible combinations."
                    )
                members[list(attributes).index(index)] = np.array(selected, dtype=bool)
            conditions.append(members)
        return cls(tuple(int(domain.sizes[index]) for index in attributes), tuple(conditions))

    def are_met(self, codes: np.ndarray) -> np.ndarray:
        """Whether each record, [n, d], is impossible: bool[n]."""
        met = np.zeros(len(codes), dtype=bool)
        for condition in self.conditions:
            met |= _are_members(codes, condition)
        return met

    def of_attribute(self, attribute: int) -> list[Mapping[int, np.ndarray]]:
        """The conditions that name an attribute."""
        return [condition for condition in self.conditions if attribute in condition]

    def forbidden(self, codes: np.ndarray, attribute: int) -> np.ndarray | None:
        """Values of an attribute that make each record impossible: bool[n, size]; None: none."""
        conditions = self.of_attribute(attribute)
        if not conditions:
            return None
        mask = np.zeros((len(codes), self.sizes[attribute]), dtype=bool)
        for condition in conditions:
            others = {index: values for index, values in condition.items() if index != attribute}
            mask[_are_members(codes, others)] |= condition[attribute]
        return mask

    def possible_record(self) -> np.ndarray:
        """Some record that is possible, int16[d], found by search.

        Raises `ReleaseError` if there is none, or none is found in time.
        """
        named = sorted({index for condition in self.conditions for index in condition})
        record = np.zeros(len(self.sizes), dtype=np.int16)
        # Values that no condition tells apart are alike: one of each kind is enough.
        kinds = {index: self._kinds(index) for index in named}
        tried = 0

        def completed(depth: int) -> bool:
            nonlocal tried
            if depth == len(named):
                return True
            set_before = set(named[: depth + 1])
            decided = [
                condition
                for condition in self.of_attribute(named[depth])
                if set_before.issuperset(condition)
            ]
            for value in kinds[named[depth]]:
                tried += 1
                if tried > _MOST_TRIED:
                    raise ReleaseError(
                        "No record was found that is in none of the impossible combinations, in "
                        f"{_MOST_TRIED:,} attempts; state fewer of them."
                    )
                record[named[depth]] = value
                met = [_are_members(record[np.newaxis], condition)[0] for condition in decided]
                if not any(met) and completed(depth + 1):
                    return True
            return False

        if not completed(0):
            raise ReleaseError(
                "Every record is in one of the impossible combinations, so there can be no "
                "records; leave out one of them."
            )
        return record

    def _kinds(self, attribute: int) -> list[int]:
        """The first value of each kind of values that the conditions tell apart."""
        columns = np.stack([c[attribute] for c in self.of_attribute(attribute)], axis=1)
        _, first = np.unique(columns, axis=0, return_index=True)
        return sorted(first.tolist())


def never_from_text(domain: Domain, text: str) -> dict[str, str]:
    """The condition of a text such as "age=0..14 marital_status=Married".

    A new selection begins where the name of an attribute and an equals sign do. Raises
    `ReleaseError` for a text of another form, `DomainError` for names that are not there.
    """
    names = sorted(map(re.escape, domain.names), key=len, reverse=True)
    pattern = re.compile(rf"(?:^|\s+)({'|'.join(names)})=")
    starts = list(pattern.finditer(text.strip()))
    if not starts or starts[0].start() > 0:
        _refuse_unknown(domain, text.strip())
        raise ReleaseError(
            "An impossible combination must be stated as ATTRIBUTE=VALUES, such as "
            f"{example_of(domain)}, got {text!r}."
        )
    ends = [match.start() for match in starts[1:]] + [len(text.strip())]
    condition: dict[str, str] = {}
    for match, end in zip(starts, ends, strict=True):
        if match[1] in condition:
            raise ReleaseError(
                f"The impossible combination {text!r} names {match[1]!r} twice; name all its "
                "values once, separated by commas."
            )
        selection = text.strip()[match.end() : end].strip()
        try:
            product_query(domain, {match[1]: selection})
        except DomainError:
            _refuse_unknown(domain, selection)
            raise
        condition[match[1]] = selection
    return condition


def example_of(domain: Domain, names: Sequence[str] = ()) -> str:
    """A combination as it is typed, of values that there are: of the first two of some attributes.

    names: those to choose from; all if left out
    """
    chosen = [domain[name] for name in names or domain.names][:2]
    return " ".join(f"{attribute.name}={attribute.stored_values()[0]}" for attribute in chosen)


def _refuse_unknown(domain: Domain, text: str) -> None:
    """Raise `DomainError` for a word before an equals sign that is no attribute."""
    for word in re.findall(r"(?:^|\s)([^\s=]+)=", text):
        domain.position(word)


def _are_members(codes: np.ndarray, condition: Mapping[int, np.ndarray]) -> np.ndarray:
    """Whether each record meets a condition: bool[n]; one without attributes is met by all."""
    met = np.ones(len(codes), dtype=bool)
    for attribute, values in condition.items():
        met &= values[codes[:, attribute]]
    return met
