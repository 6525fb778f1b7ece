"""What the command line says about plans of all kinds, tables and ledgers: values, texts."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.cli.console import one_line, text_table
from rpexplore.common.numbers import exact_text
from rpexplore.common.text import (
    csv_of_frame,
    describe_numbers,
    describe_share,
    plural,
    rounded,
    text_of_path,
)
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.area_tree import AreaTree
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.part_plan import CertifiedPlan, PartPlan, worst_first_order
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.conversions import MOST_RHO, USUAL_DELTAS, epsilon_at_delta, rho_text
from rpexplore.scenarios.bases import basis_choices_of
from rpexplore.workload.table_text import list_titles, title

if TYPE_CHECKING:
    import pandas as pd

    from rpexplore.releases.ledger.account import Account


def adaptive_facts(plan: AdaptivePlan) -> dict[str, Any]:
    """What an adaptive plan measures, and when, in plain values; each ρ is for one record.

    In a panel it is that of a person, over m².
    """
    return {
        "expected_records": plan.expected_records,
        "candidate_count": len(plan.candidates),
        "first_plan": {
            "sha256": plan.first.sha256,
            "residual_count": len(plan.first.closure),
            "record_rho": exact_text(plan.first.rho / plan.budget.records_factor),
        },
        "rounds": [
            {
                "tables": step.n_tables,
                "selection_rho": exact_text(step.selection_rho),
                "measurement_rho": exact_text(step.measurement_rho),
            }
            for step in plan.rounds
        ],
    }


# ---- What the command line says about plans, and their tables or queries: values, texts.


_USUAL_ROWS = 20  # of a part that a text lists
_MOST_CELLS = 10  # with unused budget, that a text lists


def row_facts(rows: "pd.DataFrame") -> list[dict[str, Any]]:
    """Rows in plain values; what is not known is None."""
    return [
        {name: None if value != value else value for name, value in row.items()}
        for row in rows.to_dict("records")
    ]


# ---- plans


def plan_facts(plan: Plan | PartPlan) -> dict[str, Any]:
    """A plan in a few plain values; exact numbers are texts, as in the plan file.

    With the facts of its part beside them; of several parts these are in `parts`, by kind.
    """
    universe = Plan.of(plan).universe
    facts: dict[str, Any] = {
        "sha256": plan.sha256,
        "unit": plan.budget.unit,
        **({"neighbours": plan.budget.neighbours} if plan.budget.replaces else {}),
        **({"exact_totals": [list(one) for one in plan.budget.exact]} if plan.budget.exact else {}),
        **({} if plan.budget.period is None else {"period": plan.budget.period}),
        **({} if universe is None else {"universe": universe.text}),
        "rho": exact_text(plan.rho),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "epsilon_by_delta": {delta: plan.epsilon(delta) for delta in USUAL_DELTAS},
    }
    parts: dict[str, dict[str, Any]] = {
        part.kind: {count_key(part): part.n_items, **_FACTS[part.kind](part)} for part in plan.parts
    }
    return facts | (next(iter(parts.values())) if len(parts) == 1 else {"parts": parts})


def count_key(part: PartPlan) -> str:
    """The key of the number of a part's items, in answers for machines."""
    return "query_count" if part.kind == "counts" else "table_count"


def _certified(part: CertifiedPlan) -> dict[str, Any]:
    return {"lower_bound": part.certificate.lower_bound, "gap": part.certificate.gap}


def _residuals(part: TablePlan | AreaPlan) -> dict[str, Any]:
    loss = {"description": part.loss.description, "value": part.certificate.loss_value}
    return {**_certified(part), "residual_count": len(part.closure), "loss": loss}


def _facts_of_tables(part: TablePlan) -> dict[str, Any]:
    own: dict[str, Any] = {
        "bases": basis_facts(part),
        "uniform_reference": part.has_uniform_reference,
        "rules": [str(rule) for rule in part.rules],
    }
    if part.pilot is not None:
        own["pilot"] = {
            "precision_share": exact_text(part.pilot),
            "cost_share": float(part.pilot_share),
            **({} if part.then is None else {"then": part.then.to_json()}),
        }
    if part.first is not None:
        own["first_plan"] = part.first.sha256
        own["pilot_sha256"] = part.pilot_sha256 or None
    return _residuals(part) | own


def _facts_of_areas(part: AreaPlan) -> dict[str, Any]:
    return {**_residuals(part), "levels": level_facts(part), "uniform_levels": part.uniform}


