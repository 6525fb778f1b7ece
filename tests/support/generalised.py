"""Tables of ranges, cumulative counts, hierarchies and the like: small ones, and dense matrices.

The matrices are written from the definitions of docs/mathematics.md §4, one loop a basis; nothing
of `query_matrix`, `strategy` or `closure` is used for them.
"""

import numpy as np
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.planner import optimum
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.bases import (
    Basis,
    CustomBasis,
    Hierarchy,
    Identity,
    Prefix,
    Ranges,
    Windows,
)
from tests.support.oracles import kron, residual_covariance, residual_matrix


def basis_matrix(basis: Basis, attribute: rp.Attribute) -> np.ndarray:
    """W, [n_rows, n]."""
    n = attribute.size
    match basis:
        case Identity():
            nodes = [[value] for value in range(n)]
        case Prefix():
            nodes = [list(range(value + 1)) for value in range(n)]
        case Ranges():
            nodes = [list(range(a, b + 1)) for a in range(n) for b in range(a, n)]
        case Windows():
            nodes = [list(range(max(v - basis.width + 1, 0), v + 1)) for v in range(n)]
        case Hierarchy():
            total = [list(range(n))] if n > 1 else []
            groups = [members for members, _ in basis.groups(attribute)]
            nodes = [*total, *groups, *([value] for value in range(n))]
        case CustomBasis():
            return np.array(basis.rows)
    matrix = np.zeros((len(nodes), n))
    for row, node in enumerate(nodes):
        matrix[row, list(node)] = 1
    return matrix


def table_matrix(workload: rp.Workload, position: int) -> np.ndarray:
    """The queries of a table, over all cells of the domain: [queries, all cells]."""
    attributes = workload.attribute_indices(position)
    return kron(
        basis_matrix(workload.basis_of(position, index), attribute)
        if index in attributes
        else np.ones((1, attribute.size))
        for index, attribute in enumerate(workload.domain)
    )


def measured_matrix(closure: Closure, attributes) -> tuple[np.ndarray, np.ndarray]:
    """(B_A over all cells of the domain, covariance of its noise at σ² = 1) of a residual."""
    sizes = closure.sizes.tolist()
    factors, noise = [], []
    for index, n in enumerate(sizes):
        strategy = closure.strategies.get(index)
        if index not in attributes:
            factors.append(np.ones((1, n)))
        elif strategy is None:
            factors.append(residual_matrix([n], [0]))
            noise.append(residual_covariance([n], [0]))
        else:
            factors.append(strategy.integers / 2.0**strategy.bits)
            noise.append(np.eye(n - 1))
    return kron(factors), kron(noise)


def precision(closure: Closure, sigma_squared: np.ndarray) -> np.ndarray:
    """Σ B_Aᵀ (σ²_A Σ_A)⁻¹ B_A; the largest number of its diagonal is the privacy cost."""
    cells = int(np.prod(closure.sizes))
    total = np.zeros((cells, cells))
    for residual, scale in enumerate(sigma_squared):
        matrix, noise = measured_matrix(closure, closure.attributes(residual))
        total += matrix.T @ np.linalg.solve(noise, matrix) / scale
    return total


def cell_covariance(closure: Closure, sigma_squared: np.ndarray) -> np.ndarray:
    """C, such that the best linear unbiased answers to a query Q have covariance Q C Qᵀ.

    Q: over all cells of the domain, and one that what is measured determines.
    """
    information = precision(closure, sigma_squared)
    return np.linalg.pinv(information, hermitian=True, rcond=1e-11)


