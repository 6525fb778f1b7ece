"""The atoms of conditions: what a list of conditions tells apart, of any number of cells.

Values of an attribute that no comparison tells apart become one group. Over the groups every
condition is a decision diagram: a node for an attribute, with what is left of the condition for
each of its groups. Nodes that are alike are one, so that two conditions are the same exactly where
their nodes are. All conditions are then read together, an attribute after the other: what is left
of each of them is a state, and states that are the same are one. No array has a number for each
cell, and nothing is approximated.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.common.text import joined
from rpexplore.domain.atoms import MOST_KEYS, MOST_STATES, MOST_STEPS, Atoms, first_of_each
from rpexplore.domain.domain import Domain
from rpexplore.domain.levels import AT
from rpexplore.errors import WorkloadError
from rpexplore.workload.conditions import condition_holds
from rpexplore.workload.query_list import MAX_ATOMS, most_atoms

_NEVER, _ALWAYS = 0, 1  # nodes
_MOST_BRANCHES = 4_000_000  # of all nodes
_AT_ONCE = 1 << 20  # conditions times what they are looked at for together
_MOST_LEFT = 50_000_000  # conditions times states, of one attribute
_MOST_NAMED = 6  # attributes in an error


def family_of(domain: Domain, name: str) -> str:
    """What a count's name says it was written as: "adults by sex" of "adults, sex = Female".

    The name itself where no attribute stands in it as counts by attributes are called.
    """
    title, *rest = re.split(r", ([^,=]+) = ", name)  # as `counts_by` names them
    by = rest[::2]
    if not by or not all(one in domain or one.partition(AT)[0] in domain for one in by):
        return name
    return f"{title} by {', '.join(by)}"


class _TooManyError(Exception):
    """The conditions tell too much apart."""


class ConditionAtoms:
    """Conditions that are added one by one, and then the atoms that they tell apart."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._groups = [np.zeros(attribute.size, dtype=np.int64) for attribute in domain]
        self._texts: list[str | tuple[int, int]] = []

    def add(self, text: str) -> None:
        """Add a condition; `WorkloadError` naming the character that cannot be used."""
        condition_holds(self._domain, text, self._split, _Read())
        self._texts.append(text)

    def add_values(self, index: int) -> None:
        """Add a condition for each value of an attribute, behind all others."""
        self._groups[index] = np.arange(self._domain.attributes[index].size)
        self._texts += [(index, value) for value in range(self._domain.attributes[index].size)]

    def _split(self, index: int, values: np.ndarray) -> "_Read":
        """Tell apart the values that compare otherwise."""
        self._groups[index] = first_of_each(2 * self._groups[index] + values)[1]
        return _Read()

    def made(self, names: Sequence[str]) -> tuple[Atoms, np.ndarray]:
        """The atoms, and whether each condition holds in each: bool[n_conditions, n_atoms].

        names: what the counts of the conditions are called, those of `add_values` aside. Raises
        `WorkloadError` for too many atoms, naming the count at which they become too many.
        """
        diagrams = _Diagrams(self._domain, self._groups)
        if math.prod(diagrams.n_groups) >= MOST_KEYS:
            raise WorkloadError(
                "The conditions of a list can be about at most 2^62 combinations of the values "
                f"that they tell apart, got more: {self._split_text()}. Name fewer attributes, or "
                "fewer values of them, in one list."
            )
        roots: list[int] = []
        try:
            roots += (diagrams.root(text) for text in self._texts)
            steps, holds = diagrams.joined(roots, most_atoms(len(names)))
        except _TooManyError:
            raise self._refusal(diagrams, names) from None
        # Comparisons may tell apart what no condition does: age < 18 | age >= 18. Of groups that
        # lead to the same states the first one stands for all; states keep their numbers.
        groups = list(self._groups)
        for index, of_attribute in enumerate(steps):
            firsts, together = first_of_each(of_attribute.T)
            groups[index] = together[groups[index]]
            steps[index] = of_attribute[:, firsts]
        return Atoms(self._domain, tuple(groups), tuple(steps)), holds

    def _refusal(self, diagrams: "_Diagrams", names: Sequence[str]) -> WorkloadError:
        """The error that names the first count with which the list tells too much apart."""
        few, many, is_reached = 0, len(self._texts), False
        while many - few > 1:
            # From below, as long lists take long and few counts may be enough.
            middle = (few + many) // 2 if is_reached else min(2 * few + 1, many - 1)
            try:
                roots = [diagrams.root(text) for text in self._texts[:middle]]
                diagrams.joined(roots, most_atoms(min(middle, len(names))))
                few = middle
            except _TooManyError:
                many, is_reached = middle, True
        many = min(many, len(names))
        fewer = ""
        if (most := most_atoms(many)) < MAX_ATOMS:
            fewer = f", and {many:,} counts at most {most:,}, as planning takes too long beyond"
        behind = f"with the {few:,} before it, " if few else ""
        return WorkloadError(
            f"Lists of own counts can tell at most {MAX_ATOMS:,} groups of cells apart{fewer}; "
            f"{behind}the count {shown(names[many - 1])!r} tells more apart. "
            f"{self._most_split(names)}The values that all conditions tell apart: "
            f"{self._split_text()}. Leave such counts out, let conditions "
            "share their limits, or ask for tables instead."
        )

    def _most_split(self, names: Sequence[str]) -> str:
        """What by itself splits values most, as a sentence; "" if nothing that has a name does.

        A condition, or all those that one was written for by attributes.
        """
        families: dict[str, list[str]] = {}
        for text, name in zip(self._texts, names, strict=False):
            if isinstance(text, str):
                families.setdefault(family_of(self._domain, name), []).append(text)
        most, which = 1, ""
        for family, texts in families.items():
            together = ConditionAtoms(self._domain)
            for text in texts:
                together.add(text)
            n = math.prod(int(groups.max()) + 1 for groups in together._groups)
            if n > most:
                most, which = n, family
        if not which:
            return ""
        verb = "The condition of {} splits" if len(families[which]) == 1 else "The counts {} split"
        return f"{verb.format(repr(shown(which)))} most, into {most:,}. "

    def _split_text(self) -> str:
        """The attributes with most groups, and how many they have."""
        split = [
            (int(groups.max()) + 1, attribute.name)
            for attribute, groups in zip(self._domain, self._groups, strict=True)
        ]
        most = [f"{name} ({n:,})" for n, name in sorted(split, key=lambda one: -one[0])]
        more = [f"{len(most) - _MOST_NAMED:,} more"] if len(most) > _MOST_NAMED else []
        return joined([*most[:_MOST_NAMED], *more])