def _facts_of_counts(part: QueryPlan) -> dict[str, Any]:
    from rpexplore.analysis.queries import spare_cells

    return {
        **_certified(part),
        "cell_count": part.domain.n_cells,
        **({} if part.queries.atoms is None else {"group_count": part.queries.n_cells}),
        "targets_met": int(np.count_nonzero(part.met)),
        "objective": part.objective.option,
        "largest_ratio": part.ratio,
        "mean_ratio": float(np.mean(part.variance_ratios[part.strategy.is_charged])),
        **({"free_counts": list(part.free_counts)} if part.free_counts else {}),
        "spare_cells": row_facts(spare_cells(part)),
    }


_FACTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "tables": _facts_of_tables,
    "areas": _facts_of_areas,
    "counts": _facts_of_counts,
    "rounds": adaptive_facts,
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
    facts = basis_facts(plan)
    lines = ["Aggregation other than single values"] if facts else []
    for fact in facts:
        tables = f", in {list_titles(fact['tables'])}" if fact["tables"] else ""
        lines.append(f"  {one_line(fact['attribute'] + ': ' + fact['description'] + tables)}")
    weights = plan.domain.weights
    for are_weights, heading in (
        (False, "Sums of amounts, with counts and means"),
        (True, "Weights"),
    ):
        own = [index for index in plan.workload.amounts if (index in weights) == are_weights]
        lines += [heading] if own else []
        for attribute in (plan.domain.attributes[index] for index in own):
            assert isinstance(attribute.values, Amounts)
            lines.append(f"  {one_line(attribute.name)}: {attribute.values.clamping}")
    if plan.has_uniform_reference:
        lines.append("  Uniform reference distribution (ResidualPlanner+)")
    return "\n".join(lines)


def items_of(plan: Plan | PartPlan) -> str:
    """What a plan has many of: "tables", "own counts"; "items" where parts differ."""
    nouns = {plural(2, part.item).removeprefix("2 ") for part in plan.parts}
    return nouns.pop() if len(nouns) == 1 else "items"


def plan_text(plan: Plan | PartPlan, count: int | None) -> str:
    """What a plan promises, with the first `count` of the items of each part; for reading."""
    plan = Plan.of(plan)
    texts = (f"{plan.part_title(part)}\n{part_text(part, count)}" for part in plan.parts)
    return "\n\n".join((plan.summary, *texts)).strip("\n")


_SHADOW_PRICES = (
    "The shadow price of each {item} is its share in what decides the objective: the larger it is, "
    "the more the others would gain if it asked for less accuracy."
)


def part_text(part: Any, count: int | None) -> str:
    """What a part of a plan promises, with its first `count` items (None: as many as usual)."""
    columns = part.accuracy_columns()
    order = worst_first_order(columns)
    count = min(len(order), _USUAL_ROWS if count is None else count)
    first = {name: [column[row] for row in order[:count]] for name, column in columns.items()}
    before, after = _BESIDE[part.kind](part, columns, order)
    table = accuracy_table(first, part.item) if count else ""
    if count < len(order):
        table += (
            f"\n… and {len(order) - count:,} more {items_of(part)}: --tables {len(order)} shows "
            "all, --csv FILE writes all."
        )
    if "shadow price" in table:
        after = "\n\n".join(filter(None, (_SHADOW_PRICES.format(item=part.item), after)))
    return "\n\n".join(filter(None, (str(part), before, table.strip("\n"), after)))


def _beside_tables(part: TablePlan, *_: Any) -> tuple[str, str]:
    return "" if part.workload.is_marginals else basis_text(part), ""


def _beside_areas(part: AreaPlan, columns: dict[str, Any], order: np.ndarray) -> tuple[str, str]:
    from rpexplore.analysis.area_accuracy import AreaErrors

    worst = order[0]  # the least accurate table
    errors = AreaErrors.of(part, columns["attributes"][worst])
    return errors.describe(columns["level"][worst]), ""


# What is said before and after the items of a part.
_BESIDE: dict[str, Callable[[Any, dict[str, Any], np.ndarray], tuple[str, str]]] = {
    "tables": _beside_tables,
    "areas": _beside_areas,
    "counts": lambda part, *_: ("", spare_text(part)),
    "rounds": lambda *_: ("", ""),
}


