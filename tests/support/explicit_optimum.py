"""The exact optimum of all Gaussian mechanisms for explicit queries on a small domain.

An independent judge (docs/mathematics.md §8, y fixed): the smallest weighted sum of
variances at privacy cost 1 is the largest tr (Λ^½ V Λ^½)^½, squared, over weights λ on the cells,
V = Wᵀ diag(w) W. Any λ gives a lower bound.
"""

import numpy as np

import rpexplore as rp
from rpexplore.workload.table_text import query_matrix


def dense_queries(workload: rp.Workload) -> tuple[np.ndarray, np.ndarray]:
    """(all cells of all tables as rows over the whole domain; the table of each row)."""
    rows, tables = [], []
    for position in range(len(workload)):
        product = np.ones((1, 1))
        attributes = workload.attribute_indices(position)
        for index, attribute in enumerate(workload.domain):
            if index in attributes:
                basis = workload.basis_of(position, index)
                factor = query_matrix(basis, attribute).of(np.eye(attribute.size), 0)
            else:
                factor = np.ones((1, attribute.size))
            product = np.kron(product, factor)
        rows.append(product)
        tables.append(np.full(len(product), position))
    return np.concatenate(rows), np.concatenate(tables)


def lower_bound(gram: np.ndarray, tolerance: float = 1e-5) -> float:
    """No Gaussian mechanism of privacy cost 1 has a smaller tr(V · covariance), V the gram."""
    weights = np.full(len(gram), 1 / len(gram))
    while True:
        root = np.sqrt(weights)
        squares, vectors = np.linalg.eigh(root[:, None] * gram * root)
        roots = np.sqrt(np.maximum(squares, 0))
        diagonal = vectors**2 @ roots / np.sum(roots)
        if np.max(diagonal / weights) <= 1 + tolerance:
            return float(np.sum(roots) ** 2)
        weights = diagonal / np.sum(diagonal)
