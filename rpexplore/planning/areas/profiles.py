"""Profiles: residuals whose noise differs between areas in the same way, planned as one.

A residual S of the other attributes costs p_S and counts in the variance of table A by B_AS. Where
the columns of B of two residuals are proportional, so are their best precisions, area by area
(docs/mathematics.md §15.4): one problem with the cost c = Σ √(a_S p_S) stands for all of them. With
the same tables on all levels there is a single profile.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.numerics import read_only

_SAME = 1e-10  # by how much, relative, columns of one profile may differ


@dataclass(frozen=True, eq=False)
class Profiles:
    """Residuals by profile, and what each of them counts.

    of_residual  int64[n_residuals]: the profile of each
    factors      float64[n_residuals]: a residual's precision over its profile's
    columns      float64[n_rows, n_profiles]: how a profile counts in each row of B; the largest is
                 1
    costs        float64[n_profiles]: both a profile's cost at precision 1, and what its columns
                 count
    """

    of_residual: np.ndarray
    factors: np.ndarray
    columns: np.ndarray
    costs: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray, residual_costs: np.ndarray) -> "Profiles":
        """From B, float64[n_rows, n_residuals] ≥ 0 without zero columns, and p, [n_residuals]."""
        # Proportional columns are equal once their largest number is 1.
        scales = np.max(matrix, axis=0)
        columns = matrix / scales
        of_residual = np.empty(matrix.shape[1], dtype=np.int64)
        first: list[int] = []
        for residual in range(matrix.shape[1]):
            column = columns[:, residual]
            for profile, other in enumerate(first):
                if np.all(np.abs(column - columns[:, other]) <= _SAME * column):
                    of_residual[residual] = profile
                    break
            else:
                of_residual[residual] = len(first)
                first.append(residual)
        return cls(
            of_residual=read_only(of_residual),
            # The best split of a profile's precision: a and p of each residual enter as √(a/p) and
            # √(a p).
            factors=read_only(np.sqrt(scales / residual_costs)),
            columns=read_only(columns[:, first]),
            costs=read_only(np.bincount(of_residual, np.sqrt(scales * residual_costs))),
        )
