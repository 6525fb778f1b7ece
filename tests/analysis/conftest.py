"""A plan of tables whose cells are not equally accurate."""

import numpy as np
import pytest

from rpexplore.planning.planner import Optimum, optimum
from rpexplore.planning.table_plan import TablePlan
from tests.analysis.bases import SCENARIO, dense_cell_variances


@pytest.fixture(scope="session")
def unequal_plan() -> TablePlan:
    return SCENARIO.table_plan()


@pytest.fixture(scope="session")
def dense_errors(unequal_plan) -> list[np.ndarray]:
    """Standard errors of the cells of each table, by dense matrices."""
    tables = range(len(unequal_plan.workload))
    return [np.sqrt(dense_cell_variances(unequal_plan, table)) for table in tables]


@pytest.fixture(scope="session")
def unequal_optimum() -> Optimum:
    return optimum(SCENARIO.workload, loss=SCENARIO.loss)
