"""QueryMatrix: the matrix W of a query basis for one attribute, as an operator (RP+ §7).

The rows of W are the questions, its columns the attribute's values. Only own questions are held as
a matrix: every other basis computes with what it is made of, so that all 500,500 ranges of 1,000
values cost little more than the values themselves.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from rpexplore.domain.attribute import LEVELS, Attribute
from rpexplore.workload.bases import Basis, Hierarchy, Identity, Prefix, Windows
from rpexplore.workload.custom_basis import CustomBasis


class _Operator(ABC):
    """W without the names of its rows. Arrays as in `QueryMatrix`."""

    n_values: int
    n_rows: int

    @cached_property
    def gram(self) -> np.ndarray:
        gram = self.weighted_gram(np.ones(self.n_rows))
        gram.setflags(write=False)
        return gram

    @abstractmethod
    def weighted_gram(self, weights: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def of(self, x: np.ndarray, axis: int) -> np.ndarray: ...

    @abstractmethod
    def row(self, r: int) -> np.ndarray: ...


class _SingleValues(_Operator):
    """The identity."""

    def __init__(self, n_values: int) -> None:
        self.n_values = self.n_rows = n_values

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        return np.diag(weights)

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        return np.diag(matrix).copy()

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        return x

    def row(self, r: int) -> np.ndarray:
        row = np.zeros(self.n_values)
        row[r] = 1
        return row


class _Intervals(_Operator):
    """Question r is the sum of the values first[r] … last[r]; no two questions are the same."""

    def __init__(self, first: np.ndarray, last: np.ndarray, n_values: int) -> None:
        self.first, self.last = first, last  # int64[n_rows] each
        self.n_values, self.n_rows = n_values, len(first)

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        n = self.n_values
        # Entry (i, j), i ≤ j, is the weight of all questions from at most i to at least j.
        of_pair = np.zeros((n, n))
        of_pair[self.first, self.last] = weights
        upper = np.triu(of_pair.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1])
        return upper + np.triu(upper, 1).T

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        sums = np.zeros((self.n_values + 1, self.n_values + 1))
        sums[1:, 1:] = matrix.cumsum(axis=0).cumsum(axis=1)
        before, upto = self.first, self.last + 1
        squares = np.diag(sums)
        return squares[upto] + squares[before] - 2 * sums[before, upto]

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        start = np.zeros_like(x.take([0], axis))
        sums = np.concatenate([start, x.cumsum(axis)], axis)
        return sums.take(self.last + 1, axis) - sums.take(self.first, axis)

    def row(self, r: int) -> np.ndarray:
        row = np.zeros(self.n_values)
        row[self.first[r] : self.last[r] + 1] = 1
        return row


class _Matrix(_Operator):
    """A matrix, dense or sparse."""

    def __init__(self, matrix: np.ndarray | sparse.csr_array, n_rows: int, n_values: int) -> None:
        self._matrix = matrix
        self.n_rows, self.n_values = n_rows, n_values

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        return _dense(self._matrix.T @ (self._matrix * weights[:, None]))

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        return np.asarray((self._matrix * (self._matrix @ matrix)).sum(axis=1))

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        first = np.moveaxis(x, axis, 0)
        answers = self._matrix @ first.reshape(self.n_values, -1)
        return np.moveaxis(answers.reshape(self.n_rows, *first.shape[1:]), 0, axis)

    def row(self, r: int) -> np.ndarray:
        return _dense(self._matrix[[r], :])[0]


@dataclass(frozen=True, eq=False)
class QueryMatrix:
    """What a basis asks of an attribute; W is its matrix [n_rows, n_values].

    `questions` makes it. Two attributes of the same size (and, in a hierarchy, the same groups)
    share what is computed; only the labels are the attribute's own.
    """

    basis: Basis
    attribute: Attribute
    _operator: _Operator

    @property
    def n_values(self) -> int:
        return self._operator.n_values

    @property
    def n_rows(self) -> int:
        return self._operator.n_rows

    @property
    def gram(self) -> np.ndarray:
        """WᵀW, float64[n_values, n_values], read-only; not for identities of very many values."""
        return self._operator.gram

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """Wᵀ diag(weights) W, float64[n_values, n_values]."""
        return self._operator.weighted_gram(np.asarray(weights, dtype=np.float64))

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        """diag(W M Wᵀ), float64[n_rows], of a symmetric matrix M [n_values, n_values].

        For M ⪰ 0 rounding may leave an entry that should be 0 slightly negative.
        """
        return self._operator.row_quadratics(np.asarray(matrix, dtype=np.float64))

    def of(self, x: np.ndarray, axis: int = -1) -> np.ndarray:
        """The answers to all questions: W applied along an axis, float64[…, n_rows, …].

        For the identity this may be `x` itself. Raises ValueError if the axis has another length.
        """
        x = np.asarray(x, dtype=np.float64)
        if x.shape[axis] != self.n_values:
            raise ValueError(f"axis {axis} must have {self.n_values} values, got {x.shape[axis]}")
        return self._operator.of(x, axis)

    def row(self, r: int) -> np.ndarray:
        """One question, float64[n_values]."""
        return self._operator.row(r)

    def label(self, r: int) -> str:
        """What a question is called: "30", "≤ 24", "18 to 24", "all"; distinct within all rows."""
        return self._labels_of(range(r, r + 1))[0]

    def labels(self) -> list[str]:
        """What the questions are called, in order, [n_rows]."""
        return self._labels_of(range(self.n_rows))

    def _labels_of(self, rows: range) -> list[str]:
        values, part = self.attribute.values, slice(rows.start, rows.stop)
        match self.basis:
            case Identity():
                return [values.label(r) for r in rows]
            case Prefix():
                return [values.up_to_label(r) for r in rows]
            case Hierarchy():
                return self._node_labels[part]
            case CustomBasis():
                return list(self.basis.labels[part])
        assert isinstance(self._operator, _Intervals)
        bounds = self._operator.first[part].tolist(), self._operator.last[part].tolist()
        return [values.range_label(first, last) for first, last in zip(*bounds, strict=True)]

    @cached_property
    def _node_labels(self) -> list[str]:
        assert isinstance(self.basis, Hierarchy)
        own = self.attribute.labels()
        if len(own) == 1:
            return own
        paths = [
            path or (self.attribute.values.range_label(members[0], members[-1]),)
            for members, path in self.basis.groups(self.attribute).items()
        ]
        return [*_labels_of_groups(paths, taken=own), *own]


def query_matrix(basis: Basis, attribute: Attribute) -> QueryMatrix:
    """What the basis asks of the attribute.

    Rows of ranges: from value 0 to 0, 1, …, then from value 1, …; of hierarchies: the total,
    groups from coarse to fine, the single values. Raises `WorkloadError` if it cannot be asked.
    """
    basis.check(attribute)
    groups = tuple(basis.groups(attribute)) if isinstance(basis, Hierarchy) else ()
    return QueryMatrix(basis, attribute, _operator(basis, attribute.size, groups))


@lru_cache(maxsize=32)
def _operator(basis: Basis, n: int, groups: tuple[tuple[int, ...], ...]) -> _Operator:
    every = np.arange(n)
    match basis:
        case Identity():
            return _SingleValues(n)
        case Prefix():
            return _Intervals(np.zeros_like(every), every, n)
        case Windows():
            return _Intervals(np.maximum(every - min(basis.width, n) + 1, 0), every, n)
        case Hierarchy():
            total = [tuple(range(n))] if n > 1 else []
            nodes = [*total, *groups, *((value,) for value in range(n))]
            return _Matrix(_membership(nodes, n), len(nodes), n)
        case CustomBasis():
            return _Matrix(basis.matrix, len(basis.rows), n)
    return _Intervals(*np.triu_indices(n), n)


def _membership(nodes: list[tuple[int, ...]], n: int) -> sparse.csr_array:
    """Ones where a value is in a node, [len(nodes), n]."""
    starts = np.cumsum([0, *map(len, nodes)])
    values = np.fromiter((value for node in nodes for value in node), np.int64)
    return sparse.csr_array((np.ones(len(values)), values, starts), shape=(len(nodes), n))


def _labels_of_groups(paths: list[tuple[str, ...]], taken: Iterable[str]) -> list[str]:
    """Labels of the total and of groups: "all" and their names, or their paths where those are not
    unique, with "(all)" behind what is `taken` even so, as a state that is called like its city."""
    used = set(taken)
    names = [path[-1] for path in paths]
    twice = {name for name, count in Counter(names).items() if count > 1} | used | {"all"}
    labels = [path[-1] if path[-1] not in twice else LEVELS.join(path) for path in paths]
    # Groups that keep their names come first, so that no other one takes them.
    used.update(label for label, name in zip(labels, names, strict=True) if name not in twice)
    found = [_free("all", used)]
    for label, name in zip(labels, names, strict=True):
        found.append(label if name not in twice else _free(label, used))
    return found


def _free(label: str, used: set[str]) -> str:
    """The label, with "(all)" added as often as it takes; it is used then."""
    while label in used:
        label += " (all)"
    used.add(label)
    return label


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else matrix