@dataclass(frozen=True)
class _Read:
    """Where a condition holds, when that is not asked yet."""

    def __and__(self, other: "_Read") -> "_Read":
        return self

    __or__ = __and__

    def __invert__(self) -> "_Read":
        return self


class _Diagrams:
    """Decision diagrams over groups of values, reduced: nodes by their number.

    A node is an attribute's index, and a node for each of its groups, not all of them the same.
    """

    def __init__(self, domain: Domain, groups: Sequence[np.ndarray]) -> None:
        self._domain = domain
        self._firsts = [np.unique(each, return_index=True)[1] for each in groups]
        self.n_groups = [len(firsts) for firsts in self._firsts]
        end = len(self.n_groups)
        self._attributes: list[int] = [end, end]
        self._branches: list[tuple[int, ...]] = [(), ()]
        self._n_branches = 0
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._and: dict[tuple[int, int], int] = {}
        self._not: dict[int, int] = {_NEVER: _ALWAYS, _ALWAYS: _NEVER}

    def root(self, text: str | tuple[int, int]) -> int:
        """The node of a condition; of an attribute, by its index, and one of its values."""
        if not isinstance(text, str):
            index, value = text
            is_value = np.arange(self._domain.attributes[index].size) == value
            return self._compared(index, is_value).node
        where = condition_holds(self._domain, text, self._compared, _Holds(self, _ALWAYS))
        return where.node

    def _compared(self, index: int, values: np.ndarray) -> "_Holds":
        return _Holds(self, self._node(index, tuple(values[self._firsts[index]].astype(int))))

    def _node(self, index: int, branches: tuple[int, ...]) -> int:
        if len(set(branches)) == 1:
            return int(branches[0])
        branches = tuple(map(int, branches))
        number = self._numbers.setdefault((index, branches), len(self._branches))
        if number == len(self._branches):
            self._n_branches += len(branches)
            if self._n_branches > _MOST_BRANCHES:
                raise _TooManyError
            self._attributes.append(index)
            self._branches.append(branches)
        return number

    def both(self, left: int, right: int) -> int:
        """The node that holds where both do."""
        if left == right or _ALWAYS in (left, right) or _NEVER in (left, right):
            return max(left, right) if min(left, right) == _ALWAYS else min(left, right)
        pair = (min(left, right), max(left, right))
        if pair not in self._and:
            index = min(self._attributes[left], self._attributes[right])
            branches = (self._branches_at(node, index) for node in pair)
            self._and[pair] = self._node(
                index, tuple(self.both(*each) for each in zip(*branches, strict=True))
            )
        return self._and[pair]

    def none(self, node: int) -> int:
        """The node that holds where this one does not."""
        if node not in self._not:
            branches = tuple(map(self.none, self._branches[node]))
            self._not[node] = self._node(self._attributes[node], branches)
        return self._not[node]

    def _branches_at(self, node: int, index: int) -> tuple[int, ...]:
        is_here = self._attributes[node] == index
        return self._branches[node] if is_here else (node,) * self.n_groups[index]

    def joined(self, roots: Sequence[int], most_atoms: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The steps of the atoms of all roots, and whether each root holds: bool[·, n_atoms]."""
        distinct, place_of = np.unique(np.array(roots, dtype=np.int64), return_inverse=True)
        states, steps, n_steps = distinct[None].astype(np.int32), [], 0
        last = len(self.n_groups) - 1
        for index, n_groups in enumerate(self.n_groups):
            n_steps += len(states) * n_groups
            if n_steps > MOST_STEPS:
                raise _TooManyError
            following: dict[bytes, int] = {}
            parts = []
            size = max(1, _AT_ONCE // states.shape[1])
            for start in range(0, len(states) * n_groups, size):
                pairs = np.arange(start, min(start + size, len(states) * n_groups))
                before, groups = np.divmod(pairs, n_groups)
                nodes, place = np.unique(states[before], return_inverse=True)
                branches = np.array(
                    [self._branches_at(node, index) for node in nodes.tolist()], dtype=np.int32
                )
                # What is left of each condition, as one row of bytes.
                left = branches[place.reshape(len(pairs), -1), groups[:, None]]
                rows = left.view(np.dtype((np.void, left.itemsize * left.shape[1]))).ravel()
                some, first, of_rows = np.unique(rows, return_index=True, return_inverse=True)
                numbers = np.empty(len(some), dtype=np.int64)
                for which in np.argsort(first).tolist():
                    numbers[which] = following.setdefault(some[which].tobytes(), len(following))
                most = min(MOST_STATES, _MOST_LEFT // left.shape[1])
                # What the last attribute leads to are the atoms.
                if len(following) > (min(most, most_atoms) if index == last else most):
                    raise _TooManyError
                parts.append(numbers[of_rows.ravel()])
            steps.append(np.concatenate(parts).reshape(-1, n_groups))
            states = np.frombuffer(b"".join(following), dtype=np.int32).reshape(len(following), -1)
        return steps, (states == _ALWAYS).T[place_of.ravel()]


@dataclass(frozen=True)
class _Holds:
    """Where a condition holds, as a node."""

    diagrams: _Diagrams
    node: int

    def __and__(self, other: "_Holds") -> "_Holds":
        return _Holds(self.diagrams, self.diagrams.both(self.node, other.node))

    def __or__(self, other: "_Holds") -> "_Holds":
        return ~(~self & ~other)

    def __invert__(self) -> "_Holds":
        return _Holds(self.diagrams, self.diagrams.none(self.node))
