"""QueryMatrix: the matrix W of a query basis for one attribute, as an operator (RP+ §7)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rpexplore.domain.attribute import Attribute, Integers
from rpexplore.workload.bases import Basis
from rpexplore.workload.bases.operators import Operator


@dataclass(frozen=True, eq=False)
class QueryMatrix:
    """The queries that a basis has for an attribute; W is their matrix [n_rows, n_values].

    `query_matrix` makes it. Two attributes of the same size (and, in a hierarchy, the same groups)
    share what is computed; only the labels are the attribute's own.
    """

    basis: Basis
    attribute: Attribute
    _operator: Operator

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
        """The answers to all queries: W applied along an axis, float64[…, n_rows, …].

        For the identity this may be `x` itself. Raises ValueError if the axis has another length.
        """
        x = np.asarray(x, dtype=np.float64)
        if x.shape[axis] != self.n_values:
            raise ValueError(f"axis {axis} must have {self.n_values} values, got {x.shape[axis]}")
        return self._operator.of(x, axis)

    def row(self, r: int) -> np.ndarray:
        """The coefficients of one query, float64[n_values]."""
        return self._operator.row(r)

    def label(self, r: int) -> str:
        """What a query is called: "30", "≤ 24", "18 to 24", "all"; distinct within all rows."""
        return self._row_label(r)

    def labels(self) -> list[str]:
        """What the queries are called, in order, [n_rows]."""
        return [self._row_label(r) for r in range(self.n_rows)]

    @cached_property
    def _row_label(self) -> Callable[[int], str]:
        return self.basis.row_label(self.attribute)


def query_matrix(basis: Basis, attribute: Attribute) -> QueryMatrix:
    """The queries of a basis for an attribute; `WorkloadError` if the attribute cannot have it."""
    basis.check(attribute)
    groups = attribute.groups if basis.uses_groups else ()
    return QueryMatrix(basis, attribute, _operator(basis, attribute.size, groups))


@lru_cache(maxsize=32)
def _operator(basis: Basis, size: int, groups: tuple[tuple[str, ...], ...]) -> Operator:
    """Attributes that differ in names only share what is computed."""
    return basis.operator(Attribute("any", Integers(1, size), groups=groups))
