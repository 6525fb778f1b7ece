"""Expected counts of tables from those of every cell of the domain, for small domains."""

import itertools
import math

import numpy as np

from rpexplore.domain.expected_counts import ExpectedCounts


def margin(domain, names, counts):
    return ExpectedCounts(
        tuple(names), tuple(tuple(domain[name].stored_values()) for name in names), tuple(counts)
    )


def cells_by_brute_force(expected, workload, table):
    """The expected count of every cell of a table, from that of every cell of the domain."""
    domain = workload.domain
    sizes = domain.sizes.tolist()
    axes = [domain.names.index(name) for name in expected.attributes]
    spread = math.prod(size for index, size in enumerate(sizes) if index not in axes)
    full = np.empty(sizes)
    for cell in itertools.product(*map(range, sizes)):
        full[cell] = expected.margin[tuple(cell[axis] for axis in axes)] / spread
    others = [p for p in range(len(sizes)) if domain.names[p] not in workload.tables[table]]
    return full.sum(axis=tuple(others)).ravel()
