"""Group file: what a plan measures in areas, and its prices, as Parquet.

One row a group of areas that are alike, in the order of the areas: how many `areas` it stands for,
which `workload` they are asked for (−1: none), for each profile of residuals the precision of an
area as the whole number `multiple_k` of units (0: not measured), and what proves the bound: the
`price` of the privacy of an area's records and, with a largest variance, the `table_price_a` of
each table.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.parquet_bytes import parquet_bytes, table_of_parquet
from rpexplore.domain.area_tree import AreaTree
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.exact_precisions import PRECISION_BITS

if TYPE_CHECKING:
    from rpexplore.planning.areas.area_plan import AreaPlan


def parquet_of_groups(plan: "AreaPlan") -> bytes:
    """The file of a plan."""
    import pyarrow as pa

    groups = plan.groups
    columns = {
        "areas": pa.array(groups.multiplicity.astype(np.int32)),
        "workload": pa.array(groups.kinds.astype(np.int32)),
    }
    columns |= {f"multiple_{k}": pa.array(row) for k, row in enumerate(plan.multiples)}
    columns["price"] = pa.array(plan.prices)
    if plan.table_prices is not None:
        columns |= {f"table_price_{a}": pa.array(row) for a, row in enumerate(plan.table_prices)}
    return parquet_bytes(columns)


def fields_of_groups(
    content: bytes, tree: AreaTree, n_workloads: int, n_profiles: int, n_tables: int
) -> dict[str, Any]:
    """The groups, multiples and prices of a plan, from its file.

    n_tables: how many have prices; 0 for a loss that is a sum

    Raises:
        PlanError: For content that is no such file.
    """
    import pyarrow as pa

    kinds = {"areas": pa.int32(), "workload": pa.int32()}
    kinds |= {f"multiple_{k}": pa.int64() for k in range(n_profiles)}
    kinds |= {"price": pa.float64(), **{f"table_price_{a}": pa.float64() for a in range(n_tables)}}
    table = table_of_parquet(content, kinds, None, PlanError)
    columns = {name: column.to_numpy() for name, column in table.items()}
    groups = _groups(tree, columns["areas"], columns["workload"], n_workloads)
    multiples = np.stack([columns[f"multiple_{k}"] for k in range(n_profiles)])
    if np.any(multiples < 0) or np.max(multiples) != 2**PRECISION_BITS:
        raise PlanError(
            f"the multiples in its file of precisions must be from 0 to 2^{PRECISION_BITS}, and "
            "the largest of them be that."
        )
    prices = _not_negative(columns["price"], "price")
    divided = np.ones(len(groups), dtype=bool)
    divided[groups.undivided] = False
    if np.any(prices[divided]):
        raise PlanError("the prices of areas that are divided must be 0.")
    return {
        "groups": groups,
        "multiples": multiples,
        "prices": prices,
        "table_prices": _table_prices(columns, n_tables),
    }


def _groups(tree: AreaTree, sizes: np.ndarray, kinds: np.ndarray, n_workloads: int) -> AreaGroups:
    """The groups of the tree, which must be those that are stated."""
    fits = np.all(sizes > 0) and np.sum(sizes, dtype=np.int64) == tree.n_areas
    if not fits or np.any((kinds < -1) | (kinds >= n_workloads)):
        raise PlanError(
            "the groups in its file of precisions must have one area or more, all those of the "
            "tree together, and a workload of the plan each (−1 for none)."
        )
    groups = AreaGroups.of(tree, np.repeat(kinds, sizes))
    if not np.array_equal(groups.multiplicity, sizes) or not np.array_equal(groups.kinds, kinds):
        raise PlanError(
            "each group in its file of precisions must stand for all neighbouring areas of one "
            "parent that are not divided and asked for the same."
        )
    return groups


def _table_prices(columns: dict[str, np.ndarray], n_tables: int) -> np.ndarray | None:
    if not n_tables:
        return None
    rows = [columns[f"table_price_{table}"] for table in range(n_tables)]
    return np.stack([_not_negative(row, "table_price") for row in rows])


def _not_negative(values: np.ndarray, noun: str) -> np.ndarray:
    """The values of a column; raises `PlanError` for one that is not finite or below 0."""
    if not np.all(np.isfinite(values) & (values >= 0)):
        raise PlanError(f"every {noun} in its file of precisions must be finite and at least 0.")
    return values
