"""Linear queries: a list of weighted counts over the cells of some attributes (FFU).

The cells are all combinations of the attributes' values, the last attribute's values changing
fastest. A query is one coefficient for each cell: 1 for the cells it counts, 0 for others, or any
decimal number. Each query has a target, the standard error wanted for its answer.

Queries by conditions may be about any number of cells, those by coefficients about `MOST_CELLS`.
Where these are more than `MAX_CELLS`, what has a coefficient are the *atoms* that all queries
together tell apart.
"""

import math
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from typing import Any

import numpy as np

from rpexplore.common.numbers import read_only, shown, shown_value
from rpexplore.common.text import describe_count, is_text, plural
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.atoms import Atoms, first_of_each
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError, WorkloadError

MAX_CELLS = 1_024
"""That have coefficients of their own, and are not merged."""
MOST_CELLS = 200_000
"""That a list may be about which gives a coefficient for each."""
MAX_ATOMS = 20_000
"""That queries may tell apart where there are more cells."""
MAX_QUERIES = 10_000
MAX_WORK, MAX_ENTRIES = 4_000_000_000, 2_000_000
"""Of a list, as of `work_of`; and counts times cells or atoms, which are planned beyond it, too."""
MOST_GIVEN = 20_000_000
"""Coefficients that a list may give before cells are merged."""
LARGEST_COEFFICIENT, LARGEST_AMOUNT = 1e6, 1e9
"""Of coefficients that are given; and where they are limits of amounts."""
MOST_DECIMALS = 6
SMALLEST_TARGET, LARGEST_TARGET = 1e-9, 1e12

_UNITS = 10**MOST_DECIMALS
_MOST_LISTED = 8  # attributes in an error


