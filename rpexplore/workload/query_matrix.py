"""QueryMatrix: the matrix W of a query basis for one attribute, and its rows' names (RP+ §7)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rpexplore.domain.attribute import Attribute, Integers
from rpexplore.workload.bases import Basis
from rpexplore.workload.bases.operators import Operator


@dataclass(frozen=True, eq=False)
class QueryMatrix:
    """The queries that a basis has for an attribute; `query_matrix` makes it.

    operator: W [n_rows, n_values], shared by attributes that differ in labels only
    """

    basis: Basis
    attribute: Attribute
    operator: Operator

    @property
    def n_values(self) -> int:
        return self.operator.n_values

    @property
    def n_rows(self) -> int:
        return self.operator.n_rows

    def of(self, x: np.ndarray, axis: int = -1) -> np.ndarray:
        """W applied along an axis, float64[…, n_rows, …]; for the identity maybe `x` itself.

        Raises ValueError if the axis has another length.
        """
        x = np.asarray(x, dtype=np.float64)
        if x.shape[axis] != self.n_values:
            raise ValueError(f"axis {axis} must have {self.n_values} values, got {x.shape[axis]}")
        return self.operator.of(x, axis)

    @cached_property
    def label(self) -> Callable[[int], str]:
        """From a row to what its query is called: "30", "≤ 24", "18 to 24", "all"; all differ."""
        return self.basis.row_label(self.attribute)

    def labels(self) -> list[str]:
        """Labels of the queries, in order, [n_rows]."""
        return [self.label(row) for row in range(self.n_rows)]


def query_matrix(basis: Basis, attribute: Attribute) -> QueryMatrix:
    """The queries of a basis for an attribute; `WorkloadError` if the attribute cannot have it."""
    basis.check(attribute)
    groups = attribute.groups if basis.uses_groups else ()
    return QueryMatrix(basis, attribute, _operator(basis, attribute.size, groups))


@lru_cache(maxsize=32)
def _operator(basis: Basis, size: int, groups: tuple[tuple[str, ...], ...]) -> Operator:
    """Attributes that differ in names only share what is computed."""
    return basis.operator(Attribute("any", Integers(1, size), groups=groups))
