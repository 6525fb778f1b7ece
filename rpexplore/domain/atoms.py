"""Atoms: groups of cells that nobody has to tell apart, of any number of cells.

The values of each attribute lie in groups, and an automaton reads a record's groups, one attribute
after the other: the state it ends in is the record's atom. So a record is in exactly one atom, and
nothing here has a number for every cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rpexplore.common.json_fields import check_keys
from rpexplore.common.numbers import read_only
from rpexplore.domain.domain import Domain
from rpexplore.errors import DomainError

MOST_STATES = 200_000
"""Of the automaton, by one attribute."""
MOST_STEPS = 20_000_000
"""Of the automaton: its states times the groups that each reads."""
MOST_KEYS = 2**62
"""Combinations of groups: each is a whole number of 64 bits."""

_KEYS = ("groups", "steps")
_UNUSABLE = "The atoms of the own counts cannot be used: "


@dataclass(frozen=True, eq=False, repr=False)
class Atoms:
    """Groups of cells, each cell in one.

    groups  for each attribute of the domain the group of every value, int64[size]; groups are
            numbered by their first values
    steps   for each attribute the state that follows each state and group, int64[n_states,
            n_groups]. The first attribute has one state; what follows the last one is the atom.

    Raises `DomainError` for groups or states that are not numbered so, or that nothing leads to.
    """

    domain: Domain
    groups: tuple[np.ndarray, ...]
    steps: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        if not len(self.domain) == len(self.groups) == len(self.steps) > 0:
            raise DomainError(f"{_UNUSABLE}they need groups and steps for each attribute.")
        n_states, n_keys, n_steps = 1, 1, 0
        for attribute, groups, steps in zip(self.domain, self.groups, self.steps, strict=True):
            n_groups = int(groups.max(initial=-1)) + 1
            firsts = np.unique(groups, return_index=True)[1]
            if (
                groups.shape != (attribute.size,)
                or len(firsts) != n_groups
                or np.any(np.diff(firsts) < 0)
            ):
                raise DomainError(
                    f"{_UNUSABLE}the groups of {attribute.name!r} must hold each of its "
                    f"{attribute.size:,} values once, in the order of their first values."
                )
            n_keys, n_steps = n_keys * n_groups, n_steps + n_states * n_groups
            if n_keys >= MOST_KEYS or n_states > MOST_STATES or n_steps > MOST_STEPS:
                raise DomainError(f"{_UNUSABLE}there are too many groups.")
            if steps.shape != (n_states, n_groups):
                raise DomainError(
                    f"{_UNUSABLE}the steps of {attribute.name!r} must be {n_states:,} rows of "
                    f"{n_groups:,}."
                )
            n_states = int(steps.max()) + 1
            # By their number first: a large one would be an array of that length.
            if (
                steps.min() < 0
                or n_states > steps.size
                or not np.bincount(steps.ravel(), minlength=n_states).all()
            ):
                raise DomainError(
                    f"{_UNUSABLE}the steps of {attribute.name!r} must lead to states numbered "
                    "from 0, and to all of them."
                )
        for name in ("groups", "steps"):
            arrays = tuple(read_only(np.asarray(each, np.int64)) for each in getattr(self, name))
            object.__setattr__(self, name, arrays)

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Atoms):
            return NotImplemented
        ours, theirs = (self.groups + self.steps, value.groups + value.steps)
        return self.domain == value.domain and all(map(np.array_equal, ours, theirs))

    def __hash__(self) -> int:
        return hash((self.domain, len(self)))

    def __len__(self) -> int:
        """How many atoms there are."""
        return int(self.steps[-1].max()) + 1

    def __repr__(self) -> str:
        return f"<Atoms: {len(self):,} of {self.domain.n_cells:,} cells>"

    @cached_property
    def n_groups(self) -> list[int]:
        """Of each attribute."""
        return [steps.shape[1] for steps in self.steps]

    def of_records(self, codes: Mapping[int, np.ndarray]) -> np.ndarray:
        """The atom of each record, unsigned [n]; codes: indices of values, by attribute index."""
        # Where an attribute tells nothing apart its codes do not matter; amounts have others.
        groups = [
            np.zeros(len(codes[index]), dtype=np.int64)
            if self.n_groups[index] == 1
            else of_values[codes[index]]
            for index, of_values in enumerate(self.groups)
        ]
        return self.of_groups(groups).astype(np.min_scalar_type(len(self) - 1))

    def of_groups(self, groups: Sequence[np.ndarray]) -> np.ndarray:
        """The atom of each record, int64[n], by its groups of all attributes."""
        state = np.zeros(len(groups[0]), dtype=np.int64)
        for of_attribute, steps in zip(groups, self.steps, strict=True):
            state = steps[state, of_attribute]
        return state

    def of_cells(self) -> np.ndarray:
        """The atom of each cell, the last attribute fastest: for domains of few cells only."""
        state = np.zeros(1, dtype=np.int64)
        for groups, steps in zip(self.groups, self.steps, strict=True):
            state = steps[state][:, groups].ravel()
        return state

    @cached_property
    def examples(self) -> np.ndarray:
        """Of each atom one combination of groups that is in it: int64[n_atoms, n_attributes]."""
        found = np.zeros((1, 0), dtype=np.int64)
        for steps in self.steps:
            _, first = np.unique(steps, return_index=True)
            states, groups = np.divmod(first, steps.shape[1])
            found = np.column_stack([found[states], groups])
        return read_only(found)

    @cached_property
    def n_combinations(self) -> np.ndarray:
        """How many combinations of groups are in each atom, as floats: float64[n_atoms]."""
        count = np.ones(1)
        for steps in self.steps:
            weights = np.repeat(count, steps.shape[1])
            count = np.bincount(steps.ravel(), weights, minlength=int(steps.max()) + 1)
        return read_only(count)

    def at(self, values: Mapping[int, int]) -> tuple["Atoms", np.ndarray]:
        """What is told apart of records with these values of some attributes, by the others alone.

        And the number that each of the new atoms has here, int64[n].
        """
        states, groups, steps = np.zeros(1, dtype=np.int64), [], []
        for index, (of_values, own_steps) in enumerate(zip(self.groups, self.steps, strict=True)):
            own = own_steps[states]
            if index in values:
                own = own[:, [of_values[values[index]]]]
                of_values = np.zeros_like(of_values)
            states, numbers = np.unique(own, return_inverse=True)
            groups.append(of_values)
            steps.append(numbers.reshape(own.shape))
        return Atoms(self.domain, tuple(groups), tuple(steps)), states

    @classmethod
    def of_each_cell(cls, domain: Domain) -> "Atoms":
        """An atom for each cell, the last attribute fastest: for domains of few cells only."""
        sizes, n_states, steps = domain.sizes.tolist(), 1, []
        for size in sizes:
            steps.append(np.arange(n_states * size).reshape(n_states, size))
            n_states *= size
        return cls(domain, tuple(map(np.arange, sizes)), tuple(steps))

    @classmethod
    def of_numbers(cls, domain: Domain, numbers: np.ndarray) -> tuple["Atoms", np.ndarray]:
        """Atoms of the cells that have the same number, and the number of each atom.

        numbers: int64[n_cells], the last attribute fastest
        """
        states, groups, steps = numbers.reshape(1, -1), [], []
        for attribute in domain:
            by_value = states.reshape(len(states), attribute.size, -1)
            of_each = np.moveaxis(by_value, 1, 0).reshape(attribute.size, -1)
            firsts, of_values = first_of_each(of_each)
            rows = by_value[:, firsts].reshape(len(states) * len(firsts), -1)
            first_rows, following = first_of_each(rows)
            groups.append(of_values)
            steps.append(following.reshape(len(states), len(firsts)))
            states = rows[first_rows]
        return cls(domain, tuple(groups), tuple(steps)), states.ravel()

    @classmethod
    def joined(cls, domain: Domain, parts: Sequence["Atoms"]) -> tuple["Atoms", list[np.ndarray]]:
        """What all parts together tell apart, and for each part the atom of it that each lies in.

        domain: of all attributes of the parts, which have them in its order. Raises `DomainError`
        for another order, and for too many atoms.
        """
        states, groups, steps = np.zeros((1, len(parts)), dtype=np.int64), [], []
        for part in parts:
            if part.domain.names != domain.in_order(part.domain.names):
                raise DomainError("they have their attributes in different orders.")
        for attribute in domain:
            has = [attribute.name in part.domain for part in parts]
            places = [part.domain.indices.get(attribute.name, 0) for part in parts]
            own = [
                part.groups[place] if there else np.zeros(attribute.size, dtype=np.int64)
                for part, place, there in zip(parts, places, has, strict=True)
            ]
            firsts, together = first_of_each(np.column_stack(own))
            if len(states) * len(firsts) > MOST_STEPS:
                raise DomainError("they tell too many groups of cells apart together.")
            following = [
                part.steps[place][states[:, index]][:, of_part[firsts]]
                if there
                else np.repeat(states[:, index, None], len(firsts), axis=1)
                for index, (part, place, there, of_part) in enumerate(
                    zip(parts, places, has, own, strict=True)
                )
            ]
            rows = np.stack(following, axis=-1).reshape(-1, len(parts))
            first_rows, numbers = first_of_each(rows)
            groups.append(together)
            steps.append(numbers.reshape(len(states), len(firsts)))
            states = rows[first_rows]
        return cls(domain, tuple(groups), tuple(steps)), list(states.T)

    # ---- as plain values, in a plan's file

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` undoes it: of each group its values, as runs."""
        groups = [
            [_runs(np.flatnonzero(of_values == group)) for group in range(n_groups)]
            for of_values, n_groups in zip(self.groups, self.n_groups, strict=True)
        ]
        return {"groups": groups, "steps": [steps.tolist() for steps in self.steps]}

    @classmethod
    def from_json(cls, domain: Domain, content: Any) -> "Atoms":
        """The atoms of a file; raises `RpexploreError` for what are none."""
        check_keys(content, _KEYS, "the atoms")
        groups, steps = content["groups"], content["steps"]
        if not isinstance(groups, list) or not isinstance(steps, list):
            raise DomainError(f"{_UNUSABLE}groups and steps must be lists.")
        if not len(groups) == len(steps) == len(domain):
            raise DomainError(f"{_UNUSABLE}they need groups and steps for each attribute.")
        return cls(
            domain,
            tuple(map(_groups_of, domain.sizes.tolist(), groups)),
            tuple(map(_steps_of, steps)),
        )


