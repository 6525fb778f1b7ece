"""Expected counts on the command line, and the publishable shares that follow from them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.cli.console import text_table
from rpexplore.cli.facts import row_facts
from rpexplore.common.files import file_bytes
from rpexplore.common.formatting import describe_share, rounded
from rpexplore.domain.expected_counts import (
    CV_LIMIT,
    ExpectedCounts,
    checked_count,
    checked_cv_limit,
)
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.errors import RpexploreError, WorkloadError

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.analysis.areas.usefulness import AreaUsefulness
    from rpexplore.analysis.usefulness import Usefulness
    from rpexplore.domain.domain import Domain
    from rpexplore.planning.part_plan import PartPlan
    from rpexplore.planning.plan import Plan


def expected_from_options(
    domain: "Domain",
    count: float | None,
    file: Path | None,
    cv_limit: float | None,
    totals: dict[int, float] | None = None,
) -> tuple[ExpectedCounts, float] | None:
    """Expected counts and the largest CV of a publishable cell; None without such counts.

    totals: of areas, whose sum is the count if no other is given
    """
    if totals is not None and count is None and file is None:
        count = sum(totals.values())
    if count is not None and file is not None:
        raise RpexploreError("Give --expected-count N or --expected FILE, not both.")
    if count is None and file is None:
        if cv_limit is not None:
            raise RpexploreError(
                "--cv-limit goes with --expected-count N or --expected FILE; give one of them."
            )
        return None
    limit = CV_LIMIT if cv_limit is None else checked_cv_limit(cv_limit)
    if file is None:
        return ExpectedCounts.of_total(checked_count(count)), limit
    content = file_bytes(file, f"The file of expected counts {str(file)!r}", WorkloadError)
    return expected_counts_from_csv(domain, content, file.name), limit


def totals_from_option(plan: "Plan | PartPlan", file: Path | None) -> dict[int, float] | None:
    """Publicly known totals of areas, by their numbers; None without --expected-areas."""
    from rpexplore.domain.named_areas import totals_of_areas
    from rpexplore.planning.areas.area_plan import AreaPlan

    if file is None:
        return None
    if not isinstance(plan, AreaPlan):
        raise RpexploreError(
            f"--expected-areas goes with a plan for areas, and this is {plan.kind_text}; leave it "
            "out."
        )
    return {**totals_of_areas(plan.workload.tree, file)}


def usefulness_of(
    plan: "Plan | PartPlan",
    wanted: tuple[ExpectedCounts, float] | None,
    totals: dict[int, float] | None = None,
) -> "Usefulness | AreaUsefulness | None":
    """What of a plan is publishable; None without expected counts.

    Of an adaptive plan, of which that is not known: of unbiased tables at the same budget.
    """
    from rpexplore.analysis.adaptive import unbiased_alternative
    from rpexplore.analysis.areas.usefulness import publishable_in_areas
    from rpexplore.analysis.usefulness import publishable
    from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
    from rpexplore.planning.areas.area_plan import AreaPlan
    from rpexplore.planning.table_plan import TablePlan

    if wanted is None:
        return None
    expected, limit = wanted
    if isinstance(plan, AdaptivePlan):
        plan = unbiased_alternative(plan)
    if isinstance(plan, AreaPlan):
        return publishable_in_areas(plan, expected, cv_limit=limit, totals=totals)
    if not isinstance(plan, TablePlan):
        raise RpexploreError(
            f"Publishable shares are those of tables, and this is {plan.kind_text}."
        )
    return publishable(plan, expected, cv_limit=limit)


def usefulness_facts(
    plan: "Plan | PartPlan", useful: "Usefulness | AreaUsefulness | None"
) -> dict[str, Any]:
    """What `usefulness_of` a plan found, in plain values, under a name that says of what."""
    from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan

    adaptive = isinstance(plan, AdaptivePlan)
    return {"publishable_if_unbiased" if adaptive else "publishable": publishable_facts(useful)}


def usefulness_text(plan: "Plan | PartPlan", useful: "Usefulness | AreaUsefulness | None") -> str:
    """What `usefulness_of` a plan found, for reading."""
    from rpexplore.analysis.adaptive import when_to_choose
    from rpexplore.analysis.usefulness import Usefulness
    from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan

    if isinstance(plan, AdaptivePlan):
        return "\n".join(when_to_choose(useful if isinstance(useful, Usefulness) else None))
    return publishable_text(useful)


def publishable_facts(useful: "Usefulness | AreaUsefulness | None") -> dict[str, Any] | None:
    """Publishable shares in plain values; None without expected counts."""
    from rpexplore.analysis.areas.usefulness import AreaUsefulness

    if useful is None:
        return None
    if isinstance(useful, AreaUsefulness):
        return {
            "expected_counts": useful.expected_text,
            "cv_limit": useful.cv_limit,
            "share": useful.share,
            "cell_count": useful.n_cells,
            "by_level": row_facts(useful.by_level),
            "by_table": row_facts(useful.of_tables),
        }
    share = None if np.isnan(useful.share) else useful.share
    return {
        "expected_counts": useful.cells.expected.text,
        "cv_limit": useful.cv_limit,
        "share": share,
        "cell_count": int(useful.n_cells),
        "tables_in_full": useful.whole,
        "tables_in_part": useful.partly,
        "tables_not": useful.none,
        "by_attributes": row_facts(useful.by_order()),
        "by_level": row_facts(useful.by_level()),
    }


def publishable_text(useful: "Usefulness | AreaUsefulness | None") -> str:
    """The publishable share by number of attributes, by level of a hierarchy, and in all."""
    from rpexplore.analysis.areas.usefulness import AreaUsefulness

    if useful is None:
        return ""
    if isinstance(useful, AreaUsefulness):
        rows = useful.by_level
        table = text_table(
            {
                "level": rows["level"].tolist(),
                "tables": [f"{count:,}" for count in rows["tables"]],
                "in full": [f"{count:,}" for count in rows["in_full"]],
                "cells": [f"{count:,}" for count in rows["cells"]],
                "records in the median area": [rounded(count, 3) for count in rows["median_count"]],
                "publishable": [describe_share(share) for share in rows["share"]],
            }
        )
        return "\n\n".join((f"Expected counts: {useful.expected_text}.", table, useful.describe()))
    by_order, by_level = useful.by_order(), useful.by_level()
    levels = (by_level["attribute"] + ", " + by_level["level"]).tolist()
    parts = [
        f"Expected counts: {useful.cells.expected.text}.",
        _table("tables by attributes", by_order["attributes"].tolist(), by_order),
        *([_table("cells by level", levels, by_level)] if levels else []),
        useful.describe(),
        useful.cells.left_out_text,
    ]
    return "\n\n".join(filter(None, parts))


def _table(heading: str, names: list[str], rows: "pd.DataFrame") -> str:
    return text_table(
        {
            heading: names,
            "tables": [f"{count:,}" for count in rows["tables"]],
            **({"in full": [f"{count:,}" for count in rows["whole"]]} if "whole" in rows else {}),
            "cells": [f"{count:,.0f}" for count in rows["cells"]],
            "median count": [rounded(count, 3) for count in rows["median_count"]],
            "margin of error": [rounded(margin, 4, zeros=True) for margin in rows["margin_95"]],
            "publishable": [describe_share(share) for share in rows["share"]],
        }
    )