@dataclass(frozen=True, eq=False, repr=False)
class QueryList:
    """Queries over the cells of a domain that holds just the attributes they are about.

    coefficients  float64[n_queries, n_cells], read-only: decimals of at most 6 places
    atoms         where there are coefficients for atoms instead: these, and n_cells is their number
    names         one for each query, all different
    targets       wanted standard error of each query's answer, float64[n_queries], read-only

    Raises `WorkloadError` for a domain of more than `MAX_CELLS` cells, for no query or too many,
    for a query that counts no cell, and for coefficients, names or targets that are not usable.

    Example:
        >>> domain = Domain.from_sizes({"sex": 2})
        >>> QueryList(domain, [[1, 1], [0, 1]], ("everybody", "women"), [5, 3]).n_cells
        2
    """

    domain: Domain
    coefficients: np.ndarray
    names: tuple[str, ...]
    targets: np.ndarray
    atoms: Atoms | None = None

    def __post_init__(self) -> None:
        n_cells = self._checked_n_columns()
        coefficients = _numbers(self.coefficients, "The coefficients")
        if coefficients.ndim != 2 or coefficients.shape[1] != n_cells:
            raise WorkloadError(
                "The coefficients must be a matrix with one row for each count and one column for "
                f"each of the {n_cells:,} cells, got the shape {coefficients.shape}."
            )
        check_list_size(len(coefficients), n_cells)
        names = _checked_names(self.names, len(coefficients))
        with np.errstate(invalid="ignore"):
            most = LARGEST_AMOUNT if self.domain.amounts else LARGEST_COEFFICIENT
            usable = np.abs(coefficients) <= most  # NaN is not
            usable &= np.rint(coefficients * _UNITS) / _UNITS == coefficients
        if not usable.all():
            query, cell = np.argwhere(~usable)[0].tolist()
            raise WorkloadError(
                f"The coefficients of count {shown(names[query])!r} must be numbers within "
                f"±{most:,.0f} with at most {MOST_DECIMALS} decimals, got "
                f"{coefficients[query, cell]!s} for cell {cell + 1:,}; round it."
            )
        empty = np.flatnonzero(~coefficients.any(axis=1))
        if len(empty):
            raise WorkloadError(
                f"The count {shown(names[empty[0]])!r} counts no cell; remove it, or mend its "
                "condition."
            )
        targets = _numbers(self.targets, "The targets")
        if targets.shape != (len(names),):
            raise WorkloadError(
                f"There are {len(names):,} counts, so there must be as many targets, got the "
                f"shape {targets.shape}; give each count the standard error it is wanted with."
            )
        usable = (targets >= SMALLEST_TARGET) & (targets <= LARGEST_TARGET)  # NaN is not
        if not usable.all():
            query = int(np.argmin(usable))
            raise WorkloadError(
                f"The target of count {shown(names[query])!r} must be a standard error from "
                f"{SMALLEST_TARGET:g} to {LARGEST_TARGET:g}, got {targets[query]!s}."
            )
        object.__setattr__(self, "coefficients", read_only(coefficients))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "targets", read_only(targets))

    @classmethod
    def of_cells(
        cls,
        domain: Domain,
        coefficients: np.ndarray,
        names: Sequence[str],
        targets: Sequence[float] | np.ndarray,
    ) -> "QueryList":
        """Queries by a coefficient for each of up to `MOST_CELLS` cells: [n_queries, n_cells].

        Where there are more than `MAX_CELLS`, those that all queries count alike are one atom.
        """
        names, targets = tuple(names), np.asarray(targets)
        if checked_n_cells(domain, MOST_CELLS) <= MAX_CELLS:
            return cls(domain, coefficients, names, targets)
        coefficients = _numbers(coefficients, "The coefficients")
        if coefficients.ndim != 2 or coefficients.shape[1] != domain.n_cells:
            return cls(domain, coefficients, names, targets)  # which refuses
        firsts, numbers = first_of_each(coefficients.T)
        if len(firsts) > MAX_ATOMS:
            raise WorkloadError(_too_many_atoms(len(firsts)))
        try:
            atoms, number = Atoms.of_numbers(domain, numbers)
        except DomainError:
            raise WorkloadError(_too_many_atoms(None)) from None
        return cls(domain, coefficients[:, firsts[number]], names, targets, atoms)

    def _checked_n_columns(self) -> int:
        """How many cells, or atoms, there must be coefficients for."""
        if self.atoms is None:
            return checked_n_cells(self.domain)
        check_attributes(self.domain)
        if self.atoms.domain != self.domain:
            raise WorkloadError("The atoms must be of the attributes that the counts are about.")
        if len(self.atoms) > MAX_ATOMS:
            raise WorkloadError(_too_many_atoms(len(self.atoms)))
        return len(self.atoms)

    def __eq__(self, value: object) -> bool:
        """Whether they are the same queries, with the same names and targets, in one order."""
        if not isinstance(value, QueryList):
            return NotImplemented
        return (
            (self.domain, self.names, self.atoms) == (value.domain, value.names, value.atoms)
            and np.array_equal(self.targets, value.targets)
            and np.array_equal(self.coefficients, value.coefficients)
        )

    def __hash__(self) -> int:
        return hash((self.domain, self.names))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        noun = "cells" if self.atoms is None else "groups of cells"
        return f"<QueryList of {len(self):,} queries over {self.n_cells:,} {noun}>"

    @property
    def n_cells(self) -> int:
        return self.coefficients.shape[1]

    @property
    def cell_coefficients(self) -> np.ndarray:
        """A coefficient for each cell, float64[n_queries, n_cells]; of at most `MOST_CELLS`."""
        checked_n_cells(self.domain, MOST_CELLS)
        if self.atoms is None:
            return self.coefficients
        return self.coefficients[:, self.atoms.of_cells()]

    @cached_property
    def cell_labels(self) -> tuple[str, ...]:
        """The title of each cell: the labels of its values, "F, 18 to 24"; of atoms a condition."""
        if self.atoms is None:
            return cell_labels(self.domain)
        from rpexplore.workload.conditions import labels_of_atoms  # which knows of lists itself

        return tuple(labels_of_atoms(self.atoms))

    @property
    def cells_text(self) -> str:
        """What the queries are about, for a sentence: "12 cells", "8 groups of 2,400 cells"."""
        if self.atoms is None:
            return plural(self.n_cells, "cell")
        return f"{plural(self.n_cells, 'group')} of {describe_count(self.domain.n_cells)} cells"

    @cached_property
    def steps(self) -> int:
        """What counts of cells are multiplied by: the ranges of amounts in their smallest steps.

        Where there are amounts and weights, over the unit of their products.
        """
        values = (self.domain.attributes[index].values for index in self.domain.amounts)
        steps = math.prod(own.range_in_steps for own in values if isinstance(own, Amounts))
        return steps // self.domain.product_unit(self.domain.amounts)

    def adds_up_amounts(self, query: int) -> bool:
        """Whether a query adds up amounts or weights, and does not count records alone."""
        return self._adds_up(query, self.domain.amounts)

    def unit(self, query: int) -> str:
        """What the answer to a query is a number of: "EUR, sum of income"; "" for records."""
        is_weighted, (name, amounts) = self.is_weighted(query), self.summed(query)
        if amounts is None:
            return "weighted count" if is_weighted else ""
        what = f"{'weighted ' if is_weighted else ''}sum of {name}"
        return f"{amounts.unit}, {what}" if amounts.unit else what

    def summed(self, query: int) -> tuple[str, Amounts | None]:
        """The attribute whose amounts a query adds up, and these; "" and None where it counts."""
        for index in self.domain.amounts:
            name, values = self.domain.names[index], self.domain.attributes[index].values
            if not isinstance(values, Amounts) or values.are_weights:
                continue
            if self._adds_up(query, [index]):
                return name, values
        return "", None

    def is_weighted(self, query: int) -> bool:
        """Whether a query adds up weights, or amounts times weights."""
        return self._adds_up(query, self.domain.weights)

    def adds_up_weights(self, name: str) -> bool:
        """Whether every query adds up the weights of that name, or amounts times these."""
        weights = [index for index in self.domain.weights if self.domain.names[index] == name]
        return all(self._adds_up(query, weights) for query in range(len(self)))

    def _adds_up(self, query: int, amounts: Sequence[int]) -> bool:
        row = self.coefficients[query]
        for index in amounts:
            if self.atoms is None:
                values = np.unravel_index(np.arange(len(row)), self.domain.sizes)[index]
            elif self.atoms.n_groups[index] > 1:
                values = self.atoms.examples[:, index]
            else:
                continue
            if set(row[values == 0]) != set(row[values == 1]):
                return True
        return False

    @cached_property
    def counted_cells(self) -> np.ndarray:
        """Whether any query touches the cell, bool[n_cells], read-only."""
        return read_only(np.any(self.coefficients != 0, axis=0))

    @cached_property
    def integers(self) -> np.ndarray:
        """The coefficients times each query's denominator, exact: int64[n_queries, n_cells]."""
        return read_only(_in_units(self.coefficients) // (_UNITS // self.denominators)[:, None])

    @cached_property
    def denominators(self) -> np.ndarray:
        """The power of ten that makes each query's coefficients whole: int64[n_queries]."""
        units = _in_units(self.coefficients)
        denominators = np.full(len(units), _UNITS)
        for decimals in reversed(range(MOST_DECIMALS)):
            whole = (units % 10 ** (MOST_DECIMALS - decimals) == 0).all(axis=1)
            denominators[whole] = 10**decimals
        return read_only(denominators)


def cell_labels(domain: Domain) -> tuple[str, ...]:
    """The title of each cell of a domain: the labels of its values, "F, 18 to 24"."""
    labels = (attribute.labels() for attribute in domain)
    return tuple(", ".join(values) for values in product(*labels))


def check_attributes(domain: Domain) -> None:
    """Raise `WorkloadError` for a domain without attributes, or with amounts of several."""
    if not isinstance(domain, Domain) or not len(domain):
        raise WorkloadError("Own counts need a domain of at least one attribute; choose some.")
    amounts = [index for index in domain.amounts if index not in domain.weights]
    for found, noun in ((domain.weights, "weights"), (amounts, "amounts")):
        if len(found) > 1:
            one, other = (domain.names[index] for index in found[:2])
            raise WorkloadError(
                f"A list of own counts can add up one attribute of {noun}, got {one!r} and "
                f"{other!r}; leave one of them to tables, or to a plan of its own."
            )


def _too_many_atoms(n_atoms: int | None) -> str:
    got = "" if n_atoms is None else f", got {n_atoms:,}"
    return (
        f"Lists of own counts can tell at most {MAX_ATOMS:,} groups of cells apart{got}; plan "
        "fewer counts, or ask for tables instead."
    )


def checked_n_cells(domain: Domain, most: int = MAX_CELLS) -> int:
    """Number of cells of a domain; `WorkloadError` if it has too many, or no attribute."""
    check_attributes(domain)
    n_cells = math.prod(domain.sizes.tolist())
    if n_cells > most:
        few = [f"{each.name} ({each.size:,})" for each in domain.attributes[:_MOST_LISTED]]
        sizes = " × ".join(few) + (" × …" if len(domain) > _MOST_LISTED else "")
        raise WorkloadError(
            f"Lists of own counts with coefficients can be about at most {most:,} cells, got "
            f"{sizes} = {describe_count(n_cells)}; leave an attribute out, group its values, write "
            "conditions, which can be about any number of cells, or ask for tables instead."
        )
    return n_cells


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or else the first of "name (2)", "name (3)", … that is not taken."""
    numbered = (f"{name} ({number})" for number in count(2))
    return name if name not in taken else next(text for text in numbered if text not in taken)


def work_of(n_queries: int, n_cells: int) -> int:
    """k² (m + n) of m queries over n cells or atoms, with k, the most that is measured.

    What a step of the search takes, but for a factor (docs/mathematics.md §8).
    """
    return min(n_queries, n_cells) ** 2 * (n_queries + n_cells)


def _takes_too_long(n_queries: int, n_cells: int) -> bool:
    return work_of(n_queries, n_cells) > MAX_WORK and n_queries * n_cells > MAX_ENTRIES


def most_atoms(n_queries: int) -> int:
    """How many atoms so many queries may tell apart."""
    sizes = range(1, MAX_ATOMS + 1)
    return max(bisect_left(sizes, True, key=lambda n: _takes_too_long(n_queries, n)), 1)


def check_list_size(n_queries: int, n_cells: int, *, given: bool = False) -> None:
    """Raise `WorkloadError` for a list of queries that is empty or too large.

    given: of coefficients of cells that are to be merged, which are only held
    """
    if n_queries < 1:
        raise WorkloadError("A list of own counts needs at least one, got none.")
    for size, most, noun in (
        (n_queries, MAX_QUERIES, "own counts"),
        (n_queries * n_cells if given else 0, MOST_GIVEN, "coefficients (counts times cells)"),
    ):
        if size > most:
            got = f"{size:,}" if size < 10**15 else describe_count(size)
            raise WorkloadError(
                f"A list can have at most {most:,} {noun}, got {got}; plan fewer counts, or "
                "group the values of the attributes."
            )
    if not given and _takes_too_long(n_queries, n_cells):
        fewer = bisect_left(range(1, n_queries), True, key=lambda n: _takes_too_long(n, n_cells))
        raise WorkloadError(
            f"A list of {n_queries:,} own counts can be over at most {most_atoms(n_queries):,} "
            f"cells or groups of cells, as planning takes too long beyond, got {n_cells:,}; plan "
            f"at most {fewer:,} counts over so many, or group the values of the attributes."
        )


def _numbers(given: Any, what: str) -> np.ndarray:
    """A copy as float64, with 0 for −0."""
    try:
        numbers = np.asarray(given)
    except ValueError:  # ragged rows
        numbers = np.empty(0, dtype=object)
    if numbers.dtype.kind not in "iuf":
        raise WorkloadError(f"{what} must be numbers in rows of one length, got something else.")
    return numbers.astype(np.float64) + 0.0


def _in_units(coefficients: np.ndarray) -> np.ndarray:
    """Coefficients in millionths, exact for what a `QueryList` accepts: int64, same shape."""
    return np.rint(coefficients * _UNITS).astype(np.int64)


def _checked_names(names: Iterable[str], n_queries: int) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise WorkloadError(f"The names must be a list of texts, got {shown_value(names)}.")
    if len(names) != n_queries:
        raise WorkloadError(
            f"There are {n_queries:,} counts but {len(names):,} names; give each count one name."
        )
    for number, name in enumerate(names, start=1):
        if not is_text(name) or not name.strip():
            raise WorkloadError(
                f"The name of count {number} must be a text that is not empty, got "
                f"{shown_value(name)}."
            )
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(
            f"The name {shown(repeated)!r} stands for two counts; give each its own name."
        )
    return tuple(names)


def terms_from_row(row: np.ndarray) -> list[list[int | float]]:
    """Runs of cells with one coefficient that is not 0, as files have them.

    Each is [first, last, coefficient], cells counted from 0 and both ends included.
    """
    starts = np.flatnonzero(np.diff(row, prepend=math.nan) != 0)
    ends = np.append(starts[1:], len(row)) - 1
    runs = zip(starts.tolist(), ends.tolist(), row[starts].tolist(), strict=True)
    return [
        [first, last, int(value) if value.is_integer() else value]
        for first, last, value in runs
        if value
    ]


def row_from_terms(terms: Any, n_cells: int, name: Any) -> np.ndarray:
    """The coefficients of the terms of a file, float64[n_cells]; `name` is the query's."""
    row, after = np.zeros(n_cells), 0
    for term in terms if isinstance(terms, list) else [terms]:
        match term:
            case [int(first), int(last), int() | float() as value] if (
                bool not in map(type, term) and after <= first <= last < n_cells
            ):
                # Beyond what floats hold is refused as too large.
                row[first : last + 1] = value if abs(value) <= LARGEST_AMOUNT else math.nan
                after = last + 1
            case _:
                raise WorkloadError(
                    f"The terms of count {shown_value(name)} must be [first cell, last cell, "
                    f"coefficient], with ascending cells from 0 to {n_cells - 1:,}, got "
                    f"{shown_value(term)}."
                )
    return row
