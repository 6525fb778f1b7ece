"""What the cells of each table count: single values, or sums of them by the table's bases."""

from rpexplore.planning.mechanism.reconstruction import query_matrices
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.releases.table_release import TableRelease
from rpexplore.workload.query_matrix import QueryMatrix


def queries_of_tables(source: TableRelease | Estimates) -> list[list[QueryMatrix | None]]:
    """The queries of each table, of each axis; None: single values."""
    if isinstance(source, Estimates):
        return [[None] * len(table) for table in source.tables]
    workload = source.plan.workload
    matrices = query_matrices(workload)
    return [
        [matrices[i] for i in workload.attribute_basis_index[position, :order]]
        for position, order in enumerate(workload.orders)
    ]
