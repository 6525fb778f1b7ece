"""What the command line says about plans, and their tables or queries: values, texts."""

from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import least_accurate_first, of_tables
from rpexplore.analysis.areas.accuracy import AreaErrors
from rpexplore.analysis.queries import spare_cells
from rpexplore.cli.adaptive_facts import adaptive_facts, estimated_tables
from rpexplore.cli.area_facts import area_table, level_facts
from rpexplore.cli.console import one_line, target_columns, text_table
from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.formatting import describe_numbers, describe_share, rounded
from rpexplore.domain.domain import Domain
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.planning.part_plan import CertifiedPlan, PartPlan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.conversions import USUAL_DELTAS
from rpexplore.scenarios.basis_choices import basis_choices_of
from rpexplore.workload.table_text import list_titles

_KINDS = {"Categories": "categories", "Integers": "whole numbers", "Bins": "bins"}
_FIRST_VALUES = 4
_MOST_CELLS = 10  # with unused budget, that a text lists


def row_facts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows in plain values; what is not known is None."""
    return [
        {name: None if value != value else value for name, value in row.items()}
        for row in rows.to_dict("records")
    ]


def attribute_facts(domain: Domain) -> list[dict[str, Any]]:
    """Each attribute in plain values, with the labels of its first values."""
    return [
        {
            "name": attribute.name,
            "label": attribute.label,
            "kind": _KINDS[type(attribute.values).__name__],
            "values": attribute.size,
            "first_values": attribute.labels(_FIRST_VALUES),
        }
        for attribute in domain.attributes
    ]


def attribute_table(domain: Domain) -> str:
    """The attributes as a text table."""
    facts = attribute_facts(domain)
    for fact in facts:
        more = ["…"] if fact["values"] > _FIRST_VALUES else []
        fact["first values"] = ", ".join([*fact["first_values"], *more])
        fact["values"] = f"{fact['values']:,}"
    names = ("name", "label", "kind", "values", "first values")
    return text_table({name: [fact[name] for fact in facts] for name in names}, "<<<><")


# ---- plans


def plan_facts(plan: PartPlan) -> dict[str, Any]:
    """A plan in a few plain values; exact numbers are texts, as in the plan file."""
    facts: dict[str, Any] = {
        "sha256": plan.sha256,
        f"{plan.item}_count": plan.n_items,
        "unit": plan.budget.unit,
        "rho": exact_text(plan.rho),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "epsilon_by_delta": {delta: plan.epsilon(delta) for delta in USUAL_DELTAS},
    }
    if isinstance(plan, AdaptivePlan):
        return facts | adaptive_facts(plan)
    assert isinstance(plan, CertifiedPlan)
    certificate = plan.certificate
    facts |= {"lower_bound": certificate.lower_bound, "gap": certificate.gap}
    if isinstance(plan, QueryPlan):
        return facts | {
            "cell_count": plan.queries.n_cells,
            "targets_met": int(np.count_nonzero(plan.met)),
            "largest_ratio": plan.ratio,
            "spare_cells": row_facts(spare_cells(plan)),
        }
    assert isinstance(plan, TablePlan | AreaPlan)
    facts |= {
        "residual_count": len(plan.closure),
        "loss": {"description": plan.loss.description, "value": certificate.loss_value},
    }
    if isinstance(plan, AreaPlan):
        return facts | {"levels": level_facts(plan), "uniform_levels": plan.uniform}
    return facts | {
        "bases": basis_facts(plan),
        "uniform_reference": plan.has_uniform_reference,
    }


def basis_facts(plan: TablePlan) -> list[dict[str, Any]]:
    """The bases of attributes other than single values, in plain values.

    tables: those in which it is this basis; None for all that have the attribute and are not listed
    """
    domain = plan.workload.domain
    return [
        {
            "attribute": choice.attribute,
            "basis": choice.basis.kind,
            "description": choice.basis.describe(domain[choice.attribute]),
            "tables": [list(table) for table in choice.tables] or None,
        }
        for choice in basis_choices_of(plan.workload)
    ]


def basis_text(plan: TablePlan) -> str:
    """The bases of attributes, for reading; single values where nothing is said."""
    lines = ["Aggregation other than single values"]
    for fact in basis_facts(plan):
        tables = f", in {list_titles(fact['tables'])}" if fact["tables"] else ""
        lines.append(f"  {one_line(fact['attribute'] + ': ' + fact['description'] + tables)}")
    if plan.has_uniform_reference:
        lines.append("  Uniform reference distribution (ResidualPlanner+)")
    return "\n".join(lines)


def rows_of(plan: PartPlan) -> pd.DataFrame:
    """One row a table or query: the least accurate, or the furthest off its target, first.

    Those of an adaptive plan, of whose accuracy nothing is known, in the order of its file.
    Of a plan for areas one row a table and level; that of the least accurate area first.
    """
    if isinstance(plan, QueryPlan):
        return queries_against_targets(plan)
    if isinstance(plan, AreaPlan):
        errors = plan.tables["largest_standard_error"]
        return plan.tables.iloc[np.argsort(-errors.to_numpy(), kind="stable")]
    if isinstance(plan, AdaptivePlan):
        return plan.tables
    assert isinstance(plan, TablePlan)
    return plan.tables.iloc[least_accurate_first(plan)]


def plan_text(plan: PartPlan, rows: pd.DataFrame, count: int) -> str:
    """What a plan promises, with the first `count` of its tables or queries; for reading."""
    parts, items = [str(plan)], "tables"
    if isinstance(plan, QueryPlan):
        items, table = "queries", query_table(rows.head(count))
    elif isinstance(plan, AreaPlan):
        table = area_table(rows.head(count))
        worst = rows.iloc[0]  # the least accurate table
        parts.append(AreaErrors.of(plan, worst["attributes"]).describe(worst["level"]))
    elif isinstance(plan, AdaptivePlan):
        table = estimated_tables(rows.head(count))
    else:
        assert isinstance(plan, TablePlan)
        table = accuracy_table(plan, count)
        if not plan.workload.is_marginals:
            parts.append(basis_text(plan))
    if count:
        parts.append(table)
    if count < len(rows):
        parts[-1] += (
            f"\n… and {len(rows) - count:,} more {items}: --tables {len(rows)} shows all, "
            "--csv FILE writes all."
        )
    if isinstance(plan, QueryPlan):
        parts.append(spare_text(plan))
    return "\n\n".join(parts)


def accuracy_table(plan: TablePlan, count: int) -> str:
    """The `count` least accurate of a plan's tables as a text table.

    Weights are shown where there are any, targets where one of these tables has one, and the least
    accurate cell where cells of a table differ.
    """
    tables = of_tables(plan).head(count)
    differ = "largest_standard_error" in tables
    name = "RMS standard error" if differ else "standard error"
    columns = {
        "table": tables["table"].tolist(),
        "cells": [f"{cells:,.0f}" for cells in tables["cells"]],
        name: describe_numbers(tables["standard_error"]),
        "margin of error": describe_numbers(tables["margin_95"]),
    }
    if differ:
        columns["least accurate cell"] = describe_numbers(tables["largest_standard_error"])
    if np.any(plan.workload.weights != 1):
        columns["weight"] = [f"{weight:g}" for weight in tables["weight"]]
    required = plan.workload.required[least_accurate_first(plan)[:count]]
    columns |= target_columns(tables["target"], tables["met"].tolist(), required.tolist())
    return text_table(columns)


def queries_against_targets(plan: QueryPlan) -> pd.DataFrame:
    """One row a query, the furthest off its target first.

    name, standard_error, margin_95, target, ratio (of the standard error to the target), met ("yes"
    or "no") and shadow_price (share of the budget that is due to this target).
    """
    errors = plan.standard_errors
    rows = pd.DataFrame(
        {
            "name": plan.queries.names,
            "standard_error": errors,
            "margin_95": plan.margins_of_error(),
            "target": plan.targets,
            "ratio": errors / plan.targets,
            "met": np.where(plan.met, "yes", "no"),
            "shadow_price": plan.certificate.shadow_prices,
        }
    )
    return rows.sort_values("ratio", ascending=False, kind="stable", ignore_index=True)


def query_table(rows: pd.DataFrame) -> str:
    """Rows of `queries_against_targets` as a text table."""
    return text_table(
        {
            "query": rows["name"].tolist(),
            "standard error": describe_numbers(rows["standard_error"]),
            "margin of error": describe_numbers(rows["margin_95"]),
            "target": [f"{target:g}" for target in rows["target"]],
            "of target": [describe_share(ratio, 3) for ratio in rows["ratio"]],
            "met": rows["met"].tolist(),
        }
    )


def baseline_table(needed: pd.DataFrame) -> str:
    """Rows of `budgets_needed` as a text table."""
    return text_table(
        {
            "baseline": needed["title"].tolist(),
            "measured": [f"{count:,}" for count in needed["measured"]],
            "ρ for all targets": [rounded(rho, 4, "up", zeros=True) for rho in needed["rho"]],
            "times the least": [rounded(times, 3, zeros=True) for times in needed["largest_ratio"]],
        }
    )


def spare_text(plan: QueryPlan) -> str:
    """The cells whose records leave some of the budget unused, most of it first; for reading."""
    rows = spare_cells(plan).sort_values("profile", kind="stable")
    if not len(rows):
        return "The records of every cell use the whole budget."
    shown = rows.head(_MOST_CELLS)
    columns = {
        "cell with unused budget": shown["cell"].tolist(),
        "budget in use": [describe_share(share) for share in shown["profile"]],
        "σ of a free count": describe_numbers(shown["standard_error"]),
        "σ from the answers alone": describe_numbers(shown["present_standard_error"]),
    }
    more = len(rows) - len(shown)
    return text_table(columns) + (f"\n… and {more:,} more such cells." if more else "")