def first_of_each(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row comes first, ascending, and the number of each row among these."""
    _, first, numbers = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[order] = np.arange(len(first))
    return first[order], ranks[numbers.ravel()]


def _runs(values: np.ndarray) -> list[list[int]]:
    """Ascending whole numbers as runs, [first, last] each."""
    starts = np.flatnonzero(np.diff(values, prepend=-2) != 1)
    ends = np.append(starts[1:], len(values)) - 1
    return [list(run) for run in zip(values[starts].tolist(), values[ends].tolist(), strict=True)]


def _groups_of(size: int, stated: Any) -> np.ndarray:
    """The group of each value of an attribute; −1 for values in none, which are refused later."""
    groups = np.full(size, -1, dtype=np.int64)
    for number, group in enumerate(stated if isinstance(stated, list) else [stated]):
        for run in group if isinstance(group, list) and group else [group]:
            match run:
                case [int(first), int(last)] if 0 <= first <= last < size and np.all(
                    groups[first : last + 1] < 0
                ):
                    groups[first : last + 1] = number
                case _:
                    raise DomainError(
                        f"{_UNUSABLE}the values of a group must be runs [first, last] of values "
                        f"from 0 to {size - 1:,}, each in one group, got {run!r}."
                    )
    if np.any(groups < 0):
        raise DomainError(f"{_UNUSABLE}every value must be in a group.")
    return groups


def _steps_of(stated: Any) -> np.ndarray:
    rows = stated if isinstance(stated, list) else []
    if not rows or not all(isinstance(row, list) and len(row) == len(rows[0]) > 0 for row in rows):
        raise DomainError(f"{_UNUSABLE}steps must be rows of one length.")
    if not all(type(step) is int and 0 <= step < MOST_STATES for row in rows for step in row):
        raise DomainError(f"{_UNUSABLE}steps must be whole numbers from 0 on.")
    return np.array(rows, dtype=np.int64)
