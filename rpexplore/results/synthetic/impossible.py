"""Combinations of values that no record may have, and records as rows of zeros and ones."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.domain.structural_zeros import StructuralZeros
from rpexplore.domain.values import (
    ImpossibleCombination,
    Selection,
    combination_from_text,
    example_of,
    product_query,
)
from rpexplore.errors import DomainError, ReleaseError

# ---- Combinations of values that no record may have, as a codebook or common knowledge states
# them.


_MOST_CELLS = 10_000  # of a table that is searched for impossible cells, each a condition

Never = Mapping[str, Selection]
"""A product condition, as the `where` of an answer: {"age": "0..14", "sex": "F"}."""


def conditions_of_records(
    domain: Domain,
    attributes: Sequence[int],
    never: Sequence[Never | str],
    *,
    ignore_codebook: bool,
) -> tuple[list[Never], list[dict[str, str]]]:
    """All conditions that no record may meet, and those of the codebook that cannot be held.

    The codebook's come first. Records have none of the attributes that some of them name.

    Args:
        attributes: Indices of the records' attributes.
        never: What is asked for beside the codebook.
        ignore_codebook: Whether what it states is left aside.
    """
    stated = () if ignore_codebook else domain.impossible
    names = {domain.names[index] for index in attributes}
    held, others = of_names(stated, names)
    conditions: list[Never] = [dict(combination.selections) for combination in held]
    at_levels, left_out = _at_levels(domain, attributes, others)
    conditions += at_levels
    for one in never:
        condition = combination_from_text(domain, one) if isinstance(one, str) else one
        if condition not in conditions:
            conditions.append(condition)
    return conditions, [dict(combination.selections) for combination in left_out]


def _at_levels(
    domain: Domain, attributes: Sequence[int], combinations: Sequence[ImpossibleCombination]
) -> tuple[list[Never], list[ImpossibleCombination]]:
    """What combinations rule out of records that have a level of an attribute in its place.

    That is groups of which no value is possible, also by several combinations together. Returns
    conditions for them, and the combinations that the records tell nothing of.
    """
    own = {int(domain.columns[index]): index for index in attributes}
    tables: dict[AttributeIndices, None] = {}
    left_out: list[ImpossibleCombination] = []
    for one in combinations:
        columns = domain.positions(one.names)
        cells = math.prod(int(domain.sizes[own.get(column, column)]) for column in columns)
        if all(column in own for column in columns) and cells <= _MOST_CELLS:
            tables[tuple(sorted(own[column] for column in columns))] = None
        else:
            left_out.append(one)
    together = tuple(sorted({index for table in tables for index in table}))
    if math.prod(domain.sizes[list(together)].tolist()) <= _MOST_CELLS:
        tables = {together: None} if together else {}
    conditions: list[Never] = []
    for table in tables:
        possible = domain.structural_zeros.possible(table)
        if possible is None:
            continue
        values = [domain.attributes[index].stored_values() for index in table]
        names = [domain.names[index] for index in table]
        # One condition for all cells that differ by the last attribute alone.
        for cell in np.ndindex(possible.shape[:-1]):
            if len(ruled_out := np.flatnonzero(~possible[cell])):
                chosen = [[own[place]] for own, place in zip(values, cell, strict=False)]
                chosen.append([values[-1][place] for place in ruled_out])
                conditions.append(
                    {
                        name: listed
                        for name, listed, own in zip(names, chosen, values, strict=True)
                        if len(listed) < len(own)
                    }
                )
    return conditions, left_out


def condition_texts(condition: Never) -> dict[str, str]:
    """A condition whose values are one text each, as they are typed."""
    return {
        name: str(selection) if isinstance(selection, str | int) else ",".join(map(str, selection))
        for name, selection in condition.items()
    }


def of_names(
    combinations: Iterable[ImpossibleCombination], names: Container[str]
) -> tuple[list[ImpossibleCombination], list[ImpossibleCombination]]:
    """The combinations of just these attributes, and the others."""
    parts: tuple[list[ImpossibleCombination], list[ImpossibleCombination]] = ([], [])
    for combination in combinations:
        parts[not all(name in names for name in combination.names)].append(combination)
    return parts


class Impossible(StructuralZeros):
    """Product conditions that no record may meet, by the positions of the records' attributes."""

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
        """Some record that is possible, int64[d], found by search.

        Raises `ReleaseError` if there is none, or none is found in time.
        """
        try:
            record = super().possible_record()
        except DomainError as error:
            raise ReleaseError(str(error)) from None
        if record is None:
            raise ReleaseError(
                "No record was found that is in none of the impossible combinations, in so many "
                "attempts as there is time for; state fewer of them."
            )
        return record


def _are_members(codes: np.ndarray, condition: Mapping[int, np.ndarray]) -> np.ndarray:
    """Whether each record meets a condition: bool[n]; one without attributes is met by all."""
    met = np.ones(len(codes), dtype=bool)
    for attribute, values in condition.items():
        met &= values[codes[:, attribute]]
    return met


# ---- Records as rows of zeros and ones: products with them are sums over values that records
# have.


_DENSE = 30  # values an attribute up to which products with all zeros are faster than without


class Indicators:
    """The matrix with a one for the value of each attribute of each record: [n, all values].

    codes    int16[n, d]
    offsets  int64[d + 1]: where each attribute's values begin among all
    """

    def __init__(self, codes: np.ndarray, offsets: np.ndarray) -> None:
        n, d = codes.shape
        self._offsets, self._rows, n_values = offsets, np.arange(n), int(offsets[-1])
        self._columns = codes + offsets[:-1]
        self._is_dense = n_values <= _DENSE * d
        self._matrix: Any
        if self._is_dense:
            self._matrix = np.zeros((n, n_values), dtype=np.float32)
            self._matrix[self._rows[:, np.newaxis], self._columns] = 1
        else:
            self._columns = self._columns.astype(np.int32)
            starts = np.arange(0, n * d + 1, d, dtype=np.int32)
            ones = np.ones(n * d, dtype=np.float32)
            parts = (ones, self._columns.reshape(-1), starts)
            self._matrix = scipy.sparse.csr_array(parts, shape=(n, n_values), copy=False)

    def times(self, matrix: np.ndarray) -> np.ndarray:
        """Sums of the rows of a matrix that belong to a record's values: float32[n, columns]."""
        return self._matrix @ np.ascontiguousarray(matrix)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the records that have each value: float32[all values, columns]."""
        return self._matrix.T @ values

    def pair_counts(self) -> np.ndarray:
        """How many records have each two values: float32[all values, all values]."""
        counts = self._matrix.T @ self._matrix
        return counts if self._is_dense else counts.toarray()

    def change(self, attribute: int, values: np.ndarray) -> None:
        """Give the records other values of an attribute: int64[n]."""
        columns = values + self._offsets[attribute]
        if self._is_dense:
            self._matrix[self._rows, self._columns[:, attribute]] = 0
            self._matrix[self._rows, columns] = 1
        self._columns[:, attribute] = columns
