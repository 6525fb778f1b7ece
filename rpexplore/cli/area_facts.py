"""What the command line says about plans for areas: values, texts."""

from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.areas.targets import met_in_all_areas
from rpexplore.cli.console import target_columns, text_table
from rpexplore.common.formatting import describe_numbers, describe_share
from rpexplore.domain.area_tree import AreaTree
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.workload.table_text import title


def level_facts(plan: AreaPlan) -> list[dict[str, Any]]:
    """The levels of a plan for areas in plain values."""
    tree = plan.workload.tree
    sizes = np.diff(tree.starts).tolist()
    return [{"level": name, "areas": size} for name, size in zip(tree.levels, sizes, strict=True)]


def area_table(rows: pd.DataFrame) -> str:
    """Rows of an `AreaPlan`'s tables as a text table, with targets where one of them has one."""
    columns = {
        "level": rows["level"].tolist(),
        "table": [title(table) for table in rows["attributes"]],
        "areas": [f"{areas:,}" for areas in rows["areas"]],
        "cells": [f"{cells:,}" for cells in rows["cells"]],
        "RMS standard error": describe_numbers(rows["standard_error"]),
        "largest standard error": describe_numbers(rows["largest_standard_error"]),
        "shadow price": [describe_share(price, 3) for price in rows["shadow_price"]],
        **target_columns(rows["target"], met_in_all_areas(rows), rows["required"]),
    }
    return text_table(columns, "<<" + ">" * (len(columns) - 2))


def in_text(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows for a file: tables as texts, and required as yes or no, where there are any."""
    if "attributes" in rows:
        rows = rows.assign(attributes=[title(table) for table in rows["attributes"]])
    if "required" in rows:
        rows = rows.assign(required=np.where(rows["required"], "yes", "no"))
    return rows


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
