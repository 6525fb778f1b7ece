"""The accuracy frame: how accurate each item of a plan will be, in the same columns for all kinds.

An item is a table, a table on a level of areas, or a count of one's own. Command line, pages,
report and summaries read this frame, so that none of them has to know kinds of plans.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.numerics import normal_quantile
from rpexplore.planning.mechanism.table_variances import SAME
from rpexplore.workload.targets import MET_FACTOR

if TYPE_CHECKING:
    import pandas as pd

Z_95 = normal_quantile(0.95)  # standard errors to either side of a 95 % interval, 1.96
EXTREMES = ["smallest_standard_error", "largest_standard_error"]
COLUMNS = [
    "part", "level", "item", "attributes", "cells", "areas", "standard_error", *EXTREMES,
    "margin_95", "target", "required", "met", "weight", "shadow_price",
]  # fmt: skip


def accuracy_frame(part: str, items: "Sequence[str] | pd.Series", **columns: Any) -> "pd.DataFrame":
    """The frame of a part of a plan, one row an item, in the order of the plan.

    columns: those of these that the kind of plan has; all others are empty (NaN or None)

    part                     the kind of the part
    level                    of areas, on which the table is released
    item                     what to call it: "age × sex", "adults in the north"
    attributes               names of a table's attributes
    cells                    of a table, in one area
    areas                    how many have the table on this level
    standard_error           root mean square over cells (and areas)
    smallest_standard_error, largest_standard_error
                             of the most and the least accurate cell (in any area)
    margin_95                half a 95 % interval, from standard_error
    target                   wanted standard error of the least accurate cell
    required                 whether the plan has to meet the target
    met                      True, False; None without a target
    weight                   in the objective
    shadow_price             share that the item has in what the plan's proof weighs
    """
    import pandas as pd  # half of the time that importing this package would take

    known = {"part": part, "item": items, **columns}
    if "standard_error" in columns:
        known["margin_95"] = columns["standard_error"] * Z_95
    if "target" in columns:
        targets = columns["target"]
        met = columns["largest_standard_error"] <= targets * MET_FACTOR
        known["met"] = np.where(np.isnan(targets), None, met)
    texts = ("level", "attributes", "required", "met")
    empty = {name: None if name in texts else np.nan for name in COLUMNS}
    return pd.DataFrame({name: known.get(name, empty[name]) for name in COLUMNS})


def cells_differ(frame: "pd.DataFrame") -> bool:
    """Whether the cells of some item differ noticeably in accuracy."""
    return bool((frame[EXTREMES[1]] > frame[EXTREMES[0]] * SAME).any())


def for_reading(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The frame without columns in which nothing is known.

    Also without the extremes of cells where all cells of an item are equally accurate.
    """
    if not len(frame):
        return frame
    frame = frame.drop(columns=[name for name in frame if np.all(frame[name].isna())])
    if EXTREMES[0] in frame and not cells_differ(frame):
        return frame.drop(columns=EXTREMES)
    return frame


def worst_first(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The items of each part, the least accurate first; the index says where they were.

    Own counts, which have targets in place of weights, are compared by these: the furthest off
    first. Where nothing is known of the accuracy, the order stays.
    """
    errors = frame["largest_standard_error"]
    keys = errors.where(frame["weight"].notna(), errors / frame["target"]).fillna(0.0)
    parts = frame["part"].to_numpy()
    order = np.argsort(-keys.to_numpy(), kind="stable")
    rows = [order[parts[order] == part] for part in dict.fromkeys(parts.tolist())]
    return frame.iloc[np.concatenate(rows)] if rows else frame
