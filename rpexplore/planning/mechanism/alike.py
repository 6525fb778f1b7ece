"""Which standard errors are the same, as far as anybody would notice."""

import numpy as np

from rpexplore.planning.mechanism.table_variances import TableVariances

SAME = 1.005  # a factor


def are_same(low: float, high: float) -> bool:
    """Whether nobody would notice how much larger the second standard error is."""
    return high <= low * SAME


def cells_differ(variances: TableVariances) -> bool:
    """Whether some table's cells differ noticeably in accuracy."""
    if variances.worst is variances.best:  # marginals
        return False
    return bool(np.any(variances.worst > variances.best * SAME**2))