def accuracy_table(rows: Mapping[str, Sequence[Any]], item: str) -> str:
    """Columns of `item_columns` as a text table, without those that say nothing.

    item: what the rows are: "table", "own count"
    """
    from rpexplore.analysis.accuracy import readable_columns

    ratios = np.divide(rows["largest_standard_error"], rows["target"])
    shown = readable_columns({**rows, "ratio": ratios})
    name = "RMS standard error" if "largest_standard_error" in shown else "standard error"
    columns: dict[str, Sequence[str]] = {}
    for column, heading, texts in (
        ("level", "level", str),
        ("item", item, str),
        ("areas", "areas", "{:,.0f}".format),
        ("cells", "cells", "{:,.0f}".format),
        ("standard_error", name, None),
        ("margin_95", "margin of error", None),
        ("largest_standard_error", "largest standard error", None),
        ("weight", "weight", "{:g}".format),
        ("shadow_price", "shadow price", lambda price: describe_share(price, 3)),
        ("target", "target", "{:g}".format),
        ("ratio", "of target", lambda ratio: describe_share(ratio, 3)),
        ("met", "met", str),
        ("required", "required", str),
    ):
        if column in shown:
            values = shown[column]
            columns[heading] = (
                describe_numbers(values)
                if texts is None
                else ["" if value is None or value != value else texts(value) for value in values]
            )
    texts_first = 2 if "level" in columns else 1
    return text_table(columns, "<" * texts_first + ">" * (len(columns) - texts_first))


def baseline_table(needed: "pd.DataFrame") -> str:
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
    from rpexplore.analysis.queries import spare_cells

    rows = spare_cells(plan).sort_values("profile", kind="stable")
    if not len(rows):
        return "The records of every cell use the whole budget."
    shown = rows.head(_MOST_CELLS)
    columns = {
        "cell with unused budget": shown["cell"].tolist(),
        "budget in use": [describe_share(share) for share in shown["profile"]],
        "σ of a free count": describe_numbers(shown["standard_error"]),
        "σ from the released counts": describe_numbers(shown["present_standard_error"]),
    }
    more = len(rows) - len(shown)
    return text_table(columns) + (f"\n… and {more:,} more such cells." if more else "")


# ---- What the command line says about plans for areas: values, texts.


def level_facts(plan: AreaPlan) -> list[dict[str, Any]]:
    """The levels of a plan for areas in plain values."""
    tree = plan.workload.tree
    sizes = np.diff(tree.starts).tolist()
    return [{"level": name, "areas": size} for name, size in zip(tree.levels, sizes, strict=True)]


def csv_of_sums(rows: "pd.DataFrame", *, escape_formulas: bool) -> str:
    """Rows of `accuracy_of_sums` as CSV."""
    named = rows.assign(attributes=[title(table) for table in rows["attributes"]])
    return csv_of_frame(named, escape_formulas=escape_formulas)


