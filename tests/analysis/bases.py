"""Small tables with every kind of question, and the accuracy of their cells by dense matrices."""

import numpy as np

import rpexplore as rp
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.bases import BasisChoice
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.bases import Hierarchy, Prefix, Ranges
from rpexplore.workload.table_text import query_matrix
from tests.support.oracles import kron, sub

GROUPS = (("North",), ("North",), ("South",), ("South",))
DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 6)),
        rp.Attribute("sex", rp.Categories(("F", "M"))),
        rp.Attribute("region", rp.Categories(tuple("abcd")), groups=GROUPS),
        rp.Attribute("income", rp.Integers(0, 4)),
    )
)
BASES = {"age": Prefix(), "region": Hierarchy(), "income": Ranges()}
BUDGET = rp.Budget(rho="0.2", max_records_per_person=2)


def scenario(order: int = 2, **changes) -> Scenario:
    """All tables up to `order`-way; sex alone counts single values."""
    choices = tuple(BasisChoice(name, basis) for name, basis in BASES.items())
    request = WorkloadRequest(order=order, basis_choices=choices)
    return Scenario(DOMAIN, request, budget=BUDGET, record_noun="people").replaced(**changes)


def dense_cell_variances(plan: TablePlan, position: int) -> np.ndarray:
    """Variance of every cell of a table by the best linear unbiased estimate, row-major."""
    workload = plan.workload
    sizes, indices = workload.domain.sizes.tolist(), workload.attribute_indices(position)
    precision = np.zeros((np.prod(sizes), np.prod(sizes)))
    for residual, sigma_squared in enumerate(plan.sigma_squared.floats):
        members = plan.closure.attributes(residual)
        factors, covariances = [], []
        for index, size in enumerate(sizes):
            strategy = plan.closure.strategies.get(index)
            if index not in members:
                factors.append(np.ones((1, size)))
            elif strategy is None:
                factors.append(sub(size))
                covariances.append(sub(size) @ sub(size).T)
            else:
                factors.append(strategy.matrix)
                covariances.append(np.eye(size - 1))
        matrix, covariance = kron(factors), kron(covariances) * sigma_squared
        precision += matrix.T @ np.linalg.solve(covariance, matrix)
    queries = kron(
        _matrix(workload, position, index) if index in indices else np.ones((1, size))
        for index, size in enumerate(sizes)
    )
    inverse = np.linalg.pinv(precision, hermitian=True, rcond=1e-11)
    return np.einsum("ij,jk,ik->i", queries, inverse, queries)


def _matrix(workload: rp.Workload, position: int, index: int) -> np.ndarray:
    attribute = workload.domain.attributes[index]
    return query_matrix(workload.basis_of(position, index), attribute).of(np.eye(attribute.size), 0)


SCENARIO = scenario()
MARGINALS = scenario().with_request(basis_choices=())


def errors_at(dense_errors: list[np.ndarray], cell: str) -> np.ndarray:
    """Of each table the root mean square over its cells, the largest or the smallest one."""
    choices = {
        "mean": lambda errors: np.sqrt(np.mean(errors**2)),
        "largest": np.max,
        "smallest": np.min,
    }
    return np.array([choices[cell](errors) for errors in dense_errors])
