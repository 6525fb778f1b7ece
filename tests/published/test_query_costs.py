"""Prefix sums with equal targets: the privacy costs of FFU Table 2 (ffu_prefix_cost.csv).

The columns: n, the number of cells; published, the printed cost at which each of the n prefix sums
has variance 1; ceiling, what the algorithm gave when it was first tried.
"""

import numpy as np
import pytest

from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.solvers.queries import fitness_for_use
from tests.published.figures import rows
from tests.support.query_lists import prefix, query_list

ROWS = [pytest.param(row, id=f"n = {row['size']}") for row in rows("ffu_prefix_cost.csv")]


def test_all_rows_are_here():
    assert len(ROWS) == 5


@pytest.mark.parametrize("row", ROWS)
def test_cost_of_prefix_sums(row):
    queries = query_list(prefix(int(row["size"])))
    solution = fitness_for_use(queries.coefficients, queries.targets)
    planned = query_optimum(queries)
    assert f"{solution.cost:.2f}" == row["published"]
    assert solution.cost <= float(row["ceiling"]) * 1.001
    assert planned.cost <= float(row["ceiling"]) * 1.001
    assert solution.gap <= 1e-4
    assert np.max(planned.needed_costs) <= solution.cost * 1.001