def level_table(sizes: "pd.DataFrame") -> str:
    """Rows of `level_sizes` as a text table."""
    names = {
        "areas": "areas",
        "undivided": "leaves",
        "fewest_parts": "fewest children",
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


def share_table(beside: "pd.DataFrame") -> str:
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


# ---- What the command line says about ledgers, and what a run is charged: values, texts.


def announcement(
    plan: Plan, ledger: str, account: "Account", limit_rho: str | None, *, goes_on: bool
) -> str:
    """What a run of the plan will be charged, and what a ledger has of the data before.

    goes_on: whether it is booked already, as after a pilot
    """
    when = "that is booked already" if goes_on else "for this run, charged when it starts"
    factor, limit = plan.budget.records_factor, account.limit_record_rho
    limit_text = "none in the ledger" if limit is None else rho_text(limit * factor, mode="down")
    sums, booked = "", ""
    if plan.budget.period is not None:
        sums = f" (for {plan.budget.nouns} with any records)"
        booked = f"; the ledger counts {rho_text(plan.record_rho * factor)}{sums}"
    replaced = f"; {plan.budget.neighbours_text}" if plan.budget.replaces else ""
    return "\n".join(
        [
            f"Plan      SHA-256 {plan.sha256}",
            f"Protects  {plan.budget.unit}{replaced}; each ρ below is for that",
            *([] if plan.universe is None else [f"Universe  {plan.universe.text}"]),
            f"Cost      {rho_text(plan.rho)} {when}{booked}",
            f"Ledger    {one_line(ledger)}",
            f"Spent     {rho_text(account.spent_record_rho * factor)} on this data so far{sums}",
            f"Limit     {limit_text if limit_rho is None else f'ρ = {limit_rho}, as given'}{sums}",
        ]
    )


def booked_since(before: "Account", after: "Account", plan: Plan, output: Path) -> Fraction:
    """ρ for the plan's unit that its run into this folder has been charged between two looks."""
    written = text_of_path(os.path.realpath(output))
    charged = [
        run.record_rho
        for run in after.entries[len(before.entries) :]
        if (run.plan_sha256, run.output) == (plan.booked_sha256, written)
    ]
    return sum(charged, Fraction(0)) * plan.budget.records_factor


def account_facts(account: "Account", factor: int) -> dict[str, Any]:
    """The totals of a ledger, exact, for a unit that counts `factor` times a record."""
    limit = account.limit_record_rho
    return {
        "spent_rho": exact_text(account.spent_record_rho * factor),
        "neighbours": account.neighbours.does,
        **_spent_epsilon(account, factor),
        "limit_rho": None if limit is None else exact_text(limit * factor),
        "approval_demands": [asdict(demand) for demand in account.approval_demands],
        "forgotten_ledgers": [
            {
                "ledger": lost.ledger.name,
                "spent_rho": exact_text(lost.record_rho * factor),
                "user": lost.user,
                "noted": lost.noted,
            }
            for lost in account.forgotten
        ],
    }


def _epsilon_of(account: "Account") -> str:
    """The ε of all runs together and its proof, to go on with; "" where nothing was spent."""
    spent, delta = account.spent, USUAL_DELTAS[0]
    if not 0 < spent.record_rho < MOST_RHO:
        return ""
    epsilon = epsilon_at_delta(spent.epsilon(delta), delta)
    return f"; {epsilon}, {spent.proof(delta)}"


def _spent_epsilon(account: "Account", factor: int) -> dict[str, Any]:
    """What all runs together prove, for a unit that counts `factor` times a record."""
    spent, records = account.spent, math.isqrt(factor)
    if spent.record_rho * factor >= MOST_RHO:
        return {"spent_epsilon": None, "spent_epsilon_proof": ""}
    return {
        "spent_epsilon": {delta: spent.epsilon(delta, records) for delta in USUAL_DELTAS},
        "spent_epsilon_proof": spent.proof(USUAL_DELTAS[0], records),
    }


def account_text(account: "Account", ledger: str) -> str:
    """What a ledger of this name holds on a dataset, for reading."""
    limit, runs = account.limit_record_rho, account.entries
    limit_text = "none" if limit is None else f"{rho_text(limit, mode='down')} for one record"
    text = (
        f"Data    {one_line(account.dataset)}\n"
        f"Ledger  {one_line(ledger)}\n"
        f"Spent   {rho_text(account.spent_record_rho)} {one_line(account.neighbours.change)}"
        f"{_epsilon_of(account)}\n"
        f"Limit   {limit_text}{account.limit_source}"
    )
    for lost in account.forgotten:
        known = rho_text(lost.record_rho) if lost.record_rho else "nothing"
        text += (
            f"\nLost    {one_line(lost.ledger.name)}, given up at {lost.noted[:16]} by "
            f"{one_line(lost.user)}; {known} is known to be spent there"
        )
    for demand in account.approval_demands:
        listed = "; ".join(map(one_line, demand.names))
        text += f"\nNeeds   approvals of the plan by {plural(demand.n, 'person')} of: {listed}"
    if account.is_mixed:
        text += (
            "\nNote    runs for several kinds of neighbours came together: what is spent is for "
            "what all of them protect, and no run can follow"
        )
    if account.neighbours.exact or account.neighbours.within:
        text += (
            "\nNote    the digits behind a name, as in (values 0a1b2c…), stand for what decides "
            "which records it counts: codebook, areas, and how records are read; runs add up "
            "only where they agree"
        )
    if not runs:
        return text
    columns = {
        "run": [str(number) for number in range(1, len(runs) + 1)],
        "started": [f"{run.started[:19]}+00:00" for run in runs],
        "charged": [rho_text(run.record_rho) for run in runs],
        "state": [run.state for run in runs],
        "plan SHA-256": [run.plan_sha256[:12] + "…" for run in runs],
        "output": [run.output for run in runs],
    }
    if account.is_mixed:
        columns["for neighbours that"] = [run.kind.does for run in runs]
    if any(run.approvals for run in runs):
        columns["approved by"] = [", ".join(one.name for one in run.approvals) for run in runs]
    return f"{text}\n\n{text_table(columns, '>' + '<' * (len(columns) - 1))}"