@st.composite
def bases(draw, attribute: rp.Attribute):
    """Any basis of an attribute; single values are likely."""
    n = attribute.size
    options = [Identity(), Prefix(), Ranges(), Windows(draw(st.integers(1, n + 1)))]
    if attribute.groups or n == 1:
        options.append(Hierarchy())
    if n >= 3:
        options.append(Hierarchy((2,)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    extra = rng.integers(-3, 4, (draw(st.integers(0, 3)), n))
    extra[:, 0] += ~np.any(extra, axis=1)  # a query is not 0 everywhere
    options.append(CustomBasis(np.vstack([np.tril(rng.integers(1, 4, (n, n))), extra]).tolist()))
    return draw(st.sampled_from(options))


@st.composite
def workloads_with_bases(draw, *, max_attributes: int = 4, max_size: int = 5, max_cells: int = 120):
    """Up to five tables of a small domain, with any basis of each attribute in each table."""
    sizes, cells = [], 1
    for _ in range(draw(st.integers(2, max_attributes))):
        size = draw(st.integers(1, min(max_size, max_cells // cells)))
        sizes.append(size)
        cells *= size
    attributes = []
    for index, size in enumerate(sizes):
        paths = [("ab"[value % 2],) if value else () for value in range(size)]
        groups = tuple(paths) if draw(st.booleans()) else ()
        attributes.append(rp.Attribute(f"a{index}", rp.Integers(0, size - 1), groups=groups))
    domain = rp.Domain(tuple(attributes))
    table = st.sets(st.sampled_from(domain.names)).map(lambda names: tuple(sorted(names)))
    tables = draw(st.lists(table, min_size=1, max_size=5, unique=True))
    weights = [draw(st.floats(0.1, 10)) for _ in tables]
    workload = rp.Workload.of(domain, tables, weights=weights)
    usual = {attribute.name: draw(bases(attribute)) for attribute in domain}
    workload = workload.with_bases(usual)
    for table in tables:
        for name in table:
            if draw(st.integers(0, 3)) == 0:
                workload = workload.with_bases({name: draw(bases(domain[name]))}, tables=[table])
    return workload


def any_strategy(n: int, seed: int, bits: int = 10) -> Strategy:
    """Integers that have nothing to do with the queries, and are well away from singular."""
    rng = np.random.default_rng([seed, n])
    matrix = np.eye(n)[1:] - 0.3 * rng.uniform(size=(n - 1, n))
    return Strategy(np.round(matrix * 2**bits).astype(np.int64), bits)


def any_strategies(workload: rp.Workload, seed: int) -> dict[int, Strategy]:
    """One of its own for each attribute that needs one."""
    sizes = workload.domain.sizes
    return {
        index: any_strategy(int(sizes[index]), seed + index)
        for index in measured_attributes(workload)
    }


def measured_closure(workload: rp.Workload, seed: int) -> tuple[Closure, np.ndarray]:
    """Its closure, measured by any strategies, and any noise scales."""
    closure = Closure.of(workload).with_strategies(workload, any_strategies(workload, seed))
    return closure, np.random.default_rng(seed).uniform(0.1, 10, len(closure))


def any_plan(workload: rp.Workload, seed: int, *, loss=None, rho="1/2") -> TablePlan:
    """A plan that measures through any strategies; the best noise for them."""
    loss = rp.SumOfVariances("cells") if loss is None else loss
    solution = optimum(workload, loss=loss, strategies=any_strategies(workload, seed))
    return solution.at(rp.Budget(rho=rho))


def all_variances(workload: rp.Workload, closure: Closure, sigma_squared: np.ndarray):
    """Of each table, the dense variance of every cell, one axis an attribute."""
    covariance, by_table = cell_covariance(closure, sigma_squared), []
    for position in range(len(workload)):
        query = table_matrix(workload, position)
        variances = np.sum((query @ covariance) * query, axis=1)
        by_table.append(variances.reshape(shape_of(workload, position)))
    return by_table


def shape_of(workload: rp.Workload, position: int) -> tuple[int, ...]:
    domain = workload.domain
    return tuple(
        len(basis_matrix(workload.basis_of(position, index), domain.attributes[index]))
        for index in workload.attribute_indices(position)
    )
