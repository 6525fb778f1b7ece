"""What the command line says about plans for areas: values, texts."""

from typing import Any

import numpy as np
import pandas as pd

from rpexplore.cli.console import text_table
from rpexplore.common.csv_text import csv_of_frame
from rpexplore.common.formatting import describe_numbers, describe_share
from rpexplore.domain.area_tree import AreaTree
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.workload.table_text import title


def level_facts(plan: AreaPlan) -> list[dict[str, Any]]:
    """The levels of a plan for areas in plain values."""
    tree = plan.workload.tree
    sizes = np.diff(tree.starts).tolist()
    return [{"level": name, "areas": size} for name, size in zip(tree.levels, sizes, strict=True)]


def csv_of_sums(rows: pd.DataFrame, *, escape_formulas: bool) -> str:
    """Rows of `accuracy_of_sums` as CSV."""
    named = rows.assign(attributes=[title(table) for table in rows["attributes"]])
    return csv_of_frame(named, escape_formulas=escape_formulas)


def level_table(sizes: pd.DataFrame) -> str:
    """Rows of `level_sizes` as a text table."""
    names = {
        "areas": "areas",
        "undivided": "without parts",
        "fewest_parts": "fewest parts",
        "median_parts": "median",
        "most_parts": "most",
    }
    columns = {
        heading: ["" if number != number else f"{number:,.0f}" for number in sizes[name]]
        for name, heading in names.items()
    }
    return text_table({"level": sizes["level"].tolist(), **columns})


def note_on_depth(tree: AreaTree) -> str | None:
    """That areas without parts lie on the coarsest level beside others: their parent may lack."""
    parts = tree.n_parts[1 : 1 + int(tree.n_parts[0])]
    single = np.flatnonzero(parts == 0)
    if len(single) in (0, len(parts)):
        return None
    lie = "area lies" if len(single) == 1 else "areas lie"
    have = "has" if len(single) == 1 else "have"
    example = tree.codes[1 + int(single[0])].as_py()
    return (
        f"{len(single):,} {lie} on the coarsest level and {have} no parts, such as {example}; if "
        "that is not meant, give its parent."
    )


def share_table(beside: pd.DataFrame) -> str:
    """Rows of `beside_shares_by_level` as a text table."""
    levels = beside.columns.drop(["title", "loss", "ratio"])
    columns = {
        "budget by level": beside["title"].tolist(),
        "loss": describe_numbers(beside["loss"]),
        "this plan, as a share of it": [describe_share(ratio, 3) for ratio in beside["ratio"]],
    }
    for level in levels:
        columns[level] = [
            "" if share != share else describe_share(share, 3) for share in beside[level]
        ]
    return text_table(columns)
