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
    domain = workload.domain
    for position in range(len(workload)):
        product = np.ones((1, 1))
        asked = {
            int(domain.columns[index]): index for index in workload.attribute_indices(position)
        }
        for column, attribute in enumerate(domain.of_records):
            factor = np.ones((1, attribute.size))
            if column in asked:
                level = domain.attributes[asked[column]]
                places = level.index_of_values or range(attribute.size)
                sums = np.equal.outer(np.arange(level.size), np.array(places)).astype(float)
                basis = workload.basis_of(position, asked[column])
                factor = query_matrix(basis, level).of(sums, 0)
            product = np.kron(product, factor)
        # Cells of a table lie in the order of the domain, where levels are behind all attributes.
        columns, indices = sorted(asked), list(workload.attribute_indices(position))
        shape = [
            workload.basis_of(position, asked[column]).n_rows(domain.attributes[asked[column]])
            for column in columns
        ]
        if workload.is_marginals or workload.has_levels:
            cells = np.arange(len(product)).reshape(shape)
            order = [columns.index(int(domain.columns[index])) for index in indices]
            product = product[cells.transpose(order).ravel()]
        rows.append(product)
        tables.append(np.full(len(product), position))
    return np.concatenate(rows), np.concatenate(tables)


_MOST_ROUNDS = 20_000  # any weights give a bound


def lower_bound(gram: np.ndarray, tolerance: float = 1e-5) -> float:
    """No Gaussian mechanism of privacy cost 1 has a smaller tr(V · covariance), V the gram."""
    weights = np.full(len(gram), 1 / len(gram))
    for _ in range(_MOST_ROUNDS):
        root = np.sqrt(weights)
        squares, vectors = np.linalg.eigh(root[:, None] * gram * root)
        roots = np.sqrt(np.maximum(squares, 0))
        diagonal = vectors**2 @ roots / np.sum(roots)
        if np.max(diagonal / weights) <= 1 + tolerance:
            break
        # Cells of no weight in the end: not so little that nothing can be computed with it.
        weights = np.maximum(diagonal / np.sum(diagonal), 1e-9)
        weights = weights / np.sum(weights)
    return float(np.sum(roots) ** 2)
