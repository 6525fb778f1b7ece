"""Tables by number of attributes, in few enough groups to tell apart in a chart."""

import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.workload.workload import Workload

MOST = 5  # attributes; tables of more are grouped with these


def order_groups(workload: Workload) -> np.ndarray:
    """Number of attributes of each table, at most `MOST`, int64[n_tables]."""
    return np.minimum(workload.orders, MOST)


def group_name(group: int, workload: Workload) -> str:
    """ "total", "1 attribute", "5 attributes or more"."""
    if group == 0:
        return "total"
    more = " or more" if group == MOST and int(workload.orders.max()) > MOST else ""
    return f"{plural(group, 'attribute')}{more}"
